/* New credentials: API keys and service accounts with their documents as gate/authenticate.h describes them. */
#ifndef STEWARD_API_CREDENTIALS_H
#define STEWARD_API_CREDENTIALS_H

#include "gate/call.h"

/* Empty fields are made; filled ones are used as they are (a reset brings the first credentials back). */
struct new_key {
	struct str id, public_key, private_key; /* the private key is shown once and kept only as hashes */
	struct str body;                        /* the document, without the private key */
};
/* roles: [{"orgId"|"groupId", "roleName"}] */
must_check int credential_add_key(struct tx *tx, struct arena *a, struct str org_id, struct str description, json_t *roles,
				  struct new_key *key);

struct new_account {
	struct str id, client_id, secret_id, secret;
	struct str body, secret_body; /* the documents; the secret is not in them */
};
/* roles: ["ORG_OWNER"]; grants: roles elsewhere, as for keys, or NULL */
must_check int credential_add_account(struct tx *tx, struct arena *a, struct str org_id, struct str name,
				      struct str description, json_t *roles, json_t *grants, int64_t secret_hours,
				      struct new_account *account);

/* One entry of a credential's access list. */
must_check int credential_add_access(struct tx *tx, struct arena *a, struct str owner_id, const struct cidr *network);

/* Gives the caller one more role; scope_field is "orgId" or "groupId". */
must_check int credential_grant(struct tx *tx, struct arena *a, const struct principal *p, const char *scope_field,
				struct str scope_id, const char *role);

/* All credentials of an organization, with secrets and access lists: gone. */
must_check int credential_delete_all(struct tx *tx, struct arena *a, struct str org_id);

/* A service account's document as the API returns it, with its secrets; `fresh` shows the new secret once. */
json_t *credential_account_json(struct arena *a, const struct new_account *fresh);

#endif
