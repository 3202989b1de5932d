/* Certificates and their keys: ECDSA P-256, X.509 version 3, kept as PEM. The service's own CA, each project's CA, and
 * what they sign are all made here. Times are the service's. */
#ifndef STEWARD_BASE_CERTS_H
#define STEWARD_BASE_CERTS_H

#include "base/arena.h"
#include "base/str.h"

#include <openssl/types.h>
#include <sys/types.h>

/* A member is NULL when the file is absent or unusable. */
struct pair {
	X509 *cert;
	EVP_PKEY *key;
};

enum cert_kind { CERT_CA, CERT_SERVER, CERT_CLIENT };

/* One part of a subject's name ("CN", "DC"), in the order of the certificate: the most general first. */
struct cert_name {
	const char *type;
	struct str value;
};

void pair_free(struct pair *p);
struct pair pair_read(const char *cert_path, const char *key_path);
struct pair pair_parse(struct str cert, struct str key);
bool pair_fits(const struct pair *p);

bool cert_ends_within(const X509 *cert, int64_t days);
/* True when it is not valid yet: it was made while the clock was ahead. */
bool cert_begins_later(const X509 *cert);
bool cert_is_of(X509 *cert, const X509 *ca); /* signed by the CA's key */

/* Makes a new key and a certificate that only lacks its signature and further extensions. With `ca` NULL it is its own
 * issuer. It is valid from an hour ago, because clocks differ, and never for longer than its issuer. */
bool pair_begin(struct pair *p, enum cert_kind kind, const struct cert_name *names, size_t name_count, X509 *ca,
                int64_t days);
/* The same with the subject O=Steward and this common name. */
bool pair_begin_named(struct pair *p, enum cert_kind kind, const char *common_name, X509 *ca, int64_t days);
bool cert_extend(X509 *cert, X509 *issuer, int nid, const char *value);
/* `key` is the issuer's. */
bool pair_sign(struct pair *p, EVP_PKEY *key);

/* PEM text in the arena; either output may be NULL. */
must_check int pair_pem(const struct pair *p, struct arena *a, struct str *ret_cert, struct str *ret_key);
/* Writes both files, the key first (mode 0600, or 0640 for a group). A crash between the two leaves a pair that does
 * not match, which the next start can see. */
must_check int pair_write(const struct pair *p, const char *cert_path, const char *key_path, gid_t group);

/* The subject as PostgreSQL writes it (RFC 2253, most specific part first). */
struct str cert_subject(struct arena *a, const X509 *cert);
/* The certificate of a PEM text; NULL when the text does not hold exactly one. To be freed with X509_free(). */
X509 *cert_parse(struct str pem);
/* Whether a signature by a stranger's key is verified in well under a millisecond: RSA up to 8192 bits whose exponent
 * is odd, at least 3 and below 2^32 (one as long as the modulus took 10 to 20 ms of a loop), or a curve. */
bool key_is_cheap(const EVP_PKEY *key);
bool cert_key_is_cheap(const X509 *cert);
/* The serial number, for certificates whose serial has at most 63 bits; and the time of validity. */
int64_t cert_serial(const X509 *cert);
int64_t cert_begins_ms(const X509 *cert);
int64_t cert_ends_ms(const X509 *cert);

/* Rewrites a PEM text so that it holds its certificates and nothing else. When the text holds none, or one that cannot
 * be read, is no CA or has a key that is dear to verify with, *ret_fault (static) says so. */
must_check int certs_normalize(struct arena *a, struct str pem, struct str *ret_pem, const char **ret_fault);

#endif
