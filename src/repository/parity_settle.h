/* The second copies of packs, put in order by a sweep while nobody writes. */
#ifndef STEWARD_REPOSITORY_PARITY_SETTLE_H
#define STEWARD_REPOSITORY_PARITY_SETTLE_H

#include "repository/common.h"
#include "repository/format.h"

struct parity_pack {
	unsigned char id[PACK_ID];
	bool there;  /* there is such a pack */
	bool needed; /* it shall have a second copy */
	bool going;  /* it is deleted soon */
};
/* Packs that go leave their groups, those that have none get one, and small groups become one. `packs` are sorted.
 * `step` is called before each that takes time; negative ends it with that, and what was done is whole. most 0:
 * there shall be none. */
must_check int parity_settle(struct repository *r, struct parity_pack *packs, size_t count, unsigned most,
                             int (*step)(void *ctx), void *ctx, uint64_t *stored);

#endif
