/* Arithmetic over vectors of 32-bit floats, for vector search: pure code, without the server.
 *
 * Sums are built in a fixed order and without fused operations, so that they are the same to the last bit on every
 * machine: which cell a row is in is written into an index, and is computed again on another host. */
#ifndef STEWARD_MODULE_VECTOR_H
#define STEWARD_MODULE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_MOST 8192         /* dimensions */
#define VECTOR_SQUARE_MIN 1e-30F /* of the length: what is shorter has no direction */
#define VECTOR_MEMBERS_MIN 8u    /* of a sample, that a center is the mean of */

/* How vectors are compared: the higher the score, the nearer. */
enum vector_kind { VECTOR_COSINE = 'c', VECTOR_EUCLIDEAN = 'e', VECTOR_DOT = 'd' };

float vector_dot(const float *a, const float *b, size_t n);
/* cosine: (1 + cos) / 2; euclidean: 1 / (1 + distance); dot product: (1 + dot) / 2. Not finite: they have none. */
double vector_score(enum vector_kind kind, const float *a, const float *b, size_t n);
/* The vector as its place among the centers is computed: of length 1 for the cosine, else itself. `ret_v` can be `v`.
 * False: it has no place, because a number in it is not finite, or too large, or because it has no direction. */
bool vector_prepare(enum vector_kind kind, const float *v, size_t n, float *ret_v);

/* Points that each stand for the vectors which are nearest to them. */
struct vector_centers {
	size_t n, count;
	const float *at;     /* one after the other */
	const float *halves; /* of their squares; see vector_halves() */
};
void vector_halves(const float *at, size_t n, size_t count, float *ret_halves);
/* The center nearest to a prepared vector; 0 where there are none. */
size_t vector_nearest(const struct vector_centers *c, const float *v);
/* How near each center is to a prepared vector: the more the nearer. */
void vector_rank(enum vector_kind kind, const struct vector_centers *c, const float *v, float *ret_near);

/* What vector_train() works with; the caller's, and of these sizes. */
struct vector_training {
	const float *sample; /* prepared vectors, one after the other */
	size_t n, count;
	size_t most;         /* centers */
	uint32_t *order;     /* count */
	uint32_t *assigned;  /* count */
	uint32_t *members;   /* most */
	float *sums;         /* most * n */
	float *halves;       /* most */
	float *centers;      /* most * n: the result */
	void (*pause)(void); /* called every few milliseconds */
};
/* Fills in the centers and gives their number: at most `most`, each the mean of VECTOR_MEMBERS_MIN or more. 0: the
 * sample is too small for any. The same sample has the same centers. */
size_t vector_train(struct vector_training *t);

#endif
