/* The clock of each line, a job that looks at it when something is due: it takes what the schedule asks for, tells when
 * that is overdue, and ends what is over. All in one write, so that a schedule that is being changed is the old one or
 * the new one. */
#include "api/snapshots/clock.h"

#include "api/kit/verbs.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/drills.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/sweep.h"
#include "api/snapshots/take.h"
#include "api/snapshots/times.h"
#include "api/snapshots/timetable.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>

/* One snapshot serves all items that are due, with the longest of their retentions. A time that was missed is made up
 * for once. */
static int due_take(struct tx *tx, struct arena *a, struct backup_line *line, const json_t *schedule, int64_t now)
{
	const json_t *items = schedule_items(schedule);
	struct reference at = schedule_reference(schedule);
	struct snapshot_wish wish = {.type = "scheduled", .frequency = HOURLY};
	int64_t from = schedule_from(json_number(line->body, "looked"), now);
	json_t *ids = json_keep(a, json_array());
	struct snapshot taken;
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *one = json_array_get(items, i);
		struct timed_item item = schedule_item(one);
		int64_t ms = retention_ms(json_field(one, "retentionUnit"), json_number(one, "retentionValue"));
		if (item.frequency == ON_DEMAND || !item_is_due(&item, &at, from, now))
			continue;
		json_add_str(ids, json_field(one, "id"));
		wish.retention_ms = ms > wish.retention_ms ? ms : wish.retention_ms;
		wish.frequency = (int)item.frequency > wish.frequency ? (int)item.frequency : wish.frequency;
	}
	if (!json_array_size(ids) && from == json_number(line->body, "looked"))
		return 0;
	wish.items = ids;
	json_put(line->body, "looked", json_integer(from < now ? now : from));
	int r = backup_line_save(tx, a, line);
	return r < 0 || !json_array_size(ids) ? r : snapshot_take(tx, a, line, &wish, &taken);
}

/* Of that data: the oldest that is not before `from`, or the newest that is not after `to`. */
static const struct snapshot *window_seek(struct str incarnation, const struct snapshot *list, size_t count,
                                          int64_t from, int64_t to)
{
	const struct snapshot *found = NULL;
	for (size_t i = 0; i < count; i++) {
		int64_t at = json_number(list[i].plan, "at"), best = found ? json_number(found->plan, "at") : 0;
		if (snapshot_is(&list[i], "completed") && at >= from && at <= to &&
		    str_eq(json_field(list[i].plan, "incarnation"), incarnation) &&
		    (!found || (from ? at < best : at > best)))
			found = &list[i];
	}
	return found;
}

/* The snapshot that the window begins with stays, whatever its own time says, also of data from before a restore; and
 * so does the one that takes its place a window later, because the log would otherwise be kept since the first one for
 * ever. */
static bool window_needs(const struct backup_line *line, const struct snapshot *list, size_t count, int64_t now,
                         int64_t window, const struct snapshot *s)
{
	struct str own = json_field(s->plan, "incarnation");
	int64_t end;
	if (!window || incarnation_end(line, own, &end) < 0 || (end && end < now - window))
		return false;
	const struct snapshot *first = window_seek(own, list, count, 0, now - window);
	if (!first) /* it has yet to grow to its length */
		first = window_seek(own, list, count, 1, now);
	if (!first || first == s)
		return first == s;
	return !end && window_seek(own, list, count, json_number(first->plan, "at") + window, INT64_MAX) == s;
}

/* Data that no window reaches any more is forgotten, and its log goes. */
static bool ended_trim(struct backup_line *line, int64_t before)
{
	json_t *ended = json_object_get(line->body, "ended");
	size_t count = json_array_size(ended);
	for (size_t i = count; i-- > 0;)
		if (json_number(json_array_get(ended, i), "at") < before)
			json_array_remove(ended, i);
	return json_array_size(ended) < count;
}

static int copies_expire(struct tx *tx, struct arena *a, struct snapshot *s, int64_t now, int64_t *next)
{
	const json_t *copies = json_object_get(s->plan, "copies");
	int64_t floor = 0;
	int r = json_array_size(copies) ? protection_copies(tx, a, s, &floor) : 0;
	for (size_t i = json_array_size(copies); r == 0 && i-- > 0;) {
		const json_t *copy = json_array_get(copies, i);
		int64_t expires = json_number(copy, "expires");
		if (expires && expires < s->doc.created_ms + floor)
			expires = s->doc.created_ms + floor;
		if (expires && expires <= now)
			r = snapshot_drop_copy(tx, a, s, arena_dup(a, json_field(copy, "region")));
		else if (expires && expires < *next)
			*next = expires;
	}
	return r;
}

