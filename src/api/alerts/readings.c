/* Measured values and counted states against the configurations that have a bound for them. Who measures looks first,
 * on a reader, whether a reading would change anything, and writes only then; the write judges it again. */
#include "api/alerts/rules.h"

#include <errno.h>

#define BATCH 64 /* findings of one write */
#define READING_TYPES "OUTSIDE_METRIC_THRESHOLD|OUTSIDE_FLEX_METRIC_THRESHOLD|NO_PRIMARY|" BOUND_TYPES

/* --- bounds */

/* Factors to the unit that readings have: bytes, milliseconds, or a plain number. */
static const struct unit {
	const char *name;
	double factor;
} units[] = {{"BITS", 0.125},
             {"KILOBITS", 128},
             {"MEGABITS", 131072},
             {"GIGABITS", 134217728},
             {"BYTES", 1},
             {"KILOBYTES", 1024},
             {"MEGABYTES", 1048576},
             {"GIGABYTES", 1073741824.0},
             {"TERABYTES", 1099511627776.0},
             {"PETABYTES", 1125899906842624.0},
             {"NANOSECONDS", 1e-6},
             {"MILLISECONDS", 1},
             {"SECONDS", 1000},
             {"MINUTES", 60000},
             {"HOURS", 3600000},
             {"DAYS", 86400000},
             {"MILLION_MINUTES", 6e10},
             {"thousand", 1e3},
             {"million", 1e6},
             {"billion", 1e9}};

double alert_unit(struct str name)
{
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (str_is(name, units[i].name))
			return units[i].factor;
	return 1;
}

static const json_t *threshold_of(const json_t *config)
{
	const json_t *metric = json_object_get(config, "metricThreshold");
	return metric ? metric : json_object_get(config, "threshold");
}

/* The unit of a bound that names none is the type's. */
static struct str units_of(const json_t *config)
{
	struct str given = json_field(threshold_of(config), "units");
	return !given.n && str_is(json_field(config, "eventTypeName"), OPLOG_WINDOW) ? STR("HOURS") : given;
}

bool is_outside(const json_t *config, const struct alert_subject *s)
{
	struct str type = json_field(config, "eventTypeName"), op = json_field(threshold_of(config), "operator");
	double bound =
	        json_number_value(json_object_get(threshold_of(config), "threshold")) * alert_unit(units_of(config));
	if (str_is(type, "NO_PRIMARY"))
		return s->value < 1;
	if (str_is_one_of("LESS_THAN|<", op) || str_is(type, OPLOG_WINDOW))
		return s->value < bound && (s->most <= 0 || bound <= s->most);
	return s->value > bound;
}

/* --- verdicts */

/* How many readings in a row must be inside before an alert about a metric ends: a value that swings around its bound
 * would page people each minute. */
int64_t alert_hold_minutes(const json_t *config)
{
	const json_t *minutes = json_object_get(config, ALERT_HOLD);
	return minutes ? json_integer_value(minutes) : ALERT_HOLD_MINUTES;
}

enum verdict { NOTHING, OPENS, FOLLOWS, CLOSES, CANCELS };

static bool is_about(const struct alert_rule *rule, const struct alert_reading *r)
{
	return str_is(rule->type, r->type) && (!r->metric || str_is(rule->metric, r->metric));
}

/* A subject that the configuration does not watch any more, as a host with another role, is cancelled. */
static enum verdict judge(const json_t *config, const struct alert_subject *s, bool lasts)
{
	bool outside = is_outside(config, s);
	if (!lasts && !outside)
		return NOTHING;
	if (!json_flag(config, "enabled") || !matchers_match(json_object_get(config, "matchers"), s))
		return lasts ? CANCELS : NOTHING;
	return !lasts ? OPENS : outside ? FOLLOWS : CLOSES;
}

struct alert_subject reading_subject(const struct alert_reading *r, struct str org_id)
{
	return (struct alert_subject){.org_id = org_id,
	                              .group_id = r->group_id,
	                              .cluster = r->cluster,
	                              .hostname = r->hostname,
	                              .replica_set = r->replica_set,
	                              .shard = r->shard,
	                              .type_name = str_of(r->type_name),
	                              .metric = str_of(r->metric),
	                              .port = r->port,
	                              .has_value = true,
	                              .value = r->value,
	                              .most = r->most};
}

/* --- looking */

static void open_read(struct alert_open *o, const struct doc *mark)
{
	struct str rest, set;
	*o = (struct alert_open){.alert_id = mark->id};
	str_cut(mark->name, '/', &o->config_id, &o->subject);
	str_cut(o->subject, '/', &o->cluster, &rest);
	str_cut(rest, '/', &o->host, &set);
}

