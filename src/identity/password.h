/* Passwords of people, kept as scrypt hashes in a text that includes the parameters. Slow on purpose (about a fifth of
 * a second and 32 MB): never call it on a loop or in a write. At most two run at a time, so that memory and processors
 * stay bounded; others wait. */
#ifndef STEWARD_IDENTITY_PASSWORD_H
#define STEWARD_IDENTITY_PASSWORD_H

#include "base/arena.h"

#define PASSWORD_MIN 8   /* characters, as the schemas say */
#define PASSWORD_MAX 256 /* bytes */

/* "$scrypt$ln=15,r=8,p=3$SALT$HASH", salt and hash in base64url. */
must_check int password_hash(struct arena *a, struct str password, struct str *ret_text);
/* A hash that no password has, for names that nobody has: to refuse them takes as long. */
struct str password_nobodys(void);
/* Whether new hashes take next to no work, ln=4 and p=1: for the test control, which gives everything away anyhow. Kept
 * ones verify as ever. */
void password_cheap(bool are_cheap);
/* Also false for an empty or damaged text. */
bool password_verify(struct str password, struct str kept);

#endif
