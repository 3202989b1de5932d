/* What a line of a server's JSON log is: by marks, which are looked for as bytes, so that no line has to be parsed. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_LINE_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_LINE_H

#include "base/str.h"

#define PG_LOG_OVERLAP 64 /* longer than any mark: of a line that is read in pieces */

/* Bits, to be joined for all pieces of a line. */
unsigned pg_log_marks(const char *p, size_t n);
/* Whether it is of the service itself: it comes or goes over the unix socket, or has the server read its files
 * again. */
bool pg_log_is_own(unsigned marks);
/* Whether it belongs to the audit log, of which logins and denials are a part since those times (0: they are not). */
bool pg_log_is_audit(unsigned marks, int64_t at_ms, int64_t logins_ms, int64_t denials_ms);

/* The field from which on nothing of the line may be given; NULL: all may. */
const char *pg_log_cut_field(unsigned marks, bool redact);
/* How much of the line's beginning is given, and what follows in the place of the rest, with the newline; *ret_rest is
 * NULL where the field was not found, and nothing may be given. Static. */
size_t pg_log_cut(struct str line, const char *field, const char **ret_rest);

#endif
