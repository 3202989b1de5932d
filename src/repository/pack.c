/* Packs: about 16 MB of chunks in one object, built in memory.
 *
 *   0  4  "SWB1"
 *   4  1  'P'
 *   5 11  0
 *  16 16  the pack's id, random; its name is the same in hexadecimal digits
 *  32     chunks, one after the other, each with its tag
 *         the index: the bytes of the object index/PACK
 *   -8 4  the index's length
 *   -4 4  "SWBE"
 *
 * The index lists the chunks in their order; a chunk's place in it is its nonce. */
#include "repository/pack.h"

#include "base/arena.h"
#include "base/id.h"
#include "repository/chunk.h"
#include "repository/common.h"
#include "repository/crypt.h"
#include "repository/format.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/parity.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC "SWB1"
#define END "SWBE"
#define ID_AT 16
#define INDEX_MAX ((size_t)PACK_CHUNKS * CHUNK_ENTRY)
#define PACK_MAX (PACK_BYTES + CHUNK_BYTES + TAG_BYTES + INDEX_MAX + PACK_HEADER + PACK_TRAILER + SEALED_EXTRA)
_Static_assert(PACK_MAX <= PACK_LONGEST, "a parity takes any pack");

void pack_key(const struct repo_key *k, const unsigned char id[PACK_ID], unsigned char ret_key[REPO_KEY_BYTES])
{
	crypt_derive(k->data, id, PACK_ID, "pack", ret_key);
}

void pack_name(const unsigned char id[PACK_ID], const char *folder, char ret_name[64])
{
	char hex[PACK_NAME + 1];
	hex_encode(id, PACK_ID, hex);
	snprintf(ret_name, 64, "%s/%s", folder, hex);
}

