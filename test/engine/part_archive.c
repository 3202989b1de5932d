/* The log in the repository: through failovers, kills, restarts of the service and a repository that is away, every
 * moment that is offered can be recovered to, and holds exactly what was acknowledged until then. */
#include "base/buf.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/archive/archive_common.h"
#include "engine/postgres/archive/archive_fetch.h"
#include "engine/postgres/archive/archive_index.h"
#include "engine/postgres/archive/archive_read.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/archive/archive_view.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"
#include "harness.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define ID6 "65f0000000000000000000a6"
#define ID7 "65f0000000000000000000a7"
#define ID8 "65f0000000000000000000a8"
#define ID9 "65f0000000000000000000a9"
#define ID10 "65f0000000000000000000b0"
#define INCARNATION "65f0000000000000000000b1"
#define BIN "/usr/lib/postgresql/15/bin"
#define LEDGER_MAX 200000

static struct engine_source source_of(const struct wish *w)
{
	struct engine_source of = {0};
	snprintf(of.group_id, sizeof of.group_id, "%s", w->c.group_id);
	snprintf(of.cluster_id, sizeof of.cluster_id, "%s", w->c.id);
	snprintf(of.incarnation, sizeof of.incarnation, "%s", w->c.backup.incarnation);
	snprintf(of.region, sizeof of.region, "%s", w->c.backup.region);
	return of;
}

static struct wish wish_archived(const char *id, unsigned electable)
{
	struct wish w = wish_make(id, electable, 0);
	w.c.backup.archive = true;
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, INCARNATION);
	snprintf(w.c.backup.region, sizeof w.c.backup.region, "US_EAST_1");
	return w;
}

/* --- the ledger: every transaction with when it began and when it was acknowledged */

static struct entry {
	int64_t began_ms, acked_ms; /* acked 0: not known whether it is there */
} ledger[LEDGER_MAX];
static _Atomic size_t entries;
static _Atomic bool writing;
static const char *ledger_id;

static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER; /* while there is one */

static PGconn *primary_open(const char *id)
{
	struct arena *own = arena_new(); /* the shared one is another thread's */
	struct cluster_status s = {0};
	PGconn *conn = NULL;
	pthread_mutex_lock(&engine_lock);
	if (ops->core->observe(engine, id, own, &s) == 0 && primary_of(&s))
		conn = client(primary_of(&s), "writer", PASSWORD, "postgres");
	pthread_mutex_unlock(&engine_lock);
	arena_free(own);
	return conn;
}

static void *ledger_write(void *arg)
{
	PGconn *conn = NULL;
	(void)arg;
	while (writing && entries < LEDGER_MAX) {
		char sql[100];
		if (!conn || PQstatus(conn) != CONNECTION_OK) {
			if (conn)
				PQfinish(conn);
			conn = primary_open(ledger_id);
			pg_sleep_ms(10);
			if (!conn || PQstatus(conn) != CONNECTION_OK)
				continue;
		}
		struct entry *e = &ledger[entries];
		snprintf(sql, sizeof sql, "insert into ledger values (%zu, repeat('x', 900))", (size_t)entries);
		e->began_ms = clock_now_ms();
		e->acked_ms = 0;
		bool good = run(conn, sql);
		if (!good && PQstatus(conn) == CONNECTION_OK)
			e->began_ms = INT64_MAX;             /* it was refused */
		e->acked_ms = good ? clock_now_ms() + 1 : 0; /* the millisecond is not over */
		entries++;
		pg_sleep_ms(1);
	}
	if (conn)
		PQfinish(conn);
	return NULL;
}

/* --- recovery, by PostgreSQL's own means */

static bool shell(const char *format, ...) printf_like(1, 2);
static bool shell(const char *format, ...)
{
	char command[2000];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	const char *argv[] = {"/bin/sh", "-c", command, NULL};
	bool good = pg_process_run(pg_user_of(engine, GROUP), argv, 60000) == 0;
	if (!good)
		fprintf(stderr, "%.200s: %s\n", command, pg_why_last());
	return good;
}

struct base {
	char path[128];
	unsigned timeline;
	uint64_t lsn;
	char set[64];
};

static void base_take(const char *id, size_t set, struct base *b)
{
	struct pg_cluster *c = pg_cluster_find(engine, id);
	struct pg_node *p = pg_set_primary(c, &c->sets[set]);
	char run_dir[PG_PATH], path[256], *label;
	unsigned high = 0, low = 0;
	pg_node_run_dir(c, p, run_dir);
	pg_set_name(&p->want, b->set);
	static unsigned count;
	snprintf(b->path, sizeof b->path, "%s/scratch/base%u", dir, ++count);
	CHECK(shell(BIN "/pg_basebackup -D %s -h %s -p %u -U " PG_SUPER " -X none -c fast -w --no-sync 2>/dev/null",
	            b->path, run_dir, p->port));
	snprintf(path, sizeof path, "%s/backup_label", b->path);
	CHECK(pg_file_read(path, 4096, &label) == 0);
	const char *start = strstr(label, "START WAL LOCATION: "), *line = strstr(label, "START TIMELINE: ");
	CHECK(start && line && sscanf(start, "START WAL LOCATION: %X/%X", &high, &low) == 2 &&
	      sscanf(line, "START TIMELINE: %u", &b->timeline) == 1);
	b->lsn = (uint64_t)high << 32 | low;
	free(label);
	pg_cluster_put(c);
}

/* What that gives in the recovered database; LONG_MIN: it was not recovered. */
static long recover_ask(const struct base *b, const struct engine_source *of, const struct pg_target *to,
                        const char *sql)
{
	static unsigned count;
	char data[160], wal[180], sock[100], target[200] = "";
	const char *why = NULL;
	long answer = LONG_MIN;
	snprintf(data, sizeof data, "%s/scratch/r%u", dir, ++count);
	snprintf(wal, sizeof wal, "%s/pg_wal", data);
	snprintf(sock, sizeof sock, "%s/scratch", dir);
	if (!shell("cp -a %s %s && rm -f %s/standby.signal %s/postgresql.auto.conf && touch %s/recovery.signal",
	           b->path, data, data, data, data))
		return answer;
	int r = pg_archive_fetch(engine, of, b->set, b->timeline, b->lsn, to, wal, &why);
	if (r < 0) {
		fprintf(stderr, "fetch: %s: %s\n", strerror(-r), why);
		return answer;
	}
	if (to->lsn)
		snprintf(target, sizeof target,
		         "recovery_target_lsn = '\"'%X/%X'\"'\nrecovery_target_inclusive = off\n",
		         (unsigned)(to->lsn >> 32), (unsigned)to->lsn);
	char text[CLOCK_TEXT];
	clock_format(to->time_us / 1000, text);
	if (!to->lsn)
		snprintf(target, sizeof target, "recovery_target_time = '\"'%.19s.%06d+00'\"'\n", text,
		         (int)(to->time_us % 1000000));
	CHECK(shell(
	        "printf '%%s\\n' 'unix_socket_directories = '\"'%s'\"'\nport = 6543\nlisten_addresses = "
	        "'\"''\"'\nhot_standby "
	        "= off\nrecovery_target_action = promote\nwal_level = logical\nmax_connections = 100\nfsync = off\n"
	        "restore_command = '\"'/bin/false'\"'\nrecovery_target_timeline = %u\n%s' > %s/postgresql.conf && echo "
	        "'local all all trust' > %s/pg_hba.conf && touch %s/pg_ident.conf",
	        sock, to->timeline, target, data, data, data));
	if (shell(BIN "/pg_ctl -D %s -l %s/log -w -t 50 start >/dev/null", data, data)) {
		struct pg_node n = {.port = 6543};
		PGconn *conn;
		int opened = -EAGAIN;
		/* It says that it has started when it begins to recover. */
		for (int i = 0; i < 400 && opened < 0; i++) {
			opened = pg_sql_open(&n, sock, "postgres", 3000, &conn);
			if (opened < 0)
				pg_sleep_ms(50);
		}
		if (opened == 0) {
			int64_t value = -1, reached = 0;
			if (pg_sql_int(conn, 3000, sql, &value) == 0)
				answer = (long)value;
			CHECK(pg_sql_int(conn, 3000, "select (pg_current_wal_lsn() - '0/0')::bigint", &reached) == 0 &&
			      (uint64_t)reached >= to->least);
			PQfinish(conn);
		}
	} else {
		shell("tail -5 %s/log >&2; exit 1", data);
	}
	shell(BIN "/pg_ctl -D %s -m immediate -w stop >/dev/null 2>&1; rm -rf %s", data, data);
	return answer;
}

