/* Google: each role has an account of its own in the service's project, so that what a tenant grants to it is granted
 * to no other tenant. The service's account, whose key the operator gives, shows a signed assertion for a token
 * (RFC 7523); with that it makes the roles' accounts (IAM), and tokens of theirs (IAM Credentials). */
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/option.h"
#include "providers/request.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>

#define SCOPE "https://www.googleapis.com/auth/cloud-platform"
#define GRANT "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define OWN_KEY "\nGCP" /* under which the service's own token is kept */
#define KEY_FILE_MAX 65536
#define KEY_BITS_MIN 2048
#define KEY_BITS_MAX 8192
#define PROJECT_CHARS 24 /* after "p-" */

/* The key file. */

static char *file_read(const char *path, size_t *ret_n)
{
	char *text = must_calloc(1, KEY_FILE_MAX);
	FILE *f = fopen(path, "re");
	*ret_n = f ? fread(text, 1, KEY_FILE_MAX - 1, f) : 0;
	if (f)
		fclose(f);
	return text;
}

/* A key that is encrypted is none: OpenSSL's own way is to ask for the password on the terminal. */
static int password_refuse(char *buf, int size, int writing, void *ctx)
{
	return -1;
}

EVP_PKEY *google_key_parse(struct str pem)
{
	BIO *bio = pem.n ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, password_refuse, NULL) : NULL;
	BIO_free(bio);
	if (key && EVP_PKEY_base_id(key) == EVP_PKEY_RSA && EVP_PKEY_bits(key) >= KEY_BITS_MIN &&
	    EVP_PKEY_bits(key) <= KEY_BITS_MAX)
		return key;
	EVP_PKEY_free(key);
	return NULL;
}

/* Names of roles' accounts, and so of the project, have a form in the API. */
static bool project_is_good(struct str project)
{
	bool good = project.n == PROJECT_CHARS + 2 && str_starts(project, STR("p-"));
	for (size_t i = 2; good && i < project.n; i++)
		good = (project.p[i] >= '0' && project.p[i] <= '9') || (project.p[i] >= 'a' && project.p[i] <= 'z');
	return good;
}

static char *text_copy(const json_t *object, const char *name)
{
	struct str text = json_field(object, name);
	return text.n && strlen(text.p) == text.n ? must_strdup(text.p) : NULL;
}

static int key_take(struct providers *p, const json_t *key, const char *file, const char *endpoint)
{
	p->google.key = google_key_parse(json_field(key, "private_key"));
	p->google.email = text_copy(key, "client_email");
	p->google.project = text_copy(key, "project_id");
	p->google.token_url = text_copy(key, "token_uri");
	p->google.key_id = text_copy(key, "private_key_id");
	p->google.iam = must_strdup(endpoint ? endpoint : "https://iam.googleapis.com");
	p->google.credentials = must_strdup(endpoint ? endpoint : "https://iamcredentials.googleapis.com");
	if (!p->google.key || !p->google.email || !p->google.token_url || !p->google.key_id)
		return option_refuse(
		        "--provider-google-key-file: %s is no key of a service account: a JSON object with "
		        "private_key (RSA, not encrypted), private_key_id, client_email, project_id and token_uri",
		        file);
	if (!p->google.project || !project_is_good(str_of(p->google.project)))
		return option_refuse(
		        "--provider-google-key-file: %s: project_id must be p- and %d digits or lower-case "
		        "letters: accounts of roles are made in that project, and the API has their names "
		        "in that form",
		        file, PROJECT_CHARS);
	return 0;
}

int google_key_read(struct providers *p, const char *file, const char *endpoint)
{
	size_t n;
	char *text = file_read(file, &n);
	json_t *key = json_loadb(text, n, 0, NULL);
	int r = key_take(p, key, file, endpoint);
	struct str pem = json_field(key, "private_key");
	if (pem.n)
		OPENSSL_cleanse((char *)(uintptr_t)pem.p, pem.n);
	json_decref(key);
	OPENSSL_cleanse(text, KEY_FILE_MAX);
	free(text);
	return r;
}

/* The assertion. */

static void part_add(struct buf *b, const json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);
	size_t n = strlen(text);
	char *encoded = must_malloc(BASE64_TEXT(n));
	base64url_encode(text, n, encoded);
	buf_z(b, encoded);
	free(encoded);
	free(text);
}

