/* AWS KMS: Encrypt and Decrypt, with the project's id as the encryption context, so that a wrapped key of one project
 * is not unwrapped for another that uses the same key. */
#include "base/json.h"
#include "keys/services.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define CONTEXT "steward:project"
#define REGION_BYTES 64

/* us-east-1 of US_EAST_1 */
static void region_name(struct str region, char ret_name[REGION_BYTES])
{
	str_copy(region, ret_name, REGION_BYTES);
	for (char *c = ret_name; *c; c++)
		if (*c == '_')
			*c = '-';
		else if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
}

const char *aws_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field)
{
	*ret_field = "customerMasterKeyID";
	if (!p->key.n)
		return "is required: the key's ARN, id or alias";
	if (!text_is_plain(p->key, ":/_-+=,.@"))
		return "is no ARN, id or alias of a key";
	*ret_field = "region";
	if (!p->region.n)
		return "is required: the region that the key is in";
	if (str_is(p->region, "GLOBAL") || !text_is_plain(p->region, "_"))
		return "must be the region that the key is in";
	*ret_field = "roleId";
	if (!p->role && !p->key_id.n && !p->secret.n)
		return "is required, or accessKeyID and secretAccessKey";
	*ret_field = "accessKeyID";
	if (!p->role && (!p->key_id.n || !text_is_plain(p->key_id, "")))
		return "is required beside secretAccessKey: letters and digits";
	*ret_field = "secretAccessKey";
	if (!p->role && !p->secret.n)
		return "is required beside accessKeyID";
	for (size_t i = 0; i < p->secret.n; i++)
		if ((unsigned char)p->secret.p[i] < ' ' || (unsigned char)p->secret.p[i] >= 0x7f)
			return "has a character that no secret has";
	return NULL;
}

/* Of a request that came too late or too early, or with a session that is over: that says something of clocks, and
 * nothing of the key. */
static bool is_about_time(struct str type, struct str about)
{
	return str_is(type, "ExpiredTokenException") || str_is(type, "RequestExpired") ||
	       str_starts(about, STR("Signature expired")) || str_starts(about, STR("Signature not yet current"));
}

/* What KMS says about who asks, or about the key. Anything else of 400 is about the request. */
static int refused(const struct provider_request *q, const struct provider_answer *a, char *why)
{
	json_t *answer = provider_answer_json(a);
	struct str type = json_field(answer, "__type"), about = json_field(answer, "message"), before, after;
	int r;
	if (!about.n)
		about = json_field(answer, "Message");
	if (str_cut(type, '#', &before, &after)) /* with a name space, at times */
		type = after;
	if (!type.n || type.n > 64)
		r = provider_fail(q, -EPROTO, why, " answered %ld, and this is no answer of KMS", a->status);
	else
		r = provider_fail(q, is_about_time(type, about) ? -EPROTO : -EACCES, why, " answered %ld %.*s%s%.*s",
		                  a->status, STR_ARG(type), about.n ? ": " : "", (int)(about.n < 300 ? about.n : 300),
		                  about.n ? about.p : "");
	json_decref(answer);
	return r;
}

static void url_make(const struct keys *k, const char *region, struct buf *url)
{
	if (k->aws)
		buf_printf(url, "%s/%c", k->aws, 0);
	else
		buf_printf(url, "https://kms.%s.amazonaws.com%s/%c", region,
		           str_starts(str_of(region), STR("cn-")) ? ".cn" : "", 0);
}

static int credentials_get(struct keys *k, const struct key_place *p, struct provider_credentials *ret_credentials,
                           char *why)
{
	if (p->role)
		return provider_credentials_get(k->providers, p->role, ret_credentials, why);
	*ret_credentials =
	        (struct provider_credentials){.key_id = text_copy(p->key_id), .secret = text_copy(p->secret)};
	return 0;
}

/* *ret_answer: owned. */
static int ask(struct keys *k, const struct key_place *p, const char *what, const char *target, struct str body,
               const char *payload, json_t **ret_answer, char *why)
{
	struct provider_credentials c = {.token = NULL};
	struct provider_answer a = {.status = 0};
	struct buf url = {0};
	char region[REGION_BYTES];
	int r = credentials_get(k, p, &c, why);
	if (r < 0)
		return r;
	region_name(p->region, region);
	url_make(k, region, &url);
	struct provider_signer signer = {.key_id = c.key_id,
	                                 .secret = c.secret,
	                                 .token = c.token,
	                                 .region = region,
	                                 .service = "kms",
	                                 .target = target};
	struct provider_request q = {.what = what,
	                             .url = url.p,
	                             .named = k->aws ? FETCH_BY_OPERATOR : FETCH_BY_PROVIDER,
	                             .body = body,
	                             .signer = &signer,
	                             .secret = c.secret,
	                             .bearer = c.token,
	                             .payload = payload};
	r = provider_call(k->providers, &q, &a, why);
	if (r == 0 && a.status != 200)
		r = refused(&q, &a, why);
	if (r == 0 && !(*ret_answer = provider_answer_json(&a)))
		r = provider_fail(&q, -EPROTO, why, " answered 200, and this is no answer of KMS");
	provider_answer_free(&a);
	provider_credentials_free(&c);
	buf_free(&url);
	return r;
}

static void body_begin(struct buf *b, const struct key_place *p)
{
	buf_reserve(b, 16384);
	json_open(b, '{');
	json_key(b, "KeyId");
	json_str(b, p->key);
	json_key(b, "EncryptionContext");
	json_open(b, '{');
	json_key(b, CONTEXT);
	json_str(b, p->group_id);
	json_close(b, '}');
}

static int wrap(struct keys *k, struct arena *a, const struct key_place *p, const unsigned char *plain,
                struct key_wrap *ret_wrap, char *why)
{
	static const struct key_words wrapped = {"kms:Encrypt", "CiphertextBlob", "KeyId", 2048, ":/_-+=,.@"};
	struct buf body = {0};
	char text[PLAIN_TEXT];
	json_t *answer = NULL;
	base64_padded(plain, DATA_KEY_BYTES, text);
	body_begin(&body, p);
	json_key(&body, "Plaintext");
	json_str(&body, str_of(text));
	json_close(&body, '}');
	int r = ask(k, p, "kms:Encrypt", "TrentService.Encrypt", buf_view(&body), text, &answer, why);
	if (r == 0)
		r = answer_wrap(a, answer, &wrapped, text, ret_wrap, why);
	fetch_buf_wipe(&body);
	OPENSSL_cleanse(text, sizeof text);
	return r;
}

static int unwrap(struct keys *k, const struct key_place *p, struct str bytes, unsigned char *ret_plain, char *why)
{
	static const struct key_words plain = {.what = "kms:Decrypt", .bytes = "Plaintext"};
	struct buf body = {0};
	json_t *answer = NULL;
	body_begin(&body, p);
	json_key(&body, "CiphertextBlob");
	json_str(&body, bytes);
	json_close(&body, '}');
	int r = ask(k, p, "kms:Decrypt", "TrentService.Decrypt", buf_view(&body), NULL, &answer, why);
	buf_free(&body);
	return r < 0 ? r : answer_unwrap(answer, &plain, ret_plain, why);
}

const struct key_service aws_keys = {wrap, unwrap};
