/* The generic verbs. A stored body is final text, so a read splices links into it and parses nothing; a write parses,
 * merges, checks the whole against the resource's schema and stores the text again. */
#include "api/verbs.h"

#include "base/clock.h"
#include "base/id.h"

#include <errno.h>
#include <stdlib.h>

#define JSON_TEXT (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))

static void json_release(void *value)
{
	json_decref(value);
}

json_t *json_keep(struct arena *a, json_t *value)
{
	arena_defer(a, json_release, value);
	return value;
}

struct str json_text(struct arena *a, const json_t *value)
{
	char small[2048];
	size_t n = json_dumpb(value, small, sizeof small, JSON_TEXT);
	if (n <= sizeof small)
		return arena_dup(a, (struct str){small, n});
	char *p = arena_alloc(a, n + 1);
	json_dumpb(value, p, n, JSON_TEXT);
	return (struct str){p, n};
}

struct str json_field(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return (struct str){json_string_value(value), json_string_length(value)};
}

json_t *doc_json(struct arena *a, struct str body)
{
	json_t *value = json_loadb(body.p, body.n, 0, NULL);
	if (!value)
		value = json_object();
	return json_keep(a, value);
}

json_t *body_copy(struct arena *a, const json_t *value)
{
	return json_keep(a, json_deep_copy(value));
}

void json_merge(json_t *into, const json_t *from)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)from, key, value)
	{
		json_t *old = json_object_get(into, key);
		if (json_is_null(value))
			json_object_del(into, key);
		else if (json_is_object(value) && json_is_object(old))
			json_merge(old, value);
		else
			json_object_set_new(into, key, json_deep_copy(value));
	}
}

int doc_last(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct doc *ret_doc)
{
	struct doc *docs;
	size_t count = 0;
	int64_t total = 0;
	int result = tx_count(tx, kind, parent, &total);
	if (result == 0 && total)
		result = tx_list(tx, a, kind, parent, total - 1, 1, &docs, &count);
	if (result == 0 && count)
		*ret_doc = docs[0];
	return result == 0 && !count ? -ENOENT : result;
}

static struct str parent_of(const struct call *c, const struct resource *r)
{
	return r->parent_param ? call_path(c, r->parent_param) : STR_NONE;
}

static int load_singleton(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str id = parent_of(c, r);
	int result = tx_get(c->tx, c->arena, r->kind, id, ret_doc);
	if (result == -ENOENT && r->defaults) {
		*ret_doc = (struct doc){.kind = str_of(r->kind), .id = id, .parent = id, .body = str_of(r->defaults)};
		return 0;
	}
	return result;
}

int resource_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str parent = parent_of(c, r);
	if (!r->key_param)
		return load_singleton(c, r, ret_doc);
	struct str key = call_path(c, r->key_param);
	if (r->key_is_name)
		return tx_get_by_name(c->tx, c->arena, r->kind, parent, key, ret_doc);
	/* The membership gate has just read the scope's own document; a write reads it again, inside its transaction. */
	if (!c->op->writes && str_eq(c->group.id, key) && str_is(c->group.kind, r->kind)) {
		*ret_doc = c->group;
		return 0;
	}
	struct doc d;
	int result = tx_get(c->tx, c->arena, r->kind, key, &d);
	if (result < 0)
		return result;
	if (parent.n && !str_eq(parent, d.parent))
		return -ENOENT;
	*ret_doc = d;
	return 0;
}

int if_match(struct call *c, int64_t revision)
{
	struct str rest = request_header(c->request, "if-match"), one;
	char mine[32];
	if (!rest.p || str_is(str_trim(rest), "*"))
		return 0;
	snprintf(mine, sizeof mine, "\"%lld\"", (long long)revision);
	while (rest.n) {
		str_cut(rest, ',', &one, &rest);
		if (str_is(str_trim(one), mine))
			return 0;
	}
	return call_fail(c, 412, "PRECONDITION_FAILED", "If-Match: the resource is at revision %s now. Read it again.",
	                 mine);
}

static int answer_entity(struct call *c, const struct resource *r, const struct doc *d)
{
	struct str key = r->key_is_name ? d->name : d->id;
	c->etag = d->rev;
	entity_write(c, &c->out, d->body, r->self, r->key_param, key, false);
	return 0;
}

int verb_get(struct call *c)
{
	struct doc d;
	int result = resource_load(c, c->op->resource, &d);
	return result < 0 ? result : answer_entity(c, c->op->resource, &d);
}

int verb_list(struct call *c)
{
	const struct resource *r = c->op->resource;
	struct segment all = {.kind = r->kind, .parent = parent_of(c, r)};
	return list_segments(c, r, &all, 1, STR_NONE);
}

