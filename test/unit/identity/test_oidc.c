/* ID tokens: each claim, the choice of the key and its algorithm, and every bit of a token. */
#include "identity/oidc.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "check.h"

#include <openssl/ec.h>
#include <openssl/evp.h>

#define NOW INT64_C(1800000000)
static struct arena *arena;
static EVP_PKEY *ed, *p256;
static json_t *keys;

static struct str text_of(const void *bytes, size_t n)
{
	char *out = arena_alloc(arena, BASE64_TEXT(n));
	base64url_encode(bytes, n, out);
	return str_of(out);
}

static json_t *ed_jwk(void)
{
	unsigned char raw[32];
	size_t n = sizeof raw;
	CHECK(EVP_PKEY_get_raw_public_key(ed, raw, &n) == 1);
	return json_pack("{s:s, s:s, s:s, s:s}", "kty", "OKP", "crv", "Ed25519", "kid", "ed", "x", text_of(raw, n).p);
}

static json_t *ec_jwk(void)
{
	unsigned char point[65];
	size_t n = 0;
	CHECK(EVP_PKEY_get_octet_string_param(p256, "pub", point, sizeof point, &n) == 1 && n == 65);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "kty", "EC", "crv", "P-256", "kid", "ec", "alg", "ES256",
	                 "x", text_of(point + 1, 32).p, "y", text_of(point + 33, 32).p);
}

static struct str token_make(const char *header, const char *claims)
{
	unsigned char signature[64];
	size_t n = sizeof signature;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	struct str message =
	        arena_printf(arena, "%s.%s", text_of(header, strlen(header)).p, text_of(claims, strlen(claims)).p);
	CHECK(EVP_DigestSignInit(ctx, NULL, NULL, NULL, ed) == 1 &&
	      EVP_DigestSign(ctx, signature, &n, (const unsigned char *)message.p, message.n) == 1);
	EVP_MD_CTX_free(ctx);
	return arena_printf(arena, "%s.%s", message.p, text_of(signature, n).p);
}

static enum oidc_verdict verdict_of(struct str token, const char **ret_fault)
{
	struct oidc_expected e = {STR("https://issuer.example"), STR("client"), STR("nonce"), NOW * 1000};
	json_t *claims = NULL;
	enum oidc_verdict verdict = oidc_token_verify(arena, keys, token, &e, &claims, ret_fault);
	CHECK((verdict == OIDC_RIGHT) == (claims != NULL) && (claims || *ret_fault));
	return verdict;
}

static bool is_right(const char *claims)
{
	const char *fault;
	return verdict_of(token_make("{\"alg\":\"EdDSA\",\"kid\":\"ed\"}", claims), &fault) == OIDC_RIGHT;
}

#define CLAIMS(iss, aud, nonce, times) \
	"{\"iss\":\"" iss "\",\"aud\":" aud ",\"nonce\":\"" nonce "\",\"sub\":\"s\"," times "}"
#define TIMES "\"iat\":1800000000,\"exp\":1800000300"
#define ISSUER "https://issuer.example"
#define RIGHT CLAIMS(ISSUER, "\"client\"", "nonce", TIMES)

static enum oidc_verdict with_header(const char *header)
{
	const char *fault;
	return verdict_of(token_make(header, RIGHT), &fault);
}

