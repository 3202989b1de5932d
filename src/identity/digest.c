/* Digest authentication of API keys: RFC 7616 with qop=auth, MD5 and SHA-256.
 *
 * The store holds only the HA1s, sealed; they and the caller's snapshot are kept per loop until identities change. Kept
 * are also the HA2s of the targets that were last asked for, whoever asked, and for MD5 the state after the first block
 * of what is hashed, which is the same for all uses of a nonce; and headers, since the uses of a nonce differ in count
 * and response alone. So a call mostly costs two blocks of a hash and a look into the window. All three are looked up
 * by the very bytes that would be hashed or read, and written only by right responses.
 *
 * The response is checked before the nonce: only who knows the key learns that a nonce is stale, and only proved uses
 * count. An unknown key costs the same hashes as a known one. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/clock.h"
#include "base/log.h"
#include "identity/attempts.h"
#include "identity/identity.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stddef.h>

#define PARAMETERS_MAX 32
#define HEX_MAX 65
#define SLOTS 1024
#define WAYS 4
#define TARGETS 64
#define TARGET_KEPT 256
#define BLOCK 64 /* what MD5 takes at once */
#define BLOCKS 256
#define HEADERS 64
#define HEADER_KEPT 512

enum { ALGORITHM_MD5, ALGORITHM_SHA256, ALGORITHMS };

struct key_slot {
	struct principal *caller; /* NULL: empty; its name is the public key */
	uint64_t generation;
	struct attempt_mark told;
	char ha1[ALGORITHMS][HEX_MAX];
};

/* HA2 of a target that was asked for with a right response. */
struct target_slot {
	int algorithm;
	size_t n;               /* 0: empty */
	char text[TARGET_KEPT]; /* method, colon and uri: what HA2 is the hash of */
	char ha2[HEX_MAX];
};

/* OpenSSL's hashes by their older interface: the state is a plain struct, so that it can be copied, and no context is
 * made for each. */
struct hash {
	int algorithm;
	union {
		MD5_CTX md5;
		SHA256_CTX sha256;
	};
};

/* The MD5 state after the first block of what a right response was the hash of. */
struct block_slot {
	bool used;
	char block[BLOCK];
	MD5_CTX after;
};

/* A header whose response was right. */
struct header_slot {
	size_t n; /* 0: empty */
	char text[HEADER_KEPT];
	struct digest_header parts; /* of text */
};

struct key_cache {
	unsigned turn;
	struct header_slot headers[HEADERS];
	struct block_slot blocks[BLOCKS];
	struct target_slot targets[TARGETS];
	struct key_slot slots[SLOTS];
};

struct key_cache *key_cache_new(void)
{
	return must_calloc(1, sizeof(struct key_cache));
}

void key_cache_free(struct key_cache *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		principal_unref(k->slots[i].caller);
	OPENSSL_cleanse(k, sizeof *k);
	free(k);
}

/* Header. */

static bool is_token[256];

/* Before main, so that the loops need no lock. */
__attribute__((constructor)) static void is_token_fill(void)
{
	for (int c = 0; c < 256; c++) {
		bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		is_token[c] = alnum || (c && strchr("!#$%&'*+-.^_`|~", c));
	}
}

/* A header without control characters and backslashes, as nearly all are: a quoted value is all up to the next quote.
 * There is no early exit, so that a compiler can check many bytes at once. */
static bool is_plain(struct str s)
{
	unsigned char other = 0;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		other |= (unsigned char)(c < 0x20) | (unsigned char)(c == 0x7f) | (unsigned char)(c == '\\');
	}
	return !other;
}

/* What is left to read is all from p to end. */

