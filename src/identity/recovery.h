/* Recovery codes: ten random codes, each of which stands once for the second step of signing in. Almost 80 random bits
 * each, so a plain hash keeps them.
 *
 *   "user_recovery"  id = user; secret: JSON array of SHA-256 hashes; body {"left","madeMs"?} */
#ifndef STEWARD_IDENTITY_RECOVERY_H
#define STEWARD_IDENTITY_RECOVERY_H

#include "store/store.h"

#include <jansson.h>

#define RECOVERY_CODES 10

/* In a write: new codes in the place of the old ones, added to the list as texts. */
must_check int recovery_make(struct tx *tx, struct arena *a, struct str user_id, json_t *codes);
/* In a write. Spaces, dashes and case do not count. -EACCES: no code of the user, or used. */
must_check int recovery_use(struct tx *tx, struct arena *a, struct str user_id, struct str code);
must_check int recovery_left(struct tx *tx, struct arena *a, struct str user_id, int64_t *ret_left);
/* When they were made; 0: there are none, or an older version has made them. */
must_check int recovery_added(struct tx *tx, struct arena *a, struct str user_id, int64_t *ret_ms);
/* In a write. */
must_check int recovery_remove(struct tx *tx, struct str user_id);

#endif
