/* Who is told, as configurations say it. Secrets are kept sealed beside the document, by the notification's id; the
 * document has a mask in their place. A mask that is sent back means that the secret stays. */
#include "api/alerts/rules.h"

#include "base/id.h"
#include "call/service.h"
#include "identity/grants.h"
#include "outbox/outbox.h"
#include "outbox/post.h"

#include <errno.h>
#include <string.h>

#define MASK "********"
#define INTERVAL_MAX 1440
#define DELAY_MAX 10080
#define TEXT_MAX 4096
#define TEMPLATE_MAX 8192
#define SECRETS_MAX 16384 /* of a configuration: all of a project are read at each event */

static const char *const secret_fields[] = {
        "apiToken",   "datadogApiKey",   "microsoftTeamsWebhookUrl", "notificationToken",      "opsGenieApiKey",
        "serviceKey", "victorOpsApiKey", "webhookBodyTemplate",      "webhookHeadersTemplate", "webhookSecret"};
#define SECRETS (sizeof secret_fields / sizeof *secret_fields)

/* What a type needs beyond what the schema requires. */
static const struct needs {
	const char *type, *fields[2];
} needs[] = {{"DATADOG", {"datadogApiKey"}},
             {"EMAIL", {"emailAddress"}},
             {"MICROSOFT_TEAMS", {"microsoftTeamsWebhookUrl"}},
             {"OPS_GENIE", {"opsGenieApiKey"}},
             {"PAGER_DUTY", {"serviceKey"}},
             {"SLACK", {"apiToken", "channelName"}},
             {"SMS", {"mobileNumber"}},
             {"TEAM", {"teamId"}},
             {"USER", {"username"}},
             {"VICTOR_OPS", {"victorOpsApiKey"}},
             {"WEBHOOK", {"webhookUrl"}}};

static alert_integration *integrations;

void alerts_integrations(alert_integration *find)
{
	integrations = find;
}

/* One notification that is being checked. */
struct taking {
	struct call *call;
	json_t *notification;
	const json_t *before;  /* the stored one that it replaces, or NULL */
	const json_t *secrets; /* of the stored one, or NULL */
	bool repeats;          /* an earlier one of the body has its id */
	size_t index;
	struct faults *faults;
};

static struct str path_of(struct taking *t, const char *field)
{
	return arena_printf(t->call->arena, "notifications[%zu].%s", t->index, field);
}

static void fault(struct taking *t, const char *field, const char *text)
{
	faults_add(t->faults, t->call->arena, path_of(t, field), "%s", text);
}

/* What its integration has need not be sent again. */
static void needs_check(struct taking *t)
{
	struct str type = json_field(t->notification, "typeName");
	if (json_field(t->notification, "integrationId").n)
		return;
	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
		for (size_t k = 0; k < 2 && str_is(type, needs[i].type) && needs[i].fields[k]; k++)
			if (!json_field(t->notification, needs[i].fields[k]).n)
				faults_add(t->faults, t->call->arena, path_of(t, needs[i].fields[k]),
				           "is required for the type %.*s", STR_ARG(type));
}

/* What nothing here sends is refused, so that nobody relies on it. */
static void senders_check(struct taking *t)
{
	bool texts = outbox_has_endpoint(t->call->service->outbox, "sms");
	struct str type = json_field(t->notification, "typeName");
	if (str_is(type, "HIP_CHAT"))
		fault(t, "typeName", "HIP_CHAT is a service that has ended: choose another type");
	if (str_is(type, "SMS") && !texts)
		fault(t, "typeName",
		      "SMS needs a gateway, and the operator of this service has set none (--outbox-endpoint sms=URL)");
	if (json_flag(t->notification, "smsEnabled") && !texts)
		fault(t, "smsEnabled",
		      "needs a gateway, and the operator of this service has set none (--outbox-endpoint sms=URL)");
}

