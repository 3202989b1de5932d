/* The signing keys of OIDC providers, fetched over HTTPS from their issuers (OpenID Connect Discovery) and kept.
 *
 *   "idp_jwks"  id = provider, parent = federation; body {"issuerUri","fetchedAt","keys":[public JWKs]}
 *   "jwks_due"  id = provider, parent none or "retry": to be fetched;
 *               body {"federationId","issuerUri","ask","dueMs","failures"}
 *
 * What is to be fetched is written in the transaction of the change that asks for it. Threads of their own do it: no
 * call, no loop and no write waits for an issuer. */
#ifndef STEWARD_IDENTITY_JWKS_H
#define STEWARD_IDENTITY_JWKS_H

#include "store/store.h"

#include <jansson.h>

struct jwks;

/* ca_file: certificates to trust beside the system's, or NULL. */
must_check int jwks_open(struct store *store, const char *ca_file, struct jwks **ret_jwks);
/* Ends transfers that are under way. Before the store is closed. Accepts NULL. */
void jwks_close(struct jwks *j);
/* Something new may be due. From any thread; accepts NULL. */
void jwks_wake(struct jwks *j);

/* In a write: the keys are not trusted any more and are fetched anew, soon after the commit. */
must_check int jwks_renew(struct tx *tx, struct arena *a, struct str provider_id, struct str federation_id,
                          struct str issuer);
/* In a write: the provider is gone. */
must_check int jwks_forget(struct tx *tx, struct str provider_id);

/* The public keys of a key set that we can verify signatures with; NULL when it is none. Owned. */
json_t *jwks_public(const json_t *set);

#endif
