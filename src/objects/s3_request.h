/* Requests to an S3 server: signed, bounded, tried again where that is harmless. */
#ifndef STEWARD_OBJECTS_S3_REQUEST_H
#define STEWARD_OBJECTS_S3_REQUEST_H

#include "base/buf.h"
#include "objects/objects.h"
#include "objects/s3_xml.h"

#include <curl/curl.h>
#include <pthread.h>

#define S3_HANDLES 16 /* that wait with their connections */

/* Where a bucket is, and with which keys. */
struct s3_site {
	char *bucket;
	char *base; /* "https://HOST:PORT" or "https://HOST:PORT/BUCKET" */
	char *region, *ca_file;
	struct objects_keys keys; /* unless: */
	int (*keys_get)(void *ctx, struct objects_keys *ret_keys, const char **ret_why);
	void *keys_ctx;
	unsigned stall_seconds;
	pthread_mutex_t lock;
	CURL *idle[S3_HANDLES];
	unsigned idle_count;
};

struct s3_request {
	const char *method;
	const char *key;   /* NULL: the bucket itself */
	const char *query; /* sorted, encoded, each with "="; NULL: none */
	struct str body;
	const char *range, *if_match; /* NULL: none */
	objects_write *write;         /* gets the body of a good answer; NULL: it is collected in the answer */
	void *ctx;
	unsigned stall_seconds; /* 0: the site's */
};

struct s3_answer {
	long status;
	struct buf body;
	uint64_t written; /* bytes that `write` has got, over all tries */
	int64_t length;   /* of the body, as the server says; -1: it does not */
	int64_t date_ms;  /* the server's clock; 0: not told */
	char etag[132];
	char region[64];
	bool has_range, has_total;
	uint64_t range_first, range_last, total;
	unsigned tries;
	int write_result;
	struct s3_fault fault;
};
void s3_answer_free(struct s3_answer *a);

/* 0: status 2xx. Otherwise what objects.h says, with words. A get is not tried again once `write` has got bytes. */
must_check int s3_call(struct s3_site *s, const struct s3_request *q, struct s3_answer *ret_answer);
/* Whether a failure of s3_call() may pass. */
bool s3_may_pass(int result);
/* Before the next try; the first is 0. */
void s3_pause(unsigned tries);

/* With "%XX" for all but A-Z a-z 0-9 - . _ ~, and "/" where that stays. */
void s3_encode(struct buf *b, struct str text, bool keep_slash);

void s3_site_close(struct s3_site *s);

#endif
