/* The counters of operations.h. A transaction is counted when it ends: when PostgreSQL calls back, what it has written
 * is still in the lists from which the server's own statistics are made. */
#include "module/operations.h"

#include <access/transam.h>
#include <access/xact.h>
#include <catalog/pg_class.h>
#include <miscadmin.h>
#include <portability/instr_time.h>
#include <storage/shmem.h>
#include <utils/guc.h>
#include <utils/pgstat_internal.h>
#include <utils/rel.h>

#define SEGMENT "steward operations 1" /* as OPERATIONS_VERSION */

struct operations *operations;

static int version = OPERATIONS_VERSION;
static bool begun; /* the transaction has a statement of a client */
static instr_time commit_begin;

void operations_begun(void)
{
	begun = true;
}

void operations_read(void)
{
	if (operations)
		pg_atomic_fetch_add_u64(&operations->reads, 1);
}

void operations_busy(uint64 us)
{
	if (operations)
		pg_atomic_fetch_add_u64(&operations->busy_us, (int64)us);
}

static bool rows_are_counted(const PgStat_TableStatus *of)
{
	return of->t_id >= FirstNormalObjectId &&
	       (!of->relation || of->relation->rd_rel->relkind != RELKIND_TOASTVALUE);
}

static void rows_count(void)
{
	uint64 inserted = 0, updated = 0, deleted = 0;
	for (const PgStat_TableXactStatus *t = pgstat_get_xact_stack_level(1)->first; t; t = t->next)
		if (rows_are_counted(t->parent)) {
			inserted += (uint64)t->tuples_inserted;
			updated += (uint64)t->tuples_updated;
			deleted += (uint64)t->tuples_deleted;
		}
	if (inserted)
		pg_atomic_fetch_add_u64(&operations->inserted, (int64)inserted);
	if (updated)
		pg_atomic_fetch_add_u64(&operations->updated, (int64)updated);
	if (deleted)
		pg_atomic_fetch_add_u64(&operations->deleted, (int64)deleted);
}

static void transaction_end(bool aborted, bool has_rows)
{
	/* One that failed before anything was begun counts, unless the session itself was only beginning. */
	bool counts = begun || (aborted && IsNormalProcessingMode());
	if (!counts || !operations || MyBackendType != B_BACKEND || session_auth_is_superuser)
		return;
	pg_atomic_fetch_add_u64(&operations->transactions, 1);
	if (has_rows && TransactionIdIsValid(GetTopTransactionIdIfAny()))
		rows_count();
	if (!aborted) {
		instr_time took;
		INSTR_TIME_SET_CURRENT(took);
		INSTR_TIME_SUBTRACT(took, commit_begin);
		operations_busy(INSTR_TIME_GET_MICROSEC(took));
	}
}

/* Parallel workers have events of their own, but for the transactions in which they begin. */
static void transaction_event(XactEvent event, void *arg)
{
	switch (event) {
	case XACT_EVENT_PRE_COMMIT:
	case XACT_EVENT_PRE_PREPARE: INSTR_TIME_SET_CURRENT(commit_begin); return;
	case XACT_EVENT_COMMIT: transaction_end(false, true); break;
	case XACT_EVENT_ABORT: transaction_end(true, true); break;
	/* The lists are the prepared transaction's now. */
	case XACT_EVENT_PREPARE: transaction_end(false, false); break;
	default: return;
	}
	begun = false;
}

void operations_define(void)
{
	DefineCustomIntVariable("steward.counts", "Which operations of clients are counted.", NULL, &version,
	                        OPERATIONS_VERSION, 0, INT_MAX, PGC_INTERNAL, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE,
	                        NULL, NULL, NULL);
	RegisterXactCallback(transaction_event, NULL);
}

void operations_request(void)
{
	RequestAddinShmemSpace(MAXALIGN(sizeof(struct operations)));
}

void operations_attach(void)
{
	bool found;
	operations = ShmemInitStruct(SEGMENT, sizeof *operations, &found);
	if (found)
		return;
	pg_atomic_init_u64(&operations->transactions, 0);
	pg_atomic_init_u64(&operations->reads, 0);
	pg_atomic_init_u64(&operations->inserted, 0);
	pg_atomic_init_u64(&operations->updated, 0);
	pg_atomic_init_u64(&operations->deleted, 0);
	pg_atomic_init_u64(&operations->busy_us, 0);
}
