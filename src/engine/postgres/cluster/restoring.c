/* A restore, as far as it is the cluster's own: whether it is under way, durably, and its end, which a crash may
 * have put off. backup/restore.c makes the new data and begins; from the moment that the new data is the cluster's
 * it is gone on with here, by whoever meets it first. */
#include "engine/postgres/cluster/restoring.h"

#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/access_mark.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/discard.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int pg_restore_mark(struct pg_cluster *c, enum pg_restoring now)
{
	pthread_mutex_lock(&c->lock);
	enum pg_restoring before = c->restoring;
	c->restoring = now;
	pthread_mutex_unlock(&c->lock);
	int r = pg_state_save(c);
	if (r < 0) {
		pthread_mutex_lock(&c->lock);
		c->restoring = before;
		pthread_mutex_unlock(&c->lock);
	}
	return r;
}

static bool leads(struct pg_cluster *c, const struct pg_node *n)
{
	struct pg_set *s = pg_cluster_set(c, n->set);
	return s && pg_set_primary(c, s) == n;
}

static int leader_move(struct pg_cluster *c, struct pg_node *n)
{
	static const char *const marks[] = {"conf/rebuild", "conf/unflushed"};
	char data[PG_PATH], fresh[PG_PATH], old[PG_PATH], path[PG_PATH];
	pg_node_path(c, n, "data", data);
	pg_node_path(c, n, "restore/data", fresh);
	pg_node_path(c, n, "old", old);
	if (!pg_file_is(fresh))
		return 0;
	int r = pg_file_is(data) ? pg_tree_discard(c->engine, old) : 0;
	if (r == 0 && nolink_rename(data, old) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0 && nolink_rename(fresh, data) < 0)
		r = -errno;
	for (size_t i = 0; r == 0 && i < sizeof marks / sizeof *marks; i++) {
		pg_node_path(c, n, marks[i], path);
		if (nolink_unlink(path) < 0 && errno != ENOENT)
			r = -errno;
	}
	return r;
}

/* After the point of no return; may be repeated. */
static int places_change(struct pg_cluster *c)
{
	char path[PG_PATH];
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		if (leads(c, n)) {
			r = leader_move(c, n);
		} else {
			pg_node_path(c, n, "data", path);
			r = pg_tree_discard(c->engine, path);
		}
		pg_node_path(c, n, "restore", path);
		r = r < 0 ? r : pg_tree_remove(path);
		pg_node_path(c, n, "", path);
		r = r < 0 ? r : pg_dir_sync(path);
	}
	pg_access_unmark(c);
	return r;
}

int pg_restore_resume(struct pg_cluster *c)
{
	if (c->restoring == RESTORE_NOT)
		return 0;
	if (c->restoring == RESTORE_BEGUN)
		return pg_restore_mark(c, RESTORE_NOT);
	int r = pg_cluster_halt(c);
	r = r < 0 ? r : places_change(c);
	r = r < 0 ? r : pg_restore_mark(c, RESTORE_NOT);
	if (r < 0)
		log_error("engine: %s: its restored data is not in its place yet: %s", c->id, strerror(-r));
	return r;
}

int pg_restore_sweep(struct pg_cluster *c, struct pg_node *n)
{
	struct pg_throwaway t = {.engine = c->engine, .user = c->user, .pidfd = -1};
	pg_node_path(c, n, "restore", t.dir);
	return pg_file_is(t.dir) ? pg_throwaway_end(&t) : 0;
}

void pg_restore_recall(struct pg_cluster *c)
{
	for (size_t i = 0; i < c->node_count && c->restoring != RESTORE_MADE; i++)
		(void)!pg_restore_sweep(c, c->nodes[i]);
	(void)!pg_restore_resume(c); /* or with the next converge */
}

void pg_restore_tidy(struct pg_cluster *c)
{
	char path[PG_PATH];
	for (size_t i = 0; i < c->node_count; i++) {
		pg_node_path(c, c->nodes[i], "old", path);
		if (pg_file_is(path) && pg_tree_discard(c->engine, path) < 0)
			log_warn("engine: %s cannot be removed", path);
	}
}
