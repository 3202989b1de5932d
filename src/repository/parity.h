/* A second copy of packs: parity/ID has the exclusive or of a few of them, so that any one of these can be made
 * again from the others. What a parity names is there: it is put after its packs, and before one of them is
 * deleted another parity, without it, has taken its place. */
#ifndef STEWARD_REPOSITORY_PARITY_H
#define STEWARD_REPOSITORY_PARITY_H

#include "base/buf.h"
#include "repository/common.h"
#include "repository/format.h"

#include <pthread.h>

struct parity_member {
	unsigned char id[PACK_ID];
	uint32_t size;
	unsigned char hash[HASH_BYTES]; /* SHA-256 of the pack as it was written */
};
struct parity_group {
	unsigned char id[PACK_ID];
	unsigned char hash[HASH_BYTES]; /* of the bytes behind its list */
	struct parity_member members[PARITY_MOST];
	uint32_t count, head; /* head: bytes before the first that is a parity's */
};
struct parity_builder {
	pthread_mutex_t lock;
	struct buf bytes;
	struct parity_member *members; /* room for PARITY_MOST */
	uint32_t count;
	unsigned most; /* 0: none is made */
};
struct parities {
	pthread_mutex_t lock, refreshing, mending;
	struct parity_group *groups;
	size_t count, room;
	unsigned char (*damaged)[PACK_ID]; /* that do not tell what they are of, as of the last look */
	size_t damaged_count;
};

/* `most`: packs that share a parity; 0: none is made. */
void parity_setup(struct parity_builder *b, unsigned most);
void parity_free(struct parity_builder *b);
/* One more pack, which is in the repository; from several threads. The parity is put once it is full. Bytes that
 * were put are added to *stored. */
must_check int parity_add(struct repository *r, struct parity_builder *b, const unsigned char id[PACK_ID],
                          const void *bytes, size_t n, uint64_t *stored);
/* What there is is put, however few they are. */
must_check int parity_flush(struct repository *r, struct parity_builder *b, uint64_t *stored);
/* A group's bytes and members into the builder, or one member that they have out of it again. Its room and its
 * lock are the caller's. */
void parity_join(struct parity_builder *b, const struct parity_group *g, const unsigned char *bytes, size_t n);
void parity_drop(struct parity_builder *b, const unsigned char id[PACK_ID], const unsigned char *bytes, size_t n);
void parity_hash(const void *bytes, size_t n, unsigned char ret_hash[HASH_BYTES]);
bool parity_hash_is(const unsigned char hash[HASH_BYTES], const void *bytes, size_t n);

void parities_setup(struct parities *p);
void parities_free(struct parities *p);
/* The groups as the object store has them now. */
must_check int parities_refresh(struct repository *r);
/* A copy of all groups that are known, on the heap. */
struct parity_group *parities_copy(struct repository *r, size_t *ret_count);
/* The ids of those that did not tell what they are of when they were last looked at, on the heap. */
void parities_damaged_copy(struct repository *r, unsigned char (**ret_ids)[PACK_ID], size_t *ret_count);
/* The group is not there any more. */
void parities_forget(struct repository *r, const unsigned char id[PACK_ID]);
/* What a parity has behind its list, on the heap. -EBADMSG: it is damaged. */
must_check int parity_get(struct repository *r, const struct parity_group *g, unsigned char **ret_bytes, size_t *ret_n);

/* A pack as it was written, on the heap, from the others of its group. -ENOENT: it has none; -EBADMSG: more than
 * this one of them is damaged. */
must_check int pack_rebuild(struct repository *r, const unsigned char id[PACK_ID], char **ret_bytes, size_t *ret_n);
/* The same, and it is put in the place of what is damaged, with its index; where that fails, the log tells. */
must_check int pack_mend(struct repository *r, const unsigned char id[PACK_ID], char **ret_bytes, size_t *ret_n);
/* The same of all packs that a parity names and the index does not know, because their index is lost too. */
must_check int packs_mend_lost(struct repository *r, uint64_t *ret_count);

#endif
