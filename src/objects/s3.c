/* Objects in a bucket that speaks S3. What fits into one part is put with one request; more is put in parts, which
 * become an object only when the source has ended well. A get that is cut off goes on where it was, of the same object
 * or not at all. A list is believed only as far as it is in order. */
#include "base/arena.h"
#include "base/xml.h"
#include "objects/backend.h"
#include "objects/s3_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PART_BYTES ((size_t)8 << 20)
#define PART_BYTES_MAX ((size_t)512 << 20)
#define PARTS_MAX 10000
#define PARTS_GROW 2500 /* after so many, parts are twice as large: 300 GB with 64 MB of memory */
#define READ_BYTES 65536
#define STALL_SECONDS 30
#define COMPLETE_SECONDS 300 /* servers put the parts together before they answer */
#define COMPLETE_TRIES 4
#define RESUMES 16     /* of a get, unless so many bytes came in between */
#define RESUMES_LATE 6 /* that one after a time-out counts for */
#define RESUME_BYTES ((uint64_t)1 << 20)
#define EMPTY_PAGES 100
#define PAGES_MAX 1000000
#define PREFIX_MAX 100
#define UPLOAD_STALE_MS (INT64_C(2) * 24 * 3600 * 1000)

struct s3 {
	struct objects base;
	struct s3_site site;
	char *prefix; /* "" or ends with "/" */
	size_t part_bytes;
};

static struct s3 *s3_of(struct objects *o)
{
	return (struct s3 *)o;
}

/* The key of a name, on the heap. */
static char *key_of(const struct s3 *s, const char *name)
{
	struct buf key = {0};
	buf_printf(&key, "%s%s%c", s->prefix, name, 0);
	return key.p;
}

/* Putting. */

struct put {
	struct s3 *s;
	const char *name;
	char *key;
	objects_read *read;
	void *ctx;
	struct buf part;
	bool ended; /* the source */
	uint64_t total;
	struct buf id;   /* of the upload, encoded */
	struct buf list; /* of its parts */
	unsigned count;
};

/* The next part. */
static int part_fill(struct put *p, size_t size)
{
	p->part.n = 0;
	while (!p->ended && p->part.n < size) {
		size_t want = size - p->part.n < READ_BYTES ? size - p->part.n : READ_BYTES;
		buf_reserve(&p->part, want);
		ssize_t n = p->read(p->ctx, p->part.p + p->part.n, want);
		if (n < 0)
			return objects_fail((int)n, "%s: its source failed: %s", p->name, strerror((int)-n));
		p->ended = n == 0;
		p->part.n += (size_t)n;
	}
	p->total += p->part.n;
	return 0;
}

static int put_whole(struct put *p)
{
	struct s3_request q = {.method = "PUT", .key = p->key, .body = buf_view(&p->part)};
	struct s3_answer a = {.status = 0};
	int r = s3_call(&p->s->site, &q, &a);
	s3_answer_free(&a);
	return r;
}

static int upload_begin(struct put *p)
{
	struct s3_request q = {.method = "POST", .key = p->key, .query = "uploads="};
	struct s3_answer a = {.status = 0};
	struct buf id = {0};
	int r = s3_call(&p->s->site, &q, &a);
	if (r == 0 && (s3_xml_field(buf_view(&a.body), "InitiateMultipartUploadResult", "UploadId", &id) < 0 || !id.n))
		r = objects_fail(-EPROTO, "%s: the server gave no upload's id", p->name);
	s3_answer_free(&a);
	if (r == 0) {
		s3_encode(&p->id, buf_view(&id), false);
		buf_c(&p->id, 0);
	}
	buf_free(&id);
	return r;
}

