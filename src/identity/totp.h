/* One-time passwords by time (RFC 6238): six digits, thirty seconds, SHA-1, as all authenticator programs do. A code of
 * the step before or after is taken too. Each is taken once. After ten wrong codes in a row the next try has to wait,
 * from whatever address it comes: only somebody who has the password gets here.
 *
 *   "user_totp"  id = user; secret: the key in base32, sealed;
 *                body {"confirmed","confirmedMs"?,"lastStep","failures","failedAtMs"} */
#ifndef STEWARD_IDENTITY_TOTP_H
#define STEWARD_IDENTITY_TOTP_H

#include "store/store.h"

#define TOTP_KEY 20
#define TOTP_SECONDS 30
#define TOTP_DIGITS 6

/* RFC 4226 with a counter; NUL-terminated. */
void totp_code(const unsigned char *key, size_t key_n, uint64_t step, char ret_code[TOTP_DIGITS + 1]);

/* Whether the user has a confirmed key. */
must_check int totp_is_on(struct tx *tx, struct arena *a, struct str user_id, bool *ret_on);
/* When it was confirmed; 0: not at all, or by an older version. */
must_check int totp_added(struct tx *tx, struct arena *a, struct str user_id, int64_t *ret_ms);
/* In a write: a new key that counts once it is confirmed; an older unconfirmed one is replaced. -EEXIST: one is
 * confirmed. */
must_check int totp_enroll(struct tx *tx, struct arena *a, struct str user_id, struct str *ret_base32);
/* In a write, which must be kept when the code is wrong too. `confirm`: of a key that is not confirmed yet, which a
 * right code confirms. -EACCES: wrong, or used before; -EBUSY: too many were wrong, *ret_seconds tells how long to
 * wait; -ENOENT: there is no such key. */
must_check int totp_check(struct tx *tx, struct arena *a, struct str user_id, struct str code, bool confirm,
                          unsigned *ret_seconds);
/* In a write; -ENOENT. */
must_check int totp_remove(struct tx *tx, struct str user_id);

#endif
