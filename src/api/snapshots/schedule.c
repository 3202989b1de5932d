/* The backup schedule of a cluster: when snapshots are taken, how long they are kept, where they are copied to. It
 * begins with the cluster's backups and ends with them. Stored in the current form; version 2023-01-01 names
 * replication specs where the current one names their zones. */
#include "api/snapshots/schedule.h"

#include "api/kit/verbs.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/take.h"
#include "api/snapshots/times.h"
#include "base/clock.h"
#include "base/id.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

#define WINDOW_DAYS_MAX 365
#define ITEMS_MAX 50
#define COPIES_MAX 20
#define EXTRA_MAX 36525

/* --- reading it */

static json_t *item_make(struct arena *a, const char *frequency, int interval, const char *unit, int value)
{
	struct str id = id_make(a);
	return json_pack("{s:i, s:s, s:s%, s:s, s:i}", "frequencyInterval", interval, "frequencyType", frequency, "id",
	                 id.p, id.n, "retentionUnit", unit, "retentionValue", value);
}

/* --- settings that are made by themselves */

static struct str zone_of_region(const json_t *cluster, struct str region)
{
	const json_t *specs = json_object_get(cluster, "replicationSpecs");
	for (size_t i = 0; i < json_array_size(specs); i++) {
		const json_t *one = json_array_get(specs, i);
		if (json_find(json_object_get(one, "regionConfigs"), "regionName", region))
			return json_field(one, "zoneId");
	}
	return json_field(json_array_get(specs, 0), "zoneId");
}

/* With autoCopySettingsEnabled: one for each region of the cluster that has none. Whether there are more then. Where
 * copies go by items of their own, nobody else knows their retention. */
static bool copies_add(const struct cluster *cluster, json_t *schedule)
{
	const json_t *nodes = json_object_get(cluster->plan, "nodes");
	struct str own = json_field(json_array_get(nodes, 0), "region");
	bool added = false;
	if (!json_flag(schedule, "autoCopySettingsEnabled") || json_flag(schedule, "copyPolicyItemsEnabled"))
		return false;
	json_t *settings = json_default(schedule, "copySettings", json_array());
	for (size_t i = 0; i < json_array_size(nodes) && json_array_size(settings) < COPIES_MAX; i++) {
		const json_t *node = json_array_get(nodes, i);
		struct str region = json_field(node, "region"), provider = json_field(node, "provider"),
		           zone = zone_of_region(cluster->body, region);
		if (!region.n || str_eq(region, own) || json_find(settings, "regionName", region))
			continue;
		json_t *one = json_pack("{s:[s, s, s, s, s, s], s:b}", "frequencies", "HOURLY", "DAILY", "WEEKLY",
		                        "MONTHLY", "YEARLY", "ON_DEMAND", "shouldCopyOplogs", 0);
		json_put_str(one, "cloudProvider", provider);
		json_put_str(one, "regionName", region);
		json_put_str(one, "zoneId", zone);
		json_array_append_new(settings, one);
		added = true;
	}
	return added;
}

int schedule_follow(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct doc d;
	int r = tx_get(tx, a, SCHEDULE_KIND, cluster->doc.id, &d);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *body = doc_json(a, d.body);
	if (!copies_add(cluster, body))
		return 0;
	d.body = json_text(a, body);
	return doc_put(tx, &d);
}

/* --- its beginning and end */

static json_t *standard_items(struct arena *a)
{
	return json_pack("[o, o, o, o]", item_make(a, "hourly", 6, "days", 7), item_make(a, "daily", 1, "days", 7),
	                 item_make(a, "weekly", 6, "weeks", 4), item_make(a, "monthly", 40, "months", 12));
}

