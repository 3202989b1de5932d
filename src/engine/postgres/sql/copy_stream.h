/* What a server says while it copies a table out (PostgreSQL's protocol 3.0: "COPY operations"), taken as it comes.
 * libpq hands out rows and holds each of them whole, several times over: a row of 250 MB took 551 MB of the service.
 * Here a row is passed on in pieces, so that memory is the caller's buffer, whatever one user has put into a row.
 *
 * Rows are lines of JSON. An empty line is a row that the server has left out, because it was too long. Or they are
 * bytes, in the server's own form, which nobody looks at here. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_COPY_STREAM_H
#define STEWARD_ENGINE_POSTGRES_SQL_COPY_STREAM_H

#include "base/str.h"

#include <sys/types.h>

struct pg_copy {
	int (*write)(void *ctx, const void *bytes, size_t n); /* what it returns below 0 ends the reading */
	void *ctx;
	bool binary;
	uint64_t rows;  /* of bytes only when it is over */
	bool over;      /* the server has said all, and takes another statement */
	bool copied;    /* and the table is whole */
	bool left_out;  /* an empty line was met */
	bool unwritten; /* write() has failed */
	/* All else is its own. */
	bool within; /* a message, of that type, of which so many bytes are to come */
	char type;
	uint32_t left;
	bool in_line;
	size_t count_n;
	char count[32]; /* what it says at the end: "COPY 12" */
	size_t refusal_n;
	char refusal[1024]; /* the beginning of what the server has refused it with */
};

/* Returns how many of the bytes were taken. Those that are left, fewer than eight while it is not over, are given again
 * with more behind them. -EBADMSG: a row was left out, or is not UTF-8; -EPROTO: no server says that; or what
 * write() returned. */
must_check ssize_t pg_copy_take(struct pg_copy *s, const void *bytes, size_t n);

/* Why the server has refused to copy it, in its own words; "": it has not. */
void pg_copy_refusal(const struct pg_copy *s, char *ret_text, size_t size);

#endif
