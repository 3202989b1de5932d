/* HTTP with libcurl (fetch/fetch.h), bounded in time and size. libcurl signs what goes to AWS; Debian's 7.88
 * takes the payload's hash from the header. */
#include "providers/request.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "store/seal.h"

#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ANSWER_MAX ((size_t)64 << 10)
#define CONNECT_SECONDS 5L
#define TRANSFER_SECONDS 10L
#define TOKEN_MAX ((size_t)16 << 10)
#define TRIES 3
#define PAUSE_MS 200u
#define LASTS_MAX_SECONDS (INT64_C(12) * 3600)
#define AGAIN_US INT64_C(2000000) /* after which a failure is final */

/* Memory of libcurl's. */

static void wiping_free(void *p)
{
	if (p)
		OPENSSL_cleanse(p, malloc_usable_size(p));
	free(p);
}

static void *wiping_realloc(void *p, size_t n)
{
	size_t had = p ? malloc_usable_size(p) : 0;
	void *grown = malloc(n ? n : 1);
	if (!grown)
		return NULL;
	if (p)
		memcpy(grown, p, had < n ? had : n);
	wiping_free(p);
	return grown;
}

int providers_memory_setup(void)
{
	if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiping_free, wiping_realloc, strdup, calloc) == CURLE_OK)
		return 0;
	fprintf(stderr, "steward: libcurl cannot be set up\n");
	return -EIO;
}

/* OpenSSL decrypts where it has received. */
static CURLcode on_tls(CURL *curl, void *tls, void *ctx)
{
	SSL_CTX_set_options(tls, SSL_OP_CLEANSE_PLAINTEXT);
	return CURLE_OK;
}

void provider_wipe(char *text)
{
	if (text)
		OPENSSL_cleanse(text, strlen(text));
	free(text);
}

void provider_buf_wipe(struct buf *b)
{
	if (b->p)
		OPENSSL_cleanse(b->p, b->cap);
	buf_free(b);
}

void provider_answer_free(struct provider_answer *a)
{
	provider_buf_wipe(&a->body);
}

void provider_form_add(struct buf *b, const char *name, struct str value)
{
	if (b->n)
		buf_c(b, '&');
	buf_printf(b, "%s=", name);
	for (size_t i = 0; i < value.n; i++) {
		char c = value.p[i];
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c && strchr("-._~", c)))
			buf_c(b, c);
		else
			buf_printf(b, "%%%02X", (unsigned char)c);
	}
}

