/* A cluster's files change hands, while none of its nodes runs: see host/user.c. */
#include "engine/postgres/cluster/owner.h"

#include "base/buf.h"
#include "base/log.h"
#include "engine/postgres/cluster/hba.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* So that nodes reach each other as the new user before all rules are written again. */
static int names_add(struct pg_cluster *c, struct pg_node *n)
{
	char path[PG_PATH], *old, space[1024];
	struct passwd pw, *found = NULL;
	struct buf b = {0};
	pg_node_path(c, n, "conf/pg_ident.conf", path);
	if (getpwuid_r(c->user->uid, &pw, space, sizeof space, &found) != 0 || !found ||
	    pg_file_read(path, PG_HBA_MAX, &old) < 0)
		return 0; /* it is written whole before the node starts for the first time */
	buf_z(&b, old);
	buf_printf(&b, "engine \"%s\" %s\nengine \"%s\" \"%s\"\n", found->pw_name, PG_SUPER, found->pw_name, PG_SHARD);
	int r = pg_file_write(c->user, path, b.p, b.n, true);
	free(old);
	buf_free(&b);
	return r;
}

static int node_give(struct pg_cluster *c, struct pg_node *n)
{
	char path[PG_PATH], data[PG_PATH];
	pg_node_path(c, n, "", path);
	pg_node_path(c, n, "data", data);
	if (!pg_file_is(path))
		return 0;
	int r = pg_process_sweep(c->engine, data);
	r = r < 0 ? r : pg_tree_give_node(c->user, path);
	return r < 0 ? r : names_add(c, n);
}

static int cluster_give(struct pg_cluster *c)
{
	char dir[PG_PATH];
	pg_path_set(dir, "%s/%s", c->engine->dir, c->id);
	int r = pg_dir_make(c->user, dir, false);
	for (size_t i = 0; i < c->node_count && r == 0; i++)
		r = node_give(c, c->nodes[i]);
	if (r < 0) {
		pg_why_set(NULL, "its files cannot be given to the user that it runs as: %s", strerror(-r));
		log_error("engine: %s: %s", c->id, pg_why_last());
		return r;
	}
	c->giving = false;
	return pg_state_save(c);
}

static bool is_at_rest(const struct pg_cluster *c)
{
	bool rests = !c->copying && !c->upgrading && !c->restoring && !c->destroying;
	for (size_t i = 0; i < c->node_count; i++)
		rests &= !c->nodes[i]->pid || pg_process_ended(c->nodes[i]->pidfd, 0);
	return rests;
}

int pg_user_settle(struct pg_cluster *c)
{
	struct engine *e = c->engine;
	bool own = pg_user_is_own(c);
	if (!e->user.other || (own && !c->giving) || !is_at_rest(c))
		return 0;
	const struct pg_user *u = own ? c->user : pg_user_of(e, c->group_id);
	if (u == c->user && !c->giving)
		return 0;
	c->user = u;
	c->giving = true;
	int r = pg_state_save(c);
	r = r < 0 ? r : cluster_give(c);
	if (r == 0)
		log_info("engine: %s runs as user %u from here on", c->id, (unsigned)u->uid);
	return r;
}
