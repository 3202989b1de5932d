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

struct engine_log_ops {
	/* Lines of a log as a file descriptor to read from; the caller closes it. From any thread at any time. */
	int (*open)(struct engine *e, const struct engine_log *log, int *ret_fd);
	/* Logins and refusals of clients, newest first, in the arena; the service's own are none. Reads all that is
	 * kept of the time, so not for a loop. -ENOENT: no such node. */
	int (*logins)(struct engine *e, const struct engine_logins *wanted, struct arena *a,
	              struct engine_login **ret_list, size_t *ret_count);
	/* Whether the databases can write an audit log; if not, what to do about it. */
	int (*audit_check)(struct engine *e, const char **ret_why);
};

#endif
