/* Alert configurations: written and read by the generic verbs, with the hooks below for what schemas cannot say. */
#include "api/alerts/rules.h"

#include "base/duration.h"
#include "outbox/outbox.h"

#include <errno.h>
#include <math.h>

#define MINUTE_MS INT64_C(60000)
#define DAY_MS INT64_C(86400000)

/* Types that mean nothing without the threshold that they are about. */
static bool needs_metric(struct str type)
{
	return str_starts(type, STR("OUTSIDE_")) && str_ends(type, STR("_THRESHOLD"));
}

static bool needs_threshold(const json_t *document)
{
	return str_is_one_of("TOO_MANY_ELECTIONS|" BOUND_TYPES, json_field(document, "eventTypeName"));
}

/* Types whose operator is known, and whose threshold has two forms in the reference that share the number alone. So
 * that an answer fits both, operator and unit are left out of it: a number of elections, and hours. Whole answers have
 * what was sent (threshold_show()). */
static bool has_number_alone(const json_t *document)
{
	return str_is_one_of("TOO_MANY_ELECTIONS|" OPLOG_WINDOW, json_field(document, "eventTypeName"));
}

/* In units that are times; by themselves they are hours. */
static double threshold_hours(const json_t *threshold)
{
	struct str units = json_field(threshold, "units");
	double number = (double)json_number(threshold, "threshold");
	return units.n ? number * alert_unit(units) / alert_unit(STR("HOURS")) : number;
}

static void hours_check(struct call *c, const json_t *document, struct faults *faults)
{
	if (!str_is(json_field(document, "eventTypeName"), OPLOG_WINDOW))
		return;
	double hours = threshold_hours(json_object_get(document, "threshold"));
	if (hours < 0 || hours > INT32_MAX || fmod(hours, 1) != 0)
		faults_add(faults, c->arena, STR("threshold.threshold"), "must be a whole number of hours");
}

static void threshold_show(const struct call *c, json_t *document)
{
	json_t *threshold = json_object_get(document, "threshold");
	bool is_window = str_is(json_field(document, "eventTypeName"), OPLOG_WINDOW);
	if (!threshold || !has_number_alone(document))
		return;
	if (answer_is_whole(c)) {
		json_default(threshold, "operator", json_string(is_window ? "LESS_THAN" : "GREATER_THAN"));
		json_default(threshold, "units", json_string(is_window ? "HOURS" : "RAW"));
		return;
	}
	if (is_window)
		json_put(threshold, "threshold", json_integer((json_int_t)threshold_hours(threshold)));
	json_object_del(threshold, "operator");
	json_object_del(threshold, "units");
}

static void threshold_check(struct call *c, const json_t *document, const char *field, struct faults *faults)
{
	const json_t *threshold = json_object_get(document, field);
	if (!threshold) {
		faults_add(faults, c->arena, str_of(field), "is required for the type %.*s",
		           STR_ARG(json_field(document, "eventTypeName")));
		return;
	}
	if (!json_object_get(threshold, "threshold"))
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.threshold", field), "is required");
	if (!json_object_get(threshold, "operator") && !has_number_alone(document))
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.operator", field), "is required");
}

static int document_check(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	json_t *secrets;
	if (needs_metric(json_field(document, "eventTypeName")))
		threshold_check(c, document, "metricThreshold", &faults);
	else if (needs_threshold(document))
		threshold_check(c, document, "threshold", &faults);
	if (!faults.count)
		hours_check(c, document, &faults);
	matchers_check(c->arena, json_object_get(document, "matchers"), &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	int r = notifications_take(c, old, document, &secrets);
	c->noted = secrets;
	return r;
}

/* The header X-Steward-Close-After: for how long a metric must be within its bound before alerts about it end. 0
 * without it; negative with the problem written. */
static int64_t hold_asked(struct call *c)
{
	struct str text = request_header(c->request, "x-steward-close-after");
	int64_t ms = 0;
	if (!text.p)
		return 0;
	if (duration_parse(text, &ms) && ms % MINUTE_MS == 0 && ms <= DAY_MS)
		return ms / MINUTE_MS;
	call_fail(c, 400, "INVALID_HEADER",
	          "X-Steward-Close-After: must be an ISO 8601 duration in whole minutes, from PT1M to P1D.");
	return call_fail_param(c, STR("X-Steward-Close-After"));
}

/* Without the header a configuration keeps what it has. No form has the field: it is put in when all was checked. */
static void hold_keep(struct call *c, struct doc *d, const struct doc *old)
{
	int64_t asked = hold_asked(c);
	json_t *body = doc_json(c->arena, d->body);
	const json_t *before = old ? json_object_get(doc_json(c->arena, old->body), ALERT_HOLD) : NULL;
	if (asked <= 0 && !before)
		return;
	json_put(body, ALERT_HOLD, json_integer(asked > 0 ? asked : json_integer_value(before)));
	d->body = json_text(c->arena, body);
}

static int config_create(struct call *c, json_t *document)
{
	json_default(document, "matchers", json_array());
	int r = document_check(c, NULL, document);
	return r == 0 && hold_asked(c) < 0 ? -EINVAL : r;
}

static int secrets_keep(struct call *c, const struct doc *old)
{
	json_t *secrets;
	int r = notification_secrets(c->arena, old, &secrets);
	c->noted = secrets;
	return r;
}

/* Whether it is about something else than before. */
static bool is_another(const json_t *before, const json_t *after)
{
	return !str_eq(json_field(before, "eventTypeName"), json_field(after, "eventTypeName")) ||
	       !str_eq(json_field(json_object_get(before, "metricThreshold"), "metricName"),
	               json_field(json_object_get(after, "metricThreshold"), "metricName")) ||
	       !json_equal(json_object_get(before, "matchers"), json_object_get(after, "matchers"));
}

static int config_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	bool enabled = json_flag(document, "enabled"), toggles = c->op->method == METHOD_PATCH;
	if (toggles)
		event_set_type(c, json_flag(before, "enabled") == enabled ? NULL
		                  : enabled                               ? "ALERT_CONFIG_ENABLED_AUDIT"
		                                                          : "ALERT_CONFIG_DISABLED_AUDIT");
	json_default(document, "matchers", json_array());
	json_object_del(document, ALERT_HOLD);
	/* What was right when it was written can always be switched off, though a team of it may be gone. */
	int r = toggles ? secrets_keep(c, old) : document_check(c, old, document);
	if (r == 0 && hold_asked(c) < 0)
		r = -EINVAL;
	/* Alerts of what is not watched any more. */
	if (r == 0 && (!enabled || is_another(before, document)))
		r = alerts_cancel(c->tx, c->arena, old);
	return r;
}