int schedule_ensure(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct doc d;
	int64_t minutes = clock_now_ms() / 60000;
	if (str_is(cluster->doc.kind, FLEX_KIND))
		return 0;
	int r = tx_get(tx, a, SCHEDULE_KIND, cluster->doc.id, &d);
	if (r != -ENOENT)
		return r;
	json_t *body = json_new(a);
	json_put(body, "autoCopySettingsEnabled", json_false());
	json_put(body, "autoExportEnabled", json_false());
	json_put_str(body, "clusterId", cluster->doc.id);
	json_put_str(body, "clusterName", cluster->doc.name);
	json_put(body, "copyPolicyItemsEnabled", json_false());
	json_put(body, "copySettings", json_array());
	json_put(body, "extraRetentionSettings", json_array());
	struct str id = id_make(a);
	json_put(body, "policies", json_pack("[{s:s%, s:o}]", "id", id.p, id.n, "policyItems", standard_items(a)));
	json_put(body, "referenceHourOfDay", json_integer(minutes / 60 % 24));
	json_put(body, "referenceMinuteOfHour", json_integer(minutes % 60));
	json_put(body, "restoreWindowDays", json_integer(WINDOW_DAYS));
	json_put(body, "useOrgAndGroupNamesInExportPrefix", json_false());
	bool raised;
	r = protection_schedule_raise(tx, a, cluster->doc.parent, body, &raised);
	if (r == 0 && raised)
		r = protection_window_follow(tx, a, cluster->doc.id, body);
	if (r < 0)
		return r;
	return doc_insert(tx, SCHEDULE_KIND, cluster->doc.id, cluster->doc.id, STR_NONE, json_text(a, body));
}

int schedule_remove(struct tx *tx, struct str cluster_id)
{
	int r = tx_delete(tx, SCHEDULE_KIND, cluster_id);
	return r == -ENOENT ? 0 : r;
}

/* --- forms */

static bool is_older(const struct schema *form)
{
	return !schema_field(form, STR("autoCopySettingsEnabled"));
}

static struct str zone_of_spec(const json_t *cluster, struct str id)
{
	return json_field(json_find(json_object_get(cluster, "replicationSpecs"), "id", id), "zoneId");
}

static struct str spec_of_zone(const json_t *cluster, struct str zone)
{
	return json_field(json_find(json_object_get(cluster, "replicationSpecs"), "zoneId", zone), "id");
}

/* What version 2023-01-01 sends: specs become their zones. It may leave them out, and a copy has a zone. */
static void zones_from_specs(struct call *c, const json_t *cluster, json_t *list, const char *name,
                             struct faults *faults)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *one = json_array_get(list, i);
		struct str spec = json_field(one, "replicationSpecId"),
		           zone = spec.n ? zone_of_spec(cluster, spec)
		                         : zone_of_region(cluster, json_field(one, "regionName"));
		if (spec.n && !zone.n)
			faults_add(faults, c->arena, arena_printf(c->arena, "%s[%zu].replicationSpecId", name, i),
			           "is none of the cluster's replication specs");
		if (zone.n)
			json_put_str(one, "zoneId", zone);
		json_object_del(one, "replicationSpecId");
	}
}

static int schedule_write(struct call *c, const struct cluster *cluster, json_t *body)
{
	json_t *shown = json_clone(c->arena, body);
	json_t *copies = json_object_get(shown, "copySettings");
	int64_t next = schedule_next(body, clock_now_ms());
	for (size_t i = 0; is_older(c->version->response) && i < json_array_size(copies); i++) {
		json_t *one = json_array_get(copies, i);
		struct str spec = spec_of_zone(cluster->body, json_field(one, "zoneId"));
		if (spec.n) /* the zone may be gone since */
			json_put_str(one, "replicationSpecId", spec);
	}
	answer_fit(c, shown);
	if (next)
		json_put_time(shown, "nextSnapshot", next);
	entity_write(c, &c->out, json_text(c->arena, shown), resource_backup_schedule.self, "clusterName",
	             cluster->doc.name, false);
	return 0;
}

/* The path's, with its cluster. */
int schedule_load(struct call *c, struct cluster *ret_cluster, struct doc *ret_doc)
{
	int r = cluster_load(c, ret_cluster);
	if (r == 0)
		r = tx_get(c->tx, c->arena, SCHEDULE_KIND, ret_cluster->doc.id, ret_doc);
	else
		return r;
	if (r != -ENOENT)
		return r;
	return call_fail_about(
	        c, 404, "CLUSTER_BACKUP_NOT_ENABLED", ret_cluster->doc.name,
	        "The cluster \"%.*s\" has no backups, and so no schedule. Set backupEnabled to true first.",
	        STR_ARG(ret_cluster->doc.name));
}

