/* Who may do what from where: users, grants, networks, and what the log tells of refusals. */
#include "harness.h"

static long loads(const struct node_status *n)
{
	PGconn *conn = client(n, "boss", PASSWORD, "postgres");
	long at = number(conn, "select (extract(epoch from pg_conf_load_time()) * 1000)::bigint");
	PQfinish(conn);
	return at;
}

/* A cluster that is found again is as it was left: its servers are told nothing, unless something else is wanted than
 * was last applied, or that may have been lost. */
static void found_again(struct wish *w, const struct node_status *n)
{
	char mark[128];
	snprintf(mark, sizeof mark, "%s/engine/%s/applied", dir, ID1);
	w->c.adopt = true;
	long before = loads(n);
	engine_restart();
	CHECK(converge(w, &access_all) == 0 && loads(n) == before && can_connect(n, "writer", PASSWORD, "postgres"));
	/* As after a backup of the service was put in place of what it had. */
	engine_restart();
	CHECK(converge(w, &access_writer) == 0 && !can_connect(n, "boss", PASSWORD, "postgres"));
	engine_restart();
	CHECK(converge(w, &access_all) == 0 && can_connect(n, "boss", PASSWORD, "postgres"));
	before = loads(n);
	CHECK(unlink(mark) == 0);
	engine_restart();
	CHECK(converge(w, &access_all) == 0 && loads(n) > before);
	w->c.adopt = false;
}

void part_access(void)
{
	struct wish w = wish_make(ID1, 1, 0);
	CHECK(converge(&w, &access_all) == 0);
	struct cluster_status s = observe(ID1);
	const struct node_status *n = &s.nodes[0];
	CHECK(as(n, "app\"writer", "app",
	         "create table solo(a int); create table other(a int); insert into other values (1)"));
	CHECK(as(n, "app reader", "app", "select * from other") &&
	      !as(n, "app reader", "app", "insert into other values (2)"));
	CHECK(!as(n, "app reader", "app", "create table mine(a int)"));
	found_again(&w, n);
	CHECK(!as(n, "o'ne", "app", "select * from other"));
	CHECK(apply(ID1, &access_all) == 0);
	CHECK(as(n, "o'ne", "app", "select * from solo; insert into solo values (1)") &&
	      !as(n, "o'ne", "app", "select * from other") && !as(n, "o'ne", "app", "delete from solo"));
	CHECK(as(n, "writer", "app", "insert into other values (3)") && as(n, "boss", "app", "truncate other"));
	CHECK(as(n, "writer", "app", "create table late(a int)") && as(n, "app reader", "app", "select * from late"));
	CHECK(as(n, "writer", "postgres", "create database made") && as(n, "writer", "made", "create table x(a int)"));
	CHECK(apply(ID1, &access_all) == 0 && as(n, "boss", "made", "insert into x values (1)"));
	CHECK(!as(n, "boss", "postgres", "create role evil superuser") &&
	      !as(n, "boss", "postgres", "copy (select 1) to program 'true'") &&
	      !as(n, "boss", "postgres", "select pg_read_file('/etc/passwd')"));
	/* Networks: a session from an address taken off the list ends, and no new one begins. */
	PGconn *conn = client(n, "writer", PASSWORD, "postgres");
	CHECK(run(conn, "select 1"));
	struct engine_access other = access_all;
	CHECK(cidr_parse(STR("192.0.2.0/24"), &networks[1]));
	other.networks = &networks[1];
	int64_t began = clock_mono_us();
	CHECK(apply(ID1, &other) == 0);
	printf("access applied: %.0f ms\n", since_ms(began));
	CHECK(!run(conn, "select 1") && !can_connect(n, "writer", PASSWORD, "postgres"));
	PQfinish(conn);
	CHECK(apply(ID1, &access_all) == 0 && can_connect(n, "writer", PASSWORD, "postgres"));
	/* A user that is gone: its session, its login; not its tables. */
	struct engine_access fewer = access_all;
	fewer.users = users + 1;
	fewer.user_count = 4;
	conn = client(n, "writer", PASSWORD, "postgres");
	CHECK(run(conn, "select 1") && apply(ID1, &fewer) == 0 && !run(conn, "select 1"));
	PQfinish(conn);
	CHECK(!can_connect(n, "writer", PASSWORD, "postgres") && as(n, "boss", "made", "select * from x"));
	/* The log tells of the refusals. */
	int fd = -1;
	struct engine_log log = {ID1, w.nodes[0].name, ENGINE_LOG_SERVER, 0, INT64_MAX};
	CHECK(ops->logs->open(engine, &log, &fd) == 0);
	FILE *f = fdopen(fd, "r");
	char line[8192];
	unsigned lines = 0, refused = 0;
	while (f && fgets(line, sizeof line, f)) {
		lines++;
		refused += strstr(line, "no pg_hba.conf entry") != NULL;
	}
	CHECK(f && fclose(f) == 0 && lines > 10 && refused > 0);
	log.to_ms = 1000;
	CHECK(ops->logs->open(engine, &log, &fd) == 0 && read(fd, line, 1) == 0);
	close(fd);
	CHECK(ops->core->destroy(engine, ID1, NULL) == 0 && servers_running() == 0);
}
