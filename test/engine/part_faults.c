/* Faults of the primary under write load: killed, stopped, switched over. No acknowledged write is lost, never do two
 * take writes, and of a kill clients notice less than a second. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define NUMBERS (1 << 18)

struct load {
	pthread_t thread;
	atomic_bool stop;
	atomic_long acked;            /* how many were acknowledged */
	unsigned char known[NUMBERS]; /* which */
	_Atomic int64_t last_us, gap_us;
	struct cluster_status s;
};

/* Writes numbers one after the other, wherever the primary is. */
static void *load_run(void *arg)
{
	struct load *l = arg;
	long next = 1;
	atomic_store(&l->last_us, clock_mono_us());
	while (!atomic_load(&l->stop)) {
		for (size_t i = 0; i < l->s.node_count && !atomic_load(&l->stop); i++) {
			PGconn *conn = client(&l->s.nodes[i], "writer", PASSWORD, "postgres");
			bool good =
			        PQstatus(conn) == CONNECTION_OK && number(conn, "select pg_is_in_recovery()::int") == 0;
			while (good && !atomic_load(&l->stop)) {
				char sql[80];
				snprintf(sql, sizeof sql, "insert into load values (%ld)", next);
				good = run(conn, sql);
				if (!good)
					break;
				int64_t now = clock_mono_us(), gap = now - atomic_load(&l->last_us);
				if (gap > atomic_load(&l->gap_us))
					atomic_store(&l->gap_us, gap);
				atomic_store(&l->last_us, now);
				atomic_fetch_add(&l->acked, 1);
				l->known[next++ % NUMBERS] = 1;
			}
			PQfinish(conn);
			next += !good; /* whether that one was written is not known */
		}
		usleep(2000);
	}
	return NULL;
}

/* How many nodes take writes at this moment. */
static unsigned writable(const struct cluster_status *s)
{
	unsigned n = 0;
	for (size_t i = 0; i < s->node_count; i++) {
		PGconn *conn = client(&s->nodes[i], "boss", PASSWORD, "postgres");
		n += PQstatus(conn) == CONNECTION_OK && number(conn, "select pg_is_in_recovery()::int") == 0;
		PQfinish(conn);
	}
	return n;
}

/* How many acknowledged numbers are not in the table. */
static long lost(const struct node_status *p, const struct load *l)
{
	PGconn *conn = client(p, "writer", PASSWORD, "postgres");
	PGresult *r = PQexec(conn, "select n from load");
	unsigned char *there = calloc(NUMBERS, 1);
	for (int i = 0; there && i < PQntuples(r); i++)
		there[strtol(PQgetvalue(r, i, 0), NULL, 10) % NUMBERS] = 1;
	long missing = PQresultStatus(r) == PGRES_TUPLES_OK ? 0 : -1;
	for (long i = 0; there && i < NUMBERS; i++)
		missing += l->known[i] && !there[i];
	free(there);
	PQclear(r);
	PQfinish(conn);
	return missing;
}

static void fault_round(const char *what, struct wish *w, int signal_number, bool planned)
{
	static struct load l;
	memset(&l, 0, sizeof l);
	l.s = observe(ID3);
	const struct node_status *p = primary_of(&l.s);
	char old[64];
	CHECK(p != NULL);
	if (!p)
		return;
	snprintf(old, sizeof old, "%s", p->name);
	CHECK(as(p, "writer", "postgres", "drop table if exists load; create table load(n bigint primary key)"));
	pthread_create(&l.thread, NULL, load_run, &l);
	usleep(200000);
	atomic_store(&l.gap_us, 0);
	long before = atomic_load(&l.acked);
	int64_t began = clock_mono_us();
	const char *why = NULL;
	if (planned)
		CHECK(ops->core->switchover(engine, ID3, 0, old, &why) == 0);
	else
		kill(pid_of(ID3, old), signal_number);
	unsigned most = 0;
	while (since_ms(began) < 1500) {
		unsigned n = writable(&l.s);
		most = n > most ? n : most;
	}
	atomic_store(&l.stop, true);
	pthread_join(l.thread, NULL);
	long acked = atomic_load(&l.acked);
	CHECK(acked > before && most <= 1);
	CHECK(wait_all_running(ID3, 3, 20000));
	struct cluster_status s = observe(ID3);
	p = primary_of(&s);
	long missing = p ? lost(p, &l) : -1;
	printf("%s: %s -> %s, longest gap %.0f ms, %ld acknowledged, %ld lost, all streaming after %.0f ms\n", what,
	       old + strlen(old) - 2, p ? p->name + strlen(p->name) - 2 : "?", (double)atomic_load(&l.gap_us) / 1000,
	       acked, missing, since_ms(began));
	CHECK(missing == 0);
	CHECK(p && strcmp(p->name, old) != 0);
	if (signal_number == SIGKILL || planned)
		CHECK(atomic_load(&l.gap_us) < 1000000);
}

void part_faults(void)
{
	struct wish w = wish_make(ID3, 3, 0);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	for (unsigned i = 0; i < rounds(); i++) {
		fault_round("kill", &w, SIGKILL, false);
		fault_round("stop", &w, SIGSTOP, false);
		fault_round("switchover", &w, 0, true);
	}
	CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
}