static int schedule_find(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct cluster cluster;
	return schedule_load(c, &cluster, ret_doc);
}

const struct resource_hooks backup_schedule_hooks = {.load = schedule_find};

int schedules_get(struct call *c)
{
	struct cluster cluster;
	struct doc d;
	int r = schedule_load(c, &cluster, &d);
	return r < 0 ? r : schedule_write(c, &cluster, doc_json(c->arena, d.body));
}

/* --- rules */

static void fault_at(struct call *c, struct faults *faults, const char *format, size_t i, const char *what)
{
	char path[96];
	snprintf(path, sizeof path, format, i);
	faults_add(faults, c->arena, arena_dup(c->arena, str_of(path)), "%s", what);
}

static void range_check(struct call *c, const json_t *body, const char *field, json_int_t least, json_int_t most,
                        struct faults *faults)
{
	const json_t *value = json_object_get(body, field);
	if (value && (json_integer_value(value) < least || json_integer_value(value) > most))
		faults_add(faults, c->arena, str_of(field), "must be from %lld to %lld", (long long)least,
		           (long long)most);
}

#define ITEM_PATH "policies[0].policyItems[%zu]."

static void item_check(struct call *c, const json_t *item, size_t i, struct faults *faults)
{
	int f = frequency_find(json_field(item, "frequencyType"));
	char path[64];
	if (f == ON_DEMAND)
		fault_at(c, faults, ITEM_PATH "frequencyType", i,
		         "must not be ondemand: the schedule has no times for it");
	if (f < 0 || f == ON_DEMAND)
		return;
	snprintf(path, sizeof path, ITEM_PATH "frequencyInterval", i);
	if (!frequency_allows((enum frequency)f, json_number(item, "frequencyInterval")))
		faults_add(faults, c->arena, arena_dup(c->arena, str_of(path)), "must be %s for the frequency %s",
		           frequency_intervals((enum frequency)f), frequency_name((enum frequency)f));
	if (!retention_ms(json_field(item, "retentionUnit"), json_number(item, "retentionValue")))
		fault_at(c, faults, ITEM_PATH "retentionValue", i, "must be at least 1, and at most a hundred years");
}

/* Snapshots that are taken less often are kept at least as long; there is one item for hours, days and years. */
static void items_compare(struct call *c, const json_t *items, size_t i, struct faults *faults)
{
	const json_t *item = json_array_get(items, i);
	int f = frequency_find(json_field(item, "frequencyType"));
	int64_t ms = retention_ms(json_field(item, "retentionUnit"), json_number(item, "retentionValue"));
	for (size_t k = 0; k < json_array_size(items) && f >= 0; k++) {
		const json_t *other = json_array_get(items, k);
		int g = frequency_find(json_field(other, "frequencyType"));
		int64_t theirs = retention_ms(json_field(other, "retentionUnit"), json_number(other, "retentionValue"));
		bool same = json_number(item, "frequencyInterval") == json_number(other, "frequencyInterval");
		if (k < i && f == g && (same || f == HOURLY || f == DAILY)) {
			fault_at(c, faults, ITEM_PATH "frequencyType", i, "repeats an earlier item");
			return;
		}
		if (g >= 0 && g < f && ms && theirs > ms) {
			fault_at(c, faults, ITEM_PATH "retentionValue", i,
			         "must not be shorter than that of an item that is more frequent");
			return;
		}
	}
}

static int items_floor(struct call *c, const json_t *items, struct faults *faults)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);
		int64_t floor = 0;
		r = retention_floor(c->tx, c->arena, c->group.id, frequency_find(json_field(item, "frequencyType")),
		                    &floor);
		if (retention_ms(json_field(item, "retentionUnit"), json_number(item, "retentionValue")) < floor)
			fault_at(c, faults, ITEM_PATH "retentionValue", i,
			         "is shorter than the project's backup compliance policy asks for");
	}
	return r;
}

