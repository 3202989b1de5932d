/* Settings of organizations and projects: what the schemas cannot say about them, and the events of their changes. They
 * are read and written by the generic verbs. */
#include "api/kit/verbs.h"

#include "catalog/formats.h"
#include "gate/gate.h"
#include "trail/events.h"

#define SESSION_LEAST 300    /* seconds */
#define SESSION_MOST 2592000 /* 30 days */

/* The event of a setting's change; where one was switched off, another. */
struct setting {
	const char *field, *event, *event_off;
};

static const struct setting org_events[] = {
        {"apiAccessListRequired", "ORG_PUBLIC_API_ACCESS_LIST_REQUIRED", "ORG_PUBLIC_API_ACCESS_LIST_NOT_REQUIRED"},
        {"customSessionTimeouts", "CUSTOM_SESSION_TIMEOUT_MODIFIED", NULL},
        {"maxServiceAccountSecretValidityInHours", "ORG_SERVICE_ACCOUNT_MAX_SECRET_VALIDITY_EDITED", NULL},
        {"multiFactorAuthRequired", "ORG_TWO_FACTOR_AUTH_REQUIRED", "ORG_TWO_FACTOR_AUTH_OPTIONAL"},
        {"operationsContact", "OPERATIONS_CONTACT_MODIFIED", NULL},
        {"restrictEmployeeAccess", "ORG_EMPLOYEE_ACCESS_RESTRICTED", "ORG_EMPLOYEE_ACCESS_UNRESTRICTED"},
        {"securityContact", "SECURITY_CONTACT_MODIFIED", NULL},
        {NULL, NULL, NULL}};

static const struct setting project_events[] = {
        {"isCollectDatabaseSpecificsStatisticsEnabled", "PROJECT_COLLECT_DATABASE_STATISTICS_UPDATED", NULL},
        {"isDataExplorerEnabled", "DATA_EXPLORER_ENABLED", "DATA_EXPLORER_DISABLED"},
        {"isDataValidationEnabled", "PROJECT_ENABLE_DATA_VALIDATION_UPDATED", NULL},
        {"isExtendedStorageSizesEnabled", "PROJECT_ENABLE_EXTENDED_STORAGE_SIZES_UPDATED", NULL},
        {NULL, NULL, NULL}};

static const struct setting *setting_find(const struct setting *table, const char *field)
{
	while (table->field && strcmp(table->field, field) != 0)
		table++;
	return table->field ? table : NULL;
}

/* An event for each setting that changes; the row's for those that have none of their own; none when nothing
 * changes. */
static int changes_tell(struct call *c, const struct setting *table, const struct doc *old, const json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	const char *field;
	json_t *given;
	bool others = false;
	json_object_foreach(c->body, field, given)
	{
		const json_t *now = json_object_get(document, field);
		if (json_equal(json_object_get(before, field), now))
			continue;
		const struct setting *s = setting_find(table, field);
		if (!s) {
			others = true;
			continue;
		}
		event_set_type(c, s->event_off && !json_is_true(now) ? s->event_off : s->event);
		int result = event_next(c);
		if (result < 0)
			return result;
	}
	if (!others)
		event_set_type(c, NULL);
	return 0;
}

/* Who demands access lists must be on one itself: the next request could not take it back. */
static int lockout_check(struct call *c, const struct doc *old, const json_t *document)
{
	const struct principal *p = c->caller;
	char peer[IP_TEXT];
	if (!json_is_true(json_object_get(document, "apiAccessListRequired")) ||
	    json_is_true(json_object_get(doc_json(c->arena, old->body), "apiAccessListRequired")))
		return 0;
	if (p->kind == PRINCIPAL_USER || (p->access_count && access_list_permits(p, &c->request->peer)))
		return 0;
	ip_format(&c->request->peer, peer);
	call_fail(c, 409, "WOULD_LOCK_OUT_CALLER",
	          "apiAccessListRequired: the address %s is not on the access list of the calling credential, which "
	          "could not be "
	          "used any more. Add it to the list first.",
	          peer);
	return call_fail_param(c, STR("apiAccessListRequired"));
}

static void timeout_check(struct call *c, const json_t *timeouts, const char *name, struct faults *faults)
{
	const json_t *value = json_object_get(timeouts, name);
	if (value && (json_integer_value(value) < SESSION_LEAST || json_integer_value(value) > SESSION_MOST))
		faults_add(faults, c->arena, arena_printf(c->arena, "customSessionTimeouts.%s", name),
		           "must be from %d to %d seconds", SESSION_LEAST, SESSION_MOST);
}

static void timeouts_check(struct call *c, const json_t *document, struct faults *faults)
{
	const json_t *t = json_object_get(document, "customSessionTimeouts"),
	             *idle = json_object_get(t, "idleSessionTimeoutInSeconds"),
	             *absolute = json_object_get(t, "absoluteSessionTimeoutInSeconds");
	timeout_check(c, t, "idleSessionTimeoutInSeconds", faults);
	timeout_check(c, t, "absoluteSessionTimeoutInSeconds", faults);
	if (idle && absolute && json_integer_value(idle) > json_integer_value(absolute))
		faults_add(faults, c->arena, STR("customSessionTimeouts.idleSessionTimeoutInSeconds"),
		           "must not be more than absoluteSessionTimeoutInSeconds");
}

/* An empty text takes a contact away. */
static void contact_check(struct call *c, const json_t *document, const char *name, struct faults *faults)
{
	struct str address = json_field(document, name);
	if (address.n && !format_fits(FORMAT_EMAIL, address))
		faults_add(faults, c->arena, str_of(name), "must be an e-mail address");
}

static int org_settings_update(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	timeouts_check(c, document, &faults);
	contact_check(c, document, "operationsContact", &faults);
	contact_check(c, document, "securityContact", &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	int result = lockout_check(c, old, document);
	if (result < 0)
		return result;
	/* The requirement of access lists is part of every caller's snapshot. */
	tx_touch_identity(c->tx);
	return changes_tell(c, org_events, old, document);
}

static int project_settings_update(struct call *c, const struct doc *old, json_t *document)
{
	return changes_tell(c, project_events, old, document);
}

const struct resource_hooks org_settings_hooks = {.update = org_settings_update};
const struct resource_hooks project_settings_hooks = {.update = project_settings_update};
