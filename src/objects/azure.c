/* Objects in a container of Azure's Blob service. What fits into one part is put with one request; more is put in
 * blocks, which become a blob only when the source has ended well. Each body has its MD5, which the service holds it
 * against, and the whole blob has one, which gets are held against. Blocks that a killed process has left are in no
 * list, and the service drops them after a week.
 *
 * Requests have a role's token, or are signed with the account's key ("Shared Key"). */
#include "base/arena.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "objects/azure_xml.h"
#include "objects/bucket.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define API_VERSION "2021-12-02"
#define KEY_MAX 512
#define OWN_HEADERS 16 /* x-ms-: that a request has at most */
#define COMMIT_SECONDS 300
#define BLOCK_ID 24 /* bytes of a block's id: all of a blob are of one length */

/* Signatures. */

static int lines_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *header_value(const struct curl_slist *list, const char *name)
{
	size_t n = strlen(name);
	for (; list; list = list->next)
		if (strncasecmp(list->data, name, n) == 0 && list->data[n] == ':')
			return list->data + n + 2;
	return "";
}

/* "x-ms-…:value", in order. Ours are written in lower case, with one space after the colon. */
static void own_headers_add(struct buf *b, const struct curl_slist *list)
{
	const char *own[OWN_HEADERS];
	size_t count = 0;
	for (; list && count < OWN_HEADERS; list = list->next)
		if (strncmp(list->data, "x-ms-", 5) == 0)
			own[count++] = list->data;
	qsort(own, count, sizeof *own, lines_order);
	for (size_t i = 0; i < count; i++) {
		const char *colon = strchr(own[i], ':');
		buf_printf(b, "%.*s:%s\n", (int)(colon - own[i]), own[i], colon + 2);
	}
}

static void decoded_add(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '%' && i + 2 < text.n) {
			buf_c(b, (char)(hex_value(text.p[i + 1]) * 16 + hex_value(text.p[i + 2])));
			i += 2;
		} else {
			buf_c(b, text.p[i]);
		}
	}
}

/* "/ACCOUNT/PATH", and each parameter on a line of its own. Queries are written in order. */
static void resource_add(struct buf *b, const struct object_site *s, const struct object_request *q)
{
	const char *path = strchr(strstr(s->base, "://") + 3, '/');
	struct str rest = str_of(q->query ? q->query : ""), pair, name, value;
	buf_printf(b, "/%s%s%s", s->account, path ? path : "", q->path);
	while (rest.n) {
		str_cut(rest, '&', &pair, &rest);
		str_cut(pair, '=', &name, &value);
		buf_printf(b, "\n%.*s:", STR_ARG(name));
		decoded_add(b, value);
	}
}

static void text_to_sign(struct buf *b, const struct object_site *s, const struct object_request *q,
                         const struct curl_slist *list)
{
	buf_printf(b, "%s\n\n\n", q->method); /* no encoding, no language */
	if (q->body.n)
		buf_printf(b, "%zu", q->body.n);
	buf_printf(b, "\n%s\n%s\n\n\n%s\n\n\n%s%s\n", header_value(list, "Content-MD5"),
	           header_value(list, "Content-Type"), header_value(list, "If-Match"), q->range ? "bytes=" : "",
	           q->range ? q->range : "");
	own_headers_add(b, list);
	resource_add(b, s, q);
}

static int shared_key(const struct object_site *s, const struct objects_keys *keys, const struct object_request *q,
                      struct curl_slist **list)
{
	unsigned char key[KEY_MAX], mac[EVP_MAX_MD_SIZE];
	char text[OBJECT_BASE64(EVP_MAX_MD_SIZE)];
	unsigned n = 0;
	struct buf b = {0};
	ssize_t key_n = base64_decode(str_of(keys->secret), key, sizeof key);
	text_to_sign(&b, s, q, *list);
	bool good = key_n > 0 && HMAC(EVP_sha256(), key, (int)key_n, (const unsigned char *)b.p, b.n, mac, &n);
	OPENSSL_cleanse(key, sizeof key);
	buf_free(&b);
	if (!good)
		return -ENOMEM;
	object_base64(mac, n, text);
	struct buf value = {0};
	buf_printf(&value, "SharedKey %s:%s%c", s->account, text, 0);
	object_header_add(list, "Authorization", value.p);
	buf_free(&value);
	return 0;
}

/* By the machine's time: a virtual clock is nobody else's. */
static void date_add(struct curl_slist **list)
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t now = clock_machine_ms() / 1000;
	struct tm t;
	char text[96];
	gmtime_r(&now, &t);
	snprintf(text, sizeof text, "%.3s, %02d %.3s %d %02d:%02d:%02d GMT", days + INT64_C(3) * t.tm_wday, t.tm_mday,
	         months + INT64_C(3) * t.tm_mon, t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
	object_header_add(list, "x-ms-date", text);
}

