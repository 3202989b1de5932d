/* Making the nodes of a cluster that are missing: the primary of a set from the pool of empty data directories, the
 * others as copies of it. A node exists when its directory `data` does; it gets that name only when it is whole. Long
 * copies run without the cluster's lock, with the node marked busy, so that a primary that dies meanwhile is replaced
 * as always. */
#include "engine/postgres/cluster/make.h"

#include "base/arena.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/hba.h"
#include "engine/postgres/cluster/identity.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/pool.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/model/work.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

/* What a copy that was cut short left. */
static void node_tidy(struct pg_cluster *c, struct pg_node *n)
{
	char dir[PG_PATH], path[PG_PATH];
	pg_node_path(c, n, "", dir);
	DIR *d = nolink_opendir(dir);
	for (struct dirent *entry; d && (entry = readdir(d));)
		if (str_starts(str_of(entry->d_name), STR("data."))) {
			pg_path_set(path, "%s/%s", dir, entry->d_name);
			pg_tree_remove(path);
		}
	if (d)
		closedir(d);
}

/* Decided with the cluster's lock held, because without it a failover may move the primary. A directory may be copied
 * as it lies only when nobody starts its server meanwhile; whether it runs at this moment says nothing. */
struct plan {
	struct pg_node *primary;
	bool copy_cold;
};

static struct plan set_plan(const struct pg_cluster *c, const struct pg_set *s)
{
	struct pg_node *p = pg_set_primary(c, s);
	return (struct plan){p, p && !p->pid && (p->busy || c->paused || p->want.outage)};
}

struct copy {
	struct pg_cluster *c;
	struct pg_node *from, *to;
	bool copy_cold;
	pthread_t thread;
	bool running;
	int r;
	char why[400];
};

/* A copy of the directory of a primary that stands still, mostly before its first start. It is flushed later, in the
 * background; until then a mark says that after a power cut it must be made anew. The primary's own directory is
 * flushed before it is used. */
static int fresh_copy(struct pg_cluster *c, struct pg_node *from, struct pg_node *to)
{
	char source[PG_PATH], data[PG_PATH], fresh[PG_PATH], mark[PG_PATH];
	pg_node_path(c, from, "data", source);
	pg_node_path(c, to, "data", data);
	pg_node_path(c, to, "data.copy", fresh);
	pg_node_path(c, to, "conf/unflushed", mark);
	const char *copy[] = {"/bin/cp", "-a", "--reflink=auto", "--", source, fresh, NULL};
	int r = pg_file_write(c->user, mark, "", 0, false);
	if (r == 0)
		r = pg_process_run(c->user, copy, 120000);
	if (r == 0)
		r = pg_node_mark_standby(c, to, fresh);
	if (r == 0 && nolink_rename(fresh, data) < 0)
		r = -errno;
	return r;
}

static void *flush_thread(void *arg)
{
	struct pg_cluster *c = arg;
	struct engine *e = c->engine;
	char mark[PG_PATH];
	bool done = pg_filesystem_sync(e->dir) == 0;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->node_count && done; i++) {
		pg_node_path(c, c->nodes[i], "conf/unflushed", mark);
		nolink_unlink(mark);
	}
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	pg_engine_work_done(e);
	return NULL;
}

/* Copies that a crash left to be flushed. */
bool pg_cluster_unflushed(const struct pg_cluster *c)
{
	char mark[PG_PATH];
	bool found = false;
	for (size_t i = 0; i < c->node_count && !found; i++) {
		pg_node_path(c, c->nodes[i], "conf/unflushed", mark);
		found = pg_file_is(mark);
	}
	return found;
}

void pg_cluster_flush(struct pg_cluster *c)
{
	struct pg_cluster *held = pg_cluster_find(c->engine, c->id);
	if (held && pg_engine_work(c->engine, flush_thread, held) < 0)
		pg_cluster_put(held);
}

static void *copy_thread(void *arg)
{
	struct copy *t = arg;
	t->r = t->copy_cold ? fresh_copy(t->c, t->from, t->to) : pg_node_copy_from(t->c, t->from, t->to);
	if (t->r < 0)
		snprintf(t->why, sizeof t->why, "%s", pg_why_last());
	return NULL;
}

/* All missing nodes of a set but its primary, at once. */
static int set_copies(struct pg_cluster *c, unsigned set, const struct plan *plan, const char **ret_why)
{
	struct pg_node *from = plan->primary;
	struct copy *copies = must_calloc(c->node_count, sizeof *copies);
	int r = 0;
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		if (n == from || n->set != set || n->removing || pg_node_is_made(c, n))
			continue;
		copies[i] = (struct copy){.c = c, .from = from, .to = n, .copy_cold = plan->copy_cold};
		copies[i].running = pthread_create(&copies[i].thread, NULL, copy_thread, &copies[i]) == 0;
		if (!copies[i].running)
			copy_thread(&copies[i]);
	}
	for (size_t i = 0; i < c->node_count; i++) {
		if (copies[i].running)
			pthread_join(copies[i].thread, NULL);
		if (copies[i].r < 0 && r == 0) {
			r = copies[i].r;
			pg_why_set(ret_why, "%s: %s", copies[i].to->want.name, copies[i].why);
		}
	}
	free(copies);
	return r;
}

