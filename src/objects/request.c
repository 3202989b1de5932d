/* Requests to servers that keep objects, with libcurl. Path, query and headers are given as signatures want them.
 *
 * The server may lie: answers are bounded in size, a transfer that stalls or crawls is given up, redirects are not
 * followed, and what an answer says is cut and cleaned before it is shown. Keys never reach a log or words, and are
 * wiped where they were written. */
#include "objects/request.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "objects/backend.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ANSWER_MAX ((size_t)8 << 20) /* a thousand objects of a list are a fifth of this */
#define FAULT_MAX ((size_t)64 << 10)
#define BUFFER_BYTES 262144L
#define CONNECT_SECONDS 10L
#define SLOW_BYTES 1024L  /* a second: less than this, for as long as the site says, is a stall */
#define CRAWL_STALLS 4    /* times the site's seconds are what a request has beside */
#define CRAWL_BYTES 16384 /* of what is sent and received, for each second */
#define TRIES 5
#define PAUSE_MS 100u
#define PAUSE_MAX_MS 2000u

void object_answer_free(struct object_answer *a)
{
	fetch_buf_wipe(&a->body);
}

void object_encode(struct buf *b, struct str text, bool keep_slash)
{
	fetch_encode(b, text, keep_slash ? "/" : "");
}

void object_base64(const void *bytes, size_t n, char *ret_text)
{
	EVP_EncodeBlock((unsigned char *)ret_text, bytes, (int)n);
}

void object_header_add(struct curl_slist **list, const char *name, const char *value)
{
	struct buf line = {0};
	buf_reserve(&line, strlen(name) + strlen(value) + 3); /* at once: growing would leave copies of secrets */
	buf_z(&line, name);
	buf_z(&line, ": ");
	buf_z(&line, value);
	buf_c(&line, 0);
	*list = curl_slist_append(*list, line.p);
	fetch_buf_wipe(&line);
}

void object_bearer(struct curl_slist **list, const char *token)
{
	struct buf value = {0};
	buf_reserve(&value, strlen(token) + 8);
	buf_z(&value, "Bearer ");
	buf_z(&value, token);
	buf_c(&value, 0);
	object_header_add(list, "Authorization", value.p);
	fetch_buf_wipe(&value);
}

/* Handles keep their connection: who comes next need not greet the server again. */

static CURL *handle_take(struct object_site *s)
{
	CURL *curl = NULL;
	pthread_mutex_lock(&s->lock);
	if (s->idle_count > 0)
		curl = s->idle[--s->idle_count];
	pthread_mutex_unlock(&s->lock);
	return curl ? curl : curl_easy_init();
}

