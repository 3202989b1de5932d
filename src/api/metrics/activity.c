/* Of a process, beyond the reference. What its sessions do: over time, by what they wait for, from its series; which of
 * them waited for which within the last hour; and now. And how vacuum keeps up. The paths are that of the process with
 * ":activity" and ":vacuum". Who may read slow statements may read them, because both show statements. A DELETE of the
 * first ends a session, or its statement alone; who may reject a query's shape may do that, as both keep others'
 * statements from running. */
#include "api/metrics/metrics.h"

#include "api/metrics/catalogue.h"
#include "api/metrics/processes.h"
#include "api/metrics/window.h"
#include "base/clock.h"
#include "gate/dispatch.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>

#define POINTS_MAX 20000 /* of one metric: two weeks of minutes */
#define DEPTH_MAX 16     /* of a tree of sessions that wait */

#define METRICS_MAX 16

/* --- over time */

/* `values`: of the first interval; those of the next ones follow `count` further. */
static void points_write(struct buf *b, const struct metric *m, const float *values, size_t slots, size_t count,
                         int64_t first_ms, int64_t step_ms)
{
	int64_t now = clock_now_ms();
	json_key(b, "dataPoints");
	json_open(b, '[');
	for (size_t i = 0; i < slots; i++) {
		double v = metric_value(m, (double)values[i * count], 0);
		int64_t at = first_ms + step_ms * (int64_t)i;
		if (!isfinite(v) && at + step_ms > now)
			break;
		json_open(b, '{');
		json_pair_time(b, "timestamp", at);
		if (isfinite(v)) {
			json_key(b, "value");
			buf_printf(b, "%.7g", v);
		}
		json_close(b, '}');
	}
	json_close(b, ']');
}

static int series_write(struct call *c, struct buf *b, const struct measured *of, const struct window *w)
{
	int64_t from = w->start_ms, to = w->end_ms, step = series_step_ms(w->level);
	unsigned columns[METRICS_MAX];
	size_t count;
	const struct metric *metrics = metrics_of_sessions(&count);
	for (size_t i = 0; i < count; i++)
		columns[i] = (unsigned)metrics[i].column;
	measured_clip(c->service, of, w->level, &from, &to);
	size_t slots = series_slots(w->level, from, to);
	if (slots > POINTS_MAX)
		return call_fail_fault(c, STR("period"), "has more than %d intervals: name a shorter one", POINTS_MAX);
	float *values = arena_new_array(c->arena, float, slots *count + 1);
	int r = measured_read(c->service, of, w->level, from, to, columns, count, values);
	if (r < 0 && r != -ENOENT)
		return r;
	json_key(b, "measurements");
	json_open(b, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(b, '{');
		points_write(b, &metrics[i], values + i, r == 0 ? slots : 0, count, (from + step - 1) / step * step,
		             step);
		json_pair_z(b, "name", metrics[i].name);
		json_pair_z(b, "units", metrics[i].unit);
		json_close(b, '}');
	}
	json_close(b, ']');
	return 0;
}

/* --- the last hour */

static void past_write(struct buf *b, const struct engine_activity *seen)
{
	json_key(b, "waitEvents");
	json_open(b, '[');
	for (size_t i = 0; i < seen->wait_count; i++) {
		json_open(b, '{');
		json_pair_z(b, "event", seen->waits[i].event);
		json_key(b, "sessions");
		buf_printf(b, "%.4g", seen->waits[i].sessions);
		json_pair_z(b, "type", seen->waits[i].type);
		json_close(b, '}');
	}
	json_close(b, ']');
	json_key(b, "blocked");
	json_open(b, '[');
	for (size_t i = 0; i < seen->block_count; i++) {
		const struct engine_block *x = &seen->blocks[i];
		json_open(b, '{');
		json_pair_int(b, "blockedBy", x->by);
		json_pair_z(b, "blockedByUser", x->by_user);
		json_pair_int(b, "longestMillis", x->longest_ms);
		json_pair_int(b, "pid", x->pid);
		json_pair_time(b, "since", x->first_ms);
		json_pair_time(b, "seenLast", x->last_ms);
		json_pair_z(b, "user", x->user);
		json_close(b, '}');
	}
	json_close(b, ']');
}

/* --- now */

struct now {
	const struct engine_session *list;
	size_t count;
	bool redact;
};

