/* The best of many rows. */
#ifndef STEWARD_MODULE_VECTOR_BEST_H
#define STEWARD_MODULE_VECTOR_BEST_H

#include <postgres.h>

#include <storage/itemptr.h>

struct found {
	double score;
	ItemPointerData tid;
};

/* A heap whose first is the worst. */
struct best {
	struct found *heap;
	size_t count, most;
	int64 seen; /* the caller's */
};

struct best *best_make(MemoryContext context, size_t most);
void best_add(struct best *b, struct found one);
/* A copy of its rows, the best first; of two equal ones that first which comes earlier in the table. */
struct found *best_sorted(const struct best *b);

#endif
