/* What the files of the SQLite back end share: a connection with its prepared statements, and every statement that the
 * service runs, in one table. Nothing outside src/store/ includes this. */
#ifndef STEWARD_STORE_SQLITE_SQLITE_H
#define STEWARD_STORE_SQLITE_SQLITE_H

#include "base/id.h"
#include "store/backend.h"

#include <sqlite3.h>

#define STORE_FILE "steward.db"
/* What a reader does not know. Each column costs every document of a list: the parent is asked for where it is not
 * given. */
#define DOC_COLUMNS "id, name, seq, rev, created_ms, body, secret, sum"

#define EVENT_COLUMNS "id, org_id, group_id, type, created_ms, body, cluster, raw, org_pos, group_pos, seq"
/* The planner has no statistics, so we name the index for each list. */
#define EVENT_FROM(index) "SELECT " EVENT_COLUMNS " FROM event INDEXED BY " index
#define EVENT_FILTER                                                                                         \
	" AND created_ms BETWEEN ?2 AND ?3 AND (?4 = '[]' OR type NOT IN (SELECT value FROM json_each(?4)))" \
	" AND (?5 = '[]' OR cluster IN (SELECT value FROM json_each(?5)))"
#define EVENT_TYPES " AND type IN (SELECT value FROM json_each(?8))"
/* The first events of a list are only in the index of positions, and are searched there: most lists are short, and the
 * others lose little. Filters apply to both parts. `scope` is org or group, `order` time or type. */
#define EVENT_FEW "32"
#define EVENT_OF(scope) scope "_id = ?1 AND " scope "_pos > "
#define EVENT_LATER(scope, order) " FROM event INDEXED BY event_" scope "_" order " WHERE " EVENT_OF(scope) EVENT_FEW
#define EVENT_FIRST(scope) \
	" FROM event INDEXED BY event_" scope "_pos WHERE " EVENT_OF(scope) "0 AND " scope "_pos <= " EVENT_FEW
#define EVENT_BOTH(scope, order, filter)                                                \
	"SELECT seq, created_ms, " scope "_pos AS pos" EVENT_LATER(scope, order) filter \
	        " UNION ALL "                                                           \
	        "SELECT seq, created_ms, " scope "_pos" EVENT_FIRST(scope) filter
/* Rows are skipped in the index: only the events of the page itself are read. */
#define EVENT_CHOSEN(scope, order, filter, by)                                            \
	"SELECT " EVENT_COLUMNS " FROM event WHERE seq IN (SELECT seq FROM (" EVENT_BOTH( \
	        scope, order, filter) " ORDER BY " by "pos DESC LIMIT ?6 OFFSET ?7)) ORDER BY " by scope "_pos DESC"
#define EVENT_COUNT(scope, order, filter) \
	"SELECT (SELECT count(*)" EVENT_LATER(scope, order) filter ") + (SELECT count(*)" EVENT_FIRST(scope) filter ")"
#define EVENT_POSITIONS(scope)                                                                            \
	"SELECT (SELECT min(" scope "_pos) FROM event INDEXED BY event_" scope                            \
	"_pos WHERE " EVENT_OF(scope) "0), (SELECT max(" scope "_pos) FROM event INDEXED BY event_" scope \
	                              "_pos WHERE " EVENT_OF(scope) "0)"
#define EVENT_TIME(scope, end)                                        \
	"(SELECT " end "(t) FROM (SELECT (SELECT " end                \
	"(created_ms)" EVENT_LATER(scope, "time") ") AS t UNION ALL " \
	                                          "SELECT " end "(created_ms)" EVENT_FIRST(scope) "))"
#define EVENT_TIMES(scope) "SELECT " EVENT_TIME(scope, "min") ", " EVENT_TIME(scope, "max")

#define JOB_COLUMNS "id, kind, subject, args, state, step, attempt, progress, due_ms, fence, created_ms, error, tenant"
/* No older job of the same subject waits or runs. */
#define JOB_FIRST                                                                                                    \
	" AND (subject = '' OR NOT EXISTS (SELECT 1 FROM job b WHERE b.subject = j.subject AND b.subject <> '' AND " \
	"b.rowid <> j.rowid AND"                                                                                     \
	" (b.state = 'running' OR b.state = 'queued' AND b.rowid < j.rowid AND NOT (j.kind = '" JOB_PASSES           \
	"' AND b.attempt > 0 AND b.due_ms > j.due_ms))))"

