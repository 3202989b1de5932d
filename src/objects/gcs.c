/* Objects in a bucket of Google Cloud Storage, by its JSON interface. What fits into one part is put with one request,
 * beside its CRC-32C; more is put by a resumable upload, which becomes an object only with its last part. Of each part
 * the server says how much it has, and what is missing is sent again: after a failure it is asked first. The checksum
 * of the whole goes with the last part, and the answer's is held against it. An upload that a killed process has left
 * ends by itself after a week, and is in no list. */
#include "base/arena.h"
#include "base/id.h"
#include "base/json.h"
#include "objects/bucket.h"
#include "objects/gcs_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ENDPOINT "https://storage.googleapis.com"
#define PART_STEP ((size_t)256 << 10) /* all parts but the last are multiples of this */
#define PART_TRIES 5
#define FINISH_SECONDS 300
#define GOES_ON 308 /* the status of an upload that is not whole */
#define BOUNDARY_MARK 32

/* What Google has of its own. */

static const struct object_code gcs_codes[] = {
        {"authError", -EACCES, false, "the token is not accepted"},
        {"bucketNotFound", -EHOSTUNREACH, true, "there is no bucket of this name"},
        {"conditionNotMet", -ESTALE, false, NULL},
        {"forbidden", -EACCES, false, "the account lacks a right: roles/storage.objectUser on the bucket"},
        {"notFound", -ENOENT, false, NULL},
        {"quotaExceeded", -EDQUOT, false, NULL},
        {"rateLimitExceeded", -EHOSTUNREACH, false, NULL},
        {"userRateLimitExceeded", -EHOSTUNREACH, false, NULL},
};

static int gcs_authorize(const struct object_site *s, const struct objects_keys *keys, const struct object_request *q,
                         CURL *curl, struct curl_slist **list)
{
	(void)s;
	(void)q;
	(void)curl;
	object_bearer(list, keys->token ? keys->token : "");
	return 0;
}

static void gcs_path(const struct object_site *s, struct str key, struct buf *ret_path)
{
	buf_printf(ret_path, "/storage/v1/b/%s/o", s->bucket);
	if (key.n)
		buf_c(ret_path, '/');
	object_encode(ret_path, key, false);
}

static void gcs_list_query(struct buf *b, struct str prefix, struct str token, unsigned most)
{
	buf_printf(b, "fields=kind%%2Citems%%28name%%2Csize%%2Cupdated%%29%%2CnextPageToken&maxResults=%u", most);
	if (token.n) {
		buf_z(b, "&pageToken=");
		object_encode(b, token, false);
	}
	if (prefix.n) {
		buf_z(b, "&prefix=");
		object_encode(b, prefix, false);
	}
}

static const struct object_dialect gcs_dialect = {
        .scheme = "gs",
        .server = "Google Cloud Storage",
        .version_header = "x-goog-generation",
        .pin_query = "ifGenerationMatch",
        .sum = OBJECT_SUM_CRC32C,
        .get_query = "alt=media",
        .codes = gcs_codes,
        .code_count = sizeof gcs_codes / sizeof *gcs_codes,
        .authorize = gcs_authorize,
        .header = gcs_header,
        .fault = gcs_json_fault,
        .path = gcs_path,
        .list_query = gcs_list_query,
        .list_page = gcs_json_page,
};

/* Putting. */

struct put {
	struct object_bucket *b;
	struct object_source source;
	char *path;       /* of uploads to the bucket */
	struct buf key;   /* encoded, NUL-terminated */
	struct buf query; /* of the upload, with its id */
	uint64_t sent;    /* bytes of the parts before this one */
	bool over;        /* the server has the object */
	struct object_summing summing;
	char sum[32]; /* of the whole, at its end */
};

/* What was put must be what was sent; else it goes again. */
static int result_check(struct put *p, struct str answer)
{
	struct gcs_object o;
	struct object_answer a = {.status = 0};
	struct buf query = {0};
	if (gcs_json_object(answer, &o) < 0)
		return objects_fail(-EPROTO, "%s: the server does not say what it has stored", p->source.name);
	if (o.size == p->source.total && (!o.crc32c[0] || strcmp(o.crc32c, p->sum) == 0))
		return 0;
	char *path = object_path_of(p->b, p->source.name);
	buf_printf(&query, "ifGenerationMatch=%s%c", o.generation, 0);
	struct object_request q = {.method = "DELETE", .name = p->source.name, .path = path, .query = query.p};
	(void)!object_call(&p->b->site, &q, &a);
	object_answer_free(&a);
	buf_free(&query);
	free(path);
	return objects_fail(-EIO, "%s: the server has stored other bytes than it was sent", p->source.name);
}

static void sum_end(struct put *p)
{
	object_sum_end(&p->summing, p->sum);
}

