/* What all objects of a repository are made of: sizes, and numbers with their lowest byte first.
 * docs/backup-format.md tells the formats. */
#ifndef STEWARD_REPOSITORY_FORMAT_H
#define STEWARD_REPOSITORY_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define CHUNK_BYTES 32768
#define CHUNK_ID 16
#define PACK_ID 16
#define PACK_NAME ((size_t)2 * PACK_ID)
#define PACK_BYTES ((size_t)16 << 20)
#define PACK_CHUNKS 65536               /* at most */
#define PACK_LONGEST ((size_t)20 << 20) /* with its index */
#define PARITY_MOST 16                  /* packs that share one at most */
#define PACK_HEADER 32
#define PACK_TRAILER 8
#define TAG_BYTES 16
#define NONCE_BYTES 12
#define HASH_BYTES 32
#define BATCH_CHUNKS 32 /* that are looked up together */
#define BATCH_BYTES ((size_t)BATCH_CHUNKS * CHUNK_BYTES)
#define OBJECT_NAME 512
#define MANIFEST_MAX ((size_t)4 << 30)

static inline void put_u32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static inline void put_u64(unsigned char *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static inline uint32_t get_u32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t get_u64(const unsigned char *p)
{
	return (uint64_t)get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

#endif
