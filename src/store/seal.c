/* Secrets at rest: AES-256-GCM and HMAC-SHA256. All keys are derived from the one key of the data directory, a separate
 * key for each purpose, so that nothing made for one purpose can be used for another.
 *
 * A sealed value is base64url of: version byte, 12 random bytes, ciphertext, 16 bytes of tag. OpenSSL contexts are kept
 * per thread, because making them costs more than using them. */
#include "store/seal.h"

#include "base/base64.h"
#include "base/id.h"
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
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
#define KEY_SIZE 32
#define FORMAT 1
#define NONCE_SIZE 12
#define TAG_SIZE 16
#define OVERHEAD (1 + NONCE_SIZE + TAG_SIZE)
/* Far larger than any secret. */
#define SEALED_MAX ((size_t)16 << 20)
#define PURPOSES_MAX 16

static unsigned char master_key[KEY_SIZE];
static bool ready;
static EVP_MD *sha256_method;
static EVP_MAC *hmac_method;
static EVP_CIPHER *gcm_method;
static pthread_once_t methods_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;

struct thread_contexts {
	EVP_MD_CTX *digest;
	EVP_CIPHER_CTX *seal, *open; /* keyed */
	struct {
		char *purpose;
		EVP_MAC_CTX *mac; /* keyed */
	} macs[PURPOSES_MAX];
	size_t mac_count;
};

/* OpenSSL fails here only when memory has run out or its installation is broken: the process cannot continue. */
static void must(bool ok)
{
	if (ok)
		return;
	fprintf(stderr, "steward: the cryptography library failed\n");
	abort();
}

