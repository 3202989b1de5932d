/* One node: where it lies and listens, and its server process from start to a proven end. */
#include "engine/postgres/cluster/node.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/admit.h"
#include "engine/postgres/cluster/config.h"
#include "engine/postgres/cluster/missing.h"
#include "engine/postgres/cluster/owner.h"
#include "engine/postgres/cluster/restoring.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/cluster/tls.h"
#include "engine/postgres/cluster/upgrade.h"
#include "engine/postgres/host/cgroup.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/fscrypt.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/model/work.h"
#include "engine/postgres/sql/sql.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- where it listens */

static int address_probe(const char *address, unsigned port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	inet_pton(AF_INET, address, &sa.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	int r = bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0 || listen(fd, 1) < 0 ? -errno : 0;
	close(fd);
	return r;
}

int pg_address_check(const char *address)
{
	return address_probe(address, 0);
}

#define NUMBERS 65536u /* of slots, and of ports */
#define DRAWS 100

/* What the nodes of this service have. */
struct taken {
	bool slots[NUMBERS], ports[NUMBERS];
};

static void taken_read(struct engine *e, struct taken *t)
{
	*t = (struct taken){.slots = {false}};
	for (unsigned i = 0; i < NUMBERS; i += 256) /* no address ends with 0 or 255 */
		t->slots[i] = t->slots[i + 255] = true;
	for (struct pg_cluster *c = e->clusters; c; c = c->next) {
		pthread_mutex_lock(&c->lock);
		for (size_t i = 0; i < c->node_count; i++) {
			t->slots[c->nodes[i]->slot % NUMBERS] = true;
			t->ports[c->nodes[i]->port % NUMBERS] = true;
		}
		pthread_mutex_unlock(&c->lock);
	}
}

/* One address, a port each. */
static int port_try(struct engine *e, const struct taken *t, const char *address, unsigned draw, struct pg_node *n)
{
	unsigned port = e->port_first + draw % (e->port_last - e->port_first + 1);
	if (t->ports[port % NUMBERS] || address_probe(address, port) < 0)
		return -EAGAIN;
	n->port = port;
	snprintf(n->address, sizeof n->address, "%s", address);
	return 0;
}

/* The first slot from the draw on, and the port of the draw. An address that another program has is seen by binding. */
static int place_try(struct engine *e, const struct taken *t, unsigned draw, struct pg_node *n)
{
	char address[IP_TEXT];
	unsigned skipped = 0;
	while (skipped < NUMBERS && t->slots[(draw + skipped) % NUMBERS])
		skipped++;
	if (skipped == NUMBERS)
		return -EADDRINUSE;
	n->slot = (draw + skipped) % NUMBERS;
	if (e->address[0])
		return port_try(e, t, e->address, draw, n);
	snprintf(address, sizeof address, "127.77.%u.%u", n->slot >> 8, n->slot & 255);
	int r = address_probe(address, PG_PORT);
	if (r == -EADDRNOTAVAIL || r == -EACCES) /* no loopback network of our own here */
		return port_try(e, t, "127.0.0.1", draw, n);
	if (r < 0)
		return -EAGAIN;
	n->port = PG_PORT;
	snprintf(n->address, sizeof n->address, "%s", address);
	return 0;
}

/* Places are drawn at random, so that several services on one host seldom meet. Where draws find none, every one is
 * tried, in order: a range that is almost full has a last free port. The caller adds the node to its cluster before
 * another is placed. */
int pg_node_place(struct pg_cluster *c, struct pg_node *n)
{
	struct taken *t = must_calloc(1, sizeof *t);
	uint32_t draw = 0;
	int r = -EAGAIN;
	pthread_mutex_lock(&c->engine->lock);
	taken_read(c->engine, t);
	pthread_mutex_unlock(&c->engine->lock);
	for (unsigned i = 0; i < DRAWS + NUMBERS && r == -EAGAIN; i++) {
		if (i <= DRAWS) {
			random_bytes(&draw, sizeof draw);
			draw /= 2; /* so that counting from it does not wrap */
		} else {
			draw++;
		}
		r = place_try(c->engine, t, draw, n);
	}
	free(t);
	return r == -EAGAIN ? -EADDRINUSE : r;
}

/* --- its directories */

int pg_node_prepare(struct pg_cluster *c, struct pg_node *n)
{
	char path[PG_PATH];
	pg_node_path(c, n, "", path);
	int r = pg_dir_make(c->user, path, true);
	r = r < 0 ? r : pg_crypt_dir(c, path);
	pg_node_path(c, n, "conf", path);
	r = r < 0 ? r : pg_dir_make(c->user, path, false);
	pg_node_path(c, n, "log", path);
	r = r < 0 ? r : pg_dir_make(c->user, path, true);
	pg_node_run_dir(c, n, path);
	r = r < 0 ? r : pg_dir_make(c->user, path, true);
	r = r < 0 ? r : pg_tls_ensure(c, n, NULL);
	r = r < 0 ? r : pg_access_first(c, n);
	return r < 0 ? r : pg_config_write(c, n, NULL);
}

int pg_node_remove(struct pg_cluster *c, struct pg_node *n)
{
	char path[PG_PATH], aside[PG_PATH];
	int r = pg_upgrade_sweep(c, n);
	r = r < 0 ? r : pg_restore_sweep(c, n);
	r = r < 0 ? r : pg_node_halt(c, n, PG_HALT_NOW);
	if (r == 0)
		(void)!pg_archive_drain(c, n); /* a fault is in the log; what shall go, goes */
	/* What is removed in part does not look like a node, should it be wanted again. */
	pg_node_path(c, n, "data", path);
	pg_node_path(c, n, "data.removed", aside);
	if (r == 0 && nolink_rename(path, aside) < 0 && errno != ENOENT)
		r = pg_tree_remove(path); /* there is one from before */
	pg_node_path(c, n, "", path);
	if (r == 0)
		r = pg_tree_remove(path);
	pg_node_run_dir(c, n, path);
	return r < 0 ? r : pg_tree_remove(path);
}

/* --- its process */

static void process_set(struct pg_cluster *c, struct pg_node *n, pid_t pid, int pidfd)
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
		process_set(c, n, 0, -1);
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

int pg_node_start(struct pg_cluster *c, struct pg_node *n)
{
	char program[PG_PATH], data[PG_PATH], conf[PG_PATH], log[PG_PATH], option[PG_PATH + 16];
	const char *bin = pg_version_bin(c->engine, c->version);
	if (!bin)
		return -ENOENT;
	if (n->pid && !pg_process_ended(n->pidfd, 0)) /* an end may not have been noted yet */
		return 0;
	if (n->pid)
		pg_node_ended(c, n);
	pg_node_path(c, n, "data", data);
	pid_t pid;
	int pidfd;
	int64_t started;
	if (!pg_node_is_own(c, n)) {
		pg_why_set(NULL, "%s is another database's data", data);
		return -EBADF;
	}
	if (pg_process_adopt(data, &pid, &pidfd, &started) == 0) {
		process_set(c, n, pid, pidfd);
		n->primary_known = false;
		return 0;
	}
	int r = pg_node_bury(c, n);
	r = r < 0 ? r : pg_user_settle(c);
	r = r < 0 ? r : pg_admit_begin(c, n);
	if (r < 0)
		return r;
	pg_node_run_dir(c, n, log);
	r = pg_dir_make(c->user, log, true); /* not kept with data that was put back */
	if (r < 0)
		return r;
	pg_path_set(program, "%s/postgres", bin);
	pg_node_path(c, n, "conf/postgresql.conf", conf);
	pg_node_path(c, n, "log/start.log", log);
	snprintf(option, sizeof option, "config_file=%s", conf);
	const char *argv[] = {program, "-D", data, "-c", option, NULL};
	const struct pg_bounds bounds = {.cgroup_fd = pg_cgroup_open(c)};
	r = pg_process_spawn(c->user, argv, data, log, &bounds, &pid, &pidfd);
	if (bounds.cgroup_fd >= 0)
		close(bounds.cgroup_fd);
	if (r == 0) {
		process_set(c, n, pid, pidfd);
		pg_process_note(data, pid);
		n->loaded = n->admits = n->primary_known = true;
		pg_engine_wake(c->engine);
	}
	return r;
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
			process_set(c, n, pid, pidfd);
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
