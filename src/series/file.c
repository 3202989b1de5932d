/* Records in rings. Every record is checked when it is read: one that was being written when the process was killed is
 * none. */
#include "series/file.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "STWSERI1"
#define BLOCK 4096
#define HEADER (2ul * BLOCK)
#define RECORD_HEAD 16
#define MARK 12
#define COUNT_MAX 5270400u /* ten years of minutes: what series_sizes_parse() allows */
#define WALK_BYTES (256ul << 10)

static const int64_t steps[SERIES_LEVELS] = {10000, 60000, 300000, 3600000, 86400000};

int64_t series_step_ms(enum series_level level)
{
	return steps[level];
}

static size_t record_bytes(const struct series_layout *layout)
{
	return RECORD_HEAD + layout->room * 4;
}

uint64_t series_file_bytes(const struct series_layout *layout, const struct series_sizes *sizes)
{
	uint64_t records = 0;
	for (int i = (int)layout->first; i < SERIES_LEVELS; i++)
		records += sizes->count[i];
	return HEADER + records * record_bytes(layout);
}

/* --- numbers as bytes, the lowest first */

static void put_u32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static uint32_t get_u32(const unsigned char *p)
{
	uint32_t v = 0;
	for (int i = 0; i < 4; i++)
		v |= (uint32_t)p[i] << (8 * i);
	return v;
}

static void put_time(unsigned char *p, int64_t v)
{
	put_u32(p, (uint32_t)(uint64_t)v);
	put_u32(p + 4, (uint32_t)((uint64_t)v >> 32));
}

static int64_t get_time(const unsigned char *p)
{
	return (int64_t)(get_u32(p) | (uint64_t)get_u32(p + 4) << 32);
}

static void put_float(unsigned char *p, float v)
{
	uint32_t bits;
	memcpy(&bits, &v, sizeof bits);
	put_u32(p, bits);
}

