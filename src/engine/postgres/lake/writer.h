/* steward-lake at work: rows go in, a Parquet file comes out; or the other way round. The process is started for one
 * file. */
#ifndef STEWARD_ENGINE_POSTGRES_LAKE_WRITER_H
#define STEWARD_ENGINE_POSTGRES_LAKE_WRITER_H

#include "base/str.h"

#include <sys/types.h>

struct pg_stop;

struct pg_lake_writer {
	const struct pg_stop *stop;
	pid_t pid;
	int rows, file, answer; /* -1: closed */
	uint64_t rows_wanted;   /* how many it must say that the file has */
	uint64_t bytes;         /* of the file, so far */
	uint64_t taken, most;   /* bytes of rows, and how many there may be */
	void *digest;           /* of the file's bytes */
	bool whole;             /* the file was read, and it has the rows */
	bool too_large;         /* the program had not memory enough for the rows */
};

#define PG_LAKE_SHA256 65

/* `header`: the line of JSON that comes first. -ENOENT: the program is not there; -ECANCELED: somebody has asked for
 * the end. pg_why_last() says why. */
must_check int pg_lake_writer_open(struct pg_lake_writer *w, struct str header, uint64_t most,
                                   const struct pg_stop *stop);
/* A pg_copy's write(). -EFBIG: more rows than may be in a file. */
must_check int pg_lake_writer_write(void *writer, const void *bytes, size_t n);
/* All rows were given: so many. */
void pg_lake_writer_full(struct pg_lake_writer *w, uint64_t rows);
/* An objects_read, of the file. Its end comes only when the program has said that the file is whole, and with as many
 * rows as it was given; else -EIO does, so that no store keeps it. */
must_check ssize_t pg_lake_writer_read(void *writer, void *buf, size_t n);
/* Of the whole file. */
void pg_lake_writer_sum(struct pg_lake_writer *w, char ret_hex[PG_LAKE_SHA256]);
/* The other way round: the file is what the descriptor has, which stays the caller's. */
must_check int pg_lake_reader_open(struct pg_lake_writer *w, struct str header, int file, const struct pg_stop *stop);
/* Gives all rows of the file, in the text form of COPY. -EIO: there were not so many, or they could not be read. */
must_check int pg_lake_reader_take(struct pg_lake_writer *w, uint64_t rows,
                                   int (*take)(void *ctx, const char *bytes, size_t n), void *ctx);
void pg_lake_writer_close(struct pg_lake_writer *w);

#endif
