/* steward-saml: verifies one SAML response, as a process of its own. XML signatures are what liblasso and the libraries
 * below it are for; in a process that holds no keys, may open nothing and is nobody (confine/confine.h) a fault of
 * theirs costs one sign-in.
 *
 * Standard input: {"sp": our metadata, "idp": the provider's, "response": base64, "issuer", "audience", "recipient",
 * "sha1": bool}. Standard output: {"nameId","inResponseTo","id","attributes": {name: [texts]}} or {"fault": "why"}. */
#include "confine/confine.h"
#include "confine/pipes.h"

#include <jansson.h>
#include <lasso/lasso.h>
#include <lasso/saml-2.0/saml2_helper.h>
#include <lasso/xml/misc_text_node.h>
#include <lasso/xml/saml-2.0/saml2_attribute.h>
#include <lasso/xml/saml-2.0/saml2_attribute_statement.h>
#include <lasso/xml/saml-2.0/saml2_attribute_value.h>
#include <lasso/xml/saml-2.0/samlp2_response.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SKEW_SECONDS 60
#define INPUT_MAX (1u << 20)
#define MEMORY_MAX (512ul << 20)

static const char *text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));
	return value ? value : "";
}

static int is_allowed(const char *algorithm, int sha1)
{
	static const char *const strong[] = {"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
	                                     "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384",
	                                     "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512",
	                                     "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256",
	                                     "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384",
	                                     "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha512",
	                                     "http://www.w3.org/2001/04/xmlenc#sha256",
	                                     "http://www.w3.org/2001/04/xmldsig-more#sha384",
	                                     "http://www.w3.org/2001/04/xmlenc#sha512"};
	static const char *const weak[] = {"http://www.w3.org/2000/09/xmldsig#rsa-sha1",
	                                   "http://www.w3.org/2000/09/xmldsig#sha1"};
	int found = 0;
	for (size_t i = 0; i < sizeof strong / sizeof *strong; i++)
		found |= strcmp(algorithm, strong[i]) == 0;
	for (size_t i = 0; sha1 && i < sizeof weak / sizeof *weak; i++)
		found |= strcmp(algorithm, weak[i]) == 0;
	return found;
}

/* Whether all signatures of the tree, wherever they are, have algorithms that are taken: no MACs, and no SHA-1 unless
 * the settings say so. */
static int algorithms_fit(const xmlNode *node, int sha1)
{
	for (; node; node = node->next) {
		int method = xmlStrEqual(node->name, (const xmlChar *)"SignatureMethod") ||
		             xmlStrEqual(node->name, (const xmlChar *)"DigestMethod");
		xmlChar *algorithm = node->type == XML_ELEMENT_NODE && method
		                             ? xmlGetNoNsProp((xmlNode *)(uintptr_t)node, (const xmlChar *)"Algorithm")
		                             : NULL;
		int fits = !method || (algorithm && is_allowed((const char *)algorithm, sha1));
		xmlFree(algorithm);
		if (!fits || (node->type == XML_ELEMENT_NODE && !algorithms_fit(node->children, sha1)))
			return 0;
	}
	return 1;
}

/* Before liblasso sees it. Entities of a document type are a way to make a small text large, and to have files read: no
 * response has one. */
static const char *document_fault(const char *response, int sha1)
{
	gsize n = 0;
	guchar *bytes = g_base64_decode(response, &n);
	xmlDoc *document = bytes && n < INPUT_MAX
	                           ? xmlReadMemory((const char *)bytes, (int)n, NULL, NULL,
	                                           XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)
	                           : NULL;
	const char *why = !document             ? "its answer is no XML"
	                  : document->intSubset ? "its answer has a document type"
	                  : !algorithms_fit(xmlDocGetRootElement(document), sha1)
	                          ? "its answer is signed by an algorithm that is not taken"
	                          : NULL;
	xmlFreeDoc(document);
	g_free(bytes);
	return why;
}

