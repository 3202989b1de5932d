/* Getting to know a service. Its certificate is signed by an authority of its own, which no machine knows: `GET /ca`
 * gives that certificate to anybody. It is fetched over a connection that verifies nothing, so an attacker in between
 * could give another; that is why the caller compares the fingerprint, and why nothing secret is sent here. */
#include "cli/client/authority.h"

#include "base/buf.h"
#include "base/certs.h"
#include "base/option.h"
#include "fetch/fetch.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>

#define PEM_MAX (64u << 10)
#define SECONDS 10L

struct look {
	const char *url;
	bool verify;
};

static void handle_set(CURL *curl, void *ctx)
{
	const struct look *l = ctx;
	fetch_proxies(curl, l->url);
	if (!l->verify) {
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

/* One GET without credentials. */
static void get(const char *url, bool verify, struct fetch_answer *ret_answer)
{
	struct look look = {.url = url, .verify = verify};
	struct fetch_request q = {.url = url,
	                          .protocols = "https",
	                          .named = FETCH_BY_OPERATOR,
	                          .connect_seconds = SECONDS,
	                          .all_seconds = 2 * SECONDS,
	                          .most = PEM_MAX,
	                          .ctx = &look,
	                          .more = handle_set};
	fetch_run(&q, ret_answer);
}

int authority_check(const char *url, enum authority_known *ret_known)
{
	char whole[300];
	struct fetch_answer a = {.status = 0};
	snprintf(whole, sizeof whole, "%s/healthz", url);
	get(whole, true, &a);
	fetch_answer_free(&a);
	CURLcode code = a.code;
	if (code == CURLE_OK || code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
		*ret_known = code == CURLE_OK ? AUTHORITY_KNOWN : AUTHORITY_UNKNOWN;
		return 0;
	}
	option_refuse("%s cannot be reached: %s; is the service running, and is the URL right?", url, a.fault);
	return -EHOSTUNREACH;
}

/* The first certificate alone: its fingerprint is what is compared. */
static struct str first_of(struct str pem)
{
	static const char end[] = "-----END CERTIFICATE-----\n";
	const char *at = memmem(pem.p, pem.n, end, sizeof end - 1);
	return (struct str){pem.p, at ? (size_t)(at - pem.p) + sizeof end - 1 : pem.n};
}

int authority_fetch(struct arena *a, const char *url, struct str *ret_pem)
{
	struct fetch_answer answer = {.status = 0};
	const char *whole = arena_printf(a, "%s/ca", url).p;
	get(whole, false, &answer);
	struct str text = arena_dup(a, buf_view(&answer.body));
	fetch_answer_free(&answer);
	if (answer.code != CURLE_OK) {
		option_refuse("%s cannot be reached: %s; is the service running, and is the URL right?", url,
		              answer.fault);
		return -EHOSTUNREACH;
	}
	if (answer.status != 200)
		return option_refuse("%s is signed by an authority that neither this machine knows nor the service "
		                     "names: get its certificate from the service's operator, and give --ca-file FILE",
		                     url);
	struct str pem;
	const char *why;
	if (certs_normalize(a, text, &pem, &why) < 0)
		return option_refuse("%s: %s", whole, why);
	*ret_pem = first_of(pem);
	return 0;
}

int authority_read(struct arena *a, const char *path, struct str *ret_pem)
{
	char text[PEM_MAX];
	FILE *f = fopen(path, "re");
	if (!f)
		return option_refuse("--ca-file: cannot read \"%s\": %s", path, strerror(errno));
	size_t n = fread(text, 1, sizeof text, f);
	fclose(f);
	struct str pem = arena_dup(a, (struct str){text, n});
	if (n == sizeof text || !authority_fingerprint(a, pem) || strstr(pem.p, "PRIVATE KEY"))
		return option_refuse("--ca-file: \"%s\" is not a file of certificates in PEM form, and nothing else",
		                     path);
	*ret_pem = pem;
	return 0;
}

const char *authority_fingerprint(struct arena *a, struct str pem)
{
	struct pair p = pair_parse(pem, STR_NONE);
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	struct buf b = {0};
	if (p.cert && X509_digest(p.cert, EVP_sha256(), digest, &n) == 1)
		for (unsigned i = 0; i < n; i++)
			buf_printf(&b, "%s%02X", i ? ":" : "", digest[i]);
	const char *text = b.n ? arena_z(a, buf_view(&b)) : NULL;
	buf_free(&b);
	pair_free(&p);
	return text;
}

static int next_digit(const char **p)
{
	while (**p == ':' || **p == ' ')
		(*p)++;
	int c = toupper((unsigned char)**p);
	if (c)
		(*p)++;
	return c;
}

bool authority_fingerprints_equal(const char *one, const char *other)
{
	int a, b;
	do {
		a = next_digit(&one);
		b = next_digit(&other);
	} while (a && a == b);
	return a == b;
}
