/* The log of what was done with archived rows. */
#ifndef STEWARD_API_ARCHIVES_QUERIES_H
#define STEWARD_API_ARCHIVES_QUERIES_H

#include "api/archives/archive.h"

/* One line. */
struct archive_query {
	/* ARCHIVE: rows moved out of the table; BRING_BACK: back into it; EXPIRE: files ended; DELETE: all of them */
	const char *kind;
	bool archived_only; /* the table was not asked */
	uint64_t files, rows, bytes;
	int64_t from_ms; /* when it began, by the service's clock; it ends now */
};

/* In a write. The oldest lines go when there are too many. */
must_check int archive_query_note(struct tx *tx, struct arena *a, const struct archive *x,
                                  const struct archive_query *q);
/* In the write that takes the cluster away. */
must_check int archive_queries_drop(struct tx *tx, struct str cluster_id);

#endif