static const char *skip_spaces(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static const char *skip_token(const char *p, const char *end)
{
	while (p < end && is_token[(unsigned char)*p])
		p++;
	return p;
}

/* The text between p, after the opening quote, and the closing quote, without its escapes. Borrows when there are none.
 * Returns where it continues after the closing quote; NULL: it cannot be read. */
static const char *take_quoted(const char *p, const char *end, struct arena *a, struct str *ret_value)
{
	const char *q = p;
	size_t escapes = 0;
	for (; q < end && *q != '"'; q++) {
		if (*q == '\\') {
			escapes++;
			q++;
		}
		if (q == end || ((unsigned char)*q < 0x20 && *q != '\t') || *q == 0x7f)
			return NULL;
	}
	if (q == end)
		return NULL;
	struct str value = {p, (size_t)(q - p)};
	if (escapes) {
		char *text = arena_alloc(a, value.n + 1);
		size_t length = 0;
		for (; p < q; p++) {
			if (*p == '\\')
				p++;
			text[length++] = *p;
		}
		value = (struct str){text, length};
	}
	*ret_value = value;
	return q + 1;
}

static const char *take_value(const char *p, const char *end, bool plain, struct arena *a, struct str *ret_value)
{
	if (p == end)
		return NULL;
	if (*p != '"') {
		const char *after = skip_token(p, end);
		*ret_value = (struct str){p, (size_t)(after - p)};
		return after > p ? after : NULL;
	}
	p++;
	if (!plain)
		return take_quoted(p, end, a, ret_value);
	const char *quote = memchr(p, '"', (size_t)(end - p));
	if (!quote)
		return NULL;
	*ret_value = (struct str){p, (size_t)(quote - p)};
	return quote + 1;
}

#define FIELD(name)                                                           \
	{                                                                     \
#name, sizeof #name - 1, offsetof(struct digest_header, name) \
	}
static const struct parameter {
	const char *name;
	size_t n, at;
} fields[] = {FIELD(username), FIELD(realm), FIELD(nonce),  FIELD(uri),      FIELD(algorithm),
              FIELD(qop),      FIELD(nc),    FIELD(cnonce), FIELD(response), FIELD(opaque)};
#undef FIELD
#define FIELDS (sizeof fields / sizeof *fields)

/* The field whose name and equals sign stand at p, as nearly all clients write them; NULL: look closer. */
static const struct parameter *field_at(const char *p, const char *end)
{
	for (const struct parameter *f = fields; f < fields + FIELDS; f++)
		if (*p == f->name[0] && (size_t)(end - p) > f->n && p[f->n] == '=' && memcmp(p, f->name, f->n) == 0)
			return f;
	return NULL;
}

static const struct parameter *field_named(struct str name)
{
	for (const struct parameter *f = fields; f < fields + FIELDS; f++)
		if (str_ieq(name, (struct str){f->name, f->n}))
			return f;
	return NULL;
}

/* Returns where it continues after the parameter; NULL: it cannot be read. */
static const char *take_parameter(const char *p, const char *end, bool plain, struct arena *a, struct digest_header *d)
{
	const struct parameter *field = field_at(p, end);
	const char *after = field ? p + field->n : skip_token(p, end);
	struct str name = {p, (size_t)(after - p)}, value;
	p = skip_spaces(after, end);
	if (!name.n || p == end || *p != '=')
		return NULL;
	p = take_value(skip_spaces(p + 1, end), end, plain, a, &value);
	if (!p)
		return NULL;
	if (!field)
		field = field_named(name);
	if (field) {
		struct str *to = (struct str *)(void *)((char *)d + field->at);
		if (to->p)
			return NULL; /* twice: which one counts would be a guess */
		*to = value;
	} else if (str_ieq(name, STR("userhash"))) {
		d->username_hash = str_ieq(value, STR("true"));
	}
	p = skip_spaces(p, end);
	return p == end || *p == ',' ? p : NULL;
}

bool digest_parse(struct str header_value, struct arena *a, struct digest_header *ret_digest)
{
	static const struct str scheme = {"Digest", 6};
	struct digest_header d = {0};
	if (header_value.n <= scheme.n || !str_ieq((struct str){header_value.p, scheme.n}, scheme))
		return false;
	const char *p = header_value.p + scheme.n, *end = header_value.p + header_value.n;
	bool plain = is_plain(header_value);
	if (*p != ' ' && *p != '\t')
		return false;
	for (int count = 0; p && p < end; count++) {
		while (p < end && (*p == ' ' || *p == '\t' || *p == ','))
			p++;
		if (p < end)
			p = count < PARAMETERS_MAX ? take_parameter(p, end, plain, a, &d) : NULL;
	}
	if (!p || !d.username.p || !d.realm.p || !d.nonce.p || !d.uri.p || !d.response.p)
		return false;
	*ret_digest = d;
	return true;
}

#define SLOT_AT 64 /* bytes there are the nonce's, as nearly all clients write a header: as good as a hash */

/* Where such a header is kept; NULL: none so short or long is. */
static struct header_slot *header_slot_of(struct key_cache *k, struct str header_value)
{
	uint64_t part[2];
	if (header_value.n < SLOT_AT + sizeof part || header_value.n > HEADER_KEPT)
		return NULL;
	memcpy(part, header_value.p + SLOT_AT, sizeof part);
	return &k->headers[((part[0] ^ part[1]) * 0x9e3779b97f4a7c15u >> 32) % HEADERS];
}

/* Whether the header is the kept one but for what the count and the response say: then it has the same parts, and only
 * those two are its own. Whoever uses them looks at every byte of the two. */
static bool header_again(const struct header_slot *s, struct str header_value, struct digest_header *ret_digest)
{
	if (!s || s->n != header_value.n)
		return false;
	const char *value = header_value.p;
	struct str one = s->parts.nc, two = s->parts.response;
	size_t nc = (size_t)(one.p - s->text), response = (size_t)(two.p - s->text);
	if (nc > response) {
		one = s->parts.response;
		two = s->parts.nc;
	}
	size_t from = (size_t)(one.p - s->text) + one.n, to = (size_t)(two.p - s->text), rest = to + two.n;
	if (memcmp(s->text, value, from - one.n) != 0 || memcmp(s->text + from, value + from, to - from) != 0 ||
	    memcmp(s->text + rest, value + rest, s->n - rest) != 0)
		return false;
	*ret_digest = s->parts;
	ret_digest->nc.p = value + nc;
	ret_digest->response.p = value + response;
	return true;
}

static void header_keep(struct header_slot *s, struct str header_value, const struct digest_header *d)
{
	if (!s)
		return;
	s->n = 0;
	s->parts = *d;
	memcpy(s->text, header_value.p, header_value.n);
	for (const struct parameter *f = fields; f < fields + FIELDS; f++) {
		struct str *part = (struct str *)(void *)((char *)&s->parts + f->at);
		if (part->p && (part->p < header_value.p || part->p + part->n > header_value.p + header_value.n))
			return; /* written with escapes, and so not a part of the text */
		if (part->p)
			part->p = s->text + (part->p - header_value.p);
	}
	s->n = header_value.n;
}

/* Hashes. */

static bool allowed[ALGORITHMS];
static pthread_once_t allowed_once = PTHREAD_ONCE_INIT;

/* A machine's policy may take an algorithm away, and only this interface of OpenSSL knows. */
static void allowed_ask(void)
{
	static const char *const names[ALGORITHMS] = {[ALGORITHM_MD5] = "MD5", [ALGORITHM_SHA256] = "SHA256"};
	for (size_t i = 0; i < ALGORITHMS; i++) {
		EVP_MD *md = EVP_MD_fetch(NULL, names[i], NULL);
		allowed[i] = md != NULL;
		EVP_MD_free(md);
	}
}

static void hash_start(struct hash *h, int algorithm)
{
	h->algorithm = algorithm;
	if (algorithm == ALGORITHM_SHA256)
		SHA256_Init(&h->sha256);
	else
		MD5_Init(&h->md5);
}

static void hash_add(struct hash *h, const void *p, size_t n)
{
	if (h->algorithm == ALGORITHM_SHA256)
		SHA256_Update(&h->sha256, p, n);
	else
		MD5_Update(&h->md5, p, n);
}

static void hash_end(struct hash *h, char ret_hex[HEX_MAX])
{
	unsigned char raw[SHA256_DIGEST_LENGTH];
	if (h->algorithm == ALGORITHM_SHA256)
		SHA256_Final(raw, &h->sha256);
	else
		MD5_Final(raw, &h->md5);
	hex_encode(raw, h->algorithm == ALGORITHM_SHA256 ? SHA256_DIGEST_LENGTH : MD5_DIGEST_LENGTH, ret_hex);
}

/* The parts with colons between them, if they fit; their length, or 0. */
static size_t parts_join(const struct str *parts, size_t count, char *ret_text, size_t size)
{
	size_t n = 0, room = count;
	for (size_t i = 0; i < count; i++)
		room += parts[i].n;
	if (room > size)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (i)
			ret_text[n++] = ':';
		if (parts[i].n)
			memcpy(ret_text + n, parts[i].p, parts[i].n);
		n += parts[i].n;
	}
	return n;
}

