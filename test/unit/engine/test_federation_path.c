/* Paths of federated sources: what they take, which columns they give, and what is no path; and when periods begin. */
#include "base/clock.h"
#include "check.h"
#include "engine/federation.h"
#include "engine/federation_path.h"

static struct federation_path parsed(struct arena *a, const char *text)
{
	struct federation_path p = {.count = 0};
	const char *why = "";
	CHECK(federation_path_parse(str_of(text), a, &p, &why) == 0);
	return p;
}

static bool takes(struct arena *a, const char *path, const char *name)
{
	struct str values[PATH_PARTS];
	struct federation_path p = parsed(a, path);
	return federation_path_match(&p, str_of(name), a, values);
}

/* The value of the attribute of that name. */
static struct str value(struct arena *a, const char *path, const char *name, const char *attribute)
{
	struct str values[PATH_PARTS];
	struct federation_path p = parsed(a, path);
	if (!federation_path_match(&p, str_of(name), a, values))
		return STR("(none)");
	for (size_t i = 0; i < p.count; i++)
		if (str_is(p.parts[i].name, attribute))
			return values[i];
	return STR("(no such)");
}

static bool refused(struct arena *a, const char *text)
{
	struct federation_path p;
	const char *why = NULL;
	return federation_path_parse(str_of(text), a, &p, &why) < 0 && why;
}

static void test_text(struct arena *a)
{
	CHECK(takes(a, "/a/b.csv", "a/b.csv") && !takes(a, "/a/b.csv", "a/b.csv2") && !takes(a, "/a/b.csv", "a/b"));
	CHECK(takes(a, "a/*", "a/b") && !takes(a, "a/*", "a/b/c") && takes(a, "a/**", "a/b/c") && takes(a, "", "x/y"));
	CHECK(takes(a, "a/", "a/b/c") && !takes(a, "a/", "b/c") && takes(a, "*.csv", "x.csv") &&
	      !takes(a, "*.csv", "y/x.csv"));
	CHECK(takes(a, "**/x*.csv", "a/b/xy.csv") && takes(a, "\\*\\{", "*{") && !takes(a, "\\*", "a"));
	struct federation_path p = parsed(a, "/a/b{n int}.csv");
	CHECK(str_is(federation_path_prefix(&p, a), "a/b"));
	p = parsed(a, "*/x");
	CHECK(str_is(federation_path_prefix(&p, a), ""));
}

static void test_values(struct arena *a)
{
	const char *path = "/sales/{year int}/{month int:[0-9]{2}}/{who string}-*.parquet";
	CHECK(str_is(value(a, path, "sales/2026/07/ann-1.parquet", "year"), "2026"));
	CHECK(str_is(value(a, path, "sales/2026/07/ann-x-1.parquet", "who"), "ann"));
	CHECK(!takes(a, path, "sales/2026/7/ann-1.parquet") && !takes(a, path, "sales/x/07/ann-1.parquet"));
	CHECK(str_is(value(a, "{d date}", "2024-02-29", "d"), "2024-02-29") && !takes(a, "{d date}", "2023-02-29"));
	CHECK(takes(a, "{d isodate}.csv", "2024-02-29T10:00:00Z.csv") &&
	      !takes(a, "{d isodate}.csv", "2024-02-29T.csv"));
	CHECK(takes(a, "{o objectid}", "0123456789abcdef01234567") &&
	      !takes(a, "{o objectid}", "0123456789abcdef0123456x"));
	CHECK(takes(a, "{u uuid}", "01234567-89ab-cdef-0123-456789abcdef") &&
	      !takes(a, "{u uuid}", "0123456789abcdef0123456789abcdef"));
	CHECK(str_is(value(a, "{min(at) epoch_secs}_{max(at) epoch_millis}", "10_2000", "at"), "10"));
	CHECK(str_is(value(a, "{a string}{b int}", "x12", "a"), "x") &&
	      str_is(value(a, "{a string}{b int}", "x12", "b"), "12"));
	struct federation_path p = parsed(a, "/{collectionName()}/*");
	CHECK(p.has_table && takes(a, "/{collectionName()}/*", "orders/1") && !takes(a, "/{collectionName()}/*", "/1"));
}

static void test_refused(struct arena *a)
{
	static const char *const wrong[] = {"{",
	                                    "}",
	                                    "{a}",
	                                    "{a decimal}",
	                                    "{ int}",
	                                    "{a int:}",
	                                    "{a int:[}",
	                                    "{a b int}",
	                                    "{a int}{a int}",
	                                    "***",
	                                    "a\\",
	                                    "{a-b int}",
	                                    "{collectionName()}/{collectionName()}",
	                                    "a\nb"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK(refused(a, wrong[i]));
}

/* A path that others would try for ever. */
static void test_long(struct arena *a)
{
	char name[1001], path[129];
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = 0;
	for (size_t i = 0; i + 2 < sizeof path; i += 2)
		memcpy(path + i, "*a", 2);
	memcpy(path + sizeof path - 3, "b", 2);
	struct federation_path p;
	const char *why;
	struct str values[PATH_PARTS];
	path[122] = 'b';
	path[123] = 0;
	CHECK(federation_path_parse(str_of(path), a, &p, &why) < 0 ||
	      !federation_path_match(&p, str_of(name), a, values));
	CHECK(!takes(a, "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
	CHECK(!takes(a, "{s string:(a|aa)+}{t string:(a*)*}b", name));
}

static int64_t begins(enum federation_span span, const char *moment)
{
	int64_t ms = 0;
	CHECK(clock_parse(str_of(moment), &ms));
	return federation_span_begin(span, ms);
}

static bool is_begun(enum federation_span span, const char *moment, const char *begin)
{
	int64_t ms = 0;
	return clock_parse(str_of(begin), &ms) && begins(span, moment) == ms;
}

static void test_spans(void)
{
	CHECK(is_begun(SPAN_DAY, "2026-11-19T10:00:00Z", "2026-11-19") &&
	      is_begun(SPAN_DAY, "2026-11-19", "2026-11-19"));
	CHECK(is_begun(SPAN_WEEK, "2026-11-19T10:00:00Z", "2026-11-16") &&
	      is_begun(SPAN_WEEK, "2026-11-16", "2026-11-16"));
	CHECK(is_begun(SPAN_WEEK, "2026-11-15T23:59:59Z", "2026-11-09") &&
	      is_begun(SPAN_MONTH, "2026-11-19T10:00:00Z", "2026-11-01"));
	CHECK(is_begun(SPAN_MONTH, "2026-02-01", "2026-02-01") && is_begun(SPAN_QUERY, "2026-02-28", "2026-02-01"));
}

int main(void)
{
	struct arena *a = arena_new();
	test_text(a);
	test_values(a);
	test_refused(a);
	test_long(a);
	test_spans();
	arena_free(a);
	return CHECK_DONE();
}
