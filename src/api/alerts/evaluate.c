/* From events to alerts. It runs in the write of the event, so an event is judged exactly once, whichever process
 * writes it, and an alert and its messages are there if and only if the event is. */
#include "api/alerts/rules.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "trail/event_types.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#define ALERTS_MAX 2000 /* of a project; older ones that are over go */
#define ALERTS_TRIM 100 /* so many at a time, as to find them takes a walk */
#define PAGE 200
#define WARN_US (60 * INT64_C(1000000))
#define HOUR_MS INT64_C(3600000)

/* Types that begin something, and those that end it. What is not here is over at once. */
static const struct pair {
	const char *begins, *ends;
} pairs[] = {
        {"ACTIVE_LEGACY_TLS_CONNECTIONS", "NO_ACTIVE_LEGACY_TLS_CONNECTIONS"},
        {"AWS_ENCRYPTION_KEY_INVALID", "AWS_ENCRYPTION_KEY_VALID"},
        {"AWS_ENCRYPTION_KEY_NEEDS_ROTATION", "AWS_ENCRYPTION_KEY_ROTATED"},
        {"AZURE_ENCRYPTION_KEY_INVALID", "AZURE_ENCRYPTION_KEY_VALID"},
        {"AZURE_ENCRYPTION_KEY_NEEDS_ROTATION", "AZURE_ENCRYPTION_KEY_ROTATED"},
        {"CLUSTER_BLOCK_WRITE", "CLUSTER_UNBLOCK_WRITE"},
        {"CLUSTER_ROUTER_IS_MISSING", "CLUSTER_ROUTER_IS_PRESENT"},
        {"CPS_OPLOG_BEHIND", "CPS_OPLOG_CAUGHT_UP"},
        {"CPS_PREV_SNAPSHOT_OLD", "CPS_SNAPSHOT_SUCCESSFUL"},
        {"CPS_SNAPSHOT_BEHIND", "CPS_SNAPSHOT_SUCCESSFUL"},
        {"CREDIT_CARD_ABOUT_TO_EXPIRE", "CREDIT_CARD_CURRENT"},
        {"DAILY_BILL_OVER_THRESHOLD", "DAILY_BILL_UNDER_THRESHOLD"},
        {"ENCRYPTION_AT_REST_CONFIG_NO_LONGER_VALID", "ENCRYPTION_AT_REST_CONFIG_IS_VALID"},
        {"ENCRYPTION_AT_REST_KMS_NETWORK_ACCESS_DENIED", "ENCRYPTION_AT_REST_KMS_NETWORK_ACCESS_RESTORED"},
        {"GCP_ENCRYPTION_KEY_INVALID", "GCP_ENCRYPTION_KEY_VALID"},
        {"GCP_ENCRYPTION_KEY_NEEDS_ROTATION", "GCP_ENCRYPTION_KEY_ROTATED"},
        {"GROUP_SERVICE_ACCOUNT_SECRETS_EXPIRED", "GROUP_SERVICE_ACCOUNT_SECRETS_NO_LONGER_EXPIRED"},
        {"GROUP_SERVICE_ACCOUNT_SECRETS_EXPIRING", "GROUP_SERVICE_ACCOUNT_SECRETS_NO_LONGER_EXPIRING"},
        {"HOST_DOWN", "HOST_UP"},
        {"HOST_EXTERNAL_LOG_SINK_EXPORT_DOWN", "HOST_EXTERNAL_LOG_SINK_EXPORT_RESUMED"},
        {"HOST_NOT_ENOUGH_DISK_SPACE", "HOST_ENOUGH_DISK_SPACE"},
        {"HOST_SEARCH_APPROACHING_STOP_REPLICATION", "HOST_SEARCH_SUFFICIENT_DISK_SPACE"},
        {"HOST_SEARCH_CRASHING_OOM", "HOST_SEARCH_RECOVERED_OOM"},
        {"HOST_SEARCH_NODE_INDEX_FAILED", "HOST_SEARCH_NODE_UNBLOCKED"},
        {"HOST_SEARCH_PAUSE_INITIAL_SYNC", "HOST_SEARCH_UNPAUSE_INITIAL_SYNC"},
        {"HOST_SEARCH_PROCESS_THROTTLING", "HOST_SEARCH_PROCESS_NOT_THROTTLING"},
        {"HOST_SEARCH_STOP_REPLICATION", "HOST_SEARCH_RESUME_REPLICATION"},
        {"NDS_X509_USER_AUTHENTICATION_CUSTOMER_CA_EXPIRATION_CHECK",
         "NDS_X509_USER_AUTHENTICATION_CUSTOMER_CA_EXPIRATION_RESOLVED"},
        {"NDS_X509_USER_AUTHENTICATION_CUSTOMER_CRL_EXPIRATION_CHECK",
         "NDS_X509_USER_AUTHENTICATION_CUSTOMER_CRL_EXPIRATION_RESOLVED"},
        {"NDS_X509_USER_AUTHENTICATION_MANAGED_USER_CERTS_EXPIRATION_CHECK",
         "NDS_X509_USER_AUTHENTICATION_MANAGED_USER_CERTS_EXPIRATION_RESOLVED"},
        {"NO_PRIMARY", "ONE_PRIMARY"},
        {"PENDING_INVOICE_OVER_THRESHOLD", "PENDING_INVOICE_UNDER_THRESHOLD"},
        {"PUSH_BASED_LOG_EXPORT_STOPPED", "PUSH_BASED_LOG_EXPORT_RESUMED"},
        {"REPLICATION_OPLOG_WINDOW_RUNNING_OUT", "REPLICATION_OPLOG_WINDOW_HEALTHY"},
        {"USERS_WITHOUT_MULTI_FACTOR_AUTH", "ALL_USERS_HAVE_MULTI_FACTOR_AUTH"},
};
#define PAIRS (sizeof pairs / sizeof *pairs)

