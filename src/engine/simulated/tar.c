/* The file that is downloaded of a snapshot of nothing: a tar with what tells a data directory, and zeros beside, as
 * many as a test asks for. */
#include "engine/simulated/state.h"

#include <stdio.h>

#define TAR_BLOCK 512u

static void octal(char *to, size_t size, uint64_t value)
{
	to[--size] = '\0';
	for (; size; value /= 8)
		to[--size] = (char)('0' + value % 8);
}

static int tar_head_write(objects_write *write, void *ctx, const char *name, uint64_t n)
{
	struct header {
		char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100], magic[6],
		        version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
	} h;
	unsigned sum = 0;
	_Static_assert(sizeof h == TAR_BLOCK, "a header is one block");
	memset(&h, 0, sizeof h);
	snprintf(h.name, sizeof h.name, "%s", name);
	octal(h.mode, sizeof h.mode, 0600);
	octal(h.uid, sizeof h.uid, 0);
	octal(h.gid, sizeof h.gid, 0);
	octal(h.size, sizeof h.size, n);
	octal(h.time, sizeof h.time, 0);
	memset(h.sum, ' ', sizeof h.sum);
	h.type = '0';
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	for (size_t i = 0; i < sizeof h; i++)
		sum += ((const unsigned char *)&h)[i];
	octal(h.sum, 7, sum);
	return write(ctx, &h, sizeof h);
}

static int tar_add(objects_write *write, void *ctx, const char *name, const char *text)
{
	static const char zeros[TAR_BLOCK];
	size_t n = strlen(text), pad = (TAR_BLOCK - n % TAR_BLOCK) % TAR_BLOCK;
	int r = tar_head_write(write, ctx, name, n);
	if (r >= 0)
		r = write(ctx, text, n);
	return r < 0 || !pad ? r : write(ctx, zeros, pad);
}

/* A file of zeros, as large as the test control says. */
static int tar_add_zeros(objects_write *write, void *ctx, uint64_t bytes)
{
	static const char zeros[TAR_BLOCK * 32];
	int r = tar_head_write(write, ctx, "data", bytes);
	for (uint64_t left = (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK; r >= 0 && left;) {
		size_t part = left < sizeof zeros ? (size_t)left : sizeof zeros;
		r = write(ctx, zeros, part);
		left -= part;
	}
	return r;
}

int sim_tar_write(const char *label, uint64_t zeros, objects_write *write, void *ctx)
{
	static const char end[2 * TAR_BLOCK];
	int r = tar_add(write, ctx, "PG_VERSION", "17\n");
	if (r >= 0)
		r = tar_add(write, ctx, "backup_label", label);
	if (r >= 0 && zeros)
		r = tar_add_zeros(write, ctx, zeros);
	if (r >= 0)
		r = write(ctx, end, sizeof end);
	return r < 0 ? r : 0;
}
