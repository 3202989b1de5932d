/* When and from where credentials were last used: counted in memory and written to the store now and then, so that a
 * call costs no write. A crash loses the counts of the last second. */
#ifndef STEWARD_IDENTITY_USES_H
#define STEWARD_IDENTITY_USES_H

#include "call/service.h"

/* On the thread of that lane: the n-th entry of the caller's access list let an address in. */
void use_access(struct service *s, unsigned loop, const struct principal *p, size_t entry, const struct ip *peer);
/* On the thread of that lane: a token was issued for a secret. */
void use_secret(struct service *s, unsigned loop, struct str secret_id);

/* From the main thread, about once a second, and once more at the end when the loops have stopped: hands the tables of
 * all loops to the store. Does not wait. */
void uses_flush(struct service *s);
/* Frees the table of one loop, at the end. Accepts NULL. */
void uses_free(struct uses *u);

#endif
