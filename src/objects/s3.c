/* Objects in a bucket that speaks S3. What fits into one part is put with one request; more is put in parts, which
 * become an object only when the source has ended well.
 *
 * libcurl signs; Debian's 7.88 takes path, query and the payload's hash as they are given, so they are given as the
 * signature wants them. It signs every header that it is given, also one that is given empty so that it is not sent:
 * none is. */
#include "base/arena.h"
#include "base/id.h"
#include "base/xml.h"
#include "objects/bucket.h"
#include "objects/s3_xml.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#define COMPLETE_SECONDS 300 /* servers put the parts together before they answer */
#define COMPLETE_TRIES 4
#define UPLOAD_STALE_MS (INT64_C(2) * 24 * 3600 * 1000)

/* What S3 has of its own. */

/* These are what servers of several makers say. */
static const struct object_code s3_codes[] = {
        {"AccessDenied", -EACCES, false, "the key or role lacks a right on the bucket"},
        {"AuthorizationHeaderMalformed", -EINVAL, false, "the region is another one"},
        {"EntityTooLarge", -EFBIG, false, NULL},
        {"ExpiredToken", -EACCES, false, NULL},
        {"InvalidToken", -EACCES, false, NULL},
        {"NoSuchBucket", -EHOSTUNREACH, true, "there is no bucket of this name"},
        {"NoSuchKey", -ENOENT, false, NULL},
        {"QuotaExceeded", -EDQUOT, false, NULL},
        {"RequestTimeout", -ETIMEDOUT, false, NULL},
        {"SignatureDoesNotMatch", -EACCES, false, "the secret is not that of the key"},
        {"SlowDown", -EHOSTUNREACH, false, NULL},
        {"XMinioStorageFull", -ENOSPC, false, NULL},
};

static int s3_authorize(const struct object_site *s, const struct objects_keys *keys, const struct object_request *q,
                        CURL *curl, struct curl_slist **list)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char hex[2 * SHA256_DIGEST_LENGTH + 1];
	struct buf scope = {0};
	SHA256((const unsigned char *)(q->body.n ? q->body.p : ""), q->body.n, hash);
	hex_encode(hash, sizeof hash, hex);
	object_header_add(list, "x-amz-content-sha256", hex);
	if (keys->token)
		object_header_add(list, "x-amz-security-token", keys->token);
	buf_printf(&scope, "aws:amz:%s:s3%c", s->region, 0);
	curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, scope.p);
	curl_easy_setopt(curl, CURLOPT_USERNAME, keys->key_id);
	curl_easy_setopt(curl, CURLOPT_PASSWORD, keys->secret);
	buf_free(&scope);
	return 0;
}

static void s3_header(struct object_answer *a, struct str name, struct str value)
{
	if (str_ieq(name, STR("x-amz-bucket-region")))
		snprintf(a->region, sizeof a->region, "%.*s", (int)(value.n < 63 ? value.n : 0), value.p);
}

static void s3_path(const struct object_site *s, struct str key, struct buf *ret_path)
{
	(void)s;
	buf_c(ret_path, '/');
	object_encode(ret_path, key, true);
}

static void s3_list_query(struct buf *b, struct str prefix, struct str token, unsigned most)
{
	if (token.n) {
		buf_z(b, "continuation-token=");
		object_encode(b, token, false);
		buf_c(b, '&');
	}
	buf_printf(b, "list-type=2&max-keys=%u&prefix=", most);
	object_encode(b, prefix, false);
}

static const struct object_dialect s3_dialect = {
        .scheme = "s3",
        .server = "S3",
        .version_header = "etag",
        .codes = s3_codes,
        .code_count = sizeof s3_codes / sizeof *s3_codes,
        .authorize = s3_authorize,
        .header = s3_header,
        .fault = object_xml_fault,
        .path = s3_path,
        .list_query = s3_list_query,
        .list_page = s3_xml_page,
};

/* Putting. */

struct put {
	struct object_bucket *b;
	struct object_source source;
	char *path;
	struct buf id;   /* of the upload, encoded */
	struct buf list; /* of its parts */
	unsigned count;
};

static int put_whole(struct put *p)
{
	struct object_request q = {
	        .method = "PUT", .name = p->source.name, .path = p->path, .body = buf_view(&p->source.part)};
	struct object_answer a = {.status = 0};
	int r = object_call(&p->b->site, &q, &a);
	object_answer_free(&a);
	return r;
}

