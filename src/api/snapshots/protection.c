/* The backup compliance policy: floors that nobody in the project goes below, its owner neither, until the operator of
 * the service has approved that it may be disabled. A policy can be made stricter, never weaker. */
#include "api/snapshots/protection.h"

#include "api/kit/lifecycle.h"
#include "api/kit/resources.h"
#include "api/kit/verbs.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/jobs.h"
#include "api/snapshots/schedule.h"
#include "api/snapshots/snapshot.h"
#include "api/snapshots/times.h"
#include "base/clock.h"
#include "base/id.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

#define WINDOW_MAX 365
#define NAMES_MAX 20 /* of clusters, in a refusal */

int protection_load(struct tx *tx, struct arena *a, struct str group_id, json_t **ret_policy)
{
	struct doc d;
	int r = tx_get(tx, a, COMPLIANCE_KIND, group_id, &d);
	*ret_policy = r == 0 ? doc_json(a, d.body) : NULL;
	return r == -ENOENT ? 0 : r;
}

static const json_t *scheduled(const json_t *policy)
{
	return json_object_get(policy, "scheduledPolicyItems");
}

static json_t *items_of(const json_t *schedule)
{
	return json_object_get(json_array_get(json_object_get(schedule, "policies"), 0), "policyItems");
}

static int64_t kept_ms(const json_t *item)
{
	return retention_ms(json_field(item, "retentionUnit"), json_number(item, "retentionValue"));
}

static bool same_kind(const json_t *item, const json_t *other)
{
	return str_eq(json_field(item, "frequencyType"), json_field(other, "frequencyType"));
}

/* Taken as often, and kept as long. Hours count; on which day of the week, month or year does not. */
static bool is_enough(const json_t *item, const json_t *asked)
{
	bool often = frequency_find(json_field(asked, "frequencyType")) != HOURLY ||
	             json_number(item, "frequencyInterval") <= json_number(asked, "frequencyInterval");
	return same_kind(item, asked) && often && kept_ms(item) >= kept_ms(asked);
}

static bool has_enough(const json_t *items, const json_t *asked)
{
	for (size_t i = 0; i < json_array_size(items); i++)
		if (is_enough(json_array_get(items, i), asked))
			return true;
	return false;
}

static void item_words(const json_t *item, char *to, size_t size)
{
	snprintf(to, size, "%.*s, kept for %lld %.*s", STR_ARG(json_field(item, "frequencyType")),
	         (long long)json_number(item, "retentionValue"), STR_ARG(json_field(item, "retentionUnit")));
}

/* --- what it means for a schedule */

static void schedule_lacks(const json_t *policy, const json_t *schedule, struct arena *a, struct faults *faults)
{
	const json_t *asked = scheduled(policy), *items = items_of(schedule);
	char text[80];
	for (size_t i = 0; i < json_array_size(asked); i++) {
		const json_t *one = json_array_get(asked, i);
		item_words(one, text, sizeof text);
		if (!has_enough(items, one))
			faults_add(faults, a, STR("policies[0].policyItems"),
			           "must have an item that is at least %s, by the project's backup compliance policy",
			           text);
	}
	if (json_number(schedule, "restoreWindowDays") < json_number(policy, "restoreWindowDays"))
		faults_add(faults, a, STR("restoreWindowDays"),
		           "must be at least %lld, by the project's backup compliance policy",
		           (long long)json_number(policy, "restoreWindowDays"));
}

/* Whether the call would take a copy away: by its region, or because no setting wants copies there any more. */
static bool drops_copy(const struct call *c, const json_t *schedule, const json_t *copy)
{
	struct str region = json_field(copy, "region");
	return json_find(json_object_get(c->body, "deleteCopiedBackups"), "regionName", region) ||
	       (json_flag(c->body, "deleteCopySnapshots") &&
	        !json_find(json_object_get(schedule, "copySettings"), "regionName", region));
}

