/* Filters are read from their JSON each time: they are small, and asked about few records. */
#include "filter/filter.h"

#include "base/buf.h"
#include "base/json.h"

#define FILTER_MAX 16384
#define DEPTH_MAX 16

static bool is_one_of(const char *key, const char *choices)
{
	return str_is_one_of(choices, str_of(key));
}

static const char *key_fault(const char *key, const json_t *value, bool ordered)
{
	bool list = is_one_of(key, "$and|$or|$nor");
	if (key[0] == '$' && ordered && is_one_of(key, "$gt|$gte|$lt|$lte"))
		return NULL;
	if (key[0] == '$' && !is_one_of(key, "$and|$or|$nor|$not|$in|$nin|$eq|$ne|$exists|$elemMatch"))
		return "must use only the operators $and, $or, $nor, $not, $in, $nin, $eq, $ne, $exists and $elemMatch";
	if ((list || is_one_of(key, "$in|$nin")) && !json_is_array(value))
		return "must have arrays after $and, $or, $nor, $in and $nin";
	for (size_t i = 0; list && i < json_array_size(value); i++)
		if (!json_is_object(json_array_get(value, i)))
			return "must have objects in the arrays of $and, $or and $nor";
	if (is_one_of(key, "$elemMatch|$not") && !json_is_object(value))
		return "must have objects after $elemMatch and $not";
	return NULL;
}

static const char *fault_in(const json_t *value, unsigned depth, bool ordered)
{
	const char *key, *fault = depth > DEPTH_MAX ? "is nested too deep" : NULL;
	json_t *inner;
	size_t i;
	if (json_is_object(value))
		json_object_foreach((json_t *)(uintptr_t)value, key, inner)
		{
			if (!fault)
				fault = key_fault(key, inner, ordered);
			if (!fault)
				fault = fault_in(inner, depth + 1, ordered);
		}
	if (json_is_array(value))
		json_array_foreach(value, i, inner)
		{
			if (!fault)
				fault = fault_in(inner, depth + 1, ordered);
		}
	return fault;
}

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
	       c == '.';
}

/* A string in quotes of either kind, from its first one on, as JSON. Returns where it ends. */
static size_t string_turn(struct buf *b, struct str text, size_t i)
{
	char quote = text.p[i++];
	buf_c(b, '"');
	while (i < text.n && text.p[i] != quote) {
		if (text.p[i] == '\\' && i + 1 < text.n) {
			if (text.p[i + 1] != '\'') /* which JSON need not and may not escape */
				buf_c(b, '\\');
			i++;
		} else if (text.p[i] == '"') {
			buf_c(b, '\\');
		}
		buf_c(b, text.p[i++]);
	}
	if (i < text.n)
		buf_c(b, '"');
	return i + 1;
}

/* A word without quotes is a key where a colon follows it; else it is a number, true, false or null. */
static size_t word_turn(struct buf *b, struct str text, size_t i)
{
	size_t from = i, after;
	while (i < text.n && is_bare(text.p[i]))
		i++;
	for (after = i; after < text.n && strchr(" \t\r\n", text.p[after]) && text.p[after];)
		after++;
	bool is_key = after < text.n && text.p[after] == ':';
	buf_z(b, is_key ? "\"" : "");
	buf_add(b, text.p + from, i - from);
	buf_z(b, is_key ? "\"" : "");
	return i;
}

/* Filters are often written as a shell of documents takes them: in single quotes, so that they need no escapes inside
 * of JSON, and with bare keys. */
static json_t *relaxed_load(struct str text)
{
	struct buf b = {0};
	for (size_t i = 0; i < text.n;) {
		char c = text.p[i];
		if (c == '"' || c == '\'') {
			i = string_turn(&b, text, i);
		} else if (is_bare(c)) {
			i = word_turn(&b, text, i);
		} else {
			buf_c(&b, c);
			i++;
		}
	}
	json_t *filter = json_loadb(b.p, b.n, JSON_REJECT_DUPLICATES, NULL);
	buf_free(&b);
	return filter;
}

static const json_t *filter_read(struct str text, bool ordered, struct arena *a, const char **ret_fault)
{
	if (text.n > FILTER_MAX) {
		*ret_fault = arena_printf(a, "must be at most %d bytes long", FILTER_MAX).p;
		return NULL;
	}
	bool is_empty = !str_trim(text).n;
	json_t *filter = is_empty ? json_object() : json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
	if (!filter)
		filter = relaxed_load(text);
	const char *fault = json_is_object(filter) ? fault_in(filter, 0, ordered) : "must be a JSON object, as text";
	if (!fault)
		return json_keep(a, filter);
	*ret_fault = fault;
	json_decref(filter);
	return NULL;
}

const json_t *filter_parse(struct str text, struct arena *a, const char **ret_fault)
{
	return filter_read(text, false, a, ret_fault);
}

