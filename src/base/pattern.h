/* Regular expressions from people who are not trusted: matched in time that is bounded by the length of the text
 * times that of the expression, whatever either of them is. The C library's can take hours, or all memory.
 *
 * Text; "." (any character); "[a-z_]", "[^/]"; "\d", "\w", "\s" and their opposites; "(...)", "|"; "*", "+", "?",
 * "{2}", "{2,}", "{2,5}"; "^" and "$". A backslash takes the meaning from any other sign. Without references to
 * groups, and without looking ahead, which is what makes others slow. */
#ifndef STEWARD_BASE_PATTERN_H
#define STEWARD_BASE_PATTERN_H

#include "base/arena.h"

struct pattern;

#define PATTERN_BYTES 256

/* -EINVAL: *ret_why says what is wrong with it; static. */
must_check int pattern_parse(struct str text, struct arena *a, const struct pattern **ret_pattern,
                             const char **ret_why);
/* Whether the text has it anywhere. */
must_check bool pattern_found(const struct pattern *p, struct str text);
/* Whether all of the text is it. */
must_check bool pattern_is(const struct pattern *p, struct str text);
/* How many bytes from the beginning of the text it can have: ret_ends[n] for n up to text.n. */
void pattern_ends(const struct pattern *p, struct str text, bool *ret_ends);

#endif
