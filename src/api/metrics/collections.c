/* Statistics of collections, which are tables here: how long statements on them took, of a process or of the processes
 * of a cluster that lead or follow (clusterView), and which of them took most.
 *
 * Series have histograms, so that what several nodes and intervals have adds up, and percentiles are made of the sum.
 * A node's part of an interval belongs to the view that the node was in then: after a failover the primary's
 * measurements are first the old one's and then the new one's. */
#include "api/kit/verbs.h"
#include "api/metrics/metrics.h"
#include "api/metrics/pins.h"
#include "api/metrics/processes.h"
#include "api/metrics/window.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* --- the metrics */

enum figure { FIGURE_OPS, FIGURE_LATENCY, FIGURE_AVERAGE, FIGURE_P50, FIGURE_P95, FIGURE_P99 };

struct coll_metric {
	const char *name;
	unsigned first, end; /* kinds of statements */
	enum figure figure;
};

#define METRICS(of, average, percentile, first, end)                                                                  \
	{of "_OPS", first, end, FIGURE_OPS}, {of "_LATENCY", first, end, FIGURE_LATENCY},                             \
	        {"AVERAGE_" average "_LATENCY", first, end, FIGURE_AVERAGE},                                          \
	        {percentile "_P50_VALUE", first, end, FIGURE_P50}, {percentile "_P95_VALUE", first, end, FIGURE_P95}, \
	{                                                                                                             \
		percentile "_P99_VALUE", first, end, FIGURE_P99                                                       \
	}

static const struct coll_metric metrics[] = {
        METRICS("READS", "READS", "READS", TABLE_READS, TABLE_READS + 1),
        METRICS("WRITES", "WRITES", "WRITES", TABLE_WRITES, TABLE_WRITES + 1),
        METRICS("COMMANDS", "COMMANDS", "COMMANDS", TABLE_COMMANDS, TABLE_COMMANDS + 1),
        METRICS("TOTAL", "TOTAL_OPS", "TOTAL_OPS", TABLE_READS, TABLE_KINDS),
};
#define METRIC_COUNT (sizeof metrics / sizeof *metrics)

/* From the sums of all columns. NAN: nothing is known of it. */
static double figure_of(const struct coll_metric *m, const double *sums)
{
	static const double shares[] = {[FIGURE_P50] = 0.5, [FIGURE_P95] = 0.95, [FIGURE_P99] = 0.99};
	double counts[LATENCY_BUCKETS] = {0}, ops = 0, ms = 0;
	for (unsigned kind = m->first; kind < m->end; kind++) {
		ms += sums[TABLE_TIME(kind)];
		for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
			counts[i] += sums[TABLE_COUNT(kind, i)];
			ops += sums[TABLE_COUNT(kind, i)];
		}
	}
	switch (m->figure) {
	case FIGURE_OPS: return ops;
	case FIGURE_LATENCY: return ms;
	case FIGURE_AVERAGE: return ops > 0 ? ms / ops : (double)NAN;
	default: return table_percentile(counts, shares[m->figure]);
	}
}

int coll_stat_metrics_list(struct call *c)
{
	struct buf b = {0};
	json_open(&b, '{');
	json_pair_str(&b, "groupId", c->group.id);
	json_key(&b, "metrics");
	json_open(&b, '[');
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		json_open(&b, '{');
		json_pair_str(&b, "metricName", str_of(metrics[i].name));
		json_key(&b, "units");
		if (metrics[i].figure == FIGURE_OPS)
			json_nil(&b); /* the reference has no word for it here */
		else
			json_z(&b, "MILLISECONDS");
		json_close(&b, '}');
	}
	json_close(&b, ']');
	json_close(&b, '}');
	entity_write(c, &c->out, buf_view(&b), c->op, NULL, STR_NONE, false);
	buf_free(&b);
	return 0;
}

/* --- the nodes that are looked at */

enum role { ROLE_ANY, ROLE_PRIMARY, ROLE_SECONDARY };

struct sight {
	struct cluster cluster;
	const char *cluster_id;
	struct node_status *nodes;
	size_t node_count;
	enum role role;
	int64_t since_ms; /* when the first of them was made */
	struct window window;
	int64_t from_ms, to_ms; /* of the window, what may be known */
};

static void sight_complete(struct call *c, struct sight *s)
{
	s->cluster_id = arena_z(c->arena, s->cluster.doc.id);
	s->since_ms = s->cluster.doc.created_ms;
	for (size_t i = 0; i < s->node_count; i++) {
		int64_t made = process_created_ms(&s->cluster, &s->nodes[i]);
		s->since_ms = i == 0 || made < s->since_ms ? made : s->since_ms;
	}
	s->from_ms = s->window.start_ms;
	s->to_ms = s->window.end_ms;
	struct measured of = {.since_ms = s->since_ms};
	measured_clip(c->service, &of, s->window.level, &s->from_ms, &s->to_ms);
}