#define STATEMENTS(X)                                                                                                 \
	X(BEGIN_READ, "BEGIN")                                                                                        \
	X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                             \
	X(COMMIT, "COMMIT")                                                                                           \
	X(ROLLBACK, "ROLLBACK")                                                                                       \
	X(SAVEPOINT, "SAVEPOINT w")                                                                                   \
	X(UNDO, "ROLLBACK TO w")                                                                                      \
	X(RELEASE, "RELEASE w")                                                                                       \
	X(DATA_VERSION, "PRAGMA data_version")                                                                        \
	X(DOC_GET, "SELECT " DOC_COLUMNS ", parent FROM doc WHERE kind = ?1 AND id = ?2")                             \
	X(DOC_BY_NAME, "SELECT " DOC_COLUMNS " FROM doc WHERE kind = ?1 AND parent = ?2 AND name = ?3")               \
	X(DOC_LIST, "SELECT " DOC_COLUMNS " FROM doc WHERE kind = ?1 AND parent = ?2 AND seq >= ?3 ORDER BY seq"      \
	            " LIMIT ?4 OFFSET ?5")                                                                            \
	X(DOC_LIST_EACH, "SELECT id, body, sum FROM doc WHERE kind = ?1 AND parent = ?2 AND seq >= ?3"                \
	                 " ORDER BY seq LIMIT ?4 OFFSET ?5")                                                          \
	X(DOC_WALK, "SELECT " DOC_COLUMNS ", parent FROM doc WHERE kind = ?1 AND (parent, seq) > (?2, ?3)"            \
	            " ORDER BY parent, seq LIMIT ?4")                                                                 \
	X(DOC_HEADS, "SELECT id, name, seq, rev, created_ms, parent FROM doc WHERE kind = ?1")                        \
	X(DOC_HEADS_OF, "SELECT id, name, seq, rev, created_ms, parent FROM doc WHERE kind = ?1 AND parent = ?2"      \
	                " ORDER BY seq")                                                                              \
	X(DOC_WHERE, "SELECT rev, parent, seq FROM doc WHERE kind = ?1 AND id = ?2")                                  \
	X(DOC_INSERT, "INSERT INTO doc (rowid, kind, id, parent, name, seq, rev, created_ms, body, secret, sum)"      \
	              " VALUES (1 + coalesce((SELECT rowid FROM doc WHERE rowid BETWEEN ?10 AND ?11"                  \
	              " ORDER BY rowid DESC LIMIT 1), ?10), ?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9)")                  \
	X(DOC_UPDATE,                                                                                                 \
	  "UPDATE doc SET name = ?3, body = ?4, secret = ?5, sum = ?6, rev = rev + 1 WHERE kind = ?1 AND id = ?2")    \
	X(DOC_SECRETS, "SELECT kind, id, secret FROM doc INDEXED BY doc_id WHERE (kind, id) > (?1, ?2)"               \
	               " ORDER BY kind, id LIMIT ?3")                                                                 \
	X(DOC_SECRET_REPLACE, "UPDATE doc SET secret = ?4 WHERE kind = ?1 AND id = ?2 AND secret = ?3")               \
	X(DOC_MOVE, "UPDATE doc SET parent = ?3, seq = ?4, name = ?5, body = ?6, sum = ?7, rev = rev + 1"             \
	            " WHERE kind = ?1 AND id = ?2")                                                                   \
	X(DOC_DELETE, "DELETE FROM doc WHERE kind = ?1 AND id = ?2")                                                  \
	X(DOCS_DELETE, "DELETE FROM doc WHERE kind = ?1 AND parent = ?2")                                             \
	X(LIST_DELETE, "DELETE FROM list WHERE kind = ?1 AND parent = ?2")                                            \
	X(BLOCKS_DELETE, "DELETE FROM list_block WHERE kind = ?1 AND parent = ?2")                                    \
	X(LIST_GET, "SELECT next_seq, count, head FROM list WHERE kind = ?1 AND parent = ?2")                         \
	X(LIST_ADD, "INSERT INTO list (kind, parent, next_seq, count, head) VALUES (?1, ?2, ?3, ?4, ?5)"              \
	            " ON CONFLICT DO UPDATE SET next_seq = ?3, count = count + ?4, head = head + ?5")                 \
	X(LIST_SUBTRACT, "UPDATE list SET count = count - 1, head = head - ?3 WHERE kind = ?1 AND parent = ?2")       \
	X(LIST_CLEAR, "DELETE FROM list WHERE kind = ?1 AND parent = ?2 AND count = 0")                               \
	X(BLOCK_ADD, "INSERT INTO list_block (kind, parent, level, block, count) VALUES (?1, ?2, ?3, ?4, ?5)"         \
	             " ON CONFLICT DO UPDATE SET count = count + ?5")                                                 \
	X(BLOCK_SUBTRACT, "UPDATE list_block SET count = count - 1"                                                   \
	                  " WHERE kind = ?1 AND parent = ?2 AND level = ?3 AND block = ?4")                           \
	X(BLOCK_CLEAR, "DELETE FROM list_block WHERE kind = ?1 AND parent = ?2 AND level = ?3 AND block = ?4"         \
	               " AND count = 0")                                                                              \
	X(BLOCK_WALK, "SELECT block, count FROM list_block WHERE kind = ?1 AND parent = ?2 AND level = ?3"            \
	              " AND block >= ?4 ORDER BY block")                                                              \
	X(REF_GET, "SELECT id FROM ref WHERE kind = ?1 AND value = ?2")                                               \
	X(REF_PUT, "INSERT INTO ref (kind, value, id) VALUES (?1, ?2, ?3)")                                           \
	X(REF_DELETE, "DELETE FROM ref WHERE kind = ?1 AND value = ?2")                                               \
	X(META_GET, "SELECT value FROM meta WHERE key = ?1")                                                          \
	X(META_PUT, "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2")             \
	X(META_INCREMENT, "INSERT INTO meta (key, value) VALUES (?1, '1')"                                            \
	                  " ON CONFLICT DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)")              \
	X(EVENT_ADD,                                                                                                  \
	  "INSERT INTO event (seq, id, org_id, group_id, type, created_ms, body, prev_hash, hash,"                    \
	  " cluster, raw, org_pos, group_pos) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"                  \
	  " ?12, CASE WHEN ?13 THEN"                                                                                  \
	  " 1 + coalesce((SELECT max(group_pos) FROM event WHERE group_id = ?4 AND group_pos > 0), 0) END)")          \
	X(EVENT_LAST_ORG, "SELECT max(org_pos) FROM event WHERE org_id = ?1 AND org_pos > 0")                         \
	X(EVENT_GET, "SELECT " EVENT_COLUMNS " FROM event WHERE id = ?1")                                             \
	X(EVENT_SINCE, "SELECT " EVENT_COLUMNS " FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2")                    \
	X(EVENT_NEWEST, "SELECT max(seq) FROM event")                                                                 \
	X(EVENT_POSITIONS_ORG, EVENT_POSITIONS("org"))                                                                \
	X(EVENT_TIMES_ORG, EVENT_TIMES("org"))                                                                        \
	X(EVENT_PAGE_ORG,                                                                                             \
	  EVENT_FROM("event_org_pos") " WHERE " EVENT_OF("org") "0 AND org_pos <= ?2 ORDER BY org_pos DESC LIMIT ?3") \
	X(EVENT_LIST_ORG, EVENT_CHOSEN("org", "time", EVENT_FILTER, "created_ms DESC, "))                             \
	X(EVENT_COUNT_ORG, EVENT_COUNT("org", "time", EVENT_FILTER))                                                  \
	X(EVENT_TYPES_LIST_ORG, EVENT_CHOSEN("org", "type", EVENT_TYPES EVENT_FILTER, ""))                            \
	X(EVENT_TYPES_COUNT_ORG, EVENT_COUNT("org", "type", EVENT_TYPES EVENT_FILTER))                                \
	X(EVENT_POSITIONS_GROUP, EVENT_POSITIONS("group"))                                                            \
	X(EVENT_TIMES_GROUP, EVENT_TIMES("group"))                                                                    \
	X(EVENT_PAGE_GROUP, EVENT_FROM("event_group_pos") " WHERE " EVENT_OF(                                         \
	                            "group") "0 AND group_pos <= ?2 ORDER BY group_pos DESC LIMIT ?3")                \
	X(EVENT_LIST_GROUP, EVENT_CHOSEN("group", "time", EVENT_FILTER, "created_ms DESC, "))                         \
	X(EVENT_COUNT_GROUP, EVENT_COUNT("group", "time", EVENT_FILTER))                                              \
	X(EVENT_TYPES_LIST_GROUP, EVENT_CHOSEN("group", "type", EVENT_TYPES EVENT_FILTER, ""))                        \
	X(EVENT_TYPES_COUNT_GROUP, EVENT_COUNT("group", "type", EVENT_TYPES EVENT_FILTER))                            \
	X(EVENT_OLDEST, "SELECT seq, created_ms, hash FROM event ORDER BY seq LIMIT ?1")                              \
	X(EVENT_PRUNE, "DELETE FROM event WHERE seq <= ?1")                                                           \
	X(ANSWER_GET, "SELECT fingerprint, answer FROM answer WHERE caller = ?1 AND key = ?2 AND created_ms > ?3")    \
	X(ANSWER_PUT, "INSERT INTO answer (caller, key, created_ms, fingerprint, answer) VALUES (?1, ?2, ?4, ?5, ?6)" \
	              " ON CONFLICT DO UPDATE SET created_ms = ?4, fingerprint = ?5, answer = ?6"                     \
	              " WHERE created_ms <= ?3")                                                                      \
	X(ANSWER_PRUNE, "DELETE FROM answer WHERE rowid IN"                                                           \
	                " (SELECT rowid FROM answer WHERE created_ms <= ?1 ORDER BY created_ms LIMIT 2)")             \
	X(JOB_ADD, "INSERT INTO job (id, kind, subject, args, state, due_ms, created_ms, updated_ms, tenant)"         \
	           " VALUES (?1, ?2, ?3, ?4, 'queued', ?5, ?6, ?6,"                                                   \
	           " coalesce(nullif(?7, ''), " JOB_TENANT("substr(?3, -24)") ", ''))")                               \
	X(JOB_HURRY, "UPDATE job SET due_ms = min(due_ms, ?3), progress = NULL WHERE rowid = (SELECT rowid FROM job"  \
	             " WHERE subject = ?2 AND subject <> '' AND kind = ?1 AND state = 'queued' LIMIT 1)")             \
	X(JOB_NEXT, "SELECT due_ms, rowid FROM job j WHERE state = 'queued' AND instr(?1, ',' || tenant || ',') = 0"  \
	            " AND instr(?1, ',' || kind || ',') = 0" JOB_FIRST " ORDER BY due_ms, rowid LIMIT 1")             \
	X(JOB_CLAIM, "UPDATE job SET state = 'running', lease_owner = ?2, lease_until_ms = ?3, fence = fence + 1,"    \
	             " updated_ms = ?4 WHERE rowid = ?1 RETURNING " JOB_COLUMNS)                                      \
	X(JOB_SAVE, "UPDATE job SET state = ?3, step = ?4, attempt = ?5, progress = ?6, due_ms = ?7, error = ?8,"     \
	            " args = ?9, updated_ms = ?10, lease_until_ms = ?11"                                              \
	            " WHERE id = ?1 AND fence = ?2 AND state = 'running'")                                            \
	X(JOB_FINISH, "DELETE FROM job WHERE id = ?1 AND fence = ?2 AND state = 'running'")                           \
	X(JOB_OF, "SELECT " JOB_COLUMNS " FROM job WHERE subject = ?1 AND subject <> ''"                              \
	          " ORDER BY state = 'failed', CASE state WHEN 'failed' THEN -rowid ELSE rowid END LIMIT 1")          \
	X(JOB_FIND, "SELECT " JOB_COLUMNS " FROM job WHERE subject = ?1 AND subject <> '' AND kind = ?2"              \
	            " ORDER BY state = 'failed', CASE state WHEN 'failed' THEN -rowid ELSE rowid END LIMIT 1")        \
	X(JOBS_FORGET_OF, "DELETE FROM job WHERE subject = ?1 AND subject <> '' AND state = 'failed'")                \
	X(JOBS_CANCEL, "DELETE FROM job WHERE kind = ?1 AND subject = ?2 AND subject <> '' AND state = 'queued'")     \
	X(JOBS_SETTLE, "DELETE FROM job WHERE substr(subject, 1, length(kind) + 1) = kind || '@'")                    \
	X(JOBS_PUT_BACK, "UPDATE job SET created_ms = min(created_ms, ?1),"                                           \
	                 " due_ms = max(?1, due_ms - CASE WHEN ?3 > 0 THEN ?3 ELSE created_ms - ?1 END)"              \
	                 " WHERE state = 'queued' AND due_ms > ?1 AND (due_ms < ?2 OR created_ms > ?1)")              \
	X(JOBS_FORGET, "DELETE FROM job WHERE state = 'failed' AND updated_ms < ?1")                                  \
	X(JOBS_RECOVER, "UPDATE job SET state = 'queued', lease_owner = NULL, lease_until_ms = 0, fence = fence + 1"  \
	                " WHERE state = 'running'")                                                                   \
	X(JOB_COUNT, "SELECT count(*) FROM job WHERE state IN ('queued', 'running')")                                 \
	X(JOB_TALLY, "SELECT kind, state, count(*) FROM job GROUP BY kind, state ORDER BY kind, state")               \
	X(OVERRIDES, "SELECT set_id, scope, capacity, refill FROM limit_override ORDER BY set_id, scope")             \
	X(OVERRIDE_PUT, "INSERT INTO limit_override (set_id, scope, capacity, refill) VALUES (?1, ?2, ?3, ?4)"        \
	                " ON CONFLICT DO UPDATE SET capacity = ?3, refill = ?4")                                      \
	X(OVERRIDE_DELETE, "DELETE FROM limit_override WHERE set_id = ?1 AND scope = ?2")

