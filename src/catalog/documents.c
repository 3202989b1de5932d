/* What a schema says about the content of a document: adds defaults and what is shown, removes write-only and unknown
 * fields, converts dates to UTC. Also finds a field in a stored document without parsing it. */
#include "base/clock.h"
#include "base/json.h"
#include "catalog/checker.h"

#define BRANCH_DEPTH 4

/* The schemas of an object, chosen as the check chooses them. */
static struct view view_of(const struct schema *s, json_t *object, struct arena *arena)
{
	unsigned work = CHECK_WORK;
	struct checker c = {.use = SCHEMA_STORED, .arena = arena, .limit = UINT32_MAX, .work = &work};
	struct view v = {.count = 0};
	view_resolve(&c, s, object, NULL, &v);
	return v;
}

static void add_defaults(const struct schema *s, json_t *value, unsigned depth, struct arena *arena)
{
	size_t i;
	json_t *item;
	if (!value || depth >= CHECK_DEPTH || schema_is_choice(s))
		return;
	if (json_is_array(value) && s->items) {
		json_array_foreach(value, i, item) add_defaults(s->items, item, depth + 1, arena);
	}
	if (!json_is_object(value) || (!s->field_count && !s->branch_count && !s->mapping_count && !s->additional))
		return;
	struct view v = view_of(s, value, arena);
	for (unsigned k = v.count; k-- > 0;) {
		for (unsigned f = 0; f < v.of[k]->field_count; f++) {
			const struct field *field = &v.of[k]->fields[f];
			item = json_object_get(value, field->name);
			if (item && view_field(&v, str_of(field->name)) == field)
				add_defaults(field->schema, item, depth + 1, arena);
			else if (!item && field->schema->default_json)
				json_put(value, field->name,
				         json_loads(field->schema->default_json, JSON_DECODE_ANY, NULL));
		}
	}
	const struct schema *additional;
	const char *key;
	(void)view_is_open(&v, &additional);
	json_object_foreach(value, key, item) if (additional && !view_field(&v, str_of(key)))
	        add_defaults(additional, item, depth + 1, arena);
}

void schema_add_defaults(const struct schema *s, json_t *value)
{
	struct arena *arena = arena_new();
	add_defaults(s, value, 0, arena);
	arena_free(arena);
}

static void add_shown(const struct schema *s, json_t *value, unsigned depth, struct arena *arena)
{
	size_t i;
	json_t *item;
	if (!(s->flags & SCHEMA_SHOWS) || depth >= CHECK_DEPTH)
		return;
	if (json_is_array(value) && s->items) {
		json_array_foreach(value, i, item) add_shown(s->items, item, depth + 1, arena);
	}
	if (!json_is_object(value))
		return;
	struct view v = view_of(s, value, arena);
	for (unsigned k = v.count; k-- > 0;) {
		for (unsigned f = 0; f < v.of[k]->field_count; f++) {
			const struct field *field = &v.of[k]->fields[f];
			item = json_object_get(value, field->name);
			if (!item && field->shown) {
				item = json_loads(field->shown, JSON_DECODE_ANY, NULL);
				json_put(value, field->name, item);
			}
			if (item && view_field(&v, str_of(field->name)) == field)
				add_shown(field->schema, item, depth + 1, arena);
		}
	}
	const struct schema *additional;
	const char *key;
	(void)view_is_open(&v, &additional);
	json_object_foreach(value, key, item) if (additional && !view_field(&v, str_of(key)))
	        add_shown(additional, item, depth + 1, arena);
}

void schema_add_shown(const struct schema *s, json_t *value)
{
	struct arena *arena = arena_new();
	add_shown(s, value, 0, arena);
	arena_free(arena);
}

static void relax(const struct schema *s, json_t *value, unsigned depth, bool nulls, bool read_only,
                  struct arena *arena)
{
	size_t i, n;
	json_t *item;
	const char *key;
	void *next;
	if (depth >= CHECK_DEPTH || schema_is_choice(s))
		return;
	if (json_is_array(value) && s->items) {
		json_array_foreach(value, i, item) relax(s->items, item, depth + 1, nulls, read_only, arena);
	}
	if (!json_is_object(value) || (!s->field_count && !s->branch_count && !s->mapping_count && !s->additional))
		return;
	struct view v = view_of(s, value, arena);
	const struct schema *additional;
	bool open = view_is_open(&v, &additional);
	json_object_keylen_foreach_safe(value, next, key, n, item)
	{
		const struct field *f = view_field(&v, (struct str){key, n});
		const struct schema *of = f ? f->schema : additional;
		bool is_null = json_is_null(item) && nulls && (of ? !schema_takes_null(of) : !open);
		if (is_null || (read_only && f && of && of->flags & SCHEMA_READ_ONLY))
			json_object_deln(value, key, n);
		else if (of)
			relax(of, item, depth + 1, nulls, read_only, arena);
	}
}

void schema_relax(const struct schema *s, json_t *value, bool nulls, bool read_only)
{
	struct arena *arena = arena_new();
	relax(s, value, 0, nulls, read_only, arena);
	arena_free(arena);
}

