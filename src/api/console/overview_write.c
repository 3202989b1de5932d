/* The overview as JSON: rows, what needs attention with its reason and the next step, and what happened last. */
#include "api/console/overview_rows.h"
#include "base/clock.h"

#include <math.h>

#define ACTIVITY 20
#define ACTIVITY_LOOK 500 /* of the newest events of all projects */

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

/* --- what happened last */

static bool event_is_seen(const struct looking *l, const struct event *e)
{
	const struct principal *p = l->call->caller;
	role_mask org = principal_org_roles(p, e->org_id);
	if ((l->org_id.n && !str_eq(e->org_id, l->org_id)) || (l->group_id.n && !str_eq(e->group_id, l->group_id)))
		return false;
	if (e->for_org && !l->group_id.n && (org & l->org_events->roles))
		return true;
	return e->for_group && ((org | principal_group_roles(p, e->org_id, e->group_id)) & l->group_events->roles);
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

static void need_put(struct buf *b, const struct row *r, const struct needed *n, bool whose)
{
	bool flex = r->facts.flex && n->what == NEED_FAILED;
	json_open(b, '{');
	json_pair_z(b, "code", needs[n->what].code);
	json_pair_str(b, "text", n->why.n ? n->why : str_of(needs[n->what].text));
	json_pair_z(b, "nextStep", needs[n->what].next);
	json_pair_z(b, "operationId", flex ? "updateFlexCluster" : needs[n->what].op);
	if (n->id.n)
		json_pair_str(b, "alertId", n->id);
	if (whose) {
		json_pair_str(b, "clusterName", r->name);
		json_pair_str(b, "groupId", r->group_id);
		json_pair_str(b, "groupName", r->group_name);
		json_pair_str(b, "orgId", r->org_id);
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
		json_pair_z(b, "name", n->name);
		json_pair_z(b, "role", role_of(n));
		json_pair_z(b, "state", states[n->state]);
		json_pair_int(b, "shard", n->shard);
		json_close(b, '}');
	}
	json_close(b, ']');
	json_pair_int(b, "nodesUp", up);
	json_pair_int(b, "nodesTotal", r->status.node_count ? (int64_t)r->status.node_count : r->facts.nodes);
	if (primary)
		json_pair_z(b, "primary", primary->name);
}

static void row_put(struct buf *b, const struct row *r)
{
	json_open(b, '{');
	json_pair_str(b, "id", r->id);
	json_pair_str(b, "name", r->name);
	json_pair_str(b, "groupId", r->group_id);
	json_pair_str(b, "groupName", r->group_name);
	json_pair_str(b, "orgId", r->org_id);
	json_pair_str(b, "orgName", r->org_name);
	json_pair_str(b, "clusterType", r->facts.flex ? STR("FLEX") : str_of(r->facts.type));
	json_pair_z(b, "stateName", r->facts.state);
	json_pair_bool(b, "paused", r->facts.paused);
	json_pair_z(b, "version", r->facts.version);
	if (r->facts.size[0])
		json_pair_z(b, "instanceSize", r->facts.size);
	nodes_put(b, r);
	if (!isnan(r->lag_s)) {
		json_key(b, "lagSeconds");
		json_sep(b);
		buf_printf(b, "%.3f", r->lag_s);
	}
	if (r->status.disk_used)
		json_pair_int(b, "diskUsedBytes", (int64_t)r->status.disk_used);
	json_pair_int(b, "diskBytes",
	              r->status.disk_limit ? (int64_t)r->status.disk_limit : r->facts.disk_gb * INT64_C(1073741824));
	json_pair_bool(b, "backupEnabled", r->facts.backups);
	if (r->line.taken_ms)
		json_pair_time(b, "lastBackupAt", r->line.taken_ms);
	if (r->progress.n)
		json_pair_str(b, "progress", r->progress);
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

int overview_write(struct looking *l)
{
	struct buf *b = &l->call->out;
	json_open(b, '{');
	json_key(b, "results");
	json_open(b, '[');
	for (size_t i = 0; i < l->page_count; i++)
		row_put(b, &l->page[i]);
	json_close(b, ']');
	json_pair_int(b, "totalCount", (int64_t)l->count);
	json_pair_int(b, "attentionCount", (int64_t)l->needing);
	attention_put(b, l);
	int r = activity_write(l, b);
	json_close(b, '}');
	return r;
}
