/* steward.so, which PostgreSQL loads when it starts: hooks around the execution of statements. They count how long it
 * took, for each table that the statement names and for each SELECT, and refuse SELECTs of rejected shapes. What is
 * sent to clients is counted in sent.c. Its SQL functions are in functions.c, and README.md here says what they
 * promise.
 *
 * The hooks raise no error but the refusal. What takes time (the fingerprint of a text) is done when a query id is seen
 * for the first time. */
#include "module/counters.h"
#include "module/federation.h"
#include "module/fingerprint.h"
#include "module/inner.h"
#include "module/operations.h"
#include "module/refused.h"
#include "module/sent.h"

#include <fmgr.h>

#include <access/parallel.h>
#include <access/transam.h>
#include <access/xact.h>
#include <catalog/namespace.h>
#include <catalog/pg_class.h>
#include <common/cryptohash.h>
#include <common/sha2.h>
#include <executor/executor.h>
#include <executor/instrument.h>
#include <miscadmin.h>
#include <nodes/parsenodes.h>
#include <parser/analyze.h>
#include <storage/ipc.h>
#include <storage/lwlock.h>
#include <storage/shmem.h>
#include <tcop/utility.h>
#include <utils/guc.h>
#include <utils/lsyscache.h>
#include <utils/timestamp.h>

#define TABLES_MAX 16      /* of one statement */
#define TEXT_MAX (1 << 20) /* longer statements have no shape */
#define READ_MAX 256       /* shapes that a session keeps of statements which have no entry */

PG_MODULE_MAGIC;

void _PG_init(void);

static shmem_request_hook_type shmem_request_before;
static shmem_startup_hook_type shmem_startup_before;
static post_parse_analyze_hook_type analyze_before;
static ExecutorStart_hook_type start_before;
static ExecutorRun_hook_type run_before;
static ExecutorFinish_hook_type finish_before;
static ExecutorEnd_hook_type end_before;
static ProcessUtility_hook_type utility_before;

/* Above 0 inside of statements that others run: functions, triggers, commands. As pg_stat_statements counts it. */
static int depth;

/* The command that carries a query whose place in the text PostgreSQL does not keep, or which it gives no id: DECLARE,
 * CREATE ... AS, EXPLAIN, COPY. */
static struct carrier {
	const char *text; /* NULL: there is none */
	int location, length, depth;
} carrier;

/* --- statements */

/* The service's own sessions are not counted, and nothing is refused to them. */
static bool session_is_service(void)
{
	return session_auth_is_superuser;
}

static uint64 shape_of(const char *text, int location, int length)
{
	if (location > 0)
		text += location;
	size_t n = location >= 0 && length > 0 ? (size_t)length : strnlen(text, TEXT_MAX);
	char *copy = n < TEXT_MAX ? malloc(n + 1) : NULL;
	if (!copy)
		return 0;
	memcpy(copy, text, n);
	copy[n] = 0;
	uint64 shape = steward_fingerprint(steward_inner_statement(copy));
	free(copy);
	return shape;
}

static bool table_is_counted(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION && rte->relid >= FirstNormalObjectId &&
	       (rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_PARTITIONED_TABLE ||
	        rte->relkind == RELKIND_MATVIEW || rte->relkind == RELKIND_FOREIGN_TABLE);
}

/* The first table that a statement names, with its name. */
static void table_note(const List *tables, struct statement *fresh)
{
	const ListCell *at;
	foreach (at, tables) {
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, at);
		const char *name = table_is_counted(rte) ? get_rel_name(rte->relid) : NULL;
		const char *schema = name ? get_namespace_name(get_rel_namespace(rte->relid)) : NULL;
		if (!schema)
			continue;
		fresh->relid = rte->relid;
		if (strcmp(schema, "public") == 0)
			strlcpy(fresh->name, name, sizeof fresh->name);
		else
			snprintf(fresh->name, sizeof fresh->name, "%s.%s", schema, name);
		return;
	}
}

