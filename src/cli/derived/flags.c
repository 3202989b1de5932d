/* Flags to bodies and back. A path is followed through the schemas that may describe each place: a oneOf or a
 * discriminator has several, and which of them is meant may be said by a later flag. So a place has a set of schemas,
 * and a text becomes what all of them allow. Whether the body as a whole is valid, the schema check tells. */
#include "cli/derived/flags.h"

#include "base/buf.h"
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define SET_MAX 128
#define INDEX_MAX 999
#define DEPTH_MAX 12
#define LIST_MAX 2000
#define NEAR 4

/* The schemas of one place. `value`: of the discriminator that picks it, where there is one. */
struct set {
	const struct schema *of[SET_MAX];
	const char *value[SET_MAX];
	size_t n;
};

static const struct schema anything = {.type = TYPE_ANY, .pattern = -1};

static void set_add(struct set *set, const struct schema *s, const char *value)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->of[i] == s)
			return;
	if (set->n == SET_MAX)
		return;
	set->value[set->n] = value;
	set->of[set->n++] = s;
	for (unsigned i = 0; i < s->mapping_count; i++)
		set_add(set, s->mapping[i].schema, value ? value : s->mapping[i].value);
	for (unsigned i = 0; i < s->branch_count; i++)
		set_add(set, s->branches[i].schema, value);
}

static bool has_parts(const struct schema *s)
{
	return s->field_count || s->branch_count || s->mapping_count || s->additional;
}

/* A schema that only gathers branches says nothing of its own type. */
static bool set_has(const struct set *set, enum schema_type type)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct schema *s = set->of[i];
		if (s->type != type)
			continue;
		if (type != TYPE_ANY || !has_parts(s))
			return true;
	}
	return false;
}

static bool set_is_object(const struct set *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->of[i]->type == TYPE_OBJECT || set->of[i]->field_count || set->of[i]->additional)
			return true;
	return false;
}

static bool set_is_scalar(const struct set *set)
{
	return !set_is_object(set) && !set_has(set, TYPE_ARRAY) && !set_has(set, TYPE_ANY);
}

/* Names. */

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

const char *flag_name(struct arena *a, struct str field)
{
	char *out = arena_alloc(a, 2 * field.n + 1), *p = out;
	while (field.n && field.p[0] == '_') {
		field.p++;
		field.n--;
	}
	for (size_t i = 0; i < field.n; i++) {
		char c = field.p[i], before = (char)(i ? field.p[i - 1] : '\0'),
		     after = (char)(i + 1 < field.n ? field.p[i + 1] : '\0');
		if (is_upper(c) && i && (is_upper(before) ? is_lower(after) : before != '_' && before != '-'))
			*p++ = '-';
		*p++ = (char)(c == '_' ? '-' : is_upper(c) ? c | 0x20 : c);
	}
	*p = '\0';
	return out;
}

const char *flag_of_path(struct arena *a, struct str path)
{
	struct buf b = {0};
	size_t from = 0;
	for (size_t i = 0; i <= path.n; i++) {
		bool ends = i == path.n || memchr(".[]", path.p[i], 3);
		if (!ends)
			continue;
		if (i > from) {
			buf_z(&b, b.n ? "." : "");
			buf_z(&b, flag_name(a, (struct str){path.p + from, i - from}));
		}
		from = i + 1;
	}
	const char *name = arena_z(a, buf_view(&b));
	buf_free(&b);
	return name;
}

const char *flag_nearest(struct str typed, const char *const *names, size_t count)
{
	const char *near = NULL;
	unsigned best = NEAR;
	for (size_t i = 0; i < count; i++) {
		unsigned d = str_distance(typed, str_of(names[i]));
		if (d < best && (size_t)d * 2 <= typed.n) {
			best = d;
			near = names[i];
		}
	}
	return near;
}

/* Whether a segment of a path means the field: in kebab-case, or as the API writes it. */
static bool name_fits(struct arena *a, struct str segment, const char *field)
{
	return str_is(segment, field) || str_is(segment, flag_name(a, str_of(field)));
}

/* The next segment, without its backslashes. */
static struct str segment_take(struct arena *a, struct str *rest)
{
	char *out = arena_alloc(a, rest->n + 1);
	size_t i = 0, n = 0;
	for (; i < rest->n && rest->p[i] != '.'; i++) {
		if (rest->p[i] == '\\' && i + 1 < rest->n)
			i++;
		out[n++] = rest->p[i];
	}
	size_t used = i < rest->n ? i + 1 : i;
	*rest = (struct str){rest->p + used, rest->n - used};
	return (struct str){out, n};
}