static long recover(const struct base *b, const struct engine_source *of, const struct pg_target *to)
{
	return recover_ask(b, of, to, "select count(*) from public.ledger");
}

/* What was acknowledged before is there, what began after is not, and nothing is missing in between. */
static void point_check(const struct base *b, const struct engine_source *of, int64_t time_ms)
{
	struct engine_point point = {.kind = POINT_TIME, .time_ms = time_ms};
	struct pg_target to = {0};
	const char *why = NULL;
	size_t least = 0, most = 0, unknown = 0;
	int r = pg_archive_resolve(engine, of, &point, "0", &to, &why);
	if (r < 0)
		fprintf(stderr, "resolve %lld: %s\n", (long long)time_ms, why);
	CHECK(r == 0);
	if (r < 0)
		return;
	for (size_t i = 0; i < entries; i++) {
		least += ledger[i].acked_ms && ledger[i].acked_ms <= time_ms;
		most += ledger[i].began_ms <= time_ms;
		unknown += !ledger[i].acked_ms && ledger[i].began_ms <= time_ms;
	}
	long rows = recover(b, of, &to);
	bool good = rows >= (long)least && rows <= (long)most;
	CHECK(good);
	if (!good || getenv("DEBUG"))
		fprintf(stderr, "point %lld by %s on timeline %u: %ld rows of %zu to %zu, %zu unknown\n",
		        (long long)time_ms, to.lsn ? "position" : "time", to.timeline, rows, least, most, unknown);
}

/* --- what the engine tells */

static struct engine_archive archive_of(const char *id)
{
	struct engine_archive s = {0};
	CHECK(pg_backup_archive(engine, id, arena, &s) == 0);
	return s;
}

static size_t windows_of(const struct engine_source *of, struct engine_window *ret_last)
{
	struct engine_window *list;
	size_t count = 0;
	memset(engine->windows, 0, sizeof engine->windows); /* not what was told a moment ago */
	CHECK(pg_backup_window(engine, of, arena, &list, &count) == 0);
	if (count)
		*ret_last = list[count - 1];
	return count;
}

/* Until moments up to that one are offered. */
static bool window_wait(const struct engine_source *of, int64_t time_ms, int ms)
{
	int64_t began = clock_mono_us();
	while (since_ms(began) < ms) {
		struct engine_window w = {0};
		if (windows_of(of, &w) && w.to_ms >= time_ms)
			return true;
		pg_sleep_ms(100);
	}
	return false;
}

static void repository_away(bool away)
{
	char command[300];
	snprintf(command, sizeof command,
	         away ? "mv %s/backups %s/backups.away && touch %s/backups"
	              : "rm %s/backups && mv %s/backups.away %s/backups",
	         dir, dir, dir);
	CHECK(system(command) == 0);
}

static void primary_kill(const char *id)
{
	struct cluster_status s = observe(id);
	const struct node_status *p = primary_of(&s);
	CHECK(p != NULL);
	if (p)
		kill(pid_of(id, p->name), SIGKILL);
}

static void standby_kill(const char *id)
{
	struct cluster_status s = observe(id);
	for (size_t i = 0; i < s.node_count; i++)
		if (!s.nodes[i].primary && s.nodes[i].state == NODE_RUNNING) {
			kill(pid_of(id, s.nodes[i].name), SIGKILL);
			return;
		}
}

static void segment_end(const char *id)
{
	struct pg_cluster *c = pg_cluster_find(engine, id);
	struct pg_node *p = pg_set_primary(c, &c->sets[0]);
	int64_t lsn;
	CHECK(pg_sql_ask_node(c, p, "select (pg_switch_wal() - '0/0')::bigint", &lsn) == 0);
	pg_cluster_put(c);
}

static void ledger_begin(pthread_t *thread, const char *id)
{
	struct cluster_status s = observe(id);
	CHECK(as(primary_of(&s), "writer", "postgres", "create table ledger(id bigint primary key, pad text)"));
	ledger_id = id;
	entries = 0;
	writing = true;
	CHECK(pthread_create(thread, NULL, ledger_write, NULL) == 0);
}

static void ledger_end(pthread_t thread)
{
	writing = false;
	pthread_join(thread, NULL);
}

static void scratch_make(void)
{
	char path[100];
	snprintf(path, sizeof path, "%s/scratch", dir);
	CHECK(chmod(dir, 0711) == 0);
	CHECK(pg_dir_make(pg_user_of(engine, GROUP), path, true) == 0);
}

/* A flipped byte is found before anything is recovered from it; a segment that is missing ends the window there. */
static void archive_damage(const struct base *b, const struct engine_source *of, int64_t time_ms)
{
	struct engine_point point = {.kind = POINT_TIME, .time_ms = time_ms};
	struct engine_window window;
	struct pg_target to;
	char path[400], name[PG_WAL_NAME], out[100], command[1200];
	const char *why = NULL;
	CHECK(pg_archive_resolve(engine, of, &point, "0", &to, &why) == 0);
	pg_wal_name(1, b->lsn / PG_SEGMENT, true, name);
	snprintf(path, sizeof path, "%s/backups/%s/%s/wal/%s/%s/0/00000001/%s", dir, of->region, of->group_id,
	         of->cluster_id, of->incarnation, name);
	snprintf(out, sizeof out, "%s/scratch/out", dir);
	CHECK(pg_file_is(path) && pg_dir_make(pg_user_of(engine, GROUP), out, true) == 0);
	snprintf(command, sizeof command,
	         "cp %s %s/kept && printf '\\377\\000' | dd of=%s bs=1 seek=200 conv=notrunc status=none", path, out,
	         path);
	CHECK(system(command) == 0);
	CHECK(pg_archive_fetch(engine, of, "0", b->timeline, b->lsn, &to, out, &why) == -EBADMSG && strstr(why, name));
	CHECK(unlink(path) == 0);
	CHECK(pg_archive_fetch(engine, of, "0", b->timeline, b->lsn, &to, out, &why) == -ENOENT && strstr(why, name));
	/* Where the first primary was replaced: there is something on both sides. */
	snprintf(command, sizeof command, "cp %s/kept %s", out, path);
	CHECK(system(command) == 0 && windows_of(of, &window) == 1);
	struct pg_view v;
	CHECK(pg_view_open(engine, of, "0", true, &v) == 0 && v.chain.count == 3);
	uint64_t fork = v.chain.parts[1].begin / PG_SEGMENT;
	pg_wal_name(pg_chain_part(&v.chain, fork)->timeline, fork, true, name);
	pg_view_close(&v);
	snprintf(path, sizeof path, "%s/backups/%s/%s/wal/%s/%s/0/%.8s/%s", dir, of->region, of->group_id,
	         of->cluster_id, of->incarnation, name, name);
	CHECK(pg_file_is(path) && unlink(path) == 0);
	CHECK(pg_archive_fetch(engine, of, "0", b->timeline, b->lsn, &to, out, &why) == -ENOENT && strstr(why, name));
	CHECK(windows_of(of, &window) == 2 && window.to_ms >= time_ms);
}

