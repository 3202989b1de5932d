/* What the table says of clusters: which of them the caller may see and asks for, in which order, and what is known to
 * be wrong with them. Nothing is read from the store. */
#include "api/console/overview_rows.h"
#include "api/kit/verbs.h"

#include <math.h>
#include <stdlib.h>

#define ATTENTION_MAX 50 /* of all clusters together */

/* While the table is held. */
struct found {
	const struct roster_item *cluster, *project, *org;
	unsigned urgency; /* NEED_KINDS: none */
};

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
	if (!((principal_org_roles(p, org) | principal_group_roles(p, org, group)) & l->clusters->roles))
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

static const struct {
	const char *name;
	overview_ordering *order;
} orders[] = {{"name", by_name},       {"groupName", by_project}, {"stateName", by_state},
              {"version", by_version}, {"instanceSize", by_size}, {"lastBackupAt", by_backup},
              {"created", by_created}, {"attention", by_urgency}};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct looking *l = ctx;
	int order = l->order(a, b);
	order = l->backwards ? -order : order;
	order = order ? order : by_name(a, b);
	return order ? order : strcmp(((const struct found *)a)->cluster->id, ((const struct found *)b)->cluster->id);
}

static void sort(struct looking *l, overview_ordering *order, bool backwards)
{
	l->order = order;
	l->backwards = backwards;
	if (l->count)
		qsort_r(l->found, l->count, sizeof *l->found, compare, l);
}

int overview_order(struct looking *l)
{
	struct str wanted = call_query(l->call, "sort");
	l->backwards = str_starts(wanted, STR("-"));
	if (l->backwards)
		wanted = (struct str){wanted.p + 1, wanted.n - 1};
	wanted = wanted.n ? wanted : STR("name");
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		if (str_is(wanted, orders[i].name)) {
			l->order = orders[i].order;
			return 0;
		}
	return call_fail_fault(
	        l->call, STR("sort"),
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

int overview_find(struct looking *l)
{
	struct call *c = l->call;
	int r = roster_hold(c);
	if (r < 0)
		return r;
	clusters_find(l, ROSTER_CLUSTER);
	clusters_find(l, ROSTER_FLEX);
	sort(l, l->order, l->backwards);
	rows_take(l, (size_t)list_offset(c), (size_t)c->page_size, &l->page, &l->page_count);
	if (l->needing)
		sort(l, by_urgency, false);
	rows_take(l, 0, l->needing < ATTENTION_MAX ? l->needing : ATTENTION_MAX, &l->urgent, &l->urgent_count);
	locks_find(l);
	roster_release();
	return 0;
}
