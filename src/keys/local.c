/* The operator's own keys, for people without a key service: NAME.key in the directory of --keys-local, 32 bytes. A
 * data key is wrapped by AES-256-GCM with it, and the project's id is authenticated with that. Whoever takes the file
 * away takes the key back. */
#include "base/base64.h"
#include "base/id.h"
#include "base/json.h"
#include "keys/services.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAX_BYTES 64
#define NONCE 12
#define TAG 16
#define WRAPPED (NONCE + DATA_KEY_BYTES + TAG)
#define WHAT "the operator's key"

static struct str name_of(const struct key_place *p)
{
	return (struct str){p->key.p + 6, p->key.n - 6};
}

const char *local_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field)
{
	struct str name = name_of(p);
	*ret_field = "customerMasterKeyID";
	if (!k->local)
		return "names a key of the operator, who has none (--keys-local)";
	if (!name.n || name.n > NAME_MAX_BYTES || !text_is_plain(name, "-_"))
		return "must be local/NAME: letters, digits, hyphens and underscores";
	return NULL;
}

static int key_read(const struct keys *k, const struct key_place *p, struct data_key *ret_key, char *why)
{
	struct provider_request about = {.what = WHAT};
	struct buf path = {0};
	struct stat st;
	struct str name = name_of(p);
	if (!k->local)
		return provider_fail(&about, -ENOTSUP, why, ": there is no --keys-local");
	buf_printf(&path, "%s/%.*s.key%c", k->local, STR_ARG(name), 0);
	int fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), error = errno;
	buf_free(&path);
	if (fd < 0) /* which of the operator's files are there is not told, but that this one is not */
		return provider_fail(&about, error == ENOENT || error == EACCES ? -EACCES : -EHOSTUNREACH, why,
		                     " local/%.*s: %s", STR_ARG(name), strerror(error));
	data_key_make(ret_key);
	bool safe = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 077);
	bool good = safe && st.st_size == DATA_KEY_BYTES && read(fd, ret_key->bytes, DATA_KEY_BYTES) == DATA_KEY_BYTES;
	close(fd);
	if (good)
		return 0;
	data_key_free(ret_key);
	return provider_fail(&about, -EACCES, why, " local/%.*s must be a file of %d bytes, of mode 0600",
	                     STR_ARG(name), DATA_KEY_BYTES);
}

static bool run(bool encrypt, const struct data_key *key, const struct key_place *p, unsigned char *wrapped,
                unsigned char *plain)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n = 0, last = 0;
	unsigned char *tag = wrapped + NONCE + DATA_KEY_BYTES, *in = encrypt ? plain : wrapped + NONCE,
	              *out = encrypt ? wrapped + NONCE : plain;
	bool good = c && EVP_CipherInit_ex2(c, EVP_aes_256_gcm(), key->bytes, wrapped, encrypt, NULL) == 1 &&
	            EVP_CipherUpdate(c, NULL, &n, (const unsigned char *)p->group_id.p, (int)p->group_id.n) == 1 &&
	            EVP_CipherUpdate(c, out, &n, in, DATA_KEY_BYTES) == 1 && n == DATA_KEY_BYTES &&
	            (encrypt || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1) &&
	            EVP_CipherFinal_ex(c, out + n, &last) == 1 &&
	            (!encrypt || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, tag) == 1);
	EVP_CIPHER_CTX_free(c);
	return good;
}

static int wrap(struct keys *k, struct arena *a, const struct key_place *p, const unsigned char *plain,
                struct key_wrap *ret_wrap, char *why)
{
	struct provider_request about = {.what = WHAT};
	unsigned char wrapped[WRAPPED];
	char *text = arena_alloc(a, BASE64_TEXT(WRAPPED));
	struct data_key key;
	int r = key_read(k, p, &key, why);
	if (r < 0)
		return r;
	random_bytes(wrapped, NONCE);
	if (!run(true, &key, p, wrapped, (unsigned char *)(uintptr_t)plain))
		r = provider_fail(&about, -EIO, why, ": it does not encrypt");
	data_key_free(&key);
	base64url_encode(wrapped, sizeof wrapped, text);
	ret_wrap->bytes = str_of(text);
	ret_wrap->version = arena_dup(a, p->key);
	return r;
}

static int unwrap(struct keys *k, const struct key_place *p, struct str bytes, unsigned char *ret_plain, char *why)
{
	struct provider_request about = {.what = WHAT};
	unsigned char wrapped[WRAPPED];
	struct data_key key;
	int r = key_read(k, p, &key, why);
	if (r < 0)
		return r;
	if (base64_decode(bytes, wrapped, sizeof wrapped) != WRAPPED || !run(false, &key, p, wrapped, ret_plain))
		r = provider_fail(&about, -EACCES, why, " %.*s is another one than the data key was wrapped with",
		                  STR_ARG(p->key));
	data_key_free(&key);
	return r;
}

const struct key_service local_keys = {wrap, unwrap};
