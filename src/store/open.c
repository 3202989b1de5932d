/* A store's life: choosing the back end, opening, closing, statistics. */
#include "store/backend.h"

#include "store/copy.h"
#include "store/rotation.h"
#include "store/seal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

bool store_url_is_remote(const char *url)
{
	return url && (str_starts(str_of(url), STR("postgresql:")) || str_starts(str_of(url), STR("postgres:")));
}

/* An unfinished copy must not be served: it would look complete, and new data would mix with rows that are copied
 * later. Nor must the source of a finished one: a service on it once took the living databases from the nodes that they
 * were moved to. */
static int copy_is_over(struct tx *conn)
{
	struct arena *a = arena_new();
	struct str mark, moved;
	int r = tx_meta_get(conn, a, META_COPY, &mark);
	if (r == 0)
		fputs("steward: a copy into this store was broken off: run `steward store copy` again to finish it, or "
		      "empty the "
		      "store\n",
		      stderr);
	r = r == 0 ? -EBUSY : r;
	if (r == -ENOENT && (r = tx_meta_get(conn, a, META_MOVED, &moved)) == 0)
		r = copy_moved_refuse(moved);
	arena_free(a);
	return r == -ENOENT ? 0 : r;
}

int store_open(const struct store_options *o, struct store **ret_store)
{
	struct tx *conn = NULL;
	struct store *s = must_calloc(1, sizeof(*s));
	s->readers = must_calloc(1, sizeof(*s->readers));
	pthread_mutex_init(&s->readers->lock, NULL);
	s->damage = must_calloc(1, sizeof(*s->damage));
	pthread_mutex_init(&s->damage->lock, NULL);
	s->ops = &sqlite_ops;
	s->trusted_until_us = INT64_MAX;
	if (store_url_is_remote(o->url)) {
#ifdef STORE_HAS_POSTGRES
		s->ops = &postgres_ops;
#else
		fprintf(stderr, "steward: this program was built without PostgreSQL's client library\n");
		store_close(s);
		return -ENOTSUP;
#endif
	}
	int r = s->ops->open(s, o, &conn);
	if (r == 0 && !o->unfinished)
		r = copy_is_over(conn);
	/* Which of the keys is in use; whether it is there at all, callers check who need it. */
	if (r == 0 && seal_is_ready()) {
		int key = rotation_follow(conn);
		r = key == -ENOKEY || key == -ENOENT ? 0 : key;
	}
	if (r == 0)
		r = writer_start(s, conn, o->batch_max, &s->writer);
	if (r < 0) {
		s->ops->conn_close(conn);
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
	watcher_stop(s->watcher);
	assert(!s->readers->first);
	writer_stop(s->writer);
	if (s->ops->close)
		s->ops->close(s);
	pthread_mutex_destroy(&s->readers->lock);
	free(s->readers);
	pthread_mutex_destroy(&s->damage->lock);
	free(s->damage);
	free(s->path);
	free(s);
}

int store_check(const char *path, FILE *out)
{
	if (!store_url_is_remote(path))
		return sqlite_check(str_starts(str_of(path), STR("sqlite:")) ? path + 7 : path, out);
#ifdef STORE_HAS_POSTGRES
	return pg_check(path, out);
#else
	fprintf(out, "this program was built without PostgreSQL's client library\n");
	return -ENOTSUP;
#endif
}

void store_stats(const struct store *s, struct store_stats *ret_stats)
{
	struct readers *readers = s->readers;
	*ret_stats = (struct store_stats){
	        .writes = s->writes,
	        .commits = s->commits,
	        .failed = s->failed,
	        .round_trips = s->round_trips,
	        .commit_micros = s->commit_micros,
	        .batch_micros = s->batch_micros,
	        .queue_depth = writer_depth(s->writer),
	};
	for (int i = 0; i < STORE_BATCH_TIMES; i++)
		ret_stats->batch_times[i] = s->batch_times[i];
	pthread_mutex_lock(&s->damage->lock);
	ret_stats->passes = s->damage->passes;
	pthread_mutex_unlock(&s->damage->lock);
	pthread_mutex_lock(&readers->lock);
	ret_stats->reads = readers->reads_of_freed;
	for (struct tx *tx = readers->first; tx; tx = tx->next)
		ret_stats->reads += tx->reads;
	pthread_mutex_unlock(&readers->lock);
}
