/* Secrets at rest: AES-256-GCM and HMAC-SHA256. All keys are derived from a key of the data directory, one for
 * each purpose, so that nothing made for one purpose can be used for another.
 *
 * A sealed value is base64url of: version byte, 12 random bytes, ciphertext, 16 bytes of tag. It does not name its key:
 * those that there are are tried, the one in use first, and there are more than one only during a rotation. OpenSSL
 * contexts are kept per thread, because making them costs more than using them; each change of the keys gives them
 * another generation, and a thread whose contexts are of an earlier one makes them anew. */
#include "store/seal.h"

#include "base/base64.h"
#include "base/id.h"
#include "store/keyring.h"
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_FILE "secret.key"
#define FORMAT 1
#define NONCE_SIZE 12
#define TAG_SIZE 16
#define OVERHEAD (1 + NONCE_SIZE + TAG_SIZE)
/* Far larger than any secret. */
#define SEALED_MAX ((size_t)16 << 20)
#define MACS_MAX 96 /* of all purposes, under each key */
#define NAME_TEXT 65

/* Purposes whose results are kept or shared for longer than any key: the ids of people who have no account yet stand in
 * invitations, and nodes find each other's buckets by the prefix. They stay those of the installation's first key. */
static const char *const lasting_purposes[] = {"user id", "limits"};
#define LASTING (sizeof lasting_purposes / sizeof *lasting_purposes)
#define LASTING_CONTEXT STR("meta/lasting_keys")

/* Under the lock; the generation grows with each change, and is read without it. */
static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;
static struct keyring ring;
static unsigned ring_active;
static unsigned char lasting[LASTING][KEY_SIZE];
static bool lasting_known;
static _Atomic uint64_t ring_generation;
static _Atomic bool ready;
static EVP_MD *sha256_method;
static EVP_MAC *hmac_method;
static EVP_CIPHER *gcm_method;
static pthread_once_t methods_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;

struct thread_contexts {
	EVP_MD_CTX *digest;
	uint64_t generation; /* of the rest, which has the keys as they were then: numbers of keys hold for all of it */
	struct keyring ring;
	unsigned active;
	unsigned char lasting[LASTING][KEY_SIZE];
	EVP_CIPHER_CTX *seal, *open[KEYRING_MAX]; /* keyed */
	struct {
		char *purpose;
		unsigned key;
		EVP_MAC_CTX *mac; /* keyed */
	} macs[MACS_MAX];
	size_t mac_count;
};

/* In the place of a number of a key: the keys of the lasting purposes. */
#define KEY_LASTING UINT_MAX

/* OpenSSL fails here only when memory has run out or its installation is broken: the process cannot continue. */
static void must(bool ok)
{
	if (ok)
		return;
	fprintf(stderr, "steward: the cryptography library failed\n");
	abort();
}

static void keyed_free(struct thread_contexts *t)
{
	EVP_CIPHER_CTX_free(t->seal);
	t->seal = NULL;
	for (unsigned i = 0; i < KEYRING_MAX; i++) {
		EVP_CIPHER_CTX_free(t->open[i]);
		t->open[i] = NULL;
	}
	for (size_t i = 0; i < t->mac_count; i++) {
		EVP_MAC_CTX_free(t->macs[i].mac);
		free(t->macs[i].purpose);
	}
	t->mac_count = 0;
	OPENSSL_cleanse(&t->ring, sizeof t->ring);
	OPENSSL_cleanse(t->lasting, sizeof t->lasting);
}

static void contexts_free(void *arg)
{
	struct thread_contexts *t = arg;
	EVP_MD_CTX_free(t->digest);
	keyed_free(t);
	free(t);
}

static void methods_fetch(void)
{
	sha256_method = EVP_MD_fetch(NULL, "SHA256", NULL);
	hmac_method = EVP_MAC_fetch(NULL, "HMAC", NULL);
	gcm_method = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	must(sha256_method && hmac_method && gcm_method && pthread_key_create(&thread_key, contexts_free) == 0);
}

