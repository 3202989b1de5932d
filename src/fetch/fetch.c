/* The rule of addresses is the process's: it is set once, when the configuration was read, and read by all threads. */
#include "fetch/fetch.h"

#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static struct {
	bool all;
	const struct cidr *networks;
	size_t count;
} allowed;

void fetch_allow(bool all, const struct cidr *networks, size_t count)
{
	allowed.all = all;
	allowed.networks = networks;
	allowed.count = count;
}

/* The machine itself, its link, nobody in particular. */
static bool is_own(const struct ip *ip)
{
	static const struct ip none = {{0}}, loopback = {.b = {[15] = 1}};
	const unsigned char *b = ip->b;
	if (ip_is_v4(ip))
		return b[12] == 0 || b[12] == 127 || (b[12] == 169 && b[13] == 254) || b[12] >= 224;
	return ip_equal(ip, &none) || ip_equal(ip, &loopback) || b[0] == 0xff ||
	       (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}

static bool is_allowed(const struct ip *ip)
{
	bool found = allowed.all;
	for (size_t i = 0; !found && i < allowed.count; i++)
		found = cidr_contains(&allowed.networks[i], ip);
	return found;
}

bool fetch_may_reach(enum fetch_named named, const struct ip *ip)
{
	switch (named) {
	case FETCH_BY_OPERATOR: return true;
	case FETCH_BY_PROVIDER: return !is_own(ip) || is_allowed(ip);
	case FETCH_BY_ANSWER: return ip_is_public(ip);
	case FETCH_BY_TENANT: break;
	}
	return ip_is_public(ip) || is_allowed(ip);
}

/* Not for the databases that this process starts: the socket closes with them. */
static curl_socket_t socket_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct fetch *f = ctx;
	struct ip ip = ip_from_sockaddr(&address->addr);
	(void)purpose;
	if (!fetch_may_reach(f->named, &ip)) {
		f->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void fetch_setup(CURL *curl, struct fetch *f, const char *protocols, const char *ca_file)
{
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, protocols);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, socket_open);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, f);
	if (ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
}

void fetch_proxies(CURL *curl, const char *url)
{
	static const char *const own[] = {"https://127.", "https://localhost", "https://[::1]"};
	bool is_own_url = false;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		is_own_url = is_own_url || str_starts(str_of(url), str_of(own[i]));
	if (!is_own_url)
		curl_easy_setopt(curl, CURLOPT_PROXY, NULL);
}

/* Memory. */

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

int fetch_memory_setup(void)
{
	if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiping_free, wiping_realloc, strdup, calloc) == CURLE_OK)
		return 0;
	fprintf(stderr, "steward: libcurl cannot be set up\n");
	return -EIO;
}

void fetch_buf_wipe(struct buf *b)
{
	if (b->p)
		OPENSSL_cleanse(b->p, b->cap);
	buf_free(b);
}

void fetch_headers_wipe(struct curl_slist *list)
{
	for (struct curl_slist *l = list; l; l = l->next)
		OPENSSL_cleanse(l->data, strlen(l->data));
	curl_slist_free_all(list);
}

void fetch_encode(struct buf *b, struct str text, const char *keep)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c && (strchr("-._~", c) || strchr(keep, c))))
			buf_c(b, c);
		else
			buf_printf(b, "%%%02X", (unsigned char)c);
	}
}

/* One request. */

struct transfer {
	const struct fetch_request *request;
	struct fetch_answer *answer;
	struct fetch fetch;
	size_t came;
};

static size_t on_body(char *p, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	const struct fetch_request *r = t->request;
	size_t n = size * count, keeps = r->keeps ? r->keeps : r->most, room = keeps - t->answer->body.n;
	if ((t->answer->too_long = n > r->most - t->came))
		return CURL_WRITEFUNC_ERROR;
	t->came += n;
	buf_add(&t->answer->body, p, n < room ? n : room);
	return n;
}

static int on_progress(void *ctx, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	const struct fetch_request *r = ((const struct transfer *)ctx)->request;
	return r->stops && r->stops(r->ctx);
}

/* OpenSSL decrypts where it has received. */
static CURLcode on_tls(CURL *curl, void *tls, void *ctx)
{
	SSL_CTX_set_options(tls, SSL_OP_CLEANSE_PLAINTEXT);
	return CURLE_OK;
}

static void options_set(CURL *curl, struct transfer *t)
{
	const struct fetch_request *r = t->request;
	fetch_setup(curl, &t->fetch, r->protocols, r->ca_file);
	curl_easy_setopt(curl, CURLOPT_URL, r->url);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, r->connect_seconds);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, r->all_seconds);
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L); /* does not wait for a name server that never answers */
	curl_easy_setopt(curl, CURLOPT_USERAGENT, r->agent ? r->agent : FETCH_AGENT);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->answer->fault);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, r->headers);
	if (r->posts) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.n);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->body.n ? r->body.p : "");
	}
	if (r->wipes)
		curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, on_tls);
	if (r->more)
		r->more(curl, r->ctx);
}

void fetch_run(const struct fetch_request *r, struct fetch_answer *a)
{
	struct transfer t = {.request = r, .answer = a, .fetch.named = r->named};
	CURL *curl = curl_easy_init();
	struct buf body = a->body;
	body.n = 0;
	*a = (struct fetch_answer){.code = CURLE_OUT_OF_MEMORY, .body = body};
	/* At once: growing would leave copies of secrets behind. */
	if (r->wipes)
		buf_reserve(&a->body, r->most);
	if (curl) {
		options_set(curl, &t);
		a->code = curl_easy_perform(curl);
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &a->status);
		curl_easy_cleanup(curl);
	}
	a->refused = t.fetch.refused;
	if (a->code == CURLE_OK)
		a->fault[0] = '\0';
	else if (a->refused)
		snprintf(a->fault, sizeof a->fault, FETCH_REFUSED);
	else if (a->too_long)
		snprintf(a->fault, sizeof a->fault, "the answer is too long");
	else if (!a->fault[0])
		snprintf(a->fault, sizeof a->fault, "%s", curl_easy_strerror(a->code));
}

void fetch_answer_free(struct fetch_answer *a)
{
	fetch_buf_wipe(&a->body);
}