static int upload_part(struct put *p)
{
	struct buf query = {0};
	struct s3_answer a = {.status = 0};
	buf_printf(&query, "partNumber=%u&uploadId=%s%c", p->count + 1, p->id.p, 0);
	struct s3_request q = {.method = "PUT", .key = p->key, .query = query.p, .body = buf_view(&p->part)};
	int r = p->count < PARTS_MAX ? s3_call(&p->s->site, &q, &a)
	                             : objects_fail(-EFBIG, "%s: more than %d parts", p->name, PARTS_MAX);
	if (r == 0 && !a.etag[0])
		r = objects_fail(-EPROTO, "%s: the server gave a part no ETag", p->name);
	if (r == 0) {
		buf_printf(&p->list, "<Part><PartNumber>%u</PartNumber>", ++p->count);
		xml_element(&p->list, "ETag", str_of(a.etag));
		buf_z(&p->list, "</Part>");
	}
	s3_answer_free(&a);
	buf_free(&query);
	return r;
}

static int s3_size(struct objects *o, const char *name, uint64_t *ret_size);

/* A server may answer 200 before it knows, and say in the body that it failed. */
static int complete_result(struct put *p, struct s3_answer *a, int r, bool again)
{
	struct buf etag = {0};
	uint64_t size;
	if (r < 0) {
		/* An earlier try has done it, and its answer was lost. */
		bool done = again && strcmp(a->fault.code, "NoSuchUpload") == 0 &&
		            s3_size(&p->s->base, p->name, &size) == 0 && size == p->total;
		return done ? 0 : r;
	}
	if (s3_xml_field(buf_view(&a->body), "CompleteMultipartUploadResult", "ETag", &etag) < 0) {
		s3_xml_fault(buf_view(&a->body), &a->fault);
		bool passes = strcmp(a->fault.code, "InternalError") == 0 || strcmp(a->fault.code, "SlowDown") == 0 ||
		              strcmp(a->fault.code, "ServiceUnavailable") == 0;
		r = objects_fail(passes ? -EBUSY : -EIO, "%s: its parts were not put together: %s", p->name,
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
	struct s3_request q = {.method = "POST",
	                       .key = p->key,
	                       .query = query.p,
	                       .body = buf_view(&body),
	                       .stall_seconds = COMPLETE_SECONDS};
	int r = -EBUSY;
	for (unsigned tries = 0; r == -EBUSY && tries < COMPLETE_TRIES; tries++) {
		struct s3_answer a = {.status = 0};
		if (tries > 0)
			s3_pause(tries);
		r = s3_call(&p->s->site, &q, &a);
		r = complete_result(p, &a, r, tries > 0 || a.tries > 1);
		s3_answer_free(&a);
	}
	buf_free(&body);
	buf_free(&query);
	return r;
}

static void upload_abort(struct s3 *s, const char *key, const char *id)
{
	struct buf query = {0};
	struct s3_answer a = {.status = 0};
	char why[512];
	snprintf(why, sizeof why, "%s", objects_why());
	buf_printf(&query, "uploadId=%s%c", id, 0);
	struct s3_request q = {.method = "DELETE", .key = key, .query = query.p};
	/* The words stay those of the failure that led here. */
	(void)!s3_call(&s->site, &q, &a);
	objects_fail(0, "%s", why);
	s3_answer_free(&a);
	buf_free(&query);
}

static int put_parts(struct put *p)
{
	size_t size = p->s->part_bytes;
	int r = upload_begin(p);
	if (r < 0)
		return r;
	while (r == 0 && p->part.n > 0) {
		r = upload_part(p);
		if (p->count % PARTS_GROW == 0 && size < PART_BYTES_MAX)
			size *= 2;
		if (r == 0)
			r = part_fill(p, size);
	}
	if (r == 0)
		r = upload_complete(p);
	if (r < 0)
		upload_abort(p->s, p->key, p->id.p);
	return r;
}

static int s3_put(struct objects *o, const char *name, objects_read *read, void *ctx)
{
	struct put p = {.s = s3_of(o), .name = name, .key = key_of(s3_of(o), name), .read = read, .ctx = ctx};
	int r = part_fill(&p, p.s->part_bytes);
	if (r == 0)
		r = p.ended ? put_whole(&p) : put_parts(&p);
	buf_free(&p.part);
	buf_free(&p.id);
	buf_free(&p.list);
	free(p.key);
	return r;
}

/* Getting. */

struct get {
	const char *name;
	objects_write *write;
	void *ctx;
	uint64_t offset, length; /* as asked */
	uint64_t done;
	uint64_t total; /* of the object, once it is known */
	bool has_total, checked;
	char etag[132];
	struct s3_answer a;
};

/* Whether these are the bytes that were asked for, before any of them is passed on. */
static int get_check(struct get *g)
{
	const struct s3_answer *a = &g->a;
	uint64_t first = g->offset + g->done, total, end;
	bool whole = first == 0 && g->length == 0;
	if (a->length < 0 || a->status != (whole ? 200 : 206) || (!whole && (!a->has_range || !a->has_total)))
		return objects_fail(-EPROTO, "%s: the answer is not of the part that was asked for", g->name);
	total = whole ? (uint64_t)a->length : a->total;
	end = g->length && g->length < total - g->offset ? g->offset + g->length : total;
	if (!whole && (total <= first || a->range_first != first || a->range_last + 1 != end ||
	               (uint64_t)a->length != end - first))
		return objects_fail(-EPROTO, "%s: the answer is not of the part that was asked for", g->name);
	if (g->has_total && (g->total != total || strcmp(g->etag, a->etag) != 0))
		return objects_fail(-ESTALE, "%s: it changed while it was read", g->name);
	g->total = total;
	g->has_total = g->checked = true;
	memcpy(g->etag, a->etag, sizeof g->etag);
	return 0;
}

static int get_write(void *ctx, const void *bytes, size_t n)
{
	struct get *g = ctx;
	int r = g->checked ? 0 : get_check(g);
	if (r == 0 && (r = g->write(g->ctx, bytes, n)) == 0)
		g->done += n;
	return r;
}

static int get_some(struct s3 *s, struct get *g, const char *key)
{
	char range[48];
	uint64_t first = g->offset + g->done;
	struct s3_request q = {.method = "GET", .key = key, .write = get_write, .ctx = g};
	if (g->length)
		snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)first,
		         (unsigned long long)(g->offset + g->length - 1));
	else
		snprintf(range, sizeof range, "%llu-", (unsigned long long)first);
	if (first > 0 || g->length)
		q.range = range;
	if (g->done > 0)
		q.if_match = g->etag;
	g->checked = false;
	g->a.written = 0;
	int r = s3_call(&s->site, &q, &g->a);
	return r == 0 && !g->checked ? get_check(g) : r;
}

