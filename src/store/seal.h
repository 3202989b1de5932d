/* Secrets at rest. One 256-bit key per data directory (DIR/secret.key, mode 0600, made on first start). */
#ifndef STEWARD_STORE_SEAL_H
#define STEWARD_STORE_SEAL_H

#include "base/arena.h"
#include "base/str.h"

/* Reads the key or makes one. On failure: a message on stderr, negative. */
must_check int seal_setup(const char *data_dir);
/* Reads the key and makes none: -ENOENT, without a message, when there is none. */
must_check int seal_read(const char *data_dir);
/* Removes a key that seal_setup() has just made and that has sealed nothing. */
void seal_unmake(const char *data_dir);
/* Whether a data directory has a key; and whether a key is loaded. */
bool seal_has_key(const char *data_dir);
bool seal_is_ready(void);
/* AES-256-GCM; the output is base64url text. `context` is authenticated but not stored: a sealed value cannot be opened
 * in another place. */
struct str seal(struct arena *a, struct str plain, struct str context);
must_check int seal_open(struct arena *a, struct str sealed, struct str context, struct str *ret_plain);
/* The secret of a document, which has its kind and id, in the context of these. STR_NONE where it has none. */
struct doc;
struct str doc_seal(struct arena *a, const struct doc *d, struct str plain);
must_check int doc_unseal(struct arena *a, const struct doc *d, struct str *ret_plain);
/* HMAC-SHA256 under a key derived for `purpose`. */
void seal_mac(const char *purpose, struct str message, unsigned char ret_mac[32]);
/* SHA-256, as bytes and as hexadecimal text. */
void sha256(struct str message, unsigned char ret_digest[32]);
void sha256_hex(struct str message, char ret_text[65]);

#endif
