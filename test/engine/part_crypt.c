/* Clusters whose files the kernel encrypts, on a file system of their own that is made for it; where this machine can
 * make none, that such clusters are refused with what to do. */
#include "harness.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>

#define ID6 "65f0000000000000000000a6"
#define ID7 "65f0000000000000000000a7"
#define SHOT1 "65f00000000000000000bb01"
#define SHOT2 "65f00000000000000000bb02"
#define SHOT3 "65f00000000000000000bb03"
#define MARK "what nobody reads on the disk"
#define ROWS 2000
#define IMAGE_MB 1100

static bool shell(const char *format, ...) printf_like(1, 2);

static bool shell(const char *format, ...)
{
	char command[1000];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	return system(command) == 0;
}

/* --- the file system */

static bool disk_mount(void)
{
	return shell("mount -o loop %s/disk %s/engine 2>/dev/null && chmod 711 %s/engine", dir, dir, dir);
}

static bool disk_unmount(void)
{
	bool gone = false;
	for (int i = 0; i < 100 && !gone; i++) {
		gone = shell("umount %s/engine 2>/dev/null", dir);
		if (!gone)
			usleep(100000);
	}
	return gone;
}

/* False: this machine cannot. */
static bool disk_make(void)
{
	return geteuid() == 0 &&
	       shell("truncate -s %dM %s/disk && PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q -O encrypt -m 0 %s/disk "
	             ">/dev/null 2>&1",
	             IMAGE_MB, dir, dir) &&
	       disk_mount();
}

/* --- what can be read */

static int unreadable, readable;

static int file_try(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)where;
	if (kind != FTW_F)
		return 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	readable += fd >= 0;
	unreadable += fd < 0 && errno == ENOKEY;
	if (fd >= 0)
		close(fd);
	return 0;
}

/* False: something goes, or gets another name, just now. */
static bool node_read(const struct wish *w, size_t node)
{
	char path[200];
	snprintf(path, sizeof path, "%s/engine/%s/%s", dir, w->c.id, w->nodes[node].name);
	unreadable = readable = 0;
	return nftw(path, file_try, 16, FTW_PHYS) == 0;
}

/* No file of any node, nor a name of one. */
static bool is_shut(const struct wish *w)
{
	char path[200];
	bool shut = true;
	for (size_t i = 0; i < w->c.node_count; i++) {
		snprintf(path, sizeof path, "%s/engine/%s/%s/data/PG_VERSION", dir, w->c.id, w->nodes[i].name);
		shut = shut && node_read(w, i) && access(path, F_OK) < 0 && readable == 0 && unreadable > 500;
	}
	return shut;
}

static bool is_open(const struct wish *w)
{
	return node_read(w, 0) && unreadable == 0 && readable > 500;
}

static bool wait_shut(const struct wish *w)
{
	for (int i = 0; i < 300; i++) {
		if (is_shut(w))
			return true;
		usleep(100000);
	}
	return false;
}

static long rows(const char *id)
{
	struct cluster_status s = observe(id);
	const struct node_status *p = primary_of(&s);
	if (!p)
		return -1;
	PGconn *conn = client(p, "boss", PASSWORD, "postgres");
	long n = number(conn, "select count(*) from marked where mark = '" MARK "'");
	PQfinish(conn);
	return n;
}

static bool mark(const char *id)
{
	struct cluster_status s = observe(id);
	const struct node_status *p = primary_of(&s);
	char sql[200];
	snprintf(sql, sizeof sql, "create table marked as select i, '" MARK "' mark from generate_series(1, %d) i",
	         ROWS);
	return p && as(p, "boss", "postgres", sql);
}

static struct wish encrypted_wish(const char *id, unsigned nodes)
{
	struct wish w = wish_make(id, nodes, 0);
	w.c.encrypted = true;
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, "%s", id);
	snprintf(w.c.backup.region, sizeof w.c.backup.region, "US_EAST_1");
	return w;
}

static int lock(struct wish *w)
{
	w->c.locked = w->c.paused = true;
	return converge(w, &access_all);
}

static int unlock(struct wish *w)
{
	w->c.locked = w->c.paused = false;
	return converge(w, &access_all);
}

static int snapshot(struct wish *w, const char *id)
{
	struct engine_snapshot taken;
	const char *why = NULL;
	struct engine_source to = snapshot_source(w, id);
	return ops->backup->snapshot(engine, &to, NULL, arena, &taken, &why);
}

/* --- the parts */

static void refused(void)
{
	struct wish w = encrypted_wish(ID6, 1);
	const char *why = NULL;
	char path[160];
	CHECK(ops->core->can_encrypt(engine, arena, &why) < 0);
	CHECK(why && strstr(why, "mkfs.ext4 -O encrypt") && strstr(why, "tune2fs -O encrypt"));
	CHECK(converge(&w, &access_all) < 0);
	snprintf(path, sizeof path, "%s/engine/%s", dir, ID6);
	CHECK(access(path, F_OK) < 0);
}

/* The project's key is lost, and comes back. */
static void lost_and_found(struct wish *w)
{
	CHECK(lock(w) == 0 && servers_running() == 0 && is_shut(w));
	CHECK(lock(w) == 0); /* may be repeated */
	CHECK(snapshot(w, SHOT3) < 0);
	key_answer = -EKEYREVOKED;
	CHECK(unlock(w) == -EKEYREVOKED && servers_running() == 0 && is_shut(w));
	CHECK(lock(w) == 0);
	engine_restart();
	usleep(500000); /* the supervisor had its time */
	CHECK(servers_running() == 0 && is_shut(w));
	key_answer = 0;
	CHECK(unlock(w) == 0 && wait_all_running(w->c.id, (unsigned)w->c.node_count, 60000) && is_open(w));
	CHECK(rows(w->c.id) == ROWS);
}