static void handle_give(struct object_site *s, CURL *curl)
{
	curl_easy_reset(curl);
	pthread_mutex_lock(&s->lock);
	if (s->idle_count < OBJECT_HANDLES) {
		s->idle[s->idle_count++] = curl;
		curl = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	curl_easy_cleanup(curl);
}

static void secret_free(char *text)
{
	if (text)
		OPENSSL_cleanse(text, strlen(text));
	free(text);
}

static void keys_free(struct objects_keys *k)
{
	secret_free(k->key_id);
	secret_free(k->secret);
	secret_free(k->token);
}

void object_site_close(struct object_site *s)
{
	while (s->idle_count > 0)
		curl_easy_cleanup(s->idle[--s->idle_count]);
	pthread_mutex_destroy(&s->lock);
	keys_free(&s->keys);
	free(s->bucket);
	free(s->what);
	free(s->base);
	free(s->region);
	free(s->account);
	free(s->ca_file);
}

/* One try. */

struct transfer {
	CURL *curl;
	const struct object_site *site;
	const struct object_request *q;
	struct object_answer *a;
	const struct object_dialect *dialect;
	const struct objects_keys *keys; /* the site's, or */
	struct objects_keys own;         /* of this try */
	size_t sent;
	struct fetch fetch;
	bool too_long, no_length, crawls;
	int64_t began_us, spent_us; /* spent: by who takes the bytes */
	unsigned stall_seconds;
	char words[CURL_ERROR_SIZE];
};

static bool is_good(const struct transfer *t)
{
	long status = t->a->status;
	return (status >= 200 && status < 300) || (status && status == t->q->accept);
}

static size_t on_upload(char *into, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t n = size * count, rest = t->q->body.n - t->sent;
	if (n > rest)
		n = rest;
	if (n > 0)
		memcpy(into, t->q->body.p + t->sent, n);
	t->sent += n;
	return n;
}

static int on_rewind(void *ctx, curl_off_t offset, int origin)
{
	struct transfer *t = ctx;
	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->q->body.n)
		return CURL_SEEKFUNC_FAIL;
	t->sent = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static void range_parse(struct object_answer *a, struct str text)
{
	struct str range, total, first, last;
	if (!str_starts(text, STR("bytes ")))
		return;
	text.p += 6;
	text.n -= 6;
	str_cut(text, '/', &range, &total);
	a->has_total = str_to_u64(total, INT64_MAX, &a->total);
	a->has_range = str_cut(range, '-', &first, &last) && str_to_u64(first, INT64_MAX, &a->range_first) &&
	               str_to_u64(last, INT64_MAX, &a->range_last);
}

static void header_take(const struct object_dialect *d, struct object_answer *a, struct str name, struct str value)
{
	uint64_t length;
	if (str_ieq(name, str_of(d->version_header)))
		snprintf(a->version, sizeof a->version, "%.*s", (int)(value.n < 130 ? value.n : 0), value.p);
	else if (str_ieq(name, STR("content-range")))
		range_parse(a, value);
	else if (str_ieq(name, STR("content-length")) && str_to_u64(value, INT64_MAX, &length))
		a->length = (int64_t)length;
	else if (str_ieq(name, STR("date")) && value.n < 64) {
		char text[64];
		snprintf(text, sizeof text, "%.*s", STR_ARG(value));
		time_t at = curl_getdate(text, NULL);
		a->date_ms = at > 0 ? at * INT64_C(1000) : 0;
	}
	if (d->header)
		d->header(a, name, value);
}

static void answer_clear(struct object_answer *a)
{
	a->status = 0;
	a->body.n = 0;
	a->length = -1;
	a->version[0] = a->sum[0] = a->region[0] = a->upload[0] = 0;
	a->has_range = a->has_total = a->has_kept = a->is_final = false;
	a->fault = (struct object_fault){.code = ""};
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	struct str text = {line, size * count}, name, value;
	while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	if (str_starts(text, STR("HTTP/")))
		answer_clear(t->a); /* "100 Continue" came before */
	else if (str_cut(text, ':', &name, &value))
		header_take(t->dialect, t->a, name, str_trim(value));
	return size * count;
}

static size_t on_body(char *p, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t n = size * count;
	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->a->status);
	bool good = is_good(t);
	if (good && t->q->write) {
		/* Without a length, an answer that is cut looks whole. */
		if ((t->no_length = t->a->length < 0))
			return CURL_WRITEFUNC_ERROR;
		int64_t began = clock_mono_us();
		t->a->write_result = t->q->write(t->q->ctx, p, n);
		t->spent_us += clock_mono_us() - began;
		if (t->a->write_result != 0)
			return CURL_WRITEFUNC_ERROR;
		t->a->written += n;
		return n;
	}
	if ((t->too_long = n > (good ? ANSWER_MAX : FAULT_MAX) - t->a->body.n))
		return CURL_WRITEFUNC_ERROR;
	if (!good) /* it may repeat a secret: growing would leave copies */
		buf_reserve(&t->a->body, FAULT_MAX - t->a->body.n);
	buf_add(&t->a->body, p, n);
	return n;
}

static bool is_stopped(const struct object_site *s)
{
	return s->stops && s->stops(s->stops_ctx);
}

/* A server that takes or gives a little all the time never stalls. All of a request has its time, by its bytes. */
static int on_progress(void *ctx, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	struct transfer *t = ctx;
	int64_t own_us = clock_mono_us() - t->began_us - t->spent_us;
	(void)down_all;
	(void)up_all;
	t->crawls = own_us / 1000000 > CRAWL_STALLS * (int64_t)t->stall_seconds + (down + up) / CRAWL_BYTES;
	return t->crawls || is_stopped(t->site);
}

