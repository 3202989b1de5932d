/* What calls to the advisor ask about, and what their answers share. */
#include "api/advisor/view.h"

#include "api/kit/verbs.h"
#include "base/clock.h"
#include "call/pool.h"

#include <errno.h>
#include <math.h>

#define DAY_MS 86400000LL
#define INQUIRIES_MAX 8 /* each has a connection, and keeps a server busy */

static struct pool inquiries = POOL(INQUIRIES_MAX, 0); /* places only: workers do the work */

int advice_enter(struct call *c)
{
	if (pool_enter(&inquiries, call_key(c)))
		return 0;
	return call_fail(c, 503, "SERVICE_BUSY", "Too many ask for advice at this moment. Try again in a few seconds.");
}

void advice_leave(struct call *c)
{
	pool_leave(&inquiries, call_key(c));
}

int advice_number(struct call *c, const char *name, int64_t otherwise, int64_t most, int64_t *ret_number)
{
	struct str text = call_query(c, name);
	uint64_t value;
	*ret_number = otherwise;
	if (!text.n)
		return 0;
	if (!str_to_u64(text, (uint64_t)most, &value))
		return call_fail_fault(c, str_of(name), "must be a whole number from 0 to %lld", (long long)most);
	*ret_number = (int64_t)value;
	return 0;
}

int advice_period(struct call *c, struct period *ret_period)
{
	int64_t now = clock_now_ms(), since, until, duration, most = INT64_C(1) << 52;
	int result = advice_number(c, "since", -1, most, &since);
	if (result == 0)
		result = advice_number(c, "until", -1, most, &until);
	if (result == 0)
		result = advice_number(c, "duration", -1, most, &duration);
	if (result < 0)
		return result;
	if (duration >= 0)
		until = since >= 0 ? since + duration : now + 1;
	until = until >= 0 ? until : now + 1;
	if (since < 0)
		since = until - (duration >= 0 ? duration : DAY_MS);
	if (since > until)
		return call_fail_fault(c, STR("since"), "must not be after until");
	*ret_period = (struct period){since, until};
	return 0;
}

size_t advice_list(struct call *c, const char *name, struct str **ret_list)
{
	struct str rest = call_query(c, name), one, *list = NULL;
	size_t count = 0, room = 0;
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, ',', &one, &rest);
		ARENA_FIT(c->arena, list, count, room);
		list[count++] = one;
	}
	*ret_list = list;
	return count;
}

struct engine_namespaces advice_namespaces(struct call *c)
{
	struct str *list;
	size_t count = advice_list(c, "namespaces", &list);
	return (struct engine_namespaces){list, count};
}

void advice_missing(struct call *c, const char *missing)
{
	if (missing)
		call_header(c, STR("x-steward-missing"), arena_dup(c->arena, str_of(missing)));
}

int advice_cluster(struct call *c, struct cluster *ret_cluster, struct cluster_status *ret_status)
{
	bool forwarded = false;
	int result = cluster_load(c, ret_cluster);
	if (result == 0)
		result = cluster_forward(c, ret_cluster, &forwarded);
	if (result < 0 || forwarded)
		return result < 0 ? result : 1;
	if (!c->service->engine_ops->advice)
		return cluster_not_offered(c);
	return cluster_observe(c, ret_cluster, ret_status);
}

int advice_fail(struct call *c, int result)
{
	if (result != -EAGAIN)
		return result;
	return call_fail_about(
	        c, 409, "CLUSTER_NOT_AVAILABLE", call_path(c, "clusterName"),
	        "The cluster's databases do not answer now: they are stopped, starting or too busy. Try again "
	        "once they run.");
}

void advice_put_real(struct buf *b, const char *field, double value)
{
	json_key(b, field);
	buf_printf(b, "%.6g", isfinite(value) ? value : 0);
}

void advice_answer(struct call *c, struct buf *content)
{
	struct str path = link_href(c, c->op, NULL, STR_NONE), query = c->request->query;
	struct buf *b = &c->out;
	json_open(b, '{');
	json_key(b, "content");
	json_raw(b, buf_view(content));
	buf_free(content);
	json_key(b, "links");
	json_open(b, '[');
	json_open(b, '{');
	json_pair_str(b, "href", query.n ? arena_printf(c->arena, "%.*s?%.*s", STR_ARG(path), STR_ARG(query)) : path);
	json_pair_str(b, "rel", STR("self"));
	json_close(b, '}');
	json_close(b, ']');
	json_pair_int(b, "status", 200);
	json_close(b, '}');
}
