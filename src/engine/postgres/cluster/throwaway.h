/* Servers on restored files, for nobody but the service. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_THROWAWAY_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_THROWAWAY_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

struct pg_stop;
struct pg_target;

struct pg_throwaway {
	struct engine *engine;
	const struct pg_user *user;
	char dir[PG_PATH], run[PG_PATH]; /* the files are in DIR/data */
	unsigned version;
	struct pg_node node; /* its port alone */
	/* Of one that is made for a job: it has bounds of its own, and ends with the job. */
	bool bounded;
	int64_t end_ms; /* its last moment */
	pid_t pid;
	int pidfd;
};
/* An empty DIR/data, in place of what was there. */
int pg_throwaway_begin(struct engine *e, const struct pg_user *user, const char *dir, unsigned version,
                       const char *cluster_id, struct pg_throwaway *t);
/* In a directory of its own, encrypted as that cluster is, as the project's user. With bounds of memory, processors,
 * processes and time, also for those who have become superusers of what was restored; nothing of it outlives the
 * calling thread. */
int pg_throwaway_new(struct engine *e, const struct engine_source *of, unsigned version, struct pg_throwaway *t);
/* -ENOSPC: with that many bytes more the databases' disk would be full. */
int pg_throwaway_room(const struct engine *e, uint64_t bytes);
/* To be asked while it works. -ENOSPC: others fill the disk too, and the databases need the rest; -ETIME: it takes too
 * long. */
int pg_throwaway_check(const struct pg_throwaway *t);
/* Whatever runs there ends, and nothing is left. */
int pg_throwaway_end(struct pg_throwaway *t);
void pg_throwaway_leave(struct pg_throwaway *t); /* but the files */
void pg_throwaways_sweep(struct engine *e);      /* of a service that was killed */
/* No log behind that position is left in its pg_wal. */
int pg_throwaway_cut(struct pg_throwaway *t, unsigned timeline, uint64_t lsn, uint64_t segment);
/* Starts it, recovers all log that lies there or comes, or up to the target's time, and makes it writable. It has
 * reached target.least, or it is an error. `stop` may be NULL. */
int pg_throwaway_recover(struct pg_throwaway *t, const json_t *facts, const struct pg_target *to,
                         const struct pg_stop *stop, const char **ret_why);
int pg_throwaway_open(const struct pg_throwaway *t, const char *database, PGconn **ret_conn);
int pg_throwaway_halt(struct pg_throwaway *t); /* cleanly */
/* The snapshot's own point. */
void pg_snapshot_target(const json_t *facts, struct pg_target *ret_target);
/* A position among a snapshot's facts: "start", "stop" or "position", the point that it brings back. */
uint64_t pg_lsn_of(const json_t *facts, const char *name);

#endif
