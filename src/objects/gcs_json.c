/* The answers of Google Cloud Storage: JSON, and the headers of uploads. */
#include "objects/gcs_json.h"

#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <stdio.h>

static json_t *object_load(struct str json)
{
	json_t *value = json.n ? json_loadb(json.p, json.n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (json_is_object(value))
		return value;
	json_decref(value);
	return NULL;
}

/* Numbers of 64 bits are texts. */
static bool entry_read(const json_t *item, struct object_entry *ret_entry)
{
	struct str updated = json_field(item, "updated");
	*ret_entry = (struct object_entry){.key = json_field(item, "name")};
	return ret_entry->key.n && str_to_u64(json_field(item, "size"), INT64_MAX, &ret_entry->size) &&
	       (!updated.n || clock_parse(updated, &ret_entry->modified_ms));
}

static int page_check(const json_t *page, const json_t *items)
{
	struct object_entry e;
	const json_t *token = json_object_get(page, "nextPageToken"), *item;
	size_t i;
	if (!str_is(json_field(page, "kind"), "storage#objects") || (items && !json_is_array(items)) ||
	    (token && !json_is_string(token)))
		return -EPROTO;
	json_array_foreach(items, i, item)
	{
		if (!entry_read(item, &e))
			return -EPROTO;
	}
	return 0;
}

int gcs_json_page(struct str json, object_entry_visit *visit, void *ctx, struct buf *ret_token)
{
	json_t *page = object_load(json);
	const json_t *items = json_object_get(page, "items");
	struct object_entry e;
	ret_token->n = 0;
	int r = page_check(page, items);
	for (size_t i = 0; r == 0 && i < json_array_size(items); i++)
		r = entry_read(json_array_get(items, i), &e) ? visit(ctx, &e) : -EPROTO;
	if (r == 0)
		buf_str(ret_token, json_field(page, "nextPageToken"));
	json_decref(page);
	return r;
}

static bool is_digits(struct str text)
{
	uint64_t number;
	return str_to_u64(text, INT64_MAX, &number);
}

int gcs_json_object(struct str json, struct gcs_object *ret_object)
{
	json_t *object = object_load(json);
	struct str generation = json_field(object, "generation"), sum = json_field(object, "crc32c");
	struct gcs_object o = {.size = 0};
	int r = str_to_u64(json_field(object, "size"), INT64_MAX, &o.size) && is_digits(generation) ? 0 : -EPROTO;
	if (r == 0) {
		str_copy(generation, o.generation, sizeof o.generation);
		str_copy(sum.n < sizeof o.crc32c ? sum : STR_NONE, o.crc32c, sizeof o.crc32c);
		*ret_object = o;
	}
	json_decref(object);
	return r;
}

static void words_copy(struct str text, char *into, size_t size)
{
	size_t n = text.n < size - 1 ? text.n : size - 1;
	if (n)
		memcpy(into, text.p, n);
	into[n] = 0;
	for (size_t i = 0; i < n; i++)
		if (!into[i])
			into[i] = ' ';
}

void gcs_json_fault(struct str json, struct object_fault *fault)
{
	json_t *answer = object_load(json);
	const json_t *error = json_object_get(answer, "error");
	struct str reason = json_field(json_array_get(json_object_get(error, "errors"), 0), "reason"),
	           message = json_field(error, "message");
	if (!reason.n)
		reason = json_field(error, "status");
	if (str_is(reason, "notFound") && str_starts(message, STR("The specified bucket")))
		reason = STR("bucketNotFound");
	if (reason.n || message.n) {
		words_copy(reason, fault->code, sizeof fault->code);
		words_copy(message, fault->message, sizeof fault->message);
	}
	json_decref(answer);
}

/* "crc32c=n03x6A==,md5=…"; a header for each, too. */
static void hash_take(struct object_answer *a, struct str value)
{
	struct str item, rest = value;
	while (rest.n) {
		str_cut(rest, ',', &item, &rest);
		item = str_trim(item);
		if (str_starts(item, STR("crc32c=")) && item.n - 7 < sizeof a->sum)
			str_copy((struct str){item.p + 7, item.n - 7}, a->sum, sizeof a->sum);
	}
}

/* Of the address only the id is taken: nobody is led elsewhere with a token. */
static void upload_take(struct object_answer *a, struct str url)
{
	struct str path, query, pair;
	str_cut(url, '?', &path, &query);
	while (query.n) {
		str_cut(query, '&', &pair, &query);
		if (!str_starts(pair, STR("upload_id=")))
			continue;
		struct str id = {pair.p + 10, pair.n - 10};
		bool good = id.n && id.n < sizeof a->upload;
		for (size_t i = 0; good && i < id.n; i++)
			good = (unsigned char)id.p[i] > ' ' && (unsigned char)id.p[i] < 0x7f &&
			       !strchr("\"#<>\\", id.p[i]);
		if (good)
			str_copy(id, a->upload, sizeof a->upload);
	}
}

void gcs_header(struct object_answer *a, struct str name, struct str value)
{
	if (str_ieq(name, STR("x-goog-hash")))
		hash_take(a, value);
	else if (str_ieq(name, STR("location")))
		upload_take(a, value);
	else if (str_ieq(name, STR("range")) && str_starts(value, STR("bytes=0-")))
		a->has_kept = str_to_u64((struct str){value.p + 8, value.n - 8}, INT64_MAX - 1, &a->kept);
}