struct str alert_type_end(struct str type)
{
	for (size_t i = 0; i < PAIRS; i++)
		if (str_is(type, pairs[i].begins))
			return str_of(pairs[i].ends);
	return STR_NONE;
}

bool alert_type_lasts(struct str type)
{
	return alert_type_end(type).n > 0;
}

/* --- loading and saving */

bool alert_is_over(const json_t *body)
{
	return !str_is_one_of("OPEN|TRACKING", json_field(body, "status"));
}

int alert_load(struct tx *tx, struct arena *a, struct str id, struct alert *ret_alert)
{
	struct alert al = {.config = NULL};
	int r = tx_get(tx, a, ALERT, id, &al.doc);
	if (r == 0)
		r = tx_get(tx, a, ALERT_STATE, id, &al.state_doc);
	if (r < 0)
		return r;
	al.body = doc_json(a, al.doc.body);
	al.state = doc_json(a, al.state_doc.body);
	r = tx_get(tx, a, ALERT_CONFIG, al.state_doc.parent, &al.config_doc);
	if (r == 0)
		al.config = doc_json(a, al.config_doc.body);
	*ret_alert = al;
	return r == -ENOENT ? 0 : r;
}

int alert_save(struct tx *tx, struct arena *a, struct alert *al)
{
	json_put_time(al->body, "updated", clock_now_ms());
	al->doc.body = json_text(a, al->body);
	al->state_doc.body = json_text(a, al->state);
	int r = doc_put(tx, &al->doc);
	return r < 0 ? r : doc_put(tx, &al->state_doc);
}

static struct str open_key(struct arena *a, struct str config_id, struct str subject)
{
	return arena_printf(a, "%.*s/%.*s", STR_ARG(config_id), STR_ARG(subject));
}

static int open_mark(struct tx *tx, struct arena *a, const struct alert *al, struct str subject)
{
	struct doc d = {.kind = STR(ALERT_OPEN),
	                .id = al->doc.id,
	                .parent = al->doc.parent,
	                .name = open_key(a, al->config_doc.id, subject),
	                .created_ms = clock_now_ms(),
	                .body = STR("{}")};
	return tx_insert(tx, &d);
}

