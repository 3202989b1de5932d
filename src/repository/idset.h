/* A set of chunk ids, with a number beside each. Zero-initialise, use, id_set_free(). */
#ifndef STEWARD_REPOSITORY_IDSET_H
#define STEWARD_REPOSITORY_IDSET_H

#include "repository/format.h"

#include <stdbool.h>

#define ID_NUMBER_NONE UINT32_MAX

struct id_item {
	unsigned char id[CHUNK_ID];
	uint32_t number; /* ID_NUMBER_NONE at first */
	bool used;
};
struct id_set {
	struct id_item *items;
	size_t count, room;
};

/* The item, which is made where there is none; valid until the next is added. */
struct id_item *id_set_add(struct id_set *s, const unsigned char id[CHUNK_ID]);
/* NULL: there is none. */
struct id_item *id_set_find(const struct id_set *s, const unsigned char id[CHUNK_ID]);
void id_set_free(struct id_set *s);

#endif
