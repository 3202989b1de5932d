/* Arguments that are arrays, in PostgreSQL's binary form: a head, then each element with its length before it. */
#include "store/pg/pg.h"

/* One dimension, whether there may be NULLs, type, length, first index. */
struct array_head {
	uint32_t dimensions, nulls, oid, count, first;
};

#define NULL_LENGTH UINT32_MAX

static void length_add(struct buf *array, uint32_t n)
{
	static const struct array_head room;
	uint32_t size = htobe32(n);
	if (!array->n)
		buf_add(array, &room, sizeof room);
	buf_add(array, &size, sizeof size);
}

void pg_elements_add(struct buf *array, const void *p, size_t n)
{
	length_add(array, (uint32_t)n);
	buf_add(array, p, n);
}

void pg_elements_add_str(struct buf *array, struct str s)
{
	pg_elements_add(array, s.n ? s.p : "", s.n);
}

void pg_elements_add_int(struct buf *array, int64_t v)
{
	uint64_t number = htobe64((uint64_t)v);
	pg_elements_add(array, &number, sizeof number);
}

void pg_elements_add_null(struct buf *array)
{
	length_add(array, NULL_LENGTH);
}

void pg_elements_arg(struct pg_args *args, struct buf *array, uint32_t oid, uint32_t count)
{
	/* The flag says that there may be NULLs, not that there are. */
	struct array_head h = {htobe32(1), htobe32(1), htobe32(oid), htobe32(count), htobe32(1)};
	memcpy(array->p, &h, sizeof h);
	pg_bytes(args, array->p, array->n);
}
