/* Texts that are costly to make, kept in the form in which they leave. There is no lock here: each thread that makes
 * such texts has a table of its own.
 *
 * A text has a name, and a source: what it was made from (the bytes of a stored document, the number of a snapshot).
 * The two together must say all that the text depends on. So nobody has to tell the table that something has changed,
 * and nobody can forget to: whoever asks brings the source as it is now, and gets a text that was made from just that,
 * or none. A new text takes the place of the older one of its name.
 *
 * The table is bounded in bytes. When it is full, that text of a few goes whose owner (an organization) has the most
 * there: one that reads a thousand clusters makes room among its own. */
#ifndef STEWARD_BASE_KEPT_H
#define STEWARD_BASE_KEPT_H

#include "base/str.h"

struct kept;

struct kept *kept_new(size_t bytes_max);
void kept_free(struct kept *k); /* accepts NULL */

/* Borrowed until the next kept_put(). False: there is none. */
must_check bool kept_get(const struct kept *k, struct str name, struct str source, struct str *ret_text);
/* Copies all three. Nothing happens with a text that would take more than an eighth of the room. */
void kept_put(struct kept *k, uint64_t owner, struct str name, struct str source, struct str text);

/* The bytes that are in use, for tests. */
size_t kept_bytes(const struct kept *k);

#endif