#define STATEMENT_NAME(name, sql) ST_##name,
enum statement { STATEMENTS(STATEMENT_NAME) ST_COUNT };
#undef STATEMENT_NAME

/* conn.c. Messages go to the log, but those of conn_open() and the migrations, which run at the start, to stderr. */
must_check int conn_open(const char *path, int flags, struct tx **ret_conn);
void conn_close(struct tx *conn); /* accepts NULL */
must_check int conn_exec(struct tx *conn, const char *sql);
/* Maps a result code of SQLite to -ENOSPC (and marks the connection) or -EIO; logs it. A failed flush ends the
 * process. */
int conn_failed(struct tx *conn, int code);
_Noreturn void sync_failed(int code);
/* A single integer, as "PRAGMA user_version". */
must_check int conn_int(struct tx *conn, const char *sql, int64_t *ret_value);
void reader_refresh(struct tx *tx);
/* Ready to be bound; NULL (logged) when it cannot be prepared. */
sqlite3_stmt *conn_statement(struct tx *conn, enum statement which);
/* 1: a row, to be read before the next step; 0: finished. Negative: -EEXIST for a constraint, -EIO (logged) for the
 * rest. Resets the statement unless there is a row, so that it holds no lock. */
must_check int conn_step(struct tx *conn, sqlite3_stmt *st);
/* Runs a statement without parameters to its end. */
must_check int conn_run(struct tx *conn, enum statement which);
/* Path of the store in a data directory, or the path itself when it is not a directory. Freed by the caller. */
char *store_path(const char *dir_or_file);
/* Flushes the directory that holds the path, so that a new name survives a power cut. */
must_check int sync_parent(const char *path);