static int copies_check(struct call *c, const json_t *schedule, struct faults *faults)
{
	struct snapshot *list;
	size_t count = 0;
	int r = snapshots_of(c->tx, c->arena, json_field(schedule, "clusterId"), &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *copies = json_object_get(list[i].plan, "copies");
		int64_t floor = 0;
		for (size_t k = 0; r == 0 && k < json_array_size(copies); k++) {
			if (!drops_copy(c, schedule, json_array_get(copies, k)))
				continue;
			r = protection_copies(c->tx, c->arena, &list[i], &floor);
			if (r < 0 || clock_now_ms() >= list[i].doc.created_ms + floor)
				continue;
			faults_add(faults, c->arena,
			           json_object_get(c->body, "deleteCopiedBackups") ? STR("deleteCopiedBackups")
			                                                           : STR("deleteCopySnapshots"),
			           "has copies that the project's backup compliance policy protects");
			return 0;
		}
	}
	return r;
}

int protection_schedule_check(struct call *c, const json_t *schedule, struct faults *faults)
{
	json_t *policy;
	int r = protection_load(c->tx, c->arena, c->group.id, &policy);
	if (r == 0 && policy)
		schedule_lacks(policy, schedule, c->arena, faults);
	return r == 0 && json_flag(policy, "copyProtectionEnabled") ? copies_check(c, schedule, faults) : r;
}

static void retention_copy(json_t *to, const json_t *from)
{
	json_put_str(to, "retentionUnit", json_field(from, "retentionUnit"));
	json_put(to, "retentionValue", json_integer(json_number(from, "retentionValue")));
}

static void item_raise(struct arena *a, json_t *items, const json_t *asked)
{
	bool there = false;
	for (size_t i = 0; i < json_array_size(items); i++) {
		json_t *item = json_array_get(items, i);
		if (!same_kind(item, asked))
			continue;
		there = true;
		if (kept_ms(item) < kept_ms(asked))
			retention_copy(item, asked);
		if (!is_enough(item, asked))
			json_put(item, "frequencyInterval", json_integer(json_number(asked, "frequencyInterval")));
	}
	if (there)
		return;
	json_t *item = json_deep_copy(asked);
	json_put_str(item, "id", id_make(a));
	json_array_append_new(items, item);
}

/* What is taken less often is kept at least as long. */
static void items_order(json_t *items)
{
	for (size_t i = 0; i < json_array_size(items); i++)
		for (size_t k = 0; k < json_array_size(items); k++) {
			json_t *item = json_array_get(items, i), *other = json_array_get(items, k);
			if (frequency_find(json_field(other, "frequencyType")) <
			            frequency_find(json_field(item, "frequencyType")) &&
			    kept_ms(other) > kept_ms(item))
				retention_copy(item, other);
		}
}

int protection_schedule_raise(struct tx *tx, struct arena *a, struct str group_id, json_t *schedule, bool *ret_raised)
{
	json_t *policy;
	struct faults faults = {.count = 0};
	int r = protection_load(tx, a, group_id, &policy);
	*ret_raised = false;
	if (r < 0 || !policy)
		return r;
	/* A schedule whose items were all taken away has none of the policy's either. */
	schedule_lacks(policy, schedule, a, &faults);
	const json_t *asked = scheduled(policy);
	if (!faults.count)
		return 0;
	if (!items_of(schedule))
		json_put(schedule, "policies", json_pack("[{s:[]}]", "policyItems"));
	json_t *items = items_of(schedule);
	for (size_t i = 0; i < json_array_size(asked); i++)
		item_raise(a, items, json_array_get(asked, i));
	items_order(items);
	if (json_number(schedule, "restoreWindowDays") < json_number(policy, "restoreWindowDays"))
		json_put(schedule, "restoreWindowDays", json_integer(json_number(policy, "restoreWindowDays")));
	*ret_raised = true;
	return 0;
}

int protection_window_follow(struct tx *tx, struct arena *a, struct str cluster_id, const json_t *schedule)
{
	struct backup_line line;
	int r = backup_line_get(tx, a, cluster_id, &line);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_put(line.body, "windowDays", json_integer(schedule_window_days(schedule)));
	r = backup_line_save(tx, a, &line);
	return r < 0 ? r : schedule_look(tx, a, &line, clock_now_ms());
}

int protection_copies(struct tx *tx, struct arena *a, const struct snapshot *s, int64_t *ret_ms)
{
	struct str group_id = json_field(s->plan, "groupId");
	json_t *policy;
	int r = protection_load(tx, a, group_id, &policy);
	*ret_ms = 0;
	return r < 0 || !json_flag(policy, "copyProtectionEnabled")
	               ? r
	               : retention_floor(tx, a, group_id, snapshot_frequency(s), ret_ms);
}

