/* What clients have the server do: transactions, SELECTs, rows that they write, the time that it takes. Counted where
 * it happens, because pg_stat_database counts the service's own sessions and what parallel workers do to begin, and is
 * told up to ten seconds late by a session that has become idle. Catalogs and TOAST tables have no rows here. */
#ifndef STEWARD_MODULE_OPERATIONS_H
#define STEWARD_MODULE_OPERATIONS_H

#include <postgres.h>

#include <port/atomics.h>

/* What the setting steward.counts tells: another number with each change of struct operations, or of what is counted.
 * A server that was started with an older library has another, or none. */
#define OPERATIONS_VERSION 1

struct operations {
	pg_atomic_uint64 transactions, reads, inserted, updated, deleted, busy_us;
};

/* NULL: the server was not started with the module. */
extern struct operations *operations;

/* When the library is loaded; and as the hooks for shared memory have it, the second one with AddinShmemInitLock
 * held. */
void operations_define(void);
void operations_request(void);
void operations_attach(void);

/* A client's statement begins, so that its transaction is one of a client's; a SELECT has ended; time was spent. Of
 * sessions that are not the service's. */
void operations_begun(void);
void operations_read(void);
void operations_busy(uint64 us);

#endif
