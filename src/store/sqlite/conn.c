/* Connections to SQLite: how they are set up, their prepared statements and what their errors mean.
 *
 * Write-ahead log, so that readers never wait for the writer, and synchronous=FULL, so that a commit is a flush. Files
 * are read, not mapped: a failing disk gives an error instead of a SIGBUS, and the small caches are all the memory that
 * a store takes, however big it is. */
#include "store/sqlite/sqlite.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 5000

#define STATEMENT_SQL(name, sql) sql,
static const char *const statement_sql[] = {STATEMENTS(STATEMENT_SQL)};
#undef STATEMENT_SQL

static void library_setup(void)
{
	/* Statistics would take a process-wide lock for each allocation. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	/* The undo data of a write stays in memory: a write is bounded, and temporary files would cost each batch more
	 * than its flush. */
	sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, -1);
	sqlite3_initialize();
	log_vfs_setup();
}

/* doc_sum(kind, id, body), for the migration. */
static void doc_sum_sql(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct str texts[3];
	for (int i = 0; i < 3; i++) {
		texts[i].p = sqlite3_value_blob(values[i]);
		texts[i].n = (size_t)sqlite3_value_bytes(values[i]);
	}
	sqlite3_result_int64(context, doc_sum(texts[0], texts[1], texts[2]));
}

int conn_open(const char *path, int flags, struct tx **ret_conn)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, library_setup);
	struct tx *conn = must_calloc(1, sizeof(*conn));
	conn->ops = &sqlite_ops;
	conn->statements = must_calloc(ST_COUNT, sizeof(*conn->statements));
	conn->writes = flags & SQLITE_OPEN_READWRITE;
	int r = sqlite3_open_v2(path, &conn->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
	                        conn->writes ? LOG_VFS : NULL);
	if (r != SQLITE_OK) {
		fprintf(stderr, "steward: cannot open the store %s: %s\n", path,
		        conn->db ? sqlite3_errmsg(conn->db) : sqlite3_errstr(r));
		conn_close(conn);
		return -EIO;
	}
	sqlite3_busy_timeout(conn->db, BUSY_MS);
	sqlite3_db_config(conn->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(conn->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(conn->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !conn->writes, NULL);
	/* Temporary files, not memory: a large sort must not fill the memory. */
	const char *setup = conn->writes ? "PRAGMA synchronous = FULL; PRAGMA cache_size = -16384; PRAGMA mmap_size = 0"
	                                   "; PRAGMA journal_size_limit = 33554432; PRAGMA temp_store = FILE"
	                                 : "PRAGMA cache_size = -1024; PRAGMA mmap_size = 0; PRAGMA temp_store = FILE";
	if (conn->writes)
		sqlite3_create_function(conn->db, "doc_sum", 3, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, doc_sum_sql,
		                        NULL, NULL);
	r = conn_exec(conn, setup);
	if (r < 0) {
		fprintf(stderr, "steward: cannot read the store %s: %s\n", path, sqlite3_errmsg(conn->db));
		conn_close(conn);
		return r;
	}
	*ret_conn = conn;
	return 0;
}

void conn_close(struct tx *conn)
{
	if (!conn)
		return;
	if (conn->writing)
		checkpointer_stop(conn->writing->checkpointer);
	for (int i = 0; i < ST_COUNT; i++)
		sqlite3_finalize(conn->statements[i]);
	if (sqlite3_close(conn->db) != SQLITE_OK)
		log_error("store: a connection did not close: %s", sqlite3_errmsg(conn->db));
	free(conn->statements);
	free(conn->writing);
	memo_free(conn);
	page_free(conn);
	free(conn);
}

/* After a failed flush the kernel may consider data written that never reached the disk, and the next flush succeeds:
 * acknowledged writes that are being moved from the log into the file would be lost silently. The log has all of them:
 * the next start reads them from there, as after a power cut. */
void sync_failed(int code)
{
	log_error(
	        "store: the disk did not take what was flushed (code %d, %s). The service ends, because the next start "
	        "brings back from the log what is not in the file; if it happens again, the disk is failing",
	        code, strerror(errno));
	_exit(EXIT_FAILURE);
}

static bool errno_is_full(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* Whether the last operation on the file, or on the log, failed because the disk is full. The errno that SQLite keeps
 * for the connection may belong to another operation. */
static bool file_is_full(struct tx *conn, int which)
{
	sqlite3_file *file = NULL;
	int error = 0;
	return sqlite3_file_control(conn->db, "main", which, &file) == SQLITE_OK && file && file->pMethods &&
	       file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error) == SQLITE_OK && errno_is_full(error);
}

static bool code_is_full(struct tx *conn, int code)
{
	if ((code & 0xff) == SQLITE_FULL)
		return true;
	return (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_TRUNCATE ||
	        (code & 0xff) == SQLITE_CANTOPEN) &&
	       (errno_is_full(sqlite3_system_errno(conn->db)) || file_is_full(conn, SQLITE_FCNTL_JOURNAL_POINTER) ||
	        file_is_full(conn, SQLITE_FCNTL_FILE_POINTER));
}

int conn_failed(struct tx *conn, int code)
{
	if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC)
		sync_failed(code);
	if (code_is_full(conn, code)) {
		conn->full = true;
		/* Log it once: the store logs when this state begins and ends. */
		if (!conn->store || !conn->store->full)
			log_error("store: %s (code %d)", sqlite3_errmsg(conn->db), code);
		return -ENOSPC;
	}
	int kind = code & 0xff;
	bool unreadable =
	        code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS;
	if (conn->store && (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || unreadable))
		store_damaged(conn->store, "%s (code %d)", sqlite3_errmsg(conn->db), code);
	else
		log_error("store: %s (code %d)", sqlite3_errmsg(conn->db), code);
	return -EIO;
}