/* "2026-11-17T07:00:00Z", with or without a fraction; -1: it is none. */
static time_t moment(const char *s)
{
	struct tm tm = {0};
	const char *end = s ? strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (end && *end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	return end && strcmp(end, "Z") == 0 ? timegm(&tm) : -1;
}

/* The bearer confirmation: for whom, for which request, until when. */
static const char *confirmation_fault(LassoSaml2Assertion *assertion, const json_t *in)
{
	const LassoSaml2SubjectConfirmationData *data =
	        lasso_saml2_assertion_get_subject_confirmation_data(assertion, FALSE);
	if (!data || !data->InResponseTo || !*data->InResponseTo)
		return "its answer is to no request";
	if (!data->Recipient || strcmp(data->Recipient, text(in, "recipient")) != 0)
		return "its answer is for another recipient";
	if (moment(data->NotOnOrAfter) <= time(NULL) - SKEW_SECONDS)
		return "its answer has expired";
	return NULL;
}

static const char *assertion_fault(LassoSaml2Assertion *assertion, const json_t *in)
{
	if (!assertion->Issuer || !assertion->Issuer->content ||
	    strcmp(assertion->Issuer->content, text(in, "issuer")) != 0)
		return "its answer names another issuer";
	if (!assertion->Subject || !assertion->Subject->NameID || !assertion->Subject->NameID->content)
		return "its answer names nobody";
	if (!assertion->Conditions ||
	    lasso_saml2_assertion_validate_audience(assertion, text(in, "audience")) != LASSO_SAML2_ASSERTION_VALID)
		return "its answer is for another service";
	if (lasso_saml2_assertion_validate_time_checks(assertion, SKEW_SECONDS, time(NULL)) !=
	    LASSO_SAML2_ASSERTION_VALID)
		return "its answer has expired, or is from the future";
	return confirmation_fault(assertion, in);
}

static void values_add(json_t *list, const LassoSaml2Attribute *attribute)
{
	for (const GList *v = attribute->AttributeValue; v; v = v->next) {
		const GList *any =
		        LASSO_IS_SAML2_ATTRIBUTE_VALUE(v->data) ? LASSO_SAML2_ATTRIBUTE_VALUE(v->data)->any : NULL;
		for (; any; any = any->next)
			if (LASSO_IS_MISC_TEXT_NODE(any->data) && LASSO_MISC_TEXT_NODE(any->data)->content)
				json_array_append_new(list, json_string(LASSO_MISC_TEXT_NODE(any->data)->content));
	}
}

/* An attribute of several values may be written as several of one name. */
static void attribute_add(json_t *all, const LassoSaml2Attribute *attribute)
{
	if (!attribute->Name)
		return;
	if (!json_object_get(all, attribute->Name))
		json_object_set_new(all, attribute->Name, json_array());
	values_add(json_object_get(all, attribute->Name), attribute);
}

static json_t *attributes_of(const LassoSaml2Assertion *assertion)
{
	json_t *all = json_object();
	for (const GList *s = assertion->AttributeStatement; s; s = s->next)
		for (const GList *a = LASSO_SAML2_ATTRIBUTE_STATEMENT(s->data)->Attribute; a; a = a->next)
			attribute_add(all, LASSO_SAML2_ATTRIBUTE(a->data));
	return all;
}

static json_t *fault(const char *why)
{
	return json_pack("{s:s}", "fault", why);
}

static json_t *answer(LassoLogin *login, const json_t *in)
{
	LassoSamlp2Response *response = (LassoSamlp2Response *)LASSO_PROFILE(login)->response;
	LassoNode *node = lasso_login_get_assertion(login);
	if (!LASSO_IS_SAML2_ASSERTION(node) || !LASSO_IS_SAMLP2_RESPONSE(response) ||
	    g_list_length(response->Assertion) != 1)
		return fault("its answer has not one assertion");
	LassoSaml2Assertion *assertion = LASSO_SAML2_ASSERTION(node);
	const char *why = assertion_fault(assertion, in);
	if (why)
		return fault(why);
	return json_pack("{s:s, s:s, s:s, s:o}", "nameId", assertion->Subject->NameID->content, "inResponseTo",
	                 lasso_saml2_assertion_get_in_response_to(assertion), "id", assertion->ID ? assertion->ID : "",
	                 "attributes", attributes_of(assertion));
}

static json_t *response_verify(LassoLogin *login, const json_t *in)
{
	char *copy = g_strdup(text(in, "response"));
	int result = lasso_login_process_authn_response_msg(login, copy);
	g_free(copy);
	if (result)
		return fault(lasso_strerror(result));
	if (lasso_profile_get_signature_status(LASSO_PROFILE(login)))
		return fault("its answer is not signed");
	return answer(login, in);
}

static json_t *verify(const json_t *in)
{
	const char *why = document_fault(text(in, "response"), json_is_true(json_object_get(in, "sha1")));
	if (why)
		return fault(why);
	LassoServer *server = lasso_server_new_from_buffers(text(in, "sp"), NULL, NULL, NULL);
	LassoLogin *login = NULL;
	if (server &&
	    !lasso_server_add_provider_from_buffer(server, LASSO_PROVIDER_ROLE_IDP, text(in, "idp"), NULL, NULL))
		login = lasso_login_new(server);
	json_t *out = login ? response_verify(login, in) : fault("its settings cannot be used");
	g_clear_object(&login);
	g_clear_object(&server);
	return out;
}

int main(void)
{
	static const struct confine_bounds bounds = {.memory = MEMORY_MAX, .seconds = 10, .files = 3};
	/* The libraries read their configuration and load their parts here: afterwards nothing can be opened. */
	if (lasso_init() != 0)
		return 1;
	tzset();
	confine_to_pipes(&bounds);
	char *bytes = malloc(INPUT_MAX);
	size_t n = bytes ? pipe_read(bytes, INPUT_MAX) : 0;
	json_t *in = n && n < INPUT_MAX ? json_loadb(bytes, n, 0, NULL) : NULL;
	if (!in)
		return 1;
	json_t *out = verify(in);
	if (!out)
		out = fault("its answer cannot be told");
	char *text = json_dumps(out, JSON_COMPACT);
	/* Nothing is left to do, and what the libraries do at the end of a process takes longer than all this. */
	_exit(text && pipe_write(text) == 0 ? 0 : 1);
}
