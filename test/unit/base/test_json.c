/* Reading, keeping, merging and writing of JSON; and that what cannot be read or written is counted. */
#include "check.h"
#include "quoted.h"

#include "base/clock.h"

#include <pthread.h>

static void test_text(struct arena *a)
{
	CHECK(str_is(json_text(a, quoted_json(a, "{'b': [1, true, null], 'a': {'x': 1.5}}")),
	             "{\"b\":[1,true,null],\"a\":{\"x\":1.5}}"));
	CHECK(str_is(json_text(a, quoted_json(a, "0.1")), "0.1"));
	CHECK(str_is(json_text(a, quoted_json(a, "'text'")), "\"text\""));
	/* Around the size that is written without another try. */
	for (size_t n = 2040; n <= 2056; n++) {
		char *p = arena_alloc(a, n);
		memset(p, 'x', n);
		json_t *long_one = json_keep(a, json_stringn(p, n));
		struct str text = json_text(a, long_one);
		CHECK(text.n == n + 2 && text.p[0] == '"' && text.p[n + 1] == '"' && memcmp(text.p + 1, p, n) == 0);
	}
}

static void test_field(struct arena *a)
{
	const json_t *o = quoted_json(a, "{'name': 'n', 'empty': '', 'number': 1}");
	CHECK(str_is(json_field(o, "name"), "n"));
	CHECK(json_field(o, "empty").p && json_field(o, "empty").n == 0);
	CHECK(!json_field(o, "number").p && !json_field(o, "absent").p && !json_field(NULL, "name").p);
	CHECK(!json_field(quoted_json(a, "['name']"), "name").p);
	CHECK(!json_field(quoted_json(a, "'name'"), "name").p);
}

static void test_list(struct arena *a)
{
	const json_t *texts = quoted_json(a, "['a', 1, 'b']"),
	             *list = quoted_json(a, "[{'k': 'a'}, {'k': 'b'}, {'k': 'b'}]");
	CHECK(str_is(json_item(texts, 2), "b") && !json_item(texts, 1).p && !json_item(texts, 3).p &&
	      !json_item(NULL, 0).p);
	CHECK(json_has(texts, STR("b")) && !json_has(texts, STR("c")) && !json_has(NULL, STR("b")));
	CHECK(json_find(list, "k", STR("b")) == json_array_get(list, 1));
	CHECK(!json_find(list, "k", STR("c")) && !json_find(list, "l", STR("b")) && !json_find(NULL, "k", STR("b")));
}

static void test_values(struct arena *a)
{
	json_t *o = quoted_json(a, "{'yes': true, 'no': false, 'text': 't', 'number': 7, 'real': 1.5}");
	CHECK(json_flag(o, "yes") && !json_flag(o, "no") && !json_flag(o, "text") && !json_flag(o, "absent"));
	CHECK(json_number(o, "number") == 7 && json_number(o, "real") == 0 && json_number(NULL, "number") == 0);
	CHECK(str_is(json_str_of(json_object_get(o, "text")), "t") && !json_str_of(json_object_get(o, "number")).p);
	CHECK(json_integer_value(json_default(o, "number", json_integer(8))) == 7);
	CHECK(json_is_array(json_default(o, "list", json_array())) && json_object_get(o, "list"));
	json_put_time(o, "time", 1000);
	CHECK(str_is(json_field(o, "time"), "1970-01-01T00:00:01Z"));
}

static void test_stored(struct arena *a)
{
	static const char *const broken[] = {"{", "{}}", "nope", "{\"a\":\"\xff\"}", " "};
	uint64_t before = json_corruptions();
	CHECK(is_json(a, doc_json(a, STR("{\"a\":1}")), "{'a': 1}"));
	/* A document without a secret half has an empty one. */
	CHECK(is_json(a, doc_json(a, STR("")), "{}") && is_json(a, doc_json(a, STR_NONE), "{}"));
	CHECK(json_corruptions() == before);
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		const json_t *instead = doc_json(a, str_of(broken[i]));
		CHECK(json_is_object(instead));
		CHECK(json_corruptions() == before + i + 1);
	}
}

static void test_put(struct arena *a)
{
	json_t *o = quoted_json(a, "{'kept': 1}"), *list = quoted_json(a, "[]");
	uint64_t before = json_corruptions();
	json_put(o, "kept", NULL);
	json_put(o, "number", json_integer(2));
	json_put_str(o, "part", (struct str){"text and more", 4});
	json_put_str(o, "none", STR_NONE);
	json_put_z(o, "number", "replaced");
	json_add_str(list, STR("one"));
	json_add_str(list, STR_NONE);
	CHECK(is_json(a, o, "{'kept': 1, 'number': 'replaced', 'part': 'text', 'none': ''}"));
	CHECK(is_json(a, list, "['one', '']"));
	CHECK(json_corruptions() == before);
}

