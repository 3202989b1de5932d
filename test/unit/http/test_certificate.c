/* The service's own CA and certificate: made, kept, renewed; checked with OpenSSL as a client would. */
#include "http/certificate.h"

#include "base/clock.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/steward-certificate-XXXXXX";

static const char *at(const char *name)
{
	static char paths[4][128];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", dir, name);
	return path;
}

static X509 *load(const char *name)
{
	FILE *f = fopen(at(name), "r");
	X509 *cert = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
	if (f)
		fclose(f);
	return cert;
}

static int mode_of(const char *name)
{
	struct stat st;
	return stat(at(name), &st) == 0 ? (int)(st.st_mode & 0777) : -1;
}

/* Verifies as a strict client does: trusts only the CA, for that host, at the service's time. */
static bool is_trusted(const char *host, const char *ip)
{
	X509 *ca = load(CERTIFICATE_CA), *server = load(CERTIFICATE_SERVER);
	X509_STORE *trust = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_STORE_add_cert(trust, ca);
	X509_STORE_CTX_init(ctx, trust, server, NULL);
	X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
	X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set_time(param, (time_t)(clock_now_ms() / 1000));
	if (host)
		X509_VERIFY_PARAM_set1_host(param, host, 0);
	if (ip)
		X509_VERIFY_PARAM_set1_ip_asc(param, ip);
	bool trusted = X509_verify_cert(ctx) == 1;
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(trust);
	X509_free(ca);
	X509_free(server);
	return trusted;
}

/* Serial number, to see whether a certificate is still the same. */
static uint64_t serial(const char *name)
{
	X509 *cert = load(name);
	uint64_t n = 0;
	if (cert) {
		const ASN1_INTEGER *s = X509_get0_serialNumber(cert);
		memcpy(&n, ASN1_STRING_get0_data(s), sizeof n);
	}
	X509_free(cert);
	return n;
}

static int days_of(const char *name)
{
	X509 *cert = load(name);
	int days = 0, seconds = 0;
	if (cert)
		ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(cert), X509_get0_notAfter(cert));
	X509_free(cert);
	return days;
}

static void test_made(void)
{
	CHECK(certificate_ensure(dir, "0.0.0.0", "https://Steward.Example.com:8443") == 0);
	CHECK(mode_of(CERTIFICATE_CA_KEY) == 0600 && mode_of(CERTIFICATE_SERVER_KEY) == 0600);
	CHECK(mode_of(CERTIFICATE_CA) == 0644 && mode_of(CERTIFICATE_SERVER) == 0644);
	CHECK(is_trusted("localhost", NULL) && is_trusted(NULL, "127.0.0.1") && is_trusted(NULL, "::1"));
	CHECK(is_trusted("steward.example.com", NULL));
	CHECK(!is_trusted("example.com", NULL) && !is_trusted(NULL, "0.0.0.0") && !is_trusted(NULL, "10.0.0.1"));
	CHECK(days_of(CERTIFICATE_CA) == 3650 && days_of(CERTIFICATE_SERVER) == 397);
	CHECK(access(at("tls/ca.crt.new"), F_OK) < 0 && access(at("tls/server.key.new"), F_OK) < 0);
}

