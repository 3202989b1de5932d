/* What a row of "resources" says beyond the schema: parents, limits, filled and sealed fields, references, cascades. */
#include "api/kit/resources.h"
#include "api/kit/lifecycle.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>
#include <stdlib.h>

#define BATCH 500

/* Texts of refusals. */

struct words {
	const char *name;
	struct str value;
};

static struct str text_fill(struct arena *a, const char *text, const struct words *words, size_t count)
{
	struct buf b = {0};
	while (*text) {
		size_t i = 0, n = 0;
		for (; *text == '{' && i < count; i++) {
			n = strlen(words[i].name);
			if (strncmp(text + 1, words[i].name, n) == 0 && text[n + 1] == '}')
				break;
		}
		if (*text == '{' && i < count) {
			buf_str(&b, words[i].value);
			text += n + 2;
		} else {
			buf_c(&b, *text++);
		}
	}
	return buf_keep(&b, a);
}

static int rule_refuse(struct call *c, const struct resource_refusal *with, const struct words *words, size_t count)
{
	struct str text = text_fill(c->arena, with->text, words, count);
	return call_fail(c, with->status, with->code, "%.*s", STR_ARG(text));
}

static struct str number(struct arena *a, int64_t value)
{
	return arena_printf(a, "%lld", (long long)value);
}

int resource_limit(struct call *c, const struct resource *r, struct str parent, int64_t more)
{
	int64_t count;
	if (r->project_limit)
		return limit_enforce(c, r->project_limit, more);
	int result = r->most ? tx_count(c->tx, r->kind, parent, &count) : 0;
	if (result < 0 || !r->most || count + more <= r->most)
		return result;
	struct words words[] = {{"count", number(c->arena, count)}, {"most", number(c->arena, r->most)}};
	rule_refuse(c, &r->limit, words, 2);
	return call_fail_param(c, words[1].value);
}

int resource_holds(struct call *c, const struct resource *r, struct str id)
{
	int64_t all = 0, count = 0;
	int result = 0;
	for (size_t i = 0; result == 0 && i < sizeof r->holds / sizeof *r->holds && r->holds[i]; i++) {
		result = tx_count(c->tx, r->holds[i], id, &count);
		all += count;
	}
	if (result < 0 || !all)
		return result;
	struct words words[] = {{"count", number(c->arena, all)}};
	rule_refuse(c, &r->held, words, 1);
	return call_fail_param(c, words[0].value);
}

int resource_taken(struct call *c, const struct resource *r, struct str name)
{
	static const struct resource_refusal usual = {409, "DUPLICATE_NAME",
	                                              "{field}: \"{name}\" is taken. Choose another."};
	struct words words[] = {{"name", name}, {"field", str_of(r->name_field)}};
	rule_refuse(c, r->duplicate.code ? &r->duplicate : &usual, words, 2);
	return call_fail_param(c, name);
}

int resource_busy(struct call *c, const struct resource *r, const struct doc *d, const char *state)
{
	static const struct resource_refusal usual = {409, "RESOURCE_BUSY",
	                                              "\"{name}\" is {state}, and cannot be changed now."};
	struct words words[] = {{"name", d->name.n ? d->name : d->id}, {"state", str_of(state ? state : "unknown")}};
	rule_refuse(c, r->busy.code ? &r->busy : &usual, words, 2);
	return call_fail_param(c, words[0].value);
}

/* Parents. */

int resource_parent(struct call *c, const struct resource *r, struct str *ret_parent)
{
	struct doc d;
	if (!r->above) {
		struct str parent = r->parent_param ? call_path(c, r->parent_param) : STR_NONE;
		bool of_org = r->parent_param && strcmp(r->parent_param, "orgId") == 0;
		*ret_parent = of_org && !parent.p ? c->org.id : parent;
		return 0;
	}
	int result = resource_load(c, r->above, &d);
	if (result == -ENOENT && r->above_else)
		result = resource_load_by(c, r->above_else, call_path(c, r->above->key_param), &d);
	if (result == -ENOENT && r->above_else)
		return call_missing(c, r->above, call_path(c, r->above->key_param));
	if (result == 0) {
		c->missing = (struct missing){0}; /* the first of two */
		*ret_parent = d.id;
	}
	return result;
}

/* Fields that the service sets. */

static json_t *fill_value(struct call *c, const char *value, struct str parent)
{
	char now[CLOCK_TEXT];
	if (value[0] != '@')
		return json_loads(value, JSON_DECODE_ANY, NULL);
	if (strcmp(value, "@user") == 0)
		return json_pack("{s:s, s:s}", "id", c->caller->id, "name", c->caller->name);
	clock_format(clock_now_ms(), now);
	struct str text = strcmp(value, "@now") == 0      ? str_of(now)
	                  : strcmp(value, "@org") == 0    ? c->org.id
	                  : strcmp(value, "@group") == 0  ? c->group.id
	                  : strcmp(value, "@caller") == 0 ? str_of(c->caller->id)
	                                                  : parent;
	return json_stringn(text.p ? text.p : "", text.n);
}

