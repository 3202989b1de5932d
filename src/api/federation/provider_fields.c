/* The fields of identity providers: what the schemas cannot say of them. Certificates are read, so that the dates
 * shown are the certificates' own and not what somebody claims. */
#include "api/federation/federation.h"
#include "api/federation/identity_providers.h"
#include "api/federation/membership.h"
#include "api/kit/verbs.h"

#include "base/certs.h"
#include "base/clock.h"
#include "catalog/formats.h"

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

/* Exactly one certificate, as it will be kept; NULL when the text is none. Owned. */
static json_t *certificate_read(struct str pem)
{
	X509 *certificate = pem.n && pem.n <= CERTIFICATE_MAX ? cert_parse(pem) : NULL;
	char before[CLOCK_TEXT], after[CLOCK_TEXT];
	if (!certificate || !cert_key_is_cheap(certificate)) {
		X509_free(certificate);
		return NULL;
	}
	clock_format(cert_begins_ms(certificate), before);
	clock_format(cert_ends_ms(certificate), after);
	X509_free(certificate);
	return json_pack("{s:s%, s:s, s:s}", "content", pem.p, pem.n, "notBefore", before, "notAfter", after);
}

static void pem_set(struct call *c, const json_t *given, json_t *provider, struct faults *faults)
{
	const json_t *list = json_object_get(given, "certificates");
	struct str name = json_field(given, "fileName");
	json_t *kept = json_array(), *file = json_pack("{s:o}", "certificates", kept);
	json_put(provider, "pemFileInfo", file);
	if (name.n)
		json_put_str(file, "fileName", name);
	if (name.n > TEXT_MAX)
		faults_add(faults, c->arena, STR("pemFileInfo.fileName"), "must have at most %d bytes", TEXT_MAX);
	if (faults_too_many(faults, c->arena, STR("pemFileInfo.certificates"), list, CERTIFICATES_MAX))
		return;
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *one = certificate_read(json_field(json_array_get(list, i), "content"));
		if (one)
			json_array_append_new(kept, one);
		else
			faults_add(faults, c->arena, arena_printf(c->arena, "pemFileInfo.certificates[%zu].content", i),
			           "must be one X.509 certificate in PEM, of at most %d bytes, with a key of RSA (8192 "
			           "bits "
			           "at most, an exponent below 2^32) or of a curve",
			           CERTIFICATE_MAX);
	}
}

static void scopes_check(struct call *c, const json_t *list, struct faults *faults)
{
	if (faults_too_many(faults, c->arena, STR("requestedScopes"), list, SCOPES_MAX))
		return;
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!scope_fits(json_item(list, i)))
			faults_add(faults, c->arena, arena_printf(c->arena, "requestedScopes[%zu]", i),
			           "must be an OAuth scope such as openid");
}

/* What a provider is cannot change. */
static void kind_check(struct call *c, const json_t *provider, const json_t *document, const char *field,
                       struct faults *faults)
{
	const json_t *own = json_object_get(provider, field);
	if (!json_equal(json_object_get(document, field), own))
		faults_add(faults, c->arena, str_of(field), "cannot be changed: it is %s", json_string_value(own));
}

static void texts_check(struct call *c, struct faults *faults)
{
	const char *key;
	json_t *value;
	json_object_foreach(c->body, key, value)
	{
		if (json_string_length(value) > TEXT_MAX)
			faults_add(faults, c->arena, str_of(key), "must have at most %d bytes", TEXT_MAX);
		else if (json_is_string(value) && !json_string_length(value) && strcmp(key, "description") != 0)
			faults_add(faults, c->arena, str_of(key), "must not be empty");
	}
}

static void values_check(struct call *c, bool saml, struct faults *faults)
{
	struct str issuer = json_field(c->body, "issuerUri"), sso = json_field(c->body, "ssoUrl"),
	           slug = json_field(c->body, "slug");
	texts_check(c, faults);
	if (issuer.n && saml && !format_fits(FORMAT_URI, issuer))
		faults_add(faults, c->arena, STR("issuerUri"),
		           "must be a URI such as https://idp.example.com/metadata");
	if (issuer.n && !saml && !https_url_fits(c->arena, issuer, true))
		faults_add(faults, c->arena, STR("issuerUri"),
		           "must be an https URL without query, such as https://login.example.com");
	if (sso.n && !https_url_fits(c->arena, sso, false))
		faults_add(faults, c->arena, STR("ssoUrl"), "must be an https URL");
	if (slug.n && !slug_fits(slug))
		faults_add(faults, c->arena, STR("slug"), "must be 1 to %d of a-z, 0-9 and, between them, -", SLUG_MAX);
	scopes_check(c, json_object_get(c->body, "requestedScopes"), faults);
}

void provider_fields_check(struct call *c, const json_t *provider, json_t *document, struct faults *faults)
{
	const json_t *domains = json_object_get(c->body, "associatedDomains"),
	             *pem = json_object_get(c->body, "pemFileInfo");
	bool saml = provider_is_saml(provider);
	kind_check(c, provider, document, "protocol", faults);
	kind_check(c, provider, document, "idpType", faults);
	values_check(c, saml, faults);
	if (domains)
		json_object_set(document, "associatedDomains", domains_read(c, domains, "associatedDomains", faults));
	if (pem)
		pem_set(c, pem, document, faults);
	if (saml && !json_object_get(document, "status"))
		json_put_z(document, "status", "INACTIVE");
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
