/* Answers of authenticators (Web Authentication, level 2, sections 6.1, 7.1 and 7.2). */
#include "identity/passkey.h"

#include "base/certs.h"
#include "base/ip.h"
#include "base/json.h"
#include "store/seal.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#define SIGNATURE_MAX 1024
#define HASH 32

enum {
	FLAG_PRESENT = 0x01,
	FLAG_VERIFIED = 0x04,
	FLAG_MAY_BE_BACKED_UP = 0x08,
	FLAG_BACKED_UP = 0x10,
	FLAG_CREDENTIAL = 0x40,
	FLAG_EXTENSIONS = 0x80
};

/* Places. */

/* "https://HOST:PORT" in lower case, as browsers write it: without the port that https has anyway. */
static struct str origin_of(struct arena *a, struct str authority)
{
	struct str lower = arena_lower(a, authority);
	if (str_ends(lower, STR(":443")))
		lower.n -= 4;
	return arena_printf(a, "https://%.*s", STR_ARG(lower));
}

/* The host of "host:port" or "[host]:port", and the port with its colon. */
static void authority_split(struct str authority, struct str *ret_host, struct str *ret_port)
{
	size_t n = authority.n;
	if (n && authority.p[0] == '[') {
		const char *end = memchr(authority.p, ']', n);
		n = end ? (size_t)(end - authority.p) + 1 : n;
	} else {
		const char *colon = n ? memchr(authority.p, ':', n) : NULL;
		n = colon ? (size_t)(colon - authority.p) : n;
	}
	*ret_host = (struct str){authority.p, n};
	*ret_port = (struct str){authority.p + n, authority.n - n};
}

static bool host_is_address(struct str host, struct ip *ret_ip)
{
	if (host.n > 2 && host.p[0] == '[')
		host = (struct str){host.p + 1, host.n - 2};
	return ip_parse(host, ret_ip);
}

static bool is_loopback(const struct ip *ip)
{
	static const struct ip one = {.b = {[15] = 1}};
	return (ip_is_v4(ip) && ip->b[12] == 127) || ip_equal(ip, &one);
}

/* The origin at which passkeys work: the service's own, or "localhost" for a loopback address. Empty: there is none. */
static struct str own_origin(struct arena *a, const char *base_url)
{
	struct str base = str_of(base_url), host, port, path;
	struct ip ip;
	if (!str_starts(base, STR("https://")))
		return STR_NONE;
	str_cut((struct str){base.p + 8, base.n - 8}, '/', &base, &path);
	authority_split(base, &host, &port);
	if (!host.n)
		return STR_NONE;
	if (!host_is_address(host, &ip))
		return origin_of(a, base);
	return is_loopback(&ip) ? origin_of(a, arena_printf(a, "localhost%.*s", STR_ARG(port))) : STR_NONE;
}

struct str passkey_url(struct arena *a, const char *base_url)
{
	struct str origin = own_origin(a, base_url);
	return arena_printf(a, "%.*s/console/", STR_ARG(origin.n ? origin : str_of(base_url)));
}

bool passkey_place(struct arena *a, const char *base_url, struct str host, struct passkey_place *ret_place)
{
	struct str own = own_origin(a, base_url), name, port;
	if (!own.n || !str_eq(own, origin_of(a, host)))
		return false;
	authority_split((struct str){own.p + 8, own.n - 8}, &name, &port);
	*ret_place = (struct passkey_place){.rp_id = name, .origin = own};
	return true;
}

/* What authenticators say. */

