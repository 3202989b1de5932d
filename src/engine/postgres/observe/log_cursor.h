/* Lines of a server's log, across the files that it is kept in. Their names begin with the time at which they were
 * opened, and the server writes into the newest alone. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_CURSOR_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_CURSOR_H

#include "base/str.h"

#define PG_LOG_LINE_MAX (1ul << 20) /* longer lines are passed over */

/* One line, without its newline; borrowed. Another value than 0 ends the reading, which returns it. */
typedef int pg_log_take(void *ctx, struct str line);

/* The line after those that were taken. All zero: the oldest line that is kept. */
struct pg_log_cursor {
	char file[64];
	int64_t offset;
};

/* All whole lines from the cursor on, oldest first; it moves past each that was taken (take() returned 0). A line that
 * is being written is left for the next call; a file that was removed meanwhile is passed over. Each line is given
 * once, also when the server begins another file during the call. */
must_check int pg_log_follow(const char *directory, struct pg_log_cursor *cursor, pg_log_take *take, void *ctx);

/* The lines that were there when it was called, newest first, of all files that may have some of that time. Memory is
 * bounded whatever the size of a file. */
must_check int pg_log_back(const char *directory, int64_t from_ms, int64_t to_ms, pg_log_take *take, void *ctx);

/* The names of the files, oldest first; the caller frees the list. */
struct pg_log_names {
	char (*list)[64];
	size_t count;
};
must_check int pg_log_names_find(const char *directory, struct pg_log_names *ret_names);
/* One of them, to be read; negative: it is not there any more. */
int pg_log_file_open(const char *directory, const char *name);

/* When a line of the JSON log was written. */
must_check bool pg_log_line_time(struct str line, int64_t *ret_ms);

#endif
