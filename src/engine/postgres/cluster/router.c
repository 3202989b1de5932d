/* Sharded clusters: each shard is a set of its own, and the router is a server without data that knows them as foreign
 * servers. A table is spread over the shards by the hash of one of its columns when its owner asks for that:
 *
 *   select steward.shard_table('orders', 'customer')
 *
 * The table must be empty; it becomes a partitioned one whose partitions lie on the shards. Later changes of it follow
 * to the shards (spread_sql.c). Everything else in the router's databases is an ordinary table of the router.
 * docs/operations.md has the limits.
 *
 * Router and shards talk over the shards' unix sockets, as a role that owns the spread tables and nothing else; users
 * have no right to the foreign servers and do not get into the shards from the network (pg_access_write), so they reach
 * there only what the router's tables show them, and plant nothing that would run with that role's rights. All nodes of
 * a shard that can lead are named, so a failover needs no change here. */
#include "engine/postgres/cluster/router.h"

#include "base/buf.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/spread_sql.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>

#define TIMEOUT_MS 30000

static void script_add(struct buf *b, const char *const *script)
{
	for (size_t i = 0; script[i]; i++)
		buf_z(b, script[i]);
}

static bool is_router(const struct pg_set *s)
{
	return s->number >= PG_ROUTER_SET;
}

/* Server and mapping of one shard. Paths and ports hold no quote. */
static void server_add(struct buf *b, const struct pg_cluster *c, unsigned shard)
{
	struct buf hosts = {0}, ports = {0};
	for (size_t i = 0; i < c->node_count; i++) {
		const struct pg_node *n = c->nodes[i];
		char run[PG_PATH];
		if (n->set != shard || n->removing || !pg_node_can_lead(n))
			continue;
		pg_node_run_dir(c, n, run);
		buf_printf(&hosts, "%s%s", hosts.n ? "," : "", run);
		buf_printf(&ports, "%s%u", ports.n ? "," : "", n->port);
	}
	buf_printf(b,
	           "create server if not exists shard_%u foreign data wrapper postgres_fdw options (host '', port '', "
	           "dbname 'postgres', target_session_attrs 'read-write', connect_timeout '5', async_capable 'true');"
	           "alter server shard_%u options (set host '%.*s', set port '%.*s');"
	           "create user mapping if not exists for public server shard_%u options (user '" PG_SHARD
	           "', password_required 'false');",
	           shard, shard, (int)hosts.n, hosts.p, (int)ports.n, ports.p, shard);
	buf_free(&hosts);
	buf_free(&ports);
}

void pg_router_servers(const struct pg_cluster *c, struct buf *b)
{
	struct buf kept = {0};
	for (size_t i = 0; i < c->set_count; i++)
		if (!is_router(&c->sets[i])) {
			server_add(b, c, c->sets[i].number);
			buf_printf(&kept, "%s'shard_%u'", kept.n ? "," : "", c->sets[i].number);
		}
	buf_printf(b,
	           "do $$ declare s name; begin for s in select srvname from pg_foreign_server where srvname ~ "
	           "'^shard_[0-9]+$' and srvname not in (%.*s) loop execute format('drop server %%I cascade', s); end "
	           "loop; end $$;",
	           (int)kept.n, kept.p);
	buf_free(&kept);
}

static int router_set_up(struct pg_cluster *c, struct pg_node *router)
{
	struct buf b = {0};
	PGconn *conn;
	script_add(&b, pg_spread_sql_begin);
	pg_router_servers(c, &b);
	script_add(&b, pg_spread_sql_rest);
	buf_c(&b, 0);
	int r = pg_sql_open_node(c, router, "postgres", 3000, &conn);
	if (r == 0) {
		r = pg_sql_do(conn, TIMEOUT_MS, b.p);
		PQfinish(conn);
	}
	buf_free(&b);
	return r;
}

static int shard_set_up(struct pg_cluster *c, struct pg_node *primary)
{
	struct buf b = {0};
	PGconn *conn;
	int r = pg_sql_open_node(c, primary, "postgres", 3000, &conn);
	if (r < 0)
		return r;
	script_add(&b, pg_spread_sql_shard);
	buf_c(&b, 0);
	r = pg_sql_do(conn, TIMEOUT_MS, b.p);
	PQfinish(conn);
	buf_free(&b);
	return r;
}

int pg_router_apply(struct pg_cluster *c, const char **ret_why)
{
	bool sharded = false;
	for (size_t i = 0; i < c->set_count; i++)
		sharded |= is_router(&c->sets[i]);
	int r = 0;
	for (size_t i = 0; sharded && r == 0 && i < c->set_count; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (!is_router(&c->sets[i]))
			r = p && p->pid ? shard_set_up(c, p) : -ENOTCONN;
	}
	for (size_t i = 0; sharded && r == 0 && i < c->set_count; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (is_router(&c->sets[i]) && p && p->pid)
			r = router_set_up(c, p);
	}
	if (r < 0)
		pg_why_set(ret_why, "router: %s", r == -ENOTCONN ? "a shard has no primary" : pg_why_last());
	return r;
}

/* --- before a shard goes */

static bool set_leaves(const struct pg_cluster *c, const struct pg_set *s, const struct engine_cluster *want)
{
	bool leaves = !is_router(s), made = false;
	for (size_t i = 0; i < want->node_count && leaves; i++)
		leaves = want->nodes[i].kind == NODE_ROUTER || want->nodes[i].shard != s->number;
	for (size_t i = 0; i < c->node_count && leaves && !made; i++)
		made = c->nodes[i]->set == s->number && pg_node_is_made(c, c->nodes[i]);
	return leaves && made;
}