const json_t *filter_parse_ordered(struct str text, struct arena *a, const char **ret_fault)
{
	return filter_read(text, true, a, ret_fault);
}

static enum truth least(enum truth a, enum truth b)
{
	return a < b ? a : b;
}

static enum truth most(enum truth a, enum truth b)
{
	return a > b ? a : b;
}

static enum truth opposite(enum truth t)
{
	return t == TRUTH_MAYBE ? TRUTH_MAYBE : t == TRUTH_YES ? TRUTH_NO : TRUTH_YES;
}

static enum truth truth(bool yes)
{
	return yes ? TRUTH_YES : TRUTH_NO;
}

/* A fact that is known, against a value. A field that is absent equals null, and nothing else. */
static enum truth fact_is(struct filter_fact fact, const json_t *want)
{
	if (fact.kind == FACT_ABSENT)
		return truth(json_is_null(want));
	if (json_is_string(want))
		return truth(strcmp(fact.text, json_string_value(want)) == 0);
	return json_is_object(want) || json_is_array(want) ? TRUTH_MAYBE : TRUTH_NO;
}

static enum truth fact_among(struct filter_fact fact, const json_t *list)
{
	enum truth t = TRUTH_NO;
	for (size_t i = 0; i < json_array_size(list); i++)
		t = most(t, fact_is(fact, json_array_get(list, i)));
	return t;
}

static bool is_falsy(const json_t *value)
{
	return json_is_false(value) || json_is_null(value) || (json_is_number(value) && json_number_value(value) == 0);
}

/* Against a condition: a value, or operators. */
static enum truth fact_meets(struct filter_fact fact, const json_t *want)
{
	enum truth all = TRUTH_YES;
	const char *key;
	json_t *value;
	if (!json_is_object(want))
		return fact_is(fact, want);
	json_object_foreach((json_t *)(uintptr_t)want, key, value)
	{
		enum truth t = TRUTH_MAYBE;
		if (strcmp(key, "$eq") == 0)
			t = fact_is(fact, value);
		else if (strcmp(key, "$ne") == 0)
			t = opposite(fact_is(fact, value));
		else if (strcmp(key, "$in") == 0)
			t = fact_among(fact, value);
		else if (strcmp(key, "$nin") == 0)
			t = opposite(fact_among(fact, value));
		else if (strcmp(key, "$exists") == 0)
			t = truth(is_falsy(value) == (fact.kind == FACT_ABSENT));
		else if (strcmp(key, "$not") == 0)
			t = opposite(fact_meets(fact, value));
		all = least(all, t);
	}
	return all;
}

/* The record that is asked about, or the elements of one of its lists. */
struct asked {
	filter_facts *facts;
	const void *record;
	const char *list;
};

static enum truth takes(const json_t *filter, const struct asked *r);

static enum truth any_takes(const json_t *list, const struct asked *r)
{
	enum truth t = TRUTH_NO;
	for (size_t i = 0; i < json_array_size(list); i++)
		t = most(t, takes(json_array_get(list, i), r));
	return t;
}

static enum truth all_take(const json_t *list, const struct asked *r)
{
	enum truth t = TRUTH_YES;
	for (size_t i = 0; i < json_array_size(list); i++)
		t = least(t, takes(json_array_get(list, i), r));
	return t;
}

static enum truth list_meets(const char *list, const json_t *want, const struct asked *r)
{
	const json_t *element = json_object_get(want, "$elemMatch");
	struct asked inside = {r->facts, r->record, list};
	if (element)
		return least(takes(element, &inside), json_object_size(want) > 1 ? TRUTH_MAYBE : TRUTH_YES);
	return json_is_array(want) && json_array_size(want) == 0 ? TRUTH_NO : TRUTH_MAYBE;
}

static enum truth field_meets(const char *key, const json_t *want, const struct asked *r)
{
	if (strcmp(key, "$and") == 0)
		return all_take(want, r);
	if (strcmp(key, "$or") == 0)
		return any_takes(want, r);
	if (strcmp(key, "$nor") == 0)
		return opposite(any_takes(want, r));
	struct filter_fact fact = r->facts(r->record, r->list, key);
	if (fact.kind == FACT_UNKNOWN)
		return TRUTH_MAYBE;
	return fact.kind == FACT_LIST ? list_meets(key, want, r) : fact_meets(fact, want);
}

static enum truth takes(const json_t *filter, const struct asked *r)
{
	enum truth t = TRUTH_YES;
	const char *key;
	json_t *want;
	json_object_foreach((json_t *)(uintptr_t)filter, key, want)
	{
		t = least(t, field_meets(key, want, r));
	}
	return t;
}

enum truth filter_takes(const json_t *filter, filter_facts *facts, const void *record)
{
	return takes(filter, &(struct asked){.facts = facts, .record = record});
}
