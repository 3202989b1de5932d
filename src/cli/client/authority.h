/* The certificate authority of a service that this machine does not know yet. */
#ifndef STEWARD_CLI_CLIENT_AUTHORITY_H
#define STEWARD_CLI_CLIENT_AUTHORITY_H

#include "base/arena.h"

enum authority_known { AUTHORITY_KNOWN, AUTHORITY_UNKNOWN };

/* Whether the machine's own authorities vouch for the service. A message on stderr, negative, when it is not
 * reached. */
must_check int authority_check(const char *url, enum authority_known *ret_known);
/* The certificate that the service names as its authority, as PEM. Nothing vouches for it but its fingerprint, and no
 * credentials are sent. A message on stderr, negative. */
must_check int authority_fetch(struct arena *a, const char *url, struct str *ret_pem);
/* Reads the certificates of a file. A message on stderr, negative. */
must_check int authority_read(struct arena *a, const char *path, struct str *ret_pem);

/* SHA-256 of the first certificate, as AA:BB:...; NULL when there is none. */
const char *authority_fingerprint(struct arena *a, struct str pem);
/* True when both are the same, with or without colons, in upper or lower case. */
bool authority_fingerprints_equal(const char *one, const char *other);

#endif
