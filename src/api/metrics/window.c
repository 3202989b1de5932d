/* The time that measurements are asked of: granularity, and period or start and end. */
#include "api/metrics/window.h"

#include "api/kit/verbs.h"
#include "api/metrics/metrics.h"
#include "base/clock.h"
#include "base/duration.h"

#include <errno.h>

static const struct {
	const char *name;
	enum series_level level;
} granularities[] = {{"PT1M", SERIES_1M}, {"PT5M", SERIES_5M}, {"PT1H", SERIES_1H}, {"P1D", SERIES_1D}};
#define GRANULARITIES (sizeof granularities / sizeof *granularities)

static int level_read(struct call *c, enum series_level *ret_level)
{
	struct str given = call_query(c, "granularity");
	for (size_t i = 0; i < GRANULARITIES; i++)
		if (str_is(given, granularities[i].name)) {
			*ret_level = granularities[i].level;
			return 0;
		}
	return call_fail_fault(c, STR("granularity"), "must be one of PT1M, PT5M, PT1H, P1D");
}

/* The time alone. */
static int ends_read(struct call *c, struct str period, struct window *w)
{
	struct str start = call_query(c, "start"), end = call_query(c, "end");
	int64_t length;
	if (period.n ? start.n || end.n : !start.n || !end.n)
		return call_fail_fault(c, STR("period"), "give either period, or both start and end");
	if (period.n) {
		if (!duration_parse(period, &length))
			return call_fail_fault(
			        c, STR("period"),
			        "must be an ISO 8601 duration of at most ten years, such as PT6H or P1D");
		/* Whole seconds, as the answer shows them: its start and end ask for the same again. */
		w->end_ms = clock_now_ms() / 1000 * 1000;
		w->start_ms = w->end_ms - length;
	} else if (!clock_parse(start, &w->start_ms) || !clock_parse(end, &w->end_ms) || w->start_ms >= w->end_ms) {
		return call_fail_fault(c, STR("start"), "must be before end");
	}
	return 0;
}

int window_read(struct call *c, struct window *ret_window)
{
	struct window w;
	int result = level_read(c, &w.level);
	if (result == 0)
		result = ends_read(c, call_query(c, "period"), &w);
	if (result == 0)
		*ret_window = w;
	return result;
}

int window_read_open(struct call *c, struct window *ret_window)
{
	struct str period = call_query(c, "period");
	struct window w;
	if (!period.n && !call_query(c, "start").n && !call_query(c, "end").n)
		period = STR("PT1H");
	int result = ends_read(c, period, &w);
	if (result < 0)
		return result;
	w.level = measured_level(c->service, w.start_ms, w.end_ms);
	*ret_window = w;
	return 0;
}

void window_write(struct buf *b, const struct window *w)
{
	json_pair_time(b, "end", w->end_ms);
	json_key(b, "granularity");
	for (size_t i = 0; i < GRANULARITIES; i++)
		if (granularities[i].level == w->level)
			json_z(b, granularities[i].name);
	json_pair_time(b, "start", w->start_ms);
}

void window_answer(struct call *c, struct buf *b)
{
	struct str query = c->request->query, path = link_href(c, c->op, NULL, STR_NONE);
	json_key(b, "links");
	json_open(b, '[');
	json_open(b, '{');
	json_pair_str(b, "href",
	              arena_printf(c->arena, "%.*s%s%.*s", STR_ARG(path), query.n ? "?" : "", STR_ARG(query)));
	json_pair_z(b, "rel", "self");
	json_close(b, '}');
	json_close(b, ']');
	json_close(b, '}');
	buf_str(&c->out, buf_view(b));
	buf_free(b);
}
