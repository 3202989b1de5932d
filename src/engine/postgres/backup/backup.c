/* The table of what the engine does about backups, and those of its operations that are the repository's alone. */
#include "engine/postgres/backup/backup.h"

#include "base/arena.h"
#include "engine/postgres/archive/archive_check.h"
#include "engine/postgres/archive/archive_prove.h"
#include "engine/postgres/archive/archive_read.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/backup/drill.h"
#include "engine/postgres/backup/export.h"
#include "engine/postgres/backup/piece.h"
#include "engine/postgres/backup/restore.h"
#include "engine/postgres/backup/snapshot.h"
#include "engine/postgres/host/images.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/why.h"

#include <errno.h>

int pg_repository_get(struct engine *e, const char *region, const char *group_id, struct repository **ret_repository,
                      const char **ret_why)
{
	if (!e->repositories) {
		*ret_why = "this service keeps no backups: it has no repository";
		return -ENOTSUP;
	}
	int r = repository_get(e->repositories, region, group_id, ret_repository);
	if (r < 0) {
		*ret_repository = NULL;
		pg_why_set(ret_why, "the repository cannot be reached: %s", repository_why());
	}
	return r == -EAGAIN ? -EBUSY : r; /* the caller's word for "ask me again then", which nobody has said when */
}

struct streaming {
	uint64_t from;
	objects_write *write;
	void *ctx;
	uint64_t *ret_bytes; /* or NULL: it is written */
};

static int tar_run(struct engine *e, const struct engine_source *of, const char *set, const struct streaming *s,
                   const char **ret_why)
{
	struct repository *repository;
	struct repo_manifest *m;
	int r = pg_repository_get(e, of->region, of->group_id, &repository, ret_why);
	if (r < 0)
		return r;
	r = repo_manifest_open(repository, of->cluster_id, of->snapshot_id, set, &m);
	if (r == 0) {
		r = s->ret_bytes ? repo_tar_size(m, s->ret_bytes) : repo_tar_from(m, s->from, s->write, s->ctx);
		repo_manifest_close(m);
	}
	if (r < 0)
		pg_why_set(ret_why, "%s", repository_why());
	repository_put(repository);
	return r;
}

static int backup_stream(struct engine *e, const struct engine_source *of, const char *set, uint64_t from,
                         objects_write *write, void *ctx, const char **ret_why)
{
	return tar_run(e, of, set, &(struct streaming){.from = from, .write = write, .ctx = ctx}, ret_why);
}

static int backup_stream_size(struct engine *e, const struct engine_source *of, const char *set, uint64_t *ret_bytes,
                              const char **ret_why)
{
	return tar_run(e, of, set, &(struct streaming){.ret_bytes = ret_bytes}, ret_why);
}

struct copying {
	struct engine_progress *progress;
	volatile bool stop; /* what it says, for the repository */
};

static void copy_tell(void *ctx, uint64_t done, uint64_t of)
{
	struct copying *c = ctx;
	pg_tell(c->progress, of ? (unsigned)(done * 99 / of) : 0, "copying");
	if (pg_is_stopped(c->progress))
		c->stop = true;
}

static int backup_copy(struct engine *e, const struct engine_source *from, const char *region,
                       struct engine_progress *progress, const char **ret_why)
{
	struct repository *source = NULL, *target = NULL;
	struct copying copying = {.progress = progress};
	struct repo_progress p = {.tell = copy_tell, .ctx = &copying, .cancel = &copying.stop};
	struct repo_amount amount;
	int r = pg_repository_get(e, from->region, from->group_id, &source, ret_why);
	r = r < 0 ? r : pg_repository_get(e, region, from->group_id, &target, ret_why);
	if (r == 0) {
		r = repo_copy(source, target, from->cluster_id, from->snapshot_id, &p, &amount);
		if (r < 0)
			pg_why_set(ret_why, "%s", repository_why());
	}
	repository_put(source);
	repository_put(target);
	return r;
}

static int backup_forget(struct engine *e, const struct engine_source *of)
{
	struct repository *repository;
	const char *why;
	pg_image_forget(e, of);
	int r = pg_repository_get(e, of->region, of->group_id, &repository, &why);
	if (r < 0)
		return r;
	r = repo_manifest_delete(repository, of->cluster_id, of->snapshot_id);
	repository_put(repository);
	return r == -ENOENT ? 0 : r;
}

static int backup_record(struct engine *e, const struct engine_source *of, const char *text)
{
	struct repository *repository;
	const char *why;
	int r = pg_repository_get(e, of->region, of->group_id, &repository, &why);
	if (r < 0)
		return r;
	r = repo_record_put(repository, of->cluster_id, of->snapshot_id, text);
	repository_put(repository);
	return r;
}

static int backup_sweep(struct engine *e, const char *region, const char *group_id, const struct repo_keep *keep,
                        struct repo_swept *ret_swept)
{
	struct repository *repository;
	const char *why;
	int r = pg_repository_get(e, region, group_id, &repository, &why);
	if (r < 0)
		return r;
	r = repo_sweep(repository, keep, ret_swept);
	if (r == 0)
		pg_images_sweep(e, region, group_id, keep);
	repository_put(repository);
	return r;
}

static int backup_usage(struct engine *e, const char *region, const char *group_id, uint64_t *ret_bytes)
{
	struct repository *repository;
	uint64_t packs = 0, log = 0;
	const char *why;
	int r = pg_repository_get(e, region, group_id, &repository, &why);
	if (r < 0)
		return r;
	r = repo_usage(repository, &packs, &log);
	repository_put(repository);
	if (r == 0)
		*ret_bytes = packs + log;
	return r;
}

const struct engine_backup_ops pg_backup = {
        .snapshot = pg_backup_snapshot,
        .restore = pg_backup_restore,
        .restore_piece = pg_backup_restore_piece,
        .window = pg_backup_window,
        .checkpoints = pg_backup_checkpoints,
        .position = pg_backup_position,
        .stream = backup_stream,
        .stream_size = backup_stream_size,
        .copy = backup_copy,
        .export = pg_backup_export,
        .prove = pg_backup_prove,
        .record = backup_record,
        .forget = backup_forget,
        .sweep = backup_sweep,
        .prove_log = pg_backup_prove_log,
        .check_log = pg_backup_check_log,
        .archive = pg_backup_archive,
        .usage = backup_usage,
};
