/* Snapshots and their restores: while clients write, into the same cluster and another, of single nodes, sets, shards
 * and a paused cluster; as a tar that PostgreSQL starts from by itself; and whatever goes wrong meanwhile: damage,
 * a change of mind, a service that is killed. */
#include "base/buf.h"
#include "engine/postgres/archive/archive_fetch.h"
#include "engine/postgres/archive/archive_read.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/sql/sql.h"
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define ID6 "65f0000000000000000000a6"
#define ID7 "65f0000000000000000000a7"
#define ID8 "65f0000000000000000000a8"
#define SHOT1 "65f00000000000000000bb01"
#define SHOT2 "65f00000000000000000bb02"
#define SHOT3 "65f00000000000000000bb03"
#define SHOT4 "65f00000000000000000bb04"
#define SHOT5 "65f00000000000000000bb05"
#define SHOT6 "65f00000000000000000bb06"
#define SHOT7 "65f00000000000000000bb07"
#define MOMENT1 "65f00000000000000000bc01"
#define MOMENT3 "65f00000000000000000bc03"
#define MUCH "65f00000000000000000bc05"

static void incarnate(struct wish *w, unsigned number)
{
	snprintf(w->c.backup.incarnation, sizeof w->c.backup.incarnation, "65f0000000000000%.2s%06u", w->c.id + 22,
	         number);
	snprintf(w->c.backup.region, sizeof w->c.backup.region, "US_EAST_1");
}

static void progress_tell(void *ctx, unsigned percent, const char *what)
{
	unsigned *last = ctx;
	CHECK(percent >= *last && percent <= 100);
	if (getenv("DEBUG"))
		fprintf(stderr, "%lld %u%% %s\n", (long long)(clock_mono_us() / 1000), percent, what);
	*last = percent;
}

static int snapshot(struct wish *w, const char *id, struct engine_snapshot *ret)
{
	const char *why = NULL;
	struct engine_source to = snapshot_source(w, id);
	int64_t began = clock_mono_us();
	unsigned percent = 0;
	struct engine_progress progress = {.tell = progress_tell, .ctx = &percent};
	int r = ops->backup->snapshot(engine, &to, &progress, arena, ret, &why);
	if (r < 0)
		fprintf(stderr, "snapshot: %s: %s\n", strerror(-r), why);
	else
		printf("snapshot of %.0f MB, %.0f stored: %.0f ms\n", (double)ret->bytes / 1e6,
		       (double)ret->stored / 1e6, since_ms(began));
	return r;
}

static const char *restore_why;
static int restore(struct wish *from, const char *id, struct wish *into, const struct engine_access *access,
                   const _Atomic bool *cancel)
{
	struct engine_source source = snapshot_source(from, id);
	struct engine_point point = {.kind = POINT_SNAPSHOT};
	static unsigned incarnation = 100;
	incarnate(into, incarnation++);
	wish_complete(into);
	restore_why = NULL;
	int64_t began = clock_mono_us();
	unsigned percent = 0;
	struct engine_progress progress = {.tell = progress_tell, .ctx = &percent};
	int r = ops->backup->restore(engine, &source, &point, &into->c, access, cancel, &progress, arena, &restore_why);
	CHECK(r < 0 || percent == 100);
	printf("restore: %s, %.0f ms%s%s\n", r < 0 ? strerror(-r) : "done", since_ms(began), r < 0 ? ": " : "",
	       r < 0 ? restore_why : "");
	return r;
}

static long ask(const char *id, const char *user, const char *sql)
{
	struct cluster_status s = observe(id);
	const struct node_status *p = NULL;
	for (size_t i = 0; i < s.node_count; i++)
		if (s.nodes[i].primary && (!p || s.nodes[i].kind == NODE_ROUTER))
			p = &s.nodes[i];
	if (!p)
		return -1;
	PGconn *conn = client(p, user, PASSWORD, "postgres");
	long n = number(conn, sql);
	PQfinish(conn);
	return n;
}

static bool tell(const char *id, const char *user, const char *sql)
{
	struct cluster_status s = observe(id);
	const struct node_status *p = NULL;
	for (size_t i = 0; i < s.node_count; i++)
		if (s.nodes[i].primary && (!p || s.nodes[i].kind == NODE_ROUTER))
			p = &s.nodes[i];
	return p && as(p, user, "postgres", sql);
}

/* --- somebody writes all the time, and knows what was acknowledged */

struct writer {
	const char *id;
	pthread_t thread;
	atomic_bool stop;
	atomic_long acknowledged;
	pthread_mutex_t between; /* two statements */
};

static void *writer_run(void *arg)
{
	struct writer *w = arg;
	struct cluster_status s = observe(w->id);
	PGconn *conn = client(primary_of(&s), "writer", PASSWORD, "postgres");
	while (!w->stop) {
		char sql[200];
		snprintf(sql, sizeof sql, "insert into ledger select %ld, repeat('x', 300)", w->acknowledged + 1);
		pthread_mutex_lock(&w->between);
		bool good = run(conn, sql);
		w->acknowledged += good;
		pthread_mutex_unlock(&w->between);
		if (!good)
			break;
	}
	PQfinish(conn);
	return NULL;
}

static void writer_begin(struct writer *w, const char *id)
{
	*w = (struct writer){.id = id, .between = PTHREAD_MUTEX_INITIALIZER};
	CHECK(tell(id, "writer", "create table ledger(a bigint primary key, b text)"));
	CHECK(pthread_create(&w->thread, NULL, writer_run, w) == 0);
	while (w->acknowledged < 200)
		usleep(1000);
}

static void writer_end(struct writer *w)
{
	w->stop = true;
	pthread_join(w->thread, NULL);
}

/* --- the parts */

