/* The centers of indexes, as the functions of vector search find them in steward_vectors.lists. */
#ifndef STEWARD_MODULE_VECTOR_LISTS_H
#define STEWARD_MODULE_VECTOR_LISTS_H

#include "module/vector_code.h"

#include <postgres.h>

#include <utils/array.h>

#define VERSION_BYTES 64

/* One row of the table. */
struct lists {
	char version[VERSION_BYTES];
	MemoryContext context;
	Oid table;
	enum vector_kind kind;
	enum vector_coding coding; /* 0: of an older service, whose index has no copies of vectors */
	struct vector_centers centers;
	/* The vector that was asked for last, and its cell: an index wants the cell and the copy of each row. */
	float *last;
	size_t last_cell;
	bool asked;
};

/* NULL: there is no such version. The session keeps a few: it is there until another one is asked for, which also an
 * expression of an index can do that the server looks at. */
struct lists *lists_of(text *version);
/* The vector as centers are compared with it, until the next one is. NULL: it is in no cell. */
const float *lists_prepared(const struct lists *l, ArrayType *v);
/* The cell of a prepared vector; 0 where there are no centers. */
size_t lists_cell(struct lists *l, const float *prepared);
/* Zeros where there are no centers. */
const float *lists_center(const struct lists *l, size_t cell);
/* Raises an error unless the session's user may read some column of the table. */
void lists_reader_check(Oid table);

/* The numbers of an array. NULL: it is no vector of so many dimensions. */
const float *vector_numbers(ArrayType *v, size_t n);

#endif