/* Killed primaries, a restart of the service, and a repository that is away in between. */
static void through_faults(void)
{
	struct wish w = wish_archived(ID6, 3);
	struct engine_source of = source_of(&w);
	struct engine_window window = {0};
	struct base base = {0};
	pthread_t writer;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID6, 3, 5000));
	ledger_begin(&writer, ID6);
	int64_t began = clock_mono_us();
	base_take(ID6, 0, &base);
	int64_t first = clock_now_ms();
	CHECK(window_wait(&of, first, 10000));
	printf("archived and offered after %.0f ms\n", since_ms(began));
	primary_kill(ID6);
	CHECK(wait_all_running(ID6, 3, 30000));
	int64_t second = clock_now_ms();
	segment_end(ID6);
	/* Trap 1: the store is down, the primary is killed, a standby promoted. */
	repository_away(true);
	pg_sleep_ms(2500);
	struct engine_archive state = archive_of(ID6);
	CHECK(state.on && state.why && state.lag_ms > 0 && !state.broken);
	primary_kill(ID6);
	CHECK(wait_all_running(ID6, 3, 30000));
	int64_t third = clock_now_ms();
	/* The service is killed, with the repository away and after it is back. */
	pthread_mutex_lock(&engine_lock);
	setenv("INCARNATION", INCARNATION, 1);
	service_crash(&w, 700000);
	pthread_mutex_unlock(&engine_lock);
	CHECK(converge(&w, &access_all) == 0);
	standby_kill(ID6);
	int64_t fourth = clock_now_ms();
	repository_away(false);
	pthread_mutex_lock(&engine_lock);
	service_crash(&w, 1500000);
	unsetenv("INCARNATION"); /* of later parts */
	pthread_mutex_unlock(&engine_lock);
	CHECK(window_wait(&of, fourth, 20000));
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID6, 3, 30000));
	segment_end(ID6);
	int64_t fifth = clock_now_ms();
	ledger_end(writer);
	int64_t last = clock_now_ms();
	CHECK(window_wait(&of, last, 10000));
	CHECK(windows_of(&of, &window) == 1 && window.from_ms <= first);
	state = archive_of(ID6);
	CHECK(!state.why && !state.broken && state.spool_bytes == 0);
	printf("%zu transactions\n", (size_t)entries);
	CHECK(entries > 100);
	const int64_t points[] = {second, third, fourth, last};
	for (size_t i = 0; i < sizeof points / sizeof *points; i++)
		point_check(&base, &of, points[i]);
	for (unsigned i = 0; i < rounds(); i++)
		point_check(&base, &of, first + random() % (last - first));
	/* Beyond the end nothing is offered. */
	struct engine_point point = {.kind = POINT_TIME, .time_ms = clock_now_ms() + 60000};
	struct pg_target to;
	const char *why = NULL;
	CHECK(pg_archive_resolve(engine, &of, &point, "0", &to, &why) == -ENOENT && why);
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0 && servers_running() == 0);
	/* The archive outlives the cluster. */
	CHECK(windows_of(&of, &window) == 1 && window.to_ms >= fifth);
	point_check(&base, &of, fifth);
	archive_damage(&base, &of, fifth);
}

/* Trap 3: the primary was ahead of the node that is promoted, and all of its log is stored. What never was is not
 * restored, and its timeline goes on up to the fork. */
static void behind_the_fork(void)
{
	struct wish w = wish_archived(ID6, 2);
	struct engine_source of = source_of(&w);
	struct base base = {0};
	struct pg_target to;
	struct engine_window window = {0};
	const char *why = NULL;
	w.c.quorum = false;
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, "65f0000000000000000000b2");
	of = source_of(&w);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID6, 2, 5000));
	struct cluster_status s = observe(ID6);
	CHECK(as(primary_of(&s), "writer", "postgres",
	         "create table ledger(id bigint primary key); insert into ledger select generate_series(1, 100)"));
	base_take(ID6, 0, &base);
	w.nodes[1].outage = true;
	CHECK(converge(&w, &access_all) == 0);
	pg_sleep_ms(2000); /* a mark lies between the copy and the moment that is asked for below */
	s = observe(ID6);
	CHECK(as(primary_of(&s), "writer", "postgres", "insert into ledger select generate_series(101, 50000)"));
	int64_t ahead = clock_now_ms();
	CHECK(window_wait(&of, ahead, 10000));
	w.nodes[0].outage = true;
	w.nodes[1].outage = false;
	(void)!converge(&w, &access_all);
	for (int i = 0; i < 200 && !(s = observe(ID6), primary_of(&s)); i++)
		pg_sleep_ms(50);
	s = observe(ID6);
	CHECK(primary_of(&s) && strcmp(primary_of(&s)->name, w.nodes[1].name) == 0);
	bool written = false; /* it takes clients once their access is known to be in force */
	for (int i = 0; i < 100 && !written; i++) {
		written = primary_of(&s) && as(primary_of(&s), "writer", "postgres", "insert into ledger values (0)");
		pg_sleep_ms(written ? 0 : 100);
	}
	CHECK(written);
	int64_t after = clock_now_ms();
	CHECK(window_wait(&of, after, 10000));
	w.nodes[0].outage = false;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID6, 2, 20000));
	struct engine_point point = {.kind = POINT_TIME, .time_ms = after};
	CHECK(pg_archive_resolve(engine, &of, &point, "0", &to, &why) == 0 && to.timeline == 2);
	CHECK(recover(&base, &of, &to) == 101);
	/* The moment at which those rows were there is offered, without what was lost. */
	point.time_ms = ahead;
	CHECK(pg_archive_resolve(engine, &of, &point, "0", &to, &why) == 0);
	CHECK(recover(&base, &of, &to) == 100);
	/* Still: the position of the last mark. By position the same. */
	pg_sleep_ms(3000);
	point.time_ms = clock_now_ms() - 1000;
	CHECK(window_wait(&of, point.time_ms, 10000));
	CHECK(pg_archive_resolve(engine, &of, &point, "0", &to, &why) == 0 && to.lsn);
	CHECK(recover(&base, &of, &to) == 101);
	uint64_t second = 0;
	CHECK(pg_backup_position(engine, &of, ahead - 500, &point.position, &second) == 0 &&
	      second <= point.position.lsn && strcmp(point.position.set, "0") == 0);
	point.kind = POINT_POSITION;
	CHECK(pg_archive_resolve(engine, &of, &point, "0", &to, &why) == 0 && to.lsn == point.position.lsn);
	CHECK(recover(&base, &of, &to) == 100);
	/* Of a paused cluster, what it was when it stopped. */
	s = observe(ID6);
	CHECK(as(primary_of(&s), "writer", "postgres", "insert into ledger values (-1)"));
	w.c.paused = true;
	CHECK(converge(&w, &access_all) == 0);
	pg_sleep_ms(1100);
	point = (struct engine_point){.kind = POINT_TIME, .time_ms = clock_now_ms()};
	CHECK(window_wait(&of, point.time_ms, 10000));
	CHECK(pg_archive_resolve(engine, &of, &point, "0", &to, &why) == 0 && to.lsn);
	CHECK(recover(&base, &of, &to) == 102);
	CHECK(windows_of(&of, &window) == 1);
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0 && servers_running() == 0);
}

