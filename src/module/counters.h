/* What the module counts, in shared memory of a fixed size: how long statements took, by table and by statement.
 *
 * A pool is a table of entries that is searched without a lock. An entry's place follows from its key; when all places
 * that it may have are taken, the one that was used longest ago is given up for it, and that is counted. A process that
 * is about to count for an entry in that very moment counts one call for another: that is the price of having no
 * lock. */
#ifndef STEWARD_MODULE_COUNTERS_H
#define STEWARD_MODULE_COUNTERS_H

#include <postgres.h>

#include "module/latency.h"

#include <datatype/timestamp.h>
#include <port/atomics.h>

#define COUNTER_TABLES 1024
#define COUNTER_STATEMENTS 2048

enum counter_kind { COUNTER_READ, COUNTER_WRITE, COUNTER_COMMAND, COUNTER_KINDS };

struct counter {
	pg_atomic_uint64 key;  /* 0: free; 1: being filled */
	pg_atomic_uint64 last; /* when it was used, in PostgreSQL's time */
	pg_atomic_uint64 total_us;
	pg_atomic_uint64 buckets[LATENCY_BUCKETS];
};

/* A SELECT, by its query id. What is not atomic is written before the key is. */
struct statement {
	struct counter counter;
	pg_atomic_uint64 last_us, refused;
	uint64 shape; /* the fingerprint; 0: it has none */
	TimestampTz first;
	Oid dbid, relid;
	char command;
	char name[2 * NAMEDATALEN];    /* of the first table: "orders", "sales.orders" */
	char application[NAMEDATALEN]; /* that sent it first */
};

struct counters {
	TimestampTz since;
	pg_atomic_uint64 lost_tables, lost_statements;
	struct counter tables[COUNTER_KINDS][COUNTER_TABLES];
	struct statement statements[COUNTER_STATEMENTS];
};

/* NULL: the server was not started with the module. */
extern struct counters *counters;

/* When the library is loaded: the setting steward.buckets. By it is seen with which buckets a server was started. */
void counters_define(void);
bool counters_are_ours(void);
/* Makes or finds the shared memory; with AddinShmemInitLock held. */
void counters_attach(void);
/* Counts a call for a table. */
void counters_table(enum counter_kind kind, Oid dbid, Oid relid, uint64 us, TimestampTz now);
/* NULL: it is not there. */
struct statement *counters_statement(uint64 queryid);
/* A copy of `fresh`, whose atomics are not looked at, becomes the entry. NULL: there is no place at this moment. */
struct statement *counters_statement_add(uint64 queryid, const struct statement *fresh, TimestampTz now);
void counters_statement_count(struct statement *s, uint64 us, TimestampTz now);
void counters_statement_refuse(struct statement *s, TimestampTz now);

#endif