/* What was acknowledged before is there, without a hole, and nothing of what was begun after. */
static void ledger_check(const char *id, long least, long most)
{
	long rows = ask(id, "writer", "select count(*) from ledger"),
	     last = ask(id, "writer", "select max(a) from ledger");
	printf("ledger: %ld rows, of %ld to %ld\n", rows, least, most);
	CHECK(rows == last && rows >= least && rows <= most + 1);
}

static void snapshot_while_writing(struct wish *w, const char *shot, bool standby, long *ret_least, long *ret_most)
{
	struct writer writer;
	struct engine_snapshot taken = {0};
	writer_begin(&writer, w->c.id);
	*ret_least = writer.acknowledged;
	CHECK(snapshot(w, shot, &taken) == 0);
	*ret_most = writer.acknowledged;
	CHECK(taken.set_count == 1 && taken.sets[0].lsn && taken.at_ms && taken.bytes > 20000000);
	CHECK(taken.from_standby == standby && strncmp(taken.version, "15.", 3) == 0);
	while (writer.acknowledged < *ret_most + 200)
		usleep(1000);
	writer_end(&writer);
	/* Asked for again, the same is told. */
	struct engine_snapshot again = {0};
	CHECK(snapshot(w, shot, &again) == 0 && again.at_ms == taken.at_ms && again.sets[0].lsn == taken.sets[0].lsn);
}

/* What is thrown away goes in the background. */
static bool nothing_left(const char *id)
{
	char command[500];
	bool left = true;
	snprintf(command, sizeof command,
	         "! ls -d %s/engine/%s/*/restore %s/engine/%s/*/old %s/engine/throwaway/* >/dev/null 2>&1", dir, id,
	         dir, id, dir);
	for (int i = 0; i < 100 && left; i++) {
		left = system(command) != 0;
		if (left)
			usleep(100000);
	}
	return !left;
}

static int tar_write(void *ctx, const void *bytes, size_t n)
{
	return fwrite(bytes, 1, n, ctx) == n ? 0 : -EIO;
}

/* PostgreSQL's own programs, and nothing of ours. */
static void tar_starts(struct wish *w, const char *shot, long least, long most)
{
	static const char bin[] = "/usr/lib/postgresql/15/bin";
	char path[100], command[1500], text[32] = "";
	const char *why = NULL;
	struct engine_source of = snapshot_source(w, shot);
	snprintf(path, sizeof path, "%s/set.tar", dir);
	FILE *f = fopen(path, "w");
	CHECK(f && ops->backup->stream(engine, &of, "0", 0, tar_write, f, &why) == 0 && fclose(f) == 0);
	const char *su = geteuid() == 0 ? "runuser -u " PG_USER " --" : "";
	snprintf(command, sizeof command,
	         "set -e; chmod 711 %s; rm -rf %s/tar; mkdir -m 700 %s/tar; tar -C %s/tar -xf %s; %s chown -R " PG_USER
	         " %s/tar; "
	         "%s %s/pg_verifybackup -q %s/tar; %s %s/pg_ctl -s -w -D %s/tar -l %s/tar/log -o '-k %s/tar' start; "
	         "%s %s/psql -h %s/tar -U " PG_SUPER " -Atc 'select count(*) from ledger' postgres; "
	         "%s %s/pg_ctl -s -m fast -D %s/tar stop; rm -rf %s/tar %s",
	         dir, dir, dir, dir, path, *su ? "" : ":", dir, su, bin, dir, su, bin, dir, dir, dir, su, bin, dir, su,
	         bin, dir, dir, path);
	FILE *p = popen(command, "r");
	while (p && fgets(text, sizeof text, p))
		;
	CHECK(p && pclose(p) == 0);
	long rows = strtol(text, NULL, 10);
	printf("tar: %ld rows\n", rows);
	CHECK(rows >= least && rows <= most + 1);
}

static void single(void)
{
	struct wish w = wish_make(ID6, 1, 0), other = wish_make(ID7, 3, 0);
	long least, most;
	incarnate(&w, 1);
	incarnate(&other, 1);
	CHECK(converge(&w, &access_all) == 0);
	CHECK(tell(ID6, "writer", "create unlogged table gone(a int); insert into gone values (1)"));
	CHECK(tell(ID6, "boss", "alter role boss set work_mem = '77kB'"));
	snapshot_while_writing(&w, SHOT1, false, &least, &most);
	CHECK(tell(ID6, "writer", "delete from ledger"));
	tar_starts(&w, SHOT1, least, most);
	/* Into itself, with fewer users than then. */
	CHECK(restore(&w, SHOT1, &w, &access_writer, NULL) == 0);
	ledger_check(ID6, least, most);
	CHECK(ask(ID6, "writer", "select count(*) from gone") == 0);
	CHECK(ask(ID6, "writer", "select count(*) from pg_roles where rolname = 'boss'") == 0);
	CHECK(ask(ID6, "boss", "select 1") == -1 && nothing_left(ID6));
	CHECK(tell(ID6, "writer", "insert into ledger values (-1, '')"));
	/* Again: another incarnation. And the same job once more, as after a crash at its very end, changes nothing. */
	CHECK(restore(&w, SHOT1, &w, &access_all, NULL) == 0);
	CHECK(tell(ID6, "writer", "insert into ledger values (-1, '')"));
	const char *why = NULL;
	struct engine_source source = snapshot_source(&w, SHOT1);
	struct engine_point point = {.kind = POINT_SNAPSHOT};
	CHECK(ops->backup->restore(engine, &source, &point, &w.c, &access_all, NULL, NULL, arena, &why) == 0);
	CHECK(ask(ID6, "writer", "select min(a) from ledger") == -1);
	CHECK(ask(ID6, "boss", "select (setting = '77')::int from pg_settings where name = 'work_mem'") == 0);
	/* Into another cluster, with three nodes. */
	CHECK(converge(&other, &access_all) == 0);
	CHECK(tell(ID7, "writer", "create table own(a int)"));
	CHECK(restore(&w, SHOT1, &other, &access_all, NULL) == 0);
	ledger_check(ID7, least, most);
	CHECK(wait_all_running(ID7, 3, 10000) && ask(ID7, "writer", "select count(*) from own") == -1);
	CHECK(nothing_left(ID7));
	CHECK(converge(&other, &access_all) == 0); /* as it is wanted */
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0);
}

