/* The sample data set: a small shop in a database of its own, made by the server itself out of arithmetic, so that it is
 * the same every time. It is loaded in slices, each a transaction that also counts it, so that a load that was cut
 * short goes on where it was, and one that is repeated does nothing. */
#include "engine/postgres.h"

#include "base/arena.h"

#include <errno.h>

#define DATABASE "sample_shop"
#define SLICES 20
#define SLICE_MS 60000

static const char tables[] =
        "create table if not exists loaded(slice int primary key);"
        "create table if not exists customers(id int primary key, name text not null, country text not null, since "
        "date "
        "not null);"
        "create table if not exists products(id int primary key, name text not null, price numeric(8,2) not null, tags "
        "text[] not null);"
        "create table if not exists orders(id int primary key, customer int not null references customers, product int "
        "not null references products, quantity int not null, at timestamptz not null);"
        "create index if not exists orders_customer on orders(customer);"
        "create index if not exists orders_at on orders(at);";

/* Customers and products with the first slice, a share of the orders with each. */
static const char people[] =
        "insert into customers select n, 'Customer '||n, (array['DE','FR','IE','JP','US','BR','IN','ZA'])[1 + n % 8], "
        "date '2020-01-01' + n % 1500 from generate_series(1, 2000) n;"
        "insert into products select n, 'Product '||n, (n * 37 % 9900 + 100) / 100.0, "
        "array['tag'||n % 7, 'tag'||n % 11] from generate_series(1, 200) n;";

static int database_ensure(PGconn *conn)
{
	int64_t there;
	int r = sql_int(conn, 5000, "select count(*) from pg_database where datname = '" DATABASE "'", &there);
	if (r == 0 && !there)
		r = sql_do(conn, SLICE_MS, "create database " DATABASE);
	return r;
}

static int slice_load(PGconn *conn, unsigned slice)
{
	char sql[2048];
	snprintf(sql, sizeof sql,
	         "begin; insert into loaded values (%u); %s"
	         "insert into orders select n, 1 + n * 7 %% 2000, 1 + n * 13 %% 200, 1 + n %% 5, "
	         "timestamptz '2024-01-01 00:00:00Z' + n * interval '7 minutes' "
	         "from generate_series(%u, %u) n; commit;",
	         slice, slice == 0 ? people : "", slice * 2500 + 1, (slice + 1) * 2500);
	int r = sql_do(conn, SLICE_MS, sql);
	if (r < 0)
		(void)!sql_do(conn, 5000, "rollback");
	return r;
}

static int slices_load(PGconn *conn, struct engine_progress *progress)
{
	int r = sql_do(conn, SLICE_MS, "set search_path = public");
	r = r < 0 ? r : sql_do(conn, SLICE_MS, tables);
	for (unsigned i = 0; r == 0 && i < SLICES; i++) {
		char sql[80];
		int64_t done;
		snprintf(sql, sizeof sql, "select count(*) from loaded where slice = %u", i);
		r = sql_int(conn, 5000, sql, &done);
		if (r == 0 && !done)
			r = slice_load(conn, i);
		if (progress && progress->tell)
			progress->tell(progress->ctx, (i + 1) * 100 / SLICES, "loading the sample");
	}
	return r;
}

/* Into the first set, or the router of a sharded cluster. No lock is held while it loads: a primary that changes
 * meanwhile ends the load, and the job repeats it. */
int postgres_load_sample(struct engine *e, const char *cluster_id, struct engine_progress *progress, struct arena *a,
                         const char **ret_why)
{
	struct pg_cluster *c = cluster_find(e, cluster_id);
	char run[PG_PATH] = "";
	struct pg_node at = {0};
	if (!c)
		return -ENOENT;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->set_count; i++) {
		const struct pg_node *p = set_primary(c, &c->sets[i]);
		if (p && p->pid && (!*run || p->want.kind == NODE_ROUTER)) {
			at.port = p->port;
			node_run_dir(c, p, run);
		}
	}
	pthread_mutex_unlock(&c->lock);
	cluster_put(c);
	PGconn *conn;
	int r = *run ? sql_open(&at, run, "postgres", 5000, &conn) : -ENOTCONN;
	if (r == 0) {
		r = database_ensure(conn);
		PQfinish(conn);
	}
	if (r == 0)
		r = sql_open(&at, run, DATABASE, 5000, &conn);
	if (r == 0) {
		r = slices_load(conn, progress);
		PQfinish(conn);
	}
	if (r < 0)
		*ret_why = arena_z(a, str_of(r == -ENOTCONN ? "the cluster has no running primary" : why_last()));
	return r == -EAGAIN ? -EBUSY : r;
}
