/* The newest snapshot's files beside the databases, as they lie there: CLUSTER/images/REGION/SNAPSHOT/SET/PATH.
 * They take space as the databases move on, and go when little of it is left; backup/image.c makes them. */
#include "engine/postgres/host/images.h"

#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/host/discard.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#define SPARE (4ull << 30) /* that is left to the databases, or a fifth of a small disk */

bool pg_images_are_crowded(const struct engine *e)
{
	struct statvfs disk;
	if (statvfs(e->dir, &disk) < 0)
		return true;
	uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize, fifth = (uint64_t)disk.f_blocks * disk.f_frsize / 5;
	return left < (fifth < SPARE ? fifth : SPARE);
}

void pg_image_region(const struct engine *e, const char *cluster, const char *region, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s/images%s%s", e->dir, cluster, *region ? "/" : "", region);
}

typedef void image_visit(void *ctx, struct engine *e, const char *region, const char *snapshot, const char *path);

static void region_visit(struct engine *e, const char *cluster, const char *region, image_visit *visit, void *ctx)
{
	char dir[PG_PATH], path[PG_PATH];
	pg_image_region(e, cluster, region, dir);
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
	pg_image_region(e, cluster, "", dir);
	DIR *d = nolink_opendir(dir);
	for (const struct dirent *entry; d && (entry = readdir(d));)
		if (entry->d_name[0] != '.')
			region_visit(e, cluster, entry->d_name, visit, ctx);
	if (d)
		closedir(d);
}

void pg_image_discard(struct engine *e, const char *path)
{
	if (pg_tree_discard(e, path) < 0)
		log_warn("engine: %s cannot be removed", path);
}

static void others_drop(void *ctx, struct engine *e, const char *region, const char *snapshot, const char *path)
{
	const struct engine_source *kept = ctx;
	if (!kept || strcmp(snapshot, kept->snapshot_id) != 0 || strcmp(region, kept->region) != 0)
		pg_image_discard(e, path);
}

void pg_images_others_drop(struct engine *e, const char *cluster, const struct engine_source *kept)
{
	images_visit(e, cluster, others_drop, (void *)(uintptr_t)kept);
}

int pg_image_open(const struct engine *e, const struct engine_source *of, const char *set)
{
	char region[PG_PATH], path[PG_PATH];
	pg_image_region(e, of->cluster_id, of->region, region);
	pg_path_set(path, "%s/%s/%s", region, of->snapshot_id, set);
	return nolink_open(path, O_RDONLY | O_DIRECTORY, 0);
}

void pg_image_forget(struct engine *e, const struct engine_source *of)
{
	char region[PG_PATH], path[PG_PATH];
	pg_image_region(e, of->cluster_id, of->region, region);
	pg_path_set(path, "%s/%s", region, of->snapshot_id);
	if (pg_file_is(path))
		pg_image_discard(e, path);
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
		pg_image_discard(e, path);
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
	if (!pg_images_are_crowded(e))
		return;
	size_t count = pg_clusters_hold(e, &all);
	for (size_t i = 0; i < count; i++) {
		images_visit(e, all[i]->id, others_drop, NULL);
		pg_cluster_put(all[i]);
	}
	free(all);
}