static void *cluster_remove(void *arg)
{
	usleep(100000);
	CHECK(ops->core->destroy(engine, arg, NULL) == 0);
	return NULL;
}

/* The service is killed while it takes one: the server has nothing of it left, and the next try is whole. Or the
 * cluster is removed meanwhile. */
static void snapshot_cut_short(struct wish *w)
{
	struct engine_snapshot taken;
	static char id[] = ID7;
	pthread_t thread;
	for (unsigned i = 0; i < rounds(); i++) {
		service_crash_restoring(w, "take:" SHOT3, 150000 + 200000 * i);
		CHECK(ask(ID7, "boss", "select count(*) from pg_replication_slots") == 0);
	}
	CHECK(converge(w, &access_all) == 0);
	CHECK(snapshot(w, SHOT3, &taken) == 0);
	CHECK(pthread_create(&thread, NULL, cluster_remove, id) == 0);
	int r = snapshot(w, SHOT4, &taken);
	pthread_join(thread, NULL);
	CHECK(r == 0 || r == -ECANCELED || r == -ESRCH);
	struct engine_source of = snapshot_source(w, SHOT3);
	struct engine_proof proof;
	const char *why = NULL;
	CHECK(ops->backup->prove(engine, &of, false, NULL, arena, &proof, &why) == 0); /* it outlives the cluster */
	CHECK(ops->backup->forget(engine, &of) == 0 && ops->backup->forget(engine, &of) == 0);
	CHECK(ops->backup->prove(engine, &of, false, NULL, arena, &proof, &why) == -ENOENT);
}

/* From a standby; and back into all three. */
static void set(void)
{
	struct wish w = wish_make(ID7, 3, 0);
	long least, most;
	incarnate(&w, 2);
	CHECK(converge(&w, &access_all) == 0);
	snapshot_while_writing(&w, SHOT2, true, &least, &most);
	int64_t whole = clock_mono_us();
	CHECK(restore(&w, SHOT2, &w, &access_all, NULL) == 0);
	whole = clock_mono_us() - whole;
	ledger_check(ID7, least, most);
	CHECK(wait_all_running(ID7, 3, 10000) && nothing_left(ID7));
	/* Cut short at any moment, one of the two is there and serves, and the job goes on from there. */
	for (unsigned i = 0; i < rounds() * 2; i++) {
		CHECK(tell(ID7, "writer", "delete from ledger"));
		incarnate(&w, 10 + i);
		service_crash_restoring(&w, SHOT2, (unsigned)(whole * (2 + 3 * i) / (rounds() * 12)));
		int64_t began = clock_mono_us();
		CHECK(converge(&w, &access_all) == 0);
		long rows = ask(ID7, "writer", "select count(*) from ledger");
		printf("restore cut short: %ld rows after %.0f ms\n", rows, since_ms(began));
		CHECK(rows == 0 || rows >= least);
		const char *why = NULL;
		struct engine_source source = snapshot_source(&w, SHOT2);
		struct engine_point point = {.kind = POINT_SNAPSHOT};
		CHECK(ops->backup->restore(engine, &source, &point, &w.c, &access_all, NULL, NULL, arena, &why) == 0);
		ledger_check(ID7, least, most);
		CHECK(wait_all_running(ID7, 3, 10000) && nothing_left(ID7));
	}
	snapshot_cut_short(&w);
}

/* --- what is wrong */

/* One bit in each pack. */
static void packs_flip(void)
{
	char command[500], path[300];
	snprintf(command, sizeof command, "find %s/backups -path '*/packs/*' -type f -size +64k", dir);
	FILE *f = popen(command, "r");
	while (f && fgets(path, sizeof path, f)) {
		char c = 0;
		path[strcspn(path, "\n")] = 0;
		int fd = open(path, O_RDWR);
		CHECK(fd >= 0 && pread(fd, &c, 1, 40000) == 1);
		c ^= 1;
		CHECK(pwrite(fd, &c, 1, 40000) == 1 && close(fd) == 0);
	}
	CHECK(f && pclose(f) == 0);
}

struct change_of_mind {
	unsigned after_us;
	_Atomic bool cancel;
	pthread_t thread;
};

static void *mind_change(void *arg)
{
	struct change_of_mind *m = arg;
	usleep(m->after_us);
	m->cancel = true;
	return NULL;
}

/* The service stops: long work ends soon, wherever it is, leaves nothing, and can be done again. */
static void stopped(struct wish *w, const struct engine_source *of)
{
	unsigned cut = 0;
	for (unsigned i = 0; i < 4; i++) {
		struct change_of_mind mind = {.after_us = i * 400000};
		struct engine_progress progress = {.stop = &mind.cancel};
		struct engine_proof proof;
		const char *why = NULL;
		int64_t began = clock_mono_us();
		CHECK(pthread_create(&mind.thread, NULL, mind_change, &mind) == 0);
		int r = ops->backup->prove(engine, of, true, &progress, arena, &proof, &why);
		double late = since_ms(began) - mind.after_us / 1e3;
		pthread_join(mind.thread, NULL);
		CHECK(r == 0 || (r == -ECANCELED && late < 20000));
		if (r < 0)
			printf("drill cut short after %u ms: %.0f ms later\n", mind.after_us / 1000, late);
		cut += r == -ECANCELED;
	}
	CHECK(cut > 0 && nothing_left(ID6));
	struct change_of_mind now = {.cancel = true};
	struct engine_progress progress = {.stop = &now.cancel};
	struct engine_source to = snapshot_source(w, SHOT5);
	struct engine_snapshot taken;
	struct engine_proof proof;
	const char *why = NULL;
	CHECK(ops->backup->snapshot(engine, &to, &progress, arena, &taken, &why) == -ECANCELED);
	CHECK(ops->backup->prove(engine, &to, false, NULL, arena, &proof, &why) == -ENOENT);
}

