/* Connections to SQLite: how they are set up, their prepared statements and what their errors mean.
 *
 * Write-ahead log, so that readers never wait for the writer, and synchronous=FULL, so that a commit is a flush. Files
 * are read, not mapped: a failing disk gives an error instead of a SIGBUS, and the caches, which are small, are all the
 * memory that a store takes however big it is. */
#include "store/sqlite.h"

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
	/* The statistics would put a process-wide lock around each allocation. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_initialize();
}

int conn_open(const char *path, int flags, struct tx **ret_conn)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, library_setup);
	struct tx *conn = must_calloc(1, sizeof(*conn));
	conn->writes = flags & SQLITE_OPEN_READWRITE;
	int r = sqlite3_open_v2(path, &conn->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
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
	/* Temporary files, not memory: what a huge write keeps to be undone must not be held in memory. */
	const char *setup = conn->writes ? "PRAGMA synchronous = FULL; PRAGMA cache_size = -4096; PRAGMA mmap_size = 0;"
	                                   "PRAGMA journal_size_limit = 33554432; PRAGMA temp_store = FILE"
	                                 : "PRAGMA cache_size = -1024; PRAGMA mmap_size = 0; PRAGMA temp_store = FILE";
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
	for (int i = 0; i < ST_COUNT; i++)
		sqlite3_finalize(conn->statements[i]);
	if (sqlite3_close(conn->db) != SQLITE_OK)
		log_error("store: a connection did not close: %s", sqlite3_errmsg(conn->db));
	free(conn);
}

int conn_exec(struct tx *conn, const char *sql)
{
	int r = sqlite3_exec(conn->db, sql, NULL, NULL, NULL);
	if (r == SQLITE_OK)
		return 0;
	log_error("store: %s (code %d)", sqlite3_errmsg(conn->db), r);
	return -EIO;
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

/* A kept transaction serves only while nothing was written since: who was told of a write must find it. */
void reader_refresh(struct tx *tx)
{
	if (tx->lingers && !tx->reading && tx->seen != atomic_load(&tx->store->commits))
		tx_rest(tx);
}

sqlite3_stmt *conn_statement(struct tx *conn, enum statement which)
{
	sqlite3_stmt **st = &conn->statements[which];
	reader_refresh(conn);
	/* After a failure SQLite may have ended the transaction: what came now would be committed by itself. */
	if (conn->broken && conn->in_write)
		return NULL;
	if (!*st &&
	    sqlite3_prepare_v3(conn->db, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT, st, NULL) != SQLITE_OK) {
		log_error("store: %s", sqlite3_errmsg(conn->db));
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
		log_error("store: %s (code %d)", sqlite3_errmsg(conn->db), r);
		conn->broken = true;
		result = -EIO;
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
