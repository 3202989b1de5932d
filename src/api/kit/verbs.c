/* The generic verbs. A stored body is final text, so a read splices links into it and parses nothing; a write parses,
 * merges, checks the whole against the resource's schema and stores the text again. */
#include "api/kit/found.h"
#include "api/kit/lifecycle.h"
#include "api/kit/resources.h"
#include "base/clock.h"
#include "base/id.h"

#include <errno.h>
#include <strings.h>

#define HOOK(r, name) ((r)->hooks && (r)->hooks->name)

int doc_insert(struct tx *tx, const char *kind, struct str id, struct str parent, struct str name, struct str body)
{
	return tx_insert(tx, &(struct doc){.kind = str_of(kind),
	                                   .id = id,
	                                   .parent = parent,
	                                   .name = name,
	                                   .created_ms = clock_now_ms(),
	                                   .body = body});
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

int doc_put(struct tx *tx, struct doc *d)
{
	if (!d->rev && !d->created_ms)
		d->created_ms = clock_now_ms();
	int result = d->rev ? tx_update(tx, d) : tx_insert(tx, d);
	d->rev += result == 0;
	return result;
}

int resource_singleton(struct tx *tx, struct arena *a, const struct resource *r, struct str parent, struct doc *ret_doc)
{
	int result = tx_get(tx, a, r->kind, parent, ret_doc);
	if (result == -ENOENT && r->defaults) {
		*ret_doc = (struct doc){
		        .kind = str_of(r->kind), .id = parent, .parent = parent, .body = str_of(r->defaults)};
		return 0;
	}
	return result;
}

static int not_there(struct call *c, const struct resource *r, struct str key)
{
	bool by_name = c->op->resource == r && c->op->by_name;
	return by_name ? call_missing_param(c, c->op->by_name) : call_missing(c, r, key);
}

static int load(struct call *c, const struct resource *r, struct str key, struct doc *ret_doc)
{
	struct str parent, by_name = c->op->resource == r && c->op->by_name ? call_path(c, c->op->by_name) : STR_NONE;
	int result = resource_parent(c, r, &parent);
	if (result < 0)
		return result;
	if (!r->key_param)
		return resource_singleton(c->tx, c->arena, r, parent, ret_doc);
	if (!key.n)
		key = by_name.p ? by_name : call_path(c, r->key_param);
	if (!key.n)
		return call_missing(c, r, key);
	if (r->key_is_name || by_name.p) {
		result = tx_get_by_name(c->tx, c->arena, r->kind, parent, key, ret_doc);
		return result != -ENOENT ? result : not_there(c, r, key);
	}
	/* The membership gate has just read the scope's own document; a write reads it again, inside its
	 * transaction. */
	if (!c->op->writes && str_eq(c->group.id, key) && str_is(c->group.kind, r->kind)) {
		*ret_doc = c->group;
		return 0;
	}
	struct doc d;
	result = tx_get(c->tx, c->arena, r->kind, key, &d);
	if (result == -ENOENT || (result == 0 && parent.n && !str_eq(parent, d.parent)))
		return not_there(c, r, key);
	if (result == 0)
		*ret_doc = d;
	return result;
}

int resource_load_by(struct call *c, const struct resource *r, struct str key, struct doc *ret_doc)
{
	c->missing = (struct missing){0};
	int result = HOOK(r, load) ? r->hooks->load(c, r, ret_doc) : load(c, r, key, ret_doc);
	if (result == 0 && HOOK(r, hides) && r->hooks->hides(c, ret_doc))
		result = -ENOENT;
	return result != -ENOENT || c->missing.code
	               ? result
	               : not_there(c, r, key.n || !r->key_param ? key : call_path(c, r->key_param));
}

int resource_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	return resource_load_by(c, r, STR_NONE, ret_doc);
}

static struct str path_key(struct call *c, const struct resource *r, const struct doc *d)
{
	return HOOK(r, key) ? r->hooks->key(c, d) : r->key_is_name ? d->name : d->id;
}

int if_match(struct call *c, int64_t revision)
{
	struct str given = request_header(c->request, "if-match");
	char mine[32];
	snprintf(mine, sizeof mine, "\"%lld\"", (long long)revision);
	if (!given.p || str_is(str_trim(given), "*") || str_list_has(given, str_of(mine)))
		return 0;
	return call_fail(c, 412, "PRECONDITION_FAILED", "If-Match: the resource is at revision %s now. Read it again.",
	                 mine);
}

