/* The web console: constant files with constant headers, no store and no caller. What it may do is decided where its
 * calls arrive, in the gates. */
#include "api/console/console.h"

#include "call/answer.h"
#include "call/compress.h"
#include "call/workers.h"

#include <assert.h>
#include <libdeflate.h>
#include <stdlib.h>

#define PAGE "index.html"
#define HASH_DIGITS 16

/* Nothing but our own files, no text that becomes a script, no frame around it. What all answers have (nosniff, no
 * referrer: an address may hold a token; same-origin as a resource) is added by http/. */
static const char *const guards[][2] = {
        {"content-security-policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                                    "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
                                    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
        {"cross-origin-opener-policy", "same-origin"},
        {"permissions-policy", "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), "
                               "magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=(), "
                               "publickey-credentials-create=(self), publickey-credentials-get=(self)"},
        {"x-frame-options", "DENY"},
};

static void guard(struct request *r)
{
	for (size_t i = 0; i < sizeof guards / sizeof *guards; i++)
		response_header(&r->response, guards[i][0], str_of(guards[i][1]));
}

static int compare(const void *key, const void *row)
{
	const struct str *path = key;
	const struct console_file *f = row;
	size_t n = strlen(f->path);
	int order = memcmp(path->p, f->path, path->n < n ? path->n : n);
	return order ? order : path->n < n ? -1 : path->n > n;
}

static const struct console_file *file_find(struct str path)
{
	return path.n ? bsearch(&path, console_files, console_file_count, sizeof *console_files, compare) : NULL;
}

/* A client that cannot read gzip is rare; the few bytes are unpacked for it each time. */
static struct str unpacked(struct arena *a, const struct console_file *f)
{
	char *text = arena_alloc(a, f->plain + 1);
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	enum libdeflate_result result =
	        d ? libdeflate_gzip_decompress(d, f->bytes, f->n, text, f->plain, NULL) : LIBDEFLATE_BAD_DATA;
	libdeflate_free_decompressor(d);
	assert(result == LIBDEFLATE_SUCCESS);
	return (struct str){text, f->plain};
}

static void file_send(struct request *r, const struct console_file *f, const char *kept)
{
	bool packed = accepts_gzip(r);
	r->response.status = 200;
	r->response.body = packed ? (struct str){(const char *)f->bytes, f->n} : unpacked(r->arena, f);
	r->response.body_shared = packed;
	response_header(&r->response, "content-type", str_of(f->type));
	response_header(&r->response, "cache-control", str_of(kept));
	response_header(&r->response, "vary", STR("accept-encoding"));
	if (packed)
		response_header(&r->response, "content-encoding", STR("gzip"));
	guard(r);
}

static void request_refuse(struct request *r, int status, const char *code, const char *detail)
{
	struct problem p = {.status = status, .code = code, .detail = str_of(detail)};
	guard(r);
	answer_problem(r, &p);
}

static bool is_hash(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (hex_value(text.p[i]) < 0)
			return false;
	return text.n == HASH_DIGITS;
}

void console_serve(struct service *s, struct request *r)
{
	struct str rest = {r->path.p + strlen(CONSOLE_PATH), r->path.n - strlen(CONSOLE_PATH)}, hash, path;
	const struct console_file *f;
	str_cut(rest, '/', &hash, &path);
	if (!console_file_count) {
		request_refuse(
		        r, 404, "CONSOLE_NOT_BUILT",
		        "This program was built without its web console, because the console's libraries were not "
		        "there. Run script/npm-packages where there is a network, and build it again. The API is "
		        "not concerned.");
	} else if (!is_hash(hash)) {
		file_send(r, file_find(STR(PAGE)), "no-cache");
	} else if (str_is(hash, console_hash) && (f = file_find(path))) {
		file_send(r, f, "public, max-age=31536000, immutable");
	} else {
		request_refuse(r, 404, "RESOURCE_NOT_FOUND",
		               "There is no such file in this version of the console. Load the page again.");
	}
	respond_here(r);
}

void console_lead(struct service *s, struct request *r)
{
	r->response.status = 302;
	response_header(&r->response, "location", STR(CONSOLE_PATH));
	guard(r);
	respond_here(r);
}
