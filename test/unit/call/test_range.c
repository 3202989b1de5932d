/* Which bytes a Range header asks for. Links with call/range.c. */
#include "call/range.h"

#include "check.h"

struct expected {
	const char *header;
	uint64_t size;
	enum range_kind kind;
	uint64_t first, last;
};

static const struct expected rows[] = {
        {"bytes=0-", 10, RANGE_PART, 0, 9},
        {"bytes=3-", 10, RANGE_PART, 3, 9},
        {"bytes=3-4", 10, RANGE_PART, 3, 4},
        {"bytes=9-9", 10, RANGE_PART, 9, 9},
        {"bytes=3-99", 10, RANGE_PART, 3, 9},
        {"bytes=3-99999999999999999999999999999", 10, RANGE_PART, 3, 9},
        {"bytes=-4", 10, RANGE_PART, 6, 9},
        {"bytes=-99", 10, RANGE_PART, 0, 9},
        {"Bytes = 3-4", 10, RANGE_PART, 3, 4},
        {"bytes=10-", 10, RANGE_OUTSIDE},
        {"bytes=99999999999999999999999999999-", 10, RANGE_OUTSIDE},
        {"bytes=18446744073709551615-", 10, RANGE_OUTSIDE},
        {"bytes=18446744073709551616-18446744073709551617", 10, RANGE_OUTSIDE},
        {"bytes=-0", 10, RANGE_OUTSIDE},
        {"bytes=0-", 0, RANGE_OUTSIDE},
        {"bytes=-1", 0, RANGE_OUTSIDE},
        {"", 10, RANGE_ALL},
        {"bytes", 10, RANGE_ALL},
        {"bytes=", 10, RANGE_ALL},
        {"bytes=-", 10, RANGE_ALL},
        {"bytes=3", 10, RANGE_ALL},
        {"bytes=4-3", 10, RANGE_ALL},
        {"bytes=3-4,6-7", 10, RANGE_ALL},
        {"bytes=+3-4", 10, RANGE_ALL},
        {"bytes=0x3-4", 10, RANGE_ALL},
        {"bytes=3 - 4", 10, RANGE_ALL},
        {"lines=3-4", 10, RANGE_ALL},
};

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t first = 0, last = 0;
		enum range_kind kind = range_parse(str_of(rows[i].header), rows[i].size, &first, &last);
		CHECK(kind == rows[i].kind && first == rows[i].first && last == rows[i].last);
	}
	CHECK(range_is_of(STR_NONE, STR("\"a\"")) && range_is_of(STR(" \"a\" "), STR("\"a\"")));
	CHECK(!range_is_of(STR("W/\"a\""), STR("\"a\"")) && !range_is_of(STR("\"b\""), STR("\"a\"")));
	CHECK(!range_is_of(STR(""), STR("\"a\"")) && !range_is_of(STR("Wed, 18 Nov 2026 06:00:00 GMT"), STR("\"a\"")));
	return CHECK_DONE();
}
