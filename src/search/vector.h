/* Definitions of vector search indexes, as clients write them: the column that has the vectors, how these are compared,
 * and the fields that queries may filter by. Pure code; as of the others (definition.h), what cannot be done is a fault
 * at its place. */
#ifndef STEWARD_SEARCH_VECTOR_H
#define STEWARD_SEARCH_VECTOR_H

#include "base/json.h"
#include "catalog/schema.h"

#define SEARCH_DIMENSIONS_MAX 8192
#define SEARCH_FILTERS_MAX 31

struct search_filter {
	const char *place; /* in the request: "definition.fields[1]" */
	const char *path;  /* as queries name it: "address.city" */
	/* The column, then the names within its document. */
	const char *const *steps;
	size_t depth;
};

struct search_vector {
	const char *place;
	const char *path; /* a column */
	unsigned dimensions;
	const char *similarity; /* "cosine", "euclidean", "dotProduct" */
	bool binary;            /* the index has the signs of numbers, not numbers of 8 bits */
	const struct search_filter *filters;
	size_t filter_count;
};

/* Whether a definition is of vectors: it has a list of fields, and no mappings. */
bool search_is_vector(const json_t *definition);

/* Reads a definition that its schema has let pass. `place` comes before the faults' paths: "definition." or "". All
 * texts live in the arena. */
void search_vector_read(struct arena *a, const json_t *definition, const char *place, struct faults *faults,
                        struct search_vector *ret_vector);

#endif
