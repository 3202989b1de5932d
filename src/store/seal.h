/* Secrets at rest. One 256-bit key per data directory (DIR/secret.key, mode 0600, made on first start); in a rotation
 * two or more (keyring.h), of which one is in use: the store says which. */
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
/* Whether a text is a sealed value, or one of the hashes that are kept as they are. */
bool seal_is_sealed(struct str text);
/* HMAC-SHA256 under a key derived for `purpose` from the key in use. */
void seal_mac(const char *purpose, struct str message, unsigned char ret_mac[32]);
/* Whether these bytes (at least 16) are the beginning of the one of the key in use, or of an older one that is still
 * there. Never compare by seal_mac() what was given out before: during a rotation it was made with another key. */
must_check bool seal_mac_is(const char *purpose, struct str message, const unsigned char *mac, size_t n);
must_check bool seal_mac_is_hex(const char *purpose, struct str message, struct str hex);
/* Under a key that stays the same through all rotations, for what is kept longer than a key. */
void seal_mac_lasting(const char *purpose, struct str message, unsigned char ret_mac[32]);

/* The keys, by their number in the file; the newest is 0. A key's name follows from it and does not tell it. One
 * that is not there any more, since another thread has read a shorter file, has none. */
unsigned seal_key_count(void);
unsigned seal_key_active(void);
void seal_key_name(unsigned key, char ret_name[65]);
/* From now on the key of that name is in use. -ENOKEY: there is none. */
must_check int seal_key_use(struct str name);
/* Which key opens a value, and whether a MAC is that key's. */
must_check int seal_open_by(struct arena *a, struct str sealed, struct str context, struct str *ret_plain,
                            unsigned *ret_key);
must_check bool seal_mac_is_hex_by(unsigned key, const char *purpose, struct str message, struct str hex);
/* HMAC-SHA256 under a key derived for `purpose` from that key. */
void seal_mac_by(unsigned key, const char *purpose, struct str message, unsigned char ret_mac[32]);
/* Reads the file again: 1 when it has changed. -ENOKEY: it lacks the key in use; what was read before stays. */
must_check int seal_reload(const char *data_dir);
/* The keys of seal_mac_lasting(), sealed; and those from then on. */
struct str seal_lasting_keep(struct arena *a);
must_check int seal_lasting_take(struct arena *a, struct str sealed, unsigned *ret_key);

/* SHA-256, as bytes and as hexadecimal text. */
void sha256(struct str message, unsigned char ret_digest[32]);
void sha256_hex(struct str message, char ret_text[65]);

#endif
