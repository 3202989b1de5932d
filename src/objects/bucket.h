/* What buckets of all kinds do alike: options, sources that are read in parts, gets that go on where they were cut off,
 * lists that must be in order. Known to this folder alone. */
#ifndef STEWARD_OBJECTS_BUCKET_H
#define STEWARD_OBJECTS_BUCKET_H

#include "objects/backend.h"
#include "objects/request.h"

#define OBJECT_PART_BYTES_MAX ((size_t)512 << 20)
#define OBJECT_UPLOAD_PARTS 10000

struct object_bucket {
	struct objects base;
	struct object_site site;
	char *prefix; /* "" or ends with "/" */
	size_t part_bytes;
};
static inline struct object_bucket *object_bucket_of(struct objects *o)
{
	return (struct object_bucket *)o;
}

/* "SCHEME://BUCKET/PREFIX" */
struct object_url {
	struct str bucket, prefix;
};
struct object_url object_url_of(const char *url);
/* The parts that all kinds have; a message in words when one is wrong. `more`: characters of a bucket's name beside
 * letters and digits. */
must_check int object_options_check(const struct objects_options *o, const struct object_url *url,
                                    const struct object_dialect *d, const char *more);
/* A token travels as it is: over TLS, or on this machine. */
must_check int object_bearer_check(const char *endpoint);
/* Of letters, digits and the characters of `more`. */
bool object_text_is(struct str text, const char *more);
bool object_text_is_printable(const char *text);
/* "https://HOST:PORT" without what follows; NULL: none is given. */
struct str object_endpoint_of(const char *endpoint);

/* Not asked yet. `base` is taken. */
struct object_bucket *object_bucket_new(const struct objects_options *o, const struct object_url *url,
                                        const struct object_dialect *d, const struct objects_ops *ops, char *base);
/* Asks for the first object: shows whether the bucket is there, and may be read. *ret_now_ms: by the server's clock. */
must_check int object_bucket_ask(struct object_bucket *b, int64_t *ret_now_ms);

void object_bucket_close(struct objects *o);
int object_bucket_get(struct objects *o, const char *name, uint64_t offset, uint64_t length, objects_write *write,
                      void *ctx);
int object_bucket_size(struct objects *o, const char *name, uint64_t *ret_size); /* by HEAD */
int object_bucket_list(struct objects *o, const char *prefix, objects_visit *visit, void *ctx);
int object_bucket_delete(struct objects *o, const char *name);

/* The path of a name, on the heap. */
char *object_path_of(const struct object_bucket *b, const char *name);

/* A source that is read in parts. */
struct object_source {
	const char *name;
	objects_read *read;
	void *ctx;
	struct buf part;
	bool ended;
	uint64_t total;
};
/* The next part. */
must_check int object_source_fill(struct object_source *s, size_t size);
/* How long the next part is, after so many of this size: 300 GB take 64 MB of memory. */
size_t object_part_size(size_t size, unsigned count);

/* Reads the checksums of whole objects along, as a dialect has them. */
struct object_summing {
	enum object_sum kind;
	void *md5; /* EVP_MD_CTX */
	uint32_t crc;
};
void object_sum_begin(struct object_summing *s, enum object_sum kind);
void object_sum_add(struct object_summing *s, const void *bytes, size_t n);
/* As base64; frees what it holds. */
void object_sum_end(struct object_summing *s, char ret_text[32]);

#endif
