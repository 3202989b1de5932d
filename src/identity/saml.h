/* SAML: what identity providers must know of the service, which is a service provider to them; requests to them; and
 * their answers, which steward-saml (src/saml) verifies. */
#ifndef STEWARD_IDENTITY_SAML_H
#define STEWARD_IDENTITY_SAML_H

#include "base/arena.h"
#include "base/buf.h"

#include <jansson.h>

/* Where a provider sends its answers, and the name by which it knows us. */
struct str saml_acs_url(struct arena *a, const char *base_url, struct str okta_id);
struct str saml_audience(struct arena *a, const char *base_url, struct str okta_id);

/* The document that an identity provider's administrator loads to know us: an EntityDescriptor. */
void saml_metadata_write(struct buf *b, struct arena *a, const char *base_url, struct str okta_id);

/* Whether answers can be verified: steward-saml is an optional part. */
bool saml_is_installed(void);

/* Where the browser is sent: the provider's ssoUrl with a request (HTTP-Redirect binding) of that id. */
struct str saml_request_url(struct arena *a, const char *base_url, const json_t *provider, struct str request_id);

/* Verifies an answer (base64, as a provider's form brings it). Blocks for up to ten seconds: never on a loop or in a
 * write. {"nameId","inResponseTo","id","attributes"}, freed with the arena; NULL, with why in *ret_fault. */
json_t *saml_verify(struct arena *a, const char *base_url, const json_t *provider, struct str response,
                    const char **ret_fault);

#endif
