/* The PostgreSQL engine: the table of its operations, its start with the adoption of what runs, and its stop.
 *
 * Databases are processes of their own sessions and never end because the service does. After a restart everything is
 * found again from state.json and postmaster.pid; nothing is asked of the servers, so that sixty of them are adopted in
 * moments. As root, nodes run as a system user of their own, because PostgreSQL refuses to run as root. */
#include "engine/postgres/postgres.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/backup/backup.h"
#include "engine/postgres/backup/restore.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/admit.h"
#include "engine/postgres/cluster/audit.h"
#include "engine/postgres/cluster/cluster.h"
#include "engine/postgres/cluster/crypt.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/missing.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/pool.h"
#include "engine/postgres/cluster/quota.h"
#include "engine/postgres/cluster/renew.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/cluster/supervisor.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/cluster/tls.h"
#include "engine/postgres/host/cgroup.h"
#include "engine/postgres/host/descriptors.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/place.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/observe/activity.h"
#include "engine/postgres/observe/advice.h"
#include "engine/postgres/observe/ask.h"
#include "engine/postgres/observe/inspect.h"
#include "engine/postgres/observe/log.h"
#include "engine/postgres/observe/log_node.h"
#include "engine/postgres/observe/measure.h"
#include "engine/postgres/observe/shapes.h"
#include "engine/postgres/sql/index.h"
#include "engine/postgres/sql/index_run.h"
#include "engine/postgres/sql/sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PORT_FIRST 20000
#define PORT_LAST 29999
#define BIN_ROOT "/usr/lib/postgresql"
#define THREAD_STACK (512ul * 1024)

/* --- small things that all parts use */

static _Thread_local char why_text[1024];