/* The newest of the same data that is not younger than the window's start; where all are younger, the oldest. */
static bool is_first(const struct snapshot *list, size_t count, const struct snapshot *s, int64_t start, int64_t since)
{
	const struct snapshot *best = NULL, *oldest = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct snapshot *one = &list[i];
		int64_t at = json_number(one->plan, "at");
		if (!snapshot_is(one, "completed") || one->doc.created_ms < since ||
		    !str_eq(json_field(one->plan, "incarnation"), json_field(s->plan, "incarnation")))
			continue;
		if (at <= start && (!best || at > json_number(best->plan, "at")))
			best = one;
		if (!oldest || at < json_number(oldest->plan, "at"))
			oldest = one;
	}
	const struct snapshot *first = best ? best : oldest;
	return first && str_eq(first->doc.id, s->doc.id);
}

int protection_log(struct tx *tx, struct arena *a, const struct backup_line *line, int64_t *ret_ms)
{
	json_t *policy = NULL;
	int r = 0;
	bool kept = json_flag(line->body, "archive") || json_flag(line->body, "rebuilt");
	*ret_ms = kept ? json_number(line->body, "windowDays") * BACKUP_DAY_MS : 0;
	if (json_flag(line->body, "logged")) {
		r = protection_load(tx, a, json_field(line->body, "groupId"), &policy);
		*ret_ms = json_number(policy, "restoreWindowDays") * BACKUP_DAY_MS;
	}
	return r;
}

int incarnation_end(const struct backup_line *line, struct str incarnation, int64_t *ret_ms)
{
	const json_t *ended = json_find(json_object_get(line->body, "ended"), "id", incarnation);
	bool now = str_eq(incarnation, json_field(line->body, "incarnation"));
	*ret_ms = now ? json_number(line->body, "goneAt") : json_number(ended, "at");
	return now || ended ? 0 : -ENOENT;
}

int protection_window(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *list,
                      size_t count, const struct snapshot *s, bool *ret_held)
{
	json_t *policy;
	int r = protection_load(tx, a, json_field(line->body, "groupId"), &policy);
	int64_t start = clock_now_ms() - json_number(policy, "restoreWindowDays") * BACKUP_DAY_MS;
	struct str incarnation = json_field(s->plan, "incarnation");
	bool now = str_eq(incarnation, json_field(line->body, "incarnation")),
	     logged = json_flag(line->body, "archive") || json_flag(line->body, "logged");
	int64_t end;
	*ret_held = false;
	if (r < 0 || !json_number(policy, "restoreWindowDays") || !logged || !snapshot_is(s, "completed") ||
	    incarnation_end(line, incarnation, &end) < 0 || (end && end < start))
		return r;
	/* A gap in the log begins another window. */
	*ret_held = is_first(list, count, s, start, 0) ||
	            (now && is_first(list, count, s, start, json_number(line->body, "since")));
	return 0;
}

/* --- what it means for a cluster */

static bool is_dedicated(const json_t *cluster)
{
	const json_t *spec = json_array_get(json_object_get(cluster, "replicationSpecs"), 0);
	struct str provider = json_field(json_array_get(json_object_get(spec, "regionConfigs"), 0), "providerName");
	return !str_is(provider, "FLEX") && !str_is(provider, "TENANT");
}

static bool is_encrypted(const json_t *cluster)
{
	struct str by = json_field(cluster, "encryptionAtRestProvider");
	return by.n && !str_is(by, "NONE");
}

static void cluster_lacks(const json_t *policy, const json_t *cluster, struct arena *a, struct faults *faults)
{
	if (!is_dedicated(cluster)) /* has backups always, and no log or key of its own */
		return;
	if (!json_flag(cluster, "backupEnabled"))
		faults_add(faults, a, STR("backupEnabled"), "must be true, by the project's backup compliance policy");
	if (json_flag(policy, "pitEnabled") && !json_flag(cluster, "pitEnabled"))
		faults_add(faults, a, STR("pitEnabled"), "must be true, by the project's backup compliance policy");
	if (json_flag(policy, "encryptionAtRestEnabled") && !is_encrypted(cluster))
		faults_add(faults, a, STR("encryptionAtRestProvider"),
		           "must not be NONE, by the project's backup compliance policy");
}