int alerts_watch_load(struct tx *tx, struct arena *a, struct str group_id, const char *types,
                      struct alert_watch *ret_watch)
{
	struct alert_watch w = {.group_id = group_id};
	struct doc *configs = NULL, *marks = NULL;
	size_t count = 0, open = 0;
	int r = *types ? tx_list_all(tx, a, ALERT_CONFIG, group_id, &configs, &count) : 0;
	if (r == 0)
		r = tx_list_all(tx, a, ALERT_OPEN, group_id, &marks, &open);
	if (r < 0)
		return r;
	w.rules = arena_new_array(a, struct alert_rule, count + 1);
	for (size_t i = 0; i < count; i++) {
		struct str type = document_text(a, configs[i].body, STR("eventTypeName"));
		if (!str_is_one_of(types, type))
			continue;
		const json_t *body = doc_json(a, configs[i].body);
		if (json_flag(body, "enabled"))
			w.rules[w.rule_count++] = (struct alert_rule){
			        configs[i], type, json_field(threshold_of(body), "metricName"), body};
	}
	w.open = arena_new_array(a, struct alert_open, open + 1);
	for (size_t i = 0; i < open; i++)
		open_read(&w.open[w.open_count++], &marks[i]);
	*ret_watch = w;
	return 0;
}

bool alerts_watch_has(const struct alert_watch *w, const char *type)
{
	for (size_t i = 0; i < w->rule_count; i++)
		if (str_is(w->rules[i].type, type))
			return true;
	return false;
}

bool alerts_watch_matters(const struct alert_watch *w, struct arena *a, const struct alert_reading *r)
{
	const struct alert_subject s = reading_subject(r, STR_NONE);
	struct str key = STR_NONE;
	for (size_t i = 0; i < w->rule_count; i++) {
		const struct alert_rule *rule = &w->rules[i];
		bool lasts = false;
		if (!is_about(rule, r))
			continue;
		if (w->open_count && !key.n)
			key = subject_key(a, &s);
		for (size_t k = 0; k < w->open_count && !lasts; k++)
			lasts = str_eq(w->open[k].config_id, rule->config.id) && str_eq(w->open[k].subject, key);
		enum verdict v = judge(rule->body, &s, lasts);
		if (v == FOLLOWS && !rule->metric.n) /* counted states are told without their value */
			v = NOTHING;
		/* Where there is no room for more alerts, only the end of one matters, and its value. */
		if ((lasts || w->open_count < ALERTS_OPEN_MAX) && v != NOTHING)
			return true;
	}
	return false;
}

/* --- writing */

/* A project's rules, for readings that come one after the other. */
struct project_rules {
	struct doc project;
	struct alert_watch watch;
	bool gone, full; /* full: no more alerts can be opened */
};

/* The value of an alert that lasts is that of now: a reminder that told 17.6% when it was 43% was believed. `inside`:
 * how many readings in a row it has been within its bound. */
static int value_follow(struct tx *tx, struct arena *a, struct alert *al, const struct alert_subject *shown,
                        int64_t inside)
{
	const json_t *had = json_object_get(json_object_get(al->body, "currentValue"), "number");
	double before = json_number_value(had);
	bool same = json_number(al->state, "inside") == inside;
	alert_value_put(al, shown);
	json_put(al->state, "inside", json_integer(inside));
	const json_t *has = json_object_get(json_object_get(al->body, "currentValue"), "number");
	same &= !has || (before >= shown->value && before <= shown->value);
	return same ? 0 : alert_save(tx, a, al);
}

/* Within its bound again. Of what nobody was told, and of states that are counted, that is the end; a metric must stay
 * there for a while. */
static int value_close(struct tx *tx, struct arena *a, struct alert *al, const struct alert_rule *rule,
                       const struct alert_subject *shown)
{
	int64_t inside = json_number(al->state, "inside") + 1;
	bool told = str_is(json_field(al->body, "status"), "OPEN");
	if (told && rule->metric.n && inside < alert_hold_minutes(rule->body))
		return value_follow(tx, a, al, shown, inside);
	alert_value_put(al, shown);
	return alert_end(tx, a, al, "CLOSED");
}