static struct statement *statement_note(uint64 queryid, char command, const List *tables, uint64 shape)
{
	struct statement fresh = {.shape = shape, .dbid = MyDatabaseId, .command = command};
	table_note(tables, &fresh);
	strlcpy(fresh.application, application_name ? application_name : "", sizeof fresh.application);
	return counters_statement_add(queryid, &fresh, GetCurrentStatementStartTimestamp());
}

static char command_of(const Query *query)
{
	if (query->hasAggs || query->groupClause || query->groupingSets || query->havingQual || query->hasWindowFuncs)
		return 'a';
	return query->distinctClause ? 'd' : 'f';
}

static bool statements_are_noted(void)
{
	return counters && depth == 0 && !IsParallelWorker() && !session_is_service();
}

static void analyze_end(ParseState *pstate, Query *query, JumbleState *jstate)
{
	if (analyze_before)
		analyze_before(pstate, query, jstate);
	if (!statements_are_noted() || query->commandType != CMD_SELECT || query->utilityStmt || !query->queryId ||
	    counters_statement(query->queryId))
		return;
	statement_note(query->queryId, command_of(query), query->rtable,
	               shape_of(pstate->p_sourcetext, query->stmt_location, query->stmt_len));
}

/* --- refusing */

static void shape_hash(uint64 shape, char ret_hash[2 * PG_SHA256_DIGEST_LENGTH + 1])
{
	uint8 digest[PG_SHA256_DIGEST_LENGTH] = {0};
	char text[17];
	pg_cryptohash_ctx *ctx = pg_cryptohash_create(PG_SHA256);
	snprintf(text, sizeof text, "%016llx", (unsigned long long)shape);
	if (pg_cryptohash_init(ctx) == 0 && pg_cryptohash_update(ctx, (const uint8 *)text, 16) == 0)
		(void)!pg_cryptohash_final(ctx, digest, sizeof digest);
	pg_cryptohash_free(ctx);
	for (int i = 0; i < PG_SHA256_DIGEST_LENGTH; i++)
		snprintf(ret_hash + 2 * (size_t)i, 3, "%02x", digest[i]);
}

/* Of a statement that has no entry: one inside of a function, or of a command that carries it. */
static uint64 shape_read(const QueryDesc *q)
{
	static struct {
		uint64 id, shape;
	} known[READ_MAX];
	const PlannedStmt *p = q->plannedstmt;
	bool carried = carrier.text && carrier.depth == depth && (!p->queryId || q->sourceText == carrier.text);
	size_t at = p->queryId % READ_MAX;
	if (p->queryId && known[at].id == p->queryId)
		return known[at].shape;
	uint64 shape = carried      ? shape_of(carrier.text, carrier.location, carrier.length)
	               : p->queryId ? shape_of(q->sourceText, p->stmt_location, p->stmt_len)
	                            : 0;
	known[at].id = p->queryId;
	known[at].shape = shape;
	return shape;
}

/* By the query id's entry; one that was given up for others is made again from the text. A query without an id is known
 * by its shape. What is inside of others has an entry only once it was refused. */
static void statement_check(const QueryDesc *q)
{
	const PlannedStmt *p = q->plannedstmt;
	if (!counters || p->commandType != CMD_SELECT || IsParallelWorker() || session_is_service())
		return;
	struct statement *s = counters_statement(p->queryId);
	/* An entry may be that of a text which was too long to be read. */
	uint64 shape = s && s->shape ? s->shape : shape_read(q);
	uint64 refused = refused_shape(p->queryId, shape);
	if (!s && shape && (refused || depth == 0)) {
		uint64 key = p->queryId ? p->queryId : shape;
		s = counters_statement(key);
		s = s ? s : statement_note(key, 'f', p->rtable, shape);
	}
	char hash[2 * PG_SHA256_DIGEST_LENGTH + 1];
	if (!refused)
		return;
	if (s)
		counters_statement_refuse(s, GetCurrentStatementStartTimestamp());
	shape_hash(refused, hash);
	ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("queries of this shape are rejected"),
	                errdetail("The query's shape is %s.", hash),
	                errhint("Whoever administers the cluster can take the rejection back.")));
}

