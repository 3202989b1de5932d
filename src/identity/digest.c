/* Digest authentication of API keys: RFC 7616 with qop=auth, MD5 and SHA-256.
 *
 * The store holds only the HA1s, sealed; they and the caller's snapshot are kept per loop until identities change, so
 * that a call costs two hashes and a look into the window. The response is checked before the nonce: only who knows the
 * key learns that a nonce is stale, and only proved uses count. An unknown key costs the same hashes as a known one. */
#include "base/clock.h"
#include "base/log.h"
#include "identity/attempts.h"
#include "identity/identity.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stddef.h>

#define PARAMETERS_MAX 32
#define HEX_MAX 65
#define SLOTS 1024
#define WAYS 4

enum { ALGORITHM_MD5, ALGORITHM_SHA256, ALGORITHMS };

struct key_slot {
	struct principal *caller; /* NULL: empty; its name is the public key */
	uint64_t generation;
	struct attempt_mark told;
	char ha1[ALGORITHMS][HEX_MAX];
};

struct key_cache {
	unsigned turn;
	EVP_MD_CTX *hashes[ALGORITHMS]; /* used again and again: making one costs more than the hash */
	struct key_slot slots[SLOTS];
};

struct key_cache *key_cache_new(void)
{
	struct key_cache *k = must_calloc(1, sizeof *k);
	for (size_t i = 0; i < ALGORITHMS; i++)
		k->hashes[i] = EVP_MD_CTX_new();
	return k;
}

void key_cache_free(struct key_cache *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		principal_unref(k->slots[i].caller);
	for (size_t i = 0; i < ALGORITHMS; i++)
		EVP_MD_CTX_free(k->hashes[i]);
	OPENSSL_cleanse(k, sizeof *k);
	free(k);
}

/* Header. */

enum { TOKEN = 1, PLAIN = 2 }; /* PLAIN: stands for itself between quotes */

static unsigned char classes[256];

/* Before main, so that the loops need no lock. */
__attribute__((constructor)) static void classes_fill(void)
{
	for (int c = 0; c < 256; c++) {
		bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (alnum || (c && strchr("!#$%&'*+-.^_`|~", c)))
			classes[c] |= TOKEN;
		if ((c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) || c == '\t')
			classes[c] |= PLAIN;
	}
}

static bool is(char c, unsigned class)
{
	return classes[(unsigned char)c] & class;
}

static void skip_spaces(struct str *s)
{
	while (s->n && (*s->p == ' ' || *s->p == '\t')) {
		s->p++;
		s->n--;
	}
}

static struct str take_token(struct str *s)
{
	struct str token = {s->p, 0};
	while (token.n < s->n && is(s->p[token.n], TOKEN))
		token.n++;
	*s = (struct str){s->p + token.n, s->n - token.n};
	return token;
}

/* After the opening quote. Borrows when nothing is escaped. */
static bool take_quoted(struct str *s, struct arena *a, struct str *ret_value)
{
	size_t n = 0, escapes = 0;
	for (; n < s->n && s->p[n] != '"'; n++) {
		if (is(s->p[n], PLAIN))
			continue;
		if (s->p[n] == '\\') {
			escapes++;
			n++;
		}
		if (n >= s->n || ((unsigned char)s->p[n] < 0x20 && s->p[n] != '\t') || s->p[n] == 0x7f)
			return false;
	}
	if (n >= s->n)
		return false;
	struct str value = {s->p, n};
	if (escapes) {
		char *plain = arena_alloc(a, n + 1);
		size_t length = 0;
		for (size_t i = 0; i < n; i++) {
			if (s->p[i] == '\\')
				i++;
			plain[length++] = s->p[i];
		}
		value = (struct str){plain, length};
	}
	*s = (struct str){s->p + n + 1, s->n - n - 1};
	*ret_value = value;
	return true;
}

