/* The load client's HTTP/1.1 and digest: just enough to talk to a server that is known. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "load.h"

#include <strings.h>

static const char digits[] = "0123456789abcdef";

static void hash_end(MD5_CTX *hash, char ret_hex[HEX_MD5])
{
	unsigned char raw[MD5_DIGEST_LENGTH];
	MD5_Final(raw, hash);
	for (unsigned i = 0; i < sizeof raw; i++) {
		ret_hex[2 * i] = digits[raw[i] >> 4];
		ret_hex[2 * i + 1] = digits[raw[i] & 15];
	}
	ret_hex[2 * sizeof raw] = '\0';
}

static void hash_hex(const char *text, char ret_hex[HEX_MD5])
{
	MD5_CTX hash;
	MD5_Init(&hash);
	MD5_Update(&hash, text, strlen(text));
	hash_end(&hash, ret_hex);
}

static size_t must_fit(int n, size_t room)
{
	if (n < 0 || (size_t)n >= room) {
		fputs("load: the request is too long\n", stderr);
		exit(1);
	}
	return (size_t)n;
}

/* All of it, or, with a body, all before the number that is the body's length. */
static size_t head_write(const struct plan *p, const char *authorization, char ret_text[REQUEST_MAX])
{
	int n = snprintf(ret_text, REQUEST_MAX, "%s %s HTTP/1.1\r\nHost: %s:%s\r\nAccept: %s\r\n%s%s",
	                 p->post ? "POST" : "GET", p->path, p->host, p->port, p->accept, authorization,
	                 p->post ? "Content-Type: application/json\r\nContent-Length: " : "\r\n");
	return must_fit(n, REQUEST_MAX);
}

static void bearer_write(const struct plan *p, char *ret_line, size_t size)
{
	ret_line[0] = '\0';
	if (p->bearer)
		snprintf(ret_line, size, "Authorization: Bearer %s\r\n", p->bearer);
}

void plan_prepare(struct plan *p)
{
	char line[REQUEST_MAX];
	if (p->user) {
		snprintf(line, sizeof line, "%s:Steward:%s", p->user, p->password);
		hash_hex(line, p->ha1);
		must_fit(snprintf(line, sizeof line, "%s:%s", p->post ? "POST" : "GET", p->path), sizeof line);
		hash_hex(line, p->ha2);
	} else {
		bearer_write(p, line, sizeof line);
		p->fixed_n = head_write(p, line, p->fixed);
		must_fit(snprintf(p->authority, sizeof p->authority, "%s:%s", p->host, p->port), sizeof p->authority);
		must_fit(snprintf(p->authorization, sizeof p->authorization, "Bearer %s", p->bearer ? p->bearer : ""),
		         sizeof p->authorization);
	}
}

static void digest_write(struct link *l, char *ret_line, size_t size)
{
	const struct plan *p = l->worker->plan;
	char response[HEX_MD5];
	ret_line[0] = '\0';
	if (!l->nonce[0])
		return; /* the answer will be the challenge */
	l->nonce_count++;
	must_fit(snprintf(l->proof, sizeof l->proof, "%s:%s:%08x:0a4f113b:auth:%s", p->ha1, l->nonce, l->nonce_count,
	                  p->ha2),
	         sizeof l->proof);
	hash_hex(l->proof, response);
	snprintf(ret_line, size,
	         "Authorization: Digest username=\"%s\", realm=\"Steward\", nonce=\"%s\", uri=\"%s\", algorithm=MD5, "
	         "qop=auth, nc=%08x, cnonce=\"0a4f113b\", response=\"%s\"\r\n",
	         p->user, l->nonce, p->path, l->nonce_count, response);
}

/* Finds once what digest_count() changes. */
static void digest_find(struct link *l)
{
	l->count_in_proof = l->proof + HEX_MD5 + strlen(l->nonce) + 1;
	MD5_Init(&l->before_count);
	MD5_Update(&l->before_count, l->proof, (size_t)(l->count_in_proof - l->proof));
	l->count = strstr(l->request, ", nc=") + 5;
	l->response = strstr(l->request, ", response=\"") + 12;
}

