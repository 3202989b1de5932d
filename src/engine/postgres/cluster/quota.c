/* How much disk a cluster may take: the diskSizeGB of its nodes. PostgreSQL has no such bound, and quotas of a file
 * system would make a server that writes its log end with a panic, so the service looks at what the primaries'
 * directories take.
 *
 *   full    at 100 %: transactions are read-only unless they say otherwise (default_transaction_read_only), and those
 *           that were writing are ended. Whoever wants to make room says `begin read write`, and drops, truncates or
 *           deletes; or the disk is enlarged through the API.
 *   closed  when it has grown by 10 % more since then, or 128 MB where that is more, which takes somebody who went on
 *           writing on purpose: no user gets in (their limit of connections is 0) until the disk is enlarged or the
 *           usage has fallen.
 *
 * The first ends 5 % below where it begins, the second at half of what was added. In a sharded cluster all users come
 * to the router: it is the one that refuses, for any of the shards, so that room can be made through it.
 *
 * The look is a walk over the directories: 1 to 2 ms for a thousand files. It takes at most a twentieth of one
 * processor, however many clusters there are. Whether a cluster is full or closed is kept in the file CLUSTER/full, so
 * that a restart of the service does not open it for a moment. */
#include "engine/postgres/cluster/quota.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/config.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/images.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/work.h"
#include "engine/postgres/sql/grants_sql.h"
#include "engine/postgres/sql/sql.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 2000
#define NODES_MS 10000
#define DEPTH_MAX 8
#define SQL_MS 10000
#define MORE_MIN (128ull << 20)

/* --- what is used */

/* Blocks, not lengths: files with holes take less. Links are counted and not followed. */
static uint64_t usage_of(int parent, const char *name, int depth)
{
	uint64_t bytes = 0;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (struct dirent *entry; (entry = readdir(d));) {
		struct stat st;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* it went meanwhile */
		bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			bytes += usage_of(fd, entry->d_name, depth + 1);
	}
	closedir(d);
	return bytes;
}

/* Where the data of the i-th set's primary lies, and how much it may take. False: there is no such set, or it has no
 * bound. */
static bool set_place(struct pg_cluster *c, size_t i, char ret_path[PG_PATH], uint64_t *ret_limit)
{
	bool found = false;
	pthread_mutex_lock(&c->lock);
	if (i < c->set_count && !c->paused && !c->destroying && !c->gone && !pg_crypt_is_shut(c)) {
		const struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (p) {
			pg_node_path(c, p, "data", ret_path);
			*ret_limit = p->want.disk_gb * c->engine->disk_unit;
			found = *ret_limit > 0;
		}
	}
	pthread_mutex_unlock(&c->lock);
	return found;
}

static enum engine_full full_of(struct pg_cluster *c, uint64_t used, uint64_t limit)
{
	uint64_t more = limit / 10 > MORE_MIN ? limit / 10 : MORE_MIN;
	if (limit == 0 || used < limit - limit / 20 || (c->full == FULL_NOT && used < limit))
		return FULL_NOT;
	if (c->full == FULL_NOT || !c->full_from)
		c->full_from = used;
	bool closed = c->full != FULL_NOT && used >= c->full_from + (c->full == FULL_CLOSED ? more / 2 : more);
	return closed ? FULL_CLOSED : FULL_READ_ONLY;
}

/* --- making it so */

static void mark_path(const struct pg_cluster *c, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s/full", c->engine->dir, c->id);
}

static int mark_write(const struct pg_cluster *c)
{
	char path[PG_PATH], text[2] = {(char)('0' + c->full), 0};
	mark_path(c, path);
	if (c->full == FULL_NOT)
		return nolink_unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	return pg_file_write(c->user, path, text, 1, false);
}

void pg_quota_recall(struct pg_cluster *c)
{
	char path[PG_PATH], *text;
	mark_path(c, path);
	if (pg_file_read(path, 16, &text) < 0)
		return;
	c->full = text[0] == '2' ? FULL_CLOSED : text[0] == '1' ? FULL_READ_ONLY : FULL_NOT;
	free(text);
}