void pg_why_set(const char **ret_why, const char *format, ...)
{
	char text[sizeof why_text]; /* the arguments may be the last text */
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	for (size_t n = strlen(text); n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '); n--)
		text[n - 1] = 0;
	memcpy(why_text, text, sizeof why_text);
	if (ret_why)
		*ret_why = why_text;
}

const char *pg_why_last(void)
{
	return why_text;
}

int64_t pg_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

void pg_sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

void pg_cluster_changed(const struct pg_cluster *c)
{
	if (c->engine->listener)
		c->engine->listener(c->engine->listener_ctx, c->id);
}

void pg_engine_wake(struct engine *e)
{
	uint64_t one = 1;
	(void)!write(e->wake_fd, &one, sizeof one);
}

int pg_engine_work(struct engine *e, void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_mutex_lock(&e->lock);
	e->workers++;
	pthread_mutex_unlock(&e->lock);
	int r = pthread_create(&thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	if (r != 0)
		pg_engine_work_done(e);
	return -r;
}

void pg_engine_work_done(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->workers--;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

/* --- clusters */

struct pg_node *pg_cluster_node(const struct pg_cluster *c, const char *name)
{
	for (size_t i = 0; i < c->node_count; i++)
		if (strcmp(c->nodes[i]->want.name, name) == 0)
			return c->nodes[i];
	return NULL;
}

struct pg_set *pg_cluster_set(struct pg_cluster *c, unsigned number)
{
	for (size_t i = 0; i < c->set_count; i++)
		if (c->sets[i].number == number)
			return &c->sets[i];
	return NULL;
}

struct pg_node *pg_set_primary(const struct pg_cluster *c, const struct pg_set *s)
{
	return pg_cluster_node(c, s->primary);
}

static struct pg_cluster *cluster_new(struct engine *e, const char *id)
{
	struct pg_cluster *c = must_calloc(1, sizeof *c);
	c->engine = e;
	c->user = &e->user;
	c->refs = 1;
	pthread_mutex_init(&c->work, NULL);
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->crypt, NULL);
	c->files_open = true;
	pthread_cond_init(&c->copied, NULL);
	snprintf(c->id, sizeof c->id, "%s", id);
	return c;
}

static void cluster_free(struct pg_cluster *c)
{
	for (size_t i = 0; i < c->node_count; i++)
		pg_node_free(c->nodes[i]);
	for (size_t i = 0; i < c->param_count; i++) {
		free(c->params[i].name);
		free(c->params[i].value);
	}
	free(c->audit);
	free(c->ca_cert);
	free(c->ca_key);
	arena_free(c->access_arena);
	pg_archive_free(c);
	pthread_mutex_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->crypt);
	pthread_cond_destroy(&c->copied);
	free(c);
}

static struct pg_cluster *cluster_get(struct engine *e, const char *id, bool make)
{
	if (!id_is_valid(str_of(id)))
		return NULL;
	pthread_mutex_lock(&e->lock);
	struct pg_cluster *c = e->clusters;
	while (c && strcmp(c->id, id) != 0)
		c = c->next;
	if (!c && make) {
		c = cluster_new(e, id);
		c->next = e->clusters;
		e->clusters = c;
	}
	if (c)
		c->refs++;
	pthread_mutex_unlock(&e->lock);
	return c;
}

struct pg_cluster *pg_cluster_find(struct engine *e, const char *id)
{
	return cluster_get(e, id, false);
}

struct pg_cluster *pg_cluster_ensure(struct engine *e, const char *id)
{
	return cluster_get(e, id, true);
}

void pg_cluster_put(struct pg_cluster *c)
{
	struct engine *e = c->engine;
	pthread_mutex_lock(&e->lock);
	bool last = --c->refs == 0;
	pthread_mutex_unlock(&e->lock);
	if (last)
		cluster_free(c);
}

/* Out of the list, with the list's reference. */
static void cluster_unlink(struct pg_cluster *c)
{
	struct engine *e = c->engine;
	bool found = false; /* not when two remove it at once, and the other was first */
	pthread_mutex_lock(&e->lock);
	for (struct pg_cluster **at = &e->clusters; *at && !found; at = found ? at : &(*at)->next)
		if (*at == c) {
			*at = c->next;
			found = true;
			pg_user_note(e, c->user);
		}
	pthread_mutex_unlock(&e->lock);
	if (found)
		pg_cluster_put(c);
}

/* --- start */

const char *pg_version_bin(const struct engine *e, unsigned major)
{
	for (size_t i = 0; i < e->version_count; i++)
		if (e->versions[i].major == major)
			return e->versions[i].bin;
	return NULL;
}

/* "postgres (PostgreSQL) 15.19 (Debian ...)" as "15.19.0". */
void pg_version_read(const char *bin, unsigned major, char ret_text[24])
{
	char program[PG_PATH], line[128];
	uint64_t minor = 0;
	pg_path_set(program, "%s/postgres", bin);
	const char *const argv[] = {program, "--version", NULL};
	pg_process_ask(argv, line, sizeof line);
	const char *dot = strchr(line, '.');
	if (dot && !str_to_u64((struct str){dot + 1, strspn(dot + 1, "0123456789")}, 9999, &minor))
		minor = 0;
	snprintf(ret_text, 24, "%u.%u.0", major, (unsigned)minor);
}

static void versions_find(struct engine *e, const char *root)
{
	DIR *d = opendir(root);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		uint64_t major;
		char program[PG_PATH];
		size_t n = e->version_count;
		pg_path_set(program, "%s/%s/bin/postgres", root, entry->d_name);
		if (n == sizeof e->versions / sizeof *e->versions || !str_to_u64(str_of(entry->d_name), 999, &major) ||
		    access(program, X_OK) < 0)
			continue;
		size_t at = n;
		for (; at > 0 && e->versions[at - 1].major < major; at--)
			e->versions[at] = e->versions[at - 1];
		e->versions[at].major = (unsigned)major;
		snprintf(e->versions[at].bin, sizeof e->versions[at].bin, "%.40s/%u/bin", root, (unsigned)major);
		pg_version_read(e->versions[at].bin, (unsigned)major, e->versions[at].text);
		e->version_count++;
	}
	if (d)
		closedir(d);
}

static int programs_find(struct engine *e, const char *root)
{
	versions_find(e, root ? root : BIN_ROOT);
	if (e->version_count > 0)
		return 0;
	pg_why_set(NULL, "there is no PostgreSQL below %s", root ? root : BIN_ROOT);
	return -ENOENT;
}

