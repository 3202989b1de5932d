/* Identity providers: SAML for people, OIDC for people and for workloads.
 *
 * A federation starts with one SAML provider, INACTIVE, to be configured by an update; further ones are made with
 * protocol SAML, and show in the answer what that answer's schema has of them. An OIDC provider is in force at once:
 * its issuer's signing keys are fetched in the background (identity/jwks.h).
 *
 * SAML providers have two names, the id and the older oktaIdpId; paths take both, and links use the older one,
 * because the metadata's path takes no other. */
#include "api/federation/identity_providers.h"

#include "api/federation/federation.h"
#include "api/federation/saml_metadata.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "call/service.h"
#include "identity/jwks.h"
#include "trail/events.h"

#include <errno.h>

#define OKTA_BYTES 10
#define OKTA_LEN (2ul * OKTA_BYTES)
#define REF_OKTA "identity_provider_okta"
#define REF_SLUG "identity_provider_slug"

/* The store's side. */

int providers_list(struct tx *tx, struct arena *a, struct str federation_id, struct doc **ret_docs, size_t *ret_count)
{
	return tx_list(tx, a, "identity_provider", federation_id, 0, IDENTITY_PROVIDERS_MAX, ret_docs, ret_count);
}

int provider_get(struct tx *tx, struct arena *a, struct str federation_id, struct str id, struct doc *ret_doc)
{
	struct doc d;
	int result = 0;
	if (id.n == OKTA_LEN)
		result = tx_ref_get(tx, a, REF_OKTA, id, &id);
	if (result == 0)
		result = tx_get(tx, a, "identity_provider", id, &d);
	if (result == 0 && !str_eq(d.parent, federation_id))
		result = -ENOENT;
	if (result == 0)
		*ret_doc = d;
	return result;
}

static int ref_drop(struct tx *tx, const char *kind, struct str value)
{
	int result = value.n ? tx_ref_delete(tx, kind, value) : 0;
	return result == -ENOENT ? 0 : result;
}

static int provider_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	const json_t *provider = doc_json(a, d->body);
	int result = ref_drop(tx, REF_OKTA, json_field(provider, "oktaIdpId"));
	if (result == 0)
		result = ref_drop(tx, REF_SLUG, json_field(provider, "slug"));
	return result < 0 ? result : jwks_forget(tx, d->id);
}

int providers_delete(struct tx *tx, struct arena *a, struct str federation_id)
{
	struct doc *docs;
	size_t count;
	int result = providers_list(tx, a, federation_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		result = provider_gone(tx, a, &docs[i]);
		if (result == 0)
			result = tx_delete(tx, "identity_provider", docs[i].id);
	}
	return result;
}

/* The fields that the service sets, and the defaults. */
static json_t *provider_new(struct arena *a, struct str id, const char *protocol, const char *type)
{
	json_t *p = doc_json(a, STR("{}"));
	char now[CLOCK_TEXT], okta[OKTA_LEN + 1];
	unsigned char bytes[OKTA_BYTES];
	clock_format(clock_now_ms(), now);
	json_put_str(p, "id", id);
	json_put_z(p, "createdAt", now);
	json_put_z(p, "protocol", protocol);
	json_put_z(p, "idpType", type);
	if (strcmp(protocol, "SAML") == 0) {
		random_bytes(bytes, sizeof bytes);
		hex_encode(bytes, sizeof bytes, okta);
		json_put_z(p, "oktaIdpId", okta);
		json_put_z(p, "status", "INACTIVE");
		json_put(p, "ssoDebugEnabled", json_false());
		json_put_z(p, "requestBinding", "HTTP-POST");
		json_put_z(p, "responseSignatureAlgorithm", "SHA-256");
	} else {
		json_put(p, "oktaIdpId", json_null());
		json_put_z(p, "authorizationType", "GROUP");
		json_put_z(p, "userClaim", "sub");
		json_put_z(p, "groupsClaim", "groups");
	}
	if (strcmp(type, "WORKFORCE") == 0)
		json_put(p, "associatedDomains", json_array());
	if (strcmp(type, "WORKFORCE") == 0 && strcmp(protocol, "OIDC") == 0)
		json_put(p, "requestedScopes", json_array());
	return p;
}