static uint32_t number_at(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* AAGUID, length and id; the key behind it is the browser's to read. */
static bool credential_parse(struct str bytes, struct str *ret_id)
{
	const unsigned char *b = (const unsigned char *)bytes.p;
	if (bytes.n < 18)
		return false;
	size_t n = (size_t)b[16] << 8 | b[17];
	if (n == 0 || n > PASSKEY_ID_MAX || bytes.n - 18 <= n)
		return false;
	*ret_id = (struct str){bytes.p + 18, n};
	return true;
}

bool passkey_authenticator_parse(struct str bytes, struct passkey_authenticator *ret_authenticator)
{
	if (bytes.n < HASH + 5 || bytes.n > PASSKEY_DATA_MAX)
		return false;
	unsigned flags = (unsigned char)bytes.p[HASH];
	struct str rest = {bytes.p + HASH + 5, bytes.n - HASH - 5}, id = STR_NONE;
	if (flags & FLAG_BACKED_UP && !(flags & FLAG_MAY_BE_BACKED_UP))
		return false;
	if (flags & FLAG_CREDENTIAL && !credential_parse(rest, &id))
		return false;
	if (!(flags & FLAG_CREDENTIAL) && (rest.n > 0) != ((flags & FLAG_EXTENSIONS) != 0))
		return false;
	*ret_authenticator = (struct passkey_authenticator){.rp_hash = {bytes.p, HASH},
	                                                    .present = flags & FLAG_PRESENT,
	                                                    .verified = flags & FLAG_VERIFIED,
	                                                    .backed_up = flags & FLAG_BACKED_UP,
	                                                    .count = number_at(bytes.p + HASH + 1),
	                                                    .credential_id = id};
	return true;
}

bool passkey_count_fits(uint32_t kept, uint32_t given)
{
	return (kept == 0 && given == 0) || given > kept;
}

/* What browsers say. */

static const char *client_data_fault(struct str text, bool registers, struct str challenge,
                                     const struct passkey_place *place)
{
	json_t *said = text.n <= PASSKEY_DATA_MAX ? json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *fault = NULL;
	if (!json_is_object(said))
		fault = "clientDataJSON: is no JSON object";
	else if (!str_is(json_field(said, "type"), registers ? "webauthn.create" : "webauthn.get"))
		fault = "clientDataJSON: is of another kind of call";
	else if (!challenge.n || !str_eq_secret(json_field(said, "challenge"), challenge))
		fault = "clientDataJSON: answers another challenge";
	else if (!str_eq(json_field(said, "origin"), place->origin))
		fault = "clientDataJSON: comes from another site";
	else if (json_flag(said, "crossOrigin") || json_object_get(said, "topOrigin"))
		fault = "clientDataJSON: comes from a frame of another site";
	json_decref(said);
	return fault;
}

/* Keys. */

static EVP_PKEY *key_read(struct str key)
{
	const unsigned char *p = (const unsigned char *)key.p;
	EVP_PKEY *read = key.n && key.n <= PASSKEY_KEY_MAX ? d2i_PUBKEY(NULL, &p, (long)key.n) : NULL;
	if (read && p != (const unsigned char *)key.p + key.n) {
		EVP_PKEY_free(read);
		read = NULL;
	}
	ERR_clear_error();
	return read;
}

static bool is_p256(const EVP_PKEY *key)
{
	char name[32] = "";
	size_t n = 0;
	return EVP_PKEY_get_group_name(key, name, sizeof name, &n) == 1 && strcmp(name, "prime256v1") == 0;
}

static bool key_is_ours(const EVP_PKEY *key)
{
	int type = EVP_PKEY_get_base_id(key), bits = EVP_PKEY_get_bits(key);
	return (type == EVP_PKEY_EC && is_p256(key)) || (type == EVP_PKEY_RSA && bits >= 2048 && key_is_cheap(key)) ||
	       type == EVP_PKEY_ED25519;
}

bool passkey_key_fits(struct str key)
{
	EVP_PKEY *read = key_read(key);
	bool fits = read && key_is_ours(read);
	EVP_PKEY_free(read);
	return fits;
}

static bool signature_is_right(const struct passkey_answer *answer)
{
	unsigned char message[PASSKEY_DATA_MAX + HASH];
	EVP_PKEY *key = key_read(answer->key);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool right = false;
	if (ctx && key && key_is_ours(key) && answer->authenticator.n <= PASSKEY_DATA_MAX &&
	    answer->signature.n <= SIGNATURE_MAX) {
		const EVP_MD *hash = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
		memcpy(message, answer->authenticator.p, answer->authenticator.n);
		sha256(answer->client_data, message + answer->authenticator.n);
		right = EVP_DigestVerifyInit(ctx, NULL, hash, NULL, key) == 1 &&
		        EVP_DigestVerify(ctx, (const unsigned char *)answer->signature.p, answer->signature.n, message,
		                         answer->authenticator.n + HASH) == 1;
	}
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return right;
}

const char *passkey_fault(const struct passkey_answer *answer, struct str challenge, const struct passkey_place *place,
                          struct passkey_authenticator *ret_authenticator)
{
	struct passkey_authenticator said;
	unsigned char name[HASH];
	const char *fault = client_data_fault(answer->client_data, answer->registers, challenge, place);
	if (fault)
		return fault;
	if (!passkey_authenticator_parse(answer->authenticator, &said))
		return "authenticatorData: is not what an authenticator says";
	sha256(place->rp_id, name);
	if (!str_eq(said.rp_hash, (struct str){(const char *)name, HASH}))
		return "authenticatorData: is about another site";
	if (!said.present)
		return "authenticatorData: nobody was there";
	if (!said.verified)
		return "authenticatorData: nobody was verified (PIN, finger or face)";
	if (answer->registers != (said.credential_id.n > 0))
		return "authenticatorData: is of another kind of call";
	if (!passkey_key_fits(answer->key))
		return "publicKey: must be a key for ES256, RS256 or EdDSA";
	if (!answer->registers && !signature_is_right(answer))
		return "signature: is not by the passkey";
	*ret_authenticator = said;
	return NULL;
}
