/* What a node has in it: the names of its databases, from itself, and of the partition that its data lies on, from the
 * system. The node is copied under the lock and asked without it: a hung server keeps nobody but the one who asks. */
#include "engine/postgres/postgres.h"

#include "base/buf.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ASK_MS 3000

/* With cluster.lock. */
static void node_count(struct pg_cluster *c, const struct pg_node *n, struct engine_stats *t)
{
	struct node_status s = {.name = ""};
	pg_node_observe(c, n, &s);
	t->nodes[s.kind][s.primary][s.state]++;
	if (s.primary || s.state != NODE_RUNNING || s.kind == NODE_ROUTER)
		return;
	t->standbys++;
	t->streaming += !n->stale_us;
	t->lag_bytes = n->lag_bytes > t->lag_bytes ? n->lag_bytes : t->lag_bytes;
	t->lag_seconds = n->lag_seconds > t->lag_seconds ? n->lag_seconds : t->lag_seconds;
}

void pg_stats(struct engine *e, struct engine_stats *ret_stats)
{
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all);
	*ret_stats = (struct engine_stats){.failovers = e->failovers, .switchovers = e->switchovers, .ends = e->ends};
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&all[i]->lock);
		for (size_t k = 0; k < all[i]->node_count; k++)
			if (!all[i]->nodes[k]->removing)
				node_count(all[i], all[i]->nodes[k], ret_stats);
		pthread_mutex_unlock(&all[i]->lock);
		pg_cluster_put(all[i]);
	}
	free(all);
}

/* The cluster with a reference, and the node as it is now. */
static int node_get(struct engine *e, const char *cluster_id, const char *name, struct pg_cluster **ret_cluster,
                    struct pg_node *ret_node)
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	if (!c)
		return -ENOENT;
	pthread_mutex_lock(&c->lock);
	const struct pg_node *n = pg_cluster_node(c, name);
	bool found = n && !n->removing;
	if (found)
		*ret_node = *n;
	pthread_mutex_unlock(&c->lock);
	if (!found) {
		pg_cluster_put(c);
		return -ENOENT;
	}
	*ret_cluster = c;
	return 0;
}

static int databases_ask(const struct pg_cluster *c, const struct pg_node *n, struct arena *a, struct str **ret_names,
                         size_t *ret_count)
{
	PGconn *conn;
	PGresult *rows;
	if (!n->pid || n->noted || pg_sql_open_node(c, n, "postgres", ASK_MS, &conn) < 0)
		return -EAGAIN;
	int r = pg_sql_rows(conn, ASK_MS,
	                    "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY datname",
	                    &rows);
	if (r == 0) {
		int count = PQntuples(rows);
		struct str *names = arena_new_array(a, struct str, (size_t)count + 1);
		for (int i = 0; i < count; i++)
			names[i] = arena_dup(a, str_of(PQgetvalue(rows, i, 0)));
		PQclear(rows);
		*ret_names = names;
		*ret_count = (size_t)count;
	}
	PQfinish(conn);
	return r < 0 ? -EAGAIN : 0;
}

int pg_databases(struct engine *e, const char *cluster_id, const char *node, struct arena *a, struct str **ret_names,
                 size_t *ret_count)
{
	struct pg_cluster *c;
	struct pg_node n;
	int r = node_get(e, cluster_id, node, &c, &n);
	if (r < 0)
		return r;
	r = databases_ask(c, &n, a, ret_names, ret_count);
	pg_cluster_put(c);
	return r;
}

/* The block device's own name; a file system without one (overlay, tmpfs) has its data on "data". */
static struct str partition_of(struct arena *a, dev_t device)
{
	char link[64], target[PATH_MAX];
	snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(device), minor(device));
	ssize_t n = readlink(link, target, sizeof target - 1);
	target[n > 0 ? n : 0] = '\0';
	const char *slash = strrchr(target, '/');
	return slash && slash[1] ? arena_dup(a, str_of(slash + 1)) : STR("data");
}

int pg_partitions(struct engine *e, const char *cluster_id, const char *node, struct arena *a, struct str **ret_names,
                  size_t *ret_count)
{
	struct pg_cluster *c;
	struct pg_node n;
	struct stat st;
	char path[PG_PATH];
	int r = node_get(e, cluster_id, node, &c, &n);
	if (r < 0)
		return r;
	pg_node_path(c, &n, "data", path);
	r = stat(path, &st) < 0 ? -EAGAIN : 0;
	pg_cluster_put(c);
	if (r < 0)
		return r;
	*ret_names = arena_new_of(a, struct str);
	**ret_names = partition_of(a, st.st_dev);
	*ret_count = 1;
	return 0;
}
