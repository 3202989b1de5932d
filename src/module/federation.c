/* The endpoint of a federated instance: a foreign-data wrapper for tables of clusters, which is postgres_fdw in all
 * but that it can only read, and that what it reads is counted (usage.h); limits; and the log of queries.
 *
 * What a row counts is what its values take, when it comes out of the wrapper: rows that the cluster's own server
 * has left out, grouped or limited there count for nothing. */
#include "module/federation.h"

#include "module/usage.h"

/* Its structures are the same without Kerberos, whose headers it would ask for. */
#undef ENABLE_GSS
#include <fmgr.h>

#include <access/htup_details.h>
#include <access/parallel.h>
#include <access/xact.h>
#include <commands/explain.h>
#include <ctype.h>
#include <executor/executor.h>
#include <fcntl.h>
#include <foreign/fdwapi.h>
#include <libpq/libpq-be.h>
#include <mb/pg_wchar.h>
#include <miscadmin.h>
#include <nodes/execnodes.h>
#include <pgtime.h>
#include <storage/fd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utils/guc.h>
#include <utils/inval.h>
#include <utils/json.h>
#include <utils/memutils.h>
#include <utils/syscache.h>
#include <utils/timestamp.h>

PG_FUNCTION_INFO_V1(steward_federation_handler);

#define STATEMENT_MAX 8192
#define READ_MAX 65536 /* of a statement, for the log */
#define FAULT_MAX 400
#define QUERIES_MAX 10000 /* of one session, open at once */
#define MAPPING_WAIT_MS 10000
#define MAPPING_LOOK_MS 50

/* A query of a client, from its start to its end. */
struct federated {
	struct federated *next;
	QueryDesc *desc;
	int64 at_ms;
	uint64 bytes, rows, opened, number;
	char *statement; /* for the log; NULL: it has read nothing so far */
	bool limited;
};

static char *directory, *project_directory;
static struct counts {
	struct usage *usage;
	int fd;
	bool tried;
} own = {.fd = -1}, project = {.fd = -1};
static struct federated *queries, *current;
static size_t query_count;
static int level; /* of statements that run inside of others */
static FdwRoutine next;

/* What one scan of a query has read, for EXPLAIN (ANALYZE). */
static struct scan {
	struct scan *next;
	const ForeignScanState *node;
	uint64 bytes;
} * scans;

/* --- the files */

static void counts_open(struct counts *c, const char *dir)
{
	char path[MAXPGPATH];
	struct stat st;
	if (c->usage || c->tried)
		return;
	snprintf(path, sizeof path, "%s/" USAGE_FILE, dir);
	c->fd = BasicOpenFile(path, O_RDWR | O_CLOEXEC);
	void *at = MAP_FAILED;
	if (c->fd >= 0 && fstat(c->fd, &st) == 0 && st.st_size >= (off_t)sizeof(struct usage))
		at = mmap(NULL, sizeof(struct usage), PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (at == MAP_FAILED || ((struct usage *)at)->mark != USAGE_MARK) {
		if (c->fd >= 0)
			close(c->fd);
		c->fd = -1;
		ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW),
		                errmsg("what queries read cannot be counted at the moment")));
	}
	c->usage = at;
}

static uint64 today(void)
{
	return usage_day((int64_t)time(NULL) * 1000);
}

static bool is_federation(void)
{
	return directory && *directory;
}

static struct counts *const both[] = {&own, &project};

static void counts_ready(void)
{
	counts_open(&own, directory);
	counts_open(&project, project_directory);
	for (int i = 0; i < 2; i++)
		usage_roll(both[i]->usage, both[i]->fd, today());
}

/* --- limits */

static const char *const span_words[] = {"query", "day", "week", "month"};

static void refuse(enum usage_span span, uint64 limit, bool whole)
{
	usage_add(&own.usage->refused, 1);
	if (current)
		current->limited = true;
	ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
	                errmsg("the limit of %llu bytes for a %s%s is reached", (unsigned long long)limit,
	                       span_words[span], whole ? " of the project" : ""),
	                errhint("Queries count what they read from stores: read fewer columns and rows, or raise the "
	                        "limit.")));
}

