/* Logs: what the databases write down, their audit log among it, and who has come to them. */
#ifndef STEWARD_ENGINE_LOGS_H
#define STEWARD_ENGINE_LOGS_H

#include "engine/core.h"

enum engine_log_kind { ENGINE_LOG_SERVER, ENGINE_LOG_AUDIT };

struct engine_log {
	const char *cluster_id, *node;
	enum engine_log_kind kind;
	int64_t from_ms, to_ms;
	/* Since when logins, and statements refused for want of a right, belong to the audit log; 0: they do not. */
	int64_t logins_ms, denials_ms;
	bool redact; /* nothing of what clients sent; not of the audit log */
};

/* Somebody was let in, or refused. */
struct engine_login {
	int64_t at_ms;
	bool success, has_address;
	struct ip address;
	struct str user, database; /* may be empty: one that was refused before it said them */
	struct str reason;         /* of a refusal */
	struct str line;           /* what the log says of it: how it was known, by which rule, over which TLS */
};

enum engine_login_result { ENGINE_LOGIN_ANY, ENGINE_LOGIN_SUCCESS, ENGINE_LOGIN_REFUSAL };

struct engine_logins {
	const char *cluster_id, *node;
	int64_t from_ms, to_ms; /* the end does not belong to it */
	size_t max;             /* the newest are taken */
	enum engine_login_result result;
	const struct ip *address; /* NULL: from anywhere */
	int64_t end_us;           /* on the monotonic clock: what was not read by then is left out; 0: all is read */
	bool *ret_cut;            /* becomes true when something was left out so; may be NULL */
};

/* A place in a node's log. `position` counts all bytes that were passed since whoever follows it began. A place may lie
 * within a long line; `rest` says then what the rest of that line is. All zero: before the oldest line that is kept. */
struct engine_log_place {
	char file[64];
	int64_t offset, position;
	int rest;
};

/* One line with its newline, or a piece of a long one. */
struct engine_log_line {
	enum engine_log_kind kind;
	struct str text;
	int64_t position; /* of its first byte */
	int64_t at_ms;    /* 0: of a further piece, which has no time of its own */
	bool ends;        /* with it the line is over */
};
#define ENGINE_LOG_PIECE (512ul << 10)
/* 0: taken. 1: there is no room; the next call begins with it. Negative ends the reading. */
typedef int engine_log_take(void *ctx, const struct engine_log_line *line);

struct engine_log_range {
	struct engine_log_place from, to;
	bool fixed; /* up to `to`, whatever take() says; else `to` is set to where the reading ended */
	/* Set by follow(): something between `from` and `to` is no more kept; more may be there already. */
	bool lost, more;
};

struct engine_log_ops {
	/* Lines of a log as a file descriptor to read from; the caller closes it. From any thread at any time. */
	int (*open)(struct engine *e, const struct engine_log *log, int *ret_fd);
	/* Logins and refusals of clients, newest first, in the arena; the service's own are none. Reads all that is
	 * kept of the time, so not for a loop. -ENOENT: no such node. */
	int (*logins)(struct engine *e, const struct engine_logins *wanted, struct arena *a,
	              struct engine_login **ret_list, size_t *ret_count);
	/* Lines of both kinds after a place, oldest first, each once, also across the files that a log is kept in; of
	 * `log` all but kind and times counts. A line that is being written is left for the next call. The same range
	 * gives the same lines again. Memory is bounded. From any thread, not for a loop. -ENOENT: no such node. */
	int (*follow)(struct engine *e, const struct engine_log *log, struct engine_log_range *range,
	              engine_log_take *take, void *ctx);
	/* Behind the last whole line that is there; its position is 0. */
	int (*end)(struct engine *e, const struct engine_log *log, struct engine_log_place *ret_place);
	/* Whether the databases can write an audit log; if not, what to do about it. */
	int (*audit_check)(struct engine *e, const char **ret_why);
};

#endif
