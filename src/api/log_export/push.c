/* The push-based log export: the older form, one for each project, with all logs and an S3 bucket. It is a target as
 * log integrations are; its state is a field of its own. */
#include "api/kit/verbs.h"
#include "api/log_export/targets.h"
#include "base/clock.h"

static int updated(struct call *c, const struct doc *old, json_t *document)
{
	if (!old->rev)
		json_put_time(document, "createDate", clock_now_ms());
	json_object_del(document, "state");
	return log_bucket_check(c, document);
}

static int written(struct call *c, const struct doc *d, const struct doc *old)
{
	int r = old->rev && str_eq(old->body, d->body) ? 0 : target_begin(c->tx, c->arena, d->id, d->parent, c->noted);
	c->committed = target_wake;
	return r < 0 || old->rev ? r : cursors_begin(c->tx, c->arena, d->id, d->parent);
}

static int removed(struct call *c, const struct doc *d)
{
	struct target t;
	int r = target_load(c->arena, d, &t);
	return r < 0 ? r : target_off(c->tx, c->arena, &t);
}

static int gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return target_end(tx, a, d->id);
}

static int view(struct call *c, const struct doc *d, json_t *entity)
{
	struct str state, why;
	if (!d->rev)
		return 0; /* UNCONFIGURED, as the defaults say */
	int r = target_state(c->tx, c->arena, d->id, &state, &why);
	if (r < 0)
		return r;
	json_put_str(entity, "state", state);
	return target_tell(c, d->id);
}

const struct resource_hooks log_export_hooks = {
        .update = updated, .written = written, .remove = removed, .gone = gone, .view = view};

/* A singleton has defaults, and so is always there for the verbs: what is not configured is neither changed nor turned
 * off, and what is configured is not configured again. */
static int configured_check(struct call *c, bool wanted)
{
	struct doc d;
	int r = resource_load(c, c->op->resource, &d);
	if (r < 0 || (d.rev != 0) == wanted)
		return r;
	if (wanted)
		return call_missing(c, c->op->resource, STR_NONE);
	return call_fail(c, 400, "LOG_EXPORT_ALREADY_CONFIGURED",
	                 "The project has a push-based log export already. Change it by PATCH.");
}

int log_export_create(struct call *c)
{
	int r = configured_check(c, false);
	return r < 0 ? r : verb_update(c);
}

int log_export_update(struct call *c)
{
	int r = configured_check(c, true);
	return r < 0 ? r : verb_update(c);
}

int log_export_delete(struct call *c)
{
	int r = configured_check(c, true);
	return r < 0 ? r : verb_delete(c);
}
