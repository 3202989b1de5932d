/* The log in another region, from the repository of the first. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_COPY_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_COPY_H

#include "engine/postgres/archive/archive_index.h"

struct pg_archive;

struct pg_copied { /* of one set's line, or of PG_COMMON: how far the copy has come */
	char name[64];
	bool listed;
	int64_t listed_ms;
	uint32_t timeline;
	uint64_t next;   /* number of the segment that is to be copied as a whole */
	uint64_t stored; /* of the first */
	struct pg_mark last;
	char *index; /* text as it was put last */
	int64_t hour;
};

struct pg_log_copy {
	char region[48];
	const void *store; /* that it lies in: see repositories_store() */
	/* With archive.lock. */
	bool wanted, working;
	int64_t due_ms, began_ms;
	int64_t last_ms; /* when it was as far as the first; 0: never */
	char why[300];
	/* The worker's alone. */
	char incarnation[25];
	int64_t left_ms; /* when the archive was seen to have gone on with another incarnation */
	struct pg_copied *sets;
	size_t set_count;
};
/* One look, by the only one who works on it. */
void pg_copy_tick(struct pg_cluster *c, struct pg_archive *a, struct pg_log_copy *k);
void pg_copy_free(struct pg_log_copy *k);

#endif