/* The object's name and checksum, and then its bytes, between lines that are in neither. */
static int put_whole(struct put *p)
{
	char mark[BOUNDARY_MARK + 1], type[96];
	struct buf body = {0}, name = {0}, about = {0};
	struct object_answer a = {.status = 0};
	sum_end(p);
	random_text(mark, BOUNDARY_MARK, "0123456789abcdefghijklmnopqrstuvwxyz");
	snprintf(type, sizeof type, "Content-Type: multipart/related; boundary=%s", mark);
	buf_printf(&name, "%s%s", p->b->prefix, p->source.name);
	json_open(&about, '{');
	json_key(&about, "name");
	json_str(&about, buf_view(&name));
	json_key(&about, "crc32c");
	json_z(&about, p->sum);
	json_close(&about, '}');
	buf_reserve(&body, p->source.part.n + about.n + 512);
	buf_printf(&body, "--%s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n", mark);
	buf_str(&body, buf_view(&about));
	buf_printf(&body, "\r\n--%s\r\nContent-Type: application/octet-stream\r\n\r\n", mark);
	buf_str(&body, buf_view(&p->source.part));
	buf_printf(&body, "\r\n--%s--\r\n", mark);
	struct object_request q = {.method = "POST",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .query = "uploadType=multipart",
	                           .headers = {type},
	                           .body = buf_view(&body)};
	int r = object_call(&p->b->site, &q, &a);
	if (r == 0)
		r = result_check(p, buf_view(&a.body));
	object_answer_free(&a);
	buf_free(&body);
	buf_free(&name);
	buf_free(&about);
	return r;
}

static int upload_begin(struct put *p)
{
	struct buf query = {0};
	struct object_answer a = {.status = 0};
	buf_printf(&query, "name=%s&uploadType=resumable%c", p->key.p, 0);
	struct object_request q = {.method = "POST",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .query = query.p,
	                           .headers = {"X-Upload-Content-Type: application/octet-stream"}};
	int r = object_call(&p->b->site, &q, &a);
	if (r == 0 && !a.upload[0])
		r = objects_fail(-EPROTO, "%s: the server gave no upload's id", p->source.name);
	if (r == 0)
		buf_printf(&p->query, "name=%s&uploadType=resumable&upload_id=%s%c", p->key.p, a.upload, 0);
	object_answer_free(&a);
	buf_free(&query);
	return r;
}

/* How much of this part the server says that it has. */
static int kept_read(struct put *p, const struct object_answer *a, size_t *ret_kept)
{
	uint64_t kept = a->has_kept ? a->kept + 1 : 0;
	if (kept < p->sent || kept > p->sent + p->source.part.n)
		return objects_fail(-EPROTO, "%s: the server has %llu bytes of the upload, and was sent others",
		                    p->source.name, (unsigned long long)kept);
	*ret_kept = (size_t)(kept - p->sent);
	return 0;
}

/* The answer to bytes, or to the question how many there are. */
static int answer_read(struct put *p, const struct object_answer *a, size_t *ret_kept)
{
	if (a->status == GOES_ON)
		return kept_read(p, a, ret_kept);
	if (!p->source.ended)
		return objects_fail(-EPROTO, "%s: the server takes the upload for whole, and it is not",
		                    p->source.name);
	p->over = true;
	return result_check(p, buf_view(&a->body));
}

static int upload_ask(struct put *p, const struct object_request *q, size_t *ret_kept)
{
	struct object_answer a = {.status = 0};
	int r = object_call(&p->b->site, q, &a);
	if (r == -ENOENT || a.status == 410)
		r = objects_fail(-EIO, "%s: the server has given up the upload", p->source.name);
	if (r == 0)
		r = answer_read(p, &a, ret_kept);
	object_answer_free(&a);
	return r;
}

static int kept_ask(struct put *p, size_t *ret_kept)
{
	struct object_request q = {.method = "PUT",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .query = p->query.p,
	                           .headers = {"Content-Range: bytes */*"},
	                           .accept = GOES_ON,
	                           .once = true};
	return upload_ask(p, &q, ret_kept);
}

/* What the server has not got of the part, once. */
static int part_send(struct put *p, size_t *kept)
{
	char range[96], total[24] = "*", hash[64];
	struct str rest = {p->source.part.p + *kept, p->source.part.n - *kept};
	uint64_t first = p->sent + *kept;
	if (p->source.ended)
		snprintf(total, sizeof total, "%llu", (unsigned long long)p->source.total);
	if (rest.n)
		snprintf(range, sizeof range, "Content-Range: bytes %llu-%llu/%s", (unsigned long long)first,
		         (unsigned long long)(first + rest.n - 1), total);
	else
		snprintf(range, sizeof range, "Content-Range: bytes */%s", total);
	snprintf(hash, sizeof hash, "X-Goog-Hash: crc32c=%s", p->sum);
	struct object_request q = {.method = "PUT",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .query = p->query.p,
	                           .headers = {range, p->source.ended ? hash : NULL},
	                           .body = rest,
	                           .stall_seconds = p->source.ended ? FINISH_SECONDS : 0,
	                           .accept = GOES_ON,
	                           .once = true};
	return upload_ask(p, &q, kept);
}