static void text_write(struct buf *b, const char *name, const char *value)
{
	if (*value)
		json_pair_z(b, name, value);
}

static void time_write(struct buf *b, const char *name, int64_t ms)
{
	if (ms > 0)
		json_pair_time(b, name, ms);
}

static void session_write(struct buf *b, const struct now *n, const struct engine_session *s)
{
	text_write(b, "address", s->address);
	text_write(b, "application", s->application);
	json_key(b, "blockedBy");
	json_open(b, '[');
	for (size_t i = 0; i < s->blocker_count; i++)
		json_int(b, s->blockers[i]);
	json_close(b, ']');
	text_write(b, "database", s->database);
	json_pair_int(b, "pid", s->pid);
	time_write(b, "sessionStart", s->started_ms);
	text_write(b, "state", s->state);
	if (!n->redact)
		text_write(b, "statement", s->statement);
	time_write(b, "statementStart", s->statement_ms);
	time_write(b, "transactionStart", s->transaction_ms);
	text_write(b, "user", s->user);
	text_write(b, "waitEvent", s->wait);
	text_write(b, "waitEventType", s->wait_type);
}

static bool waits_for(const struct engine_session *s, int64_t pid)
{
	for (size_t i = 0; i < s->blocker_count; i++)
		if (s->blockers[i] == pid)
			return true;
	return false;
}

static bool is_blocking(const struct now *n, int64_t pid)
{
	for (size_t i = 0; i < n->count; i++)
		if (waits_for(&n->list[i], pid))
			return true;
	return false;
}

/* Those that wait for the session, each with those that wait for it. Sessions that wait for each other end at the
 * bound; `left` bounds the whole, as one that waits for many is in the tree many times. */
static void tree_write(struct buf *b, const struct now *n, int64_t pid, unsigned depth, size_t *left)
{
	json_open(b, '{');
	json_pair_int(b, "pid", pid);
	json_key(b, "waiting");
	json_open(b, '[');
	for (size_t i = 0; i < n->count && depth < DEPTH_MAX && *left; i++)
		if (waits_for(&n->list[i], pid)) {
			--*left;
			tree_write(b, n, n->list[i].pid, depth + 1, left);
		}
	json_close(b, ']');
	json_close(b, '}');
}

static void now_write(struct buf *b, const struct now *n)
{
	size_t left = 1000;
	json_key(b, "sessions");
	json_open(b, '[');
	for (size_t i = 0; i < n->count; i++) {
		json_open(b, '{');
		session_write(b, n, &n->list[i]);
		json_close(b, '}');
	}
	json_close(b, ']');
	json_key(b, "blocking");
	json_open(b, '[');
	/* The roots: whom others wait for, and who wait for nobody. */
	for (size_t i = 0; i < n->count; i++)
		if (!n->list[i].blocker_count && is_blocking(n, n->list[i].pid))
			tree_write(b, n, n->list[i].pid, 0, &left);
	if (is_blocking(n, 0))
		tree_write(b, n, 0, 0, &left);
	json_close(b, ']');
}

/* --- the document */

static int document_write(struct call *c, const struct cluster *cluster, const struct node_status *node)
{
	const struct service *s = c->service;
	const struct engine_activity_ops *ops = s->engine_ops->activity;
	const char *id = arena_z(c->arena, cluster->doc.id);
	struct measured of = {.cluster_id = id,
	                      .node = node->name,
	                      .name = "",
	                      .subject = MEASURE_PROCESS,
	                      .since_ms = process_created_ms(cluster, node)};
	struct window window;
	struct engine_activity seen;
	struct engine_session *list;
	size_t count;
	int r = window_read_open(c, &window);
	if (r < 0)
		return r;
	json_open(&c->out, '{');
	window_write(&c->out, &window);
	json_pair_str(&c->out, "groupId", c->group.id);
	json_pair_str(&c->out, "processId", call_path(c, "processId"));
	r = series_write(c, &c->out, &of, &window);
	if (r < 0)
		return r;
	ops->past(s->engine_state, id, node->name, c->arena, &seen);
	past_write(&c->out, &seen);
	/* A process that does not answer has no sessions to tell; what was seen stays. */
	r = ops->sessions(s->engine_state, id, node->name, c->arena, &list, &count);
	if (r == 0)
		now_write(&c->out, &(struct now){list, count, json_flag(cluster->body, "redactClientLogData")});
	json_close(&c->out, '}');
	return r == -EAGAIN || r == -ENOENT ? 0 : r;
}