static struct thread_contexts *contexts(void)
{
	pthread_once(&methods_once, methods_fetch);
	struct thread_contexts *t = pthread_getspecific(thread_key);
	if (!t) {
		t = must_calloc(1, sizeof(*t));
		t->digest = EVP_MD_CTX_new();
		must(t->digest && pthread_setspecific(thread_key, t) == 0);
	}
	return t;
}

/* The thread's contexts, with which keys there are now. A change that comes while they are used is seen by the next:
 * what a key has sealed, all processes can open for as long as it is in the file. */
static struct thread_contexts *keyed_contexts(void)
{
	struct thread_contexts *t = contexts();
	assert(ready);
	if (t->generation != ring_generation) {
		keyed_free(t);
		pthread_mutex_lock(&ring_lock);
		t->generation = ring_generation;
		t->ring = ring;
		t->active = ring_active;
		memcpy(t->lasting, lasting, sizeof lasting);
		pthread_mutex_unlock(&ring_lock);
	}
	return t;
}

static EVP_MAC_CTX *mac_new(const unsigned char key[KEY_SIZE])
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	                       OSSL_PARAM_construct_end()};
	EVP_MAC_CTX *mac = EVP_MAC_CTX_new(hmac_method);
	must(mac && EVP_MAC_init(mac, key, KEY_SIZE, params));
	return mac;
}

static void mac_run(EVP_MAC_CTX *mac, struct str message, unsigned char ret_mac[32])
{
	size_t n = 0;
	/* Without a key argument: restarts with the key that it has. */
	must(EVP_MAC_init(mac, NULL, 0, NULL) &&
	     EVP_MAC_update(mac, (const unsigned char *)(message.p ? message.p : ""), message.n) &&
	     EVP_MAC_final(mac, ret_mac, &n, 32) && n == 32);
}

/* The key of a purpose: HMAC of its name under a master key. */
static void key_derive(const unsigned char master[KEY_SIZE], const char *purpose, unsigned char ret_key[KEY_SIZE])
{
	EVP_MAC_CTX *mac = mac_new(master);
	char label[128];
	int n = snprintf(label, sizeof label, "steward/1/%s", purpose);
	assert(n > 0 && (size_t)n < sizeof label);
	mac_run(mac, (struct str){label, (size_t)n}, ret_key);
	EVP_MAC_CTX_free(mac);
}

static void key_of(const struct thread_contexts *t, unsigned number, const char *purpose,
                   unsigned char ret_key[KEY_SIZE])
{
	size_t i = 0;
	if (number != KEY_LASTING) {
		assert(number < t->ring.count);
		key_derive(t->ring.keys[number], purpose, ret_key);
		return;
	}
	while (i < LASTING && strcmp(lasting_purposes[i], purpose) != 0)
		i++;
	assert(i < LASTING);
	memcpy(ret_key, t->lasting[i], KEY_SIZE);
}

static struct str doc_context(struct arena *a, const struct doc *d)
{
	return arena_printf(a, "%.*s/%.*s", STR_ARG(d->kind), STR_ARG(d->id));
}

struct str doc_seal(struct arena *a, const struct doc *d, struct str plain)
{
	return seal(a, plain, doc_context(a, d));
}

int doc_unseal(struct arena *a, const struct doc *d, struct str *ret_plain)
{
	if (d->secret.n)
		return seal_open(a, d->secret, doc_context(a, d), ret_plain);
	*ret_plain = STR_NONE;
	return 0;
}

static void mac_with(struct thread_contexts *t, unsigned key, const char *purpose, struct str message,
                     unsigned char ret_mac[32])
{
	unsigned char bytes[KEY_SIZE];
	size_t i = 0;
	while (i < t->mac_count && (t->macs[i].key != key || strcmp(t->macs[i].purpose, purpose) != 0))
		i++;
	if (i == t->mac_count) {
		/* Purposes are constants in our source, not input. */
		assert(t->mac_count < MACS_MAX);
		key_of(t, key, purpose, bytes);
		t->macs[i].purpose = must_strdup(purpose);
		t->macs[i].key = key;
		t->macs[i].mac = mac_new(bytes);
		t->mac_count++;
		OPENSSL_cleanse(bytes, sizeof bytes);
	}
	mac_run(t->macs[i].mac, message, ret_mac);
}

