/* OpenID Connect, as the relying party: authorization requests (code flow with PKCE), and ID tokens. Pure code;
 * identity/oidc_fetch.h talks to providers. */
#ifndef STEWARD_IDENTITY_OIDC_H
#define STEWARD_IDENTITY_OIDC_H

#include "base/arena.h"

#include <jansson.h>

#define OIDC_TOKEN_MAX 32768 /* bytes of an ID token */
#define OIDC_SECRET_TEXT 44  /* 32 random bytes as base64url, with the NUL */

/* A new state, nonce or code verifier. */
void oidc_secret_make(char ret_text[OIDC_SECRET_TEXT]);
/* The S256 challenge of a verifier. */
void oidc_challenge(struct str verifier, char ret_text[OIDC_SECRET_TEXT]);

/* Appends "name=value" with its '&', percent-encoded. */
struct buf;
void oidc_parameter(struct buf *b, const char *name, struct str value);

struct oidc_request {
	struct str endpoint; /* the provider's authorization endpoint */
	struct str client_id, redirect_uri, state, nonce, verifier, login_hint;
	const json_t *scopes; /* beside "openid", or NULL */
};
/* Where the browser is sent. */
struct str oidc_request_url(struct arena *a, const struct oidc_request *r);

struct oidc_expected {
	struct str issuer, client_id, nonce;
	int64_t now_ms; /* of the machine's clock */
};
enum oidc_verdict {
	OIDC_RIGHT,
	OIDC_WRONG,
	OIDC_KEY_UNKNOWN /* the token names a key that is not among them: the provider may have a new one */
};
/* Verifies an ID token: its signature by one of the keys (as jwks_public() keeps them), issuer, audience, authorized
 * party, times and nonce. *ret_claims is freed with the arena; *ret_fault says what is wrong, for the log. */
enum oidc_verdict oidc_token_verify(struct arena *a, const json_t *keys, struct str token,
                                    const struct oidc_expected *expected, json_t **ret_claims, const char **ret_fault);

#endif
