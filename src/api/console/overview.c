/* The overview. What is known of all clusters comes from the table (roster.h), so that searching, sorting and counting
 * read nothing; nodes, disks and jobs are looked at for the clusters of the page alone. */
#include "api/console/overview.h"

#include "api/clusters/clusters.h"
#include "api/console/roster.h"
#include "api/kit/verbs.h"
#include "api/metrics/metrics.h"
#include "base/clock.h"
#include "catalog/formats.h"
#include "engine/measures.h"
#include "gate/dispatch.h"
#include "gate/gate.h"
#include "hosts/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define ATTENTION_MAX 50 /* of all clusters together */
#define NEEDS_MAX 12     /* of one cluster */
#define ACTIVITY 20
#define ACTIVITY_LOOK 500 /* of the newest events of all projects */
#define STUCK_MS 1800000  /* a change that takes longer is told of */
#define NEARLY_FULL 90    /* per cent */
#define WHY_MAX 600
#define LAG_NODES 600 /* of a page whose lag is read */

/* What needs attention: why, and what to do about it. The most urgent first. */
enum need {
	NEED_DATA_MISSING,
	NEED_FAILED,
	NEED_NO_PRIMARY,
	NEED_DISK_FULL,
	NEED_NODE_DOWN,
	NEED_ACCESS,
	NEED_ALERT,
	NEED_BACKUP_OVERDUE,
	NEED_DISK_NEARLY_FULL,
	NEED_STUCK,
	NEED_BACKUP_UNPROVEN,
	NEED_BEHIND,
	NEED_KINDS
};

static const struct {
	const char *code, *text, *next, *op;
} needs[NEED_KINDS] = {
        [NEED_DATA_MISSING] = {"DATA_MISSING", "Its data is not where it was left.",
                               "Bring the disk back, or restore a snapshot.", "createBackupRestoreJob"},
        [NEED_FAILED] = {"CHANGE_FAILED", "The last change did not succeed.",
                         "Mend the cause. The change is tried again by itself, or is replaced by another.",
                         "updateCluster"},
        [NEED_NO_PRIMARY] = {"NO_PRIMARY", "No node takes writes.", "Look at the logs of its nodes.",
                             "downloadClusterLog"},
        [NEED_DISK_FULL] = {"DISK_FULL", "The disk is full: it takes no writes.",
                            "Give it a larger disk, or delete data.", "updateCluster"},
        [NEED_NODE_DOWN] = {"NODE_DOWN", "A node is down.", "Look at its log. It is started again by itself.",
                            "downloadClusterLog"},
        [NEED_ACCESS] = {"ACCESS_NOT_APPLIED", "A change of users or networks is not in force.",
                         "It is tried again by itself. Look whether the cluster's nodes run.", "getClusterStatus"},
        [NEED_ALERT] = {"ALERT_OPEN", "An alert is open.", "Look at it, and acknowledge it.", "acknowledgeAlert"},
        [NEED_BACKUP_OVERDUE] = {"BACKUP_OVERDUE", "It has no new snapshot for two periods of its schedule.",
                                 "Take one now, and look why the schedule is not kept.", "takeSnapshots"},
        [NEED_DISK_NEARLY_FULL] = {"DISK_NEARLY_FULL", "The disk is nearly full.",
                                   "Give it a larger disk, or delete data.", "updateCluster"},
        [NEED_STUCK] = {"STATE_LASTS", "The change takes longer than half an hour.", "Look at its progress.",
                        "getClusterStatus"},
        [NEED_BACKUP_UNPROVEN] = {"BACKUP_UNPROVEN", "The last trial of restoring a snapshot failed.",
                                  "Take a snapshot, and look at the events of the trial.", "takeSnapshots"},
        [NEED_BEHIND] = {"MAINTENANCE_DUE", "Nodes run an older minor version, or with certificates that end soon.",
                         "Wait for the maintenance window, or choose a nearer one.", "updateMaintenanceWindow"},
};

struct needed {
	enum need what;
	struct str why; /* more than the usual text; or empty */
	struct str id;  /* of the alert */
};

/* One cluster of the page; what the table said, copied. */
struct row {
	struct str id, name, group_id, group_name, org_id, org_name;
	struct roster_cluster facts;
	struct roster_line line;
	bool has_line;
	struct needed list[NEEDS_MAX];
	size_t count;
	struct cluster_status status;
	struct str progress;
	double lag_s; /* the greatest of its standbys; NaN: not known */
};

