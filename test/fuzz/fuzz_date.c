/* ISO 8601: what is accepted, written and read again is the same second, and what we write has one form only. A duration
 * is longer than nothing, and bounded. */
#include "fuzz.h"

#include "base/clock.h"
#include "base/duration.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static bool is_canonical(const char *z)
{
	static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
	for (size_t i = 0; i < sizeof form; i++)
		if (form[i] == 'd' ? z[i] < '0' || z[i] > '9' : z[i] != form[i])
			return false;
	return true;
}

static int64_t whole_second(int64_t ms)
{
	int64_t rest = ms % 1000;
	return ms - (rest < 0 ? rest + 1000 : rest);
}

static void round_trip(int64_t ms)
{
	char text[CLOCK_TEXT], again[CLOCK_TEXT];
	int64_t back;
	clock_format(ms, text);
	HOLDS(is_canonical(text));
	HOLDS(clock_parse(str_of(text), &back));
	HOLDS(back == whole_second(ms));
	clock_format(back, again);
	HOLDS(strcmp(text, again) == 0);
}

/* Any time from the year 0 to 9999, from eight bytes. */
static void any_time(struct str in)
{
	const int64_t first = -62167219200000, last = 253402300799999;
	uint64_t n = 0;
	for (int i = 0; i < 8; i++)
		n = n << 8 | fuzz_byte(&in);
	round_trip(first + (int64_t)(n % (uint64_t)(last - first + 1)));
}

/* The zone only moves the time: "...+hh:mm" is that much before "...Z". */
static void zone_moves(struct str text, int64_t ms)
{
	char moved[96];
	int64_t there;
	if (text.n > 48 || (text.p[text.n - 1] != 'Z' && text.p[text.n - 1] != 'z'))
		return;
	int n = snprintf(moved, sizeof moved, "%.*s+01:30", (int)text.n - 1, text.p);
	if (clock_parse((struct str){moved, (size_t)n}, &there))
		HOLDS(there == ms - 90 * 60000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	int64_t ms = 0x5eed, length = 0x5eed;
	HOLDS(duration_parse(in, &length) ? length > 0 && length <= DURATION_MAX_MS : length == 0x5eed);
	if (clock_parse(in, &ms)) {
		HOLDS(in.n >= 7 && in.n <= 64);
		round_trip(ms);
		zone_moves(in, ms);
	} else {
		HOLDS(ms == 0x5eed);
	}
	any_time(in);
	return 0;
}
