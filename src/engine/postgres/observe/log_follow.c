/* A node's log after a place, for whoever sends it on. Both logs are in the same files, so that one reading gives both,
 * and a place is a byte of a file. Lines that are long are given in pieces: what a line is can be known at its end
 * only, so a long one is read twice, and a place within it says what it is.
 *
 * The names are listed before any file is read: when a newer file was there by then, the end of an older one is its end
 * for good, and a line without an end is one that a crash has cut off. It is passed over, as in what is downloaded. */
#include "engine/postgres/observe/log_follow.h"

#include "base/arena.h"
#include "engine/postgres/observe/log_cursor.h"
#include "engine/postgres/observe/log_line.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MAX (32ll << 20) /* that one call reads at most */
#define NO_LINE 2

/* What the rest of a long line is: engine_log_place.rest. */
enum rest { REST_NONE, REST_SERVER, REST_AUDIT, REST_DROPPED };

struct following {
	const struct engine_log *log;
	struct engine_log_range *range;
	struct engine_log_place at;
	engine_log_take *take;
	void *ctx;
	int fd;
	bool finished; /* the server has stopped writing to the file */
	char *bytes;   /* ENGINE_LOG_PIECE of them, read from at.offset on */
	size_t n, used;
	int64_t looked;
};

/* A line, or the beginning of one. */
struct seen {
	unsigned marks;
	bool timed;
	int64_t at_ms;
};

static bool is_over(const struct following *f)
{
	const struct engine_log_place *to = &f->range->to;
	int order = strcmp(f->at.file, to->file);
	return f->range->fixed ? order > 0 || (order == 0 && f->at.offset >= to->offset) : f->looked >= LOOK_MAX;
}

static void pass(struct following *f, size_t n)
{
	f->used += n;
	f->at.offset += (int64_t)n;
	f->at.position += (int64_t)n;
	f->looked += (int64_t)n;
}

/* 0: given. 1: whoever takes has no room. */
static int give(struct following *f, enum engine_log_kind kind, struct str text, int64_t at_ms, bool ends)
{
	const struct engine_log_line line = {
	        .kind = kind, .text = text, .position = f->at.position, .at_ms = at_ms, .ends = ends};
	int r = f->take(f->ctx, &line);
	f->range->more |= r == 1;
	return r;
}

static enum rest rest_of(const struct following *f, const struct seen *s)
{
	if (!s->timed || pg_log_is_own(s->marks))
		return REST_DROPPED;
	return pg_log_is_audit(s->marks, s->at_ms, f->log->logins_ms, f->log->denials_ms) ? REST_AUDIT : REST_SERVER;
}

static int give_cut(struct following *f, enum engine_log_kind kind, struct str line, const char *field, int64_t at_ms)
{
	const char *rest;
	size_t n = pg_log_cut(line, field, &rest);
	if (!rest)
		return 0;
	size_t more = strlen(rest);
	char *text = must_malloc(n + more);
	memcpy(text, line.p, n);
	memcpy(text + n, rest, more);
	int r = give(f, kind, (struct str){text, n + more}, at_ms, true);
	free(text);
	return r;
}

/* The first piece of a line or, where it is short, all of it. */
static int line_begin(struct following *f, struct str piece, const struct seen *s, bool ends)
{
	enum rest what = rest_of(f, s);
	enum engine_log_kind kind = what == REST_AUDIT ? ENGINE_LOG_AUDIT : ENGINE_LOG_SERVER;
	const char *field = pg_log_cut_field(s->marks, f->log->redact && what == REST_SERVER);
	int r = 0;
	if (what != REST_DROPPED)
		r = field ? give_cut(f, kind, piece, field, s->at_ms) : give(f, kind, piece, s->at_ms, ends);
	if (r != 0)
		return r;
	pass(f, piece.n);
	f->at.rest = ends ? REST_NONE : field ? REST_DROPPED : (int)what;
	return 0;
}

/* A further piece of a long line. */
static int line_go_on(struct following *f, struct str piece, bool ends)
{
	int r = f->at.rest == REST_DROPPED
	                ? 0
	                : give(f, f->at.rest == REST_AUDIT ? ENGINE_LOG_AUDIT : ENGINE_LOG_SERVER, piece, 0, ends);
	if (r != 0)
		return r;
	pass(f, piece.n);
	if (ends)
		f->at.rest = REST_NONE;
	return 0;
}

/* How much of a long line is given at once: no character is cut, and something is left before its newline. */
static size_t piece_end(struct str full)
{
	size_t n = full.n - 1;
	for (unsigned i = 0; i < 3 && ((unsigned char)full.p[n] & 0xc0) == 0x80; i++)
		n--;
	return n;
}

