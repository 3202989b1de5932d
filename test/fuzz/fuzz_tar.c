/* Snapshots as tar. The input names files, their modes and lengths; what is written is read by another reader here, from the
 * format's description: each entry has its name, mode and bytes, and a checksum that fits. A file that is too long for ustar
 * cannot be made of bytes: its header alone is written, and read.
 *
 * Each line of the input is a file: a letter (d: an odd mode, l: a length above 8 GB), its path, a tab, its bytes. */
#include "fuzz.h"

#include "base/buf.h"
#include "repository/manifest.h"
#include "repository/tar.h"

#include <unistd.h>

#define FILES_MAX 8
#define BLOCK 512
#define LONG_BYTES (UINT64_C(9) << 30)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static int out_take(void *ctx, const void *bytes, size_t n)
{
	buf_add(ctx, bytes, n);
	return 0;
}

/* --- the reader */

static uint64_t octal(const char *p, size_t n)
{
	uint64_t value = 0;
	HOLDS(p[n - 1] == 0);
	for (size_t i = 0; i + 1 < n; i++) {
		HOLDS(p[i] >= '0' && p[i] <= '7');
		value = value * 8 + (uint64_t)(p[i] - '0');
	}
	return value;
}

struct entry {
	char path[4200];
	uint64_t size;
	unsigned mode;
	char kind;
};

static void header_read(const char *h, struct entry *e)
{
	unsigned sum = 0;
	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)h[i];
	HOLDS(octal(h + 148, 7) == sum && h[155] == ' ' && memcmp(h + 257, "ustar\00000", 8) == 0);
	snprintf(e->path, sizeof e->path, "%.155s%s%.100s", h + 345, h[345] ? "/" : "", h);
	e->mode = (unsigned)octal(h + 100, 8);
	e->size = octal(h + 124, 12);
	e->kind = h[156];
}

/* Whole records "LENGTH KEY=VALUE\n", into the entry that follows. */
static void pax_read(struct str text, struct entry *e)
{
	while (text.n) {
		struct str digits, rest, key, value;
		uint64_t n;
		HOLDS(str_cut(text, ' ', &digits, &rest) && str_to_u64(digits, text.n, &n) && n > digits.n + 2);
		HOLDS(text.p[n - 1] == '\n');
		HOLDS(str_cut((struct str){rest.p, n - digits.n - 2}, '=', &key, &value));
		if (str_is(key, "path"))
			str_copy(value, e->path, sizeof e->path);
		else
			HOLDS(str_is(key, "size") && str_to_u64(value, UINT64_MAX, &e->size));
		text = (struct str){text.p + n, text.n - n};
	}
}

/* The next entry and where its bytes begin; false: the end, which is two blocks of zeros. */
static bool entry_read(struct str tar, size_t *at, struct entry *e)
{
	static const char zeros[BLOCK];
	HOLDS(*at % BLOCK == 0 && *at + BLOCK <= tar.n);
	if (memcmp(tar.p + *at, zeros, BLOCK) == 0) {
		HOLDS(*at + 2 * BLOCK == tar.n && memcmp(tar.p + *at + BLOCK, zeros, BLOCK) == 0);
		return false;
	}
	struct entry pax;
	bool extended = tar.p[*at + 156] == 'x';
	size_t text = 0;
	if (extended) {
		header_read(tar.p + *at, &pax);
		HOLDS(pax.size > 0 && pax.size <= tar.n - *at - BLOCK);
		text = *at + BLOCK;
		*at = text + (pax.size + BLOCK - 1) / BLOCK * BLOCK;
		HOLDS(*at + BLOCK <= tar.n);
	}
	header_read(tar.p + *at, e);
	if (extended)
		pax_read((struct str){tar.p + text, pax.size}, e);
	*at += BLOCK;
	return true;
}

/* --- files */

struct files {
	struct repo_extra list[FILES_MAX];
	char paths[FILES_MAX][4200];
	size_t count;
};

static void files_read(struct str input, struct files *f)
{
	while (input.n && f->count < FILES_MAX) {
		struct str line, path, bytes;
		str_cut(input, '\n', &line, &input);
		unsigned kind = fuzz_byte(&line);
		str_cut(line, '\t', &path, &bytes);
		if (!manifest_path_ok(path))
			continue;
		str_copy(path, f->paths[f->count], sizeof *f->paths);
		f->list[f->count] = (struct repo_extra){.path = f->paths[f->count],
		                                        .mode = kind == 'd' ? 01777 : 0600,
		                                        .bytes = kind == 'l' ? NULL
		                                                 : bytes.p   ? bytes.p
		                                                             : "",
		                                        .n = kind == 'l' ? LONG_BYTES + bytes.n : bytes.n,
		                                        .fd = -1};
		f->count++;
	}
}

static void tar_holds(const struct files *f, struct str tar)
{
	struct entry e;
	size_t at = 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct repo_extra *x = &f->list[i];
		HOLDS(entry_read(tar, &at, &e) && strcmp(e.path, x->path) == 0);
		HOLDS(e.size == x->n && e.mode == x->mode && e.kind == '0');
		if (!x->bytes)
			return; /* it could not be read, which was the end */
		HOLDS(x->n <= tar.n - at && memcmp(tar.p + at, x->bytes, x->n) == 0);
		at += (x->n + BLOCK - 1) / BLOCK * BLOCK;
	}
	HOLDS(!entry_read(tar, &at, &e));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct files *f = calloc(1, sizeof *f);
	struct repo_manifest none = {.count = 0};
	struct buf out = {0};
	files_read(fuzz_input(data, size), f);
	bool whole = true;
	for (size_t i = 0; i < f->count; i++)
		whole = whole && f->list[i].bytes;
	HOLDS((repo_tar(&none, f->list, f->count, out_take, &out) == 0) == whole);
	tar_holds(f, buf_view(&out));
	buf_free(&out);
	free(f);
	return 0;
}
