/* HTTP with libcurl to addresses that come from customers. So: https only, bounded in time and size, and only to
 * addresses that a tenant's host may have (fetch/fetch.h). */
#include "identity/issuer.h"

#include "base/buf.h"
#include "base/json.h"
#include "fetch/fetch.h"

#include <stdio.h>

#define CONNECT_SECONDS 10L
#define TRANSFER_SECONDS 10L
#define ANSWER_MAX 262144

_Static_assert(ISSUER_FAULT >= CURL_ERROR_SIZE, "libcurl writes its reasons there");

struct transfer {
	const struct issuer_request *request;
	struct buf body;
	struct fetch fetch;
};

static size_t take_some(char *p, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t n = size * count;
	if (n > ANSWER_MAX - t->body.n)
		return CURL_WRITEFUNC_ERROR;
	buf_add(&t->body, p, n);
	return n;
}

static int progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct issuer_request *r = ((const struct transfer *)ctx)->request;
	return r->stops && r->stops(r->ctx);
}

static void options_set_all(CURL *curl, struct transfer *t, char *fault)
{
	const struct issuer_request *r = t->request;
	curl_easy_setopt(curl, CURLOPT_URL, r->url);
	fetch_setup(curl, &t->fetch, "https", r->ca_file);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, TRANSFER_SECONDS);
	curl_easy_setopt(curl, CURLOPT_MAXFILESIZE, (long)ANSWER_MAX);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, fault);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_some);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
	if (r->form.n) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->form.n);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->form.p);
	}
}

/* "answered 400: invalid_grant". What stands there is the issuer's: only the letters of such a word. */
static void refusal_say(const json_t *answer, long status, char *fault)
{
	struct str error = json_field(answer, "error");
	bool plain = error.n > 0 && error.n <= 64;
	for (size_t i = 0; plain && i < error.n; i++)
		plain = (error.p[i] >= 'a' && error.p[i] <= 'z') || error.p[i] == '_';
	snprintf(fault, ISSUER_FAULT, plain ? "answered %ld: %.*s" : "answered %ld", status, plain ? (int)error.n : 0,
	         plain ? error.p : "");
}

json_t *issuer_ask(const struct issuer_request *r, char ret_fault[ISSUER_FAULT])
{
	struct transfer t = {.request = r, .fetch.named = r->is_public ? FETCH_BY_ANSWER : FETCH_BY_TENANT};
	CURL *curl = curl_easy_init();
	long status = 0;
	ret_fault[0] = 0;
	options_set_all(curl, &t, ret_fault);
	CURLcode code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	json_t *value = code == CURLE_OK ? json_loadb(t.body.p ? t.body.p : "", t.body.n, 0, NULL) : NULL;
	if (t.fetch.refused && code != CURLE_OK)
		snprintf(ret_fault, ISSUER_FAULT, FETCH_REFUSED);
	else if (code != CURLE_OK && !ret_fault[0])
		snprintf(ret_fault, ISSUER_FAULT, "%s", curl_easy_strerror(code));
	else if (code == CURLE_OK && status != 200)
		refusal_say(value, status, ret_fault);
	else if (code == CURLE_OK && !value)
		snprintf(ret_fault, ISSUER_FAULT, "answered no JSON");
	if (status != 200) {
		json_decref(value);
		value = NULL;
	}
	curl_easy_cleanup(curl);
	buf_free(&t.body);
	return value;
}

/* "https://host:port" of a URL. */
static struct str origin_of(struct str url)
{
	size_t n = url.n < 8 ? url.n : 8;
	while (n < url.n && !strchr("/?#", url.p[n]))
		n++;
	return (struct str){url.p, n};
}

bool issuer_same_origin(struct str a, struct str b)
{
	return str_ieq(origin_of(a), origin_of(b));
}
