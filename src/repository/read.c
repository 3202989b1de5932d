/* Reading snapshots: each chunk is authenticated as it is opened, each file's CRC-32C compared at its end. Chunks that
 * lie beside each other in a pack are fetched together. A pack that a sweep has just written anew is found in its new
 * place. */
#include "repository/read.h"

#include "base/arena.h"
#include "base/crc32c.h"
#include "base/pace.h"
#include "repository/chunk.h"
#include "repository/common.h"
#include "repository/format.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/manifest.h"
#include "repository/pack.h"
#include "repository/parity.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define WINDOW_BYTES ((size_t)2 << 20)
#define WINDOW_LEAST ((size_t)256 << 10) /* read at once: small files lie beside each other */
#define TRIES 3

void reader_setup(struct chunk_reader *rd, struct repository *r)
{
	*rd = (struct chunk_reader){.r = r, .window = must_malloc(WINDOW_BYTES), .batch = must_malloc(BATCH_BYTES)};
}

void reader_free(struct chunk_reader *rd)
{
	free(rd->window);
	free(rd->whole);
	free(rd->batch);
	OPENSSL_cleanse(rd->key, sizeof rd->key);
}

static int window_write(void *ctx, const void *bytes, size_t n)
{
	struct chunk_reader *rd = ctx;
	if (n > WINDOW_BYTES - rd->window_n)
		return -EBADMSG;
	memcpy(rd->window + rd->window_n, bytes, n);
	rd->window_n += n;
	return 0;
}

static bool window_has(const struct chunk_reader *rd, const struct chunk_place *at)
{
	return rd->window_set && memcmp(rd->window_pack, at->pack, PACK_ID) == 0 && at->offset >= rd->window_at &&
	       (uint64_t)at->offset + at->stored <= (uint64_t)rd->window_at + rd->window_n;
}

/* How far to read for the first of these places: up to the last that lies in the same stretch of the pack. */
static size_t window_length(const struct chunk_place *places, size_t count)
{
	uint64_t from = places->offset, to = from + places->stored;
	for (size_t i = 1; i < count; i++) {
		const struct chunk_place *p = &places[i];
		uint64_t end = (uint64_t)p->offset + p->stored;
		if (p->found && memcmp(p->pack, places->pack, PACK_ID) == 0 && p->offset >= from && end > to &&
		    end - from <= WINDOW_BYTES && p->offset - to < WINDOW_LEAST)
			to = end;
	}
	if (to - from < WINDOW_LEAST)
		to = from + WINDOW_LEAST;
	return (size_t)((to < places->end ? to : places->end) - from);
}

static int window_fill(struct chunk_reader *rd, const struct chunk_place *places, size_t count)
{
	char name[64], place[OBJECT_NAME];
	pack_name(places->pack, "packs", name);
	rd->window_set = false;
	rd->window_n = 0;
	rd->window_at = places->offset;
	memcpy(rd->window_pack, places->pack, PACK_ID);
	int result = objects_get(rd->r->objects, object_place(rd->r, name, place), places->offset,
	                         window_length(places, count), window_write, rd);
	if (result == -ERANGE || (result == 0 && rd->window_n < places->stored)) {
		index_cut(rd->r, places->pack, places->offset + rd->window_n);
		return repo_fail(-EBADMSG, "%s: is cut off", place);
	}
	if (result < 0)
		return repo_fail_object(result, place);
	rd->window_set = true;
	return 0;
}

static int chunk_fetch(struct chunk_reader *rd, const unsigned char id[CHUNK_ID], const struct chunk_place *places,
                       size_t count, unsigned char *out)
{
	int result = window_has(rd, places) ? 0 : window_fill(rd, places, count);
	if (result < 0)
		return result;
	if (!rd->key_set || memcmp(rd->key_pack, places->pack, PACK_ID) != 0) {
		pack_key(places->key, places->pack, rd->key);
		memcpy(rd->key_pack, places->pack, PACK_ID);
		rd->key_set = true;
	}
	result = chunk_open(rd->key, id, places, rd->window + (places->offset - rd->window_at), out);
	if (result < 0) {
		char name[64];
		pack_name(places->pack, "packs", name);
		rd->window_set = false;
		index_distrust(rd->r, places);
		return repo_fail(result, "%s: chunk %u: its bytes are not what was written: the pack is damaged", name,
		                 places->number);
	}
	return 0;
}

/* Whether the pack that was mended last has it. */
static bool whole_has(const struct chunk_reader *rd, const struct chunk_place *at)
{
	return rd->whole && memcmp(rd->whole_pack, at->pack, PACK_ID) == 0 &&
	       (uint64_t)at->offset + at->stored <= rd->whole_n;
}

static int whole_open(struct chunk_reader *rd, const unsigned char id[CHUNK_ID], const struct chunk_place *at,
                      unsigned char *out)
{
	unsigned char key[REPO_KEY_BYTES];
	pack_key(at->key, at->pack, key);
	int result = chunk_open(key, id, at, (const unsigned char *)rd->whole + at->offset, out);
	OPENSSL_cleanse(key, sizeof key);
	return result;
}

