/* GET /metrics, for a Prometheus that shows the token of a file. Its names and figures tell of all tenants: how many
 * clusters fail, who is busy when, how far the store has grown. Anybody who reached the public port could read them. */
#include "api/edge/edge.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/id.h"
#include "base/option.h"
#include "call/answer.h"
#include "call/workers.h"
#include "trail/metrics.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <unistd.h>

#define TOKEN_LEAST 16
#define TOKEN_MAX 512
#define TOKEN_BYTES 32

/* Its length, or 0: it cannot be read, or is none. Read anew each time, so that it can be replaced. */
static size_t token_read(const char *path, char ret_token[TOKEN_MAX])
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(ret_token, 1, TOKEN_MAX, f) : 0;
	if (f)
		fclose(f);
	while (n && (ret_token[n - 1] == '\n' || ret_token[n - 1] == '\r' || ret_token[n - 1] == ' '))
		n--;
	return n >= TOKEN_LEAST && n < TOKEN_MAX ? n : 0;
}

int scrape_token_ensure(struct arena *a, const char *data_dir, const char *given, const char **ret_path)
{
	char token[TOKEN_MAX];
	const char *path = given ? given : arena_printf(a, "%s/metrics.token", data_dir).p;
	if (!given && access(path, F_OK) < 0 && errno == ENOENT) {
		unsigned char bytes[TOKEN_BYTES];
		char text[BASE64_TEXT(TOKEN_BYTES)];
		random_bytes(bytes, sizeof bytes);
		base64url_encode(bytes, sizeof bytes, text);
		int result = file_replace(path, str_of(text), 0600, FILE_NO_GROUP);
		OPENSSL_cleanse(bytes, sizeof bytes);
		OPENSSL_cleanse(text, sizeof text);
		if (result < 0) {
			fprintf(stderr, "steward: %s cannot be written: %s\n", path, strerrordesc_np(-result));
			return result;
		}
	}
	if (!token_read(path, token))
		return option_refuse("%s: must hold a token of %d to %d characters, which /metrics is read with", path,
		                     TOKEN_LEAST, TOKEN_MAX - 1);
	OPENSSL_cleanse(token, sizeof token);
	*ret_path = path;
	return 0;
}

static bool is_allowed(const struct service *s, const struct request *r)
{
	char token[TOKEN_MAX];
	struct str given = request_header(r, "authorization"), scheme, rest;
	if (!given.n || !str_cut(given, ' ', &scheme, &rest) || !str_ieq(scheme, STR("Bearer")) || !rest.n)
		return false;
	size_t n = token_read(s->metrics_token, token);
	bool same = n && n == rest.n && CRYPTO_memcmp(token, rest.p, n) == 0;
	OPENSSL_cleanse(token, sizeof token);
	return same;
}

void scrape_serve(struct service *s, struct request *r)
{
	if (!is_allowed(s, r)) {
		struct problem p = {.status = 401,
		                    .code = "NOT_AUTHENTICATED",
		                    .detail = STR("Send the token of the service's metrics.token as a bearer token.")};
		response_header(&r->response, "www-authenticate", STR("Bearer realm=\"metrics\""));
		answer_problem(r, &p);
	} else {
		r->response.status = 200;
		r->response.body = metrics_page(s, r->arena);
		r->response.body_shared = true;
		response_header(&r->response, "content-type", STR(METRICS_CONTENT_TYPE));
	}
	respond_here(r);
}
