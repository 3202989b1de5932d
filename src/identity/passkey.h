/* Passkeys (Web Authentication): what a browser says for an authenticator, held against what was asked of it. Pure
 * code: the caller keeps challenges and keys.
 *
 * Keys come as the browser gives them, SubjectPublicKeyInfo in DER, so nothing here reads CBOR. An attestation is
 * neither asked for nor looked at: whoever registers a key is signed in, and can only lie about a key of their own. */
#ifndef STEWARD_IDENTITY_PASSKEY_H
#define STEWARD_IDENTITY_PASSKEY_H

#include "base/arena.h"

#define PASSKEY_ID_MAX 1023  /* bytes of a credential's id, by the specification */
#define PASSKEY_KEY_MAX 2048 /* bytes of a key */
#define PASSKEY_DATA_MAX 4096

/* Where the browser sees the service: passkeys are bound to a name. */
struct passkey_place {
	struct str rp_id, origin; /* "localhost", "https://localhost:8443" */
};
/* The place of a request by its Host: the service's own address, or "localhost" where that is a loopback address.
 * False: no name that passkeys can be bound to (browsers refuse addresses), or not one of ours. Names that a client may
 * write into a header decide nothing else: a site below ours could ask for our passkeys, and only the origin tells. */
must_check bool passkey_place(struct arena *a, const char *base_url, struct str host, struct passkey_place *ret_place);

/* An address of the service at which passkeys work, for people. */
struct str passkey_url(struct arena *a, const char *base_url);

/* What an authenticator says of itself (authenticatorData). Borrowed. */
struct passkey_authenticator {
	struct str rp_hash;       /* 32 bytes */
	bool present, verified;   /* the user: touched it; gave a PIN, finger or face */
	bool backed_up;           /* the key is on other devices too */
	uint32_t count;           /* of signatures; 0: it does not count */
	struct str credential_id; /* of one that was made now; else empty */
};
must_check bool passkey_authenticator_parse(struct str bytes, struct passkey_authenticator *ret_authenticator);

struct passkey_answer {
	bool registers;
	struct str authenticator, client_data; /* bytes */
	struct str key, signature;             /* signature: of a sign-in, by the key */
};
/* NULL when all is right: type, challenge (base64url, as it was given out), origin, name, presence and verification of
 * the user, key, and signature. Otherwise what is not, for people. */
const char *passkey_fault(const struct passkey_answer *answer, struct str challenge, const struct passkey_place *place,
                          struct passkey_authenticator *ret_authenticator);

/* ES256 on P-256, RS256 with 2048 to 8192 bits, or Ed25519. */
must_check bool passkey_key_fits(struct str key);
/* False: the counter went back or stood still, so the key is in two places. */
must_check bool passkey_count_fits(uint32_t kept, uint32_t given);

#endif