/* Before something is read: whether anything is left of the periods. */
static void limits_begin(void)
{
	for (int i = 0; i < 2; i++)
		for (int span = USAGE_DAY; span < USAGE_SPANS; span++) {
			uint64 limit = usage_get(&both[i]->usage->limit[span]);
			if (limit && usage_sum(both[i]->usage, span, today()) >= limit)
				refuse(span, limit, i == 1);
		}
}

static void limits_hold(void)
{
	for (int i = 0; i < 2; i++)
		for (int span = USAGE_QUERY; span < USAGE_SPANS; span++) {
			uint64 limit = usage_get(&both[i]->usage->limit[span]);
			if (!limit)
				continue;
			if (span == USAGE_QUERY ? current && current->bytes > limit
			                        : usage_get(&both[i]->usage->kill[span]) &&
			                                  usage_sum(both[i]->usage, span, today()) > limit)
				refuse(span, limit, i == 1);
		}
}

void federation_read(uint64 bytes)
{
	for (int i = 0; i < 2; i++)
		usage_count(both[i]->usage, bytes);
	if (current) {
		current->bytes += bytes;
		usage_most(own.usage, current->bytes);
		usage_most(project.usage, current->bytes);
	}
	limits_hold();
}

/* --- the log */

/* Behind a text in quotes that begins there. */
static int quoted_end(const char *text, int n, int at, bool escapes)
{
	for (at++; at < n; at++)
		if (text[at] == '\'' && !(at + 1 < n && text[at + 1] == '\''))
			return at + 1;
		else if (text[at] == '\'' || (escapes && text[at] == '\\'))
			at++;
	return n;
}

static int name_end(const char *text, int n, int at)
{
	const char *end = memchr(text + at + 1, '"', (size_t)(n - at - 1));
	return end ? (int)(end - text) + 1 : n;
}

static int comment_end(const char *text, int n, int at)
{
	int depth = 0;
	if (text[at] == '-') {
		const char *end = memchr(text + at, '\n', (size_t)(n - at));
		return end ? (int)(end - text) : n;
	}
	for (; at + 1 < n; at++)
		if (text[at] == '/' && text[at + 1] == '*') {
			depth++;
			at++;
		} else if (text[at] == '*' && text[at + 1] == '/') {
			at++;
			if (--depth == 0)
				return at + 1;
		}
	return n;
}

/* $$text$$ or $name$text$name$; where it begins, if it is none. */
static int dollar_end(const char *text, int n, int at)
{
	int mark = at + 1;
	while (mark < n && (isalnum((unsigned char)text[mark]) || text[mark] == '_'))
		mark++;
	if (mark >= n || text[mark] != '$' || isdigit((unsigned char)text[at + 1]))
		return at;
	int length = mark - at + 1;
	for (int end = mark + 1; end + length <= n; end++)
		if (memcmp(text + end, text + at, (size_t)length) == 0)
			return end + length;
	return n;
}

static int number_end(const char *text, int n, int at)
{
	while (at < n && (isalnum((unsigned char)text[at]) || text[at] == '.'))
		at++;
	return at;
}

static bool is_word(char ch)
{
	return isalnum((unsigned char)ch) || ch == '_' || ch == '$' || (unsigned char)ch >= 0x80;
}

