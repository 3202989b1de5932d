/* What the fuzzers of object stores' answers share: what they visit. */
#ifndef STEWARD_FUZZ_OBJECTS_H
#define STEWARD_FUZZ_OBJECTS_H

#include "fuzz.h"

#include "objects/request.h"

/* ctx: unsigned, which counts. */
static int count_visit(void *ctx, const struct object_entry *e)
{
	HOLDS(e->key.n > 0 && e->size <= INT64_MAX);
	++*(unsigned *)ctx;
	return 0;
}

/* ctx: the key that was written, with a size of 7. */
static int same_visit(void *ctx, const struct object_entry *e)
{
	const struct str *key = ctx;
	HOLDS(e->key.n == key->n && e->size == 7);
	for (size_t i = 0; i < key->n; i++)
		HOLDS(e->key.p[i] == (key->p[i] < ' ' ? ' ' : key->p[i]));
	return 0;
}

#endif
