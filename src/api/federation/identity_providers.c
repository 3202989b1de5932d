/* Identity providers: SAML for people, OIDC for people and for workloads.
 *
 * A federation starts with one SAML provider, INACTIVE, to be configured by an update; further ones are made with
 * protocol SAML, and show in the answer what that answer's schema has of them. An OIDC provider is in force at once:
 * its issuer's signing keys are fetched in the background (identity/jwks.h).
 *
 * SAML providers have two names, the id and the older oktaIdpId; paths take both, and links use the older one,
 * because the metadata's path takes no other. */
#include "api/federation/identity_providers.h"

#include "api/federation/domains.h"
#include "api/federation/federation.h"
#include "api/federation/membership.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "call/service.h"
#include "identity/jwks.h"
#include "identity/saml.h"
#include "trail/events.h"

#include <errno.h>

/* The store's side. */

/* Fields by whose value a provider is found, in any federation. */
static const struct {
	const char *kind, *field;
} refs[] = {{PROVIDER_OKTA_KIND, "oktaIdpId"}, {"identity_provider_slug", "slug"}};

/* From the values that it had to those that it has; NULL: none. -EEXIST: one is another provider's. */
static int refs_move(struct tx *tx, const json_t *had, const json_t *has, struct str id)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < sizeof refs / sizeof *refs; i++) {
		struct str old = json_field(had, refs[i].field), fresh = json_field(has, refs[i].field);
		if (str_eq(old, fresh))
			continue;
		result = old.n ? tx_ref_delete(tx, refs[i].kind, old) : 0;
		if (result == -ENOENT)
			result = 0;
		if (result == 0 && fresh.n)
			result = tx_ref_put(tx, refs[i].kind, fresh, id);
	}
	return result;
}

static int provider_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	int result = refs_move(tx, doc_json(a, d->body), NULL, d->id);
	return result < 0 ? result : jwks_forget(tx, d->id);
}

/* Fields that the service sets in a new provider, and defaults for those that were not given. */
static void provider_complete(struct arena *a, json_t *p)
{
	bool saml = provider_is_saml(p), workforce = str_is(json_field(p, "idpType"), "WORKFORCE");
	json_t *defaults = doc_json(
	        a, saml ? STR("{\"status\":\"INACTIVE\",\"ssoDebugEnabled\":false,\"requestBinding\":\"HTTP-POST\","
	                      "\"responseSignatureAlgorithm\":\"SHA-256\"}")
	                : STR("{\"oktaIdpId\":null,\"authorizationType\":\"GROUP\",\"userClaim\":\"sub\","
	                      "\"groupsClaim\":\"groups\"}"));
	char now[CLOCK_TEXT], okta[OKTA_LEN + 1];
	unsigned char bytes[OKTA_BYTES];
	if (workforce)
		json_put(defaults, "associatedDomains", json_array());
	if (workforce && !saml)
		json_put(defaults, "requestedScopes", json_array());
	json_object_update_missing(p, defaults);
	clock_format(clock_now_ms(), now);
	json_put_z(p, "createdAt", now);
	if (!saml)
		return;
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, okta);
	json_put_z(p, "oktaIdpId", okta);
}

int provider_add_first(struct tx *tx, struct arena *a, struct str federation_id)
{
	struct str id = id_make(a);
	json_t *p = doc_json(a, STR("{\"displayName\":\"SAML identity provider\",\"protocol\":\"SAML\","
	                            "\"idpType\":\"WORKFORCE\"}"));
	json_put_str(p, "id", id);
	provider_complete(a, p);
	int result =
	        doc_insert(tx, "identity_provider", id, federation_id, json_field(p, "displayName"), json_text(a, p));
	return result < 0 ? result : refs_move(tx, NULL, p, id);
}

/* Reading. */

/* The configurations of the federation's organizations: the same for all providers of a list. */
static int configs_load(struct call *c, struct str federation_id, json_t **ret_configs)
{
	struct doc *docs;
	size_t count;
	json_t *configs = c->noted;
	int result = configs ? 0 : connected_orgs(c->tx, c->arena, federation_id, &docs, &count);
	if (result < 0)
		return result;
	if (!configs) {
		c->noted = configs = json_keep(c->arena, json_array());
		for (size_t i = 0; i < count; i++) {
			json_t *config = doc_json(c->arena, docs[i].body);
			json_put_str(config, "orgId", docs[i].id);
			json_array_append(configs, config);
		}
	}
	*ret_configs = configs;
	return 0;
}

