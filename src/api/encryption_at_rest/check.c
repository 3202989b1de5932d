/* Whether projects' keys are still theirs to use. A job for each project asks every quarter of an hour. Who refuses is
 * believed at once: the clusters whose data is under that key stop. Who gives no answer is asked again, and counts as
 * refusing after an hour: an outage of a network is not what makes databases stop. */
#include "api/encryption_at_rest/settings.h"
#include "base/clock.h"
#include "base/log.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

/* --- what follows */

struct affected {
	struct arena *arena;
	enum provider provider;
	struct str *ids;
	size_t count, cap;
};

static int affected_add(struct tx *tx, void *ctx, const struct doc *d)
{
	struct affected *l = ctx;
	if (!str_is(json_field(doc_json(l->arena, d->body), "encryptionAtRestProvider"), provider_names[l->provider]))
		return 0;
	ARENA_FIT(l->arena, l->ids, l->count, l->cap);
	l->ids[l->count++] = arena_dup(l->arena, d->id);
	return 0;
}

/* They stop, or start again: what the job of each makes of it stands in encryption_wanted(). */
static int clusters_move(struct tx *tx, struct arena *a, struct str group_id, enum provider provider)
{
	struct affected l = {.arena = a, .provider = provider};
	int r = clusters_walk_group(tx, a, group_id, affected_add, &l);
	for (size_t i = 0; r == 0 && i < l.count; i++) {
		struct cluster cluster;
		r = cluster_get(tx, a, l.ids[i], &cluster);
		if (r == 0 && !cluster_is(&cluster, "DELETING"))
			r = cluster_change(tx, a, &cluster, NULL);
	}
	return r;
}

int validity_changed(struct tx *tx, struct arena *a, struct str group_id, enum provider provider, bool valid,
                     const char *why)
{
	struct event_detail detail = {.name = "reason", .text = str_of(why ? why : "")};
	struct event_about about = {.group_id = group_id,
	                            .severity = valid ? "INFO" : "ERROR",
	                            .details = &detail,
	                            .detail_count = why ? 1 : 0};
	const char *type =
	        arena_printf(a, "%s_ENCRYPTION_KEY_%s", provider_names[provider], valid ? "VALID" : "INVALID").p;
	int r = event_service_about(tx, a, type, &about);
	if (r == 0)
		r = event_service_about(tx, a,
		                        valid ? "ENCRYPTION_AT_REST_CONFIG_IS_VALID"
		                              : "ENCRYPTION_AT_REST_CONFIG_NO_LONGER_VALID",
		                        &about);
	return r < 0 ? r : clusters_move(tx, a, group_id, provider);
}

int check_ask(struct tx *tx, struct str group_id, int64_t after_ms)
{
	struct job job = {.kind = STR(CHECK_JOB), .subject = group_id, .due_ms = clock_now_ms() + after_ms};
	return tx_job_ensure(tx, &job);
}

/* --- asking */

struct check {
	struct settings settings;
	int results[PROVIDERS]; /* 1: not asked */
	char why[PROVIDERS][KEY_WHY];
};

static void wrap_check(struct keys *k, struct check *c, const struct wrap *w)
{
	struct data_key key;
	struct str group_id = c->settings.group_id;
	if (!section_is(c->settings.body, w->provider, "enabled"))
		return;
	int r = wrap_open(k, w, NULL, group_id, c->settings.key, &key, c->why[w->provider]);
	c->results[w->provider] = r;
	if (r < 0)
		return;
	keys_kept_put(k, group_id, &key);
	data_key_free(&key);
}

/* --- noting */

