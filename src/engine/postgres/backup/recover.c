/* From a snapshot's files to a point: which place in the log that is, the log on its way there, and the server that
 * replays it. A whole cluster's restore and that of a single database or table do this alike. */
#include "engine/postgres/backup/recover.h"

#include "base/json.h"
#include "engine/postgres/archive/archive_fetch.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"

#include <errno.h>

int pg_recovery_aim(struct pg_recovery *x)
{
	const json_t *facts = repo_manifest_facts(x->manifest);
	uint64_t position = pg_lsn_of(facts, "position");
	const char *why = NULL;
	if (x->point->kind == POINT_SNAPSHOT) {
		pg_snapshot_target(facts, &x->target);
		return 0;
	}
	if (!str_is(json_field(facts, "incarnation"), x->from->incarnation)) {
		pg_why_set(
		        NULL,
		        "the snapshot is of data from before or after another restore: its log does not go on there");
		return -ENOENT;
	}
	int r = pg_archive_resolve(x->engine, x->from, x->point, x->set, &x->target, &why);
	if (r < 0) {
		pg_why_set(NULL, "%s", why ? why : "that point cannot be restored");
		return r;
	}
	bool timed = x->point->kind == POINT_TIME;
	if (timed ? x->point->time_ms < json_number(facts, "atMs") : x->target.lsn < position) {
		pg_why_set(NULL, "the point is before the snapshot");
		return -ENOENT;
	}
	if (x->target.lsn && x->target.lsn <= position) /* nothing happened since */
		pg_snapshot_target(facts, &x->target);
	return 0;
}

/* The log comes while the server recovers. */
static int log_fetch(struct pg_recovery *x, struct pg_throwaway *t, const char **ret_why)
{
	const json_t *facts = repo_manifest_facts(x->manifest);
	uint64_t segment = (uint64_t)json_number(facts, "segment"), position = pg_lsn_of(facts, "position");
	unsigned timeline = (unsigned)json_number(facts, "timeline");
	char dir[PG_PATH];
	if (x->target.lsn ? x->target.lsn <= position : !x->target.time_us)
		return 0; /* the snapshot has its own, up to its point */
	pg_path_set(dir, "%s/data/pg_wal", t->dir);
	/* The last file of the snapshot's ends at its point: it comes whole from the archive. */
	uint64_t first = position / segment * segment;
	int r = pg_throwaway_cut(t, timeline, first, segment);
	return r < 0 ? r
	             : pg_fetch_begin(x->engine, x->from, x->set, timeline, first, &x->target, dir, &x->fetch, ret_why);
}

static bool is_stopped(void *ctx)
{
	const struct pg_recovery *x = ctx;
	return x->asked(x->ctx) || pg_fetch_failed(x->fetch);
}

static bool log_comes(void *ctx, uint64_t replayed)
{
	const struct pg_recovery *x = ctx;
	return pg_fetch_runs(x->fetch, replayed);
}

int pg_recovery_run(struct pg_recovery *x, struct pg_throwaway *t, const char **ret_why)
{
	const struct pg_stop stop = {is_stopped, x, log_comes};
	x->fetch = NULL;
	int r = log_fetch(x, t, ret_why);
	r = r < 0 ? r : pg_throwaway_recover(t, repo_manifest_facts(x->manifest), &x->target, &stop, ret_why);
	int fetched = pg_fetch_end(x->fetch, ret_why);
	/* One that was stopped, because the server had failed, has nothing to tell. */
	return fetched < 0 && (r == 0 || fetched != -ECANCELED) ? fetched : r;
}
