/* What a row of "resources" says beyond the schema: parents, limits, filled and sealed fields, references, cascades. */
#include "api/kit/resources.h"

#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

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

static int refuse(struct call *c, const struct resource_refusal *with, const struct words *words, size_t count)
{
	return call_fail(c, with->status, with->code, "%.*s", STR_ARG(text_fill(c->arena, with->text, words, count)));
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
	refuse(c, &r->limit, words, 2);
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
	refuse(c, &r->held, words, 1);
	return call_fail_param(c, words[0].value);
}

int resource_taken(struct call *c, const struct resource *r, struct str name)
{
	static const struct resource_refusal usual = {409, "DUPLICATE_NAME",
	                                              "{field}: \"{name}\" is taken. Choose another."};
	struct words words[] = {{"name", name}, {"field", str_of(r->name_field)}};
	refuse(c, r->duplicate.code ? &r->duplicate : &usual, words, 2);
	return call_fail_param(c, name);
}

int resource_busy(struct call *c, const struct resource *r, const struct doc *d, const char *state)
{
	static const struct resource_refusal usual = {409, "RESOURCE_BUSY",
	                                              "\"{name}\" is {state}, and cannot be changed now."};
	struct words words[] = {{"name", d->name.n ? d->name : d->id}, {"state", str_of(state ? state : "unknown")}};
	refuse(c, r->busy.code ? &r->busy : &usual, words, 2);
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
	if (result == 0)
		*ret_parent = d.id;
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

void resource_event_fields(struct call *c, const struct resource *r, const json_t *document)
{
	for (size_t i = 0; i < r->event_count; i++)
		event_field(c, r->events[i].name, arena_dup(c->arena, json_field(document, r->events[i].field)));
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
		if (json_equal(json_object_get(before, field), now))
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

int resource_sealed(struct arena *a, const struct resource *r, const struct doc *d, json_t **ret_fields)
{
	struct str plain;
	int result = doc_unseal(a, d, &plain);
	if (result == 0)
		*ret_fields = doc_json(a, plain);
	return result;
}

int resource_seal(struct call *c, const struct resource *r, const struct doc *old, json_t *document, struct doc *d)
{
	json_t *fields;
	if (!r->sealed_count)
		return 0;
	int result = old ? resource_sealed(c->arena, r, old, &fields) : 0;
	if (result < 0)
		return result;
	if (!old)
		fields = json_keep(c->arena, json_object());
	for (size_t i = 0; i < r->sealed_count; i++) {
		json_t *value = json_object_get(document, r->sealed[i]);
		if (value)
			json_object_set(fields, r->sealed[i], value);
		json_object_del(document, r->sealed[i]);
	}
	d->secret = doc_seal(c->arena, d, json_text(c->arena, fields));
	return 0;
}

/* References. */

static struct str ref_value(const json_t *element, const char *field)
{
	return field ? json_field(element, field) : json_str_of(element);
}

static int ref_find(struct call *c, const struct resource_ref *ref, struct str parent, struct str name)
{
	struct doc d;
	if (ref->to->key_is_name)
		return tx_get_by_name(c->tx, c->arena, ref->to->kind, parent, name, &d);
	int result = tx_get(c->tx, c->arena, ref->to->kind, name, &d);
	return result == 0 && !str_eq(d.parent, parent) ? -ENOENT : result;
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
			refuse(c, &ref->missing, words, 1);
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

static bool ref_names(const struct resource_ref *ref, const json_t *document, struct str name)
{
	if (!ref->list)
		return str_eq(json_field(document, ref->field), name);
	const json_t *list = json_object_get(document, ref->list);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (str_eq(ref_value(json_array_get(list, i), ref->field), name))
			return true;
	return false;
}

static int ref_release(struct call *c, const struct resource *from, const struct resource_ref *ref, const struct doc *d)
{
	struct str name = ref->to->key_is_name ? d->name : d->id;
	struct doc *docs;
	size_t count;
	int result = tx_list_all(c->tx, c->arena, from->kind, d->parent, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		/* Most documents do not even contain the name. */
		if (!memmem(docs[i].body.p, docs[i].body.n, name.p, name.n) ||
		    !ref_names(ref, doc_json(c->arena, docs[i].body), name))
			continue;
		if (ref->cascades) {
			result = resource_take_away(c->tx, c->arena, from, &docs[i]);
			continue;
		}
		struct str user = docs[i].name.n ? docs[i].name : docs[i].id;
		struct words words[] = {{"name", name}, {"user", user}};
		refuse(c, &ref->in_use, words, 2);
		call_fail_param(c, name);
		return call_fail_param(c, user);
	}
	return result;
}

int resource_release(struct call *c, const struct resource *r, const struct doc *d)
{
	int result = 0;
	for (unsigned i = 0; result == 0 && i < catalog_resource_count; i++) {
		const struct resource *from = catalog_resources[i];
		for (size_t k = 0; result == 0 && k < from->ref_count; k++)
			if (from->refs[k].to == r && (from->refs[k].cascades || from->refs[k].in_use.code))
				result = ref_release(c, from, &from->refs[k], d);
	}
	return result;
}

/* Cascades. */

int resource_take_away(struct tx *tx, struct arena *a, const struct resource *r, const struct doc *d)
{
	int result = resource_delete_below(tx, a, r, d->id);
	if (result == 0 && r->hooks && r->hooks->gone)
		result = r->hooks->gone(tx, a, d);
	return result < 0 ? result : tx_delete(tx, r->kind, d->id);
}

static int list_take_away(struct tx *tx, struct arena *a, const struct resource *r, struct str parent)
{
	for (;;) {
		struct doc *docs;
		size_t count;
		int result = tx_list(tx, a, r->kind, parent, 0, BATCH, &docs, &count);
		if (result < 0 || count == 0)
			return result;
		for (size_t i = 0; i < count; i++)
			if ((result = resource_take_away(tx, a, r, &docs[i])) < 0)
				return result;
	}
}

int resource_delete_below(struct tx *tx, struct arena *a, const struct resource *r, struct str id)
{
	int result = 0;
	for (unsigned i = 0; result == 0 && i < catalog_resource_count; i++)
		if (catalog_resources[i]->above == r)
			result = list_take_away(tx, a, catalog_resources[i], id);
	return result;
}

int resource_delete_children(struct call *c, const char *parent_param, struct str parent_id)
{
	int result = 0;
	for (unsigned i = 0; result == 0 && i < catalog_resource_count; i++) {
		const struct resource *r = catalog_resources[i];
		if (r->parent_param && strcmp(r->parent_param, parent_param) == 0)
			result = list_take_away(c->tx, c->arena, r, parent_id);
	}
	return result;
}
