/* One set of a snapshot, on its way to a point. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_RECOVER_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_RECOVER_H

#include "engine/postgres/archive/archive_read.h"

struct pg_fetch;
struct pg_throwaway;

struct pg_recovery {
	struct engine *engine;
	const struct engine_source *from;
	const struct engine_point *point;
	char set[64]; /* its name in the snapshot */
	struct repo_manifest *manifest;
	struct pg_target target;
	bool (*asked)(void *ctx); /* whether somebody has asked for its end */
	void *ctx;
	struct pg_fetch *fetch; /* its own */
};
/* Finds the target. -ENOENT: the snapshot does not lead to that point; *pg_why_last() says why. */
int pg_recovery_aim(struct pg_recovery *x);
/* The server on the snapshot's files recovers to the target. The log comes meanwhile. */
int pg_recovery_run(struct pg_recovery *x, struct pg_throwaway *t, const char **ret_why);

#endif