int alert_end(struct tx *tx, struct arena *a, struct alert *al, const char *status)
{
	/* What never was open had nobody told of it. */
	bool tracked = str_is(json_field(al->body, "status"), "TRACKING");
	json_put_z(al->body, "status", tracked ? "CANCELLED" : status);
	json_put_time(al->body, "resolved", clock_now_ms());
	json_put(al->state, "over", json_true());
	int r = tx_delete(tx, ALERT_OPEN, al->doc.id);
	if (r == 0 || r == -ENOENT)
		r = tx_jobs_cancel(tx, ALERT_JOB, al->doc.id);
	if (r == 0)
		r = notices_end(tx, a, al);
	return r < 0 ? r : alert_save(tx, a, al);
}

/* Of each alert of the configuration that is not over. */
typedef int alert_step(struct tx *tx, struct arena *a, struct alert *al);
static int open_alerts_walk(struct tx *tx, struct arena *a, const struct doc *config, alert_step *step)
{
	struct doc *states;
	size_t count;
	unsigned room = WORK_MAX;
	int r = tx_list_all(tx, a, ALERT_STATE, config->id, &states, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct alert al;
		if (json_flag(doc_json(a, states[i].body), "over"))
			continue;
		r = alert_load(tx, a, states[i].id, &al);
		al.room = &room;
		if (r == 0 && !alert_is_over(al.body))
			r = step(tx, a, &al);
	}
	return r;
}

static int cancel_step(struct tx *tx, struct arena *a, struct alert *al)
{
	return alert_end(tx, a, al, "CANCELLED");
}

int alerts_cancel(struct tx *tx, struct arena *a, const struct doc *config)
{
	return open_alerts_walk(tx, a, config, cancel_step);
}

static int plan_step(struct tx *tx, struct arena *a, struct alert *al)
{
	int r = notices_run(tx, a, al);
	return r < 0 || alert_is_over(al->body) ? r : alert_save(tx, a, al);
}

int alerts_plan(struct tx *tx, struct arena *a, const struct doc *config)
{
	return open_alerts_walk(tx, a, config, plan_step);
}

/* --- making */

static bool type_allowed(const struct schema *s, struct str type)
{
	if (schema_allows(s, type))
		return true;
	for (unsigned i = 0; i < s->branch_count; i++)
		if (type_allowed(s->branches[i].schema, type))
			return true;
	return false;
}

/* The form of an alert of that type: the first that has it, so that the general one comes last. */
static const struct schema *form_of(struct str type)
{
	const struct schema *all = schema_find(STR("AlertViewForNdsGroup"));
	for (unsigned i = 0; all && i < all->branch_count; i++) {
		const struct field *f = schema_field(all->branches[i].schema, STR("eventTypeName"));
		if (f && type_allowed(f->schema, type))
			return all->branches[i].schema;
	}
	return NULL;
}

/* Puts a field into the state, for messages, and into the alert where its form has it. */
static void field_put(struct alert *al, const struct schema *form, const char *name, struct str value)
{
	if (!value.n)
		return;
	json_put_str(al->state, name, value);
	if (form && schema_field(form, str_of(name)))
		json_put_str(al->body, name, value);
}

static void subject_fields(struct arena *a, struct alert *al, const struct alert_subject *s)
{
	const struct schema *form = form_of(json_field(al->config, "eventTypeName"));
	struct str host =
	        s->hostname.n ? arena_printf(a, "%.*s:%lld", STR_ARG(s->hostname), (long long)s->port) : STR_NONE;
	field_put(al, form, "clusterName", s->cluster);
	field_put(al, form, "hostnameAndPort", host);
	field_put(al, form, "replicaSetName", s->replica_set);
	field_put(al, form, "shardName", s->shard);
	field_put(al, form, "metricName", s->metric);
}

/* The value is in the unit of the threshold. That stands in the state: the reference names units in two ways, and no
 * answer can fit both. */
void alert_value_put(struct alert *al, const struct alert_subject *s)
{
	const struct schema *form = form_of(json_field(al->config, "eventTypeName"));
	if (!s->has_value || !form || !schema_field(form, STR("currentValue")))
		return;
	json_put(al->body, "currentValue", json_pack("{s:f}", "number", s->value));
	json_put_z(al->state, "units", s->units);
}