static float get_float(const unsigned char *p)
{
	uint32_t bits = get_u32(p);
	float v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

static uint32_t sum_of(const void *p, size_t n)
{
	return (uint32_t)libdeflate_crc32(0, p, n);
}

/* --- whole reads and writes */

static int write_all(int fd, const void *bytes, size_t n, off_t at)
{
	const char *p = bytes;
	while (n > 0) {
		ssize_t done = pwrite(fd, p, n, at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
		at += done;
	}
	return 0;
}

static int read_all(int fd, void *bytes, size_t n, off_t at)
{
	char *p = bytes;
	while (n > 0) {
		ssize_t done = pread(fd, p, n, at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EBADMSG;
		p += done;
		n -= (size_t)done;
		at += done;
	}
	return 0;
}

/* --- header and mark */

#define HEADER_FIELDS (8 + 4 + 4 + 4 * SERIES_LEVELS)

static void header_write(unsigned char *p, const struct series_layout *layout, const struct series_sizes *sizes)
{
	memcpy(p, MAGIC, 8);
	put_u32(p + 8, layout->kind);
	put_u32(p + 12, (uint32_t)layout->room);
	for (size_t i = 0; i < SERIES_LEVELS; i++)
		put_u32(p + 16 + 4 * i, sizes->count[i]);
	put_u32(p + HEADER_FIELDS, sum_of(p, HEADER_FIELDS));
}

static bool header_read(const unsigned char *p, const struct series_layout *layout, struct series_sizes *ret_sizes)
{
	if (memcmp(p, MAGIC, 8) != 0 || get_u32(p + HEADER_FIELDS) != sum_of(p, HEADER_FIELDS) ||
	    get_u32(p + 8) != layout->kind || get_u32(p + 12) != layout->room)
		return false;
	for (size_t i = 0; i < SERIES_LEVELS; i++) {
		ret_sizes->count[i] = get_u32(p + 16 + 4 * i);
		if (ret_sizes->count[i] > COUNT_MAX || (i >= layout->first && !ret_sizes->count[i]))
			return false;
	}
	return true;
}

static int64_t mark_read(const unsigned char *p)
{
	int64_t last = -1;
	for (size_t i = 0; i < 2; i++)
		if (get_u32(p + i * MARK + 8) == sum_of(p + i * MARK, 8)) {
			last = get_time(p + i * MARK);
			if (last >= 0)
				break;
		}
	return last;
}

/* The first is what counts; the second is for the moment in which the first is half written. */
int series_mark_write(struct series_file *f, int64_t last_ms)
{
	unsigned char mark[MARK];
	put_time(mark, last_ms);
	put_u32(mark + 8, sum_of(mark, 8));
	int r = write_all(f->fd, mark, MARK, BLOCK);
	r = r < 0 ? r : write_all(f->fd, mark, MARK, BLOCK + MARK);
	if (r == 0)
		f->last_ms = last_ms;
	return r;
}

/* Behind the marks: how many, checksum, numbers. */
#define NOTE (BLOCK + 64)
#define NOTE_HEAD 8

int series_note_write(const struct series_file *f, const uint64_t *numbers, size_t count)
{
	unsigned char all[NOTE_HEAD + 8 * SERIES_NOTE];
	for (size_t i = 0; i < count; i++)
		put_time(all + NOTE_HEAD + 8 * i, (int64_t)numbers[i]);
	put_u32(all, (uint32_t)count);
	put_u32(all + 4, sum_of(all + NOTE_HEAD, 8 * count));
	return write_all(f->fd, all, NOTE_HEAD + 8 * count, NOTE);
}

size_t series_note_read(const struct series_file *f, uint64_t ret_numbers[SERIES_NOTE])
{
	unsigned char all[NOTE_HEAD + 8 * SERIES_NOTE];
	if (read_all(f->fd, all, sizeof all, NOTE) < 0)
		return 0;
	size_t count = get_u32(all);
	if (count > SERIES_NOTE || get_u32(all + 4) != sum_of(all + NOTE_HEAD, 8 * count))
		return 0;
	for (size_t i = 0; i < count; i++)
		ret_numbers[i] = (uint64_t)get_time(all + NOTE_HEAD + 8 * i);
	return count;
}
_Static_assert(NOTE + NOTE_HEAD + 8 * SERIES_NOTE <= HEADER, "the note lies before the rings");

int series_file_open(const char *path, const struct series_layout *layout, bool write, struct series_file *ret_file)
{
	unsigned char head[HEADER];
	struct stat st;
	struct series_file f = {.layout = layout, .record = record_bytes(layout)};
	f.fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
	if (f.fd < 0)
		return -errno;
	int r = read_all(f.fd, head, sizeof head, 0);
	if (r == 0 && (!header_read(head, layout, &f.sizes) || fstat(f.fd, &st) < 0 ||
	               (uint64_t)st.st_size != series_file_bytes(layout, &f.sizes)))
		r = -EBADMSG;
	if (r < 0) {
		close(f.fd);
		return r;
	}
	f.last_ms = mark_read(head + BLOCK);
	*ret_file = f;
	return 0;
}

static char *path_new(const char *path)
{
	size_t n = strlen(path) + sizeof ".new";
	char *made = must_malloc(n);
	snprintf(made, n, "%s.new", path);
	return made;
}

int series_file_make(const char *path, const struct series_layout *layout, const struct series_sizes *sizes,
                     struct series_file *ret_file)
{
	unsigned char head[HEADER] = {0};
	struct series_file f = {.layout = layout, .sizes = *sizes, .record = record_bytes(layout), .last_ms = -1};
	char *made = path_new(path);
	header_write(head, layout, sizes);
	put_time(head + BLOCK, -1);
	put_time(head + BLOCK + MARK, -1);
	f.fd = open(made, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = f.fd < 0 ? -errno : 0;
	if (r == 0)
		r = write_all(f.fd, head, sizeof head, 0);
	if (r == 0 && ftruncate(f.fd, (off_t)series_file_bytes(layout, sizes)) < 0)
		r = -errno;
	free(made);
	if (r < 0 && f.fd >= 0)
		return series_file_publish(path, &f, r);
	if (r == 0)
		*ret_file = f;
	return r;
}

int series_file_publish(const char *path, struct series_file *f, int error)
{
	char *made = path_new(path);
	if (error == 0 && rename(made, path) < 0)
		error = -errno;
	if (error < 0)
		unlink(made);
	free(made);
	series_file_close(f);
	return error;
}

void series_file_close(struct series_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* --- records */

static off_t record_place(const struct series_file *f, enum series_level level, int64_t begin_ms)
{
	uint64_t before = 0;
	for (int i = (int)f->layout->first; i < (int)level; i++)
		before += f->sizes.count[i];
	before += (uint64_t)(begin_ms / steps[level]) % f->sizes.count[level];
	return (off_t)(HEADER + before * f->record);
}

static void record_encode(const struct series_file *f, const struct series_record *r, unsigned char *p)
{
	put_time(p, r->time_ms);
	put_u32(p + 12, r->samples);
	for (size_t i = 0; i < f->layout->room; i++)
		put_float(p + RECORD_HEAD + 4 * i, r->values[i]);
	uint32_t sum = sum_of(p, 8);
	put_u32(p + 8, (uint32_t)libdeflate_crc32(sum, p + 12, f->record - 12));
}

/* False: it is of another turn of the ring, or not whole. */
static bool record_decode(const struct series_file *f, const unsigned char *p, int64_t begin_ms,
                          struct series_record *r)
{
	if (get_time(p) != begin_ms)
		return false;
	uint32_t sum = sum_of(p, 8);
	if (get_u32(p + 8) != (uint32_t)libdeflate_crc32(sum, p + 12, f->record - 12))
		return false;
	r->time_ms = begin_ms;
	r->samples = get_u32(p + 12);
	for (size_t i = 0; i < f->layout->room; i++)
		r->values[i] = get_float(p + RECORD_HEAD + 4 * i);
	return true;
}

int series_record_read(const struct series_file *f, enum series_level level, int64_t begin_ms, struct series_record *r)
{
	unsigned char *bytes = must_malloc(f->record);
	int result = read_all(f->fd, bytes, f->record, record_place(f, level, begin_ms));
	if (result < 0 || begin_ms <= 0 || !record_decode(f, bytes, begin_ms, r)) {
		r->time_ms = -1;
		r->samples = 0;
		for (size_t i = 0; i < f->layout->room; i++)
			r->values[i] = NAN;
	}
	free(bytes);
	return result;
}

int series_record_write(const struct series_file *f, enum series_level level, const struct series_record *r)
{
	unsigned char *bytes = must_malloc(f->record);
	record_encode(f, r, bytes);
	int result = write_all(f->fd, bytes, f->record, record_place(f, level, r->time_ms));
	free(bytes);
	return result;
}

int series_records_walk(const struct series_file *f, enum series_level level, int64_t from_ms, int64_t to_ms,
                        int (*take)(void *ctx, const struct series_record *r), void *ctx)
{
	int64_t step = steps[level], at = (from_ms + step - 1) / step, end = (to_ms + step - 1) / step;
	size_t most = WALK_BYTES / f->record + 1;
	unsigned char *bytes = must_malloc(most * f->record);
	struct series_record record = {.values = must_calloc(f->layout->room, sizeof(float))};
	int r = 0;
	/* More than a turn of the ring has nothing more to give. */
	if (end - at > f->sizes.count[level])
		at = end - f->sizes.count[level];
	at = at < 1 ? 1 : at;
	while (r == 0 && at < end) {
		size_t run = f->sizes.count[level] - (size_t)at % f->sizes.count[level];
		run = run > most ? most : run;
		run = (int64_t)run > end - at ? (size_t)(end - at) : run;
		r = read_all(f->fd, bytes, run * f->record, record_place(f, level, at * step));
		for (size_t i = 0; r == 0 && i < run; i++)
			if (record_decode(f, bytes + i * f->record, (at + (int64_t)i) * step, &record))
				r = take(ctx, &record);
		at += (int64_t)run;
	}
	free(record.values);
	free(bytes);
	return r;
}