static int rule_judge(struct tx *tx, struct arena *a, struct project_rules *rules, const struct alert_rule *rule,
                      const struct alert_subject *s)
{
	struct str unit = units_of(rule->body);
	struct alert_subject shown = *s;
	struct alert al;
	shown.value = s->value / alert_unit(unit);
	shown.units = unit.n ? arena_z(a, unit) : "RAW";
	int r = alert_find(tx, a, &rule->config, s, &al);
	if (r < 0 && (r != -ENOENT || rules->full))
		return r == -ENOENT ? 0 : r;
	switch (judge(rule->body, s, r == 0)) {
	case OPENS:
		r = alert_make(tx, a, &rule->config, rule->body, &shown, true, &al);
		rules->full = r == 0 && !al.state;
		return r;
	case CLOSES: return value_close(tx, a, &al, rule, &shown);
	case CANCELS: return alert_end(tx, a, &al, "CANCELLED");
	case FOLLOWS: return value_follow(tx, a, &al, &shown, 0);
	default: return 0;
	}
}

static int rules_load(struct tx *tx, struct arena *a, struct str group_id, struct project_rules *ret_rules)
{
	*ret_rules = (struct project_rules){.watch = {.group_id = group_id}};
	int r = tx_get(tx, a, "project", group_id, &ret_rules->project);
	ret_rules->gone = r == -ENOENT;
	return ret_rules->gone ? 0 : r < 0 ? r : alerts_watch_load(tx, a, group_id, READING_TYPES, &ret_rules->watch);
}

static int reading_judge(struct tx *tx, struct arena *a, struct project_rules *rules,
                         const struct alert_reading *reading, unsigned *room)
{
	struct alert_subject s = reading_subject(reading, rules->project.parent);
	int r = 0;
	s.room = room;
	for (size_t i = 0; r == 0 && !rules->gone && i < rules->watch.rule_count; i++)
		if (is_about(&rules->watch.rules[i], reading))
			r = rule_judge(tx, a, rules, &rules->watch.rules[i], &s);
	return r;
}

int alerts_on_reading(struct tx *tx, struct arena *a, const struct alert_reading *reading)
{
	struct project_rules rules;
	unsigned room = WORK_MAX;
	int r = rules_load(tx, a, reading->group_id, &rules);
	return r < 0 ? r : reading_judge(tx, a, &rules, reading, &room);
}

int alert_forget(struct tx *tx, struct arena *a, struct str alert_id, unsigned *room)
{
	struct alert al;
	int r = alert_load(tx, a, alert_id, &al);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	al.room = room;
	return alert_is_over(al.body) ? 0 : alert_end(tx, a, &al, "CANCELLED");
}

void alerts_find(struct alert_findings *f, const struct alert_finding *one)
{
	struct arena *a = f->arena;
	ARENA_FIT(a, f->list, f->count, f->room);
	struct alert_finding *to = &f->list[f->count++];
	*to = *one;
	to->ends = arena_dup(a, one->ends);
	to->reading.group_id = arena_dup(a, one->reading.group_id);
	to->reading.cluster = arena_dup(a, one->reading.cluster);
	to->reading.hostname = arena_dup(a, one->reading.hostname);
	to->reading.replica_set = arena_dup(a, one->reading.replica_set);
	to->reading.shard = arena_dup(a, one->reading.shard);
	to->reading.metric = one->reading.metric ? arena_z(a, str_of(one->reading.metric)) : NULL;
}

/* Some findings, in one write. */
struct batch {
	const struct alert_finding *list;
	size_t count, done;
};

/* Findings come project by project. What would make the write long is left to the next one. */
static int batch_run(struct tx *tx, void *ctx)
{
	struct batch *b = ctx;
	struct arena *a = arena_new();
	struct project_rules rules = {.gone = true};
	unsigned sent = 0;
	int r = 0;
	for (b->done = 0; r == 0 && b->done < b->count && sent < WORK_MAX; b->done++) {
		const struct alert_finding *one = &b->list[b->done];
		unsigned room = WORK_MAX;
		if (!one->ends.n && !str_eq(rules.watch.group_id, one->reading.group_id))
			r = rules_load(tx, a, one->reading.group_id, &rules);
		if (r == 0)
			r = one->ends.n ? alert_forget(tx, a, one->ends, &room)
			                : reading_judge(tx, a, &rules, &one->reading, &room);
		sent += WORK_MAX - room;
	}
	arena_free(a);
	return r;
}

int alerts_findings_write(struct store *store, const struct alert_findings *f)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < f->count;) {
		size_t left = f->count - i;
		struct batch b = {.list = f->list + i, .count = left < BATCH ? left : BATCH};
		r = store_write_wait(store, batch_run, &b);
		i += b.done;
	}
	return r;
}