/* While the table is held. */
struct found {
	const struct roster_item *cluster, *project, *org;
	unsigned urgency; /* NEED_KINDS: none */
};

struct looking {
	struct call *call;
	struct arena *arena;
	struct str org_id, group_id, query;
	bool only_needing;
	struct found *found;
	size_t count, room, needing;
	struct row *page, *urgent;
	size_t page_count, urgent_count;
	json_t *locks;
};

static const struct op *cluster_list, *org_events, *group_events;

/* --- what the table says */

static void need_add(struct row *r, enum need what, struct str why, struct str id)
{
	if (r->count < NEEDS_MAX)
		r->list[r->count++] = (struct needed){what, why, id};
}

static const struct roster_line *line_of(const struct roster_item *cluster)
{
	const struct roster_item *line = roster_find(ROSTER_LINE, cluster->id);
	return line ? line->facts : NULL;
}

static unsigned urgency_of(const struct roster_item *cluster)
{
	const struct roster_cluster *f = cluster->facts;
	const struct roster_line *line = line_of(cluster);
	const struct roster_item *alert;
	if (f->missing)
		return NEED_DATA_MISSING;
	if (f->why)
		return NEED_FAILED;
	if (roster_alerts(cluster->parent, cluster->name, &alert))
		return NEED_ALERT;
	if (line && line->wanted && line->overdue)
		return NEED_BACKUP_OVERDUE;
	return line && line->unproven ? NEED_BACKUP_UNPROVEN : NEED_KINDS;
}

static void row_fill(struct arena *a, const struct found *from, struct row *to)
{
	const struct roster_cluster *f = from->cluster->facts;
	const struct roster_line *line = line_of(from->cluster);
	const struct roster_item *alert;
	const struct roster_org *org = from->org ? from->org->facts : NULL;
	*to = (struct row){.id = arena_dup(a, str_of(from->cluster->id)),
	                   .name = arena_dup(a, str_of(from->cluster->name)),
	                   .group_id = arena_dup(a, str_of(from->project->id)),
	                   .group_name = arena_dup(a, str_of(from->project->name)),
	                   .org_id = arena_dup(a, str_of(from->project->parent)),
	                   .org_name = org ? arena_dup(a, str_of(org->name)) : STR_NONE,
	                   .facts = *f,
	                   .line = line ? *line : (struct roster_line){0},
	                   .has_line = line,
	                   .lag_s = NAN};
	struct str why = f->why ? arena_dup(a, str_of(f->why)) : STR_NONE;
	to->facts.why = NULL;
	if (f->missing)
		need_add(to, NEED_DATA_MISSING, why, STR_NONE);
	else if (why.n)
		need_add(to, NEED_FAILED, why, STR_NONE);
	size_t alerts = roster_alerts(from->cluster->parent, from->cluster->name, &alert);
	if (alerts) {
		const char *type = ((const struct roster_alert *)alert->facts)->type;
		need_add(to, NEED_ALERT,
		         alerts > 1 ? arena_printf(a, "%zu alerts are open; one of them: %s.", alerts, type)
		                    : arena_printf(a, "The alert %s is open.", type),
		         arena_dup(a, str_of(alert->id)));
	}
	if (line && line->wanted && line->overdue)
		need_add(to, NEED_BACKUP_OVERDUE, STR_NONE, STR_NONE);
	if (line && line->unproven)
		need_add(to, NEED_BACKUP_UNPROVEN, STR_NONE, STR_NONE);
}

/* Letters of ASCII alike, the rest as it is. */
static bool contains(const char *text, struct str part)
{
	size_t n = strlen(text);
	for (size_t i = 0; i + part.n <= n; i++)
		if (str_ieq((struct str){text + i, part.n}, part))
			return true;
	return false;
}

static bool is_wanted(const struct looking *l, const struct found *f)
{
	const struct principal *p = l->call->caller;
	struct str org = str_of(f->project->parent), group = str_of(f->project->id);
	if ((l->org_id.n && !str_eq(org, l->org_id)) || (l->group_id.n && !str_eq(group, l->group_id)))
		return false;
	if (!((principal_org_roles(p, org) | principal_group_roles(p, org, group)) & cluster_list->roles))
		return false;
	return !l->query.n || contains(f->cluster->name, l->query) || contains(f->project->name, l->query);
}