/* The item as the caller names it, by its id; not one that was named before. */
static struct str id_named(const json_t *known, const json_t *items, size_t i)
{
	struct str id = json_field(json_array_get(items, i), "id");
	for (size_t k = 0; k < i && id.n; k++)
		if (str_eq(json_field(json_array_get(items, k), "id"), id))
			return STR_NONE;
	return id.n && json_find(known, "id", id) ? id : STR_NONE;
}

/* Items that are as before keep their ids. */
static void ids_put(struct call *c, const json_t *old, json_t *policy, struct faults *faults)
{
	const json_t *before = json_array_get(json_object_get(old, "policies"), 0),
	             *known = json_object_get(before, "policyItems");
	json_t *items = json_object_get(policy, "policyItems");
	struct str own = json_field(before, "id"), given = json_field(policy, "id");
	if (given.n && !str_eq(given, own))
		faults_add(faults, c->arena, STR("policies[0].id"), "must be %.*s, or left out", STR_ARG(own));
	json_put_str(policy, "id", arena_dup(c->arena, own));
	for (size_t i = 0; i < json_array_size(items); i++) {
		json_t *item = json_array_get(items, i);
		struct str id = id_named(known, items, i);
		for (size_t k = 0; k < json_array_size(known) && !id.n; k++) {
			const json_t *one = json_array_get(known, k);
			if (str_eq(json_field(one, "frequencyType"), json_field(item, "frequencyType")) &&
			    json_equal(json_object_get(one, "frequencyInterval"),
			               json_object_get(item, "frequencyInterval")))
				id = json_field(one, "id");
		}
		json_put_str(item, "id", id.n ? arena_dup(c->arena, id) : id_make(c->arena));
	}
}

static void copies_check(struct call *c, const struct cluster *cluster, const json_t *list, struct faults *faults)
{
	struct str own = json_field(json_array_get(json_object_get(cluster->plan, "nodes"), 0), "region");
	if (json_array_size(list) > COPIES_MAX)
		faults_add(faults, c->arena, STR("copySettings"), "must have at most %d entries", COPIES_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		struct str region = json_field(one, "regionName"), zone = json_field(one, "zoneId");
		if (!region.n)
			fault_at(c, faults, "copySettings[%zu].regionName", i, "is required");
		else if (str_eq(region, own))
			fault_at(c, faults, "copySettings[%zu].regionName", i, "is where the snapshots lie already");
		if (zone.n && !spec_of_zone(cluster->body, zone).n)
			fault_at(c, faults, "copySettings[%zu].zoneId", i, "is none of the cluster's zones");
		for (size_t k = 0; k < i; k++)
			if (region.n && str_eq(region, json_field(json_array_get(list, k), "regionName"))) {
				fault_at(c, faults, "copySettings[%zu].regionName", i, "repeats an earlier entry");
				break;
			}
	}
}

static void extras_check(struct call *c, const json_t *list, struct faults *faults)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		json_int_t days = json_number(one, "retentionDays");
		if (!json_field(one, "frequencyType").n)
			fault_at(c, faults, "extraRetentionSettings[%zu].frequencyType", i, "is required");
		if (days < 0 || days > EXTRA_MAX)
			fault_at(c, faults, "extraRetentionSettings[%zu].retentionDays", i, "must be from 0 to 36525");
	}
}

static int export_check(struct call *c, const json_t *body, struct faults *faults)
{
	const json_t *target = json_object_get(body, "export");
	struct doc d;
	if (json_flag(body, "autoExportEnabled") && !json_field(target, "exportBucketId").n)
		faults_add(faults, c->arena, STR("export.exportBucketId"), "is required with autoExportEnabled");
	if (!json_field(target, "exportBucketId").n)
		return 0;
	int r = tx_get(c->tx, c->arena, "backup_export_bucket", json_field(target, "exportBucketId"), &d);
	if (r == -ENOENT || (r == 0 && !str_eq(d.parent, c->group.id)))
		faults_add(faults, c->arena, STR("export.exportBucketId"), "is none of the project's export buckets");
	return r == -ENOENT ? 0 : r;
}