static int upload_begin(struct put *p)
{
	struct object_request q = {.method = "POST", .name = p->source.name, .path = p->path, .query = "uploads="};
	struct object_answer a = {.status = 0};
	struct buf id = {0};
	int r = object_call(&p->b->site, &q, &a);
	if (r == 0 &&
	    (object_xml_field(buf_view(&a.body), "InitiateMultipartUploadResult", "UploadId", &id) < 0 || !id.n))
		r = objects_fail(-EPROTO, "%s: the server gave no upload's id", p->source.name);
	object_answer_free(&a);
	if (r == 0) {
		object_encode(&p->id, buf_view(&id), false);
		buf_c(&p->id, 0);
	}
	buf_free(&id);
	return r;
}

static int upload_part(struct put *p)
{
	struct buf query = {0};
	struct object_answer a = {.status = 0};
	buf_printf(&query, "partNumber=%u&uploadId=%s%c", p->count + 1, p->id.p, 0);
	struct object_request q = {.method = "PUT",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .query = query.p,
	                           .body = buf_view(&p->source.part)};
	int r = p->count < OBJECT_UPLOAD_PARTS
	                ? object_call(&p->b->site, &q, &a)
	                : objects_fail(-EFBIG, "%s: more than %d parts", p->source.name, OBJECT_UPLOAD_PARTS);
	if (r == 0 && !a.version[0])
		r = objects_fail(-EPROTO, "%s: the server gave a part no ETag", p->source.name);
	if (r == 0) {
		buf_printf(&p->list, "<Part><PartNumber>%u</PartNumber>", ++p->count);
		xml_element(&p->list, "ETag", str_of(a.version));
		buf_z(&p->list, "</Part>");
	}
	object_answer_free(&a);
	buf_free(&query);
	return r;
}

/* A server may answer 200 before it knows, and say in the body that it failed. */
static int complete_result(struct put *p, struct object_answer *a, int r, bool again)
{
	struct buf etag = {0};
	uint64_t size;
	if (r < 0) {
		/* An earlier try has done it, and its answer was lost. */
		bool done = again && strcmp(a->fault.code, "NoSuchUpload") == 0 &&
		            object_bucket_size(&p->b->base, p->source.name, &size) == 0 && size == p->source.total;
		return done ? 0 : r;
	}
	if (object_xml_field(buf_view(&a->body), "CompleteMultipartUploadResult", "ETag", &etag) < 0) {
		object_xml_fault(buf_view(&a->body), &a->fault);
		bool passes = strcmp(a->fault.code, "InternalError") == 0 || strcmp(a->fault.code, "SlowDown") == 0 ||
		              strcmp(a->fault.code, "ServiceUnavailable") == 0;
		r = objects_fail(passes ? -EBUSY : -EIO, "%s: its parts were not put together: %s", p->source.name,
		                 a->fault.code[0] ? a->fault.code : "no whole answer");
	}
	buf_free(&etag);
	return r;
}

