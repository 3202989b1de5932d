/* The Range header of a request for a body whose length is known: which of its bytes are asked for. */
#ifndef STEWARD_CALL_RANGE_H
#define STEWARD_CALL_RANGE_H

#include "base/str.h"

enum range_kind {
	RANGE_ALL,     /* there is none that is served: the whole body, with 200 */
	RANGE_PART,    /* 206 */
	RANGE_OUTSIDE, /* 416: none of the body's bytes is meant */
};

/* [first, last], both within a body of `size` bytes. What RFC 9110 lets a server ignore is ignored: other units,
 * several ranges (whose answer would be a body of parts), and what is no range at all. */
enum range_kind range_parse(struct str header, uint64_t size, uint64_t *ret_first, uint64_t *ret_last);
/* Whether If-Range lets a Range be served: it is missing, or is our entity tag. A weak tag, another's, or a date is not
 * ours, and the client gets the whole body, because what it has may be of another. */
bool range_is_of(struct str if_range, struct str etag);

#endif