void resource_fill(struct call *c, const struct resource *r, const struct doc *d, bool is_new, json_t *document)
{
	if (r->id_field)
		json_put_str(document, r->id_field, d->id);
	for (size_t i = 0; is_new && i < r->fill_count; i++)
		json_put(document, r->fill[i].field, fill_value(c, r->fill[i].value, d->parent));
	for (size_t i = 0; i < r->touch_count; i++)
		json_put(document, r->touch[i].field, fill_value(c, r->touch[i].value, d->parent));
}

void resource_keep_own(struct call *c, const struct resource *r, const struct doc *old, bool replaces, json_t *document)
{
	const json_t *before = replaces && r->fill_count ? doc_json(c->arena, old->body) : NULL;
	for (size_t i = 0; i < r->fill_count; i++)
		json_put(document, r->fill[i].field, json_deep_copy(json_object_get(before, r->fill[i].field)));
	if (!r->hooks || !r->hooks->update)
		lifecycle_keep(c->arena, old, document);
}

void resource_event_fields(struct call *c, const struct resource *r, const json_t *document)
{
	for (size_t i = 0; i < r->event_count; i++)
		event_field(c, r->events[i].name, arena_dup(c->arena, json_field(document, r->events[i].field)));
}

static bool is_sealed(const struct resource *r, const char *field)
{
	for (size_t i = 0; i < r->sealed_count; i++)
		if (strcmp(r->sealed[i], field) == 0)
			return true;
	return false;
}

static const struct resource_change *change_find(const struct resource *r, const char *field)
{
	for (size_t i = 0; i < r->change_count; i++)
		if (strcmp(r->changes[i].field, field) == 0)
			return &r->changes[i];
	return NULL;
}

int resource_event_changes(struct call *c, const struct resource *r, const struct doc *old, const json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	const char *field;
	json_t *given;
	bool others = false;
	json_object_foreach(c->body, field, given)
	{
		const json_t *now = json_object_get(document, field);
		const struct resource_change *own = change_find(r, field);
		if (!is_sealed(r, field) && json_equal(json_object_get(before, field), now))
			continue;
		if (!own) {
			others = true;
			continue;
		}
		event_set_type(c, own->event_off && !json_is_true(now) ? own->event_off : own->event);
		resource_event_fields(c, r, document);
		int result = event_next(c);
		if (result < 0)
			return result;
	}
	if (!others)
		event_set_type(c, NULL);
	return 0;
}

/* Sealed fields. */

int resource_unseal(struct call *c, const struct resource *r, const struct doc *old, json_t *document)
{
	struct str plain = STR_NONE;
	int result = r->sealed_count ? doc_unseal(c->arena, old, &plain) : 0;
	const json_t *fields = plain.n ? doc_json(c->arena, plain) : NULL;
	for (size_t i = 0; result == 0 && i < r->sealed_count; i++) {
		const char *name = r->sealed[i];
		if (!json_object_get(c->body, name) && !json_object_get(document, name))
			json_put(document, name, json_deep_copy(json_object_get(fields, name)));
	}
	return result;
}

void resource_seal(struct call *c, const struct resource *r, json_t *document, struct doc *d)
{
	if (!r->sealed_count)
		return;
	json_t *fields = json_keep(c->arena, json_object());
	for (size_t i = 0; i < r->sealed_count; i++) {
		json_t *value = json_object_get(document, r->sealed[i]);
		if (!json_is_null(value))
			json_put(fields, r->sealed[i], json_deep_copy(value));
		json_object_del(document, r->sealed[i]);
	}
	d->secret = doc_seal(c->arena, d, json_text(c->arena, fields));
}

/* References. */

static struct str ref_value(const json_t *element, const char *field)
{
	return field ? json_field(element, field) : json_str_of(element);
}

/* What is hidden or on its way out is as if it were not there. */
static int ref_find(struct call *c, const struct resource_ref *ref, struct str parent, struct str name)
{
	const struct resource *to = ref->to;
	struct doc d;
	int result = to->key_is_name ? tx_get_by_name(c->tx, c->arena, to->kind, parent, name, &d)
	                             : tx_get(c->tx, c->arena, to->kind, name, &d);
	if (result < 0)
		return result;
	bool hidden = to->hooks && to->hooks->hides && to->hooks->hides(c, &d);
	return hidden || !str_eq(d.parent, parent) || lifecycle_is_leaving(c->arena, &d) ? -ENOENT : 0;
}

