/* Database auditing: one document a project, and beside it, where documents have what never leaves, since when logins
 * and refusals are part of the log. Turning it on or off restarts the nodes one after the other, so the clusters show
 * that they are being changed. */
#include "api/maintenance/maintenance.h"

#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"
#include "api/maintenance/audit_filter.h"
#include "base/clock.h"
#include "call/service.h"

struct settings {
	const json_t *filter;
	bool enabled, successes;
};

/* Of a stored document: its filter was checked. */
static struct settings settings_of(struct arena *a, struct str body)
{
	const char *ignored;
	const json_t *document = doc_json(a, body);
	struct settings s = {.enabled = json_flag(document, "enabled"),
	                     .successes = json_flag(document, "auditAuthorizationSuccess"),
	                     .filter = filter_parse(json_field(document, "auditFilter"), a, &ignored)};
	s.enabled = s.enabled && s.filter;
	return s;
}

static int audit_check(struct call *c, json_t *document)
{
	const struct service *s = c->service;
	struct faults faults = {.count = 0};
	const char *why = "the engine in use has no logs", *fault;
	if (!filter_parse(json_field(document, "auditFilter"), c->arena, &fault))
		faults_add(&faults, c->arena, STR("auditFilter"), "%s", fault);
	const struct engine_log_ops *logs = s->engine_ops->logs;
	if (json_flag(document, "enabled") && (!logs || logs->audit_check(s->engine_state, &why) < 0))
		faults_add(&faults, c->arena, STR("enabled"), "cannot be true here: %s", why);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

/* A time stays as long as the lines are wanted. */
static void since_set(json_t *since, const char *name, bool wanted)
{
	if (!wanted)
		json_object_del(since, name);
	else if (!json_object_get(since, name))
		json_put(since, name, json_integer(clock_now_ms()));
}

static void since_update(struct arena *a, struct doc *d)
{
	struct settings s = settings_of(a, d->body);
	json_t *since = doc_json(a, d->secret);
	since_set(since, "logins", s.enabled && audit_filter_has_logins(s.filter));
	since_set(since, "denials", s.enabled && audit_filter_has_denials(s.filter));
	d->secret = json_text(a, since);
}

static int cluster_tell(struct tx *tx, void *ctx, const struct doc *doc)
{
	struct cluster cluster;
	struct arena *a = ctx;
	int result = cluster_get(tx, a, doc->id, &cluster);
	if (result < 0 || cluster_is(&cluster, "DELETING"))
		return result;
	return cluster_change(tx, a, &cluster, NULL);
}

static int audit_update(struct call *c, const struct doc *old, json_t *document)
{
	json_put_z(document, "configurationType", json_field(document, "auditFilter").n ? "FILTER_JSON" : "NONE");
	return audit_check(c, document);
}

static int audit_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	since_update(c->arena, d);
	int result = resource_put(c->tx, d, old);
	return result < 0 || str_eq(old->body, d->body)
	               ? result
	               : clusters_walk_group(c->tx, c->arena, c->group.id, cluster_tell, c->arena);
}

const struct resource_hooks audit_log_hooks = {.update = audit_update, .save = audit_save};

/* To the engines. */

static int settings_load(struct tx *tx, struct arena *a, struct str group_id, struct settings *ret_settings)
{
	struct doc d;
	int result = resource_singleton(tx, a, &resource_audit_log, group_id, &d);
	if (result < 0)
		return result;
	*ret_settings = settings_of(a, d.body);
	return 0;
}

static int audit_wanted(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want)
{
	struct settings s;
	int result = settings_load(tx, a, cluster->doc.parent, &s);
	if (result < 0)
		return result;
	want->engine.audit = (struct engine_audit){.enabled = s.enabled};
	if (s.enabled)
		want->engine.audit.classes = audit_filter_classes(s.filter, NULL, s.successes, a).p;
	return 0;
}

int audit_users_join(struct tx *tx, struct arena *a, struct str group_id, struct engine_user *users, size_t count)
{
	struct settings s;
	int result = settings_load(tx, a, group_id, &s);
	if (result < 0 || !s.enabled)
		return result;
	struct str everybody = audit_filter_classes(s.filter, NULL, s.successes, a);
	for (size_t i = 0; i < count; i++) {
		struct str own = audit_filter_classes(s.filter, users[i].name, s.successes, a);
		users[i].audit = str_eq(own, everybody) ? NULL : own.p;
	}
	return 0;
}

static int audit_lines(struct tx *tx, struct arena *a, struct str group_id, struct engine_log *log)
{
	struct doc d;
	int result = resource_singleton(tx, a, &resource_audit_log, group_id, &d);
	if (result < 0)
		return result;
	const json_t *since = doc_json(a, d.secret);
	log->logins_ms = json_number(since, "logins");
	log->denials_ms = json_number(since, "denials");
	return 0;
}

const struct cluster_part audit_log_part = {.wanted = audit_wanted, .log = audit_lines};
