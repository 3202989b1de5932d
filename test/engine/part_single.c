/* One node: made, found again by the next service, back after a kill, parameters, pause, and gone without a trace. */
#include "harness.h"

#include "engine/postgres/model/clusters.h"
#include "engine/postgres/sql/sql.h"

#include <signal.h>

/* A user's lock holds the service up for a moment, and nothing of it is left waiting there. */
static void hostile_lock(const struct node_status *n)
{
	struct pg_cluster *c = pg_cluster_find(engine, ID1);
	PGconn *hostile = client(n, "writer", PASSWORD, "postgres"), *own = NULL, *watch = NULL;
	CHECK(run(hostile, "begin; lock table t in access exclusive mode"));
	CHECK(pg_sql_open_node(c, c->nodes[0], "postgres", 3000, &own) == 0);
	CHECK(number(own, "select setting from pg_settings where name = 'lock_timeout'") == 10000);
	CHECK(number(own, "select setting from pg_settings where name = 'statement_timeout'") == 600000);
	CHECK(pg_sql_do(own, 300, "select * from public.t") == -ETIMEDOUT);
	PQfinish(own);
	CHECK(pg_sql_open_node(c, c->nodes[0], "postgres", 3000, &watch) == 0);
	int64_t began = clock_mono_us();
	while (number(watch, "select count(*) from pg_stat_activity where usename = current_user and wait_event_type = "
	                     "'Lock'") > 0 &&
	       since_ms(began) < 8000)
		usleep(50000);
	CHECK(since_ms(began) < 8000);
	PQfinish(watch);
	PQfinish(hostile);
	pg_cluster_put(c);
}

void part_single(void)
{
	struct wish w = wish_make(ID1, 1, 0);
	int64_t began = clock_mono_us();
	CHECK(converge(&w, &access_writer) == 0);
	printf("single node: %.0f ms\n", since_ms(began));
	struct cluster_status s = observe(ID1);
	CHECK(s.exists && s.node_count == 1 && s.nodes[0].primary && s.nodes[0].state == NODE_RUNNING);
	CHECK(strncmp(s.nodes[0].version, "15.", 3) == 0);
	CHECK(can_connect(&s.nodes[0], "writer", PASSWORD, "postgres"));
	CHECK(!can_connect(&s.nodes[0], "writer", "wrong", "postgres"));
	CHECK(!can_connect(&s.nodes[0], "steward_engine", PASSWORD, "postgres"));
	CHECK(as(&s.nodes[0], "writer", "postgres", "create table t(a int); insert into t values (1)"));
	hostile_lock(&s.nodes[0]);
	/* Stop and start of the service: the server goes on, and is adopted. */
	pid_t pid = pid_of(ID1, w.nodes[0].name);
	ops->core->stop(engine);
	CHECK(kill(pid, 0) == 0);
	engine_begin();
	s = observe(ID1);
	CHECK(s.node_count == 1 && s.nodes[0].state == NODE_RUNNING && pid_of(ID1, w.nodes[0].name) == pid);
	/* Killed: back by itself. */
	kill(pid, SIGKILL);
	began = clock_mono_us();
	while (!as(&s.nodes[0], "writer", "postgres", "insert into t values (2)") && since_ms(began) < 5000)
		usleep(5000);
	printf("single node killed: writable after %.0f ms\n", since_ms(began));
	CHECK(since_ms(began) < 1000);
	/* Parameters: a good one that needs a restart, a bad one that changes nothing. */
	struct engine_param params[] = {{"max_connections", "77"}, {"work_mem", "6MB"}};
	w.c.params = params;
	w.c.param_count = 2;
	CHECK(converge(&w, &access_writer) == 0);
	PGconn *conn = client(&s.nodes[0], "writer", PASSWORD, "postgres");
	CHECK(number(conn, "show max_connections") == 77 && number(conn, "show work_mem") == 6);
	PQfinish(conn);
	params[1].value = "many";
	CHECK(converge(&w, &access_writer) == -EINVAL);
	params[1].name = "archive_command";
	CHECK(converge(&w, &access_writer) == -EINVAL);
	CHECK(can_connect(&s.nodes[0], "writer", PASSWORD, "postgres"));
	w.c.param_count = 0;
	w.c.paused = true;
	CHECK(converge(&w, &access_writer) == 0 && !can_connect(&s.nodes[0], "writer", PASSWORD, "postgres"));
	usleep(500000);
	CHECK(servers_running() == 0);
	w.c.paused = false;
	CHECK(converge(&w, &access_writer) == 0 && can_connect(&s.nodes[0], "writer", PASSWORD, "postgres"));
	CHECK(ops->core->destroy(engine, ID1, NULL) == 0 && ops->core->destroy(engine, ID1, NULL) == 0);
	CHECK(!observe(ID1).exists && servers_running() == 0);
}
