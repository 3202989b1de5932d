/* Bearer tokens, digest nonces and the base64 below both.
 *
 * Input: byte 1 picks what is done with the rest. 't' reads it as a token, 'n' as a nonce: neither can be guessed, so
 * both must be refused. Anything else takes a token and a nonce of our own and edits them with the rest (position,
 * byte, ...): what is still accepted must mean exactly what was issued. */
#include "fuzz.h"

#include "base/base64.h"
#include "base/clock.h"
#include "identity/identity.h"

#include <unistd.h>

static struct nonce_window *window, *silent; /* the second issues nothing */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char dir[] = "/tmp/fuzz_token.XXXXXX", file[64];
	HOLDS(mkdtemp(dir) && seal_setup(dir) == 0);
	snprintf(file, sizeof file, "%s/secret.key", dir);
	HOLDS(unlink(file) == 0 && rmdir(dir) == 0);
	clock_make_virtual();
	window = nonce_window_new();
	silent = nonce_window_new();
	return 0;
}

static void base64_holds(struct str in)
{
	char *text = malloc(BASE64_TEXT(in.n)), *bytes = malloc(in.n + 1);
	HOLDS(text && bytes);
	base64url_encode(in.p, in.n, text);
	HOLDS(strlen(text) + 1 == BASE64_TEXT(in.n));
	HOLDS(base64_decode(str_of(text), bytes, in.n) == (ssize_t)in.n);
	HOLDS(in.n == 0 || memcmp(bytes, in.p, in.n) == 0);
	/* And the other way round: a text that is taken has one meaning. */
	ssize_t n = base64_decode(in, bytes, in.n);
	HOLDS(n <= (ssize_t)in.n);
	if (n >= 0) {
		char *again = malloc(BASE64_TEXT((size_t)n));
		HOLDS(again);
		base64url_encode(bytes, (size_t)n, again);
		size_t length = strlen(again);
		HOLDS(length <= in.n && in.n - length <= 2);
		for (size_t i = 0; i < length; i++)
			HOLDS(again[i] == in.p[i] || (again[i] == '-' && in.p[i] == '+') ||
			      (again[i] == '_' && in.p[i] == '/'));
		for (size_t i = length; i < in.n; i++)
			HOLDS(in.p[i] == '=');
		free(again);
	}
	free(text);
	free(bytes);
}

static void strange_token(struct str in)
{
	struct token t, before;
	memset(&t, 0x5e, sizeof t);
	memset(&before, 0x5e, sizeof before);
	HOLDS(!token_parse(in, &t));
	HOLDS(memcmp(&t, &before, sizeof t) == 0);
}

static bool tokens_equal(const struct token *a, const struct token *b)
{
	return str_eq(id_str(&a->account_id), id_str(&b->account_id)) &&
	       str_eq(id_str(&a->secret_id), id_str(&b->secret_id)) && str_eq(id_str(&a->unique), id_str(&b->unique)) &&
	       a->expires_ms == b->expires_ms;
}

static size_t edit(char *text, size_t n, struct str *in)
{
	while (in->n >= 2) {
		unsigned at = fuzz_byte(in), byte = fuzz_byte(in);
		if (at < n)
			text[at] = (char)byte;
		else if (at == 0xff && n > 0)
			n--;
	}
	return n;
}

static void edited_token(struct str in)
{
	struct arena *a = arena_new();
	struct id account = id_new(), secret = id_new();
	struct token t, whole;
	int64_t expires = (int64_t)fuzz_byte(&in) * 1000000007;
	struct str issued = token_issue(a, id_str(&account), id_str(&secret), expires);
	HOLDS(issued.n && token_parse(issued, &whole));
	HOLDS(str_eq(id_str(&whole.account_id), id_str(&account)) && str_eq(id_str(&whole.secret_id), id_str(&secret)));
	HOLDS(id_is_valid(id_str(&whole.unique)) && whole.expires_ms == expires);
	char *text = fuzz_copy(issued);
	size_t n = edit(text, issued.n, &in);
	if (token_parse((struct str){text, n}, &t))
		HOLDS(tokens_equal(&t, &whole));
	free(text);
	arena_free(a);
}

static void edited_nonce(struct str in)
{
	char issued[NONCE_TEXT], text[NONCE_TEXT];
	unsigned count = 1 + fuzz_byte(&in);
	nonce_issue(window, issued);
	memcpy(text, issued, sizeof text);
	size_t n = edit(text, NONCE_TEXT - 1, &in);
	bool same = n == NONCE_TEXT - 1 && memcmp(text, issued, n) == 0;
	bool used = nonce_use(window, (struct str){text, n}, count);
	HOLDS(used || !same);
	HOLDS(!nonce_use(window, (struct str){text, n}, 0));
	/* Each count once, whatever the spelling. */
	HOLDS(!used || !nonce_use(window, str_of(issued), count));
	HOLDS(nonce_use(window, str_of(issued), count + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	unsigned what = fuzz_byte(&in);
	base64_holds(in);
	if (what == 't') {
		strange_token(in);
	} else if (what == 'n') {
		HOLDS(!nonce_use(silent, in, 1));
	} else {
		edited_token(in);
		edited_nonce(in);
	}
	return 0;
}
