/* Settings of organizations: what the schemas cannot say about them. They are read and written by the generic verbs. */
#include "api/kit/verbs.h"

#include "catalog/formats.h"
#include "gate/gate.h"

#define SESSION_LEAST 300    /* seconds */
#define SESSION_MOST 2592000 /* 30 days */

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
	return call_fail_field(c, 409, "WOULD_LOCK_OUT_CALLER", "apiAccessListRequired",
	                       "the address %s is not on the access list of the calling credential, which could not be "
	                       "used any more. Add it to the list first.",
	                       peer);
}

static void timeouts_check(struct call *c, const json_t *document, struct faults *faults)
{
	static const char *const names[] = {"idleSessionTimeoutInSeconds", "absoluteSessionTimeoutInSeconds"};
	const json_t *timeouts = json_object_get(document, "customSessionTimeouts"), *values[2];
	for (size_t i = 0; i < 2; i++) {
		values[i] = json_object_get(timeouts, names[i]);
		json_int_t seconds = json_integer_value(values[i]);
		if (values[i] && (seconds < SESSION_LEAST || seconds > SESSION_MOST))
			faults_add(faults, c->arena, arena_printf(c->arena, "customSessionTimeouts.%s", names[i]),
			           "must be from %d to %d seconds", SESSION_LEAST, SESSION_MOST);
	}
	if (values[0] && values[1] && json_integer_value(values[0]) > json_integer_value(values[1]))
		faults_add(faults, c->arena, STR("customSessionTimeouts.idleSessionTimeoutInSeconds"),
		           "must not be more than absoluteSessionTimeoutInSeconds");
}

/* An empty text takes a contact away. */
static void contacts_check(struct call *c, const json_t *document, struct faults *faults)
{
	static const char *const names[] = {"operationsContact", "securityContact"};
	for (size_t i = 0; i < 2; i++) {
		struct str address = json_field(document, names[i]);
		if (address.n && !format_fits(FORMAT_EMAIL, address))
			faults_add(faults, c->arena, str_of(names[i]), "must be an e-mail address");
	}
}

static int org_settings_update(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	timeouts_check(c, document, &faults);
	contacts_check(c, document, &faults);
	/* The requirement of access lists is part of every caller's snapshot. */
	tx_touch_identity(c->tx);
	return faults.count ? call_fail_faults(c, &faults) : lockout_check(c, old, document);
}

const struct resource_hooks org_settings_hooks = {.update = org_settings_update};
