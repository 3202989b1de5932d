/* API keys and service accounts as the API shows and changes them, and their access lists. */
#ifndef STEWARD_API_CREDENTIALS_CREDENTIALS_H
#define STEWARD_API_CREDENTIALS_CREDENTIALS_H

#include "api/kit/verbs.h"
#include "identity/credentials.h"

/* secretExpiresAfterHours of an object, within what the organization permits; path: the object's in the body, with its
 * point, or "". 400. */
must_check int credential_secret_hours(struct call *c, struct str org_id, const json_t *from, const char *path,
                                       int64_t *ret_hours);

/* As the API returns them: a key with its roles everywhere, an account with its roles in its organization and its
 * secrets. The caller adds the secret that is shown once. Freed with the arena. */
must_check int credential_key_json(struct tx *tx, struct arena *a, struct str body, json_t **ret_key);
must_check int credential_account_json(struct tx *tx, struct arena *a, const struct doc *account, json_t **ret_account);
/* The same added to the stored form: a key's roles, of projects only those in group_id (empty: in all); an account's
 * roles in a scope, and its secrets. */
must_check int credential_key_roles(struct tx *tx, struct arena *a, struct str id, struct str group_id, json_t *key);
must_check int credential_account_more(struct tx *tx, struct arena *a, struct str id, struct str scope,
                                       json_t *account);

/* For the hooks of both families. What the call wants beyond the document: c->noted of a write. */
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

#endif
