/* The Authorization header of digest: what is accepted is complete, bounded and means the same when it is written again
 * in the plainest form. */
#include "fuzz.h"

#include "base/buf.h"
#include "identity/identity.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void put(struct buf *b, const char *name, struct str value)
{
	if (!value.p)
		return;
	buf_printf(b, "%s%s=\"", b->n > 7 ? ", " : "", name);
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] == '"' || value.p[i] == '\\')
			buf_c(b, '\\');
		buf_c(b, value.p[i]);
	}
	buf_c(b, '"');
}

static void write_again(struct buf *b, const struct digest_header *d)
{
	buf_z(b, "Digest ");
	put(b, "username", d->username);
	put(b, "realm", d->realm);
	put(b, "nonce", d->nonce);
	put(b, "uri", d->uri);
	put(b, "response", d->response);
	put(b, "opaque", d->opaque);
	put(b, "algorithm", d->algorithm);
	put(b, "qop", d->qop);
	put(b, "cnonce", d->cnonce);
	put(b, "nc", d->nc);
	if (d->username_hash)
		put(b, "userhash", STR("true"));
}

static void same_field(struct str a, struct str b, size_t most)
{
	HOLDS(str_eq(a, b) && !a.p == !b.p && a.n <= most);
	for (size_t i = 0; i < a.n; i++)
		HOLDS((unsigned char)a.p[i] >= 0x20 || a.p[i] == '\t');
}

static void same_header(const struct digest_header *a, const struct digest_header *b, size_t most)
{
	same_field(a->username, b->username, most);
	same_field(a->realm, b->realm, most);
	same_field(a->nonce, b->nonce, most);
	same_field(a->uri, b->uri, most);
	same_field(a->response, b->response, most);
	same_field(a->opaque, b->opaque, most);
	same_field(a->algorithm, b->algorithm, most);
	same_field(a->qop, b->qop, most);
	same_field(a->cnonce, b->cnonce, most);
	same_field(a->nc, b->nc, most);
	HOLDS(a->username_hash == b->username_hash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct digest_header first, before, again;
	memset(&first, 0x5e, sizeof first);
	memset(&before, 0x5e, sizeof before);
	if (digest_parse(fuzz_input(data, size), a, &first)) {
		struct buf text = {0};
		HOLDS(first.username.p && first.realm.p && first.nonce.p && first.uri.p && first.response.p);
		write_again(&text, &first);
		char *exact = fuzz_copy(buf_view(&text));
		HOLDS(digest_parse((struct str){exact, text.n}, a, &again));
		same_header(&first, &again, size);
		free(exact);
		buf_free(&text);
	} else {
		HOLDS(memcmp(&first, &before, sizeof first) == 0);
	}
	arena_free(a);
	return 0;
}
