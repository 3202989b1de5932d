/* Large answers, compressed for clients that can read it. */
#ifndef STEWARD_CALL_COMPRESS_H
#define STEWARD_CALL_COMPRESS_H

#include "http/http.h"

#define COMPRESS_LEAST 4096u         /* bytes: below, the packets are the same */
#define COMPRESS_ON_LOOP (64u << 10) /* more is a worker's work: a loop does so much in a fraction of a millisecond */

/* Whether the request's Accept-Encoding takes gzip. */
bool accepts_gzip(const struct request *r);

/* How many bytes response_compress() would have to look at; 0: it has nothing to do. */
size_t response_compressible(const struct request *r);
/* Replaces the body of a complete answer by the same in gzip, unless that is no shorter. Call it last. */
void response_compress(struct request *r);

#endif