static int sight_nodes(struct call *c, struct sight *s)
{
	struct str view = call_path(c, "clusterView");
	struct cluster_status status;
	bool forwarded = false;
	int result = cluster_load(c, &s->cluster);
	if (result == 0)
		result = cluster_forward(c, &s->cluster, &forwarded);
	if (result < 0 || forwarded)
		return result < 0 ? result : 1;
	result = cluster_observe(c, &s->cluster, &status);
	if (result < 0)
		return result;
	s->nodes = status.nodes;
	s->node_count = status.node_count;
	s->role = str_is(view, "PRIMARY") ? ROLE_PRIMARY : str_is(view, "SECONDARY") ? ROLE_SECONDARY : ROLE_ANY;
	return 0;
}

/* Of the path's process or view. 1: another host answers. */
static int sight_make(struct call *c, struct sight *s)
{
	int result;
	*s = (struct sight){.role = ROLE_ANY};
	if (call_path(c, "processId").n) {
		s->nodes = arena_new_of(c->arena, struct node_status);
		s->node_count = 1;
		result = process_find(c, &s->cluster, s->nodes);
	} else {
		result = sight_nodes(c, s);
	}
	if (result == 0)
		result = window_read_open(c, &s->window);
	if (result == 0)
		sight_complete(c, s);
	return result;
}

static bool in_role(const struct sight *s, bool leads)
{
	return s->role == ROLE_ANY || leads == (s->role == ROLE_PRIMARY);
}

/* --- what they have */

struct sums {
	const unsigned *columns; /* the first is TABLE_LEADS */
	size_t count, slots;
	double *values; /* slots * count */
	bool *known;    /* of each slot */
	bool any;       /* something is kept of the table */
};

static struct sums sums_new(struct call *c, const struct sight *s, const unsigned *columns, size_t count)
{
	struct sums sums = {
	        .columns = columns, .count = count, .slots = series_slots(s->window.level, s->from_ms, s->to_ms)};
	size_t room = sums.slots * count + 1;
	sums.values = arena_new_array(c->arena, double, room);
	sums.known = arena_new_array(c->arena, bool, sums.slots + 1);
	return sums;
}

static void row_add(const struct sight *s, struct sums *sums, size_t slot, const float *row)
{
	/* The first sample of a counter has no rate. */
	if (isnan(row[0]) || isnan(row[1]) || !in_role(s, row[0] >= 0.5f))
		return;
	for (size_t i = 0; i < sums->count; i++)
		sums->values[slot * sums->count + i] += (double)row[i];
	sums->known[slot] = true;
}

/* Adds what all nodes have of a table. */
static int table_add(struct call *c, const struct sight *s, const char *name, struct sums *sums)
{
	float *rows = must_calloc(sums->slots * sums->count + 1, sizeof *rows);
	int result = 0;
	for (size_t n = 0; result == 0 && n < s->node_count; n++) {
		struct measured of = {s->cluster_id, s->nodes[n].name, name, MEASURE_TABLE, s->since_ms};
		result = measured_read(c->service, &of, s->window.level, s->from_ms, s->to_ms, sums->columns,
		                       sums->count, rows);
		for (size_t i = 0; result == 0 && i < sums->slots; i++)
			row_add(s, sums, i, rows + i * sums->count);
		sums->any |= result == 0;
		result = result == -ENOENT ? 0 : result;
	}
	free(rows);
	return result;
}

/* Which of the tables are there, by the nodes that lead, or by any where none of those answers. -EAGAIN: none does. */
static int tables_check(struct call *c, const struct sight *s, const struct str *names, size_t count, bool *ret_there)
{
	const struct engine_statistics_ops *ops = c->service->engine_ops->statistics;
	bool *there = arena_new_array(c->arena, bool, count + 1), answered = false;
	if (!ops)
		return cluster_not_offered(c);
	for (int pass = 0; pass < 2 && !answered; pass++)
		for (size_t n = 0; n < s->node_count; n++) {
			const struct node_status *node = &s->nodes[n];
			if ((node->primary || node->kind == NODE_ROUTER) != (pass == 0) ||
			    ops->tables(c->service->engine_state, s->cluster_id, node->name, names, count, there) < 0)
				continue;
			answered = true;
			for (size_t i = 0; i < count; i++)
				ret_there[i] |= there[i];
		}
	return answered ? 0 : -EAGAIN;
}

/* --- namespaces */

struct ranked {
	struct str name;
	double ms;
	bool pinned;
};

struct ranking {
	struct ranked *list;
	size_t count, room;
};

