/* What the server has sent to its clients: the bytes of the protocol's messages, before they are encrypted. Clients
 * come over TCP; the service, standbys and routers come over the Unix socket, and are not counted.
 *
 * The sum is in shared memory, and in a file of the data directory (SENT_FILE, a struct sent_record), which the
 * service reads: so it goes on after a restart, and can be read while the server does not run. The file is behind by
 * less than SENT_STEP bytes, and by as much of each answer that is being sent; that is lost when the server is killed.
 * Copies of the data directory, by pg_basebackup or by a snapshot, do not have it. */
#ifndef STEWARD_MODULE_SENT_H
#define STEWARD_MODULE_SENT_H

#include <stdint.h>

#define SENT_FILE "pg_stat_tmp/steward.sent"
#define SENT_STEP 65536

struct sent_record {
	uint64_t id; /* of this file: one that was made anew has another */
	uint64_t bytes;
	uint64_t check; /* sent_check(); another value: it is just being written, or damaged */
};

static inline uint64_t sent_check(const struct sent_record *r)
{
	return ~(r->id ^ r->bytes);
}

/* In the server. When the library is loaded; and as the hooks for shared memory have it, the second one with
 * AddinShmemInitLock held. */
void sent_wrap(void);
void sent_request(void);
void sent_attach(void);

#endif
