/* Chunked bump allocation. Under AddressSanitizer each object is a malloc of its own, so that an overrun or a use after
 * the request's end is seen at the object, not at the chunk. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK_SIZE 8192u

struct chunk {
	struct chunk *next;
	size_t used, cap;
	alignas(max_align_t) char bytes[];
};

struct defer {
	struct defer *next;
	void (*fn)(void *);
	void *arg;
};

struct arena {
	struct chunk *chunks;
	struct defer *defers;
	size_t held;
};

static void *out_of_memory(size_t n)
{
	fprintf(stderr, "steward: out of memory (asked for %zu bytes)\n", n);
	abort();
}

void *must_malloc(size_t n)
{
	void *p = malloc(n ? n : 1);
	return p ? p : out_of_memory(n);
}

void *must_calloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);
	return p ? p : out_of_memory(count);
}

void *must_realloc(void *p, size_t n)
{
	void *q = realloc(p, n ? n : 1);
	return q ? q : out_of_memory(n);
}

char *must_strdup(const char *z)
{
	size_t n = strlen(z) + 1;
	return memcpy(must_malloc(n), z, n);
}

struct arena *arena_new(void)
{
	return must_calloc(1, sizeof(struct arena));
}

static void run_defers(struct arena *a)
{
	while (a->defers) {
		struct defer *d = a->defers;
		a->defers = d->next;
		d->fn(d->arg);
	}
}

void arena_reset(struct arena *a)
{
	run_defers(a);
#ifdef __SANITIZE_ADDRESS__
	struct chunk *keep = NULL;
#else
	struct chunk *keep = NULL;
	for (struct chunk *c = a->chunks; c; c = c->next)
		if (c->cap == CHUNK_SIZE)
			keep = c;
#endif
	for (struct chunk *c = a->chunks, *next; c; c = next) {
		next = c->next;
		if (c != keep)
			free(c);
	}
	if (keep) {
		keep->next = NULL;
		keep->used = 0;
	}
	a->chunks = keep;
	a->held = keep ? keep->cap : 0;
}

size_t arena_held(const struct arena *a)
{
	return a->held;
}

void arena_count(struct arena *a, size_t n)
{
	a->held += n;
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	arena_reset(a);
	free(a->chunks);
	free(a);
}

static struct chunk *chunk_add(struct arena *a, size_t cap)
{
	struct chunk *c = must_malloc(sizeof(*c) + cap);
	c->next = a->chunks;
	c->used = 0;
	c->cap = cap;
	a->chunks = c;
	a->held += cap;
	return c;
}

/* Not cleared. */
static void *take(struct arena *a, size_t n)
{
	n = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	struct chunk *c = a->chunks;
#ifdef __SANITIZE_ADDRESS__
	c = chunk_add(a, n);
#else
	if (!c || c->cap - c->used < n) {
		if (n > CHUNK_SIZE / 2 && c) {
			/* A big object gets a chunk of its own behind the one in use. */
			struct chunk *big = must_malloc(sizeof(*big) + n);
			big->next = c->next;
			big->used = big->cap = n;
			a->held += n;
			c->next = big;
			return big->bytes;
		}
		c = chunk_add(a, n > CHUNK_SIZE ? n : CHUNK_SIZE);
	}
#endif
	void *p = c->bytes + c->used;
	c->used += n;
	return p;
}

void *arena_alloc(struct arena *a, size_t n)
{
	return memset(take(a, n), 0, n);
}

void *arena_calloc(struct arena *a, size_t count, size_t size)
{
	size_t n;
	if (__builtin_mul_overflow(count, size, &n))
		out_of_memory(count);
	return arena_alloc(a, n);
}

char *arena_z(struct arena *a, struct str s)
{
	char *p = take(a, s.n + 1);
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

void *arena_grow(struct arena *a, const void *items, size_t count, size_t room, size_t size)
{
	void *more = arena_calloc(a, room, size);
	if (count)
		memcpy(more, items, count * size);
	return more;
}

struct str arena_dup(struct arena *a, struct str s)
{
	return s.n ? (struct str){arena_z(a, s), s.n} : STR("");
}

struct str arena_vprintf(struct arena *a, const char *format, va_list args)
{
	char small[256];
	va_list again;
	va_copy(again, args);
	int n = vsnprintf(small, sizeof small, format, args);
	struct str out = STR("");
	if (n >= 0 && (size_t)n < sizeof small) {
		out = arena_dup(a, (struct str){small, (size_t)n});
	} else if (n >= 0) {
		char *p = arena_alloc(a, (size_t)n + 1);
		vsnprintf(p, (size_t)n + 1, format, again);
		out = (struct str){p, (size_t)n};
	}
	va_end(again);
	return out;
}

struct str arena_lower(struct arena *a, struct str s)
{
	char *z = arena_z(a, s);
	for (size_t i = 0; i < s.n; i++)
		if (z[i] >= 'A' && z[i] <= 'Z')
			z[i] = (char)(z[i] | 0x20);
	return (struct str){z, s.n};
}

struct str arena_printf(struct arena *a, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	struct str s = arena_vprintf(a, format, args);
	va_end(args);
	return s;
}

void arena_defer(struct arena *a, void (*fn)(void *), void *arg)
{
	struct defer *d = arena_new_of(a, struct defer);
	d->next = a->defers;
	d->fn = fn;
	d->arg = arg;
	a->defers = d;
}
