/* The newest snapshot of a cluster as files beside its databases, where files can share their blocks (reflinks):
 * CLUSTER/images/REGION/SNAPSHOT/SET/PATH. A restore of it shares them in turn, and reads next to nothing from the
 * repository. Each file is taken between the same two marks as the one that goes into the repository: it is one that
 * the log makes whole, though perhaps not the same byte for byte.
 *
 * Nobody but the service reaches them. host/images.c says when they go. Without them, or without one of their files,
 * all comes from the repository. */
#include "engine/postgres/backup/image.h"

#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/backup/snapshot.h"
#include "engine/postgres/host/discard.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/images.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* While it is made. */
static void coming_path(const struct shot *s, char ret_path[PG_PATH])
{
	char region[PG_PATH];
	pg_image_region(s->e, s->c->id, s->to->region, region);
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
	if (pg_images_are_crowded(s->e))
		return;
	pg_image_region(s->e, s->c->id, "", path);
	int r = dir_make(path);
	pg_image_region(s->e, s->c->id, s->to->region, path);
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

void pg_image_end(struct shot *s, bool taken)
{
	char coming[PG_PATH], region[PG_PATH], path[PG_PATH];
	struct engine_source kept = *s->to;
	coming_path(s, coming);
	pg_image_region(s->e, s->c->id, s->to->region, region);
	pg_path_set(path, "%s/%s", region, s->to->snapshot_id);
	bool whole = taken && s->imaging && pg_filesystem_sync(coming) == 0 && nolink_rename(coming, path) == 0 &&
	             pg_dir_sync(region) == 0;
	s->imaging = false;
	if (whole) {
		pg_images_others_drop(s->e, s->c->id, &kept);
		return;
	}
	if (pg_file_is(coming))
		pg_image_discard(s->e, coming);
	/* Nothing is left where it never works. */
	nolink_rmdir(region);
	pg_image_region(s->e, s->c->id, "", region);
	nolink_rmdir(region);
}