int protection_cluster_rules(struct call *c, const json_t *cluster, struct faults *faults)
{
	json_t *policy;
	int r = protection_load(c->tx, c->arena, c->group.id, &policy);
	if (r == 0 && policy)
		cluster_lacks(policy, cluster, c->arena, faults);
	return r;
}

/* --- what it may say */

static void item_check(struct call *c, const json_t *item, const char *path, struct faults *faults)
{
	int f = frequency_find(json_field(item, "frequencyType"));
	if (f >= 0 && f != ON_DEMAND && !frequency_allows((enum frequency)f, json_number(item, "frequencyInterval")))
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.frequencyInterval", path),
		           "must be %s for the frequency %s", frequency_intervals((enum frequency)f),
		           frequency_name((enum frequency)f));
	if (!kept_ms(item))
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.retentionValue", path),
		           "must be at least 1, and at most a hundred years");
}

static void items_check(struct call *c, const json_t *items, struct faults *faults)
{
	char path[48];
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);
		snprintf(path, sizeof path, "scheduledPolicyItems[%zu]", i);
		item_check(c, item, path, faults);
		for (size_t k = 0; k < json_array_size(items); k++) {
			const json_t *other = json_array_get(items, k);
			bool shorter = frequency_find(json_field(other, "frequencyType")) <
			                       frequency_find(json_field(item, "frequencyType")) &&
			               kept_ms(other) > kept_ms(item);
			if (k < i && same_kind(item, other))
				faults_add(faults, c->arena, arena_printf(c->arena, "%s.frequencyType", path),
				           "repeats an earlier item");
			else if (shorter)
				faults_add(faults, c->arena, arena_printf(c->arena, "%s.retentionValue", path),
				           "must not be shorter than that of an item that is more frequent");
			else
				continue;
			break;
		}
	}
}

static void window_check(struct call *c, const json_t *policy, struct faults *faults)
{
	const json_t *days = json_object_get(policy, "restoreWindowDays");
	if (days && (json_integer_value(days) < 0 || json_integer_value(days) > WINDOW_MAX))
		faults_add(faults, c->arena, STR("restoreWindowDays"), "must be from 0 to %d", WINDOW_MAX);
	if (json_integer_value(days) > 0 && !json_flag(policy, "pitEnabled"))
		faults_add(faults, c->arena, STR("restoreWindowDays"), "goes with pitEnabled only");
}

static void weaker(struct call *c, struct faults *faults, const char *field)
{
	faults_add(faults, c->arena, str_of(field), "would make the backup compliance policy weaker");
}

static void weaker_check(struct call *c, const json_t *before, const json_t *after, struct faults *faults)
{
	static const char *const flags[] = {"copyProtectionEnabled", "encryptionAtRestEnabled", "pitEnabled"};
	const json_t *on_demand = json_object_get(before, "onDemandPolicyItem");
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (json_flag(before, flags[i]) && !json_flag(after, flags[i]))
			weaker(c, faults, flags[i]);
	if (json_number(after, "restoreWindowDays") < json_number(before, "restoreWindowDays"))
		weaker(c, faults, "restoreWindowDays");
	if (kept_ms(json_object_get(after, "onDemandPolicyItem")) < kept_ms(on_demand))
		weaker(c, faults, "onDemandPolicyItem");
	for (size_t i = 0; i < json_array_size(scheduled(before)); i++)
		if (!has_enough(scheduled(after), json_array_get(scheduled(before), i))) {
			weaker(c, faults, "scheduledPolicyItems");
			break;
		}
	if (!str_eq(json_field(before, "authorizedEmail"), json_field(after, "authorizedEmail")))
		faults_add(faults, c->arena, STR("authorizedEmail"),
		           "is changed by disabling the policy only, which the service's operator approves");
}

static void id_put(struct call *c, json_t *item, const json_t *known)
{
	struct str id = json_field(known, "id");
	json_put_str(item, "id", id.n ? arena_dup(c->arena, id) : id_make(c->arena));
}

