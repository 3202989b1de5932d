/* Measurements of a process, of one of its databases or of one of its disks, from the series of its host.
 *
 * Every metric of the reference has its place in an answer. One that nothing tells here has no data points; of the
 * others each interval has one, and where nothing is known of it the point has no value. */
#include "api/metrics/window.h"

#include "api/kit/verbs.h"
#include "api/metrics/catalogue.h"
#include "api/metrics/metrics.h"
#include "api/metrics/processes.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>

#define POINTS_MAX 250000
#define METRICS_MAX 160

struct answer {
	struct measured of;
	struct window window;
	const struct metric *metrics[METRICS_MAX];
	size_t metric_count;
	int64_t first_ms; /* of the data points */
	size_t slots;
	unsigned columns[2 * METRICS_MAX];
	size_t column_count;
	float *values; /* slots * columns; NULL: nothing was ever measured */
};

/* --- which metrics */

/* Those of `m`, which the gate has checked; all where there is none. */
static void metrics_choose(const struct call *c, struct answer *a)
{
	struct str rest = call_query(c, "m"), one;
	size_t count;
	const struct metric *all = metrics_of(a->of.subject, &count);
	for (bool more = rest.n > 0; more && a->metric_count < METRICS_MAX;) {
		more = str_cut(rest, ',', &one, &rest);
		const struct metric *m = metric_find(a->of.subject, one);
		if (m)
			a->metrics[a->metric_count++] = m;
	}
	for (size_t i = 0; !call_query(c, "m").n && i < count && i < METRICS_MAX; i++)
		a->metrics[a->metric_count++] = &all[i];
}

static size_t column_place(struct answer *a, unsigned column)
{
	size_t i = 0;
	while (i < a->column_count && a->columns[i] != column)
		i++;
	if (i == a->column_count)
		a->columns[a->column_count++] = column;
	return i;
}

static void columns_choose(struct answer *a)
{
	for (size_t i = 0; i < a->metric_count; i++) {
		const struct metric *m = a->metrics[i];
		if (m->column == NO_COLUMN)
			continue;
		column_place(a, (unsigned)m->column);
		if (m->how != METRIC_ALONE)
			column_place(a, m->other);
	}
}

/* --- values */

static int values_read(struct call *c, struct answer *a)
{
	int64_t from = a->window.start_ms, to = a->window.end_ms, step = series_step_ms(a->window.level);
	measured_clip(c->service, &a->of, a->window.level, &from, &to);
	a->first_ms = (from + step - 1) / step * step;
	a->slots = series_slots(a->window.level, from, to);
	if (a->slots * a->metric_count > POINTS_MAX)
		return call_fail_fault(
		        c, STR("m"),
		        "%zu metrics of %zu intervals are more than %d data points: name fewer metrics, a "
		        "shorter period or a coarser granularity",
		        a->metric_count, a->slots, POINTS_MAX);
	a->values = arena_new_array(c->arena, float, a->slots * a->column_count + 1);
	int result =
	        measured_read(c->service, &a->of, a->window.level, from, to, a->columns, a->column_count, a->values);
	if (result == -ENOENT)
		a->values = NULL;
	return result == -ENOENT ? 0 : result;
}

static double point_value(struct answer *a, const struct metric *m, size_t slot)
{
	const float *row = a->values + slot * a->column_count;
	double other = m->how == METRIC_ALONE ? 0 : (double)row[column_place(a, m->other)];
	return metric_value(m, (double)row[column_place(a, (unsigned)m->column)], other);
}

static void points_write(struct buf *b, struct answer *a, const struct metric *m)
{
	int64_t step = series_step_ms(a->window.level), now = clock_now_ms();
	for (size_t i = 0; a->values && m->column != NO_COLUMN && i < a->slots; i++) {
		int64_t at = a->first_ms + step * (int64_t)i;
		double v = point_value(a, m, i);
		char time[CLOCK_TEXT];
		/* The interval under way is shown once something is known of it. */
		if (!isfinite(v) && at + step > now)
			break;
		clock_format(at, time);
		buf_printf(b, "%s{\"timestamp\":\"%s\"", i ? "," : "", time);
		if (isfinite(v))
			buf_printf(b, ",\"value\":%.7g", v);
		buf_c(b, '}');
	}
}

/* --- the document */

static void answer_write(struct call *c, struct answer *a)
{
	struct buf b = {0};
	struct str id = call_path(c, "processId");
	json_open(&b, '{');
	if (a->of.subject == MEASURE_DATABASE)
		json_pair_str(&b, "databaseName", str_of(a->of.name));
	window_write(&b, &a->window);
	json_pair_str(&b, "groupId", c->group.id);
	json_pair_str(&b, "hostId", id);
	json_key(&b, "measurements");
	json_open(&b, '[');
	for (size_t i = 0; i < a->metric_count; i++) {
		json_sep(&b);
		buf_z(&b, "{\"dataPoints\":[");
		points_write(&b, a, a->metrics[i]);
		buf_printf(&b, "],\"name\":\"%s\",\"units\":\"%s\"}", a->metrics[i]->name, a->metrics[i]->unit);
	}
	json_close(&b, ']');
	if (a->of.subject == MEASURE_DISK)
		json_pair_str(&b, "partitionName", str_of(a->of.name));
	json_pair_str(&b, "processId", id);
	window_answer(c, &b);
}

/* A database or disk of which something was measured is known without asking the server, which may be down. */
static int subject_check(struct call *c, const struct cluster *cluster, const struct node_status *node,
                         const struct measured *of)
{
	if (of->subject == MEASURE_PROCESS || measured_is_known(c->service, of))
		return 0;
	int result = process_name_check(c, cluster, node, of->subject == MEASURE_DATABASE, str_of(of->name));
	/* Where nothing need be kept, a stopped node is no less known. */
	if (result == -EAGAIN)
		return c->service->engine_ops->history ? 0 : process_silent(c, node);
	return result;
}

static int measurements_answer(struct call *c, enum measure_subject subject, const char *name_param)
{
	struct answer *a = arena_new_of(c->arena, struct answer);
	struct cluster cluster;
	struct node_status node;
	a->of.subject = subject;
	int result = process_find(c, &cluster, &node);
	if (result == 0)
		result = window_read(c, &a->window);
	if (result != 0)
		return result < 0 ? result : 0;
	a->of.cluster_id = arena_z(c->arena, cluster.doc.id);
	a->of.node = arena_z(c->arena, str_of(node.name));
	a->of.name = name_param ? arena_z(c->arena, call_path(c, name_param)) : "";
	a->of.since_ms = process_created_ms(&cluster, &node);
	result = subject_check(c, &cluster, &node, &a->of);
	if (result < 0)
		return result;
	metrics_choose(c, a);
	columns_choose(a);
	result = values_read(c, a);
	if (result == 0)
		answer_write(c, a);
	return result;
}

int process_measurements_get(struct call *c)
{
	return measurements_answer(c, MEASURE_PROCESS, NULL);
}

int database_measurements_get(struct call *c)
{
	return measurements_answer(c, MEASURE_DATABASE, "databaseName");
}

int disk_measurements_get(struct call *c)
{
	return measurements_answer(c, MEASURE_DISK, "partitionName");
}
