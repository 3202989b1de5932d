/* New credentials: API keys and service accounts with their documents as gate/authenticate.h describes them. */
#ifndef STEWARD_API_CREDENTIALS_H
#define STEWARD_API_CREDENTIALS_H

#include "gate/call.h"
#include "gate/grants.h"

/* Empty fields are made; filled ones are used as they are (a reset brings the first credentials back). */
struct new_key {
	struct str id, public_key, private_key; /* the private key is shown once and kept only as hashes */
	struct str body;                        /* the document, with all but the end of the private key masked */
};
must_check int credential_add_key(struct tx *tx, struct arena *a, struct str org_id, struct str description,
                                  const struct grant_row *grants, size_t grant_count, struct new_key *key);

struct new_account {
	struct str id, client_id, secret_id, secret;
	struct str body, secret_body; /* the documents; the secret is not in them */
};
must_check int credential_add_account(struct tx *tx, struct arena *a, struct str org_id, struct str name,
                                      struct str description, const struct grant_row *grants, size_t grant_count,
                                      int64_t secret_hours, struct new_account *account);

/* One more secret for the account with account->id; sets secret_id, secret and secret_body. */
must_check int credential_add_secret(struct tx *tx, struct arena *a, int64_t hours, struct new_account *account);

/* secretExpiresAfterHours of an object, within what the organization permits; path: the object's in the body, with its
 * point, or "". 400. */
must_check int credential_secret_hours(struct call *c, struct str org_id, const json_t *from, const char *path,
                                       int64_t *ret_hours);

/* In a project: 403 with that code unless all that the credential may do is in the project, or the caller owns the
 * organization. `what` begins the sentence: "The API key". */
must_check int credential_check_ours(struct call *c, struct str id, const char *code, const char *what);

/* One entry of a credential's access list. */
must_check int credential_add_access(struct tx *tx, struct arena *a, struct str owner_id, const struct cidr *network);

/* Gives the caller one more role. */
must_check int credential_grant(struct tx *tx, struct arena *a, const struct principal *p, bool in_org,
                                struct str scope_id, const char *role);

/* All credentials of an organization, with secrets and access lists: gone. */
must_check int credential_delete_all(struct tx *tx, struct arena *a, struct str org_id);

/* Every credential of one kind ("api_key", "service_account") with what hangs on it: grants, secrets, access list. */
must_check int credential_delete(struct tx *tx, struct arena *a, enum grantee who, const struct doc *d);

/* As the API returns them: a key with its roles everywhere, an account with its roles in its organization and its
 * secrets. The caller adds the secret that is shown once. Freed with the arena. */
must_check int credential_key_json(struct tx *tx, struct arena *a, struct str body, json_t **ret_key);
must_check int credential_account_json(struct tx *tx, struct arena *a, const struct doc *account, json_t **ret_account);

#endif
