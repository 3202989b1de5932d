/* One thread that learns what other processes have changed in the shared store, and tells them that this process is
 * alive.
 *
 * Changes of identities and new jobs are announced (NOTIFY) by the commit that makes them, so they arrive within one
 * round trip. Several times a second the thread also polls, so that a lost announcement is noticed soon. Cached
 * identities are trusted for less than a second after the start of the last poll that was answered: without a
 * connection, an answer or a processor the trust ends by itself. */
#include "store/pg/pg.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_US 300000
#define TRUST_US 900000
#define BEAT_US 1000000
#define CONNECT_US 1500000
#define NAME_US 8000000 /* a process that dies keeps its name for half of this */

struct pg_listener {
	struct store *store;
	struct tx *tx;
	pthread_t thread;
	int stop; /* eventfd */
	_Atomic bool stopping;
	int64_t foreign; /* changes of identities by others, as last seen */
	int64_t beaten_us;
	bool heard; /* announcements of other processes arrive */
	bool named; /* this connection holds the lock of the node's name */
};

static void identities_changed(struct store *s)
{
	s->generation++;
}

static void jobs_changed(struct store *s)
{
	void (*wake)(void *) = s->jobs_wake;
	if (wake)
		wake(s->jobs_ctx);
}

/* Two processes with one name would take each other's batches and jobs for their own. */
static int name_take(struct pg_listener *l)
{
	struct pg_args args = {0};
	if (l->named)
		return 0;
	pg_z(&args, l->store->node);
	int r = pg_exec(l->tx, PG_NODE_LOCK_ST, &args, NULL);
	l->named = r > 0;
	return r < 0 ? r : 0;
}

static int beat(struct pg_listener *l)
{
	struct pg_args args = {0};
	int64_t now = clock_mono_us();
	if (now - l->beaten_us < BEAT_US)
		return 0;
	char usage[sizeof l->store->usage];
	pthread_mutex_lock(&l->store->readers->lock);
	memcpy(usage, l->store->usage, sizeof usage);
	pthread_mutex_unlock(&l->store->readers->lock);
	pg_z(&args, l->store->node);
	pg_z(&args, usage);
	int r = name_take(l);
	if (r == 0)
		r = pg_exec(l->tx, PG_BEAT_ST, &args, NULL);
	if (r >= 0)
		l->beaten_us = now;
	return r < 0 ? r : 0;
}

static int changes_poll(struct pg_listener *l)
{
	PGresult *result;
	uint64_t identity = 0;
	int r = beat(l);
	int64_t began = clock_mono_us();
	if (r == 0)
		r = pg_exec(l->tx, PG_LOOK_ST, NULL, &result);
	if (r < 0)
		return r;
	int64_t mine = l->store->pg->touches;
	if (r > 0 && str_to_u64(pg_column(result, 0, 0), INT64_MAX, &identity) &&
	    (int64_t)identity - mine != l->foreign) {
		l->foreign = (int64_t)identity - mine;
		identities_changed(l->store);
	}
	if (r > 0) {
		l->store->pg->data_version = (uint64_t)pg_number(result, 0, 1);
		if (pg_number(result, 0, 2))
			jobs_changed(l->store);
		l->store->trusted_until_us = began + TRUST_US;
	}
	PQclear(result);
	return 0;
}

/* Skips announcements of this process itself. */
static int announcements_take(struct pg_listener *l)
{
	PGnotify *n;
	bool identities = false;
	while (l->tx->pg->conn && (n = PQnotifies(l->tx->pg->conn))) {
		bool own = n->be_pid == l->store->pg->writer_pid;
		identities |= !own && strchr(n->extra, 'i');
		if (!own && strchr(n->extra, 'j'))
			jobs_changed(l->store);
		PQfreemem(n);
	}
	return identities ? changes_poll(l) : 0;
}