/* Of a line that does not end in what was read: its marks, from all of it. NO_LINE: it has no end yet. */
static int line_look_ahead(struct following *f, struct str begin, unsigned *marks)
{
	char *piece = must_malloc(ENGINE_LOG_PIECE);
	size_t kept = begin.n < PG_LOG_OVERLAP ? begin.n : PG_LOG_OVERLAP;
	off_t at = f->at.offset + (off_t)begin.n;
	int r = NO_LINE;
	memcpy(piece, begin.p + begin.n - kept, kept);
	while (r == NO_LINE) {
		ssize_t got = pread(f->fd, piece + kept, ENGINE_LOG_PIECE - kept, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			r = -errno;
		if (got <= 0)
			break;
		const char *newline = memchr(piece + kept, '\n', (size_t)got);
		size_t n = newline ? (size_t)(newline - piece) : kept + (size_t)got;
		*marks |= pg_log_marks(piece, n);
		r = newline ? 0 : NO_LINE;
		at += got;
		kept = n < PG_LOG_OVERLAP ? n : PG_LOG_OVERLAP;
		memmove(piece, piece + n - kept, kept);
	}
	free(piece);
	return r;
}

/* The next line or piece. NO_LINE: the file has no more now. */
static int line_next(struct following *f)
{
	struct str left = {f->bytes + f->used, f->n - f->used};
	const char *newline = left.n ? memchr(left.p, '\n', left.n) : NULL;
	if (newline)
		left.n = (size_t)(newline + 1 - left.p);
	else if (f->used || left.n < ENGINE_LOG_PIECE)
		return NO_LINE;
	else
		left.n = piece_end(left);
	if (f->at.rest)
		return line_go_on(f, left, newline != NULL);
	struct seen s = {.marks = pg_log_marks(left.p, left.n)};
	s.timed = pg_log_line_time(left, &s.at_ms);
	int r = newline ? 0 : line_look_ahead(f, left, &s.marks);
	return r == 0 ? line_begin(f, left, &s, newline != NULL) : r;
}

/* More of the file behind what was used. */
static int fill(struct following *f)
{
	size_t n = 0;
	f->used = f->n = 0;
	while (n < ENGINE_LOG_PIECE) {
		ssize_t got = pread(f->fd, f->bytes + n, ENGINE_LOG_PIECE - n, f->at.offset + (off_t)n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	f->n = n;
	return 0;
}

/* What a crash has left at the end of a file that is no more written. */
static void tail_pass(struct following *f)
{
	struct stat st;
	if (fstat(f->fd, &st) == 0 && st.st_size > f->at.offset)
		pass(f, (size_t)(st.st_size - f->at.offset));
	f->at.rest = REST_NONE;
}

/* 0: to its end. 1: over. */
static int file_follow(struct following *f)
{
	for (;;) {
		int r = fill(f);
		size_t before = f->used;
		while (r == 0 && !is_over(f))
			r = line_next(f);
		if (is_over(f) || r == 1) {
			f->range->more = true;
			return 1;
		}
		if (r != NO_LINE)
			return r;
		if (f->used == before) { /* not a single line is there */
			if (f->finished)
				tail_pass(f);
			return 0;
		}
	}
}

/* The files from the place on. What lies between two places in files that are gone is a gap of one byte. */
static int files_follow(struct following *f, const char *directory, const struct pg_log_names *names)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < names->count && !is_over(f); i++) {
		int order = strcmp(names->list[i], f->at.file);
		if (order < 0)
			continue;
		if (order > 0) {
			bool gap = f->at.file[0] && (i == 0 || strcmp(names->list[i - 1], f->at.file) < 0);
			f->range->lost |= gap;
			f->at = (struct engine_log_place){.position = f->at.position + gap};
			snprintf(f->at.file, sizeof f->at.file, "%s", names->list[i]);
			if (is_over(f))
				break;
		}
		f->fd = pg_log_file_open(directory, f->at.file);
		if (f->fd < 0 && errno != ENOENT)
			return -errno;
		if (f->fd < 0) { /* removed meanwhile */
			f->range->lost = true;
			f->at.position++;
			continue;
		}
		f->finished = i + 1 < names->count;
		r = file_follow(f);
		close(f->fd);
	}
	return r < 0 ? r : 0;
}

int pg_log_range(const char *directory, const struct engine_log *log, struct engine_log_range *range,
                 engine_log_take *take, void *ctx)
{
	struct following f = {.log = log, .range = range, .at = range->from, .take = take, .ctx = ctx};
	struct pg_log_names names;
	range->lost = range->more = false;
	int r = pg_log_names_find(directory, &names);
	if (r < 0)
		return r;
	f.bytes = must_malloc(ENGINE_LOG_PIECE);
	r = files_follow(&f, directory, &names);
	free(f.bytes);
	free(names.list);
	if (r < 0)
		return r;
	if (!range->fixed)
		range->to = f.at;
	else if (!is_over(&f))
		range->lost = true;
	return 0;
}
