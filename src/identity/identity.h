/* Credentials: bearer tokens of service accounts (OAuth 2.0 client credentials) and digest API keys (RFC 7616).
 *
 * Documents (store kinds) they read; the secret column is sealed with the context "<kind>/<id>":
 *   "api_key"          id, parent = organization, name none; ref "api_key_public" -> id;
 *                      body: {"id","desc","publicKey"}
 *                      secret (sealed): {"md5": HA1, "sha256": HA1} for realm DIGEST_REALM
 *   "service_account"  id, parent = organization; ref "service_account_client" -> id;
 *                      body: {"clientId","name","description","createdAt"}
 *   "sa_secret"        id, parent = service account id; body: {"id","createdAt","expiresAt","maskedSecretValue",
 *                      "lastUsedAt"?}; secret: SHA-256 of the secret as hexadecimal
 *   "user_session"     id, parent = user id; body: {"expiresAt"?,...}: a user who has signed in (sessions.h)
 *   "api_access"       id, parent = id of the key or account; name = the CIDR text; body: {"cidrBlock",...}
 *   "org_settings"     id = organization; body: OrganizationSettings; "apiAccessListRequired": true demands a list,
 *                      "multiFactorAuthRequired" of people a second factor
 *   "token_revoked"    id = the unique id inside the token; body {"expiresAtMs"} */
#ifndef STEWARD_IDENTITY_IDENTITY_H
#define STEWARD_IDENTITY_IDENTITY_H

#include "base/id.h"
#include "call/service.h"

#define DIGEST_REALM "Steward"
#define TOKEN_SECONDS 3600

/* principal_load.c. Builds the snapshot of a credential's document from the store. -ENOENT when it is gone. */
must_check int principal_load(struct tx *tx, enum principal_kind kind, struct str id, struct principal **ret_principal);

/* In the place of a user, the same user without roles where a second factor is demanded: for a session that was begun
 * without one. */
must_check int principal_weaken(struct tx *tx, struct principal **p);

/* Caches of one loop: callers by their tokens, and API keys. */
struct token_cache *token_cache_new(void);
void token_cache_free(struct token_cache *t);
struct nonce_window *nonce_window_new(void);
void nonce_window_free(struct nonce_window *w);

/* tokens.c: a signed token for a service account and the secret it was got with. */
struct str token_issue(struct arena *a, struct str account_id, struct str secret_id, int64_t expires_ms);
struct token {
	struct id account_id, secret_id, unique; /* unique: names it in "token_revoked" */
	int64_t expires_ms;
};
/* Checks signature and form only; the caller must check the time and the store. */
must_check bool token_parse(struct str text, struct token *ret_token);
/* The caller behind a bearer token, owned by our caller. -EACCES: not a token in force; -EIO. */
must_check int token_caller(struct service *s, struct token_cache *t, struct tx *tx, struct str text,
                            struct principal **ret_caller);
/* The same for a caller whose credentials another host of the service has seen. -ENOENT: there is none of that id. */
must_check int known_caller(struct service *s, struct token_cache *t, struct tx *tx, enum principal_kind kind,
                            struct str id, struct principal **ret_caller);
/* False when the document of a secret (kind "sa_secret") says that it has expired. ret_ms: when it expires. */
must_check bool secret_in_force(const struct doc *secret, int64_t *ret_ms);
struct key_cache *token_cache_keys(struct token_cache *t);

/* digest.c */
struct digest_header {
	struct str username, realm, nonce, uri, response, opaque, algorithm, qop, cnonce, nc;
	bool username_hash; /* userhash=true */
};
must_check bool digest_parse(struct str header_value, struct arena *a, struct digest_header *ret_digest);
/* Hexadecimal HA1 of a new key, to be stored. */
void digest_ha1(bool sha256, struct str username, struct str password, char ret_hex[65]);
struct key_cache *key_cache_new(void);
void key_cache_free(struct key_cache *k);
/* The key of a public and private key given as plain text, owned by the caller. -EACCES: no such pair; -EIO. */
must_check int digest_prove(struct tx *tx, struct arena *a, struct str public_key, struct str private_key,
                            struct principal **ret_key);
/* The caller behind a digest header, owned by our caller. -EACCES: wrong; -ESTALE: right, but the nonce is used up;
 * -EBUSY: too many attempts have failed, c->limit.retry_after says how long to wait; -EIO. */
must_check int digest_caller(struct call *c, struct str header_value, struct principal **ret_caller);

/* nonces.c: nonces are signed, so that a challenge stores nothing; only used nonces are remembered. */
#define NONCE_TEXT 41
#define NONCE_SECONDS 300
void nonce_issue(struct nonce_window *w, char ret_nonce[NONCE_TEXT]);
/* True once for each count of a nonce of ours in its lifetime. A later request may overtake an earlier one by up to
 * 63. */
must_check bool nonce_use(struct nonce_window *w, struct str nonce, uint32_t count);

#endif
