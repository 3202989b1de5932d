/* ID tokens are JSON Web Signatures in the compact form (RFC 7515) over claims (RFC 7519; OpenID Connect Core, section
 * 3.1.3.7).
 *
 * The signature's algorithm is chosen by the key, not by the token: a token that asks for none, for a MAC (with the
 * public key as its secret), or for another algorithm than its key's is wrong. */
#include "identity/oidc.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/certs.h"
#include "base/id.h"
#include "base/json.h"
#include "store/seal.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#define SKEW_SECONDS 60
#define NUMBER_MAX 1024 /* bytes of a number of a key: 8192 bits */
#define SIGNATURE_MAX 1024
#define KEYS_TRIED 10 /* where the token names none */

/* Requests. */

void oidc_secret_make(char ret_text[OIDC_SECRET_TEXT])
{
	unsigned char bytes[32];
	random_bytes(bytes, sizeof bytes);
	base64url_encode(bytes, sizeof bytes, ret_text);
}

void oidc_challenge(struct str verifier, char ret_text[OIDC_SECRET_TEXT])
{
	unsigned char digest[32];
	sha256(verifier, digest);
	base64url_encode(digest, sizeof digest, ret_text);
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c) != NULL);
}

void oidc_parameter(struct buf *b, const char *name, struct str value)
{
	buf_printf(b, "%s%s=", b->n && b->p[b->n - 1] != '?' ? "&" : "", name);
	for (size_t i = 0; i < value.n; i++) {
		if (is_unreserved(value.p[i]))
			buf_c(b, value.p[i]);
		else
			buf_printf(b, "%%%02X", (unsigned char)value.p[i]);
	}
}

static struct str scope_text(struct arena *a, const json_t *scopes)
{
	struct buf b = {0};
	buf_z(&b, "openid");
	for (size_t i = 0; i < json_array_size(scopes); i++) {
		struct str scope = json_item(scopes, i);
		if (scope.n && !str_is(scope, "openid")) {
			buf_c(&b, ' ');
			buf_str(&b, scope);
		}
	}
	return buf_keep(&b, a);
}

struct str oidc_request_url(struct arena *a, const struct oidc_request *r)
{
	char challenge[OIDC_SECRET_TEXT];
	struct buf b = {0};
	oidc_challenge(r->verifier, challenge);
	buf_str(&b, r->endpoint);
	if (!r->endpoint.n || !memchr(r->endpoint.p, '?', r->endpoint.n))
		buf_c(&b, '?');
	oidc_parameter(&b, "response_type", STR("code"));
	oidc_parameter(&b, "client_id", r->client_id);
	oidc_parameter(&b, "redirect_uri", r->redirect_uri);
	oidc_parameter(&b, "scope", scope_text(a, r->scopes));
	oidc_parameter(&b, "state", r->state);
	oidc_parameter(&b, "nonce", r->nonce);
	oidc_parameter(&b, "code_challenge", str_of(challenge));
	oidc_parameter(&b, "code_challenge_method", STR("S256"));
	if (r->login_hint.n)
		oidc_parameter(&b, "login_hint", r->login_hint);
	return buf_keep(&b, a);
}

/* Keys. */

static const struct algorithm {
	const char *name, *key_type, *curve; /* curve: or NULL */
	const char *hash;                    /* or NULL: the signature has its own */
	bool pss;
	size_t half; /* bytes of each of the two numbers of an ECDSA signature */
} algorithms[] = {
        {"RS256", "RSA", NULL, "SHA256", false, 0},    {"RS384", "RSA", NULL, "SHA384", false, 0},
        {"RS512", "RSA", NULL, "SHA512", false, 0},    {"PS256", "RSA", NULL, "SHA256", true, 0},
        {"PS384", "RSA", NULL, "SHA384", true, 0},     {"PS512", "RSA", NULL, "SHA512", true, 0},
        {"ES256", "EC", "P-256", "SHA256", false, 32}, {"ES384", "EC", "P-384", "SHA384", false, 48},
        {"ES512", "EC", "P-521", "SHA512", false, 66}, {"EdDSA", "OKP", "Ed25519", NULL, false, 0},
};

static const struct algorithm *algorithm_find(struct str name)
{
	for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
		if (str_is(name, algorithms[i].name))
			return &algorithms[i];
	return NULL;
}

/* A key without "alg" serves each algorithm of its type. */
static bool key_is_for(const json_t *key, const struct algorithm *alg)
{
	struct str own = json_field(key, "alg");
	return str_is(json_field(key, "kty"), alg->key_type) && (!own.n || str_is(own, alg->name)) &&
	       (!alg->curve || str_is(json_field(key, "crv"), alg->curve));
}

