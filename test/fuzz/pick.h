/* An operation of the real tables from the first line of an input: by its id, so that the corpora can be read and do
 * not change their meaning when rows are added; any other text still picks one, so that the fuzzer reaches all of
 * them. */
#ifndef STEWARD_TEST_PICK_H
#define STEWARD_TEST_PICK_H

#include "catalog/catalog.h"

static inline uint64_t pick_hash(struct str s)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

static inline const struct op *pick_op(struct str line)
{
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (str_is(line, catalog_ops[i].id))
			return &catalog_ops[i];
	return &catalog_ops[pick_hash(line) % catalog_op_count];
}

#endif
