/* Identity providers of a federation.
 *
 *   "identity_provider"  parent = federation, name = displayName; body: the provider's fields as the schemas have them,
 *                        without what is made at each reading (acsUrl, audienceUri, associatedOrgs), and with the
 *                        certificates' texts. A SAML provider has an oktaIdpId, its older name in paths and bodies.
 *   refs "identity_provider_okta" (oktaIdpId) and "identity_provider_slug" -> id
 *   "idp_jwks", "jwks_due"  see identity/jwks.h */
#ifndef STEWARD_API_FEDERATION_IDENTITY_PROVIDERS_H
#define STEWARD_API_FEDERATION_IDENTITY_PROVIDERS_H

#include "call/call.h"

#define IDENTITY_PROVIDERS_MAX 50 /* of one federation */

/* The SAML provider that a federation starts with: INACTIVE, to be configured. */
must_check int provider_add_first(struct tx *tx, struct arena *a, struct str federation_id);
/* With its references and keys. */
must_check int provider_delete(struct tx *tx, struct arena *a, const struct doc *d);
/* All of a federation. */
must_check int providers_list(struct tx *tx, struct arena *a, struct str federation_id, struct doc **ret_docs,
                              size_t *ret_count);
must_check int providers_delete(struct tx *tx, struct arena *a, struct str federation_id);
/* By id or oktaIdpId. -ENOENT when the federation has none such. */
must_check int provider_get(struct tx *tx, struct arena *a, struct str federation_id, struct str id,
                            struct doc *ret_doc);

/* provider_fields.c: puts the fields of a checked body into the provider's document. Adds to the faults, with their
 * paths, the values that are not what they must be. */
void provider_set_fields(struct call *c, const json_t *body, json_t *provider, struct faults *faults);
/* What the provider as a whole lacks: an active SAML provider has all that a sign-in needs. */
void provider_check_whole(struct call *c, const json_t *provider, struct faults *faults);
bool provider_is_saml(const json_t *provider);

#endif
