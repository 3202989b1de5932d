/* Metadata for identity providers (SAML 2.0 metadata, section 2.4.4). We do not sign requests, so there is no key of
 * ours in it; assertions must be signed. */
#include "identity/saml.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/helper.h"
#include "base/json.h"
#include "base/xml.h"
#include "identity/oidc.h"

#include <openssl/evp.h>
#include <zlib.h>

#define HELPER "steward-saml" /* beside this program */
#define VERIFY_MS 10000
#define ANSWER_MAX (1u << 20)

struct str saml_acs_url(struct arena *a, const char *base_url, struct str okta_id)
{
	return arena_printf(a, "%s/sso/saml2/%.*s", base_url, STR_ARG(okta_id));
}

struct str saml_audience(struct arena *a, const char *base_url, struct str okta_id)
{
	return arena_printf(a, "%s/saml2/service-provider/%.*s", base_url, STR_ARG(okta_id));
}

void saml_metadata_write(struct buf *b, struct arena *a, const char *base_url, struct str okta_id)
{
	buf_z(b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	         "<md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\"");
	xml_attribute(b, "entityID", saml_audience(a, base_url, okta_id));
	buf_z(b, ">\n  <md:SPSSODescriptor AuthnRequestsSigned=\"false\" WantAssertionsSigned=\"true\""
	         " protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\">\n"
	         "    <md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress</md:NameIDFormat>\n"
	         "    <md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified</md:NameIDFormat>\n"
	         "    <md:AssertionConsumerService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\"");
	xml_attribute(b, "Location", saml_acs_url(a, base_url, okta_id));
	buf_z(b, " index=\"0\" isDefault=\"true\"/>\n  </md:SPSSODescriptor>\n</md:EntityDescriptor>\n");
}

/* The provider as its own metadata would have it. */
static void provider_write(struct buf *b, const json_t *provider)
{
	const json_t *list = json_object_get(json_object_get(provider, "pemFileInfo"), "certificates");
	buf_z(b, "<md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\""
	         " xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"");
	xml_attribute(b, "entityID", json_field(provider, "issuerUri"));
	buf_z(b, "><md:IDPSSODescriptor WantAuthnRequestsSigned=\"false\""
	         " protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\">");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		struct str pem = json_field(one, "content");
		const char *from = pem.n ? memmem(pem.p, pem.n, "CERTIFICATE-----", 16) : NULL;
		const char *to = from ? memmem(from + 16, pem.n - (size_t)(from + 16 - pem.p), "-----END", 8) : NULL;
		if (!to || json_time_is_over(one, "notAfter"))
			continue;
		buf_z(b, "<md:KeyDescriptor use=\"signing\"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>");
		xml_text(b, (struct str){from + 16, (size_t)(to - from - 16)});
		buf_z(b, "</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>");
	}
	buf_z(b, "<md:SingleSignOnService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect\"");
	xml_attribute(b, "Location", json_field(provider, "ssoUrl"));
	buf_z(b, "/></md:IDPSSODescriptor></md:EntityDescriptor>");
}

/* Requests. */

/* Deflated, and in base64, as the binding wants it (SAML 2.0 bindings, section 3.4.4.1). */
static struct str packed(struct arena *a, struct str text)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)text.p, .avail_in = (unsigned)text.n};
	size_t room = text.n + 128;
	unsigned char *bytes = arena_alloc(a, room), *out = arena_alloc(a, room * 2);
	if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return STR_NONE;
	z.next_out = bytes;
	z.avail_out = (unsigned)room;
	bool whole = deflate(&z, Z_FINISH) == Z_STREAM_END;
	deflateEnd(&z);
	return whole ? (struct str){(char *)out, (size_t)EVP_EncodeBlock(out, bytes, (int)z.total_out)} : STR_NONE;
}

struct str saml_request_url(struct arena *a, const char *base_url, const json_t *provider, struct str request_id)
{
	struct str okta = json_field(provider, "oktaIdpId"), sso = json_field(provider, "ssoUrl");
	struct buf b = {0}, url = {0};
	char now[CLOCK_TEXT];
	clock_format(clock_machine_ms(), now);
	buf_z(&b, "<samlp:AuthnRequest xmlns:samlp=\"urn:oasis:names:tc:SAML:2.0:protocol\""
	          " xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\" Version=\"2.0\""
	          " ProtocolBinding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\"");
	xml_attribute(&b, "ID", request_id);
	xml_attribute(&b, "IssueInstant", str_of(now));
	xml_attribute(&b, "Destination", sso);
	xml_attribute(&b, "AssertionConsumerServiceURL", saml_acs_url(a, base_url, okta));
	buf_z(&b, ">");
	xml_element(&b, "saml:Issuer", saml_audience(a, base_url, okta));
	buf_z(&b, "<samlp:NameIDPolicy AllowCreate=\"true\""
	          " Format=\"urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress\"/></samlp:AuthnRequest>");
	buf_str(&url, sso);
	if (!memchr(sso.p, '?', sso.n))
		buf_c(&url, '?');
	oidc_parameter(&url, "SAMLRequest", packed(a, buf_view(&b)));
	buf_free(&b);
	return buf_keep(&url, a);
}

/* Answers. */

bool saml_is_installed(void)
{
	char path[4200];
	return file_beside_program(HELPER, path, sizeof path);
}

static json_t *question_make(struct arena *a, const char *base_url, const json_t *provider, struct str response)
{
	struct str okta = json_field(provider, "oktaIdpId");
	struct buf sp = {0}, idp = {0};
	json_t *q = json_new(a);
	saml_metadata_write(&sp, a, base_url, okta);
	provider_write(&idp, provider);
	json_put_str(q, "sp", buf_keep(&sp, a));
	json_put_str(q, "idp", buf_keep(&idp, a));
	json_put_str(q, "response", response);
	json_put_str(q, "issuer", json_field(provider, "issuerUri"));
	json_put_str(q, "audience", saml_audience(a, base_url, okta));
	json_put_str(q, "recipient", saml_acs_url(a, base_url, okta));
	json_put(q, "sha1", json_boolean(str_is(json_field(provider, "responseSignatureAlgorithm"), "SHA-1")));
	return q;
}

json_t *saml_verify(struct arena *a, const char *base_url, const json_t *provider, struct str response,
                    const char **ret_fault)
{
	struct buf text = {0};
	*ret_fault = HELPER " cannot be started";
	if (helper_ask(HELPER, json_text(a, question_make(a, base_url, provider, response)), VERIFY_MS, ANSWER_MAX,
	               &text) < 0)
		return NULL;
	json_t *answer = json_loadb(text.p ? text.p : "", text.n, 0, NULL);
	buf_free(&text);
	*ret_fault = HELPER " did not answer";
	if (!answer)
		return NULL;
	json_keep(a, answer);
	struct str fault = json_field(answer, "fault");
	*ret_fault = fault.n ? arena_z(a, fault) : NULL;
	return fault.n ? NULL : answer;
}
