/* Figures, not among the parts that run by default: how long a creation takes beside the bare programs, and how long
 * the next service takes to find what runs. */
#include "harness.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void bench(void)
{
	double create[32], bare[32];
	unsigned n = rounds() > 32 ? 32 : rounds();
	char command[1200];
	snprintf(command, sizeof command,
	         "B=/usr/lib/postgresql/15/bin; D=%s/bare; mkdir $D; chown steward $D; setpriv --reuid=steward "
	         "--regid=steward --clear-groups sh -c 'cd /; '\"$B/initdb -D $D/a -U x --wal-segsize=4 >/dev/null; "
	         "$B/pg_ctl -w -D "
	         "$D/a -o \\\"-c listen_addresses= -k $D -p 1\\\" start >/dev/null; for i in 2 3; do $B/pg_basebackup "
	         "-c fast "
	         "-R -h $D -p 1 -U x -D $D/\\$i; $B/pg_ctl -w -D $D/\\$i -o \\\"-c listen_addresses= -k $D -p \\$i\\\" "
	         "start "
	         ">/dev/null; done\"",
	         dir);
	for (unsigned i = 0; i < n; i++) {
		struct wish w = wish_make(ID3, 3, 0);
		usleep(1500000); /* the pool fills in the background */
		int64_t began = clock_mono_us();
		CHECK(converge(&w, &access_writer) == 0);
		struct cluster_status s = observe(ID3);
		CHECK(can_connect(primary_of(&s), "writer", PASSWORD, "postgres"));
		create[i] = since_ms(began);
		CHECK(ops->core->destroy(engine, ID3, NULL) == 0);
		usleep(1500000);
		began = clock_mono_us();
		CHECK(system(command) == 0);
		bare[i] = since_ms(began);
		char stop[300];
		snprintf(stop, sizeof stop,
		         "for i in 2 3 a; do kill -QUIT $(head -1 %s/bare/$i/postmaster.pid); done; sleep 0.3; rm -rf "
		         "%s/bare",
		         dir, dir);
		CHECK(system(stop) == 0);
	}
	qsort(create, n, sizeof *create, compare);
	qsort(bare, n, sizeof *bare, compare);
	printf("3 nodes, created and connected to: median %.0f ms (%.0f to %.0f); bare initdb, start, basebackup: %.0f "
	       "ms\n",
	       create[n / 2], create[0], create[n - 1], bare[n / 2]);
}

static void adopt(void)
{
	char id[48];
	int64_t began = clock_mono_us();
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "65f00000000000000000b0%02d", i);
		struct wish w = wish_make(id, 1, 0);
		CHECK(converge(&w, &access_writer) == 0);
	}
	printf("20 single nodes made in %.0f ms\n", since_ms(began));
	ops->core->stop(engine);
	began = clock_mono_us();
	engine_begin();
	printf("adopted in %.1f ms\n", since_ms(began));
	unsigned running = 0;
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "65f00000000000000000b0%02d", i);
		struct cluster_status s = observe(id);
		running += s.node_count == 1 && s.nodes[0].state == NODE_RUNNING;
		CHECK(ops->core->destroy(engine, id, NULL) == 0);
	}
	CHECK(running == 20 && servers_running() == 0);
}

void part_figures(void)
{
	bench();
	adopt();
}
