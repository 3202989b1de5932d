/* Packs: chunks that are put together, and the list of them. */
#ifndef STEWARD_REPOSITORY_PACK_H
#define STEWARD_REPOSITORY_PACK_H

#include "base/buf.h"
#include "repository/chunk.h"

struct parity_builder; /* parity.h */

struct pack_builder {
	const struct repo_key *of;
	unsigned char id[PACK_ID], key[REPO_KEY_BYTES];
	struct buf bytes;
	struct chunk_entry *entries;
	uint32_t count, room;
	struct parity_builder *parity; /* of what is put */
};
void pack_key(const struct repo_key *k, const unsigned char id[PACK_ID], unsigned char ret_key[REPO_KEY_BYTES]);
/* All chunks of a pack, and their ids, are of one key. */
void pack_add(const struct repo_key *k, struct pack_builder *b, const unsigned char id[CHUNK_ID], const void *bytes,
              size_t n);
bool pack_is_full(const struct pack_builder *b);
/* Puts what there is, the index after the pack, and tells the index in memory; then the builder is empty. */
must_check int pack_flush(struct repository *r, struct pack_builder *b, uint64_t *ret_stored);
void pack_builder_free(struct pack_builder *b);
void pack_name(const unsigned char id[PACK_ID], const char *folder, char ret_name[64]);
must_check bool pack_name_parse(const char *text, unsigned char ret_id[PACK_ID]);
/* Entries on the heap. */
must_check int pack_index_get(struct repository *r, const unsigned char id[PACK_ID], struct chunk_entry **ret_entries,
                              uint32_t *ret_count, const struct repo_key **ret_key);
must_check int pack_footer_get(struct repository *r, const unsigned char id[PACK_ID], struct chunk_entry **ret_entries,
                               uint32_t *ret_count, const struct repo_key **ret_key);
must_check int pack_index_parse(const unsigned char *plain, size_t n, struct chunk_entry **ret_entries,
                                uint32_t *ret_count);
/* Puts the index object of a pack that has lost it. */
must_check int pack_index_put(struct repository *r, const struct repo_key *k, const unsigned char id[PACK_ID],
                              const struct chunk_entry *entries, uint32_t count, uint64_t *ret_stored);
/* The whole pack on the heap, its header, entries and index compared with its name; -EBADMSG. */
must_check int pack_get(struct repository *r, const unsigned char id[PACK_ID], char **ret_bytes, size_t *ret_n,
                        struct chunk_entry **ret_entries, uint32_t *ret_count, const struct repo_key **ret_key);

#endif
