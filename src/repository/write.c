/* Writing a snapshot. Files are read in blocks of 1 MB; each block's chunks are hashed, looked up together, and only
 * those that are new are compressed and sealed into the pack of the calling thread. No lock is held meanwhile: the
 * index is locked for the look-up, the writer's own list of new chunks when one is claimed. */
#include "repository/write.h"

#include "base/arena.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/pace.h"
#include "repository/chunk.h"
#include "repository/common.h"
#include "repository/format.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/lease.h"
#include "repository/manifest.h"
#include "repository/pack.h"
#include "repository/parity.h"
#include "repository/places.h"
#include "repository/quota.h"
#include "repository/read.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE 8192
#define CLAIMS_FIRST 4096
#define LARGE (8 << 20) /* worth more threads */
#define PACKERS 2
#define RING 6
#define FLUSHES 8
#define SWEEP_WAIT_MS 50

/* What one thread works with, while it writes a file. */
struct bench {
	struct pack_builder pack;
	unsigned char *block;
	struct bench *next;
};

struct repo_writer {
	struct repository *r;
	const struct repo_key *key; /* of all that it writes */
	struct lease *lease;
	struct parity_builder parity; /* of its packs */
	pthread_mutex_t lock;         /* of all below */
	struct bench *free_benches;
	unsigned benches_out;
	struct manifest_file *files; /* their paths and ids are on the heap */
	size_t count, room;
	unsigned char (*claims)[CHUNK_ID]; /* open addressing; all 0: free */
	size_t claim_room, claim_count;
	struct repo_amount amount;
	int failure;
	char why[256];
};

static int sweeper_wait(struct lease *l)
{
	struct lease_others others;
	for (;;) {
		int result = lease_look(l, &others);
		if (result < 0 || !others.sweepers)
			return result;
		nanosleep(&(struct timespec){.tv_nsec = SWEEP_WAIT_MS * 1000000L}, NULL);
	}
}

int repo_write_begin(struct repository *r, struct repo_writer **ret_writer)
{
	struct lease *lease = NULL;
	int result = repository_key_refresh(r);
	if (result == 0)
		result = lease_begin(r, LEASE_WRITE, &lease);
	if (result == 0)
		result = sweeper_wait(lease);
	if (result == 0)
		result = index_refresh(r);
	if (result < 0) {
		lease_end(lease);
		return result;
	}
	struct repo_writer *w = must_calloc(1, sizeof(*w));
	w->r = r;
	w->key = repo_key_current(r);
	w->lease = lease;
	parity_setup(&w->parity, r->parity);
	pthread_mutex_init(&w->lock, NULL);
	*ret_writer = w;
	return 0;
}

static struct bench *bench_take(struct repo_writer *w)
{
	pthread_mutex_lock(&w->lock);
	struct bench *b = w->free_benches;
	if (b)
		w->free_benches = b->next;
	w->benches_out++;
	pthread_mutex_unlock(&w->lock);
	if (b)
		return b;
	b = must_calloc(1, sizeof(*b));
	b->block = must_malloc(BATCH_BYTES);
	b->pack.parity = &w->parity;
	return b;
}

static void bench_give(struct repo_writer *w, struct bench *b)
{
	pthread_mutex_lock(&w->lock);
	b->next = w->free_benches;
	w->free_benches = b;
	w->benches_out--;
	pthread_mutex_unlock(&w->lock);
}

static void bench_free(struct bench *b)
{
	pack_builder_free(&b->pack);
	free(b->block);
	free(b);
}

/* A pack that could not be put took chunks along that other files count on: every later call has this failure. */
static int writer_fail(struct repo_writer *w, int code)
{
	pthread_mutex_lock(&w->lock);
	if (!w->failure) {
		w->failure = code;
		snprintf(w->why, sizeof w->why, "%s", repository_why());
	}
	pthread_mutex_unlock(&w->lock);
	return code;
}

