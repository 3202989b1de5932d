/* HTTP with libcurl (fetch/fetch.h), bounded in time and size. libcurl signs what goes to AWS; Debian's 7.88
 * takes the payload's hash from the header. */
#include "providers/request.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "store/seal.h"

#include <errno.h>
#include <openssl/crypto.h>
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

void provider_wipe(char *text)
{
	if (text)
		OPENSSL_cleanse(text, strlen(text));
	free(text);
}

void provider_form_add(struct buf *b, const char *name, struct str value)
{
	if (b->n)
		buf_c(b, '&');
	buf_printf(b, "%s=", name);
	fetch_encode(b, value, "");
}

void provider_answer_free(struct provider_answer *a)
{
	fetch_buf_wipe(&a->body);
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
	fetch_buf_wipe(&line);
	return list;
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

/* What libcurl shall do beside sending. */
struct way {
	const struct providers *p;
	const struct provider_request *q;
};

static void handle_set(CURL *curl, void *ctx)
{
	const struct way *w = ctx;
	const struct provider_signer own = {
	        .key_id = w->p->aws.key_id, .secret = w->p->aws.secret, .region = w->p->aws.region, .service = "sts"};
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	if (w->q->method)
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, w->q->method);
	if (w->q->sign || w->q->signer)
		sign_with(curl, w->q->signer ? w->q->signer : &own);
}

static void try_once(const struct providers *p, const struct provider_request *q, struct fetch_answer *a)
{
	struct way way = {.p = p, .q = q};
	struct curl_slist *headers = headers_of(q);
	struct fetch_request request = {.url = q->url,
	                                .protocols = "http,https",
	                                .ca_file = p->ca_file,
	                                .named = q->named,
	                                .headers = headers,
	                                .posts = true,
	                                .body = q->body,
	                                .connect_seconds = CONNECT_SECONDS,
	                                .all_seconds = TRANSFER_SECONDS,
	                                .most = ANSWER_MAX,
	                                .wipes = true,
	                                .ctx = &way,
	                                .more = handle_set};
	fetch_run(&request, a);
	fetch_headers_wipe(headers);
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

static int result_of(const struct provider_request *q, const struct provider_answer *answer,
                     const struct fetch_answer *a, char *why)
{
	if (a->too_long)
		return provider_fail(q, -EPROTO, why, ": the answer is too long");
	if (a->code == CURLE_OPERATION_TIMEDOUT)
		return provider_fail(q, -ETIMEDOUT, why, ": no answer in time");
	if (a->code != CURLE_OK)
		return provider_fail(q, -EHOSTUNREACH, why, ": %s", a->fault);
	if (is_busy(answer))
		return provider_fail(q, -EHOSTUNREACH, why, " answered %ld: the provider is busy or away", a->status);
	if (a->status >= 300 && a->status < 400)
		return provider_fail(q, -EPROTO, why, " answered %ld, and redirects are not followed", a->status);
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
	struct fetch_answer a = {.body = ret_answer->body};
	int64_t began_us = clock_mono_us();
	for (unsigned tries = 1;; tries++) {
		try_once(p, q, &a);
		*ret_answer = (struct provider_answer){.status = a.status, .body = a.body};
		int r = result_of(q, ret_answer, &a, ret_why);
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
