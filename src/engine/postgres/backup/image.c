/* The newest snapshot of a cluster as files beside its databases, where files can share their blocks (reflinks):
 * CLUSTER/images/REGION/SNAPSHOT/SET/PATH. A restore of it shares them in turn, and reads next to nothing from the
 * repository. Each file is taken between the same two marks as the one that goes into the repository: it is one that
 * the log makes whole, though perhaps not the same byte for byte.
 *
 * Nobody but the service reaches them. They take space as the databases move on: they go when little of it is left,
 * when the next snapshot is there, and with their cluster. Without them, or without one of their files, all comes from
 * the repository. */
#include "engine/postgres/backup/image.h"

#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/backup/snapshot.h"
#include "engine/postgres/cluster/supervisor.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/postgres.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define SPARE (4ull << 30) /* that is left to the databases, or a fifth of a small disk */

static bool is_crowded(const struct engine *e)
{
	struct statvfs disk;
	if (statvfs(e->dir, &disk) < 0)
		return true;
	uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize, fifth = (uint64_t)disk.f_blocks * disk.f_frsize / 5;
	return left < (fifth < SPARE ? fifth : SPARE);
}

static void region_path(const struct engine *e, const char *cluster, const char *region, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s/images%s%s", e->dir, cluster, *region ? "/" : "", region);
}

/* While it is made. */
static void coming_path(const struct shot *s, char ret_path[PG_PATH])
{
	char region[PG_PATH];
	region_path(s->e, s->c->id, s->to->region, region);
	pg_path_set(ret_path, "%s/%s~", region, s->to->snapshot_id);
}