/* Without what stands in quotes, without numbers and comments: values of tenants are nobody's to read in a log. */
static char *statement_plain(const char *text, int n)
{
	StringInfoData plain;
	initStringInfo(&plain);
	for (int i = 0; i < n && plain.len < STATEMENT_MAX;) {
		char ch = text[i], before = ' ', after = ' ';
		if (i > 0)
			before = text[i - 1];
		if (i + 1 < n)
			after = text[i + 1];
		int end = i;
		if (ch == '\'')
			end = quoted_end(text, n, i, before == 'E' || before == 'e');
		else if (ch == '$' && !is_word(before))
			end = dollar_end(text, n, i);
		else if (isdigit((unsigned char)ch) && !is_word(before))
			end = number_end(text, n, i);
		else if ((ch == '-' && after == '-') || (ch == '/' && after == '*'))
			end = comment_end(text, n, i);
		if (end > i) {
			appendStringInfoString(&plain, ch == '-' || ch == '/' ? " " : "?");
			i = end;
			continue;
		}
		end = ch == '"' ? name_end(text, n, i) : i + 1;
		appendBinaryStringInfo(&plain, text + i, end - i);
		i = end;
	}
	plain.data[pg_mbcliplen(plain.data, plain.len, STATEMENT_MAX)] = 0;
	return plain.data;
}

/* Of the statement alone, where others came with it. */
static char *statement_of(const QueryDesc *q)
{
	const char *text = q->sourceText ? q->sourceText : "";
	size_t from = q->plannedstmt->stmt_location > 0 ? (size_t)q->plannedstmt->stmt_location : 0;
	size_t all = strlen(text), n = q->plannedstmt->stmt_len > 0 ? (size_t)q->plannedstmt->stmt_len : all;
	from = from < all ? from : 0;
	n = n < all - from ? n : all - from;
	/* What is replaced is longer than what replaces it. */
	return statement_plain(text + from, n < READ_MAX ? (int)n : READ_MAX);
}

static void text_add(StringInfo line, const char *name, const char *text)
{
	appendStringInfo(line, ",\"%s\":", name);
	escape_json(line, text ? text : "");
}

static int64 now_ms(void)
{
	return (GetCurrentTimestamp() / 1000) + INT64CONST(946684800000);
}

static void line_write(const StringInfoData *line, int64 at_ms)
{
	char path[MAXPGPATH];
	struct stat st;
	pg_time_t at = (pg_time_t)(at_ms / 1000);
	struct pg_tm *day = pg_gmtime(&at);
	if (!day)
		return;
	snprintf(path, sizeof path, "%s/" USAGE_QUERIES "/%04d%02d%02d", directory, day->tm_year + 1900,
	         day->tm_mon + 1, day->tm_mday);
	int fd = BasicOpenFile(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	/* In one call, so that two do not mix. A full disk fails no query. */
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size < USAGE_QUERIES_BYTES)
		(void)!write(fd, line->data, (size_t)line->len);
	if (fd >= 0)
		close(fd);
}

static void query_write(const struct federated *f, const char *fault)
{
	StringInfoData line;
	initStringInfo(&line);
	appendStringInfo(&line,
	                 "{\"at\":" INT64_FORMAT ",\"took\":" INT64_FORMAT ",\"bytes\":" UINT64_FORMAT
	                 ",\"rows\":" UINT64_FORMAT ",\"files\":" UINT64_FORMAT ",\"limited\":%s",
	                 f->at_ms, now_ms() - f->at_ms, f->bytes, f->rows, f->opened, f->limited ? "true" : "false");
	appendStringInfo(&line, ",\"id\":\"%llx.%x.%llx\"", (unsigned long long)MyStartTimestamp, (unsigned)MyProcPid,
	                 (unsigned long long)f->number);
	text_add(&line, "user", MyProcPort ? MyProcPort->user_name : "");
	text_add(&line, "client", MyProcPort && MyProcPort->remote_host ? MyProcPort->remote_host : "");
	text_add(&line, "database", MyProcPort ? MyProcPort->database_name : "");
	text_add(&line, "statement", f->statement);
	if (fault)
		text_add(&line, "fault", fault);
	appendStringInfoString(&line, "}\n");
	line_write(&line, f->at_ms);
	pfree(line.data);
}

/* --- queries */

static bool is_of_client(void)
{
	return is_federation() && !IsParallelWorker() && !session_auth_is_superuser;
}