static void clusters_find(struct looking *l, enum roster_kind kind)
{
	size_t count;
	const struct roster_item *list = roster_all(kind, &count);
	for (size_t i = 0; i < count; i++) {
		struct found f = {.cluster = &list[i], .project = roster_find(ROSTER_PROJECT, list[i].parent)};
		if (!f.project || !list[i].facts || !is_wanted(l, &f))
			continue;
		f.org = roster_find(ROSTER_ORG, f.project->parent);
		f.urgency = urgency_of(f.cluster);
		l->needing += f.urgency < NEED_KINDS;
		if (l->only_needing && f.urgency == NEED_KINDS)
			continue;
		ARENA_FIT(l->arena, l->found, l->count, l->room);
		l->found[l->count++] = f;
	}
}

/* --- order */

static int by_name(const struct found *a, const struct found *b)
{
	int order = strcasecmp(a->cluster->name, b->cluster->name);
	return order ? order : strcasecmp(a->project->name, b->project->name);
}

static int by_project(const struct found *a, const struct found *b)
{
	return strcasecmp(a->project->name, b->project->name);
}

static const struct roster_cluster *facts_of(const struct found *f)
{
	return f->cluster->facts;
}

static int by_state(const struct found *a, const struct found *b)
{
	int order = strcmp(facts_of(a)->state, facts_of(b)->state);
	return order ? order : facts_of(a)->paused - facts_of(b)->paused;
}

static int by_version(const struct found *a, const struct found *b)
{
	return strverscmp(facts_of(a)->version, facts_of(b)->version);
}

/* "M10" before "M200". */
static int by_size(const struct found *a, const struct found *b)
{
	return strverscmp(facts_of(a)->size, facts_of(b)->size);
}

static int by_backup(const struct found *a, const struct found *b)
{
	const struct roster_line *x = line_of(a->cluster), *y = line_of(b->cluster);
	int64_t left = x ? x->taken_ms : 0, right = y ? y->taken_ms : 0;
	return left < right ? -1 : left > right;
}

static int by_created(const struct found *a, const struct found *b)
{
	return a->cluster->created_ms < b->cluster->created_ms ? -1 : a->cluster->created_ms > b->cluster->created_ms;
}

static int by_urgency(const struct found *a, const struct found *b)
{
	return a->urgency < b->urgency ? -1 : a->urgency > b->urgency;
}

typedef int ordering(const struct found *a, const struct found *b);
static const struct {
	const char *name;
	ordering *order;
} orders[] = {{"name", by_name},       {"groupName", by_project}, {"stateName", by_state},
              {"version", by_version}, {"instanceSize", by_size}, {"lastBackupAt", by_backup},
              {"created", by_created}, {"attention", by_urgency}};

struct chosen {
	ordering *order;
	bool backwards;
};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct chosen *chosen = ctx;
	int order = chosen->order(a, b);
	order = chosen->backwards ? -order : order;
	order = order ? order : by_name(a, b);
	return order ? order : strcmp(((const struct found *)a)->cluster->id, ((const struct found *)b)->cluster->id);
}

static void sort(struct looking *l, const struct chosen *chosen)
{
	if (l->count)
		qsort_r(l->found, l->count, sizeof *l->found, compare, (void *)(uintptr_t)chosen);
}

static int order_find(struct call *c, struct chosen *ret_chosen)
{
	struct str wanted = call_query(c, "sort");
	ret_chosen->backwards = str_starts(wanted, STR("-"));
	if (ret_chosen->backwards)
		wanted = (struct str){wanted.p + 1, wanted.n - 1};
	wanted = wanted.n ? wanted : STR("name");
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		if (str_is(wanted, orders[i].name)) {
			ret_chosen->order = orders[i].order;
			return 0;
		}
	return call_fail_fault(
	        c, STR("sort"),
	        "must be one of name, groupName, stateName, version, instanceSize, lastBackupAt, created, "
	        "attention, or one of these after a minus");
}

static void rows_take(struct looking *l, size_t from, size_t most, struct row **ret_rows, size_t *ret_count)
{
	size_t count = from < l->count ? l->count - from : 0;
	count = count < most ? count : most;
	*ret_rows = arena_new_array(l->arena, struct row, count + 1);
	for (size_t i = 0; i < count; i++)
		row_fill(l->arena, &l->found[from + i], &(*ret_rows)[i]);
	*ret_count = count;
}