/* Those of organizations that use the provider; visible: and that the caller may see. */
static int users_find(struct call *c, const struct doc *d, const json_t *provider, bool visible, json_t **ret_list)
{
	json_t *configs, *config, *list = json_keep(c->arena, json_array());
	size_t i;
	int result = configs_load(c, d->parent, &configs);
	if (result < 0)
		return result;
	json_array_foreach(configs, i, config)
	{
		if (connected_org_uses(config, d->id, json_field(provider, "oktaIdpId")) &&
		    (!visible || connected_org_visible(c, json_field(config, "orgId"))))
			json_array_append(list, config);
	}
	*ret_list = list;
	return 0;
}

/* What an answer in the form of OIDC providers has of a SAML provider. */
static void saml_narrow(json_t *p)
{
	static const char *const beyond[] = {"acsUrl", "audienceUri",    "requestBinding", "responseSignatureAlgorithm",
	                                     "status", "ssoDebugEnabled"};
	for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
		json_object_del(p, beyond[i]);
}

static int provider_view(struct call *c, const struct doc *d, json_t *p)
{
	struct str okta = json_field(p, "oktaIdpId");
	json_t *orgs, *one;
	size_t i;
	int result = users_find(c, d, p, true, &orgs);
	if (result < 0)
		return result;
	json_object_set(p, "associatedOrgs", orgs);
	if (!provider_is_saml(p))
		return 0;
	json_put_str(p, "acsUrl", saml_acs_url(c->arena, c->service->base_url, okta));
	json_put_str(p, "audienceUri", saml_audience(c->arena, c->service->base_url, okta));
	json_array_foreach(json_object_get(json_object_get(p, "pemFileInfo"), "certificates"), i, one)
	        json_object_del(one, "content");
	if (c->op->method == METHOD_POST)
		saml_narrow(p);
	return 0;
}

static struct str provider_key(struct call *c, const struct doc *d)
{
	struct str okta = json_field(doc_json(c->arena, d->body), "oktaIdpId");
	return okta.n ? okta : d->id;
}

/* What lies below is for SAML only. */
static bool provider_leaf(struct call *c, const struct doc *d)
{
	return c->op->method == METHOD_POST || !json_field(doc_json(c->arena, d->body), "oktaIdpId").n;
}

/* By either id. The oldest version knows SAML only. */
static int provider_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	const struct schema *answer = c->version->response;
	int result = provider_get(c->tx, c->arena, call_path(c, "federationSettingsId"),
	                          call_path(c, "identityProviderId"), ret_doc);
	if (result == 0 && answer && answer->name && strcmp(answer->name, "FederationSamlIdentityProvider") == 0 &&
	    !provider_is_saml(doc_json(c->arena, ret_doc->body)))
		return -ENOENT;
	return result;
}

int federation_get_metadata(struct call *c)
{
	struct doc d;
	struct buf xml = {0};
	int result = provider_load(c, NULL, &d);
	if (result < 0)
		return result;
	saml_metadata_write(&xml, c->arena, c->service->base_url, json_field(doc_json(c->arena, d.body), "oktaIdpId"));
	/* The answer's media type is JSON, so the document is a JSON string. */
	json_str(&c->out, buf_view(&xml));
	buf_free(&xml);
	return 0;
}

/* Writing. */

static int conflict(struct call *c, const char *field, struct str value, const char *why)
{
	return call_fail_about(c, 409, "IDENTITY_PROVIDER_CONFLICT", value, "%s: \"%.*s\" %s", field, STR_ARG(value),
	                       why);
}

/* The first text that both lists have. */
static struct str shared_text(const json_t *mine, const json_t *others)
{
	for (size_t i = 0; i < json_array_size(mine); i++)
		if (json_has(others, json_item(mine, i)))
			return json_item(mine, i);
	return STR_NONE;
}

static bool same_field(const json_t *a, const json_t *b, const char *field)
{
	return str_eq(json_field(a, field), json_field(b, field));
}