static int writer_state(struct repo_writer *w)
{
	pthread_mutex_lock(&w->lock);
	int result = w->failure;
	if (result < 0)
		repo_fail(result, "%s", w->why);
	pthread_mutex_unlock(&w->lock);
	return result;
}

static unsigned char *claim_find(struct repo_writer *w, const unsigned char id[CHUNK_ID])
{
	size_t i = get_u64(id) & (w->claim_room - 1);
	while (!chunk_id_is_zero(w->claims[i]) && memcmp(w->claims[i], id, CHUNK_ID) != 0)
		i = (i + 1) & (w->claim_room - 1);
	return w->claims[i];
}

static void claims_grow(struct repo_writer *w)
{
	unsigned char(*old)[CHUNK_ID] = w->claims;
	size_t room = w->claim_room;
	w->claim_room = room ? room * 2 : CLAIMS_FIRST;
	w->claims = must_calloc(w->claim_room, CHUNK_ID);
	for (size_t i = 0; i < room; i++)
		if (!chunk_id_is_zero(old[i]))
			memcpy(claim_find(w, old[i]), old[i], CHUNK_ID);
	free(old);
}

/* True: the caller stores it. False: it, or another thread, has done so or will. */
static bool chunk_claim(struct repo_writer *w, const unsigned char id[CHUNK_ID])
{
	pthread_mutex_lock(&w->lock);
	if (w->claim_count * 2 >= w->claim_room)
		claims_grow(w);
	unsigned char *slot = claim_find(w, id);
	bool new = chunk_id_is_zero(slot);
	if (new) {
		memcpy(slot, id, CHUNK_ID);
		w->claim_count++;
		w->amount.new_chunks++;
	}
	pthread_mutex_unlock(&w->lock);
	return new;
}

static int bench_flush(struct repo_writer *w, struct bench *b)
{
	uint64_t stored = 0;
	int result = b->pack.count ? quota_check(w->r) : 0;
	if (result == 0)
		result = pack_flush(w->r, &b->pack, &stored);
	if (result == 0)
		quota_add(w->r, stored);
	pthread_mutex_lock(&w->lock);
	w->amount.stored += stored;
	pthread_mutex_unlock(&w->lock);
	return result < 0 ? writer_fail(w, result) : 0;
}

static int chunk_store(struct repo_writer *w, struct bench *b, const unsigned char id[CHUNK_ID], const void *bytes,
                       size_t n)
{
	if (!chunk_claim(w, id))
		return 0;
	pack_add(w->key, &b->pack, id, bytes, n);
	return pack_is_full(&b->pack) ? bench_flush(w, b) : 0;
}

/* A block of a file: the chunks' ids, and those that are new into the pack. */
static int block_write(struct repo_writer *w, struct bench *b, const unsigned char *bytes, size_t n,
                       unsigned char *ret_ids)
{
	struct chunk_place places[BATCH_CHUNKS];
	size_t count = (n + CHUNK_BYTES - 1) / CHUNK_BYTES;
	int result = 0;
	pace_take(w->r->pace, str_of(w->r->group), n);
	for (size_t i = 0; i < count; i++) {
		size_t at = i * CHUNK_BYTES, some = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;
		if (chunk_is_zero(bytes + at, some))
			memset(ret_ids + i * CHUNK_ID, 0, CHUNK_ID);
		else
			chunk_id(w->key, bytes + at, some, ret_ids + i * CHUNK_ID);
	}
	index_find(w->r, ret_ids, count, places);
	for (size_t i = 0; i < count && result == 0; i++) {
		size_t at = i * CHUNK_BYTES, some = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;
		const unsigned char *id = ret_ids + i * CHUNK_ID;
		if ((!places[i].found || places[i].doubted) && !chunk_id_is_zero(id))
			result = chunk_store(w, b, id, bytes + at, some);
	}
	pthread_mutex_lock(&w->lock);
	w->amount.bytes += n;
	w->amount.chunks += count;
	pthread_mutex_unlock(&w->lock);
	return result;
}