/* Organizations that nobody can change anything in. */
static void locks_find(struct looking *l)
{
	size_t count;
	const struct roster_item *list = roster_all(ROSTER_LOCK, &count);
	l->locks = json_keep(l->arena, json_array());
	for (size_t i = 0; i < count; i++) {
		const struct roster_lock *lock = list[i].facts;
		const struct roster_item *org = roster_find(ROSTER_ORG, list[i].id);
		const struct roster_org *facts = org ? org->facts : NULL;
		if (!lock || !facts || !principal_org_roles(l->call->caller, str_of(list[i].id)) ||
		    (l->org_id.n && !str_is(l->org_id, list[i].id)))
			continue;
		json_array_append_new(l->locks,
		                      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "code", "ORG_LOCKED", "orgId",
		                                list[i].id, "orgName", facts->name, "text",
		                                *lock->reason ? lock->reason : "The organization is locked.",
		                                "nextStep", *lock->way_out ? lock->way_out : "Pay what is due.",
		                                "operationId", "listInvoices"));
	}
}

static int table_look(struct looking *l, const struct chosen *chosen)
{
	const struct chosen urgent = {.order = by_urgency};
	struct call *c = l->call;
	int r = roster_hold(c);
	if (r < 0)
		return r;
	clusters_find(l, ROSTER_CLUSTER);
	clusters_find(l, ROSTER_FLEX);
	sort(l, chosen);
	rows_take(l, (size_t)list_offset(c), (size_t)c->page_size, &l->page, &l->page_count);
	sort(l, &urgent);
	rows_take(l, 0, l->needing < ATTENTION_MAX ? l->needing : ATTENTION_MAX, &l->urgent, &l->urgent_count);
	locks_find(l);
	roster_release();
	return 0;
}

/* --- what is to be seen of the page's clusters */

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
static bool look(struct call *c, struct arena *a, struct cluster_sight *list, size_t count)
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
			(void)look(c, a, part, n);
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
	if (!look(c, l->arena, list, l->page_count))
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

/* --- what happened last */

static bool event_is_seen(const struct looking *l, const struct event *e)
{
	const struct principal *p = l->call->caller;
	role_mask org = principal_org_roles(p, e->org_id);
	if ((l->org_id.n && !str_eq(e->org_id, l->org_id)) || (l->group_id.n && !str_eq(e->group_id, l->group_id)))
		return false;
	if (e->for_org && !l->group_id.n && (org & org_events->roles))
		return true;
	return e->for_group && ((org | principal_group_roles(p, e->org_id, e->group_id)) & group_events->roles);
}

/* Most types have no field for the cluster; the table of a project's events knows it. */
static void event_put(struct buf *b, const struct event *e)
{
	bool known = !e->cluster.n || memmem(e->body.p, e->body.n, "\"clusterName\":", 14);
	json_raw(b, (struct str){e->body.p, e->body.n - !known});
	if (known)
		return;
	json_key(b, "clusterName");
	json_str(b, e->cluster);
	json_close(b, '}');
}

static int activity_write(struct looking *l, struct buf *b)
{
	struct call *c = l->call;
	struct event *events = NULL;
	size_t count = 0, shown = 0;
	int64_t newest = 0;
	int r;
	if (l->group_id.n) {
		const struct event_filter f = {.scope = l->group_id};
		r = tx_event_list(c->tx, l->arena, &f, 0, ACTIVITY, &events, &count);
	} else {
		r = tx_event_newest(c->tx, &newest);
		if (r == 0)
			r = tx_event_since(c->tx, l->arena, newest - ACTIVITY_LOOK, ACTIVITY_LOOK, &events, &count);
	}
	json_key(b, "activity");
	json_open(b, '[');
	for (size_t i = 0; r == 0 && i < count && shown < ACTIVITY; i++) {
		const struct event *e = &events[l->group_id.n ? i : count - 1 - i];
		if (!event_is_seen(l, e))
			continue;
		event_put(b, e);
		shown++;
	}
	json_close(b, ']');
	return r;
}

/* --- the answer */

static void text_put(struct buf *b, const char *name, struct str text)
{
	json_key(b, name);
	json_str(b, text);
}

static void number_put(struct buf *b, const char *name, int64_t number)
{
	json_key(b, name);
	json_int(b, number);
}

static void flag_put(struct buf *b, const char *name, bool flag)
{
	json_key(b, name);
	json_bool(b, flag);
}

