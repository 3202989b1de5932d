/* Moments as people type them. */
#ifndef STEWARD_CLI_MOMENT_H
#define STEWARD_CLI_MOMENT_H

#include "base/str.h"

/* "2026-11-16T03:00:00Z" and other forms of clock_parse(); "90s", "15m", "2h", "3d", with "ago" or without; "10 minutes
 * ago"; "now". Negative, after a message that names the option. */
must_check int moment_parse(const char *option, const char *text, int64_t now_ms, int64_t *ret_ms);

#endif
