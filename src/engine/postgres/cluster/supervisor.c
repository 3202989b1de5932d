/* Watching all servers from one thread, through their pidfds. When one has ended or hangs, its cluster is cared for on
 * a thread of its own, so that one cluster's trouble delays no other.
 *
 * Hung is who was stopped by a signal, and who takes no connection, or does not answer its first eight bytes, in
 * time. */
#include "engine/postgres/cluster/supervisor.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/crypt.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/quota.h"
#include "engine/postgres/cluster/threshold.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/retention.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/work.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TICK_MS 200
#define PROBE_EVERY_US 10000000
#define PROBE_WAIT_US 5000000
#define LOOK_EVERY_US 10000000
#define TIDY_EVERY_MS 60000

/* Asks for TLS, which every server answers with one byte before anything else. */
static void probe_ask(const struct pg_cluster *c, const struct pg_node *n)
{
	static const unsigned char ask[8] = {0, 0, 0, 8, 4, 210, 22, 47};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char run[PG_PATH];
	pg_node_run_dir(c, n, run);
	int length = snprintf(sa.sun_path, sizeof sa.sun_path, "%.80s/.s.PGSQL.%u", run, n->port);
	if (length < (int)sizeof sa.sun_path && connect(n->probe_fd, (struct sockaddr *)&sa, sizeof sa) == 0)
		(void)!send(n->probe_fd, ask, sizeof ask, MSG_NOSIGNAL);
}

static void probe_step(const struct pg_cluster *c, struct pg_node *n)
{
	int64_t now = clock_mono_us();
	if (n->probe_fd < 0) {
		if (now - n->probe_us < PROBE_EVERY_US)
			return;
		n->probe_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		n->probe_us = now;
		if (n->probe_fd >= 0)
			probe_ask(c, n);
		return;
	}
	char answer;
	ssize_t got = recv(n->probe_fd, &answer, 1, MSG_DONTWAIT);
	/* EINVAL: not connected. Its queue of connections is full, or its socket was removed: that is no answer
	 * either. */
	bool apart = got < 0 && errno == EINVAL, waiting = apart || (got < 0 && errno == EAGAIN);
	if (apart)
		probe_ask(c, n);
	if (waiting && now - n->probe_us < PROBE_WAIT_US)
		return;
	if (waiting)
		n->hung = true;
	close(n->probe_fd);
	n->probe_fd = -1;
	n->probe_us = now;
}

static bool node_hangs(const struct pg_cluster *c, struct pg_node *n)
{
	bool stopped = pg_process_is_stopped(n->pid);
	if (stopped && n->stopped_once)
		n->hung = true;
	n->stopped_once = stopped;
	if (!stopped)
		probe_step(c, n);
	return n->hung;
}

/* With cluster.lock. Whether somebody must look after the cluster now. */
static bool needs_care(struct pg_cluster *c, bool tick)
{
	bool needs = false;
	int64_t now = clock_mono_us();
	for (size_t i = 0; i < c->node_count && !c->destroying; i++) {
		struct pg_node *n = c->nodes[i];
		if (n->busy)
			continue;
		bool shall_stop = n->pid && (n->want.outage || c->paused);
		bool shall_start = !n->pid && pg_node_shall_run(c, n) && !n->removing && now >= n->retry_us;
		if (n->noted || (tick && ((n->pid && node_hangs(c, n)) || shall_stop || shall_start)))
			needs = true;
	}
	needs |= tick && (pg_admit_is_due(c) || (!c->destroying && pg_crypt_is_due(c)));
	return needs || (tick && !c->paused && c->node_count > 1 && now - c->looked_us > LOOK_EVERY_US);
}

static void *care_thread(void *arg)
{
	struct pg_cluster *c = arg;
	struct engine *e = c->engine;
	pthread_mutex_lock(&c->work);
	pthread_mutex_lock(&c->lock);
	c->looked_us = clock_mono_us();
	pthread_mutex_unlock(&c->lock);
	if (!c->gone)
		pg_cluster_care(c, false);
	pthread_mutex_unlock(&c->work);
	pthread_mutex_lock(&c->lock);
	c->caring = false;
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	pg_engine_wake(e);
	pg_engine_work_done(e);
	return NULL;
}