int schedule_check(struct call *c, const struct cluster *cluster, const json_t *old, json_t *body,
                   struct faults *faults)
{
	json_t *policy = json_array_get(json_object_get(body, "policies"), 0);
	const json_t *items = json_object_get(policy, "policyItems");
	range_check(c, body, "referenceHourOfDay", 0, 23, faults);
	range_check(c, body, "referenceMinuteOfHour", 0, 59, faults);
	range_check(c, body, "restoreWindowDays", 1, WINDOW_DAYS_MAX, faults);
	if (json_array_size(items) > ITEMS_MAX)
		faults_add(faults, c->arena, STR("policies[0].policyItems"), "must have at most %d items", ITEMS_MAX);
	for (size_t i = 0; i < json_array_size(items) && i < ITEMS_MAX; i++) {
		item_check(c, json_array_get(items, i), i, faults);
		items_compare(c, items, i, faults);
	}
	if (policy)
		ids_put(c, old, policy, faults);
	copies_check(c, cluster, json_object_get(body, "copySettings"), faults);
	extras_check(c, json_object_get(body, "extraRetentionSettings"), faults);
	int r = items_floor(c, items, faults);
	if (r == 0)
		r = protection_schedule_check(c, body, faults);
	return r < 0 ? r : export_check(c, body, faults);
}

/* --- what callers send of what they have read */

static const json_t *items_of(const json_t *schedule)
{
	return json_object_get(json_array_get(json_object_get(schedule, "policies"), 0), "policyItems");
}

/* What an item that names itself leaves out stays as it is. Whether it left something out. */
static bool item_complete(struct call *c, const json_t *known, json_t *items, size_t i, struct faults *faults)
{
	json_t *item = json_array_get(items, i);
	struct str id = json_field(item, "id");
	const json_t *there = json_find(known, "id", id);
	bool is_part = false;
	const char *key;
	json_t *value;
	if (id.n && !there)
		fault_at(c, faults, ITEM_PATH "id", i, "is none of the schedule's items");
	json_object_foreach((json_t *)(uintptr_t)there, key, value) if (!json_object_get(item, key))
	{
		json_put(item, key, json_incref(value));
		is_part = true;
	}
	return is_part;
}

/* Items that are all there are the list, as they always were: one that is left out is gone. Where one has no more than
 * its id and what changes, the others were not meant to go. */
static void items_complete(struct call *c, const json_t *known, json_t *policy, struct faults *faults)
{
	json_t *given = json_object_get(policy, "policyItems"), *list = json_array();
	bool is_part = !given;
	for (size_t i = 0; i < json_array_size(given); i++)
		is_part |= item_complete(c, known, given, i, faults);
	for (size_t i = 0; i < json_array_size(known); i++) {
		json_t *one = json_array_get(known, i), *changed = json_find(given, "id", json_field(one, "id"));
		json_array_append(list, changed ? changed : one);
	}
	for (size_t i = 0; i < json_array_size(given); i++)
		if (!json_find(known, "id", json_field(json_array_get(given, i), "id")))
			json_array_append(list, json_array_get(given, i));
	if (is_part)
		json_put(policy, "policyItems", json_incref(list));
	json_decref(list);
}

/* What is read-only may come back: what names the cluster must be the same, and the rest changes by itself. */
static void given_complete(struct call *c, const json_t *before, json_t *given, struct faults *faults)
{
	static const char *const names[] = {"clusterId", "clusterName"}, *const passing[] = {"links", "nextSnapshot"};
	json_t *policy = json_array_get(json_object_get(given, "policies"), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct str said = json_field(given, names[i]), is = json_field(before, names[i]);
		if (json_object_get(given, names[i]) && !str_eq(said, is))
			faults_add(faults, c->arena, str_of(names[i]), "must be %.*s, or left out", STR_ARG(is));
		json_object_del(given, names[i]);
	}
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		json_object_del(given, passing[i]);
	if (policy)
		items_complete(c, items_of(before), policy, faults);
}

