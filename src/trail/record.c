/* Writes recordings. A line is built without a lock and appended with one write(2) under a lock.
 *
 * A field's name decides whether it is secret, at any depth, in JSON, forms and queries: how it ends, or that a
 * resource keeps a field of that name sealed. A private key in PEM form is secret everywhere. A request's body is
 * searched as what it looks like, whatever its Content-Type says: a missing type must not reveal a password. Text that
 * cannot be searched by field is dropped as a whole when it mentions a secret's name or could hide one. */
#include "trail/record.h"

#include "base/buf.h"
#include "base/log.h"
#include "catalog/catalog.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define DEPTH_MAX 512 /* of JSON; deeper is recorded as null */

struct recorder {
	int fd;
	pthread_mutex_t lock;
	bool broken;         /* the last line is incomplete: start a new one */
	bool failure_logged; /* the failure was logged */
};

int record_open(const char *path, struct recorder **ret_recorder)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		fprintf(stderr, "steward: --record: cannot write %s: %s\n", path, strerror(errno));
		return -EIO;
	}
	struct recorder *rec = must_calloc(1, sizeof *rec);
	rec->fd = fd;
	pthread_mutex_init(&rec->lock, NULL);
	*ret_recorder = rec;
	return 0;
}

void record_close(struct recorder *rec)
{
	if (!rec)
		return;
	close(rec->fd);
	pthread_mutex_destroy(&rec->lock);
	free(rec);
}

static bool str_iends(struct str s, struct str end)
{
	return s.n >= end.n && str_ieq((struct str){s.p + s.n - end.n, end.n}, end);
}

/* Fields that a resource keeps sealed, whatever they are called. */
static bool is_sealed(struct str name)
{
	for (unsigned i = 0; i < catalog_resource_count; i++)
		for (size_t k = 0; k < catalog_resources[i]->sealed_count; k++)
			if (str_ieq(name, str_of(catalog_resources[i]->sealed[k])))
				return true;
	return false;
}

/* Names such as maskedSecretValue, tokenizer, apiKeyId and secretExpiresAfterHours are not secret: the end of the name
 * decides. */
bool record_is_secret(struct str name)
{
	static const char *const ends[] = {"password", "passphrase", "secret", "token", "privatekey", "_key", "apikey",
	                                   "accesskey", "licensekey", "servicekey", "routingkey", "accountkey",
	                                   "client_assertion", "credential", "credentials", "headerstemplate",
	                                   "bodytemplate", "teamswebhookurl",
	                                   /* no fields of ours, but what people write instead of them */
	                                   "passwd", "pasword", "passwort", "pwd", "passcode"};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (str_iends(name, str_of(ends[i])))
			return true;
	return is_sealed(name);
}

static bool holds_private_key(struct str text)
{
	return memmem(text.p, text.n, "PRIVATE KEY-----", 16) != NULL;
}

static const struct str links[] = {{RECORD_LINK, sizeof RECORD_LINK - 1},
                                   {RECORD_DOWNLOAD, sizeof RECORD_DOWNLOAD - 1}};
#define LINKS (sizeof links / sizeof *links)

static bool holds_link(struct str text)
{
	bool found = false;
	for (size_t i = 0; i < LINKS && !found; i++)
		found = memmem(text.p, text.n, links[i].p, links[i].n) != NULL;
	return found;
}

/* The text without the tokens of its links. */
static void links_hide(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n;) {
		size_t k = 0;
		while (k < LINKS && !str_starts((struct str){text.p + i, text.n - i}, links[k]))
			k++;
		if (k == LINKS) {
			buf_c(b, text.p[i++]);
			continue;
		}
		buf_str(b, links[k]);
		buf_z(b, RECORD_REDACTED);
		for (i += links[k].n; i < text.n && (isalnum((unsigned char)text.p[i]) || memchr("-_.", text.p[i], 3));)
			i++;
	}
}

/* The value to record: itself, or RECORD_REDACTED. Borrowed like json_object_get()'s. */
static json_t *redact(json_t *value, bool secret);

static void redact_array(json_t *array, bool secret)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		json_t *old = json_array_get(array, i), *new = redact(old, secret);
		if (new != old)
			json_array_set_new(array, i, new);
	}
}

static void redact_object(json_t *object)
{
	const char *key;
	json_t *old;
	json_object_foreach(object, key, old)
	{
		struct str name = str_of(key);
		json_t *new = is_sealed(name) ? json_string(RECORD_REDACTED) : redact(old, record_is_secret(name));
		/* Replacing the value of an existing key does not disturb the iteration. */
		if (new != old)
			json_object_set_new_nocheck(object, key, new);
	}
}

