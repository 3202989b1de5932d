/* When and from where credentials were last used: counted in memory, written to the store now and then, so that a call
 * costs no write. What a crash takes with it is the last second's counts. */
#ifndef STEWARD_GATE_USES_H
#define STEWARD_GATE_USES_H

#include "gate/service.h"

/* On the thread of that lane: an address was let in by the n-th entry of the caller's access list. */
void use_access(struct service *s, unsigned loop, const struct principal *p, size_t entry, const struct ip *peer);
/* On the thread of that lane: a token was issued for a secret. */
void use_secret(struct service *s, unsigned loop, struct str secret_id);

/* From the main thread, each second or so, and once more at the end, when the loops have stopped: hands to the store
 * what all loops have gathered. Does not wait. */
void uses_flush(struct service *s);
/* Of one loop, at the end. Accepts NULL. */
void uses_free(struct uses *u);

#endif