int provider_fail(const struct provider_request *q, int code, char ret_why[PROVIDER_WHY], const char *format, ...)
{
	va_list args;
	int n = snprintf(ret_why, PROVIDER_WHY, "%s", q->what);
	va_start(args, format);
	vsnprintf(ret_why + n, (size_t)(PROVIDER_WHY - n), format, args);
	va_end(args);
	for (char *p = ret_why; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
			*p = ' ';
	/* Also where it was written in another way. */
	if ((q->secret && strstr(ret_why, q->secret)) || (q->bearer && strstr(ret_why, q->bearer)) ||
	    (q->payload && strstr(ret_why, q->payload)))
		snprintf(ret_why, PROVIDER_WHY, "%s failed", q->what);
	return code;
}

bool provider_token_is_good(struct str token)
{
	bool good = token.n > 0 && token.n <= TOKEN_MAX;
	for (size_t i = 0; good && i < token.n; i++)
		good = (unsigned char)token.p[i] > ' ' && (unsigned char)token.p[i] < 0x7f;
	return good;
}

int64_t provider_lasts_us(struct str until, int64_t seconds)
{
	int64_t at_ms;
	if (until.n)
		seconds = clock_parse(until, &at_ms) ? (at_ms - clock_machine_ms()) / 1000 : 0;
	if (seconds > LASTS_MAX_SECONDS)
		seconds = LASTS_MAX_SECONDS;
	return seconds > 0 ? seconds * 1000000 : 0;
}

json_t *provider_answer_json(const struct provider_answer *a)
{
	json_t *value = json_loadb(a->body.p ? a->body.p : "", a->body.n, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(value))
		return value;
	json_decref(value);
	return NULL;
}

int provider_token_read(const struct provider_request *q, const struct provider_answer *a, const char *field,
                        const char *until, struct provider_credentials *ret_credentials, int64_t *ret_lasts_us,
                        char *why)
{
	json_t *answer = provider_answer_json(a);
	struct str token = json_field(answer, field);
	int64_t lasts =
	        provider_lasts_us(until ? json_field(answer, until) : STR_NONE, json_number(answer, "expires_in"));
	bool good = lasts && provider_token_is_good(token);
	if (good) {
		*ret_credentials = (struct provider_credentials){.token = must_strdup(token.p)};
		*ret_lasts_us = lasts;
	}
	if (token.n)
		OPENSSL_cleanse((char *)(uintptr_t)token.p, token.n);
	json_decref(answer);
	return good ? 0 : provider_fail(q, -EPROTO, why, " answered %ld without a token that holds", a->status);
}

/* One try. */

struct transfer {
	struct provider_answer *answer;
	struct fetch fetch;
	bool too_long;
};

static size_t on_body(char *p, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t n = size * count;
	if ((t->too_long = n > ANSWER_MAX - t->answer->body.n))
		return CURL_WRITEFUNC_ERROR;
	buf_add(&t->answer->body, p, n);
	return n;
}

static struct curl_slist *headers_of(const struct provider_request *q)
{
	const struct provider_signer *s = q->signer;
	struct curl_slist *list =
	        curl_slist_append(NULL, s         ? "Content-Type: application/x-amz-json-1.1"
	                                : q->json ? "Content-Type: application/json"
	                                          : "Content-Type: application/x-www-form-urlencoded; charset=utf-8");
	struct buf line = {0};
	char hash[65];
	if (s) {
		buf_printf(&line, "X-Amz-Target: %s%c", s->target, 0);
		list = curl_slist_append(list, line.p);
		line.n = 0;
	}
	if (s && s->token) {
		buf_printf(&line, "X-Amz-Security-Token: %s%c", s->token, 0);
		list = curl_slist_append(list, line.p);
		line.n = 0;
	}
	if (q->sign || s) {
		sha256_hex(q->body, hash);
		buf_printf(&line, "x-amz-content-sha256: %s%c", hash, 0);
		list = curl_slist_append(list, line.p);
	} else if (q->bearer) {
		buf_printf(&line, "Authorization: Bearer %s%c", q->bearer, 0);
		list = curl_slist_append(list, line.p);
	}
	provider_buf_wipe(&line);
	return list;
}

static void headers_free(struct curl_slist *list)
{
	for (struct curl_slist *l = list; l; l = l->next)
		OPENSSL_cleanse(l->data, strlen(l->data));
	curl_slist_free_all(list);
}

static void sign_with(CURL *curl, const struct provider_signer *s)
{
	struct buf scope = {0};
	buf_printf(&scope, "aws:amz:%s:%s%c", s->region, s->service, 0);
	curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, scope.p);
	curl_easy_setopt(curl, CURLOPT_USERNAME, s->key_id);
	curl_easy_setopt(curl, CURLOPT_PASSWORD, s->secret);
	buf_free(&scope);
}

static CURLcode try_once(const struct providers *p, const struct provider_request *q, struct transfer *t, char *words)
{
	CURL *curl = curl_easy_init();
	if (!curl)
		return CURLE_OUT_OF_MEMORY;
	struct curl_slist *headers = headers_of(q);
	words[0] = 0;
	t->answer->body.n = 0;
	/* At once: growing would leave copies of secrets behind. */
	buf_reserve(&t->answer->body, ANSWER_MAX);
	curl_easy_setopt(curl, CURLOPT_URL, q->url);
	fetch_setup(curl, &t->fetch, "http,https", p->ca_file);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, TRANSFER_SECONDS);
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "steward/" STEWARD_VERSION);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, q->body.n ? q->body.p : "");
	if (q->method)
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method);
	curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, on_tls);
	struct provider_signer own = {
	        .key_id = p->aws.key_id, .secret = p->aws.secret, .region = p->aws.region, .service = "sts"};
	if (q->sign || q->signer)
		sign_with(curl, q->signer ? q->signer : &own);
	CURLcode code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &t->answer->status);
	curl_easy_cleanup(curl);
	headers_free(headers);
	return code;
}