/* The pack is damaged, or not there: it is made again from its second copy. Another thread may just have done so. */
static int chunk_mend(struct chunk_reader *rd, const unsigned char id[CHUNK_ID], const struct chunk_place *at,
                      unsigned char *out)
{
	struct chunk_place again = *at;
	struct parities *p = &rd->r->parities;
	again.doubted = true; /* it was noted */
	pthread_mutex_lock(&p->mending);
	rd->window_set = false;
	int result = chunk_fetch(rd, id, &again, 1, out);
	if (result == -EBADMSG || result == -ENOENT) {
		free(rd->whole);
		rd->whole = NULL;
		memcpy(rd->whole_pack, at->pack, PACK_ID);
		result = pack_mend(rd->r, at->pack, &rd->whole, &rd->whole_n);
		if (result == 0)
			result = whole_has(rd, at) ? whole_open(rd, id, at, out) : -EBADMSG;
	}
	pthread_mutex_unlock(&p->mending);
	return result;
}

/* What cannot be mended has the words of what was found first. */
static int chunk_get(struct chunk_reader *rd, const unsigned char id[CHUNK_ID], const struct chunk_place *places,
                     size_t count, unsigned char *out)
{
	char why[512];
	if (whole_has(rd, places) && whole_open(rd, id, places, out) == 0)
		return 0;
	int result = chunk_fetch(rd, id, places, count, out);
	if (result != -EBADMSG && result != -ENOENT)
		return result;
	snprintf(why, sizeof why, "%s", repository_why());
	int mended = chunk_mend(rd, id, places, out);
	return mended == 0 ? 0 : repo_fail(result, "%s", why);
}

size_t reader_batch_bytes(const struct manifest_file *f, size_t first)
{
	uint64_t left = f->size - (uint64_t)first * CHUNK_BYTES;
	return left < BATCH_BYTES ? (size_t)left : BATCH_BYTES;
}

static int batch_try(struct chunk_reader *rd, const struct manifest_file *f, size_t first, unsigned char *out,
                     uint32_t *ret_zeros)
{
	struct chunk_place places[BATCH_CHUNKS];
	size_t n = reader_batch_bytes(f, first), count = (n + CHUNK_BYTES - 1) / CHUNK_BYTES;
	const unsigned char *ids = f->ids + first * CHUNK_ID;
	index_find(rd->r, ids, count, places);
	*ret_zeros = 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = i * CHUNK_BYTES, some = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;
		const unsigned char *id = ids + i * CHUNK_ID;
		if (chunk_id_is_zero(id)) {
			memset(out + at, 0, some);
			*ret_zeros |= (uint32_t)1 << i;
			continue;
		}
		if (!places[i].found)
			return repo_fail(-ENOENT, "%s: its chunk %zu is in no pack", f->path, first + i);
		if ((places[i].plain & ~CHUNK_PACKED) != some)
			return repo_fail(-EBADMSG, "%s: its chunk %zu is of another length", f->path, first + i);
		int result = chunk_get(rd, id, &places[i], count - i, out + at);
		if (result < 0)
			return result;
	}
	return 0;
}

/* A chunk or a pack that is not there may have been moved by a sweep; of one that is damaged there may be another copy,
 * which is tried as long as there are any. */
int reader_batch(struct chunk_reader *rd, const struct manifest_file *f, size_t first, unsigned char *out,
                 uint32_t *ret_zeros)
{
	pace_take(rd->r->pace, str_of(rd->r->group), reader_batch_bytes(f, first));
	char why[512] = ""; /* as long as they can be: words that were cut never compare equal */
	int result = batch_try(rd, f, first, out, ret_zeros);
	while (result == -EBADMSG && strcmp(why, repository_why()) != 0) {
		snprintf(why, sizeof why, "%s", repository_why());
		result = batch_try(rd, f, first, out, ret_zeros);
	}
	if (result == -ENOENT && why[0])
		return repo_fail(-EBADMSG, "%s", why);
	for (int i = 1; i < TRIES && result == -ENOENT; i++) {
		uint64_t mended = 0;
		result = index_refresh(rd->r);
		if (result == 0 && i == TRIES - 1) /* a pack may be gone together with its index */
			result = packs_mend_lost(rd->r, &mended);
		if (result == 0)
			result = batch_try(rd, f, first, out, ret_zeros);
	}
	return result == -ENOENT ? -EBADMSG : result;
}

int reader_sum_compare(const struct manifest_file *f, uint32_t sum)
{
	if (f->summed && sum != f->sum)
		return repo_fail(-EBADMSG, "%s: its checksum is not that of the file that was stored", f->path);
	return 0;
}

int reader_file(struct chunk_reader *rd, const struct manifest_file *f, reader_sink *sink, void *ctx)
{
	uint32_t sum = 0;
	for (size_t first = 0; first < f->id_count; first += BATCH_CHUNKS) {
		size_t n = reader_batch_bytes(f, first);
		uint32_t zeros;
		int result = reader_batch(rd, f, first, rd->batch, &zeros);
		if (result < 0)
			return result;
		sum = crc32c(sum, rd->batch, n);
		result = sink(ctx, (uint64_t)first * CHUNK_BYTES, rd->batch, n, zeros);
		if (result < 0)
			return result;
	}
	return reader_sum_compare(f, sum);
}

int reader_chunk(struct chunk_reader *rd, const unsigned char id[CHUNK_ID], unsigned char *out, size_t *ret_n)
{
	struct chunk_place at;
	int result = -ENOENT;
	for (int i = 0; i < TRIES && result == -ENOENT; i++) {
		result = i ? index_refresh(rd->r) : 0;
		if (result < 0)
			break;
		index_find(rd->r, id, 1, &at);
		result = at.found ? chunk_get(rd, id, &at, 1, out) : repo_fail(-ENOENT, "a chunk is in no pack");
	}
	if (result < 0)
		return result == -ENOENT ? -EBADMSG : result;
	*ret_n = at.plain & ~CHUNK_PACKED;
	return 0;
}