static const struct op *self_of(const struct call *c, const struct resource *r)
{
	return r->group_self && c->group.id.n ? r->group_self : r->self;
}

static int revision_match(struct call *c, const struct resource *r, const struct doc *d)
{
	return r->no_etag ? 0 : if_match(c, d->rev);
}

/* The form of an entity in an older version's answer; NULL: the newest version's. */
static const struct schema *older_form(const struct call *c)
{
	const struct schema *form = c->version ? c->version->response : NULL;
	if (!form || form == c->op->versions[c->op->version_count - 1].response)
		return NULL;
	const struct field *results = c->is_list ? schema_field(form, STR("results")) : NULL;
	return results ? results->schema->items : form;
}

void answer_fit(const struct call *c, json_t *entity)
{
	const struct schema *form = older_form(c);
	if (form)
		schema_keep_known(form, entity);
}

bool answer_is_whole(const struct call *c)
{
	struct str asked = request_header(c->request, "x-steward-whole");
	return str_ieq(asked, STR("true")) || (c->dialect && !str_ieq(asked, STR("false")));
}

void answer_form(const struct call *c, const struct schema *form, json_t *entity)
{
	const char *name;
	json_t *value;
	void *next;
	if (answer_is_whole(c)) {
		schema_keep_known(form, entity);
		return;
	}
	json_object_foreach_safe(entity, next, name, value)
	{
		if (!schema_field(form, str_of(name)))
			json_object_del(entity, name);
	}
}

/* What the resource's hooks make of the document. */
static int body_make(struct call *c, const struct resource *r, const struct doc *d, struct arena *a,
                     struct str *ret_body)
{
	struct str body = d->body;
	if (HOOK(r, view)) {
		json_t *entity = doc_json(a, d->body);
		int result = r->hooks->view(c, d, entity);
		if (result < 0)
			return result;
		body = json_text(a, entity);
	} else if (HOOK(r, text)) {
		body = r->hooks->text(c, d);
	}
	if (older_form(c)) {
		json_t *entity = doc_json(a, body);
		answer_fit(c, entity);
		body = json_text(a, entity);
	}
	*ret_body = body;
	return 0;
}

int resource_write(struct call *c, const struct resource *r, const struct doc *d)
{
	struct doc shown;
	if (HOOK(r, stand_in)) {
		shown = *d;
		d = &shown;
		int result = r->hooks->stand_in(c, &r, &shown);
		if (result < 0)
			return result;
	}
	struct str body;
	if (!c->is_list && !r->no_etag)
		c->etag = d->rev;
	/* The item of a list is text in the answer, and nothing else for longer than it takes. */
	struct arena *a = c->is_list ? arena_new() : c->arena;
	int result = body_make(c, r, d, a, &body);
	if (result == 0 && (r->bare || !r->self))
		json_raw(&c->out, body);
	else if (result == 0)
		entity_write(c, &c->out, body, self_of(c, r), r->key_param, path_key(c, r, d),
		             c->is_list || (HOOK(r, leaf) && r->hooks->leaf(c, d)));
	if (a != c->arena)
		arena_free(a);
	if (result == 0 && r->self && !r->bare && !c->is_list && HOOK(r, links))
		r->hooks->links(c, d);
	return result;
}

int verb_get(struct call *c)
{
	struct doc d;
	int result = resource_load(c, c->op->resource, &d);
	return result < 0 || c->rerun_on_worker ? result : resource_write(c, c->op->resource, &d);
}

static int item_write(struct call *c, const void *ctx, const struct doc *d)
{
	int result = resource_write(c, ctx, d);
	return result == -ENOENT ? 0 : result;
}

static struct str filter_wants(struct call *c, const struct op_filter *f)
{
	struct str given = call_query(c, f->param);
	return given.n || !f->otherwise ? given : str_of(f->otherwise);
}

static bool filter_fits(const struct op_filter *f, struct str wanted, struct str value)
{
	if (f->prefix)
		return value.n >= wanted.n && strncasecmp(value.p, wanted.p, wanted.n) == 0;
	return f->any ? str_list_has(wanted, value) : str_eq(wanted, value);
}