/* --- counting */

static enum counter_kind kind_of(const PlannedStmt *p, const RangeTblEntry *rte)
{
	bool reads = p->commandType == CMD_SELECT && !p->hasModifyingCTE;
	return reads || !(rte->requiredPerms & (ACL_INSERT | ACL_UPDATE | ACL_DELETE)) ? COUNTER_READ : COUNTER_WRITE;
}

/* The last statement that wrote: it is counted when its transaction ends, or the next one has written, because a
 * client waits for the commit as well. Of a statement that is a transaction by itself, that takes from its end on, what
 * is deferred to the commit included; else from the beginning of the commit. */
static struct {
	Oid tables[TABLES_MAX];
	enum counter_kind kinds[TABLES_MAX];
	int count; /* 0: there is none */
	bool alone;
	uint64 us;
	TimestampTz at;
	instr_time since;
} written;

static void written_count(uint64 commit_us)
{
	for (int i = 0; i < written.count; i++)
		counters_table(written.kinds[i], MyDatabaseId, written.tables[i],
		               written.us + (written.kinds[i] == COUNTER_WRITE ? commit_us : 0), written.at);
	written.count = 0;
}

static void written_end(XactEvent event, void *arg)
{
	instr_time now;
	if (!written.count)
		return;
	INSTR_TIME_SET_CURRENT(now);
	switch (event) {
	case XACT_EVENT_PRE_COMMIT:
		if (!written.alone)
			written.since = now;
		break;
	case XACT_EVENT_COMMIT:
		INSTR_TIME_SUBTRACT(now, written.since);
		written_count(INSTR_TIME_GET_MICROSEC(now));
		break;
	case XACT_EVENT_ABORT:
	case XACT_EVENT_PREPARE: written_count(0); break;
	default: break;
	}
}

static void tables_take(const Oid *tables, const enum counter_kind *kinds, int count, uint64 us, TimestampTz now)
{
	bool writes = false;
	for (int i = 0; i < count; i++)
		writes |= kinds[i] == COUNTER_WRITE;
	if (writes) {
		written_count(0);
		written.alone = !IsTransactionBlock();
		written.us = us;
		written.at = now;
		INSTR_TIME_SET_CURRENT(written.since);
	}
	for (int i = 0; i < count; i++)
		if (writes) {
			written.tables[written.count] = tables[i];
			written.kinds[written.count++] = kinds[i];
		} else {
			counters_table(kinds[i], MyDatabaseId, tables[i], us, now);
		}
}

/* Partitions that stand for the table that was named need no rights of their own, and so do not count. */
static void tables_count(const PlannedStmt *p, uint64 us, TimestampTz now)
{
	Oid seen[TABLES_MAX];
	enum counter_kind kinds[TABLES_MAX];
	int count = 0;
	const ListCell *at;
	foreach (at, p->rtable) {
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, at);
		bool is_new = table_is_counted(rte) && rte->requiredPerms != 0;
		for (int i = 0; i < count && is_new; i++)
			is_new = seen[i] != rte->relid;
		if (!is_new)
			continue;
		kinds[count] = kind_of(p, rte);
		seen[count++] = rte->relid;
		if (count == TABLES_MAX)
			break;
	}
	tables_take(seen, kinds, count, us, now);
}

static void query_count(QueryDesc *q)
{
	const PlannedStmt *p = q->plannedstmt;
	TimestampTz now = GetCurrentStatementStartTimestamp();
	InstrEndLoop(q->totaltime);
	uint64 us = q->totaltime->total > 0 ? (uint64)(q->totaltime->total * 1e6) : 0;
	tables_count(p, us, now);
	if (depth > 0)
		return;
	operations_busy(us);
	if (p->commandType != CMD_SELECT)
		return;
	if (!p->hasModifyingCTE)
		operations_read();
	struct statement *s = counters_statement(p->queryId);
	if (!s && p->queryId)
		s = statement_note(p->queryId, 'f', p->rtable, shape_of(q->sourceText, p->stmt_location, p->stmt_len));
	if (s)
		counters_statement_count(s, us, now);
}