struct str subject_key(struct arena *a, const struct alert_subject *s)
{
	char port[24] = "";
	if (s->hostname.n)
		snprintf(port, sizeof port, ":%lld", (long long)s->port);
	struct str set = s->hostname.n ? STR_NONE : s->replica_set;
	return arena_printf(a, "%.*s/%.*s%s/%.*s", STR_ARG(s->cluster), STR_ARG(s->hostname), port, STR_ARG(set));
}

/* Deletes the alerts of a page that are over, at most `most`. Returns how many, or negative. */
static int over_delete(struct tx *tx, struct arena *a, const struct doc *alerts, size_t count, int most)
{
	int gone = 0;
	for (size_t i = 0; i < count && gone < most; i++) {
		if (str_is_one_of("OPEN|TRACKING", document_text(a, alerts[i].body, STR("status"))))
			continue;
		int r = tx_delete(tx, ALERT_STATE, alerts[i].id);
		if (r == 0 || r == -ENOENT)
			r = tx_delete(tx, ALERT, alerts[i].id);
		if (r < 0)
			return r;
		gone++;
	}
	return gone;
}

/* The oldest that are over go. */
static int alerts_trim(struct tx *tx, struct arena *a, struct str group_id)
{
	size_t count = PAGE;
	int gone = 0;
	for (int64_t at = 0; count == PAGE && gone < ALERTS_TRIM;) {
		struct doc *oldest;
		int r = tx_list(tx, a, ALERT, group_id, at, PAGE, &oldest, &count);
		if (r == 0)
			r = over_delete(tx, a, oldest, count, ALERTS_TRIM - gone);
		if (r < 0)
			return r;
		gone += r;
		at += PAGE - r;
	}
	return 0;
}

/* Room for one more alert. -ENOSPC: too many last already. */
static int alert_room(struct tx *tx, struct arena *a, struct str group_id, bool lasts)
{
	int64_t all = 0, open = 0;
	int r = tx_count(tx, ALERT, group_id, &all);
	if (r == 0 && lasts)
		r = tx_count(tx, ALERT_OPEN, group_id, &open);
	if (r < 0)
		return r;
	if (open >= ALERTS_OPEN_MAX)
		return -ENOSPC;
	return all < ALERTS_MAX ? 0 : alerts_trim(tx, a, group_id);
}

static void full_warn(struct str group_id)
{
	static _Atomic int64_t warned_us;
	int64_t now = clock_mono_us(), before = atomic_load(&warned_us);
	if ((!before || now - before > WARN_US) && atomic_compare_exchange_strong(&warned_us, &before, now))
		log_warn("alerts: the project %.*s has %d open ones already, or too many at once; no more are opened",
		         STR_ARG(group_id), ALERTS_OPEN_MAX);
}

static bool delays_all(const json_t *config)
{
	const json_t *list = json_object_get(config, "notifications");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_number(json_array_get(list, i), "delayMin") == 0)
			return false;
	return true;
}

static void alert_fill(struct arena *a, struct alert *al, const struct alert_subject *s, bool lasts)
{
	const char *override = json_string_value(json_object_get(al->config, "severityOverride"));
	bool tracked = lasts && delays_all(al->config);
	int64_t now = clock_now_ms();
	json_put_str(al->body, "id", al->doc.id);
	json_put_str(al->body, "alertConfigId", al->config_doc.id);
	json_put_str(al->body, "groupId", s->group_id);
	json_put_str(al->body, "orgId", s->org_id);
	json_put_str(al->body, "eventTypeName", json_field(al->config, "eventTypeName"));
	json_put_z(al->body, "status", !lasts ? "CLOSED" : tracked ? "TRACKING" : "OPEN");
	json_put_time(al->body, "created", now);
	if (!lasts)
		json_put_time(al->body, "resolved", now);
	json_put(al->state, "lasts", json_boolean(lasts));
	json_put(al->state, "over", json_boolean(!lasts));
	json_put_z(al->state, "severity", override ? override : s->severity ? s->severity : lasts ? "WARNING" : "INFO");
	subject_fields(a, al, s);
	alert_value_put(al, s);
}