static struct curl_slist *headers_of(const struct object_site *s, const struct object_request *q)
{
	struct curl_slist *list = NULL;
	for (size_t i = 0; i < OBJECT_HEADERS && q->headers[i]; i++)
		list = curl_slist_append(list, q->headers[i]);
	if (q->pin && !s->dialect->pin_query)
		object_header_add(&list, "If-Match", q->pin);
	return list;
}

static void method_set(CURL *curl, struct transfer *t)
{
	const struct object_request *q = t->q;
	if (strcmp(q->method, "HEAD") == 0) {
		curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
		return;
	}
	if (strcmp(q->method, "PUT") == 0 || strcmp(q->method, "POST") == 0) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->body.n);
		curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_upload);
		curl_easy_setopt(curl, CURLOPT_READDATA, t);
		curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_rewind);
		curl_easy_setopt(curl, CURLOPT_SEEKDATA, t);
	}
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method);
}

static void options_set(const struct object_site *s, struct transfer *t)
{
	CURL *curl = t->curl;
	t->stall_seconds = t->q->stall_seconds ? t->q->stall_seconds : s->stall_seconds;
	fetch_setup(curl, &t->fetch, "http,https", s->ca_file);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)t->stall_seconds);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, FETCH_AGENT);
	curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
	curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_BYTES);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->words);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	if (t->q->range)
		curl_easy_setopt(curl, CURLOPT_RANGE, t->q->range);
	method_set(curl, t);
}

static char *url_of(const struct object_site *s, const struct object_request *q)
{
	struct buf url = {0};
	const char *pin = q->pin ? s->dialect->pin_query : NULL;
	buf_z(&url, s->base);
	buf_z(&url, q->path);
	if (q->query)
		buf_printf(&url, "?%s", q->query);
	if (pin)
		buf_printf(&url, "%c%s=%s", q->query ? '&' : '?', pin, q->pin);
	buf_c(&url, 0);
	return url.p;
}

static CURLcode try_once(struct object_site *s, struct transfer *t)
{
	if (!(t->curl = handle_take(s)))
		return CURLE_OUT_OF_MEMORY;
	struct curl_slist *headers = headers_of(s, t->q);
	char *url = url_of(s, t->q);
	t->words[0] = 0;
	t->sent = 0;
	t->too_long = t->no_length = t->crawls = false;
	t->began_us = clock_mono_us();
	t->spent_us = 0;
	t->a->write_result = 0;
	answer_clear(t->a);
	options_set(s, t);
	CURLcode code = CURLE_OUT_OF_MEMORY;
	if (s->dialect->authorize(s, t->keys, t->q, t->curl, &headers) == 0) {
		curl_easy_setopt(t->curl, CURLOPT_URL, url);
		curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, headers);
		code = curl_easy_perform(t->curl);
		curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->a->status);
	}
	handle_give(s, t->curl);
	fetch_headers_wipe(headers);
	free(url);
	return code;
}

/* What came of it. */

/* Codes tell more than the status does. */
static const struct object_code *code_find(const struct object_dialect *d, const char *code)
{
	for (size_t i = 0; i < d->code_count; i++)
		if (strcmp(code, d->codes[i].code) == 0)
			return &d->codes[i];
	return NULL;
}

static int result_of_status(long status)
{
	switch (status) {
	case 401:
	case 403: return -EACCES;
	case 404: return -ENOENT;
	case 408: return -ETIMEDOUT;
	case 409: return -EBUSY;
	case 412: return -ESTALE;
	case 416: return -ERANGE;
	case 429: return -EHOSTUNREACH;
	case 507: return -ENOSPC;
	default: return status >= 500 ? -EHOSTUNREACH : status >= 400 ? -EIO : -EPROTO;
	}
}

bool object_may_pass(int result)
{
	return result == -EHOSTUNREACH || result == -ETIMEDOUT || result == -EBUSY;
}

static int result_of_curl(CURLcode code)
{
	switch (code) {
	case CURLE_OUT_OF_MEMORY: return -ENOMEM;
	case CURLE_OPERATION_TIMEDOUT: return -ETIMEDOUT;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SEND_ERROR:
	case CURLE_SEND_FAIL_REWIND:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_SSL_CONNECT_ERROR: return -EHOSTUNREACH;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE: return -EACCES;
	default: return -EPROTO;
	}
}

