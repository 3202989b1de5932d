/* What buckets of all kinds do alike. A get that is cut off goes on where it was, of the same object or not at all, and
 * the bytes of a whole object are held against its checksum where the server has one. A list is believed only as far as
 * it is in order. */
#include "objects/bucket.h"

#include "base/arena.h"
#include "base/crc32c.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#define PART_BYTES ((size_t)8 << 20)
#define PARTS_GROW 2500
#define READ_BYTES 65536
#define STALL_SECONDS 30
#define RESUMES 16     /* of a get, unless so many bytes came in between */
#define RESUMES_LATE 6 /* that one after a time-out counts for */
#define RESUME_BYTES ((uint64_t)1 << 20)
#define EMPTY_PAGES 100
#define PAGES_MAX 1000000
#define PAGE_OBJECTS 1000
#define PREFIX_MAX 100

char *object_path_of(const struct object_bucket *b, const char *name)
{
	struct buf key = {0}, path = {0};
	buf_printf(&key, "%s%s", b->prefix, name);
	b->site.dialect->path(&b->site, buf_view(&key), &path);
	buf_c(&path, 0);
	buf_free(&key);
	return path.p;
}

/* Sources. */

int object_source_fill(struct object_source *s, size_t size)
{
	s->part.n = 0;
	while (!s->ended && s->part.n < size) {
		size_t want = size - s->part.n < READ_BYTES ? size - s->part.n : READ_BYTES;
		buf_reserve(&s->part, want);
		ssize_t n = s->read(s->ctx, s->part.p + s->part.n, want);
		if (n < 0)
			return objects_fail((int)n, "%s: its source failed: %s", s->name, strerror((int)-n));
		s->ended = n == 0;
		s->part.n += (size_t)n;
	}
	s->total += s->part.n;
	return 0;
}

size_t object_part_size(size_t size, unsigned count)
{
	return count % PARTS_GROW == 0 && size < OBJECT_PART_BYTES_MAX ? size * 2 : size;
}

/* Checksums. */

void object_sum_begin(struct object_summing *s, enum object_sum kind)
{
	*s = (struct object_summing){.kind = kind};
	if (kind != OBJECT_SUM_MD5)
		return;
	s->md5 = EVP_MD_CTX_new();
	/* A machine that forbids MD5 does without. */
	if (s->md5 && EVP_DigestInit_ex(s->md5, EVP_md5(), NULL) != 1)
		s->kind = OBJECT_SUM_NONE;
}

void object_sum_add(struct object_summing *s, const void *bytes, size_t n)
{
	if (s->kind == OBJECT_SUM_CRC32C)
		s->crc = crc32c(s->crc, bytes, n);
	else if (s->kind == OBJECT_SUM_MD5 && (!s->md5 || EVP_DigestUpdate(s->md5, bytes, n) != 1))
		s->kind = OBJECT_SUM_NONE;
}

void object_sum_end(struct object_summing *s, char ret_text[32])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	ret_text[0] = 0;
	if (s->kind == OBJECT_SUM_CRC32C) {
		for (; n < 4; n++)
			sum[n] = (unsigned char)(s->crc >> (24 - 8 * n));
		object_base64(sum, n, ret_text);
	} else if (s->kind == OBJECT_SUM_MD5 && s->md5 && EVP_DigestFinal_ex(s->md5, sum, &n) == 1) {
		object_base64(sum, n, ret_text);
	}
	EVP_MD_CTX_free(s->md5);
	*s = (struct object_summing){.kind = OBJECT_SUM_NONE};
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
	char version[132], sum[32];
	struct object_summing summing;
	struct object_answer a;
};

