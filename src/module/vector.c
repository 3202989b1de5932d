/* See vector.h. The centers are found by k-means in two steps, because one over all centers would take their number
 * times the sample in each round: groups first, as many as the root of the number of centers, then centers within each
 * group; a last round over all of them at once puts right what lies at the edges of groups. */
#include "module/vector.h"

#include "module/wide.h"

#include <math.h>
#include <string.h>

#define ROUNDS 6
#define PAUSE_EVERY 256u /* vectors */

/* Compilers make of it what the processor has: the sums are the same for all. */
typedef float lanes __attribute__((vector_size(32)));
typedef float half_lanes __attribute__((vector_size(16)));
#define LANES (sizeof(lanes) / sizeof(float))

static inline __attribute__((always_inline)) float lanes_sum(const lanes *l)
{
	half_lanes a, b;
	memcpy(&a, l, sizeof a);
	memcpy(&b, (const char *)l + sizeof a, sizeof b);
	a += b;
	return (a[0] + a[2]) + (a[1] + a[3]);
}

static inline __attribute__((always_inline)) float dot(const float *a, const float *b, size_t n)
{
	lanes even = {0}, odd = {0}, x, y;
	size_t i = 0;
	for (; i + 2 * LANES <= n; i += 2 * LANES) {
		memcpy(&x, a + i, sizeof x);
		memcpy(&y, b + i, sizeof y);
		even += x * y;
		memcpy(&x, a + i + LANES, sizeof x);
		memcpy(&y, b + i + LANES, sizeof y);
		odd += x * y;
	}
	even += odd;
	float sum = lanes_sum(&even);
	for (; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

WIDE float vector_dot(const float *a, const float *b, size_t n)
{
	return dot(a, b, n);
}

WIDE static float square_between(const float *a, const float *b, size_t n)
{
	lanes even = {0}, odd = {0}, x, y;
	size_t i = 0;
	for (; i + 2 * LANES <= n; i += 2 * LANES) {
		memcpy(&x, a + i, sizeof x);
		memcpy(&y, b + i, sizeof y);
		x -= y;
		even += x * x;
		memcpy(&x, a + i + LANES, sizeof x);
		memcpy(&y, b + i + LANES, sizeof y);
		x -= y;
		odd += x * x;
	}
	even += odd;
	float sum = lanes_sum(&even);
	for (; i < n; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return sum;
}

double vector_score(enum vector_kind kind, const float *a, const float *b, size_t n)
{
	if (kind == VECTOR_EUCLIDEAN)
		return 1 / (1 + sqrt((double)square_between(a, b, n)));
	double dot = (double)vector_dot(a, b, n);
	if (kind == VECTOR_COSINE)
		dot /= sqrt((double)vector_dot(a, a, n)) * sqrt((double)vector_dot(b, b, n));
	return (1 + dot) / 2;
}

bool vector_prepare(enum vector_kind kind, const float *v, size_t n, float *ret_v)
{
	float square = vector_dot(v, v, n);
	if (!isfinite(square) || (kind == VECTOR_COSINE && square < VECTOR_SQUARE_MIN))
		return false;
	float by = kind == VECTOR_COSINE ? 1 / sqrtf(square) : 1;
	for (size_t i = 0; i < n; i++)
		ret_v[i] = v[i] * by;
	return true;
}

/* --- centers */

void vector_halves(const float *at, size_t n, size_t count, float *ret_halves)
{
	for (size_t i = 0; i < count; i++)
		ret_halves[i] = vector_dot(at + i * n, at + i * n, n) / 2;
}

/* Of |v - c|^2 only c^2 - 2vc differs between centers. */
WIDE size_t vector_nearest(const struct vector_centers *c, const float *v)
{
	size_t best = 0;
	float most = -INFINITY;
	for (size_t i = 0; i < c->count; i++) {
		float near = dot(c->at + i * c->n, v, c->n) - c->halves[i];
		if (near > most) {
			most = near;
			best = i;
		}
	}
	return best;
}

WIDE void vector_rank(enum vector_kind kind, const struct vector_centers *c, const float *v, float *ret_near)
{
	for (size_t i = 0; i < c->count; i++)
		ret_near[i] = dot(c->at + i * c->n, v, c->n) - (kind == VECTOR_DOT ? 0 : c->halves[i]);
}

/* --- finding them */

/* The same numbers each time: an index can be built again and be the same. */
static uint32_t next_number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static const float *sample_at(const struct vector_training *t, uint32_t i)
{
	return t->sample + (size_t)i * t->n;
}

static void assign(struct vector_training *t, const uint32_t *order, size_t count, const struct vector_centers *c)
{
	for (size_t i = 0; i < count; i++) {
		if (i % PAUSE_EVERY == 0)
			t->pause();
		t->assigned[order[i]] = (uint32_t)vector_nearest(c, sample_at(t, order[i]));
	}
}

/* Each center becomes the mean of its members; one without any stays what it is. */
static void centers_move(struct vector_training *t, const uint32_t *order, size_t count, float *at, size_t centers)
{
	size_t n = t->n;
	memset(t->sums, 0, centers * n * sizeof(float));
	memset(t->members, 0, centers * sizeof *t->members);
	for (size_t i = 0; i < count; i++) {
		const float *v = sample_at(t, order[i]);
		float *sum = t->sums + t->assigned[order[i]] * n;
		for (size_t k = 0; k < n; k++)
			sum[k] += v[k];
		t->members[t->assigned[order[i]]]++;
	}
	for (size_t i = 0; i < centers; i++)
		for (size_t k = 0; t->members[i] && k < n; k++)
			at[i * n + k] = t->sums[i * n + k] / (float)t->members[i];
}

/* They begin at vectors of the sample that are drawn by lot, each another one. */
static void centers_draw(struct vector_training *t, uint32_t *order, size_t count, float *at, size_t centers,
                         uint64_t *state)
{
	for (size_t i = 0; i < centers; i++) {
		size_t other = i + next_number(state) % (count - i);
		uint32_t drawn = order[other];
		order[other] = order[i];
		order[i] = drawn;
		memcpy(at + i * t->n, sample_at(t, drawn), t->n * sizeof(float));
	}
}

static void centers_find(struct vector_training *t, uint32_t *order, size_t count, float *at, size_t centers,
                         uint64_t *state)
{
	struct vector_centers c = {.n = t->n, .count = centers, .at = at, .halves = t->halves};
	centers_draw(t, order, count, at, centers, state);
	for (int round = 0; round < ROUNDS; round++) {
		vector_halves(at, t->n, centers, t->halves);
		assign(t, order, count, &c);
		centers_move(t, order, count, at, centers);
	}
}

/* The members of a group come to stand one after the other; gives the place behind the last. */
static size_t group_gather(struct vector_training *t, size_t from, uint32_t group)
{
	size_t end = from;
	for (size_t i = from; i < t->count; i++) {
		uint32_t one = t->order[i];
		if (t->assigned[one] != group)
			continue;
		t->order[i] = t->order[end];
		t->order[end++] = one;
	}
	return end;
}

/* All groups are gathered before one is divided: dividing says anew where each of its members belongs. */
static size_t groups_divide(struct vector_training *t, size_t groups, uint64_t *state)
{
	size_t found = 0, from = 0, taken = 0;
	uint32_t sizes[256];
	for (size_t g = 0; g < groups; g++) {
		size_t end = group_gather(t, from, (uint32_t)g);
		sizes[g] = (uint32_t)(end - from);
		from = end;
	}
	from = 0;
	for (size_t g = 0; g < groups; from += sizes[g++]) {
		taken += sizes[g];
		size_t until = t->most * taken / t->count, share = until > found ? until - found : 0;
		share = share > sizes[g] ? sizes[g] : share;
		if (share)
			centers_find(t, t->order + from, sizes[g], t->centers + found * t->n, share, state);
		found += share;
	}
	return found;
}

/* A center of few would tell those who ask for cells what a row is that they may not read. */
static size_t few_drop(struct vector_training *t, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (t->members[i] >= VECTOR_MEMBERS_MIN) {
			memmove(t->centers + kept * t->n, t->centers + i * t->n, t->n * sizeof(float));
			kept++;
		}
	return kept;
}

size_t vector_train(struct vector_training *t)
{
	enum { GROUPS_MOST = 256 };
	uint64_t state = 20261119;
	size_t found = t->most < t->count ? t->most : t->count, groups = (size_t)sqrt((double)found);
	for (size_t i = 0; i < t->count; i++)
		t->order[i] = (uint32_t)i;
	if (t->count < VECTOR_MEMBERS_MIN || !found)
		return 0;
	groups = groups > GROUPS_MOST ? GROUPS_MOST : groups;
	centers_find(t, t->order, t->count, t->centers, groups, &state);
	found = groups_divide(t, groups, &state);
	struct vector_centers all = {.n = t->n, .count = found, .at = t->centers, .halves = t->halves};
	vector_halves(t->centers, t->n, found, t->halves);
	assign(t, t->order, t->count, &all);
	centers_move(t, t->order, t->count, t->centers, found);
	return few_drop(t, found);
}
