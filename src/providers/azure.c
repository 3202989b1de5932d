/* Azure: the service's application, of which the tenant's directory has a service principal, gets a token there by its
 * secret. The token says whose it is, which must be what the tenant says. */
#include "base/base64.h"
#include "base/json.h"
#include "providers/request.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <strings.h>

#define SCOPE "https://storage.azure.com/.default"
#define WHAT "oauth2/v2.0/token" /* for people */
#define CLAIMS_MAX 16384

/* The claims of a token, which came over TLS from who has signed it: nobody between could have changed them. */
static json_t *claims_of(struct str token)
{
	struct str head, rest, payload, signature;
	unsigned char *text = must_malloc(CLAIMS_MAX);
	json_t *claims = NULL;
	if (str_cut(token, '.', &head, &rest) && str_cut(rest, '.', &payload, &signature)) {
		ssize_t n = base64_decode(payload, text, CLAIMS_MAX);
		claims = n > 0 ? json_loadb((const char *)text, (size_t)n, 0, NULL) : NULL;
	}
	free(text);
	if (json_is_object(claims))
		return claims;
	json_decref(claims);
	return NULL;
}

static bool is_same(struct str a, struct str b)
{
	return a.n && str_ieq(a, b);
}

static int claims_check(const struct provider_request *q, const struct provider_role *role, struct str token, char *why)
{
	json_t *claims = claims_of(token);
	struct str object = json_field(claims, "oid"), tenant = json_field(claims, "tid");
	int r = 0;
	if (!object.n || !tenant.n || object.n > 64 || tenant.n > 64)
		r = provider_fail(q, -EPROTO, why, ": the token does not say whose it is");
	else if (!is_same(tenant, role->tenant))
		r = provider_fail(q, -EACCES, why, ": the token is of the directory %.*s", STR_ARG(tenant));
	else if (!is_same(object, role->principal))
		r = provider_fail(q, -EACCES, why,
		                  ": the application's service principal in that directory is another one");
	json_decref(claims);
	return r;
}

static int refused(const struct provider_request *q, const struct provider_answer *a, char *why)
{
	json_t *answer = provider_answer_json(a);
	struct str error = json_field(answer, "error"), about = json_field(answer, "error_description");
	int r;
	if (!error.n || error.n > 64)
		r = provider_fail(q, -EPROTO, why, " answered %ld, and this is no answer of a token endpoint",
		                  a->status);
	else
		r = provider_fail(q, str_is(error, "invalid_client") ? -EKEYREJECTED : -EACCES, why,
		                  " answered %ld %.*s%s%.*s", a->status, STR_ARG(error), about.n ? ": " : "",
		                  (int)(about.n < 300 ? about.n : 300), about.n ? about.p : "");
	json_decref(answer);
	return r;
}

int azure_token(const struct providers *p, const struct azure_client *client,
                struct provider_credentials *ret_credentials, int64_t *ret_lasts_us, char ret_why[PROVIDER_WHY])
{
	struct buf form = {0}, url = {0};
	struct provider_answer a = {.status = 0};
	buf_reserve(&form, 1024 + 3 * strlen(client->secret));
	provider_form_add(&form, "client_id", client->app_id);
	provider_form_add(&form, "client_secret", str_of(client->secret));
	provider_form_add(&form, "grant_type", STR("client_credentials"));
	provider_form_add(&form, "scope", client->scope);
	buf_printf(&url, "%s/%.*s/oauth2/v2.0/token%c", client->endpoint, STR_ARG(client->tenant), 0);
	struct provider_request q = {.what = WHAT,
	                             .url = url.p,
	                             .named = FETCH_BY_OPERATOR,
	                             .body = buf_view(&form),
	                             .secret = client->secret};
	int r = provider_call(p, &q, &a, ret_why);
	if (r == 0)
		r = a.status == 200
		            ? provider_token_read(&q, &a, "access_token", NULL, ret_credentials, ret_lasts_us, ret_why)
		            : refused(&q, &a, ret_why);
	provider_answer_free(&a);
	fetch_buf_wipe(&form);
	buf_free(&url);
	return r;
}

int azure_fetch(struct providers *p, const struct provider_role *role, struct provider_credentials *ret_credentials,
                int64_t *ret_lasts_us, char ret_why[PROVIDER_WHY])
{
	struct azure_client own = {.endpoint = p->azure.endpoint,
	                           .secret = p->azure.secret,
	                           .tenant = role->tenant,
	                           .app_id = str_of(p->azure.app_id),
	                           .scope = role->scope.n ? role->scope : STR(SCOPE)};
	struct provider_request about = {.what = WHAT};
	int r = azure_token(p, &own, ret_credentials, ret_lasts_us, ret_why);
	if (r == 0 && (r = claims_check(&about, role, str_of(ret_credentials->token), ret_why)) < 0)
		provider_credentials_free(ret_credentials);
	return r;
}