/* Whether these are the bytes that were asked for, before any of them is passed on. */
static int get_check(struct get *g)
{
	const struct object_answer *a = &g->a;
	uint64_t first = g->offset + g->done, total, end;
	bool whole = first == 0 && g->length == 0;
	/* Behind the last byte there is nothing: most refuse that, some send it. */
	if (!whole && a->length == 0 && a->has_total && a->total == first && g->done == 0) {
		g->checked = true;
		return 0;
	}
	if (a->length < 0 || a->status != (whole ? 200 : 206) || (!whole && (!a->has_range || !a->has_total)))
		return objects_fail(-EPROTO, "%s: the answer is not of the part that was asked for", g->name);
	total = whole ? (uint64_t)a->length : a->total;
	end = g->length && g->length < total - g->offset ? g->offset + g->length : total;
	if (!whole && (total <= first || a->range_first != first || a->range_last + 1 != end ||
	               (uint64_t)a->length != end - first))
		return objects_fail(-EPROTO, "%s: the answer is not of the part that was asked for", g->name);
	if (g->has_total && (g->total != total || strcmp(g->version, a->version) != 0))
		return objects_fail(-ESTALE, "%s: it changed while it was read", g->name);
	if (!g->has_total && whole)
		memcpy(g->sum, a->sum, sizeof g->sum);
	g->total = total;
	g->has_total = g->checked = true;
	memcpy(g->version, a->version, sizeof g->version);
	return 0;
}

static int get_write(void *ctx, const void *bytes, size_t n)
{
	struct get *g = ctx;
	int r = g->checked ? 0 : get_check(g);
	if (r == 0 && (r = g->write(g->ctx, bytes, n)) == 0) {
		g->done += n;
		object_sum_add(&g->summing, bytes, n);
	}
	return r;
}

static int get_some(struct object_bucket *b, struct get *g, const char *path)
{
	char range[48];
	uint64_t first = g->offset + g->done;
	struct object_request q = {.method = "GET",
	                           .name = g->name,
	                           .path = path,
	                           .query = b->site.dialect->get_query,
	                           .write = get_write,
	                           .ctx = g};
	if (g->length)
		snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)first,
		         (unsigned long long)(g->offset + g->length - 1));
	else
		snprintf(range, sizeof range, "%llu-", (unsigned long long)first);
	if (first > 0 || g->length)
		q.range = range;
	if (g->done > 0)
		q.pin = g->version;
	g->checked = false;
	g->a.written = 0;
	int r = object_call(&b->site, &q, &g->a);
	return r == 0 && !g->checked ? get_check(g) : r;
}

/* The offset is the end, or behind it. */
static int get_nothing(struct object_bucket *b, struct get *g)
{
	uint64_t size = g->a.total;
	int r = g->a.has_total ? 0 : b->base.ops->size(&b->base, g->name, &size);
	if (r < 0 || size == g->offset)
		return r;
	return objects_fail(-ERANGE, "%s has %llu bytes", g->name, (unsigned long long)size);
}

/* Of a get that has come to `r`. */
static int sum_check(struct get *g, int r)
{
	char sum[32];
	object_sum_end(&g->summing, sum);
	if (r == 0 && sum[0] && g->sum[0] && strcmp(sum, g->sum) != 0)
		return objects_fail(-EPROTO, "%s: its bytes are not those of its checksum", g->name);
	return r;
}

int object_bucket_get(struct objects *o, const char *name, uint64_t offset, uint64_t length, objects_write *write,
                      void *ctx)
{
	struct object_bucket *b = object_bucket_of(o);
	struct get g = {.name = name, .write = write, .ctx = ctx, .offset = offset, .length = length};
	char *path = object_path_of(b, name);
	int r;
	object_sum_begin(&g.summing, offset || length ? OBJECT_SUM_NONE : b->site.dialect->sum);
	for (unsigned resumes = 0;; resumes++) {
		uint64_t before = g.done;
		r = get_some(b, &g, path);
		/* Where it is cut off again without a byte more, it is given up. */
		if (!object_may_pass(r) || g.a.write_result != 0 || g.done == before || resumes >= RESUMES ||
		    !g.version[0])
			break;
		if (g.done - before >= RESUME_BYTES)
			resumes = 0;
		else if (r == -ETIMEDOUT)
			resumes += RESUMES_LATE;
		object_pause(0);
	}
	if (r == -ERANGE && g.done == 0 && g.a.write_result == 0)
		r = get_nothing(b, &g);
	r = sum_check(&g, r);
	object_answer_free(&g.a);
	free(path);
	return r;
}