static int provider_insert(struct tx *tx, struct arena *a, struct str federation_id, const json_t *provider,
                           struct doc *ret_doc)
{
	struct str okta = json_field(provider, "oktaIdpId");
	struct doc d = {.kind = STR("identity_provider"),
	                .id = json_field(provider, "id"),
	                .parent = federation_id,
	                .name = json_field(provider, "displayName"),
	                .created_ms = clock_now_ms(),
	                .body = json_text(a, provider),
	                .rev = 1};
	int result = tx_insert(tx, &d);
	if (result == 0 && okta.n)
		result = tx_ref_put(tx, REF_OKTA, okta, d.id);
	if (result == 0)
		*ret_doc = d;
	return result;
}

int provider_add_first(struct tx *tx, struct arena *a, struct str federation_id)
{
	struct id id = id_new();
	struct doc d;
	json_t *p = provider_new(a, id_str(&id), "SAML", "WORKFORCE");
	json_put_z(p, "displayName", "SAML identity provider");
	return provider_insert(tx, a, federation_id, p, &d);
}

/* Reading. */

/* The connections of a federation's organizations; ret_all: also those that the caller may not see. */
static int connections(struct call *c, struct str federation_id, json_t **ret_all)
{
	json_t *org_ids, *all = json_object_get(doc_json(c->arena, STR("{\"list\":[]}")), "list");
	int result = federation_orgs(c->tx, c->arena, federation_id, &org_ids);
	for (size_t i = 0; result == 0 && i < json_array_size(org_ids); i++) {
		struct doc d;
		result = connected_org_get(c->tx, c->arena, str_of(json_string_value(json_array_get(org_ids, i))), &d);
		if (result == 0)
			json_array_append(all, connected_org_json(c->arena, &d));
	}
	if (result == 0)
		*ret_all = all;
	return result;
}

