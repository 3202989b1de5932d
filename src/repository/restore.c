/* Bringing a snapshot's files back, or reading them only to see that they could be. Several threads take files one
 * after the other: large ones first, so that none of them is left for the end, then the others in the order in which
 * they lie in the packs. A thread that finds no more files helps with a large one: batches are opened and written in
 * any order, and summed in theirs by the thread that took the file. */
#include "repository/restore.h"

#include "base/arena.h"
#include "base/crc32c.h"
#include "base/nolink.h"
#include "repository/chunk.h"
#include "repository/common.h"
#include "repository/format.h"
#include "repository/index.h"
#include "repository/manifest.h"
#include "repository/read.h"
#include "repository/why.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE ((uint64_t)32 << 20)
#define THREADS_MAX 64

struct turn {
	const struct manifest_file *f;
	unsigned char pack[PACK_ID];
	uint32_t offset;
};

#define SLOTS 8

enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_READY };

/* A large file that several threads work on. */
struct shared_file {
	const struct manifest_file *f;
	struct work *w;
	int fd;
	size_t batches, next; /* the next to be opened */
	struct {
		enum slot_state state;
		unsigned char *bytes;
	} slots[SLOTS]; /* of batch i: i % SLOTS */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int failure;
	char why[512];
	unsigned helpers;
	bool over;
	struct shared_file *after;
};

struct work {
	struct shared_file *shared; /* with the lock */
	struct repo_manifest *m;
	struct turn *turns;
	size_t count;
	_Atomic size_t next;
	_Atomic uint64_t done;
	uint64_t total;
	const struct repo_progress *progress;
	int directory; /* -1: nothing is written */
	int image;     /* negative: none */
	uid_t uid;
	gid_t gid;
	pthread_mutex_t lock;
	_Atomic int failure;
	char why[512];
};

/* A file on its way to the disk. */
struct target {
	struct work *w;
	int fd;
	const char *path;
};

static int turn_compare(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	bool x_large = x->f->size >= LARGE, y_large = y->f->size >= LARGE;
	if (x_large != y_large)
		return x_large ? -1 : 1;
	if (x_large && x->f->size != y->f->size)
		return x->f->size > y->f->size ? -1 : 1;
	int order = memcmp(x->pack, y->pack, PACK_ID);
	if (order)
		return order;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void turns_make(struct work *w)
{
	const struct repo_manifest *m = w->m;
	w->turns = must_calloc(m->count + 1, sizeof(*w->turns));
	for (size_t i = 0; i < m->count; i++) {
		const struct manifest_file *f = &m->files[i];
		struct chunk_place at = {0};
		if (f->kind != MANIFEST_FILE)
			continue;
		if (f->id_count)
			index_find(m->r, f->ids, 1, &at);
		struct turn *t = &w->turns[w->count++];
		t->f = f;
		t->offset = at.offset;
		memcpy(t->pack, at.pack, PACK_ID);
		w->total += f->size;
	}
	if (w->count)
		qsort(w->turns, w->count, sizeof(*w->turns), turn_compare);
}

static int bytes_write(int fd, const unsigned char *bytes, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, bytes, n, (off_t)at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		bytes += done;
		at += (uint64_t)done;
		n -= (size_t)done;
	}
	return 0;
}

/* Chunks of zeros stay holes. */
static int runs_write(int fd, const unsigned char *bytes, size_t n, uint64_t at, uint32_t zeros)
{
	int result = 0;
	for (size_t i = 0; i * CHUNK_BYTES < n && result == 0;) {
		size_t from = i * CHUNK_BYTES;
		if (zeros >> i & 1) {
			i++;
			continue;
		}
		while (i < BATCH_CHUNKS && i * CHUNK_BYTES < n && !(zeros >> i & 1))
			i++;
		size_t to = i * CHUNK_BYTES < n ? i * CHUNK_BYTES : n;
		result = bytes_write(fd, bytes + from, to - from, at + from);
	}
	return result;
}

static int progress_tell(struct work *w, uint64_t n)
{
	const struct repo_progress *p = w->progress;
	uint64_t done = atomic_fetch_add(&w->done, n) + n;
	if (p && p->tell)
		p->tell(p->ctx, done, w->total);
	if (p && p->cancel && *p->cancel)
		return repo_fail(-ECANCELED, "it was cancelled");
	return atomic_load(&w->failure);
}