int object_bucket_size(struct objects *o, const char *name, uint64_t *ret_size)
{
	struct object_bucket *b = object_bucket_of(o);
	char *path = object_path_of(b, name);
	struct object_request q = {.method = "HEAD", .name = name, .path = path};
	struct object_answer a = {.status = 0};
	int r = object_call(&b->site, &q, &a);
	if (r == 0 && a.length < 0)
		r = objects_fail(-EPROTO, "%s: the answer does not say how long it is", name);
	else if (r == -ENOENT)
		r = objects_fail(r, "there is no object %s", name);
	if (r == 0)
		*ret_size = (uint64_t)a.length;
	object_answer_free(&a);
	free(path);
	return r;
}

int object_bucket_delete(struct objects *o, const char *name)
{
	struct object_bucket *b = object_bucket_of(o);
	char *path = object_path_of(b, name);
	struct object_request q = {.method = "DELETE", .name = name, .path = path};
	struct object_answer a = {.status = 0};
	int r = object_call(&b->site, &q, &a);
	object_answer_free(&a);
	free(path);
	return r == -ENOENT ? 0 : r;
}

/* Listing. */

struct list {
	struct object_bucket *b;
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
	return objects_fail(-EPROTO, "%s: the list %s", l->b->site.what, words);
}

static int list_entry(void *ctx, const struct object_entry *e)
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
	size_t skip = strlen(l->b->prefix);
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

static int page_ask(struct object_bucket *b, struct str prefix, struct str token, unsigned most,
                    struct object_answer *ret_answer)
{
	struct buf query = {0}, path = {0};
	b->site.dialect->list_query(&query, prefix, token, most);
	buf_c(&query, 0);
	b->site.dialect->path(&b->site, STR_NONE, &path);
	buf_c(&path, 0);
	struct object_request q = {.method = "GET", .path = path.p, .query = query.p};
	int r = object_call(&b->site, &q, ret_answer);
	buf_free(&query);
	buf_free(&path);
	return r;
}

static int list_page(struct list *l)
{
	struct object_answer a = {.status = 0};
	int r = page_ask(l->b, buf_view(&l->prefix), buf_view(&l->token), PAGE_OBJECTS, &a);
	if (r == -ENOENT)
		r = objects_fail(-EHOSTUNREACH, "there is no bucket %s", l->b->site.bucket);
	l->any = false;
	if (r == 0 && (r = l->b->site.dialect->list_page(buf_view(&a.body), list_entry, l, &l->token)) == -EPROTO &&
	    !l->told)
		r = list_fail(l, "has no whole page");
	l->empty = l->any ? 0 : l->empty + 1;
	object_answer_free(&a);
	return r;
}

int object_bucket_list(struct objects *o, const char *prefix, objects_visit *visit, void *ctx)
{
	struct list l = {.b = object_bucket_of(o), .visit = visit, .ctx = ctx};
	int r = 0;
	buf_z(&l.prefix, l.b->prefix);
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

void object_bucket_close(struct objects *o)
{
	struct object_bucket *b = object_bucket_of(o);
	object_site_close(&b->site);
	free(b->prefix);
	free(b);
}

struct object_url object_url_of(const char *url)
{
	struct object_url u;
	str_cut(str_of(strstr(url, "://") + 3), '/', &u.bucket, &u.prefix);
	if (u.prefix.n && u.prefix.p[u.prefix.n - 1] == '/')
		u.prefix.n--;
	return u;
}

bool object_text_is(struct str text, const char *more)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr(more, c))))
			return false;
	}
	return text.n > 0;
}

bool object_text_is_printable(const char *text)
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

struct str object_endpoint_of(const char *endpoint)
{
	struct str host = endpoint ? host_of(endpoint) : STR_NONE;
	return endpoint ? (struct str){endpoint, (size_t)(host.p - endpoint) + host.n} : STR_NONE;
}