static void need_put(struct buf *b, const struct row *r, const struct needed *n, bool whose)
{
	bool flex = r->facts.flex && n->what == NEED_FAILED;
	json_open(b, '{');
	text_put(b, "code", str_of(needs[n->what].code));
	text_put(b, "text", n->why.n ? n->why : str_of(needs[n->what].text));
	text_put(b, "nextStep", str_of(needs[n->what].next));
	text_put(b, "operationId", str_of(flex ? "updateFlexCluster" : needs[n->what].op));
	if (n->id.n)
		text_put(b, "alertId", n->id);
	if (whose) {
		text_put(b, "clusterName", r->name);
		text_put(b, "groupId", r->group_id);
		text_put(b, "groupName", r->group_name);
		text_put(b, "orgId", r->org_id);
	}
	json_close(b, '}');
}

static const char *role_of(const struct node_status *n)
{
	static const char *const roles[NODE_KINDS] = {"STANDBY", "READ_ONLY", "ANALYTICS", "ROUTER"};
	return n->primary ? "PRIMARY" : roles[n->kind];
}

static void nodes_put(struct buf *b, const struct row *r)
{
	static const char *const states[NODE_STATES] = {"ABSENT", "STARTING", "RUNNING", "STOPPED", "FAILED"};
	const struct node_status *primary = NULL;
	int64_t up = 0;
	json_key(b, "nodes");
	json_open(b, '[');
	for (size_t i = 0; i < r->status.node_count; i++) {
		const struct node_status *n = &r->status.nodes[i];
		up += n->state == NODE_RUNNING;
		primary = n->primary && !primary ? n : primary;
		json_open(b, '{');
		text_put(b, "name", str_of(n->name));
		text_put(b, "role", str_of(role_of(n)));
		text_put(b, "state", str_of(states[n->state]));
		number_put(b, "shard", n->shard);
		json_close(b, '}');
	}
	json_close(b, ']');
	number_put(b, "nodesUp", up);
	number_put(b, "nodesTotal", r->status.node_count ? (int64_t)r->status.node_count : r->facts.nodes);
	if (primary)
		text_put(b, "primary", str_of(primary->name));
}

static void row_put(struct buf *b, const struct row *r)
{
	char at[CLOCK_TEXT];
	json_open(b, '{');
	text_put(b, "id", r->id);
	text_put(b, "name", r->name);
	text_put(b, "groupId", r->group_id);
	text_put(b, "groupName", r->group_name);
	text_put(b, "orgId", r->org_id);
	text_put(b, "orgName", r->org_name);
	text_put(b, "clusterType", r->facts.flex ? STR("FLEX") : str_of(r->facts.type));
	text_put(b, "stateName", str_of(r->facts.state));
	flag_put(b, "paused", r->facts.paused);
	text_put(b, "version", str_of(r->facts.version));
	if (r->facts.size[0])
		text_put(b, "instanceSize", str_of(r->facts.size));
	nodes_put(b, r);
	if (!isnan(r->lag_s)) {
		json_key(b, "lagSeconds");
		json_sep(b);
		buf_printf(b, "%.3f", r->lag_s);
	}
	if (r->status.disk_used)
		number_put(b, "diskUsedBytes", (int64_t)r->status.disk_used);
	number_put(b, "diskBytes",
	           r->status.disk_limit ? (int64_t)r->status.disk_limit : r->facts.disk_gb * INT64_C(1073741824));
	flag_put(b, "backupEnabled", r->facts.backups);
	if (r->line.taken_ms) {
		clock_format(r->line.taken_ms, at);
		text_put(b, "lastBackupAt", str_of(at));
	}
	if (r->progress.n)
		text_put(b, "progress", r->progress);
	json_key(b, "attention");
	json_open(b, '[');
	for (size_t i = 0; i < r->count; i++)
		need_put(b, r, &r->list[i], false);
	json_close(b, ']');
	json_close(b, '}');
}

static bool is_urgent_already(const struct looking *l, const struct row *r, enum need what)
{
	for (size_t i = 0; i < l->urgent_count; i++)
		for (size_t k = 0; str_eq(l->urgent[i].id, r->id) && k < l->urgent[i].count; k++)
			if (l->urgent[i].list[k].what == what)
				return true;
	return false;
}

/* Of all clusters what the table knows, and what was seen of this page's. */
static void attention_put(struct buf *b, struct looking *l)
{
	size_t i;
	json_t *lock;
	json_key(b, "attention");
	json_open(b, '[');
	json_array_foreach(l->locks, i, lock) json_raw(b, json_text(l->arena, lock));
	for (i = 0; i < l->urgent_count; i++)
		for (size_t k = 0; k < l->urgent[i].count; k++)
			need_put(b, &l->urgent[i], &l->urgent[i].list[k], true);
	for (i = 0; i < l->page_count; i++)
		for (size_t k = 0; k < l->page[i].count; k++)
			if (!is_urgent_already(l, &l->page[i], l->page[i].list[k].what))
				need_put(b, &l->page[i], &l->page[i].list[k], true);
	json_close(b, ']');
}

