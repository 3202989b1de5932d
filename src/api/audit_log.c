/* Database auditing: one document a project, and beside it, where documents have what never leaves, since when logins and
 * refusals are part of the log. Turning it on or off restarts the nodes one after the other, so the clusters show that they
 * are being changed. */
#include "api/audit_log.h"

#include "api/audit_filter.h"
#include "api/cluster_store.h"
#include "api/verbs.h"
#include "base/clock.h"
#include "gate/service.h"

#include <errno.h>

int audit_log_get(struct call *c);
int audit_log_update(struct call *c);

#define AUDIT_KIND "audit_log"

extern const struct resource resource_audit_log;

struct settings {
	const json_t *filter;
	bool enabled, successes;
};

/* Of a stored document: its filter was checked. */
static struct settings settings_of(struct arena *a, struct str body)
{
	struct faults ignored = {.count = 0};
	const json_t *document = doc_json(a, body);
	struct settings s = {
	        .enabled = json_is_true(json_object_get(document, "enabled")),
	        .successes = json_is_true(json_object_get(document, "auditAuthorizationSuccess")),
	        .filter = audit_filter_parse(json_field(document, "auditFilter"), STR("auditFilter"), a, &ignored)};
	s.enabled = s.enabled && s.filter;
	return s;
}

int audit_log_get(struct call *c)
{
	struct doc d;
	int result = resource_load(c, &resource_audit_log, &d);
	if (result < 0)
		return result;
	c->etag = d.rev;
	buf_str(&c->out, d.body);
	return 0;
}

static int audit_check(struct call *c, json_t *document)
{
	const struct service *s = c->service;
	struct faults faults = {.count = 0};
	const char *why = NULL;
	audit_filter_parse(json_field(document, "auditFilter"), STR("auditFilter"), c->arena, &faults);
	if (json_is_true(json_object_get(document, "enabled")) && s->engine_ops->audit_check(s->engine_state, &why) < 0)
		faults_add(&faults, c->arena, STR("enabled"), "cannot be true here: %s", why);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

/* A time stays as long as the lines are wanted. */
static void since_set(json_t *since, const char *name, bool wanted)
{
	if (!wanted)
		json_object_del(since, name);
	else if (!json_object_get(since, name))
		json_object_set_new(since, name, json_integer(clock_now_ms()));
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
	return cluster_change(tx, a, &cluster, cluster_is(&cluster, "CREATING") ? "CREATING" : "UPDATING");
}

int audit_log_update(struct call *c)
{
	struct doc d;
	int result = resource_load(c, &resource_audit_log, &d);
	if (result == 0)
		result = if_match(c, d.rev);
	if (result < 0)
		return result;
	json_t *document = doc_json(c->arena, d.body), *value;
	const char *key;
	struct str before = d.body;
	json_object_foreach(c->body, key, value)
	{
		if (json_is_null(value))
			json_object_del(document, key);
		else
			json_object_set(document, key, value);
	}
	result = audit_check(c, document);
	if (result < 0)
		return result;
	schema_add_defaults(resource_audit_log.schema, document);
	json_object_set_new(document, "configurationType",
	                    json_string(json_field(document, "auditFilter").n ? "FILTER_JSON" : "NONE"));
	d.body = json_text(c->arena, document);
	since_update(c->arena, &d);
	d.created_ms = d.rev ? d.created_ms : clock_now_ms();
	result = d.rev ? tx_update(c->tx, &d) : tx_insert(c->tx, &d);
	if (result == 0 && !str_eq(before, d.body))
		result = clusters_walk_group(c->tx, c->arena, c->group.id, cluster_tell, c->arena);
	if (result < 0)
		return result;
	c->etag = d.rev + 1;
	buf_str(&c->out, d.body);
	return 0;
}

/* To the engines. */

static int settings_load(struct tx *tx, struct arena *a, struct str group_id, struct settings *ret_settings)
{
	struct doc d;
	int result = tx_get(tx, a, AUDIT_KIND, group_id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	*ret_settings = result < 0 ? (struct settings){.enabled = false} : settings_of(a, d.body);
	return 0;
}

int audit_log_load(struct tx *tx, struct arena *a, struct str group_id, struct engine_audit *ret_audit)
{
	struct settings s;
	int result = settings_load(tx, a, group_id, &s);
	if (result < 0)
		return result;
	*ret_audit = (struct engine_audit){.enabled = s.enabled};
	if (s.enabled)
		ret_audit->classes = audit_filter_classes(s.filter, NULL, s.successes, a).p;
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

int audit_log_lines(struct tx *tx, struct arena *a, struct str group_id, struct engine_log *log)
{
	struct doc d;
	int result = tx_get(tx, a, AUDIT_KIND, group_id, &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	const json_t *since = doc_json(a, d.secret);
	log->logins_ms = json_integer_value(json_object_get(since, "logins"));
	log->denials_ms = json_integer_value(json_object_get(since, "denials"));
	return 0;
}