/* A repository that is away for longer than the spool may grow: the window ends, the database goes on. */
static void spool_is_bounded(void)
{
	struct wish w = wish_archived(ID7, 1);
	struct engine_source of = source_of(&w);
	struct engine_window window = {0}, later = {0};
	spool_bytes = 12 << 20;
	engine_restart();
	CHECK(converge(&w, &access_all) == 0);
	struct cluster_status s = observe(ID7);
	CHECK(as(primary_of(&s), "writer", "postgres", "create table t(a text)"));
	int64_t before = clock_now_ms();
	CHECK(window_wait(&of, before, 10000));
	struct pg_cluster *c = pg_cluster_find(engine, ID7);
	PGconn *conn;
	CHECK(pg_sql_open_node(c, pg_set_primary(c, &c->sets[0]), "postgres", 3000, &conn) == 0);
	repository_away(true);
	struct engine_archive state = archive_of(ID7);
	/* More than the server keeps by itself. */
	for (int i = 0; i < 30; i++)
		CHECK(pg_sql_do(conn, 30000,
		                "select pg_logical_emit_message(false, 'test', 'x'); select pg_switch_wal()") == 0);
	CHECK(pg_sql_do(conn, 30000, "checkpoint") == 0);
	int64_t began = clock_mono_us();
	while (!state.broken && since_ms(began) < 30000) {
		pg_sleep_ms(100);
		state = archive_of(ID7);
	}
	CHECK(pg_sql_do(conn, 30000, "checkpoint") == 0);
	CHECK(state.broken && state.why && state.spool_bytes < spool_bytes);
	repository_away(false);
	CHECK(as(primary_of(&s), "writer", "postgres", "insert into t values ('after')"));
	int64_t after = clock_now_ms();
	CHECK(window_wait(&of, after, 20000) && windows_of(&of, &later) == 2 && later.from_ms > before);
	state = archive_of(ID7);
	CHECK(state.broken && !state.why); /* until a snapshot is taken */
	/* A snapshot that began before the gap cannot be ended, one after it can. */
	int64_t lsn = 0;
	CHECK(pg_sql_int(conn, 3000, "select (pg_current_wal_lsn() - '0/0')::bigint", &lsn) == 0);
	PQfinish(conn);
	CHECK(pg_archive_wait(c, &c->sets[0], 1, 4 << 20, 1000) == -ENODATA);
	CHECK(pg_archive_wait(c, &c->sets[0], 1, (uint64_t)lsn, 10000) == 0);
	pg_cluster_put(c);
	for (int i = 0; i < 100 && archive_of(ID7).broken; i++)
		pg_sleep_ms(50);
	CHECK(!archive_of(ID7).broken);
	/* No moment in the gap is offered. */
	CHECK(windows_of(&of, &window) == 2 && window.to_ms >= later.to_ms);
	struct engine_point point = {.kind = POINT_TIME, .time_ms = later.from_ms - 1};
	struct pg_target to;
	const char *why = NULL;
	CHECK(pg_archive_resolve(engine, &of, &point, "0", &to, &why) == -ENOENT);
	spool_bytes = 0;
	engine_restart();
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0 && servers_running() == 0);
}

#define MANY 60

/* A repository that never answers: the bound holds while workers wait for it, and however many do, clusters of other
 * repositories go on. */
static void repository_hangs(void)
{
	struct wish w = wish_archived(ID8, 1), other = wish_archived(ID9, 1);
	struct engine_source of = source_of(&other);
	struct pg_cluster *many[MANY], *c;
	PGconn *conn;
	snprintf(w.c.backup.region, sizeof w.c.backup.region, REGION_HANGING);
	spool_bytes = 12 << 20;
	engine_restart();
	CHECK(converge(&w, &access_all) == 0 && converge(&other, &access_all) == 0);
	c = pg_cluster_find(engine, ID8);
	CHECK(pg_sql_open_node(c, pg_set_primary(c, &c->sets[0]), "postgres", 3000, &conn) == 0);
	/* Names are enough to wait. */
	for (unsigned i = 0; i < MANY; i++) {
		char id[25];
		snprintf(id, sizeof id, "65f00000000000000000%04x", 0xc000 + i);
		many[i] = pg_cluster_ensure(engine, id);
		pthread_mutex_lock(&many[i]->lock);
		memcpy(many[i]->group_id, w.c.group_id, sizeof many[i]->group_id);
		many[i]->backup = w.c.backup;
		pthread_mutex_unlock(&many[i]->lock);
	}
	int64_t began = clock_mono_us();
	struct engine_archive state = archive_of(ID8);
	uint64_t most = 0;
	for (unsigned i = 0; i < 40; i++)
		CHECK(pg_sql_do(conn, 30000,
		                "select pg_logical_emit_message(false, 'test', 'x'); select pg_switch_wal()") == 0);
	/* The worker began to wait before, and waits for longer than this takes. */
	while ((!state.broken || state.spool_bytes > spool_bytes) && since_ms(began) < 15000) {
		pg_sleep_ms(50);
		state = archive_of(ID8);
		most = state.spool_bytes > most ? state.spool_bytes : most;
	}
	CHECK(state.broken && state.spool_bytes <= spool_bytes);
	CHECK(pg_sql_do(conn, 30000, "checkpoint") == 0);
	int64_t now = clock_now_ms();
	CHECK(window_wait(&of, now, 10000));
	while (since_ms(began) < 17000)
		pg_sleep_ms(100);
	unsigned waiting = 0;
	for (unsigned i = 0; i < MANY; i++) {
		state = archive_of(many[i]->id);
		CHECK(state.on && state.lag_ms > 5000 && state.why); /* also of those that have had no turn */
		pthread_mutex_lock(&many[i]->lock);
		struct pg_archive *a = many[i]->archive;
		pthread_mutex_unlock(&many[i]->lock);
		pthread_mutex_lock(&a->lock);
		waiting += a->working;
		pthread_mutex_unlock(&a->lock);
	}
	CHECK(waiting > 2 && waiting <= 32);
	now = clock_now_ms();
	CHECK(window_wait(&of, now, 10000));
	PQfinish(conn);
	pg_cluster_put(c);
	for (unsigned i = 0; i < MANY; i++) {
		pthread_mutex_lock(&many[i]->lock);
		many[i]->backup.archive = false;
		pthread_mutex_unlock(&many[i]->lock);
		pg_cluster_put(many[i]);
	}
	spool_bytes = 0;
	engine_restart();
	CHECK(ops->core->destroy(engine, ID8, NULL) == 0 && ops->core->destroy(engine, ID9, NULL) == 0);
	CHECK(servers_running() == 0);
}