/* Whoever signs in must be sent to one provider, and a token must come from one. */
static int refuse_ambiguous(struct call *c, struct str federation_id, const json_t *p)
{
	struct doc *docs;
	size_t count;
	int result = tx_list_all(c->tx, c->arena, "identity_provider", federation_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *other = doc_json(c->arena, docs[i].body);
		struct str issuer = json_field(p, "issuerUri");
		if (str_eq(docs[i].id, json_field(p, "id")))
			continue;
		if (same_field(p, other, "displayName"))
			return conflict(c, "displayName", docs[i].name, "is taken. Choose another.");
		if (!same_field(p, other, "protocol"))
			continue;
		if (issuer.n && same_field(p, other, "issuerUri") && same_field(p, other, "idpType") &&
		    same_field(p, other, "audience"))
			return conflict(c, "issuerUri", issuer,
			                "is another provider's, with the same audience. Change one of the two.");
		struct str domain = shared_text(json_object_get(p, "associatedDomains"),
		                                json_object_get(other, "associatedDomains"));
		if (domain.n)
			return conflict(c, "associatedDomains", domain, "is associated with another provider.");
	}
	return result;
}

static void wake(struct call *c, void *arg)
{
	jwks_wake(c->service->jwks);
}

/* The keys of its issuer are fetched when this write is on disk. */
static int keys_renew(struct call *c, const struct doc *d, const json_t *provider)
{
	c->committed = wake;
	return jwks_renew(c->tx, c->arena, d->id, d->parent, json_field(provider, "issuerUri"));
}

/* In every organization of the federation, because all of them depend on the provider: the call's event is the last
 * one's. */
static int provider_event(struct call *c, const struct doc *d)
{
	struct doc *orgs;
	size_t count;
	int result = connected_orgs(c->tx, c->arena, d->parent, &orgs, &count);
	event_field(c, "identityProviderId", d->id);
	event_field(c, "displayName", d->name);
	for (size_t i = 0; result == 0 && i < count; i++) {
		event_scope(c, orgs[i].id, STR_NONE);
		result = i + 1 < count ? event_write(c) : 0;
	}
	return result;
}

/* What a body for this provider may have: the row's schema takes those of all kinds. */
static const struct schema *body_schema(const json_t *provider)
{
	if (provider_is_saml(provider))
		return schema_find(STR("FederationSamlIdentityProviderUpdate"));
	return schema_find(str_is(json_field(provider, "idpType"), "WORKLOAD")
	                           ? STR("FederationOidcWorkloadIdentityProviderUpdate")
	                           : STR("FederationOidcWorkforceIdentityProviderUpdate"));
}

static void create_check(struct call *c, const json_t *provider, struct faults *faults)
{
	bool saml = provider_is_saml(provider);
	json_t *body = json_clone(c->arena, c->body);
	if (saml) /* the row's schema has no such field */
		json_put(body, "ssoDebugEnabled", json_false());
	schema_check(body_schema(provider), body, SCHEMA_CREATE, c->arena, faults);
	if (!json_object_get(body, "displayName"))
		faults_add(faults, c->arena, STR("displayName"), "is required");
	if (!saml && !json_object_get(body, "issuerUri"))
		faults_add(faults, c->arena, STR("issuerUri"), "is required");
	if (saml && !str_is(json_field(provider, "idpType"), "WORKFORCE"))
		faults_add(faults, c->arena, STR("idpType"), "must be WORKFORCE with the protocol SAML");
}