static int pg_can_run(bool real_clock, struct arena *a, const char **ret_why)
{
	if (!real_clock) {
		*ret_why = "databases do not follow a virtual clock";
		return -ENOTSUP;
	}
	struct engine *e = must_calloc(1, sizeof *e);
	int r = programs_find(e, NULL);
	if (r == 0)
		r = pg_users_find(e, NULL);
	if (r == 0)
		pg_why_set(NULL, "PostgreSQL %u is installed", e->versions[0].major);
	*ret_why = arena_z(a, str_of(pg_why_last()));
	pg_activities_free(e->activities);
	free(e->users);
	free(e);
	return r;
}

/* --- adoption */

/* What runs, found again. */
static void cluster_adopt(struct pg_cluster *c)
{
	unsigned running = 0;
	pg_identities_learn(c); /* of a version that did not note them */
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		char data[PG_PATH];
		pg_node_path(c, n, "data", data);
		if (pg_process_adopt(data, &n->pid, &n->pidfd, &n->started_ms) == 0)
			running++;
		/* For the job that was making it. One that was made before is no such: another may have to lead. */
		n->busy = !pg_node_is_made(c, n) && !pg_node_was_made(c, n);
		n->shut = pg_admit_is_shut(c, n);
		n->probe_us = clock_mono_us();
		if (!n->pid && pg_node_shall_run(c, n) && !n->removing)
			pg_node_ended(c, n); /* while nobody looked */
	}
	log_debug("engine: %s: %u of %zu nodes run", c->id, running, c->node_count);
}

int pg_cluster_recall(struct pg_cluster *c, const struct engine_access *access, const char **ret_why)
{
	if (c->node_count > 0)
		return 0;
	struct pg_cluster *found = cluster_new(c->engine, c->id);
	int r = pg_state_load(found);
	/* One that is there and cannot be read is none that was lost: nothing is made anew beside it. */
	if (r < 0 && r != -EINVAL && !pg_is_absence(-r)) {
		pg_why_set(ret_why, "%s/%s/state.json cannot be read: %s", c->engine->dir, c->id, strerror(-r));
		cluster_free(found);
		return r;
	}
	if (r == 0) {
		pg_crypt_recall(found);
		cluster_adopt(found);
		if (!pg_crypt_is_shut(found))
			pg_restore_recall(found);
		pthread_mutex_lock(&c->lock);
		pg_state_move(c, found);
		pthread_mutex_unlock(&c->lock);
		log_info("engine: %s is there again", c->id);
	}
	cluster_free(found);
	/* Its files may name another place, and know users of another time. */
	for (size_t i = 0; i < c->node_count; i++)
		if (pg_node_prepare(c, c->nodes[i]) < 0 || pg_access_write(c, c->nodes[i], access, NULL) < 0)
			log_warn("engine: %s: its directory cannot be prepared", c->nodes[i]->want.name);
	return 0;
}

static void clusters_adopt(struct engine *e)
{
	DIR *d = opendir(e->dir);
	unsigned count = 0;
	int64_t began = clock_mono_us();
	for (struct dirent *entry; d && (entry = readdir(d));) {
		if (!id_is_valid(str_of(entry->d_name)))
			continue;
		struct pg_cluster *c = cluster_new(e, entry->d_name);
		int r = pg_state_load(c);
		if (r < 0) {
			if (r != -EINVAL && !pg_is_absence(-r)) /* the job that looks for it says so, too */
				log_error("engine: %s/%s/state.json cannot be read: %s", e->dir, c->id, strerror(-r));
			cluster_free(c);
			continue;
		}
		pg_crypt_recall(c);
		cluster_adopt(c);
		if (!pg_crypt_is_shut(c))
			pg_restore_recall(c);
		pg_quota_recall(c);
		/* A promotion that was cut short is gone on with at once. */
		c->looked_us = c->streamed_us = clock_mono_us();
		for (size_t i = 0; i < c->set_count; i++) {
			struct pg_node *p = pg_set_primary(c, &c->sets[i]);
			if (p && p->pid && pg_node_is_standby(c, p))
				c->looked_us = 0;
		}
		c->next = e->clusters;
		e->clusters = c;
		count++;
	}
	if (d)
		closedir(d);
	if (count)
		log_info("engine: %u clusters adopted in %d us", count, (int)(clock_mono_us() - began));
}

static void engine_free(struct engine *e)
{
	pg_index_tasks_free(e);
	while (e->clusters) {
		struct pg_cluster *c = e->clusters;
		e->clusters = c->next;
		cluster_free(c);
	}
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->changed);
	free(e->users);
	free(e);
}

