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

_Static_assert(ISSUER_FAULT >= CURL_ERROR_SIZE, "a fetch's reasons are copied there");

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
	struct fetch_request q = {.url = r->url,
	                          .protocols = "https",
	                          .ca_file = r->ca_file,
	                          .named = r->is_public ? FETCH_BY_ANSWER : FETCH_BY_TENANT,
	                          .posts = r->form.n,
	                          .body = r->form,
	                          .connect_seconds = CONNECT_SECONDS,
	                          .all_seconds = TRANSFER_SECONDS,
	                          .most = ANSWER_MAX,
	                          .stops = r->stops,
	                          .ctx = r->ctx};
	struct fetch_answer a = {.status = 0};
	fetch_run(&q, &a);
	json_t *value = a.code == CURLE_OK ? json_loadb(a.body.p ? a.body.p : "", a.body.n, 0, NULL) : NULL;
	snprintf(ret_fault, ISSUER_FAULT, "%s", a.fault);
	if (a.code == CURLE_OK && a.status != 200)
		refusal_say(value, a.status, ret_fault);
	else if (a.code == CURLE_OK && !value)
		snprintf(ret_fault, ISSUER_FAULT, "answered no JSON");
	if (a.status != 200) {
		json_decref(value);
		value = NULL;
	}
	fetch_answer_free(&a);
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
