/* Online archives as they are kept. The document below a cluster is what the API shows. Beside it, under the same id,
 * is how far the work has come, in a document of its own, so that a batch of rows changes nobody's ETag:
 *
 *   {"region": whose object store, "generation": counts changes of what moves,
 *    "pass": {"place", "from": ms, "rows", "bytes", "files"}, while the table is being looked through,
 *    "passed": ms, of the window whose pass is over (without windows: when it ended), "cared": ms, of the last sweep,
 *    "bring": {"from": ms, "query", "skip", "left": files to pass over and to look at, "rows", "bytes", "files"}, while
 *    rows come back, "files", "rows", "bytes": what the archive has, "reason": why it does not go on} */
#ifndef STEWARD_API_ARCHIVES_ARCHIVE_H
#define STEWARD_API_ARCHIVES_ARCHIVE_H

#include "api/archives/archives.h"

#define ARCHIVE_KIND "online_archive"
#define ARCHIVE_RUN_KIND "online_archive_run"

struct archive {
	struct doc doc, run_doc;
	json_t *body, *run;
};

/* -ENOENT. */
must_check int archive_get(struct tx *tx, struct arena *a, struct str id, struct archive *ret_archive);
must_check int archive_run_save(struct tx *tx, struct arena *a, struct archive *x);
bool archive_is(const struct archive *x, const char *state);
/* What the engine is asked for, of an archive as the API shows it; all borrowed from the arena. `age_ms`: the moment
 * that the age of rows is counted from. */
void archive_want_make(struct arena *a, struct str cluster_id, struct str region, const json_t *body, int64_t age_ms,
                       struct engine_lake *ret_want);
/* In a write: the archive's job is due at that time, or sooner. */
must_check int archive_work_ask(struct tx *tx, struct arena *a, const struct cluster *cluster, struct str id,
                                int64_t due_ms);
/* In a write: another pass begins, with what is wanted now. */
void archive_begin_anew(struct archive *x);

#endif