/* --- what a change does to the snapshots that are there */

/* The longest retention of the items that a snapshot serves; 0: none of them is there. */
static int64_t retention_by(const json_t *schedule, const struct snapshot *s)
{
	const json_t *ids = json_object_get(s->body, "policyItems");
	int64_t longest = 0;
	for (size_t i = 0; i < json_array_size(ids); i++) {
		const json_t *item = json_find(items_of(schedule), "id", json_item(ids, i));
		int64_t ms = retention_ms(json_field(item, "retentionUnit"), json_number(item, "retentionValue"));
		longest = ms > longest ? ms : longest;
	}
	return longest;
}

struct effects {
	bool update, remove, update_copies, remove_copies;
	const json_t *copied; /* regions whose copies go */
	struct backup_line line;
	struct snapshot *list;
	size_t count;
};

static int effect_on_copies(struct call *c, const struct effects *e, const json_t *after, struct snapshot *s)
{
	json_t *copies = json_object_get(s->plan, "copies");
	bool changed = false;
	int r = 0;
	for (size_t i = json_array_size(copies); r == 0 && i-- > 0;) {
		json_t *copy = json_array_get(copies, i);
		struct str region = arena_dup(c->arena, json_field(copy, "region"));
		const json_t *setting = json_find(json_object_get(after, "copySettings"), "regionName", region);
		if (json_find(e->copied, "regionName", region) || (e->remove_copies && !setting)) {
			r = snapshot_drop_copy(c->tx, c->arena, s, region);
		} else if (e->update_copies && setting) {
			json_put(copy, "expires", json_integer(schedule_copy_expires(after, setting, s)));
			changed = true;
		}
	}
	return r < 0 || !changed ? r : snapshot_save(c->tx, c->arena, s);
}

static int effect_on(struct call *c, const struct effects *e, const json_t *before, const json_t *after,
                     struct snapshot *s)
{
	int64_t was = retention_by(before, s), is = retention_by(after, s), floor = 0;
	bool used = false, held = false;
	int r = effect_on_copies(c, e, after, s);
	if (r == 0)
		r = retention_floor(c->tx, c->arena, c->group.id, snapshot_frequency(s), &floor);
	if (r == 0 && was && !is && e->remove)
		r = snapshot_in_use(c->tx, c->arena, s, &used);
	if (r == 0 && was && !is && e->remove)
		r = protection_window(c->tx, c->arena, &e->line, e->list, e->count, s, &held);
	if (r < 0 || !was || was == is || json_flag(s->plan, "doNotDelete"))
		return r;
	if (!is)
		return e->remove && !used && !held && !snapshot_is(s, "inProgress") &&
		                       clock_now_ms() >= s->doc.created_ms + floor
		               ? snapshot_delete(c->tx, c->arena, s)
		               : 0;
	if (!e->update)
		return 0;
	is = (is > floor ? is : floor) + schedule_extra_ms(after, snapshot_frequency(s));
	json_put_time(s->body, "expiresAt", s->doc.created_ms + is);
	return snapshot_save(c->tx, c->arena, s);
}

static int effects_run(struct call *c, struct effects *e, const json_t *before, const json_t *after,
                       const struct cluster *cluster)
{
	int r = snapshots_of(c->tx, c->arena, cluster->doc.id, &e->list, &e->count);
	if (r == 0)
		r = backup_line_get(c->tx, c->arena, cluster->doc.id, &e->line);
	for (size_t i = 0; r == 0 && i < e->count; i++)
		r = effect_on(c, e, before, after, &e->list[i]);
	return r;
}

/* The regions that the log is copied to. The engine is told where they have changed. */
static int log_copies_follow(struct call *c, const json_t *schedule, struct backup_line *line)
{
	const json_t *settings = json_object_get(schedule, "copySettings");
	json_t *regions = json_keep(c->arena, json_array());
	for (size_t i = 0; i < json_array_size(settings); i++) {
		const json_t *one = json_array_get(settings, i);
		struct str region = json_field(one, "regionName");
		if (!json_flag(one, "shouldCopyOplogs") || str_eq(region, json_field(line->body, "region")))
			continue;
		json_add_str(regions, region);
		backup_region_note(line, region);
	}
	const json_t *before = json_object_get(line->body, "logCopies");
	if (before ? json_equal(before, regions) : !json_array_size(regions))
		return 0;
	json_put(line->body, "logCopies", json_incref(regions));
	return cluster_reconcile(c->tx, line->doc.id);
}