static json_t *redact_text(json_t *value, bool secret)
{
	struct str text = {json_string_value(value), json_string_length(value)};
	if (secret || holds_private_key(text))
		return json_string(RECORD_REDACTED);
	if (!holds_link(text))
		return value;
	struct buf kept = {0};
	links_hide(&kept, text);
	json_t *shown = json_stringn_nocheck(kept.p, kept.n);
	buf_free(&kept);
	return shown;
}

static json_t *redact(json_t *value, bool secret)
{
	if (json_is_string(value))
		return redact_text(value, secret);
	if (secret && json_is_number(value))
		return json_string(RECORD_REDACTED);
	if (json_is_object(value))
		redact_object(value);
	else if (json_is_array(value))
		redact_array(value, secret);
	return value;
}

static bool mentions(struct str text, const char *word)
{
	size_t n = strlen(word);
	for (size_t i = 0; i + n <= text.n; i++)
		if (str_ieq((struct str){text.p + i, n}, (struct str){word, n}))
			return true;
	return false;
}

static bool mentions_secret(struct str text)
{
	static const char *const words[] = {"pass", "pasw", "pwd", "secret", "token", "key", "assertion", "credential"};
	for (size_t w = 0; w < sizeof words / sizeof *words; w++)
		if (mentions(text, words[w]))
			return true;
	for (unsigned i = 0; i < catalog_resource_count; i++)
		for (size_t k = 0; k < catalog_resources[i]->sealed_count; k++)
			if (mentions(text, catalog_resources[i]->sealed[k]))
				return true;
	return false;
}

/* Whether it can be the name of a parameter in a form or query. Anything else may be a body of another kind. */
static bool name_is_plain(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!isalnum((unsigned char)name.p[i]) && !memchr("_-.[]%", name.p[i], 6))
			return false;
	return name.n <= 64;
}

/* name=value&name=value, as sent. */
static void form_add(struct buf *b, struct str form)
{
	struct str pair, name, value;
	bool more = true;
	while (more) {
		more = str_cut(form, '&', &pair, &form);
		bool has_value = str_cut(pair, '=', &name, &value);
		if (!name_is_plain(name)) {
			buf_z(b, RECORD_REDACTED);
		} else if (has_value) {
			/* An encoded letter could hide the name. */
			bool hidden = memchr(name.p, '%', name.n) != NULL;
			buf_str(b, name);
			buf_c(b, '=');
			buf_str(b, hidden || record_is_secret(name) ? STR(RECORD_REDACTED) : value);
		} else {
			buf_str(b, pair);
		}
		if (more)
			buf_c(b, '&');
	}
}

static bool utf8_is_valid(struct str s)
{
	json_t *text = json_stringn(s.p, s.n);
	json_decref(text);
	return text != NULL;
}

static void text_write(struct buf *b, struct str text)
{
	if (utf8_is_valid(text)) {
		json_str(b, text);
		return;
	}
	char *encoded = must_malloc((text.n + 2) / 3 * 4 + 1);
	int n = EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)text.p, (int)text.n);
	json_str(b, (struct str){encoded, (size_t)n});
	free(encoded);
}

static int dump_add(const char *bytes, size_t n, void *ctx)
{
	buf_add(ctx, bytes, n);
	return 0;
}

/* Escapes, NULs and non-text bytes could spell a secret's name in a way that a search does not see. */
static bool may_hide_secret(struct str text)
{
	return mentions_secret(text) || memmem(text.p, text.n, "\\u", 2) || memchr(text.p, 0, text.n) ||
	       !utf8_is_valid(text);
}