static int part_put(struct put *p)
{
	size_t kept = 0;
	unsigned tries = 0;
	int r = 0;
	object_sum_add(&p->summing, p->source.part.p, p->source.part.n);
	if (p->source.ended)
		sum_end(p);
	while (!p->over && (kept < p->source.part.n || p->source.ended)) {
		size_t before = kept;
		r = part_send(p, &kept);
		if (kept <= before && !p->over && (r == 0 || object_may_pass(r)))
			object_pause(tries);
		if (object_may_pass(r)) {
			int asked = kept_ask(p, &kept);
			r = asked < 0 && !object_may_pass(asked) ? asked : r;
		}
		if (kept > before)
			tries = 0;
		else if (!p->over && ++tries >= PART_TRIES)
			return r < 0 ? r
			             : objects_fail(-EHOSTUNREACH, "%s: the server takes no more of it",
			                            p->source.name);
		if (r < 0 && !object_may_pass(r))
			return r;
	}
	p->sent += p->source.part.n;
	return 0;
}

static void upload_abort(struct put *p)
{
	struct object_answer a = {.status = 0};
	char why[512];
	snprintf(why, sizeof why, "%s", objects_why());
	struct object_request q = {
	        .method = "DELETE", .name = p->source.name, .path = p->path, .query = p->query.p, .accept = 499};
	/* The words stay those of the failure that led here. */
	(void)!object_call(&p->b->site, &q, &a);
	objects_fail(0, "%s", why);
	object_answer_free(&a);
}

static int put_parts(struct put *p)
{
	int r = upload_begin(p);
	if (r < 0)
		return r;
	while (r == 0 && !p->over) {
		r = part_put(p);
		if (r == 0 && !p->over)
			r = object_source_fill(&p->source, p->b->part_bytes);
	}
	if (r < 0 && !p->over)
		upload_abort(p);
	return r;
}

static int gcs_put(struct objects *o, const char *name, objects_read *read, void *ctx)
{
	struct put p = {.b = object_bucket_of(o), .source = {.name = name, .read = read, .ctx = ctx}};
	struct buf path = {0}, key = {0};
	buf_printf(&path, "/upload/storage/v1/b/%s/o%c", p.b->site.bucket, 0);
	p.path = path.p;
	buf_printf(&key, "%s%s", p.b->prefix, name);
	object_encode(&p.key, buf_view(&key), false);
	buf_c(&p.key, 0);
	object_sum_begin(&p.summing, OBJECT_SUM_CRC32C);
	int r = object_source_fill(&p.source, p.b->part_bytes);
	if (r == 0 && p.source.ended)
		object_sum_add(&p.summing, p.source.part.p, p.source.part.n);
	if (r == 0)
		r = p.source.ended ? put_whole(&p) : put_parts(&p);
	buf_free(&p.source.part);
	buf_free(&p.query);
	buf_free(&p.key);
	buf_free(&key);
	buf_free(&path);
	return r;
}

static int gcs_size(struct objects *o, const char *name, uint64_t *ret_size)
{
	struct object_bucket *b = object_bucket_of(o);
	char *path = object_path_of(b, name);
	struct object_request q = {.method = "GET", .name = name, .path = path, .query = "fields=size%2Cgeneration"};
	struct object_answer a = {.status = 0};
	struct gcs_object found;
	int r = object_call(&b->site, &q, &a);
	if (r == 0 && gcs_json_object(buf_view(&a.body), &found) < 0)
		r = objects_fail(-EPROTO, "%s: the answer does not say how long it is", name);
	else if (r == -ENOENT)
		r = objects_fail(r, "there is no object %s", name);
	if (r == 0)
		*ret_size = found.size;
	object_answer_free(&a);
	free(path);
	return r;
}

/* Opening. */

static const struct objects_ops gcs_ops = {.close = object_bucket_close,
                                           .put = gcs_put,
                                           .get = object_bucket_get,
                                           .size = gcs_size,
                                           .list = object_bucket_list,
                                           .delete = object_bucket_delete};

int gcs_objects_open(const struct objects_options *o, struct objects **ret_objects)
{
	struct object_url url = object_url_of(o->url);
	struct str endpoint = object_endpoint_of(o->endpoint);
	struct buf base = {0};
	int64_t now_ms;
	int r = object_options_check(o, &url, &gcs_dialect, ".-_");
	if (r == 0 && !o->keys && !(o->token && *o->token))
		r = objects_fail(-EINVAL, "a bucket of Google's needs a token");
	if (r == 0)
		r = object_bearer_check(o->endpoint);
	if (r < 0)
		return r;
	if (!endpoint.n)
		endpoint = STR(ENDPOINT);
	buf_printf(&base, "%.*s%c", STR_ARG(endpoint), 0);
	struct object_bucket *b = object_bucket_new(o, &url, &gcs_dialect, &gcs_ops, base.p);
	b->part_bytes = (b->part_bytes + PART_STEP - 1) / PART_STEP * PART_STEP;
	if ((r = object_bucket_ask(b, &now_ms)) < 0) {
		object_bucket_close(&b->base);
		return r;
	}
	*ret_objects = &b->base;
	return 0;
}