/* The fields that callers do not send, or need not. */
static void fields_put(struct call *c, const json_t *before, json_t *policy)
{
	static const char *const names[] = {"authorizedUserFirstName", "authorizedUserLastName"};
	json_t *items = json_default(policy, "scheduledPolicyItems", json_array()),
	       *on_demand = json_object_get(policy, "onDemandPolicyItem");
	json_put_str(policy, "projectId", c->group.id);
	json_put(policy, "deletable", json_boolean(json_flag(before, "deletable")));
	json_default(policy, "restoreWindowDays", json_integer(0));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct str was = json_field(before, names[i]);
		json_default(policy, names[i], json_stringn(was.p ? was.p : "", was.n));
	}
	json_object_del(policy, "updatedUser");
	if (c->caller && strchr(c->caller->name, '@'))
		json_put_z(policy, "updatedUser", c->caller->name);
	if (on_demand)
		id_put(c, on_demand, json_object_get(before, "onDemandPolicyItem"));
	for (size_t i = 0; i < json_array_size(items); i++) {
		json_t *item = json_array_get(items, i);
		id_put(c, item, json_find(scheduled(before), "frequencyType", json_field(item, "frequencyType")));
	}
}

/* --- the clusters that are there */

struct fitting {
	struct call *c;
	const json_t *policy;
	bool overwrite;
	json_t *violators;
};

static int visit_check(struct tx *tx, void *ctx, const struct doc *d)
{
	struct fitting *f = ctx;
	struct cluster cluster = cluster_of(f->c->arena, d);
	struct faults faults = {.count = 0};
	struct doc schedule;
	if (cluster_is(&cluster, "DELETING"))
		return 0;
	cluster_lacks(f->policy, cluster.body, f->c->arena, &faults);
	bool hopeless = is_dedicated(cluster.body) && json_flag(f->policy, "encryptionAtRestEnabled") &&
	                !is_encrypted(cluster.body);
	int r = tx_get(tx, f->c->arena, SCHEDULE_KIND, d->id, &schedule);
	if (r == 0)
		schedule_lacks(f->policy, doc_json(f->c->arena, schedule.body), f->c->arena, &faults);
	if (hopeless || (faults.count && !f->overwrite))
		json_add_str(f->violators, d->name);
	return r == -ENOENT ? 0 : r;
}

static int clusters_check(struct call *c, const json_t *policy)
{
	struct fitting f = {.c = c,
	                    .policy = policy,
	                    .overwrite = call_query_bool(c, "overwriteBackupPolicies", true),
	                    .violators = json_keep(c->arena, json_array())};
	int r = clusters_walk_group(c->tx, c->arena, c->group.id, visit_check, &f);
	size_t count = json_array_size(f.violators);
	if (r < 0 || !count)
		return r;
	call_fail(c, 400, "CLUSTERS_VIOLATE_BACKUP_COMPLIANCE_POLICY",
	          "%zu of the project's clusters do not comply with the policy%s.", count,
	          f.overwrite ? ": they are not encrypted with a key of the project's"
	                      : ". Change them first, or set overwriteBackupPolicies");
	for (size_t i = 0; i < count && i < NAMES_MAX; i++)
		call_fail_param(c, json_item(f.violators, i));
	return -400;
}

static int schedule_fit(struct tx *tx, struct arena *a, struct str cluster_id, struct str group_id)
{
	struct doc d;
	bool raised = false;
	int r = tx_get(tx, a, SCHEDULE_KIND, cluster_id, &d);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *body = doc_json(a, d.body);
	r = protection_schedule_raise(tx, a, group_id, body, &raised);
	if (r < 0 || !raised)
		return r;
	d.body = json_text(a, body);
	r = doc_put(tx, &d);
	return r < 0 ? r : protection_window_follow(tx, a, cluster_id, body);
}

static int visit_fit(struct tx *tx, void *ctx, const struct doc *d)
{
	const struct fitting *f = ctx;
	struct arena *a = f->c->arena;
	struct cluster cluster = cluster_of(a, d);
	struct faults faults = {.count = 0};
	int r = 0;
	if (cluster_is(&cluster, "DELETING") || !is_dedicated(cluster.body))
		return 0;
	cluster_lacks(f->policy, cluster.body, a, &faults);
	if (faults.count) {
		json_put(cluster.body, "backupEnabled", json_true());
		if (json_flag(f->policy, "pitEnabled"))
			json_put(cluster.body, "pitEnabled", json_true());
		r = cluster_change(tx, a, &cluster, NULL);
	}
	return r < 0 ? r : schedule_fit(tx, a, d->id, cluster.doc.parent);
}