static void contexts_free(void *arg)
{
	struct thread_contexts *t = arg;
	EVP_MD_CTX_free(t->digest);
	EVP_CIPHER_CTX_free(t->seal);
	EVP_CIPHER_CTX_free(t->open);
	for (size_t i = 0; i < t->mac_count; i++) {
		EVP_MAC_CTX_free(t->macs[i].mac);
		free(t->macs[i].purpose);
	}
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

/* What this thread has made with the key before. */
static void contexts_forget(void)
{
	contexts_free(contexts());
	must(pthread_setspecific(thread_key, NULL) == 0);
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

/* The key of a purpose: HMAC of its name under the master key. */
static void key_derive(const char *purpose, unsigned char ret_key[KEY_SIZE])
{
	assert(ready);
	EVP_MAC_CTX *mac = mac_new(master_key);
	char label[128];
	int n = snprintf(label, sizeof label, "steward/1/%s", purpose);
	assert(n > 0 && (size_t)n < sizeof label);
	mac_run(mac, (struct str){label, (size_t)n}, ret_key);
	EVP_MAC_CTX_free(mac);
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

void seal_mac(const char *purpose, struct str message, unsigned char ret_mac[32])
{
	struct thread_contexts *t = contexts();
	unsigned char key[KEY_SIZE];
	size_t i = 0;
	while (i < t->mac_count && strcmp(t->macs[i].purpose, purpose) != 0)
		i++;
	if (i == t->mac_count) {
		/* Purposes are constants in our source, not input. */
		assert(t->mac_count < PURPOSES_MAX);
		key_derive(purpose, key);
		t->macs[i].purpose = must_strdup(purpose);
		t->macs[i].mac = mac_new(key);
		t->mac_count++;
		OPENSSL_cleanse(key, sizeof key);
	}
	mac_run(t->macs[i].mac, message, ret_mac);
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

/* The thread's cipher context for one direction, with key, nonce and additional data set. */
static EVP_CIPHER_CTX *cipher_start(bool encrypt, const unsigned char *nonce, struct str context)
{
	struct thread_contexts *t = contexts();
	EVP_CIPHER_CTX **c = encrypt ? &t->seal : &t->open;
	int n;
	if (!*c) {
		unsigned char key[KEY_SIZE];
		key_derive("seal", key);
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
	EVP_CIPHER_CTX *c = cipher_start(true, bytes + 1, context);
	if (plain.n)
		must(EVP_CipherUpdate(c, body, &n, (const unsigned char *)plain.p, (int)plain.n));
	must((size_t)n == plain.n && EVP_CipherFinal_ex(c, body + plain.n, &n) && n == 0 &&
	     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, body + plain.n));
	char *text = arena_alloc(a, BASE64_TEXT(plain.n + OVERHEAD));
	base64url_encode(bytes, plain.n + OVERHEAD, text);
	return str_of(text);
}

int seal_open(struct arena *a, struct str sealed, struct str context, struct str *ret_plain)
{
	if (sealed.n > SEALED_MAX * 2)
		return -EBADMSG;
	unsigned char *bytes = arena_alloc(a, sealed.n + 1);
	ssize_t size = base64_decode(sealed, bytes, sealed.n);
	int n = 0;
	if (size < (ssize_t)OVERHEAD || bytes[0] != FORMAT)
		return -EBADMSG;
	size_t plain_size = (size_t)size - OVERHEAD;
	unsigned char *plain = arena_alloc(a, plain_size + 1), *body = bytes + 1 + NONCE_SIZE;
	EVP_CIPHER_CTX *c = cipher_start(false, bytes + 1, context);
	bool ok = (!plain_size || EVP_CipherUpdate(c, plain, &n, body, (int)plain_size)) &&
	          EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, body + plain_size) &&
	          EVP_CipherFinal_ex(c, plain + plain_size, &n);
	if (!ok) {
		OPENSSL_cleanse(plain, plain_size);
		return -EBADMSG;
	}
	*ret_plain = (struct str){(const char *)plain, plain_size};
	return 0;
}

static bool write_all(int fd, const unsigned char *p, size_t n)
{
	while (n > 0) {
		ssize_t wrote = write(fd, p, n);
		if (wrote < 0 && errno != EINTR)
			return false;
		if (wrote > 0) {
			p += wrote;
			n -= (size_t)wrote;
		}
	}
	return true;
}

/* Written to a temporary file and linked into place, so that a crash leaves a complete key or none, and so that of two
 * processes that start at once one makes the key and the other uses it. */
static int key_make(const char *dir, const char *path)
{
	unsigned char key[KEY_SIZE];
	char *draft = NULL;
	struct id unique = id_new();
	if (asprintf(&draft, "%s.%s", path, unique.z) < 0)
		return -ENOMEM;
	int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : 0;
	if (r == 0) {
		random_bytes(key, sizeof key);
		if (!write_all(fd, key, sizeof key) || fsync(fd) < 0)
			r = -errno;
		OPENSSL_cleanse(key, sizeof key);
		close(fd);
		if (r == 0 && link(draft, path) < 0 && errno != EEXIST)
			r = -errno;
		unlink(draft);
	}
	free(draft);
	int dir_fd = r == 0 ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir_fd >= 0) {
		if (fsync(dir_fd) < 0)
			r = -errno;
		close(dir_fd);
	}
	if (r < 0)
		fprintf(stderr, "steward: cannot make the key %s: %s\n", path, strerror(-r));
	return r;
}

static int key_check(int fd, const char *path)
{
	struct stat info;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
		fprintf(stderr,
		        "steward: %s is not a file: move it away, or restore the key from where it is kept safe\n",
		        path);
		return -EINVAL;
	}
	if (info.st_mode & 077) {
		fprintf(stderr, "steward: %s can be read by others (mode %04o): run chmod 600 %s\n", path,
		        (unsigned)info.st_mode & 07777, path);
		return -EPERM;
	}
	if (info.st_size != KEY_SIZE) {
		fprintf(stderr,
		        "steward: %s has %lld bytes instead of %d: restore it from where it is kept safe (without it "
		        "no stored"
		        " secret can be read)\n",
		        path, (long long)info.st_size, KEY_SIZE);
		return -EINVAL;
	}
	return 0;
}

static int key_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		int r = -errno;
		if (r != -ENOENT)
			fprintf(stderr, "steward: cannot read the key %s: %s\n", path, strerror(-r));
		return r;
	}
	int r = key_check(fd, path);
	if (r == 0 && read(fd, master_key, KEY_SIZE) != KEY_SIZE) {
		fprintf(stderr, "steward: cannot read the key %s\n", path);
		r = -EIO;
	}
	close(fd);
	return r;
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

int seal_read(const char *data_dir)
{
	char *path = NULL;
	if (asprintf(&path, "%s/%s", data_dir, KEY_FILE) < 0)
		return -ENOMEM;
	int r = key_read(path);
	free(path);
	ready = ready || r == 0;
	contexts_forget();
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
	char *path = NULL;
	if (mkdir(data_dir, 0700) < 0 && errno != EEXIST) {
		int r = -errno;
		fprintf(stderr, "steward: cannot make the data directory %s: %s\n", data_dir, strerror(-r));
		return r;
	}
	int r = seal_read(data_dir);
	if (r != -ENOENT)
		return r;
	if (asprintf(&path, "%s/%s", data_dir, KEY_FILE) < 0)
		return -ENOMEM;
	r = key_make(data_dir, path);
	free(path);
	return r < 0 ? r : seal_read(data_dir);
}