static bool item_takes(struct call *c, const void *ctx, const struct doc *d)
{
	const struct resource *r = ctx;
	const json_t *body = NULL;
	if (HOOK(r, hides) && r->hooks->hides(c, d))
		return false;
	for (size_t i = 0; i < c->op->filter_count; i++) {
		const struct op_filter *f = &c->op->filters[i];
		struct str wanted = filter_wants(c, f), value = d->name;
		if (!wanted.n)
			continue;
		if (!value.n || !r->name_field || strcmp(f->field, r->name_field) != 0) {
			body = body ? body : doc_json(c->arena, d->body);
			value = json_field(body, f->field);
		}
		if (!filter_fits(f, wanted, value))
			return false;
	}
	return !HOOK(r, takes) || r->hooks->takes(c, d);
}

int verb_list(struct call *c)
{
	const struct resource *r = c->op->resource;
	struct segment all = {.kind = r->kind}, *segments = &all;
	size_t count = 1;
	bool filtered = HOOK(r, hides) || HOOK(r, takes);
	int result = HOOK(r, segments) ? r->hooks->segments(c, &segments, &count) : resource_parent(c, r, &all.parent);
	for (size_t i = 0; i < c->op->filter_count; i++)
		filtered |= filter_wants(c, &c->op->filters[i]).n > 0;
	if (result < 0 || c->rerun_on_worker) /* a hook may find that it takes long: call_takes_long() */
		return result;
	bool plain = !r->bare && r->self && !r->group_self && !HOOK(r, view) && !HOOK(r, text) && !HOOK(r, key) &&
	             !HOOK(r, stand_in);
	if (list_is_searched(c))
		return list_found(c, segments, count, plain ? list_item_plain : item_write,
		                  filtered ? item_takes : NULL, r);
	return list_segments(c, segments, count, plain ? list_item_plain : item_write, filtered ? item_takes : NULL, r);
}