/* What is over goes; *next is when something is over again. */
static int over_delete(struct tx *tx, struct arena *a, struct backup_line *line, int64_t now, int64_t *next,
                       size_t *left)
{
	struct snapshot *list;
	size_t count = 0;
	int64_t window = 0;
	int r = snapshots_of(tx, a, line->doc.id, &list, &count);
	if (r == 0)
		r = protection_log(tx, a, line, &window);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct snapshot *s = &list[i];
		int64_t expires = snapshot_expires(s), floor = 0;
		bool used = false, held = false;
		if (expires <= now)
			r = snapshot_in_use(tx, a, s, &used);
		if (r == 0 && expires <= now)
			r = protection_window(tx, a, line, list, count, s, &held);
		if (r == 0 && expires <= now) /* a policy that came later holds for what was there */
			r = retention_floor(tx, a, json_field(s->plan, "groupId"), snapshot_frequency(s), &floor);
		bool busy = snapshot_is(s, "inProgress") || used || held || now < s->doc.created_ms + floor;
		if (r == 0 && expires <= now && !busy && !window_needs(line, list, count, now, window, s)) {
			r = snapshot_delete(tx, a, s);
			continue;
		}
		(*left)++;
		if (r == 0)
			r = copies_expire(tx, a, s, now, next);
		int64_t again = expires <= now ? now + SWEEP_MS : expires;
		*next = again < *next ? again : *next;
	}
	if (r == 0 && ended_trim(line, now - window))
		r = backup_line_save(tx, a, line);
	return r;
}

/* An event when there has been none for too long, once; the next that is complete has its own. Not for times at which
 * nobody looked: `looked` is when that was, and what was missed is being made up for. */
static int overdue_look(struct tx *tx, struct arena *a, struct backup_line *line, const json_t *schedule,
                        int64_t looked, int64_t now, int64_t *next)
{
	int64_t last = json_number(line->body, "taken"), running = json_number(line->body, "running");
	running = running ? running : line->doc.created_ms;
	last = last > running ? last : running;
	int64_t first = schedule_next(schedule, last), second = first ? schedule_next(schedule, first) : 0;
	if (!first || json_flag(line->body, "overdue"))
		return 0;
	int64_t from = overdue_from(last, first, second);
	if (now < from) {
		*next = from < *next ? from : *next;
		return 0;
	}
	if (looked < first)
		return 0;
	log_error("backups of cluster %.*s: no snapshot for two periods of its schedule", STR_ARG(line->doc.id));
	json_put(line->body, "overdue", json_true());
	int r = backup_line_save(tx, a, line);
	return r < 0 ? r : backup_event(tx, a, "CPS_SNAPSHOT_BEHIND", "WARNING", line, NULL, STR_NONE);
}

static int clock_save(struct tx *tx, struct job_run *r)
{
	const struct service *service = r->ctx;
	struct str id = {r->job.subject.p + r->job.subject.n - 24, 24};
	struct backup_line line;
	json_t *schedule;
	int64_t now = clock_now_ms(), next = INT64_MAX, looked = 0, then;
	size_t left = 0;
	int result = backup_line_get(tx, r->arena, id, &line);
	if (result == 0)
		result = schedule_of(tx, r->arena, &line, &schedule);
	if (result == 0)
		looked = json_number(line.body, "looked");
	if (result == 0 && service->engine_ops->backup && backup_is_running(&line))
		result = due_take(tx, r->arena, &line, schedule, now);
	if (result == 0 && service->engine_ops->backup && backup_is_running(&line))
		result = overdue_look(tx, r->arena, &line, schedule, looked, now, &next);
	if (result == 0 && service->engine_ops->backup)
		result = window_look(tx, r->arena, &line, now, &next);
	if (result == 0)
		result = over_delete(tx, r->arena, &line, now, &next, &left);
	if (result == 0 && service->engine_ops->backup)
		result = drill_look(tx, r->arena, &line, service->drill_days, now, &next);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (json_flag(line.body, "gone") && !left) /* the last of a cluster that is gone */
		return resource_take_away(tx, r->arena, &resource_backup_line, &line.doc);
	then = backup_is_running(&line) ? schedule_next(schedule, now) : 0;
	next = then && then < next ? then : next;
	return next == INT64_MAX ? 0 : schedule_look(tx, r->arena, &line, next);
}

/* All in the write, so that a schedule that is being changed is the old one or the new one. */
int clock_step(struct job_run *r)
{
	r->save = clock_save;
	return JOB_DONE;
}
