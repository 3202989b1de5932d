/* Logs: what the databases write down, their audit log among it. */
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

struct engine_log_ops {
	/* Lines of a log as a file descriptor to read from; the caller closes it. From any thread at any time. */
	int (*open)(struct engine *e, const struct engine_log *log, int *ret_fd);
	/* Whether the databases can write an audit log; if not, what to do about it. */
	int (*audit_check)(struct engine *e, const char **ret_why);
};

#endif