static void what_of(const struct object_site *s, const struct object_request *q, char *ret_text, size_t n)
{
	snprintf(ret_text, n, "%s%s%.200s: %s", s->what, q->name ? "/" : "", q->name ? q->name : "", q->method);
}

/* Servers are not asked to repeat what they were sent; this one may. */
static bool tells_secret(const struct objects_keys *keys, const char *words)
{
	return (keys->secret && strstr(words, keys->secret)) || (keys->token && strstr(words, keys->token));
}

static int answer_failed(const struct object_site *s, const struct transfer *t)
{
	struct object_answer *a = t->a;
	const struct object_code *known = code_find(s->dialect, a->fault.code);
	char what[300];
	what_of(s, t->q, what, sizeof what);
	a->is_final = known && known->is_final;
	if (a->status >= 300 && a->status < 400 && !a->fault.code[0])
		snprintf(a->fault.message, sizeof a->fault.message, "the bucket is elsewhere%s%s",
		         a->region[0] ? ", in region " : "", a->region);
	if (tells_secret(t->keys, a->fault.code) || tells_secret(t->keys, a->fault.message))
		a->fault = (struct object_fault){.code = ""};
	return objects_fail(known ? known->result : result_of_status(a->status), "%s: answered %ld%s%s%s%s%s%s", what,
	                    a->status, a->fault.code[0] ? " " : "", a->fault.code, a->fault.message[0] ? ": " : "",
	                    a->fault.message, known && known->hint ? "; " : "",
	                    known && known->hint ? known->hint : "");
}

static int try_result(struct object_site *s, struct transfer *t, CURLcode code)
{
	struct object_answer *a = t->a;
	char what[300];
	what_of(s, t->q, what, sizeof what);
	if (a->write_result != 0)
		return a->write_result;
	if (t->no_length)
		return objects_fail(-EPROTO, "%s: the answer does not say how long it is", what);
	if (t->too_long && is_good(t))
		return objects_fail(-EPROTO, "%s: the answer is too long", what);
	if (t->crawls)
		return objects_fail(-ETIMEDOUT, "%s: the server is too slow", what);
	if (code != CURLE_OK && t->fetch.refused)
		return objects_fail(-EHOSTUNREACH, "%s: " FETCH_REFUSED, what);
	if (code != CURLE_OK && !t->too_long)
		return objects_fail(
		        result_of_curl(code), "%s: %s%s", what, t->words[0] ? t->words : curl_easy_strerror(code),
		        code == CURLE_COULDNT_RESOLVE_HOST && s->dialect->no_host ? s->dialect->no_host : "");
	if (!is_good(t)) {
		if (!t->too_long)
			s->dialect->fault(buf_view(&a->body), &a->fault);
		return answer_failed(s, t);
	}
	return 0;
}

void object_pause(unsigned tries)
{
	unsigned char dice;
	unsigned ms = PAUSE_MS << (tries < 5 ? tries : 5);
	random_bytes(&dice, 1);
	if (ms > PAUSE_MAX_MS)
		ms = PAUSE_MAX_MS;
	usleep((ms / 2 + ms * dice / 512) * 1000);
}

static int keys_take(const struct object_site *s, struct transfer *t)
{
	const char *why = "no keys";
	t->own = (struct objects_keys){.token = NULL};
	t->keys = s->keys_get ? &t->own : &s->keys;
	int r = s->keys_get ? s->keys_get(s->keys_ctx, &t->own, &why) : 0;
	return r < 0 ? objects_fail(r, "%s", why) : 0;
}

int object_call(struct object_site *s, const struct object_request *q, struct object_answer *ret_answer)
{
	struct transfer t = {.site = s, .q = q, .a = ret_answer, .dialect = s->dialect, .fetch.named = s->named};
	unsigned cost = 0;
	for (;;) {
		int r = keys_take(s, &t);
		if (r < 0)
			return r;
		CURLcode code = try_once(s, &t);
		r = try_result(s, &t, code);
		keys_free(&t.own);
		ret_answer->tries++;
		/* Time-outs were long already. */
		cost += r == -ETIMEDOUT ? 3 : 1;
		if (ret_answer->write_result != 0 || !object_may_pass(r) || ret_answer->written > 0 || cost >= TRIES ||
		    ret_answer->is_final || q->once || is_stopped(s))
			return r;
		object_pause(ret_answer->tries - 1);
	}
}