static int config_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	d->secret = doc_seal(c->arena, d, json_text(c->arena, c->noted));
	hold_keep(c, d, old);
	int r = listener_keep(c->tx, c->arena, d, document);
	if (r == 0)
		r = resource_put(c->tx, d, old);
	/* Who is told from now on is told of what is open, too. */
	if (r == 0 && old &&
	    !json_equal(json_object_get(doc_json(c->arena, old->body), "notifications"),
	                json_object_get(document, "notifications")))
		r = alerts_plan(c->tx, c->arena, d);
	return r;
}

static int config_remove(struct call *c, const struct doc *old)
{
	return alerts_cancel(c->tx, c->arena, old);
}

/* With the project, too: nobody is told then. */
static int config_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	struct doc *states;
	size_t count = 1;
	int r = 0;
	while (r == 0 && count) {
		r = tx_list(tx, a, ALERT_STATE, d->id, 0, 256, &states, &count);
		for (size_t i = 0; r == 0 && i < count; i++) {
			r = tx_delete(tx, ALERT_STATE, states[i].id);
			if (r == 0)
				r = tx_jobs_cancel(tx, ALERT_JOB, states[i].id);
			if (r == 0)
				r = tx_delete(tx, ALERT_OPEN, states[i].id);
			r = r == -ENOENT ? 0 : r;
		}
	}
	if (r == 0)
		r = listener_drop(tx, d->id);
	return r < 0 ? r : outbox_forget(tx, a, d->id);
}

/* Of an alert: the one that raised it, unless it is gone. */
static int config_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct str alert_id = call_path(c, "alertId");
	struct doc alert, *config = arena_new_of(c->arena, struct doc);
	struct segment *all = arena_new_of(c->arena, struct segment);
	if (!alert_id.p) {
		*all = (struct segment){.kind = ALERT_CONFIG, .parent = c->group.id, .whole = true};
		*ret_list = all;
		*ret_count = 1;
		return 0;
	}
	int r = tx_get(c->tx, c->arena, ALERT, alert_id, &alert);
	if (r == 0 && !str_eq(alert.parent, c->group.id))
		r = -ENOENT;
	if (r < 0)
		return r;
	r = tx_get(c->tx, c->arena, ALERT_CONFIG, json_field(doc_json(c->arena, alert.body), "alertConfigId"), config);
	if (r < 0 && r != -ENOENT)
		return r;
	return segments_docs(c, config, r == 0, ret_list, ret_count);
}

static size_t occurrences(struct str text, const char *word)
{
	size_t n = 0, length = strlen(word);
	for (const char *p = text.p; (p = memmem(p, (size_t)(text.p + text.n - p), word, length)); p += length)
		n++;
	return n;
}

/* Those of older versions of the service have only what was given. */
static struct str config_text(struct call *c, const struct doc *d)
{
	size_t i;
	json_t *one;
	bool is_older = occurrences(d->body, "\"delayMin\":") < occurrences(d->body, "\"typeName\":");
	bool has_forms = occurrences(d->body, "\"TOO_MANY_ELECTIONS\"") || occurrences(d->body, "\"" OPLOG_WINDOW "\"");
	bool has_hold = occurrences(d->body, "\"" ALERT_HOLD "\":");
	if (!is_older && !has_forms && !has_hold)
		return d->body;
	json_t *body = doc_json(c->arena, d->body);
	json_object_del(body, ALERT_HOLD);
	if (is_older)
		json_array_foreach(json_object_get(body, "notifications"), i, one) notification_show(one);
	threshold_show(c, body);
	return json_text(c->arena, body);
}

const struct resource_hooks alert_config_hooks = {.create = config_create,
                                                  .update = config_update,
                                                  .save = config_save,
                                                  .remove = config_remove,
                                                  .gone = config_gone,
                                                  .segments = config_segments,
                                                  .text = config_text};