int alert_make(struct tx *tx, struct arena *a, const struct doc *config, const json_t *config_body,
               const struct alert_subject *s, bool lasts, struct alert *ret_alert)
{
	struct alert al = {.doc = doc_new(a, ALERT, s->group_id, STR_NONE, STR_NONE),
	                   .config_doc = *config,
	                   .config = json_clone(a, config_body),
	                   .body = json_new(a),
	                   .state = json_new(a),
	                   .room = s->room};
	struct str key = subject_key(a, s);
	*ret_alert = (struct alert){.state = NULL};
	int r = s->room && *s->room < WORK_OF_ALERT ? -ENOSPC : alert_room(tx, a, s->group_id, lasts);
	if (r == -ENOSPC) {
		full_warn(s->group_id);
		return 0;
	}
	if (r < 0)
		return r;
	if (s->room)
		*s->room -= WORK_OF_ALERT;
	al.state_doc = doc_new(a, ALERT_STATE, config->id, STR_NONE, STR_NONE);
	al.state_doc.id = al.doc.id;
	json_put_str(al.state, "subject", key);
	alert_fill(a, &al, s, lasts);
	r = notices_run(tx, a, &al);
	if (r == 0)
		r = alert_save(tx, a, &al);
	if (r == 0 && lasts)
		r = open_mark(tx, a, &al, key);
	if (r == 0)
		*ret_alert = al;
	return r;
}

int alert_find(struct tx *tx, struct arena *a, const struct doc *config, const struct alert_subject *s,
               struct alert *ret_alert)
{
	struct doc mark;
	int r = tx_get_by_name(tx, a, ALERT_OPEN, s->group_id, open_key(a, config->id, subject_key(a, s)), &mark);
	if (r == 0)
		r = alert_load(tx, a, mark.id, ret_alert);
	if (r == 0)
		ret_alert->room = s->room;
	return r;
}

/* --- events */

/* One event against one configuration. */
struct judging {
	struct tx *tx;
	struct arena *arena;
	const struct doc *config;
	const json_t *body;
	const struct alert_subject *subject;
	int64_t *elections; /* of the cluster within an hour; -1: not counted yet */
};

static int begin(struct judging *j, bool lasts)
{
	struct alert al;
	if (!json_flag(j->body, "enabled") || !matchers_match(json_object_get(j->body, "matchers"), j->subject))
		return 0;
	int r = lasts ? alert_find(j->tx, j->arena, j->config, j->subject, &al) : -ENOENT;
	return r == -ENOENT ? alert_make(j->tx, j->arena, j->config, j->body, j->subject, lasts, &al) : r;
}

static int end(struct judging *j)
{
	struct alert al;
	int r = alert_find(j->tx, j->arena, j->config, j->subject, &al);
	return r < 0 ? r == -ENOENT ? 0 : r : alert_end(j->tx, j->arena, &al, "CLOSED");
}

/* How many elections the cluster had within an hour, this one included. */
static int elections_count(struct judging *j)
{
	struct event_filter f = {.scope = j->subject->group_id, .has_min = true, .min_ms = clock_now_ms() - HOUR_MS};
	json_t *types = json_keep(j->arena, json_pack("[s]", "PRIMARY_ELECTED")),
	       *clusters = json_keep(j->arena, json_array());
	json_add_str(clusters, j->subject->cluster);
	f.types = json_text(j->arena, types);
	f.clusters = json_text(j->arena, clusters);
	return *j->elections < 0 ? tx_event_count(j->tx, &f, j->elections) : 0;
}