static bool signature_add(struct buf *b, EVP_PKEY *key)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t n = 0;
	unsigned char signature[1024];
	bool good = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
	            EVP_DigestSign(ctx, NULL, &n, (const unsigned char *)b->p, b->n) == 1 && n <= sizeof signature &&
	            EVP_DigestSign(ctx, signature, &n, (const unsigned char *)b->p, b->n) == 1;
	EVP_MD_CTX_free(ctx);
	if (!good)
		return false;
	char encoded[BASE64_TEXT(sizeof signature)];
	base64url_encode(signature, n, encoded);
	buf_c(b, '.');
	buf_z(b, encoded);
	return true;
}

/* By the machine's time: a virtual clock is nobody else's. */
static bool assertion_make(const struct google_signer *g, struct buf *b)
{
	json_int_t now = clock_machine_ms() / 1000;
	json_t *head = json_pack("{s:s, s:s, s:s}", "alg", "RS256", "kid", g->key_id, "typ", "JWT");
	json_t *claims = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", g->email, "scope", SCOPE, "aud", g->token_url,
	                           "iat", now, "exp", now + PROVIDER_SESSION_SECONDS);
	part_add(b, head);
	buf_c(b, '.');
	part_add(b, claims);
	json_decref(head);
	json_decref(claims);
	return signature_add(b, g->key);
}

/* Tokens. */

/* OAuth says {"error": "invalid_grant", "error_description"}, the others {"error": {"status", "message"}}. */
static int refused(const struct provider_request *q, const struct provider_answer *a, char *why)
{
	json_t *answer = provider_answer_json(a);
	const json_t *nested = json_object_get(answer, "error");
	bool is_nested = json_is_object(nested);
	struct str error = is_nested ? json_field(nested, "status") : json_field(answer, "error"),
	           about = is_nested ? json_field(nested, "message") : json_field(answer, "error_description");
	int r;
	if (!error.n || error.n > 64)
		r = provider_fail(q, -EPROTO, why, " answered %ld, and this is no answer of Google's", a->status);
	else
		r = provider_fail(q, -EKEYREJECTED, why, " answered %ld %.*s%s%.*s", a->status, STR_ARG(error),
		                  about.n ? ": " : "", (int)(about.n < 300 ? about.n : 300), about.n ? about.p : "");
	json_decref(answer);
	return r;
}

int google_token(const struct providers *p, const struct google_signer *signer,
                 struct provider_credentials *ret_credentials, int64_t *ret_lasts_us, char ret_why[PROVIDER_WHY])
{
	struct buf form = {0}, assertion = {0};
	struct provider_answer a = {.status = 0};
	struct provider_request q = {.what = "oauth2/token", .url = signer->token_url, .named = FETCH_BY_OPERATOR};
	bool signed_it = assertion_make(signer, &assertion);
	provider_form_add(&form, "grant_type", STR(GRANT));
	provider_form_add(&form, "assertion", buf_view(&assertion));
	q.body = buf_view(&form);
	int r = signed_it ? provider_call(p, &q, &a, ret_why)
	                  : provider_fail(&q, -EIO, ret_why, ": the key does not sign");
	if (r == 0)
		r = a.status == 200
		            ? provider_token_read(&q, &a, "access_token", NULL, ret_credentials, ret_lasts_us, ret_why)
		            : refused(&q, &a, ret_why);
	provider_answer_free(&a);
	fetch_buf_wipe(&form);
	fetch_buf_wipe(&assertion);
	return r;
}

/* The service's own. */
static int own_token(struct providers *p, struct provider_credentials *ret_own, char *why)
{
	struct google_signer own = {p->google.email, p->google.token_url, p->google.key_id, p->google.key};
	int64_t lasts;
	if (provider_kept_get(p, OWN_KEY, ret_own))
		return 0;
	int r = google_token(p, &own, ret_own, &lasts, why);
	if (r == 0)
		provider_kept_put(p, OWN_KEY, ret_own, lasts);
	return r;
}

