/* Accounts of people, and who may know of them.
 *
 *   "user"  id; ref "user_name" (lower case) -> id; secret: the password's hash, or empty; body: CloudAppUser without
 *           roles, teams and password */
#ifndef STEWARD_IDENTITY_ACCOUNTS_H
#define STEWARD_IDENTITY_ACCOUNTS_H

#include "call/call.h"
#include "identity/grants.h"

/* The id of the account with that (lower-case) name, or the one that it will have: the same from the first invitation
 * on. */
must_check int user_id_of(struct tx *tx, struct arena *a, struct str username, struct str *ret_id);
/* A new account. `profile` may hold firstName, lastName, country and mobileNumber. -EEXIST. */
must_check int user_add(struct tx *tx, struct arena *a, struct str username, const json_t *profile,
                        struct str password_hash, struct doc *ret_user);
/* firstName, lastName, country and mobileNumber, where the profile has them. */
void user_profile_set(json_t *body, const json_t *profile);
/* Whether the owner of the address has ever answered from it: only then is the account's password its owner's. */
bool user_is_proven(struct arena *a, const struct doc *user);
/* The user has just proved who it is: lastAuth. */
must_check int user_signed_in(struct tx *tx, struct arena *a, struct str user_id);

bool user_is_caller(const struct call *c, struct str user_id);
/* Whether the caller may know of the user at all; of a key or an account: whether it shares a place with it. */
must_check int user_is_visible(struct call *c, struct str user_id, bool *ret_visible);
/* The user's grants that the caller may know of. */
must_check int grants_known(struct call *c, struct str user_id, struct grant_row **ret_rows, size_t *ret_count);
/* Leaves the grants of places that the caller is in. */
must_check int grants_shared(struct call *c, struct grant_row *rows, size_t *count);
/* The organization of a grant's scope, and what the caller has in the scope. -ENOENT: the project is gone. */
must_check int grant_caller(struct call *c, const struct grant_row *row, struct str *ret_org, role_mask *ret_roles);

#endif
