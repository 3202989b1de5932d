/* New credentials: API keys and service accounts with their documents as identity/identity.h describes them. */
#ifndef STEWARD_API_CREDENTIALS_CREDENTIALS_H
#define STEWARD_API_CREDENTIALS_CREDENTIALS_H

#include "api/kit/verbs.h"
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

/* secretExpiresAfterHours of an object, within what the organization permits; path: the object's in the body, with its
 * point, or "". 400. */
must_check int credential_secret_hours(struct call *c, struct str org_id, const json_t *from, const char *path,
                                       int64_t *ret_hours);

/* One entry of a credential's access list. */
must_check int credential_add_access(struct tx *tx, struct arena *a, struct str owner_id, const struct cidr *network);

/* Gives the caller one more role. */
must_check int credential_grant(struct tx *tx, struct arena *a, const struct principal *p, bool in_org,
                                struct str scope_id, const char *role);

/* As the API returns them: a key with its roles everywhere, an account with its roles in its organization and its
 * secrets. The caller adds the secret that is shown once. Freed with the arena. */
must_check int credential_key_json(struct tx *tx, struct arena *a, struct str body, json_t **ret_key);
must_check int credential_account_json(struct tx *tx, struct arena *a, const struct doc *account, json_t **ret_account);
/* The same added to the stored form: a key's roles, of projects only those in group_id (empty: in all); an account's
 * roles in a scope, and its secrets. */
must_check int credential_key_roles(struct tx *tx, struct arena *a, struct str id, struct str group_id, json_t *key);
must_check int credential_account_more(struct tx *tx, struct arena *a, struct str id, struct str scope,
                                       json_t *account);

/* hooks.c: for the hooks of both families. What the call wants beyond the document: c->noted of a write. */
struct credential_wish {
	role_mask roles;   /* in the call's scope; 0: as they are */
	int64_t hours;     /* for which a new secret is valid */
	struct str secret; /* the new one, which the answer shows */
};
struct credential_wish *credential_wish(struct call *c);
/* One of the scope's organization; assigned: only if it has roles in the call's project. */
must_check int credential_load(struct call *c, const struct resource *r, struct str id, bool assigned,
                               struct doc *ret_doc);
/* In a project: 403 unless all that the credential may do is in the project, or the caller owns the organization. */
must_check int credential_check_ours(struct call *c, const struct doc *d);
/* Adds to the roles in the call's project. */
must_check int credential_assign(struct call *c, const struct doc *d, role_mask more);
/* The hooks of struct resource_hooks. */
must_check int credential_segments(struct call *c, struct segment **ret_list, size_t *ret_count);
must_check int credential_create(struct call *c, json_t *document);
must_check int credential_update(struct call *c, const struct doc *old, json_t *document);
must_check int credential_written(struct call *c, const struct doc *d, const struct doc *old);
must_check int credential_drop(struct call *c, const struct doc *d);
must_check int credential_gone(struct tx *tx, struct arena *a, const struct doc *d);

/* Access lists of API keys and service accounts: the addresses from which a credential may be used. And the reading of
 * networks from bodies and paths, which the project's access list shares. */

/* A network ("10.0.0.0/8") or an address, as the API takes them: "%2F" may stand for the slash. */
must_check bool network_parse(struct arena *a, struct str text, struct cidr *ret_network);
/* What stands for an entry in a path, from its name in the store: the address, or the network. */
struct str network_key(struct arena *a, struct str name);
/* The network that exactly one of cidrBlock and ipAddress of entry `index` of the body gives. Otherwise adds a fault
 * that names the path, and returns false. */
must_check bool network_read(struct call *c, const json_t *entry, size_t index, struct faults *faults,
                             struct cidr *ret_network);

#endif