static int answer_write(struct looking *l)
{
	struct buf *b = &l->call->out;
	json_open(b, '{');
	json_key(b, "results");
	json_open(b, '[');
	for (size_t i = 0; i < l->page_count; i++)
		row_put(b, &l->page[i]);
	json_close(b, ']');
	number_put(b, "totalCount", (int64_t)l->count);
	number_put(b, "attentionCount", (int64_t)l->needing);
	attention_put(b, l);
	int r = activity_write(l, b);
	json_close(b, '}');
	return r;
}

/* As the gate asks of paths that name them. */
static int scope_check(struct call *c, const char *kind, struct str id, const char *code)
{
	struct doc d;
	if (!id.n)
		return 0;
	int r = id_is_valid(id) ? tx_get(c->tx, c->arena, kind, id, &d) : -ENOENT;
	if (r == -ENOENT)
		return call_fail_about(c, 404, code, id, "There is no %s %.*s.", kind, STR_ARG(id));
	if (r < 0)
		return r;
	bool is_org = strcmp(kind, "org") == 0;
	role_mask roles = principal_org_roles(c->caller, is_org ? id : d.parent);
	if (!is_org)
		roles |= principal_group_roles(c->caller, d.parent, id);
	/* Who has a role in a project alone is shown that, of its organization. */
	for (size_t i = 0; is_org && !roles && i < c->caller->grant_count; i++)
		roles |= c->caller->grants[i].roles & ~role_org_mask;
	return roles ? 0
	             : call_fail(c, 403, "USER_UNAUTHORIZED", "The caller is not authorized to access this resource.");
}

static int overview(struct call *c)
{
	struct chosen chosen = {0};
	struct looking l = {.call = c,
	                    .arena = c->arena,
	                    .org_id = call_query(c, "orgId"),
	                    .group_id = call_query(c, "groupId"),
	                    .query = str_trim(call_query(c, "q")),
	                    .only_needing = call_query_bool(c, "attention", false)};
	int r = order_find(c, &chosen);
	if (r == 0)
		r = scope_check(c, "org", l.org_id, "ORG_NOT_FOUND");
	if (r == 0)
		r = scope_check(c, "project", l.group_id, "GROUP_NOT_FOUND");
	if (r == 0)
		r = table_look(&l, &chosen);
	if (r == 0)
		statuses_look(&l);
	if (r == 0)
		r = jobs_look(&l);
	if (r < 0)
		return r;
	lags_look(&l);
	c->content_type = "application/json";
	return answer_write(&l);
}

/* --- its row */

static const struct schema id_schema = {.type = TYPE_STRING, .pattern = -1, .min_length = ID_LEN, .max_length = ID_LEN};
static const struct schema text_schema = {.type = TYPE_STRING, .pattern = -1, .max_length = 100};
static const struct schema flag_schema = {.type = TYPE_BOOLEAN, .pattern = -1};
static const struct param params[] = {
        {.name = "orgId", .description = "Only clusters of this organization", .schema = &id_schema},
        {.name = "groupId", .description = "Only clusters of this project", .schema = &id_schema},
        {.name = "q", .description = "Only clusters whose name, or whose project's, has this", .schema = &text_schema},
        {.name = "sort", .description = "The order; a minus before it turns it around", .schema = &text_schema},
        {.name = "attention", .description = "Only clusters that need it", .schema = &flag_schema},
};

static struct op row;
static pthread_once_t row_once = PTHREAD_ONCE_INIT;

/* Much like the list of all clusters. */
static void row_make(void)
{
	cluster_list = catalog_op("listClusters");
	org_events = catalog_op("listOrgEvents");
	group_events = catalog_op("listGroupEvents");
	row = *catalog_op("listClusterDetails");
	row.id = "getConsoleOverview";
	row.path = OVERVIEW_PATH;
	row.handler = overview;
	row.slow = true;
	row.paginated = true;
	row.query_params = params;
	row.query_param_count = sizeof params / sizeof *params;
}

void overview_serve(struct service *s, struct request *r)
{
	pthread_once(&row_once, row_make);
	dispatch_as(s, r, &row);
}