int schedule_save(struct call *c, const struct cluster *cluster, struct doc *d, const json_t *body)
{
	struct backup_line line;
	d->body = json_text(c->arena, body);
	int r = doc_put(c->tx, d);
	if (r == 0)
		r = backup_line_get(c->tx, c->arena, cluster->doc.id, &line);
	if (r < 0)
		return r;
	r = log_copies_follow(c, body, &line);
	if (r < 0)
		return r;
	json_put(line.body, "windowDays", json_integer(schedule_window_days(body)));
	running_put(&line);
	r = backup_line_save(c->tx, c->arena, &line);
	return r < 0 ? r : schedule_look(c->tx, c->arena, &line, clock_now_ms());
}

int schedules_update(struct call *c)
{
	static const char *const passing[] = {"deleteCopiedBackups", "deleteCopySnapshots", "deleteSnapshots",
	                                      "updateCopySnapshots", "updateSnapshots"};
	struct cluster cluster;
	struct doc d;
	struct faults faults = {.count = 0};
	int r = schedule_load(c, &cluster, &d);
	if (r < 0)
		return r;
	json_t *before = doc_json(c->arena, d.body), *after = json_clone(c->arena, before),
	       *given = json_clone(c->arena, c->body);
	if (is_older(c->version->request)) {
		zones_from_specs(c, cluster.body, json_object_get(given, "copySettings"), "copySettings", &faults);
		zones_from_specs(c, cluster.body, json_object_get(given, "deleteCopiedBackups"), "deleteCopiedBackups",
		                 &faults);
	}
	given_complete(c, before, given, &faults);
	struct effects effects = {.update = json_flag(given, "updateSnapshots"),
	                          .remove = json_flag(given, "deleteSnapshots"),
	                          .update_copies = json_flag(given, "updateCopySnapshots"),
	                          .remove_copies = json_flag(given, "deleteCopySnapshots"),
	                          .copied = json_object_get(given, "deleteCopiedBackups")};
	json_merge(after, given);
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		json_object_del(after, passing[i]);
	/* No items, to which a compliance policy can add its own. */
	if (!json_array_size(json_object_get(after, "policies")))
		json_put(after, "policies", json_pack("[{s:[]}]", "policyItems"));
	(void)!copies_add(&cluster, after);
	r = schedule_check(c, &cluster, before, after, &faults);
	if (r == 0 && faults.count)
		r = call_fail_faults(c, &faults);
	if (r == 0)
		r = effects_run(c, &effects, before, after, &cluster);
	if (r == 0)
		r = schedule_save(c, &cluster, &d, after);
	if (r < 0)
		return r;
	event_cluster(c, cluster.doc.name);
	return schedule_write(c, &cluster, after);
}

int schedules_delete(struct call *c)
{
	struct cluster cluster;
	struct doc d;
	struct faults faults = {.count = 0};
	int r = schedule_load(c, &cluster, &d);
	if (r < 0)
		return r;
	json_t *body = doc_json(c->arena, d.body), *policy = json_array_get(json_object_get(body, "policies"), 0);
	struct doc held;
	r = tx_get(c->tx, c->arena, COMPLIANCE_KIND, c->group.id, &held);
	if (r == 0) {
		faults_add(&faults, c->arena, STR("policies"),
		           "the project's backup compliance policy asks for its items");
		return call_fail_faults(c, &faults);
	}
	if (r != -ENOENT)
		return r;
	json_put(policy, "policyItems", json_array());
	r = schedule_save(c, &cluster, &d, body);
	if (r < 0)
		return r;
	event_cluster(c, cluster.doc.name);
	return schedule_write(c, &cluster, body);
}
