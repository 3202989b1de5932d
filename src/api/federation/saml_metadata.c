/* Metadata for identity providers (SAML 2.0 metadata, section 2.4.4). We do not sign requests, so there is no key of
 * ours in it; assertions must be signed. */
#include "api/federation/saml_metadata.h"

struct str saml_acs_url(struct arena *a, const char *base_url, struct str okta_id)
{
	return arena_printf(a, "%s/sso/saml2/%.*s", base_url, STR_ARG(okta_id));
}

struct str saml_audience(struct arena *a, const char *base_url, struct str okta_id)
{
	return arena_printf(a, "%s/saml2/service-provider/%.*s", base_url, STR_ARG(okta_id));
}

static void escape(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		switch (text.p[i]) {
		case '&': buf_z(b, "&amp;"); break;
		case '<': buf_z(b, "&lt;"); break;
		case '>': buf_z(b, "&gt;"); break;
		case '"': buf_z(b, "&quot;"); break;
		case '\'': buf_z(b, "&apos;"); break;
		default: buf_c(b, text.p[i]);
		}
}

static void attribute(struct buf *b, const char *name, struct str value)
{
	buf_printf(b, " %s=\"", name);
	escape(b, value);
	buf_c(b, '"');
}

void saml_metadata_write(struct buf *b, struct str acs_url, struct str audience)
{
	buf_z(b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	         "<md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\"");
	attribute(b, "entityID", audience);
	buf_z(b, ">\n  <md:SPSSODescriptor AuthnRequestsSigned=\"false\" WantAssertionsSigned=\"true\""
	         " protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\">\n"
	         "    <md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress</md:NameIDFormat>\n"
	         "    <md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified</md:NameIDFormat>\n"
	         "    <md:AssertionConsumerService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\"");
	attribute(b, "Location", acs_url);
	buf_z(b, " index=\"0\" isDefault=\"true\"/>\n  </md:SPSSODescriptor>\n</md:EntityDescriptor>\n");
}