static int by_time(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->ms != y->ms)
		return x->ms > y->ms ? -1 : 1;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int order = memcmp(x->name.p, y->name.p, n);
	return order ? order : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

static void names_collect(struct call *c, const struct sight *s, struct ranking *r)
{
	for (size_t n = 0; n < s->node_count; n++) {
		struct str *names;
		size_t count = measured_tables(c->service, s->cluster_id, s->nodes[n].name, c->arena, &names);
		for (size_t i = 0; i < count; i++) {
			bool had = false;
			for (size_t k = 0; !had && k < r->count; k++)
				had = str_eq(r->list[k].name, names[i]);
			if (had)
				continue;
			ARENA_FIT(c->arena, r->list, r->count, r->room);
			r->list[r->count++] = (struct ranked){.name = names[i]};
		}
	}
}

static int times_add_up(struct call *c, const struct sight *s, struct ranking *r)
{
	static const unsigned columns[] = {TABLE_LEADS, TABLE_TIME(TABLE_READS), TABLE_TIME(TABLE_WRITES),
	                                   TABLE_TIME(TABLE_COMMANDS)};
	size_t count = sizeof columns / sizeof *columns;
	int result = 0;
	for (size_t i = 0; result == 0 && i < r->count; i++) {
		struct sums sums = sums_new(c, s, columns, count);
		result = table_add(c, s, arena_z(c->arena, r->list[i].name), &sums);
		for (size_t k = 0; k < sums.slots; k++)
			for (size_t m = 1; m < count; m++)
				r->list[i].ms += sums.values[k * count + m];
	}
	return result;
}

static int pins_mark(struct call *c, const struct sight *s, struct ranking *r)
{
	const char **pins;
	size_t count;
	int result = pins_load(c->tx, c->arena, s->cluster.doc.id, &pins, &count);
	for (size_t i = 0; result == 0 && i < r->count; i++)
		for (size_t k = 0; k < count; k++)
			r->list[i].pinned |= str_is(r->list[i].name, pins[k]);
	return result;
}

/* What was dropped since goes; where no process answers, nothing does. */
static int gone_drop(struct call *c, const struct sight *s, struct ranking *r)
{
	struct str *names = arena_new_array(c->arena, struct str, r->count + 1);
	bool *there = arena_new_array(c->arena, bool, r->count + 1);
	size_t kept = 0;
	for (size_t i = 0; i < r->count; i++)
		names[i] = r->list[i].name;
	int result = r->count ? tables_check(c, s, names, r->count, there) : 0;
	if (result < 0)
		return result == -EAGAIN ? 0 : result;
	for (size_t i = 0; i < r->count; i++)
		if (there[i])
			r->list[kept++] = r->list[i];
	r->count = kept;
	return 0;
}

static void namespaces_write(struct call *c, struct str identifier, const struct ranking *r)
{
	size_t top = 0;
	json_open(&c->out, '{');
	json_pair_str(&c->out, "groupId", c->group.id);
	json_pair_str(&c->out, "identifierId", identifier);
	json_key(&c->out, "rankedNamespaces");
	json_open(&c->out, '[');
	for (size_t i = 0; i < r->count; i++) {
		bool first = r->list[i].ms > 0 && top < TABLES_TOP;
		top += first;
		if (first || r->list[i].pinned)
			json_str(&c->out, r->list[i].name);
	}
	json_close(&c->out, ']');
	json_close(&c->out, '}');
}

int namespaces_get(struct call *c)
{
	struct sight s;
	struct ranking r = {0};
	int result = sight_make(c, &s);
	if (result != 0)
		return result < 0 ? result : 0;
	names_collect(c, &s, &r);
	result = gone_drop(c, &s, &r);
	if (result == 0)
		result = times_add_up(c, &s, &r);
	if (result == 0)
		result = pins_mark(c, &s, &r);
	if (result < 0)
		return result;
	if (r.count)
		qsort(r.list, r.count, sizeof *r.list, by_time);
	struct str process = call_path(c, "processId");
	namespaces_write(c, process.n ? process : s.cluster.doc.id, &r);
	return 0;
}

/* --- measurements */

static void points_write(struct buf *b, const struct sight *s, const struct sums *sums, const struct coll_metric *m)
{
	int64_t step = series_step_ms(s->window.level), first = (s->from_ms + step - 1) / step * step;
	for (size_t i = 0; sums->any && i < sums->slots; i++) {
		int64_t at = first + step * (int64_t)i;
		double v = sums->known[i] ? figure_of(m, sums->values + i * sums->count) : (double)NAN;
		char time[CLOCK_TEXT];
		/* The interval under way is shown once something is known of it. */
		if (!sums->known[i] && at + step > clock_now_ms())
			break;
		clock_format(at, time);
		buf_printf(b, "%s{\"timestamp\":\"%s\"", i ? "," : "", time);
		if (isfinite(v))
			buf_printf(b, ",\"value\":%.7g", v);
		buf_c(b, '}');
	}
}