static struct str *field_of(struct digest_header *d, struct str name)
{
#define FIELD(name)                                                             \
	{                                                                       \
		{#name, sizeof #name - 1}, offsetof(struct digest_header, name) \
	}
	static const struct {
		struct str name;
		size_t at;
	} fields[] = {FIELD(username), FIELD(realm),     FIELD(nonce), FIELD(uri),    FIELD(response),
	              FIELD(opaque),   FIELD(algorithm), FIELD(qop),   FIELD(cnonce), FIELD(nc)};
#undef FIELD
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (str_ieq(name, fields[i].name))
			return (struct str *)(void *)((char *)d + fields[i].at);
	return NULL;
}

static bool take_parameter(struct str *s, struct arena *a, struct digest_header *d)
{
	struct str name = take_token(s), value;
	skip_spaces(s);
	if (!name.n || !s->n || *s->p != '=')
		return false;
	*s = (struct str){s->p + 1, s->n - 1};
	skip_spaces(s);
	if (s->n && *s->p == '"') {
		*s = (struct str){s->p + 1, s->n - 1};
		if (!take_quoted(s, a, &value))
			return false;
	} else {
		value = take_token(s);
		if (!value.n)
			return false;
	}
	struct str *field = field_of(d, name);
	if (field && field->p)
		return false; /* twice: which one counts would be a guess */
	if (field)
		*field = value;
	else if (str_ieq(name, STR("userhash")))
		d->username_hash = str_ieq(value, STR("true"));
	return true;
}

bool digest_parse(struct str header_value, struct arena *a, struct digest_header *ret_digest)
{
	struct digest_header d = {0};
	struct str s = header_value;
	if (!str_ieq(take_token(&s), STR("Digest")) || !s.n || (*s.p != ' ' && *s.p != '\t'))
		return false;
	for (int count = 0; count < PARAMETERS_MAX; count++) {
		while (s.n && (*s.p == ' ' || *s.p == '\t' || *s.p == ','))
			s = (struct str){s.p + 1, s.n - 1};
		if (!s.n)
			break;
		if (!take_parameter(&s, a, &d))
			return false;
		skip_spaces(&s);
		if (s.n && *s.p != ',')
			return false;
	}
	if (s.n || !d.username.p || !d.realm.p || !d.nonce.p || !d.uri.p || !d.response.p)
		return false;
	*ret_digest = d;
	return true;
}

/* Hashes. */

static EVP_MD *algorithms[ALGORITHMS];
static pthread_once_t algorithms_once = PTHREAD_ONCE_INIT;

/* Fetched once: OpenSSL's look-up by name costs more than the hash. */
static void algorithms_fetch(void)
{
	algorithms[ALGORITHM_MD5] = EVP_MD_fetch(NULL, "MD5", NULL);
	algorithms[ALGORITHM_SHA256] = EVP_MD_fetch(NULL, "SHA256", NULL);
}

/* Joined where they are short, as they mostly are: the way into OpenSSL's hash costs more than a few bytes. */
static bool parts_update(EVP_MD_CTX *ctx, const struct str *parts, size_t count)
{
	char joined[512];
	size_t n = 0, room = count;
	bool ok = true;
	for (size_t i = 0; i < count; i++)
		room += parts[i].n;
	if (room > sizeof joined) {
		for (size_t i = 0; ok && i < count; i++)
			ok = (i == 0 || EVP_DigestUpdate(ctx, ":", 1)) && EVP_DigestUpdate(ctx, parts[i].p, parts[i].n);
		return ok;
	}
	for (size_t i = 0; i < count; i++) {
		if (i)
			joined[n++] = ':';
		if (parts[i].n)
			memcpy(joined + n, parts[i].p, parts[i].n);
		n += parts[i].n;
	}
	ok = EVP_DigestUpdate(ctx, joined, n);
	OPENSSL_cleanse(joined, n);
	return ok;
}

/* Hexadecimal hash of the parts with colons between them. False where the algorithm is not to be had. */
static bool hash_parts(EVP_MD_CTX *ctx, int algorithm, const struct str *parts, size_t count, char ret_hex[HEX_MAX])
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	pthread_once(&algorithms_once, algorithms_fetch);
	bool ok = ctx && algorithms[algorithm] && EVP_DigestInit_ex2(ctx, algorithms[algorithm], NULL);
	ok = ok && parts_update(ctx, parts, count) && EVP_DigestFinal_ex(ctx, raw, &n) && n * 2 < HEX_MAX;
	if (ok)
		hex_encode(raw, n, ret_hex);
	return ok;
}

