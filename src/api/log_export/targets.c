/* Targets: what they are, what state they are in, and which roles they use. */
#include "api/log_export/targets.h"

#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

#define TOLD_AFTER 6   /* tries that failed, where nobody but time can mend it */
#define FAILED_AFTER 3 /* the same for the state of what has worked before */

const struct target_words target_words[TARGET_TYPES] = {
        [TARGET_S3] = {"S3_LOG_EXPORT", "S3_LOG_STREAMING_ENABLED", "S3_LOG_STREAMING_CONFIGURATION_UPDATED",
                       "S3_LOG_STREAMING_DISABLED"},
        [TARGET_GCS] = {"GCS_LOG_EXPORT", "GCP_LOG_STREAMING_ENABLED", "GCP_LOG_STREAMING_CONFIGURATION_UPDATED",
                        "GCP_LOG_STREAMING_DISABLED"},
        [TARGET_AZURE] = {"AZURE_LOG_EXPORT", "AZURE_LOG_STREAMING_ENABLED",
                          "AZURE_LOG_STREAMING_CONFIGURATION_UPDATED", "AZURE_LOG_STREAMING_DISABLED"},
        [TARGET_DATADOG] = {"DATADOG_LOG_EXPORT", "DATADOG_LOG_STREAMING_ENABLED",
                            "DATADOG_LOG_STREAMING_CONFIGURATION_UPDATED", "DATADOG_LOG_STREAMING_DISABLED"},
        [TARGET_SPLUNK] = {"SPLUNK_LOG_EXPORT", "SPLUNK_LOG_STREAMING_ENABLED",
                           "SPLUNK_LOG_STREAMING_CONFIGURATION_UPDATED", "SPLUNK_LOG_STREAMING_DISABLED"},
        [TARGET_OTEL] = {"OTEL_LOG_EXPORT", "OTEL_LOG_STREAMING_ENABLED", "OTEL_LOG_STREAMING_CONFIGURATION_UPDATED",
                         "OTEL_LOG_STREAMING_DISABLED"}};

bool target_has_bucket(enum target_type type)
{
	return type == TARGET_S3 || type == TARGET_GCS || type == TARGET_AZURE;
}

/* The push-based export has no type: it knows S3 alone. */
enum target_type target_type_of(const json_t *config)
{
	struct str type = json_field(config, "type");
	for (unsigned i = 0; i < TARGET_TYPES; i++)
		if (str_is(type, target_words[i].type))
			return (enum target_type)i;
	return TARGET_S3;
}

int target_load(struct arena *a, const struct doc *d, struct target *ret_target)
{
	struct str plain = STR_NONE;
	json_t *config = doc_json(a, d->body);
	int r = d->secret.n ? doc_unseal(a, d, &plain) : 0;
	if (r < 0)
		return r;
	json_object_update(config, doc_json(a, plain));
	bool push = str_is(d->kind, EXPORT_KIND);
	*ret_target = (struct target){.kind = push ? EXPORT_KIND : INTEGRATION_KIND,
	                              .id = arena_dup(a, d->id),
	                              .group_id = arena_dup(a, d->parent),
	                              .type = target_type_of(config),
	                              .config = config};
	return 0;
}

const char *log_type_name(bool is_router, enum engine_log_kind kind)
{
	static const char *const names[2][2] = {{"DB", "DB_AUDIT"}, {"ROUTER", "ROUTER_AUDIT"}};
	return names[is_router][kind == ENGINE_LOG_AUDIT];
}

/* The push-based export has all logs. */
bool target_wants(const struct target *t, bool is_router, enum engine_log_kind kind)
{
	const json_t *types = json_object_get(t->config, "logTypes");
	return !types || json_has(types, str_of(log_type_name(is_router, kind)));
}

/* --- the status */

static int status_load(struct tx *tx, struct arena *a, struct str id, struct doc *ret_doc, json_t **ret_body)
{
	int r = tx_get(tx, a, STATUS_KIND, id, ret_doc);
	if (r == 0)
		*ret_body = doc_json(a, ret_doc->body);
	return r;
}