static void measurements_write(struct call *c, struct buf *b, const struct sight *s, const struct sums *sums)
{
	struct str wanted = call_query(c, "metrics");
	json_key(b, "measurements");
	json_open(b, '[');
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		if (wanted.n && !str_list_has(wanted, str_of(metrics[i].name)))
			continue;
		json_sep(b);
		buf_z(b, "{\"dataPoints\":[");
		points_write(b, s, sums, &metrics[i]);
		buf_printf(b, "],\"name\":\"%s\",\"units\":\"%s\"}", metrics[i].name,
		           metrics[i].figure == FIGURE_OPS ? "SCALAR_PER_SECOND" : "MILLISECONDS");
	}
	json_close(b, ']');
}

/* The process, or the only one of the view. */
static void process_write(struct call *c, struct buf *b, const struct sight *s)
{
	const struct node_status *only = NULL;
	size_t count = 0;
	for (size_t i = 0; i < s->node_count; i++)
		if (in_role(s, s->nodes[i].primary)) {
			only = &s->nodes[i];
			count++;
		}
	if (count == 1)
		json_pair_str(b, "processId", arena_printf(c->arena, "%s:%u", only->host, only->port));
}

static void answer_write(struct call *c, const struct sight *s, const struct sums *sums)
{
	struct buf b = {0};
	struct str view = call_path(c, "clusterView");
	json_open(&b, '{');
	if (view.n) {
		json_pair_str(&b, "clusterId", s->cluster.doc.id);
		json_pair_str(&b, "clusterView", view);
	}
	json_pair_str(&b, "collectionName", call_path(c, "collectionName"));
	json_pair_str(&b, "databaseName", call_path(c, "databaseName"));
	window_write(&b, &s->window);
	json_pair_str(&b, "groupId", c->group.id);
	measurements_write(c, &b, s, sums);
	process_write(c, &b, s);
	window_answer(c, &b);
}

/* A table of which something is kept is known also while no process answers. */
static int table_check(struct call *c, const struct sight *s, struct str name)
{
	bool there = false, known = false;
	int result = name.n < TABLE_NAME ? tables_check(c, s, &name, 1, &there) : 0;
	if (result != -EAGAIN)
		return result < 0 || there ? result : -ENOENT;
	for (size_t n = 0; n < s->node_count; n++) {
		struct str *names;
		size_t count = measured_tables(c->service, s->cluster_id, s->nodes[n].name, c->arena, &names);
		for (size_t i = 0; i < count; i++)
			known |= str_eq(names[i], name);
	}
	if (known)
		return 0;
	if (c->service->engine_ops->history)
		return -ENOENT;
	return call_fail_about(c, 409, "PROCESS_NOT_AVAILABLE", name,
	                       "No process that could tell whether there is a table %.*s answers now. Try again once "
	                       "the cluster runs.",
	                       STR_ARG(name));
}

int collection_measurements_get(struct call *c)
{
	struct sight s;
	unsigned columns[TABLE_COLUMNS];
	struct str database = call_path(c, "databaseName"), table = call_path(c, "collectionName");
	struct str name = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(database), STR_ARG(table));
	int result = sight_make(c, &s);
	if (result == 0)
		result = table_check(c, &s, name);
	if (result != 0)
		return result < 0 ? result : 0;
	for (unsigned i = 0; i < TABLE_COLUMNS; i++)
		columns[i] = i;
	struct sums sums = sums_new(c, &s, columns, TABLE_COLUMNS);
	result = table_add(c, &s, name.p, &sums);
	if (result == 0)
		answer_write(c, &s, &sums);
	return result;
}

/* --- links */

static void part_links(struct call *c, const struct doc *cluster)
{
	static const char *const views[][2] = {{"PRIMARY", "PRIMARY/collStats/namespaces"},
	                                       {"SECONDARY", "SECONDARY/collStats/namespaces"},
	                                       {"INDIVIDUAL_PROCESS", "INDIVIDUAL_PROCESS/collStats/namespaces"}};
	const struct op *op = catalog_op("getClusterNamespaces");
	struct str body = arena_printf(c->arena, "{\"clusterName\":\"%.*s\"}", STR_ARG(cluster->name));
	for (size_t i = 0; (op->roles & c->roles) && i < sizeof views / sizeof *views; i++)
		entity_link(c, &c->out, views[i][1], entity_href(c, op, "clusterView", str_of(views[i][0]), body));
}

const struct cluster_part metrics_part = {.links = part_links};