static void json_body_write(struct buf *b, struct str body)
{
	json_error_t error;
	json_t *value = json_loadb(body.p, body.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (!value) {
		text_write(b, may_hide_secret(body) ? STR(RECORD_REDACTED) : body);
		return;
	}
	json_t *kept = redact(value, false);
	json_sep(b);
	json_dump_callback(kept, dump_add, b, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	if (kept != value)
		json_decref(kept);
	json_decref(value);
}

/* Counts brackets outside strings: this bounds the recursions above, not jansson's limit of 2048. */
static bool depth_is_bounded(struct str json)
{
	unsigned depth = 0;
	bool quoted = false;
	for (size_t i = 0; i < json.n; i++) {
		char c = json.p[i];
		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && (c == '{' || c == '[') && ++depth > DEPTH_MAX)
			return false;
		else if (!quoted && (c == '}' || c == ']') && depth > 0)
			depth--;
	}
	return true;
}

static bool type_is_json(struct str type)
{
	struct str rest;
	str_cut(type, ';', &type, &rest);
	type = str_trim(type);
	return str_iends(type, STR("/json")) || str_iends(type, STR("+json"));
}

/* Forms do not contain unencoded quotes and brackets, JSON does. */
static bool looks_like_json(struct str body)
{
	size_t i = 0;
	while (i < body.n && isspace((unsigned char)body.p[i]))
		i++;
	return i < body.n && strchr("{[\"", body.p[i]);
}

/* `sent`: a client sent it, so it may be of any kind, whatever its type says. */
static void body_write(struct buf *b, struct str body, struct str type, bool sent)
{
	bool form = str_starts(str_trim(type), STR("application/x-www-form-urlencoded")) && !looks_like_json(body);
	if (body.n == 0 || body.n > RECORD_BODY_MAX) {
		json_nil(b);
	} else if (form) {
		struct buf kept = {0};
		form_add(&kept, body);
		text_write(b, buf_view(&kept));
		buf_free(&kept);
	} else if (sent || type_is_json(type)) {
		if (depth_is_bounded(body))
			json_body_write(b, body);
		else
			json_nil(b);
	} else if (holds_private_key(body) || (type.n == 0 && mentions_secret(body))) {
		json_z(b, RECORD_REDACTED);
	} else {
		struct buf kept = {0};
		links_hide(&kept, body);
		text_write(b, buf_view(&kept));
		buf_free(&kept);
	}
}

/* The header's value as it may be recorded. Credentials keep their scheme, to tell Bearer from Digest. */
static void header_value_add(struct buf *b, const struct header *h)
{
	struct str scheme, rest;
	if (str_is(h->name, "authorization") || str_is(h->name, "proxy-authorization")) {
		if (str_cut(h->value, ' ', &scheme, &rest)) {
			buf_str(b, scheme);
			buf_c(b, ' ');
		}
		buf_z(b, RECORD_REDACTED);
	} else if (str_is(h->name, "cookie") || str_is(h->name, "set-cookie") || record_is_secret(h->name) ||
	           str_is(h->name, "x-api-key")) {
		buf_z(b, RECORD_REDACTED);
	} else {
		buf_str(b, h->value);
	}
}

static void headers_write(struct buf *b, const struct header *headers, size_t count)
{
	json_open(b, '{');
	for (size_t i = 0; i < count; i++) {
		bool seen = false;
		for (size_t j = 0; j < i && !seen; j++)
			seen = str_eq(headers[j].name, headers[i].name);
		if (seen)
			continue;
		struct buf value = {0};
		for (size_t j = i; j < count; j++) {
			if (!str_eq(headers[j].name, headers[i].name))
				continue;
			if (j > i)
				buf_z(&value, ", ");
			header_value_add(&value, &headers[j]);
		}
		json_key_str(b, headers[i].name);
		text_write(b, buf_view(&value));
		buf_free(&value);
	}
	json_close(b, '}');
}

static struct str content_type(const struct header *headers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_ieq(headers[i].name, STR("content-type")))
			return headers[i].value;
	return STR_NONE;
}

static void url_write(struct buf *b, struct str target)
{
	struct str path, query;
	struct buf url = {0};
	bool has_query = str_cut(target, '?', &path, &query);
	buf_str(&url, path);
	if (has_query) {
		buf_c(&url, '?');
		form_add(&url, query);
	}
	text_write(b, buf_view(&url));
	buf_free(&url);
}

static void line_write(struct buf *b, const struct request *r)
{
	bool bodiless = str_is(r->method, "HEAD");
	json_open(b, '{');
	json_key(b, "method");
	text_write(b, r->method);
	json_key(b, "url");
	url_write(b, r->target);
	json_key(b, "status");
	json_int(b, r->response.status);
	json_key(b, "requestHeaders");
	headers_write(b, r->headers, r->header_count);
	json_key(b, "requestBody");
	body_write(b, r->body, content_type(r->headers, r->header_count), true);
	json_key(b, "responseHeaders");
	headers_write(b, r->response.headers, r->response.header_count);
	json_key(b, "responseBody");
	if (r->response.stream.read && !bodiless)
		json_z(b, "(stream)"); /* the stream is closed by now */
	else
		body_write(b,
		           bodiless              ? STR_NONE
		           : r->response.plain.n ? r->response.plain
		                                 : r->response.body,
		           content_type(r->response.headers, r->response.header_count), false);
	json_close(b, '}');
	buf_c(b, '\n');
}

void record_exchange(struct recorder *rec, const struct request *r)
{
	if (!rec)
		return;
	struct buf b = {0};
	line_write(&b, r);
	pthread_mutex_lock(&rec->lock);
	/* A full disk cut the last line: end it, so that this line can be read. */
	if (rec->broken && write(rec->fd, "\n", 1) == 1)
		rec->broken = false;
	ssize_t n = rec->broken ? -1 : write(rec->fd, b.p, b.n);
	bool failed = n < 0 || (size_t)n < b.n;
	bool tell = failed && !rec->failure_logged;
	rec->failure_logged = failed;
	if (n > 0 && failed)
		rec->broken = true;
	int error = n < 0 ? errno : ENOSPC;
	pthread_mutex_unlock(&rec->lock);
	if (tell)
		log_warn("recording: an exchange could not be written: %s", strerror(error));
	buf_free(&b);
}
