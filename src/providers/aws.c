/* AWS: the tenant's role is assumed by STS. The external id, which the service has made for the role and shows to its
 * owner, keeps tenants from using each other's roles: a role that lets the service in without it is refused. */
#include "base/id.h"
#include "objects/xml.h"
#include "providers/request.h"

#include <errno.h>
#include <stdio.h>

#define TEXT_MAX 8192 /* of a key or token */

static struct str form_make(const struct provider_role *role, struct str external_id, struct buf *b)
{
	char session[64], seconds[16];
	snprintf(session, sizeof session, "steward-%.*s", (int)(role->id.n < 32 ? role->id.n : 32), role->id.p);
	snprintf(seconds, sizeof seconds, "%d", PROVIDER_SESSION_SECONDS);
	provider_form_add(b, "Action", STR("AssumeRole"));
	provider_form_add(b, "DurationSeconds", str_of(seconds));
	provider_form_add(b, "ExternalId", external_id);
	provider_form_add(b, "RoleArn", role->arn);
	provider_form_add(b, "RoleSessionName", str_of(session));
	provider_form_add(b, "Version", STR("2011-06-15"));
	return buf_view(b);
}

/* What STS says about the service's own key, not about the role. */
static bool is_ours(struct str code)
{
	return str_is_one_of(
	        "InvalidClientTokenId|SignatureDoesNotMatch|IncompleteSignature|MissingAuthenticationToken|"
	        "ExpiredToken|RequestExpired|UnrecognizedClientException",
	        code);
}

static int refused(const struct provider_request *q, const struct provider_answer *a, char *why)
{
	struct buf code = {0}, message = {0};
	struct str xml = buf_view(&a->body);
	bool told = object_xml_find(xml, "ErrorResponse", "Error", "Code", &code) == 0 && code.n < 64;
	int r;
	if (!told || object_xml_find(xml, "ErrorResponse", "Error", "Message", &message) < 0)
		message.n = 0;
	if (!told)
		r = provider_fail(q, -EPROTO, why, " answered %ld, and this is no answer of STS", a->status);
	else
		r = provider_fail(q, is_ours(buf_view(&code)) ? -EKEYREJECTED : -EACCES, why,
		                  " answered %ld %.*s%s%.*s", a->status, STR_ARG(buf_view(&code)),
		                  message.n ? ": " : "", (int)(message.n < 300 ? message.n : 300),
		                  message.n ? message.p : "");
	buf_free(&code);
	buf_free(&message);
	return r;
}

static bool is_printable(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] <= ' ' || (unsigned char)text.p[i] >= 0x7f)
			return false;
	return text.n > 0 && text.n <= TEXT_MAX;
}

/* One text of the answer's credentials, on the heap; NULL: it is missing, or nothing that can be one. */
static char *field_take(const struct provider_answer *a, const char *name)
{
	struct buf text = {0};
	char *copy = NULL;
	buf_reserve(&text, a->body.n + 1);
	if (object_xml_find(buf_view(&a->body), "AssumeRoleResponse", "Credentials", name, &text) == 0 &&
	    is_printable(buf_view(&text))) {
		copy = must_malloc(text.n + 1);
		memcpy(copy, text.p, text.n);
		copy[text.n] = 0;
	}
	fetch_buf_wipe(&text);
	return copy;
}

static int answer_read(const struct provider_request *q, const struct provider_answer *a,
                       struct provider_credentials *ret_credentials, int64_t *ret_lasts_us, char *why)
{
	char *until = field_take(a, "Expiration");
	struct provider_credentials c = {.key_id = field_take(a, "AccessKeyId"),
	                                 .secret = field_take(a, "SecretAccessKey"),
	                                 .token = field_take(a, "SessionToken")};
	*ret_lasts_us = until ? provider_lasts_us(str_of(until), 0) : 0;
	provider_wipe(until);
	if (c.key_id && c.secret && c.token && *ret_lasts_us) {
		*ret_credentials = c;
		return 0;
	}
	provider_credentials_free(&c);
	return provider_fail(q, -EPROTO, why, " answered %ld without credentials that hold", a->status);
}

static int assume(struct providers *p, const struct provider_role *role, struct str external_id,
                  struct provider_credentials *ret_credentials, int64_t *ret_lasts_us, char *why)
{
	struct buf form = {0};
	struct provider_answer a = {.status = 0};
	struct provider_request q = {.what = "sts:AssumeRole",
	                             .url = p->aws.endpoint,
	                             .named = FETCH_BY_OPERATOR,
	                             .body = form_make(role, external_id, &form),
	                             .sign = true,
	                             .secret = p->aws.secret};
	int r = provider_call(p, &q, &a, why);
	if (r == 0)
		r = a.status == 200 ? answer_read(&q, &a, ret_credentials, ret_lasts_us, why) : refused(&q, &a, why);
	provider_answer_free(&a);
	buf_free(&form);
	return r;
}

int aws_fetch(struct providers *p, const struct provider_role *role, struct provider_credentials *ret_credentials,
              int64_t *ret_lasts_us, char ret_why[PROVIDER_WHY])
{
	return assume(p, role, role->external_id, ret_credentials, ret_lasts_us, ret_why);
}

int aws_prove_closed(struct providers *p, const struct provider_role *role, char ret_why[PROVIDER_WHY])
{
	struct id other = id_new();
	struct provider_credentials c;
	int64_t lasts;
	int r = assume(p, role, id_str(&other), &c, &lasts, ret_why);
	if (r == 0) {
		provider_credentials_free(&c);
		snprintf(ret_why, PROVIDER_WHY,
		         "sts:AssumeRole let the service in with another external id than the role's own: other users "
		         "of "
		         "this service could use the role");
		return -EPERM;
	}
	return r == -EACCES ? 0 : r;
}
