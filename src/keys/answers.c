/* What key services are asked and answer: texts of theirs, and keys out of their answers. */
#include "keys/services.h"

#include "base/base64.h"
#include "base/json.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

bool text_is_plain(struct str text, const char *more)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr(more, c))))
			return false;
	}
	return true;
}

char *text_copy(struct str text)
{
	char *copy = must_malloc(text.n + 1);
	if (text.n)
		memcpy(copy, text.p, text.n);
	copy[text.n] = 0;
	return copy;
}

void base64_padded(const void *bytes, size_t n, char *ret_text)
{
	EVP_EncodeBlock((unsigned char *)ret_text, bytes, (int)n);
}

static struct str bytes_of(struct arena *a, const json_t *answer, const char *field)
{
	struct str text = json_field(answer, field);
	bool good = text.n && text.n <= WRAPPED_MAX && text_is_plain(text, "+/=-_");
	return good ? arena_dup(a, text) : STR_NONE;
}

int answer_wrap(struct arena *a, json_t *answer, const struct key_words *words, const char *payload,
                struct key_wrap *ret_wrap, char *why)
{
	struct provider_request about = {.what = words->what, .payload = payload};
	struct str by = json_field(answer, words->by);
	ret_wrap->bytes = bytes_of(a, answer, words->bytes);
	ret_wrap->version =
	        by.n && by.n <= words->by_most && text_is_plain(by, words->by_more) ? arena_dup(a, by) : STR_NONE;
	json_decref(answer);
	return ret_wrap->bytes.n ? 0 : provider_fail(&about, -EPROTO, why, " answered 200 without a %s", words->bytes);
}

int answer_unwrap(json_t *answer, const struct key_words *words, unsigned char *ret_plain, char *why)
{
	struct provider_request about = {.what = words->what};
	struct str text = json_field(answer, words->bytes);
	bool good = text.n && base64_decode(text, ret_plain, DATA_KEY_BYTES) == DATA_KEY_BYTES;
	if (text.n)
		OPENSSL_cleanse((char *)(uintptr_t)text.p, text.n);
	json_decref(answer);
	return good ? 0 : provider_fail(&about, -EPROTO, why, " answered 200 without a key of 256 bits");
}

static int refused(const struct provider_request *q, const struct provider_answer *a, const char *service,
                   const char *code, char *why)
{
	json_t *answer = provider_answer_json(a);
	const json_t *error = json_object_get(answer, "error");
	struct str said = json_field(error, code), about = json_field(error, "message");
	int r;
	if (!said.n || said.n > 64)
		r = provider_fail(q, -EPROTO, why, " answered %ld, and this is no answer of %s", a->status, service);
	else
		r = provider_fail(q, -EACCES, why, " answered %ld %.*s%s%.*s", a->status, STR_ARG(said),
		                  about.n ? ": " : "", (int)(about.n < 300 ? about.n : 300), about.n ? about.p : "");
	json_decref(answer);
	return r;
}

int answer_get(struct keys *k, struct key_question *asked, json_t **ret_answer, char *why)
{
	struct provider_answer a = {.status = 0};
	struct provider_request q = {.what = asked->what,
	                             .url = asked->url,
	                             .named = asked->own ? FETCH_BY_OPERATOR : FETCH_BY_PROVIDER,
	                             .body = buf_view(&asked->body),
	                             .json = true,
	                             .bearer = asked->by.token,
	                             .payload = asked->payload};
	int r = provider_call(k->providers, &q, &a, why);
	if (r == 0 && a.status != 200)
		r = refused(&q, &a, asked->service, asked->code, why);
	if (r == 0 && !(*ret_answer = provider_answer_json(&a)))
		r = provider_fail(&q, -EPROTO, why, " answered 200, and this is no answer of %s", asked->service);
	provider_answer_free(&a);
	provider_credentials_free(&asked->by);
	fetch_buf_wipe(&asked->body);
	free(asked->url);
	return r;
}