static int azure_authorize(const struct object_site *s, const struct objects_keys *keys, const struct object_request *q,
                           CURL *curl, struct curl_slist **list)
{
	(void)curl;
	date_add(list);
	object_header_add(list, "x-ms-version", API_VERSION);
	if (!keys->token)
		return shared_key(s, keys, q, list);
	object_bearer(list, keys->token);
	return 0;
}

/* What Azure has of its own. */

static const struct object_code azure_codes[] = {
        {"AuthenticationFailed", -EACCES, false, "the account's key, or the token, is not accepted"},
        {"AuthorizationFailure", -EACCES, false,
         "the account's key is not accepted, or its network rules keep the service out"},
        {"AuthorizationPermissionMismatch", -EACCES, false,
         "the identity lacks a right: Storage Blob Data Contributor on the container"},
        {"AuthorizationSourceIPMismatch", -EACCES, false, NULL},
        {"BlobNotFound", -ENOENT, false, NULL},
        {"ConditionNotMet", -ESTALE, false, NULL},
        {"ContainerBeingDeleted", -EHOSTUNREACH, true, NULL},
        {"ContainerNotFound", -EHOSTUNREACH, true, "there is no container of this name"},
        {"InvalidAuthenticationInfo", -EACCES, false, NULL},
        {"InvalidRange", -ERANGE, false, NULL},
        {"Md5Mismatch", -EBUSY, false, NULL}, /* the bytes arrived damaged: they are sent again */
        {"OperationTimedOut", -ETIMEDOUT, false, NULL},
        {"ServerBusy", -EHOSTUNREACH, false, NULL},
};

static void azure_header(struct object_answer *a, struct str name, struct str value)
{
	if (str_ieq(name, STR("content-md5")))
		snprintf(a->sum, sizeof a->sum, "%.*s", (int)(value.n < 31 ? value.n : 0), value.p);
	else if (str_ieq(name, STR("x-ms-error-code")))
		snprintf(a->fault.code, sizeof a->fault.code, "%.*s", (int)(value.n < 63 ? value.n : 0), value.p);
}

/* The message goes on with the request's id and time, on lines of their own. */
static void azure_fault(struct str body, struct object_fault *fault)
{
	struct object_fault found;
	object_xml_fault(body, &found);
	found.message[strcspn(found.message, "\r\n")] = 0;
	if (found.code[0])
		*fault = found;
}

static void azure_path(const struct object_site *s, struct str key, struct buf *ret_path)
{
	(void)s;
	if (key.n)
		buf_c(ret_path, '/');
	object_encode(ret_path, key, true);
}

static void azure_list_query(struct buf *b, struct str prefix, struct str token, unsigned most)
{
	buf_z(b, "comp=list");
	if (token.n) {
		buf_z(b, "&marker=");
		object_encode(b, token, false);
	}
	buf_printf(b, "&maxresults=%u", most);
	if (prefix.n) {
		buf_z(b, "&prefix=");
		object_encode(b, prefix, false);
	}
	buf_z(b, "&restype=container");
}

static const struct object_dialect azure_dialect = {
        .scheme = "azure",
        .server = "Blob",
        .version_header = "etag",
        .sum = OBJECT_SUM_MD5,
        .no_host = ": is there a storage account of this name?",
        .codes = azure_codes,
        .code_count = sizeof azure_codes / sizeof *azure_codes,
        .authorize = azure_authorize,
        .header = azure_header,
        .fault = azure_fault,
        .path = azure_path,
        .list_query = azure_list_query,
        .list_page = azure_xml_page,
};

/* Putting. */

struct put {
	struct object_bucket *b;
	struct object_source source;
	char *path;
	char upload[17]; /* tells its blocks from those of another put of the name */
	struct buf list; /* of its blocks */
	unsigned count;
	struct object_summing sum; /* of the whole */
};

/* "Content-MD5: …" of bytes, or another header's name; NULL where the machine has no MD5. */
static const char *md5_line(const char *name, struct str bytes, char ret_line[64])
{
	struct object_summing s;
	char sum[32];
	object_sum_begin(&s, OBJECT_SUM_MD5);
	object_sum_add(&s, bytes.p, bytes.n);
	object_sum_end(&s, sum);
	snprintf(ret_line, 64, "%s: %s", name, sum);
	return sum[0] ? ret_line : NULL;
}

static int request_send(struct put *p, const struct object_request *q)
{
	struct object_answer a = {.status = 0};
	int r = object_call(&p->b->site, q, &a);
	object_answer_free(&a);
	return r;
}

static int put_whole(struct put *p)
{
	char md5[64];
	struct str body = buf_view(&p->source.part);
	struct object_request q = {.method = "PUT",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .headers = {"x-ms-blob-type: BlockBlob", md5_line("Content-MD5", body, md5)},
	                           .body = body};
	return request_send(p, &q);
}

