/* Words of another service for ours, both ways. The tables say where a word is one; everything else is copied. */
#include "catalog/dialect.h"

#include "base/json.h"

#include <errno.h>

#define DEPTH_MAX 128
#define DIALECTS_MAX 32

static unsigned left_out; /* bit per index */

int dialects_choose(struct str names)
{
	unsigned served = 0;
	struct str name, rest = names;
	while (rest.n && !str_is(names, "none")) {
		unsigned i = 0;
		str_cut(rest, ',', &name, &rest);
		while (i < catalog_dialect_count && !str_is(str_trim(name), catalog_dialects[i].name))
			i++;
		if (i == catalog_dialect_count || i + 1 >= DIALECTS_MAX)
			return -ENOENT;
		served |= 1u << catalog_dialects[i].index;
	}
	left_out = ~served;
	return names.n ? 0 : -ENOENT;
}

bool dialect_is_served(const struct dialect *d)
{
	return !(left_out >> d->index & 1);
}

static bool is_below(struct str path, const char *base)
{
	struct str prefix = str_of(base);
	return base && str_starts(path, prefix) && (path.n == prefix.n || path.p[prefix.n] == '/');
}

const struct dialect *dialect_of_path(struct str path)
{
	for (unsigned i = 0; i < catalog_dialect_count; i++) {
		const struct dialect *d = &catalog_dialects[i];
		if (is_below(path, d->base) || is_below(path, d->base_v1))
			return d;
	}
	return NULL;
}

const struct dialect_endpoint *dialect_endpoint(struct str path)
{
	for (unsigned i = 0; i < catalog_dialect_count; i++) {
		const struct dialect *d = &catalog_dialects[i];
		for (size_t k = 0; k < d->endpoint_count && dialect_is_served(d); k++)
			if (str_is(path, d->endpoints[k].path))
				return &d->endpoints[k];
	}
	return NULL;
}

bool dialect_reserves(struct str word)
{
	for (unsigned i = 0; i < catalog_dialect_count; i++) {
		const struct dialect *d = &catalog_dialects[i];
		for (size_t k = 0; k < d->text_count && dialect_is_served(d); k++)
			if (str_eq(word, (struct str){d->texts[k].to, d->texts[k].to_n}))
				return true;
	}
	return false;
}

static int word_order(const struct word *w, struct str text)
{
	if (w->from_n != text.n)
		return w->from_n < text.n ? -1 : 1;
	return memcmp(w->from, text.p, text.n);
}