static bool segment_index(struct str path, struct arena *a, size_t *ret_index, struct str *ret_rest)
{
	uint64_t index;
	struct str rest = path, segment = segment_take(a, &rest);
	if (!str_to_u64(segment, INDEX_MAX, &index))
		return false;
	*ret_index = (size_t)index;
	*ret_rest = rest;
	return true;
}

/* Steps from a place to the places below it. */

static void step_items(const struct set *set, struct set *ret_set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->of[i]->type == TYPE_ARRAY)
			set_add(ret_set, set->of[i]->items ? set->of[i]->items : &anything, NULL);
	if (!ret_set->n)
		set_add(ret_set, &anything, NULL);
}

/* The field's name in the body, or NULL: there is none. Fields that callers cannot set come last. */
static const char *step_field(struct arena *a, const struct set *set, struct str segment, struct set *ret_set,
                              bool *ret_read_only)
{
	const char *name = NULL, *read_only = NULL;
	for (size_t i = 0; i < set->n; i++)
		for (unsigned k = 0; k < set->of[i]->field_count; k++) {
			const struct field *f = &set->of[i]->fields[k];
			if (!name_fits(a, segment, f->name) || (name && strcmp(name, f->name) != 0))
				continue;
			if (f->schema->flags & SCHEMA_READ_ONLY) {
				read_only = f->name;
				continue;
			}
			name = f->name;
			set_add(ret_set, f->schema, NULL);
		}
	*ret_read_only = !name && read_only;
	if (name || read_only)
		return name;
	for (size_t i = 0; i < set->n; i++) {
		const struct schema *s = set->of[i];
		if (s->additional || s->flags & SCHEMA_OPEN || (s->type == TYPE_ANY && !has_parts(s))) {
			set_add(ret_set, s->additional ? s->additional : &anything, NULL);
			name = arena_z(a, segment);
		}
	}
	return name;
}

static const char *field_unknown(struct arena *a, const struct set *set, struct str before, struct str segment)
{
	const char *names[512];
	size_t count = 0;
	for (size_t i = 0; i < set->n; i++)
		for (unsigned k = 0; k < set->of[i]->field_count && count < 512; k++)
			if (!(set->of[i]->fields[k].schema->flags & SCHEMA_READ_ONLY))
				names[count++] = flag_name(a, str_of(set->of[i]->fields[k].name));
	const char *near = flag_nearest(segment, names, count);
	if (near)
		return arena_printf(a, "there is no such field; did you mean --%.*s%s?", STR_ARG(before), near).p;
	return set_is_scalar(set) ? "has no fields: it is one value" : "there is no such field";
}

/* Texts to values. */

static json_t *number_of(struct str text, bool whole)
{
	json_t *value = text.n && (isdigit((unsigned char)text.p[text.n - 1]) || text.p[text.n - 1] == '.')
	                        ? json_loadb(text.p, text.n, JSON_DECODE_ANY, NULL)
	                        : NULL;
	if (value && !json_is_integer(value) && (whole || !json_is_real(value))) {
		json_decref(value);
		value = NULL;
	}
	return value;
}

