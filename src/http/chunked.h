/* The strict, incremental decoder of chunked bodies. llhttp's is not used for them: the packaged version takes other
 * bytes where a line feed belongs. */
#ifndef STEWARD_HTTP_CHUNKED_H
#define STEWARD_HTTP_CHUNKED_H

#include "base/buf.h"

struct chunked {
	int state;
	uint64_t left;      /* of the chunk under way */
	unsigned digits;    /* of its size */
	size_t overhead;    /* extensions and trailers so far: bounded */
	struct buf trailer; /* the line under way */
};

void chunked_free(struct chunked *d);

/* Appends what it decodes to `body`. 1: the body has ended; 0: more is needed; -EBADMSG: malformed; -EFBIG: past
 * `limit`. *ret_used says how many bytes of the input belong to the body. */
int chunked_decode(struct chunked *d, struct str in, size_t limit, struct buf *body, size_t *ret_used);

#endif