int object_options_check(const struct objects_options *o, const struct object_url *url, const struct object_dialect *d,
                         const char *more)
{
	struct str bucket = url->bucket;
	if (!object_text_is(bucket, more) || bucket.n < 3 || bucket.n > 63 || bucket.p[0] == '.' ||
	    bucket.p[bucket.n - 1] == '.')
		return objects_fail(-EINVAL, "url: %s://BUCKET/PREFIX, and \"%.*s\" is no bucket", d->scheme,
		                    STR_ARG(bucket));
	if (url->prefix.n && (url->prefix.n > PREFIX_MAX || !object_name_valid(url->prefix)))
		return objects_fail(-EINVAL,
		                    "url: the prefix has other characters than A-Z a-z 0-9 . _ = - /, "
		                    "or more than %d",
		                    PREFIX_MAX);
	if (o->endpoint && !object_text_is(host_of(o->endpoint), ".-_:[]"))
		return objects_fail(-EINVAL, "endpoint: https://HOST:PORT would be right");
	if ((o->key_id && !object_text_is_printable(o->key_id)) ||
	    (o->secret && !object_text_is_printable(o->secret)) || (o->token && !object_text_is_printable(o->token)))
		return objects_fail(-EINVAL, "a key has characters that no key has");
	return 0;
}

int object_bearer_check(const char *endpoint)
{
	static const char *const near[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
	struct str e = object_endpoint_of(endpoint);
	bool good = !e.n || str_starts(e, STR("https://"));
	for (size_t i = 0; !good && i < sizeof near / sizeof *near; i++) {
		size_t n = strlen(near[i]);
		good = str_starts(e, str_of(near[i])) && (e.n == n || e.p[n] == ':');
	}
	return good ? 0 : objects_fail(-EINVAL, "endpoint: tokens need https://; http:// is for this machine only");
}

static char *copy_of(const char *text)
{
	return text && *text ? must_strdup(text) : NULL;
}

struct object_bucket *object_bucket_new(const struct objects_options *o, const struct object_url *url,
                                        const struct object_dialect *d, const struct objects_ops *ops, char *base)
{
	struct object_bucket *b = must_calloc(1, sizeof *b);
	struct object_site *site = &b->site;
	struct buf prefix = {0}, bucket = {0}, what = {0};
	b->base.ops = ops;
	b->part_bytes = o->part_bytes ? o->part_bytes : PART_BYTES;
	if (b->part_bytes > OBJECT_PART_BYTES_MAX)
		b->part_bytes = OBJECT_PART_BYTES_MAX;
	buf_printf(&prefix, "%.*s%s%c", STR_ARG(url->prefix), url->prefix.n ? "/" : "", 0);
	buf_printf(&bucket, "%.*s%c", STR_ARG(url->bucket), 0);
	buf_printf(&what, "%s://%.*s%c", d->scheme, STR_ARG(url->bucket), 0);
	b->prefix = prefix.p;
	site->dialect = d;
	site->bucket = bucket.p;
	site->what = what.p;
	site->base = base;
	site->named = object_endpoint_of(o->endpoint).n ? FETCH_BY_OPERATOR : FETCH_BY_PROVIDER;
	if (!o->keys)
		site->keys = (struct objects_keys){
		        .key_id = copy_of(o->key_id), .secret = copy_of(o->secret), .token = copy_of(o->token)};
	site->keys_get = o->keys;
	site->keys_ctx = o->keys_ctx;
	site->ca_file = copy_of(o->ca_file);
	site->stall_seconds = o->stall_seconds ? o->stall_seconds : STALL_SECONDS;
	site->stops = o->stops;
	site->stops_ctx = o->stops_ctx;
	pthread_mutex_init(&site->lock, NULL);
	return b;
}

static int nothing_visit(void *ctx, const struct object_entry *e)
{
	(void)ctx;
	(void)e;
	return 0;
}

int object_bucket_ask(struct object_bucket *b, int64_t *ret_now_ms)
{
	struct object_answer a = {.status = 0};
	struct buf token = {0};
	int r = page_ask(b, str_of(b->prefix), STR_NONE, 1, &a);
	if (r == 0 && b->site.dialect->list_page(buf_view(&a.body), nothing_visit, NULL, &token) < 0)
		r = objects_fail(-EPROTO, "%s: this is no %s server", b->site.what, b->site.dialect->server);
	else if (a.status == 404)
		r = objects_fail(-ENOENT, "there is no bucket %s", b->site.bucket);
	*ret_now_ms = a.date_ms;
	object_answer_free(&a);
	buf_free(&token);
	return r;
}
