/* The PostgreSQL engine: the tables of its operations, its start and its stop.
 *
 * Databases are processes of their own sessions and never end because the service does; cluster/adopt.c finds them
 * again after a restart. As root, nodes run as a system user of their own, because PostgreSQL refuses to run as
 * root. */
#include "engine/postgres/postgres.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/backup/backup.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/admit.h"
#include "engine/postgres/cluster/adopt.h"
#include "engine/postgres/cluster/audit.h"
#include "engine/postgres/cluster/cluster.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/missing.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/pool.h"
#include "engine/postgres/cluster/quota.h"
#include "engine/postgres/cluster/renew.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/supervisor.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/federation/federation.h"
#include "engine/postgres/host/cgroup.h"
#include "engine/postgres/host/descriptors.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/fscrypt.h"
#include "engine/postgres/host/place.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/lake/lake.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/model/work.h"
#include "engine/postgres/observe/activity.h"
#include "engine/postgres/observe/advice.h"
#include "engine/postgres/observe/ask.h"
#include "engine/postgres/observe/inspect.h"
#include "engine/postgres/observe/log.h"
#include "engine/postgres/observe/log_node.h"
#include "engine/postgres/observe/measure.h"
#include "engine/postgres/observe/measure_servers.h"
#include "engine/postgres/observe/shapes.h"
#include "engine/postgres/sql/index.h"
#include "engine/postgres/sql/index_run.h"
#include "engine/postgres/sql/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PORT_FIRST 20000
#define PORT_LAST 29999

/* --- start */

static int pg_can_run(bool real_clock, struct arena *a, const char **ret_why)
{
	if (!real_clock) {
		*ret_why = "databases do not follow a virtual clock";
		return -ENOTSUP;
	}
	struct engine *e = must_calloc(1, sizeof *e);
	int r = pg_programs_find(e, NULL);
	if (r == 0)
		r = pg_users_find(e, NULL);
	if (r == 0)
		pg_why_set(NULL, "PostgreSQL %u is installed", e->versions[0].major);
	*ret_why = arena_z(a, str_of(pg_why_last()));
	free(e->users);
	free(e);
	return r;
}

static void engine_free(struct engine *e)
{
	pg_index_tasks_free(e);
	while (e->clusters) {
		struct pg_cluster *c = e->clusters;
		e->clusters = c->next;
		pg_cluster_free(c);
	}
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->changed);
	pg_activities_free(e->activities);
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
		r = pg_programs_find(e, o->programs);
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
			pg_clusters_adopt(e);
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
		pg_cluster_unlink(c);
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
		count += c->node_count > 0 && !c->gone && !c->destroying && !c->federation;
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
        .lake = &pg_lake,
        .federation = &pg_federation,
        .shapes = &pg_shapes,
        .sql = &pg_sql_of_people,
        .activity = &pg_activity,
};
