/* See vector_code.h. A copy begins with two numbers, in the machine's own order: what its sum with a query is
 * multiplied by, and half of the square of its length, which distances need.
 *
 * Of signs alone, the vector that has them is only about as the one that they are of; the first number is such that its
 * product with the vector itself is right, as in RaBitQ (Gao and Long, 2024). */
#include "module/vector_code.h"

#include "module/wide.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SHORTEST 1e-30F /* what is shorter is as the center itself */
#define BYTE_MOST 127

struct head {
	float scale, half;
};

bool vector_coding_fits(enum vector_coding coding, size_t n)
{
	return coding == VECTOR_BINARY || (coding == VECTOR_SCALAR && n <= VECTOR_SCALAR_MOST);
}

size_t vector_code_size(enum vector_coding coding, size_t n)
{
	return sizeof(struct head) + (coding == VECTOR_BINARY ? (n + 7) / 8 : n);
}

/* --- copies */

struct way {
	float square, sum, most; /* of its numbers: of their squares, without their signs, the largest */
};

static struct way way_measure(const float *center, const float *v, size_t n)
{
	struct way way = {.square = 0};
	for (size_t i = 0; i < n; i++) {
		float x = fabsf(v[i] - center[i]);
		way.square += x * x;
		way.sum += x;
		way.most = x > way.most ? x : way.most;
	}
	return way;
}

static int8_t byte_of(float x)
{
	float rounded = x < 0 ? x - 0.5F : x + 0.5F;
	return (int8_t)(rounded > BYTE_MOST ? BYTE_MOST : rounded < -BYTE_MOST ? -BYTE_MOST : rounded);
}

static void bytes_write(const float *center, const float *v, size_t n, float by, char *code)
{
	for (size_t i = 0; i < n; i++)
		code[i] = (char)byte_of((v[i] - center[i]) * by);
}

static void bits_write(const float *center, const float *v, size_t n, char *code)
{
	memset(code, 0, (n + 7) / 8);
	for (size_t i = 0; i < n; i++)
		if (v[i] >= center[i])
			code[i / 8] = (char)((unsigned char)code[i / 8] | 1u << i % 8);
}

void vector_encode(enum vector_coding coding, const float *center, const float *v, size_t n, char *ret_code)
{
	struct way way = way_measure(center, v, n);
	struct head head = {.half = way.square / 2};
	bool there = way.most > SHORTEST;
	char *rest = ret_code + sizeof head;
	if (coding == VECTOR_BINARY) {
		head.scale = there ? way.square / way.sum : 0;
		bits_write(center, v, n, rest);
	} else {
		head.scale = there ? way.most / BYTE_MOST : 0;
		bytes_write(center, v, n, there ? BYTE_MOST / way.most : 0, rest);
	}
	memcpy(ret_code, &head, sizeof head);
}

/* --- queries */

/* A number of what copies are multiplied with: for distances, of the way from the center to the query. */
static float number_at(const struct vector_asked *a, const float *center, const float *query, size_t i)
{
	return a->kind == VECTOR_EUCLIDEAN ? query[i] - center[i] : query[i];
}

/* So large that no sum over all dimensions leaves 32 bits. */
static void numbers_make(struct vector_asked *a, const float *center, const float *query)
{
	size_t room = INT32_MAX / ((size_t)(BYTE_MOST + 1) * a->n);
	float most = 0, limit = room > INT16_MAX ? INT16_MAX : (float)(room - 1);
	for (size_t i = 0; i < a->n; i++) {
		float x = fabsf(number_at(a, center, query, i));
		most = x > most ? x : most;
	}
	float by = most > SHORTEST ? limit / most : 0;
	a->scale = by > 0 ? 1 / by : 0;
	for (size_t i = 0; i < a->n; i++) {
		float x = number_at(a, center, query, i) * by;
		a->numbers[i] = (int16_t)(x < 0 ? x - 0.5F : x + 0.5F);
	}
}

/* Each combination of signs differs in one of them from another one before it. */
static void sums_make(struct vector_asked *a, const float *center, const float *query)
{
	a->scale = 1;
	for (size_t from = 0; from < a->n; from += 4) {
		float x[4] = {0}, *sums = a->sums + from * 4;
		for (size_t i = from; i < from + 4 && i < a->n; i++)
			x[i - from] = number_at(a, center, query, i);
		sums[0] = -(x[0] + x[1] + x[2] + x[3]);
		for (unsigned bit = 0; bit < 4; bit++)
			for (unsigned signs = 0; signs < 1u << bit; signs++)
				sums[signs | 1u << bit] = sums[signs] + 2 * x[bit];
	}
}

/* But for distances, all cells are asked the same. */
void vector_ask(struct vector_asked *a, const float *center, const float *query)
{
	bool fresh = a->kind == VECTOR_EUCLIDEAN || !a->made;
	if (fresh && a->coding == VECTOR_BINARY)
		sums_make(a, center, query);
	else if (fresh)
		numbers_make(a, center, query);
	a->made = true;
	a->base = a->kind == VECTOR_EUCLIDEAN ? -way_measure(center, query, a->n).square / 2
	                                      : vector_dot(center, query, a->n);
}

WIDE static int32_t bytes_sum(const int16_t *numbers, const int8_t *bytes, size_t n)
{
	int32_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (int32_t)numbers[i] * (int32_t)bytes[i];
	return sum;
}

/* Two at a time, so that one does not wait for the other. */
static float bits_sum(const float *sums, const unsigned char *bits, size_t n)
{
	float low = 0, high = 0;
	size_t whole = n / 8;
	for (size_t i = 0; i < whole; i++) {
		low += sums[i * 32 + (bits[i] & 15u)];
		high += sums[i * 32 + 16 + (bits[i] >> 4)];
	}
	if (n % 8)
		low += sums[whole * 32 + (bits[whole] & 15u)];
	if (n % 8 > 4)
		high += sums[whole * 32 + 16 + (bits[whole] >> 4)];
	return low + high;
}

float vector_guess(const struct vector_asked *a, const char *code)
{
	struct head head;
	const char *rest = code + sizeof head;
	memcpy(&head, code, sizeof head);
	float sum = a->coding == VECTOR_BINARY ? bits_sum(a->sums, (const unsigned char *)rest, a->n)
	                                       : (float)bytes_sum(a->numbers, (const int8_t *)rest, a->n);
	float near = a->base + head.scale * a->scale * sum - (a->kind == VECTOR_EUCLIDEAN ? head.half : 0);
	return isfinite(near) ? near : -FLT_MAX;
}
