/* The fields of identity providers: what the schemas cannot say of them. Certificates are read, so that the dates
 * shown are the certificates' own and not what somebody claims. */
#include "api/federation/federation.h"
#include "api/federation/identity_providers.h"
#include "api/kit/verbs.h"

#include "base/clock.h"
#include "catalog/formats.h"

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#define TEXT_MAX 1024         /* bytes of a text field */
#define CERTIFICATES_MAX 10   /* of one provider */
#define CERTIFICATE_MAX 16384 /* bytes of one */
#define SCOPES_MAX 50
#define SLUG_MAX 64

bool provider_is_saml(const json_t *provider)
{
	return str_is(json_field(provider, "protocol"), "SAML");
}

/* An https URL without user and fragment; a bare one has no query either. */
static bool url_fits(struct arena *a, struct str text, bool bare)
{
	char *scheme = NULL, *part = NULL;
	CURLU *u = format_fits(FORMAT_URI, text) ? curl_url() : NULL;
	bool fits = u && curl_url_set(u, CURLUPART_URL, arena_z(a, text), 0) == CURLUE_OK &&
	            curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && str_ieq(str_of(scheme), STR("https"));
	static const CURLUPart unwanted[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT, CURLUPART_QUERY};
	for (size_t i = 0; fits && i < (bare ? 4u : 3u); i++)
		if (curl_url_get(u, unwanted[i], &part, 0) == CURLUE_OK) {
			curl_free(part);
			fits = false;
		}
	curl_free(scheme);
	curl_url_cleanup(u);
	return fits;
}

static bool slug_fits(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool inner = i > 0 && i + 1 < s.n;
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !(c == '-' && inner))
			return false;
	}
	return s.n > 0 && s.n <= SLUG_MAX;
}

static bool scope_fits(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '\\')
			return false;
	return s.n > 0 && s.n <= 255;
}

static void issuer_check(struct call *c, struct str issuer, bool saml, struct faults *faults)
{
	if (saml ? !format_fits(FORMAT_URI, issuer) : !url_fits(c->arena, issuer, true))
		faults_add(faults, c->arena, STR("issuerUri"),
		           saml ? "must be a URI such as https://idp.example.com/metadata"
		                : "must be an https URL without query, such as https://login.example.com");
}

/* A text in PEM may say that it is encrypted; nobody is asked for a password. */
static int no_password(char *buffer, int size, int writing, void *ctx)
{
	return -1;
}

static json_t *time_json(const ASN1_TIME *t)
{
	struct tm tm;
	char text[CLOCK_TEXT];
	if (!ASN1_TIME_to_tm(t, &tm))
		return NULL;
	snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02dZ", (tm.tm_year + 1900) % 10000, tm.tm_mon + 1,
	         tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	return json_string(text);
}

/* Exactly one certificate, as it will be kept; NULL when the text is none. Owned. */
static json_t *certificate_read(struct str pem)
{
	json_t *kept = NULL, *before, *after;
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509 *one = PEM_read_bio_X509(bio, NULL, no_password, NULL);
	X509 *second = one ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;
	if (one && !second) {
		before = time_json(X509_get0_notBefore(one));
		after = time_json(X509_get0_notAfter(one));
		if (before && after)
			kept = json_pack("{s:s%, s:O, s:O}", "content", pem.p, pem.n, "notBefore", before, "notAfter",
			                 after);
		json_decref(before);
		json_decref(after);
	}
	X509_free(one);
	X509_free(second);
	BIO_free(bio);
	ERR_clear_error();
	return kept;
}

static void pem_set(struct call *c, const json_t *given, json_t *provider, struct faults *faults)
{
	const json_t *list = json_object_get(given, "certificates");
	struct str name = json_field(given, "fileName");
	json_t *kept = json_array(), *file = json_pack("{s:o}", "certificates", kept);
	if (name.n)
		json_object_set(file, "fileName", json_object_get(given, "fileName"));
	if (name.n > TEXT_MAX)
		faults_add(faults, c->arena, STR("pemFileInfo.fileName"), "must have at most %d bytes", TEXT_MAX);
	if (json_array_size(list) > CERTIFICATES_MAX)
		faults_add(faults, c->arena, STR("pemFileInfo.certificates"), "must have at most %d items",
		           CERTIFICATES_MAX);
	for (size_t i = 0; i < json_array_size(list) && i < CERTIFICATES_MAX; i++) {
		struct str pem = json_field(json_array_get(list, i), "content");
		json_t *one = pem.n && pem.n <= CERTIFICATE_MAX ? certificate_read(pem) : NULL;
		if (one)
			json_array_append_new(kept, one);
		else
			faults_add(faults, c->arena, arena_printf(c->arena, "pemFileInfo.certificates[%zu].content", i),
			           "must be one X.509 certificate in PEM, of at most %d bytes", CERTIFICATE_MAX);
	}
	json_put(provider, "pemFileInfo", file);
}

