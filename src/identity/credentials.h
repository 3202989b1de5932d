/* Making credentials: API keys and service accounts, with their documents as identity/identity.h describes them. */
#ifndef STEWARD_IDENTITY_CREDENTIALS_H
#define STEWARD_IDENTITY_CREDENTIALS_H

#include "base/ip.h"
#include "call/principal.h"
#include "identity/grants.h"

/* Empty fields are made; filled ones are used as they are (a reset brings the first credentials back). */
struct new_key {
	struct str id, public_key, private_key; /* the private key is shown once and kept only as hashes */
	struct str body;                        /* the document, with all but the end of the private key masked */
};
must_check int credential_add_key(struct tx *tx, struct arena *a, struct str org_id, struct str description,
                                  const struct grant_row *grants, size_t grant_count, struct new_key *key);

struct new_account {
	struct str id, client_id, secret_id, secret;
	struct str body; /* the document; the secret is not in it */
};
must_check int credential_add_account(struct tx *tx, struct arena *a, struct str org_id, struct str name,
                                      struct str description, const struct grant_row *grants, size_t grant_count,
                                      int64_t secret_hours, struct new_account *account);

/* A new secret: its document's times and what is shown of it later, and the text itself where there is none; then the
 * insert, with the text's hash. */
void credential_secret_fill(struct arena *a, int64_t hours, json_t *document, struct str *secret);
must_check int credential_secret_insert(struct tx *tx, struct doc *d, struct str secret);

/* One entry of a credential's access list. */
must_check int credential_add_access(struct tx *tx, struct arena *a, struct str owner_id, const struct cidr *network);

/* Gives the caller one more role. */
must_check int credential_grant(struct tx *tx, struct arena *a, const struct principal *p, bool in_org,
                                struct str scope_id, const char *role);

/* Before a key or an account is deleted: its public name, its roles, and who has seen its secrets are forgotten. */
must_check int credential_gone(struct tx *tx, struct arena *a, const struct doc *d);

#endif
