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

struct transfer {
	const struct post_options *options;
	const struct post *post;
	struct buf answer;
	struct fetch fetch;
};

static size_t take_some(char *p, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t n = size * count, room = ANSWER_MAX - t->answer.n;
	buf_add(&t->answer, p, n < room ? n : room);
	return n;
}

static int progress(void *ctx, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	const struct transfer *t = ctx;
	return down > ANSWER_READ_MAX || (t->post->stops && t->post->stops(t->post->ctx));
}

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

static void options_set_all(CURL *curl, struct transfer *t, struct curl_slist *headers, char *fault)
{
	const struct post *p = t->post;
	bool http = p->trusted || t->options->private_networks;
	curl_easy_setopt(curl, CURLOPT_URL, p->url);
	fetch_setup(curl, &t->fetch, http ? "http,https" : "https", t->options->ca_file);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, TRANSFER_SECONDS);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, fault);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "steward");
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->body.n);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, p->body.p ? p->body.p : "");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_some);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L); /* does not wait for a name server that never answers */
}

static bool answer_is_ok(const struct transfer *t)
{
	json_t *answer = json_loadb(t->answer.p ? t->answer.p : "", t->answer.n, 0, NULL);
	bool is_ok = !t->post->says_ok || json_flag(answer, "ok");
	json_decref(answer);
	return is_ok;
}

bool post_deliver(const struct post_options *o, const struct post *p, char ret_fault[CURL_ERROR_SIZE])
{
	struct transfer t = {.options = o, .post = p};
	t.fetch.named = p->trusted || o->private_networks ? FETCH_BY_OPERATOR : FETCH_BY_TENANT;
	struct arena *a = arena_new();
	struct curl_slist *headers = headers_make(a, p);
	CURL *curl = curl_easy_init();
	long status = 0;
	ret_fault[0] = 0;
	options_set_all(curl, &t, headers, ret_fault);
	CURLcode code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	bool taken = code == CURLE_OK && status >= 200 && status < 300 && answer_is_ok(&t);
	if (t.fetch.refused && code != CURLE_OK)
		snprintf(ret_fault, CURL_ERROR_SIZE, "its address is private: the operator does not allow these");
	else if (code != CURLE_OK && !ret_fault[0])
		snprintf(ret_fault, CURL_ERROR_SIZE, "%s", curl_easy_strerror(code));
	else if (code == CURLE_OK && !taken)
		snprintf(ret_fault, CURL_ERROR_SIZE, status / 100 == 2 ? "answered %ld, but not ok" : "answered %ld",
		         status);
	if (p->ret_gone)
		*p->ret_gone = code == CURLE_OK && status == 410;
	curl_easy_cleanup(curl);
	curl_slist_free_all(headers);
	buf_free(&t.answer);
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