static int activity_get(struct call *c)
{
	struct cluster cluster;
	struct node_status node;
	int r = process_find(c, &cluster, &node);
	if (r != 0)
		return r < 0 ? r : 0;
	if (!c->service->engine_ops->activity)
		return cluster_not_offered(c);
	size_t before = c->out.n;
	r = document_write(c, &cluster, &node);
	if (r < 0)
		c->out.n = before;
	c->content_type = "application/json";
	return r;
}

/* --- vacuum */

static double share_of(int64_t age)
{
	return 100 * (double)age / TRANSACTION_IDS;
}

static void vacuum_tables_write(struct buf *b, const struct engine_vacuum *v)
{
	json_key(b, "tables");
	json_open(b, '[');
	for (size_t i = 0; i < v->table_count; i++) {
		const struct engine_vacuum_table *t = &v->tables[i];
		json_open(b, '{');
		time_write(b, "analyzed", t->analyzed_ms);
		json_pair_int(b, "bytes", t->bytes);
		json_pair_z(b, "database", t->database);
		json_pair_int(b, "deadRows", t->dead);
		json_pair_int(b, "liveRows", t->live);
		json_pair_z(b, "table", t->name);
		json_pair_int(b, "transactionIdAge", t->xid_age);
		time_write(b, "vacuumed", t->vacuumed_ms);
		if (t->wasted >= 0)
			json_pair_int(b, "wastedBytes", t->wasted);
		json_close(b, '}');
	}
	json_close(b, ']');
}

static void vacuum_write(struct buf *b, const struct engine_vacuum *v)
{
	json_key(b, "databases");
	json_open(b, '[');
	for (size_t i = 0; i < v->database_count; i++) {
		json_open(b, '{');
		json_pair_z(b, "database", v->databases[i].name);
		json_pair_int(b, "transactionIdAge", v->databases[i].xid_age);
		json_key(b, "transactionIdPercentUsed");
		buf_printf(b, "%.4g", share_of(v->databases[i].xid_age));
		json_close(b, '}');
	}
	json_close(b, ']');
	json_pair_int(b, "freezeAge", v->freeze_age);
	json_key(b, "running");
	json_open(b, '[');
	for (size_t i = 0; i < v->run_count; i++) {
		json_open(b, '{');
		json_pair_int(b, "blocks", v->runs[i].blocks);
		json_pair_int(b, "blocksDone", v->runs[i].done);
		json_pair_z(b, "database", v->runs[i].database);
		json_pair_z(b, "phase", v->runs[i].phase);
		json_pair_int(b, "pid", v->runs[i].pid);
		json_pair_z(b, "table", v->runs[i].name);
		json_close(b, '}');
	}
	json_close(b, ']');
	vacuum_tables_write(b, v);
	json_pair_bool(b, "whole", v->whole);
}

static int vacuum_get(struct call *c)
{
	const struct service *s = c->service;
	struct cluster cluster;
	struct node_status node;
	struct engine_vacuum v;
	int r = process_find(c, &cluster, &node);
	if (r != 0)
		return r < 0 ? r : 0;
	if (!s->engine_ops->activity)
		return cluster_not_offered(c);
	r = s->engine_ops->activity->vacuum(s->engine_state, arena_z(c->arena, cluster.doc.id), node.name, c->arena,
	                                    &v);
	if (r == -EAGAIN)
		return process_silent(c, &node);
	if (r < 0)
		return r;
	json_open(&c->out, '{');
	json_pair_str(&c->out, "groupId", c->group.id);
	json_pair_str(&c->out, "processId", call_path(c, "processId"));
	vacuum_write(&c->out, &v);
	json_close(&c->out, '}');
	c->content_type = "application/json";
	return 0;
}

/* --- their rows */

#define PARAMS_MAX 3
#define ACTIVITY_PATH "/groups/{groupId}/processes/{processId}:activity"

static struct op rows[3];
static struct param params[PARAMS_MAX], end_params[3];
static pthread_once_t rows_once = PTHREAD_ONCE_INIT;

