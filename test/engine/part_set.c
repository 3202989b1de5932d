/* A replica set: it grows and shrinks, the primary among those that go; larger nodes, switchovers, pause, outages. */
#include "harness.h"

#include "engine/postgres/model/wait.h"

void part_set(void)
{
	struct wish w = wish_make(ID3, 3, 1);
	int64_t began = clock_mono_us();
	CHECK(converge(&w, &access_all) == 0);
	printf("3 + 1 nodes: %.0f ms\n", since_ms(began));
	CHECK(wait_all_running(ID3, 4, 5000));
	struct cluster_status s = observe(ID3);
	const struct node_status *p = primary_of(&s);
	CHECK(p && as(p, "writer", "postgres", "create table t(a int); insert into t values (1)"));
	/* More nodes, then fewer, the primary among those that go. */
	w = wish_make(ID3, 5, 0);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 5, 5000));
	w = wish_make(ID3, 3, 0);
	for (int i = 0; i < 3; i++)
		w.nodes[i].name[strlen(w.nodes[i].name) - 1] = (char)('2' + i);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	s = observe(ID3);
	p = primary_of(&s);
	CHECK(p && as(p, "writer", "postgres", "insert into t values (2)"));
	/* Larger nodes: a rolling restart. */
	for (int i = 0; i < 3; i++)
		snprintf(w.nodes[i].instance_size, sizeof w.nodes[i].instance_size, "M30");
	began = clock_mono_us();
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	printf("rolling restart of 3: %.0f ms\n", since_ms(began));
	s = observe(ID3);
	p = primary_of(&s);
	PGconn *conn = client(p, "writer", PASSWORD, "postgres");
	CHECK(number(conn, "show shared_buffers") == 32 && number(conn, "select count(*) from t") == 2);
	PQfinish(conn);
	for (int i = 0; i < 3; i++)
		snprintf(w.nodes[i].instance_size, sizeof w.nodes[i].instance_size, "M10");
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	const char *why = NULL;
	for (int i = 0; i < 3; i++) {
		s = observe(ID3);
		p = primary_of(&s);
		began = clock_mono_us();
		CHECK(p && ops->core->switchover(engine, ID3, 0, p->name, &why) == 0);
		printf("switchover: %.0f ms\n", since_ms(began));
		/* Asked once more, for the same one: nothing. */
		struct cluster_status after = observe(ID3);
		const struct node_status *next = primary_of(&after);
		CHECK(next && strcmp(next->name, p->name) != 0 &&
		      ops->core->switchover(engine, ID3, 0, p->name, &why) == 0);
		after = observe(ID3);
		CHECK(primary_of(&after) && strcmp(primary_of(&after)->name, next->name) == 0);
	}
	CHECK(wait_all_running(ID3, 3, 5000));
	w.c.paused = true;
	CHECK(converge(&w, &access_all) == 0);
	w.c.paused = false;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	/* An outage of the primary's region, which it goes back to afterwards. */
	s = observe(ID3);
	p = primary_of(&s);
	for (int i = 0; i < 3; i++) {
		w.nodes[i].outage = p && strcmp(w.nodes[i].name, p->name) == 0;
		w.nodes[i].priority = w.nodes[i].outage ? 7 : 6;
	}
	CHECK(converge(&w, &access_all) == 0);
	struct cluster_status now = observe(ID3);
	CHECK(primary_of(&now) && strcmp(primary_of(&now)->name, p->name) != 0);
	for (int i = 0; i < 3; i++)
		w.nodes[i].outage = false;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	now = observe(ID3);
	CHECK(primary_of(&now) && strcmp(primary_of(&now)->name, p->name) == 0);
	CHECK(as(primary_of(&now), "writer", "postgres", "insert into t values (3)"));
	/* And when it lost it otherwise, by itself. */
	CHECK(ops->core->switchover(engine, ID3, 0, p->name, &why) == 0);
	int64_t until = clock_mono_us() + 40000000;
	do {
		pg_sleep_ms(200);
		now = observe(ID3);
	} while (clock_mono_us() < until && !(primary_of(&now) && strcmp(primary_of(&now)->name, p->name) == 0));
	CHECK(primary_of(&now) && strcmp(primary_of(&now)->name, p->name) == 0 && wait_all_running(ID3, 3, 5000));
	CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
}
