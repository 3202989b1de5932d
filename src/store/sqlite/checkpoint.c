/* Moves pages from the log into the file. While the writer is busy a thread beside it does this: the pages of thousands
 * of writes take milliseconds, and nobody has to wait for them. Pages that are written meanwhile stay in the log, and
 * the log restarts only when all of it is in the file: so the writer itself moves the small rest at the end. */
#include "store/sqlite/sqlite.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>

enum state { RESTING, ASKED, MOVED };

struct checkpointer {
	struct tx *conn;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum state state;
	bool stopping;
};

int checkpoint_run(struct tx *conn, bool *ret_all)
{
	int pages = 0, moved = 0;
	/* Passive: readers continue, and pages that they still need stay in the log until the next time. */
	int r = sqlite3_wal_checkpoint_v2(conn->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
	if (r != SQLITE_OK && (r & 0xff) != SQLITE_BUSY)
		return conn_failed(conn, r);
	*ret_all = r == SQLITE_OK && moved == pages;
	return 0;
}

/* SQLite flushes the file when the whole log is in it, and the writer waits for that: so most of it is flushed here. */
static void file_flush(struct tx *conn)
{
	sqlite3_file *file = NULL;
	int r = sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (r == SQLITE_OK && file && file->pMethods)
		r = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
	if (r != SQLITE_OK)
		sync_failed(r);
}

static void *checkpointer_main(void *arg)
{
	struct checkpointer *c = arg;
	bool all;
	thread_precede(-WRITER_PRECEDENCE); /* undo the writer's priority, which this thread inherited */
	pthread_mutex_lock(&c->lock);
	while (!c->stopping) {
		if (c->state != ASKED) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		if (checkpoint_run(c->conn, &all) == 0)
			file_flush(c->conn);
		pthread_mutex_lock(&c->lock);
		c->state = MOVED;
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static int checkpointer_start(const char *path, struct checkpointer **ret_checkpointer)
{
	struct checkpointer *c = must_calloc(1, sizeof *c);
	int r = conn_open(path, SQLITE_OPEN_READWRITE, &c->conn);
	if (r == 0) {
		pthread_mutex_init(&c->lock, NULL);
		pthread_cond_init(&c->changed, NULL);
		r = -pthread_create(&c->thread, NULL, checkpointer_main, c);
		if (r < 0)
			conn_close(c->conn);
	}
	if (r < 0) {
		free(c);
		return r;
	}
	*ret_checkpointer = c;
	return 0;
}

void checkpointer_stop(struct checkpointer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	conn_close(c->conn);
	free(c);
}

bool checkpoint_ahead(struct tx *conn)
{
	struct sqlite_writer *w = conn->writing;
	if (!w->checkpointer && checkpointer_start(conn->store->path, &w->checkpointer) < 0)
		return true;
	struct checkpointer *c = w->checkpointer;
	pthread_mutex_lock(&c->lock);
	bool moved = c->state == MOVED;
	if (moved) {
		c->state = RESTING;
	} else if (c->state == RESTING) {
		c->state = ASKED;
		pthread_cond_signal(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return moved;
}
