/* What a server says while it copies a table: the same comes out of it in whatever pieces it came in, and what comes out is
 * whole lines of UTF-8. The first byte of the input is the size of the pieces. */
#include "base/buf.h"
#include "catalog/formats.h"
#include "engine/postgres/sql/copy_stream.h"
#include "fuzz.h"

#include <errno.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static int rows_take(void *ctx, const void *bytes, size_t n)
{
	HOLDS(n && utf8_is_valid((struct str){bytes, n}));
	buf_add(ctx, bytes, n);
	return 0;
}

struct outcome {
	struct pg_copy s;
	struct buf rows;
	ssize_t result;
	size_t used;
};

/* As a socket would: what was left before comes first, and `size` bytes more. */
static void copy_read(struct str input, size_t size, struct outcome *o)
{
	*o = (struct outcome){.s.write = rows_take};
	o->s.ctx = &o->rows;
	for (size_t end = 0; o->result >= 0 && end < input.n && !o->s.over;) {
		end = size < input.n - end ? end + size : input.n;
		struct str some = {input.p + o->used, end - o->used};
		char *exact = fuzz_copy(some);
		o->result = pg_copy_take(&o->s, exact, some.n);
		free(exact);
		HOLDS(o->result <= (ssize_t)some.n);
		HOLDS(o->result < 0 || o->s.over || some.n - (size_t)o->result < 8);
		o->used += o->result < 0 ? 0 : (size_t)o->result;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = fuzz_input(data, size);
	struct outcome whole, pieces;
	char one[64], other[64];
	size_t each = fuzz_byte(&input) + 1;
	copy_read(input, input.n, &whole);
	copy_read(input, each, &pieces);
	HOLDS(whole.result < 0 ? whole.result == pieces.result : pieces.result >= 0);
	HOLDS(whole.result == -EBADMSG || whole.result == -EPROTO || whole.result >= 0);
	if (whole.result >= 0) {
		HOLDS(whole.used == pieces.used && whole.s.over == pieces.s.over && whole.s.copied == pieces.s.copied);
		HOLDS(whole.s.rows == pieces.s.rows && str_eq(buf_view(&whole.rows), buf_view(&pieces.rows)));
		size_t lines = 0;
		for (size_t i = 0; i < whole.rows.n; i++)
			lines += whole.rows.p[i] == '\n';
		HOLDS(lines == whole.s.rows);
		pg_copy_refusal(&whole.s, one, sizeof one);
		pg_copy_refusal(&pieces.s, other, sizeof other);
		HOLDS(strcmp(one, other) == 0);
	}
	buf_free(&whole.rows);
	buf_free(&pieces.rows);
	return 0;
}
