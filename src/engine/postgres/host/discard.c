/* Directories that are gone from their place at once, and from the disk later: thousands of files take seconds. */
#include "engine/postgres/host/discard.h"

#include "base/id.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/work.h"

#include <errno.h>
#include <stdlib.h>

struct discard {
	struct engine *engine;
	char path[PG_PATH];
};

static void *discard_thread(void *arg)
{
	struct discard *d = arg;
	struct engine *e = d->engine;
	if (pg_tree_remove(d->path) < 0)
		log_warn("engine: %s cannot be removed yet", d->path);
	free(d);
	pg_engine_work_done(e);
	return NULL;
}

int pg_tree_discard(struct engine *e, const char *path)
{
	char below[PG_PATH];
	struct id id = id_new();
	if (!pg_file_is(path))
		return 0;
	struct discard *d = must_calloc(1, sizeof *d);
	d->engine = e;
	pg_path_set(below, "%s/throwaway", e->dir);
	pg_path_set(d->path, "%s/%s", below, id.z);
	int r = pg_dir_make(&e->shared, below, false);
	if (str_starts(str_of(path), str_of(below))) /* there already */
		pg_path_set(d->path, "%s", path);
	else if (r == 0 && nolink_rename(path, d->path) < 0)
		r = -errno;
	if (r == 0 && pg_engine_work(e, discard_thread, d) == 0)
		return 0;
	r = pg_file_is(d->path) ? pg_tree_remove(d->path) : pg_tree_remove(path);
	free(d);
	return r;
}
