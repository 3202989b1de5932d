/* Moments: a time, or how long ago in one number and its unit. Nothing else is guessed at: a restore to a moment that
 * was understood wrongly would be worse than a refusal. */
#include "cli/moment.h"

#include "base/clock.h"
#include "base/option.h"

#define COUNT_MAX 100000

static const struct {
	const char *names;
	int64_t ms;
} units[] = {
        {"s|sec|second|seconds", 1000},
        {"m|min|minute|minutes", 60000},
        {"h|hour|hours", 3600000},
        {"d|day|days", 86400000},
};

static bool ago_parse(struct str text, int64_t now_ms, int64_t *ret_ms)
{
	struct str number = {text.p, 0}, unit;
	uint64_t count;
	if (str_ends(text, STR(" ago")))
		text = str_trim((struct str){text.p, text.n - 4});
	while (number.n < text.n && text.p[number.n] >= '0' && text.p[number.n] <= '9')
		number.n++;
	unit = str_trim((struct str){text.p + number.n, text.n - number.n});
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (unit.n && str_is_one_of(units[i].names, unit) && str_to_u64(number, COUNT_MAX, &count)) {
			*ret_ms = now_ms - (int64_t)count * units[i].ms;
			return true;
		}
	return false;
}

int moment_parse(const char *option, const char *text, int64_t now_ms, int64_t *ret_ms)
{
	struct str given = str_trim(str_of(text));
	if (str_is(given, "now")) {
		*ret_ms = now_ms;
		return 0;
	}
	if (ago_parse(given, now_ms, ret_ms) || clock_parse(given, ret_ms))
		return 0;
	return option_refuse(
	        "--%s: \"%s\" is neither a time, as 2026-11-16T03:00:00Z, nor how long ago, as 90s, 15m, 2h, "
	        "3d or \"10 minutes ago\"",
	        option, text);
}
