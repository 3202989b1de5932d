/* Integrations: documents of nine forms, one of each type for a project. Secrets are kept sealed beside the document,
 * which has a mask in their place; a mask that is sent back means that the secret stays. */
#include "api/integrations/integrations.h"

#include "api/kit/verbs.h"
#include "call/service.h"
#include "outbox/outbox.h"
#include "outbox/post.h"

#include <errno.h>

#define MASK "********"
/* New Relic's keys have a form, and so has their mask. */
#define MASK_LICENSE "0000000000000000000000000000000000000000"
#define TEXT_BYTES 16384
#define URL_BYTES 2048
#define PASSWORD_BYTES 8

static const struct secret {
	const char *field, *mask; /* NULL: never shown */
} secrets[] = {{"apiKey", MASK},          {"apiToken", MASK},           {"bodyTemplate", MASK},
               {"headersTemplate", MASK}, {"licenseKey", MASK_LICENSE}, {"microsoftTeamsWebhookUrl", MASK},
               {"password", NULL},        {"readToken", MASK},          {"secret", MASK},
               {"serviceKey", MASK},      {"writeToken", MASK}};
#define SECRETS (sizeof secrets / sizeof *secrets)

/* --- what schemas cannot say */

static bool url_is_good(struct str url)
{
	struct str rest = url, host, path;
	bool web = str_starts(url, STR("https://")) || str_starts(url, STR("http://"));
	if (!web || url.n > URL_BYTES)
		return false;
	rest.p += str_starts(url, STR("https://")) ? strlen("https://") : strlen("http://");
	rest.n = url.n - (size_t)(rest.p - url.p);
	for (size_t i = 0; i < rest.n; i++)
		if ((unsigned char)rest.p[i] <= ' ' || (unsigned char)rest.p[i] >= 127)
			return false;
	str_cut(rest, '/', &host, &path);
	return host.n && !memchr(host.p, '@', host.n);
}

static void texts_check(struct call *c, const json_t *document, struct faults *faults)
{
	const char *field;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)document, field, value)
	{
		struct str text = json_str_of(value);
		if (json_is_string(value) && (!text.n || text.n > TEXT_BYTES))
			faults_add(faults, c->arena, str_of(field), "must have from 1 to %d bytes", TEXT_BYTES);
	}
	static const char *const urls[] = {"url", "microsoftTeamsWebhookUrl"};
	const char *fault;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
		if (json_object_get(document, urls[i]) && !url_is_good(json_field(document, urls[i])))
			faults_add(faults, c->arena, str_of(urls[i]),
			           "must be a URL, https://HOST/PATH, without a user before the host");
		else if (json_object_get(document, urls[i]) &&
		         (fault = outbox_url_fault(c->service->outbox, c->arena, json_field(document, urls[i]))))
			faults_add(faults, c->arena, str_of(urls[i]), "%s", fault);
}

/* Who scrapes signs in by name and password: the name has no colon, as HTTP has it. */
static void prometheus_check(struct call *c, const json_t *document, struct faults *faults)
{
	struct str name = json_field(document, "username"), password = json_field(document, "password");
	if (!str_is(json_field(document, "type"), "PROMETHEUS"))
		return;
	if (name.n && memchr(name.p, ':', name.n))
		faults_add(faults, c->arena, STR("username"), "must not have a colon");
	if (password.n < PASSWORD_BYTES)
		faults_add(faults, c->arena, STR("password"), "must have at least %d bytes", PASSWORD_BYTES);
}

/* The stored secret where the document has its mask, or does not have what is never shown. A webhook that leads
 * elsewhere now must not take along what was meant for the old place. */
static void masks_replace(struct call *c, const struct doc *stored, const json_t *kept, json_t *document,
                          struct faults *faults)
{
	struct str url = stored ? json_field(doc_json(c->arena, stored->body), "url") : STR_NONE;
	bool elsewhere = url.n && !str_eq(post_url_origin(url), post_url_origin(json_field(document, "url")));
	for (size_t i = 0; i < SECRETS; i++) {
		const char *field = secrets[i].field;
		const json_t *given = json_object_get(document, field), *old = json_object_get(kept, field);
		bool masked = secrets[i].mask ? given && str_is(json_str_of(given), secrets[i].mask) : !given;
		if (masked && old && elsewhere)
			faults_add(faults, c->arena, str_of(field),
			           "is a mask, but url names another host: send the value");
		else if (masked && old)
			json_put(document, field, json_deep_copy(old));
		else if (masked && given)
			faults_add(faults, c->arena, str_of(field),
			           "is a mask, but nothing is kept that it could stand for: send the value");
	}
}

