/* Chunked bodies: hexadecimal size, optional extensions (skipped, bounded), CRLF, data, CRLF; after the last chunk
 * trailer fields (checked, bounded, dropped). CR LF exactly, everywhere. */
#include "http/chunked.h"

#include "http/prescan.h"

#include <errno.h>

#define OVERHEAD_MAX 16384u

enum { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, TRAILER_LF, END };

void chunked_free(struct chunked *d)
{
	buf_free(&d->trailer);
}

static int take_size(struct chunked *d, char c)
{
	int v = hex_value(c);
	if (v >= 0) {
		if (++d->digits > 15)
			return -EBADMSG;
		d->left = d->left * 16 + (unsigned)v;
		return 0;
	}
	if (d->digits == 0)
		return -EBADMSG;
	d->state = c == '\r' ? SIZE_LF : c == ';' ? EXTENSION : END;
	return d->state == END ? -EBADMSG : 0;
}

static int take_extension(struct chunked *d, char c)
{
	if (c == '\r')
		d->state = SIZE_LF;
	else if ((unsigned char)c < 0x20 || c == 0x7f || ++d->overhead > OVERHEAD_MAX)
		return -EBADMSG;
	return 0;
}

static int take_size_lf(struct chunked *d, char c, size_t have, size_t limit)
{
	if (c != '\n')
		return -EBADMSG;
	if (d->left > limit || have > limit - d->left)
		return -EFBIG;
	d->state = d->left ? DATA : TRAILER;
	d->digits = 0;
	return 0;
}

static int take_trailer(struct chunked *d, char c)
{
	if (c == '\r') {
		d->state = TRAILER_LF;
		return 0;
	}
	if (++d->overhead > OVERHEAD_MAX)
		return -EBADMSG;
	buf_c(&d->trailer, c);
	return 0;
}

static int take_trailer_lf(struct chunked *d, char c)
{
	if (c != '\n')
		return -EBADMSG;
	if (d->trailer.n == 0) {
		d->state = END;
		return 1;
	}
	if (!prescan_field_ok(buf_view(&d->trailer)))
		return -EBADMSG;
	d->trailer.n = 0;
	d->state = TRAILER;
	return 0;
}

static int take(struct chunked *d, char c, size_t have, size_t limit)
{
	switch (d->state) {
	case SIZE: return take_size(d, c);
	case EXTENSION: return take_extension(d, c);
	case SIZE_LF: return take_size_lf(d, c, have, limit);
	case DATA_CR: d->state = DATA_LF; return c == '\r' ? 0 : -EBADMSG;
	case DATA_LF: d->state = SIZE; return c == '\n' ? 0 : -EBADMSG;
	case TRAILER: return take_trailer(d, c);
	case TRAILER_LF: return take_trailer_lf(d, c);
	default: return -EBADMSG;
	}
}

int chunked_decode(struct chunked *d, struct str in, size_t limit, struct buf *body, size_t *ret_used)
{
	size_t i = 0;
	while (i < in.n) {
		if (d->state == DATA) {
			size_t n = in.n - i < d->left ? in.n - i : (size_t)d->left;
			buf_add(body, in.p + i, n);
			i += n;
			d->left -= n;
			if (d->left == 0)
				d->state = DATA_CR;
			continue;
		}
		int r = take(d, in.p[i++], body->n, limit);
		if (r) {
			*ret_used = i;
			return r;
		}
	}
	*ret_used = i;
	return 0;
}