static inline void bind_str(sqlite3_stmt *st, int i, struct str s)
{
	sqlite3_bind_text64(st, i, s.p ? s.p : "", s.n, SQLITE_STATIC, SQLITE_UTF8);
}

static inline void bind_str_or_null(sqlite3_stmt *st, int i, struct str s)
{
	if (s.n)
		bind_str(st, i, s);
	else
		sqlite3_bind_null(st, i);
}

static inline void bind_z(sqlite3_stmt *st, int i, const char *z)
{
	bind_str(st, i, str_of(z));
}

/* Bytes of a column, valid until the next step. Asked for as a blob, which spares SQLite a copy for the NUL; and by way
 * of its value, whose bytes and length cost no look-up each (connections here have no mutex). */
static inline struct str column_str(sqlite3_stmt *st, int i)
{
	sqlite3_value *value = sqlite3_column_value(st, i);
	const char *p = sqlite3_value_blob(value);
	return (struct str){p, p ? (size_t)sqlite3_value_bytes(value) : 0};
}

/* store/migrations.c: messages go to stderr. */
must_check int migrations_run(struct tx *conn, const char *path);
/* 0 when the store has exactly the schema of this program. */
must_check int migrations_verify(struct tx *conn, const char *path, FILE *out);

/* events.c. -ENOENT: nothing was ever written. -EBADMSG: the stored text is malformed. */
must_check int event_chain_read(struct tx *tx, struct event_chain *ret_chain);
/* Call it before the commit of a batch. */
must_check int event_chain_flush(struct tx *tx);

