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
	/* What one write may have to undo stays in memory: a write is bounded, and temporary files would cost each batch more
	 * than its flush. */
	sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, -1);
	sqlite3_initialize();
	log_vfs_setup();
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
	/* Temporary files, not memory: what a large sort needs must not be held in memory. */
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
	if (conn->writing)
		checkpointer_stop(conn->writing->checkpointer);
	for (int i = 0; i < ST_COUNT; i++)
		sqlite3_finalize(conn->statements[i]);
	if (sqlite3_close(conn->db) != SQLITE_OK)
		log_error("store: a connection did not close: %s", sqlite3_errmsg(conn->db));
	free(conn->statements);
	free(conn->writing);
	memo_free(conn);
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

/* The file is made here and not by SQLite, so that nobody else can read it from its first byte on; the log and the
 * shared memory beside it take its mode. */
static int file_make(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	close(fd);
	return sync_parent(path);
}

static int path_of(const struct store_options *o, char **ret_path)
{
	if (o->url) {
		if (!str_starts(str_of(o->url), STR("sqlite:")) || !o->url[7]) {
			fprintf(stderr,
			        "steward: --store %s: not a store this program has; give sqlite:PATH or "
			        "postgresql://...\n",
			        o->url);
			return -EINVAL;
		}
		*ret_path = must_strdup(o->url + 7);
		return 0;
	}
	if (mkdir(o->data_dir, 0700) < 0 && errno != EEXIST) {
		int r = -errno;
		fprintf(stderr, "steward: cannot make the data directory %s: %s\n", o->data_dir, strerror(-r));
		return r;
	}
	*ret_path = store_path(o->data_dir);
	return 0;
}

static int sqlite_open(struct store *s, const struct store_options *o, struct tx **ret_conn)
{
	struct tx *conn = NULL;
	int r = path_of(o, &s->path);
	if (r < 0)
		return r;
	r = file_make(s->path);
	if (r < 0)
		fprintf(stderr, "steward: cannot make the store %s: %s\n", s->path, strerror(-r));
	if (r == 0)
		r = conn_open(s->path, SQLITE_OPEN_READWRITE, &conn);
	if (r == 0)
		r = migrations_run(conn, s->path);
	if (r == 0) {
		conn->store = s;
		r = sqlite_writer_setup(conn);
	}
	if (r < 0) {
		conn_close(conn);
		return r;
	}
	*ret_conn = conn;
	return 0;
}

static int sqlite_reader(struct store *s, struct tx **ret_tx)
{
	struct tx *tx;
	int r = conn_open(s->path, SQLITE_OPEN_READONLY, &tx);
	if (r < 0)
		return r;
	tx->store = s;
	*ret_tx = tx;
	return 0;
}

static void sqlite_begin_read(struct tx *tx)
{
	reader_refresh(tx);
	if (tx->lingers)
		return;
	tx->seen = atomic_load(&tx->store->commits);
	tx->generation = tx->store->generation;
	tx->lingers = conn_run(tx, ST_BEGIN_READ) == 0;
}

/* The transaction is kept for the next read, which may see the same state. */
static void sqlite_end_read(struct tx *tx)
{
}

static void sqlite_rest(struct tx *tx)
{
	/* Before the statement runs, which would ask for a refresh itself. */
	tx->lingers = false;
	memo_clear(tx);
	if (conn_run(tx, ST_COMMIT) < 0 && !sqlite3_get_autocommit(tx->db) && conn_run(tx, ST_ROLLBACK) < 0)
		log_error("store: a read could not be ended");
}

static uint64_t sqlite_data_version(struct tx *reader)
{
	sqlite3_stmt *st = conn_statement(reader, ST_DATA_VERSION);
	if (!st || conn_step(reader, st) <= 0)
		return 0;
	uint64_t version = (uint64_t)sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return version;
}

#define STORE_MEMBER(name, parameters, arguments) .name = sqlite_##name,
const struct store_ops sqlite_ops = {.open = sqlite_open,
                                     .reader = sqlite_reader,
                                     .conn_close = conn_close,
                                     .begin_read = sqlite_begin_read,
                                     .end_read = sqlite_end_read,
                                     .rest = sqlite_rest,
                                     .data_version = sqlite_data_version,
                                     .batch_begin = sqlite_batch_begin,
                                     .write_begin = sqlite_write_begin,
                                     .write_end = sqlite_write_end,
                                     .batch_commit = sqlite_batch_commit,
                                     .batch_abort = sqlite_batch_abort,
                                     .idle = sqlite_idle,
                                     STORE_OPS(STORE_MEMBER)};
#undef STORE_MEMBER
