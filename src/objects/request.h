/* Requests to servers that keep objects: authorized, bounded, tried again where that is harmless. What the kinds of
 * stores that speak HTTP differ in is a table, struct object_dialect. Known to this folder alone. */
#ifndef STEWARD_OBJECTS_REQUEST_H
#define STEWARD_OBJECTS_REQUEST_H

#include "base/buf.h"
#include "fetch/fetch.h"
#include "objects/objects.h"
#include "objects/xml.h"

#include <pthread.h>

#define OBJECT_HANDLES 16 /* that wait with their connections */
#define OBJECT_HEADERS 4

/* Where a bucket is, and with which keys. */
struct object_site {
	const struct object_dialect *dialect;
	char *bucket;
	char *what;               /* "s3://BUCKET": for words */
	char *base;               /* what the address of a request begins with: "https://HOST:PORT", and maybe a path */
	enum fetch_named named;   /* who says which host it is */
	char *region;             /* of S3; else NULL */
	char *account;            /* of Azure; else NULL */
	char *ca_file;            /* or NULL */
	struct objects_keys keys; /* unless: */
	int (*keys_get)(void *ctx, struct objects_keys *ret_keys, const char **ret_why);
	void *keys_ctx;
	unsigned stall_seconds;
	bool (*stops)(void *ctx); /* may be NULL */
	void *stops_ctx;
	pthread_mutex_t lock;
	CURL *idle[OBJECT_HANDLES];
	unsigned idle_count;
};
void object_site_close(struct object_site *s);

struct object_request {
	const char *method;
	const char *name;                    /* for words; NULL: the bucket itself */
	const char *path;                    /* encoded, put after the base */
	const char *query;                   /* sorted, encoded, each with "="; NULL: none */
	const char *headers[OBJECT_HEADERS]; /* "Name: value"; the rest NULL */
	struct str body;
	const char *range;    /* "FIRST-LAST" or "FIRST-"; NULL: none */
	const char *pin;      /* the version that is wanted and no other; NULL: any */
	objects_write *write; /* gets the body of a good answer; NULL: it is collected in the answer */
	void *ctx;
	unsigned stall_seconds; /* 0: the site's */
	long accept;            /* a status that is good beside 2xx; 0: none */
	bool once;              /* is not tried again */
};

struct object_answer {
	long status;
	struct buf body;
	uint64_t written;  /* bytes that `write` has got, over all tries */
	int64_t length;    /* of the body, as the server says; -1: it does not */
	int64_t date_ms;   /* the server's clock; 0: not told */
	char version[132]; /* of the object: an ETag, or a generation */
	char sum[32];      /* of the whole object, base64; empty: not told */
	char region[64];   /* where S3 says that the bucket is */
	char upload[512];  /* Google's id of an upload, encoded */
	bool has_range, has_total, has_kept;
	uint64_t range_first, range_last, total;
	uint64_t kept; /* Google: the last byte of an upload that is there */
	unsigned tries;
	int write_result;
	bool is_final; /* the failure: it is not tried again, and does not pass */
	struct object_fault fault;
};
void object_answer_free(struct object_answer *a);

/* What a code of the server means. */
struct object_code {
	const char *code;
	int result;
	bool is_final;    /* though the result may pass */
	const char *hint; /* what to do about it, or NULL */
};

enum object_sum { OBJECT_SUM_NONE, OBJECT_SUM_MD5, OBJECT_SUM_CRC32C };

struct object_entry {
	struct str key;
	uint64_t size;
	int64_t modified_ms;
};
typedef int object_entry_visit(void *ctx, const struct object_entry *entry);

struct object_dialect {
	const char *scheme, *server; /* "s3", "S3": for words */
	const char *version_header;  /* which version of an object it is */
	const char *pin_query;       /* the parameter that asks for one; NULL: the header If-Match */
	enum object_sum sum;         /* that answers have of whole objects */
	const char *no_host;         /* what it may mean that nobody has the host's name; NULL: nothing */
	const char *get_query;       /* of the bytes of an object; NULL: none */
	const struct object_code *codes;
	size_t code_count;
	/* Adds to the headers what lets the request in. All others are in the list already. */
	int (*authorize)(const struct object_site *s, const struct objects_keys *keys, const struct object_request *q,
	                 CURL *curl, struct curl_slist **list);
	/* A header that only this kind has; NULL: there are none. */
	void (*header)(struct object_answer *a, struct str name, struct str value);
	/* Code and message of a refusal; what is not found stays as it is. */
	void (*fault)(struct str body, struct object_fault *fault);
	/* The path of an object, or of the bucket where the key is empty; encoded. */
	void (*path)(const struct object_site *s, struct str key, struct buf *ret_path);
	/* One page of a list, from `token` on where it is not empty. */
	void (*list_query)(struct buf *b, struct str prefix, struct str token, unsigned most);
	/* The page is read to its end before the first entry is visited. *ret_token is empty on the last page. -EPROTO:
	 * it is no whole page. */
	int (*list_page)(struct str body, object_entry_visit *visit, void *ctx, struct buf *ret_token);
};

/* 0: status 2xx, or the one that is accepted. Otherwise what objects.h says, with words. A get is not tried again once
 * `write` has got bytes. */
must_check int object_call(struct object_site *s, const struct object_request *q, struct object_answer *ret_answer);
/* Whether a failure of object_call() may pass. */
bool object_may_pass(int result);
/* Before the next try; the first is 0. */
void object_pause(unsigned tries);

/* With "%XX" for all but A-Z a-z 0-9 - . _ ~, and "/" where that stays. */
void object_encode(struct buf *b, struct str text, bool keep_slash);
/* Base64 with its "=", NUL-terminated (OBJECT_BASE64(n) bytes). */
#define OBJECT_BASE64(n) (((n) + 2) / 3 * 4 + 1)
void object_base64(const void *bytes, size_t n, char *ret_text);
/* "Authorization: Bearer TOKEN" at the end of the list. */
void object_bearer(struct curl_slist **list, const char *token);
/* A header at the end of the list; the copies in between are wiped. */
void object_header_add(struct curl_slist **list, const char *name, const char *value);

#endif