void digest_ha1(bool sha256, struct str username, struct str password, char ret_hex[65])
{
	const struct str parts[] = {username, STR(DIGEST_REALM), password};
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	if (!hash_parts(ctx, sha256 ? ALGORITHM_SHA256 : ALGORITHM_MD5, parts, 3, ret_hex))
		ret_hex[0] = '\0'; /* matches no response */
	EVP_MD_CTX_free(ctx);
}

static bool response_is_right(EVP_MD_CTX *ctx, int algorithm, const struct digest_header *d, struct str method,
                              const char *ha1)
{
	char ha2[HEX_MAX], expected[HEX_MAX], given[HEX_MAX];
	const struct str second[] = {method, d->uri};
	if (!hash_parts(ctx, algorithm, second, 2, ha2))
		return false;
	const struct str all[] = {str_of(ha1), d->nonce, d->nc, d->cnonce, d->qop, str_of(ha2)};
	if (!hash_parts(ctx, algorithm, all, 6, expected) || d->response.n >= sizeof given)
		return false;
	for (size_t i = 0; i < d->response.n; i++) {
		char c = d->response.p[i];
		given[i] = (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
	}
	return str_eq_secret((struct str){given, d->response.n}, str_of(expected));
}

/* Keys. */

static bool secret_open(struct arena *a, const struct doc *doc, char ret_ha1[ALGORITHMS][HEX_MAX])
{
	struct str plain, context = arena_printf(a, "api_key/%.*s", STR_ARG(doc->id));
	if (seal_open(a, doc->secret, context, &plain) < 0) {
		log_error("the secret of the API key %.*s cannot be opened", STR_ARG(doc->id));
		return false;
	}
	json_t *both = json_loadb(plain.p, plain.n, 0, NULL);
	const char *md5 = json_string_value(json_object_get(both, "md5"));
	const char *sha256 = json_string_value(json_object_get(both, "sha256"));
	bool ok = md5 && sha256 && strlen(md5) == 32 && strlen(sha256) == 64;
	if (ok) {
		memcpy(ret_ha1[ALGORITHM_MD5], md5, 33);
		memcpy(ret_ha1[ALGORITHM_SHA256], sha256, 65);
	}
	json_decref(both);
	return ok;
}

static int key_load(struct tx *tx, struct arena *a, struct str public_key, struct key_slot *ret_key)
{
	struct str id;
	struct doc doc;
	struct key_slot key = {0};
	int r = tx_ref_get(tx, a, "api_key_public", public_key, &id);
	if (r == 0)
		r = tx_get(tx, a, "api_key", id, &doc);
	if (r == 0 && !secret_open(a, &doc, key.ha1))
		r = -ENOENT;
	if (r == 0)
		r = principal_load(tx, PRINCIPAL_API_KEY, id, &key.caller);
	if (r == 0)
		*ret_key = key;
	return r;
}

int digest_prove(struct tx *tx, struct arena *a, struct str public_key, struct str private_key,
                 struct principal **ret_key)
{
	struct key_slot key = {0};
	char given[HEX_MAX];
	int r = key_load(tx, a, public_key, &key);
	if (r < 0 && r != -ENOENT)
		return r;
	/* An unknown key costs the same hash as a known one. */
	digest_ha1(true, public_key, private_key, given);
	bool right = str_eq_secret(str_of(given), str_of(key.ha1[ALGORITHM_SHA256])) && given[0];
	OPENSSL_cleanse(key.ha1, sizeof key.ha1);
	if (r == 0 && right) {
		*ret_key = key.caller;
		return 0;
	}
	principal_unref(key.caller);
	return -EACCES;
}

static struct key_slot *slots_of(struct key_cache *k, struct str public_key)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < public_key.n; i++)
		hash = (hash ^ (unsigned char)public_key.p[i]) * 0x100000001b3u;
	return &k->slots[(hash >> 20) % (SLOTS / WAYS) * WAYS];
}

