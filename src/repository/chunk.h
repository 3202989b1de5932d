/* A chunk: 32 KB of a file at most, found by what is in it. */
#ifndef STEWARD_REPOSITORY_CHUNK_H
#define STEWARD_REPOSITORY_CHUNK_H

#include "repository/format.h"
#include "repository/keys.h"

struct chunk_entry { /* of a pack's index, as it is stored */
	unsigned char id[CHUNK_ID];
	uint32_t offset; /* with CHUNK_DAMAGED, in memory only: it did not open */
	uint32_t stored; /* with its tag */
	uint32_t plain;  /* CHUNK_PACKED: it is compressed */
};
#define CHUNK_PACKED 0x80000000u
#define CHUNK_DAMAGED (UINT32_C(1) << 31) /* no pack is that long */
#define CHUNK_ENTRY 28
struct chunk_place {
	unsigned char pack[PACK_ID];
	const struct repo_key *key;                  /* of the pack */
	uint32_t number, offset, stored, plain, end; /* end: of the pack's chunks */
	bool found, doubted;                         /* doubted: it did not open once, and there is no other copy */
};
extern const unsigned char chunk_zero_id[CHUNK_ID];
bool chunk_is_zero(const void *bytes, size_t n);
bool chunk_id_is_zero(const unsigned char id[CHUNK_ID]);
void chunk_id(const struct repo_key *k, const void *bytes, size_t n, unsigned char ret_id[CHUNK_ID]);
/* `out` takes CHUNK_BYTES + TAG_BYTES; fills stored and plain of the entry, which has its id. */
void chunk_seal(const unsigned char pack_key[REPO_KEY_BYTES], uint32_t number, struct chunk_entry *e, const void *bytes,
                size_t n, unsigned char *out);
/* `out` takes CHUNK_BYTES. */
must_check int chunk_open(const unsigned char pack_key[REPO_KEY_BYTES], const unsigned char id[CHUNK_ID],
                          const struct chunk_place *at, const unsigned char *stored, unsigned char *out);

#endif
