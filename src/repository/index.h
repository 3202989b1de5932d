/* All chunks of the repository, in memory. */
#ifndef STEWARD_REPOSITORY_INDEX_H
#define STEWARD_REPOSITORY_INDEX_H

#include "repository/chunk.h"

#include <pthread.h>
#include <stdatomic.h>

struct pack_known {
	unsigned char id[PACK_ID];
	const struct repo_key *key;
	struct chunk_entry *entries;
	uint32_t count, end; /* end: of its chunks */
	/* The note of its damage that was read last, by its size and time; 0: none was. */
	uint64_t note_size;
	int64_t note_ms;
};
struct chunk_slot {
	uint32_t pack, entry; /* pack 0: free; else its number + 1 */
};
struct chunk_index {
	pthread_rwlock_t lock;
	pthread_mutex_t refreshing;
	struct pack_known *packs;
	size_t count, room;
	struct chunk_slot *slots;
	size_t slot_count, used;
	_Atomic bool loaded;
};
void index_setup(struct chunk_index *x);
void index_free(struct chunk_index *x);
/* Takes the entries. */
void index_add(struct repository *r, const struct repo_key *key, const unsigned char pack[PACK_ID],
               struct chunk_entry *entries, uint32_t count);
/* The key of a pack; NULL: it is not known. */
const struct repo_key *index_key(struct repository *r, const unsigned char pack[PACK_ID]);
/* A chunk did not open: from now on another copy is found, or it is doubted, so that the next writer stores it again.
 * That is noted in the repository. */
void index_distrust(struct repository *r, const struct chunk_place *at);
/* The same of all chunks of a pack that do not end before `length`: it is cut off. */
void index_cut(struct repository *r, const unsigned char pack[PACK_ID], uint64_t length);
/* The same of chunks by their numbers, without the note. */
void index_doubt(struct repository *r, const unsigned char pack[PACK_ID], const uint32_t *numbers, size_t count);
/* Whether the note of a pack's damage was read since it was written; or says nothing, because the pack is not known. */
bool index_knows_note(struct repository *r, const unsigned char pack[PACK_ID], uint64_t size, int64_t modified_ms);
void index_note(struct repository *r, const unsigned char pack[PACK_ID], uint64_t size, int64_t modified_ms);
/* A pack that is whole again: none of its chunks is doubted. Takes the entries. */
void index_trust(struct repository *r, const struct repo_key *key, const unsigned char pack[PACK_ID],
                 struct chunk_entry *entries, uint32_t count);
/* Whether a chunk of the pack is doubted. */
bool index_doubts(struct repository *r, const unsigned char pack[PACK_ID]);
/* As the object store has it now. */
must_check int index_refresh(struct repository *r);
/* For each id that is not that of zeros. */
void index_find(struct repository *r, const unsigned char *ids, size_t count, struct chunk_place *ret);

#endif
