/* Passkeys: where they work, what authenticators say at every length, and that each part of an answer counts. */
#include "identity/passkey.h"

#include "base/json.h"
#include "check.h"
#include "store/seal.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/x509.h>

#define CHALLENGE "Y2hhbGxlbmdl"
static struct arena *arena;
static EVP_PKEY *key;
static const struct passkey_place here = {{"localhost", 9}, {"https://localhost:8443", 22}};

static bool place_is(const char *base, const char *host, const char *rp_id, const char *origin)
{
	struct passkey_place p = {STR_NONE, STR_NONE};
	bool found = passkey_place(arena, base, str_of(host), &p);
	return found == (rp_id != NULL) && (!rp_id || (str_is(p.rp_id, rp_id) && str_is(p.origin, origin)));
}

static void test_places(void)
{
	CHECK(place_is("https://db.example.com", "db.example.com", "db.example.com", "https://db.example.com"));
	CHECK(place_is("https://DB.example.com:443", "db.Example.com:443", "db.example.com", "https://db.example.com"));
	CHECK(place_is("https://db.example.com:8443/x", "db.example.com:8443", "db.example.com",
	               "https://db.example.com:8443"));
	CHECK(place_is("https://127.0.0.1:8443", "localhost:8443", "localhost", "https://localhost:8443"));
	CHECK(place_is("https://[::1]:8443", "localhost:8443", "localhost", "https://localhost:8443"));
	CHECK(place_is("https://localhost:8443", "localhost:8443", "localhost", "https://localhost:8443"));
	static const char *const no[][2] = {{"https://127.0.0.1:8443", "127.0.0.1:8443"},
	                                    {"https://127.0.0.1:8443", "localhost"},
	                                    {"https://192.0.2.1:8443", "localhost:8443"},
	                                    {"https://192.0.2.1:8443", "192.0.2.1:8443"},
	                                    {"https://db.example.com:8443", "localhost:8443"},
	                                    {"https://db.example.com", "a.db.example.com"},
	                                    {"https://db.example.com", "example.com"},
	                                    {"https://db.example.com", ""},
	                                    {"https://db.example.com", "db.example.com.evil.org"},
	                                    {"http://localhost:8443", "localhost:8443"},
	                                    {"https://[::1", "[::1"},
	                                    {"https://", ""}};
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		CHECK(place_is(no[i][0], no[i][1], NULL, NULL));
	CHECK(str_is(passkey_url(arena, "https://127.0.0.1:8443"), "https://localhost:8443/console/"));
}

/* hash, flags, count; with a credential: AAGUID, length, id, and a key of one byte. */
static size_t said_make(unsigned char *out, const char *rp_id, unsigned flags, uint32_t count, const char *id)
{
	size_t n = 37;
	sha256(str_of(rp_id), out);
	out[32] = (unsigned char)flags;
	for (int i = 0; i < 4; i++)
		out[33 + i] = (unsigned char)(count >> (24 - 8 * i));
	if (id) {
		memset(out + n, 0, 17);
		out[n + 17] = (unsigned char)strlen(id);
		memcpy(out + n + 18, id, strlen(id));
		n += 18 + strlen(id);
		out[n++] = 0xa0;
	}
	return n;
}

static void test_authenticators(void)
{
	unsigned char bytes[256];
	struct passkey_authenticator a;
	size_t n = said_make(bytes, "localhost", 0x45, 0x01020304, "credential");
	CHECK(passkey_authenticator_parse((struct str){(char *)bytes, n}, &a));
	CHECK(a.present && a.verified && !a.backed_up && a.count == 0x01020304);
	CHECK(str_is(a.credential_id, "credential"));
	for (size_t cut = 0; cut < n; cut++)
		CHECK(!passkey_authenticator_parse((struct str){(char *)bytes, cut}, &a));
	n = said_make(bytes, "localhost", 0x05, 1, NULL);
	for (size_t cut = 0; cut < n; cut++)
		CHECK(!passkey_authenticator_parse((struct str){(char *)bytes, cut}, &a));
	CHECK(passkey_authenticator_parse((struct str){(char *)bytes, n}, &a) && !a.credential_id.n);
	CHECK(!passkey_authenticator_parse((struct str){(char *)bytes, n + 1}, &a)); /* more than it says */
	bytes[32] = 0x85;
	CHECK(passkey_authenticator_parse((struct str){(char *)bytes, n + 1}, &a)); /* extensions */
	CHECK(!passkey_authenticator_parse((struct str){(char *)bytes, n}, &a));
	bytes[32] = 0x15; /* backed up, but cannot be */
	CHECK(!passkey_authenticator_parse((struct str){(char *)bytes, n}, &a));
	CHECK(passkey_count_fits(0, 0) && passkey_count_fits(0, 1) && passkey_count_fits(1, 2));
	CHECK(!passkey_count_fits(1, 1) && !passkey_count_fits(2, 1) && !passkey_count_fits(1, 0));
}

static struct str sign(struct str authenticator, struct str client_data)
{
	unsigned char message[512];
	size_t n = 256;
	char *out = arena_alloc(arena, n);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	memcpy(message, authenticator.p, authenticator.n);
	sha256(client_data, message + authenticator.n);
	CHECK(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
	      EVP_DigestSign(ctx, (unsigned char *)out, &n, message, authenticator.n + 32) == 1);
	EVP_MD_CTX_free(ctx);
	return (struct str){out, n};
}