static int provider_create(struct call *c, json_t *document)
{
	struct faults faults = {.count = 0};
	json_object_update_missing(document,
	                           doc_json(c->arena, STR("{\"protocol\":\"OIDC\",\"idpType\":\"WORKFORCE\"}")));
	json_object_del(document, "updatedAt");
	if (json_is_null(json_object_get(document, "description")))
		json_object_del(document, "description");
	create_check(c, document, &faults);
	if (!faults.count)
		provider_fields_check(c, document, document, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	provider_complete(c->arena, document);
	return refuse_ambiguous(c, call_path(c, "federationSettingsId"), document);
}

/* Events of their own for what concerns sign-in; the rest is an update. */
static int update_events(struct call *c, const struct doc *d, const json_t *old, const json_t *provider)
{
	struct str was = json_field(old, "status"), is = json_field(provider, "status");
	int result = 0;
	if (!json_equal(json_object_get(old, "associatedDomains"), json_object_get(provider, "associatedDomains"))) {
		event_set_type(c, "DOMAINS_ASSOCIATED");
		result = provider_event(c, d);
		if (result == 0)
			result = event_next(c);
	}
	if (!provider_is_saml(provider))
		event_set_type(c, "OIDC_IDENTITY_PROVIDER_UPDATED");
	else if (!str_eq(was, is))
		event_set_type(c,
		               str_is(is, "ACTIVE") ? "IDENTITY_PROVIDER_ACTIVATED" : "IDENTITY_PROVIDER_DEACTIVATED");
	return result < 0 ? result : provider_event(c, d);
}

/* A provider signs in the people of all organizations that use it: who owns one of them must not lead the people of
 * another to an issuer of their own. */
static int refuse_foreign(struct call *c, const struct doc *d, const json_t *provider)
{
	json_t *all, *own = NULL;
	int result = users_find(c, d, provider, false, &all);
	if (result == 0)
		result = users_find(c, d, provider, true, &own);
	size_t foreign = result == 0 ? json_array_size(all) - json_array_size(own) : 0;
	if (!foreign)
		return result;
	return call_fail_about(c, 409, "IDENTITY_PROVIDER_IN_USE", d->id,
	                       "The identity provider is connected to %zu organizations that the caller does not own. "
	                       "Only an owner of all of them can change it.",
	                       foreign);
}

static int provider_update(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	const json_t *before = doc_json(c->arena, old->body);
	int result = refuse_foreign(c, old, before);
	if (result < 0)
		return result;
	schema_check(body_schema(before), c->body, SCHEMA_UPDATE, c->arena, &faults);
	if (!faults.count)
		provider_fields_check(c, before, document, &faults);
	if (!faults.count)
		provider_check_whole(c, document, &faults);
	return faults.count ? call_fail_faults(c, &faults) : refuse_ambiguous(c, old->parent, document);
}

static int provider_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	int result = resource_put(c->tx, d, old);
	if (result < 0)
		return result;
	const json_t *before = old ? doc_json(c->arena, old->body) : NULL;
	if (json_array_size(json_object_get(document, "associatedDomains"))) {
		result = domains_check_later(c->tx, d->parent);
		if (result < 0)
			return result;
	}
	result = refs_move(c->tx, before, document, d->id);
	return result == -EEXIST ? conflict(c, "slug", json_field(document, "slug"), "is taken. Choose another.")
	                         : result;
}

static int provider_written(struct call *c, const struct doc *d, const struct doc *old)
{
	const json_t *provider = doc_json(c->arena, d->body), *before = old ? doc_json(c->arena, old->body) : NULL;
	int result = 0;
	if (!provider_is_saml(provider) && !str_eq(json_field(before, "issuerUri"), json_field(provider, "issuerUri")))
		result = keys_renew(c, d, provider);
	if (result == 0 && old)
		result = federation_changed(c->tx, c->arena, d, before);
	if (result < 0)
		return result;
	return old ? update_events(c, d, before, provider) : provider_event(c, d);
}

static int provider_remove(struct call *c, const struct doc *d)
{
	json_t *orgs;
	int result = users_find(c, d, doc_json(c->arena, d->body), false, &orgs);
	if (result == 0 && json_array_size(orgs))
		return call_fail_about(c, 409, "IDENTITY_PROVIDER_IN_USE", d->id,
		                       "The identity provider is connected to %zu organizations. Disconnect them "
		                       "first.",
		                       json_array_size(orgs));
	return result < 0 ? result : provider_event(c, d);
}

const struct resource_hooks identity_provider_hooks = {.create = provider_create,
                                                       .update = provider_update,
                                                       .remove = provider_remove,
                                                       .load = provider_load,
                                                       .save = provider_save,
                                                       .written = provider_written,
                                                       .gone = provider_gone,
                                                       .view = provider_view,
                                                       .key = provider_key,
                                                       .leaf = provider_leaf};

int federation_revoke_keys(struct call *c)
{
	struct doc d;
	json_t *own = NULL; /* only these organizations' people sign in anew */
	int result = provider_load(c, NULL, &d);
	if (result < 0)
		return result;
	const json_t *provider = doc_json(c->arena, d.body);
	if (provider_is_saml(provider))
		return call_fail_about(c, 400, "IDENTITY_PROVIDER_HAS_NO_KEYS", call_path(c, "identityProviderId"),
		                       "Only OIDC identity providers have signing keys; this one is SAML.");
	result = keys_renew(c, &d, provider);
	if (result == 0)
		result = users_find(c, &d, provider, true, &own);
	for (size_t i = 0; result == 0 && i < json_array_size(own); i++)
		result = federation_left(c->tx, c->arena, json_field(json_array_get(own, i), "orgId"));
	return result < 0 ? result : provider_event(c, &d);
}