static int block_put(struct put *p)
{
	char md5[64], id[BLOCK_ID + 1], coded[OBJECT_BASE64(BLOCK_ID)];
	struct buf query = {0};
	struct str body = buf_view(&p->source.part);
	snprintf(id, sizeof id, "%.16s%08u", p->upload, p->count);
	object_base64(id, BLOCK_ID, coded);
	buf_z(&query, "blockid=");
	object_encode(&query, str_of(coded), false);
	buf_printf(&query, "&comp=block%c", 0);
	struct object_request q = {.method = "PUT",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .query = query.p,
	                           .headers = {md5_line("Content-MD5", body, md5)},
	                           .body = body};
	int r = p->count < OBJECT_UPLOAD_PARTS
	                ? request_send(p, &q)
	                : objects_fail(-EFBIG, "%s: more than %d parts", p->source.name, OBJECT_UPLOAD_PARTS);
	object_sum_add(&p->sum, body.p, body.n);
	/* "Latest" is found also where an earlier try has done it, and its answer was lost. */
	buf_printf(&p->list, "<Latest>%s</Latest>", coded);
	p->count++;
	buf_free(&query);
	return r;
}

static int blocks_commit(struct put *p)
{
	char md5[64], whole[96], sum[32];
	struct buf body = {0};
	object_sum_end(&p->sum, sum);
	snprintf(whole, sizeof whole, "x-ms-blob-content-md5: %s", sum);
	buf_z(&body, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
	buf_str(&body, buf_view(&p->list));
	buf_z(&body, "</BlockList>");
	struct object_request q = {.method = "PUT",
	                           .name = p->source.name,
	                           .path = p->path,
	                           .query = "comp=blocklist",
	                           .headers = {"Content-Type: application/xml",
	                                       md5_line("Content-MD5", buf_view(&body), md5), sum[0] ? whole : NULL},
	                           .body = buf_view(&body),
	                           .stall_seconds = COMMIT_SECONDS};
	int r = request_send(p, &q);
	buf_free(&body);
	return r;
}

static int put_blocks(struct put *p)
{
	size_t size = p->b->part_bytes;
	int r = 0;
	random_text(p->upload, sizeof p->upload - 1, "0123456789abcdef");
	while (r == 0 && p->source.part.n > 0) {
		r = block_put(p);
		size = object_part_size(size, p->count);
		if (r == 0)
			r = object_source_fill(&p->source, size);
	}
	return r < 0 ? r : blocks_commit(p);
}

static int azure_put(struct objects *o, const char *name, objects_read *read, void *ctx)
{
	struct put p = {.b = object_bucket_of(o),
	                .source = {.name = name, .read = read, .ctx = ctx},
	                .path = object_path_of(object_bucket_of(o), name)};
	char unused[32];
	object_sum_begin(&p.sum, OBJECT_SUM_MD5);
	int r = object_source_fill(&p.source, p.b->part_bytes);
	if (r == 0)
		r = p.source.ended ? put_whole(&p) : put_blocks(&p);
	object_sum_end(&p.sum, unused);
	buf_free(&p.source.part);
	buf_free(&p.list);
	free(p.path);
	return r;
}

/* Opening. */

static const struct objects_ops azure_ops = {.close = object_bucket_close,
                                             .put = azure_put,
                                             .get = object_bucket_get,
                                             .size = object_bucket_size,
                                             .list = object_bucket_list,
                                             .delete = object_bucket_delete};

static int options_check(const struct objects_options *o, const struct object_url *url)
{
	unsigned char key[KEY_MAX];
	int r = object_options_check(o, url, &azure_dialect, "-");
	if (r < 0)
		return r;
	if (!o->account || strlen(o->account) < 3 || strlen(o->account) > 24 || !object_text_is(str_of(o->account), ""))
		return objects_fail(-EINVAL, "account: 3 to 24 lower-case letters and digits would be right");
	bool by_key = !o->keys && !(o->token && *o->token);
	if (!by_key)
		return object_bearer_check(o->endpoint);
	ssize_t n = o->secret ? base64_decode(str_of(o->secret), key, sizeof key) : 0;
	OPENSSL_cleanse(key, sizeof key);
	return n > 0 ? 0 : objects_fail(-EINVAL, "a container needs the account's key, which is base64");
}

static char *base_of(const struct objects_options *o, struct str container)
{
	struct buf base = {0};
	struct str endpoint = object_endpoint_of(o->endpoint);
	if (endpoint.n)
		buf_printf(&base, "%.*s/%s/%.*s%c", STR_ARG(endpoint), o->account, STR_ARG(container), 0);
	else
		buf_printf(&base, "https://%s.blob.core.windows.net/%.*s%c", o->account, STR_ARG(container), 0);
	return base.p;
}

int azure_objects_open(const struct objects_options *o, struct objects **ret_objects)
{
	struct object_url url = object_url_of(o->url);
	int64_t now_ms;
	int r = options_check(o, &url);
	if (r < 0)
		return r;
	struct object_bucket *b = object_bucket_new(o, &url, &azure_dialect, &azure_ops, base_of(o, url.bucket));
	b->site.account = must_strdup(o->account);
	if ((r = object_bucket_ask(b, &now_ms)) < 0) {
		object_bucket_close(&b->base);
		return r;
	}
	*ret_objects = &b->base;
	return 0;
}
