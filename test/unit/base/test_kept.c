/* Kept texts: what is found, what is not, and who makes room for whom. */
#include "check.h"

#include "base/arena.h"
#include "base/kept.h"

#include <stdio.h>

#define ROOM ((size_t)65536)
#define TEXT 1000

static struct str number_name(char buf[32], unsigned owner, unsigned i)
{
	return (struct str){buf, (size_t)snprintf(buf, 32, "%u/%u", owner, i)};
}

static void put(struct kept *k, unsigned owner, unsigned i)
{
	static char text[TEXT];
	char name[32];
	memset(text, 'a' + (int)(i % 26), sizeof text);
	kept_put(k, owner, number_name(name, owner, i), STR("s"), (struct str){text, sizeof text});
}

static bool has(struct kept *k, unsigned owner, unsigned i)
{
	char name[32];
	struct str text;
	if (!kept_get(k, number_name(name, owner, i), STR("s"), &text))
		return false;
	CHECK(text.n == TEXT && text.p[0] == (char)('a' + i % 26) && text.p[TEXT - 1] == text.p[0]);
	return true;
}

static void test_source(void)
{
	struct kept *k = kept_new(ROOM);
	struct str text;
	CHECK(!kept_get(k, STR("n"), STR("1"), &text));
	kept_put(k, 1, STR("n"), STR("1"), STR("one"));
	CHECK(kept_get(k, STR("n"), STR("1"), &text) && str_is(text, "one"));
	CHECK(!kept_get(k, STR("n"), STR("2"), &text) && !kept_get(k, STR("n1"), STR(""), &text));
	CHECK(!kept_get(k, STR("n"), STR(""), &text) && !kept_get(k, STR("n"), STR("1o"), &text));
	/* The later one takes its place: what was made from the first is not found again. */
	size_t before = kept_bytes(k);
	kept_put(k, 2, STR("n"), STR("2"), STR("two"));
	CHECK(kept_bytes(k) == before && !kept_get(k, STR("n"), STR("1"), &text));
	CHECK(kept_get(k, STR("n"), STR("2"), &text) && str_is(text, "two"));
	kept_put(k, 2, STR("empty"), STR_NONE, STR_NONE);
	CHECK(kept_get(k, STR("empty"), STR_NONE, &text) && text.n == 0);
	kept_free(k);
	kept_free(NULL);
}

static void test_bound(void)
{
	static const char large[ROOM / 8] = {0};
	struct kept *k = kept_new(ROOM);
	struct str text;
	for (unsigned i = 0; i < 5000; i++) {
		put(k, 1, i);
		CHECK(kept_bytes(k) <= ROOM && has(k, 1, i));
	}
	CHECK(kept_bytes(k) > ROOM / 2);
	kept_put(k, 1, STR("large"), STR("s"), (struct str){large, sizeof large});
	CHECK(!kept_get(k, STR("large"), STR("s"), &text));
	kept_free(k);
}

/* One that reads thousands leaves the few of another where they are, in a set and in all. */
static void test_owners(void)
{
	struct kept *k = kept_new(ROOM);
	unsigned left = 0;
	for (unsigned i = 0; i < 8; i++)
		put(k, 7, i);
	for (unsigned i = 0; i < 5000; i++)
		put(k, 1, i);
	for (unsigned i = 0; i < 8; i++)
		left += has(k, 7, i);
	CHECK(left == 8);
	kept_free(k);
}

int main(void)
{
	test_source();
	test_bound();
	test_owners();
	return CHECK_DONE();
}