/* All ends at once, and the kernel knows no key when the service starts; nor does the key service answer at first. */
static void machine_restarts(struct wish *w)
{
	ops->core->stop(engine);
	CHECK(shell("for f in %s/engine/%s/*/data/postmaster.pid; do kill -9 $(head -1 $f); done", dir, w->c.id));
	CHECK(disk_unmount() && disk_mount());
	key_answer = -EAGAIN;
	engine_begin();
	usleep(500000);
	CHECK(servers_running() == 0 && is_shut(w));
	key_answer = 0;
	CHECK(wait_all_running(w->c.id, (unsigned)w->c.node_count, 60000));
	CHECK(rows(w->c.id) == ROWS);
	/* A service that ends takes nothing along. */
	key_answer = -EAGAIN;
	engine_restart();
	CHECK(rows(w->c.id) == ROWS && converge(w, &access_all) == 0);
	key_answer = 0;
}

/* While it is paused its files are shut; a snapshot opens them as long as it takes. */
static void paused(struct wish *w)
{
	w->c.paused = true;
	CHECK(converge(w, &access_all) == 0 && servers_running() == 0 && is_shut(w));
	CHECK(snapshot(w, SHOT2) == 0);
	CHECK(wait_shut(w));
	w->c.paused = false;
	CHECK(converge(w, &access_all) == 0 && wait_all_running(w->c.id, (unsigned)w->c.node_count, 60000));
	CHECK(rows(w->c.id) == ROWS);
}

static void snapshots(struct wish *w)
{
	const char *why = NULL;
	struct engine_source from = snapshot_source(w, SHOT1);
	struct engine_point point = {.kind = POINT_SNAPSHOT};
	struct engine_proof proof;
	CHECK(snapshot(w, SHOT1) == 0);
	CHECK(!shell("grep -q '" MARK "' -r %s/backups", dir));
	int r = ops->backup->prove(engine, &from, true, NULL, arena, &proof, &why);
	CHECK(r == 0);
	if (r < 0)
		fprintf(stderr, "prove: %s\n", why);
	struct cluster_status s = observe(w->c.id);
	CHECK(as(primary_of(&s), "boss", "postgres", "drop table marked"));
	snprintf(w->c.backup.incarnation, sizeof w->c.backup.incarnation, "65f000000000000000000c01");
	wish_complete(w);
	CHECK(ops->backup->restore(engine, &from, &point, &w->c, &access_all, NULL, NULL, arena, &why) == 0);
	CHECK(rows(w->c.id) == ROWS && is_open(w));
	/* Without the key the repository does not open. */
	key_answer = -EKEYREVOKED;
	CHECK(snapshot(w, SHOT3) == -EKEYREVOKED);
	snprintf(w->c.backup.incarnation, sizeof w->c.backup.incarnation, "65f000000000000000000c02");
	CHECK(ops->backup->restore(engine, &from, &point, &w->c, &access_all, NULL, NULL, arena, &why) < 0);
	key_answer = 0;
	snprintf(w->c.backup.incarnation, sizeof w->c.backup.incarnation, "65f000000000000000000c01");
	CHECK(rows(w->c.id) == ROWS);
}

/* A cluster that has data becomes encrypted, however often the service is killed meanwhile; and is none any more. */
static void converted(void)
{
	struct wish w = encrypted_wish(ID7, 2);
	w.c.encrypted = false;
	CHECK(converge(&w, &access_all) == 0 && mark(ID7));
	CHECK(setenv("ENCRYPTED", "1", 1) == 0);
	for (unsigned i = 0; i < rounds(); i++)
		service_crash(&w, 300000 + i * 700000);
	CHECK(unsetenv("ENCRYPTED") == 0);
	w.c.encrypted = true;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID7, 2, 60000) && rows(ID7) == ROWS);
	CHECK(lock(&w) == 0 && is_shut(&w));
	CHECK(!shell("ls -d %s/engine/%s/.?*-shard-* 2>/dev/null", dir, ID7));
	CHECK(unlock(&w) == 0 && rows(ID7) == ROWS);
	w.c.encrypted = false;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID7, 2, 60000) && rows(ID7) == ROWS);
	key_answer = -EKEYREVOKED; /* nobody needs it any more */
	engine_restart();
	CHECK(converge(&w, &access_all) == 0 && rows(ID7) == ROWS);
	key_answer = 0;
	CHECK(ops->core->destroy(engine, ID7, NULL) == 0);
}

void part_crypt(void)
{
	struct wish w = encrypted_wish(ID6, 2);
	const char *why = NULL;
	char path[160];
	if (ops->core->can_encrypt(engine, arena, &why) < 0)
		refused();
	ops->core->stop(engine);
	if (!disk_make()) {
		printf("no file system with encryption can be made here\n");
		engine_begin();
		return;
	}
	engine_begin();
	CHECK(ops->core->can_encrypt(engine, arena, &why) == 0);
	key_answer = 0;
	CHECK(converge(&w, &access_all) == 0 && mark(ID6) && rows(ID6) == ROWS && is_open(&w));
	CHECK(shell("sync -f %s/engine", dir) && !shell("grep -q '" MARK "' %s/disk", dir));
	lost_and_found(&w);
	machine_restarts(&w);
	paused(&w);
	snapshots(&w);
	converted();
	/* It goes without its key, too. */
	CHECK(lock(&w) == 0 && is_shut(&w));
	key_answer = -EKEYREVOKED;
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0);
	snprintf(path, sizeof path, "%s/engine/%s", dir, ID6);
	CHECK(access(path, F_OK) < 0);
	key_answer = -ENOENT;
	ops->core->stop(engine);
	CHECK(disk_unmount());
	engine_begin();
}