/* The offset is the end, or behind it. */
static int get_nothing(struct s3 *s, struct get *g)
{
	uint64_t size = g->a.total;
	int r = g->a.has_total ? 0 : s3_size(&s->base, g->name, &size);
	if (r < 0 || size == g->offset)
		return r;
	return objects_fail(-ERANGE, "%s has %llu bytes", g->name, (unsigned long long)size);
}

static int s3_get(struct objects *o, const char *name, uint64_t offset, uint64_t length, objects_write *write,
                  void *ctx)
{
	struct s3 *s = s3_of(o);
	struct get g = {.name = name, .write = write, .ctx = ctx, .offset = offset, .length = length};
	char *key = key_of(s, name);
	int r;
	for (unsigned resumes = 0;; resumes++) {
		uint64_t before = g.done;
		r = get_some(s, &g, key);
		/* Where it is cut off again without a byte more, it is given up. */
		if (!s3_may_pass(r) || g.a.write_result != 0 || g.done == before || resumes >= RESUMES || !g.etag[0])
			break;
		if (g.done - before >= RESUME_BYTES)
			resumes = 0;
		else if (r == -ETIMEDOUT)
			resumes += RESUMES_LATE;
		s3_pause(0);
	}
	if (r == -ERANGE && g.done == 0 && g.a.write_result == 0)
		r = get_nothing(s, &g);
	s3_answer_free(&g.a);
	free(key);
	return r;
}

static int s3_size(struct objects *o, const char *name, uint64_t *ret_size)
{
	struct s3 *s = s3_of(o);
	char *key = key_of(s, name);
	struct s3_request q = {.method = "HEAD", .key = key};
	struct s3_answer a = {.status = 0};
	int r = s3_call(&s->site, &q, &a);
	if (r == 0 && a.length < 0)
		r = objects_fail(-EPROTO, "%s: the answer does not say how long it is", name);
	else if (r == -ENOENT)
		r = objects_fail(r, "there is no object %s", name);
	if (r == 0)
		*ret_size = (uint64_t)a.length;
	s3_answer_free(&a);
	free(key);
	return r;
}

