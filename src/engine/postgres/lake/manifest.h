/* What of a database's rows lies in files: a row for each file, in the same database as the rows were. */
#ifndef STEWARD_ENGINE_POSTGRES_LAKE_MANIFEST_H
#define STEWARD_ENGINE_POSTGRES_LAKE_MANIFEST_H

#include "base/arena.h"
#include "engine/lake.h"

#include <libpq-fe.h>

struct pg_lake_file {
	const char *archive, *file; /* ids */
	const char *columns;        /* JSON: [{"name", "type"}] as steward-lake got them */
	uint64_t rows, bytes;
	const char *sha256;
	int64_t moved_ms, newest_ms; /* see engine_lake_file */
};

/* The schema, where it is not there. */
must_check int pg_lake_manifest_make(PGconn *conn);
/* For as long as the transaction lasts, nobody else moves rows of that archive, or takes its files away. -EAGAIN:
 * somebody does. */
must_check int pg_lake_manifest_hold(PGconn *conn, struct arena *a, const char *archive);
must_check int pg_lake_manifest_add(PGconn *conn, struct arena *a, const struct pg_lake_file *f);
/* Names that file no more. -ENOENT. */
must_check int pg_lake_manifest_remove(PGconn *conn, struct arena *a, const char *archive, const char *file);
/* 1 where the database has one of ours, else 0: the next three are -ENOENT there. */
must_check int pg_lake_manifest_is_there(PGconn *conn);
/* So many in the order in which they were added, without the first `skip`. Texts are in the arena. */
must_check int pg_lake_manifest_list(PGconn *conn, struct arena *a, const char *archive, size_t skip, size_t most,
                                     struct engine_lake_file **ret_files, size_t *ret_count);
/* One of them. -ENOENT. */
must_check int pg_lake_manifest_find(PGconn *conn, struct arena *a, const char *archive, const char *file,
                                     struct engine_lake_file *ret_file);
must_check int pg_lake_manifest_sums(PGconn *conn, struct arena *a, const char *archive,
                                     struct engine_lake_held *ret_held);
/* Names files no more whose rows are all from before that moment; INT64_MAX: any file. -EAGAIN: as the hold. */
must_check int pg_lake_manifest_expire(PGconn *conn, struct arena *a, const char *archive, int64_t before_ms,
                                       struct engine_lake_held *ret_gone);

/* Of one archive: what lies in its place in the object store. */
struct pg_lake_store {
	/* Other than 0 from visit() ends the list with that. */
	int (*list)(void *ctx, int (*visit)(void *visit_ctx, const char *file), void *visit_ctx);
	int (*drop)(void *ctx, const char *file);
	void *ctx;
};

/* Takes away files that no row names. One that a row once named may be wanted again, when the database is restored to
 * a time at which it was: so a file goes only when it was found unnamed before `oldest_ms`, the earliest moment that
 * the database can be brought back to; INT64_MAX: it cannot. -EAGAIN: rows are being moved now. */
must_check int pg_lake_manifest_sweep(PGconn *conn, struct arena *a, const char *archive,
                                      const struct pg_lake_store *store, int64_t now_ms, int64_t oldest_ms,
                                      struct engine_lake_swept *ret_swept);

#endif
