/* OpenSSL and zstd, with contexts that are kept by each thread. */
#ifndef STEWARD_REPOSITORY_CRYPT_H
#define STEWARD_REPOSITORY_CRYPT_H

#include "repository/common.h"
#include "repository/format.h"

void crypt_mac(const unsigned char key[REPO_KEY_BYTES], const void *bytes, size_t n, unsigned char ret_mac[HASH_BYTES]);
/* HKDF-SHA256 of RFC 5869, 32 bytes. */
void crypt_derive(const unsigned char key[REPO_KEY_BYTES], const void *salt, size_t salt_n, const char *info,
                  unsigned char ret_key[REPO_KEY_BYTES]);
/* AES-256-GCM. `out` takes n + TAG_BYTES. */
void crypt_seal(const unsigned char key[REPO_KEY_BYTES], const unsigned char nonce[NONCE_BYTES], struct str aad,
                const void *plain, size_t n, unsigned char *out);
/* `n` is without the tag, which follows the bytes. -EBADMSG. */
must_check int crypt_open(const unsigned char key[REPO_KEY_BYTES], const unsigned char nonce[NONCE_BYTES],
                          struct str aad, const void *sealed, size_t n, unsigned char *out);
/* Whether sealed bytes would open, of which nothing is kept: begun, added in pieces with the tag behind them, ended.
 * The thread opens nothing else meanwhile. */
struct crypt_proof {
	unsigned char held[TAG_BYTES]; /* the last, which may be the tag */
	size_t n;
	bool broken;
};
void crypt_prove_begin(struct crypt_proof *p, const unsigned char key[REPO_KEY_BYTES],
                       const unsigned char nonce[NONCE_BYTES], struct str aad);
void crypt_prove_add(struct crypt_proof *p, const void *bytes, size_t n);
must_check int crypt_prove_end(struct crypt_proof *p);
/* Compressed size, or 0: it would not be below `room`. `level`: zstd's. */
size_t crypt_compress(int level, const void *plain, size_t n, void *out, size_t room);
/* Exactly n bytes; -EBADMSG. */
must_check int crypt_expand(const void *bytes, size_t packed, void *out, size_t n);

#endif