static EVP_PKEY *key_make(const char *type, OSSL_PARAM_BLD *build)
{
	OSSL_PARAM *params = build ? OSSL_PARAM_BLD_to_param(build) : NULL;
	EVP_PKEY_CTX *ctx = params ? EVP_PKEY_CTX_new_from_name(NULL, type, NULL) : NULL;
	EVP_PKEY *key = NULL;
	if (ctx && EVP_PKEY_fromdata_init(ctx) == 1 && EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(ctx);
	OSSL_PARAM_free(params);
	return key;
}

static BIGNUM *number_of(const json_t *key, const char *field)
{
	unsigned char bytes[NUMBER_MAX];
	ssize_t n = base64_decode(json_field(key, field), bytes, sizeof bytes);
	return n > 0 ? BN_bin2bn(bytes, (int)n, NULL) : NULL;
}

static EVP_PKEY *key_of_rsa(const json_t *key)
{
	BIGNUM *n = number_of(key, "n"), *e = number_of(key, "e");
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY *made = NULL;
	if (n && e && build && BN_num_bits(n) >= 2048 && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) &&
	    OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e))
		made = key_make("RSA", build);
	if (made && !key_is_cheap(made)) {
		EVP_PKEY_free(made);
		made = NULL;
	}
	OSSL_PARAM_BLD_free(build);
	BN_free(n);
	BN_free(e);
	return made;
}

static EVP_PKEY *key_of_curve(const json_t *key, const struct algorithm *alg)
{
	unsigned char point[1 + 2 * 66] = {4};
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY *made = NULL;
	if (build && base64_decode(json_field(key, "x"), point + 1, alg->half) == (ssize_t)alg->half &&
	    base64_decode(json_field(key, "y"), point + 1 + alg->half, alg->half) == (ssize_t)alg->half &&
	    OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, alg->curve, 0) &&
	    OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * alg->half))
		made = key_make("EC", build);
	OSSL_PARAM_BLD_free(build);
	return made;
}

static EVP_PKEY *key_of(const json_t *key, const struct algorithm *alg)
{
	unsigned char bytes[32];
	if (strcmp(alg->key_type, "RSA") == 0)
		return key_of_rsa(key);
	if (strcmp(alg->key_type, "EC") == 0)
		return key_of_curve(key, alg);
	return base64_decode(json_field(key, "x"), bytes, sizeof bytes) == (ssize_t)sizeof bytes
	               ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, sizeof bytes)
	               : NULL;
}

/* Signatures. */

/* Two numbers in a row, as JWS has them, in the DER that OpenSSL reads. */
static unsigned char *ecdsa_der(const unsigned char *raw, size_t half, int *ret_n)
{
	unsigned char *der = NULL;
	ECDSA_SIG *pair = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(raw, (int)half, NULL), *s = BN_bin2bn(raw + half, (int)half, NULL);
	if (pair && r && s && ECDSA_SIG_set0(pair, r, s) == 1) {
		*ret_n = i2d_ECDSA_SIG(pair, &der);
	} else {
		BN_free(r);
		BN_free(s);
	}
	ECDSA_SIG_free(pair);
	return der;
}

static bool verify(EVP_PKEY *key, const struct algorithm *alg, struct str message, const unsigned char *signature,
                   size_t n)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *options = NULL;
	bool right = ctx && EVP_DigestVerifyInit_ex(ctx, &options, alg->hash, NULL, NULL, key, NULL) == 1;
	if (right && alg->pss)
		right = EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1 &&
		        EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1;
	right = right && EVP_DigestVerify(ctx, signature, n, (const unsigned char *)message.p, message.n) == 1;
	EVP_MD_CTX_free(ctx);
	return right;
}

static bool signature_is_by(const json_t *jwk, const struct algorithm *alg, struct str message,
                            const unsigned char *signature, size_t n)
{
	unsigned char *der = NULL;
	int der_n = 0;
	if (alg->half && n != 2 * alg->half)
		return false;
	EVP_PKEY *key = key_of(jwk, alg);
	if (key && alg->half)
		der = ecdsa_der(signature, alg->half, &der_n);
	bool right = key && (!alg->half || der_n > 0) &&
	             verify(key, alg, message, alg->half ? der : signature, alg->half ? (size_t)der_n : n);
	OPENSSL_free(der);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return right;
}

struct jws {
	struct str message;      /* what is signed: header and claims, as they came */
	json_t *header, *claims; /* the arena's */
	unsigned char signature[SIGNATURE_MAX];
	size_t signature_n;
};

