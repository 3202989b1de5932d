/* What a backup schedule says: when snapshots are due, how long they stay, where their copies go. Reading alone: who
 * may change one, and to what, is in schedule.c. */
#include "api/snapshots/timetable.h"

#include "api/kit/verbs.h"

#include <errno.h>

#define FLEX_DAYS 8

/* A flex cluster has no schedule of its own: a snapshot each day, at the hour at which it was made. */
static json_t *flex_schedule(struct arena *a, const struct backup_line *line)
{
	int64_t minutes = line->doc.created_ms / 60000;
	struct str id = line->doc.id;
	json_t *item = json_pack("{s:i, s:s, s:s%, s:s, s:i}", "frequencyInterval", 1, "frequencyType", "daily", "id",
	                         id.p, id.n, "retentionUnit", "days", "retentionValue", FLEX_DAYS);
	return json_keep(a, json_pack("{s:I, s:I, s:[{s:[o]}]}", "referenceHourOfDay", (json_int_t)(minutes / 60 % 24),
	                              "referenceMinuteOfHour", (json_int_t)(minutes % 60), "policies", "policyItems",
	                              item));
}

int schedule_of(struct tx *tx, struct arena *a, const struct backup_line *line, json_t **ret_schedule)
{
	struct doc d;
	*ret_schedule = NULL;
	if (json_flag(line->body, "flex")) {
		*ret_schedule = flex_schedule(a, line);
		return 0;
	}
	int r = tx_get(tx, a, SCHEDULE_KIND, line->doc.id, &d);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_schedule = r == 0 ? doc_json(a, d.body) : json_new(a);
	return 0;
}

int64_t schedule_window_days(const json_t *schedule)
{
	return json_number(schedule, "restoreWindowDays");
}

int64_t schedule_extra_ms(const json_t *schedule, int frequency)
{
	const json_t *list = json_object_get(schedule, "extraRetentionSettings");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		if (frequency_find(json_field(one, "frequencyType")) == frequency)
			return json_number(one, "retentionDays") * BACKUP_DAY_MS;
	}
	return 0;
}

static json_t *copy_item(const json_t *setting, int frequency)
{
	const json_t *items = json_object_get(setting, "copyPolicyItems");
	for (size_t i = 0; i < json_array_size(items); i++)
		if (frequency_find(json_field(json_array_get(items, i), "frequencyType")) == frequency)
			return json_array_get(items, i);
	return NULL;
}

static bool copies_frequency(const json_t *setting, int frequency)
{
	const json_t *list = json_object_get(setting, "frequencies");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (frequency_find(json_item(list, i)) == frequency)
			return true;
	return false;
}

int64_t schedule_copy_expires(const json_t *schedule, const json_t *setting, const struct snapshot *s)
{
	const json_t *item = copy_item(setting, snapshot_frequency(s));
	int64_t ms = json_flag(schedule, "copyPolicyItemsEnabled")
	                     ? retention_ms(json_field(item, "retentionUnit"), json_number(item, "retentionValue"))
	                     : 0;
	return ms ? s->doc.created_ms + ms : 0;
}

int schedule_copies(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s,
                    json_t **ret_copies)
{
	json_t *schedule, *copies = json_keep(a, json_array());
	int frequency = snapshot_frequency(s), r = schedule_of(tx, a, line, &schedule);
	const json_t *settings = r == 0 ? json_object_get(schedule, "copySettings") : NULL;
	bool by_item = json_flag(schedule, "copyPolicyItemsEnabled");
	for (size_t i = 0; i < json_array_size(settings); i++) {
		const json_t *setting = json_array_get(settings, i), *item = copy_item(setting, frequency);
		struct str region = json_field(setting, "regionName"), provider = json_field(setting, "cloudProvider");
		if (by_item ? !item : !copies_frequency(setting, frequency))
			continue;
		json_array_append_new(copies, json_pack("{s:s%, s:s%, s:I, s:I}", "region", region.p, region.n,
		                                        "provider", provider.p ? provider.p : "", provider.n, "expires",
		                                        (json_int_t)schedule_copy_expires(schedule, setting, s), "most",
		                                        json_number(setting, "lastNumberOfSnapshots")));
	}
	*ret_copies = copies;
	return r;
}

/* --- its times */

struct timed_item schedule_item(const json_t *item)
{
	int f = frequency_find(json_field(item, "frequencyType"));
	return (struct timed_item){f < 0 ? DAILY : (enum frequency)f, json_number(item, "frequencyInterval")};
}

struct reference schedule_reference(const json_t *schedule)
{
	return (struct reference){(int)json_number(schedule, "referenceHourOfDay"),
	                          (int)json_number(schedule, "referenceMinuteOfHour")};
}

const json_t *schedule_items(const json_t *schedule)
{
	return json_object_get(json_array_get(json_object_get(schedule, "policies"), 0), "policyItems");
}

int64_t schedule_next(const json_t *schedule, int64_t after_ms)
{
	const json_t *items = schedule_items(schedule);
	struct reference at = schedule_reference(schedule);
	int64_t next = 0;
	for (size_t i = 0; i < json_array_size(items); i++) {
		struct timed_item item = schedule_item(json_array_get(items, i));
		int64_t own = item.frequency == ON_DEMAND ? 0 : item_next(&item, &at, after_ms);
		if (own && (!next || own < next))
			next = own;
	}
	return next;
}
