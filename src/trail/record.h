/* Recordings: every exchange as one line of JSON, without the secrets.
 *
 * {"method","url","status","requestHeaders":{},"requestBody","responseHeaders":{},"responseBody"}: a JSON body is JSON,
 * any other text a string, other bytes base64, a stream "(stream)"; no body, or more than RECORD_BODY_MAX, is null. */
#ifndef STEWARD_TRAIL_RECORD_H
#define STEWARD_TRAIL_RECORD_H

#include "http/http.h"

#define RECORD_BODY_MAX (1u << 20)
#define RECORD_REDACTED "(redacted)"
/* What follows one of them in a URL is a secret, wherever it stands in an answer. */
#define RECORD_LINK "/feeds/"
#define RECORD_DOWNLOAD "/downloads/"

struct recorder;

/* Appends to the file, which is created with mode 0600. On failure: a message on stderr, negative. */
must_check int record_open(const char *path, struct recorder **ret_recorder);
void record_close(struct recorder *rec); /* accepts NULL */
/* For the edge's done hook: any loop, any time between record_open() and record_close(). NULL records nothing. */
void record_exchange(struct recorder *rec, const struct request *r);

/* Whether recordings leave out a JSON field, form field or query parameter of that name when it holds a string. */
bool record_is_secret(struct str name);

#endif
