/* The organizations of a federation, and whom they take. */
#ifndef STEWARD_API_FEDERATION_MEMBERSHIP_H
#define STEWARD_API_FEDERATION_MEMBERSHIP_H

#include "call/call.h"

#define OKTA_BYTES 10
#define OKTA_LEN (2ul * OKTA_BYTES)
#define PROVIDER_OKTA_KIND "identity_provider_okta" /* refs from oktaIdpId */

/* The organizations of a federation: their "connected_org" documents, in the order in which they came. */
must_check int connected_orgs(struct tx *tx, struct arena *a, struct str federation_id, struct doc **ret_docs,
                              size_t *ret_count);
/* A new connection, without any provider. */
must_check int connected_org_add(struct tx *tx, struct str federation_id, struct str org_id);
/* The provider with which the organization's people sign in; *ret_provider is NULL when there is none. */
must_check int connected_org_provider(struct tx *tx, struct arena *a, const struct doc *d, json_t **ret_provider);
/* Whether the connection uses the identity provider. */
bool connected_org_uses(const json_t *config, struct str provider_id, struct str okta_id);
/* Whether the caller may see the organization's part in a federation. */
bool connected_org_visible(const struct call *c, struct str org_id);

/* A list of domain names as it is kept: lower case, each once. What is none is added to the faults with its path. */
json_t *domains_read(struct call *c, const json_t *list, const char *path, struct faults *faults);
/* By id or oktaIdpId. -ENOENT when the federation has none such. */
must_check int provider_get(struct tx *tx, struct arena *a, struct str federation_id, struct str id,
                            struct doc *ret_doc);

/* Whom an organization takes as members. */
struct admission {
	bool restricted;
	const json_t *domains, *of_provider;
};
/* Of a "connected_org". */
must_check int admission_read(struct call *c, const struct doc *d, struct admission *ret);
bool admission_takes(struct arena *a, const struct admission *admission, struct str email);

#endif