static int hear(struct pg_listener *l)
{
	l->tx->pg->lost = l->tx->broken = false;
	int r = pg_connect(l->tx, clock_mono_us() + CONNECT_US);
	if (r == 0)
		r = pg_exec(l->tx, PG_LISTEN_ST, NULL, NULL);
	l->beaten_us = 0;
	l->named = false;
	/* From now on every change is announced to us, but cached identities may be outdated. */
	identities_changed(l->store);
	return r < 0 ? r : changes_poll(l);
}

/* Waits for an announcement, or for the time of the next poll. */
static int wait_for_news(struct pg_listener *l)
{
	PGconn *conn = l->tx->pg->conn;
	struct pollfd fds[] = {{.fd = l->stop, .events = POLLIN}, {.fd = conn ? PQsocket(conn) : -1, .events = POLLIN}};
	int64_t until = clock_mono_us() + LOOK_US;
	while (!l->stopping) {
		int64_t left = until - clock_mono_us();
		if (left <= 0)
			return 0;
		if (poll(fds, 2, (int)(left / 1000) + 1) > 0 && fds[1].revents) {
			if (!PQconsumeInput(conn))
				return -ENOTCONN;
			int r = announcements_take(l);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static void distrust(struct pg_listener *l)
{
	if (l->heard)
		log_warn("store: other nodes are not heard; identities are read anew for each call");
	l->heard = false;
	l->store->trusted_until_us = 0;
	pg_disconnect(l->tx->pg);
}

static void trust(struct pg_listener *l)
{
	if (!l->heard)
		log_info("store: other nodes are heard again");
	l->heard = true;
	jobs_changed(l->store);
}

static void *listener_main(void *arg)
{
	struct pg_listener *l = arg;
	int r = 0;
	while (!l->stopping) {
		if (!l->tx->pg->conn) {
			r = hear(l);
			if (r == 0)
				trust(l);
		} else {
			r = wait_for_news(l);
			if (r == 0)
				r = changes_poll(l);
			if (r == 0)
				r = announcements_take(l);
		}
		if (r < 0)
			distrust(l);
		if (r < 0 && !l->stopping)
			poll(&(struct pollfd){.fd = l->stop, .events = POLLIN}, 1, 100);
	}
	/* Frees this node's jobs at once. */
	struct pg_args args = {0};
	pg_z(&args, l->store->node);
	if (l->tx->pg->conn && pg_exec(l->tx, PG_BEAT_END_ST, &args, NULL) < 0)
		log_debug("store: the node's row stays until it is too old");
	return NULL;
}

/* At the start no other process may have the name. Later each new connection takes it again, after the server has
 * noticed that the old connection ended. */
static int name_wait(struct pg_listener *l)
{
	int64_t until = clock_mono_us() + NAME_US;
	int r = 0;
	while (r == 0 && !l->named && clock_mono_us() < until) {
		poll(NULL, 0, 100);
		r = name_take(l);
	}
	if (r < 0 || l->named)
		return r;
	fprintf(stderr,
	        "steward: another process serves this store under this node's name, %s. Was its data directory copied? "
	        "Remove node.id from this one.\n",
	        l->store->node);
	return -EADDRINUSE;
}

int pg_listener_start(struct store *s)
{
	struct pg_listener *l = must_calloc(1, sizeof *l);
	*l = (struct pg_listener){.store = s, .tx = pg_tx_new(s, PG_LISTENER), .stop = eventfd(0, EFD_CLOEXEC)};
	int r = l->stop < 0 ? -errno : hear(l);
	if (r == 0)
		r = name_wait(l);
	l->heard = r == 0;
	if (r == 0)
		r = -pthread_create(&l->thread, NULL, listener_main, l);
	if (r < 0) {
		pg_tx_free(l->tx);
		if (l->stop >= 0)
			close(l->stop);
		free(l);
		return r;
	}
	s->pg->listener = l;
	return 0;
}

void pg_listener_stop(struct store *s)
{
	struct pg_listener *l = s->pg->listener;
	if (!l)
		return;
	l->stopping = true;
	eventfd_write(l->stop, 1);
	pthread_join(l->thread, NULL);
	pg_tx_free(l->tx);
	close(l->stop);
	free(l);
	s->pg->listener = NULL;
}