/* Lasts until an hour has passed since the last election that was one too many. */
static int elections_judge(struct judging *j)
{
	const json_t *threshold = json_object_get(j->body, "threshold");
	struct alert al;
	if (!json_flag(j->body, "enabled") || !matchers_match(json_object_get(j->body, "matchers"), j->subject))
		return 0;
	int r = elections_count(j);
	if (r < 0 || *j->elections <= json_number(threshold, "threshold"))
		return r;
	r = alert_find(j->tx, j->arena, j->config, j->subject, &al);
	if (r == -ENOENT)
		r = alert_make(j->tx, j->arena, j->config, j->body, j->subject, true, &al);
	if (r < 0 || !al.state)
		return r;
	json_put(al.state, "untilMs", json_integer(clock_now_ms() + HOUR_MS));
	r = notices_run(j->tx, j->arena, &al);
	return r < 0 ? r : alert_save(j->tx, j->arena, &al);
}

static int event_judge(struct judging *j, struct str type, struct str watched)
{
	int r = 0;
	/* What has a bound is judged by figures: its event goes by a bound of the service's own. */
	if (str_eq(watched, type) && !str_is_one_of(BOUND_TYPES, type))
		r = begin(j, alert_type_lasts(type));
	for (size_t i = 0; r == 0 && i < PAIRS; i++)
		if (str_is(type, pairs[i].ends) && str_is(watched, pairs[i].begins))
			r = end(j);
	if (r == 0 && str_is(type, "PRIMARY_ELECTED") && str_is(watched, ELECTIONS))
		r = elections_judge(j);
	return r;
}

static bool type_matters(struct str type)
{
	const struct event_type *t = event_type_find(type);
	if (t && t->alertable)
		return true;
	for (size_t i = 0; i < PAIRS; i++)
		if (str_is(type, pairs[i].ends))
			return true;
	return false;
}

static struct alert_subject subject_of(const struct event *e, const struct event_about *about)
{
	struct alert_subject s = {.org_id = e->org_id, .group_id = e->group_id, .cluster = e->cluster};
	s.severity = about ? about->severity : NULL;
	s.type_name = str_of(about ? about->type_name : NULL);
	for (size_t i = 0; about && i < about->detail_count; i++) {
		const struct event_detail *d = &about->details[i];
		if (strcmp(d->name, "hostname") == 0)
			s.hostname = d->text;
		else if (strcmp(d->name, "port") == 0)
			s.port = d->number;
		else if (strcmp(d->name, "replicaSetName") == 0 || strcmp(d->name, "set") == 0)
			s.replica_set = d->text;
		else if (strcmp(d->name, "shardName") == 0)
			s.shard = d->text;
	}
	return s;
}

/* Alerts about a cluster that is gone end with it. */
static int cluster_gone(struct tx *tx, struct arena *a, const struct event *e)
{
	struct alert_watch w;
	unsigned room = WORK_MAX;
	int r = alerts_watch_load(tx, a, e->group_id, "", &w);
	for (size_t i = 0; r == 0 && i < w.open_count; i++)
		if (str_eq(w.open[i].cluster, e->cluster))
			r = alert_forget(tx, a, w.open[i].alert_id, &room);
	return r;
}

static int configs_judge(struct tx *tx, struct arena *a, const struct event *e, const struct alert_subject *subject)
{
	struct doc *configs;
	size_t count;
	int64_t elections = -1;
	int r = tx_list_all(tx, a, ALERT_CONFIG, e->group_id, &configs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct str watched = document_text(a, configs[i].body, STR("eventTypeName"));
		bool of_elections = str_is(watched, ELECTIONS) && str_is(e->type, "PRIMARY_ELECTED");
		if (!str_eq(watched, e->type) && !alert_type_lasts(watched) && !of_elections)
			continue;
		struct judging j = {tx, a, &configs[i], doc_json(a, configs[i].body), subject, &elections};
		r = event_judge(&j, e->type, watched);
	}
	return r;
}

int alerts_on_event(struct tx *tx, struct arena *a, const struct event *e, const struct event_about *about)
{
	unsigned room = WORK_MAX;
	struct alert_subject subject = subject_of(e, about);
	int r = 0;
	subject.room = &room;
	if (str_is(e->type, "CLUSTER_DELETED") && e->cluster.n)
		r = cluster_gone(tx, a, e);
	else if (type_matters(e->type))
		r = configs_judge(tx, a, e, &subject);
	return r < 0 ? r : listeners_tell(tx, a, e, &subject);
}
