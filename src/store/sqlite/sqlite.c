/* The SQLite back end: making and opening its file, its readers, and the table of functions that store.c calls. */
#include "store/sqlite/sqlite.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* We create the file, not SQLite, so that it is never readable by others; the log and the shared memory beside it get
 * its mode. */
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

/* The transaction stays open for the next read, which may use the same snapshot. */
static void sqlite_end_read(struct tx *tx)
{
}

static void sqlite_rest(struct tx *tx)
{
	/* Cleared before the statement runs, because conn_statement() would refresh otherwise. */
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
                                     .snapshot = sqlite_snapshot,
                                     .batch_begin = sqlite_batch_begin,
                                     .write_begin = sqlite_write_begin,
                                     .write_end = sqlite_write_end,
                                     .batch_commit = sqlite_batch_commit,
                                     .batch_abort = sqlite_batch_abort,
                                     .idle = sqlite_idle,
                                     .watch = sqlite_watch,
                                     .list_each = sqlite_list_each,
                                     STORE_OPS(STORE_MEMBER)};
#undef STORE_MEMBER
