/* Shards: one that holds data stays, also when the router cannot be asked as things are. */
#include "harness.h"

#include <signal.h>

#define ID5 "65f0000000000000000000a5"

static struct wish wish_sharded(unsigned shards)
{
	struct wish w = wish_make(ID5, shards + 1, 0);
	for (unsigned i = 0; i <= shards; i++) {
		struct engine_node *n = &w.nodes[i];
		n->kind = i ? NODE_ELECTABLE : NODE_ROUTER;
		n->shard = i ? i - 1 : 0;
		n->priority = i ? 7 : 0;
		snprintf(n->name, sizeof n->name, i ? "%s-shard-%02u-00" : "%s-router-%02u", w.c.label, i ? i - 1 : 0);
	}
	w.c.quorum = false;
	w.c.shards = shards;
	return w;
}

static const struct node_status *router_in(const struct cluster_status *s)
{
	for (size_t i = 0; i < s->node_count; i++)
		if (s->nodes[i].kind == NODE_ROUTER)
			return &s->nodes[i];
	return NULL;
}

static long spread_rows(void)
{
	struct cluster_status s = observe(ID5);
	PGconn *conn = client(router_in(&s), "writer", PASSWORD, "postgres");
	long rows = number(conn, "select count(*) from spread");
	PQfinish(conn);
	return rows;
}

/* A set that becomes a shard is reached through the router alone, where its tables are not. */
static void set_becomes_shard(void)
{
	struct wish set = wish_sharded(1), sharded = wish_sharded(1);
	set.nodes[0] = set.nodes[1];
	set.c.node_count = 1;
	CHECK(converge(&set, &access_writer) == 0);
	struct cluster_status s = observe(ID5);
	CHECK(as(&s.nodes[0], "writer", "postgres", "create table kept(a int); insert into kept values (1)"));
	CHECK(converge(&sharded, &access_writer) == -EBUSY);
	s = observe(ID5);
	CHECK(s.node_count == 1 && as(&s.nodes[0], "writer", "postgres", "select * from kept"));
	CHECK(converge(&set, &access_writer) == 0);
	CHECK(as(&s.nodes[0], "writer", "postgres", "drop table kept") && converge(&sharded, &access_writer) == 0);
	CHECK(ops->core->destroy(engine, ID5, NULL) == 0);
}

/* What is changed on the router is changed on all shards, or nowhere; and nobody goes past the router. */
static void spread_changes(const struct node_status *router)
{
	struct cluster_status s = observe(ID5);
	PGconn *conn = client(router, "writer", PASSWORD, "postgres");
	CHECK(run(conn, "create index on spread(a); alter table spread add column b int not null default 3"));
	CHECK(number(conn, "select sum(b) from spread") == 300);
	CHECK(!run(conn, "insert into spread values (101, null)"));
	CHECK(run(conn, "begin; alter table spread rename b to c; update spread set c = 4; rollback"));
	CHECK(number(conn, "select sum(b) from spread") == 300);
	CHECK(!run(conn, "alter table spread alter b type bigint"));
	CHECK(run(conn, "drop index spread_a_idx; alter table spread drop column b"));
	CHECK(!run(conn, "select steward_parts.dblink_connect('host=127.0.0.1 port=1 password=x')"));
	CHECK(number(conn, "select count(*) from pg_proc where pronamespace = 'steward_parts'::regnamespace and "
	                   "has_function_privilege(oid, 'execute')") == 0);
	PQfinish(conn);
	for (size_t i = 0; i < s.node_count; i++)
		CHECK(can_connect(&s.nodes[i], "writer", PASSWORD, "postgres") == (s.nodes[i].kind == NODE_ROUTER));
}

void part_shards(void)
{
	set_becomes_shard();
	struct wish w = wish_sharded(2), fewer = wish_sharded(1);
	CHECK(converge(&w, &access_writer) == 0);
	struct cluster_status s = observe(ID5);
	CHECK(as(router_in(&s), "writer", "postgres",
	         "create table spread(a int); select steward.shard_table('spread', 'a');"
	         "insert into spread select generate_series(1, 100)"));
	spread_changes(router_in(&s));
	CHECK(converge(&fewer, &access_writer) == -EBUSY && spread_rows() == 100);
	kill(pid_of(ID5, w.nodes[0].name), SIGKILL);
	CHECK(converge(&fewer, &access_writer) == -EBUSY);
	w.c.paused = fewer.c.paused = true;
	CHECK(converge(&w, &access_writer) == 0);
	CHECK(converge(&fewer, &access_writer) == -EBUSY && servers_running() == 0);
	fewer.c.paused = false;
	CHECK(converge(&fewer, &access_writer) == -EBUSY && servers_running() == 0);
	/* Nothing is known while the router is out. */
	w.c.paused = false;
	w.nodes[0].outage = fewer.nodes[0].outage = true;
	(void)!converge(&w, &access_writer); /* nor can access be applied to it */
	CHECK(converge(&fewer, &access_writer) == -EBUSY);
	w.nodes[0].outage = fewer.nodes[0].outage = false;
	CHECK(converge(&fewer, &access_writer) == -EBUSY);
	CHECK(converge(&w, &access_writer) == 0 && spread_rows() == 100);
	/* Without data it goes, from a paused cluster too. */
	s = observe(ID5);
	CHECK(as(router_in(&s), "writer", "postgres", "drop table spread"));
	w.c.paused = true;
	CHECK(converge(&w, &access_writer) == 0 && converge(&fewer, &access_writer) == 0);
	CHECK(observe(ID5).node_count == 2 && servers_running() == 2);
	CHECK(ops->core->destroy(engine, ID5, NULL) == 0 && servers_running() == 0);
}
