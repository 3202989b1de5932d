/* Objects that are encrypted and authenticated as a whole, bound to their name. */
#ifndef STEWARD_REPOSITORY_SEALED_H
#define STEWARD_REPOSITORY_SEALED_H

#include "base/buf.h"
#include "repository/format.h"
#include "repository/keys.h"

enum sealed_kind {
	SEALED_KEY = 'K',
	SEALED_INDEX = 'I',
	SEALED_MANIFEST = 'M',
	SEALED_WAL = 'W',
	SEALED_SECONDS = 'S',
	SEALED_LEASE = 'L',
	SEALED_DAMAGE = 'D',
	SEALED_RECORD = 'C',
	SEALED_PARITY = 'X'
};
#define RECORDS "catalogue/"
#define RECORD_MAX ((size_t)1 << 20)
#define SEALED_HEADER 32 /* or, with the id of a project's key, the longer */
#define SEALED_HEADER_MAX 48
#define SEALED_LEAST (SEALED_HEADER + TAG_BYTES)
#define SEALED_EXTRA (SEALED_HEADER_MAX + TAG_BYTES)
/* Added to `out`. */
void sealed_make(const struct repo_key *key, enum sealed_kind kind, const char *name, const void *plain, size_t n,
                 struct buf *out);
/* On the heap, NUL-terminated. */
must_check int sealed_open(const struct repo_key *key, enum sealed_kind kind, const char *name, const void *bytes,
                           size_t n, size_t max, char **ret_plain, size_t *ret_n);
/* The same with whichever of the repository's keys it was sealed with; ret_key may be NULL. */
must_check int sealed_open_any(struct repository *r, enum sealed_kind kind, const char *name, const void *bytes,
                               size_t n, size_t max, char **ret_plain, size_t *ret_n, const struct repo_key **ret_key);
/* The same of an object of the repository; `name` is below the project. ret_stored may be NULL. */
must_check int object_put(struct repository *r, enum sealed_kind kind, const char *name, const void *plain, size_t n,
                          uint64_t *ret_stored);
must_check int object_put_as(struct repository *r, const struct repo_key *key, enum sealed_kind kind, const char *name,
                             const void *plain, size_t n, uint64_t *ret_stored);
must_check int object_get(struct repository *r, enum sealed_kind kind, const char *name, size_t max, char **ret_plain,
                          size_t *ret_n);
must_check int object_get_key(struct repository *r, enum sealed_kind kind, const char *name, size_t max,
                              char **ret_plain, size_t *ret_n, const struct repo_key **ret_key);
must_check int object_delete(struct repository *r, const char *name);
must_check int object_size(struct repository *r, const char *name, uint64_t *ret_size);
/* Names are below the project. */
must_check int object_list(struct repository *r, const char *prefix, objects_visit *visit, void *ctx);
/* The name in the object store, in a buffer of OBJECT_NAME. */
const char *object_place(const struct repository *r, const char *name, char *buf);

#endif
