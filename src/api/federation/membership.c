/* Which organizations a federation has, what they use of its providers, and whom they take as members. */
#include "api/federation/membership.h"

#include "api/federation/federation.h"
#include "api/kit/verbs.h"
#include "catalog/formats.h"

#include <errno.h>

#define DOMAINS_MAX 500 /* of one list */

int provider_get(struct tx *tx, struct arena *a, struct str federation_id, struct str id, struct doc *ret_doc)
{
	struct doc d;
	int result = id.n == OKTA_LEN ? tx_ref_get(tx, a, PROVIDER_OKTA_KIND, id, &id) : 0;
	if (result == 0)
		result = tx_get(tx, a, "identity_provider", id, &d);
	if (result < 0 || !str_eq(d.parent, federation_id))
		return result < 0 ? result : -ENOENT;
	*ret_doc = d;
	return 0;
}

int connected_orgs(struct tx *tx, struct arena *a, struct str federation_id, struct doc **ret_docs, size_t *ret_count)
{
	return tx_list_all(tx, a, "connected_org", federation_id, ret_docs, ret_count);
}

int connected_org_add(struct tx *tx, struct str federation_id, struct str org_id)
{
	return doc_insert(tx, "connected_org", org_id, federation_id, STR_NONE,
	                  STR("{\"dataAccessIdentityProviderIds\":[],\"domainAllowList\":[],"
	                      "\"domainRestrictionEnabled\":false,\"instantUserProvisioningDisabled\":false,"
	                      "\"postAuthRoleGrants\":[]}"));
}

bool connected_org_uses(const json_t *config, struct str provider_id, struct str okta_id)
{
	return (okta_id.n && str_eq(json_field(config, "identityProviderId"), okta_id)) ||
	       json_has(json_object_get(config, "dataAccessIdentityProviderIds"), provider_id);
}

bool connected_org_visible(const struct call *c, struct str org_id)
{
	return principal_org_roles(c->caller, org_id) & c->op->roles;
}

int connected_org_provider(struct tx *tx, struct arena *a, const struct doc *d, json_t **ret_provider)
{
	struct str okta = json_field(doc_json(a, d->body), "identityProviderId");
	struct doc provider;
	int result = okta.n ? provider_get(tx, a, d->parent, okta, &provider) : 0;
	if (result == 0)
		*ret_provider = okta.n ? doc_json(a, provider.body) : NULL;
	return result;
}

/* --- domains */

json_t *domains_read(struct call *c, const json_t *list, const char *path, struct faults *faults)
{
	json_t *kept = json_keep(c->arena, json_array());
	if (faults_too_many(faults, c->arena, str_of(path), list, DOMAINS_MAX))
		return kept;
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str at = arena_printf(c->arena, "%s[%zu]", path, i);
		struct str domain = arena_lower(c->arena, json_item(list, i));
		if (!domain_fits(domain))
			faults_add(faults, c->arena, at, "must be a domain name such as example.com");
		else if (json_has(kept, domain))
			faults_add(faults, c->arena, at, "must not repeat an earlier item");
		else
			json_add_str(kept, domain);
	}
	return kept;
}

int admission_read(struct call *c, const struct doc *d, struct admission *ret)
{
	const json_t *config = doc_json(c->arena, d->body);
	json_t *provider = NULL;
	bool restricted = json_is_true(json_object_get(config, "domainRestrictionEnabled"));
	int result = restricted ? connected_org_provider(c->tx, c->arena, d, &provider) : 0;
	if (result == 0)
		*ret = (struct admission){restricted, json_object_get(config, "domainAllowList"),
		                          json_object_get(provider, "associatedDomains")};
	return result;
}

bool admission_takes(struct arena *a, const struct admission *admission, struct str email)
{
	const char *at = email.n ? memrchr(email.p, '@', email.n) : NULL;
	if (!admission->restricted || !at)
		return !admission->restricted;
	struct str domain = arena_lower(a, (struct str){at + 1, email.n - (size_t)(at + 1 - email.p)});
	return json_has(admission->domains, domain) || json_has(admission->of_provider, domain);
}

int federation_admit(struct call *c, struct str org_id, struct str email)
{
	struct doc d;
	struct admission admission = {.restricted = false};
	int result = tx_get(c->tx, c->arena, "connected_org", org_id, &d);
	if (result == -ENOENT)
		return 0;
	if (result == 0)
		result = admission_read(c, &d, &admission);
	if (result < 0 || admission_takes(c->arena, &admission, email))
		return result;
	return call_fail_about(c, 400, "USER_DOMAIN_NOT_ALLOWED", email,
	                       "The organization takes only members of its domains, and \"%.*s\" is of none of them.",
	                       STR_ARG(email));
}
