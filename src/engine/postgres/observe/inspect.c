/* What a node has in it: the names of its databases and tables, from itself, and of the partition that its data lies
 * on, from the system; and what it has sent to clients, from a file that the module keeps (module/sent.h). The node is
 * copied under the lock and asked without it: a hung server keeps nobody but the one who asks. */
#include "engine/postgres/observe/inspect.h"

#include "base/buf.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/tls.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/observe/collections.h"
#include "engine/postgres/sql/sql.h"
#include "module/sent.h"

#include <errno.h>
#include <fcntl.h>
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

int pg_node_get(struct engine *e, const char *cluster_id, const char *name, struct pg_cluster **ret_cluster,
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
			names[i] = str_of(engine_shown(a, pg_value(rows, i, 0)));
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
	int r = pg_node_get(e, cluster_id, node, &c, &n);
	if (r < 0)
		return r;
	r = databases_ask(c, &n, a, ret_names, ret_count);
	pg_cluster_put(c);
	return r;
}

/* Marks those of the names that are tables of one database. */
static int tables_look(PGconn *conn, const char *database, const struct str *names, size_t count, struct arena *a,
                       bool *ret_there)
{
	struct buf b = {0};
	PGresult *rows;
	buf_c(&b, '{');
	for (size_t i = 0; i < count; i++) {
		const char *name = pg_table_in(arena_z(a, names[i]), database);
		if (name)
			pg_array_add(&b, str_of(name));
	}
	buf_add(&b, "}", 2);
	char *sql = pg_tables_sql(conn, "{}", b.p);
	buf_free(&b);
	int r = sql ? pg_sql_rows(conn, ASK_MS, sql, &rows) : -EAGAIN;
	free(sql);
	if (r < 0)
		return r;
	for (int k = 0; k < PQntuples(rows); k++) {
		struct str found = arena_printf(a, "%s.%s", database, pg_value(rows, k, 1));
		for (size_t i = 0; i < count; i++)
			ret_there[i] |= str_eq(names[i], found);
	}
	PQclear(rows);
	return 0;
}

int pg_tables_check(struct engine *e, const char *cluster_id, const char *node, const struct str *names, size_t count,
                    bool *ret_there)
{
	struct arena *a = arena_new();
	struct pg_cluster *c;
	struct pg_node n;
	struct str *databases;
	size_t database_count = 0;
	int r = pg_node_get(e, cluster_id, node, &c, &n);
	if (r == 0) {
		r = databases_ask(c, &n, a, &databases, &database_count);
		memset(ret_there, 0, count * sizeof *ret_there);
	}
	for (size_t i = 0; r == 0 && i < database_count; i++) {
		const char *database = arena_z(a, databases[i]);
		bool any = false;
		PGconn *conn;
		for (size_t k = 0; !any && k < count; k++)
			any = pg_table_in(arena_z(a, names[k]), database);
		if (!any)
			continue;
		r = pg_sql_open_node(c, &n, database, ASK_MS, &conn);
		if (r == 0) {
			r = tables_look(conn, database, names, count, a, ret_there);
			PQfinish(conn);
		}
		r = r < 0 ? -EAGAIN : 0;
	}
	if (r != -ENOENT)
		pg_cluster_put(c);
	arena_free(a);
	return r;
}

/* The block device's own name; a file system without one (overlay, tmpfs) has its data on "data". */
void pg_partition_name(dev_t device, char *ret_name, size_t size)
{
	char link[64], target[PATH_MAX];
	snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(device), minor(device));
	ssize_t n = readlink(link, target, sizeof target - 1);
	target[n > 0 ? n : 0] = '\0';
	const char *slash = strrchr(target, '/');
	snprintf(ret_name, size, "%s", slash && slash[1] ? slash + 1 : "data");
}

int pg_partitions(struct engine *e, const char *cluster_id, const char *node, struct arena *a, struct str **ret_names,
                  size_t *ret_count)
{
	struct pg_cluster *c;
	struct pg_node n;
	struct stat st;
	char path[PG_PATH], name[64];
	int r = pg_node_get(e, cluster_id, node, &c, &n);
	if (r < 0)
		return r;
	pg_node_path(c, &n, "data", path);
	r = stat(path, &st) < 0 ? -EAGAIN : 0;
	pg_cluster_put(c);
	if (r < 0)
		return r;
	*ret_names = arena_new_array(a, struct str, 2);
	pg_partition_name(st.st_dev, name, sizeof name);
	(*ret_names)[0] = STR(DISK_OF_NODE);
	(*ret_names)[1] = arena_dup(a, str_of(name));
	*ret_count = 2;
	return 0;
}

/* --- what was sent */

static bool sent_read(const char *data, struct engine_sent *ret_sent)
{
	char path[PG_PATH];
	struct sent_record record;
	pg_path_set(path, "%s/" SENT_FILE, data);
	int fd = nolink_open(path, O_RDONLY | O_CLOEXEC, 0);
	bool whole = fd >= 0 && pread(fd, &record, sizeof record, 0) == (ssize_t)sizeof record;
	if (fd >= 0)
		close(fd);
	if (!whole || record.check != sent_check(&record) || record.bytes > INT64_MAX)
		return false;
	snprintf(ret_sent->counter, sizeof ret_sent->counter, "%016llx", (unsigned long long)record.id);
	ret_sent->bytes = (int64_t)record.bytes;
	return true;
}

int pg_sent(struct engine *e, const char *cluster_id, struct arena *a, struct engine_sent **ret_list, size_t *ret_count)
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	size_t nodes = 0, count = 0;
	if (!c)
		return -ENOENT;
	pthread_mutex_lock(&c->lock);
	struct engine_sent *list = arena_new_array(a, struct engine_sent, c->node_count + 1);
	const char **places = arena_new_array(a, const char *, c->node_count + 1);
	for (size_t i = 0; i < c->node_count; i++) {
		const struct pg_node *n = c->nodes[i];
		char data[PG_PATH];
		if (n->removing) /* those of shards stand still: nobody but routers comes to them */
			continue;
		pg_node_path(c, n, "data", data);
		list[nodes].node = arena_z(a, str_of(n->want.name));
		places[nodes++] = arena_z(a, str_of(data));
	}
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	for (size_t i = 0; i < nodes; i++) {
		list[count].node = list[i].node;
		count += sent_read(places[i], &list[count]);
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
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