/* Keys and tokens become headers, names appear in texts of one line. */
static bool has_control(const json_t *value)
{
	for (const char *p = json_string_value(value); p && *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return true;
	return false;
}

static void lengths_check(struct taking *t)
{
	const char *name;
	json_t *value;
	json_object_foreach(t->notification, name, value)
	{
		bool template = str_ends(str_of(name), STR("Template"));
		size_t most = template ? TEMPLATE_MAX : TEXT_MAX;
		if (!template && has_control(value))
			fault(t, name, "must not hold control characters");
		if (json_string_length(value) > most)
			faults_add(t->faults, t->call->arena, path_of(t, name), "must not be longer than %zu bytes",
			           most);
	}
	if (t->repeats)
		fault(t, "notifierId", "is that of another notification of this configuration");
}

static void times_check(struct taking *t)
{
	json_int_t delay = json_number(t->notification, "delayMin"),
	           interval = json_number(t->notification, "intervalMin");
	if (delay < 0 || delay > DELAY_MAX)
		faults_add(t->faults, t->call->arena, path_of(t, "delayMin"), "must be from 0 to %d", DELAY_MAX);
	if (interval > INTERVAL_MAX)
		faults_add(t->faults, t->call->arena, path_of(t, "intervalMin"), "must be from 5 to %d", INTERVAL_MAX);
}

static void url_check(struct taking *t, const char *field)
{
	struct str url = json_field(t->notification, field);
	const char *why = url.n ? outbox_url_fault(t->call->service->outbox, t->call->arena, url) : NULL;
	if (!why)
		why = listener_fault(t->call->arena, url);
	if (why)
		fault(t, field, why);
}

/* GROUP and ORG tell people by their roles. */
static void roles_check(struct taking *t)
{
	struct str type = json_field(t->notification, "typeName");
	const json_t *roles = json_object_get(t->notification, "roles");
	bool in_org = str_is(type, "ORG");
	if (!in_org && !str_is(type, "GROUP"))
		return;
	for (size_t i = 0; i < json_array_size(roles); i++) {
		json_t *one = json_keep(t->call->arena, json_pack("[O]", json_array_get(roles, i)));
		if (!roles_from_json(one, in_org))
			faults_add(t->faults, t->call->arena,
			           arena_printf(t->call->arena, "notifications[%zu].roles[%zu]", t->index, i),
			           "must be a role of %s", in_org ? "organizations" : "projects");
	}
}

/* The team must be the organization's, the user one that the caller's organization has. */
static int people_check(struct taking *t)
{
	struct call *c = t->call;
	struct str team = json_field(t->notification, "teamId"), name = json_field(t->notification, "username"), id;
	struct doc d;
	role_mask roles = 0;
	int r = 0;
	if (str_is(json_field(t->notification, "typeName"), "TEAM") && team.n) {
		r = tx_get(c->tx, c->arena, "team", team, &d);
		if (r == -ENOENT || (r == 0 && !str_eq(d.parent, c->org.id)))
			faults_add(t->faults, c->arena, path_of(t, "teamId"),
			           "must be the id of a team of the organization");
		else if (r == 0)
			json_put_str(t->notification, "teamName", json_field(doc_json(c->arena, d.body), "name"));
	}
	if (str_is(json_field(t->notification, "typeName"), "USER") && name.n) {
		r = tx_ref_get(c->tx, c->arena, "user_name", arena_lower(c->arena, name), &id);
		if (r == 0)
			r = grant_get(c->tx, c->arena, id, c->org.id, &roles);
		if (r == -ENOENT || (r == 0 && !roles))
			faults_add(t->faults, c->arena, path_of(t, "username"), "must be a user of the organization");
	}
	return r == -ENOENT ? 0 : r;
}

/* A webhook that leads elsewhere now must not take along what was meant for the old place. */
static bool leads_elsewhere(const struct taking *t)
{
	return !str_eq(post_url_origin(json_field(t->notification, "webhookUrl")),
	               post_url_origin(json_field(t->before, "webhookUrl")));
}

/* The stored secret where the body has its mask. */
static void masks_replace(struct taking *t)
{
	for (size_t i = 0; i < SECRETS; i++) {
		if (!str_is(json_field(t->notification, secret_fields[i]), MASK))
			continue;
		struct str kept = json_field(t->secrets, secret_fields[i]);
		if (kept.n && leads_elsewhere(t))
			fault(t, secret_fields[i], "is a mask, but webhookUrl names another host: send the value");
		else if (kept.n)
			json_put_str(t->notification, secret_fields[i], kept);
		else
			fault(t, secret_fields[i],
			      "is a mask, but nothing is kept that it could stand for: send the value");
	}
}

/* Moves the secrets out of the document. */
static void secrets_take(struct taking *t, json_t *all)
{
	json_t *own = json_object();
	for (size_t i = 0; i < SECRETS; i++) {
		struct str value = json_field(t->notification, secret_fields[i]);
		if (!value.n)
			continue;
		json_put_str(own, secret_fields[i], value);
		json_put_z(t->notification, secret_fields[i], MASK);
	}
	if (json_object_size(own))
		json_put(all, json_string_value(json_object_get(t->notification, "notifierId")), own);
	else
		json_decref(own);
}

/* The stored notification that a new one replaces: by its id, or the first of its type that no other has taken. */
static const json_t *before_find(const json_t *before, const json_t *given, const json_t *taken)
{
	struct str id = json_field(given, "notifierId");
	if (id.n)
		return json_find(before, "notifierId", id);
	for (size_t i = 0; i < json_array_size(before); i++) {
		const json_t *b = json_array_get(before, i);
		if (str_eq(json_field(b, "typeName"), json_field(given, "typeName")) &&
		    !json_has(taken, json_field(b, "notifierId")))
			return b;
	}
	return NULL;
}

/* The notification's own type; and New Relic, for which configurations have none, takes what webhooks are told. */
static bool receiver_fits(const json_t *notification, const json_t *receiver)
{
	struct str type = json_field(receiver, "typeName"), wanted = json_field(notification, "typeName");
	return str_eq(type, wanted) || (str_is(type, "NEW_RELIC") && str_is(wanted, "WEBHOOK"));
}

/* An integration of the project stands for the receiver, with its secrets. */
static int integration_check(struct taking *t)
{
	struct str id = json_field(t->notification, "integrationId");
	json_t *receiver = NULL;
	if (!id.n)
		return 0;
	int r = integrations ? integrations(t->call->tx, t->call->arena, t->call->group.id, id, &receiver) : -ENOENT;
	if (r == -ENOENT)
		fault(t, "integrationId", "must be the id of an integration of the project");
	else if (r == 0 && !receiver_fits(t->notification, receiver))
		faults_add(t->faults, t->call->arena, path_of(t, "integrationId"),
		           "names an integration of the type %.*s", STR_ARG(json_field(receiver, "typeName")));
	return r == -ENOENT ? 0 : r;
}

void notification_show(json_t *notification)
{
	json_default(notification, "delayMin", json_integer(0));
	if (str_is_one_of("GROUP|ORG|TEAM|USER", json_field(notification, "typeName")))
		json_default(notification, "smsEnabled", json_false());
}

static int one_take(struct taking *t, json_t *secrets)
{
	json_t *n = t->notification;
	masks_replace(t);
	lengths_check(t);
	senders_check(t);
	needs_check(t);
	times_check(t);
	roles_check(t);
	url_check(t, "webhookUrl");
	url_check(t, "microsoftTeamsWebhookUrl");
	int r = people_check(t);
	if (r == 0)
		r = integration_check(t);
	notification_show(n);
	json_put_str(n, "notifierId", t->before ? json_field(t->before, "notifierId") : id_make(t->call->arena));
	secrets_take(t, secrets);
	return r;
}

int notification_secrets(struct arena *a, const struct doc *config, json_t **ret_secrets)
{
	struct str plain = STR_NONE;
	int r = config && config->secret.n ? doc_unseal(a, config, &plain) : 0;
	*ret_secrets = plain.n ? doc_json(a, plain) : json_new(a);
	return r;
}

int notifications_take(struct call *c, const struct doc *old, json_t *document, json_t **ret_secrets)
{
	struct faults faults = {.count = 0};
	json_t *list = json_object_get(document, "notifications"), *secrets = json_new(c->arena), *kept,
	       *taken = json_keep(c->arena, json_array()), *seen = json_keep(c->arena, json_array());
	const json_t *before = old ? json_object_get(doc_json(c->arena, old->body), "notifications") : NULL;
	int r = notification_secrets(c->arena, old, &kept);
	/* Ids that are sent go first: what has none takes what is left. */
	for (size_t i = 0; i < json_array_size(list); i++)
		json_add_str(taken, json_field(json_array_get(list, i), "notifierId"));
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		struct taking t = {.call = c, .notification = json_array_get(list, i), .index = i, .faults = &faults};
		struct str given = json_field(t.notification, "notifierId");
		t.repeats = given.n && json_has(seen, given);
		json_add_str(seen, given);
		t.before = before_find(before, t.notification, taken);
		if (t.before) {
			struct str id = json_field(t.before, "notifierId");
			t.secrets = json_object_getn(kept, id.p, id.n);
			json_add_str(taken, id);
		}
		r = one_take(&t, secrets);
	}
	if (json_text(c->arena, secrets).n > SECRETS_MAX)
		faults_add(&faults, c->arena, STR("notifications"),
		           "must not have more than %d bytes of keys and templates together", SECRETS_MAX);
	if (r == 0 && faults.count)
		return call_fail_faults(c, &faults);
	*ret_secrets = secrets;
	return r;
}

int notification_whole(struct tx *tx, struct arena *a, struct str group_id, const json_t *notification,
                       const json_t *secrets, json_t **ret_whole)
{
	json_t *whole = json_clone(a, notification), *receiver;
	struct str id = json_field(notification, "notifierId"), integration = json_field(notification, "integrationId");
	json_t *own = json_object_getn(secrets, id.p, id.n);
	int r = 0;
	if (own)
		json_object_update(whole, own);
	if (integration.n) {
		r = integrations ? integrations(tx, a, group_id, integration, &receiver) : -ENOENT;
		if (r == 0 && receiver_fits(whole, receiver))
			json_object_update(whole, receiver);
	}
	*ret_whole = whole;
	return r == -ENOENT ? 0 : r;
}