/* A file that is being written: its entry, and room for its ids. */
struct draft {
	struct manifest_file f;
	unsigned char *ids;
	size_t room;
};

static unsigned char *draft_ids(struct draft *d, size_t more)
{
	if (d->f.id_count + more > d->room) {
		d->room = d->room * 2 > d->f.id_count + more ? d->room * 2 : d->f.id_count + more;
		d->ids = must_realloc(d->ids, d->room * CHUNK_ID);
	}
	return d->ids + d->f.id_count * CHUNK_ID;
}

static int draft_begin(struct repo_writer *w, const struct repo_file *f, struct draft *d)
{
	int result = writer_state(w);
	if (result < 0)
		return result;
	if (!manifest_path_ok(str_of(f->path)))
		return repo_fail(-EINVAL, "%s: is no path below a directory", f->path);
	*d = (struct draft){.f = {.path = must_strdup(f->path),
	                          .kind = MANIFEST_FILE,
	                          .mode = f->mode & 07777,
	                          .modified_s = f->modified_s}};
	return 0;
}

static void draft_keep(struct repo_writer *w, struct draft *d)
{
	d->f.ids = d->ids;
	pthread_mutex_lock(&w->lock);
	if (w->count == w->room) {
		w->room = w->room ? w->room * 2 : 256;
		w->files = must_realloc(w->files, w->room * sizeof(*w->files));
	}
	w->files[w->count++] = d->f;
	if (d->f.kind == MANIFEST_FILE)
		w->amount.files++;
	pthread_mutex_unlock(&w->lock);
}

static void path_free(const char *path)
{
	free((void *)(uintptr_t)path);
}

static int draft_end(struct repo_writer *w, struct draft *d, int result)
{
	if (result == 0) {
		draft_keep(w, d);
		return 0;
	}
	path_free(d->f.path);
	free(d->ids);
	return result;
}

static int pages_check(const struct repo_file *f, uint64_t at, const unsigned char *bytes, size_t n)
{
	int result = 0;
	for (size_t i = 0; f->page_check && i + PAGE <= n && result == 0; i += PAGE)
		result = f->page_check(f->ctx, (at + i) / PAGE, bytes + i);
	return result < 0 ? repo_fail(result, "%s: a page is not as it should be", f->path) : 0;
}

