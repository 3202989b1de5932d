/* The maintenance window of a project: when it is, putting off what is pending, and starting it at once. */
#include "api/kit/verbs.h"
#include "api/maintenance/plan.h"
#include "base/clock.h"
#include "trail/events.h"

#define WEEK_MS (7 * 86400000LL)
#define DEFERRALS_MAX 2

static bool is_within(json_int_t hour, json_int_t from, json_int_t to)
{
	return from < to ? hour >= from && hour < to : hour >= from || hour < to;
}

static void window_check(struct call *c, const json_t *body, struct faults *faults)
{
	const json_t *hours = json_object_get(body, "protectedHours"), *from = json_object_get(hours, "startHourOfDay"),
	             *to = json_object_get(hours, "endHourOfDay");
	json_int_t hour = json_number(body, "hourOfDay");
	if (!hours)
		return;
	if (!from)
		faults_add(faults, c->arena, STR("protectedHours.startHourOfDay"), "is required");
	if (!to)
		faults_add(faults, c->arena, STR("protectedHours.endHourOfDay"), "is required");
	if (!from || !to)
		return;
	if (json_equal(from, to))
		faults_add(faults, c->arena, STR("protectedHours.endHourOfDay"),
		           "must not be startHourOfDay: some hours must be left");
	else if (is_within(hour, json_integer_value(from), json_integer_value(to)))
		faults_add(faults, c->arena, STR("hourOfDay"), "must not be a protected hour");
}

static bool differs(const json_t *a, const json_t *b, const char *field)
{
	const json_t *one = json_object_get(a, field), *other = json_object_get(b, field);
	return one != other && !json_equal(one, other);
}

/* One event for each thing that changed. */
static int events_write(struct call *c, const json_t *old, const json_t *new, bool first)
{
	const char *types[4];
	size_t count = 0;
	if (first)
		types[count++] = "SVC_MAINTENANCE_WINDOW_ADDED";
	else if (differs(old, new, "dayOfWeek") || differs(old, new, "hourOfDay"))
		types[count++] = "SVC_MAINTENANCE_WINDOW_MODIFIED";
	if (differs(old, new, "protectedHours"))
		types[count++] = !json_object_get(old, "protectedHours")   ? "SVC_MAINTENANCE_PROTECTED_HOURS_CREATED"
		                 : !json_object_get(new, "protectedHours") ? "SVC_MAINTENANCE_PROTECTED_HOURS_REMOVED"
		                                                           : "SVC_MAINTENANCE_PROTECTED_HOURS_MODIFIED";
	if (differs(old, new, "autoDeferOnceEnabled"))
		types[count++] = json_flag(new, "autoDeferOnceEnabled") ? "SVC_MAINTENANCE_AUTO_DEFER_ENABLED"
		                                                        : "SVC_MAINTENANCE_AUTO_DEFER_DISABLED";
	if (differs(old, new, "startASAP") && json_flag(new, "startASAP"))
		types[count++] = "SVC_MAINTENANCE_START_ASAP";
	if (!count)
		event_set_type(c, NULL);
	for (size_t i = 0; i < count; i++) {
		event_set_type(c, types[i]);
		if (i + 1 < count) {
			int result = event_next(c);
			if (result < 0)
				return result;
		}
	}
	return 0;
}

/* What is pending moves with the window, within the week that it was in. */
static void due_move(struct window *w, const json_t *old)
{
	int64_t due = window_due(w), now = clock_now_ms(), from = due - WEEK_MS > now ? due - WEEK_MS : now;
	if (!due || window_is_running(w))
		return;
	if (json_flag(w->body, "startASAP"))
		window_due_set(w, now);
	else if (differs(old, w->body, "dayOfWeek") || differs(old, w->body, "hourOfDay"))
		window_due_set(w, window_next(w->body, from));
}

static int window_open(struct call *c, struct window *ret_window)
{
	int result = window_load(c->tx, c->arena, c->group.id, ret_window);
	return result < 0 ? result : if_match(c, ret_window->doc.rev);
}

static int window_update(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	if (json_object_size(json_object_get(document, "protectedHours")) == 0)
		json_object_del(document, "protectedHours");
	window_check(c, document, &faults);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int window_write(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	struct window w;
	int result = window_load(c->tx, c->arena, c->group.id, &w);
	if (result < 0)
		return result;
	const json_t *before = w.body;
	bool first = !json_flag(w.plan, "set");
	w.body = document;
	json_put(w.plan, "set", json_true());
	due_move(&w, before);
	result = events_write(c, before, w.body, first);
	return result < 0 ? result : window_save(c->tx, c->arena, &w);
}

static int window_drop(struct call *c, const struct doc *d)
{
	struct window w;
	int result = window_load(c->tx, c->arena, c->group.id, &w);
	if (result < 0)
		return result;
	const json_t *old = w.body;
	if (!w.doc.rev) {
		event_set_type(c, NULL); /* it is what it would become */
		return 0;
	}
	window_reset(c->arena, &w);
	due_move(&w, old);
	return window_save(c->tx, c->arena, &w);
}

const struct resource_hooks maintenance_window_hooks = {
        .update = window_update, .save = window_write, .drop = window_drop};

int maintenance_auto_defer(struct call *c)
{
	struct window w;
	int result = window_open(c, &w);
	if (result < 0)
		return result;
	bool on = !json_flag(w.body, "autoDeferOnceEnabled");
	json_put(w.body, "autoDeferOnceEnabled", json_boolean(on));
	event_set_type(c, on ? "SVC_MAINTENANCE_AUTO_DEFER_ENABLED" : "SVC_MAINTENANCE_AUTO_DEFER_DISABLED");
	return window_save(c->tx, c->arena, &w);
}

int maintenance_defer(struct call *c)
{
	struct window w;
	int result = window_open(c, &w);
	if (result < 0)
		return result;
	if (!window_due(&w))
		return call_fail(c, 409, "MAINTENANCE_NOT_SCHEDULED", "The project has no maintenance to defer.");
	if (window_is_running(&w))
		return call_fail(c, 409, "MAINTENANCE_ALREADY_STARTED", "The maintenance is under way.");
	if (json_number(w.body, "numberOfDeferrals") >= DEFERRALS_MAX)
		return call_fail(c, 409, "MAINTENANCE_DEFERRAL_LIMIT_EXCEEDED",
		                 "The maintenance was deferred %d times. It cannot be put off again.", DEFERRALS_MAX);
	window_defer(&w);
	return window_save(c->tx, c->arena, &w);
}