static int call_once(struct providers *p, struct provider_request *q, struct provider_answer *ret_answer, char *why)
{
	struct provider_credentials own;
	int r = own_token(p, &own, why);
	if (r < 0)
		return r;
	q->bearer = own.token;
	q->json = true;
	r = provider_call(p, q, ret_answer, why);
	q->bearer = NULL;
	provider_credentials_free(&own);
	return r;
}

/* A request with the service's token, and with another one where that was taken back before its time. */
static int google_call(struct providers *p, struct provider_request *q, struct provider_answer *ret_answer, char *why)
{
	int r = call_once(p, q, ret_answer, why);
	if (r < 0 || ret_answer->status != 401)
		return r;
	provider_kept_drop(p, STR(""));
	return call_once(p, q, ret_answer, why);
}

int google_fetch(struct providers *p, const struct provider_role *role, struct provider_credentials *ret_credentials,
                 int64_t *ret_lasts_us, char ret_why[PROVIDER_WHY])
{
	struct buf url = {0}, body = {0};
	struct provider_answer a = {.status = 0};
	buf_printf(&url, "%s/v1/projects/-/serviceAccounts/%.*s:generateAccessToken%c", p->google.credentials,
	           STR_ARG(role->account), 0);
	buf_printf(&body, "{\"scope\":[\"%s\"],\"lifetime\":\"%ds\"}", SCOPE, PROVIDER_SESSION_SECONDS);
	struct provider_request q = {
	        .what = "generateAccessToken", .url = url.p, .named = FETCH_BY_OPERATOR, .body = buf_view(&body)};
	int r = google_call(p, &q, &a, ret_why);
	if (r == 0)
		r = a.status == 200 ? provider_token_read(&q, &a, "accessToken", "expireTime", ret_credentials,
		                                          ret_lasts_us, ret_why)
		                    : refused(&q, &a, ret_why);
	provider_answer_free(&a);
	buf_free(&url);
	buf_free(&body);
	return r;
}

/* Accounts. */

/* A 409 may also tell of another change at the same time. */
static bool is_there(const struct provider_answer *a)
{
	json_t *answer = provider_answer_json(a);
	bool there =
	        a->status == 409 && str_is(json_field(json_object_get(answer, "error"), "status"), "ALREADY_EXISTS");
	json_decref(answer);
	return there;
}

int provider_account_make(struct providers *p, struct str account, char ret_why[PROVIDER_WHY])
{
	struct buf url = {0}, body = {0};
	struct provider_answer a = {.status = 0};
	struct str name, domain;
	struct provider_request q = {.what = "serviceAccounts.create"};
	if (!providers_offer(p, PROVIDER_GCP))
		return provider_fail(&q, -ENOTSUP, ret_why, ": the operator has configured no account at Google");
	str_cut(account, '@', &name, &domain);
	buf_printf(&url, "%s/v1/projects/%s/serviceAccounts%c", p->google.iam, p->google.project, 0);
	json_open(&body, '{');
	json_key(&body, "accountId");
	json_str(&body, name);
	json_close(&body, '}');
	q.url = url.p;
	q.named = FETCH_BY_OPERATOR;
	q.body = buf_view(&body);
	int r = google_call(p, &q, &a, ret_why);
	if (r == 0 && a.status != 200 && !is_there(&a))
		r = refused(&q, &a, ret_why);
	provider_answer_free(&a);
	buf_free(&url);
	buf_free(&body);
	return r;
}

int provider_account_drop(struct providers *p, struct str account, char ret_why[PROVIDER_WHY])
{
	struct buf url = {0};
	struct provider_answer a = {.status = 0};
	struct provider_request q = {.what = "serviceAccounts.delete", .method = "DELETE"};
	if (!providers_offer(p, PROVIDER_GCP))
		return provider_fail(&q, -ENOTSUP, ret_why, ": the operator has configured no account at Google");
	buf_printf(&url, "%s/v1/projects/%s/serviceAccounts/%.*s%c", p->google.iam, p->google.project, STR_ARG(account),
	           0);
	q.url = url.p;
	q.named = FETCH_BY_OPERATOR;
	int r = google_call(p, &q, &a, ret_why);
	if (r == 0 && a.status != 200 && a.status != 404)
		r = refused(&q, &a, ret_why);
	provider_answer_free(&a);
	buf_free(&url);
	return r;
}
