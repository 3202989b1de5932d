/* steward-saml, whose answers come from strangers: the program itself, with its main() put aside. Any bytes are given to it as
 * the XML of a response, at a time when the one of corpus/saml/signed holds. Nothing else is signed, so whatever is accepted
 * says what that one says, wherever else its parts may stand. An assertion alone is looked at without its signature. */
#include "fuzz.h"

#include <time.h>

#define NOW 1794960300 /* 2026-11-18T00:05:00Z */
static time_t saml_time(time_t *ret_time)
{
	return NOW;
}

int saml_main(void);
#define time saml_time
#define main saml_main
#include "programs/steward_saml.c"
#undef main
#undef time

static const char sp[] = "<md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\""
                         " entityID=\"https://sp.example\"><md:SPSSODescriptor AuthnRequestsSigned=\"false\""
                         " WantAssertionsSigned=\"true\""
                         " protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\">"
                         "<md:AssertionConsumerService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\""
                         " Location=\"https://sp.example/acs\" index=\"0\" isDefault=\"true\"/>"
                         "</md:SPSSODescriptor></md:EntityDescriptor>";

static const char idp[] =
        "<md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\""
        " xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\" entityID=\"https://idp.example\"><md:IDPSSODescriptor"
        " WantAuthnRequestsSigned=\"false\" protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\">"
        "<md:KeyDescriptor use=\"signing\"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>"
        "MIIClzCCAX+gAwIBAgIBATANBgkqhkiG9w0BAQsFADAPMQ0wCwYDVQQDDARzYW1sMB4XDTI2MTExNzAwMDI1MFoXDTMyMDUxMDAw"
        "MDI1MFowDzENMAsGA1UEAwwEc2FtbDCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBALdesrWDrJ+qbVeKUO5W2U/0F7K2"
        "SK/Z/tPLek9fMWoSd4FOYC+HzbE+DuR7RgzqUhLg2YSFq8+IqUmOh0UGhoHrKpv0KrJTJCz6VRnaDfS9FyDWsUXDGG760izgVjhh"
        "iBt3l3hN9/008Y/7a9mxtf/SHAhrh9cMftY1PLlvdGMs4mx1Rn4vMpbfRuW8aEouBLWs0ByfzxgPPfXJcSGmYzRUwiWVhfyhpOCb"
        "kmhgJ09NlC04iFVIom27SqOeBesiQ4mu9sHCQEqhvpjTjCR6fxwDpmcJCRzZ86ppMBSSxjgEPT9lS4TwdPXsOuPYyNsY/PIXz5uA"
        "YeK15tCjLm+gEN8CAwEAATANBgkqhkiG9w0BAQsFAAOCAQEAtRfJjVSVK3h493BRTZQ8aaTO+Smva4wvWTvOo26wg6udq61LeQBu"
        "1bWUN841w0OjbTUL0eOKx+2cabTCc4oO45/56VH7ApKT2wjCQs31LF+D4JHvDZ4Hh5NkVSNqhNMSm3aqpdmAnRrGha63Ch7cFMkD"
        "+lgfH6zlhqGPDeMEupzINz0cMYp3qxC0341TWbT3b5Jjx/PyUisq60gQacIFPHIPSsPHh/i1mVFsQBtH/TM+h6WFwSB0T1bcsecn"
        "nWRHpWIPyAaSNTfjQ3IfTazTPj4AexH8axVE9368zu5LkjlhkZf8I8g7A+2t3uv7oXELnF+FlUuflqAl52eQhyzHjg=="
        "</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor><md:SingleSignOnService"
        " Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect\" Location=\"https://idp.example/sso\"/>"
        "</md:IDPSSODescriptor></md:EntityDescriptor>";

static void said_nothing(void *ctx, const char *format, ...)
{
}

static void log_nothing(const gchar *domain, GLogLevelFlags level, const gchar *text, gpointer ctx)
{
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	xmlSetGenericErrorFunc(NULL, said_nothing);
	g_log_set_default_handler(log_nothing, NULL);
	HOLDS(lasso_init() == 0);
	return 0;
}

static void response_holds(struct str xml)
{
	gchar *response = g_base64_encode((const guchar *)xml.p, xml.n);
	json_t *in = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "sp", sp, "idp", idp, "response", response, "issuer",
	                       "https://idp.example", "audience", "https://sp.example", "recipient",
	                       "https://sp.example/acs");
	json_t *out = verify(in);
	const char *why = json_string_value(json_object_get(out, "fault"));
	if (out && !why) {
		HOLDS(strcmp(text(out, "nameId"), "ada@example.com") == 0 &&
		      strcmp(text(out, "inResponseTo"), "_abc") == 0);
		HOLDS(json_array_size(json_object_get(json_object_get(out, "attributes"), "groups")) == 2);
	}
	json_decref(out);
	json_decref(in);
	g_free(response);
}

static void assertion_holds(struct str xml)
{
	gchar *z = g_strndup(xml.p, xml.n), *response = g_base64_encode((const guchar *)xml.p, xml.n);
	LassoNode *node = document_fault(response, 0) ? NULL : lasso_node_new_from_dump(z);
	if (LASSO_IS_SAML2_ASSERTION(node)) {
		json_t *in = json_pack("{s:s}", "issuer", "https://idp.example"),
		       *all = attributes_of(LASSO_SAML2_ASSERTION(node));
		(void)assertion_fault(LASSO_SAML2_ASSERTION(node), in);
		HOLDS(json_is_object(all));
		json_decref(all);
		json_decref(in);
	}
	g_clear_object(&node);
	g_free(z);
	g_free(response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str xml = fuzz_input(data, size);
	if (xml.n == 0)
		return 0;
	response_holds(xml);
	assertion_holds(xml);
	return 0;
}