/* A whole block, unless the file ends before. */
static ssize_t block_read(int fd, unsigned char *block, size_t wanted)
{
	size_t n = 0;
	while (n < wanted) {
		ssize_t got = read(fd, block + n, wanted - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static int draft_add(struct repo_writer *w, struct bench *b, const struct repo_file *f, struct draft *d,
                     const unsigned char *bytes, size_t n)
{
	int result = pages_check(f, d->f.size, bytes, n);
	if (result < 0)
		return result;
	d->f.sum = crc32c(d->f.sum, bytes, n);
	result = block_write(w, b, bytes, n, draft_ids(d, BATCH_CHUNKS));
	d->f.id_count += (n + CHUNK_BYTES - 1) / CHUNK_BYTES;
	d->f.size += n;
	return result;
}

/* A large file takes several threads: this one reads, shows the pages and sums up the file, others look for its chunks
 * and pack them, each a block into a pack of its own. */
struct pipeline {
	struct repo_writer *w;
	struct draft *d;
	struct {
		unsigned char *bytes;
		size_t n;
		bool used;
	} ring[RING];         /* of block i: i % RING */
	size_t filled, taken; /* blocks so far */
	bool end;
	int failure;
	char why[256];
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* With the lock. Blocks are done in any order; all but the last are whole. */
static void pipeline_keep(struct pipeline *p, size_t block, const unsigned char *ids, size_t count)
{
	struct draft *d = p->d;
	size_t at = block * BATCH_CHUNKS, end = at + count;
	if (end > d->room) {
		d->room = d->room * 2 > end ? d->room * 2 : end;
		d->ids = must_realloc(d->ids, d->room * CHUNK_ID);
	}
	memcpy(d->ids + at * CHUNK_ID, ids, count * CHUNK_ID);
	d->f.id_count = end > d->f.id_count ? end : d->f.id_count;
}

static void *pipeline_pack(void *arg)
{
	struct pipeline *p = arg;
	unsigned char ids[BATCH_CHUNKS * CHUNK_ID];
	struct bench *b = bench_take(p->w);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->failure && p->taken == p->filled && !p->end)
			pthread_cond_wait(&p->changed, &p->lock);
		if (p->failure || p->taken == p->filled)
			break;
		size_t block = p->taken++, slot = block % RING, n = p->ring[slot].n;
		pthread_mutex_unlock(&p->lock);
		int result = block_write(p->w, b, p->ring[slot].bytes, n, ids);
		pthread_mutex_lock(&p->lock);
		if (result == 0) {
			pipeline_keep(p, block, ids, (n + CHUNK_BYTES - 1) / CHUNK_BYTES);
		} else if (!p->failure) {
			p->failure = result;
			snprintf(p->why, sizeof p->why, "%s", repository_why());
		}
		p->ring[slot].used = false;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	bench_give(p->w, b);
	return NULL;
}

/* Room for a block; negative: another thread has failed. */
static int pipeline_room(struct pipeline *p, unsigned char **ret_block)
{
	pthread_mutex_lock(&p->lock);
	while (!p->failure && p->ring[p->filled % RING].used)
		pthread_cond_wait(&p->changed, &p->lock);
	int result = p->failure;
	*ret_block = p->ring[p->filled % RING].bytes;
	pthread_mutex_unlock(&p->lock);
	return result;
}

static void pipeline_send(struct pipeline *p, size_t n, bool end)
{
	pthread_mutex_lock(&p->lock);
	if (n) {
		p->ring[p->filled % RING].n = n;
		p->ring[p->filled % RING].used = true;
		p->filled++;
	}
	p->end = end;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

static int block_next(const struct repo_file *f, const struct draft *d, int fd, uint64_t size_max, unsigned char *block,
                      size_t *ret_n)
{
	uint64_t left = size_max - d->f.size;
	ssize_t got = block_read(fd, block, left < BATCH_BYTES ? (size_t)left : BATCH_BYTES);
	*ret_n = got < 0 ? 0 : (size_t)got;
	return got < 0 ? repo_fail((int)got, "%s: cannot be read: %s", f->path, strerror((int)-got)) : 0;
}

static int pipeline_fill(struct pipeline *p, const struct repo_file *f, int fd, uint64_t size_max)
{
	struct draft *d = p->d;
	int result = 0;
	for (size_t n = BATCH_BYTES; n == BATCH_BYTES && result == 0;) {
		unsigned char *block;
		result = pipeline_room(p, &block);
		if (result == 0)
			result = block_next(f, d, fd, size_max, block, &n);
		if (result == 0)
			result = pages_check(f, d->f.size, block, n);
		if (result < 0)
			break;
		d->f.sum = crc32c(d->f.sum, block, n);
		d->f.size += n;
		pipeline_send(p, n, false);
	}
	return result;
}

static int file_pump_large(struct repo_writer *w, const struct repo_file *f, struct draft *d, int fd, uint64_t size_max)
{
	struct pipeline p = {.w = w, .d = d};
	pthread_t threads[PACKERS];
	size_t count = 0;
	int result = 0;
	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.changed, NULL);
	for (size_t i = 0; i < RING; i++)
		p.ring[i].bytes = must_malloc(BATCH_BYTES);
	while (count < PACKERS && pthread_create(&threads[count], NULL, pipeline_pack, &p) == 0)
		count++;
	if (count)
		result = pipeline_fill(&p, f, fd, size_max);
	else
		result = repo_fail(-EAGAIN, "no thread could be made");
	pipeline_send(&p, 0, true);
	while (count > 0)
		pthread_join(threads[--count], NULL);
	if (p.failure)
		result = repo_fail(p.failure, "%s", p.why);
	for (size_t i = 0; i < RING; i++)
		free(p.ring[i].bytes);
	pthread_mutex_destroy(&p.lock);
	pthread_cond_destroy(&p.changed);
	return result;
}

static int file_pump(struct repo_writer *w, struct bench *b, const struct repo_file *f, struct draft *d, int fd,
                     uint64_t size_max)
{
	int result = 0;
	for (size_t n = BATCH_BYTES; n == BATCH_BYTES && result == 0;) {
		result = block_next(f, d, fd, size_max, b->block, &n);
		if (result == 0 && n)
			result = draft_add(w, b, f, d, b->block, n);
	}
	return result;
}

int repo_write_file(struct repo_writer *w, const struct repo_file *f, int fd, uint64_t size_max)
{
	struct draft d;
	struct stat st;
	int result = draft_begin(w, f, &d);
	if (result < 0)
		return result;
	struct bench *b = bench_take(w);
	bool large = fstat(fd, &st) == 0 && st.st_size >= LARGE && size_max >= LARGE;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	result = large ? file_pump_large(w, f, &d, fd, size_max) : file_pump(w, b, f, &d, fd, size_max);
	bench_give(w, b);
	return draft_end(w, &d, result);
}

int repo_write_bytes(struct repo_writer *w, const struct repo_file *f, const void *bytes, size_t n)
{
	struct draft d;
	int result = draft_begin(w, f, &d);
	if (result < 0)
		return result;
	struct bench *b = bench_take(w);
	for (size_t at = 0; at < n && result == 0; at += BATCH_BYTES)
		result = draft_add(w, b, f, &d, (const unsigned char *)bytes + at,
		                   n - at < BATCH_BYTES ? n - at : BATCH_BYTES);
	bench_give(w, b);
	return draft_end(w, &d, result);
}

int repo_write_directory(struct repo_writer *w, const char *path, unsigned mode)
{
	struct draft d;
	struct repo_file f = {.path = path, .mode = mode};
	int result = draft_begin(w, &f, &d);
	if (result < 0)
		return result;
	d.f.kind = MANIFEST_DIRECTORY;
	return draft_end(w, &d, 0);
}

/* A chunk of another repository; where both have the same key, one that is here already is not read. */
static int chunk_copy(struct repo_writer *w, struct bench *b, const struct repo_key *of,
                      const unsigned char id[CHUNK_ID], struct chunk_reader *from, unsigned char ret_id[CHUNK_ID])
{
	bool same = memcmp(of->ids, w->key->ids, REPO_KEY_BYTES) == 0;
	struct chunk_place at = {0};
	size_t n = 0;
	memcpy(ret_id, id, CHUNK_ID);
	if (chunk_id_is_zero(id))
		return 0;
	if (same)
		index_find(w->r, id, 1, &at);
	if (at.found && !at.doubted)
		return 0;
	int result = reader_chunk(from, id, b->block, &n);
	if (result < 0)
		return result;
	chunk_id(w->key, b->block, n, ret_id);
	index_find(w->r, ret_id, 1, &at);
	return at.found && !at.doubted ? 0 : chunk_store(w, b, ret_id, b->block, n);
}

int writer_copy_file(struct repo_writer *w, const struct repo_manifest *m, const struct manifest_file *f,
                     struct chunk_reader *from)
{
	struct draft d;
	struct repo_file as = {.path = f->path, .mode = f->mode, .modified_s = f->modified_s};
	if (!f->summed)
		return repo_fail(-ENOTSUP, "a snapshot that an earlier version stored is not copied");
	int result = draft_begin(w, &as, &d);
	if (result < 0)
		return result;
	struct bench *b = bench_take(w);
	unsigned char *ids = draft_ids(&d, f->id_count + 1);
	for (size_t i = 0; i < f->id_count && result == 0; i++)
		result = chunk_copy(w, b, m->key, f->ids + i * CHUNK_ID, from, ids + i * CHUNK_ID);
	bench_give(w, b);
	d.f.kind = f->kind;
	d.f.size = f->size;
	d.f.id_count = f->id_count;
	d.f.sum = f->sum;
	pthread_mutex_lock(&w->lock);
	w->amount.bytes += f->size;
	w->amount.chunks += f->id_count;
	pthread_mutex_unlock(&w->lock);
	return draft_end(w, &d, result);
}

void repo_write_amount(struct repo_writer *w, struct repo_amount *ret_amount)
{
	pthread_mutex_lock(&w->lock);
	*ret_amount = w->amount;
	pthread_mutex_unlock(&w->lock);
}

static int path_compare(const void *a, const void *b)
{
	return strcmp(((const struct manifest_file *)a)->path, ((const struct manifest_file *)b)->path);
}

int repo_write_backup_manifest(struct repo_writer *w, const json_t *wal_ranges)
{
	struct buf out = {0};
	struct repo_file f = {.path = "backup_manifest", .mode = 0600};
	pthread_mutex_lock(&w->lock);
	if (w->count)
		qsort(w->files, w->count, sizeof(*w->files), path_compare);
	manifest_for_postgres(&out, w->files, w->count, wal_ranges, &f.modified_s);
	pthread_mutex_unlock(&w->lock);
	int result = repo_write_bytes(w, &f, out.p, out.n);
	buf_free(&out);
	return result;
}

struct flushing {
	struct repo_writer *w;
	struct bench *b;
	pthread_t thread;
};

/* A failure is the writer's. */
static void *flush_thread(void *arg)
{
	struct flushing *f = arg;
	(void)!bench_flush(f->w, f->b);
	return NULL;
}

/* The last pack of each, all at once: most of that is waiting for the object store. */
static int benches_flush(struct repo_writer *w)
{
	struct flushing all[FLUSHES];
	struct bench *b = w->free_benches;
	while (b && writer_state(w) == 0) {
		size_t count = 0;
		for (; b && count < FLUSHES; b = b->next) {
			all[count] = (struct flushing){.w = w, .b = b};
			if (pthread_create(&all[count].thread, NULL, flush_thread, &all[count]) == 0)
				count++;
			else if (bench_flush(w, b) < 0)
				break;
		}
		while (count > 0)
			pthread_join(all[--count].thread, NULL);
	}
	return writer_state(w);
}

/* The last packs get their second copy before a manifest names what they have. */
static int parity_end(struct repo_writer *w)
{
	uint64_t stored = 0;
	int result = parity_flush(w->r, &w->parity, &stored);
	if (result == 0)
		quota_add(w->r, stored);
	w->amount.stored += stored;
	return result;
}

/* Sorted, each path once. */
static int files_sort(struct repo_writer *w)
{
	if (w->count)
		qsort(w->files, w->count, sizeof(*w->files), path_compare);
	for (size_t i = 1; i < w->count; i++)
		if (strcmp(w->files[i - 1].path, w->files[i].path) == 0)
			return repo_fail(-EINVAL, "%s: was written twice", w->files[i].path);
	return 0;
}

static json_t *head_make(const struct repo_writer *w, const char *cluster, const char *snapshot, const char *set,
                         const json_t *facts)
{
	json_t *head = json_object();
	json_put_z(head, "cluster", cluster);
	json_put_z(head, "snapshot", snapshot);
	json_put_z(head, "set", set);
	json_put(head, "chunkBytes", json_integer(CHUNK_BYTES));
	json_put_z(head, "checksum", MANIFEST_CHECKSUM);
	json_put(head, "files", json_integer((json_int_t)w->amount.files));
	json_put(head, "bytes", json_integer((json_int_t)w->amount.bytes));
	json_put(head, "chunks", json_integer((json_int_t)w->amount.chunks));
	json_put(head, "newChunks", json_integer((json_int_t)w->amount.new_chunks));
	json_put(head, "stored", json_integer((json_int_t)w->amount.stored));
	json_put(head, "facts", facts ? json_deep_copy(facts) : json_object());
	return head;
}

/* A sweeper that stood still for long may have gone on with its work while we did ours: what we found is looked for
 * once more. */
static int chunks_check(struct repo_writer *w)
{
	struct chunk_place places[BATCH_CHUNKS];
	int result = index_refresh(w->r);
	for (size_t i = 0; i < w->count && result == 0; i++) {
		const struct manifest_file *f = &w->files[i];
		for (size_t first = 0; first < f->id_count && result == 0; first += BATCH_CHUNKS) {
			size_t left = f->id_count - first, some = left < BATCH_CHUNKS ? left : BATCH_CHUNKS;
			const unsigned char *ids = f->ids + first * CHUNK_ID;
			index_find(w->r, ids, some, places);
			for (size_t k = 0; k < some && result == 0; k++)
				if ((!places[k].found || places[k].doubted) && !chunk_id_is_zero(ids + k * CHUNK_ID))
					result = repo_fail(
					        -ESTALE, "%s: a chunk of it was there and is gone; try again", f->path);
		}
	}
	return result;
}

/* The lease is looked at before, so that nothing is named that a sweeper has taken, and after, should this process have
 * stood still just then. */
static int manifest_commit(struct repo_writer *w, const char *cluster, const char *snapshot, const char *set,
                           const json_t *facts)
{
	char name[OBJECT_NAME];
	struct buf plain = {0};
	struct lease_others others;
	uint64_t size, stored = 0;
	manifest_name(name, cluster, snapshot, set);
	int result = object_size(w->r, name, &size);
	if (result == 0)
		return repo_fail(-EEXIST, "there is a snapshot of that name");
	if (result != -ENOENT)
		return result;
	result = chunks_check(w);
	if (result == 0)
		result = lease_look(w->lease, &others);
	if (result < 0)
		return result;
	json_t *head = head_make(w, cluster, snapshot, set, facts);
	manifest_write(&plain, head, w->files, w->count);
	json_decref(head);
	result =
	        plain.n <= MANIFEST_MAX
	                ? object_put_as(w->r, w->key, SEALED_MANIFEST, name, plain.p, plain.n, &stored)
	                : repo_fail(-EFBIG, "a set of more than about 8 TB, or of many millions of files, is not kept");
	buf_free(&plain);
	if (result == 0)
		w->amount.stored += stored;
	int looked = result == 0 ? lease_look(w->lease, &others) : 0;
	if (looked == -ESTALE || (looked < 0 && lease_check(w->lease) < 0)) {
		if (object_delete(w->r, name) < 0)
			log_error("backups: %s: names chunks that may be gone, and cannot be taken back: %s", name,
			          repository_why());
		result = repo_fail(-ESTALE, "the lease was lost while the snapshot was committed; try again");
	}
	return result;
}

int repo_write_commit(struct repo_writer *w, const char *cluster, const char *snapshot, const char *set,
                      const json_t *facts, struct repo_amount *ret_amount)
{
	int result = writer_state(w);
	if (result == 0 && (!name_part_ok(cluster) || !name_part_ok(snapshot) || !name_part_ok(set)))
		result = repo_fail(-EINVAL, "a snapshot's names are made of A-Z a-z 0-9 . _ = -");
	if (result == 0)
		result = files_sort(w);
	if (result == 0)
		result = benches_flush(w);
	if (result == 0)
		result = parity_end(w);
	if (result == 0)
		result = manifest_commit(w, cluster, snapshot, set, facts);
	if (result == 0 && ret_amount)
		*ret_amount = w->amount;
	repo_write_abort(w);
	return result;
}

void repo_write_abort(struct repo_writer *w)
{
	if (!w)
		return;
	while (w->free_benches) {
		struct bench *b = w->free_benches;
		w->free_benches = b->next;
		bench_free(b);
	}
	for (size_t i = 0; i < w->count; i++) {
		path_free(w->files[i].path);
		free((void *)(uintptr_t)w->files[i].ids);
	}
	lease_end(w->lease);
	parity_free(&w->parity);
	free(w->files);
	free(w->claims);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