static int s3_delete(struct objects *o, const char *name)
{
	struct s3 *s = s3_of(o);
	char *key = key_of(s, name);
	struct s3_request q = {.method = "DELETE", .key = key};
	struct s3_answer a = {.status = 0};
	int r = s3_call(&s->site, &q, &a);
	s3_answer_free(&a);
	free(key);
	return r == -ENOENT ? 0 : r;
}

/* Listing. */

struct list {
	struct s3 *s;
	objects_visit *visit;
	void *ctx;
	struct buf prefix;
	struct buf last; /* key */
	struct buf token, name;
	unsigned empty; /* pages, one after the other */
	bool any;       /* in this page */
	bool told;      /* there are words about its failure, or it was ended by `visit` */
};

static int keys_order(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int r = n ? memcmp(a.p, b.p, n) : 0;
	return r ? r : (a.n > b.n) - (a.n < b.n);
}

static int list_fail(struct list *l, const char *words)
{
	l->told = true;
	return objects_fail(-EPROTO, "s3://%s: the list %s", l->s->site.bucket, words);
}

static int list_entry(void *ctx, const struct s3_entry *e)
{
	struct list *l = ctx;
	if (!str_starts(e->key, buf_view(&l->prefix)))
		return list_fail(l, "has what was not asked for");
	/* Also ends a list that goes round and round. */
	if (l->last.n && keys_order(e->key, buf_view(&l->last)) <= 0)
		return list_fail(l, "is not in order");
	l->last.n = 0;
	buf_str(&l->last, e->key);
	l->any = true;
	size_t skip = strlen(l->s->prefix);
	struct str name = {e->key.p + skip, e->key.n - skip};
	if (!object_name_valid(name))
		return 0;
	l->name.n = 0;
	buf_str(&l->name, name);
	buf_c(&l->name, 0);
	struct object_info info = {.name = l->name.p, .size = e->size, .modified_ms = e->modified_ms};
	int r = l->visit(l->ctx, &info);
	l->told = r != 0;
	return r;
}

static int list_page(struct list *l)
{
	struct buf query = {0};
	struct s3_answer a = {.status = 0};
	if (l->token.n) {
		buf_z(&query, "continuation-token=");
		s3_encode(&query, buf_view(&l->token), false);
		buf_c(&query, '&');
	}
	buf_z(&query, "list-type=2&max-keys=1000&prefix=");
	s3_encode(&query, buf_view(&l->prefix), false);
	buf_c(&query, 0);
	struct s3_request q = {.method = "GET", .query = query.p};
	int r = s3_call(&l->s->site, &q, &a);
	if (r == -ENOENT)
		r = objects_fail(-EHOSTUNREACH, "there is no bucket %s", l->s->site.bucket);
	l->any = false;
	if (r == 0 && (r = s3_xml_page(buf_view(&a.body), list_entry, l, &l->token)) == -EPROTO && !l->told)
		r = list_fail(l, "has no whole page");
	l->empty = l->any ? 0 : l->empty + 1;
	s3_answer_free(&a);
	buf_free(&query);
	return r;
}

static int s3_list(struct objects *o, const char *prefix, objects_visit *visit, void *ctx)
{
	struct list l = {.s = s3_of(o), .visit = visit, .ctx = ctx};
	int r = 0;
	buf_z(&l.prefix, l.s->prefix);
	buf_z(&l.prefix, prefix);
	for (unsigned pages = 0; r == 0 && (pages == 0 || l.token.n); pages++) {
		if (l.empty == EMPTY_PAGES || pages == PAGES_MAX)
			r = list_fail(&l, "does not end");
		else
			r = list_page(&l);
	}
	buf_free(&l.prefix);
	buf_free(&l.last);
	buf_free(&l.token);
	buf_free(&l.name);
	return r;
}

/* Opening. */

