/* A snapshot as a tar: ustar, with a pax header in front of an entry whose path or length does not fit. */
#include "repository/tar.h"

#include "base/arena.h"
#include "repository/manifest.h"
#include "repository/read.h"
#include "repository/why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK 512
#define SIZE_MOST 077777777777ULL
#define NAME_ROOM 100
#define PREFIX_ROOM 155
#define COPY_BYTES 65536

struct tar {
	objects_write *write;
	void *ctx;
	uint64_t skip; /* bytes that the reader has already */
};

struct tar_entry {
	const char *path;
	char kind; /* '0' file, '5' directory, 'x' pax */
	unsigned mode;
	uint64_t size;
	int64_t modified_s;
};

static int tar_bytes(struct tar *t, const void *bytes, size_t n)
{
	size_t known = t->skip < n ? (size_t)t->skip : n;
	t->skip -= known;
	return n > known ? t->write(t->ctx, (const char *)bytes + known, n - known) : 0;
}

static int tar_pad(struct tar *t, uint64_t size)
{
	static const char zeros[BLOCK];
	size_t over = (size_t)(size % BLOCK);
	return over ? tar_bytes(t, zeros, BLOCK - over) : 0;
}

/* Where the path is cut into prefix and name; NULL: it does not fit. */
static const char *path_cut(const char *path)
{
	size_t n = strlen(path);
	if (n <= NAME_ROOM)
		return path;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		if ((size_t)(slash - path) <= PREFIX_ROOM && n - (size_t)(slash + 1 - path) <= NAME_ROOM && slash[1])
			return slash + 1;
	return NULL;
}

static int header_write(struct tar *t, const struct tar_entry *e)
{
	char h[BLOCK] = {0};
	const char *name = path_cut(e->path);
	unsigned sum = 0;
	if (name) {
		memcpy(h, name, strlen(name));
		if (name > e->path)
			memcpy(h + 345, e->path, (size_t)(name - e->path) - 1);
	} else {
		memcpy(h, e->path, NAME_ROOM); /* the pax header has all of it */
	}
	snprintf(h + 100, 8, "%07o", e->mode & 07777);
	memcpy(h + 108, "0000000", 8);
	memcpy(h + 116, "0000000", 8);
	snprintf(h + 124, 12, "%011llo", (unsigned long long)(e->size > SIZE_MOST ? 0 : e->size));
	snprintf(h + 136, 12, "%011llo", (unsigned long long)(e->modified_s > 0 ? e->modified_s : 0) & SIZE_MOST);
	memset(h + 148, ' ', 8);
	h[156] = e->kind;
	memcpy(h + 257, "ustar\00000", 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	return tar_bytes(t, h, BLOCK);
}

/* "LENGTH KEY=VALUE\n", where the length counts itself. */
static void pax_record(struct buf *out, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, n = rest;
	char digits[U64_TEXT];
	for (size_t before = 0; before != n;) {
		before = n;
		n = rest + str_from_u64(before, digits).n;
	}
	buf_printf(out, "%zu %s=%s\n", n, key, value);
}

static int entry_begin(struct tar *t, const struct tar_entry *e)
{
	struct buf pax = {0};
	int result = 0;
	if (!path_cut(e->path))
		pax_record(&pax, "path", e->path);
	if (e->size > SIZE_MOST) {
		char text[U64_TEXT + 1] = "";
		struct str digits = str_from_u64(e->size, text);
		char size[U64_TEXT + 1] = "";
		memcpy(size, digits.p, digits.n);
		pax_record(&pax, "size", size);
	}
	if (pax.n) {
		result = header_write(t, &(struct tar_entry){"PaxHeader", 'x', 0600, pax.n, e->modified_s});
		if (result == 0)
			result = tar_bytes(t, pax.p, pax.n);
		if (result == 0)
			result = tar_pad(t, pax.n);
	}
	buf_free(&pax);
	return result < 0 ? result : header_write(t, e);
}

static int tar_sink(void *ctx, uint64_t at, const unsigned char *bytes, size_t n, uint32_t zeros)
{
	(void)at;
	(void)zeros;
	return tar_bytes(ctx, bytes, n);
}

static int file_write(struct tar *t, struct chunk_reader *rd, const struct manifest_file *f)
{
	bool directory = f->kind == MANIFEST_DIRECTORY;
	char path[4096 + 2];
	snprintf(path, sizeof path, "%s%s", f->path, directory ? "/" : "");
	struct tar_entry e = {path, directory ? '5' : '0', f->mode, f->size, f->modified_s};
	int result = entry_begin(t, &e);
	/* What is skipped as a whole is not read, so that the end of a large tar costs no more than its beginning. */
	if (result == 0 && !directory && t->skip >= f->size)
		t->skip -= f->size;
	else if (result == 0 && !directory)
		result = reader_file(rd, f, tar_sink, t);
	return result < 0 ? result : tar_pad(t, f->size);
}

static int extra_copy(struct tar *t, const struct repo_extra *x)
{
	char *bytes = must_malloc(COPY_BYTES);
	int result = 0;
	for (size_t done = 0; done < x->n && result == 0;) {
		size_t left = x->n - done;
		ssize_t got = read(x->fd, bytes, left < COPY_BYTES ? left : COPY_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			result = repo_fail(got < 0 ? -errno : -EIO, "%s: cannot be read to its end", x->path);
			break;
		}
		result = tar_bytes(t, bytes, (size_t)got);
		done += (size_t)got;
	}
	free(bytes);
	return result;
}

static int extra_write(struct tar *t, const struct repo_extra *x, int64_t modified_s)
{
	struct tar_entry e = {x->path, '0', x->mode, x->n, modified_s};
	if (!manifest_path_ok(str_of(x->path)))
		return repo_fail(-EINVAL, "%s: is no path below a directory", x->path);
	int result = entry_begin(t, &e);
	if (result == 0)
		result = x->bytes ? tar_bytes(t, x->bytes, x->n) : extra_copy(t, x);
	return result < 0 ? result : tar_pad(t, x->n);
}

static int tar_write(struct repo_manifest *m, const struct repo_extra *extra, size_t extra_count, struct tar *t)
{
	static const char zeros[2 * BLOCK];
	struct chunk_reader rd;
	int64_t newest = 0;
	int result = 0;
	reader_setup(&rd, m->r);
	for (size_t i = 0; i < m->count && result == 0; i++) {
		result = file_write(t, &rd, &m->files[i]);
		newest = m->files[i].modified_s > newest ? m->files[i].modified_s : newest;
	}
	for (size_t i = 0; i < extra_count && result == 0; i++)
		result = extra_write(t, &extra[i], newest);
	reader_free(&rd);
	return result < 0 ? result : tar_bytes(t, zeros, sizeof zeros);
}

int repo_tar(struct repo_manifest *m, const struct repo_extra *extra, size_t extra_count, objects_write *write,
             void *ctx)
{
	struct tar t = {.write = write, .ctx = ctx};
	return tar_write(m, extra, extra_count, &t);
}

int repo_tar_from(struct repo_manifest *m, uint64_t from, objects_write *write, void *ctx)
{
	struct tar t = {.write = write, .ctx = ctx, .skip = from};
	return tar_write(m, NULL, 0, &t);
}

int repo_tar_size(struct repo_manifest *m, uint64_t *ret_bytes)
{
	struct tar t = {.skip = UINT64_MAX};
	int result = tar_write(m, NULL, 0, &t);
	if (result == 0)
		*ret_bytes = UINT64_MAX - t.skip;
	return result;
}