static int check(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	struct str type = call_path(c, "integrationType"), given = json_field(document, "type"), plain,
	           id = json_field(document, "id");
	json_t *kept = NULL;
	if (given.n && !str_eq(type, given))
		return call_fail_fault(c, STR("type"), "must be %.*s, as the path says", STR_ARG(type));
	if (str_is(type, "HIP_CHAT"))
		return call_fail_fault(c, STR("type"), "HipChat has ended: choose another type");
	if (id.n && (!old || !str_eq(id, old->id)))
		return call_fail_fault(c, STR("id"), "cannot be chosen: leave it out");
	int r = old && old->secret.n ? doc_unseal(c->arena, old, &plain) : 0;
	if (r < 0)
		return r;
	if (old && old->secret.n)
		kept = doc_json(c->arena, plain);
	json_object_del(document, "id");
	json_put_str(document, "type", type);
	masks_replace(c, old, kept, document, &faults);
	texts_check(c, document, &faults);
	prometheus_check(c, document, &faults);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int created(struct call *c, json_t *document)
{
	return check(c, NULL, document);
}

static int updated(struct call *c, const struct doc *old, json_t *document)
{
	return check(c, old, document);
}

/* --- keeping */

static int save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	json_t *own = json_new(c->arena);
	for (size_t i = 0; i < SECRETS; i++) {
		json_t *value = json_object_get(document, secrets[i].field);
		if (!value)
			continue;
		json_put(own, secrets[i].field, json_deep_copy(value));
		if (secrets[i].mask)
			json_put_z(document, secrets[i].field, secrets[i].mask);
		else
			json_object_del(document, secrets[i].field);
	}
	json_put_str(document, "id", d->id);
	d->secret = doc_seal(c->arena, d, json_text(c->arena, own));
	d->body = json_text(c->arena, document);
	return resource_put(c->tx, d, old);
}

const struct resource_hooks integration_hooks = {.create = created, .update = updated, .save = save};

/* Making and replacing one answers with all: no verb does. */
static int answer_all(struct call *c, int result)
{
	if (result < 0)
		return result;
	c->out.n = 0;
	c->etag = 0;
	c->location = STR_NONE;
	return verb_list(c);
}

int integrations_create(struct call *c)
{
	return answer_all(c, verb_create(c));
}

int integrations_replace(struct call *c)
{
	return answer_all(c, verb_replace(c));
}

/* --- for others */

int integration_find(struct tx *tx, struct arena *a, struct str group_id, struct str type_or_id,
                     json_t **ret_integration)
{
	struct str plain = STR_NONE;
	struct doc d;
	int r = tx_get_by_name(tx, a, INTEGRATION_KIND, group_id, type_or_id, &d);
	if (r == -ENOENT)
		r = tx_get(tx, a, INTEGRATION_KIND, type_or_id, &d);
	if (r == 0 && !str_eq(d.parent, group_id))
		r = -ENOENT;
	if (r == 0 && d.secret.n)
		r = doc_unseal(a, &d, &plain);
	if (r < 0)
		return r;
	*ret_integration = doc_json(a, d.body);
	json_object_update(*ret_integration, doc_json(a, plain));
	return 0;
}

/* What a notification calls what an integration of that type has; the rest has one name in both. */
static const struct {
	const char *type, *field, *in_notification;
} receiver_names[] = {{"DATADOG", "apiKey", "datadogApiKey"},
                      {"DATADOG", "region", "datadogRegion"},
                      {"OPS_GENIE", "apiKey", "opsGenieApiKey"},
                      {"OPS_GENIE", "region", "opsGenieRegion"},
                      {"VICTOR_OPS", "apiKey", "victorOpsApiKey"},
                      {"VICTOR_OPS", "routingKey", "victorOpsRoutingKey"},
                      {"WEBHOOK", "bodyTemplate", "webhookBodyTemplate"},
                      {"WEBHOOK", "headersTemplate", "webhookHeadersTemplate"},
                      {"WEBHOOK", "secret", "webhookSecret"},
                      {"WEBHOOK", "url", "webhookUrl"}};

int integration_receiver(struct tx *tx, struct arena *a, struct str group_id, struct str id, json_t **ret_receiver)
{
	json_t *one;
	int r = integration_find(tx, a, group_id, id, &one);
	if (r < 0)
		return r;
	struct str type = json_field(one, "type");
	json_put_str(one, "typeName", type);
	for (size_t i = 0; i < sizeof receiver_names / sizeof *receiver_names; i++)
		if (str_is(type, receiver_names[i].type) && json_object_get(one, receiver_names[i].field)) {
			json_put(one, receiver_names[i].in_notification,
			         json_incref(json_object_get(one, receiver_names[i].field)));
			json_object_del(one, receiver_names[i].field);
		}
	json_object_del(one, "type");
	*ret_receiver = one;
	return 0;
}