static void test_claims(void)
{
	CHECK(is_right(RIGHT));
	CHECK(is_right(CLAIMS(ISSUER, "[\"client\"]", "nonce", TIMES)));
	CHECK(is_right(CLAIMS(ISSUER, "[\"a\",\"client\"]", "nonce", TIMES ",\"azp\":\"client\"")));
	CHECK(is_right(CLAIMS(ISSUER, "\"client\"", "nonce", "\"iat\":1800000059.5,\"exp\":1799999941")));
	static const char *const wrong[] = {
	        CLAIMS(ISSUER "/", "\"client\"", "nonce", TIMES),
	        CLAIMS(ISSUER, "\"other\"", "nonce", TIMES),
	        CLAIMS(ISSUER, "[\"a\",\"client\"]", "nonce", TIMES),
	        CLAIMS(ISSUER, "\"client\"", "nonce", TIMES ",\"azp\":\"other\""),
	        CLAIMS(ISSUER, "{\"client\":1}", "nonce", TIMES),
	        CLAIMS(ISSUER, "\"client\"", "other", TIMES),
	        CLAIMS(ISSUER, "\"client\"", "", TIMES),
	        CLAIMS(ISSUER, "\"client\"", "nonce", "\"iat\":1800000000"),
	        CLAIMS(ISSUER, "\"client\"", "nonce", "\"exp\":1800000300"),
	        CLAIMS(ISSUER, "\"client\"", "nonce", "\"iat\":1800000000,\"exp\":\"1800000300\""),
	        CLAIMS(ISSUER, "\"client\"", "nonce", "\"iat\":1800000000,\"exp\":1799999940"),
	        CLAIMS(ISSUER, "\"client\"", "nonce", "\"iat\":1800000061,\"exp\":1800000300"),
	        CLAIMS(ISSUER, "\"client\"", "nonce", TIMES ",\"nbf\":1800000061"),
	        CLAIMS(ISSUER, "\"client\"", "nonce", TIMES ",\"sub\":\"twice\""),
	        "{}",
	        "[]",
	        "no json"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK(!is_right(wrong[i]));
}

static void test_keys(void)
{
	CHECK(with_header("{\"alg\":\"EdDSA\"}") == OIDC_RIGHT); /* tries those that fit */
	CHECK(with_header("{\"alg\":\"EdDSA\",\"kid\":\"new\"}") == OIDC_KEY_UNKNOWN);
	CHECK(with_header("{\"alg\":\"EdDSA\",\"kid\":\"ec\"}") == OIDC_WRONG);
	CHECK(with_header("{\"alg\":\"ES256\",\"kid\":\"ec\"}") == OIDC_WRONG);
	CHECK(with_header("{\"alg\":\"ES384\",\"kid\":\"ec\"}") == OIDC_WRONG);
	CHECK(with_header("{\"alg\":\"none\",\"kid\":\"ed\"}") == OIDC_WRONG);
	CHECK(with_header("{\"alg\":\"HS256\",\"kid\":\"ed\"}") == OIDC_WRONG);
	CHECK(with_header("{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"crit\":[\"b64\"],\"b64\":false}") == OIDC_WRONG);
	CHECK(with_header("{\"alg\":\"EdDSA\",\"alg\":\"EdDSA\"}") == OIDC_WRONG);
	CHECK(with_header("{}") == OIDC_WRONG);
}

static void test_every_letter(void)
{
	const char *fault;
	struct str token = token_make("{\"alg\":\"EdDSA\",\"kid\":\"ed\"}", RIGHT);
	for (size_t i = 0; i < token.n; i++) {
		char *bent = arena_z(arena, token);
		bent[i] = bent[i] == 'A' ? 'B' : 'A';
		CHECK(verdict_of((struct str){bent, token.n}, &fault) != OIDC_RIGHT);
		CHECK(verdict_of((struct str){token.p, i}, &fault) != OIDC_RIGHT);
	}
	CHECK(verdict_of(arena_printf(arena, "%s.x", token.p), &fault) == OIDC_WRONG);
	CHECK(verdict_of(STR_NONE, &fault) == OIDC_WRONG && verdict_of(STR(".."), &fault) == OIDC_WRONG);
}

static void test_requests(void)
{
	char challenge[OIDC_SECRET_TEXT], one[OIDC_SECRET_TEXT], two[OIDC_SECRET_TEXT];
	json_t *scopes = json_pack("[s, s]", "email", "openid");
	/* RFC 7636, appendix B. */
	oidc_challenge(STR("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"), challenge);
	CHECK(strcmp(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM") == 0);
	oidc_secret_make(one);
	oidc_secret_make(two);
	CHECK(strlen(one) == OIDC_SECRET_TEXT - 1 && strcmp(one, two) != 0);
	struct oidc_request r = {.endpoint = STR("https://issuer.example/a"),
	                         .client_id = STR("c&d"),
	                         .redirect_uri = STR("https://x/y"),
	                         .state = STR("s"),
	                         .nonce = STR("n"),
	                         .verifier = STR("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
	                         .scopes = scopes};
	CHECK(str_is(oidc_request_url(arena, &r),
	             "https://issuer.example/a?response_type=code&client_id=c%26d&redirect_uri=https%3A%2F%2Fx%2Fy"
	             "&scope=openid%20email&state=s&nonce=n&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	             "&code_challenge_method=S256"));
	r.endpoint = STR("https://issuer.example/a?b=c");
	CHECK(str_starts(oidc_request_url(arena, &r), STR("https://issuer.example/a?b=c&response_type=code&")));
	json_decref(scopes);
}

int main(void)
{
	arena = arena_new();
	ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	p256 = EVP_EC_gen("P-256");
	keys = json_pack("[o, o]", ec_jwk(), ed_jwk());
	test_claims();
	test_keys();
	test_every_letter();
	test_requests();
	json_decref(keys);
	EVP_PKEY_free(ed);
	EVP_PKEY_free(p256);
	arena_free(arena);
	return CHECK_DONE();
}