/* The last word makes the router forget the shard too, so that nobody spreads a table over it any more. */
static int shard_ask(struct pg_cluster *c, struct pg_node *router, unsigned shard, bool last, int64_t *ret_tables)
{
	char sql[200];
	PGconn *conn;
	int r = pg_sql_open_node(c, router, "postgres", 3000, &conn);
	if (r < 0)
		return r;
	snprintf(sql, sizeof sql,
	         "select count(*) from pg_foreign_table t join pg_foreign_server s on s.oid = t.ftserver where "
	         "srvname = 'shard_%u'",
	         shard);
	r = pg_sql_int(conn, 5000, sql, ret_tables);
	if (r == 0 && last && *ret_tables == 0) {
		snprintf(sql, sizeof sql,
		         "drop user mapping if exists for public server shard_%u; drop server if exists shard_%u",
		         shard, shard);
		r = pg_sql_do(conn, 5000, sql);
	}
	PQfinish(conn);
	return r;
}

/* A router that does not run is started for the question, of a paused cluster too. */
static int router_ask(struct pg_cluster *c, struct pg_node *router, unsigned shard, bool last, int64_t *ret_tables)
{
	if (c->upgrading || router->want.outage)
		return -ENOTCONN;
	int r = pg_node_start(c, router);
	r = r < 0 ? r : pg_node_wait_ready(c, router, TIMEOUT_MS, NULL);
	r = r < 0 ? r : shard_ask(c, router, shard, last, ret_tables);
	if (c->paused && pg_node_halt(c, router, PG_HALT_FAST) < 0 && r == 0)
		r = -EBUSY;
	return r;
}

static int shard_check(struct pg_cluster *c, struct pg_node *router, unsigned shard, bool last, const char **ret_why)
{
	int64_t tables = 0;
	int r = router_ask(c, router, shard, last, &tables);
	if (r == 0 && tables == 0)
		return 0;
	if (r == 0) {
		pg_why_set(
		        ret_why,
		        "shard %u holds parts of %lld tables: copy them to tables that are not spread, and drop them "
		        "first",
		        shard, (long long)tables);
		return -EBUSY;
	}
	if (!last)
		return 0;
	pg_why_set(ret_why, "shard %u stays until %s runs and says that it holds no data", shard, router->want.name);
	return -EBUSY;
}

/* --- before a set becomes a shard */

static bool wants_router(const struct engine_cluster *want)
{
	bool wants = false;
	for (size_t i = 0; i < want->node_count && !wants; i++)
		wants = want->nodes[i].kind == NODE_ROUTER;
	return wants;
}

static bool has_router(const struct pg_cluster *c)
{
	bool has = false;
	for (size_t i = 0; i < c->node_count && !has; i++)
		has = c->nodes[i]->want.kind == NODE_ROUTER && pg_node_is_made(c, c->nodes[i]);
	return has;
}

/* Tables of users in one database. */
static int tables_count(struct pg_cluster *c, struct pg_node *n, const char *database, int64_t *ret_count)
{
	PGconn *conn;
	int r = pg_sql_open_node(c, n, database, 3000, &conn);
	if (r < 0)
		return r;
	r = pg_sql_int(conn, TIMEOUT_MS,
	               "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where relkind in "
	               "('r', 'p', 'm', 'f') and nspname !~ '^(pg_|information_schema$|steward|sharded$)'",
	               ret_count);
	PQfinish(conn);
	return r;
}

static int set_is_empty(struct pg_cluster *c, struct pg_node *p, const char **ret_why)
{
	PGresult *rows;
	PGconn *conn;
	int r = p && p->pid ? pg_sql_open_node(c, p, "postgres", 3000, &conn) : -ENOTCONN;
	if (r < 0) {
		pg_why_set(ret_why, "whether it holds tables cannot be asked at the moment");
		return r;
	}
	r = pg_sql_rows(
	        conn, TIMEOUT_MS,
	        "select datname from pg_database where datallowconn and datname not in ('template0', 'template1')",
	        &rows);
	PQfinish(conn);
	if (r < 0)
		return r;
	for (int i = 0; i < PQntuples(rows) && r == 0; i++) {
		int64_t tables = 0;
		r = tables_count(c, p, pg_value(rows, i, 0), &tables);
		if (r == 0 && tables > 0) {
			pg_why_set(
			        ret_why,
			        "the database %s holds tables (%lld), which nobody would reach behind a router: copy "
			        "them to "
			        "a new sharded cluster, or drop them; until then this one can become a REPLICASET "
			        "again",
			        pg_value(rows, i, 0), (long long)tables);
			r = -EBUSY;
		}
	}
	PQclear(rows);
	return r;
}

/* Clients of a sharded cluster come to its router, which begins empty. */
static int shards_are_empty(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why)
{
	int r = 0;
	if (!wants_router(want) || has_router(c))
		return 0;
	for (size_t i = 0; i < c->set_count && r == 0; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (!is_router(&c->sets[i]) && p && pg_node_is_made(c, p))
			r = set_is_empty(c, p, ret_why);
	}
	return r;
}

int pg_router_check(struct pg_cluster *c, const struct engine_cluster *want, bool last, const char **ret_why)
{
	int r = last ? 0 : shards_are_empty(c, want, ret_why);
	for (size_t i = 0; i < c->set_count; i++) {
		if (!set_leaves(c, &c->sets[i], want))
			continue;
		/* Also a router that goes itself: what was spread there is data. One never made has spread nothing. */
		for (size_t k = 0; k < c->node_count && r == 0; k++)
			if (c->nodes[k]->want.kind == NODE_ROUTER && pg_node_is_made(c, c->nodes[k]))
				r = shard_check(c, c->nodes[k], c->sets[i].number, last, ret_why);
	}
	return r;
}