static void damage(void)
{
	struct wish w = wish_make(ID6, 1, 0);
	struct engine_proof proof = {0};
	const char *why = NULL;
	incarnate(&w, 3);
	struct engine_source of = snapshot_source(&w, SHOT1);
	CHECK(ops->backup->prove(engine, &of, false, NULL, arena, &proof, &why) == 0);
	CHECK(proof.files > 500 && proof.bytes > 20000000 && !proof.started);
	int64_t began = clock_mono_us();
	int r = ops->backup->prove(engine, &of, true, NULL, arena, &proof, &why);
	printf("drill: %.0f ms%s%s\n", since_ms(began), r < 0 ? ": " : "", r < 0 ? why : "");
	CHECK(r == 0 && proof.started && proof.relations > 500 && nothing_left(ID6));
	stopped(&w, &of);
	CHECK(tell(ID6, "writer", "create table newer(a int)"));
	packs_flip();
	CHECK(ops->backup->prove(engine, &of, false, NULL, arena, &proof, &why) < 0);
	CHECK(restore(&w, SHOT1, &w, &access_all, NULL) < 0 && restore_why);
	CHECK(ask(ID6, "writer", "select count(*) from newer") == 0 && nothing_left(ID6));
	packs_flip();
	/* The next one stores again what was found damaged. */
	struct engine_snapshot taken;
	CHECK(snapshot(&w, SHOT2, &taken) == 0);
	of = snapshot_source(&w, SHOT2);
	CHECK(ops->backup->prove(engine, &of, false, NULL, arena, &proof, &why) == 0);
	/* Thought better of it, at any moment. */
	for (unsigned i = 0; i < 3; i++) {
		struct change_of_mind mind = {.after_us = i * 200000};
		CHECK(pthread_create(&mind.thread, NULL, mind_change, &mind) == 0);
		int cancelled = restore(&w, SHOT2, &w, &access_all, &mind.cancel);
		pthread_join(mind.thread, NULL);
		CHECK(cancelled == -ECANCELED || (i == 2 && cancelled == 0)); /* the last may come too late */
	}
	CHECK(ask(ID6, "writer", "select count(*) from newer") == 0 && nothing_left(ID6));
	/* Not there, and of another shape. */
	CHECK(restore(&w, SHOT5, &w, &access_all, NULL) == -ENOENT);
	/* The project's key was taken back: the reason is told. */
	key_answer = -EKEYREVOKED;
	CHECK(restore(&w, SHOT2, &w, &access_all, NULL) == -EKEYREVOKED && strstr(restore_why, "out of reach"));
	key_answer = -ENOENT;
}

static void pages(void)
{
	struct wish w = wish_make(ID6, 1, 0);
	struct engine_snapshot taken;
	char path[400], file[100] = "";
	incarnate(&w, 4);
	struct cluster_status s = observe(ID6);
	PGconn *conn = client(primary_of(&s), "boss", PASSWORD, "postgres");
	PGresult *rows = PQexec(conn, "select pg_relation_filepath('ledger')");
	snprintf(file, sizeof file, "%s", PQgetvalue(rows, 0, 0));
	PQclear(rows);
	PQfinish(conn);
	w.c.paused = true;
	CHECK(converge(&w, &access_all) == 0);
	CHECK(snapshot(&w, SHOT3, &taken) == 0); /* of what stands still */
	snprintf(path, sizeof path, "%s/engine/" ID6 "/%s/data/%s", dir, w.nodes[0].name, file);
	int fd = open(path, O_RDWR);
	char c = 0;
	CHECK(fd >= 0 && pread(fd, &c, 1, 8192 + 5000) == 1);
	c ^= 4;
	CHECK(pwrite(fd, &c, 1, 8192 + 5000) == 1);
	CHECK(snapshot(&w, SHOT4, &taken) == -EBADMSG);
	c ^= 4;
	CHECK(pwrite(fd, &c, 1, 8192 + 5000) == 1 && close(fd) == 0);
	CHECK(restore(&w, SHOT3, &w, &access_all, NULL) == 0); /* while it is paused */
	w.c.paused = false;
	CHECK(converge(&w, &access_all) == 0 && ask(ID6, "writer", "select count(*) from newer") == 0);
}

/* Another version was asked for while the restore waited: the data comes back with its own, and then the change. */
static void version_asked_for(void)
{
	struct wish w = wish_make(ID6, 1, 0);
	unsigned own = w.c.version;
	incarnate(&w, 5);
	w.c.version = 99;
	CHECK(restore(&w, SHOT3, &w, &access_all, NULL) == 0);
	CHECK(ask(ID6, "writer", "select count(*) from newer") == 0);
	CHECK(converge(&w, &access_all) < 0); /* nobody has that one */
	w.c.version = own;
	CHECK(converge(&w, &access_all) == 0);
}