/* Without the cluster's lock. */
static int set_make(struct pg_cluster *c, unsigned set, const struct plan *plan, const char **ret_why)
{
	struct pg_node *p = plan->primary;
	char data[PG_PATH];
	pthread_mutex_lock(&c->lock);
	bool destroying = c->destroying;
	pthread_mutex_unlock(&c->lock);
	if (destroying)
		return -ENOENT;
	if (!p) {
		pg_why_set(ret_why, "set %u has no node that can be primary", set);
		return -EINVAL;
	}
	for (size_t i = 0; i < c->node_count; i++)
		if (c->nodes[i]->busy && c->nodes[i]->set == set)
			node_tidy(c, c->nodes[i]);
	if (!pg_node_is_made(c, p) && pg_node_was_made(c, p)) {
		if (c->paused) /* a standby has it, and leads when the cluster is resumed */
			return 0;
		pg_why_set(ret_why, "%s: its data is missing, and no standby has taken over yet", p->want.name);
		return -EBUSY;
	}
	if (!pg_node_is_made(c, p)) {
		pg_node_path(c, p, "data", data);
		int r = pg_tree_remove(data);
		r = r < 0 ? r : pg_pool_take(c, c->version, data);
		if (r < 0) {
			pg_why_set(ret_why, "%s: no data directory: %s", p->want.name, strerror(-r));
			return r;
		}
	}
	return set_copies(c, set, plan, ret_why);
}

/* Starts what was made; waits for all together. */
static int new_start(struct pg_cluster *c, const char **ret_why)
{
	int r = 0;
	for (int pass = 0; pass < 3 && r == 0 && !c->paused; pass++)
		for (size_t i = 0; i < c->node_count && r == 0; i++) {
			struct pg_node *n = c->nodes[i];
			struct pg_set *s = pg_cluster_set(c, n->set);
			if (!n->busy || n->removing || n->want.outage || !s || !pg_node_is_made(c, n))
				continue;
			bool leads = pg_set_primary(c, s) == n;
			if (!leads && !pg_node_is_standby(c, n))
				continue; /* a former primary, found without its state: it comes back by a rewind */
			if (pass < 2 && leads == (pass == 0))
				r = pg_node_start(c, n);
			if (pass == 2 || (pass == 0 && leads))
				r = r < 0 ? r : pg_node_wait_ready(c, n, PG_START_MS, ret_why);
			if (pass == 0 && leads && r == 0 && pg_node_is_standby(c, n))
				r = pg_set_promote(c, s);
		}
	for (size_t i = 0; i < c->node_count; i++)
		if (c->nodes[i]->busy && !c->nodes[i]->removing)
			pg_node_busy(c, c->nodes[i], false);
	return r;
}

/* A set that exists is copied from its running primary. */
static int source_ready(struct pg_cluster *c, struct pg_set *s, const char **ret_why)
{
	struct pg_node *p = pg_set_primary(c, s);
	bool missing = false;
	for (size_t i = 0; i < c->node_count; i++)
		missing |= c->nodes[i]->set == s->number && !c->nodes[i]->removing && !pg_node_is_made(c, c->nodes[i]);
	if (!p || !missing || c->paused || p->want.outage || !pg_node_is_made(c, p))
		return 0;
	int r = pg_node_start(c, p);
	r = r < 0 ? r : pg_node_wait_ready(c, p, PG_START_MS, ret_why);
	return r < 0 || !pg_node_is_standby(c, p) ? r : pg_set_promote(c, s);
}

int pg_nodes_make(struct pg_cluster *c, const struct engine_access *access, struct engine_progress *progress,
                  const char **ret_why)
{
	struct plan plans[PG_SETS_MAX];
	int r = 0;
	for (size_t i = 0; i < c->node_count && r == 0; i++) {
		struct pg_node *n = c->nodes[i];
		if (n->removing)
			continue;
		if (!n->pid && !pg_node_is_made(c, n))
			pg_node_busy(c, n, true);
		if (n->busy) {
			r = pg_node_prepare(c, n);
			r = r < 0 ? r : pg_access_write(c, n, access, NULL);
		}
		if (r < 0)
			pg_why_set(ret_why, "%s: cannot prepare its directory: %s", n->want.name, strerror(-r));
	}
	for (size_t i = 0; i < c->set_count && r == 0; i++)
		r = source_ready(c, &c->sets[i], ret_why);
	for (size_t i = 0; i < c->set_count; i++)
		plans[i] = set_plan(c, &c->sets[i]);
	pg_tell(progress, 10, "nodes prepared");
	c->copying = true;
	pthread_mutex_unlock(&c->work);
	for (size_t i = 0; i < c->set_count && r == 0; i++) {
		r = set_make(c, c->sets[i].number, &plans[i], ret_why);
		pg_tell(progress, 10 + (unsigned)(40 * (i + 1) / c->set_count), "nodes made");
	}
	pthread_mutex_lock(&c->work);
	c->copying = false;
	pthread_cond_broadcast(&c->copied);
	if (r == 0 && c->destroying)
		r = -ENOENT;
	/* Before anything can be put into it. */
	if (r == 0 && pg_identities_learn(c))
		r = pg_state_save(c);
	if (r == 0)
		r = new_start(c, ret_why);
	pg_tell(progress, 60, "nodes started");
	return r;
}
