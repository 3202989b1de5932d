/* The module's SQL functions, for the service alone: they read shared memory, and change nothing. */
#include "module/counters.h"
#include "module/operations.h"

#include <fmgr.h>

#include <catalog/pg_type.h>
#include <funcapi.h>
#include <miscadmin.h>
#include <storage/lwlock.h>
#include <storage/shmem.h>
#include <utils/array.h>
#include <utils/builtins.h>
#include <utils/guc.h>
#include <utils/timestamp.h>

PG_FUNCTION_INFO_V1(steward_table_latency);
PG_FUNCTION_INFO_V1(steward_statements);
PG_FUNCTION_INFO_V1(steward_refusals);
PG_FUNCTION_INFO_V1(steward_lost);
PG_FUNCTION_INFO_V1(steward_since);
PG_FUNCTION_INFO_V1(steward_operations);

/* Their schema is out of reach for everybody else; this is the second door. */
static void access_check(void)
{
	if (!superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied")));
	if (!counters && counters_are_ours()) {
		LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
		counters_attach();
		LWLockRelease(AddinShmemInitLock);
	}
	if (!counters)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		                errmsg("the server was not started with this module steward")));
}

static ReturnSetInfo *rows_begin(FunctionCallInfo fcinfo)
{
	access_check();
	InitMaterializedSRF(fcinfo, 0);
	return (ReturnSetInfo *)fcinfo->resultinfo;
}

static Datum number(uint64 value)
{
	return Int64GetDatum((int64)value);
}

static Datum buckets_read(struct counter *c, uint64 *ret_calls)
{
	Datum values[LATENCY_BUCKETS];
	*ret_calls = 0;
	for (int i = 0; i < LATENCY_BUCKETS; i++) {
		uint64 count = pg_atomic_read_u64(&c->buckets[i]);
		values[i] = number(count);
		*ret_calls += count;
	}
	return PointerGetDatum(construct_array(values, LATENCY_BUCKETS, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* Whether an entry is whole: it has a key, which is the same when it was read. */
static bool key_read(struct counter *c, uint64 *ret_key)
{
	*ret_key = pg_atomic_read_u64(&c->key);
	pg_read_barrier();
	return *ret_key > 1;
}

static bool key_is_still(struct counter *c, uint64 key)
{
	pg_read_barrier();
	return pg_atomic_read_u64(&c->key) == key;
}

Datum steward_table_latency(PG_FUNCTION_ARGS)
{
	static const char *const kinds[COUNTER_KINDS] = {"r", "w", "c"};
	ReturnSetInfo *rows = rows_begin(fcinfo);
	for (int kind = 0; kind < COUNTER_KINDS; kind++)
		for (int i = 0; i < COUNTER_TABLES; i++) {
			struct counter *c = &counters->tables[kind][i];
			bool nulls[6] = {false};
			uint64 key, calls;
			if (!key_read(c, &key))
				continue;
			Datum buckets = buckets_read(c, &calls);
			Datum values[6] = {
			        ObjectIdGetDatum((Oid)(key >> 32)),       ObjectIdGetDatum((Oid)(key & PG_UINT32_MAX)),
			        CStringGetTextDatum(kinds[kind]),         number(calls),
			        number(pg_atomic_read_u64(&c->total_us)), buckets};
			if (key_is_still(c, key))
				tuplestore_putvalues(rows->setResult, rows->setDesc, values, nulls);
		}
	return (Datum)0;
}

static Datum command_name(char command)
{
	return CStringGetTextDatum(command == 'a' ? "aggregate" : command == 'd' ? "distinct" : "find");
}

Datum steward_statements(PG_FUNCTION_ARGS)
{
	enum { COLUMNS = 14 };
	ReturnSetInfo *rows = rows_begin(fcinfo);
	for (int i = 0; i < COUNTER_STATEMENTS; i++) {
		struct statement *s = &counters->statements[i];
		bool nulls[COLUMNS] = {false};
		char shape[17];
		uint64 key, calls;
		if (!key_read(&s->counter, &key))
			continue;
		Datum buckets = buckets_read(&s->counter, &calls);
		snprintf(shape, sizeof shape, "%016llx", (unsigned long long)s->shape);
		nulls[3] = s->shape == 0;
		Datum values[COLUMNS] = {number(key),
		                         ObjectIdGetDatum(s->dbid),
		                         ObjectIdGetDatum(s->relid),
		                         CStringGetTextDatum(shape),
		                         command_name(s->command),
		                         CStringGetTextDatum(s->name),
		                         CStringGetTextDatum(s->application),
		                         TimestampTzGetDatum(s->first),
		                         TimestampTzGetDatum((TimestampTz)pg_atomic_read_u64(&s->counter.last)),
		                         number(pg_atomic_read_u64(&s->last_us)),
		                         number(calls),
		                         number(pg_atomic_read_u64(&s->counter.total_us)),
		                         number(pg_atomic_read_u64(&s->refused)),
		                         buckets};
		if (key_is_still(&s->counter, key))
			tuplestore_putvalues(rows->setResult, rows->setDesc, values, nulls);
	}
	return (Datum)0;
}

Datum steward_refusals(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rows = rows_begin(fcinfo);
	for (int i = 0; i < COUNTER_STATEMENTS; i++) {
		struct statement *s = &counters->statements[i];
		bool nulls[2] = {false};
		uint64 key, count;
		if (!key_read(&s->counter, &key) || (count = pg_atomic_read_u64(&s->refused)) == 0)
			continue;
		Datum values[2] = {number(key), number(count)};
		if (key_is_still(&s->counter, key))
			tuplestore_putvalues(rows->setResult, rows->setDesc, values, nulls);
	}
	return (Datum)0;
}

Datum steward_lost(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rows = rows_begin(fcinfo);
	bool nulls[2] = {false};
	Datum tables[2] = {CStringGetTextDatum("tables"), number(pg_atomic_read_u64(&counters->lost_tables))};
	Datum statements[2] = {CStringGetTextDatum("statements"),
	                       number(pg_atomic_read_u64(&counters->lost_statements))};
	tuplestore_putvalues(rows->setResult, rows->setDesc, tables, nulls);
	tuplestore_putvalues(rows->setResult, rows->setDesc, statements, nulls);
	return (Datum)0;
}

Datum steward_since(PG_FUNCTION_ARGS)
{
	access_check();
	PG_RETURN_TIMESTAMPTZ(counters->since);
}

Datum steward_operations(PG_FUNCTION_ARGS)
{
	enum { COLUMNS = 6 };
	ReturnSetInfo *rows = rows_begin(fcinfo);
	bool nulls[COLUMNS] = {false};
	const char *counts = GetConfigOption("steward.counts", true, false);
	if (!operations && counts && atoi(counts) == OPERATIONS_VERSION) {
		LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
		operations_attach();
		LWLockRelease(AddinShmemInitLock);
	}
	if (!operations)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		                errmsg("the server was started with an older module steward")));
	Datum values[COLUMNS] = {number(pg_atomic_read_u64(&operations->transactions)),
	                         number(pg_atomic_read_u64(&operations->reads)),
	                         number(pg_atomic_read_u64(&operations->inserted)),
	                         number(pg_atomic_read_u64(&operations->updated)),
	                         number(pg_atomic_read_u64(&operations->deleted)),
	                         number(pg_atomic_read_u64(&operations->busy_us))};
	tuplestore_putvalues(rows->setResult, rows->setDesc, values, nulls);
	return (Datum)0;
}
