/* Query limits: bytes that queries may read. A document exists where an instance has a limit; what was used of it the
 * engine counts. */
#include "api/data_federation/instance.h"

#include <errno.h>

#define BYTES_MAX INT64_C(9007199254740992) /* a number that every JSON reader reads exactly */
#define BEGIN "bytesProcessed."

bool limit_span_of(struct str name, enum federation_span *ret_span)
{
	static const char *const words[FEDERATION_SPANS] = {BEGIN "query", BEGIN "daily", BEGIN "weekly",
	                                                    BEGIN "monthly"};
	for (size_t i = 0; i < FEDERATION_SPANS; i++)
		if (str_is(name, words[i])) {
			*ret_span = (enum federation_span)i;
			return true;
		}
	return false;
}

/* A PATCH makes one that was not there. */
static int limit_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str name = call_path(c, "limitName"), parent;
	int result = resource_parent(c, r, &parent);
	if (result == 0)
		result = resource_named(c, r, parent, name, ret_doc);
	if (result < 0 || ret_doc->rev)
		return result;
	if (c->op->method != METHOD_PATCH)
		return call_missing(c, r, name);
	ret_doc->body = arena_printf(c->arena, "{\"name\":\"%.*s\"}", STR_ARG(name));
	return 0;
}

static int limit_update(struct call *c, const struct doc *old, json_t *document)
{
	json_int_t value = json_number(document, "value");
	(void)old;
	if (value < 1 || value > BYTES_MAX)
		return call_fail_field(c, 400, "LIMIT_OUT_OF_RANGE", "value", "must be from 1 to %lld, not %lld.",
		                       (long long)BYTES_MAX, (long long)value);
	json_default(document, "overrunPolicy", json_string("BLOCK"));
	return 0;
}

static int limit_written(struct call *c, const struct doc *d, const struct doc *old)
{
	(void)old;
	return instance_changed(c->tx, c->arena, d->parent);
}

/* Also with its instance, which is told nothing then. */
static int limit_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return instance_changed(tx, a, d->parent);
}

static int limit_view(struct call *c, const struct doc *d, json_t *entity)
{
	struct instance x;
	enum federation_span span;
	struct engine_federation_used used;
	int r = instance_get(c->tx, c->arena, d->parent, &x);
	if (r < 0)
		return r;
	c->momentary = true;
	json_put_str(entity, "tenantName", x.doc.name);
	json_put(entity, "maximumLimit", json_integer(BYTES_MAX));
	if (limit_span_of(d->name, &span) && instance_used(c->service, c->arena, &x, &used))
		json_put(entity, "currentUsage", json_integer((json_int_t)used.bytes[span]));
	return 0;
}

const struct resource_hooks data_federation_limit_hooks = {
        .load = limit_load, .update = limit_update, .written = limit_written, .gone = limit_gone, .view = limit_view};
