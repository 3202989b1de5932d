/* CPU, memory and number of processes of a cluster, by cgroup v2, where there is one for us: a directory (--db-cgroup)
 * that has the controllers cpu, memory and pids, and that we may write. Each cluster has a cgroup below it, with the
 * sum of what its nodes' sizes stand for; servers enter it before they begin. Without such a directory everything
 * works, unbounded.
 *
 * The service's own cgroup is left alone: with controllers enabled below it, systemd could not start the unit again
 * while databases of before run there. */
#include "engine/postgres/host/cgroup.h"

#include "base/log.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/size.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERIOD_US 100000u
#define THROWAWAY_PROCESSORS 2
#define THROWAWAY_MB 4096
#define THROWAWAY_PROCESSES 200
#define DEFAULT_ROOT "/sys/fs/cgroup/steward"

static int value_write(const char *dir, const char *name, const char *value)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, value, strlen(value));
	int r = n == (ssize_t)strlen(value) ? 0 : n < 0 ? -errno : -EIO;
	close(fd);
	return r;
}

static bool has_controllers(const char *dir)
{
	static const char *const needed[] = {"cpu", "memory", "pids"};
	char path[PG_PATH], *text;
	bool all = true;
	pg_path_set(path, "%s/cgroup.controllers", dir);
	if (pg_file_read(path, 4096, &text) < 0)
		return false;
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
		bool found = false;
		struct str rest = str_of(text), word;
		for (bool more = true; more && !found;) {
			more = str_cut(rest, ' ', &word, &rest);
			while (word.n && word.p[word.n - 1] == '\n')
				word.n--;
			found = str_is(word, needed[i]);
		}
		all &= found;
	}
	free(text);
	return all;
}

void pg_cgroup_find(struct engine *e, const char *dir)
{
	const char *why = NULL;
	e->cgroup[0] = 0;
	if (!dir)
		dir = DEFAULT_ROOT;
	else if (!*dir)
		why = "as asked for";
	int r = 0;
	if (!why && !has_controllers(dir))
		why = "there is no cgroup v2 with the controllers cpu, memory and pids";
	else if (!why && (r = value_write(dir, "cgroup.subtree_control", "+cpu +memory +pids")) < 0)
		why = strerror(-r);
	if (why) {
		log_info("engine: databases are not bounded in CPU and memory: %s%s%s", *dir ? dir : "",
		         *dir ? ": " : "", why);
		return;
	}
	pg_path_set(e->cgroup, "%s", dir);
	log_info("engine: databases are bounded in CPU and memory, below %s", dir);
}

static void cgroup_path(const struct pg_cluster *c, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s", c->engine->cgroup, c->id);
}

static int bounds_write(const char *dir, const struct engine_size *size, unsigned processes)
{
	char text[64];
	int r = mkdir(dir, 0755) < 0 && errno != EEXIST ? -errno : 0;
	snprintf(text, sizeof text, "%u %u", size->processors * PERIOD_US, PERIOD_US);
	r = r < 0 ? r : value_write(dir, "cpu.max", text);
	snprintf(text, sizeof text, "%llu", (unsigned long long)size->memory_mb << 20);
	r = r < 0 ? r : value_write(dir, "memory.max", text);
	snprintf(text, sizeof text, "%u", processes);
	return r < 0 ? r : value_write(dir, "pids.max", text);
}

static int processes_open(const char *dir)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/cgroup.procs", dir);
	return open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
}

static void dir_remove(const char *dir)
{
	/* A superuser of SQL starts programs that outlive its server: they end with the cluster, and its user is free
	 * for another project. */
	(void)!value_write(dir, "cgroup.kill", "1");
	/* Processes that were killed a moment ago may still count. */
	for (int i = 0; i < 50 && rmdir(dir) < 0 && errno == EBUSY; i++)
		pg_sleep_ms(20);
}

int pg_cgroup_apply(const struct pg_cluster *c)
{
	char dir[PG_PATH];
	struct engine_size all = {0};
	unsigned processes = 0;
	if (!c->engine->cgroup[0])
		return 0;
	for (size_t i = 0; i < c->node_count; i++) {
		const char *size = c->nodes[i]->want.instance_size;
		struct engine_size one = engine_size(size);
		if (c->nodes[i]->removing)
			continue;
		all.processors += one.processors;
		all.memory_mb += one.memory_mb;
		processes += pg_size_of(size).connections + 100; /* a server's own processes and their helpers */
	}
	cgroup_path(c, dir);
	int r = bounds_write(dir, &all, processes);
	if (r < 0)
		log_warn("engine: %s: its cgroup cannot be set: %s", c->id, strerror(-r));
	return r;
}

int pg_cgroup_open(const struct pg_cluster *c)
{
	char dir[PG_PATH];
	if (!c->engine->cgroup[0] || pg_cgroup_apply(c) < 0)
		return -1;
	cgroup_path(c, dir);
	return processes_open(dir);
}

void pg_cgroup_remove(const struct pg_cluster *c)
{
	char dir[PG_PATH];
	if (!c->engine->cgroup[0])
		return;
	cgroup_path(c, dir);
	dir_remove(dir);
}

/* Of its own, not its cluster's: a drill or a restore must not take memory from the database that serves meanwhile. Its
 * name is the directory's below the engine's, so that no two are the same. */
static void throwaway_path(const struct engine *e, const char *server_dir, char ret_path[PG_PATH])
{
	size_t n = strlen(e->dir), at = strlen(e->cgroup) + 1;
	pg_path_set(ret_path, "%s/server%s", e->cgroup,
	            strncmp(server_dir, e->dir, n) == 0 ? server_dir + n : server_dir);
	for (char *p = ret_path + at; *p; p++)
		*p = (char)(*p == '/' ? '-' : *p);
}

int pg_cgroup_open_throwaway(const struct engine *e, const char *server_dir)
{
	static const struct engine_size size = {.processors = THROWAWAY_PROCESSORS, .memory_mb = THROWAWAY_MB};
	char dir[PG_PATH];
	if (!e->cgroup[0])
		return -1;
	throwaway_path(e, server_dir, dir);
	int r = bounds_write(dir, &size, THROWAWAY_PROCESSES);
	if (r < 0)
		log_warn("engine: %s: its cgroup cannot be set: %s", server_dir, strerror(-r));
	return r < 0 ? -1 : processes_open(dir);
}

void pg_cgroup_remove_throwaway(const struct engine *e, const char *server_dir)
{
	char dir[PG_PATH];
	if (!e->cgroup[0])
		return;
	throwaway_path(e, server_dir, dir);
	if (access(dir, F_OK) == 0)
		dir_remove(dir);
}
