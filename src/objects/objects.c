/* Object stores: which kind a URL means, what a name may be, and the words about failures. */
#include "objects/objects.h"

#include "base/arena.h"
#include "base/buf.h"
#include "objects/backend.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* S3 ends at 1,024 bytes with the store's prefix, file systems at 255 for a part. */
#define PART_MAX 240

static _Thread_local char why[512];

const char *objects_why(void)
{
	return why;
}

int objects_fail(int code, const char *format, ...)
{
	/* Callers may put the last words into the new ones. */
	char words[sizeof why];
	va_list args;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	for (char *p = words; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	memcpy(why, words, sizeof why);
	return code;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '=' || c == '-';
}

bool object_part_valid(struct str part)
{
	if (part.n == 0 || part.n > PART_MAX || str_is(part, ".") || str_is(part, ".."))
		return false;
	for (size_t i = 0; i < part.n; i++)
		if (!is_name_char(part.p[i]))
			return false;
	return true;
}

bool object_name_valid(struct str name)
{
	struct str part;
	unsigned parts = 0;
	bool more = true;
	if (name.n > OBJECT_NAME_MAX)
		return false;
	while (more) {
		more = str_cut(name, '/', &part, &name);
		if (!object_part_valid(part) || ++parts > OBJECT_PARTS_MAX)
			return false;
	}
	return true;
}

/* The beginning of a name: whole parts, then the beginning of one. */
static bool prefix_valid(struct str prefix)
{
	size_t start = prefix.n;
	while (start > 0 && prefix.p[start - 1] != '/')
		start--;
	for (size_t i = start; i < prefix.n; i++)
		if (!is_name_char(prefix.p[i]))
			return false;
	return prefix.n <= OBJECT_NAME_MAX && prefix.n - start <= PART_MAX &&
	       (start == 0 || object_name_valid((struct str){prefix.p, start - 1}));
}

static int name_check(const char *name)
{
	if (object_name_valid(str_of(name)))
		return 0;
	return objects_fail(-EINVAL, "the name \"%.100s\" cannot be an object's", name);
}

/* "%2F" and the like in a file's URL. On the heap; NULL: no path. */
static char *path_of_url(const char *text)
{
	struct buf path = {0};
	for (const char *p = text; *p; p++) {
		if (*p != '%') {
			buf_c(&path, *p);
			continue;
		}
		int high = hex_value(p[1]), low = high >= 0 ? hex_value(p[2]) : -1;
		if (low < 0 || high + low == 0) {
			buf_free(&path);
			return NULL;
		}
		buf_c(&path, (char)(high * 16 + low));
		p += 2;
	}
	buf_c(&path, 0);
	return path.p;
}

static int directory_open(const char *url, bool expected, struct objects **ret_objects)
{
	bool is_url = str_starts(str_of(url), STR("file:"));
	if (is_url && !str_starts(str_of(url), STR("file:///")))
		return objects_fail(-EINVAL, "url: a directory is written file:///DIRECTORY");
	char *path = is_url ? path_of_url(url + strlen("file://")) : must_strdup(url);
	int r = path && *path ? directory_objects_open(path, expected, ret_objects)
	                      : objects_fail(-EINVAL, "url: no directory is named");
	free(path);
	return r;
}

static const struct {
	const char *scheme;
	int (*open)(const struct objects_options *o, struct objects **ret_objects);
} buckets[] = {{"s3://", s3_objects_open}, {"azure://", azure_objects_open}, {"gs://", gcs_objects_open}};

int objects_open(const struct objects_options *o, struct objects **ret_objects)
{
	if (!o->url || !*o->url)
		return objects_fail(-EINVAL, "url: none is given");
	for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++)
		if (str_starts(str_of(o->url), str_of(buckets[i].scheme)))
			return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
			               ? buckets[i].open(o, ret_objects)
			               : objects_fail(-EIO, "libcurl does not start");
	if (strstr(o->url, "://") && !str_starts(str_of(o->url), STR("file://")))
		return objects_fail(-EINVAL, "url: an object store is file:///DIRECTORY, a path, s3://BUCKET/PREFIX, "
		                             "azure://CONTAINER/PREFIX or gs://BUCKET/PREFIX");
	return directory_open(o->url, o->expected, ret_objects);
}

void objects_close(struct objects *o)
{
	if (o)
		o->ops->close(o);
}

int objects_put(struct objects *o, const char *name, objects_read *read, void *ctx)
{
	int r = name_check(name);
	return r < 0 ? r : o->ops->put(o, name, read, ctx);
}

static ssize_t bytes_read(void *ctx, void *buf, size_t n)
{
	struct str *left = ctx;
	if (n > left->n)
		n = left->n;
	if (n == 0)
		return 0;
	memcpy(buf, left->p, n);
	left->p += n;
	left->n -= n;
	return (ssize_t)n;
}

int objects_put_bytes(struct objects *o, const char *name, const void *bytes, size_t n)
{
	struct str left = {bytes, n};
	return objects_put(o, name, bytes_read, &left);
}

int objects_get(struct objects *o, const char *name, uint64_t offset, uint64_t length, objects_write *write, void *ctx)
{
	int r = name_check(name);
	if (r == 0 && (offset > INT64_MAX || length > INT64_MAX - offset))
		r = objects_fail(-ERANGE, "%s: no object is that long", name);
	return r < 0 ? r : o->ops->get(o, name, offset, length, write, ctx);
}

struct collected {
	struct buf bytes;
	size_t max;
	const char *name;
};

static int bytes_collect(void *ctx, const void *bytes, size_t n)
{
	struct collected *c = ctx;
	if (n > c->max - c->bytes.n)
		return objects_fail(-EFBIG, "%s is larger than %zu bytes", c->name, c->max);
	buf_add(&c->bytes, bytes, n);
	return 0;
}

int objects_get_bytes(struct objects *o, const char *name, size_t max, char **ret_bytes, size_t *ret_n)
{
	struct collected c = {.max = max, .name = name};
	int r = objects_get(o, name, 0, 0, bytes_collect, &c);
	if (r < 0) {
		buf_free(&c.bytes);
		return r;
	}
	*ret_n = c.bytes.n;
	buf_c(&c.bytes, 0);
	*ret_bytes = c.bytes.p;
	return 0;
}

int objects_size(struct objects *o, const char *name, uint64_t *ret_size)
{
	int r = name_check(name);
	return r < 0 ? r : o->ops->size(o, name, ret_size);
}

int objects_list(struct objects *o, const char *prefix, objects_visit *visit, void *ctx)
{
	if (!prefix_valid(str_of(prefix)))
		return objects_fail(-EINVAL, "no object's name begins with \"%.100s\"", prefix);
	return o->ops->list(o, prefix, visit, ctx);
}

int objects_delete(struct objects *o, const char *name)
{
	int r = name_check(name);
	return r < 0 ? r : o->ops->delete (o, name);
}
