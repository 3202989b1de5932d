/* Online archives: rows leave a table for Parquet files of an object store, and stay readable there.
 *
 * A row is in the table, or in one file that the archive's manifest names: never in both, never in neither, whatever is
 * killed when. The manifest lies in the same database as the rows, so a restore of the database brings back both as
 * they were. Files lie in the object store of the service's backups, in the archive's own place; one that nobody names
 * stays until no backup can bring its name back (sweep).
 *
 * All functions block, on the host of the cluster, and are called by job threads. Each may be repeated after a crash.
 * For one archive, one of move(), expire(), sweep() and bring() at a time: another gets -EAGAIN. */
#ifndef STEWARD_ENGINE_LAKE_H
#define STEWARD_ENGINE_LAKE_H

#include "engine/core.h"
#include "objects/objects.h"

/* What a date is written as: ISODATE, EPOCH_SECONDS, EPOCH_MILLIS, EPOCH_NANOSECONDS, OBJECT_ID. */
enum engine_date { DATE_ISO, DATE_SECONDS, DATE_MILLIS, DATE_NANOS, DATE_OBJECT_ID };

/* An archive. Pointers are borrowed for the call. */
struct engine_lake {
	const char *cluster_id, *group_id;
	const char *region;           /* whose repository its files lie in; never changes */
	const char *id;               /* 24 hexadecimal digits, never used for another */
	const char *database, *table; /* "orders" of the schema public; "sales.orders" */
	/* Which rows: those that a query of the JSON query language finds; or, where that is NULL, those whose date is
	 * before a moment. */
	const char *query;
	const char *field; /* a column, or COLUMN.NAME.NAME of a document in it */
	enum engine_date format;
	int64_t before_ms;
	const char *const *order; /* columns that the rows of a file are sorted by: the partition fields */
	size_t order_count;
};

/* What would move now. */
struct engine_lake_preview {
	uint64_t rows, bytes; /* bytes: that they take in the table */
	bool estimated;       /* from a part of the table: all of it takes too long to look at */
};

/* Bounds of one move(), and so of one transaction; 0: the engine's own. */
struct engine_lake_bounds {
	unsigned rows;
	uint64_t bytes; /* that the rows take as the server sends them */
};

struct engine_lake_moved {
	uint64_t rows, bytes; /* bytes: of the file; 0 rows: no file was needed */
	bool over;            /* the table was looked through to its end */
};

struct engine_lake_file {
	const char *id;
	const char *columns; /* JSON: [{"name", "type"}], as docs/archive-format.md tells */
	uint64_t rows, bytes;
	const char *sha256;
	int64_t moved_ms;  /* when its rows left the table */
	int64_t newest_ms; /* no row of it has a later date; of an archive with a query: moved_ms */
};

/* What the manifest names. */
struct engine_lake_held {
	uint64_t files, rows, bytes;
	int64_t oldest_moved_ms, newest_moved_ms; /* 0: it has no files */
};

struct engine_lake_swept {
	uint64_t dropped, kept; /* objects: that went; that nobody names, but that a backup may */
};

/* Errors beside the usual: -EAGAIN: the database does not answer now, or somebody else is at it: try again later.
 * -ENOENT: there is no such database or table (any more). -EINVAL: that cannot be archived so, however often it is
 * tried. *ret_why says why: static or in the arena. -EKEYREVOKED: the project's key is out of reach, until its owner
 * mends that. -ECANCELED: *stop (may be NULL) became true. Times are the service's clock. */
struct engine_lake_ops {
	/* Whether this service can keep archives at all; *ret_why: what to do about it where not. From any thread. */
	int (*can)(struct engine *e, struct arena *a, const char **ret_why);
	/* Whether rows can leave that table, chosen so. Asks the database and changes nothing; a few seconds at most.
	 * -ENOENT and -EINVAL: *ret_field names the field of the API's request: "dbName", "collName",
	 * "criteria.dateField", "criteria.query", "partitionFields[1].fieldName". ret_preview may be NULL; asking for
	 * it takes up to half a minute. */
	int (*check)(struct engine *e, const struct engine_lake *want, struct arena *a,
	             struct engine_lake_preview *ret_preview, const char **ret_field, const char **ret_why);
	/* Moves some rows into a file of their own; some seconds. *place: 0 at first; then as the last call has left
	 * it, until `over`. It may be forgotten: a run that begins anew looks at the table from its beginning. Rows
	 * that somebody holds or changes meanwhile stay until the next run. */
	int (*move)(struct engine *e, const struct engine_lake *want, const struct engine_lake_bounds *bounds,
	            const _Atomic bool *stop, struct arena *a, uint64_t *place, struct engine_lake_moved *ret_moved,
	            const char **ret_why);
	/* Sums over all files; and so many of the files, in the order in which they were made, without the first
	 * `skip`. Nothing of the table is needed: it may have been dropped. */
	int (*held)(struct engine *e, const struct engine_lake *want, struct arena *a,
	            struct engine_lake_held *ret_held);
	int (*files)(struct engine *e, const struct engine_lake *want, size_t skip, size_t most, struct arena *a,
	             struct engine_lake_file **ret_list, size_t *ret_count);
	/* One file's bytes, as Parquet, opened where it is sealed. -EBADMSG: they are not what was written. */
	int (*read)(struct engine *e, const struct engine_lake *want, const char *file, objects_write *write, void *ctx,
	            struct arena *a, const char **ret_why);
	/* Files all of whose rows are older than that moment (newest_ms) are nobody's from now on. *ret_gone: their
	 * sums. INT64_MAX: all of them, as when the archive is deleted. */
	int (*expire)(struct engine *e, const struct engine_lake *want, int64_t before_ms, struct arena *a,
	              struct engine_lake_held *ret_gone, const char **ret_why);
	/* Takes away objects that nobody names. One that was named goes only when it was found unnamed before
	 * `oldest_ms`, the earliest moment that the cluster can be restored to; INT64_MAX: it can to none. */
	int (*sweep)(struct engine *e, const struct engine_lake *want, int64_t oldest_ms, struct arena *a,
	             struct engine_lake_swept *ret_swept, const char **ret_why);
	/* Takes away all objects of an archive whose cluster is gone, and that no backup names any more. No database is
	 * asked. 0 too when there is nothing. */
	int (*erase)(struct engine *e, const struct engine_lake *want, struct arena *a, const char **ret_why);
	/* Brings rows of one file back into the table, each exactly once: those that the query finds, or all where that
	 * is NULL; of the first file in the order of files(), or of that id. They are in the table and not in the file
	 * when it returns 0; rows that stay are in a file of their own, the last in that order, with the same times.
	 * *ret_moved: what came back, 0 rows: the file is as it was; `over`: the archive has no file any more. -ENOENT:
	 * there is no such file, or table. -EEXIST: the table has a row with the key of one of the file's. NULL: an
	 * engine of this kind cannot. */
	int (*bring)(struct engine *e, const struct engine_lake *want, const char *query, const char *file,
	             const _Atomic bool *stop, struct arena *a, struct engine_lake_moved *ret_moved,
	             const char **ret_why);
};

#endif