/* --- hooks */

static void executor_start(QueryDesc *q, int flags)
{
	if (!IsParallelWorker() && !session_is_service())
		operations_begun();
	if (refused_any() && !(flags & EXEC_FLAG_EXPLAIN_ONLY))
		statement_check(q);
	if (start_before)
		start_before(q, flags);
	else
		standard_ExecutorStart(q, flags);
	if (!(flags & EXEC_FLAG_EXPLAIN_ONLY))
		federation_begun(q);
	/* pg_stat_statements and auto_explain, which come first, measure the same. */
	if (counters && !q->totaltime && !(flags & EXEC_FLAG_EXPLAIN_ONLY) && !IsParallelWorker()) {
		MemoryContext old = MemoryContextSwitchTo(q->estate->es_query_cxt);
		q->totaltime = InstrAlloc(1, INSTRUMENT_TIMER, false);
		MemoryContextSwitchTo(old);
	}
}

static void executor_run(QueryDesc *q, ScanDirection direction, uint64 count, bool once)
{
	struct federated *before = federation_enter(q);
	depth++;
	PG_TRY();
	{
		if (run_before)
			run_before(q, direction, count, once);
		else
			standard_ExecutorRun(q, direction, count, once);
	}
	PG_CATCH();
	{
		depth--;
		federation_failed(q);
		PG_RE_THROW();
	}
	PG_END_TRY();
	depth--;
	federation_leave(q, before);
}

static void executor_finish(QueryDesc *q)
{
	depth++;
	PG_TRY();
	{
		if (finish_before)
			finish_before(q);
		else
			standard_ExecutorFinish(q);
	}
	PG_FINALLY();
	{
		depth--;
	}
	PG_END_TRY();
}

static void executor_end(QueryDesc *q)
{
	if (counters && q->totaltime && !IsParallelWorker() && !session_is_service())
		query_count(q);
	federation_ended(q);
	if (end_before)
		end_before(q);
	else
		standard_ExecutorEnd(q);
}

/* --- commands on tables */

struct targets {
	Oid list[TABLES_MAX];
	int count;
	enum counter_kind kind;
};

/* A name that cannot be looked up raises the error that the command itself would raise. */
static void target_add(struct targets *t, const RangeVar *name)
{
	Oid relid = name && t->count < TABLES_MAX ? RangeVarGetRelid(name, NoLock, true) : InvalidOid;
	if (relid >= FirstNormalObjectId)
		t->list[t->count++] = relid;
}

static void targets_add(struct targets *t, const List *names)
{
	const ListCell *at;
	foreach (at, names)
		target_add(t, IsA(lfirst(at), VacuumRelation) ? lfirst_node(VacuumRelation, at)->relation
		                                              : lfirst_node(RangeVar, at));
}

static void targets_find(const Node *command, struct targets *t)
{
	t->kind = COUNTER_COMMAND;
	switch (nodeTag(command)) {
	case T_CopyStmt:
		target_add(t, ((const CopyStmt *)command)->relation);
		t->kind = ((const CopyStmt *)command)->is_from ? COUNTER_WRITE : COUNTER_READ;
		break;
	case T_AlterTableStmt: target_add(t, ((const AlterTableStmt *)command)->relation); break;
	case T_IndexStmt: target_add(t, ((const IndexStmt *)command)->relation); break;
	case T_ClusterStmt: target_add(t, ((const ClusterStmt *)command)->relation); break;
	case T_RefreshMatViewStmt: target_add(t, ((const RefreshMatViewStmt *)command)->relation); break;
	case T_TruncateStmt: targets_add(t, ((const TruncateStmt *)command)->relations); break;
	case T_LockStmt: targets_add(t, ((const LockStmt *)command)->relations); break;
	case T_VacuumStmt: targets_add(t, ((const VacuumStmt *)command)->rels); break;
	case T_ReindexStmt:
		if (((const ReindexStmt *)command)->kind == REINDEX_OBJECT_TABLE)
			target_add(t, ((const ReindexStmt *)command)->relation);
		break;
	default: break;
	}
}