struct watch {
	struct pollfd *fds;
	struct pg_cluster **clusters; /* counted, one entry per descriptor but the first */
	size_t count, room;
};

static void watch_add(struct watch *w, int fd, struct pg_cluster *c)
{
	if (w->count == w->room) {
		w->room = w->room ? w->room * 2 : 64;
		w->fds = must_realloc(w->fds, w->room * sizeof *w->fds);
		w->clusters = must_realloc(w->clusters, w->room * sizeof(struct pg_cluster *));
	}
	w->fds[w->count] = (struct pollfd){fd, POLLIN, 0};
	w->clusters[w->count++] = c;
}

static void care_begin(struct engine *e, struct pg_cluster *c)
{
	pthread_mutex_lock(&e->lock);
	c->refs++;
	pthread_mutex_unlock(&e->lock);
	if (pg_engine_work(e, care_thread, c) < 0) {
		pthread_mutex_lock(&c->lock);
		c->caring = false;
		pthread_mutex_unlock(&c->lock);
		pg_cluster_put(c);
	}
}

static void clusters_look(struct engine *e, struct pg_cluster **all, size_t count, bool tick, struct watch *w)
{
	for (size_t i = 0; i < count; i++) {
		struct pg_cluster *c = all[i];
		pthread_mutex_lock(&c->lock);
		bool begin = !c->caring && needs_care(c, tick);
		if (begin)
			c->caring = true;
		for (size_t k = 0; k < c->node_count; k++)
			if (c->nodes[k]->pidfd >= 0 && !c->nodes[k]->noted && !c->nodes[k]->busy)
				watch_add(w, c->nodes[k]->pidfd, c);
		pthread_mutex_unlock(&c->lock);
		if (begin)
			care_begin(e, c);
	}
}

static void deaths_note(struct watch *w)
{
	for (size_t i = 1; i < w->count; i++) {
		if (!w->fds[i].revents)
			continue;
		struct pg_cluster *c = w->clusters[i];
		pthread_mutex_lock(&c->lock);
		for (size_t k = 0; k < c->node_count; k++)
			if (c->nodes[k]->pidfd == w->fds[i].fd)
				c->nodes[k]->noted = true;
		pthread_mutex_unlock(&c->lock);
	}
}

void *pg_supervise(void *arg)
{
	struct engine *e = arg;
	struct watch w = {0};
	int64_t ticked = 0, tidied = pg_mono_ms();
	for (;;) {
		struct pg_cluster **all;
		size_t count = pg_clusters_hold(e, &all);
		bool tick = pg_mono_ms() - ticked >= TICK_MS;
		if (tick)
			ticked = pg_mono_ms();
		if (pg_mono_ms() - tidied > TIDY_EVERY_MS) {
			tidied = pg_mono_ms();
			(void)!pg_engine_work(e, pg_logs_tidy, e);
		}
		pg_quota_tick(e);
		pg_threshold_tick(e);
		w.count = 0;
		watch_add(&w, e->wake_fd, NULL);
		clusters_look(e, all, count, tick, &w);
		int64_t left = TICK_MS - (pg_mono_ms() - ticked);
		if (poll(w.fds, w.count, left > 0 ? (int)left : 0) > 0) {
			uint64_t wakes;
			if (w.fds[0].revents)
				(void)!read(e->wake_fd, &wakes, sizeof wakes);
			deaths_note(&w);
		}
		for (size_t i = 0; i < count; i++)
			pg_cluster_put(all[i]);
		free(all);
		pthread_mutex_lock(&e->lock);
		bool stopping = e->stopping;
		pthread_mutex_unlock(&e->lock);
		if (stopping)
			break;
	}
	free(w.fds);
	free(w.clusters);
	return NULL;
}
