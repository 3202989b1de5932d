/* SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677) in the form in which PostgreSQL keeps them: enough to check who knows
 * the password, not enough to log in with. */
#ifndef STEWARD_ENGINE_SCRAM_H
#define STEWARD_ENGINE_SCRAM_H

#include "base/arena.h"
#include "base/str.h"

#define SCRAM_PASSWORD_MAX 256

/* Whether a password is one that every client hashes alike: printable ASCII, which SASLprep leaves as it is. */
bool scram_password_fits(struct str password);
/* "SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER", with a new salt. Takes some milliseconds: not on a loop, nor in a
 * write. */
must_check int scram_verifier(struct arena *a, struct str password, struct str *ret_verifier);

#endif