/* The servers' user has put links where the service, which is root, makes directories and reads files. */
static void links(void)
{
	struct wish w = wish_make(ID6, 1, 0);
	struct engine_snapshot taken;
	struct stat st;
	char node[200], path[300], own[300], victim[100];
	incarnate(&w, 6);
	snprintf(node, sizeof node, "%s/engine/" ID6 "/%s", dir, w.nodes[0].name);
	snprintf(victim, sizeof victim, "%s/victim", dir);
	CHECK(mkdir(victim, 0755) == 0);
	static const char *const places[] = {"log", "conf", "restore"};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(path, sizeof path, "%s/%s", node, places[i]);
		snprintf(own, sizeof own, "%s/%s.own", node, places[i]);
		CHECK((rename(path, own) == 0 || i == 2) && symlink(victim, path) == 0);
		if (i < 2) {
			engine_restart(); /* looks after all directories */
			(void)!converge(&w, &access_all);
		} else {
			CHECK(restore(&w, SHOT3, &w, &access_all, NULL) == 0);
		}
		CHECK(stat(victim, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 07777) == 0755);
		CHECK(i == 2 || (unlink(path) == 0 && rename(own, path) == 0));
		CHECK(rmdir(victim) == 0 && mkdir(victim, 0755) == 0); /* nothing was put there */
	}
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID6, 1, 10000));
	/* A file that is not the user's own, and a directory that lies elsewhere. */
	snprintf(path, sizeof path, "%s/data/base/elsewhere", node);
	snprintf(own, sizeof own, "%s/data/base/secret", node);
	int fd = open(own, O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && close(fd) == 0 && symlink(dir, path) == 0);
	CHECK(snapshot(&w, SHOT6, &taken) == (geteuid() == 0 ? -EPERM : 0));
	CHECK(unlink(own) == 0 && snapshot(&w, SHOT7, &taken) == 0 && unlink(path) == 0);
	CHECK(rmdir(victim) == 0);
	/* And another name of a file, where one is written. */
	fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0644);
	CHECK(fd >= 0 && write(fd, "whole", 5) == 5 && close(fd) == 0);
	snprintf(path, sizeof path, "%s/conf/process", node);
	CHECK(unlink(path) == 0 && link(victim, path) == 0);
	kill(pid_of(ID6, w.nodes[0].name), SIGKILL);
	for (int i = 0; i < 200 && stat(victim, &st) == 0 && st.st_nlink > 1; i++)
		usleep(50000);
	CHECK(stat(victim, &st) == 0 && st.st_nlink == 1 && st.st_size == 5 && unlink(victim) == 0);
	CHECK(wait_all_running(ID6, 1, 10000));
}

/* --- tables as text */

struct lines {
	struct buf text;
	char table[64];
	uint64_t rows, tables;
};

static int lines_begin(void *ctx, const struct engine_table *t)
{
	struct lines *l = ctx;
	l->tables++;
	buf_printf(&l->text, "[%s.%s.%s]\n", t->database, t->schema, t->name);
	return 0;
}

static int lines_write(void *ctx, const void *bytes, size_t n)
{
	struct lines *l = ctx;
	buf_add(&l->text, bytes, n);
	return 0;
}

static int lines_end(void *ctx, uint64_t rows)
{
	((struct lines *)ctx)->rows += rows;
	return 0;
}

static int export(struct wish *w, const char *shot, struct lines *l)
{
	const char *why = NULL;
	struct engine_source of = snapshot_source(w, shot);
	struct engine_export to = {.begin = lines_begin, .write = lines_write, .end = lines_end, .ctx = l};
	int r = ops->backup->export(engine, &of, &to, NULL, arena, &why);
	buf_c(&l->text, 0);
	if (r < 0)
		fprintf(stderr, "export: %s\n", why);
	return r;
}

static void exports(void)
{
	struct wish w = wish_make(ID6, 1, 0);
	struct lines l = {0};
	struct engine_snapshot taken;
	incarnate(&w, 5);
	CHECK(tell(ID6, "writer",
	           "drop table ledger; create table odd(\"a\"\"b\" text, j json, p int);"
	           "insert into odd values (e'line\\nquote\" back\\\\slash \\x01 é', e'{\"x\":\\n1}', null);"
	           "create table parts(a int) partition by range (a); create table part1 partition of parts for values "
	           "from (0) to (10); insert into parts values (1), (2)"));
	/* What makes JSON of a row would call it, as whoever copies. */
	CHECK(tell(ID6, "writer",
	           "create type mood as enum ('good'); create function told(mood) returns json language plpgsql as $$ "
	           "begin "
	           "return to_json(current_user); end $$; create cast (mood as json) with function told(mood);"
	           "create table moods(m mood, t int); insert into moods values ('good', 1);"
	           "create materialized view nothing as select 1 as a with no data"));
	/* Who has that many savepoints keeps a standby from showing what it has; a restored server is one at first. */
	struct cluster_status s = observe(ID6);
	PGconn *open = client(primary_of(&s), "writer", PASSWORD, "postgres");
	CHECK(run(open,
	          "begin; create table never(a int); insert into never values (1); do $$ begin for i in 1..100 loop "
	          "begin insert into never values (1); exception when others then null; end; end loop; end $$"));
	CHECK(snapshot(&w, SHOT5, &taken) == 0);
	PQfinish(open);
	int64_t began = clock_mono_us();
	CHECK(export(&w, SHOT5, &l) == 0);
	printf("export: %.0f ms\n", since_ms(began));
	CHECK(strstr(l.text.p,
	             "[postgres.public.odd]\n{\"a\\\"b\":\"line\\nquote\\\" back\\\\slash \\u0001 é\",\"j\":{\"x\": 1},"
	             "\"p\":null}\n"));
	CHECK(strstr(l.text.p, "[postgres.public.parts]\n{\"a\":1}\n{\"a\":2}\n") && !strstr(l.text.p, "part1"));
	CHECK(strstr(l.text.p, "[postgres.public.moods]\n{\"m\":\"good\",\"t\":1}\n"));
	CHECK(l.rows == 4 && nothing_left(ID6));
	buf_free(&l.text);
}

/* --- to a moment */

static bool window_has(struct wish *w, int64_t ms)
{
	struct engine_source of = snapshot_source(w, "");
	int64_t began = clock_mono_us();
	while (since_ms(began) < 20000) {
		struct engine_window *list = NULL;
		size_t count = 0;
		CHECK(ops->backup->window(engine, &of, arena, &list, &count) == 0);
		for (size_t i = 0; i < count; i++)
			if (list[i].from_ms <= ms && ms <= list[i].to_ms)
				return true;
		usleep(100000);
	}
	return false;
}