static json_t *part_read(struct arena *a, struct str text)
{
	char *bytes = arena_alloc(a, text.n + 1);
	ssize_t n = memchr(text.p, '=', text.n) ? -1 : base64_decode(text, bytes, text.n);
	json_t *value = n > 0 ? json_loadb(bytes, (size_t)n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	return value ? json_keep(a, value) : NULL;
}

static bool jws_read(struct arena *a, struct str token, struct jws *ret)
{
	struct str header, rest, claims, signature;
	if (token.n > OIDC_TOKEN_MAX || !str_cut(token, '.', &header, &rest) ||
	    !str_cut(rest, '.', &claims, &signature) || !header.n || !claims.n || !signature.n)
		return false;
	ssize_t n = base64_decode(signature, ret->signature, sizeof ret->signature);
	ret->message = (struct str){token.p, header.n + 1 + claims.n};
	ret->header = part_read(a, header);
	ret->claims = part_read(a, claims);
	ret->signature_n = n > 0 ? (size_t)n : 0;
	return n > 0 && json_is_object(ret->header) && json_is_object(ret->claims);
}

static enum oidc_verdict signature_verify(const struct jws *t, const json_t *keys, const char **ret_fault)
{
	const struct algorithm *alg = algorithm_find(json_field(t->header, "alg"));
	struct str kid = json_field(t->header, "kid");
	bool known = false;
	size_t tried = 0;
	*ret_fault = "its token is signed by an algorithm that is not taken";
	if (!alg || json_object_get(t->header, "crit"))
		return OIDC_WRONG;
	for (size_t i = 0; i < json_array_size(keys) && tried < KEYS_TRIED; i++) {
		const json_t *key = json_array_get(keys, i);
		if (kid.n && !str_eq(json_field(key, "kid"), kid))
			continue;
		known = true;
		if (!key_is_for(key, alg))
			continue;
		tried++;
		if (signature_is_by(key, alg, t->message, t->signature, t->signature_n))
			return OIDC_RIGHT;
	}
	*ret_fault = tried   ? "the signature of its token is wrong"
	             : known ? "its token is signed by another algorithm than its key's"
	                     : "its token is signed by a key that it does not publish";
	return tried == 0 && (!known || !kid.n) ? OIDC_KEY_UNKNOWN : OIDC_WRONG;
}

/* Claims. */

static bool audience_fits(const json_t *claims, struct str client_id)
{
	const json_t *audience = json_object_get(claims, "aud");
	struct str party = json_field(claims, "azp");
	bool ours = json_is_array(audience) ? json_has(audience, client_id) : str_eq(json_str_of(audience), client_id);
	bool several = json_is_array(audience) && json_array_size(audience) > 1;
	return client_id.n && ours && (party.n ? str_eq(party, client_id) : !several);
}

/* A claim in seconds; false when it is there and no number. Numbers may have fractions. */
static bool time_of(const json_t *claims, const char *name, double *ret_seconds, bool *ret_given)
{
	const json_t *value = json_object_get(claims, name);
	*ret_given = value != NULL;
	*ret_seconds = json_number_value(value);
	return !value || json_is_number(value);
}

static const char *times_fault(const json_t *claims, int64_t now_ms)
{
	double expires, issued, begins, now = (double)now_ms / 1000;
	bool has_expiry, has_issue, has_begin;
	if (!time_of(claims, "exp", &expires, &has_expiry) || !time_of(claims, "iat", &issued, &has_issue) ||
	    !time_of(claims, "nbf", &begins, &has_begin) || !has_expiry || !has_issue)
		return "its token does not say from when to when it holds";
	if (expires <= now - SKEW_SECONDS)
		return "its token has expired";
	if (issued > now + SKEW_SECONDS || (has_begin && begins > now + SKEW_SECONDS))
		return "its token is from the future: compare the clocks";
	return NULL;
}

static const char *claims_fault(const json_t *claims, const struct oidc_expected *e)
{
	if (!e->issuer.n || !str_eq(json_field(claims, "iss"), e->issuer))
		return "its token names another issuer";
	if (!audience_fits(claims, e->client_id))
		return "its token is for another client";
	if (!e->nonce.n || !str_eq_secret(json_field(claims, "nonce"), e->nonce))
		return "its token has another nonce";
	if (!json_field(claims, "sub").n)
		return "its token names nobody";
	return times_fault(claims, e->now_ms);
}

enum oidc_verdict oidc_token_verify(struct arena *a, const json_t *keys, struct str token,
                                    const struct oidc_expected *expected, json_t **ret_claims, const char **ret_fault)
{
	struct jws *t = arena_new_of(a, struct jws);
	if (!jws_read(a, token, t)) {
		*ret_fault = "its token is not a signed one";
		return OIDC_WRONG;
	}
	enum oidc_verdict verdict = signature_verify(t, keys, ret_fault);
	if (verdict != OIDC_RIGHT)
		return verdict;
	*ret_fault = claims_fault(t->claims, expected);
	if (*ret_fault)
		return OIDC_WRONG;
	*ret_claims = t->claims;
	return OIDC_RIGHT;
}
