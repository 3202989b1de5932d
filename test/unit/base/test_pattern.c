/* Patterns of strangers: what they find, what they refuse, and that no expression takes longer than its length
 * times that of the text. */
#include "base/pattern.h"
#include "check.h"

static bool found(struct arena *a, const char *pattern, const char *text)
{
	const struct pattern *p;
	const char *why;
	return pattern_parse(str_of(pattern), a, &p, &why) == 0 && pattern_found(p, str_of(text));
}

static bool whole(struct arena *a, const char *pattern, const char *text)
{
	const struct pattern *p;
	const char *why;
	return pattern_parse(str_of(pattern), a, &p, &why) == 0 && pattern_is(p, str_of(text));
}

static bool refused(struct arena *a, const char *pattern)
{
	const struct pattern *p;
	const char *why = NULL;
	return pattern_parse(str_of(pattern), a, &p, &why) < 0 && why;
}

static void test_found(struct arena *a)
{
	CHECK(found(a, "b", "abc") && found(a, "^a", "abc") && !found(a, "^b", "abc"));
	CHECK(found(a, "c$", "abc") && !found(a, "b$", "abc") && found(a, "^$", "") && !found(a, "^$", "a"));
	CHECK(found(a, "", "") && found(a, "", "x") && found(a, "x|", "y"));
	CHECK(found(a, "a.c", "xabcx") && !found(a, "a.c", "ac") &&
	      found(a, "a.c",
	            "a\xc3\xa9"
	            "c"));
	CHECK(found(a, "[^/]+/", "ab/") && !found(a, "^[^/]+$", "a/b"));
}

static void test_whole(struct arena *a)
{
	CHECK(whole(a, "a|ab", "ab") && whole(a, "(a|b)*c", "ababc") && !whole(a, "(a|b)*c", "abac "));
	CHECK(whole(a, "[a-c]{2,3}", "abc") && whole(a, "[a-c]{2,3}", "ab") && !whole(a, "[a-c]{2,3}", "a"));
	CHECK(!whole(a, "[a-c]{2,3}", "abca") && whole(a, "a{2}", "aa") && whole(a, "a{2,}", "aaaa"));
	CHECK(whole(a, "\\d+\\w\\s", "12_ ") && !whole(a, "\\D", "1") && whole(a, "\\D", "x") && whole(a, "\\.", "."));
	CHECK(whole(a, "a?", "") && whole(a, "a+", "aaa") && !whole(a, "a+", "") && whole(a, "(?:ab)+", "abab"));
	CHECK(whole(a, "[]a]", "]") && whole(a, "[a-]", "-") && whole(a, "[\\d]", "7") &&
	      whole(a, "\xc3\xa9*", "\xc3\xa9\xc3\xa9"));
	CHECK(whole(a, "(a*)*", "aaaa") && whole(a, "(a*)+b", "aab") && whole(a, "(|a)+", "a"));
}

static void test_refused(struct arena *a)
{
	static const char *const wrong[] = {"(",
	                                    ")",
	                                    "[",
	                                    "[a",
	                                    "*",
	                                    "a{",
	                                    "a{2",
	                                    "a{3,2}",
	                                    "a{0}",
	                                    "a{256}",
	                                    "\\",
	                                    "\\1",
	                                    "\\b",
	                                    "(?=a)",
	                                    "[b-a]",
	                                    "+a",
	                                    "a|*",
	                                    "[\xc3\xa9]",
	                                    "(?<n>a)",
	                                    "a{,2}",
	                                    "(a{1,255}){1,255}",
	                                    "((((((((((((((((((((((((((((((((((a))))"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK(refused(a, wrong[i]));
	char longer[PATTERN_BYTES + 2];
	memset(longer, 'a', sizeof longer);
	longer[sizeof longer - 1] = 0;
	CHECK(refused(a, longer));
}

/* What takes others years. */
static void test_long(struct arena *a)
{
	char text[5001];
	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = 0;
	CHECK(!whole(a, "(a|a)*b", text) && !whole(a, "(a*)*b", text) && !whole(a, "(a?){200}b", text));
	CHECK(!found(a, "(x+x+)+y", text));
}

static void test_ends(struct arena *a)
{
	const struct pattern *p;
	const char *why;
	bool ends[6];
	CHECK(pattern_parse(STR("a(bc)?d?"), a, &p, &why) == 0);
	pattern_ends(p, STR("abcde"), ends);
	CHECK(!ends[0] && ends[1] && !ends[2] && ends[3] && ends[4] && !ends[5]);
}

int main(void)
{
	struct arena *a = arena_new();
	test_found(a);
	test_whole(a);
	test_refused(a);
	test_long(a);
	test_ends(a);
	arena_free(a);
	return CHECK_DONE();
}
