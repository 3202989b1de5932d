/* The answers of Google Cloud Storage, which are not trusted. */
#ifndef STEWARD_OBJECTS_GCS_JSON_H
#define STEWARD_OBJECTS_GCS_JSON_H

#include "objects/request.h"

/* One page of a list: see struct object_dialect. */
must_check int gcs_json_page(struct str json, object_entry_visit *visit, void *ctx, struct buf *ret_token);

/* What an object is, after it was put. */
struct gcs_object {
	uint64_t size;
	char generation[24]; /* digits */
	char crc32c[12];     /* base64; empty: not told */
};
/* -EPROTO: this is no object. */
must_check int gcs_json_object(struct str json, struct gcs_object *ret_object);

/* A refusal: its reason as the code; a missing bucket is "bucketNotFound". What is none leaves `fault` as it is. */
void gcs_json_fault(struct str json, struct object_fault *fault);

/* A header of an answer that only Google has: the hash, the id of an upload, and what is there of it. */
void gcs_header(struct object_answer *a, struct str name, struct str value);

#endif
