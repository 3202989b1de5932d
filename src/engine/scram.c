/* SCRAM-SHA-256 verifiers through OpenSSL. The work is PBKDF2's; it is the clients' at each login too, which is why the
 * count is moderate. */
#include "engine/scram.h"

#include "base/id.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#define ITERATIONS 10000
#define SALT 16
#define KEY SHA256_DIGEST_LENGTH
#define TEXT(n) (((n) + 2) / 3 * 4 + 1)

bool scram_password_fits(struct str password)
{
	for (size_t i = 0; i < password.n; i++)
		if (password.p[i] < ' ' || password.p[i] > '~')
			return false;
	return password.n > 0 && password.n <= SCRAM_PASSWORD_MAX;
}

static bool keyed(const unsigned char key[KEY], const char *text, unsigned char ret_mac[KEY])
{
	unsigned n = 0;
	return HMAC(EVP_sha256(), key, KEY, (const unsigned char *)text, strlen(text), ret_mac, &n) && n == KEY;
}

int scram_verifier(struct arena *a, struct str password, struct str *ret_verifier)
{
	unsigned char salt[SALT], salted[KEY], client[KEY], stored[KEY], server[KEY];
	unsigned char salt_text[TEXT(SALT)], stored_text[TEXT(KEY)], server_text[TEXT(KEY)];
	random_bytes(salt, sizeof salt);
	bool ok = PKCS5_PBKDF2_HMAC(password.p, (int)password.n, salt, SALT, ITERATIONS, EVP_sha256(), KEY, salted) ==
	                  1 &&
	          keyed(salted, "Client Key", client) && SHA256(client, KEY, stored) &&
	          keyed(salted, "Server Key", server);
	if (ok) {
		EVP_EncodeBlock(salt_text, salt, SALT);
		EVP_EncodeBlock(stored_text, stored, KEY);
		EVP_EncodeBlock(server_text, server, KEY);
		*ret_verifier = arena_printf(a, "SCRAM-SHA-256$%d:%s$%s:%s", ITERATIONS, (const char *)salt_text,
		                             (const char *)stored_text, (const char *)server_text);
	}
	OPENSSL_cleanse(salted, sizeof salted);
	OPENSSL_cleanse(client, sizeof client);
	return ok ? 0 : -ENOMEM;
}