static int pg_start(const struct engine_options *o, struct engine **ret_engine)
{
	struct engine *e = must_calloc(1, sizeof *e);
	char *real = realpath(o->data_dir, NULL);
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	e->activities = pg_activities_new();
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	snprintf(e->domain, sizeof e->domain, "%s", o->domain);
	snprintf(e->address, sizeof e->address, "%s", o->address ? o->address : "");
	e->listener = o->changed;
	e->listener_ctx = o->changed_ctx;
	e->port_first = o->port_first ? o->port_first : PORT_FIRST;
	e->port_last = o->port_last ? o->port_last : PORT_LAST;
	e->disk_unit = (uint64_t)o->disk_mb << 20;
	e->full_changed = o->full_changed;
	e->full_ctx = o->full_ctx;
	e->repositories = o->repositories;
	e->keys = o->keys;
	e->spool_bytes = o->spool_bytes;
	int r = !real ? -ENOENT : e->wake_fd < 0 ? -EMFILE : 0;
	if (r == 0 && o->address && (r = pg_address_check(o->address)) < 0)
		log_error("engine: --db-address %s: %s", o->address,
		          r == -EADDRNOTAVAIL ? "this host has no such address" : strerror(-r));
	if (r == 0) {
		r = programs_find(e, o->programs);
		r = r < 0 ? r : pg_users_find(e, o->user);
		if (r < 0)
			log_error("engine: %s; or use --engine simulated", pg_why_last());
	}
	r = r < 0 ? r : pg_place_find(e, real);
	free(real);
	if (r == 0) {
		pg_users_tell(e);
		pg_crypt_probe(e);
		pg_cgroup_find(e, o->cgroup);
		pg_modules_prepare(e);
		pg_throwaways_sweep(e);
		r = pg_descriptors_ensure(e);
		if (r == 0)
			clusters_adopt(e);
		r = r < 0 ? r : -pthread_create(&e->supervisor, NULL, pg_supervise, e);
	}
	if (r == 0 && (r = -pthread_create(&e->archiver, NULL, pg_archive_run, e)) < 0) {
		e->stopping = true;
		pg_engine_wake(e);
		pthread_join(e->supervisor, NULL);
	}
	if (r < 0) {
		engine_free(e);
		return r;
	}
	pg_pool_start(e);
	*ret_engine = e;
	return 0;
}

static void pg_stop(struct engine *e)
{
	if (!e)
		return;
	pg_measures_free(e);
	pthread_mutex_lock(&e->lock);
	e->stopping = true;
	pthread_mutex_unlock(&e->lock);
	pg_index_tasks_stop(e);
	pg_engine_wake(e);
	pthread_join(e->supervisor, NULL);
	pthread_join(e->archiver, NULL);
	pthread_mutex_lock(&e->lock);
	while (e->workers > 0)
		pthread_cond_wait(&e->changed, &e->lock);
	pthread_mutex_unlock(&e->lock);
	engine_free(e);
}

/* --- operations */

#define SPACE_LEAST (INT64_C(64) << 20) /* what a new node takes, and a little */

/* A full disk shows in many ways: a server that ends, a copy that breaks off. Not each of them names it. */
static const char *why_with_disk(const struct engine *e, struct arena *a, const char *why)
{
	struct statvfs disk;
	if (strcasestr(why, "no space") || statvfs(e->dir, &disk) < 0)
		return arena_z(a, str_of(why));
	int64_t left = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
	if (left >= SPACE_LEAST)
		return arena_z(a, str_of(why));
	return arena_printf(a, "%s; its disk has no space for a node: %lld MB are left", why, (long long)(left >> 20))
	        .p;
}

static int pg_converge(struct engine *e, const struct engine_cluster *want, const struct engine_access *access,
                       struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	struct pg_cluster *c = pg_cluster_ensure(e, want->id);
	if (!c) {
		*ret_why = "id: 24 hexadecimal digits";
		return -EINVAL;
	}
	const char *why = NULL;
	int r = pg_cluster_converge(c, want, access, progress, &why);
	if (r != 0)
		*ret_why = r < 0 ? why_with_disk(e, a, why) : arena_z(a, str_of(why));
	pthread_mutex_lock(&c->work);
	if (r == 0 && !c->gone && !c->destroying)
		(void)!pg_cgroup_apply(c); /* sizes may be others now; a fault is in the log */
	pthread_mutex_unlock(&c->work);
	pg_cluster_put(c);
	return r;
}