/* The document as it will be stored: defaults, dates in UTC, valid as a whole. */
static int complete(struct call *c, const struct resource *r, json_t *document, struct doc *d)
{
	struct faults faults = {.count = 0};
	if (!r->schema)
		return 0;
	schema_add_defaults(r->schema, document);
	schema_normalize_dates(r->schema, document);
	if (!r->unchecked)
		schema_check(r->schema, document, SCHEMA_STORED, c->arena, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	if (r->name_field)
		d->name = json_field(document, r->name_field);
	return resource_refs_check(c, r, d->parent, document);
}

/* Clients take these out of a path, with the segment before: its link would lead to its parent. */
static int name_check(struct call *c, const struct resource *r, struct str name)
{
	struct faults faults = {.count = 0};
	if (!r->key_is_name || !r->name_field || (!str_is(name, ".") && !str_is(name, "..")))
		return 0;
	faults_add(&faults, c->arena, str_of(r->name_field),
	           "must not be . or .., which mean something else in a path");
	return call_fail_faults(c, &faults);
}

int resource_named(struct call *c, const struct resource *r, struct str parent, struct str name, struct doc *ret_doc)
{
	int result = tx_get_by_name(c->tx, c->arena, r->kind, parent, name, ret_doc);
	if (result != -ENOENT)
		return result;
	*ret_doc = doc_new(c->arena, r->kind, parent, arena_dup(c->arena, name), STR_NONE);
	return 0;
}

int resource_put(struct tx *tx, const struct doc *d, const struct doc *old)
{
	return old && old->rev ? tx_update(tx, d) : tx_insert(tx, d);
}

static int save(struct call *c, const struct resource *r, struct doc *d, const struct doc *old, json_t *document)
{
	int result = old ? resource_unseal(c, r, old, document) : 0;
	if (result == 0)
		result = complete(c, r, document, d);
	if (result == 0 && (!old || !str_eq(old->name, d->name)))
		result = name_check(c, r, d->name);
	if (result == 0 && old && old->rev && !str_eq(old->name, d->name))
		result = resource_rename(c, r, old);
	if (result < 0)
		return result;
	resource_seal(c, r, document, d);
	d->body = json_text(c->arena, document);
	if (HOOK(r, save))
		result = r->hooks->save(c, d, old, document);
	else
		result = resource_put(c->tx, d, old);
	if (result == -EEXIST && r->name_field)
		return resource_taken(c, r, d->name);
	if (result < 0)
		return result;
	if (result == 0)
		d->rev = old ? old->rev + 1 : d->rev;
	result = old && r->change_count ? resource_event_changes(c, r, old, document) : 0;
	if (result < 0)
		return result;
	resource_event_fields(c, r, document);
	return HOOK(r, written) ? r->hooks->written(c, d, old) : 0;
}

/* Refuses the word of a lifecycle that the document's state has no way for. */
static int state_check(struct call *c, const struct resource *r, const struct doc *d, const char *word)
{
	const json_t *body = doc_json(c->arena, d->body);
	return lifecycle_allows(d->kind, body, word) ? 0 : resource_busy(c, r, d, lifecycle_state(d->kind, body));
}

int verb_create(struct call *c)
{
	const struct resource *r = c->op->resource;
	struct doc d = {.kind = str_of(r->kind), .id = id_make(c->arena), .created_ms = clock_now_ms(), .rev = 1};
	json_t *document = json_clone(c->arena, c->body);
	int result = resource_parent(c, r, &d.parent);
	if (result < 0)
		return result;
	resource_fill(c, r, &d, true, document);
	if (HOOK(r, create))
		result = r->hooks->create(c, document);
	if (result == 0)
		result = resource_limit(c, r, d.parent, 1);
	if (result == 0 && !HOOK(r, create) && lifecycle_of(d.kind, document))
		result = call_lifecycle_create(c, &d, document);
	if (result == 0)
		result = save(c, r, &d, NULL, document);
	if (result < 0)
		return result;
	if (r->self)
		c->location = entity_href(c, self_of(c, r), r->key_param, path_key(c, r, &d), d.body);
	return resource_write(c, r, &d);
}

static int change(struct call *c, bool replaces)
{
	const struct resource *r = c->op->resource;
	struct doc old, d;
	int result = resource_load(c, r, &old);
	if (result == 0)
		result = revision_match(c, r, &old);
	if (result < 0)
		return result;
	uint64_t corrupt = json_corruptions();
	json_t *document = replaces ? json_clone(c->arena, c->body) : doc_json(c->arena, old.body);
	if (json_corruptions() != corrupt)
		return -EIO;
	d = old;
	if (!old.rev) /* a singleton's first */
		d.created_ms = clock_now_ms();
	if (!replaces && r->shallow)
		json_object_update(document, c->body);
	else if (!replaces)
		json_merge(document, c->body);
	resource_keep_own(c, r, &old, replaces, document);
	resource_fill(c, r, &d, false, document);
	if (HOOK(r, update))
		result = r->hooks->update(c, &old, document);
	else if (lifecycle_knows(c->arena, &old, "CHANGE") && (result = state_check(c, r, &old, "CHANGE")) == 0)
		result = call_lifecycle_change(c, &old, document, "CHANGE");
	if (result == 0)
		result = save(c, r, &d, &old, document);
	return result < 0 || !c->version->response ? result : resource_write(c, r, &d);
}

int verb_update(struct call *c)
{
	return change(c, false);
}

int verb_replace(struct call *c)
{
	return change(c, true);
}

static int delete_by_lifecycle(struct call *c, const struct resource *r, struct doc *d)
{
	int result = call_lifecycle_move(c, d, "DELETE");
	return result < 0 || c->op->success == 204 ? result : resource_write(c, r, d);
}

int verb_delete(struct call *c)
{
	const struct resource *r = c->op->resource;
	struct doc d;
	bool walks = false;
	int result = resource_load(c, r, &d);
	if (result == 0)
		result = revision_match(c, r, &d);
	if (result == 0)
		resource_event_fields(c, r, r->event_count ? doc_json(c->arena, d.body) : NULL);
	if (result == 0)
		result = resource_holds(c, r, d.id);
	if (result == 0 && HOOK(r, remove))
		result = r->hooks->remove(c, &d);
	if (result == 0 && (walks = lifecycle_knows(c->arena, &d, "DELETE")))
		result = state_check(c, r, &d, "DELETE");
	if (result == 0)
		result = resource_release(c, r, &d);
	if (result == 0 && HOOK(r, drop))
		return r->hooks->drop(c, &d);
	if (result == 0 && walks)
		return delete_by_lifecycle(c, r, &d);
	return result < 0 || !d.rev ? result : resource_take_away(c->tx, c->arena, r, &d);
}
