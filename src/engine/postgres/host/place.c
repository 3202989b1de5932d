/* Where the databases lie: DIR/engine, or, where their system user or their sockets' names cannot reach that, a
 * directory of its own to which DIR/engine points. */
#include "engine/postgres/host/place.h"

#include "base/id.h"
#include "base/log.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET_PATH_MAX 107
#define ELSEWHERE "/var/lib/steward"

/* Whether sockets below the path have names short enough, and words that configuration files take as they are. */
static bool path_is_usable(const char *path)
{
	return strlen(path) + sizeof "/run/65535/.s.PGSQL.27017" <= SOCKET_PATH_MAX && !strpbrk(path, "' \"\\\n");
}

/* Whether the nodes' user can pass through to what is below. */
static bool path_is_open(const struct engine *e, const char *path)
{
	static const char *const probe = "/usr/bin/test";
	const char *argv[] = {probe, "-x", path, NULL};
	const struct pg_user *u = e->user_count ? &e->users[e->user_count - 1] : &e->user;
	return !u->other || pg_process_run(u, argv, 5000) == 0;
}

/* Another place, because the data directory's is no good for databases (deep, or below a home that is closed to
 * others): a directory of its own below /var/lib/steward, to which DIR/engine points from then on. */
static int place_elsewhere(struct engine *e, const char *link)
{
	char path[PG_PATH], real[PATH_MAX];
	struct id id = id_new();
	if (!e->user.other) {
		log_error("engine: databases cannot lie in %s: the path is too long for their sockets, or has a space "
		          "or a "
		          "quote in it. Choose another --data, of at most %zu bytes",
		          e->dir, SOCKET_PATH_MAX - sizeof "/engine/run/65535/.s.PGSQL.27017");
		return -ENAMETOOLONG;
	}
	if (mkdir(ELSEWHERE, 0711) < 0 && errno != EEXIST)
		return -errno;
	pg_path_set(path, "%s/%s", realpath(ELSEWHERE, real) ? real : ELSEWHERE, id.z);
	int r = pg_dir_make(&e->shared, path, false);
	if (r == 0 && !path_is_open(e, path))
		r = -EACCES;
	if (r == 0 && symlink(path, link) < 0)
		r = -errno;
	if (r < 0) {
		rmdir(path);
		log_error("engine: databases cannot lie in %s (their system user cannot reach it, or the path is too "
		          "long), "
		          "nor in " ELSEWHERE ": %s. Choose another --data",
		          e->dir, strerror(-r));
		return r;
	}
	log_info("engine: databases cannot lie in %s, so they lie in %s", e->dir, path);
	pg_path_set(e->dir, "%s", path);
	return 0;
}

/* The data directory is ours alone; the nodes only pass through. */
static void data_dir_open(const struct engine *e, const char *data_dir)
{
	struct stat st;
	mode_t mode = e->shared.everyone ? 0711 : 0710;
	if (e->user.other && stat(data_dir, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 0066) == 0 &&
	    (st.st_mode & 0777) != mode && chown(data_dir, (uid_t)-1, e->user.gid) == 0)
		(void)!chmod(data_dir, mode);
}

static int directory_find(struct engine *e, const char *data_dir)
{
	char link[PG_PATH], real[PATH_MAX];
	pg_path_set(link, "%s/engine", realpath(data_dir, real) ? real : data_dir);
	if (realpath(link, real)) {
		pg_path_set(e->dir, "%s", real);
		/* There may be more users than when it was made. */
		data_dir_open(e, data_dir);
		int r = pg_dir_make(&e->shared, e->dir, false);
		if (r < 0)
			return r;
	} else {
		pg_path_set(e->dir, "%s", link);
		data_dir_open(e, data_dir);
		int r = path_is_usable(e->dir) ? pg_dir_make(&e->shared, e->dir, false) : -ENAMETOOLONG;
		if (r == 0 && path_is_open(e, e->dir))
			return 0;
		if (r == 0)
			rmdir(e->dir);
		return r == 0 || r == -ENAMETOOLONG ? place_elsewhere(e, link) : r;
	}
	if (!path_is_usable(e->dir) || !path_is_open(e, e->dir)) {
		log_error(
		        "engine: the databases' system user cannot reach %s, or the path is too long: let others pass "
		        "through the directories above it (chmod o+x), or move the data directory",
		        e->dir);
		return -EACCES;
	}
	return 0;
}

static int dirs_make(struct engine *e)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/run", e->dir);
	int r = pg_dir_make(&e->shared, path, false);
	pg_path_set(path, "%s/pool", e->dir);
	r = r < 0 ? r : pg_dir_make(&e->shared, path, false);
	if (r < 0)
		log_error("engine: cannot make %s: %s", path, strerror(-r));
	return r;
}

int pg_place_find(struct engine *e, const char *data_dir)
{
	int r = directory_find(e, data_dir);
	return r < 0 ? r : dirs_make(e);
}