static void test_put_fails(struct arena *a)
{
	json_t *o = quoted_json(a, "{'kept': 'k'}"), *list = quoted_json(a, "[]");
	uint64_t before = json_corruptions();
	json_put_str(o, "kept", STR("\xc3("));
	CHECK(json_corruptions() == before + 1);
	json_put(list, "field", json_integer(1)); /* of no object; the value is freed all the same */
	CHECK(json_corruptions() == before + 2);
	json_add_str(list, STR("\xff"));
	CHECK(json_corruptions() == before + 3);
	json_add_str(o, STR("to no list"));
	CHECK(json_corruptions() == before + 4);
	CHECK(is_json(a, o, "{'kept': 'k'}") && is_json(a, list, "[]"));
}

static void *corrupt_elsewhere(void *arg)
{
	uint64_t *ret = arg;
	struct arena *a = arena_new();
	ret[0] = json_corruptions();
	doc_json(a, STR("{"));
	ret[1] = json_corruptions();
	arena_free(a);
	return NULL;
}

/* What one call meets does not fail another's. */
static void test_counted_by_thread(void)
{
	uint64_t before = json_corruptions(), seen[2] = {0};
	pthread_t t;
	CHECK(before > 0);
	if (pthread_create(&t, NULL, corrupt_elsewhere, seen) != 0)
		exit(1);
	pthread_join(t, NULL);
	CHECK(seen[0] == 0 && seen[1] == 1 && json_corruptions() == before);
}

static void test_merge(struct arena *a)
{
	static const struct {
		const char *into, *from, *becomes;
	} cases[] = {
	        {"{'a': 1}", "{}", "{'a': 1}"},
	        {"{'a': 1}", "{'a': 2, 'b': 3}", "{'a': 2, 'b': 3}"},
	        {"{'a': 1, 'b': 2}", "{'a': null, 'absent': null}", "{'b': 2}"},
	        {"{'o': {'x': 1, 'y': 2}}", "{'o': {'y': 3, 'z': 4}}", "{'o': {'x': 1, 'y': 3, 'z': 4}}"},
	        {"{'o': {'p': {'x': 1, 'y': 2}}}", "{'o': {'p': {'x': null}}}", "{'o': {'p': {'y': 2}}}"},
	        {"{'l': [1, 2, 3]}", "{'l': [4]}", "{'l': [4]}"}, /* lists are not merged */
	        {"{'o': {'x': 1}}", "{'o': 5}", "{'o': 5}"},
	        {"{'o': 5}", "{'o': {'x': 1}}", "{'o': {'x': 1}}"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *into = quoted_json(a, cases[i].into), *from = quoted_json(a, cases[i].from);
		json_merge(into, from);
		CHECK(is_json(a, into, cases[i].becomes));
		CHECK(is_json(a, from, cases[i].from));
	}
}

static void test_copies(struct arena *a)
{
	json_t *first = quoted_json(a, "{'o': {'x': 1}}"), *second = json_clone(a, first);
	json_put(json_object_get(second, "o"), "x", json_integer(2));
	CHECK(is_json(a, first, "{'o': {'x': 1}}") && is_json(a, second, "{'o': {'x': 2}}"));
	/* A merge takes copies: what it came from may change, or go. */
	json_t *into = quoted_json(a, "{}");
	json_merge(into, first);
	json_put(json_object_get(first, "o"), "x", json_integer(3));
	CHECK(is_json(a, into, "{'o': {'x': 1}}"));
}

static void test_fields(struct arena *a)
{
	static const char *const names[] = {"x", "y"};
	json_t *to = quoted_json(a, "{'x': 0, 'z': 3}"), *from = quoted_json(a, "{'x': {'k': 1}, 'z': 4}");
	json_copy_fields(to, from, names, 2);
	CHECK(is_json(a, to, "{'x': {'k': 1}, 'z': 3}") && is_json(a, from, "{'x': {'k': 1}, 'z': 4}"));
	json_copy_fields(to, NULL, names, 2);
	CHECK(is_json(a, to, "{'x': {'k': 1}, 'z': 3}"));
}

static void test_times(struct arena *a)
{
	json_t *o = quoted_json(a, "{'text': 'soon', 'number': 0}");
	json_put_time(o, "past", clock_now_ms() - 2000);
	json_put_time(o, "future", clock_now_ms() + 60000);
	CHECK(json_time_is_over(o, "past") && !json_time_is_over(o, "future"));
	CHECK(!json_time_is_over(o, "absent") && !json_time_is_over(o, "text") && !json_time_is_over(o, "number"));
	CHECK(!json_time_is_over(NULL, "past"));
}

int main(void)
{
	struct arena *a = arena_new();
	json_setup();
	test_text(a);
	test_field(a);
	test_list(a);
	test_values(a);
	test_stored(a);
	test_put(a);
	test_put_fails(a);
	test_counted_by_thread();
	test_merge(a);
	test_copies(a);
	test_fields(a);
	test_times(a);
	arena_free(a);
	return CHECK_DONE();
}