static int dir_make(const char *path)
{
	return nolink_mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* --- making one */

void pg_image_begin(struct shot *s)
{
	char path[PG_PATH];
	s->imaging = false;
	if (is_crowded(s->e))
		return;
	region_path(s->e, s->c->id, "", path);
	int r = dir_make(path);
	region_path(s->e, s->c->id, s->to->region, path);
	r = r < 0 ? r : dir_make(path);
	coming_path(s, path);
	r = r < 0 ? r : pg_tree_discard(s->e, path); /* of one that was cut short */
	r = r < 0 ? r : dir_make(path);
	s->imaging = r == 0;
}

int pg_image_set(struct shot *s, const struct shot_base *b)
{
	char coming[PG_PATH], path[PG_PATH];
	if (!s->imaging)
		return -1;
	coming_path(s, coming);
	pg_path_set(path, "%s/%s", coming, b->name);
	int fd = dir_make(path) < 0 ? -1 : nolink_open(path, O_RDONLY | O_DIRECTORY, 0);
	s->imaging = fd >= 0;
	return fd;
}

void pg_image_directory(struct shot *s, const struct shot_base *b, const char *path)
{
	if (s->imaging && nolink_mkdirat(b->image, path, 0700) < 0)
		s->imaging = false;
}

void pg_image_add(struct shot *s, const struct shot_base *b, const char *path, int fd)
{
	if (!s->imaging)
		return;
	int to = nolink_openat(b->image, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	/* Most file systems cannot: the first file tells. */
	if (to < 0 || ioctl(to, FICLONE, fd) < 0)
		s->imaging = false;
	if (to >= 0)
		close(to);
}

typedef void image_visit(void *ctx, struct engine *e, const char *region, const char *snapshot, const char *path);

static void region_visit(struct engine *e, const char *cluster, const char *region, image_visit *visit, void *ctx)
{
	char dir[PG_PATH], path[PG_PATH];
	region_path(e, cluster, region, dir);
	DIR *d = nolink_opendir(dir);
	for (const struct dirent *entry; d && (entry = readdir(d));) {
		if (entry->d_name[0] == '.')
			continue;
		pg_path_set(path, "%s/%s", dir, entry->d_name);
		visit(ctx, e, region, entry->d_name, path);
	}
	if (d)
		closedir(d);
}

static void images_visit(struct engine *e, const char *cluster, image_visit *visit, void *ctx)
{
	char dir[PG_PATH];
	region_path(e, cluster, "", dir);
	DIR *d = nolink_opendir(dir);
	for (const struct dirent *entry; d && (entry = readdir(d));)
		if (entry->d_name[0] != '.')
			region_visit(e, cluster, entry->d_name, visit, ctx);
	if (d)
		closedir(d);
}

static void discard(struct engine *e, const char *path)
{
	if (pg_tree_discard(e, path) < 0)
		log_warn("engine: %s cannot be removed", path);
}

static void others_drop(void *ctx, struct engine *e, const char *region, const char *snapshot, const char *path)
{
	const struct engine_source *kept = ctx;
	if (!kept || strcmp(snapshot, kept->snapshot_id) != 0 || strcmp(region, kept->region) != 0)
		discard(e, path);
}

void pg_image_end(struct shot *s, bool taken)
{
	char coming[PG_PATH], region[PG_PATH], path[PG_PATH];
	struct engine_source kept = *s->to;
	coming_path(s, coming);
	region_path(s->e, s->c->id, s->to->region, region);
	pg_path_set(path, "%s/%s", region, s->to->snapshot_id);
	bool whole = taken && s->imaging && pg_filesystem_sync(coming) == 0 && nolink_rename(coming, path) == 0 &&
	             pg_dir_sync(region) == 0;
	s->imaging = false;
	if (whole) {
		images_visit(s->e, s->c->id, others_drop, &kept);
		return;
	}
	if (pg_file_is(coming))
		discard(s->e, coming);
	/* Nothing is left where it never works. */
	nolink_rmdir(region);
	region_path(s->e, s->c->id, "", region);
	nolink_rmdir(region);
}

int pg_image_open(const struct engine *e, const struct engine_source *of, const char *set)
{
	char region[PG_PATH], path[PG_PATH];
	region_path(e, of->cluster_id, of->region, region);
	pg_path_set(path, "%s/%s/%s", region, of->snapshot_id, set);
	return nolink_open(path, O_RDONLY | O_DIRECTORY, 0);
}

/* --- when they go */

void pg_image_forget(struct engine *e, const struct engine_source *of)
{
	char region[PG_PATH], path[PG_PATH];
	region_path(e, of->cluster_id, of->region, region);
	pg_path_set(path, "%s/%s", region, of->snapshot_id);
	if (pg_file_is(path))
		discard(e, path);
}

struct sweeping {
	const char *region, *cluster;
	const struct repo_keep *keep;
};

/* What was taken since the list was made is not in it. */
static void unkept_drop(void *ctx, struct engine *e, const char *region, const char *snapshot, const char *path)
{
	const struct sweeping *w = ctx;
	struct stat st;
	char name[64];
	snprintf(name, sizeof name, "%s/%s", w->cluster, snapshot);
	for (size_t i = 0; i < w->keep->snapshot_count; i++)
		if (strcmp(w->keep->snapshots[i], name) == 0)
			return;
	if (strcmp(region, w->region) == 0 && nolink_lstat(path, &st) == 0 &&
	    ((int64_t)time(NULL) - (int64_t)st.st_ctime) * 1000 >= w->keep->young_ms)
		discard(e, path);
}

void pg_images_sweep(struct engine *e, const char *region, const char *group_id, const struct repo_keep *keep)
{
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all);
	for (size_t i = 0; i < count; i++) {
		struct sweeping w = {region, all[i]->id, keep};
		if (strcmp(all[i]->group_id, group_id) == 0)
			images_visit(e, all[i]->id, unkept_drop, &w);
		pg_cluster_put(all[i]);
	}
	free(all);
}

void pg_images_spare(struct engine *e)
{
	struct pg_cluster **all;
	if (!is_crowded(e))
		return;
	size_t count = pg_clusters_hold(e, &all);
	for (size_t i = 0; i < count; i++) {
		images_visit(e, all[i]->id, others_drop, NULL);
		pg_cluster_put(all[i]);
	}
	free(all);
}
