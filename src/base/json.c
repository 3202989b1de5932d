/* Jansson with our allocator, our strings and our handling of failures. */
#include "base/json.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

#define JSON_TEXT (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))

static _Thread_local uint64_t corruptions;

void json_setup(void)
{
	json_set_alloc_funcs(must_malloc, free);
}

uint64_t json_corruptions(void)
{
	return corruptions;
}

static void corrupt(const char *what, struct str text)
{
	corruptions++;
	log_error("json: %s: %.*s", what, (int)(text.n < 200 ? text.n : 200), text.p ? text.p : "");
}

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

struct str json_str_of(const json_t *value)
{
	return (struct str){json_string_value(value), json_string_length(value)};
}

struct str json_field(const json_t *object, const char *name)
{
	return json_str_of(json_object_get(object, name));
}

struct str json_item(const json_t *array, size_t index)
{
	return json_str_of(json_array_get(array, index));
}

bool json_has(const json_t *array, struct str text)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		if (str_eq(json_item(array, i), text))
			return true;
	return false;
}

json_t *json_find(const json_t *array, const char *field, struct str text)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		if (str_eq(json_field(json_array_get(array, i), field), text))
			return json_array_get(array, i);
	return NULL;
}

bool json_flag(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

json_int_t json_number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

json_t *json_new(struct arena *a)
{
	return json_keep(a, json_object());
}

/* Objects and lists of short texts take about so many times the memory of their text. */
#define PARSED_TIMES 8

json_t *doc_json(struct arena *a, struct str body)
{
	/* A document without a secret has an empty text here. */
	json_t *value = body.n ? json_loadb(body.p, body.n, 0, NULL) : json_object();
	if (!value) {
		corrupt("a stored document does not parse", STR_NONE);
		value = json_object();
	}
	arena_count(a, PARSED_TIMES * body.n);
	return json_keep(a, value);
}

json_t *json_clone(struct arena *a, const json_t *value)
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
			json_put(into, key, json_deep_copy(value));
	}
}

void json_put(json_t *object, const char *name, json_t *value)
{
	if (value && json_object_set_new(object, name, value) < 0)
		corrupt("a field cannot be set", str_of(name));
}

json_t *json_default(json_t *object, const char *name, json_t *value)
{
	json_t *there = json_object_get(object, name);
	if (there)
		json_decref(value);
	else
		json_put(object, name, value);
	return there ? there : value;
}

void json_put_str(json_t *object, const char *name, struct str text)
{
	json_t *value = json_stringn(text.p ? text.p : "", text.n);
	if (!value)
		corrupt("a text is no UTF-8, in the field", str_of(name));
	json_put(object, name, value);
}

void json_put_z(json_t *object, const char *name, const char *text)
{
	json_put_str(object, name, str_of(text));
}

json_t *json_time(int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	return json_string(text);
}

void json_put_time(json_t *object, const char *name, int64_t ms)
{
	json_put(object, name, json_time(ms));
}

bool json_time_is_over(const json_t *object, const char *name)
{
	int64_t ms;
	return clock_parse(json_field(object, name), &ms) && ms <= clock_now_ms();
}

void json_copy_fields(json_t *to, const json_t *from, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_put(to, names[i], json_incref(json_object_get(from, names[i])));
}

void json_add_str(json_t *array, struct str text)
{
	json_t *value = json_stringn(text.p ? text.p : "", text.n);
	if (!value || json_array_append_new(array, value) < 0)
		corrupt("a text cannot be added to a list", STR_NONE);
}