static void s3_close(struct objects *o)
{
	struct s3 *s = s3_of(o);
	s3_site_close(&s->site);
	free(s->prefix);
	free(s);
}

static const struct objects_ops s3_ops = {
        .close = s3_close, .put = s3_put, .get = s3_get, .size = s3_size, .list = s3_list, .delete = s3_delete};

static bool all_of(struct str text, const char *more)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr(more, c))))
			return false;
	}
	return text.n > 0;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

static struct str host_of(const char *endpoint)
{
	struct str rest = str_of(endpoint), scheme = STR("https://"), plain = STR("http://");
	size_t skip = str_starts(rest, scheme) ? scheme.n : str_starts(rest, plain) ? plain.n : rest.n;
	rest.p += skip;
	rest.n -= skip;
	if (rest.n && rest.p[rest.n - 1] == '/')
		rest.n--;
	return rest;
}

static int options_check(const struct objects_options *o, struct str bucket, struct str prefix)
{
	if (!all_of(bucket, ".-_") || bucket.n < 3 || bucket.n > 63 || bucket.p[0] == '.' ||
	    bucket.p[bucket.n - 1] == '.')
		return objects_fail(-EINVAL, "url: s3://BUCKET/PREFIX, and \"%.*s\" is no bucket", STR_ARG(bucket));
	if (prefix.n && (prefix.n > PREFIX_MAX || !object_name_valid(prefix)))
		return objects_fail(-EINVAL,
		                    "url: the prefix has other characters than A-Z a-z 0-9 . _ = - /, "
		                    "or more than %d",
		                    PREFIX_MAX);
	if (o->endpoint && !all_of(host_of(o->endpoint), ".-_:[]"))
		return objects_fail(-EINVAL, "endpoint: https://HOST:PORT would be right");
	if (o->region && (strlen(o->region) > 60 || !all_of(str_of(o->region), "-_")))
		return objects_fail(-EINVAL, "region: letters, digits and - would be right");
	if (o->keys)
		return 0;
	if (!o->key_id || !*o->key_id || !o->secret || !*o->secret)
		return objects_fail(-EINVAL, "a bucket needs a key's id and its secret");
	if (!is_printable(o->key_id) || !is_printable(o->secret) || (o->token && !is_printable(o->token)))
		return objects_fail(-EINVAL, "a key has characters that no key has");
	return 0;
}

static char *copy_of(const char *text)
{
	return text && *text ? must_strdup(text) : NULL;
}

/* Amazon's certificates hold for names of buckets without a dot. */
static char *base_of(const struct objects_options *o, const char *region, struct str bucket)
{
	struct buf base = {0};
	if (o->endpoint) {
		struct str host = host_of(o->endpoint);
		buf_add(&base, o->endpoint, (size_t)(host.p - o->endpoint) + host.n);
		buf_printf(&base, "/%.*s", STR_ARG(bucket));
	} else if (memchr(bucket.p, '.', bucket.n)) {
		buf_printf(&base, "https://s3.%s.amazonaws.com/%.*s", region, STR_ARG(bucket));
	} else {
		buf_printf(&base, "https://%.*s.s3.%s.amazonaws.com", STR_ARG(bucket), region);
	}
	buf_c(&base, 0);
	return base.p;
}

static struct s3 *s3_new(const struct objects_options *o, struct str bucket, struct str prefix)
{
	struct s3 *s = must_calloc(1, sizeof *s);
	struct s3_site *site = &s->site;
	struct buf text = {0};
	s->base.ops = &s3_ops;
	s->part_bytes = o->part_bytes ? o->part_bytes : PART_BYTES;
	if (s->part_bytes > PART_BYTES_MAX)
		s->part_bytes = PART_BYTES_MAX;
	buf_printf(&text, "%.*s%s%c", STR_ARG(prefix), prefix.n ? "/" : "", 0);
	s->prefix = text.p;
	text = (struct buf){0};
	buf_printf(&text, "%.*s%c", STR_ARG(bucket), 0);
	site->bucket = text.p;
	site->region = must_strdup(o->region && *o->region ? o->region : "us-east-1");
	site->base = base_of(o, site->region, bucket);
	if (!o->keys)
		site->keys = (struct objects_keys){
		        .key_id = must_strdup(o->key_id), .secret = must_strdup(o->secret), .token = copy_of(o->token)};
	site->keys_get = o->keys;
	site->keys_ctx = o->keys_ctx;
	site->ca_file = copy_of(o->ca_file);
	site->stall_seconds = o->stall_seconds ? o->stall_seconds : STALL_SECONDS;
	pthread_mutex_init(&site->lock, NULL);
	return s;
}

