/* ISO 8601 durations, in the order of their units: "P1Y2M3W4DT5H6M7S". */
#include "base/duration.h"

/* Milliseconds of a unit, and its place in the order that units have; 0: no unit. */
static int64_t unit_ms(char unit, bool time, int *ret_order)
{
	static const struct {
		char unit;
		bool time;
		int64_t ms;
	} units[] = {{'Y', false, 365 * INT64_C(86400000)},
	             {'M', false, 30 * INT64_C(86400000)},
	             {'W', false, 7 * INT64_C(86400000)},
	             {'D', false, 86400000},
	             {'H', true, 3600000},
	             {'M', true, 60000},
	             {'S', true, 1000}};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (units[i].unit == unit && units[i].time == time) {
			*ret_order = (int)i;
			return units[i].ms;
		}
	return 0;
}

bool duration_parse(struct str text, int64_t *ret_ms)
{
	const char *p = text.p, *end = text.p + text.n;
	int64_t sum = 0;
	int last = -1, order = 0;
	bool time = false, any = false;
	if (text.n < 3 || *p++ != 'P')
		return false;
	while (p < end) {
		if (*p == 'T' && !time) {
			time = true;
			any = false;
			p++;
			continue;
		}
		const char *digits = p;
		uint64_t n;
		while (p < end && *p >= '0' && *p <= '9')
			p++;
		int64_t ms = p < end ? unit_ms(*p, time, &order) : 0;
		/* Bounded before the product: P999999333Y was more than 64 bits. */
		if (!ms || order <= last ||
		    !str_to_u64((struct str){digits, (size_t)(p - digits)}, (uint64_t)(DURATION_MAX_MS / ms), &n))
			return false;
		sum += (int64_t)n * ms;
		if (sum > DURATION_MAX_MS)
			return false;
		last = order;
		any = true;
		p++;
	}
	if (!any || !sum)
		return false;
	*ret_ms = sum;
	return true;
}