static json_t *json_of(struct str text, char opens)
{
	if (!text.n || (opens && text.p[0] != opens))
		return NULL;
	return json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

/* The value that a text is in a place; NULL: it fits none of the types. Numbers and booleans are tried before strings,
 * which any text is. */
static json_t *value_of(const struct set *set, struct str text)
{
	json_t *value = NULL;
	if (set_has(set, TYPE_BOOLEAN) && (str_is(text, "true") || str_is(text, "false")))
		return json_boolean(str_is(text, "true"));
	if (set_has(set, TYPE_INTEGER) || set_has(set, TYPE_NUMBER))
		value = number_of(text, !set_has(set, TYPE_NUMBER));
	if (!value && set_is_object(set))
		value = json_of(text, '{');
	if (!value && set_has(set, TYPE_ANY))
		value = json_of(text, '\0');
	if (!value && (set_has(set, TYPE_STRING) || set_has(set, TYPE_ANY)))
		value = json_stringn(text.p, text.n);
	return value;
}

static const char *value_wanted(const struct set *set)
{
	if (set_has(set, TYPE_STRING))
		return "must be UTF-8 text";
	if (set_has(set, TYPE_INTEGER))
		return "must be a whole number";
	if (set_has(set, TYPE_NUMBER))
		return "must be a number";
	if (set_has(set, TYPE_BOOLEAN))
		return "must be true or false";
	return "is an object: name its fields after a dot, or give it as JSON";
}

/* The value of a text, added to the list that is there or in its place. */
static json_t *leaf_of(const struct set *set, json_t *old, struct str text, const char **ret_fault)
{
	json_t *value = NULL;
	if (!set_has(set, TYPE_ARRAY)) {
		value = value_of(set, text);
		*ret_fault = value ? NULL : value_wanted(set);
		return value;
	}
	value = json_of(text, '[');
	if (value)
		return value;
	struct set items = {.n = 0};
	step_items(set, &items);
	json_t *item = value_of(&items, text);
	if (!item && set_has(set, TYPE_STRING))
		return json_stringn(text.p, text.n);
	if (!item) {
		*ret_fault = value_wanted(&items);
		return NULL;
	}
	value = json_is_array(old) ? json_incref(old) : json_array();
	json_array_append_new(value, item);
	return value;
}

/* Setting. */

struct setting {
	struct arena *arena;
	struct str path, text;
	json_t *json; /* instead of the text */
	const char *fault;
};

static json_t *put(struct setting *s, const struct set *at, json_t *old, struct str rest, unsigned depth);

static json_t *put_item(struct setting *s, const struct set *at, json_t *old, struct str rest, unsigned depth)
{
	struct set items = {.n = 0};
	size_t index = 0;
	segment_index(rest, s->arena, &index, &rest);
	step_items(at, &items);
	json_t *item = put(s, &items, json_array_get(old, index), rest, depth + 1);
	if (!item)
		return NULL;
	json_t *list = json_is_array(old) ? json_incref(old) : json_array();
	while (json_array_size(list) <= index)
		json_array_append_new(list, json_null());
	json_array_set_new(list, index, item);
	return list;
}

static json_t *put_field(struct setting *s, const struct set *at, json_t *old, struct str rest, unsigned depth)
{
	struct set below = {.n = 0};
	bool read_only;
	struct str before = {s->path.p, s->path.n - rest.n}, segment = segment_take(s->arena, &rest);
	const char *name = step_field(s->arena, at, segment, &below, &read_only);
	if (!name) {
		s->fault = read_only ? "is filled in by the service" : field_unknown(s->arena, at, before, segment);
		return NULL;
	}
	json_t *value = put(s, &below, json_object_get(old, name), rest, depth + 1);
	if (!value)
		return NULL;
	json_t *object = json_is_object(old) ? json_incref(old) : json_object();
	json_object_set_new(object, name, value);
	return object;
}

/* The new value of a place; NULL after a fault. */
static json_t *put(struct setting *s, const struct set *at, json_t *old, struct str rest, unsigned depth)
{
	size_t index;
	struct str after;
	if (depth > DEPTH_MAX) {
		s->fault = "is too deep";
		return NULL;
	}
	if (!rest.n)
		return s->json ? json_incref(s->json) : leaf_of(at, old, s->text, &s->fault);
	bool number = segment_index(rest, s->arena, &index, &after), list = set_has(at, TYPE_ARRAY);
	if (list ? number || !set_is_object(at) : number && set_has(at, TYPE_ANY) && !set_is_object(at))
		return put_item(s, at, old, rest, depth);
	return put_field(s, at, old, rest, depth);
}

static const char *set_in_body(struct flags *f, struct setting *s)
{
	struct set root = {.n = 0};
	set_add(&root, f->schema, NULL);
	json_t *body = put(s, &root, f->body, s->path, 0);
	if (!body)
		return s->fault ? s->fault : "is not valid";
	f->body = json_keep(f->arena, body);
	return NULL;
}

const char *flags_set(struct flags *f, struct str path, struct str text)
{
	struct setting s = {.arena = f->arena, .path = path, .text = text};
	return set_in_body(f, &s);
}

const char *flags_set_json(struct flags *f, struct str path, struct str json)
{
	json_error_t error;
	struct setting s = {.arena = f->arena, .path = path};
	s.json = json_loadb(json.n ? json.p : "", json.n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	if (!s.json)
		return arena_printf(f->arena, "is not JSON: %s", error.text).p;
	const char *fault = set_in_body(f, &s);
	json_decref(s.json);
	return fault;
}

bool flag_cut(struct str argument, struct str *ret_name, struct str *ret_value)
{
	size_t i = 0;
	while (i < argument.n && argument.p[i] != '=')
		i += argument.p[i] == '\\' ? 2 : 1;
	bool found = i < argument.n;
	*ret_name = (struct str){argument.p, found ? i : argument.n};
	*ret_value = found ? (struct str){argument.p + i + 1, argument.n - i - 1} : STR_NONE;
	return found;
}

const char *flags_assign(struct flags *f, struct str text)
{
	struct str path, value;
	if (!flag_cut(text, &path, &value))
		return "is not PATH=VALUE or PATH:=JSON";
	if (path.n && path.p[path.n - 1] == ':' && !(path.n > 1 && path.p[path.n - 2] == '\\')) {
		path.n--;
		return flags_set_json(f, path, value);
	}
	return flags_set(f, path, value);
}

/* Looking. */

static bool is_secret_name(const char *name)
{
	static const char *const ends[] = {"password",   "secret",     "apikey", "accesskey",
	                                   "accountkey", "privatekey", "sslkey", "token"};
	for (size_t i = 0; name && i < sizeof ends / sizeof *ends; i++) {
		size_t n = strlen(name), m = strlen(ends[i]);
		if (n >= m && str_ieq((struct str){name + n - m, m}, str_of(ends[i])))
			return true;
	}
	return false;
}

static bool set_is_secret(const struct set *set, const char *name)
{
	if (!set_has(set, TYPE_STRING))
		return false;
	for (size_t i = 0; i < set->n; i++)
		if (set->of[i]->format == FORMAT_PASSWORD || set->of[i]->flags & SCHEMA_SECRET)
			return true;
	return is_secret_name(name);
}

enum flag_kind flags_find(const struct schema *s, struct str path, bool *ret_secret)
{
	struct arena *a = arena_new();
	struct set at = {.n = 0};
	const char *name = NULL;
	enum flag_kind kind = FLAG_VALUE;
	bool read_only;
	set_add(&at, s, NULL);
	*ret_secret = false;
	while (path.n && kind != FLAG_UNKNOWN) {
		struct set below = {.n = 0};
		size_t index;
		if (set_has(&at, TYPE_ARRAY) && !set_is_object(&at)) {
			segment_index(path, a, &index, &path);
			step_items(&at, &below);
		} else {
			name = step_field(a, &at, segment_take(a, &path), &below, &read_only);
			kind = name || read_only ? FLAG_VALUE : FLAG_UNKNOWN;
		}
		at = below;
	}
	if (kind == FLAG_VALUE) {
		*ret_secret = set_is_secret(&at, name);
		kind = at.n == 1 && at.of[0]->type == TYPE_BOOLEAN ? FLAG_SWITCH : FLAG_VALUE;
	}
	arena_free(a);
	return kind;
}

static void hide(const struct set *at, json_t *value, unsigned depth)
{
	const char *key;
	json_t *child;
	size_t i;
	if (depth > DEPTH_MAX)
		return;
	json_array_foreach(value, i, child)
	{
		struct set items = {.n = 0};
		step_items(at, &items);
		hide(&items, child, depth + 1);
	}
	struct arena *a = arena_new();
	json_object_foreach(value, key, child)
	{
		struct set below = {.n = 0};
		bool read_only;
		(void)step_field(a, at, str_of(key), &below, &read_only);
		if (json_is_string(child) && set_is_secret(&below, key))
			json_string_set(child, "***");
		else
			hide(&below, child, depth + 1);
	}
	arena_free(a);
}

void flags_hide_secrets(const struct schema *s, json_t *body)
{
	struct set root = {.n = 0};
	set_add(&root, s, NULL);
	hide(&root, body, 0);
}

/* Listing. */

struct listing {
	struct arena *arena;
	enum schema_use use;
	struct flag *flags;
	size_t count;
	const struct schema *above[DEPTH_MAX + 1]; /* against schemas that hold themselves */
};

static void list_place(struct listing *l, const struct set *at, const char *prefix, const struct flag *parent,
                       unsigned depth);

static bool field_is_hidden(const struct listing *l, const struct field *f)
{
	unsigned flags = f->schema->flags;
	return flags & (SCHEMA_READ_ONLY | SCHEMA_DEPRECATED) || (flags & SCHEMA_IMMUTABLE && l->use != SCHEMA_CREATE);
}

/* A field was listed with an earlier schema of the same place. */
static bool field_is_repeated(const struct set *at, size_t before, const char *name)
{
	for (size_t i = 0; i < before; i++)
		if (schema_field(at->of[i], str_of(name)))
			return true;
	return false;
}

static void list_one(struct listing *l, const struct set *at, const struct flag *flag, unsigned depth)
{
	struct set items = {.n = 0};
	if (set_has(at, TYPE_ARRAY)) {
		step_items(at, &items);
		if (set_is_object(&items)) {
			list_place(l, &items, arena_printf(l->arena, "%s.0.", flag->name).p, flag, depth);
			return;
		}
	}
	if (!set_has(at, TYPE_ARRAY) && set_is_object(at)) {
		list_place(l, at, arena_printf(l->arena, "%s.", flag->name).p, flag, depth);
		return;
	}
	if (l->count < LIST_MAX) {
		l->flags[l->count] = *flag;
		l->flags[l->count++].repeats = set_has(at, TYPE_ARRAY);
	}
}

static void list_field(struct listing *l, const struct set *at, size_t i, const struct field *f, const char *prefix,
                       const struct flag *parent, unsigned depth)
{
	struct set below = {.n = 0};
	for (size_t k = i; k < at->n; k++) {
		const struct field *same = schema_field(at->of[k], str_of(f->name));
		if (same && !(same->schema->flags & SCHEMA_READ_ONLY))
			set_add(&below, same->schema, NULL);
	}
	struct flag flag = {
	        .name = arena_printf(l->arena, "%s%s", prefix, flag_name(l->arena, str_of(f->name))).p,
	        .description = f->schema->description,
	        .schema = f->schema,
	        .only_for = at->value[i] ? at->value[i] : parent->only_for,
	        .required = f->required && parent->required && i == 0,
	        .secret = set_is_secret(&below, f->name),
	};
	list_one(l, &below, &flag, depth);
}

static void list_map(struct listing *l, const struct set *at, const char *prefix, const struct flag *parent,
                     unsigned depth)
{
	const struct schema *value = NULL;
	for (size_t i = 0; i < at->n && !value; i++)
		if (at->of[i]->additional || at->of[i]->flags & SCHEMA_OPEN)
			value = at->of[i]->additional ? at->of[i]->additional : &anything;
	if (!value)
		return;
	struct set below = {.n = 0};
	set_add(&below, value, NULL);
	struct flag flag = {.name = arena_printf(l->arena, "%sKEY", prefix).p,
	                    .description = parent->description,
	                    .schema = value,
	                    .only_for = parent->only_for};
	list_one(l, &below, &flag, depth);
}

static void list_place(struct listing *l, const struct set *at, const char *prefix, const struct flag *parent,
                       unsigned depth)
{
	if (depth >= DEPTH_MAX)
		return;
	for (unsigned i = 0; i < depth; i++)
		if (l->above[i] == at->of[0])
			return;
	l->above[depth] = at->of[0];
	size_t before = l->count;
	for (size_t i = 0; i < at->n; i++)
		for (unsigned k = 0; k < at->of[i]->field_count; k++) {
			const struct field *f = &at->of[i]->fields[k];
			if (!field_is_hidden(l, f) && !field_is_repeated(at, i, f->name))
				list_field(l, at, i, f, prefix, parent, depth + 1);
		}
	if (l->count == before)
		list_map(l, at, prefix, parent, depth + 1);
}

size_t flags_list(struct arena *a, const struct schema *body, enum schema_use use, struct flag **ret_flags)
{
	struct listing l = {.arena = a, .use = use, .flags = arena_new_array(a, struct flag, LIST_MAX)};
	struct flag root = {.required = true};
	struct set at = {.n = 0}, items = {.n = 0};
	set_add(&at, body, NULL);
	if (set_has(&at, TYPE_ARRAY))
		step_items(&at, &items);
	list_place(&l, items.n ? &items : &at, "", &root, 0);
	struct flag *sorted = arena_new_array(a, struct flag, l.count + 1);
	size_t n = 0;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < l.count; i++)
			if (l.flags[i].required == (pass == 0))
				sorted[n++] = l.flags[i];
	*ret_flags = sorted;
	return n;
}

/* Writing. */

struct writing {
	struct arena *arena;
	const char **arguments;
	size_t count, room;
};

static void argument_add(struct writing *w, const char *argument)
{
	if (w->count == w->room) {
		size_t room = w->room ? 2 * w->room : 64;
		const char **more = arena_new_array(w->arena, const char *, room);
		for (size_t i = 0; i < w->count; i++)
			more[i] = w->arguments[i];
		w->arguments = more;
		w->room = room;
	}
	w->arguments[w->count++] = argument;
}

static void write_json(struct writing *w, const char *path, json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	argument_add(w, arena_printf(w->arena, "--set=%s:=%s", path, text).p);
	free(text);
}

static const char *scalar_text(struct arena *a, json_t *value)
{
	if (json_is_string(value))
		return strlen(json_string_value(value)) == json_string_length(value) ? json_string_value(value) : NULL;
	if (json_is_array(value) || json_is_object(value) || json_is_null(value))
		return NULL;
	char *text = json_dumps(value, JSON_ENCODE_ANY); /* with all digits */
	const char *kept = arena_z(a, str_of(text));
	free(text);
	return kept;
}

/* As one flag, or one for each entry of a list, if reading them gives the value again. */
static bool write_plain(struct writing *w, const struct set *at, const char *path, json_t *value)
{
	size_t before = w->count, n = json_is_array(value) ? json_array_size(value) : 1;
	json_t *again = NULL;
	bool fits = n > 0;
	for (size_t i = 0; fits && i < n; i++) {
		const char *fault = NULL,
		           *text = scalar_text(w->arena, json_is_array(value) ? json_array_get(value, i) : value);
		json_t *next = text ? leaf_of(at, again, str_of(text), &fault) : NULL;
		json_decref(again);
		again = next;
		fits = again != NULL;
		if (fits)
			argument_add(w, arena_printf(w->arena, "--%s=%s", path, text).p);
	}
	fits = fits && *path && json_equal(again, value);
	json_decref(again);
	if (!fits)
		w->count = before;
	return fits;
}

static const char *key_escaped(struct arena *a, const char *key)
{
	char *out = arena_alloc(a, 2 * strlen(key) + 1), *p = out;
	for (; *key; key++) {
		if (strchr(".=:\\", *key))
			*p++ = '\\';
		*p++ = *key;
	}
	return out;
}

/* How a path names a field or a key of a map, and what lies there. NULL: nothing names it. */
static const char *key_written(struct arena *a, const struct set *at, const char *key, struct set *ret_below)
{
	struct set other = {.n = 0};
	bool read_only, listed = false;
	const char *short_name = flag_name(a, str_of(key)),
	           *name = step_field(a, at, str_of(key), ret_below, &read_only);
	for (size_t i = 0; i < at->n; i++)
		listed = listed || schema_field(at->of[i], str_of(key));
	if (!name || strcmp(name, key) != 0 || !*key)
		return NULL;
	if (!listed)
		return key_escaped(a, key);
	name = step_field(a, at, str_of(short_name), &other, &read_only);
	return name && strcmp(name, key) == 0 ? short_name : key;
}

static void write_place(struct writing *w, const struct set *at, const char *path, json_t *value, unsigned depth)
{
	const char *dot = *path ? "." : "", *key;
	json_t *child;
	size_t i;
	if (write_plain(w, at, path, value))
		return;
	bool list = json_is_array(value) && json_array_size(value) && set_has(at, TYPE_ARRAY),
	     object = json_is_object(value) && json_object_size(value) && set_is_object(at) && !set_has(at, TYPE_ARRAY);
	if (depth >= DEPTH_MAX - 1 || (!list && !object)) {
		write_json(w, path, value);
		return;
	}
	size_t before = w->count;
	json_array_foreach(value, i, child)
	{
		struct set items = {.n = 0};
		step_items(at, &items);
		write_place(w, &items, arena_printf(w->arena, "%s%s%zu", path, dot, i).p, child, depth + 1);
	}
	json_object_foreach(value, key, child)
	{
		struct set below = {.n = 0};
		const char *name = key_written(w->arena, at, key, &below);
		if (!name) {
			w->count = before;
			write_json(w, path, value);
			return;
		}
		write_place(w, &below, arena_printf(w->arena, "%s%s%s", path, dot, name).p, child, depth + 1);
	}
}

size_t flags_write(struct arena *a, const struct schema *s, json_t *body, const char ***ret_arguments)
{
	struct writing w = {.arena = a};
	struct set root = {.n = 0};
	set_add(&root, s, NULL);
	write_place(&w, &root, "", body, 0);
	*ret_arguments = w.arguments;
	return w.count;
}
