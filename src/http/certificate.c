/* Makes and renews certificates with OpenSSL: ECDSA P-256, a CA that signs only server certificates.
 *
 * Files appear whole (temporary file, fsync, rename). A key is written before its certificate: a crash between the two
 * leaves a pair that does not fit, which the next start sees and replaces. A CA certificate whose key was taken away
 * (kept offline, as it should be) is respected as long as nothing needs to be signed. */
#include "http/certificate.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/ip.h"
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY 86400
#define CA_DAYS 3650
#define SERVER_DAYS 397 /* browsers refuse more */
#define RENEW_DAYS 30
#define SKEW 3600 /* valid from an hour ago: clocks differ */

struct pair {
	X509 *cert;
	EVP_PKEY *key;
};

static void pair_free(struct pair *p)
{
	X509_free(p->cert);
	EVP_PKEY_free(p->key);
	*p = (struct pair){0};
}

static int fail(const char *what, const char *path)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	int error = errno;
	fprintf(stderr, "steward: %s %s: %s\n", what, path,
	        reason  ? reason
	        : error ? strerror(error)
	                : "unknown reason");
	ERR_clear_error();
	return -EIO;
}

static time_t now_seconds(void)
{
	return (time_t)(clock_now_ms() / 1000);
}

/* The whole name appears, or nothing. */
static int file_write(struct arena *a, const char *path, mode_t mode, BIO *content)
{
	char *bytes;
	long n = BIO_get_mem_data(content, &bytes);
	const char *temporary = arena_printf(a, "%s.new", path).p;
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return fail("cannot write", temporary);
	ssize_t done = write(fd, bytes, (size_t)n);
	if (done != n || fchmod(fd, mode) < 0 || fsync(fd) < 0) {
		int r = fail("cannot write", temporary);
		close(fd);
		unlink(temporary);
		return r;
	}
	close(fd);
	return rename(temporary, path) < 0 ? fail("cannot write", path) : 0;
}

static int directory_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 || fsync(fd) < 0 ? fail("cannot write", path) : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static int pair_write(struct arena *a, const struct pair *p, const char *cert_path, const char *key_path)
{
	BIO *cert = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_secmem());
	int r = -EIO;
	errno = 0;
	if (!cert || !key || !PEM_write_bio_X509(cert, p->cert) ||
	    !PEM_write_bio_PKCS8PrivateKey(key, p->key, NULL, NULL, 0, NULL, NULL))
		r = fail("cannot encode", cert_path);
	else
		r = file_write(a, key_path, 0600, key);
	if (r == 0)
		r = file_write(a, cert_path, 0644, cert);
	BIO_free(cert);
	BIO_free(key);
	return r;
}

/* Our keys have no pass phrase; OpenSSL would ask the terminal for one. */
static int no_pass_phrase(char *text, int size, int writing, void *ctx)
{
	return 0;
}

/* Either member stays NULL when its file is absent or holds nothing usable. */
static struct pair pair_read(const char *cert_path, const char *key_path)
{
	struct pair p = {0};
	BIO *cert = BIO_new_file(cert_path, "r"), *key = BIO_new_file(key_path, "r");
	if (cert)
		p.cert = PEM_read_bio_X509(cert, NULL, no_pass_phrase, NULL);
	if (key)
		p.key = PEM_read_bio_PrivateKey(key, NULL, no_pass_phrase, NULL);
	BIO_free(cert);
	BIO_free(key);
	ERR_clear_error();
	return p;
}

static bool pair_fits(const struct pair *p)
{
	bool fits = p->cert && p->key && X509_check_private_key(p->cert, p->key) == 1;
	ERR_clear_error();
	return fits;
}

static bool ends_within(const X509 *cert, int64_t days)
{
	time_t limit = now_seconds() + (time_t)days * DAY;
	return X509_cmp_time(X509_get0_notAfter(cert), &limit) <= 0;
}

/* As after a first start with a wrong clock. */
static bool begins_later(const X509 *cert)
{
	time_t now = now_seconds();
	return X509_cmp_time(X509_get0_notBefore(cert), &now) > 0;
}

static bool name_is_host(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-' && s.p[i] != '.' && s.p[i] != '_')
			return false;
	return s.n > 0 && s.n < 254 && s.p[0] != '.' && s.p[0] != '-';
}

static GENERAL_NAME *san_make(struct str host)
{
	struct ip ip;
	bool is_ip = ip_parse(host, &ip);
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_STRING *value = is_ip ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
	bool v4 = is_ip && ip_is_v4(&ip);
	const void *bytes = v4 ? ip.b + 12 : is_ip ? ip.b : (const void *)host.p;
	int n = v4 ? 4 : is_ip ? 16 : (int)host.n;
	if (!name || !value || !ASN1_STRING_set(value, bytes, n)) {
		GENERAL_NAME_free(name);
		ASN1_STRING_free(value);
		return NULL;
	}
	GENERAL_NAME_set0_value(name, is_ip ? GEN_IPADD : GEN_DNS, value);
	return name;
}