static void directory_away(const char *name, bool away)
{
	char command[300];
	snprintf(command, sizeof command,
	         away ? "mv %s/%s %s/%s.away && touch %s/%s" : "rm %s/%s && mv %s/%s.away %s/%s", dir, name, dir, name,
	         dir, name);
	CHECK(system(command) == 0);
}

/* The log in another region: through a failover and while that region is away, and without the first. */
static void log_copies(void)
{
	struct wish w = wish_archived(ID10, 3);
	struct engine_source of = source_of(&w), copy = of;
	struct base b = {0};
	pthread_t thread;
	int64_t times[3];
	w.c.backup.copy_count = 1;
	snprintf(w.c.backup.copies[0], sizeof w.c.backup.copies[0], REGION_COPIES);
	snprintf(copy.region, sizeof copy.region, REGION_COPIES);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID10, 3, 30000));
	ledger_begin(&thread, ID10);
	CHECK(window_wait(&copy, clock_now_ms(), 60000));
	base_take(ID10, 0, &b);
	pg_sleep_ms(3000);
	times[0] = clock_now_ms();
	segment_end(ID10);
	pg_sleep_ms(1000);
	/* Away: the first goes on, and so does the copy when it is back. */
	directory_away("copies", true);
	primary_kill(ID10);
	pg_sleep_ms(6000);
	times[1] = clock_now_ms();
	segment_end(ID10);
	CHECK(window_wait(&of, times[1], 30000));
	directory_away("copies", false);
	CHECK(window_wait(&copy, times[1], 90000));
	/* Another process goes on where it was. */
	pthread_mutex_lock(&engine_lock);
	engine_restart();
	CHECK(converge(&w, &access_all) >= 0);
	pthread_mutex_unlock(&engine_lock);
	pg_sleep_ms(2000);
	times[2] = clock_now_ms();
	CHECK(window_wait(&copy, times[2], 90000));
	ledger_end(thread);
	/* Nothing more comes to the first: what the copy has is all there is. */
	repository_away(true);
	struct engine_window window = {0};
	CHECK(windows_of(&copy, &window) >= 1 && window.to_ms >= times[2]);
	for (int i = 0; i < 3; i++)
		point_check(&b, &copy, times[i]);
	point_check(&b, &copy, window.to_ms);
	repository_away(false);
	CHECK(ops->core->destroy(engine, ID10, NULL) == 0 && servers_running() == 0);
}

/* A server of before there was an archive goes on as it is, until its log is to be kept: then it is restarted. */
static void older_servers(void)
{
	struct wish w = wish_archived(ID7, 1);
	char command[600];
	w.c.backup.archive = false;
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, "65f0000000000000000000b5");
	struct engine_source of = source_of(&w);
	CHECK(converge(&w, &access_all) == 0);
	pid_t pid = pid_of(ID7, w.nodes[0].name);
	snprintf(command, sizeof command, "sed -i /^archive/d %s/engine/%s/%s/conf/postgresql.conf", dir, ID7,
	         w.nodes[0].name);
	CHECK(system(command) == 0 && kill(pid, SIGKILL) == 0);
	struct cluster_status s = observe(ID7);
	for (int i = 0; i < 200 && !(s.nodes[0].ends && !s.nodes[0].down); i++) {
		pg_sleep_ms(50);
		s = observe(ID7);
	}
	CHECK(wait_all_running(ID7, 1, 10000));
	pid = pid_of(ID7, w.nodes[0].name);
	CHECK(converge(&w, &access_all) == 0 && pid_of(ID7, w.nodes[0].name) == pid);
	w.c.backup.archive = true;
	CHECK(converge(&w, &access_all) == 0 && pid_of(ID7, w.nodes[0].name) != pid);
	CHECK(window_wait(&of, clock_now_ms(), 10000));
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0 && servers_running() == 0);
}

/* Off from the beginning, then on without a restart, then off again. */
static void on_and_off(void)
{
	struct wish w = wish_archived(ID7, 1);
	w.c.backup.archive = false;
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, "65f0000000000000000000b3");
	struct engine_source of = source_of(&w);
	struct engine_window window;
	char path[200];
	CHECK(converge(&w, &access_all) == 0);
	pid_t pid = pid_of(ID7, w.nodes[0].name);
	struct cluster_status s = observe(ID7);
	PGconn *conn = client(primary_of(&s), "boss", PASSWORD, "postgres");
	CHECK(run(conn, "create table t(a text)") &&
	      run(conn, "insert into t select repeat('x', 900) from generate_series(1, 5000)"));
	snprintf(path, sizeof path, "%s/engine/%s/%s/spool", dir, ID7, w.nodes[0].name);
	CHECK(!pg_file_is(path) && !archive_of(ID7).on && windows_of(&of, &window) == 0);
	int64_t began = clock_mono_us();
	w.c.backup.archive = true;
	CHECK(converge(&w, &access_all) == 0 && pid_of(ID7, w.nodes[0].name) == pid);
	CHECK(window_wait(&of, clock_now_ms(), 10000));
	printf("archived %.0f ms after it was asked for\n", since_ms(began));
	CHECK(run(conn, "insert into t select repeat('x', 900) from generate_series(1, 20000)"));
	CHECK(window_wait(&of, clock_now_ms(), 20000) && windows_of(&of, &window) == 1);
	printf("with several segments after %.0f ms\n", since_ms(began));
	w.c.backup.archive = false;
	CHECK(converge(&w, &access_all) == 0 && !archive_of(ID7).on);
	CHECK(run(conn, "insert into t select repeat('x', 900) from generate_series(1, 5000)"));
	/* Its log does not pile up. */
	long waiting = 1;
	for (int i = 0; i < 300 && waiting > 0; i++) {
		char command[300];
		snprintf(command, sizeof command,
		         "test -z \"$(ls %s/engine/%s/%s/data/pg_wal/archive_status/*.ready 2>/dev/null)\"", dir, ID7,
		         w.nodes[0].name);
		waiting = system(command) != 0;
		pg_sleep_ms(100);
	}
	CHECK(waiting == 0);
	PQfinish(conn);
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0 && servers_running() == 0);
}

/* --- all sets of a sharded cluster at one point */

static struct wish wish_sharded(unsigned shards)
{
	struct wish w = wish_archived(ID7, shards + 1);
	for (unsigned i = 0; i <= shards; i++) {
		struct engine_node *n = &w.nodes[i];
		n->kind = i ? NODE_ELECTABLE : NODE_ROUTER;
		n->shard = i ? i - 1 : 0;
		n->priority = i ? 7 : 0;
		snprintf(n->name, sizeof n->name, i ? "%s-shard-%02u-00" : "%s-router-%02u", w.c.label, i ? i - 1 : 0);
	}
	w.c.quorum = false;
	w.c.shards = shards;
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, "65f0000000000000000000b4");
	return w;
}

static const struct node_status *router_in(const struct cluster_status *s)
{
	for (size_t i = 0; i < s->node_count; i++)
		if (s->nodes[i].kind == NODE_ROUTER)
			return &s->nodes[i];
	return NULL;
}

static struct node_status router;
static _Atomic long pairs;

