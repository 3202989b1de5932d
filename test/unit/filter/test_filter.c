/* Filters: what they may be, and what they take of a record that is known in part. */
#include "filter/filter.h"

#include "base/json.h"
#include "check.h"

static struct arena *arena;

/* A record {"name": "ann", "gone": absent, "tags": [{"key": "k", ...}], ...}. */
static struct filter_fact fact_of(const void *record, const char *list, const char *field)
{
	if (list)
		return strcmp(list, "tags") == 0 && strcmp(field, "key") == 0
		               ? (struct filter_fact){FACT_TEXT, "k"}
		               : (struct filter_fact){FACT_UNKNOWN, NULL};
	if (strcmp(field, "name") == 0)
		return (struct filter_fact){FACT_TEXT, record};
	if (strcmp(field, "gone") == 0)
		return (struct filter_fact){FACT_ABSENT, NULL};
	return (struct filter_fact){strcmp(field, "tags") == 0 ? FACT_LIST : FACT_UNKNOWN, NULL};
}

static bool is(const char *text, enum truth expected)
{
	const char *fault = NULL;
	const json_t *filter = filter_parse(str_of(text), arena, &fault);
	enum truth have = filter ? filter_takes(filter, fact_of, "ann") : TRUTH_NO;
	if (filter && have == expected)
		return true;
	fprintf(stderr, "%s: %s, %d instead of %d\n", text, fault ? fault : "a filter", (int)have, (int)expected);
	return false;
}

static void test_values(void)
{
	CHECK(is("", TRUTH_YES) && is("{}", TRUTH_YES));
	CHECK(is("{\"name\": \"ann\"}", TRUTH_YES) && is("{\"name\": \"bob\"}", TRUTH_NO));
	CHECK(is("{\"name\": 1}", TRUTH_NO) && is("{\"name\": [\"ann\"]}", TRUTH_MAYBE));
	CHECK(is("{\"other\": 1}", TRUTH_MAYBE) && is("{\"other\": 1, \"name\": \"bob\"}", TRUTH_NO));
	CHECK(is("{\"gone\": null}", TRUTH_YES) && is("{\"gone\": \"x\"}", TRUTH_NO));
}

static void test_operators(void)
{
	CHECK(is("{\"name\": {\"$in\": [1, \"ann\"]}}", TRUTH_YES) &&
	      is("{\"name\": {\"$nin\": [\"ann\"]}}", TRUTH_NO));
	CHECK(is("{\"name\": {\"$ne\": \"bob\", \"$eq\": \"ann\"}}", TRUTH_YES));
	CHECK(is("{\"name\": {\"$not\": {\"$eq\": \"ann\"}}}", TRUTH_NO));
	CHECK(is("{\"name\": {\"$exists\": 1}}", TRUTH_YES) && is("{\"name\": {\"$exists\": 0}}", TRUTH_NO));
	CHECK(is("{\"gone\": {\"$exists\": true}}", TRUTH_NO) && is("{\"gone\": {\"$exists\": null}}", TRUTH_YES));
	CHECK(is("{\"gone\": {\"$in\": [\"x\", null]}}", TRUTH_YES) &&
	      is("{\"gone\": {\"$nin\": [\"x\"]}}", TRUTH_YES));
	CHECK(is("{\"other\": {\"$ne\": 1}}", TRUTH_MAYBE));
}

static void test_together(void)
{
	CHECK(is("{\"$or\": [{\"name\": \"bob\"}, {\"other\": 1}]}", TRUTH_MAYBE));
	CHECK(is("{\"$or\": [{\"name\": \"ann\"}, {\"other\": 1}]}", TRUTH_YES));
	CHECK(is("{\"$and\": [{\"name\": \"ann\"}, {\"other\": 1}]}", TRUTH_MAYBE));
	CHECK(is("{\"$nor\": [{\"name\": \"bob\"}]}", TRUTH_YES) && is("{\"$or\": []}", TRUTH_NO));
}

static void test_lists(void)
{
	CHECK(is("{\"tags\": []}", TRUTH_NO) && is("{\"tags\": [1]}", TRUTH_MAYBE));
	CHECK(is("{\"tags\": {\"$elemMatch\": {\"key\": \"k\"}}}", TRUTH_YES));
	CHECK(is("{\"tags\": {\"$elemMatch\": {\"key\": \"x\"}}}", TRUTH_NO));
	CHECK(is("{\"tags\": {\"$elemMatch\": {\"key\": \"k\", \"value\": 1}}}", TRUTH_MAYBE));
	CHECK(is("{\"tags\": {\"$elemMatch\": {\"$or\": [{\"key\": \"x\"}, {\"key\": \"k\"}]}}}", TRUTH_YES));
	/* Not the record's own field of that name. */
	CHECK(is("{\"tags\": {\"$elemMatch\": {\"name\": \"bob\"}}}", TRUTH_MAYBE));
}

static void test_relaxed(void)
{
	CHECK(is("{'name': 'ann'}", TRUTH_YES) && is("{name: \"bob\"}", TRUTH_NO) &&
	      is("{name : {$in: ['x', 'ann']}}", TRUTH_YES));
	CHECK(is("{'name': 'o\\'neill'}", TRUTH_NO) && is("{gone: {$exists: true}}", TRUTH_NO));
	/* A colon in a text makes no key, and a text's own quotes stay. */
	CHECK(is("{name: {$ne: 'a: \"b\"'}}", TRUTH_YES));
}

static void test_faults(void)
{
	static const char *const bad[] = {"{",
	                                  "[]",
	                                  "1",
	                                  "{\"$where\": 1}",
	                                  "{\"a\": {\"$regex\": \"x\"}}",
	                                  "{\"$and\": {}}",
	                                  "{\"$or\": [[]]}",
	                                  "{\"a\": {\"$in\": {}}}",
	                                  "{\"a\": {\"$not\": 1}}",
	                                  "{\"a\": 1, \"a\": 2}"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const char *fault = NULL;
		CHECK(!filter_parse(str_of(bad[i]), arena, &fault) && fault);
	}
}

/* Who compiles a filter has four operators more, and the same faults. */
static void test_ordered(void)
{
	static const char text[] =
	        "{\"a\": {\"$gt\": 1, \"$lte\": 2}, \"$or\": [{\"b\": {\"$gte\": \"x\", \"$lt\": \"y\"}}]}";
	const char *fault = NULL;
	CHECK(!filter_parse(str_of(text), arena, &fault) && fault);
	fault = NULL;
	CHECK(filter_parse_ordered(str_of(text), arena, &fault) && !fault);
	CHECK(!filter_parse_ordered(STR("{\"a\": {\"$gtx\": 1}}"), arena, &fault) && fault);
	CHECK(!filter_parse_ordered(STR("{\"$or\": {\"$gt\": 1}}"), arena, &fault));
}

int main(void)
{
	arena = arena_new();
	test_values();
	test_operators();
	test_together();
	test_lists();
	test_relaxed();
	test_faults();
	test_ordered();
	arena_free(arena);
	return CHECK_DONE();
}
