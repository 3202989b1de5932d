/* Object stores: bytes under names, in a directory, or in a bucket of S3, Azure or Google. An object is whole or not
 * there, and once a put has returned it survives a power cut. Names are parts of A-Z a-z 0-9 . _ = -
 * between single slashes; no part is "." or "..", and no name is another's folder ("a" beside "a/b"). All functions may
 * be called from several threads at once; memory is bounded whatever the objects' size. Results: 0 or negative errno
 * (-ENOENT: no such object; -EINVAL: no name of an object's; -EACCES: refused; -EHOSTUNREACH, -ETIMEDOUT: away;
 * -ENOSPC, -EDQUOT: full); objects_why() has words about the thread's last failure. */
#ifndef STEWARD_OBJECTS_OBJECTS_H
#define STEWARD_OBJECTS_OBJECTS_H

#include "base/str.h"

#include <sys/types.h>

struct objects;

#define OBJECT_NAME_MAX 900

/* S3: the id of a key and its secret, and the token of a session, or NULL. Azure: the account's key in `secret`, or a
 * token. Google: a token. */
struct objects_keys {
	char *key_id, *secret, *token;
};

struct objects_options {
	/* "file:///DIRECTORY", a path, "s3://BUCKET/PREFIX", "azure://CONTAINER/PREFIX" or "gs://BUCKET/PREFIX" */
	const char *url;
	/* A directory with nothing in it is a file system that is not mounted: no store is made there. */
	bool expected;
	/* Of buckets only. */
	const char *endpoint; /* "https://HOST:PORT", accounts and buckets in the path; NULL: the provider's own */
	const char *region;   /* of S3; NULL: us-east-1 */
	const char *account;  /* of Azure: the storage account */
	const char *key_id, *secret, *token;
	/* Keys that end: asked for before each request, in the place of the three above. They are the caller's then, on
	 * the heap. *ret_why, where it fails, lives until the thread's next call. NULL: those above. */
	int (*keys)(void *ctx, struct objects_keys *ret_keys, const char **ret_why);
	void *keys_ctx;
	const char *ca_file;    /* NULL: the system's */
	size_t part_bytes;      /* of multipart uploads; 0: 8 MB */
	unsigned stall_seconds; /* a transfer that stands still so long has failed; 0: 30 */
	/* True: what is under way ends, as one that is away. NULL: nothing ends it. */
	bool (*stops)(void *ctx);
	void *stops_ctx;
	/* Without a prefix in the url: how all names begin that are ours, "exports/"; NULL: others may have any.
	 * Uploads that a killed process has left are ended only where they are ours beyond doubt. */
	const char *own;
};

/* The next bytes of a source; 0: its end; negative: it failed, and so does the put, which leaves nothing. */
typedef ssize_t objects_read(void *ctx, void *buf, size_t n);
/* Negative ends the get with that. */
typedef int objects_write(void *ctx, const void *bytes, size_t n);
struct object_info {
	const char *name; /* below the store's prefix; valid for the call */
	uint64_t size;
	int64_t modified_ms;
};
/* Other than 0 ends the list with that. */
typedef int objects_visit(void *ctx, const struct object_info *info);

/* Makes the directory where there is none, and may be; a bucket must be there, and is asked once, so that a wrong key
 * shows now. */
must_check int objects_open(const struct objects_options *o, struct objects **ret_objects);
void objects_close(struct objects *o); /* accepts NULL */

/* In place of what the name has. */
must_check int objects_put(struct objects *o, const char *name, objects_read *read, void *ctx);
must_check int objects_put_bytes(struct objects *o, const char *name, const void *bytes, size_t n);
/* length 0: to the end. -ERANGE: the offset is behind the end. */
must_check int objects_get(struct objects *o, const char *name, uint64_t offset, uint64_t length, objects_write *write,
                           void *ctx);
/* The whole object on the heap, NUL-terminated; -EFBIG over `max`. */
must_check int objects_get_bytes(struct objects *o, const char *name, size_t max, char **ret_bytes, size_t *ret_n);
must_check int objects_size(struct objects *o, const char *name, uint64_t *ret_size);
/* All whose name begins with `prefix`, in the order of their bytes. */
must_check int objects_list(struct objects *o, const char *prefix, objects_visit *visit, void *ctx);
/* 0 too when there is none. */
must_check int objects_delete(struct objects *o, const char *name);

const char *objects_why(void);

#endif