/* Documents that the current batch has added to the end of a list, at positions `first` to `next` - 1, and that are not
 * in the list's counts yet. */
#define LIST_GROWTHS_MAX 16
struct list_growth {
	size_t kind_n, parent_n;
	int64_t first, next;
	char key[128]; /* kind, then parent */
};

/* State of the writer's connection. */
struct sqlite_writer {
	int log_pages, checkpoint_at;
	struct checkpointer *checkpointer; /* or NULL: none yet */
	unsigned careful;                  /* how many of the next batches must use a savepoint for each write */
	bool saves;                        /* the current batch does */
	int64_t changes_before;            /* total of changed rows when the write began */
	unsigned growth_count;
	struct list_growth growths[LIST_GROWTHS_MAX];
	int64_t polled_us, data_version, identity;
	bool chain_known, chain_known_before; /* the chain's ends were read in this batch; before this write */
	struct event_chain chain, chain_before;
	char last_org[ID_LEN + 1]; /* the organization of the batch's last event, or "" */
	int64_t last_org_pos;      /* and the event's position in its list */
};

/* checkpoint.c. ret_all: the whole log is now in the file. */
must_check int checkpoint_run(struct tx *conn, bool *ret_all);
/* Lets the thread beside the writer move most of the log; the first call starts it. True when it is done, or when there
 * is no such thread: then the writer does the rest. */