static int ref_check(struct call *c, const struct resource_ref *ref, struct str parent, const json_t *document)
{
	const json_t *list = ref->list ? json_object_get(document, ref->list) : NULL;
	size_t count = ref->list ? json_array_size(list) : 1;
	for (size_t i = 0; i < count; i++) {
		struct str name = ref_value(ref->list ? json_array_get(list, i) : document, ref->field);
		int result = name.n ? ref_find(c, ref, parent, name) : 0;
		if (result == -ENOENT) {
			struct words words[] = {{"name", name}};
			rule_refuse(c, &ref->missing, words, 1);
			return call_fail_param(
			        c, !ref->list   ? str_of(ref->field)
			           : ref->field ? arena_printf(c->arena, "%s[%zu].%s", ref->list, i, ref->field)
			                        : arena_printf(c->arena, "%s[%zu]", ref->list, i));
		}
		if (result < 0)
			return result;
	}
	return 0;
}

int resource_refs_check(struct call *c, const struct resource *r, struct str parent, const json_t *document)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < r->ref_count; i++)
		if (r->refs[i].missing.code)
			result = ref_check(c, &r->refs[i], parent, document);
	return result;
}

static int name_compare(const void *a, const void *b)
{
	const struct str *x = a, *y = b;
	size_t n = x->n < y->n ? x->n : y->n;
	int order = n ? memcmp(x->p, y->p, n) : 0;
	return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* Documents by what others name them with, sorted. */
struct named {
	struct str *names;
	size_t count;
};

static struct named named_of(struct arena *a, const struct resource *r, const struct doc *docs, size_t count)
{
	struct named all = {arena_new_array(a, struct str, count), count};
	for (size_t i = 0; i < count; i++)
		all.names[i] = r->key_is_name ? docs[i].name : docs[i].id;
	qsort(all.names, count, sizeof *all.names, name_compare);
	return all;
}

/* Which of them a document names; STR_NONE. */
static struct str ref_names(const struct resource_ref *ref, const json_t *document, const struct named *all)
{
	const json_t *list = ref->list ? json_object_get(document, ref->list) : NULL;
	size_t count = ref->list ? json_array_size(list) : 1;
	for (size_t i = 0; i < count; i++) {
		struct str name = ref_value(ref->list ? json_array_get(list, i) : document, ref->field);
		if (name.n && bsearch(&name, all->names, all->count, sizeof *all->names, name_compare))
			return name;
	}
	return STR_NONE;
}

/* Most documents do not even contain the name; one that is written otherwise in JSON has to be looked for. */
static bool may_name(struct str body, const struct named *all)
{
	struct str name = all->names[0];
	bool plain = all->count == 1;
	for (size_t i = 0; plain && i < name.n; i++)
		plain = name.p[i] >= ' ' && name.p[i] != '"' && name.p[i] != '\\';
	return !plain || memmem(body.p, body.n, name.p, name.n);
}

struct release {
	struct tx *tx;
	struct arena *arena;
	struct call *call; /* that can be refused; NULL: nobody can */
	struct str root;   /* the document that is deleted first of all: it may name itself, also through others */
	bool renames;      /* it stays: whatever names it refuses */
};

static int release(const struct release *x, const struct resource *r, const struct doc *docs, size_t count);
static int take(struct tx *tx, struct arena *a, const struct resource *r, const struct doc *d);

static int release_refuse(struct call *c, const struct resource_ref *ref, struct str name, const struct doc *user)
{
	static const struct resource_refusal usual = {409, "RESOURCE_IN_USE", "\"{user}\" names \"{name}\"."};
	struct words words[] = {{"name", name}, {"user", user->name.n ? user->name : user->id}};
	rule_refuse(c, ref->in_use.code ? &ref->in_use : &usual, words, 2);
	call_fail_param(c, name);
	return call_fail_param(c, words[1].value);
}

static int release_by(const struct release *x, const struct resource *from, const struct resource_ref *ref,
                      struct str parent, const struct named *all)
{
	struct doc *docs;
	size_t count, gone = 0;
	int result = tx_list_all(x->tx, x->arena, from->kind, parent, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (str_eq(docs[i].id, x->root) || !may_name(docs[i].body, all))
			continue;
		struct str name = ref_names(ref, doc_json(x->arena, docs[i].body), all);
		if (name.n && ref->cascades && !x->renames) {
			result = take(x->tx, x->arena, from, &docs[i]);
			docs[gone++] = docs[i];
		} else if (name.n && x->call) {
			return release_refuse(x->call, ref, name, &docs[i]);
		}
	}
	return result < 0 || !gone ? result : release(x, from, docs, gone);
}

/* Of documents with one parent. What goes with them is looked for all at once. */
static int release(const struct release *x, const struct resource *r, const struct doc *docs, size_t count)
{
	struct named all = named_of(x->arena, r, docs, count);
	int result = 0;
	for (unsigned i = 0; result == 0 && i < catalog_resource_count; i++) {
		const struct resource *from = catalog_resources[i];
		for (size_t k = 0; result == 0 && k < from->ref_count; k++)
			if (from->refs[k].to == r && (from->refs[k].cascades || from->refs[k].in_use.code))
				result = release_by(x, from, &from->refs[k], docs[0].parent, &all);
	}
	return result;
}

int resource_release(struct call *c, const struct resource *r, const struct doc *d)
{
	return release(&(struct release){.tx = c->tx, .arena = c->arena, .call = c, .root = d->id}, r, d, 1);
}

int resource_rename(struct call *c, const struct resource *r, const struct doc *old)
{
	const struct release x = {.tx = c->tx, .arena = c->arena, .call = c, .renames = true};
	return r->key_is_name ? release(&x, r, old, 1) : 0;
}

/* Cascades. */

/* A document and what lies below it. What names it is not looked at. */
static int take(struct tx *tx, struct arena *a, const struct resource *r, const struct doc *d)
{
	int result = resource_delete_below(tx, a, r, d->id);
	if (result == 0 && r->hooks && r->hooks->gone)
		result = r->hooks->gone(tx, a, d);
	return result < 0 ? result : tx_delete(tx, r->kind, d->id);
}

int resource_take_away(struct tx *tx, struct arena *a, const struct resource *r, const struct doc *d)
{
	int result = take(tx, a, r, d);
	return result < 0 ? result : release(&(struct release){.tx = tx, .arena = a, .root = d->id}, r, d, 1);
}

static bool is_below(const struct resource *r, const struct resource *above)
{
	return r->above == above || r->above_else == above;
}

/* Whether more goes with each of its documents than the document. */
static bool goes_with_more(const struct resource *r)
{
	bool more = r->hooks && r->hooks->gone;
	for (unsigned i = 0; !more && i < catalog_resource_count; i++)
		more = is_below(catalog_resources[i], r);
	return more;
}

/* All of a parent's, which is going: what names one of them has the same parent, and goes too. */
static int list_take_away(struct tx *tx, struct arena *a, const struct resource *r, struct str parent)
{
	int64_t left = 0;
	int result = tx_count(tx, r->kind, parent, &left);
	if (result == 0 && left && !goes_with_more(r))
		return tx_delete_list(tx, r->kind, parent);
	while (result == 0 && left) {
		struct doc *docs;
		size_t count;
		result = tx_list(tx, a, r->kind, parent, 0, BATCH, &docs, &count);
		if (result == 0 && count == 0)
			return 0;
		for (size_t i = 0; result == 0 && i < count; i++)
			result = take(tx, a, r, &docs[i]);
	}
	return result;
}

/* Takes away what a parent has of these kinds. Most have nothing: how many they have is asked together, because each
 * question is a round trip where the store is remote, for which the writes of all tenants wait. */
static int lists_take_away(struct tx *tx, struct arena *a, const struct resource *const *kinds, size_t count,
                           struct str parent)
{
	struct doc_question *asked = arena_new_array(a, struct doc_question, count + 1);
	int result = 0;
	for (size_t i = 0; i < count; i++)
		asked[i] = (struct doc_question){.kind = kinds[i]->kind, .parent = parent, .count = true};
	tx_read_ahead(tx, asked, count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = list_take_away(tx, a, kinds[i], parent);
	return result;
}

int resource_delete_below(struct tx *tx, struct arena *a, const struct resource *r, struct str id)
{
	const struct resource **kinds = arena_new_array(a, const struct resource *, catalog_resource_count + 1);
	size_t count = 0;
	for (unsigned i = 0; i < catalog_resource_count; i++)
		if (is_below(catalog_resources[i], r))
			kinds[count++] = catalog_resources[i];
	return count ? lists_take_away(tx, a, kinds, count, id) : 0;
}

int resource_delete_children(struct call *c, const char *parent_param, struct str parent_id)
{
	const struct resource **kinds = arena_new_array(c->arena, const struct resource *, catalog_resource_count + 1);
	size_t count = 0;
	for (unsigned i = 0; i < catalog_resource_count; i++) {
		const struct resource *r = catalog_resources[i];
		if (r->parent_param && strcmp(r->parent_param, parent_param) == 0)
			kinds[count++] = r;
	}
	return lists_take_away(c->tx, c->arena, kinds, count, parent_id);
}