static int restore_at(struct wish *from, const char *shot, int64_t ms, struct wish *into)
{
	struct engine_source source = snapshot_source(from, shot);
	struct engine_point point = {.kind = POINT_TIME, .time_ms = ms};
	static unsigned incarnation = 500;
	incarnate(into, incarnation++);
	wish_complete(into);
	int64_t began = clock_mono_us();
	unsigned percent = 0;
	struct engine_progress progress = {.tell = progress_tell, .ctx = &percent};
	int r = ops->backup->restore(engine, &source, &point, &into->c, &access_all, NULL, &progress, arena,
	                             &restore_why);
	printf("restore to a moment: %s, %.0f ms%s%s\n", r < 0 ? strerror(-r) : "done", since_ms(began),
	       r < 0 ? ": " : "", r < 0 ? restore_why : "");
	return r;
}

static int64_t moment(struct writer *w, long *ret_rows)
{
	usleep(20000);
	pthread_mutex_lock(&w->between);
	usleep(20000);
	*ret_rows = w->acknowledged;
	int64_t now = clock_now_ms();
	usleep(20000);
	pthread_mutex_unlock(&w->between);
	return now;
}

/* Exactly what was acknowledged then: while others write, after a failover, and where the log has stood still since. */
static void moments(unsigned nodes, const char *shot)
{
	struct wish w = wish_make(ID7, nodes, 0), first;
	struct writer writer;
	struct engine_snapshot taken;
	int64_t at[4];
	long rows[4];
	incarnate(&w, 20 + nodes);
	w.c.backup.archive = true;
	first = w;
	CHECK(converge(&w, &access_all) == 0);
	writer_begin(&writer, ID7);
	CHECK(snapshot(&w, shot, &taken) == 0);
	at[0] = moment(&writer, &rows[0]);
	usleep(300000);
	at[1] = moment(&writer, &rows[1]);
	writer_end(&writer);
	if (nodes > 1) {
		struct cluster_status s = observe(ID7);
		const char *why = NULL;
		CHECK(ops->core->switchover(engine, ID7, 0, primary_of(&s)->name, &why) == 0);
	}
	usleep(2000); /* the millisecond of the last one is over */
	at[2] = clock_now_ms();
	rows[2] = writer.acknowledged;
	usleep(50000);
	CHECK(tell(ID7, "writer", "delete from ledger where a < 100"));
	usleep(50000);
	at[3] = clock_now_ms();
	rows[3] = rows[2] - 99;
	for (int i = 3; i >= 0; i--) {
		CHECK(window_has(&first, at[i]));
		CHECK(restore_at(&first, shot, at[i], &w) == 0);
		long found = ask(ID7, "writer", "select count(*) from ledger");
		printf("%ld rows, %ld then\n", found, rows[i]);
		CHECK(found == rows[i]);
	}
	CHECK(restore_at(&first, shot, taken.at_ms - 5000, &w) == -ENOENT && restore_why);
	CHECK(restore_at(&first, shot, clock_now_ms() + 5000, &w) == -ENOENT && nothing_left(ID7));
	struct engine_source of = snapshot_source(&first, shot);
	struct engine_point point = {.kind = POINT_POSITION};
	uint64_t second;
	CHECK(ops->backup->position(engine, &of, at[1], &point.position, &second) == 0 && second <= point.position.lsn);
	incarnate(&w, 600 + nodes);
	CHECK(ops->backup->restore(engine, &of, &point, &w.c, &access_all, NULL, NULL, arena, &restore_why) == 0);
	long found = ask(ID7, "writer", "select count(*) from ledger");
	printf("%ld rows at a position before %ld\n", found, rows[1]);
	CHECK(found > rows[0] - 200 && found <= rows[1]);
	rows[0] = found;
	struct wish other = first; /* whose log is not the snapshot's */
	snprintf(other.c.backup.incarnation, sizeof other.c.backup.incarnation, "%s", w.c.backup.incarnation);
	CHECK(restore_at(&other, shot, clock_now_ms(), &w) == -ENOENT && restore_why);
	CHECK(ask(ID7, "writer", "select count(*) from ledger") == rows[0]);
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0);
}

/* Each restore begins a timeline, and brings no more than the history of the snapshot's own. */
static void many_timelines(void)
{
	struct wish w = wish_make(ID6, 1, 0), last;
	struct engine_snapshot taken;
	char shot[25];
	incarnate(&w, 40);
	w.c.backup.archive = true;
	CHECK(converge(&w, &access_all) == 0 && tell(ID6, "writer", "create table t(a int)"));
	for (unsigned i = 0; i < 4; i++) {
		snprintf(shot, sizeof shot, "65f00000000000000000bd%02u", i);
		CHECK(snapshot(&w, shot, &taken) == 0);
		CHECK(i == 3 || restore(&w, shot, &w, &access_all, NULL) == 0);
	}
	CHECK(taken.sets[0].timeline == 4 && tell(ID6, "writer", "insert into t values (1)"));
	usleep(50000);
	int64_t then = clock_now_ms();
	usleep(50000);
	CHECK(tell(ID6, "writer", "insert into t values (2)") && window_has(&w, then));
	last = w;
	CHECK(restore_at(&last, shot, then, &w) == 0 && ask(ID6, "writer", "select sum(a) from t") == 1);
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0);
}

/* A byte of a segment of the archive, as many behind the newest. */
static void segment_flip(const struct wish *w, unsigned behind, char ret_name[64])
{
	char command[500], path[400] = "";
	snprintf(command, sizeof command,
	         "find %s/backups/US_EAST_1 -path '*/%s/0/*' | grep -E '/[0-9A-F]{24}$' | sort | tail -%u", dir,
	         w->c.backup.incarnation, behind);
	FILE *f = popen(command, "r");
	CHECK(f && fgets(path, sizeof path, f));
	while (f && fgets(command, sizeof command, f))
		;
	CHECK(f && pclose(f) == 0);
	path[strcspn(path, "\n")] = 0;
	const char *name = strrchr(path, '/');
	snprintf(ret_name, 64, "%s", name ? name + 1 : "none");
	char c = 0;
	int fd = open(path, O_RDWR);
	CHECK(fd >= 0 && pread(fd, &c, 1, 300) == 1);
	c ^= 1;
	CHECK(pwrite(fd, &c, 1, 300) == 1 && close(fd) == 0);
}