/* Hexadecimal hash of the parts with colons between them. */
static void hash_parts(int algorithm, const struct str *parts, size_t count, char ret_hex[HEX_MAX])
{
	struct hash h;
	hash_start(&h, algorithm);
	for (size_t i = 0; i < count; i++) {
		if (i)
			hash_add(&h, ":", 1);
		if (parts[i].n)
			hash_add(&h, parts[i].p, parts[i].n);
	}
	hash_end(&h, ret_hex);
}

static bool algorithm_is_allowed(int algorithm)
{
	pthread_once(&allowed_once, allowed_ask);
	return allowed[algorithm];
}

void digest_ha1(bool sha256, struct str username, struct str password, char ret_hex[65])
{
	const struct str parts[] = {username, STR(DIGEST_REALM), password};
	int algorithm = sha256 ? ALGORITHM_SHA256 : ALGORITHM_MD5;
	if (algorithm_is_allowed(algorithm))
		hash_parts(algorithm, parts, 3, ret_hex);
	else
		ret_hex[0] = '\0'; /* matches no response */
}

/* Where the HA2 of a target is kept. Callers choose the targets, but one who fills the table costs others a hash. */
static struct target_slot *target_slot_of(struct key_cache *k, struct str uri)
{
	uint64_t hash = uri.n, part;
	for (size_t i = 0; i + sizeof part <= uri.n; i += sizeof part) {
		memcpy(&part, uri.p + i, sizeof part);
		hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	if (uri.n >= sizeof part) {
		memcpy(&part, uri.p + uri.n - sizeof part, sizeof part);
		hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
	}
	return &k->targets[(hash >> 32) % TARGETS];
}

static bool target_is(const struct target_slot *t, int algorithm, struct str method, struct str uri)
{
	return t->n == method.n + 1 + uri.n && t->algorithm == algorithm && memcmp(t->text, method.p, method.n) == 0 &&
	       memcmp(t->text + method.n + 1, uri.p, uri.n) == 0;
}

static void target_keep(struct target_slot *t, int algorithm, struct str method, struct str uri, const char *ha2)
{
	size_t n = method.n + 1 + uri.n;
	if (n > sizeof t->text)
		return;
	*t = (struct target_slot){.algorithm = algorithm, .n = n};
	memcpy(t->text, method.p, method.n);
	t->text[method.n] = ':';
	memcpy(t->text + method.n + 1, uri.p, uri.n);
	memcpy(t->ha2, ha2, strlen(ha2) + 1);
}

static bool hex_eq_secret(struct str given, struct str expected)
{
	char lower[HEX_MAX];
	if (given.n != expected.n || given.n >= sizeof lower)
		return false;
	for (size_t i = 0; i < given.n; i++)
		lower[i] = (char)(given.p[i] >= 'A' && given.p[i] <= 'F' ? given.p[i] | 0x20 : given.p[i]);
	return str_eq_secret((struct str){lower, given.n}, expected);
}

/* Where the state after that block is kept. A nonce's MAC is at the block's end, which is as good as a hash. */
static struct block_slot *block_slot_of(struct key_cache *k, const char block[BLOCK])
{
	uint64_t tail;
	memcpy(&tail, block + BLOCK - sizeof tail, sizeof tail);
	return &k->blocks[(tail * 0x9e3779b97f4a7c15u >> 32) % BLOCKS];
}

/* MD5 of a text of at least a block. A nonce is used again and again, and each time the text begins with the same HA1
 * and nonce, so the state after them is kept. */
static bool md5_is_right(struct key_cache *k, struct str text, struct str response)
{
	struct block_slot *slot = block_slot_of(k, text.p);
	bool kept = slot->used && memcmp(slot->block, text.p, BLOCK) == 0;
	struct hash h = {.algorithm = ALGORITHM_MD5};
	char expected[HEX_MAX];
	if (kept) {
		h.md5 = slot->after;
	} else {
		hash_start(&h, ALGORITHM_MD5);
		hash_add(&h, text.p, BLOCK);
	}
	MD5_CTX after = h.md5;
	hash_add(&h, text.p + BLOCK, text.n - BLOCK);
	hash_end(&h, expected);
	bool right = hex_eq_secret(response, str_of(expected));
	if (right && !kept) {
		slot->used = true;
		slot->after = after;
		memcpy(slot->block, text.p, BLOCK);
	}
	return right;
}

static bool hash_is_right(struct key_cache *k, int algorithm, const struct str *parts, size_t count,
                          struct str response)
{
	char text[512], expected[HEX_MAX];
	size_t n = algorithm == ALGORITHM_MD5 ? parts_join(parts, count, text, sizeof text) : 0;
	if (n >= BLOCK) {
		bool right = md5_is_right(k, (struct str){text, n}, response);
		explicit_bzero(text, n);
		return right;
	}
	hash_parts(algorithm, parts, count, expected);
	return hex_eq_secret(response, str_of(expected));
}

static bool response_is_right(struct key_cache *k, int algorithm, const struct digest_header *d, struct str method,
                              const char *ha1)
{
	char computed[HEX_MAX];
	struct target_slot *target = target_slot_of(k, d->uri);
	const struct str second[] = {method, d->uri};
	bool kept = target_is(target, algorithm, method, d->uri);
	if (!algorithm_is_allowed(algorithm))
		return false;
	if (!kept)
		hash_parts(algorithm, second, 2, computed);
	const struct str all[] = {str_of(ha1), d->nonce, d->nc,
	                          d->cnonce,   d->qop,   str_of(kept ? target->ha2 : computed)};
	if (!hash_is_right(k, algorithm, all, 6, d->response))
		return false;
	if (!kept)
		target_keep(target, algorithm, method, d->uri, computed);
	return true;
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
	struct key_cache *k = token_cache_keys(call_loop(c)->tokens);
	struct header_slot *kept = header_slot_of(k, header_value);
	bool again = header_again(kept, header_value, &d);
	if ((!again && !digest_parse(header_value, c->arena, &d)) || d.username_hash ||
	    !str_is(d.realm, DIGEST_REALM) || !str_ieq(d.qop, STR("auth")) || !d.cnonce.n || !count_parse(d.nc, &count))
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
	const char *ha1 = key ? key->ha1[algorithm] : nobody[algorithm];
	bool right = response_is_right(k, algorithm, &d, c->request->method, ha1);
	r = digest_check(c, &d, right ? key : NULL, attempt);
	if (r < 0)
		return r;
	if (!again)
		header_keep(kept, header_value, &d);
	if (!c->again && !nonce_use(c->service->nonces, d.nonce, count))
		return -ESTALE;
	*ret_caller = principal_ref(key->caller);
	return 0;
}
