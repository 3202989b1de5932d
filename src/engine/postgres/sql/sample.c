/* The sample data set: a small shop in a database of its own, made by the server itself out of arithmetic, so that it
 * is the same every time. It is loaded in one transaction, so that a load that was cut short leaves nothing behind, and
 * where any of its tables is there already nothing is done.
 *
 * It is the superuser who writes here, into a database that users write too. That is safe only because nobody else can
 * see the tables before all is done: a trigger, or an operator in the search path, would run with all rights. */
#include "engine/postgres/sql/sample.h"

#include "base/arena.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>

#define DATABASE "sample_shop"
#define SLICES 20
#define SLICE_MS 60000

static const char tables[] =
        "create table public.customers(id int primary key, name text not null, country text not null, since date not "
        "null);"
        "create table public.products(id int primary key, name text not null, price numeric(8,2) not null, tags text[] "
        "not null);"
        "create table public.orders(id int primary key, customer int not null references public.customers, product int "
        "not null references public.products, quantity int not null, at timestamptz not null);"
        "create index orders_customer on public.orders(customer);"
        "create index orders_at on public.orders(at);"
        "insert into public.customers select n, 'Customer '||n, "
        "(array['DE','FR','IE','JP','US','BR','IN','ZA'])[1 + n % 8], date '2020-01-01' + n % 1500 from "
        "generate_series(1, 2000) n;"
        "insert into public.products select n, 'Product '||n, (n * 37 % 9900 + 100) / 100.0, "
        "array['tag'||n % 7, 'tag'||n % 11] from generate_series(1, 200) n;";

/* To those who write the database, as the tables that they make themselves: an owner alone alters and drops, and nobody
 * can be the engine. */
static const char give[] =
        "do $$ declare t record; o constant name := case when exists (select from pg_roles where rolname = "
        "'steward:o:" DATABASE "') then 'steward:o:" DATABASE "' else 'steward:any:w' end; begin "
        "for t in select oid::regclass as rel from pg_class where relnamespace = to_regnamespace('public') and relname "
        "in ('customers', 'products', 'orders') and relkind = 'r' and pg_get_userbyid(relowner) = '" PG_SUPER "' and "
        "exists (select from pg_roles where rolname = o) loop "
        "execute format('alter table %s owner to %I', t.rel, o); end loop; end $$";

static int database_ensure(PGconn *conn)
{
	int64_t there;
	int r = pg_sql_int(conn, 5000, "select count(*) from pg_database where datname = '" DATABASE "'", &there);
	if (r == 0 && !there)
		r = pg_sql_do(conn, SLICE_MS, "create database " DATABASE);
	return r;
}

static int slice_load(PGconn *conn, unsigned slice)
{
	char sql[400];
	snprintf(sql, sizeof sql,
	         "insert into public.orders select n, 1 + n * 7 %% 2000, 1 + n * 13 %% 200, 1 + n %% 5, "
	         "timestamptz '2024-01-01 00:00:00Z' + n * interval '7 minutes' "
	         "from generate_series(%u, %u) n",
	         slice * 2500 + 1, (slice + 1) * 2500);
	return pg_sql_do(conn, SLICE_MS, sql);
}

/* What is not committed is undone with the connection. */
static int all_load(PGconn *conn, struct engine_progress *progress)
{
	int64_t there;
	int r = pg_sql_int(
	        conn, 5000,
	        "select count(*) from pg_class where relnamespace = to_regnamespace('public') and relname in "
	        "('customers', 'products', 'orders')",
	        &there);
	if (r < 0 || there)
		return r < 0 ? r : pg_sql_do(conn, SLICE_MS, give);
	r = pg_sql_do(conn, 5000, "begin");
	r = r < 0 ? r : pg_sql_do(conn, SLICE_MS, tables);
	for (unsigned i = 0; r == 0 && i < SLICES; i++) {
		r = slice_load(conn, i);
		if (progress && progress->tell)
			progress->tell(progress->ctx, (i + 1) * 100 / SLICES, "loading the sample");
	}
	r = r < 0 ? r : pg_sql_do(conn, SLICE_MS, give);
	return r < 0 ? r : pg_sql_do(conn, SLICE_MS, "commit");
}

/* Into the first set, or the router of a sharded cluster. No lock is held while it loads: a primary that changes
 * meanwhile ends the load, and the job repeats it. */
int pg_load_sample(struct engine *e, const char *cluster_id, struct engine_progress *progress, struct arena *a,
                   const char **ret_why)
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	char run[PG_PATH] = "";
	struct pg_node at = {0};
	if (!c)
		return -ENOENT;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->set_count; i++) {
		const struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (p && p->pid && (!*run || p->want.kind == NODE_ROUTER)) {
			at.port = p->port;
			pg_node_run_dir(c, p, run);
		}
	}
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	PGconn *conn;
	int r = *run ? pg_sql_open(&at, run, "postgres", 5000, &conn) : -ENOTCONN;
	if (r == 0) {
		r = database_ensure(conn);
		PQfinish(conn);
	}
	if (r == 0)
		r = pg_sql_open(&at, run, DATABASE, 5000, &conn);
	if (r == 0) {
		r = all_load(conn, progress);
		PQfinish(conn);
	}
	if (r < 0)
		*ret_why = arena_z(a, str_of(r == -ENOTCONN ? "the cluster has no running primary" : pg_why_last()));
	return r == -EAGAIN ? -EBUSY : r;
}