/* The document as it will be stored: defaults, dates in UTC, valid as a whole. */
static int seal_document(struct call *c, const struct resource *r, json_t *document, struct doc *d)
{
	struct faults faults = {.count = 0};
	schema_add_defaults(r->schema, document);
	schema_normalize_dates(r->schema, document);
	schema_check(r->schema, document, SCHEMA_STORED, c->arena, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	if (r->name_field) {
		json_t *name = json_object_get(document, r->name_field);
		d->name = (struct str){json_string_value(name), json_string_length(name)};
	}
	d->body = json_text(c->arena, document);
	return 0;
}

static int fail_write(struct call *c, const struct resource *r, int error, const struct doc *d)
{
	if (error != -EEXIST || !r->name_field)
		return error;
	call_fail(c, 409, "DUPLICATE_NAME", "%s: \"%.*s\" is taken. Choose another.", r->name_field, STR_ARG(d->name));
	return call_fail_param(c, d->name);
}

int verb_create(struct call *c)
{
	const struct resource *r = c->op->resource;
	struct id id = id_new();
	struct doc d = {.kind = str_of(r->kind), .parent = parent_of(c, r), .created_ms = clock_now_ms(), .rev = 1};
	json_t *document = body_copy(c->arena, c->body);
	d.id = arena_dup(c->arena, id_str(&id));
	if (r->id_field)
		json_object_set_new(document, r->id_field, json_stringn(d.id.p, d.id.n));
	int result = r->hooks && r->hooks->create ? r->hooks->create(c, document) : 0;
	if (result == 0)
		result = seal_document(c, r, document, &d);
	if (result == 0)
		result = fail_write(c, r, tx_insert(c->tx, &d), &d);
	if (result < 0)
		return result;
	c->location = link_href(c, r->self, r->key_param, r->key_is_name ? d.name : d.id);
	return answer_entity(c, r, &d);
}

static int write_back(struct call *c, const struct resource *r, struct doc *d, json_t *document)
{
	bool is_new = d->rev == 0;
	int result = seal_document(c, r, document, d);
	if (result < 0)
		return result;
	if (is_new) {
		d->created_ms = clock_now_ms();
		d->rev = 1;
		return fail_write(c, r, tx_insert(c->tx, d), d);
	}
	result = fail_write(c, r, tx_update(c->tx, d), d);
	d->rev++;
	return result;
}

static int change(struct call *c, bool replaces)
{
	const struct resource *r = c->op->resource;
	struct doc old, d;
	int result = resource_load(c, r, &old);
	if (result == 0)
		result = if_match(c, old.rev);
	if (result < 0)
		return result;
	json_t *document = replaces ? json_deep_copy(c->body) : json_loadb(old.body.p, old.body.n, 0, NULL);
	if (!document)
		return -EIO;
	json_keep(c->arena, document);
	if (!replaces)
		json_merge(document, c->body);
	else if (r->id_field)
		json_object_set_new(document, r->id_field, json_stringn(old.id.p, old.id.n));
	if (r->hooks && r->hooks->update)
		result = r->hooks->update(c, &old, document);
	d = old;
	if (result == 0)
		result = write_back(c, r, &d, document);
	return result < 0 ? result : answer_entity(c, r, &d);
}

int verb_update(struct call *c)
{
	return change(c, false);
}

int verb_replace(struct call *c)
{
	return change(c, true);
}

int verb_delete(struct call *c)
{
	const struct resource *r = c->op->resource;
	struct doc d;
	int result = resource_load(c, r, &d);
	if (result == 0)
		result = if_match(c, d.rev);
	if (result == 0 && r->hooks && r->hooks->remove)
		result = r->hooks->remove(c, &d);
	if (result == 0 && d.rev)
		result = tx_delete(c->tx, r->kind, d.id);
	return result;
}

static int delete_list(struct call *c, const char *kind, struct str parent)
{
	for (;;) {
		struct doc *docs;
		size_t count;
		int result = tx_list(c->tx, c->arena, kind, parent, 0, 500, &docs, &count);
		if (result < 0 || count == 0)
			return result;
		for (size_t i = 0; i < count; i++)
			if ((result = tx_delete(c->tx, kind, docs[i].id)) < 0)
				return result;
	}
}

int resource_delete_children(struct call *c, const char *parent_param, struct str parent_id)
{
	for (unsigned i = 0; i < catalog_resource_count; i++) {
		const struct resource *r = catalog_resources[i];
		if (!r->parent_param || strcmp(r->parent_param, parent_param) != 0)
			continue;
		int result = delete_list(c, r->kind, parent_id);
		if (result < 0)
			return result;
	}
	return 0;
}
