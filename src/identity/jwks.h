/* The signing keys of OIDC providers, fetched over HTTPS from their issuers (OpenID Connect Discovery) and kept.
 *
 *   "idp_jwks"  id = provider, parent = federation; body {"issuerUri","fetchedAt","keys":[public JWKs],
 *               "authorizationEndpoint"?,"tokenEndpoint"?}
 *   "jwks_due"  id = provider, parent none or "retry": to be fetched;
 *               body {"federationId","issuerUri","ask","dueMs","failures"}
 *
 * What is to be fetched is written in the transaction of the change that asks for it. Threads of their own do it: no
 * call, no loop and no write waits for an issuer. */
#ifndef STEWARD_IDENTITY_JWKS_H
#define STEWARD_IDENTITY_JWKS_H

#include "identity/issuer.h"
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

/* For a sign-in that needs them now: the issuer's endpoints and keys, as the body of "idp_jwks"; NULL, with why in
 * ret_fault, when it does not give them. Freed with the arena. Blocks for as long as two requests may take; `how` has
 * all of them but the URL. */
json_t *jwks_fetch(const struct issuer_request *how, struct arena *a, struct str issuer, char ret_fault[ISSUER_FAULT]);
/* In a write: keeps what was fetched for a provider instead of its kept keys of that revision. Does nothing when these
 * have changed or gone meanwhile: they may have been revoked. */
must_check int jwks_keep(struct tx *tx, struct arena *a, struct str provider_id, int64_t rev, const json_t *fetched);
/* The certificates to trust, as given to jwks_open(). */
const char *jwks_ca_file(const struct jwks *j);

/* The public keys of a key set that we can verify signatures with; NULL when it is none. Owned. */
json_t *jwks_public(const json_t *set);

#endif
