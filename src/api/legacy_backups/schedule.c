/* The older form of a backup schedule: an interval, and for each frequency how long. It is read from the policy items
 * and written into them: a field changes the items of its frequency, and leaves all others alone. Where the older form
 * has no such number, it shows the next lower one. */
#include "api/kit/verbs.h"
#include "api/legacy_backups/legacy_backups.h"
#include "api/snapshots/snapshots.h"
#include "trail/events.h"

#include <stdlib.h>

#define WINDOW_HOURS_MAX 8760
#define DAY_HOURS 24
#define ITEM_PATH "policies[0].policyItems["

/* Which field has the retention of which items, and what a new item is. */
static const struct kept {
	const char *field, *unit;
	enum frequency frequency;
	int interval;
	int64_t days; /* of the unit */
} kept[] = {
        {"snapshotRetentionDays", "days", HOURLY, 6, 1},
        {"dailySnapshotRetentionDays", "days", DAILY, 1, 1},
        {"weeklySnapshotRetentionWeeks", "weeks", WEEKLY, 6, 7},
        {"monthlySnapshotRetentionMonths", "months", MONTHLY, 40, 31},
};
#define KEPT (sizeof kept / sizeof *kept)

static json_t *items_of(const json_t *schedule)
{
	return json_object_get(json_array_get(json_object_get(schedule, "policies"), 0), "policyItems");
}

static bool is_of(const json_t *item, enum frequency frequency)
{
	return frequency_find(json_field(item, "frequencyType")) == (int)frequency;
}

static json_t *item_find(const json_t *items, enum frequency frequency)
{
	for (size_t i = 0; i < json_array_size(items); i++)
		if (is_of(json_array_get(items, i), frequency))
			return json_array_get(items, i);
	return NULL;
}

/* --- reading it */

/* The largest number of the field's that is not above the value, or its smallest. */
static int64_t enum_below(const struct schema *form, const char *field, int64_t value)
{
	const struct field *known = schema_field(form, str_of(field));
	const struct schema *s = known ? known->schema : NULL;
	int64_t least = INT64_MAX, best = -1;
	for (unsigned i = 0; s && i < s->enum_count; i++) {
		int64_t one = strtoll(s->enums[i], NULL, 10);
		least = one < least ? one : least;
		best = one <= value && one > best ? one : best;
	}
	return best >= 0 ? best : least;
}

static int64_t retention_of(const json_t *items, const struct kept *k)
{
	int64_t longest = 0;
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);
		int64_t ms = retention_ms(json_field(item, "retentionUnit"), json_number(item, "retentionValue"));
		if (is_of(item, k->frequency) && ms > longest)
			longest = ms;
	}
	return longest / BACKUP_DAY_MS / k->days;
}

static json_t *view_make(struct call *c, const struct cluster *cluster, const struct backup_line *line,
                         const json_t *schedule)
{
	const struct schema *form = c->version->response;
	const json_t *items = items_of(schedule), *hourly = item_find(items, HOURLY);
	int64_t hours = hourly ? json_number(hourly, "frequencyInterval") : DAY_HOURS;
	bool archived = json_flag(line->body, "archive");
	json_t *view = json_new(c->arena);
	json_put_str(view, "clusterId", cluster->doc.id);
	json_put_str(view, "groupId", c->group.id);
	json_put(view, "clusterCheckpointIntervalMin", json_integer(checkpoint_minutes(line)));
	json_put(view, "pointInTimeWindowHours",
	         json_integer(archived ? schedule_window_days(schedule) * DAY_HOURS : 0));
	json_put(view, "snapshotIntervalHours", json_integer(enum_below(form, "snapshotIntervalHours", hours)));
	for (size_t i = 0; i < KEPT; i++) {
		const struct kept *k = i == 0 && !hourly ? &kept[1] : &kept[i];
		json_put(view, kept[i].field, json_integer(enum_below(form, kept[i].field, retention_of(items, k))));
	}
	return view;
}

static int load(struct call *c, struct cluster *cluster, struct doc *d, struct backup_line *line)
{
	int r = schedule_load(c, cluster, d);
	return r < 0 ? r : backup_line_get(c->tx, c->arena, cluster->doc.id, line);
}

static int view_write(struct call *c, const struct cluster *cluster, const struct backup_line *line,
                      const json_t *schedule)
{
	const json_t *view = view_make(c, cluster, line, schedule);
	entity_write(c, &c->out, json_text(c->arena, view), resource_legacy_schedule.self, "clusterName",
	             cluster->doc.name, false);
	return 0;
}

int legacy_schedules_get(struct call *c)
{
	struct cluster cluster;
	struct doc d;
	struct backup_line line;
	int r = load(c, &cluster, &d, &line);
	return r < 0 ? r : view_write(c, &cluster, &line, doc_json(c->arena, d.body));
}

/* --- changing it */

static void items_remove(json_t *items, enum frequency frequency)
{
	for (size_t i = json_array_size(items); i-- > 0;)
		if (is_of(json_array_get(items, i), frequency))
			json_array_remove(items, i);
}

static void items_keep(json_t *items, const struct kept *k, int64_t value)
{
	if (!item_find(items, k->frequency))
		json_array_append_new(items, json_pack("{s:i, s:s}", "frequencyInterval", k->interval, "frequencyType",
		                                       frequency_name(k->frequency)));
	for (size_t i = 0; i < json_array_size(items); i++) {
		json_t *item = json_array_get(items, i);
		if (!is_of(item, k->frequency))
			continue;
		json_put_z(item, "retentionUnit", k->unit);
		json_put(item, "retentionValue", json_integer(value));
	}
}

