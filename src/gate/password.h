/* Passwords of people: kept as scrypt hashes in a text that says how it was made. Slow on purpose (about a fifth of a second
 * and 32 MB): never on a loop, nor in a write. At most two are worked on at once, so that memory and processors stay
 * bounded; others wait. */
#ifndef STEWARD_GATE_PASSWORD_H
#define STEWARD_GATE_PASSWORD_H

#include "base/arena.h"

#define PASSWORD_MIN 8   /* characters, as the schemas say */
#define PASSWORD_MAX 256 /* bytes */

/* "$scrypt$ln=15,r=8,p=3$SALT$HASH", salt and hash in base64url. */
must_check int password_hash(struct arena *a, struct str password, struct str *ret_text);
/* False also for an empty or damaged text. */
bool password_verify(struct str password, struct str kept);

#endif
