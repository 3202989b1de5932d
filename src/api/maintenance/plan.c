/* What is pending in a project, and when it is done. A scan asks the engine each hour which clusters are behind and
 * announces; the project's own job waits for the window, marks the clusters, and tells when the last is done. */
#include "api/maintenance/plan.h"

#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"
#include "api/maintenance/maintenance.h"
#include "base/clock.h"
#include "call/service.h"
#include "trail/events.h"

#include <errno.h>

#define HOUR_MS 3600000LL
#define DAY_MS (24 * HOUR_MS)
#define WEEK_MS (7 * DAY_MS)
#define NOTICE_MS (3 * DAY_MS)
#define LOOK_MS 15000
#define LOOK_MAX 500 /* found in one look: what is written down at once holds up other writes */

int window_load(struct tx *tx, struct arena *a, struct str group_id, struct window *ret_window)
{
	struct window w;
	int r = resource_singleton(tx, a, &resource_maintenance_window, group_id, &w.doc);
	if (r < 0)
		return r;
	w.body = doc_json(a, w.doc.body);
	w.plan = doc_json(a, w.doc.secret);
	*ret_window = w;
	return 0;
}

static struct str job_subject(struct arena *a, struct str group_id)
{
	/* Not the project's id: other jobs of the project shall not wait for the window. */
	return arena_printf(a, "maintenance:%.*s", STR_ARG(group_id));
}

static int job_ask(struct tx *tx, struct arena *a, struct str group_id, int64_t due_ms)
{
	struct job job = {.kind = STR(MAINTENANCE_JOB), .subject = job_subject(a, group_id), .due_ms = due_ms};
	return tx_job_ensure(tx, &job);
}

int window_save(struct tx *tx, struct arena *a, struct window *w)
{
	w->doc.body = json_text(a, w->body);
	w->doc.secret = json_text(a, w->plan);
	int r = doc_put(tx, &w->doc);
	return r < 0 || !window_due(w) ? r : job_ask(tx, a, w->doc.id, window_due(w));
}

void window_reset(struct arena *a, struct window *w)
{
	json_t *deferrals = json_incref(json_object_get(w->body, "numberOfDeferrals"));
	w->body = doc_json(a, str_of(resource_maintenance_window.defaults));
	json_put(w->body, "numberOfDeferrals", deferrals);
	json_object_del(w->plan, "set");
}

int64_t window_next(const json_t *window, int64_t from_ms)
{
	/* 1970 began on a Thursday, the fifth day of a week that begins on Sunday. */
	int64_t day = json_number(window, "dayOfWeek") - 5, hour = json_number(window, "hourOfDay"),
	        start = (day < 0 ? day + 7 : day) * DAY_MS + hour * HOUR_MS;
	if (from_ms <= start)
		return start;
	return start + (from_ms - start + WEEK_MS - 1) / WEEK_MS * WEEK_MS;
}

int64_t window_due(const struct window *w)
{
	return json_number(w->plan, "due");
}

void window_due_set(struct window *w, int64_t due_ms)
{
	json_put(w->plan, "due", json_integer(due_ms));
}

bool window_is_running(const struct window *w)
{
	return json_flag(w->plan, "running");
}

void window_defer(struct window *w)
{
	json_int_t deferrals = json_number(w->body, "numberOfDeferrals");
	json_put(w->body, "numberOfDeferrals", json_integer(deferrals + 1));
	window_due_set(w, window_due(w) + WEEK_MS);
}

static int window_event_write(struct tx *tx, struct arena *a, const char *type, struct str group_id)
{
	return event_service(tx, a, type, STR_NONE, group_id, STR_NONE);
}

/* Which clusters are behind. */

struct look {
	struct arena *arena;
	const struct service *service;
	struct str *ids; /* of clusters, or of their projects */
	size_t count, cap;
	bool groups;
};

static void look_add(struct look *l, struct str id)
{
	if (l->groups && l->count && str_eq(l->ids[l->count - 1], id))
		return; /* the walk goes from project to project */
	ARENA_FIT(l->arena, l->ids, l->count, l->cap);
	l->ids[l->count++] = arena_dup(l->arena, id);
}

/* A paused cluster is brought up to date by its next start. */
static bool is_ready(struct arena *a, const struct doc *cluster)
{
	const json_t *body = doc_json(a, cluster->body);
	struct str state = json_field(body, "stateName");
	return (str_is(state, "IDLE") || str_is(state, "UPDATING")) && !json_flag(body, "paused");
}

/* Announced, and its time has not come: the scan has nothing to write. */
static int is_announced(struct tx *tx, struct arena *a, struct str group_id, bool *ret_announced)
{
	struct window w;
	int r = window_load(tx, a, group_id, &w);
	if (r == 0)
		*ret_announced = window_due(&w) > clock_now_ms();
	return r;
}

static int look_at(struct tx *tx, void *ctx, const struct doc *cluster)
{
	struct look *l = ctx;
	const struct service *s = l->service;
	struct arena *a = arena_new();
	bool announced = false;
	int r = 0;
	if (l->count < LOOK_MAX && s->engine_ops->core->behind(s->engine_state, arena_z(a, cluster->id)) &&
	    is_ready(a, cluster)) {
		if (l->groups)
			r = is_announced(tx, a, cluster->parent, &announced);
		if (r == 0 && !announced)
			look_add(l, l->groups ? cluster->parent : cluster->id);
	}
	arena_free(a);
	return r;
}

/* The scan. */