static json_t *associated(struct call *c, const json_t *all, struct str id, struct str okta)
{
	json_t *list = json_array();
	for (size_t i = 0; i < json_array_size(all); i++) {
		json_t *config = json_array_get(all, i);
		if (connected_org_uses(config, id, okta) && connected_org_visible(c, json_field(config, "orgId")))
			json_array_append(list, config);
	}
	return list;
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
	json_t *all = c->noted, *one; /* the same for all of a list */
	size_t i;
	int result = all ? 0 : connections(c, d->parent, &all);
	if (result < 0)
		return result;
	c->noted = all;
	json_put(p, "associatedOrgs", associated(c, all, d->id, okta));
	if (!provider_is_saml(p))
		return 0;
	struct str acs = saml_acs_url(c->arena, c->service->base_url, okta),
	           audience = saml_audience(c->arena, c->service->base_url, okta);
	json_put_str(p, "acsUrl", acs);
	json_put_str(p, "audienceUri", audience);
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

static bool filter_has(struct call *c, const char *name, struct str value, const char *otherwise)
{
	struct str rest = call_query(c, name), one;
	if (!rest.n)
		rest = str_of(otherwise);
	while (rest.n) {
		str_cut(rest, ',', &one, &rest);
		if (str_eq(str_trim(one), value))
			return true;
	}
	return false;
}

static bool provider_takes(struct call *c, const struct doc *d)
{
	const json_t *p = doc_json(c->arena, d->body);
	return filter_has(c, "protocol", json_field(p, "protocol"), "SAML") &&
	       filter_has(c, "idpType", json_field(p, "idpType"), "WORKFORCE");
}

int federation_get_metadata(struct call *c)
{
	struct doc d;
	struct buf xml = {0};
	int result = provider_load(c, NULL, &d);
	if (result < 0)
		return result;
	struct str okta = json_field(doc_json(c->arena, d.body), "oktaIdpId");
	saml_metadata_write(&xml, saml_acs_url(c->arena, c->service->base_url, okta),
	                    saml_audience(c->arena, c->service->base_url, okta));
	/* The answer's media type is JSON, so the document is a JSON string. */
	json_str(&c->out, buf_view(&xml));
	buf_free(&xml);
	return 0;
}

/* Writing. */

static int conflict(struct call *c, const char *field, struct str value, const char *why)
{
	call_fail(c, 409, "IDENTITY_PROVIDER_CONFLICT", "%s: \"%.*s\" %s", field, STR_ARG(value), why);
	return call_fail_param(c, arena_dup(c->arena, value));
}

static const char *shared_domain(const json_t *mine, const json_t *others)
{
	for (size_t i = 0; i < json_array_size(mine); i++)
		for (size_t k = 0; k < json_array_size(others); k++)
			if (json_equal(json_array_get(mine, i), json_array_get(others, k)))
				return json_string_value(json_array_get(mine, i));
	return NULL;
}

/* Whoever signs in must be sent to one provider, and a token must come from one. */
static int refuse_ambiguous(struct call *c, struct str federation_id, const json_t *p)
{
	static const char *const routing[] = {"protocol", "idpType", "issuerUri", "audience"};
	struct doc *docs;
	size_t count;
	int result = providers_list(c->tx, c->arena, federation_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *other = doc_json(c->arena, docs[i].body);
		if (str_eq(docs[i].id, json_field(p, "id")))
			continue;
		if (str_eq(docs[i].name, json_field(p, "displayName")))
			return conflict(c, "displayName", docs[i].name, "is taken. Choose another.");
		size_t same = 0;
		for (size_t k = 0; k < 4; k++)
			same += str_eq(json_field(p, routing[k]), json_field(other, routing[k]));
		if (same == 4 && json_field(p, "issuerUri").n)
			return conflict(c, "issuerUri", json_field(p, "issuerUri"),
			                "is another provider's, with the same audience. Change one of the two.");
		const char *domain = str_eq(json_field(p, "protocol"), json_field(other, "protocol"))
		                             ? shared_domain(json_object_get(p, "associatedDomains"),
		                                             json_object_get(other, "associatedDomains"))
		                             : NULL;
		if (domain)
			return conflict(c, "associatedDomains", str_of(domain), "is associated with another provider.");
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

/* In every organization of the federation, because all of them depend on the provider. */
static int provider_event(struct call *c, const struct doc *d)
{
	json_t *org_ids;
	int result = federation_orgs(c->tx, c->arena, d->parent, &org_ids);
	event_field(c, "identityProviderId", d->id);
	event_field(c, "displayName", d->name);
	return result < 0 ? result : federation_event(c, org_ids);
}

static const struct schema *update_schema(const char *protocol, const char *type)
{
	if (strcmp(protocol, "SAML") == 0)
		return schema_find(STR("FederationSamlIdentityProviderUpdate"));
	return schema_find(strcmp(type, "WORKLOAD") == 0 ? STR("FederationOidcWorkloadIdentityProviderUpdate")
	                                                 : STR("FederationOidcWorkforceIdentityProviderUpdate"));
}

static void create_check(struct call *c, const char *protocol, const char *type, struct faults *faults)
{
	static const char *const needed[] = {"displayName", "issuerUri"};
	bool saml = strcmp(protocol, "SAML") == 0;
	json_t *body = json_copy(c->body);
	if (saml) /* the body's own schema has no such field */
		json_put(body, "ssoDebugEnabled", json_false());
	schema_check(update_schema(protocol, type), body, SCHEMA_CREATE, c->arena, faults);
	json_decref(body);
	for (size_t i = 0; i < (saml ? 1u : 2u); i++)
		if (!json_object_get(c->body, needed[i]))
			faults_add(faults, c->arena, str_of(needed[i]), "is required");
	if (saml && strcmp(type, "WORKFORCE") != 0)
		faults_add(faults, c->arena, STR("idpType"), "must be WORKFORCE with the protocol SAML");
}

static int provider_create(struct call *c, json_t *document)
{
	const char *protocol = json_string_value(json_object_get(c->body, "protocol")),
	           *type = json_string_value(json_object_get(c->body, "idpType"));
	struct faults faults = {.count = 0};
	protocol = protocol ? protocol : "OIDC";
	type = type ? type : "WORKFORCE";
	json_t *provider = provider_new(c->arena, json_field(document, "id"), protocol, type);
	create_check(c, protocol, type, &faults);
	if (!faults.count)
		provider_set_fields(c, c->body, provider, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	struct str federation_id = call_path(c, "federationSettingsId");
	int result = resource_limit(c, &resource_identity_provider, federation_id, 1);
	json_object_clear(document);
	json_object_update(document, provider);
	return result < 0 ? result : refuse_ambiguous(c, federation_id, provider);
}

static int slug_set(struct call *c, struct str old, struct str slug, struct str id)
{
	if (str_eq(old, slug))
		return 0;
	int result = ref_drop(c->tx, REF_SLUG, old);
	if (result == 0 && slug.n)
		result = tx_ref_put(c->tx, REF_SLUG, slug, id);
	return result == -EEXIST ? conflict(c, "slug", slug, "is taken. Choose another.") : result;
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

static int provider_update(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	json_t *provider = doc_json(c->arena, old->body);
	const json_t *protocol = json_object_get(provider, "protocol"), *type = json_object_get(provider, "idpType");
	schema_check(update_schema(json_string_value(protocol), json_string_value(type)), c->body, SCHEMA_UPDATE,
	             c->arena, &faults);
	if (!faults.count)
		provider_set_fields(c, c->body, provider, &faults);
	if (!faults.count)
		provider_check_whole(c, provider, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	json_object_set(provider, "updatedAt", json_object_get(document, "updatedAt"));
	json_object_clear(document);
	json_object_update(document, provider);
	int result = refuse_ambiguous(c, old->parent, provider);
	if (result < 0)
		return result;
	const json_t *before = doc_json(c->arena, old->body);
	return slug_set(c, json_field(before, "slug"), json_field(provider, "slug"), old->id);
}

static int provider_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	struct str okta = json_field(document, "oktaIdpId");
	d->body = json_text(c->arena, document);
	int result = resource_put(c->tx, d, old);
	return result < 0 || old || !okta.n ? result : tx_ref_put(c->tx, REF_OKTA, okta, d->id);
}

static int provider_written(struct call *c, const struct doc *d, const struct doc *old)
{
	const json_t *provider = doc_json(c->arena, d->body), *before = old ? doc_json(c->arena, old->body) : NULL;
	int result = 0;
	if (!provider_is_saml(provider) && !str_eq(json_field(before, "issuerUri"), json_field(provider, "issuerUri")))
		result = keys_renew(c, d, provider);
	if (result < 0)
		return result;
	return old ? update_events(c, d, before, provider) : provider_event(c, d);
}

static int provider_remove(struct call *c, const struct doc *d)
{
	json_t *all;
	size_t users = 0;
	struct str okta = json_field(doc_json(c->arena, d->body), "oktaIdpId");
	int result = connections(c, d->parent, &all);
	if (result < 0)
		return result;
	for (size_t i = 0; i < json_array_size(all); i++)
		users += connected_org_uses(json_array_get(all, i), d->id, okta);
	if (users) {
		call_fail(c, 409, "IDENTITY_PROVIDER_IN_USE",
		          "The identity provider is connected to %zu organizations. Disconnect them first.", users);
		return call_fail_param(c, d->id);
	}
	return provider_event(c, d);
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
                                                       .takes = provider_takes,
                                                       .leaf = provider_leaf};

int federation_revoke_keys(struct call *c)
{
	struct doc d;
	int result = provider_load(c, NULL, &d);
	if (result < 0)
		return result;
	const json_t *provider = doc_json(c->arena, d.body);
	if (provider_is_saml(provider)) {
		call_fail(c, 400, "IDENTITY_PROVIDER_HAS_NO_KEYS",
		          "Only OIDC identity providers have signing keys; this one is SAML.");
		return call_fail_param(c, call_path(c, "identityProviderId"));
	}
	result = keys_renew(c, &d, provider);
	return result < 0 ? result : provider_event(c, &d);
}