static const char *fault_of(const char *client_data, struct str authenticator, bool registers, struct str spki)
{
	struct passkey_authenticator said;
	struct passkey_answer answer = {.registers = registers,
	                                .authenticator = authenticator,
	                                .client_data = str_of(client_data),
	                                .key = spki};
	if (!registers)
		answer.signature = sign(authenticator, answer.client_data);
	return passkey_fault(&answer, STR(CHALLENGE), &here, &said);
}

#define SAID(type, challenge, origin) \
	"{\"type\":\"" type "\",\"challenge\":\"" challenge "\",\"origin\":\"" origin "\",\"crossOrigin\":false}"
#define RIGHT SAID("webauthn.get", CHALLENGE, "https://localhost:8443")

static void test_answers(void)
{
	unsigned char bytes[256], *der = NULL;
	int der_n = i2d_PUBKEY(key, &der);
	struct str spki = {(char *)der, (size_t)der_n},
	           said = {(char *)bytes, said_make(bytes, "localhost", 5, 1, NULL)};
	CHECK(passkey_key_fits(spki));
	for (size_t cut = 0; cut < spki.n; cut++)
		CHECK(!passkey_key_fits((struct str){spki.p, cut}));
	CHECK(!fault_of(RIGHT, said, false, spki));
	static const char *const wrong[] = {
	        SAID("webauthn.create", CHALLENGE, "https://localhost:8443"),
	        SAID("webauthn.get", "Y2hhbGxlbmdm", "https://localhost:8443"),
	        SAID("webauthn.get", "", "https://localhost:8443"),
	        SAID("webauthn.get", CHALLENGE, "https://localhost"),
	        SAID("webauthn.get", CHALLENGE, "https://localhost:8443.evil.org"),
	        "{\"type\":\"webauthn.get\",\"challenge\":\"" CHALLENGE
	        "\",\"origin\":\"https://localhost:8443\",\"crossOrigin\":true}",
	        "{\"type\":\"webauthn.get\",\"type\":\"webauthn.get\",\"challenge\":\"" CHALLENGE
	        "\",\"origin\":\"https://localhost:8443\"}",
	        "[]",
	        "",
	        "{"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK(fault_of(wrong[i], said, false, spki));
	static const unsigned flags[] = {0x00, 0x01, 0x04, 0x45, 0x85};
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		bytes[32] = (unsigned char)flags[i];
		CHECK(fault_of(RIGHT, said, false, spki));
	}
	said.n = said_make(bytes, "evil.org", 5, 1, NULL);
	CHECK(fault_of(RIGHT, said, false, spki));
	/* What is signed is what counts: each byte of it. */
	said.n = said_make(bytes, "localhost", 5, 1, NULL);
	struct passkey_authenticator out;
	struct passkey_answer answer = {.authenticator = said, .client_data = STR(RIGHT), .key = spki};
	answer.signature = sign(said, answer.client_data);
	bytes[36] ^= 1;
	CHECK(passkey_fault(&answer, STR(CHALLENGE), &here, &out));
	bytes[36] ^= 1;
	CHECK(!passkey_fault(&answer, STR(CHALLENGE), &here, &out) && out.count == 1);
	CHECK(passkey_fault(&answer, STR_NONE, &here, &out)); /* no challenge is no answer's */
	answer.signature.n--;
	CHECK(passkey_fault(&answer, STR(CHALLENGE), &here, &out));
	OPENSSL_free(der);
}

/* A key of RSA with that modulus length and exponent. */
static bool rsa_fits(int bits, const char *exponent)
{
	BIGNUM *n = BN_new(), *e = NULL;
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
	EVP_PKEY *made = NULL;
	unsigned char *der = NULL;
	CHECK(BN_rand(n, bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD) == 1);
	if (exponent)
		CHECK(BN_hex2bn(&e, exponent) > 0);
	else /* as long as the modulus */
		CHECK((e = BN_new()) && BN_rand(e, bits - 1, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD) == 1);
	OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n);
	OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e);
	OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
	CHECK(EVP_PKEY_fromdata_init(ctx) == 1 && EVP_PKEY_fromdata(ctx, &made, EVP_PKEY_PUBLIC_KEY, params) == 1);
	int der_n = i2d_PUBKEY(made, &der);
	bool fits = der_n > 0 && passkey_key_fits((struct str){(char *)der, (size_t)der_n});
	OPENSSL_free(der);
	EVP_PKEY_free(made);
	OSSL_PARAM_free(params);
	EVP_PKEY_CTX_free(ctx);
	OSSL_PARAM_BLD_free(build);
	BN_free(n);
	BN_free(e);
	return fits;
}

/* A large exponent made each sign-in cost 10 to 20 ms of the loop. */
static void test_rsa(void)
{
	CHECK(rsa_fits(2048, "10001") && rsa_fits(3072, "3") && rsa_fits(4096, "FFFFFFFF"));
	CHECK(!rsa_fits(3072, NULL) && !rsa_fits(2048, "100000001") && !rsa_fits(2048, "10000") &&
	      !rsa_fits(2048, "1"));
	CHECK(!rsa_fits(1024, "10001") && !rsa_fits(16384, "10001"));
}

int main(void)
{
	arena = arena_new();
	key = EVP_EC_gen("P-256");
	test_places();
	test_authenticators();
	test_answers();
	test_rsa();
	EVP_PKEY_free(key);
	arena_free(arena);
	return CHECK_DONE();
}