bool pack_name_parse(const char *text, unsigned char ret_id[PACK_ID])
{
	if (strlen(text) != PACK_NAME)
		return false;
	for (size_t i = 0; i < PACK_ID; i++) {
		int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		ret_id[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

static void header_make(const unsigned char id[PACK_ID], unsigned char ret_header[PACK_HEADER])
{
	memset(ret_header, 0, PACK_HEADER);
	memcpy(ret_header, MAGIC, 4);
	ret_header[4] = 'P';
	memcpy(ret_header + ID_AT, id, PACK_ID);
}

static void builder_begin(const struct repo_key *k, struct pack_builder *b)
{
	unsigned char header[PACK_HEADER];
	b->of = k;
	random_bytes(b->id, PACK_ID);
	pack_key(k, b->id, b->key);
	header_make(b->id, header);
	/* Once, so that the bytes are never moved; pages that are not written to cost nothing. */
	buf_reserve(&b->bytes, PACK_MAX);
	buf_add(&b->bytes, header, sizeof header);
}

void pack_add(const struct repo_key *k, struct pack_builder *b, const unsigned char id[CHUNK_ID], const void *bytes,
              size_t n)
{
	if (!b->bytes.n)
		builder_begin(k, b);
	if (b->count == b->room) {
		b->room = b->room ? b->room * 2 : 1024;
		b->entries = must_realloc(b->entries, b->room * sizeof(*b->entries));
	}
	struct chunk_entry *e = &b->entries[b->count];
	memcpy(e->id, id, CHUNK_ID);
	e->offset = (uint32_t)b->bytes.n;
	chunk_seal(b->key, b->count, e, bytes, n, (unsigned char *)b->bytes.p + b->bytes.n);
	b->bytes.n += e->stored;
	b->count++;
}

bool pack_is_full(const struct pack_builder *b)
{
	return b->bytes.n >= PACK_BYTES || b->count >= PACK_CHUNKS;
}

void pack_builder_free(struct pack_builder *b)
{
	buf_free(&b->bytes);
	free(b->entries);
	OPENSSL_cleanse(b->key, sizeof b->key);
	*b = (struct pack_builder){0};
}

static void index_write(const struct repository *r, const struct repo_key *k, const unsigned char id[PACK_ID],
                        const struct chunk_entry *entries, uint32_t count, struct buf *out)
{
	char name[64], bound[OBJECT_NAME];
	unsigned char *plain = must_malloc((size_t)count * CHUNK_ENTRY + 1);
	for (uint32_t i = 0; i < count; i++) {
		unsigned char *p = plain + (size_t)i * CHUNK_ENTRY;
		memcpy(p, entries[i].id, CHUNK_ID);
		put_u32(p + CHUNK_ID, entries[i].offset);
		put_u32(p + CHUNK_ID + 4, entries[i].stored);
		put_u32(p + CHUNK_ID + 8, entries[i].plain);
	}
	pack_name(id, "index", name);
	snprintf(bound, sizeof bound, "%s/%s", r->group, name);
	sealed_make(k, SEALED_INDEX, bound, plain, (size_t)count * CHUNK_ENTRY, out);
	free(plain);
}

/* Entries follow each other without gaps, so that no byte of a pack is outside of what is authenticated. */
int pack_index_parse(const unsigned char *plain, size_t n, struct chunk_entry **ret_entries, uint32_t *ret_count)
{
	uint64_t at = PACK_HEADER;
	if (n % CHUNK_ENTRY || n > INDEX_MAX)
		return -EBADMSG;
	struct chunk_entry *entries = must_malloc(n / CHUNK_ENTRY * sizeof(*entries) + 1);
	for (size_t i = 0; i < n / CHUNK_ENTRY; i++) {
		const unsigned char *p = plain + i * CHUNK_ENTRY;
		struct chunk_entry *e = &entries[i];
		memcpy(e->id, p, CHUNK_ID);
		e->offset = get_u32(p + CHUNK_ID);
		e->stored = get_u32(p + CHUNK_ID + 4);
		e->plain = get_u32(p + CHUNK_ID + 8);
		if (e->offset != at || e->stored < TAG_BYTES || e->stored > CHUNK_BYTES + TAG_BYTES ||
		    (e->plain & ~CHUNK_PACKED) > CHUNK_BYTES) {
			free(entries);
			return -EBADMSG;
		}
		at += e->stored;
	}
	*ret_entries = entries;
	*ret_count = (uint32_t)(n / CHUNK_ENTRY);
	return 0;
}

static int entries_of(const char *name, char *plain, size_t n, struct chunk_entry **ret_entries, uint32_t *ret_count)
{
	int result = pack_index_parse((const unsigned char *)plain, n, ret_entries, ret_count);
	free(plain);
	return result < 0 ? repo_fail(result, "%s: lists chunks that cannot be", name) : 0;
}

int pack_index_get(struct repository *r, const unsigned char id[PACK_ID], struct chunk_entry **ret_entries,
                   uint32_t *ret_count, const struct repo_key **ret_key)
{
	char name[64], *plain = NULL;
	size_t n = 0;
	pack_name(id, "index", name);
	int result = object_get_key(r, SEALED_INDEX, name, INDEX_MAX, &plain, &n, ret_key);
	return result < 0 ? result : entries_of(name, plain, n, ret_entries, ret_count);
}

int pack_index_put(struct repository *r, const struct repo_key *k, const unsigned char id[PACK_ID],
                   const struct chunk_entry *entries, uint32_t count, uint64_t *ret_stored)
{
	struct buf out = {0};
	char name[64], place[OBJECT_NAME];
	pack_name(id, "index", name);
	index_write(r, k, id, entries, count, &out);
	int result = objects_put_bytes(r->objects, object_place(r, name, place), out.p, out.n);
	*ret_stored = out.n;
	buf_free(&out);
	return result < 0 ? repo_fail_object(result, place) : 0;
}

int pack_flush(struct repository *r, struct pack_builder *b, uint64_t *ret_stored)
{
	char name[64], place[OBJECT_NAME];
	unsigned char trailer[PACK_TRAILER];
	*ret_stored = 0;
	if (!b->count)
		return 0;
	size_t index_at = b->bytes.n;
	index_write(r, b->of, b->id, b->entries, b->count, &b->bytes);
	size_t index_n = b->bytes.n - index_at;
	put_u32(trailer, (uint32_t)index_n);
	memcpy(trailer + 4, END, 4);
	buf_add(&b->bytes, trailer, sizeof trailer);
	pack_name(b->id, "packs", name);
	int result = objects_put_bytes(r->objects, object_place(r, name, place), b->bytes.p, b->bytes.n);
	*ret_stored = b->bytes.n + index_n;
	if (result == 0) {
		pack_name(b->id, "index", name);
		result = objects_put_bytes(r->objects, object_place(r, name, place), b->bytes.p + index_at, index_n);
	}
	if (result < 0)
		(void)!repo_fail_object(result, place);
	if (result == 0) {
		index_add(r, b->of, b->id, b->entries, b->count);
		b->entries = NULL;
		b->room = 0;
		if (b->parity)
			result = parity_add(r, b->parity, b->id, b->bytes.p, b->bytes.n, ret_stored);
	}
	b->bytes.n = 0;
	b->count = 0;
	return result;
}

/* From the bytes at the end of a pack: its index. */
static int footer_parse(struct repository *r, const unsigned char id[PACK_ID], const char *bytes, size_t n,
                        struct chunk_entry **ret_entries, uint32_t *ret_count, size_t *ret_index_n,
                        const struct repo_key **ret_key)
{
	char name[64], bound[OBJECT_NAME], *plain = NULL;
	size_t plain_n = 0;
	pack_name(id, "packs", name);
	const unsigned char *trailer = (const unsigned char *)bytes + n - PACK_TRAILER;
	if (n < PACK_TRAILER + SEALED_LEAST || memcmp(trailer + 4, END, 4) != 0 ||
	    get_u32(trailer) > n - PACK_TRAILER || get_u32(trailer) < SEALED_LEAST)
		return repo_fail(-EBADMSG, "%s: is damaged or cut off: it does not end as it should", name);
	size_t index_n = get_u32(trailer);
	char index[64];
	pack_name(id, "index", index);
	snprintf(bound, sizeof bound, "%s/%s", r->group, index);
	int result = sealed_open_any(r, SEALED_INDEX, bound, bytes + n - PACK_TRAILER - index_n, index_n, INDEX_MAX,
	                             &plain, &plain_n, ret_key);
	if (result == -EBADMSG)
		return repo_fail(result, "%s: the index at its end is damaged", name);
	if (result < 0)
		return result;
	*ret_index_n = index_n;
	return entries_of(name, plain, plain_n, ret_entries, ret_count);
}

struct tail {
	char *bytes;
	size_t n, room;
};

static int tail_write(void *ctx, const void *bytes, size_t n)
{
	struct tail *t = ctx;
	if (n > t->room - t->n)
		return -EBADMSG;
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
	return 0;
}

int pack_footer_get(struct repository *r, const unsigned char id[PACK_ID], struct chunk_entry **ret_entries,
                    uint32_t *ret_count, const struct repo_key **ret_key)
{
	char name[64], place[OBJECT_NAME];
	uint64_t size = 0;
	size_t index_n;
	pack_name(id, "packs", name);
	int result = object_size(r, name, &size);
	if (result < 0)
		return result;
	struct tail t = {.room = size < INDEX_MAX + SEALED_EXTRA + PACK_TRAILER
	                                 ? (size_t)size
	                                 : INDEX_MAX + SEALED_EXTRA + PACK_TRAILER};
	if (t.room < PACK_TRAILER)
		return repo_fail(-EBADMSG, "%s: is cut off", name);
	t.bytes = must_malloc(t.room);
	result = objects_get(r->objects, object_place(r, name, place), size - t.room, t.room, tail_write, &t);
	if (result < 0)
		result = repo_fail_object(result, place);
	else
		result = footer_parse(r, id, t.bytes, t.n, ret_entries, ret_count, &index_n, ret_key);
	free(t.bytes);
	return result;
}

int pack_get(struct repository *r, const unsigned char id[PACK_ID], char **ret_bytes, size_t *ret_n,
             struct chunk_entry **ret_entries, uint32_t *ret_count, const struct repo_key **ret_key)
{
	char name[64], place[OBJECT_NAME], *bytes = NULL;
	unsigned char header[PACK_HEADER];
	size_t n = 0, index_n = 0;
	pack_name(id, "packs", name);
	int result = objects_get_bytes(r->objects, object_place(r, name, place), PACK_MAX, &bytes, &n);
	if (result < 0)
		return result == -EFBIG ? repo_fail(-EBADMSG, "%s: is longer than it can be", place)
		                        : repo_fail_object(result, place);
	header_make(id, header);
	if (n < PACK_HEADER + PACK_TRAILER || memcmp(bytes, header, PACK_HEADER) != 0)
		result = repo_fail(-EBADMSG, "%s: is damaged, or another pack: it does not begin as it should", name);
	else
		result = footer_parse(r, id, bytes, n, ret_entries, ret_count, &index_n, ret_key);
	if (result == 0) {
		const struct chunk_entry *last = *ret_count ? &(*ret_entries)[*ret_count - 1] : NULL;
		size_t end = last ? (size_t)last->offset + last->stored : PACK_HEADER;
		if (end + index_n + PACK_TRAILER != n) {
			free(*ret_entries);
			result = repo_fail(-EBADMSG, "%s: is damaged: its length is not what its index says", name);
		}
	}
	if (result < 0) {
		free(bytes);
		return result;
	}
	*ret_bytes = bytes;
	*ret_n = n;
	return 0;
}
