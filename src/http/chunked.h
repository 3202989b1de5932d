/* A strict, incremental decoder of chunked bodies. llhttp's own decoder is not used: the packaged version accepts other
 * bytes in place of a line feed. */
#ifndef STEWARD_HTTP_CHUNKED_H
#define STEWARD_HTTP_CHUNKED_H

#include "base/buf.h"

struct chunked {
	int state;
	uint64_t left;      /* of the current chunk */
	unsigned digits;    /* of its size */
	size_t overhead;    /* bytes of extensions and trailers so far: bounded */
	struct buf trailer; /* the current line */
};

void chunked_free(struct chunked *d);

/* Appends what it decodes to `body`. 1: the body has ended; 0: more input is needed; -EBADMSG: malformed; -EFBIG:
 * larger than `limit`. *ret_used says how many bytes of the input belong to the body. */
int chunked_decode(struct chunked *d, struct str in, size_t limit, struct buf *body, size_t *ret_used);

#endif