/* Adds a host unless it is there already, stands for every address, or can be in no certificate. */
static void san_add(GENERAL_NAMES *names, struct str host)
{
	char lower[256];
	struct ip ip, any4 = {{0}}, any6 = {{0}};
	if (!ip_parse(STR("0.0.0.0"), &any4))
		return;
	bool is_ip = ip_parse(host, &ip);
	if (is_ip ? ip_equal(&ip, &any4) || ip_equal(&ip, &any6) : !name_is_host(host))
		return;
	for (size_t i = 0; i < host.n; i++)
		lower[i] = (char)tolower((unsigned char)host.p[i]);
	GENERAL_NAME *name = san_make((struct str){lower, host.n});
	if (!name)
		return;
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
		if (GENERAL_NAME_cmp(sk_GENERAL_NAME_value(names, i), name) == 0) {
			GENERAL_NAME_free(name);
			return;
		}
	if (!sk_GENERAL_NAME_push(names, name))
		GENERAL_NAME_free(name);
}

/* The host of https://HOST[:PORT][/...]. */
static struct str url_host(const char *url)
{
	struct str host = str_of(url), right;
	const char *start = strstr(url, "://");
	if (start)
		host = str_of(start + 3);
	str_cut(host, '/', &host, &right);
	if (host.n > 0 && host.p[0] == '[') {
		str_cut(host, ']', &host, &right);
		return (struct str){host.p + 1, host.n - 1};
	}
	str_cut(host, ':', &host, &right);
	return host;
}

static GENERAL_NAMES *san_wanted(const char *listen_host, const char *base_url)
{
	char machine[256] = "";
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	if (!names)
		return NULL;
	san_add(names, STR("localhost"));
	san_add(names, STR("127.0.0.1"));
	san_add(names, STR("::1"));
	if (listen_host)
		san_add(names, str_of(listen_host));
	if (base_url)
		san_add(names, url_host(base_url));
	if (gethostname(machine, sizeof machine - 1) == 0)
		san_add(names, str_of(machine));
	return names;
}

static bool san_equal(const X509 *cert, GENERAL_NAMES *wanted)
{
	GENERAL_NAMES *have = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	unsigned char *a = NULL, *b = NULL;
	int n = have ? i2d_GENERAL_NAMES(have, &a) : -1;
	int m = i2d_GENERAL_NAMES(wanted, &b);
	bool equal = n > 0 && n == m && memcmp(a, b, (size_t)n) == 0;
	OPENSSL_free(a);
	OPENSSL_free(b);
	GENERAL_NAMES_free(have);
	return equal;
}

static bool extension_add(X509 *cert, X509 *issuer, int nid, const char *value)
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
	unsigned char bytes[16];
	random_bytes(bytes, sizeof bytes);
	bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive and of full length */
	BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
	bool set = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return set;
}

static bool name_set(X509 *cert, const char *common_name)
{
	X509_NAME *name = X509_get_subject_name(cert);
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const unsigned char *)"Steward", -1, -1, 0) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0);
}

static bool validity_set(X509 *cert, const X509 *issuer, int64_t days)
{
	time_t from = now_seconds() - SKEW, to = now_seconds() + (time_t)days * DAY;
	if (!ASN1_TIME_set(X509_getm_notBefore(cert), from))
		return false;
	/* Nothing outlives its issuer. */
	if (issuer && X509_cmp_time(X509_get0_notAfter(issuer), &to) < 0)
		return X509_set1_notAfter(cert, X509_get0_notAfter(issuer)) == 1;
	return ASN1_TIME_set(X509_getm_notAfter(cert), to) != NULL;
}

/* A new key and an unsigned certificate with all but the extensions. issuer NULL: its own. */
static bool pair_begin(struct pair *p, const char *common_name, X509 *issuer, int64_t days)
{
	p->key = EVP_EC_gen("P-256");
	p->cert = X509_new();
	return p->key && p->cert && X509_set_version(p->cert, X509_VERSION_3) && serial_set(p->cert) &&
	       name_set(p->cert, common_name) && validity_set(p->cert, issuer, days) &&
	       X509_set_issuer_name(p->cert, X509_get_subject_name(issuer ? issuer : p->cert)) &&
	       X509_set_pubkey(p->cert, p->key);
}

