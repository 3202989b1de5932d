/* Log out of the repository, for a server that recovers. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_FETCH_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_FETCH_H

#include "engine/postgres/model/model.h"

struct pg_target;

/* Segments and histories from a position to the target, as files in `directory`, which the nodes' user owns. Copies,
 * never links: PostgreSQL writes into them. -ENOENT: one is missing, and *ret_why says which. */
int pg_archive_fetch(struct engine *e, const struct engine_source *of, const char *set, unsigned timeline, uint64_t lsn,
                     const struct pg_target *to, const char *directory, const char **ret_why);
/* The same for a server that recovers meanwhile: the first of it is there on return, the rest comes a bounded way ahead
 * of what it has replayed, and nothing that is behind the target's position. */
struct pg_fetch;
int pg_fetch_begin(struct engine *e, const struct engine_source *of, const char *set, unsigned timeline, uint64_t lsn,
                   const struct pg_target *to, const char *directory, struct pg_fetch **ret_fetch,
                   const char **ret_why);
/* Whether more is on its way, to a server that has come that far; NULL: there was nothing to fetch. */
bool pg_fetch_runs(struct pg_fetch *p, uint64_t replayed);
bool pg_fetch_failed(const struct pg_fetch *p);
/* Stops one that runs, which is -ECANCELED and has no reason, and tells what became of it: 0, all was there. */
int pg_fetch_end(struct pg_fetch *p, const char **ret_why);

#endif