/* One user takes at most four fifths of the connections, so that the others get in as well. */
static unsigned connections_each(const struct pg_cluster *c, const struct pg_node *n)
{
	unsigned all = pg_config_connections(c, n);
	return c->full == FULL_CLOSED ? 0 : all - all / 5;
}

int pg_quota_apply(struct pg_cluster *c, const struct pg_node *primary, PGconn *conn)
{
	struct buf b = {0};
	unsigned limit = connections_each(c, primary);
	/* Who changes its own password and does not commit would keep the cluster from being closed, and fill the
	 * disk. */
	buf_printf(
	        &b,
	        "do $$ declare r name; others constant name[] := array(select rolname from pg_roles where rolcanlogin "
	        "and rolname not in ('" PG_SUPER "', '" PG_SHARD "') and rolconnlimit <> %u); begin "
	        "if others = '{}' then return; end if; %s foreach r in array others loop execute format('alter role "
	        "%%I connection limit %u', r); end loop; end $$",
	        limit, pg_grants_sql_roles_lock, limit);
	buf_c(&b, 0);
	int r = pg_sql_do(conn, SQL_MS, b.p);
	buf_free(&b);
	return r;
}

/* Ends the sessions that are writing; of a closed cluster all of them. */
static int sessions_end(const struct pg_cluster *c, PGconn *conn)
{
	static const char writers[] =
	        "select count(pg_terminate_backend(pid)) from pg_stat_activity where backend_type = 'client backend' "
	        "and usename not in ('" PG_SUPER "', '" PG_SHARD "') and backend_xid is not null";
	static const char all[] =
	        "select count(pg_terminate_backend(pid)) from pg_stat_activity where backend_type = 'client backend' "
	        "and usename not in ('" PG_SUPER "', '" PG_SHARD "')";
	return c->full == FULL_NOT ? 0 : pg_sql_do(conn, SQL_MS, c->full == FULL_CLOSED ? all : writers);
}

static int node_tell(struct pg_cluster *c, struct pg_node *n)
{
	struct pg_set *s = pg_cluster_set(c, n->set);
	bool changed = false;
	PGconn *conn;
	int r = pg_config_write(c, n, &changed);
	if (changed)
		n->loaded = false;
	if (r == 0 && n->pid && !n->loaded) {
		r = pg_node_reload(c, n);
		n->loaded = r == 0;
	}
	if (r < 0 || !n->pid || !s || pg_set_primary(c, s) != n)
		return r;
	r = pg_sql_open_node(c, n, "postgres", 3000, &conn);
	if (r < 0)
		return r;
	r = pg_quota_apply(c, n, conn);
	int ended = r == 0 || r == -EPROTO ? sessions_end(c, conn) : r;
	PQfinish(conn);
	return r < 0 ? r : ended;
}

/* With cluster.work. What fails is tried again with the next look. */
static void cluster_tell(struct pg_cluster *c, enum engine_full full)
{
	enum engine_full before = c->full;
	pthread_mutex_lock(&c->lock);
	c->full = full;
	pthread_mutex_unlock(&c->lock);
	int r = mark_write(c);
	for (size_t i = 0; i < c->node_count && r == 0; i++)
		if (!c->nodes[i]->removing && !c->nodes[i]->busy && !pg_node_is_shard(c, c->nodes[i]) &&
		    pg_node_is_made(c, c->nodes[i]))
			r = node_tell(c, c->nodes[i]);
	if (r < 0) {
		log_warn("engine: %s: its disk is %s, which cannot be brought to its servers now: %s", c->id,
		         full ? "full" : "not full any more", strerror(-r));
		pthread_mutex_lock(&c->lock);
		c->full = before;
		pthread_mutex_unlock(&c->lock);
		return;
	}
	log_warn("engine: %s takes %llu of %llu MB: %s", c->id, (unsigned long long)(c->disk_used >> 20),
	         (unsigned long long)(c->disk_limit >> 20),
	         full == FULL_CLOSED      ? "closed to users"
	         : full == FULL_READ_ONLY ? "read-only"
	                                  : "writable again");
	if (c->engine->full_changed)
		c->engine->full_changed(c->engine->full_ctx, c->id, full);
}