/* The request that was sent last, with the next count: all else in it is the same. */
static void digest_count(struct link *l)
{
	char response[HEX_MD5];
	l->nonce_count++;
	for (unsigned i = 0; i < 8; i++)
		l->count[i] = digits[l->nonce_count >> (28 - 4 * i) & 15];
	memcpy(l->count_in_proof, l->count, 8);
	MD5_CTX hash = l->before_count;
	MD5_Update(&hash, l->count_in_proof, strlen(l->count_in_proof));
	hash_end(&hash, response);
	memcpy(l->response, response, HEX_MD5 - 1);
}

size_t body_compose(struct link *l, char ret_body[BODY_MAX])
{
	const struct plan *p = l->worker->plan;
	const char *hole = strstr(p->post, "{n}");
	int n = hole ? snprintf(ret_body, BODY_MAX, "%.*s%s-%llu%s", (int)(hole - p->post), p->post, p->run,
	                        atomic_fetch_add(l->worker->made, 1), hole + 3)
	             : snprintf(ret_body, BODY_MAX, "%s", p->post);
	return must_fit(n, BODY_MAX);
}

/* The body's length, the end of the header block and the body. */
static size_t body_write(struct link *l, char *ret_text, size_t size)
{
	char body[BODY_MAX];
	size_t n = body_compose(l, body);
	return must_fit(snprintf(ret_text, size, "%zu\r\n\r\n%s", n, body), size);
}

void link_compose(struct link *l)
{
	const struct plan *p = l->worker->plan;
	char line[2048];
	l->out = p->fixed;
	l->out_n = p->fixed_n;
	if (p->fixed_n && !p->post)
		return;
	l->out = l->request;
	if (p->user && !p->post && l->nonce[0] && l->nonce_count) {
		digest_count(l);
		l->out_n = l->request_n;
	} else if (p->user) {
		digest_write(l, line, sizeof line);
		l->out_n = l->request_n = head_write(p, line, l->request);
		if (l->nonce[0])
			digest_find(l);
	} else {
		memcpy(l->request, p->fixed, p->fixed_n);
	}
	if (p->post)
		l->out_n += body_write(l, l->request + l->out_n, REQUEST_MAX - l->out_n);
}

/* The first MD5 challenge's nonce; one challenge a line. */
static void challenge_take(struct link *l, const char *line)
{
	const char *nonce = strstr(line, "nonce=\"");
	const char *end = nonce ? strchr(nonce + 7, '"') : NULL;
	const char *algorithm = strstr(line, "algorithm=");
	if (!end || (size_t)(end - nonce - 7) >= NONCE_MAX || (algorithm && strstr(algorithm, "SHA-256")))
		return;
	memcpy(l->nonce, nonce + 7, (size_t)(end - nonce - 7));
	l->nonce[end - nonce - 7] = '\0';
	l->nonce_count = 0;
}

bool link_understand(struct link *l)
{
	bool length = false;
	l->body_left = 0;
	l->status = 0;
	if (strncmp(l->head, "HTTP/1.1 ", 9) != 0)
		return false;
	l->status = (int)strtol(l->head + 9, NULL, 10);
	for (char *line = strchr(l->head, '\n'); line && line[1]; line = strchr(line, '\n')) {
		line++;
		if (strncasecmp(line, "content-length:", 15) == 0) {
			l->body_left = strtoull(line + 15, NULL, 10);
			length = true;
		} else if (l->status == 401 && strncasecmp(line, "www-authenticate: digest", 24) == 0) {
			char *end = strchr(line, '\n');
			if (end)
				*end = '\0';
			challenge_take(l, line);
			if (end)
				*end = '\n';
		}
	}
	return l->status >= 200 && l->status < STATUS_MAX && (length || l->status == 204 || l->status == 304);
}
