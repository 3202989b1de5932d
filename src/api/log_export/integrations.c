/* Log integrations: documents of six forms. Keys, tokens and the values of headers are kept sealed beside the document,
 * which has a mask in their place, or nothing; a mask that is sent back means that the secret stays. */
#include "api/kit/verbs.h"
#include "api/log_export/targets.h"
#include "outbox/outbox.h"
#include "outbox/post.h"
#include "trail/events.h"

#include <ctype.h>
#include <errno.h>

#define MASK "********"
#define TEXT_BYTES 4096
#define HEADERS "otelSuppliedHeaders"

/* Secrets of their own field, and the field that says where they go. */
static const struct {
	const char *field, *place;
} secrets[] = {{"apiKey", "region"}, {"hecToken", "hecUrl"}};
#define SECRETS (sizeof secrets / sizeof *secrets)

/* --- masks */

static bool is_same_place(const json_t *old, const json_t *document, const char *field)
{
	struct str before = json_field(old, field), now = json_field(document, field);
	return str_eq(post_url_origin(before), post_url_origin(now));
}

/* The stored secret in the place of its mask. What leads elsewhere now must not take along what was meant for the old
 * place. */
static struct str unmask(struct call *c, struct str given, struct str kept, bool same_place, struct str path,
                         struct faults *faults)
{
	if (!str_is(given, MASK))
		return given;
	if (!kept.n)
		faults_add(faults, c->arena, path,
		           "is a mask, but nothing is kept that it could stand for: send the value");
	else if (!same_place)
		faults_add(faults, c->arena, path, "is a mask, but the address is another one: send the value");
	else
		return kept;
	return given;
}

static void masks_replace(struct call *c, const json_t *old, json_t *document, struct faults *faults)
{
	json_t *headers = json_object_get(document, HEADERS);
	for (size_t i = 0; i < SECRETS; i++)
		if (json_object_get(document, secrets[i].field))
			json_put_str(document, secrets[i].field,
			             arena_dup(c->arena, unmask(c, json_field(document, secrets[i].field),
			                                        json_field(old, secrets[i].field),
			                                        is_same_place(old, document, secrets[i].place),
			                                        str_of(secrets[i].field), faults)));
	for (size_t i = 0; i < json_array_size(headers); i++) {
		json_t *one = json_array_get(headers, i);
		const json_t *before = json_find(json_object_get(old, HEADERS), "name", json_field(one, "name"));
		json_put_str(one, "value",
		             arena_dup(c->arena, unmask(c, json_field(one, "value"), json_field(before, "value"),
		                                        is_same_place(old, document, "otelEndpoint"),
		                                        arena_printf(c->arena, HEADERS "[%zu].value", i), faults)));
	}
}

/* --- what schemas cannot say */

static bool is_header_name(struct str name)
{
	static const char *const own[] = {"content-type", "content-encoding",  "content-length",
	                                  "host",         "transfer-encoding", "expect",
	                                  "connection",   "x-steward-delivery"};
	for (size_t i = 0; i < name.n; i++)
		if (!isalnum((unsigned char)name.p[i]) && (!name.p[i] || !strchr("!#$%&'*+-.^_`|~", name.p[i])))
			return false;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (str_ieq(name, str_of(own[i])))
			return false;
	return name.n > 0;
}

static bool is_header_value(struct str value)
{
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.p[i] < ' ' || value.p[i] == 0x7f)
			return false;
	return value.n > 0 && value.n <= TEXT_BYTES;
}

static void headers_check(struct call *c, const json_t *document, struct faults *faults)
{
	const json_t *headers = json_object_get(document, HEADERS);
	for (size_t i = 0; i < json_array_size(headers); i++) {
		const json_t *one = json_array_get(headers, i);
		struct str name = json_field(one, "name");
		if (!is_header_name(name))
			faults_add(faults, c->arena, arena_printf(c->arena, HEADERS "[%zu].name", i),
			           "must be the name of a header that the service does not set itself");
		for (size_t k = 0; k < i; k++)
			if (str_ieq(name, json_field(json_array_get(headers, k), "name")))
				faults_add(faults, c->arena, arena_printf(c->arena, HEADERS "[%zu].name", i),
				           "must not be there twice");
		if (!is_header_value(json_field(one, "value")))
			faults_add(faults, c->arena, arena_printf(c->arena, HEADERS "[%zu].value", i),
			           "must have from 1 to %d bytes, without line ends", TEXT_BYTES);
	}
}

