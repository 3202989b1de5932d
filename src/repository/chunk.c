/* Chunks: parts of files, each known by the HMAC of its content. A chunk's nonce is its number in its pack, whose key
 * is used for that pack only; what is authenticated with it are its id and its length. */
#include "repository/chunk.h"

#include "repository/common.h"
#include "repository/crypt.h"
#include "repository/format.h"
#include "repository/keys.h"
#include "repository/pack.h"

#include <errno.h>
#include <zstd.h>

/* Entries of an index repeat in pieces of five bytes, which level 1 does not look for: they take a third less room, at
 * no more of the processor. */
#define LEVEL 2

const unsigned char chunk_zero_id[CHUNK_ID];

bool chunk_is_zero(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

bool chunk_id_is_zero(const unsigned char id[CHUNK_ID])
{
	return memcmp(id, chunk_zero_id, CHUNK_ID) == 0;
}

void chunk_id(const struct repo_key *k, const void *bytes, size_t n, unsigned char ret_id[CHUNK_ID])
{
	unsigned char mac[HASH_BYTES];
	crypt_mac(k->ids, bytes, n, mac);
	memcpy(ret_id, mac, CHUNK_ID);
	if (chunk_id_is_zero(ret_id)) /* means zeros */
		ret_id[0] = 1;
}

static struct str chunk_aad(const unsigned char *id, uint32_t plain, unsigned char buf[CHUNK_ID + 4])
{
	memcpy(buf, id, CHUNK_ID);
	put_u32(buf + CHUNK_ID, plain);
	return (struct str){(const char *)buf, CHUNK_ID + 4};
}

void chunk_seal(const unsigned char pack_key[REPO_KEY_BYTES], uint32_t number, struct chunk_entry *e, const void *bytes,
                size_t n, unsigned char *out)
{
	unsigned char packed[CHUNK_BYTES], nonce[NONCE_BYTES] = {0}, aad[CHUNK_ID + 4];
	size_t stored = crypt_compress(LEVEL, bytes, n, packed, n < CHUNK_BYTES ? n : CHUNK_BYTES);
	e->plain = (uint32_t)n | (stored && stored < n ? CHUNK_PACKED : 0);
	if (e->plain & CHUNK_PACKED)
		bytes = packed;
	else
		stored = n;
	put_u32(nonce, number);
	crypt_seal(pack_key, nonce, chunk_aad(e->id, e->plain, aad), bytes, stored, out);
	e->stored = (uint32_t)(stored + TAG_BYTES);
}

int chunk_open(const unsigned char pack_key[REPO_KEY_BYTES], const unsigned char id[CHUNK_ID],
               const struct chunk_place *at, const unsigned char *stored, unsigned char *out)
{
	unsigned char packed[CHUNK_BYTES], nonce[NONCE_BYTES] = {0}, aad[CHUNK_ID + 4];
	bool expand = at->plain & CHUNK_PACKED;
	size_t plain = at->plain & ~CHUNK_PACKED;
	if (at->stored < TAG_BYTES || at->stored > CHUNK_BYTES + TAG_BYTES || plain > CHUNK_BYTES ||
	    (!expand && at->stored != plain + TAG_BYTES))
		return -EBADMSG;
	put_u32(nonce, at->number);
	size_t n = at->stored - TAG_BYTES;
	int result = crypt_open(pack_key, nonce, chunk_aad(id, at->plain, aad), stored, n, expand ? packed : out);
	return result < 0 || !expand ? result : crypt_expand(packed, n, out, plain);
}
