/* Arithmetic over vectors: sums and scores against plain loops, and centers against the points that a sample was made of. */
#include "module/vector.h"

#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH ((size_t)37)
#define POINTS ((size_t)20)
#define COUNT ((size_t)2000)

static float sample[COUNT * WIDTH];
static unsigned paused;

static float some_number(void)
{
	static unsigned state = 7;
	state = state * 1103515245u + 12345u;
	return (float)(state >> 16 & 0x7fff) / 0x8000 - 0.5F;
}

/* Points far from each other, and vectors close around each. */
static void sample_make(void)
{
	float points[POINTS * WIDTH];
	for (size_t i = 0; i < POINTS * WIDTH; i++)
		points[i] = 10 * some_number();
	for (size_t i = 0; i < COUNT; i++)
		for (size_t k = 0; k < WIDTH; k++)
			sample[i * WIDTH + k] = points[i % POINTS * WIDTH + k] + some_number();
}

static void test_sums(void)
{
	for (size_t n = 0; n <= WIDTH; n++) {
		double dot = 0, square = 0;
		const float *a = sample, *b = sample + WIDTH;
		for (size_t i = 0; i < n; i++) {
			dot += (double)a[i] * (double)b[i];
			square += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
		}
		CHECK(fabs((double)vector_dot(a, b, n) - dot) < 1e-3);
		CHECK(fabs(vector_score(VECTOR_EUCLIDEAN, a, b, n) - 1 / (1 + sqrt(square))) < 1e-5);
		CHECK(fabs(vector_score(VECTOR_DOT, a, b, n) - (1 + dot) / 2) < 1e-3);
	}
	CHECK(fabs(vector_score(VECTOR_COSINE, sample, sample, WIDTH) - 1) < 1e-6);
}

static bool same(const float *a, const float *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] < b[i] || a[i] > b[i])
			return false;
	return true;
}

static void test_preparing(void)
{
	float v[3] = {3, 0, 4}, out[3];
	CHECK(vector_prepare(VECTOR_COSINE, v, 3, out) && fabsf(out[0] - 0.6F) < 1e-6F && fabsf(out[2] - 0.8F) < 1e-6F);
	CHECK(vector_prepare(VECTOR_EUCLIDEAN, v, 3, out) && same(v, out, 3));
	v[1] = NAN;
	CHECK(!vector_prepare(VECTOR_EUCLIDEAN, v, 3, out));
	v[1] = 3e38F;
	CHECK(!vector_prepare(VECTOR_DOT, v, 3, out));
	memset(v, 0, sizeof v);
	CHECK(!vector_prepare(VECTOR_COSINE, v, 3, out) && vector_prepare(VECTOR_DOT, v, 3, out));
}

static void pause_count(void)
{
	paused++;
}

static size_t train(size_t count, size_t most, float *centers)
{
	struct vector_training t = {
	        .sample = sample, .n = WIDTH, .count = count, .most = most, .centers = centers, .pause = pause_count};
	t.order = calloc(count + 1, sizeof *t.order);
	t.assigned = calloc(count + 1, sizeof *t.assigned);
	t.members = calloc(most + 1, sizeof *t.members);
	t.sums = calloc(most * WIDTH + 1, sizeof *t.sums);
	t.halves = calloc(most + 1, sizeof *t.halves);
	size_t found = vector_train(&t);
	free(t.order);
	free(t.assigned);
	free(t.members);
	free(t.sums);
	free(t.halves);
	return found;
}

static void test_centers(void)
{
	static float centers[(size_t)2 * 60 * WIDTH], halves[60];
	size_t found = train(COUNT, 60, centers);
	struct vector_centers c = {.n = WIDTH, .count = found, .at = centers, .halves = halves};
	vector_halves(centers, WIDTH, found, halves);
	CHECK(found > 30 && found <= 60 && paused > 0);
	/* Each vector lies close to its center: closer than points are to each other. */
	for (size_t i = 0; i < COUNT; i++) {
		const float *v = sample + i * WIDTH;
		size_t nearest = vector_nearest(&c, v);
		double best = 0;
		for (size_t k = 0; k < found; k++)
			best = fmax(best, vector_score(VECTOR_EUCLIDEAN, v, centers + k * WIDTH, WIDTH));
		CHECK(vector_score(VECTOR_EUCLIDEAN, v, centers + nearest * WIDTH, WIDTH) > best - 1e-4);
	}
	CHECK(train(COUNT, 60, centers + 60 * WIDTH) == found);
	CHECK(same(centers, centers + 60 * WIDTH, found * WIDTH));
}

/* None for a few, and none that stands for a few. */
static void test_small_samples(void)
{
	static float centers[COUNT * WIDTH];
	CHECK(train(0, 10, centers) == 0 && train(7, 10, centers) == 0 && train(100, 0, centers) == 0);
	CHECK(train(8, 1, centers) == 1);
	for (size_t most = 1; most < 300; most += 37)
		CHECK(train(300, most, centers) <= 300 / VECTOR_MEMBERS_MIN);
	memset(sample, 0, sizeof sample);
	CHECK(train(500, 20, centers) == 1);
}

int main(void)
{
	sample_make();
	test_sums();
	test_preparing();
	test_centers();
	test_small_samples();
	return CHECK_DONE();
}
