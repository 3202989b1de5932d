/* Copies of vectors in few bytes: how near they say that their vectors are, against the vectors themselves. */
#include "module/vector_code.h"

#include "check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH_MOST ((size_t)200)
#define COUNT ((size_t)400)

static float center[WIDTH_MOST], query[WIDTH_MOST], vectors[COUNT][WIDTH_MOST];
static int16_t numbers[WIDTH_MOST];
static float sums[VECTOR_SUMS(WIDTH_MOST)];

static float some_number(void)
{
	static unsigned state = 11;
	state = state * 1103515245u + 12345u;
	return (float)(state >> 16 & 0x7fff) / 0x8000 - 0.5F;
}

static void vectors_make(size_t n)
{
	for (size_t k = 0; k < n; k++) {
		center[k] = 3 * some_number();
		query[k] = center[k] + some_number();
	}
	for (size_t i = 0; i < COUNT; i++)
		for (size_t k = 0; k < n; k++)
			vectors[i][k] = center[k] + some_number();
}

/* What is guessed: for distances the negative half of the square, else the product. */
static double near_exactly(enum vector_kind kind, const float *v, size_t n)
{
	double sum = 0;
	for (size_t k = 0; k < n; k++) {
		double apart = (double)v[k] - (double)query[k];
		sum += kind == VECTOR_EUCLIDEAN ? -apart * apart / 2 : (double)v[k] * (double)query[k];
	}
	return sum;
}

static struct vector_asked asked_make(enum vector_kind kind, enum vector_coding coding, size_t n)
{
	struct vector_asked a = {.kind = kind, .coding = coding, .n = n, .numbers = numbers, .sums = sums};
	vector_ask(&a, center, query);
	return a;
}

static float guess(const struct vector_asked *a, const float *v)
{
	char code[sizeof(float) * 2 + WIDTH_MOST];
	vector_encode(a->coding, center, v, a->n, code);
	return vector_guess(a, code);
}

/* Bytes are off by at most half a step in each dimension. */
static void test_bytes(void)
{
	static const enum vector_kind kinds[] = {VECTOR_COSINE, VECTOR_EUCLIDEAN, VECTOR_DOT};
	for (size_t kind = 0; kind < 3; kind++)
		for (size_t n = 1; n <= WIDTH_MOST; n += 13) {
			vectors_make(n);
			struct vector_asked a = asked_make(kinds[kind], VECTOR_SCALAR, n);
			for (size_t i = 0; i < COUNT; i++) {
				double off = (double)guess(&a, vectors[i]) - near_exactly(kinds[kind], vectors[i], n);
				CHECK(fabs(off) < 0.005 * (double)n + 1e-3);
			}
		}
}

static size_t place_of(const double *near, size_t i)
{
	size_t better = 0;
	for (size_t k = 0; k < COUNT; k++)
		better += near[k] > near[i];
	return better;
}

/* Signs alone find the near among the far: of the best tenth by the guess, most are of the best third. */
static void test_signs(void)
{
	static const enum vector_kind kinds[] = {VECTOR_EUCLIDEAN, VECTOR_DOT};
	static double guessed[COUNT], exact[COUNT];
	for (size_t kind = 0; kind < 2; kind++)
		for (size_t n = 60; n <= WIDTH_MOST; n += 35) {
			size_t hits = 0, most = COUNT / 10;
			vectors_make(n);
			struct vector_asked a = asked_make(kinds[kind], VECTOR_BINARY, n);
			for (size_t i = 0; i < COUNT; i++) {
				guessed[i] = (double)guess(&a, vectors[i]);
				exact[i] = near_exactly(kinds[kind], vectors[i], n);
			}
			for (size_t i = 0; i < COUNT; i++)
				hits += place_of(guessed, i) < most && place_of(exact, i) < COUNT / 3;
			CHECK(hits > most * 8 / 10);
		}
}

