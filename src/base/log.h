/* Logging to stderr: one line per event, as text for people or as JSON. Secrets never reach this module. */
#ifndef STEWARD_BASE_LOG_H
#define STEWARD_BASE_LOG_H

#include "base/buf.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Call before the threads start. `json`: one JSON object per line; otherwise text. */
void log_setup(enum log_level level, bool json);
must_check bool log_level_parse(struct str text, enum log_level *ret_level);
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *format, ...) printf_like(2, 3);
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

/* One served request. */
struct log_request {
	struct str id, method, path, caller, operation, peer;
	int status;
	int64_t micros;
	size_t bytes;
};
void log_access(const struct log_request *r);

#endif
