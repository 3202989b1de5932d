/* gzip of JSON answers.
 *
 * A compressed answer's length tells something about its text, so one that holds a secret beside a text of an
 * attacker's choice would give the secret away (BREACH). There is none: secrets are shown once, in the answer of the
 * write that made them, and writes are not compressed; and no other site can make a browser ask with its cookie
 * (identity/sessions.h).
 *
 * An ETag names the revision of the document, in whatever coding it is sent. */
#include "call/compress.h"

#include <libdeflate.h>
#include <stdlib.h>

#define LEVEL 1

/* "q=0", "q=0.0" ... */
static bool is_refused(struct str parameters)
{
	struct str one, name, value;
	for (bool more = parameters.n > 0; more;) {
		more = str_cut(parameters, ';', &one, &parameters);
		str_cut(str_trim(one), '=', &name, &value);
		if (!str_ieq(str_trim(name), STR("q")))
			continue;
		value = str_trim(value);
		while (value.n && (value.p[0] == '0' || value.p[0] == '.'))
			value = (struct str){value.p + 1, value.n - 1};
		return value.n == 0;
	}
	return false;
}

bool accepts_gzip(const struct request *r)
{
	struct str rest = request_header(r, "accept-encoding"), item, name, parameters;
	bool any = false;
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, ',', &item, &rest);
		str_cut(item, ';', &name, &parameters);
		name = str_trim(name);
		if (str_ieq(name, STR("gzip")) || str_ieq(name, STR("x-gzip")))
			return !is_refused(parameters);
		any |= str_is(name, "*") && !is_refused(parameters);
	}
	return any;
}

static struct str header_of(const struct response *p, struct str name)
{
	for (size_t i = 0; i < p->header_count; i++)
		if (str_ieq(p->headers[i].name, name))
			return p->headers[i].value;
	return STR_NONE;
}

static bool is_candidate(const struct request *r)
{
	const struct response *p = &r->response;
	return p->body.n >= COMPRESS_LEAST && p->status < 300 && !p->stream.read && !r->from_host[0] &&
	       str_ends(header_of(p, STR("content-type")), STR("json")) && !header_of(p, STR("content-encoding")).p;
}

size_t response_compressible(const struct request *r)
{
	return is_candidate(r) && accepts_gzip(r) ? r->response.body.n : 0;
}

void response_compress(struct request *r)
{
	struct response *p = &r->response;
	if (!is_candidate(r))
		return;
	response_header(p, "vary", STR("accept-encoding"));
	if (!accepts_gzip(r))
		return;
	struct libdeflate_compressor *packer = libdeflate_alloc_compressor(LEVEL);
	char *packed = malloc(p->body.n);
	size_t n = packer && packed ? libdeflate_gzip_compress(packer, p->body.p, p->body.n, packed, p->body.n) : 0;
	if (n) {
		if (!p->body_shared)
			p->plain = p->body;
		p->body = arena_dup(r->arena, (struct str){packed, n});
		p->body_shared = false;
		response_header(p, "content-encoding", STR("gzip"));
	}
	free(packed);
	libdeflate_free_compressor(packer);
}
