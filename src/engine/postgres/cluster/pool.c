/* Data directories made ahead: initdb takes half a second, which nobody should wait for. Each is used once, because
 * copies of one template would share its system identifier, and one cluster's log would be accepted by another. */
#include "engine/postgres/cluster/pool.h"

#include "base/id.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define POOL_SIZE 2

/* In a name of its own until it is whole. */
static int pool_make(struct engine *e, unsigned version, const char *path)
{
	char initdb[PG_PATH], raw[PG_PATH], hex[17];
	unsigned char bytes[8];
	const char *bin = pg_version_bin(e, version);
	if (!bin)
		return -ENOENT;
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, hex);
	pg_path_set(initdb, "%s/initdb", bin);
	pg_path_set(raw, "%s/pool/raw-%s", e->dir, hex);
	const char *argv[] = {initdb,
	                      "-D",
	                      raw,
	                      "-U",
	                      PG_SUPER,
	                      "--no-instructions",
	                      "-E",
	                      "UTF8",
	                      "--locale=C.UTF-8",
	                      "-k",
	                      "--wal-segsize=4",
	                      "--auth=reject",
	                      "--no-sync",
	                      NULL};
	int r = pg_dir_make(e->maker, raw, true);
	r = r < 0 ? r : pg_process_run(e->maker, argv, 60000);
	/* Its configuration files are not used; ours lie where pg_rewind does not overwrite them. */
	static const char *const unused[] = {"postgresql.conf", "pg_hba.conf", "pg_ident.conf"};
	for (size_t i = 0; r == 0 && i < sizeof unused / sizeof *unused; i++) {
		char file[PG_PATH];
		pg_path_set(file, "%s/%s", raw, unused[i]);
		if (nolink_unlink(file) < 0 && errno != ENOENT)
			r = -errno;
	}
	/* One call for all of its thousand files. */
	if (r == 0)
		r = pg_filesystem_sync(raw);
	if (r == 0 && nolink_rename(raw, path) < 0)
		r = -errno;
	if (r < 0)
		pg_tree_remove(raw);
	return r;
}

/* The pool's whole entries of a version; one name. */
static unsigned pool_count(struct engine *e, unsigned version, char *ret_name, size_t size)
{
	char dir[PG_PATH], prefix[16];
	unsigned count = 0;
	pg_path_set(dir, "%s/pool", e->dir);
	snprintf(prefix, sizeof prefix, "%u-", version);
	DIR *d = nolink_opendir(dir);
	for (struct dirent *entry; d && (entry = readdir(d));)
		if (str_starts(str_of(entry->d_name), str_of(prefix))) {
			snprintf(ret_name, size, "%s", entry->d_name);
			count++;
		}
	if (d)
		closedir(d);
	return count;
}

static void *pool_fill(void *arg)
{
	struct engine *e = arg;
	char name[64], path[PG_PATH];
	unsigned failures = 0;
	while (failures < 3) {
		pthread_mutex_lock(&e->lock);
		bool enough = e->stopping || e->version_count == 0 ||
		              pool_count(e, e->versions[0].major, name, sizeof name) >= POOL_SIZE;
		if (enough)
			e->filling = false;
		pthread_mutex_unlock(&e->lock);
		if (enough)
			break;
		struct id id = id_new();
		pg_path_set(path, "%s/pool/%u-%s", e->dir, e->versions[0].major, id.z);
		failures += pool_make(e, e->versions[0].major, path) < 0;
	}
	pthread_mutex_lock(&e->lock);
	e->filling = false;
	pthread_mutex_unlock(&e->lock);
	pg_engine_work_done(e);
	return NULL;
}

void pg_pool_refill(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	bool begin = !e->filling && !e->stopping;
	if (begin)
		e->filling = true;
	pthread_mutex_unlock(&e->lock);
	if (begin && pg_engine_work(e, pool_fill, e) < 0) {
		pthread_mutex_lock(&e->lock);
		e->filling = false;
		pthread_mutex_unlock(&e->lock);
	}
}

/* Into a directory that is encrypted, which the pool is not: a copy, in a name of its own until it is whole. */
static int pool_copy(const struct pg_user *u, const char *entry, const char *path)
{
	char fresh[PG_PATH];
	pg_path_set(fresh, "%s.copy", path);
	const char *copy[] = {"/bin/cp", "-a", "--", entry, fresh, NULL};
	int r = pg_tree_remove(fresh);
	r = r < 0 ? r : pg_process_run(u, copy, 120000);
	r = r < 0 ? r : pg_filesystem_sync(fresh);
	if (r == 0 && nolink_rename(fresh, path) < 0)
		r = -errno;
	int removed = pg_tree_remove(entry);
	return r < 0 ? r : removed;
}

int pg_pool_take(const struct pg_cluster *c, unsigned version, const char *path)
{
	struct engine *e = c->engine;
	char name[64], entry[PG_PATH], own[PG_PATH];
	struct id id = id_new();
	pg_path_set(own, "%s/pool/raw-%s", e->dir, id.z);
	pthread_mutex_lock(&e->lock);
	int r = -ENOENT;
	if (pool_count(e, version, name, sizeof name) > 0) {
		pg_path_set(entry, "%s/pool/%s", e->dir, name);
		r = nolink_rename(entry, own) < 0 ? -errno : 0;
	}
	pthread_mutex_unlock(&e->lock);
	if (r < 0)
		r = pool_make(e, version, own);
	/* Before it has its place: what a crash leaves in the pool is dropped. */
	if (r == 0)
		r = pg_tree_give(c->user, own);
	if (r == 0 && nolink_rename(own, path) < 0)
		r = errno == EXDEV ? pool_copy(c->user, own, path) : -errno;
	return r;
}

/* Drops what a crash left half made, and what another user could write to since it was made. */
void pg_pool_start(struct engine *e)
{
	char dir[PG_PATH], path[PG_PATH];
	struct stat st;
	pg_path_set(dir, "%s/pool", e->dir);
	DIR *d = nolink_opendir(dir);
	for (struct dirent *entry; d && (entry = readdir(d));)
		if (entry->d_name[0] != '.' &&
		    (str_starts(str_of(entry->d_name), STR("raw-")) ||
		     fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != e->maker->uid)) {
			pg_path_set(path, "%s/%s", dir, entry->d_name);
			pg_tree_remove(path);
		}
	if (d)
		closedir(d);
	pg_pool_refill(e);
}