/* What each node takes of the disk, for its metrics. */
static void nodes_look(struct pg_cluster *c)
{
	char path[PG_PATH], name[64];
	if (pg_mono_ms() < c->nodes_due_ms)
		return;
	c->nodes_due_ms = pg_mono_ms() + NODES_MS;
	for (size_t i = 0;; i++) {
		pthread_mutex_lock(&c->lock);
		bool is = i < c->node_count && !c->destroying && !c->gone && !pg_crypt_is_shut(c);
		if (is) {
			pg_node_path(c, c->nodes[i], "data", path);
			snprintf(name, sizeof name, "%s", c->nodes[i]->want.name);
		}
		pthread_mutex_unlock(&c->lock);
		if (!is)
			return;
		uint64_t used = usage_of(AT_FDCWD, path, 0);
		pthread_mutex_lock(&c->lock);
		struct pg_node *n = pg_cluster_node(c, name);
		if (n)
			n->disk_used = used;
		pthread_mutex_unlock(&c->lock);
	}
}

/* Returns how long the walk took; what follows from it is mostly waiting. */
static int64_t cluster_look(struct pg_cluster *c)
{
	int64_t began = pg_mono_ms();
	uint64_t used = 0, limit = 0, one;
	char path[PG_PATH];
	bool looked = false;
	for (size_t i = 0; i < PG_SETS_MAX; i++) {
		if (!set_place(c, i, path, &one))
			continue;
		uint64_t taken = usage_of(AT_FDCWD, path, 0);
		/* Of several sets, the one that has the least room decides. */
		if (!looked || (double)taken / (double)one > (double)used / (double)limit) {
			used = taken;
			limit = one;
		}
		looked = true;
	}
	nodes_look(c);
	int64_t took = pg_mono_ms() - began;
	pthread_mutex_lock(&c->lock);
	c->disk_used = used;
	c->disk_limit = limit;
	enum engine_full full = full_of(c, used, limit);
	bool changed = full != c->full && (looked || c->engine->disk_unit == 0) && !c->paused;
	pthread_mutex_unlock(&c->lock);
	/* A cluster that is being changed now is told next time. */
	if (!changed || pthread_mutex_trylock(&c->work) != 0)
		return took;
	if (!c->gone && !c->destroying && !c->paused && !c->upgrading)
		cluster_tell(c, full);
	pthread_mutex_unlock(&c->work);
	return took;
}

static void *quota_look(void *arg)
{
	struct engine *e = arg;
	struct pg_cluster **all;
	int64_t took = 0;
	size_t count = pg_clusters_hold(e, &all);
	for (size_t i = 0; i < count; i++) {
		took += cluster_look(all[i]);
		pg_cluster_put(all[i]);
	}
	free(all);
	pg_images_spare(e);
	pthread_mutex_lock(&e->lock);
	e->quota_due_ms = pg_mono_ms() + (took * 20 > LOOK_MS ? took * 20 : LOOK_MS);
	e->quota_looks = false;
	pthread_mutex_unlock(&e->lock);
	pg_engine_work_done(e);
	return NULL;
}

void pg_quota_tick(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	bool due = !e->quota_looks && pg_mono_ms() >= e->quota_due_ms;
	e->quota_looks = e->quota_looks || due;
	pthread_mutex_unlock(&e->lock);
	if (due && pg_engine_work(e, quota_look, e) < 0) {
		pthread_mutex_lock(&e->lock);
		e->quota_looks = false;
		pthread_mutex_unlock(&e->lock);
	}
}

void pg_disk_usage(struct engine *e, struct engine_disk *ret_disk)
{
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all);
	*ret_disk = (struct engine_disk){0};
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&all[i]->lock);
		ret_disk->used += all[i]->disk_used;
		ret_disk->limit += all[i]->disk_limit;
		ret_disk->read_only += all[i]->full == FULL_READ_ONLY;
		ret_disk->closed += all[i]->full == FULL_CLOSED;
		pthread_mutex_unlock(&all[i]->lock);
		pg_cluster_put(all[i]);
	}
	free(all);
}