int target_state(struct tx *tx, struct arena *a, struct str id, struct str *ret_state, struct str *ret_why)
{
	struct doc d;
	json_t *body = NULL;
	int r = status_load(tx, a, id, &d, &body);
	if (r < 0 && r != -ENOENT)
		return r;
	struct str state = json_field(body, "state");
	*ret_state = state.n ? state : STR("INITIATING");
	*ret_why = json_field(body, "why");
	return 0;
}

int target_tell(struct call *c, struct str id)
{
	struct str state, why;
	int r = target_state(c->tx, c->arena, id, &state, &why);
	if (r < 0)
		return r;
	call_header(c, STR("x-steward-log-export"),
	            why.n ? arena_printf(c->arena, "%.*s: %.*s", STR_ARG(state), STR_ARG(why)) : state);
	return 0;
}

int target_begin(struct tx *tx, struct arena *a, struct str id, struct str group_id, bool by_role)
{
	struct doc d;
	json_t *body = NULL;
	int r = status_load(tx, a, id, &d, &body);
	if (r == -ENOENT) {
		d = (struct doc){.kind = STR(STATUS_KIND), .id = id, .parent = group_id, .created_ms = clock_now_ms()};
		body = json_new(a);
	}
	if (r < 0 && r != -ENOENT)
		return r;
	json_put_z(body, "state", "INITIATING");
	json_put(body, "byRole", json_boolean(by_role));
	json_object_del(body, "why");
	d.body = json_text(a, body);
	d.rev = 0;
	return r == 0 ? tx_update(tx, &d) : tx_insert(tx, &d);
}

int target_by_role(struct tx *tx, struct arena *a, struct str id, bool *ret_by_role)
{
	struct doc d;
	json_t *body = NULL;
	int r = status_load(tx, a, id, &d, &body);
	*ret_by_role = json_flag(body, "byRole");
	return r == -ENOENT ? 0 : r;
}

void target_wake(struct call *c, void *arg)
{
	shipper_wake(c->service->shipper);
}