static void service_check(struct call *c, const json_t *document, struct faults *faults)
{
	static const char *const urls[] = {"hecUrl", "otelEndpoint"};
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		const char *fault = json_object_get(document, urls[i]) ? outbox_url_fault(c->service->outbox, c->arena,
		                                                                          json_field(document, urls[i]))
		                                                       : NULL;
		if (fault)
			faults_add(faults, c->arena, str_of(urls[i]), "%s", fault);
	}
	for (size_t i = 0; i < SECRETS; i++)
		if (json_object_get(document, secrets[i].field) &&
		    !is_header_value(json_field(document, secrets[i].field)))
			faults_add(faults, c->arena, str_of(secrets[i].field),
			           "must have from 1 to %d bytes, without line ends", TEXT_BYTES);
	headers_check(c, document, faults);
}

/* `old`: what is kept, with its secrets; NULL: it is new. */
static int check(struct call *c, const json_t *old, json_t *document)
{
	struct faults faults = {.count = 0};
	enum target_type type = target_type_of(document);
	if (!json_array_size(json_object_get(document, "logTypes")))
		faults_add(&faults, c->arena, STR("logTypes"), "must name at least one log");
	if (old && type != target_type_of(old))
		faults_add(&faults, c->arena, STR("type"), "cannot be changed: it is %s",
		           target_words[target_type_of(old)].type);
	masks_replace(c, old, document, &faults);
	if (!target_has_bucket(type))
		service_check(c, document, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	return target_has_bucket(type) ? log_bucket_check(c, document) : 0;
}

static int created(struct call *c, json_t *document)
{
	event_set_type(c, target_words[target_type_of(document)].enabled);
	return check(c, NULL, document);
}

static int updated(struct call *c, const struct doc *old, json_t *document)
{
	struct target t;
	int r = target_load(c->arena, old, &t);
	event_set_type(c, target_words[target_type_of(document)].updated);
	return r < 0 ? r : check(c, t.config, document);
}

static int removed(struct call *c, const struct doc *old)
{
	event_set_type(c, target_words[target_type_of(doc_json(c->arena, old->body))].disabled);
	return 0;
}

/* --- keeping */

static int save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	json_t *own = json_new(c->arena), *headers = json_object_get(document, HEADERS);
	for (size_t i = 0; i < SECRETS; i++)
		if (json_object_get(document, secrets[i].field)) {
			json_put(own, secrets[i].field, json_deep_copy(json_object_get(document, secrets[i].field)));
			json_put_z(document, secrets[i].field, MASK);
		}
	if (headers)
		json_put(own, HEADERS, json_deep_copy(headers));
	for (size_t i = 0; i < json_array_size(headers); i++)
		json_object_del(json_array_get(headers, i), "value");
	d->secret = json_object_size(own) ? doc_seal(c->arena, d, json_text(c->arena, own)) : STR_NONE;
	d->body = json_text(c->arena, document);
	return resource_put(c->tx, d, old);
}

static int written(struct call *c, const struct doc *d, const struct doc *old)
{
	bool same = old && target_has_bucket(target_type_of(doc_json(c->arena, d->body))) && str_eq(old->body, d->body);
	int r = same ? 0 : target_begin(c->tx, c->arena, d->id, d->parent, c->noted);
	c->committed = target_wake;
	return r < 0 || old ? r : cursors_begin(c->tx, c->arena, d->id, d->parent);
}

static int gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return target_end(tx, a, d->id);
}

static int view(struct call *c, const struct doc *d, json_t *entity)
{
	return c->is_list ? 0 : target_tell(c, d->id);
}

const struct resource_hooks log_integration_hooks = {.create = created,
                                                     .update = updated,
                                                     .remove = removed,
                                                     .save = save,
                                                     .written = written,
                                                     .gone = gone,
                                                     .view = view};