static const struct word *word_find(const struct word *list, size_t count, struct str text)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = word_order(&list[middle], text);
		if (order == 0)
			return &list[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

struct str words_value(const struct vocabulary *w, struct str text)
{
	const struct word *found = w && text.n ? word_find(w->values, w->value_count, text) : NULL;
	return found ? (struct str){found->to, found->to_n} : text;
}

struct str words_list(const struct vocabulary *w, struct str text, struct arena *a)
{
	struct str part, rest = text;
	struct buf b = {0};
	if (!w || !w->items)
		return words_value(w, text);
	for (bool more = true; more;) {
		more = str_cut(rest, ',', &part, &rest);
		buf_str(&b, words_value(w->items, part));
		if (more)
			buf_c(&b, ',');
	}
	return buf_keep(&b, a);
}

struct str param_word(const struct dialect *d, const struct op *op, struct str name, struct str value)
{
	for (unsigned i = 0; i < op->path_param_count; i++)
		if (str_is(name, op->path_params[i].name))
			return words_value(dialect_words(d, op->path_params[i].schema), value);
	return value;
}

/* Values. */

static bool when_holds(const char *const *when, const json_t *object)
{
	struct str text = json_field(object, when[0]);
	for (size_t i = 1; text.p && when[i]; i++)
		if (str_is(text, when[i]))
			return true;
	return false;
}

static void value_walk(const struct vocabulary *w, json_t *value, unsigned depth);

static const struct vocabulary *words_below(const struct vocabulary *w, const struct word *field, const json_t *object)
{
	if (!field)
		return w->additional;
	return !field->when || when_holds(field->when, object) ? field->below : NULL;
}

/* With the fields under their other names, in the same order. */
static void fields_rename(const struct vocabulary *w, json_t *object)
{
	const char *key;
	size_t n;
	json_t *value, *old = json_copy(object);
	json_object_clear(object);
	json_object_keylen_foreach(old, key, n, value)
	{
		const struct word *field = word_find(w->fields, w->field_count, (struct str){key, n});
		bool other = field && field->to;
		json_object_setn_new_nocheck(object, other ? field->to : key, other ? field->to_n : n,
		                             json_incref(value));
	}
	json_decref(old);
}

static void object_walk(const struct vocabulary *w, json_t *object, unsigned depth)
{
	const char *key;
	size_t n;
	json_t *value;
	bool renames = false;
	json_object_keylen_foreach(object, key, n, value)
	{
		const struct word *field = word_find(w->fields, w->field_count, (struct str){key, n});
		renames = renames || (field && field->to);
		value_walk(words_below(w, field, object), value, depth + 1);
	}
	if (renames)
		fields_rename(w, object);
}

static void value_walk(const struct vocabulary *w, json_t *value, unsigned depth)
{
	size_t i;
	json_t *item;
	if (!w || depth > DEPTH_MAX)
		return;
	if (json_is_string(value)) {
		struct str text = json_str_of(value), other = words_value(w, text);
		if (other.p != text.p)
			json_string_setn_nocheck(value, other.p, other.n);
	} else if (json_is_array(value)) {
		json_array_foreach(value, i, item) value_walk(w->items, item, depth + 1);
	} else if (json_is_object(value)) {
		object_walk(w, value, depth);
	}
}

void words_json(const struct vocabulary *w, json_t *value)
{
	value_walk(w, value, 0);
}

/* Text. Each function takes where a value begins and returns where it ends; NULL: this is no JSON. */

struct walk {
	const char *end, *copied; /* copied: what stands before it is in `out` */
	struct buf *out;
};

static void replace(struct walk *k, const char *from, const char *to, const struct word *word)
{
	buf_add(k->out, k->copied, (size_t)(from - k->copied));
	buf_add(k->out, word->to, word->to_n);
	k->copied = to;
}

static const char *space_skip(const struct walk *k, const char *p)
{
	while (p < k->end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* From behind the opening quote to the closing one. */
static const char *string_end(const struct walk *k, const char *p)
{
	const char *start = p;
	while ((p = memchr(p, '"', (size_t)(k->end - p)))) {
		const char *b = p;
		while (b > start && b[-1] == '\\')
			b--;
		if ((p - b) % 2 == 0)
			return p;
		p++;
	}
	return NULL;
}

static const char *value_skip(const struct walk *k, const char *p)
{
	unsigned depth = 0;
	for (; p < k->end; p++) {
		if (*p == '"') {
			p = string_end(k, p + 1);
			if (!p)
				return NULL;
			if (!depth)
				return p + 1;
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if (*p == '}' || *p == ']') {
			if (depth <= 1)
				return depth ? p + 1 : p;
			depth--;
		} else if (!depth && *p == ',') {
			return p;
		}
	}
	return depth ? NULL : p;
}

static const char *text_walk(struct walk *k, const char *p, const struct vocabulary *w, unsigned depth);

static const char *string_walk(struct walk *k, const char *p, const struct vocabulary *w)
{
	const char *end = string_end(k, p + 1);
	if (!end)
		return NULL;
	const struct word *other = word_find(w->values, w->value_count, (struct str){p + 1, (size_t)(end - p - 1)});
	if (other)
		replace(k, p + 1, end, other);
	return end + 1;
}

static const char *array_walk(struct walk *k, const char *p, const struct vocabulary *w, unsigned depth)
{
	p = space_skip(k, p + 1);
	if (p < k->end && *p == ']')
		return p + 1;
	while ((p = text_walk(k, p, w->items, depth + 1))) {
		p = space_skip(k, p);
		if (p == k->end || (*p != ',' && *p != ']'))
			return NULL;
		if (*p++ == ']')
			return p;
	}
	return NULL;
}

/* Whether the object that begins at p has one of the values beside the field. */
static bool when_stands(const struct walk *k, const char *p, const char *const *when)
{
	for (p = space_skip(k, p + 1); p < k->end && *p == '"';) {
		const char *key = p + 1, *shut = string_end(k, key), *value = shut ? space_skip(k, shut + 1) : NULL;
		if (!value || value == k->end || *value != ':')
			return false;
		value = space_skip(k, value + 1);
		const char *end = value_skip(k, value);
		if (!end || end == k->end)
			return false;
		if (str_is((struct str){key, (size_t)(shut - key)}, when[0])) {
			for (size_t i = 1; when[i] && end - value >= 2; i++)
				if (str_is((struct str){value + 1, (size_t)(end - value - 2)}, when[i]))
					return true;
			return false;
		}
		p = space_skip(k, end);
		if (p < k->end && *p == ',')
			p = space_skip(k, p + 1);
	}
	return false;
}

static const char *members_walk(struct walk *k, const char *p, const struct vocabulary *w, unsigned depth)
{
	const char *start = p;
	p = space_skip(k, p + 1);
	if (p < k->end && *p == '}')
		return p + 1;
	while (p < k->end && *p == '"') {
		const char *key = p + 1, *shut = string_end(k, key);
		if (!shut)
			return NULL;
		const struct word *field =
		        word_find(w->fields, w->field_count, (struct str){key, (size_t)(shut - key)});
		const struct vocabulary *below = field ? field->below : w->additional;
		if (field && field->to)
			replace(k, key, shut, field);
		p = space_skip(k, shut + 1);
		if (p == k->end || *p != ':')
			return NULL;
		if (field && field->when && !when_stands(k, start, field->when))
			below = NULL;
		p = text_walk(k, space_skip(k, p + 1), below, depth + 1);
		p = p ? space_skip(k, p) : NULL;
		if (!p || p == k->end || (*p != ',' && *p != '}'))
			return NULL;
		if (*p == '}')
			return p + 1;
		p = space_skip(k, p + 1);
	}
	return NULL;
}

static const char *text_walk(struct walk *k, const char *p, const struct vocabulary *w, unsigned depth)
{
	if (p == k->end || depth > DEPTH_MAX)
		return NULL;
	if (w && *p == '"')
		return string_walk(k, p, w);
	if (w && *p == '[' && w->items)
		return array_walk(k, p, w, depth);
	if (w && *p == '{')
		return members_walk(k, p, w, depth);
	return value_skip(k, p);
}

void words_text(const struct vocabulary *w, struct str json, struct buf *out)
{
	struct walk k = {.end = json.p + json.n, .copied = json.p, .out = out};
	buf_reserve(out, json.n + json.n / 16 + 64);
	if (w && json.n)
		(void)text_walk(&k, space_skip(&k, json.p), w, 0);
	buf_add(out, k.copied, (size_t)(k.end - k.copied));
}

/* Sentences. */

static bool in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* The whole word that begins at i; with dots in it when `dotted`. */
static struct str word_at(struct str text, size_t i, bool dotted)
{
	size_t n = i;
	while (n < text.n && (in_word(text.p[n]) || (dotted && text.p[n] == '.')))
		n++;
	while (n > i && text.p[n - 1] == '.')
		n--;
	return (struct str){text.p + i, n - i};
}

static bool says(struct str text, struct str word)
{
	for (size_t i = 0; text.n - i >= word.n;) {
		const char *found = memmem(text.p + i, text.n - i, word.p, word.n);
		if (!found)
			return false;
		size_t at = (size_t)(found - text.p);
		if ((!at || !in_word(found[-1])) && (at + word.n == text.n || !in_word(found[word.n])))
			return true;
		i = at + 1;
	}
	return false;
}

struct told {
	struct str said, body;
};

/* Behind the closing quote: what is quoted is somebody's name for something. */
static size_t quoted_end(struct str text, size_t i)
{
	const char *shut = memchr(text.p + i + 1, '"', text.n - i - 1);
	return shut ? (size_t)(shut - text.p) + 1 : i + 1;
}

/* The text with the words of the list replaced, but for those that the caller said, or anybody's names in quotes. */
static struct str sentence(const struct word *list, size_t count, struct str text, const struct told *told,
                           struct arena *a)
{
	struct buf b = {0};
	size_t copied = 0;
	for (size_t i = 0; i < text.n;) {
		if (told && text.p[i] == '"') {
			i = quoted_end(text, i);
			continue;
		}
		if (!in_word(text.p[i])) {
			i++;
			continue;
		}
		struct str word = word_at(text, i, true);
		const struct word *other = word_find(list, count, word);
		if (!other) {
			word = word_at(text, i, false);
			other = word_find(list, count, word);
		}
		if (other && other->to && !(told && (says(told->said, word) || says(told->body, word)))) {
			buf_add(&b, text.p + copied, i - copied);
			buf_add(&b, other->to, other->to_n);
			copied = i + word.n;
		}
		i += word.n;
	}
	if (!copied) {
		buf_free(&b);
		return text;
	}
	buf_add(&b, text.p + copied, text.n - copied);
	return buf_keep(&b, a);
}

struct str dialect_sentence(const struct dialect *d, struct str text, struct str said, struct str body, struct arena *a)
{
	struct told told = {said, body};
	return d && text.n ? sentence(d->texts, d->text_count, text, &told, a) : text;
}

struct str words_sentence(const struct vocabulary *w, struct str text, struct arena *a)
{
	return w ? sentence(w->values, w->value_count, text, NULL, a) : text;
}

/* "a.b[0].c": each name is a field of the object before it. */
void words_fault(const struct vocabulary *w, struct fault *f, struct arena *a)
{
	const struct vocabulary *above = w;
	struct buf path = {0};
	for (size_t i = 0; w && i < f->path.n;) {
		if (f->path.p[i] == '.' || f->path.p[i] == '[') {
			size_t from = i++;
			while (f->path.p[from] == '[' && i < f->path.n && f->path.p[i - 1] != ']')
				i++;
			buf_add(&path, f->path.p + from, i - from);
			if (f->path.p[from] == '[')
				w = w->items;
			continue;
		}
		size_t n = i;
		while (n < f->path.n && f->path.p[n] != '.' && f->path.p[n] != '[')
			n++;
		struct str key = {f->path.p + i, n - i};
		const struct word *field = word_find(w->fields, w->field_count, key);
		buf_str(&path, field && field->to ? (struct str){field->to, field->to_n} : key);
		above = w;
		w = field ? field->below : w->additional;
		i = n;
		if (!w)
			buf_add(&path, f->path.p + i, f->path.n - i);
	}
	if (path.n)
		f->path = arena_dup(a, buf_view(&path));
	buf_free(&path);
	if (w)
		f->text = sentence(w->values, w->value_count, f->text, NULL, a);
	else if (above)
		f->text = sentence(above->fields, above->field_count, f->text, NULL, a);
}