static int announce(struct tx *tx, struct arena *a, struct str group_id)
{
	struct window w;
	int64_t now = clock_now_ms();
	int r = window_load(tx, a, group_id, &w);
	if (r < 0)
		return r;
	if (window_due(&w)) /* its job is there, or should be */
		return job_ask(tx, a, group_id, window_due(&w));
	bool at_once = json_flag(w.body, "startASAP");
	bool deferred = !at_once && json_flag(w.body, "autoDeferOnceEnabled");
	window_due_set(&w, at_once ? now : window_next(w.body, now + NOTICE_MS));
	if (deferred)
		window_defer(&w);
	r = window_event_write(tx, a, "PROJECT_SCHEDULED_MAINTENANCE", group_id);
	if (r == 0 && deferred)
		r = window_event_write(tx, a, "MAINTENANCE_AUTO_DEFERRED", group_id);
	return r < 0 ? r : window_save(tx, a, &w);
}

static int scan_save(struct tx *tx, struct job_run *r)
{
	const struct look *l = r->save_ctx;
	int result = 0;
	for (size_t i = 0; result == 0 && i < l->count; i++)
		result = announce(tx, r->arena, l->ids[i]);
	return result;
}

static int maintenance_scan_step(struct job_run *r)
{
	struct look *l = arena_new_of(r->arena, struct look);
	*l = (struct look){.arena = r->arena, .service = r->ctx, .groups = true};
	tx_begin_read(r->reader);
	int result = clusters_walk(r->reader, look_at, l);
	job_read_end(r);
	if (result < 0)
		return result;
	r->save = l->count ? scan_save : NULL;
	r->save_ctx = l;
	return l->count == LOOK_MAX ? job_later(r, clock_now_ms() + LOOK_MS) : JOB_DONE;
}

/* The project's job. */

static struct str job_group(const struct job_run *r)
{
	struct str prefix, group_id;
	str_cut(r->job.subject, ':', &prefix, &group_id);
	return group_id;
}

static int start_save(struct tx *tx, struct job_run *r)
{
	const struct look *l = r->save_ctx;
	struct str group_id = job_group(r);
	struct window w;
	int result = window_load(tx, r->arena, group_id, &w);
	/* It may have been put off, or the project deleted, since the step looked. */
	if (result == 0 && (!window_due(&w) || window_due(&w) > clock_now_ms()))
		return 0;
	for (size_t i = 0; result == 0 && i < l->count; i++) {
		struct cluster cluster;
		result = cluster_get(tx, r->arena, l->ids[i], &cluster);
		if (result == -ENOENT || (result == 0 && cluster_is(&cluster, "DELETING"))) {
			result = 0;
			continue;
		}
		if (result == 0) {
			json_put(cluster.plan, "maintain", json_true());
			result = cluster_change(tx, r->arena, &cluster, "UPDATING");
		}
	}
	if (result < 0)
		return result;
	json_put(w.plan, "running", json_true());
	result = window_event_write(tx, r->arena, "MAINTENANCE_STARTED", group_id);
	return result < 0 ? result : window_save(tx, r->arena, &w);
}

/* Nothing is pending any more. */
static int end_save(struct tx *tx, struct job_run *r)
{
	const bool *done = r->save_ctx;
	struct str group_id = job_group(r);
	struct window w;
	int result = window_load(tx, r->arena, group_id, &w);
	if (result < 0 || !window_due(&w)) /* it went with its project */
		return result;
	json_object_del(w.plan, "due");
	json_object_del(w.plan, "running");
	json_put(w.body, "numberOfDeferrals", json_integer(0));
	json_put(w.body, "startASAP", json_false());
	result = window_event_write(tx, r->arena, *done ? "MAINTENANCE_COMPLETED" : "MAINTENANCE_NO_LONGER_NEEDED",
	                            group_id);
	return result < 0 ? result : window_save(tx, r->arena, &w);
}

static int end(struct job_run *r, bool done)
{
	bool *told = arena_new_of(r->arena, bool);
	*told = done;
	r->save = end_save;
	r->save_ctx = told;
	return JOB_DONE;
}

static int busy_look(struct tx *tx, void *ctx, const struct doc *cluster)
{
	bool *busy = ctx;
	*busy = *busy || memmem(cluster->secret.p, cluster->secret.n, "\"maintain\":true", 15);
	return 0;
}

static int maintenance_step(struct job_run *r)
{
	struct look *l = arena_new_of(r->arena, struct look);
	struct str group_id = job_group(r);
	struct window w;
	bool busy = false;
	*l = (struct look){.arena = r->arena, .service = r->ctx};
	tx_begin_read(r->reader);
	int result = window_load(r->reader, r->arena, group_id, &w);
	if (result == 0)
		result = clusters_walk_group(r->reader, r->arena, group_id, busy_look, &busy);
	if (result == 0 && !window_is_running(&w))
		result = clusters_walk_group(r->reader, r->arena, group_id, look_at, l);
	job_read_end(r);
	if (result < 0)
		return result;
	if (!window_due(&w))
		return JOB_DONE;
	if (window_is_running(&w))
		return busy ? job_later(r, clock_now_ms() + LOOK_MS) : end(r, true);
	if (window_due(&w) > clock_now_ms())
		return job_later(r, window_due(&w));
	if (!l->count)
		return end(r, false);
	r->save = start_save;
	r->save_ctx = l;
	return job_later(r, clock_now_ms() + LOOK_MS);
}

static int cluster_converged(struct tx *tx, struct arena *a, const struct cluster *cluster, bool maintained)
{
	return maintained ? job_ask(tx, a, cluster->doc.parent, clock_now_ms()) : 0;
}

const struct cluster_part maintenance_part = {.converged = cluster_converged};

static const struct job_kind kinds[] = {
        {.name = MAINTENANCE_JOB, .step = maintenance_step},
        {.name = MAINTENANCE_SCAN_JOB, .step = maintenance_scan_step, .period_ms = MAINTENANCE_SCAN_MS},
};
const struct job_kinds maintenance_jobs = JOB_KINDS(kinds);
