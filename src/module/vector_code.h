/* Copies of vectors in few bytes, by which it is found out which vectors may be near a query before these are read and
 * compared: pure code, without the server.
 *
 * A copy is of the way from the center of the vector's cell to the vector, which is short where cells are many: a
 * number of 8 bits for each dimension, or its sign alone. Copies are written into an index, so they are the same on
 * every machine, as vector.h says of sums. */
#ifndef STEWARD_MODULE_VECTOR_CODE_H
#define STEWARD_MODULE_VECTOR_CODE_H

#include "module/vector.h"

enum vector_coding { VECTOR_SCALAR = 's', VECTOR_BINARY = 'b' };

/* More dimensions of 8 bits each do not fit into a tuple of a B-tree, which has at most 2,704 bytes. */
#define VECTOR_SCALAR_MOST 2560

bool vector_coding_fits(enum vector_coding coding, size_t n);
size_t vector_code_size(enum vector_coding coding, size_t n);
/* `v` is prepared, as the center's members are. */
void vector_encode(enum vector_coding coding, const float *center, const float *v, size_t n, char *ret_code);

/* A query as it is compared with the copies of one cell, and then of others. */
struct vector_asked {
	enum vector_kind kind;
	enum vector_coding coding;
	size_t n;
	bool made;         /* false at first */
	float base, scale; /* how near the center is; what the sums below are multiplied by */
	int16_t *numbers;  /* the caller's, and of this size: n */
	float *sums;       /* VECTOR_SUMS(n): of four dimensions each, for each combination of their signs */
};
#define VECTOR_SUMS(n) (((n) + 3) / 4 * 16)

/* `query` is prepared; the first three fields, and the rooms for others, are filled in. */
void vector_ask(struct vector_asked *a, const float *center, const float *query);
/* About how near a copy's vector is: the more the nearer, in all cells. Always finite. */
float vector_guess(const struct vector_asked *a, const char *code);

#endif