static int upload_complete(struct put *p)
{
	struct buf body = {0}, query = {0};
	buf_z(&body, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	buf_str(&body, buf_view(&p->list));
	buf_z(&body, "</CompleteMultipartUpload>");
	buf_printf(&query, "uploadId=%s%c", p->id.p, 0);
	struct object_request q = {.method = "POST",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .query = query.p,
	                           .body = buf_view(&body),
	                           .stall_seconds = COMPLETE_SECONDS};
	int r = -EBUSY;
	for (unsigned tries = 0; r == -EBUSY && tries < COMPLETE_TRIES; tries++) {
		struct object_answer a = {.status = 0};
		if (tries > 0)
			object_pause(tries);
		r = object_call(&p->b->site, &q, &a);
		r = complete_result(p, &a, r, tries > 0 || a.tries > 1);
		object_answer_free(&a);
	}
	buf_free(&body);
	buf_free(&query);
	return r;
}

static void upload_abort(struct object_bucket *b, const char *path, const char *id)
{
	struct buf query = {0};
	struct object_answer a = {.status = 0};
	char why[512];
	snprintf(why, sizeof why, "%s", objects_why());
	buf_printf(&query, "uploadId=%s%c", id, 0);
	struct object_request q = {.method = "DELETE", .path = path, .query = query.p};
	/* The words stay those of the failure that led here. */
	(void)!object_call(&b->site, &q, &a);
	objects_fail(0, "%s", why);
	object_answer_free(&a);
	buf_free(&query);
}

static int put_parts(struct put *p)
{
	size_t size = p->b->part_bytes;
	int r = upload_begin(p);
	if (r < 0)
		return r;
	while (r == 0 && p->source.part.n > 0) {
		r = upload_part(p);
		size = object_part_size(size, p->count);
		if (r == 0)
			r = object_source_fill(&p->source, size);
	}
	if (r == 0)
		r = upload_complete(p);
	if (r < 0)
		upload_abort(p->b, p->path, p->id.p);
	return r;
}

static int s3_put(struct objects *o, const char *name, objects_read *read, void *ctx)
{
	struct put p = {.b = object_bucket_of(o),
	                .source = {.name = name, .read = read, .ctx = ctx},
	                .path = object_path_of(object_bucket_of(o), name)};
	int r = object_source_fill(&p.source, p.b->part_bytes);
	if (r == 0)
		r = p.source.ended ? put_whole(&p) : put_parts(&p);
	buf_free(&p.source.part);
	buf_free(&p.id);
	buf_free(&p.list);
	free(p.path);
	return r;
}

/* Opening. */

static const struct objects_ops s3_ops = {.close = object_bucket_close,
                                          .put = s3_put,
                                          .get = object_bucket_get,
                                          .size = object_bucket_size,
                                          .list = object_bucket_list,
                                          .delete = object_bucket_delete};

static int options_check(const struct objects_options *o, const struct object_url *url)
{
	int r = object_options_check(o, url, &s3_dialect, ".-_");
	if (r < 0)
		return r;
	if (o->region && (strlen(o->region) > 60 || !object_text_is(str_of(o->region), "-_")))
		return objects_fail(-EINVAL, "region: letters, digits and - would be right");
	if (!o->keys && (!o->key_id || !*o->key_id || !o->secret || !*o->secret))
		return objects_fail(-EINVAL, "a bucket needs a key's id and its secret");
	return 0;
}

/* Amazon's certificates hold for names of buckets without a dot. */
static char *base_of(const struct objects_options *o, const char *region, struct str bucket)
{
	struct buf base = {0};
	struct str endpoint = object_endpoint_of(o->endpoint);
	if (endpoint.n)
		buf_printf(&base, "%.*s/%.*s", STR_ARG(endpoint), STR_ARG(bucket));
	else if (memchr(bucket.p, '.', bucket.n))
		buf_printf(&base, "https://s3.%s.amazonaws.com/%.*s", region, STR_ARG(bucket));
	else
		buf_printf(&base, "https://%.*s.s3.%s.amazonaws.com", STR_ARG(bucket), region);
	buf_c(&base, 0);
	return base.p;
}

struct stale {
	struct object_bucket *b;
	struct str own; /* how keys of ours begin */
	int64_t before_ms;
};

static int upload_visit(void *ctx, const struct s3_upload *u)
{
	struct stale *stale = ctx;
	size_t skip = strlen(stale->b->prefix);
	if (u->started_ms >= stale->before_ms || !str_starts(u->key, stale->own) ||
	    !object_name_valid((struct str){u->key.p + skip, u->key.n - skip}))
		return 0;
	struct buf path = {0}, id = {0};
	s3_path(&stale->b->site, u->key, &path);
	buf_c(&path, 0);
	object_encode(&id, u->id, false);
	buf_c(&id, 0);
	upload_abort(stale->b, path.p, id.p);
	buf_free(&path);
	buf_free(&id);
	return 0;
}

/* Uploads that a killed process has left take space and are in no list. Not all servers know them: no matter. In a
 * bucket that others may use too, whose they are is not to be told: there they stay. */
static void uploads_sweep(struct object_bucket *b, const char *own, int64_t now_ms)
{
	struct buf query = {0};
	struct object_answer a = {.status = 0};
	struct stale stale = {.b = b, .own = str_of(own), .before_ms = now_ms - UPLOAD_STALE_MS};
	buf_z(&query, "prefix=");
	object_encode(&query, stale.own, false);
	buf_printf(&query, "&uploads=%c", 0);
	struct object_request q = {.method = "GET", .path = "/", .query = query.p};
	if (stale.own.n && now_ms > 0 && object_call(&b->site, &q, &a) == 0)
		(void)!s3_xml_uploads(buf_view(&a.body), upload_visit, &stale);
	object_answer_free(&a);
	buf_free(&query);
}

int s3_objects_open(const struct objects_options *o, struct objects **ret_objects)
{
	struct object_url url = object_url_of(o->url);
	const char *region = o->region && *o->region ? o->region : "us-east-1";
	int64_t now_ms = 0;
	int r = options_check(o, &url);
	if (r < 0)
		return r;
	struct object_bucket *b = object_bucket_new(o, &url, &s3_dialect, &s3_ops, base_of(o, region, url.bucket));
	b->site.region = must_strdup(region);
	if ((r = object_bucket_ask(b, &now_ms)) < 0) {
		object_bucket_close(&b->base);
		return r;
	}
	uploads_sweep(b, b->prefix[0] || !o->own ? b->prefix : o->own, now_ms);
	*ret_objects = &b->base;
	return 0;
}
