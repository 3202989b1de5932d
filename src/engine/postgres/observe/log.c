/* A node's log between two times, as a stream: a thread reads the server's JSON log files in the order of their names,
 * which begin with the time they were opened, and sends the lines through a socket. A line can be as long as a
 * statement, which is a user's to say: a long one is read twice, first to know what it is, and never held. When the
 * reader closes its end, the thread ends. Redacted, lines of clients' sessions say who and when, and not what:
 * PostgreSQL puts values and whole statements into them. "audit" is what pgaudit wrote, with the logins and refusals
 * that the caller wants there; "postgres" is everything else. That the service itself comes and goes, over the unix
 * socket, is in neither. */
#include "engine/postgres/observe/log.h"

#include "base/arena.h"
#include "base/nolink.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/work.h"
#include "engine/postgres/observe/log_cursor.h"
#include "engine/postgres/observe/log_line.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILES_MAX 4096
#define PIECE 65536

struct reading {
	struct engine *engine;
	char dir[PG_PATH];
	int64_t from_ms, to_ms, logins_ms, denials_ms;
	bool audit, redact;
	int fd;
};

struct line {
	off_t from;
	size_t n;
	bool timed;
	int64_t at_ms;
	unsigned marks;
};

/* The next whole line. One of at most PIECE bytes is in `piece` afterwards. */
static bool line_next(FILE *f, char *piece, struct line *l)
{
	size_t n = 0;
	*l = (struct line){.from = l->from + (off_t)l->n};
	for (int c; (c = getc_unlocked(f)) != EOF;) {
		piece[n++] = (char)c;
		l->n++;
		if (c != '\n' && n < PIECE)
			continue;
		if (l->n == n)
			l->timed = pg_log_line_time((struct str){piece, n}, &l->at_ms);
		l->marks |= pg_log_marks(piece, n);
		if (c == '\n')
			return true;
		memmove(piece, piece + n - PG_LOG_OVERLAP, PG_LOG_OVERLAP);
		n = PG_LOG_OVERLAP;
	}
	return false;
}

static bool line_is_wanted(const struct reading *t, const struct line *l)
{
	return l->timed && l->at_ms >= t->from_ms && l->at_ms < t->to_ms && !pg_log_is_own(l->marks);
}

static bool send_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static bool line_send(const struct reading *t, int fd, char *piece, const struct line *l)
{
	if (l->n <= PIECE)
		return send_all(t->fd, piece, l->n);
	for (size_t done = 0; done < l->n;) {
		size_t most = l->n - done < PIECE ? l->n - done : PIECE;
		ssize_t got = pread(fd, piece, most, l->from + (off_t)done);
		if (got <= 0 || !send_all(t->fd, piece, (size_t)got))
			return false;
		done += (size_t)got;
	}
	return true;
}

static bool line_give(const struct reading *t, int fd, char *piece, const struct line *l)
{
	const char *field = pg_log_cut_field(l->marks, t->redact), *rest;
	if (!field)
		return line_send(t, fd, piece, l);
	if (l->n > PIECE && pread(fd, piece, PIECE, l->from) != PIECE)
		return true; /* shortened behind our back */
	size_t n = pg_log_cut((struct str){piece, l->n < PIECE ? l->n : PIECE}, field, &rest);
	return !rest || (send_all(t->fd, piece, n) && send_all(t->fd, rest, strlen(rest)));
}

/* False: the reader is gone. */
static bool file_send(const struct reading *t, const char *name)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/%s", t->dir, name);
	int fd = nolink_open(path, O_RDONLY, 0);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return true;
	}
	char *piece = must_malloc(PIECE);
	struct line l = {.n = 0};
	bool go_on = true;
	while (go_on && line_next(f, piece, &l))
		if (line_is_wanted(t, &l) && pg_log_is_audit(l.marks, l.at_ms, t->logins_ms, t->denials_ms) == t->audit)
			go_on = line_give(t, fd, piece, &l);
	free(piece);
	fclose(f);
	return go_on;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void *reading_thread(void *arg)
{
	struct reading *t = arg;
	struct engine *e = t->engine;
	char(*names)[64] = must_calloc(FILES_MAX, sizeof *names);
	size_t count = 0;
	DIR *d = nolink_opendir(t->dir);
	for (struct dirent *entry; d && count < FILES_MAX && (entry = readdir(d));)
		if (str_ends(str_of(entry->d_name), STR(".json")))
			snprintf(names[count++], sizeof *names, "%.63s", entry->d_name);
	if (d)
		closedir(d);
	qsort(names, count, sizeof *names, by_name);
	bool go_on = true;
	for (size_t i = 0; i < count && go_on; i++)
		go_on = file_send(t, names[i]);
	close(t->fd);
	free(names);
	free(t);
	pg_engine_work_done(e);
	return NULL;
}

int pg_log_stream(struct pg_cluster *c, const struct engine_log *log, int *ret_fd)
{
	pthread_mutex_lock(&c->lock);
	struct pg_node *n = pg_cluster_node(c, log->node);
	struct reading *t = n ? must_calloc(1, sizeof *t) : NULL;
	if (n)
		pg_node_path(c, n, "log", t->dir);
	pthread_mutex_unlock(&c->lock);
	bool audit = log->kind == ENGINE_LOG_AUDIT;
	if (!n)
		return -ENOENT;
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		free(t);
		return -errno;
	}
	shutdown(ends[0], SHUT_WR);
	/* A reader that stops reading must not keep stop() from ending. */
	struct timeval patience = {.tv_sec = 60};
	setsockopt(ends[1], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	t->engine = c->engine;
	t->from_ms = log->from_ms;
	t->to_ms = log->to_ms;
	t->logins_ms = log->logins_ms;
	t->denials_ms = log->denials_ms;
	t->audit = audit;
	t->redact = log->redact && !audit;
	t->fd = ends[1];
	int r = pg_engine_work(c->engine, reading_thread, t);
	if (r < 0) {
		close(ends[0]);
		close(ends[1]);
		free(t);
		return r;
	}
	*ret_fd = ends[0];
	return 0;
}