int conn_exec(struct tx *conn, const char *sql)
{
	int r = sqlite3_exec(conn->db, sql, NULL, NULL, NULL);
	return r == SQLITE_OK ? 0 : conn_failed(conn, r);
}

int conn_int(struct tx *conn, const char *sql, int64_t *ret_value)
{
	sqlite3_stmt *st = NULL;
	int r = sqlite3_prepare_v2(conn->db, sql, -1, &st, NULL);
	if (r == SQLITE_OK)
		r = sqlite3_step(st);
	bool row = r == SQLITE_ROW;
	if (row)
		*ret_value = sqlite3_column_int64(st, 0);
	else
		log_error("store: %s (code %d)", sqlite3_errmsg(conn->db), r);
	sqlite3_finalize(st);
	return row ? 0 : -EIO;
}

/* A reader may keep its transaction only while nothing was written since: after a write is acknowledged, readers must
 * see it. */
void reader_refresh(struct tx *tx)
{
	if (tx->lingers && !tx->reading && tx->seen != atomic_load(&tx->store->commits))
		tx_rest(tx);
}

sqlite3_stmt *conn_statement(struct tx *conn, enum statement which)
{
	sqlite3_stmt **st = &conn->statements[which];
	reader_refresh(conn);
	/* After a failure SQLite may have ended the transaction: the next statement would be committed alone. */
	if (conn->broken && conn->in_write)
		return NULL;
	if (!*st &&
	    sqlite3_prepare_v3(conn->db, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT, st, NULL) != SQLITE_OK) {
		(void)conn_failed(conn, sqlite3_extended_errcode(conn->db));
		conn->broken = true;
	}
	return *st;
}

int conn_step(struct tx *conn, sqlite3_stmt *st)
{
	int r = sqlite3_step(st);
	if (r == SQLITE_ROW)
		return 1;
	int result = 0;
	if (r == SQLITE_CONSTRAINT_UNIQUE || r == SQLITE_CONSTRAINT_PRIMARYKEY || r == SQLITE_CONSTRAINT_ROWID) {
		result = -EEXIST;
	} else if (r != SQLITE_DONE) {
		conn->broken = true;
		result = conn_failed(conn, r);
	}
	sqlite3_reset(st);
	return result;
}

int conn_run(struct tx *conn, enum statement which)
{
	sqlite3_stmt *st = conn_statement(conn, which);
	if (!st)
		return -EIO;
	int r;
	while ((r = conn_step(conn, st)) > 0)
		;
	return r;
}

char *store_path(const char *dir_or_file)
{
	struct stat info;
	if (stat(dir_or_file, &info) == 0 && !S_ISDIR(info.st_mode))
		return must_strdup(dir_or_file);
	size_t n = strlen(dir_or_file) + sizeof "/" STORE_FILE;
	char *path = must_malloc(n);
	snprintf(path, n, "%s/%s", dir_or_file, STORE_FILE);
	return path;
}

int sync_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash == path ? must_strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : must_strdup(".");
	if (!dir)
		return -ENOMEM;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	free(dir);
	return r;
}
