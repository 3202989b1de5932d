/* One object of an export: it is written as it comes, compressed, by a thread of its own. */
#ifndef STEWARD_API_EXPORTS_PUT_H
#define STEWARD_API_EXPORTS_PUT_H

#include "objects/objects.h"

struct arena;
struct data_key;
struct export_put;

struct export_stored {
	uint64_t bytes, stored; /* before and after it was compressed */
	char sha256[65];        /* of what is stored */
};

/* Sealed with that key of the project's; NULL: plain. */
must_check int export_put_begin(struct objects *bucket, const char *name, const struct data_key *key, struct str group,
                                struct export_put **ret_put);
/* Waits for room. Negative: the bucket does not take it. */
must_check int export_put_write(struct export_put *p, const void *bytes, size_t n);
/* It is there, whole, or negative. Frees it; `why` has words then. */
must_check int export_put_end(struct export_put *p, struct export_stored *ret_stored, char *why, size_t why_size);
/* Leaves nothing. Accepts NULL. */
void export_put_abort(struct export_put *p);
/* A text as one part of an object's name: what is no letter, digit, _ or - becomes =XX, and what is long is cut, and
 * ends with the beginning of its SHA-256. */
struct str export_part(struct arena *a, struct str text);

#endif