static struct federated *query_find(const QueryDesc *q)
{
	struct federated *f = queries;
	while (f && f->desc != q)
		f = f->next;
	return f;
}

static void query_drop(struct federated *f)
{
	struct federated **at = &queries;
	while (*at && *at != f)
		at = &(*at)->next;
	if (*at) {
		*at = f->next;
		query_count--;
	}
	if (current == f)
		current = NULL;
	if (f->statement)
		pfree(f->statement);
	pfree(f);
}

void federation_begun(QueryDesc *q)
{
	static uint64 number;
	if (level > 0 || !is_of_client() || query_count >= QUERIES_MAX)
		return;
	struct federated *f = MemoryContextAllocZero(TopMemoryContext, sizeof *f);
	f->desc = q;
	f->at_ms = now_ms();
	f->number = ++number;
	f->next = queries;
	queries = f;
	query_count++;
}

struct federated *federation_enter(QueryDesc *q)
{
	struct federated *before = current;
	if (level++ == 0 && is_of_client())
		current = query_find(q);
	return before;
}

void federation_leave(QueryDesc *q, struct federated *before)
{
	if (level == 1 && current && current->desc == q && q->estate)
		current->rows += q->estate->es_processed;
	current = before;
	level--;
}

void federation_failed(QueryDesc *q)
{
	struct federated *f = is_of_client() ? query_find(q) : NULL;
	level--;
	if (!f)
		return;
	if (f->statement) {
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
		ErrorData *e = CopyErrorData();
		char fault[FAULT_MAX];
		strlcpy(fault, e->message ? e->message : "it failed", sizeof fault);
		fault[pg_mbcliplen(fault, (int)strlen(fault), FAULT_MAX - 1)] = 0;
		query_write(f, fault);
		FreeErrorData(e);
		MemoryContextSwitchTo(old);
	}
	query_drop(f);
}

void federation_ended(QueryDesc *q)
{
	struct federated *f = is_of_client() ? query_find(q) : NULL;
	if (!f)
		return;
	if (f->statement)
		query_write(f, NULL);
	query_drop(f);
}

static struct scan *scan_find(const ForeignScanState *node)
{
	struct scan *s = scans;
	while (s && s->node != node)
		s = s->next;
	return s;
}

static void scan_drop(struct scan *s)
{
	struct scan **at = &scans;
	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	pfree(s);
}

/* What an abort takes with it, as open cursors, has no end of its own; its description is gone. */
static void transaction_ended(XactEvent event, void *unused)
{
	if (event != XACT_EVENT_ABORT && event != XACT_EVENT_COMMIT)
		return;
	level = 0;
	while (scans)
		scan_drop(scans);
	while (queries) {
		if (queries->statement)
			query_write(queries, NULL);
		query_drop(queries);
	}
}

/* --- the wrapper */

/* A user who has just been made gets in before the tables know who it is at the clusters: the service makes the
 * mappings right after the users. So whoever is there that early waits for it. */
static void mapping_wait(Oid server)
{
	for (int waited = 0; waited < MAPPING_WAIT_MS; waited += MAPPING_LOOK_MS) {
		if (SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(GetUserId()),
		                          ObjectIdGetDatum(server)))
			return;
		pg_usleep(MAPPING_LOOK_MS * 1000L);
		CHECK_FOR_INTERRUPTS();
		AcceptInvalidationMessages(); /* or it would be looked for in what was known before */
	}
}

static void scan_begin(ForeignScanState *node, int flags)
{
	if (!(flags & EXEC_FLAG_EXPLAIN_ONLY))
		mapping_wait(castNode(ForeignScan, node->ss.ps.plan)->fs_server);
	if (!(flags & EXEC_FLAG_EXPLAIN_ONLY) && is_federation()) {
		counts_ready();
		limits_begin();
	}
	next.BeginForeignScan(node, flags);
	/* The node's own is made after this. */
	if (node->ss.ps.state->es_instrument && !(flags & EXEC_FLAG_EXPLAIN_ONLY)) {
		struct scan *s = MemoryContextAllocZero(TopMemoryContext, sizeof *s);
		*s = (struct scan){.next = scans, .node = node};
		scans = s;
	}
}