void seal_mac(const char *purpose, struct str message, unsigned char ret_mac[32])
{
	struct thread_contexts *t = keyed_contexts();
	mac_with(t, t->active, purpose, message, ret_mac);
}

void seal_mac_by(unsigned key, const char *purpose, struct str message, unsigned char ret_mac[32])
{
	mac_with(keyed_contexts(), key, purpose, message, ret_mac);
}

void seal_mac_lasting(const char *purpose, struct str message, unsigned char ret_mac[32])
{
	mac_with(keyed_contexts(), KEY_LASTING, purpose, message, ret_mac);
}

static bool mac_is_by(struct thread_contexts *t, unsigned key, const char *purpose, struct str message,
                      const unsigned char *mac, size_t n)
{
	unsigned char right[32];
	assert(n >= 16 && n <= sizeof right);
	mac_with(t, key, purpose, message, right);
	return CRYPTO_memcmp(right, mac, n) == 0;
}

bool seal_mac_is(const char *purpose, struct str message, const unsigned char *mac, size_t n)
{
	struct thread_contexts *t = keyed_contexts();
	bool right = mac_is_by(t, t->active, purpose, message, mac, n);
	for (unsigned i = 0; !right && i < t->ring.count; i++)
		right = i != t->active && mac_is_by(t, i, purpose, message, mac, n);
	return right;
}

static bool mac_parse(struct str hex, unsigned char mac[32])
{
	if (hex.n < 32 || hex.n > 64 || hex.n % 2)
		return false;
	for (size_t i = 0; i < hex.n / 2; i++) {
		unsigned char byte = 0;
		for (size_t k = 0; k < 2; k++) {
			char c = hex.p[2 * i + k];
			if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
				return false;
			byte = (unsigned char)(byte << 4 | (c <= '9' ? c - '0' : c - 'a' + 10));
		}
		mac[i] = byte;
	}
	return true;
}

bool seal_mac_is_hex(const char *purpose, struct str message, struct str hex)
{
	unsigned char mac[32];
	return mac_parse(hex, mac) && seal_mac_is(purpose, message, mac, hex.n / 2);
}

bool seal_mac_is_hex_by(unsigned key, const char *purpose, struct str message, struct str hex)
{
	unsigned char mac[32];
	return mac_parse(hex, mac) && mac_is_by(keyed_contexts(), key, purpose, message, mac, hex.n / 2);
}

void sha256(struct str message, unsigned char ret_digest[32])
{
	struct thread_contexts *t = contexts();
	must(EVP_DigestInit_ex2(t->digest, sha256_method, NULL) &&
	     EVP_DigestUpdate(t->digest, message.p ? message.p : "", message.n) &&
	     EVP_DigestFinal_ex(t->digest, ret_digest, NULL));
}

void sha256_hex(struct str message, char ret_text[65])
{
	unsigned char digest[32];
	sha256(message, digest);
	hex_encode(digest, sizeof digest, ret_text);
}

/* The thread's cipher context for one direction and key, with key, nonce and additional data set. */
static EVP_CIPHER_CTX *cipher_start(struct thread_contexts *t, bool encrypt, unsigned number,
                                    const unsigned char *nonce, struct str context)
{
	EVP_CIPHER_CTX **c = encrypt ? &t->seal : &t->open[number];
	int n;
	if (!*c) {
		unsigned char key[KEY_SIZE];
		key_of(t, number, "seal", key);
		*c = EVP_CIPHER_CTX_new();
		must(*c && EVP_CipherInit_ex2(*c, gcm_method, key, NULL, encrypt, NULL));
		OPENSSL_cleanse(key, sizeof key);
	}
	must(EVP_CipherInit_ex2(*c, NULL, NULL, nonce, encrypt, NULL));
	assert(context.n <= INT_MAX);
	if (context.n)
		must(EVP_CipherUpdate(*c, NULL, &n, (const unsigned char *)context.p, (int)context.n));
	return *c;
}

