/* Who writes and who sweeps, told to other processes by objects that are renewed. */
#ifndef STEWARD_REPOSITORY_LEASE_H
#define STEWARD_REPOSITORY_LEASE_H

#include "repository/common.h"

struct lease;
enum lease_kind { LEASE_WRITE = 'w', LEASE_SWEEP = 's' };
must_check int lease_begin(struct repository *r, enum lease_kind kind, struct lease **ret_lease);
void lease_end(struct lease *l); /* accepts NULL */
struct lease_others {
	size_t writers, sweepers;
	int64_t now_ms; /* by the object store's clock */
};
/* Takes away those whose owners are gone. -ESTALE: our own is not there any more. */
must_check int lease_look(struct lease *l, struct lease_others *ret_others);
/* -ESTALE: it was not renewed for so long that others may take its owner for dead. Asks nobody. */
must_check int lease_check(struct lease *l);

#endif
