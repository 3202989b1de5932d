/* Comparing without case, hexadecimal, lists in a text, and copies with a bound. */
#include "base/str.h"

#include "base/id.h"
#include "check.h"

#include <ctype.h>

static void test_list(void)
{
	CHECK(str_list_has(STR("a,b"), STR("b")) && str_list_has(STR("a , b"), STR("a")));
	CHECK(str_list_has(STR("a"), STR("a")) && str_list_has(STR("a,,b"), STR("b")));
	CHECK(!str_list_has(STR("ab,c"), STR("a")) && !str_list_has(STR("a,b"), STR("a,b")));
	CHECK(!str_list_has(STR_NONE, STR("a")) && !str_list_has(STR(""), STR("")));
}

static void test_copy(void)
{
	char text[4] = "xyz";
	str_copy(STR("ab"), text, sizeof text);
	CHECK(str_is(STR("ab"), text));
	str_copy(STR("abcdef"), text, sizeof text);
	CHECK(str_is(STR("abc"), text));
	str_copy(STR_NONE, text, sizeof text);
	CHECK(!text[0]);
	/* Only what the text has, whatever follows it. */
	str_copy((struct str){"ab", 1}, text, sizeof text);
	CHECK(str_is(STR("a"), text));
}

static void test_ieq(void)
{
	CHECK(str_ieq(STR("Digest"), STR("dIGEST")) && !str_ieq(STR("Digest"), STR("Digest ")));
	CHECK(!str_ieq(STR("digest"), STR("digesu")) && str_ieq(STR(""), STR_NONE) && str_ieq(STR_NONE, STR_NONE));
	/* Only letters have a case: '[' and '{' differ by the same bit. */
	for (int a = 0; a < 256; a++)
		for (int b = 0; b < 256; b++) {
			char x = (char)a, y = (char)b;
			bool same = a == b || (a < 128 && b < 128 && tolower(a) == tolower(b));
			CHECK(str_ieq((struct str){&x, 1}, (struct str){&y, 1}) == same);
		}
}

static void test_hex(void)
{
	unsigned char raw[256];
	char text[2 * sizeof raw + 2], want[3];
	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (unsigned char)(i * 7);
	for (size_t n = 0; n <= sizeof raw; n++) {
		memset(text, '#', sizeof text);
		hex_encode(raw, n, text);
		CHECK(text[2 * n] == '\0' && text[2 * n + 1] == '#');
		bool same = true;
		for (size_t i = 0; i < n; i++) {
			snprintf(want, sizeof want, "%02x", (unsigned)raw[i]);
			same &= memcmp(text + 2 * i, want, 2) == 0;
		}
		CHECK(same);
	}
}

/* A text that is not there is an empty one, and no pointer to compare by. */
static void test_none(void)
{
	CHECK(str_starts(STR_NONE, STR_NONE) && str_starts(STR("a"), STR_NONE) && !str_starts(STR_NONE, STR("a")));
	CHECK(str_ends(STR_NONE, STR_NONE) && str_ends(STR("a"), STR_NONE) && !str_ends(STR_NONE, STR("a")));
}

int main(void)
{
	test_list();
	test_none();
	test_copy();
	test_ieq();
	test_hex();
	return CHECK_DONE();
}