int target_end(struct tx *tx, struct arena *a, struct str id)
{
	struct doc *cursors;
	size_t count = 0;
	int r = tx_delete(tx, STATUS_KIND, id);
	if (r == 0 || r == -ENOENT)
		r = tx_list_all(tx, a, CURSOR_KIND, id, &cursors, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = tx_delete(tx, CURSOR_KIND, cursors[i].id);
	return r;
}

/* A state follows from how the last try went. What is only away now and then stays what it was. */
static const char *state_next(const struct target *t, struct str now, enum outcome outcome, unsigned failures)
{
	bool works = str_is(now, "ACTIVE") || str_is(now, "BUCKET_VERIFIED");
	if (outcome == OUTCOME_SENT)
		return target_has_bucket(t->type) && !works ? "BUCKET_VERIFIED" : "ACTIVE";
	if (outcome == OUTCOME_AWAY && works && failures < FAILED_AFTER)
		return NULL;
	if (!target_has_bucket(t->type))
		return "FAILED";
	return outcome == OUTCOME_ROLE ? "ASSUME_ROLE_FAILED" : "BUCKET_VERIFICATION_FAILED";
}

static int event_add(struct tx *tx, struct arena *a, const struct target *t, const char *type, const char *severity,
                     struct str why)
{
	const struct event_detail details[] = {
	        {.name = "logIntegrationId", .text = t->id},
	        {.name = "logIntegrationType", .text = str_of(target_words[t->type].type)},
	        {.name = "reason", .text = why}};
	const struct event_about about = {
	        .group_id = t->group_id, .severity = severity, .details = details, .detail_count = why.n ? 3 : 2};
	return event_service_about(tx, a, type, &about);
}

/* The events of a failure that somebody must mend, of one that only lasts, and of their end. */
static const struct {
	const char *refused, *away, *over;
} failure_words[] = {
        {"LOG_STREAMING_EXPORT_FAILED_NONRETRYABLE", "LOG_STREAMING_EXPORT_FAILED_RETRIES_EXHAUSTED",
         "LOG_STREAMING_EXPORT_RECOVERED"},
        {"PUSH_BASED_LOG_EXPORT_STOPPED", "PUSH_BASED_LOG_EXPORT_STOPPED", "PUSH_BASED_LOG_EXPORT_RESUMED"}};

static bool is_push(const struct target *t)
{
	return strcmp(t->kind, EXPORT_KIND) == 0;
}

/* One event when it fails for good, and one when it works again. */
static int note_events(struct tx *tx, struct arena *a, const struct target *t, json_t *body, enum outcome outcome,
                       unsigned failures)
{
	bool told = json_flag(body, "told"), refused = outcome == OUTCOME_ROLE || outcome == OUTCOME_REFUSED;
	struct str why = json_field(body, "why");
	if (outcome == OUTCOME_SENT && told) {
		json_object_del(body, "told");
		return event_add(tx, a, t, failure_words[is_push(t)].over, NULL, STR_NONE);
	}
	if (outcome == OUTCOME_SENT || told || (!refused && failures < TOLD_AFTER))
		return 0;
	json_put(body, "told", json_true());
	return event_add(tx, a, t, refused ? failure_words[is_push(t)].refused : failure_words[is_push(t)].away,
	                 "WARNING", why);
}

int target_off(struct tx *tx, struct arena *a, const struct target *t)
{
	struct doc d;
	json_t *body = NULL;
	int r = status_load(tx, a, t->id, &d, &body);
	if (r == 0 && json_flag(body, "told"))
		r = event_add(tx, a, t, failure_words[is_push(t)].over, NULL, STR_NONE);
	return r == -ENOENT ? 0 : r;
}

int target_lost(struct tx *tx, struct arena *a, const struct target *t, struct str host)
{
	return is_push(t) ? event_add(tx, a, t, "PUSH_BASED_LOG_EXPORT_DROPPED_LOG", "WARNING",
	                              arena_printf(a, "lines of %.*s were removed before they could be sent",
	                                           STR_ARG(host)))
	                  : 0;
}

/* What others say, for a header: printable ASCII, and not too long. */
static struct str words_clean(struct arena *a, const char *why)
{
	char *text = arena_z(a, (struct str){why, strnlen(why, 500)});
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
			*p = '?';
	return str_of(text);
}

int target_note(struct tx *tx, struct arena *a, const struct target *t, enum outcome outcome, unsigned failures,
                const char *why)
{
	struct doc d;
	json_t *body = NULL;
	int r = status_load(tx, a, t->id, &d, &body);
	if (r < 0) /* it was deleted meanwhile */
		return r == -ENOENT ? 0 : r;
	const char *state = state_next(t, json_field(body, "state"), outcome, failures);
	if (state)
		json_put_z(body, "state", state);
	if (outcome == OUTCOME_SENT)
		json_object_del(body, "why");
	else
		json_put_str(body, "why", words_clean(a, why ? why : "it failed"));
	r = note_events(tx, a, t, body, outcome, failures);
	struct str text = json_text(a, body);
	if (r < 0 || str_eq(text, d.body))
		return r;
	d.body = text;
	d.rev = 0;
	return tx_update(tx, &d);
}

/* --- roles that are used */

static int integrations_uses(struct tx *tx, struct arena *a, struct str group_id, struct role_uses *uses)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, INTEGRATION_KIND, group_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct str role = log_bucket_role_id(doc_json(a, docs[i].body));
		if (role.n)
			role_use_add(uses, role, arena_printf(a, "the log integration %.*s", STR_ARG(docs[i].id)));
	}
	return r;
}

static int push_uses(struct tx *tx, struct arena *a, struct str group_id, struct role_uses *uses)
{
	struct doc d;
	int r = tx_get(tx, a, EXPORT_KIND, group_id, &d);
	if (r == 0)
		role_use_add(uses, log_bucket_role_id(doc_json(a, d.body)), STR("the push-based log export"));
	return r == -ENOENT ? 0 : r;
}

const struct role_user log_integrations_role_user = {.feature = "SVC_LOG_INTEGRATION", .list = integrations_uses};
const struct role_user push_export_role_user = {.feature = "PUSH_BASED_LOG_EXPORT", .list = push_uses};