static void test_kept_and_renewed(void)
{
	uint64_t ca = serial(CERTIFICATE_CA), server = serial(CERTIFICATE_SERVER);
	CHECK(ca && server && ca != server);
	CHECK(certificate_ensure(dir, "0.0.0.0", "https://Steward.Example.com:8443") == 0);
	CHECK(serial(CERTIFICATE_CA) == ca && serial(CERTIFICATE_SERVER) == server);
	/* Other names. */
	CHECK(certificate_ensure(dir, "10.1.2.3", "https://[2001:db8::5]") == 0);
	CHECK(serial(CERTIFICATE_CA) == ca && serial(CERTIFICATE_SERVER) != server);
	CHECK(is_trusted(NULL, "10.1.2.3") && is_trusted(NULL, "2001:db8::5") &&
	      !is_trusted("steward.example.com", NULL));
	/* After 366 days 31 are left; two days later it is renewed. */
	server = serial(CERTIFICATE_SERVER);
	clock_make_virtual();
	clock_advance_ms(366LL * 86400 * 1000);
	CHECK(certificate_ensure(dir, "10.1.2.3", "https://[2001:db8::5]") == 0);
	CHECK(serial(CERTIFICATE_SERVER) == server);
	clock_advance_ms(2LL * 86400 * 1000);
	CHECK(certificate_ensure(dir, "10.1.2.3", "https://[2001:db8::5]") == 0);
	CHECK(serial(CERTIFICATE_SERVER) != server && serial(CERTIFICATE_CA) == ca && is_trusted("localhost", NULL));
	/* Near the CA's end a certificate ends with the CA, and finally there is a new CA. */
	clock_advance_ms(3000LL * 86400 * 1000);
	CHECK(certificate_ensure(dir, "10.1.2.3", "https://[2001:db8::5]") == 0);
	CHECK(serial(CERTIFICATE_CA) == ca && days_of(CERTIFICATE_SERVER) < 397 && is_trusted("localhost", NULL));
	clock_advance_ms(270LL * 86400 * 1000);
	CHECK(certificate_ensure(dir, "10.1.2.3", "https://[2001:db8::5]") == 0);
	CHECK(serial(CERTIFICATE_CA) != ca && days_of(CERTIFICATE_SERVER) == 397 && is_trusted("localhost", NULL));
	clock_reset();
}

static void overwrite(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void test_damaged(void)
{
	/* A CA that has signed is not replaced when it is missing, because callers trust it. */
	CHECK(unlink(at(CERTIFICATE_CA)) == 0);
	CHECK(certificate_ensure(dir, NULL, NULL) == -ENOENT && access(at(CERTIFICATE_CA), F_OK) < 0);
	CHECK(unlink(at(CERTIFICATE_SERVER)) == 0 && certificate_ensure(dir, NULL, NULL) == 0 &&
	      is_trusted("localhost", NULL));
	uint64_t ca = serial(CERTIFICATE_CA), server = serial(CERTIFICATE_SERVER);
	/* A crash between key and certificate. */
	CHECK(unlink(at(CERTIFICATE_SERVER)) == 0 && certificate_ensure(dir, NULL, NULL) == 0);
	CHECK(serial(CERTIFICATE_SERVER) != server && is_trusted("localhost", NULL));
	overwrite(CERTIFICATE_SERVER_KEY, "nonsense");
	CHECK(certificate_ensure(dir, NULL, NULL) == 0 && is_trusted("localhost", NULL) &&
	      serial(CERTIFICATE_CA) == ca);
	/* The CA's key is kept offline: fine until something must be signed. */
	CHECK(rename(at(CERTIFICATE_CA_KEY), at("away.key")) == 0);
	CHECK(certificate_ensure(dir, NULL, NULL) == 0);
	CHECK(certificate_ensure(dir, "10.9.9.9", NULL) < 0);
	CHECK(rename(at("away.key"), at(CERTIFICATE_CA_KEY)) == 0 && certificate_ensure(dir, "10.9.9.9", NULL) == 0);
	/* A wrong key, or a file that is no certificate, never leads to a new CA silently. */
	CHECK(rename(at(CERTIFICATE_CA_KEY), at("away.key")) == 0 &&
	      link(at(CERTIFICATE_SERVER_KEY), at(CERTIFICATE_CA_KEY)) == 0);
	CHECK(certificate_ensure(dir, "10.9.9.9", NULL) < 0);
	CHECK(rename(at("away.key"), at(CERTIFICATE_CA_KEY)) == 0);
	overwrite(CERTIFICATE_CA, "nonsense");
	CHECK(certificate_ensure(dir, "10.9.9.9", NULL) < 0);
	CHECK(certificate_ensure("/nonexistent/place", NULL, NULL) < 0);
}

int main(void)
{
	static const char *const files[] = {CERTIFICATE_CA, CERTIFICATE_CA_KEY, CERTIFICATE_SERVER,
	                                    CERTIFICATE_SERVER_KEY};
	if (!mkdtemp(dir))
		return 1;
	test_made();
	test_kept_and_renewed();
	test_damaged();
	for (size_t i = 0; i < 4; i++)
		unlink(at(files[i]));
	rmdir(at(CERTIFICATE_DIR));
	rmdir(dir);
	return CHECK_DONE();
}