/* Asks for the first object: shows whether the bucket is there, and may be read. */
static int bucket_ask(struct s3 *s, int64_t *ret_now_ms)
{
	struct buf query = {0}, truncated = {0};
	struct s3_answer a = {.status = 0};
	buf_z(&query, "list-type=2&max-keys=1&prefix=");
	s3_encode(&query, str_of(s->prefix), false);
	buf_c(&query, 0);
	struct s3_request q = {.method = "GET", .query = query.p};
	int r = s3_call(&s->site, &q, &a);
	if (r == 0 && s3_xml_field(buf_view(&a.body), "ListBucketResult", "IsTruncated", &truncated) < 0)
		r = objects_fail(-EPROTO, "s3://%s: this is no S3 server", s->site.bucket);
	else if (a.status == 404)
		r = objects_fail(-ENOENT, "there is no bucket %s", s->site.bucket);
	*ret_now_ms = a.date_ms;
	s3_answer_free(&a);
	buf_free(&truncated);
	buf_free(&query);
	return r;
}

struct stale {
	struct s3 *s;
	struct str own; /* how keys of ours begin */
	int64_t before_ms;
};

static int upload_visit(void *ctx, const struct s3_upload *u)
{
	struct stale *stale = ctx;
	size_t skip = strlen(stale->s->prefix);
	if (u->started_ms >= stale->before_ms || !str_starts(u->key, stale->own) ||
	    !object_name_valid((struct str){u->key.p + skip, u->key.n - skip}))
		return 0;
	struct buf key = {0}, id = {0};
	buf_printf(&key, "%.*s%c", STR_ARG(u->key), 0);
	s3_encode(&id, u->id, false);
	buf_c(&id, 0);
	upload_abort(stale->s, key.p, id.p);
	buf_free(&key);
	buf_free(&id);
	return 0;
}

/* Uploads that a killed process has left take space and are in no list. Not all servers know them: no matter. In a
 * bucket that others may use too, whose they are is not to be told: there they stay. */
static void uploads_sweep(struct s3 *s, const char *own, int64_t now_ms)
{
	struct buf query = {0};
	struct s3_answer a = {.status = 0};
	struct stale stale = {.s = s, .own = str_of(own), .before_ms = now_ms - UPLOAD_STALE_MS};
	buf_z(&query, "prefix=");
	s3_encode(&query, stale.own, false);
	buf_printf(&query, "&uploads=%c", 0);
	struct s3_request q = {.method = "GET", .query = query.p};
	if (stale.own.n && now_ms > 0 && s3_call(&s->site, &q, &a) == 0)
		(void)!s3_xml_uploads(buf_view(&a.body), upload_visit, &stale);
	s3_answer_free(&a);
	buf_free(&query);
}

int s3_objects_open(const struct objects_options *o, struct objects **ret_objects)
{
	struct str bucket, prefix;
	int64_t now_ms = 0;
	str_cut(str_of(o->url + strlen("s3://")), '/', &bucket, &prefix);
	if (prefix.n && prefix.p[prefix.n - 1] == '/')
		prefix.n--;
	int r = options_check(o, bucket, prefix);
	if (r < 0)
		return r;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return objects_fail(-EIO, "libcurl does not start");
	struct s3 *s = s3_new(o, bucket, prefix);
	if ((r = bucket_ask(s, &now_ms)) < 0) {
		s3_close(&s->base);
		return r;
	}
	uploads_sweep(s, s->prefix[0] || !o->own ? s->prefix : o->own, now_ms);
	*ret_objects = &s->base;
	return 0;
}
