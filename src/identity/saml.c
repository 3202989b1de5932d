/* Metadata for identity providers (SAML 2.0 metadata, section 2.4.4). We do not sign requests, so there is no key of
 * ours in it; assertions must be signed. */
#include "identity/saml.h"

#include "base/xml.h"

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