static int target_sink(void *ctx, uint64_t at, const unsigned char *bytes, size_t n, uint32_t zeros)
{
	struct target *t = ctx;
	int result = t->fd < 0 ? 0 : runs_write(t->fd, bytes, n, at, zeros);
	if (result < 0)
		return repo_fail(result, "%s: cannot be written: %s", t->path, strerror(-result));
	/* On its way to the disk while the next are opened: the flush at the end then waits for little. */
	if (t->fd >= 0 && n == BATCH_BYTES)
		(void)!sync_file_range(t->fd, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE);
	return progress_tell(t->w, n);
}

static int file_open(struct work *w, const struct manifest_file *f)
{
	int fd = nolink_openat(w->directory, f->path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	return fd < 0 ? repo_fail(-errno, "%s: cannot be made: %s", f->path, strerror(errno)) : fd;
}

static int file_finish(struct work *w, const struct manifest_file *f, int fd, bool shared)
{
	struct timespec times[2] = {{.tv_sec = f->modified_s}, {.tv_sec = f->modified_s}};
	struct stat st;
	if ((!shared && ftruncate(fd, (off_t)f->size) < 0) || fstat(fd, &st) < 0 ||
	    ((st.st_uid != w->uid || st.st_gid != w->gid) && fchown(fd, w->uid, w->gid) < 0) ||
	    fchmod(fd, f->mode) < 0 || futimens(fd, times) < 0)
		return repo_fail(-errno, "%s: cannot be finished: %s", f->path, strerror(errno));
	return 0;
}

/* The image's file becomes this one's content, without a byte being copied. */
static bool file_share(struct work *w, const struct manifest_file *f, int fd)
{
	int from = w->image >= 0 && fd >= 0 ? nolink_openat(w->image, f->path, O_RDONLY, 0) : -1;
	if (from < 0)
		return false;
	bool shared = ioctl(fd, FICLONE, from) == 0;
	close(from);
	return shared;
}

/* Opens and writes a batch whose slot is free, and gives it to the owner. With the lock, which is let go meanwhile. */
static void batch_do(struct shared_file *x, struct chunk_reader *rd, size_t batch)
{
	size_t first = batch * BATCH_CHUNKS;
	unsigned char *bytes = x->slots[batch % SLOTS].bytes;
	struct target t = {x->w, x->fd, x->f->path};
	uint32_t zeros;
	x->slots[batch % SLOTS].state = SLOT_TAKEN;
	pthread_mutex_unlock(&x->lock);
	int result = reader_batch(rd, x->f, first, bytes, &zeros);
	if (result == 0)
		result = target_sink(&t, (uint64_t)first * CHUNK_BYTES, bytes, reader_batch_bytes(x->f, first), zeros);
	pthread_mutex_lock(&x->lock);
	if (result < 0 && !x->failure) {
		x->failure = result;
		snprintf(x->why, sizeof x->why, "%s", repository_why());
	}
	x->slots[batch % SLOTS].state = SLOT_READY;
	pthread_cond_broadcast(&x->changed);
}

/* With the lock: takes a batch and does it; false: there is none to take just now. */
static bool batch_take(struct shared_file *x, struct chunk_reader *rd)
{
	if (x->next >= x->batches || x->failure || x->slots[x->next % SLOTS].state != SLOT_FREE)
		return false;
	batch_do(x, rd, x->next++);
	return true;
}

static void shared_help(struct shared_file *x, struct chunk_reader *rd)
{
	pthread_mutex_lock(&x->lock);
	while (!x->over && !x->failure && x->next < x->batches)
		if (!batch_take(x, rd))
			pthread_cond_wait(&x->changed, &x->lock);
	x->helpers--;
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
}

/* The owner: sums up batch after batch, and opens some himself while the next is not there. */
static int shared_own(struct shared_file *x, struct chunk_reader *rd)
{
	uint32_t sum = 0;
	pthread_mutex_lock(&x->lock);
	for (size_t i = 0; i < x->batches && !x->failure; i++) {
		while (!x->failure && x->slots[i % SLOTS].state != SLOT_READY)
			if (!batch_take(x, rd))
				pthread_cond_wait(&x->changed, &x->lock);
		if (x->failure)
			break;
		pthread_mutex_unlock(&x->lock);
		sum = crc32c(sum, x->slots[i % SLOTS].bytes, reader_batch_bytes(x->f, i * BATCH_CHUNKS));
		pthread_mutex_lock(&x->lock);
		x->slots[i % SLOTS].state = SLOT_FREE;
		pthread_cond_broadcast(&x->changed);
	}
	int result = x->failure ? repo_fail(x->failure, "%s", x->why) : 0;
	pthread_mutex_unlock(&x->lock);
	return result < 0 ? result : reader_sum_compare(x->f, sum);
}

static void shared_list(struct work *w, struct shared_file *x, bool add)
{
	pthread_mutex_lock(&w->lock);
	struct shared_file **p = &w->shared;
	while (!add && *p != x)
		p = &(*p)->after;
	if (add) {
		x->after = w->shared;
		w->shared = x;
	} else {
		*p = x->after;
	}
	pthread_mutex_unlock(&w->lock);
}

static int shared_restore(struct work *w, struct chunk_reader *rd, const struct manifest_file *f, int fd)
{
	struct shared_file x = {.f = f, .w = w, .fd = fd, .batches = (f->id_count + BATCH_CHUNKS - 1) / BATCH_CHUNKS};
	pthread_mutex_init(&x.lock, NULL);
	pthread_cond_init(&x.changed, NULL);
	for (size_t i = 0; i < SLOTS; i++)
		x.slots[i].bytes = must_malloc(BATCH_BYTES);
	shared_list(w, &x, true);
	int result = shared_own(&x, rd);
	shared_list(w, &x, false); /* nobody new comes */
	pthread_mutex_lock(&x.lock);
	x.over = true;
	pthread_cond_broadcast(&x.changed);
	while (x.helpers)
		pthread_cond_wait(&x.changed, &x.lock);
	pthread_mutex_unlock(&x.lock);
	for (size_t i = 0; i < SLOTS; i++)
		free(x.slots[i].bytes);
	pthread_mutex_destroy(&x.lock);
	pthread_cond_destroy(&x.changed);
	return result;
}

/* A large file that somebody works on and that has batches left; counted among its helpers. NULL: none. */
static struct shared_file *shared_find(struct work *w)
{
	struct shared_file *found = NULL;
	pthread_mutex_lock(&w->lock);
	for (struct shared_file *x = w->shared; x && !found; x = x->after) {
		pthread_mutex_lock(&x->lock);
		if (!x->over && !x->failure && x->next < x->batches) {
			x->helpers++;
			found = x;
		}
		pthread_mutex_unlock(&x->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return found;
}

static int file_restore(struct work *w, struct chunk_reader *rd, const struct manifest_file *f)
{
	struct target t = {w, -1, f->path};
	if (w->directory >= 0) {
		t.fd = file_open(w, f);
		if (t.fd < 0)
			return t.fd;
	}
	bool shared = file_share(w, f, t.fd);
	int result = shared             ? progress_tell(w, f->size)
	             : f->size >= LARGE ? shared_restore(w, rd, f, t.fd)
	                                : reader_file(rd, f, target_sink, &t);
	if (result == 0 && t.fd >= 0)
		result = file_finish(w, f, t.fd, shared);
	if (t.fd >= 0 && close(t.fd) < 0 && result == 0)
		result = repo_fail(-errno, "%s: cannot be written: %s", f->path, strerror(errno));
	return result;
}

static void work_fail(struct work *w, int result)
{
	pthread_mutex_lock(&w->lock);
	if (!w->failure) {
		snprintf(w->why, sizeof w->why, "%s", repository_why());
		w->failure = result;
	}
	pthread_mutex_unlock(&w->lock);
}

static void *work_thread(void *arg)
{
	struct work *w = arg;
	struct chunk_reader rd;
	struct shared_file *x;
	reader_setup(&rd, w->m->r);
	for (size_t i; !w->failure && (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
		int result = file_restore(w, &rd, w->turns[i].f);
		if (result < 0)
			work_fail(w, result);
	}
	while (!w->failure && (x = shared_find(w)))
		shared_help(x, &rd);
	reader_free(&rd);
	return NULL;
}

static int work_run(struct work *w, unsigned threads)
{
	pthread_t ids[THREADS_MAX];
	unsigned count = 0;
	threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
	pthread_mutex_init(&w->lock, NULL);
	turns_make(w);
	while (count + 1 < threads && (count + 1 < w->count || w->total >= LARGE) &&
	       pthread_create(&ids[count], NULL, work_thread, w) == 0)
		count++;
	work_thread(w);
	while (count > 0)
		pthread_join(ids[--count], NULL);
	pthread_mutex_destroy(&w->lock);
	free(w->turns);
	return w->failure ? repo_fail(w->failure, "%s", w->why) : 0;
}

int repo_verify(struct repo_manifest *m, unsigned threads, const struct repo_progress *p)
{
	struct work w = {.m = m, .progress = p, .directory = -1, .image = -1};
	return work_run(&w, threads);
}

static int directory_is_empty(int directory, const char *path)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return repo_fail(-errno, "%s: %s", path, strerror(errno));
	}
	const struct dirent *e;
	int result = 0;
	while (result == 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			result = repo_fail(-ENOTEMPTY, "%s: is not empty", path);
	closedir(d);
	return result;
}

/* The directory of an entry; its owner may put things into it while it is filled. */
static int directory_open(struct work *w, const char *path)
{
	int fd = nolink_openat(w->directory, path, O_RDONLY | O_DIRECTORY, 0);
	return fd < 0 ? repo_fail(-errno, "%s: cannot be opened: %s", path, strerror(errno)) : fd;
}

static int directory_make(struct work *w, const char *path)
{
	if (nolink_mkdirat(w->directory, path, 0700) < 0 && errno != EEXIST)
		return repo_fail(-errno, "%s: cannot be made: %s", path, strerror(errno));
	int fd = directory_open(w, path);
	if (fd < 0)
		return fd;
	int result = fchown(fd, w->uid, w->gid) < 0 ? -errno : 0;
	close(fd);
	return result < 0 ? repo_fail(result, "%s: cannot be given away: %s", path, strerror(-result)) : 0;
}

/* The directories above a path that no entry has made. */
static int parents_make(struct work *w, const char *path, const char *before)
{
	char part[4096];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);
		if (strncmp(path, before, n + 1) == 0)
			continue; /* the entry before lies there too */
		memcpy(part, path, n);
		part[n] = 0;
		int result = directory_make(w, part);
		if (result < 0)
			return result;
	}
	return 0;
}

/* Entries are sorted, so that a directory comes before what is in it. */
static int directories_make(struct work *w)
{
	int result = 0;
	for (size_t i = 0; i < w->m->count && result == 0; i++) {
		const struct manifest_file *f = &w->m->files[i];
		result = parents_make(w, f->path, i ? f[-1].path : "");
		if (result == 0 && f->kind == MANIFEST_DIRECTORY)
			result = directory_make(w, f->path);
	}
	return result;
}

/* At the end: one that may not be written to could not be filled. */
static int directories_finish(struct work *w)
{
	for (size_t i = w->m->count; i-- > 0;) {
		const struct manifest_file *f = &w->m->files[i];
		if (f->kind != MANIFEST_DIRECTORY)
			continue;
		int fd = directory_open(w, f->path);
		if (fd < 0)
			return fd;
		int result = fchmod(fd, f->mode) < 0 ? -errno : 0;
		close(fd);
		if (result < 0)
			return repo_fail(result, "%s: cannot be finished: %s", f->path, strerror(-result));
	}
	return 0;
}

int repo_restore_beside(struct repo_manifest *m, const char *directory, uid_t uid, gid_t gid, unsigned threads,
                        const struct repo_progress *p, int image)
{
	struct work w = {.m = m, .progress = p, .uid = uid, .gid = gid, .image = image};
	w.directory = nolink_open(directory, O_RDONLY | O_DIRECTORY, 0);
	if (w.directory < 0)
		return repo_fail(-errno, "%s: %s", directory, strerror(errno));
	int result = directory_is_empty(w.directory, directory);
	if (result == 0)
		result = directories_make(&w);
	if (result == 0)
		result = work_run(&w, threads);
	if (result == 0)
		result = directories_finish(&w);
	close(w.directory);
	return result;
}

int repo_restore(struct repo_manifest *m, const char *directory, uid_t uid, gid_t gid, unsigned threads,
                 const struct repo_progress *p)
{
	return repo_restore_beside(m, directory, uid, gid, threads, p, -1);
}