struct str seal(struct arena *a, struct str plain, struct str context)
{
	assert(plain.n <= SEALED_MAX);
	unsigned char *bytes = arena_alloc(a, plain.n + OVERHEAD), *body = bytes + 1 + NONCE_SIZE;
	int n = 0;
	bytes[0] = FORMAT;
	random_bytes(bytes + 1, NONCE_SIZE);
	struct thread_contexts *t = keyed_contexts();
	EVP_CIPHER_CTX *c = cipher_start(t, true, t->active, bytes + 1, context);
	if (plain.n)
		must(EVP_CipherUpdate(c, body, &n, (const unsigned char *)plain.p, (int)plain.n));
	must((size_t)n == plain.n && EVP_CipherFinal_ex(c, body + plain.n, &n) && n == 0 &&
	     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, body + plain.n));
	char *text = arena_alloc(a, BASE64_TEXT(plain.n + OVERHEAD));
	base64url_encode(bytes, plain.n + OVERHEAD, text);
	return str_of(text);
}

static bool body_open(struct thread_contexts *t, unsigned key, unsigned char *bytes, size_t plain_size,
                      struct str context, unsigned char *ret_plain)
{
	int n = 0;
	unsigned char *body = bytes + 1 + NONCE_SIZE;
	EVP_CIPHER_CTX *c = cipher_start(t, false, key, bytes + 1, context);
	return (!plain_size || EVP_CipherUpdate(c, ret_plain, &n, body, (int)plain_size)) &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, body + plain_size) &&
	       EVP_CipherFinal_ex(c, ret_plain + plain_size, &n);
}

int seal_open_by(struct arena *a, struct str sealed, struct str context, struct str *ret_plain, unsigned *ret_key)
{
	struct thread_contexts *t = keyed_contexts();
	if (sealed.n > SEALED_MAX * 2)
		return -EBADMSG;
	unsigned char *bytes = arena_alloc(a, sealed.n + 1);
	ssize_t size = base64_decode(sealed, bytes, sealed.n);
	if (size < (ssize_t)OVERHEAD || bytes[0] != FORMAT)
		return -EBADMSG;
	size_t plain_size = (size_t)size - OVERHEAD;
	unsigned char *plain = arena_alloc(a, plain_size + 1);
	unsigned key = t->active;
	bool ok = body_open(t, key, bytes, plain_size, context, plain);
	for (unsigned i = 0; !ok && i < t->ring.count; i++)
		if (i != t->active) {
			key = i;
			ok = body_open(t, key, bytes, plain_size, context, plain);
		}
	if (!ok) {
		OPENSSL_cleanse(plain, plain_size);
		return -EBADMSG;
	}
	*ret_plain = (struct str){(const char *)plain, plain_size};
	*ret_key = key;
	return 0;
}

int seal_open(struct arena *a, struct str sealed, struct str context, struct str *ret_plain)
{
	unsigned key;
	return seal_open_by(a, sealed, context, ret_plain, &key);
}

/* The first byte, 1, is 'A' and one of the next sixteen letters. No hash that is kept unsealed begins so: those of
 * passwords begin with '$', the others are hexadecimal. */
bool seal_is_sealed(struct str text)
{
	return text.n >= BASE64_TEXT(OVERHEAD) - 1 && text.p[0] == 'A' &&
	       ((text.p[1] >= 'Q' && text.p[1] <= 'Z') || (text.p[1] >= 'a' && text.p[1] <= 'f'));
}

bool seal_has_key(const char *data_dir)
{
	char *path = NULL;
	bool has = asprintf(&path, "%s/%s", data_dir, KEY_FILE) >= 0 && access(path, R_OK) == 0;
	free(path);
	return has;
}

bool seal_is_ready(void)
{
	return ready;
}

unsigned seal_key_count(void)
{
	return keyed_contexts()->ring.count;
}

unsigned seal_key_active(void)
{
	return keyed_contexts()->active;
}

void seal_key_name(unsigned key, char ret_name[65])
{
	unsigned char mac[32];
	struct thread_contexts *t = keyed_contexts();
	ret_name[0] = '\0';
	if (key >= t->ring.count)
		return;
	mac_with(t, key, "store", STR("key"), mac);
	hex_encode(mac, sizeof mac, ret_name);
}