/* The first row of a query makes it one that has read. */
static void query_note(void)
{
	if (!current || current->statement)
		return;
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	current->statement = statement_of(current->desc);
	MemoryContextSwitchTo(old);
	usage_add(&own.usage->queries, 1);
	usage_add(&project.usage->queries, 1);
}

static TupleTableSlot *scan_next(ForeignScanState *node)
{
	if (is_federation())
		query_note();
	TupleTableSlot *slot = next.IterateForeignScan(node);
	if (TupIsNull(slot) || !is_federation())
		return slot;
	slot_getallattrs(slot);
	uint64 bytes = heap_compute_data_size(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
	struct scan *s = node->ss.ps.instrument ? scan_find(node) : NULL;
	if (s)
		s->bytes += bytes;
	federation_read(bytes);
	return slot;
}

static void scan_explain(ForeignScanState *node, ExplainState *es)
{
	const struct scan *s = es->analyze ? scan_find(node) : NULL;
	if (s)
		ExplainPropertyUInteger("Bytes Read", NULL, s->bytes, es);
	next.ExplainForeignScan(node, es);
}

static void scan_end(ForeignScanState *node)
{
	struct scan *s = scan_find(node);
	if (s)
		scan_drop(s);
	next.EndForeignScan(node);
}

static int relation_updatable(Relation relation)
{
	return 0;
}

/* postgres_fdw's own, without what changes anything. */
Datum steward_federation_handler(PG_FUNCTION_ARGS)
{
	LOCAL_FCINFO(call, 0);
	void *found = load_external_function("$libdir/postgres_fdw", "postgres_fdw_handler", true, NULL);
	PGFunction handler;
	memcpy(&handler, &found, sizeof handler); /* what it gives is a function */
	InitFunctionCallInfoData(*call, NULL, 0, InvalidOid, NULL, NULL);
	FdwRoutine *r = (FdwRoutine *)DatumGetPointer(handler(call));
	next = *r;
	r->BeginForeignScan = scan_begin;
	r->IterateForeignScan = scan_next;
	r->ExplainForeignScan = scan_explain;
	r->EndForeignScan = scan_end;
	r->IsForeignRelUpdatable = relation_updatable;
	r->AddForeignUpdateTargets = NULL;
	r->PlanForeignModify = NULL;
	r->BeginForeignModify = NULL;
	r->ExecForeignInsert = NULL;
	r->ExecForeignBatchInsert = NULL;
	r->GetForeignModifyBatchSize = NULL;
	r->ExecForeignUpdate = NULL;
	r->ExecForeignDelete = NULL;
	r->EndForeignModify = NULL;
	r->BeginForeignInsert = NULL;
	r->EndForeignInsert = NULL;
	r->PlanDirectModify = NULL;
	r->BeginDirectModify = NULL;
	r->IterateDirectModify = NULL;
	r->EndDirectModify = NULL;
	r->ExecForeignTruncate = NULL;
	r->AnalyzeForeignTable = NULL;
	r->ImportForeignSchema = NULL;
	r->IsForeignPathAsyncCapable = NULL;
	r->ForeignAsyncRequest = NULL;
	r->ForeignAsyncConfigureWait = NULL;
	r->ForeignAsyncNotify = NULL;
	PG_RETURN_POINTER(r);
}

void federation_define(void)
{
	DefineCustomStringVariable("steward.federation", "Where what queries read is counted and written down.", NULL,
	                           &directory, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, NULL, NULL,
	                           NULL);
	DefineCustomStringVariable("steward.federation_project", "Where it is counted for the project.", NULL,
	                           &project_directory, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, NULL,
	                           NULL, NULL);
	RegisterXactCallback(transaction_ended, NULL);
}