static bool body_has(const struct provider_answer *a, const char *text)
{
	return a->body.n && memmem(a->body.p, a->body.n, text, strlen(text));
}

/* Google's 429 also means that a quota is used up, as that of accounts in a project: waiting does not mend it, and its
 * words say what does. One that is about requests in a time says so. */
static bool is_quota(const struct provider_answer *a)
{
	return a->status == 429 && body_has(a, "RESOURCE_EXHAUSTED") && !body_has(a, "RATE_LIMIT");
}

/* AWS says so with a status that means something else, in XML or in JSON. */
static bool is_busy(const struct provider_answer *a)
{
	return (a->status == 429 && !is_quota(a)) || a->status >= 500 ||
	       (a->status == 400 && (body_has(a, "<Code>Throttling") || body_has(a, "\"ThrottlingException\"") ||
	                             body_has(a, "\"LimitExceededException\"")));
}

static int result_of(const struct provider_request *q, const struct transfer *t, CURLcode code, const char *words,
                     char *why)
{
	long status = t->answer->status;
	if (t->too_long)
		return provider_fail(q, -EPROTO, why, ": the answer is too long");
	if (code == CURLE_OPERATION_TIMEDOUT)
		return provider_fail(q, -ETIMEDOUT, why, ": no answer in time");
	if (code != CURLE_OK && t->fetch.refused)
		return provider_fail(q, -EHOSTUNREACH, why, ": " FETCH_REFUSED);
	if (code != CURLE_OK)
		return provider_fail(q, -EHOSTUNREACH, why, ": %s", words[0] ? words : curl_easy_strerror(code));
	if (is_busy(t->answer))
		return provider_fail(q, -EHOSTUNREACH, why, " answered %ld: the provider is busy or away", status);
	if (status >= 300 && status < 400)
		return provider_fail(q, -EPROTO, why, " answered %ld, and redirects are not followed", status);
	return 0;
}

static void pause_before(unsigned next)
{
	unsigned char dice;
	unsigned ms = PAUSE_MS << next;
	random_bytes(&dice, 1);
	usleep((ms / 2 + ms * dice / 512) * 1000);
}

/* Servers are not asked to repeat what they were sent; this one may. Before anything is cut out of its answer. */
static void secret_blank(struct buf *b, const char *secret)
{
	size_t n = secret ? strlen(secret) : 0;
	for (char *at = b->p; n && at && (at = memmem(at, b->n - (size_t)(at - b->p), secret, n)); at += n)
		memset(at, '*', n);
}

int provider_call(const struct providers *p, const struct provider_request *q, struct provider_answer *ret_answer,
                  char ret_why[PROVIDER_WHY])
{
	struct transfer t = {.answer = ret_answer, .fetch.named = q->named};
	char words[CURL_ERROR_SIZE] = "";
	int64_t began_us = clock_mono_us();
	for (unsigned tries = 1;; tries++) {
		CURLcode code = try_once(p, q, &t, words);
		int r = result_of(q, &t, code, words, ret_why);
		if (ret_answer->status != 200) {
			secret_blank(&ret_answer->body, q->secret);
			secret_blank(&ret_answer->body, q->bearer);
			secret_blank(&ret_answer->body, q->payload);
		}
		if (r != -EHOSTUNREACH || tries == TRIES || clock_mono_us() - began_us > AGAIN_US)
			return r;
		pause_before(tries);
	}
}
