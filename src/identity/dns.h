/* Texts in the domain name system. Asking blocks: never on a loop or in a write. */
#ifndef STEWARD_IDENTITY_DNS_H
#define STEWARD_IDENTITY_DNS_H

#include "base/str.h"

#include <stdbool.h>

/* Whether the name has a TXT record of exactly this text. `server` ("127.0.0.1:53") is asked instead of the system's
 * name servers; NULL: those. False also where nobody answers within a few seconds. */
bool dns_has_text(const char *server, const char *name, struct str wanted);

#endif