static void scopes_check(struct call *c, const json_t *list, struct faults *faults)
{
	if (json_array_size(list) > SCOPES_MAX)
		faults_add(faults, c->arena, STR("requestedScopes"), "must have at most %d items", SCOPES_MAX);
	for (size_t i = 0; i < json_array_size(list) && i < SCOPES_MAX; i++) {
		const json_t *item = json_array_get(list, i);
		if (!scope_fits((struct str){json_string_value(item), json_string_length(item)}))
			faults_add(faults, c->arena, arena_printf(c->arena, "requestedScopes[%zu]", i),
			           "must be an OAuth scope such as openid");
	}
}

/* What a provider is cannot change. */
static void kind_check(struct call *c, const json_t *body, const json_t *provider, struct faults *faults)
{
	static const char *const fields[] = {"protocol", "idpType"};
	for (size_t i = 0; i < 2; i++) {
		const json_t *given = json_object_get(body, fields[i]), *own = json_object_get(provider, fields[i]);
		if (given && !json_equal(given, own))
			faults_add(faults, c->arena, str_of(fields[i]), "cannot be changed: it is %s",
			           json_string_value(own));
	}
}

static void values_check(struct call *c, const json_t *body, bool saml, struct faults *faults)
{
	struct str issuer = json_field(body, "issuerUri"), sso = json_field(body, "ssoUrl"),
	           slug = json_field(body, "slug");
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)body, key, value)
	{
		if (json_string_length(value) > TEXT_MAX)
			faults_add(faults, c->arena, str_of(key), "must have at most %d bytes", TEXT_MAX);
		else if (json_is_string(value) && !json_string_length(value) && strcmp(key, "description") != 0)
			faults_add(faults, c->arena, str_of(key), "must not be empty");
	}
	if (issuer.n)
		issuer_check(c, issuer, saml, faults);
	if (sso.n && !url_fits(c->arena, sso, false))
		faults_add(faults, c->arena, STR("ssoUrl"), "must be an https URL");
	if (slug.n && !slug_fits(slug))
		faults_add(faults, c->arena, STR("slug"), "must be 1 to %d of a-z, 0-9 and, between them, -", SLUG_MAX);
	scopes_check(c, json_object_get(body, "requestedScopes"), faults);
}

void provider_set_fields(struct call *c, const json_t *body, json_t *provider, struct faults *faults)
{
	static const char *const plain[] = {"displayName", "description",       "issuerUri",
	                                    "ssoUrl",      "requestBinding",    "responseSignatureAlgorithm",
	                                    "slug",        "ssoDebugEnabled",   "status",
	                                    "audience",    "authorizationType", "clientId",
	                                    "groupsClaim", "requestedScopes",   "userClaim"};
	const json_t *domains = json_object_get(body, "associatedDomains"), *pem = json_object_get(body, "pemFileInfo");
	kind_check(c, body, provider, faults);
	values_check(c, body, provider_is_saml(provider), faults);
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		json_t *value = json_object_get(body, plain[i]);
		if (json_is_null(value))
			json_object_del(provider, plain[i]);
		else if (value)
			json_object_set(provider, plain[i], value);
	}
	if (domains)
		json_object_set(provider, "associatedDomains", domains_read(c, domains, "associatedDomains", faults));
	if (pem)
		pem_set(c, pem, provider, faults);
	if (provider_is_saml(provider) && !json_object_get(provider, "status"))
		json_put_z(provider, "status", "INACTIVE");
}

static bool has_certificate_in_force(const json_t *provider)
{
	const json_t *list = json_object_get(json_object_get(provider, "pemFileInfo"), "certificates");
	int64_t after, now = clock_now_ms();
	for (size_t i = 0; i < json_array_size(list); i++)
		if (clock_parse(json_field(json_array_get(list, i), "notAfter"), &after) && after > now)
			return true;
	return false;
}

void provider_check_whole(struct call *c, const json_t *provider, struct faults *faults)
{
	static const char *const needed[] = {"issuerUri", "ssoUrl"};
	if (!str_is(json_field(provider, "status"), "ACTIVE"))
		return;
	for (size_t i = 0; i < 2; i++)
		if (!json_field(provider, needed[i]).n)
			faults_add(faults, c->arena, str_of(needed[i]), "is required of an active provider");
	if (!has_certificate_in_force(provider))
		faults_add(faults, c->arena, STR("pemFileInfo.certificates"),
		           "must have a certificate that has not expired, in an active provider");
}
