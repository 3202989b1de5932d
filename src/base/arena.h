/* One arena per request: everything that a request needs is allocated here and freed together after the answer.
 * Allocation never fails for the caller. Callers bound what a client can make us allocate, so running out of memory
 * means that the machine has none left: the process stops with a message. */
#ifndef STEWARD_BASE_ARENA_H
#define STEWARD_BASE_ARENA_H

#include "base/str.h"

#include <stdarg.h>

struct arena;

struct arena *arena_new(void);
/* Runs the deferred functions, newest first, and frees everything. Accepts NULL. */
void arena_free(struct arena *a);
/* The same, but keeps the arena itself for reuse. */
void arena_reset(struct arena *a);

/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((malloc, returns_nonnull));
#define arena_new_of(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_new_array(a, type, count) ((type *)arena_calloc((a), (count), sizeof(type)))
void *arena_calloc(struct arena *a, size_t count, size_t size);

/* A larger array that begins with the `count` items of the old one, which may be NULL. */
void *arena_grow(struct arena *a, const void *items, size_t count, size_t room, size_t size);

/* Room for one more in an array that grows by doubling: `room` is how many items fit. */
#define ARENA_FIT(a, items, count, room)                                                      \
	do {                                                                                  \
		if ((count) == (room)) {                                                      \
			(room) = (room) ? 2 * (room) : 16;                                    \
			(items) = arena_grow((a), (items), (count), (room), sizeof *(items)); \
		}                                                                             \
	} while (0)

/* Copies; the copies are NUL-terminated. */
struct str arena_dup(struct arena *a, struct str s);
char *arena_z(struct arena *a, struct str s);
/* A copy in lower case (ASCII). */
struct str arena_lower(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *format, ...) printf_like(2, 3);
struct str arena_vprintf(struct arena *a, const char *format, va_list args) printf_like(2, 0);

/* How many bytes it holds, in chunks and by arena_count(): what a bound on a call's memory is compared with. */
size_t arena_held(const struct arena *a);
/* Counts memory that hangs on the arena by arena_defer(), until the next reset. */
void arena_count(struct arena *a, size_t n);

/* Calls fn(arg) when the arena is freed or reset. */
void arena_defer(struct arena *a, void (*fn)(void *), void *arg);

/* malloc, calloc and realloc that stop the process with a message instead of returning NULL. */
void *must_malloc(size_t n);
void *must_calloc(size_t count, size_t size);
void *must_realloc(void *p, size_t n);
char *must_strdup(const char *z);

#endif
