/* Temporary entries of projects' IP access lists. */
#ifndef STEWARD_API_ACCESS_LIST_H
#define STEWARD_API_ACCESS_LIST_H

#include "store/store.h"

/* What the last sweep learned; start with zeroes. */
struct access_sweep {
	uint64_t version; /* of the store's data */
	int64_t next_ms;  /* when the next entry is due */
};

/* Deletes the entries whose time is over. From one thread, now and then: looks into the store only when something was
 * written since, or an entry is due. Waits for its write. */
void access_list_sweep(struct store *store, struct tx *reader, struct access_sweep *sweep);

#endif
