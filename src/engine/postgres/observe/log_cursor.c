/* Reading logs forwards, from where one has got to, and backwards, from their end.
 *
 * The names are listed before any file is read: when a newer file was there by then, the end of an older one is its
 * end for good, because the server had stopped writing to it. */
#include "engine/postgres/observe/log_cursor.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/nolink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILES_MAX 4096
#define PIECE (256ul << 10)
#define ROOM (PG_LOG_LINE_MAX + PIECE)
#define NAME_BEGIN "postgresql-"
/* A line is written after it was made, and clocks are set: names and times of files are near the truth only. */
#define SLACK_MS 7200000LL

bool pg_log_line_time(struct str line, int64_t *ret_ms)
{
	static const char head[] = "{\"timestamp\":\"";
	size_t skip = sizeof head - 1;
	return line.n > skip + 23 && memcmp(line.p, head, skip) == 0 &&
	       clock_parse((struct str){line.p + skip, 23}, ret_ms);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

int pg_log_names_find(const char *directory, struct pg_log_names *ret_names)
{
	struct pg_log_names n = {must_calloc(FILES_MAX, sizeof *n.list), 0};
	DIR *d = nolink_opendir(directory);
	if (!d) {
		free(n.list);
		return -errno;
	}
	for (struct dirent *entry; n.count < FILES_MAX && (entry = readdir(d));) {
		struct str name = str_of(entry->d_name);
		if (str_starts(name, STR(NAME_BEGIN)) && str_ends(name, STR(".json")) && name.n < sizeof *n.list)
			memcpy(n.list[n.count++], name.p, name.n + 1);
	}
	closedir(d);
	qsort(n.list, n.count, sizeof *n.list, by_name);
	*ret_names = n;
	return 0;
}

int pg_log_file_open(const char *directory, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return nolink_open(path, O_RDONLY, 0);
}

/* --- forwards */

struct forward {
	struct pg_log_cursor *cursor;
	pg_log_take *take;
	void *ctx;
	char *bytes; /* ROOM of them; what is left of the last piece comes first */
	size_t n;
	bool passing; /* the line is too long: up to its end */
};

/* Whole lines of what was read so far. */
static int lines_take(struct forward *f)
{
	char *at = f->bytes, *end = f->bytes + f->n, *newline;
	int r = 0;
	while (r == 0 && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		if (!f->passing)
			r = f->take(f->ctx, (struct str){at, (size_t)(newline - at)});
		if (r != 0)
			break;
		f->cursor->offset += newline + 1 - at;
		f->passing = false;
		at = newline + 1;
	}
	f->n = (size_t)(end - at);
	if (f->n > PG_LOG_LINE_MAX || f->passing) {
		/* What is passed over counts at once; its end may be a later call's. */
		f->passing = true;
		f->cursor->offset += (int64_t)f->n;
		f->n = 0;
	}
	memmove(f->bytes, at, f->n);
	return r;
}

static int file_follow(const char *directory, struct forward *f)
{
	int fd = pg_log_file_open(directory, f->cursor->file), r = 0;
	off_t at = f->cursor->offset;
	char before = '\n';
	if (fd < 0)
		return 0;
	/* Not at the beginning of a line: the rest of one that is too long. */
	f->passing = at > 0 && pread(fd, &before, 1, at - 1) == 1 && before != '\n';
	f->n = 0;
	for (;;) {
		ssize_t got = pread(fd, f->bytes + f->n, ROOM - f->n, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		f->n += (size_t)got;
		at += got;
		r = lines_take(f);
		if (r != 0)
			break;
	}
	close(fd);
	return r;
}

int pg_log_follow(const char *directory, struct pg_log_cursor *cursor, pg_log_take *take, void *ctx)
{
	struct forward f = {.cursor = cursor, .take = take, .ctx = ctx};
	struct pg_log_names names;
	int r = pg_log_names_find(directory, &names);
	if (r < 0)
		return r;
	f.bytes = must_malloc(ROOM);
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		int order = strcmp(names.list[i], cursor->file);
		if (order < 0)
			continue;
		if (order > 0) {
			*cursor = (struct pg_log_cursor){.offset = 0};
			snprintf(cursor->file, sizeof cursor->file, "%s", names.list[i]);
		}
		r = file_follow(directory, &f);
	}
	free(f.bytes);
	free(names.list);
	return r;
}

/* --- backwards */

static bool read_whole(int fd, char *to, size_t n, off_t at)
{
	while (n > 0) {
		ssize_t got = pread(fd, to, n, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		n -= (size_t)got;
		at += got;
	}
	return true;
}

/* In `bytes` there is always the part of the file from `begin` on that was not taken yet: its first line may have
 * begun before, all others are whole. */
static int file_back(int fd, off_t size, char *bytes, pg_log_take *take, void *ctx)
{
	off_t begin = size;
	size_t kept = 0;
	bool passing = true; /* up to the last newline: the line behind it is being written */
	int r = 0;
	while (r == 0 && begin > 0) {
		size_t piece = begin < (off_t)PIECE ? (size_t)begin : PIECE;
		memmove(bytes + piece, bytes, kept);
		begin -= (off_t)piece;
		if (!read_whole(fd, bytes, piece, begin))
			return 0; /* shortened behind our back */
		char *end = bytes + piece + kept, *newline;
		while (r == 0 && (newline = memrchr(bytes, '\n', (size_t)(end - bytes)))) {
			if (!passing)
				r = take(ctx, (struct str){newline + 1, (size_t)(end - newline - 1)});
			passing = false;
			end = newline;
		}
		kept = (size_t)(end - bytes);
		passing |= kept > PG_LOG_LINE_MAX;
		if (passing)
			kept = 0;
	}
	if (r == 0 && !passing)
		r = take(ctx, (struct str){bytes, kept});
	return r;
}

/* When it was opened, by its name: postgresql-20261115-020647.json */
static int64_t opened_ms(const char *name)
{
	const char *t = name + sizeof NAME_BEGIN - 1;
	char text[32];
	int64_t ms = 0;
	snprintf(text, sizeof text, "%.8sT%.6sZ", t, strlen(t) > 9 ? t + 9 : "");
	return clock_parse(str_of(text), &ms) ? ms : 0;
}

int pg_log_back(const char *directory, int64_t from_ms, int64_t to_ms, pg_log_take *take, void *ctx)
{
	struct pg_log_names names;
	int r = pg_log_names_find(directory, &names);
	if (r < 0)
		return r;
	char *bytes = must_malloc(ROOM);
	for (size_t i = names.count; r == 0 && i-- > 0;) {
		struct stat st;
		if (opened_ms(names.list[i]) - SLACK_MS > to_ms)
			continue;
		int fd = pg_log_file_open(directory, names.list[i]);
		if (fd < 0)
			continue;
		if (fstat(fd, &st) == 0 && st.st_mtime * INT64_C(1000) + SLACK_MS >= from_ms)
			r = file_back(fd, st.st_size, bytes, take, ctx);
		close(fd);
	}
	free(bytes);
	free(names.list);
	return r;
}
