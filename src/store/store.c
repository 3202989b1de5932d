/* A store's life: opening, readers, closing, and what it tells about itself. */
#include "store/sqlite.h"

#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
			fprintf(stderr, "steward: --store %s: not a store this program has; give sqlite:PATH\n",
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

int store_open(const struct store_options *o, struct store **ret_store)
{
	char *path = NULL;
	struct tx *conn = NULL;
	int r = path_of(o, &path);
	if (r < 0)
		return r;
	assert(path);
	struct store *s = must_calloc(1, sizeof(*s));
	s->path = path;
	s->readers = must_calloc(1, sizeof(*s->readers));
	pthread_mutex_init(&s->readers->lock, NULL);
	r = file_make(path);
	if (r < 0)
		fprintf(stderr, "steward: cannot make the store %s: %s\n", path, strerror(-r));
	if (r == 0)
		r = conn_open(path, SQLITE_OPEN_READWRITE, &conn);
	if (r == 0)
		r = migrations_run(conn, path);
	if (r == 0) {
		conn->store = s;
		r = writer_start(s, conn, o->batch_max, &s->writer);
	}
	if (r < 0) {
		conn_close(conn);
		store_close(s);
		return r;
	}
	*ret_store = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	assert(!s->readers->first);
	writer_stop(s->writer);
	pthread_mutex_destroy(&s->readers->lock);
	free(s->readers);
	free(s->path);
	free(s);
}

struct tx *store_reader(struct store *s)
{
	struct tx *tx;
	if (conn_open(s->path, SQLITE_OPEN_READONLY, &tx) < 0)
		return NULL;
	tx->store = s;
	pthread_mutex_lock(&s->readers->lock);
	tx->next = s->readers->first;
	s->readers->first = tx;
	pthread_mutex_unlock(&s->readers->lock);
	return tx;
}

void store_reader_free(struct tx *tx)
{
	if (!tx)
		return;
	struct readers *readers = tx->store->readers;
	pthread_mutex_lock(&readers->lock);
	struct tx **at = &readers->first;
	while (*at != tx)
		at = &(*at)->next;
	*at = tx->next;
	readers->reads_of_freed += tx->reads;
	pthread_mutex_unlock(&readers->lock);
	conn_close(tx);
}

void tx_begin_read(struct tx *tx)
{
	/* A write sees one state anyway. */
	if (tx->writes || tx->reading)
		return;
	reader_refresh(tx);
	if (!tx->lingers) {
		tx->seen = atomic_load(&tx->store->commits);
		tx->generation = tx->store->generation;
		tx->lingers = conn_run(tx, ST_BEGIN_READ) == 0;
	}
	tx->reading = true;
}

void tx_end_read(struct tx *tx)
{
	tx->reading = false;
}

void tx_rest(struct tx *tx)
{
	if (!tx->lingers || tx->reading)
		return;
	/* Before the statement runs, which would ask for a refresh itself. */
	tx->lingers = false;
	if (conn_run(tx, ST_COMMIT) < 0 && !sqlite3_get_autocommit(tx->db) && conn_run(tx, ST_ROLLBACK) < 0)
		log_error("store: a read could not be ended");
}

void tx_touch_identity(struct tx *tx)
{
	assert(tx->in_write);
	tx->touched = true;
}

uint64_t store_identity_generation(const struct store *s)
{
	return s->generation;
}

uint64_t tx_identity_generation(const struct tx *tx)
{
	return tx->lingers ? tx->generation : tx->store->generation;
}

uint64_t store_data_version(struct tx *reader)
{
	sqlite3_stmt *st = conn_statement(reader, ST_DATA_VERSION);
	if (!st || conn_step(reader, st) <= 0)
		return 0;
	uint64_t version = (uint64_t)sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return version;
}

void store_stats(const struct store *s, struct store_stats *ret_stats)
{
	struct readers *readers = s->readers;
	*ret_stats = (struct store_stats){
	        .writes = s->writes,
	        .commits = s->commits,
	        .failed = s->failed,
	        .commit_micros = s->commit_micros,
	        .queue_depth = writer_depth(s->writer),
	};
	pthread_mutex_lock(&readers->lock);
	ret_stats->reads = readers->reads_of_freed;
	for (struct tx *tx = readers->first; tx; tx = tx->next)
		ret_stats->reads += tx->reads;
	pthread_mutex_unlock(&readers->lock);
}