/* Each transaction has a row on each side, and the sides lie on any shards. */
static void *pairs_write(void *arg)
{
	PGconn *conn = client(&router, "writer", PASSWORD, "postgres");
	(void)arg;
	while (writing) {
		char sql[200];
		long id = ++pairs;
		snprintf(sql, sizeof sql, "insert into spread values (%ld, %ld, 0), (%ld, %ld, 1)", id * 2, id,
		         id * 2 + 1, id);
		CHECK(run(conn, sql));
	}
	PQfinish(conn);
	return NULL;
}

static void shards_agree(void)
{
	struct wish w = wish_sharded(2);
	struct engine_source of = source_of(&w);
	struct engine_window window = {0};
	struct engine_checkpoint made = {0}, *list = NULL;
	struct base bases[3] = {{{0}}};
	pthread_t writers[3];
	char sql[300];
	const char *why = NULL;
	size_t count = 0;
	CHECK(converge(&w, &access_writer) == 0);
	struct cluster_status s = observe(ID7);
	router = *router_in(&s);
	CHECK(as(&router, "writer", "postgres",
	         "create table spread(k bigint, id bigint, side int); select steward.shard_table('spread', 'k')"));
	struct pg_cluster *c = pg_cluster_find(engine, ID7);
	for (size_t i = 0; i < 3; i++)
		base_take(ID7, i, &bases[i]);
	writing = true;
	for (size_t i = 0; i < 3; i++)
		CHECK(pthread_create(&writers[i], NULL, pairs_write, NULL) == 0);
	for (int i = 0; i < 3; i++) {
		pg_sleep_ms(300);
		int64_t began = clock_mono_us();
		CHECK(pg_checkpoint_make(c, arena, &made, &why) == 0 && made.set_count == 3);
		printf("common point: %.1f ms\n", since_ms(began));
	}
	int64_t now = clock_now_ms();
	bool found = false;
	for (int i = 0; i < 200 && !found; i++) {
		pg_sleep_ms(50);
		CHECK(pg_backup_checkpoints(engine, &of, 0, now, 10, arena, &list, &count) == 0);
		found = count && strcmp(list[0].id, made.id) == 0;
	}
	CHECK(found && count >= 3);
	writing = false;
	for (size_t i = 0; i < 3; i++)
		pthread_join(writers[i], NULL);
	CHECK(window_wait(&of, made.at_ms, 10000) && windows_of(&of, &window) == 1);
	printf("%ld pairs\n", (long)pairs);
	snprintf(sql, sizeof sql, "select oid from pg_class where relname = 'spread' and relkind = 'p'");
	PGconn *conn = client(&router, "writer", PASSWORD, "postgres");
	long parent = number(conn, "select substring(ftoptions[2] from 13)::bigint from pg_foreign_table limit 1");
	PQfinish(conn);
	snprintf(sql, sizeof sql,
	         "select coalesce(sum((case side when 0 then 1 else -1 end) * (id * id + id + 1)), 0)::bigint from "
	         "sharded.t%ld",
	         parent);
	for (size_t point = 0; point < 2; point++) {
		struct engine_point at = {.kind = POINT_TIME, .time_ms = list[point].at_ms};
		long sum = 0, rows = 0;
		for (size_t i = 0; i < 3; i++) {
			struct pg_target to;
			CHECK(pg_archive_resolve(engine, &of, &at, bases[i].set, &to, &why) == 0 && to.lsn);
			if (strlen(bases[i].set) > 2)
				continue; /* the router */
			CHECK(to.lsn == list[point].sets[0].lsn || to.lsn == list[point].sets[1].lsn ||
			      to.lsn == list[point].sets[2].lsn);
			sum += recover_ask(&bases[i], &of, &to, sql);
			char all[100];
			snprintf(all, sizeof all, "select count(*) from sharded.t%ld", parent);
			rows += point == 0 ? recover_ask(&bases[i], &of, &to, all) : 1;
		}
		CHECK(sum == 0 && rows > 0);
	}
	pg_cluster_put(c);
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0 && servers_running() == 0);
	CHECK(windows_of(&of, &window) == 1);
}

/* --- without a server: what is told of an archive that lies there */

static void texts(void)
{
	char name[PG_WAL_NAME], **names;
	uint32_t timeline;
	uint64_t number;
	struct rlimit files, none;
	size_t names_count = 1;
	/* What cannot be listed for want of descriptors is not empty; what is not there is. */
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	none = (struct rlimit){0, files.rlim_max};
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	int listed = pg_names_list(dir, &names, &names_count);
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0 && listed == -EMFILE);
	CHECK(pg_names_list("/nowhere", &names, &names_count) == 0 && names_count == 0);
	pg_names_free(names, names_count);
	CHECK(pg_names_list(dir, &names, &names_count) == 0 && names_count > 0);
	pg_names_free(names, names_count);
	pg_wal_name(2, 1025, true, name);
	CHECK(strcmp(name, "000000020000000100000001") == 0 && pg_wal_parse(name, &timeline, &number) == WAL_SEGMENT &&
	      timeline == 2 && number == 1025);
	pg_wal_name(2, 1025, false, name);
	CHECK(pg_wal_parse(name, &timeline, &number) == WAL_PARTIAL && number == 1025);
	CHECK(pg_wal_parse("0000000A.history", &timeline, &number) == WAL_HISTORY && timeline == 10);
	static const char *const others[] = {"",
	                                     "archtemp.000000020000000100000001.7.8",
	                                     "000000000000000100000001",
	                                     "000000020000000100000400",
	                                     "000000020000000100000001.00000028.backup",
	                                     "00000002000000010000000g"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CHECK(pg_wal_parse(others[i], &timeline, &number) == WAL_NONE);
	struct pg_chain c = {0};
	pg_chain_parse(&c, 3,
	               "1\t0/1500000\tno recovery target specified\n\n2\t0/2000000\tno recovery target specified\n");
	CHECK(c.count == 3 && pg_chain_part(&c, 4)->timeline == 1 && pg_chain_part(&c, 5)->timeline == 2 &&
	      pg_chain_part(&c, 8)->timeline == 3 && pg_chain_part(&c, 99)->timeline == 3);
	CHECK(pg_chain_has(&c, 1, 0x1500000) && !pg_chain_has(&c, 1, 0x1500001) && !pg_chain_has(&c, 4, 1) &&
	      pg_chain_has(&c, 3, UINT64_MAX));
	free(c.parts);
	struct pg_common *m = must_calloc(1, sizeof *m), *n = must_calloc(1, sizeof *n);
	struct buf b = {0};
	*m = (struct pg_common){5, 6, 2, {{"0", 1, 0x100, 0x130}, {"ab-router-00", 7, 0xabcdef012345, 0xabcdef012375}}};
	pg_common_write(&b, m);
	CHECK(pg_common_parse((struct str){b.p, b.n - 1}, n) && memcmp(m, n, sizeof *m) == 0);
	CHECK(!pg_common_parse(STR("C 5 6"), n) && !pg_common_parse(STR("C 5 6 0=1/2"), n) &&
	      !pg_common_parse(STR(""), n));
	buf_free(&b);
	free(m);
	free(n);
}

/* Segments 1 to 8 of the first timeline, which ends in the 5th; 5 to 12 of the second, of which the 10th is missing. A
 * mark in each segment, each in an hour of its own. */
