/* Certificates with OpenSSL. A serial number has 63 random bits, so that it is unpredictable and still fits a JSON
 * number. Keys have no pass phrase; the place where they are kept protects them. */
#include "base/certs.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define RSA_BITS_MAX 8192
#define EXPONENT_BITS_MAX 32
#define CURVE_BITS_MAX 521
#define DAY 86400
#define SKEW 3600
#define CERTS_MAX 100

void pair_free(struct pair *p)
{
	X509_free(p->cert);
	EVP_PKEY_free(p->key);
	*p = (struct pair){0};
}

/* Without this callback OpenSSL would ask for a pass phrase on the terminal. */
static int no_pass_phrase(char *text, int size, int writing, void *ctx)
{
	return 0;
}

/* Frees both BIOs. */
static struct pair pair_from(BIO *cert, BIO *key)
{
	struct pair p = {0};
	if (cert)
		p.cert = PEM_read_bio_X509(cert, NULL, no_pass_phrase, NULL);
	if (key)
		p.key = PEM_read_bio_PrivateKey(key, NULL, no_pass_phrase, NULL);
	BIO_free(cert);
	BIO_free(key);
	ERR_clear_error();
	return p;
}

struct pair pair_read(const char *cert_path, const char *key_path)
{
	return pair_from(BIO_new_file(cert_path, "r"), BIO_new_file(key_path, "r"));
}

struct pair pair_parse(struct str cert, struct str key)
{
	return pair_from(cert.n ? BIO_new_mem_buf(cert.p, (int)cert.n) : NULL,
	                 key.n ? BIO_new_mem_buf(key.p, (int)key.n) : NULL);
}

bool pair_fits(const struct pair *p)
{
	bool fits = p->cert && p->key && X509_check_private_key(p->cert, p->key) == 1;
	ERR_clear_error();
	return fits;
}

static time_t now_seconds(void)
{
	return (time_t)(clock_now_ms() / 1000);
}

bool cert_ends_within(const X509 *cert, int64_t days)
{
	time_t limit = now_seconds() + (time_t)days * DAY;
	return X509_cmp_time(X509_get0_notAfter(cert), &limit) <= 0;
}

bool cert_begins_later(const X509 *cert)
{
	time_t now = now_seconds();
	return X509_cmp_time(X509_get0_notBefore(cert), &now) > 0;
}

bool cert_is_of(X509 *cert, const X509 *ca)
{
	bool is = X509_verify(cert, X509_get0_pubkey(ca)) == 1;
	ERR_clear_error();
	return is;
}

bool cert_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool added = e && X509_add_ext(cert, e, -1);
	X509_EXTENSION_free(e);
	return added;
}

static bool serial_set(X509 *cert)
{
	unsigned char bytes[8];
	random_bytes(bytes, sizeof bytes);
	bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive and of full length */
	BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
	bool set = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return set;
}

static bool names_set(X509 *cert, const struct cert_name *names, size_t count)
{
	X509_NAME *name = X509_get_subject_name(cert);
	for (size_t i = 0; i < count; i++)
		if (!X509_NAME_add_entry_by_txt(name, names[i].type, MBSTRING_UTF8,
		                                (const unsigned char *)names[i].value.p, (int)names[i].value.n, -1, 0))
			return false;
	return true;
}

static bool validity_set(X509 *cert, const X509 *ca, int64_t days)
{
	time_t from = now_seconds() - SKEW, to = now_seconds() + (time_t)days * DAY;
	if (!ASN1_TIME_set(X509_getm_notBefore(cert), from))
		return false;
	if (ca && X509_cmp_time(X509_get0_notAfter(ca), &to) < 0)
		return X509_set1_notAfter(cert, X509_get0_notAfter(ca)) == 1;
	return ASN1_TIME_set(X509_getm_notAfter(cert), to) != NULL;
}