/* Files that come late into a server's pg_wal, and one after a long pause. */
struct late {
	char from[PG_PATH], to[PG_PATH];
	_Atomic bool over;
};

static void *late_run(void *arg)
{
	struct late *l = arg;
	char **names, path[2][PG_PATH];
	size_t count;
	CHECK(pg_names_list(l->from, &names, &count) == 0 && count > 8);
	for (size_t i = 0; i < count; i++) {
		pg_path_set(path[0], "%s/%s", l->from, names[i]);
		pg_path_set(path[1], "%s/%s", l->to, names[i]);
		pg_sleep_ms(i == 0 ? 0 : i == 6 ? 9000 : 100);
		CHECK(rename(path[0], path[1]) == 0);
	}
	pg_names_free(names, count);
	l->over = true;
	return NULL;
}

static bool late_comes(void *ctx, uint64_t replayed)
{
	return !((struct late *)ctx)->over;
}

static bool nobody_asks(void *ctx)
{
	return false;
}

/* The rows that a server has which waits for its log again and again; -1: it was not recovered. */
static long late_rows(const struct engine_source *of, const struct engine_point *to)
{
	struct late late = {.over = false};
	const struct pg_stop stop = {nobody_asks, &late, late_comes};
	struct repository *repository = NULL;
	struct repo_manifest *m = NULL;
	struct pg_throwaway t;
	struct pg_target target;
	struct pg_fetch *fetch = NULL;
	char data[PG_PATH];
	const char *why = NULL;
	pthread_t thread;
	int64_t rows = -1;
	PGconn *conn;
	CHECK(repository_get(engine->repositories, of->region, of->group_id, &repository) == 0 &&
	      repo_manifest_open(repository, of->cluster_id, of->snapshot_id, "0", &m) == 0);
	const json_t *facts = repo_manifest_facts(m);
	unsigned timeline = (unsigned)json_number(facts, "timeline");
	uint64_t segment = (uint64_t)json_number(facts, "segment"),
	         from = pg_lsn_of(facts, "position") / segment * segment;
	CHECK(pg_archive_resolve(engine, of, to, "0", &target, &why) == 0);
	CHECK(pg_throwaway_new(engine, of, 15, &t) == 0);
	pg_path_set(data, "%s/data", t.dir);
	pg_path_set(late.from, "%s/late", dir);
	pg_path_set(late.to, "%s/pg_wal", data);
	CHECK(repo_restore(m, data, t.user->uid, t.user->gid, 2, NULL) == 0);
	CHECK(pg_throwaway_cut(&t, timeline, from, segment) == 0 && pg_dir_make(t.user, late.from, true) == 0);
	CHECK(pg_fetch_begin(engine, of, "0", timeline, from, &target, late.from, &fetch, &why) == 0);
	while (pg_fetch_runs(fetch, 0))
		usleep(10000);
	CHECK(pg_fetch_end(fetch, &why) == 0);
	CHECK(pthread_create(&thread, NULL, late_run, &late) == 0);
	int r = pg_throwaway_recover(&t, facts, &target, &stop, &why);
	pthread_join(thread, NULL);
	if (r < 0)
		fprintf(stderr, "late: %s\n", why);
	else if (pg_throwaway_open(&t, "postgres", &conn) == 0) {
		CHECK(pg_sql_int(conn, 20000, "select count(*) from public.t", &rows) == 0);
		PQfinish(conn);
	}
	CHECK(pg_throwaway_end(&t) == 0 && pg_tree_remove(late.from) == 0);
	repo_manifest_close(m);
	repository_put(repository);
	return (long)rows;
}

/* More log than is there when the server starts: it comes meanwhile, nothing of it is missed, and what is wrong with it
 * is told. */