/* A vector whose signs are all that it is has no error. */
static void test_signs_alone(void)
{
	for (size_t n = 1; n <= 40; n++) {
		vectors_make(n);
		for (size_t k = 0; k < n; k++)
			vectors[0][k] = center[k] + (some_number() > 0 ? 0.25F : -0.25F);
		struct vector_asked a = asked_make(VECTOR_DOT, VECTOR_BINARY, n);
		CHECK(fabs((double)guess(&a, vectors[0]) - near_exactly(VECTOR_DOT, vectors[0], n)) < 1e-3);
	}
}

static void test_extremes(void)
{
	static const enum vector_kind kinds[] = {VECTOR_COSINE, VECTOR_EUCLIDEAN, VECTOR_DOT};
	static const float far[] = {0, 1e-44F, 1e-31F, 1e18F, -1.8e19F};
	size_t n = 21;
	vectors_make(n);
	for (size_t kind = 0; kind < 3; kind++)
		for (size_t f = 0; f < sizeof far / sizeof *far; f++) {
			struct vector_asked scalar = asked_make(kinds[kind], VECTOR_SCALAR, n);
			for (size_t k = 0; k < n; k++)
				vectors[0][k] = k % 2 ? center[k] : far[f];
			CHECK(isfinite(guess(&scalar, vectors[0])) && isfinite(guess(&scalar, center)));
			struct vector_asked binary = asked_make(kinds[kind], VECTOR_BINARY, n);
			CHECK(isfinite(guess(&binary, vectors[0])) && isfinite(guess(&binary, center)));
		}
}

/* The longest copies of each kind fit into a tuple of a B-tree. What was written into the bytes by somebody else is a
 * number too. */
static void test_sizes(void)
{
	CHECK(vector_coding_fits(VECTOR_SCALAR, VECTOR_SCALAR_MOST) &&
	      !vector_coding_fits(VECTOR_SCALAR, VECTOR_SCALAR_MOST + 1));
	CHECK(vector_coding_fits(VECTOR_BINARY, VECTOR_MOST) && !vector_coding_fits((enum vector_coding)0, 1));
	CHECK(vector_code_size(VECTOR_SCALAR, VECTOR_SCALAR_MOST) < 2600 &&
	      vector_code_size(VECTOR_BINARY, VECTOR_MOST) < 2600);
	CHECK(vector_code_size(VECTOR_BINARY, 9) == 10 && vector_code_size(VECTOR_SCALAR, 9) == 17);
	vectors_make(17);
	struct vector_asked a = asked_make(VECTOR_EUCLIDEAN, VECTOR_SCALAR, 17);
	char code[25];
	memset(code, 0xff, sizeof code); /* no numbers */
	CHECK(vector_guess(&a, code) <= -FLT_MAX);
	memset(code, 0x80, sizeof code);
	CHECK(isfinite(vector_guess(&a, code)));
}

/* The largest numbers in the most dimensions stay within 32 bits. */
static void test_largest_sum(void)
{
	static float zero[VECTOR_SCALAR_MOST], ones[VECTOR_SCALAR_MOST];
	static int16_t room[VECTOR_SCALAR_MOST];
	static char code[VECTOR_SCALAR_MOST + 8];
	for (size_t k = 0; k < VECTOR_SCALAR_MOST; k++)
		ones[k] = 1;
	struct vector_asked a = {.kind = VECTOR_DOT, .coding = VECTOR_SCALAR, .n = VECTOR_SCALAR_MOST, .numbers = room};
	vector_ask(&a, zero, ones);
	vector_encode(VECTOR_SCALAR, zero, ones, VECTOR_SCALAR_MOST, code);
	CHECK(fabsf(vector_guess(&a, code) - VECTOR_SCALAR_MOST) < 1);
	memset(code + 8, 0x80, VECTOR_SCALAR_MOST); /* -128: no vector has it */
	CHECK(vector_guess(&a, code) < -VECTOR_SCALAR_MOST);
}

int main(void)
{
	test_bytes();
	test_signs();
	test_signs_alone();
	test_extremes();
	test_sizes();
	test_largest_sum();
	return CHECK_DONE();
}