static bool ca_make(struct pair *p)
{
	/* A name of its own, so that a trust store can hold the CAs of several installations. */
	unsigned char bytes[4];
	char hex[9], name[32];
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, hex);
	snprintf(name, sizeof name, "Steward CA %s", hex);
	return pair_begin(p, name, NULL, CA_DAYS) &&
	       extension_add(p->cert, p->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       extension_add(p->cert, p->cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       extension_add(p->cert, p->cert, NID_subject_key_identifier, "hash") &&
	       extension_add(p->cert, p->cert, NID_authority_key_identifier, "keyid:always") &&
	       X509_sign(p->cert, p->key, EVP_sha256());
}

static bool server_make(struct pair *p, const struct pair *ca, GENERAL_NAMES *names)
{
	return pair_begin(p, "Steward server", ca->cert, SERVER_DAYS) &&
	       extension_add(p->cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	       extension_add(p->cert, ca->cert, NID_key_usage, "critical,digitalSignature") &&
	       extension_add(p->cert, ca->cert, NID_ext_key_usage, "serverAuth") &&
	       extension_add(p->cert, ca->cert, NID_subject_key_identifier, "hash") &&
	       extension_add(p->cert, ca->cert, NID_authority_key_identifier, "keyid:always") &&
	       X509_add1_ext_i2d(p->cert, NID_subject_alt_name, names, 0, 0) == 1 &&
	       X509_sign(p->cert, ca->key, EVP_sha256());
}

static bool server_is_good(const struct pair *server, const X509 *ca, GENERAL_NAMES *names)
{
	if (!pair_fits(server) || !ca || begins_later(server->cert) || ends_within(server->cert, RENEW_DAYS) ||
	    !san_equal(server->cert, names))
		return false;
	bool signed_by = X509_verify(server->cert, X509_get0_pubkey(ca)) == 1;
	ERR_clear_error();
	return signed_by;
}

struct paths {
	const char *dir, *ca, *ca_key, *server, *server_key;
};

/* *ca is what the files hold. Makes a new one when there is none or it ends soon; damage is for people to judge. */
static int ca_ensure(struct arena *a, const struct paths *at, struct pair *ca)
{
	if (ca->cert && !ends_within(ca->cert, RENEW_DAYS)) {
		if (ca->key && !pair_fits(ca)) {
			fprintf(stderr,
			        "steward: %s is not the key of %s; put the right one back, or remove both "
			        "to get a new CA\n",
			        at->ca_key, at->ca);
			return -EINVAL;
		}
		return 0;
	}
	if (ca->cert)
		log_warn("the CA in %s ends; making a new one, which callers must be told to trust", at->ca);
	else if (access(at->ca, F_OK) == 0) {
		fprintf(stderr, "steward: %s is not a certificate; restore it, or remove it to get a new CA\n", at->ca);
		return -EINVAL;
	}
	pair_free(ca);
	errno = 0;
	if (!ca_make(ca))
		return fail("cannot make", at->ca);
	return pair_write(a, ca, at->ca, at->ca_key);
}

static int server_ensure(struct arena *a, const struct paths *at, const struct pair *ca, GENERAL_NAMES *names)
{
	struct pair server = pair_read(at->server, at->server_key);
	bool good = server_is_good(&server, ca->cert, names);
	pair_free(&server);
	if (good)
		return 0;
	if (!ca->key) {
		fprintf(stderr,
		        "steward: %s must be issued again, but %s is missing; put it back, or give --tls-cert and "
		        "--tls-key\n",
		        at->server, at->ca_key);
		return -ENOENT;
	}
	errno = 0;
	int r = server_make(&server, ca, names) ? pair_write(a, &server, at->server, at->server_key)
	                                        : fail("cannot make", at->server);
	pair_free(&server);
	return r == 0 ? directory_sync(at->dir) : r;
}

int certificate_ensure(const char *data_dir, const char *listen_host, const char *base_url)
{
	struct arena *a = arena_new();
	struct paths at = {
	        .dir = arena_printf(a, "%s/%s", data_dir, CERTIFICATE_DIR).p,
	        .ca = arena_printf(a, "%s/%s", data_dir, CERTIFICATE_CA).p,
	        .ca_key = arena_printf(a, "%s/%s", data_dir, CERTIFICATE_CA_KEY).p,
	        .server = arena_printf(a, "%s/%s", data_dir, CERTIFICATE_SERVER).p,
	        .server_key = arena_printf(a, "%s/%s", data_dir, CERTIFICATE_SERVER_KEY).p,
	};
	int r = 0;
	if ((mkdir(data_dir, 0700) < 0 && errno != EEXIST) || (mkdir(at.dir, 0755) < 0 && errno != EEXIST))
		r = fail("cannot make", at.dir);
	if (r == 0) {
		struct pair ca = pair_read(at.ca, at.ca_key);
		GENERAL_NAMES *names = san_wanted(listen_host, base_url);
		errno = ENOMEM;
		r = names ? ca_ensure(a, &at, &ca) : fail("cannot make", at.server);
		if (r == 0)
			r = server_ensure(a, &at, &ca, names);
		GENERAL_NAMES_free(names);
		pair_free(&ca);
	}
	arena_free(a);
	return r;
}