static void much_log(void)
{
	struct wish w = wish_make(ID7, 1, 0), first;
	struct engine_snapshot taken;
	int64_t at[4], whole = 0;
	char name[64], job[100];
	incarnate(&w, 50);
	w.c.backup.archive = true;
	first = w;
	CHECK(converge(&w, &access_all) == 0 && tell(ID7, "writer", "create table t(a int, b text)"));
	/* Who has that many savepoints keeps the restored server from showing what it has. */
	struct cluster_status s = observe(ID7);
	PGconn *open = client(primary_of(&s), "writer", PASSWORD, "postgres");
	CHECK(run(open,
	          "begin; create table never(a int); do $$ begin for i in 1..100 loop begin insert into never values "
	          "(1); exception when others then null; end; end loop; end $$"));
	CHECK(snapshot(&w, MUCH, &taken) == 0);
	for (unsigned i = 0; i < 4; i++) {
		if (i == 2)
			PQfinish(open);
		for (unsigned k = 0; k < 10; k++)
			CHECK(tell(ID7, "writer",
			           "insert into t select 1, repeat(md5(random()::text), 30) from generate_series(1, "
			           "4000)"));
		usleep(50000);
		at[i] = clock_now_ms();
		usleep(50000);
	}
	for (int i = 3; i >= 0; i--) {
		CHECK(window_has(&first, at[i]));
		whole = clock_mono_us();
		CHECK(restore_at(&first, MUCH, at[i], &w) == 0);
		whole = clock_mono_us() - whole;
		CHECK(ask(ID7, "writer", "select count(*) from t") == 40000 * (i + 1));
		CHECK(i > 1 || ask(ID7, "writer", "select count(*) from pg_class where relname = 'never'") == 0);
	}
	struct engine_source of = snapshot_source(&first, MUCH);
	struct engine_point point = {.kind = POINT_POSITION};
	uint64_t second;
	CHECK(ops->backup->position(engine, &of, at[3], &point.position, &second) == 0);
	incarnate(&w, 700);
	CHECK(ops->backup->restore(engine, &of, &point, &w.c, &access_all, NULL, NULL, arena, &restore_why) == 0);
	/* Of a mark before that moment: whole statements. */
	const long before = ask(ID7, "writer", "select count(*) from t");
	CHECK(before > 40000 && before <= 160000 && before % 4000 == 0);
	struct engine_point time = {.kind = POINT_TIME, .time_ms = at[2]};
	CHECK(late_rows(&of, &time) == 120000);
	CHECK(late_rows(&of, &point) == before);
	/* In the middle of it, when a server runs already. */
	segment_flip(&first, 12, name);
	CHECK(restore_at(&first, MUCH, at[3], &w) == -EBADMSG && strstr(restore_why, name) && nothing_left(ID7));
	CHECK(ask(ID7, "writer", "select count(*) from t") == before);
	segment_flip(&first, 12, name);
	/* Thought better of it, and killed, at any moment. */
	for (unsigned i = 0; i < rounds() * 2; i++) {
		unsigned after = (unsigned)(whole * (1 + i) / (rounds() * 3));
		incarnate(&w, 710 + i);
		snprintf(job, sizeof job, "at:%lld:%s:" MUCH, (long long)at[2], first.c.backup.incarnation);
		service_crash_restoring(&w, job, after);
		CHECK(converge(&w, &access_all) == 0);
		long rows = ask(ID7, "writer", "select count(*) from t");
		CHECK(rows == before || rows == 120000);
	}
	CHECK(restore_at(&first, MUCH, at[2], &w) == 0 && nothing_left(ID7));
	CHECK(ask(ID7, "writer", "select count(*) from t") == 120000);
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0 && servers_running() == 0);
}

/* --- shards */

static struct wish wish_sharded(const char *id)
{
	struct wish w = wish_make(id, 3, 0);
	for (unsigned i = 0; i <= 2; i++) {
		struct engine_node *n = &w.nodes[i];
		n->kind = i ? NODE_ELECTABLE : NODE_ROUTER;
		n->shard = i ? i - 1 : 0;
		n->priority = i ? 7 : 0;
		snprintf(n->name, sizeof n->name, i ? "%s-shard-%02u-00" : "%s-router-%02u", w.c.label, i ? i - 1 : 0);
	}
	w.c.quorum = false;
	w.c.shards = 2;
	return w;
}

/* A point of all sets that is later than that, and stored. */
static int64_t checkpoint_wait(struct wish *w, int64_t after_ms)
{
	struct engine_source of = snapshot_source(w, "");
	int64_t began = clock_mono_us();
	while (since_ms(began) < 60000) {
		struct engine_checkpoint *list;
		size_t count = 0;
		CHECK(ops->backup->checkpoints(engine, &of, after_ms, INT64_MAX / 2, 1, arena, &list, &count) == 0);
		if (count && list[0].at_ms > after_ms)
			return list[0].at_ms;
		usleep(200000);
	}
	return 0;
}

static void shards(void)
{
	struct wish w = wish_sharded(ID8), other = wish_sharded(ID7), single = wish_make(ID6, 1, 0);
	struct engine_snapshot taken;
	struct lines l = {0};
	incarnate(&w, 6);
	incarnate(&other, 6);
	w.c.backup.archive = true;
	CHECK(converge(&w, &access_writer) == 0);
	CHECK(tell(ID8, "writer",
	           "create table spread(a int); select steward.shard_table('spread', 'a');"
	           "insert into spread select generate_series(1, 100); create table here(a int); insert into here "
	           "values (7)"));
	CHECK(snapshot(&w, SHOT4, &taken) == 0 && taken.set_count == 3);
	CHECK(tell(ID8, "writer", "insert into spread select generate_series(101, 150)"));
	struct wish first = w;
	int64_t later = checkpoint_wait(&w, clock_now_ms());
	CHECK(tell(ID8, "writer", "insert into spread select generate_series(151, 200); drop table here"));
	CHECK(later && restore_at(&first, SHOT4, later, &w) == 0);
	CHECK(ask(ID8, "writer", "select count(*) from spread") == 150 &&
	      ask(ID8, "writer", "select a from here") == 7);
	CHECK(restore(&w, SHOT4, &w, &access_writer, NULL) == 0);
	CHECK(ask(ID8, "writer", "select count(*) from spread") == 100 &&
	      ask(ID8, "writer", "select a from here") == 7);
	CHECK(tell(ID8, "writer", "insert into spread select generate_series(101, 200)"));
	/* Into another: it has the shards' data of its own, and never asks those of the first. */
	CHECK(converge(&other, &access_writer) == 0 && restore(&w, SHOT4, &other, &access_writer, NULL) == 0);
	CHECK(ask(ID7, "writer", "select count(*) from spread") == 100);
	CHECK(tell(ID7, "writer", "delete from spread") && ask(ID8, "writer", "select count(*) from spread") == 200);
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0);
	CHECK(converge(&single, &access_all) == 0 && restore(&w, SHOT4, &single, &access_all, NULL) == -EINVAL);
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0);
	CHECK(export(&w, SHOT4, &l) == 0 && l.rows == 101 && strstr(l.text.p, "[postgres.public.spread]\n{\"a\":"));
	buf_free(&l.text);
	CHECK(ops->core->destroy(engine, ID8, NULL) == 0);
}

void part_moments(void)
{
	shards();
	moments(1, MOMENT1);
	moments(3, MOMENT3);
	much_log();
	many_timelines();
}

void part_backup(void)
{
	single();
	set();
	damage();
	pages();
	version_asked_for();
	links();
	exports();
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0 && servers_running() == 0);
}
