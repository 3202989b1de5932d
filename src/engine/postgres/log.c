/* A node's log between two times, as a stream: a thread reads the server's JSON log files in the order of their names,
 * which begin with the time they were opened, and sends the lines through a socket. A line can be as long as a
 * statement, which is a user's to say: a long one is read twice, first to know what it is, and never held. When the
 * reader closes its end, the thread ends. Redacted, lines of clients' sessions say who and when, and not what:
 * PostgreSQL puts values and whole statements into them. "audit" is what pgaudit wrote, with the logins and refusals
 * that the caller wants there; "postgres" is everything else. That the service itself comes and goes, over the unix
 * socket, is in neither. */
#include "engine/postgres/log_cursor.h"
#include "engine/postgres/postgres.h"

#include "base/arena.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILES_MAX 4096
#define PIECE 65536
#define OVERLAP 64 /* longer than any mark */

struct reading {
	struct engine *engine;
	char dir[PG_PATH];
	int64_t from_ms, to_ms, logins_ms, denials_ms;
	bool audit, redact;
	int fd;
};

/* The quotes of a value are escaped, so what is looked for is a field and nothing that a user wrote. Class 28 is who
 * somebody is, 42501 a right that is missing. */
enum mark {
	AUDIT = 1,
	CONTEXT = 2,
	LOGIN = 4,
	DENIAL = 8,
	SESSION = 16,
	OWN = 32,
	COMING = 64,
	DETAIL = 128,
	SECRET = 256
};
static const struct {
	const char *text;
	enum mark mark;
} marks[] = {{",\"message\":\"AUDIT: ", AUDIT},
             {",\"context\":\"", CONTEXT},
             {",\"message\":\"connection auth", LOGIN},
             {",\"message\":\"disconnection: ", LOGIN},
             {",\"state_code\":\"28", LOGIN},
             {",\"state_code\":\"42501\"", DENIAL},
             {",\"user\":\"", SESSION},
             {",\"remote_host\":\"[local]\"", OWN},
             {",\"message\":\"connection ", COMING},
             {",\"message\":\"replication connection ", COMING},
             {",\"message\":\"disconnection: ", COMING},
             {",\"detail\":\"", DETAIL},
             {"ldapbindpasswd=", SECRET}};

static unsigned marks_in(const char *p, size_t n)
{
	unsigned found = 0;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (memmem(p, n, marks[i].text, strlen(marks[i].text)))
			found |= marks[i].mark;
	return found;
}

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
		l->marks |= marks_in(piece, n);
		if (c == '\n')
			return true;
		memmove(piece, piece + n - OVERLAP, OVERLAP);
		n = OVERLAP;
	}
	return false;
}

static bool line_is_wanted(const struct reading *t, const struct line *l)
{
	return l->timed && l->at_ms >= t->from_ms && l->at_ms < t->to_ms && !(l->marks & OWN && l->marks & COMING);
}

static bool line_is_audit(const struct reading *t, const struct line *l)
{
	/* pgaudit hides its context; what a user's code raises under its name has one. */
	if (l->marks & AUDIT)
		return !(l->marks & CONTEXT);
	return (t->logins_ms && l->at_ms >= t->logins_ms && l->marks & LOGIN) ||
	       (t->denials_ms && l->at_ms >= t->denials_ms && l->marks & DENIAL);
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

/* Up to that field, which says "redacted", and nothing of what comes after it. */
static bool line_send_cut(const struct reading *t, int fd, char *piece, const struct line *l, const char *field)
{
	char begin[32], rest[64];
	size_t n = l->n < PIECE ? l->n : PIECE;
	snprintf(begin, sizeof begin, ",\"%s\":\"", field);
	snprintf(rest, sizeof rest, "%sredacted\"}\n", begin);
	if (l->n > PIECE && pread(fd, piece, PIECE, l->from) != PIECE)
		return true; /* shortened behind our back */
	const char *at = memmem(piece, n, begin, strlen(begin));
	return !at || (send_all(t->fd, piece, (size_t)(at - piece)) && send_all(t->fd, rest, strlen(rest)));
}

static bool line_give(const struct reading *t, int fd, char *piece, const struct line *l)
{
	/* Of a refusal the server tells the rule that it met, with the password of the directory in it. */
	if (l->marks & LOGIN && l->marks & DETAIL && l->marks & SECRET)
		return line_send_cut(t, fd, piece, l, "detail");
	/* What stands before the message says nothing of data; all that comes after it may. */
	if (t->redact && l->marks & SESSION && !(l->marks & LOGIN))
		return line_send_cut(t, fd, piece, l, "message");
	return line_send(t, fd, piece, l);
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
		if (line_is_wanted(t, &l) && line_is_audit(t, &l) == t->audit)
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