int seal_key_use(struct str name)
{
	char mine[NAME_TEXT];
	unsigned count = seal_key_count(), key = 0;
	for (; key < count; key++) {
		seal_key_name(key, mine);
		if (str_is(name, mine))
			break;
	}
	if (key == count)
		return -ENOKEY;
	pthread_mutex_lock(&ring_lock);
	if (ring_active != key) {
		ring_active = key;
		ring_generation++;
	}
	pthread_mutex_unlock(&ring_lock);
	return 0;
}

/* The oldest key is the last: where no rotation has kept the lasting keys in the store, it is the first there was. */
static void lasting_begin(const struct keyring *keys)
{
	for (size_t i = 0; !lasting_known && i < LASTING; i++)
		key_derive(keys->keys[keys->count - 1], lasting_purposes[i], lasting[i]);
	lasting_known = true;
}

struct str seal_lasting_keep(struct arena *a)
{
	unsigned char all[LASTING][KEY_SIZE];
	pthread_mutex_lock(&ring_lock);
	memcpy(all, lasting, sizeof all);
	pthread_mutex_unlock(&ring_lock);
	struct str sealed = seal(a, (struct str){(const char *)all, sizeof all}, LASTING_CONTEXT);
	OPENSSL_cleanse(all, sizeof all);
	return sealed;
}

int seal_lasting_take(struct arena *a, struct str sealed, unsigned *ret_key)
{
	struct str plain;
	int r = seal_open_by(a, sealed, LASTING_CONTEXT, &plain, ret_key);
	if (r < 0 || plain.n != sizeof lasting)
		return -EBADMSG;
	pthread_mutex_lock(&ring_lock);
	if (memcmp(lasting, plain.p, sizeof lasting) != 0) {
		memcpy(lasting, plain.p, sizeof lasting);
		ring_generation++;
	}
	pthread_mutex_unlock(&ring_lock);
	return 0;
}

/* The key in use stays in use. Without one, the newest is: which one a store uses is known when it is open. */
static int ring_take(const struct keyring *found, bool again)
{
	unsigned active = 0;
	int r = 0;
	pthread_once(&methods_once, methods_fetch);
	pthread_mutex_lock(&ring_lock);
	if (again) {
		while (active < found->count &&
		       CRYPTO_memcmp(found->keys[active], ring.keys[ring_active], KEY_SIZE) != 0)
			active++;
		bool same = found->count == ring.count && memcmp(found->keys, ring.keys, sizeof ring.keys) == 0;
		r = active == found->count ? -ENOKEY : same ? 0 : 1;
	} else {
		lasting_known = false;
	}
	if (r == 1 || !again) {
		ring = *found;
		ring_active = active;
		lasting_begin(&ring);
		ring_generation++;
		ready = true;
	}
	pthread_mutex_unlock(&ring_lock);
	return r;
}

int seal_read(const char *data_dir)
{
	struct keyring found;
	int r = keyring_read(data_dir, &found);
	if (r == 0) {
		r = ring_take(&found, false);
		OPENSSL_cleanse(&found, sizeof found);
	}
	return r;
}

int seal_reload(const char *data_dir)
{
	struct keyring found;
	int r = keyring_read(data_dir, &found);
	if (r == 0) {
		r = ring_take(&found, true);
		OPENSSL_cleanse(&found, sizeof found);
	}
	return r;
}

void seal_unmake(const char *data_dir)
{
	char *path = NULL;
	if (asprintf(&path, "%s/%s", data_dir, KEY_FILE) < 0)
		return;
	if (unlink(path) < 0)
		fprintf(stderr, "steward: remove %s, which belongs to no store: %s\n", path, strerror(errno));
	free(path);
}

int seal_setup(const char *data_dir)
{
	if (mkdir(data_dir, 0700) < 0 && errno != EEXIST) {
		int r = -errno;
		fprintf(stderr, "steward: cannot make the data directory %s: %s\n", data_dir, strerror(-r));
		return r;
	}
	int r = seal_read(data_dir);
	if (r != -ENOENT)
		return r;
	r = keyring_make(data_dir);
	return r < 0 ? r : seal_read(data_dir);
}
