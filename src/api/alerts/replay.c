/* What a configuration would have told of, had it been there: judged by the events and values that are stored. Nothing
 * is written, and whether it is enabled does not matter. */
#include "api/alerts/rules.h"

#include "base/clock.h"
#include "store/store.h"

#include <errno.h>

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS INT64_C(3600000)
#define EVENTS_MAX 5000

void alerts_replay_begin(struct alert_replay *p, const json_t *config, int64_t since_ms)
{
	const json_t *list = json_object_get(config, "notifications");
	*p = (struct alert_replay){.config = config, .since_ms = since_ms, .delay_ms = INT64_MAX};
	for (size_t i = 0; i < json_array_size(list); i++) {
		int64_t delay = json_number(json_array_get(list, i), "delayMin") * MINUTE_MS;
		p->delay_ms = delay < p->delay_ms ? delay : p->delay_ms;
	}
}

static void told(struct alert_replay *p, int64_t began_ms)
{
	p->count++;
	p->last_ms = began_ms > p->last_ms ? began_ms : p->last_ms;
}

/* --- values */

void alerts_replay_subject(struct alert_replay *p, const struct alert_reading *r)
{
	const struct alert_subject s = reading_subject(r, STR_NONE);
	p->watched = matchers_match(json_object_get(p->config, "matchers"), &s);
	p->outside = p->was_told = false;
	p->inside_ms = -1;
}

/* As value_close() does: whether an alert that was told goes on, though its metric is inside. */
static bool is_held(struct alert_replay *p, const struct alert_reading *r, int64_t at_ms)
{
	if (!p->outside || !p->was_told || !r->metric)
		return false;
	p->inside_ms = p->inside_ms < 0 ? at_ms : p->inside_ms;
	return at_ms - p->inside_ms < (alert_hold_minutes(p->config) - 1) * MINUTE_MS;
}

void alerts_replay_value(struct alert_replay *p, const struct alert_reading *r, int64_t at_ms)
{
	const struct alert_subject s = reading_subject(r, STR_NONE);
	bool outside = p->watched && is_outside(p->config, &s);
	if (!outside && is_held(p, r, at_ms))
		return;
	p->inside_ms = -1;
	if (outside && !p->outside) {
		p->began_ms = at_ms;
		p->was_told = false;
	}
	p->outside = outside;
	if (!outside || p->was_told || at_ms - p->began_ms < p->delay_ms)
		return;
	p->was_told = true;
	told(p, p->began_ms);
}

/* --- events */

static struct alert_subject event_subject(const struct event *e, const json_t *body)
{
	return (struct alert_subject){.cluster = e->cluster,
	                              .hostname = json_field(body, "hostname"),
	                              .port = json_number(body, "port"),
	                              .replica_set = json_field(body, "replicaSetName"),
	                              .shard = json_field(body, "shardName")};
}

/* What lasts: {"SUBJECT": when it began}. */
static void event_replay(struct alert_replay *p, struct arena *a, const struct event *e, json_t *open)
{
	struct str type = json_field(p->config, "eventTypeName");
	const struct alert_subject s = event_subject(e, doc_json(a, e->body));
	const char *key = arena_z(a, subject_key(a, &s));
	const json_t *began = json_object_get(open, key);
	bool begins = str_eq(e->type, type);
	if (begins && !matchers_match(json_object_get(p->config, "matchers"), &s))
		return;
	if (begins && !alert_type_lasts(type)) {
		told(p, e->created_ms);
	} else if (begins && !began) {
		json_put(open, key, json_integer(e->created_ms));
	} else if (!begins && began) {
		if (e->created_ms - json_integer_value(began) >= p->delay_ms)
			told(p, json_integer_value(began));
		json_object_del(open, key);
	}
}

static void rest_replay(struct alert_replay *p, json_t *open)
{
	const char *key;
	json_t *began;
	json_object_foreach(open, key, began)
	{
		if (clock_now_ms() - json_integer_value(began) >= p->delay_ms)
			told(p, json_integer_value(began));
	}
}

/* Elections, the newest first: one is too many when more than so many of its cluster lie within the hour before it. The
 * alert lasts until an hour has passed since the last that was. */
static void elections_replay(struct alert_replay *p, struct arena *a, const struct event *events, size_t count)
{
	json_int_t most = json_number(json_object_get(p->config, "threshold"), "threshold");
	bool *too_many = arena_new_array(a, bool, count + 1);
	for (size_t i = count; i-- > 0;) {
		const struct alert_subject s = {.cluster = events[i].cluster};
		json_int_t within = 0;
		bool lasts = false;
		for (size_t k = i; k < count && events[k].created_ms > events[i].created_ms - HOUR_MS; k++) {
			bool same = str_eq(events[k].cluster, events[i].cluster);
			within += same;
			lasts |= same && too_many[k];
		}
		too_many[i] = within > most;
		if (too_many[i] && !lasts && matchers_match(json_object_get(p->config, "matchers"), &s))
			told(p, events[i].created_ms);
	}
}

static int types_of(struct arena *a, const json_t *config, struct str *ret_types)
{
	struct str type = json_field(config, "eventTypeName"), ends = alert_type_end(type);
	json_t *types = json_keep(a, json_array());
	if (str_is_one_of(BOUND_TYPES, type) || !type.n)
		return -ENOTSUP;
	json_add_str(types, str_is(type, ELECTIONS) ? STR("PRIMARY_ELECTED") : type);
	if (ends.n)
		json_add_str(types, ends);
	*ret_types = json_text(a, types);
	return 0;
}

int alerts_replay_events(struct alert_replay *p, struct tx *tx, struct arena *a, struct str group_id)
{
	struct event_filter f = {.scope = group_id, .has_min = true, .min_ms = p->since_ms};
	struct event *events;
	size_t count;
	json_t *open = json_new(a);
	int r = types_of(a, p->config, &f.types);
	if (r == 0)
		r = tx_event_list(tx, a, &f, 0, EVENTS_MAX, &events, &count);
	if (r < 0)
		return r;
	if (count == EVENTS_MAX)
		p->since_ms = events[count - 1].created_ms;
	if (str_is(json_field(p->config, "eventTypeName"), ELECTIONS)) {
		elections_replay(p, a, events, count);
		return 0;
	}
	for (size_t i = count; i-- > 0;)
		event_replay(p, a, &events[i], open);
	rest_replay(p, open);
	return 0;
}
