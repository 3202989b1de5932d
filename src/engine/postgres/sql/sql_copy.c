/* COPY ... TO STDOUT on a connection of libpq's, past libpq: the statement is written to its socket, and the answer
 * read from there, piece by piece. A connection over a unix socket is nothing but these bytes, and an idle one holds
 * none of them; after the copy it is idle again, and libpq's as before. */
#include "engine/postgres/sql/sql_copy.h"

#include "base/buf.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/copy_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#define PIECE 65536
#define STOP_MS 200 /* between two looks whether somebody has asked for the end */

static int socket_wait(int fd, short events, const struct pg_stop *stop)
{
	for (;;) {
		struct pollfd p = {fd, events, 0};
		int found = poll(&p, 1, STOP_MS);
		if (stop->asked(stop->ctx))
			return -ECANCELED;
		if (found > 0)
			return 0;
		if (found < 0 && errno != EINTR)
			return -errno;
	}
}

static bool is_passing(int error)
{
	return error == EINTR || error == EAGAIN;
}

static int statement_send(int fd, const char *sql, const struct pg_stop *stop)
{
	struct buf b = {0};
	size_t length = strlen(sql) + 5, sent = 0; /* with itself and the end of the text */
	int r = 0;
	buf_c(&b, 'Q');
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_c(&b, (char)(length >> shift & 0xff));
	buf_add(&b, sql, length - 4);
	while (r == 0 && sent < b.n) {
		r = socket_wait(fd, POLLOUT, stop);
		ssize_t n = r < 0 ? 0 : send(fd, b.p + sent, b.n - sent, MSG_NOSIGNAL);
		if (n < 0 && !is_passing(errno))
			r = -ECONNRESET;
		sent += n > 0 ? (size_t)n : 0;
	}
	buf_free(&b);
	return r;
}

static int answer_read(int fd, struct pg_copy *s, const struct pg_stop *stop)
{
	char *bytes = must_calloc(1, PIECE);
	size_t have = 0;
	int r = 0;
	while (r == 0 && !s->over) {
		r = socket_wait(fd, POLLIN, stop);
		ssize_t got = r < 0 ? 0 : recv(fd, bytes + have, PIECE - have, 0);
		if (r < 0 || (got < 0 && is_passing(errno)))
			continue;
		if (got <= 0) {
			r = -ECONNRESET;
			break;
		}
		have += (size_t)got;
		ssize_t used = pg_copy_take(s, bytes, have);
		r = used < 0 ? (int)used : 0;
		have -= used < 0 ? 0 : (size_t)used;
		memmove(bytes, bytes + (used < 0 ? 0 : used), have);
	}
	/* What it says unasked belongs to libpq, which will not see it: that connection is not to be used again. */
	if (r == -EPROTO || (r == 0 && have))
		r = -ECONNRESET;
	free(bytes);
	return r;
}

int pg_sql_copy(PGconn *conn, const char *sql, const struct pg_stop *stop, struct pg_copy *s)
{
	char refusal[300];
	int r = statement_send(PQsocket(conn), sql, stop);
	r = r < 0 ? r : answer_read(PQsocket(conn), s, stop);
	pg_copy_refusal(s, refusal, sizeof refusal);
	if (r == 0 && (*refusal || !s->copied))
		r = -EBADMSG;
	if (r == -ECONNRESET)
		pg_why_set(NULL, "the server ended the connection%s%s", *refusal ? ": " : "", refusal);
	else if (r == -EBADMSG)
		pg_why_set(NULL, "%s",
		           *refusal      ? refusal
		           : s->left_out ? "it has a row that is too long"
		                         : "it has a row that is not UTF-8");
	return r;
}