static int pg_destroy(struct engine *e, const char *cluster_id, struct engine_progress *progress)
{
	if (!id_is_valid(str_of(cluster_id)))
		return -EINVAL;
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	if (!c) {
		char path[PG_PATH];
		pg_path_set(path, "%s/%s", e->dir, cluster_id);
		pg_strays_end(e, path);
		return pg_tree_remove(path);
	}
	int r = pg_cluster_destroy(c, progress);
	if (r == 0)
		pg_cgroup_remove(c);
	if (r == 0)
		cluster_unlink(c);
	pg_cluster_put(c);
	return r;
}

static int pg_switchover(struct engine *e, const char *cluster_id, unsigned shard, const char *from,
                         const char **ret_why)
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	if (!c) {
		*ret_why = "there is no such cluster";
		return -ENOENT;
	}
	*ret_why = NULL;
	pthread_mutex_lock(&c->work);
	struct pg_set *s = pg_cluster_set(c, shard);
	if (!c->paused)
		pg_cluster_care(c, true); /* one that was cut short goes on first */
	int r = !s || c->paused ? -ENOENT : strcmp(s->primary, from) != 0 ? 0 : pg_set_switchover(c, s, ret_why);
	if (r == 0) {
		/* Not back before all follow: the next call may come at once. */
		for (size_t i = 0; i < c->node_count; i++)
			if (c->nodes[i]->set == shard && c->nodes[i]->pid)
				(void)!pg_node_wait_ready(c, c->nodes[i], 10000, NULL);
		(void)!pg_cluster_wait_streaming(c, s, 10000);
		pg_admit_all(c, 10000);
	}
	pthread_mutex_unlock(&c->work);
	if (r < 0 && !*ret_why)
		pg_why_set(ret_why, "the cluster has no such running shard");
	pg_cluster_put(c);
	return r;
}

static int pg_apply_access(struct engine *e, const char *cluster_id, const struct engine_access *access,
                           const char **ret_why)
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	if (!c) {
		*ret_why = "there is no such cluster";
		return -ENOENT;
	}
	const char *why = NULL;
	pthread_mutex_lock(&c->work);
	int r = pg_access_apply(c, access, &why);
	pthread_mutex_unlock(&c->work);
	if (r != 0)
		*ret_why = why;
	pg_cluster_put(c);
	return r;
}

void pg_node_observe(struct pg_cluster *c, const struct pg_node *n, struct node_status *ret)
{
	struct pg_set *s = pg_cluster_set(c, n->set);
	snprintf(ret->name, sizeof ret->name, "%s", n->want.name);
	pg_node_host(c, n->want.name, ret->host);
	snprintf(ret->address, sizeof ret->address, "%s", n->address);
	ret->port = n->port;
	ret->kind = n->want.kind;
	ret->shard = n->want.shard;
	ret->state = n->busy                       ? NODE_STARTING
	             : n->pid && !n->noted         ? NODE_RUNNING
	             : c->paused || n->want.outage ? NODE_STOPPED
	             : n->failures > 3             ? NODE_FAILED
	                                           : NODE_STARTING;
	ret->primary = s && strcmp(s->primary, n->want.name) == 0 && ret->state == NODE_RUNNING;
	for (size_t i = 0; i < c->engine->version_count; i++)
		if (c->engine->versions[i].major == c->version)
			snprintf(ret->version, sizeof ret->version, "%s",
			         c->version_text[0] ? c->version_text : c->engine->versions[i].text);
	ret->started_ms = n->started_ms;
	ret->ends = n->ends;
	ret->down = n->down;
	ret->absent = n->absent;
	ret->term = s ? s->term : 0;
	ret->failovers = s ? s->failovers : 0;
	pg_set_name(&n->want, ret->set);
	if (s && s->identity)
		snprintf(ret->identity, sizeof ret->identity, "%llu", (unsigned long long)s->identity);
}

