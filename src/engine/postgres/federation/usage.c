/* The files in which an endpoint counts: module/usage.h says what they are. They belong to the system user of the
 * databases, so the service maps none of them: one that is cut short would end it. It reads and writes single numbers,
 * which share no byte with those that the endpoint writes. */
#include "engine/postgres/federation/usage.h"

#include "base/clock.h"
#include "base/nolink.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

void pg_usage_dir(const struct engine *e, const char *id, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s/federation", e->dir, id);
}

void pg_usage_project_dir(const struct engine *e, const char *group_id, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/federation/%s", e->dir, group_id);
}

static int file_open(const char *dir, int flags)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/" USAGE_FILE, dir);
	int fd = nolink_open(path, flags | O_CLOEXEC | O_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

static int usage_take(int fd, struct usage *ret_usage)
{
	ssize_t n = pread(fd, ret_usage, sizeof *ret_usage, 0);
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof *ret_usage && ret_usage->mark == USAGE_MARK ? 0 : -ENODATA;
}

int pg_usage_make(const struct pg_user *u, const char *dir, bool queries)
{
	char path[PG_PATH];
	struct usage old;
	int r = pg_dir_make(u, dir, true);
	pg_path_set(path, "%s/" USAGE_QUERIES, dir);
	if (r == 0 && queries)
		r = pg_dir_make(u, path, true);
	if (r < 0 || pg_usage_read(dir, &old) == 0)
		return r;
	/* The mark is last: what was cut short is made again. */
	struct usage fresh = {.mark = USAGE_MARK, .day = usage_day(clock_now_ms())};
	fresh.month = usage_month(fresh.day);
	pg_path_set(path, "%s/" USAGE_FILE, dir);
	r = pg_file_give(u, path);
	int fd = r < 0 ? r : file_open(dir, O_RDWR);
	if (fd < 0)
		return fd;
	bool done = pwrite(fd, (char *)&fresh + sizeof fresh.mark, sizeof fresh - sizeof fresh.mark,
	                   sizeof fresh.mark) == (ssize_t)(sizeof fresh - sizeof fresh.mark) &&
	            fsync(fd) == 0 && pwrite(fd, &fresh.mark, sizeof fresh.mark, 0) == (ssize_t)sizeof fresh.mark &&
	            fsync(fd) == 0;
	r = done ? 0 : errno ? -errno : -EIO;
	close(fd);
	return r;
}

int pg_usage_bound(const char *dir, const struct engine_federation_limit *limits, size_t count, bool project)
{
	uint64_t bounds[2][USAGE_SPANS] = {{0}};
	struct usage have;
	for (size_t i = 0; i < count; i++)
		if (limits[i].project == project) {
			/* Of nothing is not without a bound. */
			bounds[0][limits[i].span] = limits[i].bytes ? limits[i].bytes : 1;
			bounds[1][limits[i].span] = limits[i].kill;
		}
	int fd = file_open(dir, O_RDWR);
	if (fd < 0)
		return fd;
	int r = usage_take(fd, &have);
	bool same = r == 0 && memcmp(have.limit, bounds[0], sizeof have.limit) == 0 &&
	            memcmp(have.kill, bounds[1], sizeof have.kill) == 0;
	if (r == 0 && !same &&
	    pwrite(fd, bounds, sizeof bounds, offsetof(struct usage, limit)) != (ssize_t)sizeof bounds)
		r = -EIO;
	if (r == 0 && !same && fdatasync(fd) < 0)
		r = -errno;
	close(fd);
	return r;
}

int pg_usage_read(const char *dir, struct usage *ret_usage)
{
	int fd = file_open(dir, O_RDONLY);
	if (fd < 0)
		return fd;
	int r = usage_take(fd, ret_usage);
	close(fd);
	return r;
}