static void made_up(void)
{
	struct engine_source of = {.group_id = "65f000000000000000000abc",
	                           .cluster_id = ID6,
	                           .region = "X",
	                           .incarnation = "65f0000000000000000000b7"};
	struct repo_line line = {of.cluster_id, of.incarnation, "0"},
	                 common = {of.cluster_id, of.incarnation, PG_COMMON};
	struct repository *r = NULL;
	struct buf index = {0}, b = {0};
	const uint64_t fork = 5 * PG_SEGMENT + 5000;
	char name[PG_WAL_NAME];
	CHECK(repository_get(engine->repositories, of.region, of.group_id, &r) == 0);
	buf_z(&index, "identity 7\nbroken 0\ngap 1\n");
	for (uint32_t timeline = 1; timeline <= 2; timeline++)
		for (uint64_t i = timeline == 1 ? 1 : 5; i <= (timeline == 1 ? 8 : 12); i++) {
			pg_wal_name(timeline, i, i != 12, name);
			if (i != 10)
				CHECK(repo_wal_put(r, &line, name, name, 24) == 0);
			/* The one of the 5th segment is before the fork; those that follow on the first timeline are not. */
			int64_t hour = timeline == 1 ? (int64_t)i : (int64_t)i + 10, at = hour * PG_HOUR_MS + 1000;
			if (timeline == 2 && i == 5)
				continue;
			uint64_t lsn = i * PG_SEGMENT + 1000;
			struct pg_mark m = {'H', at, at + 10, 0, timeline, lsn, lsn + 48};
			m.still_ms = i == 12 ? at + 5000 : 0;
			b.n = 0;
			pg_mark_write(&b, &m);
			CHECK(repo_seconds_put(r, &line, hour, b.p, b.n) == 0);
			buf_printf(&index, "hour %lld %llx\n", (long long)hour, (unsigned long long)lsn);
		}
	b.n = 0;
	buf_printf(&b, "1\t0/%llX\tx\n", (unsigned long long)fork);
	CHECK(repo_wal_put(r, &line, "00000002.history", b.p, b.n) == 0);
	CHECK(repo_seconds_put(r, &line, 0, index.p, index.n) == 0);
	CHECK(repo_seconds_put(r, &common, 0, "set 0\n", 6) == 0);
	repository_put(r);
	buf_free(&index);
	buf_free(&b);
	struct engine_window *list;
	size_t count;
	CHECK(pg_backup_window(engine, &of, arena, &list, &count) == 0 && count == 2);
	CHECK(count == 2 && list[0].from_ms == 1 * PG_HOUR_MS + 1010 && list[0].to_ms == 19 * PG_HOUR_MS + 999 &&
	      list[1].from_ms == 21 * PG_HOUR_MS + 1010 && list[1].to_ms == 22 * PG_HOUR_MS + 6000);
	static const struct {
		int64_t hour;
		unsigned timeline;   /* 0: not offered */
		unsigned least, end; /* in segments */
	} points[] = {{1, 0, 0, 0},  {2, 1, 1, 2},  {5, 1, 4, 5},  {6, 2, 5, 6},  {8, 2, 5, 6},    {16, 2, 5, 6},
	              {17, 2, 6, 7}, {19, 2, 8, 9}, {20, 0, 0, 0}, {21, 0, 0, 0}, {22, 2, 11, 12}, {23, 0, 0, 0}};
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		struct engine_point at = {.kind = POINT_TIME, .time_ms = points[i].hour * PG_HOUR_MS};
		struct pg_target to = {0};
		const char *why = NULL;
		int found = pg_archive_resolve(engine, &of, &at, "0", &to, &why);
		bool good = points[i].timeline ? found == 0 && !to.lsn && to.timeline == points[i].timeline &&
		                                         to.least / PG_SEGMENT == points[i].least &&
		                                         to.end / PG_SEGMENT == points[i].end
		                               : found == -ENOENT;
		CHECK(good);
		if (!good)
			fprintf(stderr, "hour %lld: %d, timeline %u, least %llu, end %llu\n", (long long)points[i].hour,
			        found, to.timeline, (unsigned long long)(to.least / PG_SEGMENT),
			        (unsigned long long)(to.end / PG_SEGMENT));
	}
	/* By position: not behind the fork on the old timeline, not in the gap. */
	static const struct {
		unsigned timeline, segment;
		int result;
	} positions[] = {{1, 3, 0}, {1, 6, -ENOENT},  {2, 6, 0},       {0, 6, 0},
	                 {2, 9, 0}, {2, 10, -ENOENT}, {2, 13, -ENOENT}};
	for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
		struct engine_point at = {
		        .kind = POINT_POSITION,
		        .position = {"0", positions[i].timeline, positions[i].segment * PG_SEGMENT + 500}};
		struct pg_target to = {0};
		const char *why = NULL;
		CHECK(pg_archive_resolve(engine, &of, &at, "0", &to, &why) == positions[i].result);
		CHECK(positions[i].result < 0 || to.lsn == at.position.lsn);
	}
	struct engine_checkpoint *points_list;
	CHECK(pg_backup_checkpoints(engine, &of, 0, INT64_MAX / 2, 3, arena, &points_list, &count) == 0 && count == 3 &&
	      points_list[0].at_ms == 22 * PG_HOUR_MS + 1010 && points_list[2].at_ms == 19 * PG_HOUR_MS + 1010);
}

/* --- the log for a server that recovers meanwhile */

static bool has_segment(const char *directory, uint64_t number)
{
	char name[PG_WAL_NAME], path[200];
	pg_wal_name(1, number, true, name);
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return pg_file_is(path);
}

static bool segment_comes(const char *directory, uint64_t number)
{
	for (int i = 0; i < 2000 && !has_segment(directory, number); i++)
		pg_sleep_ms(10);
	return has_segment(directory, number);
}

static bool fetch_ends(struct pg_fetch *p)
{
	for (int i = 0; i < 2000 && pg_fetch_runs(p, 0); i++)
		pg_sleep_ms(10);
	return !pg_fetch_runs(p, 0);
}