static int pg_known(struct engine *e, struct arena *a, struct engine_known **ret_list, size_t *ret_count)
{
	size_t count = 0;
	pthread_mutex_lock(&e->lock);
	for (const struct pg_cluster *c = e->clusters; c; c = c->next)
		count++;
	struct engine_known *list = arena_new_array(a, struct engine_known, count + 1);
	count = 0;
	for (struct pg_cluster *c = e->clusters; c; c = c->next) {
		struct engine_known *k = &list[count];
		pthread_mutex_lock(&c->lock);
		*k = (struct engine_known){.nodes = (unsigned)c->node_count};
		snprintf(k->id, sizeof k->id, "%s", c->id);
		snprintf(k->group_id, sizeof k->group_id, "%s", c->group_id);
		snprintf(k->name, sizeof k->name, "%s", c->name);
		for (size_t i = 0; i < c->node_count; i++)
			k->running += c->nodes[i]->pid != 0;
		count += c->node_count > 0 && !c->gone && !c->destroying;
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&e->lock);
	*ret_list = list;
	*ret_count = count;
	return 0;
}

static int pg_observe(struct engine *e, const char *cluster_id, struct arena *a, struct cluster_status *ret_status)
{
	*ret_status = (struct cluster_status){0};
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	ret_status->exists = c->node_count > 0;
	ret_status->full = c->full;
	ret_status->disk_used = c->disk_used;
	ret_status->disk_limit = c->disk_limit;
	ret_status->nodes = arena_new_array(a, struct node_status, c->node_count + 1);
	for (size_t i = 0; i < c->node_count; i++)
		if (!c->nodes[i]->removing)
			pg_node_observe(c, c->nodes[i], &ret_status->nodes[ret_status->node_count++]);
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	return 0;
}

static int pg_log_open(struct engine *e, const struct engine_log *log, int *ret_fd)
{
	struct pg_cluster *c = pg_cluster_find(e, log->cluster_id);
	if (!c)
		return -ENOENT;
	int r = pg_log_stream(c, log, ret_fd);
	pg_cluster_put(c);
	return r;
}

static int pg_audit_check(struct engine *e, const char **ret_why)
{
	int r = 0;
	for (size_t i = 0; i < e->version_count && r == 0; i++)
		r = pg_audit_available(e, e->versions[i].major, ret_why);
	return r;
}

static size_t pg_versions(struct engine *e, unsigned *ret_versions, size_t max)
{
	size_t n = 0;
	for (; n < e->version_count && n < max; n++)
		ret_versions[n] = e->versions[n].major;
	return n;
}

static const struct engine_core_ops pg_core = {
        .on_host = true,
        .reports_changes = true,
        .can_run = pg_can_run,
        .start = pg_start,
        .stop = pg_stop,
        .converge = pg_converge,
        .destroy = pg_destroy,
        .known = pg_known,
        .observe = pg_observe,
        .switchover = pg_switchover,
        .behind = pg_behind,
        .versions = pg_versions,
        .can_encrypt = pg_can_encrypt,
};
static const struct engine_access_ops pg_access = {.holds = true, .apply = pg_apply_access};
static const struct engine_log_ops pg_logs = {.open = pg_log_open,
                                              .logins = pg_logins,
                                              .follow = pg_log_follow_node,
                                              .end = pg_log_end_node,
                                              .audit_check = pg_audit_check};
static const struct engine_statistics_ops pg_statistics = {.host = pg_stats,
                                                           .databases = pg_databases,
                                                           .partitions = pg_partitions,
                                                           .tables = pg_tables_check,
                                                           .sent = pg_sent};
static const struct engine_disk_ops pg_disk = {.usage = pg_disk_usage};
static const struct engine_query_ops pg_query = {.load_sample = pg_load_sample};

const struct engine_ops engine_postgres = {
        .name = "postgres",
        .core = &pg_core,
        .access = &pg_access,
        .advice = &pg_advice,
        .logs = &pg_logs,
        .statistics = &pg_statistics,
        .sampling = &pg_sampling,
        .disk = &pg_disk,
        .backup = &pg_backup,
        .query = &pg_query,
        .index = &pg_index,
        .shapes = &pg_shapes,
        .sql = &pg_sql_of_people,
        .activity = &pg_activity,
};