static void strip(const struct schema *s, json_t *value, unsigned depth, unsigned branch_depth)
{
	size_t i;
	json_t *item;
	if (!value || depth >= CHECK_DEPTH || branch_depth >= BRANCH_DEPTH)
		return;
	if (json_is_array(value) && s->items) {
		json_array_foreach(value, i, item) strip(s->items, item, depth + 1, 0);
	}
	if (!json_is_object(value))
		return;
	for (unsigned f = 0; f < s->field_count; f++) {
		if (s->fields[f].schema->flags & SCHEMA_WRITE_ONLY)
			json_object_del(value, s->fields[f].name);
		else
			strip(s->fields[f].schema, json_object_get(value, s->fields[f].name), depth + 1, 0);
	}
	const char *key;
	if (s->additional) {
		json_object_foreach(value, key, item) if (!schema_field(s, str_of(key)))
		        strip(s->additional, item, depth + 1, 0);
	}
	json_t *picks = s->discriminator ? json_object_get(value, s->discriminator) : NULL;
	const struct schema *branch = json_is_string(picks) ? mapping_find(s, str_of(json_string_value(picks))) : NULL;
	if (branch) {
		if (branch != s)
			strip(branch, value, depth, branch_depth + 1);
		return;
	}
	/* The branch is not known. Removing one secret too many is better than one too few, so all branches are
	 * stripped. */
	for (unsigned b = 0; b < s->branch_count; b++)
		strip(s->branches[b].schema, value, depth, branch_depth + 1);
	for (unsigned b = 0; !s->branch_count && b < s->mapping_count; b++)
		if (b == 0 || s->mapping[b].schema != s->mapping[b - 1].schema)
			strip(s->mapping[b].schema, value, depth, branch_depth + 1);
}

void schema_strip_write_only(const struct schema *s, json_t *value)
{
	strip(s, value, 0, 0);
}

static void keep_known(const struct schema *s, json_t *value, unsigned depth, struct arena *arena)
{
	size_t i;
	json_t *item;
	const char *key;
	void *next;
	const struct schema *additional;
	if (!value || depth >= CHECK_DEPTH || schema_is_choice(s))
		return;
	if (json_is_array(value) && s->items) {
		json_array_foreach(value, i, item) keep_known(s->items, item, depth + 1, arena);
	}
	if (!json_is_object(value))
		return;
	struct view v = view_of(s, value, arena);
	bool open = view_is_open(&v, &additional) || v.undecided;
	json_object_foreach_safe(value, next, key, item)
	{
		const struct field *field = view_field(&v, str_of(key));
		const struct schema *of = field ? field->schema : additional;
		if (of)
			keep_known(of, item, depth + 1, arena);
		else if (!open)
			json_object_del(value, key);
	}
}

void schema_keep_known(const struct schema *s, json_t *value)
{
	struct arena *arena = arena_new();
	keep_known(s, value, 0, arena);
	arena_free(arena);
}

static void normalize(const struct schema *s, json_t *value, unsigned depth, struct arena *arena)
{
	size_t i;
	json_t *item;
	const char *key;
	if (!value || depth >= CHECK_DEPTH || schema_is_choice(s))
		return;
	if (json_is_string(value) && s->format == FORMAT_DATE_TIME) {
		int64_t ms;
		char text[CLOCK_TEXT];
		if (clock_parse((struct str){json_string_value(value), json_string_length(value)}, &ms)) {
			clock_format(ms, text);
			json_string_set(value, text);
		}
	}
	if (json_is_array(value) && s->items) {
		json_array_foreach(value, i, item) normalize(s->items, item, depth + 1, arena);
	}
	if (!json_is_object(value) || (!s->field_count && !s->branch_count && !s->mapping_count && !s->additional))
		return;
	struct view v = view_of(s, value, arena);
	const struct schema *additional;
	(void)view_is_open(&v, &additional);
	json_object_foreach(value, key, item)
	{
		const struct field *field = view_field(&v, str_of(key));
		const struct schema *of = field ? field->schema : additional;
		if (of)
			normalize(of, item, depth + 1, arena);
	}
}

void schema_normalize_dates(const struct schema *s, json_t *value)
{
	struct arena *arena = arena_new();
	normalize(s, value, 0, arena);
	arena_free(arena);
}

/* Index of the quote that ends the string whose first byte is at `i`. */
static size_t string_end(struct str json, size_t i)
{
	while (i < json.n && json.p[i] != '"')
		i += json.p[i] == '\\' ? 2 : 1;
	return i < json.n ? i : json.n;
}

static struct str string_value(struct arena *a, struct str json, size_t colon)
{
	if (colon + 1 >= json.n || json.p[colon + 1] != '"')
		return STR_NONE;
	size_t from = colon + 2;
	struct str raw = {json.p + from, string_end(json, from) - from};
	if (!memchr(raw.p, '\\', raw.n))
		return raw;
	json_t *value = json_loadb(raw.p - 1, raw.n + 2, JSON_DECODE_ANY, NULL);
	struct str text =
	        value ? arena_dup(a, (struct str){json_string_value(value), json_string_length(value)}) : STR_NONE;
	json_decref(value);
	return text;
}

struct str document_text(struct arena *a, struct str json, struct str name)
{
	int depth = 0;
	bool at_key = false;
	for (size_t i = 0; i < json.n; i++) {
		char ch = json.p[i];
		if (ch == '"') {
			size_t from = i + 1;
			i = string_end(json, from);
			if (at_key && depth == 1 && str_eq((struct str){json.p + from, i - from}, name))
				return string_value(a, json, i + 1);
			at_key = false;
		} else if (ch == '{' || ch == '[') {
			depth++;
			at_key = ch == '{';
		} else if (ch == '}' || ch == ']') {
			depth--;
		} else if (ch == ',') {
			at_key = true;
		}
	}
	return STR_NONE;
}
