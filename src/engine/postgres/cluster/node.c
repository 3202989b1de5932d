/* One node: where it lies and listens, and the start of its server. */
#include "engine/postgres/cluster/node.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/cluster/config.h"
#include "engine/postgres/cluster/hba.h"
#include "engine/postgres/cluster/identity.h"
#include "engine/postgres/cluster/owner.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/tls.h"
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

/* --- its process */

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
		pg_node_process_set(c, n, pid, pidfd);
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
		pg_node_process_set(c, n, pid, pidfd);
		pg_process_note(data, pid);
		n->loaded = n->admits = n->primary_known = true;
		pg_engine_wake(c->engine);
	}
	return r;
}