must_check bool checkpoint_ahead(struct tx *conn);
void checkpointer_stop(struct checkpointer *c); /* accepts NULL */

/* log.c: the file layer of a connection that writes. Call it once, before the first is opened. */
#define LOG_VFS "steward-log"
void log_vfs_setup(void);

/* counts.c. A list without a row is empty. */
struct list_row {
	int64_t next_seq, count, head;
};
must_check int list_read(struct tx *tx, struct str kind, struct str parent, struct list_row *ret_row);
/* The position for the list's next document; and the note that it was used. */
must_check int counts_next(struct tx *tx, struct str kind, struct str parent, int64_t *ret_seq);
must_check int counts_add(struct tx *tx, struct str kind, struct str parent, int64_t seq);
must_check int counts_delete(struct tx *tx, struct str kind, struct str parent);
must_check int counts_subtract(struct tx *tx, struct str kind, struct str parent, int64_t seq);
/* Writes the counts that the batch has added; or drops them, because it is undone. */
must_check int counts_flush(struct tx *tx);
void counts_forget(struct tx *tx);

/* check.c: makes an event from the columns that `steward check` and the watch select. */
struct event_row event_row_of(sqlite3_stmt *st);

/* page.c: the page of a list that a reader was last asked for, and what it was asked of. */
uint64_t sqlite_snapshot(const struct tx *tx);
enum page_state {
	PAGE_OTHER, /* it is not kept */
	PAGE_AGAIN, /* it is asked for a second time: page_add() its rows, then page_end() */
	PAGE_KEPT,  /* page_show() shows it */
};
enum page_state page_ask(struct tx *tx, struct str kind, struct str parent, int64_t offset, int64_t limit);
void page_add(struct tx *tx, const struct doc *d);
/* `whole`: nothing is missing. */
void page_end(struct tx *tx, bool whole);
int page_show(struct tx *tx, const char *kind, struct str parent, doc_show *show, void *ctx);
void page_free(struct tx *tx);

/* sum.c: the checksum that is stored with a document, so that changed bytes are never returned. */
int64_t doc_sum(struct str kind, struct str id, struct str body);

/* watch.c */
int sqlite_list_each(struct tx *tx, const char *kind, struct str parent, int64_t offset, int64_t limit, doc_show *show,
                     void *ctx);
int sqlite_watch(struct tx *tx, struct watch *w);

/* writer.c */
must_check int sqlite_writer_setup(struct tx *conn);
int sqlite_batch_begin(struct tx *conn);
int sqlite_write_begin(struct tx *conn);
int sqlite_write_end(struct tx *conn, bool keep);
int sqlite_batch_commit(struct tx *conn);
void sqlite_batch_abort(struct tx *conn);
void sqlite_idle(struct tx *conn, bool busy);

#define STORE_PROTOTYPE(name, parameters, arguments) int sqlite_##name parameters;
STORE_OPS(STORE_PROTOTYPE)
#undef STORE_PROTOTYPE

#endif
