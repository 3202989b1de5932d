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

/* The SAML provider that a federation starts with: INACTIVE, to be configured. */
must_check int provider_add_first(struct tx *tx, struct arena *a, struct str federation_id);

/* provider_fields.c: brings the fields of the call's checked body, which are in `document` already, into the form that
 * is kept. Adds to the faults, with their paths, the values that are not what they must be; `provider` is what it was,
 * or the document itself where it is new. */
void provider_fields_check(struct call *c, const json_t *provider, json_t *document, struct faults *faults);
/* What the provider as a whole lacks: an active SAML provider has all that a sign-in needs. */
void provider_check_whole(struct call *c, const json_t *provider, struct faults *faults);
bool provider_is_saml(const json_t *provider);

#endif
