/* The server process of a node: whether it runs, takes connections and answers, and how it is brought to a proven end.
 * Who starts one is in node.c. */
#include "engine/postgres/cluster/server.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/model/work.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <unistd.h>

#define REACH_MS 3000
#define SILENT_US (5 * INT64_C(1000000))

void pg_node_process_set(struct pg_cluster *c, struct pg_node *n, pid_t pid, int pidfd)
{
	pthread_mutex_lock(&c->lock);
	int old = n->pidfd, probe = n->probe_fd;
	n->pid = pid;
	n->pidfd = pidfd;
	n->probe_fd = -1;
	n->noted = n->stopped_once = n->hung = false;
	n->silent_until_us = 0;
	n->stale_us = 0;
	n->probe_us = clock_mono_us();
	n->started_ms = pid ? clock_now_ms() : 0;
	pthread_mutex_unlock(&c->lock);
	if (old >= 0)
		close(old);
	if (probe >= 0)
		close(probe);
}

/* Line 7 of postmaster.pid: key and id of the System V segment, which outlives a killed server. */
static void segment_remove(const char *pid_file)
{
	char *text;
	if (pg_file_read(pid_file, 4096, &text) < 0)
		return;
	struct str rest = str_of(text), line = {0};
	int i = 0;
	while (i < 7 && (str_cut(rest, '\n', &line, &rest) || rest.n > 0))
		i++;
	unsigned long key;
	int id;
	if (i == 7 && line.n < 60) {
		char words[64];
		snprintf(words, sizeof words, "%.*s", STR_ARG(line));
		struct shmid_ds ds;
		if (sscanf(words, "%lu %d", &key, &id) == 2 && shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 0)
			shmctl(id, IPC_RMID, NULL);
	}
	free(text);
}

int pg_server_bury(struct pg_cluster *c, struct pg_node *n, const char *data, unsigned port)
{
	char path[PG_PATH], run[PG_PATH];
	/* Sessions outlive a killed server until they next look, and would go on committing. */
	int r = pg_process_sweep(c->engine, data);
	if (r < 0) {
		log_error("engine: processes of %s do not end", n->want.name);
		return r;
	}
	pg_path_set(path, "%s/postmaster.pid", data);
	segment_remove(path);
	nolink_unlink(path);
	pg_node_run_dir(c, n, run);
	pg_path_set(path, "%s/.s.PGSQL.%u", run, port);
	nolink_unlink(path);
	pg_path_set(path, "%s/.s.PGSQL.%u.lock", run, port);
	nolink_unlink(path);
	return 0;
}

int pg_node_bury(struct pg_cluster *c, struct pg_node *n)
{
	char data[PG_PATH];
	pg_node_path(c, n, "data", data);
	int r = pg_server_bury(c, n, data, n->port);
	if (r == 0)
		pg_node_process_set(c, n, 0, -1);
	return r;
}

void pg_node_ended(struct pg_cluster *c, struct pg_node *n)
{
	pthread_mutex_lock(&c->lock);
	bool counts = !n->down; /* one that does not start again has not ended once more */
	n->ends += counts;
	n->down = true;
	pthread_mutex_unlock(&c->lock);
	c->engine->ends += counts;
}

/* It takes connections. */
static void node_ready(struct pg_cluster *c, struct pg_node *n)
{
	pthread_mutex_lock(&c->lock);
	bool back = n->down;
	n->failures = 0;
	n->down = n->absent = false;
	pthread_mutex_unlock(&c->lock);
	if (!back)
		return;
	(void)!pg_state_save(c); /* what is not saved is told twice, not lost */
	pg_cluster_changed(c);
}