static const struct {
	const char *end, *method, *id, *path;
	op_handler handler;
} parts[] = {{":activity", "GET", "getProcessActivity", ACTIVITY_PATH, activity_get},
             {":vacuum", "GET", "getProcessVacuum", "/groups/{groupId}/processes/{processId}:vacuum", vacuum_get},
             {":activity", "DELETE", "endProcessSession", ACTIVITY_PATH, process_session_end}};
#define PARTS (sizeof parts / sizeof *parts)

static struct param param_make(const struct op *op, const char *like, const char *name, bool required)
{
	for (unsigned i = 0; i < op->query_param_count; i++)
		if (strcmp(op->query_params[i].name, like) == 0)
			return (struct param){.name = name, .schema = op->query_params[i].schema, .required = required};
	abort(); /* the catalog is part of the program */
}

/* What has nothing to read and nothing to answer, with the rights of its like. */
static void row_end_make(struct op *row)
{
	const struct op *like = catalog_op("updateClusterQueryShape"), *removal = catalog_op("deleteOnlineArchive");
	const struct op *window = catalog_op("getProcessMeasurements");
	end_params[0] = param_make(catalog_op("listSlowQueryLogs"), "duration", "pid", true);
	end_params[1] = param_make(window, "start", "sessionStart", true);
	end_params[2] = param_make(window, "start", "statementStart", false);
	row->method = METHOD_DELETE;
	row->roles = like->roles;
	row->set = like->set;
	row->writes = true;
	row->slow = false;
	row->prepare = process_session_end_prepare;
	row->event = "ATTEMPT_KILLSESSION_AUDIT";
	row->success = removal->success;
	row->versions = removal->versions;
	row->version_count = removal->version_count;
	row->danger = DANGER_CONFIRM;
	row->query_params = end_params;
	row->query_param_count = sizeof end_params / sizeof *end_params;
}

static void rows_make(void)
{
	static const char *const wanted[PARAMS_MAX] = {"period", "start", "end"};
	const struct op *windows = catalog_op("getProcessMeasurements");
	unsigned char count = 0;
	for (unsigned i = 0; i < windows->query_param_count; i++)
		for (size_t k = 0; k < PARAMS_MAX; k++)
			if (strcmp(windows->query_params[i].name, wanted[k]) == 0 && count < PARAMS_MAX)
				params[count++] = windows->query_params[i];
	for (size_t i = 0; i < PARTS; i++) {
		rows[i] = *catalog_op("listSlowQueryLogs");
		rows[i].id = parts[i].id;
		rows[i].path = parts[i].path;
		rows[i].handler = parts[i].handler;
		rows[i].slow = true;
		rows[i].paginated = rows[i].kept = false;
		rows[i].query_params = params;
		rows[i].query_param_count = parts[i].handler == activity_get ? count : 0;
		if (parts[i].handler == process_session_end)
			row_end_make(&rows[i]);
	}
}

/* Below a process alone: names of other things can end so. */
static bool is_below_process(struct str path)
{
	struct str base = STR(API_BASE "/groups/"), words = STR("processes/"), group, rest;
	if (!str_starts(path, base) || !str_cut((struct str){path.p + base.n, path.n - base.n}, '/', &group, &rest))
		return false;
	return str_starts(rest, words) && !memchr(rest.p + words.n, '/', rest.n - words.n);
}

/* Whatever reads is found by any other method, too. */
static const struct op *part_of(struct str path, struct str method, size_t *ret_length)
{
	const struct op *found = NULL;
	if (is_below_process(path))
		for (size_t i = 0; i < PARTS; i++)
			if (str_ends(path, str_of(parts[i].end)) && (!found || str_is(method, parts[i].method))) {
				*ret_length = path.n - strlen(parts[i].end);
				found = &rows[i];
			}
	return found;
}

bool activity_is_path(struct str path)
{
	size_t length;
	return part_of(path, STR("GET"), &length) != NULL;
}

bool activity_is_change(const struct request *r)
{
	size_t length;
	const struct op *found = part_of(r->path, r->method, &length);
	return found && found == &rows[PARTS - 1];
}

void activity_serve(struct service *s, struct request *r)
{
	size_t length = 0;
	pthread_once(&rows_once, rows_make);
	const struct op *row = part_of(r->path, r->method, &length);
	dispatch_below(s, r, row, (struct str){r->path.p, length});
}
