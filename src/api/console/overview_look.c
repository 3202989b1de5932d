/* What is to be seen of the page's clusters: nodes and disks, also on other hosts, work that is under way, lags. */
#include "api/console/overview_rows.h"
#include "api/metrics/metrics.h"
#include "base/clock.h"
#include "catalog/formats.h"
#include "engine/measures.h"
#include "hosts/hosts.h"

#include <errno.h>
#include <math.h>

#define STUCK_MS 1800000 /* a change that takes longer is told of */
#define NEARLY_FULL 90   /* per cent */
#define LAG_NODES 600    /* of a page whose lag is read */

static void status_judge(const struct service *s, struct row *r)
{
	const struct cluster_status *seen = &r->status;
	bool primary = false, running = false;
	unsigned down = 0;
	for (size_t i = 0; i < seen->node_count; i++) {
		const struct node_status *n = &seen->nodes[i];
		primary |= n->primary && n->state == NODE_RUNNING;
		running |= n->kind != NODE_ROUTER;
		down += n->down || n->state == NODE_FAILED;
	}
	if (r->facts.paused || strcmp(r->facts.state, "DELETING") == 0 || strcmp(r->facts.state, "CREATING") == 0)
		return;
	if (running && !primary)
		need_add(r, NEED_NO_PRIMARY, STR_NONE, STR_NONE);
	else if (down)
		need_add(r, NEED_NODE_DOWN, STR_NONE, STR_NONE);
	if (seen->full != FULL_NOT)
		need_add(r, NEED_DISK_FULL, STR_NONE, STR_NONE);
	else if (seen->disk_limit && seen->disk_used >= seen->disk_limit / 100 * NEARLY_FULL)
		need_add(r, NEED_DISK_NEARLY_FULL, STR_NONE, STR_NONE);
	if (!r->facts.host[0] && seen->node_count && s->engine_ops->core->behind(s->engine_state, r->id.p))
		need_add(r, NEED_BEHIND, STR_NONE, STR_NONE);
}

/* Whether all hosts have answered; a refusal is taken back. */
static bool sights_look(struct call *c, struct arena *a, struct cluster_sight *list, size_t count)
{
	size_t headers = c->extra_header_count;
	if (clusters_look(c, a, list, count) == 0)
		return true;
	c->problem = (struct problem){0};
	c->extra_header_count = headers;
	return false;
}

/* A host that does not answer takes its clusters' nodes from the page, and nothing else: the others are asked again,
 * each by itself. */
static void look_by_host(struct call *c, struct arena *a, struct cluster_sight *list, size_t count)
{
	struct cluster_sight *part = arena_new_array(a, struct cluster_sight, count + 1);
	size_t *places = arena_new_array(a, size_t, count + 1);
	for (size_t i = 0; i < count; i++) {
		struct str host = list[i].host;
		size_t n = 0;
		for (size_t k = i; host.n && k < count; k++) {
			if (!str_eq(list[k].host, host))
				continue;
			part[n] = list[k];
			places[n++] = k;
		}
		if (n)
			(void)sights_look(c, a, part, n);
		for (size_t k = 0; k < n; k++) {
			list[places[k]].status = part[k].status;
			list[places[k]].host = STR_NONE;
		}
	}
}

static void statuses_look(struct looking *l)
{
	struct call *c = l->call;
	struct cluster_sight *list = arena_new_array(l->arena, struct cluster_sight, l->page_count + 1);
	for (size_t i = 0; i < l->page_count; i++)
		list[i] = (struct cluster_sight){.doc = {.id = l->page[i].id}, .host = str_of(l->page[i].facts.host)};
	if (!sights_look(c, l->arena, list, l->page_count))
		look_by_host(c, l->arena, list, l->page_count);
	for (size_t i = 0; i < l->page_count; i++) {
		l->page[i].status = list[i].status;
		if (list[i].status.exists)
			status_judge(c->service, &l->page[i]);
	}
}

static double lag_read(const struct service *s, struct str cluster_id, const char *node)
{
	static const unsigned column = PROCESS_LAG_MS;
	enum { SLOTS = 8 };
	enum series_level level = s->engine_ops->history ? SERIES_1M : SERIES_10S;
	struct measured of = {.cluster_id = cluster_id.p, .node = node, .name = "", .subject = MEASURE_PROCESS};
	int64_t step = series_step_ms(level), to = clock_now_ms(), from = (to / step - 2) * step;
	float values[SLOTS];
	double last = NAN;
	measured_clip(s, &of, level, &from, &to);
	size_t slots = from < to ? series_slots(level, from, to) : 0;
	if (!slots || slots > SLOTS || measured_read(s, &of, level, from, to, &column, 1, values) < 0)
		return NAN;
	for (size_t i = 0; i < slots; i++)
		if (isfinite(values[i]))
			last = (double)values[i] / 1000;
	return last;
}

static void lags_look(struct looking *l)
{
	const struct service *s = l->call->service;
	size_t left = LAG_NODES;
	for (size_t i = 0; i < l->page_count && s->sampler; i++) {
		struct row *r = &l->page[i];
		for (size_t k = 0; k < r->status.node_count && left; k++) {
			const struct node_status *n = &r->status.nodes[k];
			if (n->primary || n->kind == NODE_ROUTER || n->state != NODE_RUNNING ||
			    host_is_elsewhere(str_of(r->facts.host)))
				continue;
			double lag = lag_read(s, r->id, n->name);
			left--;
			if (isnan(r->lag_s) || lag > r->lag_s)
				r->lag_s = lag;
		}
	}
}

static struct str shortened(struct str text)
{
	return utf8_prefix(text, WHY_MAX);
}

/* The work that is under way for those that are not as they shall be. */
static int jobs_look(struct looking *l)
{
	struct call *c = l->call;
	bool behind = c->service->access_behind > 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < l->page_count; i++) {
		struct row *row = &l->page[i];
		struct job job;
		if (strcmp(row->facts.state, "IDLE") == 0 && !behind)
			continue;
		r = tx_job_of(c->tx, l->arena, row->id, &job);
		if (r == -ENOENT) {
			r = 0;
			continue;
		}
		if (r < 0)
			break;
		bool access = str_is(job.kind, ACCESS_JOB);
		if (access && job.attempt > 0)
			need_add(row, NEED_ACCESS, shortened(job.error), STR_NONE);
		else if (!access && job.failed)
			need_add(row, NEED_FAILED, shortened(job.error), STR_NONE);
		else if (!access && clock_now_ms() - job.created_ms > STUCK_MS)
			need_add(row, NEED_STUCK, shortened(job.error.n ? job.error : job.progress), STR_NONE);
		if (!access)
			row->progress = shortened(job.progress);
	}
	return r;
}

int overview_look(struct looking *l)
{
	statuses_look(l);
	int r = jobs_look(l);
	if (r == 0)
		lags_look(l);
	return r;
}
