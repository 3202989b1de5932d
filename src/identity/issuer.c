/* HTTP with libcurl to addresses that come from customers. So: https only, no redirects, no proxy, bounded in time and
 * size, and never to an address that can only be the machine's own (link-local, where clouds keep their metadata;
 * multicast; none). Private networks are where issuers of those who host this themselves live: they are permitted, but
 * where the caller says otherwise. */
#include "identity/issuer.h"

#include "base/buf.h"
#include "base/ip.h"
#include "base/json.h"

#include <curl/curl.h>
#include <stdio.h>
#include <sys/socket.h>

#define CONNECT_SECONDS 10L
#define TRANSFER_SECONDS 10L
#define ANSWER_MAX 262144

_Static_assert(ISSUER_FAULT >= CURL_ERROR_SIZE, "libcurl writes its reasons there");

struct transfer {
	const struct issuer_request *request;
	struct buf body;
	bool refused; /* the address may not be reached */
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

static bool address_is_own(const struct ip *ip)
{
	const unsigned char *b = ip->b;
	if (ip_is_v4(ip))
		return b[12] == 0 || (b[12] == 169 && b[13] == 254) || b[12] >= 224;
	static const struct ip none = {{0}};
	return ip_equal(ip, &none) || b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}

/* After the name was resolved, so that no name can lead where no address may. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *t = ctx;
	struct ip ip = ip_from_sockaddr(&address->addr);
	if (address_is_own(&ip) || (t->request->is_public && !ip_is_public(&ip))) {
		t->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void options_set_all(CURL *curl, struct transfer *t, char *fault)
{
	const struct issuer_request *r = t->request;
	curl_easy_setopt(curl, CURLOPT_URL, r->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, TRANSFER_SECONDS);
	curl_easy_setopt(curl, CURLOPT_MAXFILESIZE, (long)ANSWER_MAX);
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, fault);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_some);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, t);
	if (r->form.n) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->form.n);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->form.p);
	}
	if (r->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, r->ca_file);
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
	struct transfer t = {.request = r};
	CURL *curl = curl_easy_init();
	long status = 0;
	ret_fault[0] = 0;
	options_set_all(curl, &t, ret_fault);
	CURLcode code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	json_t *value = code == CURLE_OK ? json_loadb(t.body.p ? t.body.p : "", t.body.n, 0, NULL) : NULL;
	if (t.refused && code != CURLE_OK)
		snprintf(ret_fault, ISSUER_FAULT, "its address may not be reached");
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