/* A hundred segments, without a server. */
static void fetched_ahead(void)
{
	struct engine_source of = {.group_id = "65f000000000000000000abd",
	                           .cluster_id = ID6,
	                           .region = "X",
	                           .incarnation = "65f0000000000000000000b8"};
	struct repo_line line = {of.cluster_id, of.incarnation, "0"};
	struct repository *r = NULL;
	struct pg_fetch *p = NULL;
	struct stat st;
	char name[PG_WAL_NAME], out[100], path[300], victim[120], *text;
	const char *why = NULL;
	CHECK(repository_get(engine->repositories, of.region, of.group_id, &r) == 0);
	CHECK(repo_seconds_put(r, &line, 0, "identity 7\nbroken 0\ngap 1\n", 26) == 0);
	for (uint64_t i = 1; i <= 100; i++) {
		pg_wal_name(1, i, true, name);
		CHECK(repo_wal_put(r, &line, name, name, 24) == 0);
	}
	repository_put(r);
	/* By time: no further ahead than it may, and what the server would stop in comes last. */
	struct pg_target to = {
	        .timeline = 1, .time_us = 1, .least = 90 * PG_SEGMENT + 100, .end = 95 * PG_SEGMENT + 24};
	snprintf(out, sizeof out, "%s/scratch/ahead", dir);
	CHECK(pg_dir_make(pg_user_of(engine, GROUP), out, true) == 0);
	int64_t began = clock_mono_us();
	CHECK(pg_fetch_begin(engine, &of, "0", 1, PG_SEGMENT, &to, out, &p, &why) == 0);
	CHECK(has_segment(out, 1) && has_segment(out, 4) && segment_comes(out, 65));
	pg_sleep_ms(200);
	CHECK(!has_segment(out, 66) || since_ms(began) > 2500);
	CHECK(pg_fetch_runs(p, 10 * PG_SEGMENT) && segment_comes(out, 74));
	CHECK(!has_segment(out, 90) && pg_fetch_runs(p, 40 * PG_SEGMENT) && fetch_ends(p) && !pg_fetch_failed(p));
	for (uint64_t i = 1; i <= 100; i++)
		CHECK(has_segment(out, i) == (i <= 95));
	CHECK(pg_fetch_end(p, &why) == 0 && pg_tree_remove(out) == 0);
	/* To a position; the server tells nothing. */
	to = (struct pg_target){
	        .timeline = 1, .lsn = 80 * PG_SEGMENT + 10, .least = 80 * PG_SEGMENT + 10, .end = 81 * PG_SEGMENT + 24};
	CHECK(pg_dir_make(pg_user_of(engine, GROUP), out, true) == 0);
	CHECK(pg_fetch_begin(engine, &of, "0", 1, PG_SEGMENT, &to, out, &p, &why) == 0 && fetch_ends(p));
	CHECK(pg_fetch_end(p, &why) == 0 && has_segment(out, 80) && !has_segment(out, 81));
	pg_wal_name(1, 80, true, name);
	snprintf(path, sizeof path, "%s/%s", out, name);
	CHECK(pg_file_read(path, PG_SEGMENT, &text) == 0 && stat(path, &st) == 0 && st.st_size == PG_SEGMENT);
	CHECK(memcmp(text, name, 10) == 0 && text[10] == 0 && text[11] == 0);
	free(text);
	CHECK(pg_tree_remove(out) == 0 && pg_dir_make(pg_user_of(engine, GROUP), out, true) == 0);
	/* Somebody has put other names of a file there. */
	snprintf(victim, sizeof victim, "%s/scratch/victim", dir);
	int fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0640);
	CHECK(fd >= 0 && write(fd, "whole", 5) == 5 && close(fd) == 0);
	for (uint64_t i = 1; i <= 2; i++) {
		pg_wal_name(1, i, true, name);
		snprintf(path, sizeof path, "%s/%s%s", out, name, i == 1 ? "" : "~");
		CHECK(link(victim, path) == 0);
	}
	CHECK(pg_archive_fetch(engine, &of, "0", 1, PG_SEGMENT, &to, out, &why) == 0);
	CHECK(stat(victim, &st) == 0 && st.st_nlink == 1 && st.st_uid == geteuid() && st.st_size == 5);
	CHECK(unlink(victim) == 0 && pg_tree_remove(out) == 0 &&
	      pg_dir_make(pg_user_of(engine, GROUP), out, true) == 0);
	/* It is stopped, and it fails: nothing of what was held back is shown. */
	to = (struct pg_target){
	        .timeline = 1, .time_us = 1, .least = 60 * PG_SEGMENT + 100, .end = 95 * PG_SEGMENT + 24};
	CHECK(pg_fetch_begin(engine, &of, "0", 1, PG_SEGMENT, &to, out, &p, &why) == 0);
	int stopped = pg_fetch_end(p, &why);
	CHECK(stopped == -ECANCELED || stopped == 0);
	CHECK(pg_tree_remove(out) == 0 && pg_dir_make(pg_user_of(engine, GROUP), out, true) == 0);
	pg_wal_name(1, 93, true, name);
	snprintf(path, sizeof path, "%s/backups/%s/%s/wal/%s/%s/0/00000001/%s", dir, of.region, of.group_id,
	         of.cluster_id, of.incarnation, name);
	CHECK(unlink(path) == 0);
	CHECK(pg_fetch_begin(engine, &of, "0", 1, PG_SEGMENT, &to, out, &p, &why) == 0 && fetch_ends(p));
	CHECK(pg_fetch_failed(p) && has_segment(out, 59) && !has_segment(out, 60) && !has_segment(out, 61));
	CHECK(pg_fetch_end(p, &why) == -ENOENT && strstr(why, name));
	CHECK(pg_tree_remove(out) == 0);
}

struct case_of {
	const char *name;
	void (*run)(void);
};

/* ONLY in the environment: one of them. */
static void cases_run(const struct case_of *all, size_t count)
{
	const char *only = getenv("ONLY");
	scratch_make();
	for (size_t i = 0; i < count; i++)
		if (!only || strcmp(only, all[i].name) == 0)
			all[i].run();
}

void part_archive(void)
{
	static const struct case_of all[] = {{"texts", texts},
	                                     {"made-up", made_up},
	                                     {"boundaries", archive_boundaries},
	                                     {"ahead", fetched_ahead},
	                                     {"switch", on_and_off},
	                                     {"older", older_servers},
	                                     {"spool", spool_is_bounded},
	                                     {"fork", behind_the_fork},
	                                     {"shards", shards_agree},
	                                     {"faults", through_faults}};
	cases_run(all, sizeof all / sizeof *all);
}

static bool has_point(const struct engine_source *of, const char *id)
{
	struct engine_checkpoint *list = NULL;
	size_t count = 0;
	bool found = false;
	if (pg_backup_checkpoints(engine, of, 0, clock_now_ms(), 100, arena, &list, &count) == 0)
		for (size_t i = 0; i < count; i++)
			found |= strcmp(list[i].id, id) == 0;
	return found;
}

static bool point_wait(const struct engine_source *of, const char *id, int ms)
{
	bool found = has_point(of, id);
	for (int64_t end = pg_mono_ms() + ms; !found && pg_mono_ms() < end; found = has_point(of, id))
		pg_sleep_ms(200);
	return found;
}

/* The last points of what a sharded cluster was come to the other region, though its data is other since. */
static void former_points(void)
{
	struct wish w = wish_sharded(2);
	struct engine_checkpoint made = {0};
	const char *why = NULL;
	w.c.backup.copy_count = 1;
	snprintf(w.c.backup.copies[0], sizeof w.c.backup.copies[0], REGION_COPIES);
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, "65f0000000000000000000c1");
	struct engine_source of = source_of(&w), copy = of;
	snprintf(copy.region, sizeof copy.region, REGION_COPIES);
	CHECK(converge(&w, &access_writer) == 0);
	struct pg_cluster *c = pg_cluster_find(engine, ID7);
	CHECK(pg_checkpoint_make(c, arena, &made, &why) == 0 && point_wait(&copy, made.id, 60000));
	directory_away("copies", true);
	CHECK(pg_checkpoint_make(c, arena, &made, &why) == 0 && point_wait(&of, made.id, 20000));
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, "65f0000000000000000000c2");
	CHECK(converge(&w, &access_writer) == 0);
	directory_away("copies", false);
	CHECK(point_wait(&copy, made.id, 90000));
	pg_cluster_put(c);
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0 && servers_running() == 0);
}

void part_copies(void)
{
	static const struct case_of all[] = {
	        {"hangs", repository_hangs}, {"copies", log_copies}, {"former", former_points}};
	cases_run(all, sizeof all / sizeof *all);
}