static bool kind_set(X509 *cert, X509 *issuer, enum cert_kind kind)
{
	bool ca = kind == CERT_CA;
	return cert_extend(cert, issuer, NID_basic_constraints,
	                   ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
	       cert_extend(cert, issuer, NID_key_usage,
	                   ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
	       (ca ||
	        cert_extend(cert, issuer, NID_ext_key_usage, kind == CERT_SERVER ? "serverAuth" : "clientAuth")) &&
	       cert_extend(cert, issuer, NID_subject_key_identifier, "hash") &&
	       cert_extend(cert, issuer, NID_authority_key_identifier, "keyid:always");
}

bool pair_begin(struct pair *p, enum cert_kind kind, const struct cert_name *names, size_t name_count, X509 *ca,
                int64_t days)
{
	p->key = EVP_EC_gen("P-256");
	p->cert = X509_new();
	return p->key && p->cert && X509_set_version(p->cert, X509_VERSION_3) && serial_set(p->cert) &&
	       names_set(p->cert, names, name_count) && validity_set(p->cert, ca, days) &&
	       X509_set_issuer_name(p->cert, X509_get_subject_name(ca ? ca : p->cert)) &&
	       X509_set_pubkey(p->cert, p->key) && kind_set(p->cert, ca ? ca : p->cert, kind);
}

bool pair_begin_named(struct pair *p, enum cert_kind kind, const char *common_name, X509 *ca, int64_t days)
{
	const struct cert_name names[] = {{"O", STR("Steward")}, {"CN", str_of(common_name)}};
	return pair_begin(p, kind, names, 2, ca, days);
}

bool pair_sign(struct pair *p, EVP_PKEY *key)
{
	return X509_sign(p->cert, key, EVP_sha256()) > 0;
}

static struct str bio_text(struct arena *a, BIO *bio)
{
	char *bytes;
	long n = BIO_get_mem_data(bio, &bytes);
	return arena_dup(a, (struct str){bytes, n > 0 ? (size_t)n : 0});
}

int pair_pem(const struct pair *p, struct arena *a, struct str *ret_cert, struct str *ret_key)
{
	BIO *cert = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_secmem());
	bool good = cert && key && (!ret_cert || PEM_write_bio_X509(cert, p->cert)) &&
	            (!ret_key || PEM_write_bio_PKCS8PrivateKey(key, p->key, NULL, NULL, 0, NULL, NULL));
	if (good && ret_cert)
		*ret_cert = bio_text(a, cert);
	if (good && ret_key)
		*ret_key = bio_text(a, key);
	BIO_free(cert);
	BIO_free(key);
	return good ? 0 : -EIO;
}

int pair_write(const struct pair *p, const char *cert_path, const char *key_path, gid_t group)
{
	struct arena *a = arena_new();
	struct str cert, key;
	bool shared = group != FILE_NO_GROUP;
	int r = pair_pem(p, a, &cert, &key);
	if (r == 0)
		r = file_replace(key_path, key, shared ? 0640 : 0600, group);
	if (r == 0)
		r = file_replace(cert_path, cert, shared ? 0640 : 0644, group);
	arena_free(a);
	return r;
}

struct str cert_subject(struct arena *a, const X509 *cert)
{
	BIO *bio = BIO_new(BIO_s_mem());
	struct str text = STR_NONE;
	if (bio && X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253) >= 0)
		text = bio_text(a, bio);
	BIO_free(bio);
	return text;
}

int64_t cert_serial(const X509 *cert)
{
	int64_t serial = 0;
	return ASN1_INTEGER_get_int64(&serial, X509_get0_serialNumber(cert)) ? serial : 0;
}

static int64_t time_ms(const ASN1_TIME *t)
{
	time_t start = now_seconds();
	ASN1_TIME *now = ASN1_TIME_set(NULL, start);
	int days = 0, seconds = 0;
	bool good = now && ASN1_TIME_diff(&days, &seconds, now, t);
	ASN1_TIME_free(now);
	return good ? ((int64_t)start + (int64_t)days * DAY + seconds) * 1000 : 0;
}

int64_t cert_begins_ms(const X509 *cert)
{
	return time_ms(X509_get0_notBefore(cert));
}

int64_t cert_ends_ms(const X509 *cert)
{
	return time_ms(X509_get0_notAfter(cert));
}

bool key_is_cheap(const EVP_PKEY *key)
{
	int type = EVP_PKEY_get_base_id(key);
	if (type == EVP_PKEY_ED25519 || type == EVP_PKEY_ED448)
		return true;
	if (type == EVP_PKEY_EC)
		return EVP_PKEY_get_bits(key) <= CURVE_BITS_MAX;
	BIGNUM *e = NULL;
	bool cheap = (type == EVP_PKEY_RSA || type == EVP_PKEY_RSA_PSS) && EVP_PKEY_get_bits(key) <= RSA_BITS_MAX &&
	             EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &e) == 1 && BN_is_odd(e) && !BN_is_one(e) &&
	             !BN_is_negative(e) && BN_num_bits(e) <= EXPONENT_BITS_MAX;
	BN_free(e);
	return cheap;
}

bool cert_key_is_cheap(const X509 *cert)
{
	const EVP_PKEY *key = X509_get0_pubkey(cert);
	bool cheap = key && key_is_cheap(key);
	ERR_clear_error();
	return cheap;
}

X509 *cert_parse(struct str pem)
{
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509 *one = bio ? PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL) : NULL;
	X509 *second = one ? PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL) : NULL;
	if (second) {
		X509_free(one);
		one = NULL;
	}
	X509_free(second);
	BIO_free(bio);
	ERR_clear_error();
	return one;
}

int certs_normalize(struct arena *a, struct str pem, struct str *ret_pem, const char **ret_fault)
{
	BIO *in = BIO_new_mem_buf(pem.p, (int)pem.n), *out = BIO_new(BIO_s_mem());
	const char *fault = in && out ? NULL : "cannot be read now";
	size_t count = 0;
	X509 *cert;
	ERR_clear_error();
	while (!fault && (cert = PEM_read_bio_X509(in, NULL, no_pass_phrase, NULL))) {
		if (++count > CERTS_MAX)
			fault = "must hold at most 100 certificates";
		else if (X509_check_ca(cert) != 1)
			fault = "must hold certificates of certificate authorities only";
		else if (!cert_key_is_cheap(cert))
			fault = "must hold keys of RSA of at most 8192 bits, with an exponent below 2^32, or of a "
			        "curve";
		else if (!PEM_write_bio_X509(out, cert))
			fault = "cannot be read now";
		X509_free(cert);
	}
	unsigned long error = ERR_peek_last_error();
	if (!fault && (!count || ERR_GET_REASON(error) != PEM_R_NO_START_LINE))
		fault = count ? "holds a certificate that cannot be read" : "must hold a certificate in PEM form";
	ERR_clear_error();
	if (!fault)
		*ret_pem = bio_text(a, out);
	else
		*ret_fault = fault;
	BIO_free(in);
	BIO_free(out);
	return fault ? -EINVAL : 0;
}