/* What the server said before its log was open. */
static void start_fault(struct pg_cluster *c, struct pg_node *n, const char **ret_why)
{
	char path[PG_PATH], *text = NULL;
	pg_node_path(c, n, "log/start.log", path);
	if (pg_file_read(path, 1 << 16, &text) < 0)
		text = NULL;
	size_t length = text ? strlen(text) : 0;
	for (size_t i = 0; i < length; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	pg_why_set(ret_why, "%s did not start: %s", n->want.name, text ? text + (length > 400 ? length - 400 : 0) : "");
	free(text);
}

int pg_node_wait_ready(struct pg_cluster *c, struct pg_node *n, int timeout_ms, const char **ret_why)
{
	int64_t end = pg_mono_ms() + timeout_ms;
	for (int pause = 3;; pause = pause < 20 ? pause + 2 : 20) {
		PGconn *conn;
		if (!n->pid || pg_process_ended(n->pidfd, 0)) {
			start_fault(c, n, ret_why);
			return -EIO;
		}
		if (pg_sql_open_node(c, n, "postgres", 1000, &conn) == 0) {
			PQfinish(conn);
			node_ready(c, n);
			return 0;
		}
		if (pg_mono_ms() >= end) {
			pg_why_set(ret_why, "%s takes no connections in time", n->want.name);
			return -ETIMEDOUT;
		}
		pg_sleep_ms(pause);
	}
}

int pg_node_halt(struct pg_cluster *c, struct pg_node *n, enum pg_node_halt how)
{
	static const struct {
		int sig, wait_ms;
	} steps[] = {{SIGINT, 20000}, {SIGQUIT, 5000}, {SIGKILL, 5000}};
	if (!n->pid) {
		char data[PG_PATH];
		pid_t pid;
		int pidfd;
		int64_t started;
		pg_node_path(c, n, "data", data);
		if (pg_process_adopt(data, &pid, &pidfd, &started) == 0)
			pg_node_process_set(c, n, pid, pidfd);
	}
	bool ended = !n->pid;
	for (size_t i = (size_t)how; !ended && i < sizeof steps / sizeof *steps; i++) {
		pg_process_signal(n->pidfd, steps[i].sig);
		/* A stopped process takes its signals only when it goes on. */
		if (steps[i].sig != SIGKILL)
			pg_process_signal(n->pidfd, SIGCONT);
		ended = pg_process_ended(n->pidfd, steps[i].wait_ms);
	}
	return ended ? pg_node_bury(c, n) : -EBUSY;
}

/* The server sets the time of the load before it forks the next session, so a new session that sees a newer one runs
 * under the new files. */
static int load_time(struct pg_cluster *c, struct pg_node *n, int64_t *ret_time)
{
	PGconn *conn;
	int r = pg_sql_open_node(c, n, "postgres", 2000, &conn);
	if (r < 0)
		return r;
	r = pg_sql_int(conn, 2000, "select (extract(epoch from pg_conf_load_time()) * 1000000)::bigint", ret_time);
	PQfinish(conn);
	return r;
}

int pg_node_reload(struct pg_cluster *c, struct pg_node *n)
{
	int64_t before, now, end = pg_mono_ms() + 5000;
	int r = n->pid ? load_time(c, n, &before) : -ESRCH;
	if (r < 0)
		return r;
	pg_process_signal(n->pidfd, SIGHUP);
	for (int pause = 2; pg_mono_ms() < end; pause = pause < 20 ? pause * 2 : 20) {
		pg_sleep_ms(pause);
		r = load_time(c, n, &now);
		if (r == 0 && now != before)
			return 0;
		if (r < 0 && pg_process_ended(n->pidfd, 0))
			return -ESRCH;
	}
	return r < 0 ? r : -ETIMEDOUT;
}

bool pg_node_hangs(struct pg_cluster *c, const struct pg_node *n)
{
	pthread_mutex_lock(&c->lock);
	bool hangs = n->hung;
	pthread_mutex_unlock(&c->lock);
	return hangs;
}

/* A primary that hangs was asked five times in one change of access, three seconds each: it was only then that its
 * standbys, which could not be held against it, were shut, and that the supervision, which waits for the same lock,
 * could begin a failover. */
int pg_node_reach(struct pg_cluster *c, struct pg_node *n, PGconn **ret_conn)
{
	if (pg_node_hangs(c, n) || pg_process_is_stopped(n->pid) || clock_mono_us() < n->silent_until_us)
		return -ETIMEDOUT;
	int r = pg_sql_open_node(c, n, "postgres", REACH_MS, ret_conn);
	n->silent_until_us = r == -ETIMEDOUT ? clock_mono_us() + SILENT_US : 0;
	return r;
}

int pg_cluster_halt(struct pg_cluster *c)
{
	int r = 0;
	for (size_t i = 0; i < c->set_count && r == 0; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (p)
			r = pg_node_halt(c, p, PG_HALT_FAST);
	}
	for (size_t i = 0; i < c->node_count && r == 0; i++)
		r = pg_node_halt(c, c->nodes[i], PG_HALT_FAST);
	return r;
}