/* A service that gives no answer is told of before it counts as refusing, and so is its return. */
static int reach_tell(struct tx *tx, struct arena *a, const struct settings *now, bool was_away, int result,
                      const char *why)
{
	struct event_detail detail = {.name = "reason", .text = str_of(why)};
	bool away = result < 0 && !is_refusal(result);
	struct event_about about = {.group_id = now->group_id,
	                            .severity = away ? "WARNING" : "INFO",
	                            .details = &detail,
	                            .detail_count = away ? 1 : 0};
	if (away == was_away)
		return 0;
	return event_service_about(tx, a,
	                           away ? "ENCRYPTION_AT_REST_KMS_NETWORK_ACCESS_DENIED"
	                                : "ENCRYPTION_AT_REST_KMS_NETWORK_ACCESS_RESTORED",
	                           &about);
}

/* One provider's result, into the settings: 1 when they have changed. */
static int result_note(struct tx *tx, struct arena *a, struct settings *now, enum provider provider, int result,
                       const char *why)
{
	const char *name = sections[provider].name;
	json_t *section = json_object_get(now->body, name), *checks = json_default(now->body, "checks", json_object());
	bool was = json_flag(section, "valid"), was_away = json_flag(json_object_get(checks, name), "away");
	json_int_t missed = json_number(json_object_get(checks, name), "failures");
	if (result == 0 && was && !missed)
		return 0;
	int r = reach_tell(tx, a, now, was_away, result, why);
	if (r < 0)
		return r;
	bool is = result == 0 || (was && !is_refusal(result) && missed + 1 < CHECKS_MISSED);
	json_put(section, "valid", json_boolean(is));
	if (result == 0)
		json_object_del(checks, name);
	else
		json_put(checks, name,
		         json_pack("{s:I, s:s, s:b}", "failures", missed + 1, "why", why, "away", !is_refusal(result)));
	if (result < 0)
		log_warn("encryption at rest of project %.*s: %s%s", STR_ARG(now->group_id), why,
		         is ? "; it is asked again" : "");
	r = is == was ? 0 : validity_changed(tx, a, now->group_id, provider, is, is ? NULL : why);
	return r < 0 ? r : 1;
}

static int check_save(struct tx *tx, struct job_run *r)
{
	const struct check *c = r->save_ctx;
	struct settings now;
	bool changed = false;
	int result = settings_load(tx, r->arena, r->job.subject, &now);
	/* What was changed meanwhile was proven then. */
	if (result < 0 || now.doc.rev != c->settings.doc.rev)
		return result;
	for (unsigned i = 0; result >= 0 && i < PROVIDERS; i++)
		if (c->results[i] <= 0) {
			result = result_note(tx, r->arena, &now, (enum provider)i, c->results[i], c->why[i]);
			changed = changed || result == 1;
		}
	if (result < 0 || !changed)
		return result < 0 ? result : 0;
	now.doc.body = json_text(r->arena, now.body);
	return tx_update(tx, &now.doc);
}

static void check_saved(struct job_run *r)
{
	const struct service *s = r->ctx;
	const struct check *c = r->save_ctx;
	for (unsigned i = 0; i < PROVIDERS; i++)
		if (is_refusal(c->results[i]))
			keys_kept_drop(s->keys, r->job.subject);
}

int check_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct check *c = arena_new_of(r->arena, struct check);
	*c = (struct check){.results = {1, 1, 1}};
	tx_begin_read(r->reader);
	int result = settings_load(r->reader, r->arena, r->job.subject, &c->settings);
	job_read_end(r);
	if (result < 0)
		return result;
	if (!c->settings.key || !settings_enabled(c->settings.body))
		return JOB_DONE; /* the next PATCH that enables it asks for another */
	for (size_t i = 0; i < c->settings.wrap_count; i++)
		wrap_check(s->keys, c, &c->settings.wraps[i]);
	r->save = check_save;
	r->save_ctx = c;
	r->saved = check_saved;
	r->due_ms = clock_now_ms() + CHECK_MS;
	return JOB_LATER;
}

static const struct job_kind kinds[] = {
        {.name = CHECK_JOB, .step = check_step, .attempts = 1000000, .lasts = JOB_IS_LONG}};
const struct job_kinds encryption_at_rest_jobs = JOB_KINDS(kinds);