/* What is sent as it was shown is no change: the item may say more than the older form can. */
static const json_t *changed(const json_t *given, const json_t *before, const char *field)
{
	const json_t *value = json_object_get(given, field);
	return value && !json_equal(value, json_object_get(before, field)) ? value : NULL;
}

/* Every 24 hours is daily: then the daily item has the retention of both. */
static void interval_change(const json_t *given, const json_t *before, json_t *items)
{
	const json_t *hours = changed(given, before, "snapshotIntervalHours"),
	             *days = changed(given, before, "snapshotRetentionDays");
	int64_t hour_count = json_number(hours ? given : before, "snapshotIntervalHours"),
	        day_count = json_number(days ? given : before, "snapshotRetentionDays");
	if (!hours && !days)
		return;
	if (hour_count == DAY_HOURS) {
		items_remove(items, HOURLY);
		if (retention_of(items, &kept[1]) < day_count)
			items_keep(items, &kept[1], day_count);
		return;
	}
	if (days || !item_find(items, HOURLY))
		items_keep(items, &kept[0], day_count);
	if (hours)
		json_put(item_find(items, HOURLY), "frequencyInterval", json_integer(hour_count));
}

static void items_change(const json_t *given, const json_t *before, json_t *items)
{
	for (size_t i = 1; i < KEPT; i++) {
		const json_t *value = changed(given, before, kept[i].field);
		if (value && !json_integer_value(value))
			items_remove(items, kept[i].frequency);
		else if (value)
			items_keep(items, &kept[i], json_integer_value(value));
	}
	interval_change(given, before, items);
}

static void window_change(struct call *c, const json_t *before, json_t *after, struct faults *faults)
{
	const json_t *given = json_object_get(c->body, "pointInTimeWindowHours"),
	             *shown = json_object_get(before, "pointInTimeWindowHours");
	json_int_t hours = json_integer_value(given);
	if (!given || json_equal(given, shown))
		return;
	if (!json_integer_value(shown))
		faults_add(faults, c->arena, STR("pointInTimeWindowHours"),
		           "must be 0: the cluster's pitEnabled is false");
	else if (hours < 1 || hours > WINDOW_HOURS_MAX)
		faults_add(faults, c->arena, STR("pointInTimeWindowHours"), "must be from 1 to %d", WINDOW_HOURS_MAX);
	else
		json_put(after, "restoreWindowDays", json_integer((hours + DAY_HOURS - 1) / DAY_HOURS));
}

/* What is wrong with an item is said in the words of the request. */
static int fail_faults(struct call *c, struct faults *faults, const json_t *items)
{
	for (size_t i = 0; i < faults->count && i < FAULTS_MAX; i++) {
		struct str *path = &faults->list[i].path;
		if (str_is(*path, "restoreWindowDays"))
			*path = STR("pointInTimeWindowHours");
		if (!str_starts(*path, STR(ITEM_PATH)))
			continue;
		size_t at = strtoul(arena_z(c->arena, *path) + strlen(ITEM_PATH), NULL, 10);
		for (size_t k = 0; k < KEPT; k++)
			if (is_of(json_array_get(items, at), kept[k].frequency))
				*path = str_of(str_ends(*path, STR("frequencyInterval")) ? "snapshotIntervalHours"
				                                                         : kept[k].field);
	}
	return call_fail_faults(c, faults);
}

int legacy_schedules_update(struct call *c)
{
	struct cluster cluster;
	struct doc d;
	struct backup_line line;
	struct faults faults = {.count = 0};
	int r = load(c, &cluster, &d, &line);
	if (r < 0)
		return r;
	struct str id = json_field(c->body, "clusterId");
	const json_t *old = doc_json(c->arena, d.body), *before = view_make(c, &cluster, &line, old),
	             *minutes = json_object_get(c->body, "clusterCheckpointIntervalMin");
	json_t *after = json_clone(c->arena, old);
	if (id.n && !str_eq(id, cluster.doc.id))
		faults_add(&faults, c->arena, STR("clusterId"), "must be that of the cluster, %.*s",
		           STR_ARG(cluster.doc.id));
	if (!str_eq(json_field(c->body, "groupId"), c->group.id) && json_field(c->body, "groupId").n)
		faults_add(&faults, c->arena, STR("groupId"), "must be what the path says, or left out");
	items_change(c->body, before, items_of(after));
	window_change(c, before, after, &faults);
	r = schedule_check(c, &cluster, old, after, &faults);
	if (r == 0 && faults.count)
		r = fail_faults(c, &faults, items_of(after));
	if (r == 0 && minutes) {
		json_put(line.body, "checkpointMinutes", json_integer(json_integer_value(minutes)));
		r = backup_line_save(c->tx, c->arena, &line);
	}
	if (r == 0)
		r = schedule_save(c, &cluster, &d, after);
	if (r < 0)
		return r;
	event_cluster(c, cluster.doc.name);
	return view_write(c, &cluster, &line, after);
}

static int find(struct call *c, const struct resource *resource, struct doc *ret_doc)
{
	struct cluster cluster;
	return schedule_load(c, &cluster, ret_doc);
}

const struct resource_hooks legacy_schedule_hooks = {.load = find};
