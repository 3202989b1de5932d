/* To a newer major version, whole and cut short at any moment. One installation stands for
 * both: pg_upgrade takes the same version for a newer one. */
#include "harness.h"

#define ID4 "65f0000000000000000000a4"

/* Cut short at any moment, it goes on, or with the old version where that is wanted again. */
static void upgrade_crash(unsigned round)
{
	struct wish w = wish_make(ID4, 3, 0);
	CHECK(converge(&w, &access_writer) == 0);
	struct cluster_status s = observe(ID4);
	CHECK(as(primary_of(&s), "writer", "postgres", "create table t(a int); insert into t values (1)"));
	w.c.version = 16;
	service_crash(&w, 300000 + 270000 * (round * 5 % 17));
	w.c.version = round % 2 ? 15 : 16;
	int r = converge(&w, &access_writer);
	if (r == -EINVAL) { /* it was done already */
		w.c.version = 16;
		r = converge(&w, &access_writer);
	}
	CHECK(r == 0);
	s = observe(ID4);
	const struct node_status *p = primary_of(&s);
	printf("upgrade cut short, then version %u: %s\n", w.c.version, p ? p->version : "none");
	CHECK(p && strtoul(p->version, NULL, 10) == w.c.version);
	CHECK(p && as(p, "writer", "postgres", "insert into t select max(a) + 1 from t"));
	char command[160];
	snprintf(command, sizeof command, "! ls -d %s/engine/" ID4 "/*/data.*", dir);
	CHECK(system(command) == 0); /* nor files of the one that was cut short */
	CHECK(ops->core->destroy(engine, ID4, NULL) == 0 && servers_running() == 0);
}

void part_upgrade(void)
{
	struct wish w = wish_make(ID4, 3, 1);
	CHECK(converge(&w, &access_writer) == 0);
	w.c.version = 99;
	CHECK(converge(&w, &access_writer) == -ENOENT);
	struct cluster_status s = observe(ID4);
	CHECK(as(primary_of(&s), "writer", "postgres",
	         "create table t(a int); insert into t select generate_series(1, 1000)"));
	programs_make("ln -s /usr/lib/postgresql/15 15 && ln -s /usr/lib/postgresql/15 16");
	w.c.version = 16;
	int64_t began = clock_mono_us();
	CHECK(converge(&w, &access_writer) == 0);
	printf("upgrade of 3 + 1 nodes: %.0f ms\n", since_ms(began));
	s = observe(ID4);
	const struct node_status *p = primary_of(&s);
	CHECK(s.node_count == 4 && p && strncmp(p->version, "16.", 3) == 0);
	PGconn *conn = client(p, "writer", PASSWORD, "postgres");
	CHECK(number(conn, "select count(*) from t") == 1000);
	CHECK(number(conn, "select count(*) from pg_stat_replication") == 3);
	PQfinish(conn);
	CHECK(p && as(p, "writer", "postgres", "insert into t values (0)"));
	w.c.version = 15;
	CHECK(converge(&w, &access_writer) == -EINVAL);
	CHECK(ops->core->destroy(engine, ID4, NULL) == 0);
	for (unsigned i = 0; i < rounds(); i++)
		upgrade_crash(i);
	programs_make(NULL);
}