/* What is there already expires no earlier than the policy says. */
static int snapshots_fit(struct call *c)
{
	struct doc *lines;
	size_t count = 0, n = 0;
	struct snapshot *list;
	int r = tx_list_all(c->tx, c->arena, LINE_KIND, c->group.id, &lines, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = snapshots_of(c->tx, c->arena, lines[i].id, &list, &n);
		for (size_t k = 0; r == 0 && k < n; k++) {
			int64_t floor = 0;
			r = retention_floor(c->tx, c->arena, c->group.id, snapshot_frequency(&list[k]), &floor);
			if (r < 0 || snapshot_expires(&list[k]) >= list[k].doc.created_ms + floor ||
			    snapshot_is(&list[k], "failed"))
				continue;
			json_put_time(list[k].body, "expiresAt", list[k].doc.created_ms + floor);
			r = snapshot_save(c->tx, c->arena, &list[k]);
		}
	}
	return r;
}

/* --- the document */

/* Replacing one that is not there makes it. */
static int policy_find(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	int result = tx_get(c->tx, c->arena, COMPLIANCE_KIND, c->group.id, ret_doc);
	if (result == -ENOENT && c->method == METHOD_PUT) {
		*ret_doc = (struct doc){
		        .kind = STR(COMPLIANCE_KIND), .id = c->group.id, .parent = c->group.id, .body = STR("{}")};
		return 0;
	}
	return result == -ENOENT ? call_fail(c, 404, "BACKUP_COMPLIANCE_POLICY_NOT_FOUND",
	                                     "The project has no backup compliance policy.")
	                         : result;
}

static int policy_update(struct call *c, const struct doc *old, json_t *policy)
{
	const json_t *before = doc_json(c->arena, old->body);
	struct str project = json_field(policy, "projectId");
	struct faults faults = {.count = 0};
	if (old->rev && !lifecycle_allows(old->kind, before, "CHANGE"))
		return resource_busy(c, &resource_backup_compliance, old, lifecycle_state(old->kind, before));
	if (project.n && !str_eq(project, c->group.id))
		faults_add(&faults, c->arena, STR("projectId"), "must be the project's own, or left out");
	items_check(c, scheduled(policy), &faults);
	if (json_object_get(policy, "onDemandPolicyItem"))
		item_check(c, json_object_get(policy, "onDemandPolicyItem"), "onDemandPolicyItem", &faults);
	window_check(c, policy, &faults);
	if (old->rev)
		weaker_check(c, before, policy, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	fields_put(c, before, policy);
	int r = clusters_check(c, policy);
	if (r < 0)
		return r;
	return old->rev ? call_lifecycle_change(c, old, policy, "CHANGE") : call_lifecycle_create(c, old, policy);
}

static int policy_written(struct call *c, const struct doc *d, const struct doc *old)
{
	struct fitting f = {.c = c, .policy = doc_json(c->arena, d->body)};
	int r = clusters_walk_group(c->tx, c->arena, c->group.id, visit_fit, &f);
	return r < 0 ? r : snapshots_fit(c);
}

static int policy_remove(struct call *c, const struct doc *d)
{
	if (json_flag(doc_json(c->arena, d->body), "deletable"))
		return 0;
	return call_fail(
	        c, 400, "BACKUP_COMPLIANCE_POLICY_NOT_DELETABLE",
	        "The backup compliance policy is disabled only after the service's operator has approved it, on "
	        "behalf of %.*s.",
	        STR_ARG(json_field(doc_json(c->arena, d->body), "authorizedEmail")));
}

const struct resource_hooks compliance_policy_hooks = {
        .load = policy_find, .update = policy_update, .written = policy_written, .remove = policy_remove};

/* --- the operator's approval */

int protection_approve(struct tx *tx, struct arena *a, struct str group_id, bool really, struct str *ret_email)
{
	struct doc d;
	int r = tx_get(tx, a, COMPLIANCE_KIND, group_id, &d);
	if (r < 0)
		return r;
	json_t *policy = doc_json(a, d.body);
	*ret_email = json_field(policy, "authorizedEmail");
	if (json_flag(policy, "deletable") || !really)
		return json_flag(policy, "deletable") ? -EALREADY : 0;
	json_put(policy, "deletable", json_true());
	d.body = json_text(a, policy);
	r = tx_update(tx, &d);
	return r < 0 ? r
	             : event_service(tx, a, "CPS_DATA_PROTECTION_APPROVED_FOR_DISABLEMENT", STR_NONE, group_id,
	                             STR_NONE);
}
