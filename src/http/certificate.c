/* Makes and renews certificates with OpenSSL: ECDSA P-256, a CA that signs only server certificates.
 *
 * Files appear complete (temporary file, fsync, rename). A key is written before its certificate: a crash between the
 * two leaves a pair that does not match, which the next start detects and replaces. A CA certificate without its key is
 * accepted as long as nothing needs to be signed, because the key should be kept offline. A CA is only made where there
 * never was one: where no server certificate exists that it could have signed. */
#include "http/certificate.h"

#include "base/arena.h"
#include "base/certs.h"
#include "base/file.h"
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

#define CA_DAYS 3650
#define SERVER_DAYS 397 /* browsers refuse more */
#define RENEW_DAYS 30

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

static int files_write(const struct pair *p, const char *cert, const char *key)
{
	int r = pair_write(p, cert, key, FILE_NO_GROUP);
	errno = -r;
	return r < 0 ? fail("cannot write", cert) : 0;
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

/* Adds a host unless it is already there, is a wildcard address, or cannot be in a certificate. */
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

static bool ca_make(struct pair *p)
{
	/* A unique name, so that a trust store can hold the CAs of several installations. */
	unsigned char bytes[4];
	char hex[9], name[32];
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, hex);
	snprintf(name, sizeof name, "Steward CA %s", hex);
	return pair_begin_named(p, CERT_CA, name, NULL, CA_DAYS) && pair_sign(p, p->key);
}

static bool server_make(struct pair *p, const struct pair *ca, GENERAL_NAMES *names)
{
	return pair_begin_named(p, CERT_SERVER, "Steward server", ca->cert, SERVER_DAYS) &&
	       X509_add1_ext_i2d(p->cert, NID_subject_alt_name, names, 0, 0) == 1 && pair_sign(p, ca->key);
}

static bool server_is_good(const struct pair *server, const X509 *ca, GENERAL_NAMES *names)
{
	if (!pair_fits(server) || !ca || cert_begins_later(server->cert) ||
	    cert_ends_within(server->cert, RENEW_DAYS) || !san_equal(server->cert, names))
		return false;
	return cert_is_of(server->cert, ca);
}

struct paths {
	const char *dir, *ca, *ca_key, *server, *server_key;
};

/* `ca` is what the files hold. Makes a new CA when there is none or it ends soon. Damaged files are an error: the
 * operator must decide. */
static int ca_ensure(const struct paths *at, struct pair *ca)
{
	if (ca->cert && !cert_ends_within(ca->cert, RENEW_DAYS)) {
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
	} else if (access(at->server, F_OK) == 0) {
		/* Callers trust the missing CA. A new one, made silently, would lock all of them out. */
		fprintf(stderr,
		        "steward: %s is missing, which signed %s and which callers trust; bring it back, or remove %s "
		        "to get a new CA\n",
		        at->ca, at->server, at->dir);
		return -ENOENT;
	}
	pair_free(ca);
	errno = 0;
	if (!ca_make(ca))
		return fail("cannot make", at->ca);
	return files_write(ca, at->ca, at->ca_key);
}

static int server_ensure(const struct paths *at, const struct pair *ca, GENERAL_NAMES *names)
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
	int r = server_make(&server, ca, names) ? files_write(&server, at->server, at->server_key)
	                                        : fail("cannot make", at->server);
	pair_free(&server);
	return r;
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
		r = names ? ca_ensure(&at, &ca) : fail("cannot make", at.server);
		if (r == 0)
			r = server_ensure(&at, &ca, names);
		GENERAL_NAMES_free(names);
		pair_free(&ca);
	}
	arena_free(a);
	return r;
}