static void utility_next(PlannedStmt *p, const char *text, bool read_only, ProcessUtilityContext context,
                         ParamListInfo params, QueryEnvironment *env, DestReceiver *dest, QueryCompletion *done)
{
	if (utility_before)
		utility_before(p, text, read_only, context, params, env, dest, done);
	else
		standard_ProcessUtility(p, text, read_only, context, params, env, dest, done);
}

static void utility_run(PlannedStmt *p, const char *text, bool read_only, ProcessUtilityContext context,
                        ParamListInfo params, QueryEnvironment *env, DestReceiver *dest, QueryCompletion *done)
{
	const Node *command = p->utilityStmt;
	/* These carry a statement of the client's own, and so are no level. */
	int level = IsA(command, ExecuteStmt) || IsA(command, PrepareStmt) || IsA(command, DeclareCursorStmt) ? 0 : 1;
	struct targets t = {.count = 0};
	const struct carrier before = carrier;
	instr_time begin, took;
	bool clients = !session_is_service(), outermost = depth == 0;
	if (clients)
		operations_begun();
	if (counters && context == PROCESS_UTILITY_TOPLEVEL && IsTransactionState() &&
	    !IsAbortedTransactionBlockState() && clients)
		targets_find(command, &t);
	INSTR_TIME_SET_CURRENT(begin);
	depth += level;
	if (IsA(command, DeclareCursorStmt) || IsA(command, CreateTableAsStmt) || IsA(command, ExplainStmt) ||
	    IsA(command, CopyStmt))
		carrier = (struct carrier){text, p->stmt_location, p->stmt_len, depth};
	PG_TRY();
	{
		utility_next(p, text, read_only, context, params, env, dest, done);
	}
	PG_FINALLY();
	{
		depth -= level;
		carrier = before;
	}
	PG_END_TRY();
	INSTR_TIME_SET_CURRENT(took);
	INSTR_TIME_SUBTRACT(took, begin);
	/* What EXECUTE runs is counted by itself. */
	if (clients && outermost && level)
		operations_busy(INSTR_TIME_GET_MICROSEC(took));
	enum counter_kind kinds[TABLES_MAX];
	for (int i = 0; i < t.count; i++)
		kinds[i] = t.kind;
	tables_take(t.list, kinds, t.count, INSTR_TIME_GET_MICROSEC(took), GetCurrentStatementStartTimestamp());
}

/* --- loading */

static void shmem_request(void)
{
	if (shmem_request_before)
		shmem_request_before();
	RequestAddinShmemSpace(MAXALIGN(sizeof(struct counters)));
	operations_request();
	sent_request();
}

static void shmem_startup(void)
{
	if (shmem_startup_before)
		shmem_startup_before();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	counters_attach();
	operations_attach();
	sent_attach();
	LWLockRelease(AddinShmemInitLock);
}

void _PG_init(void)
{
	/* Somebody has loaded a copy from another path. One that takes this one's place at its path is not looked at
	 * before the server is restarted: PostgreSQL knows libraries by their paths. */
	if (!process_shared_preload_libraries_in_progress)
		return;
	EnableQueryId();
	refused_define();
	federation_define();
	operations_define();
	counters_define();
	RegisterXactCallback(written_end, NULL);
	sent_wrap();
	shmem_request_before = shmem_request_hook;
	shmem_request_hook = shmem_request;
	shmem_startup_before = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
	analyze_before = post_parse_analyze_hook;
	post_parse_analyze_hook = analyze_end;
	start_before = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	run_before = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	finish_before = ExecutorFinish_hook;
	ExecutorFinish_hook = executor_finish;
	end_before = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	utility_before = ProcessUtility_hook;
	ProcessUtility_hook = utility_run;
}
