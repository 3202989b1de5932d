/* HTTP with libcurl, bounded in time and size. Which addresses may be reached says fetch/fetch.h. */
#include "outbox/post.h"

#include "base/buf.h"
#include "base/json.h"
#include "fetch/fetch.h"

#include <stdio.h>

#define CONNECT_SECONDS 5L
#define TRANSFER_SECONDS 20L
#define ANSWER_MAX 16384        /* what is kept of it */
#define ANSWER_READ_MAX 1048576 /* a longer one is cut off */
#define URL_MAX_BYTES 2048

/* On one line: libcurl sends what it is given, and what follows a line end in a key would be a header or a request of
 * its own. */
static char *header_line(struct arena *a, const char *name, const char *value)
{
	struct str line = arena_printf(a, "%s: %s", name, value ? value : "");
	char *z = arena_z(a, line);
	for (char *p = z; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	return z;
}

static struct curl_slist *headers_make(struct arena *a, const struct post *p)
{
	/* An empty Expect: libcurl would wait for a "100 Continue" that many receivers never send. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)p->headers, name, value)
	{
		list = curl_slist_append(list, header_line(a, name, json_string_value(value)));
	}
	return list;
}

static bool answer_is_ok(const struct buf *body)
{
	json_t *answer = json_loadb(body->p ? body->p : "", body->n, 0, NULL);
	bool is_ok = json_flag(answer, "ok");
	json_decref(answer);
	return is_ok;
}

bool post_deliver(const struct post_options *o, const struct post *p, char ret_fault[CURL_ERROR_SIZE])
{
	bool anywhere = p->trusted || o->private_networks;
	struct arena *a = arena_new();
	struct curl_slist *headers = headers_make(a, p);
	struct fetch_request q = {.url = p->url,
	                          .protocols = anywhere ? "http,https" : "https",
	                          .ca_file = o->ca_file,
	                          .named = anywhere ? FETCH_BY_OPERATOR : FETCH_BY_TENANT,
	                          .agent = "steward",
	                          .headers = headers,
	                          .posts = true,
	                          .body = p->body,
	                          .connect_seconds = CONNECT_SECONDS,
	                          .all_seconds = TRANSFER_SECONDS,
	                          .most = ANSWER_READ_MAX,
	                          .keeps = ANSWER_MAX,
	                          .stops = p->stops,
	                          .ctx = p->ctx};
	struct fetch_answer answer = {.status = 0};
	fetch_run(&q, &answer);
	bool came = answer.code == CURLE_OK, good = came && answer.status >= 200 && answer.status < 300;
	bool taken = good && (!p->says_ok || answer_is_ok(&answer.body));
	snprintf(ret_fault, CURL_ERROR_SIZE, "%s",
	         answer.refused && !came ? "its address is private: the operator does not allow these" : answer.fault);
	if (came && !taken)
		snprintf(ret_fault, CURL_ERROR_SIZE, good ? "answered %ld, but not ok" : "answered %ld", answer.status);
	if (p->ret_gone)
		*p->ret_gone = came && answer.status == 410;
	curl_slist_free_all(headers);
	fetch_answer_free(&answer);
	arena_free(a);
	return taken;
}

const char *post_url_fault(struct arena *a, struct str url)
{
	CURLU *parts = curl_url();
	const char *slashes = url.n ? memmem(url.p, url.n, "://", 3) : NULL;
	size_t before = slashes ? (size_t)(slashes + 3 - url.p) : url.n;
	char *scheme = NULL, *host = NULL, *user = NULL;
	const char *fault = NULL;
	if (url.n > URL_MAX_BYTES)
		fault = "must not be longer than 2048 bytes";
	else if (curl_url_set(parts, CURLUPART_URL, arena_z(a, url), 0) != CURLUE_OK ||
	         curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	         curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	         (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0) ||
	         /* libcurl takes "https:/HOST" and "https:///HOST" too; others would see no host there. */
	         strlen(scheme) + 3 != before || before == url.n || url.p[before] == '/')
		fault = "must be a URL, https://HOST/PATH";
	else if (curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK)
		fault = "must not have a user or password before the host";
	curl_free(scheme);
	curl_free(host);
	curl_free(user);
	curl_url_cleanup(parts);
	return fault;
}

struct str post_url_origin(struct str url)
{
	const char *scheme = url.n ? memmem(url.p, url.n, "://", 3) : NULL;
	struct str rest = scheme ? (struct str){scheme + 3, (size_t)(url.p + url.n - scheme - 3)} : url;
	size_t n = 0;
	while (n < rest.n && !strchr("/?#", rest.p[n]))
		n++;
	return (struct str){url.p, (size_t)(rest.p + n - url.p)};
}