/* The key's slot, read from the store when it is not there or stale. -ENOENT: no such key. */
static int key_find(struct call *c, struct str public_key, struct key_slot **ret_key)
{
	struct key_cache *k = token_cache_keys(call_loop(c)->tokens);
	/* Kept under the generation that the state read here shows, which may be older than the newest. */
	uint64_t generation = store_identity_generation(c->service->store), shown = tx_identity_generation(c->tx);
	struct key_slot fresh, *to;
	if (public_key.n >= sizeof fresh.caller->name)
		return -ENOENT;
	struct key_slot *s = slots_of(k, public_key);
	to = &s[k->turn++ % WAYS];
	for (size_t i = 0; i < WAYS; i++) {
		if (!s[i].caller || s[i].generation != generation)
			to = &s[i];
		else if (str_is(public_key, s[i].caller->name)) {
			*ret_key = &s[i];
			return 0;
		}
	}
	int r = key_load(c->tx, c->arena, public_key, &fresh);
	if (r < 0)
		return r;
	principal_unref(to->caller);
	*to = fresh;
	to->generation = shown;
	*ret_key = to;
	return 0;
}

/* The call. */

/* The uri is hashed, so it must be the one that was asked for: byte for byte, or the same behind scheme and authority.
 */
static bool uri_is_target(struct str uri, struct str target)
{
	if (str_eq(uri, target))
		return true;
	size_t scheme = str_starts(uri, STR("https://")) ? 8 : str_starts(uri, STR("http://")) ? 7 : 0;
	if (!scheme)
		return false;
	const char *path = memchr(uri.p + scheme, '/', uri.n - scheme);
	return path && str_eq((struct str){path, uri.n - (size_t)(path - uri.p)}, target);
}

static bool count_parse(struct str nc, uint32_t *ret_count)
{
	uint32_t count = 0;
	if (nc.n != 8)
		return false;
	for (size_t i = 0; i < nc.n; i++) {
		char c = (char)(nc.p[i] >= 'A' && nc.p[i] <= 'F' ? nc.p[i] - 'A' + 'a' : nc.p[i]);
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
		count = count << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret_count = count;
	return count > 0;
}

/* What is known of who tries; a wrong response is told apart from one too many. */
static int digest_check(struct call *c, const struct digest_header *d, struct key_slot *right,
                        enum attempt_state attempt)
{
	struct attempts *a = c->service->attempts;
	if (right) {
		attempt_succeeded_again(a, d->username, &c->request->peer, &right->told);
		return 0;
	}
	attempt_failed(a, d->username, &c->request->peer);
	return attempt == ATTEMPT_OPEN ? -EACCES : -EBUSY;
}

int digest_caller(struct call *c, struct str header_value, struct principal **ret_caller)
{
	static const char nobody[ALGORITHMS][HEX_MAX] = {
	        "00000000000000000000000000000000", "0000000000000000000000000000000000000000000000000000000000000000"};
	struct digest_header d;
	struct key_slot *key = NULL;
	uint32_t count;
	if (!digest_parse(header_value, c->arena, &d) || d.username_hash || !str_is(d.realm, DIGEST_REALM) ||
	    !str_ieq(d.qop, STR("auth")) || !d.cnonce.n || !count_parse(d.nc, &count))
		return -EACCES;
	bool sha256 = str_ieq(d.algorithm, STR("SHA-256"));
	if (!sha256 && d.algorithm.p && !str_ieq(d.algorithm, STR("MD5")))
		return -EACCES;
	if (!uri_is_target(d.uri, c->request->target))
		return -EACCES;
	enum attempt_state attempt =
	        attempt_ask(c->service->attempts, d.username, &c->request->peer, &c->limit.retry_after);
	if (attempt == ATTEMPT_REFUSED)
		return -EBUSY;
	int r = key_find(c, d.username, &key);
	if (r < 0 && r != -ENOENT)
		return r;
	int algorithm = sha256 ? ALGORITHM_SHA256 : ALGORITHM_MD5;
	EVP_MD_CTX *ctx = token_cache_keys(call_loop(c)->tokens)->hashes[algorithm];
	const char *ha1 = key ? key->ha1[algorithm] : nobody[algorithm];
	bool right = response_is_right(ctx, algorithm, &d, c->request->method, ha1);
	r = digest_check(c, &d, right ? key : NULL, attempt);
	if (r < 0)
		return r;
	if (!c->again && !nonce_use(c->service->nonces, d.nonce, count))
		return -ESTALE;
	*ret_caller = principal_ref(key->caller);
	return 0;
}
