/* Recordings: every exchange as one line of JSON, with the secrets taken out.
 *
 * {"method","url","status","requestHeaders":{},"requestBody","responseHeaders":{},"responseBody"}: a JSON body is JSON,
 * any other text a string, bytes that are no text base64, no body (or a stream, or more than RECORD_BODY_MAX) null. */
#ifndef STEWARD_GATE_RECORD_H
#define STEWARD_GATE_RECORD_H

#include "http/http.h"

#define RECORD_BODY_MAX (1u << 20)
#define RECORD_REDACTED "(redacted)"
#define RECORD_LINK "/feeds/" /* what follows it in a URL is a secret, wherever it stands in an answer */

struct recorder;

/* Appends to the file, which is made with mode 0600. Failure: a sentence to stderr, negative. */
must_check int record_open(const char *path, struct recorder **ret_recorder);
void record_close(struct recorder *rec); /* accepts NULL */
/* For the edge's done hook: any loop, any time between record_open() and record_close(). NULL records nothing. */
void record_exchange(struct recorder *rec, const struct request *r);

/* Whether a JSON field, form field or query parameter of that name is kept out of recordings when it holds a string. */
bool record_is_secret(struct str name);

#endif
