/* Objects as files below a directory. A put writes into "~put" in the store's directory (no object's name has a "~"),
 * flushes, renames and flushes the directory: what is under a name is whole. What a killed process has left there is
 * removed later. Directories are made with the first object below them and go with the last.
 *
 * The store's directory is opened again for each call, so that a file system that was away and is mounted again is
 * found; without "~put" in it, it is taken for an empty mount point. Symbolic links below it are no objects and lead
 * nowhere. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "objects/backend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PUT_DIRECTORY "~put"
#define COPY_BYTES 262144
#define STALE_SECONDS 3600
#define BATCH ((size_t)8192) /* names of a directory that are in memory; twice that while they are chosen */
#define TRIES 100            /* against others that remove the directory as it becomes empty */

struct directory {
	struct objects base;
	char *path;
	bool writable;
	pthread_rwlock_t lock; /* held to write while directories are made: who sees one knows that it is on disk */
	atomic_llong sweep_at; /* seconds */
};

static struct directory *directory_of(struct objects *o)
{
	return (struct directory *)o;
}

static int away(const struct directory *d, int error)
{
	return objects_fail(error == ENOENT || error == ENOTDIR || error == ESTALE ? -EHOSTUNREACH : -error,
	                    "the directory %s: %s", d->path, strerror(error));
}

static int failed(const char *name, int error)
{
	if (error == ENOENT)
		return objects_fail(-ENOENT, "there is no object %s", name);
	return objects_fail(error == EPERM ? -EACCES : -error, "%s: %s", name, strerror(error));
}

/* Some network file systems have no flushing of directories, since nothing of them is kept here. */
static int flush(int fd)
{
	return fsync(fd) == 0 || errno == EINVAL ? 0 : -errno;
}

static int root_open(const struct directory *d, int *ret_fd)
{
	struct stat put;
	int fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return away(d, errno);
	if (d->writable && fstatat(fd, PUT_DIRECTORY, &put, AT_SYMLINK_NOFOLLOW) < 0) {
		int r = away(d, errno);
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* Opens the directory `part` below `fd`, which is closed; made where it is missing, if so wanted. -errno. */
static int below(int fd, const char *part, bool make)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, r;
	int found = openat(fd, part, flags);
	if (found < 0 && errno == ENOENT && make) {
		if ((mkdirat(fd, part, 0700) < 0 && errno != EEXIST) || flush(fd) < 0)
			found = -1;
		else
			found = openat(fd, part, flags);
	}
	r = found < 0 ? -errno : found;
	close(fd);
	return r;
}

/* From the root, which is closed, through all parts of a path; "" is the root. A descriptor or -errno. */
static int descend(int fd, struct str path, bool make)
{
	char part[OBJECT_NAME_MAX + 1];
	struct str first;
	while (fd >= 0 && path.n > 0) {
		str_cut(path, '/', &first, &path);
		memcpy(part, first.p, first.n);
		part[first.n] = 0;
		fd = below(fd, part, make);
	}
	return fd;
}

/* The directory that an object is in, and its last part. */
static struct str parent_of(const char *name, const char **ret_last)
{
	const char *slash = strrchr(name, '/');
	*ret_last = slash ? slash + 1 : name;
	return (struct str){name, slash ? (size_t)(slash - name) : 0};
}

/* 0 or negative with words: there is no such directory, the store is away ... */
static int parent_open(struct directory *d, const char *name, int *ret_fd, const char **ret_last)
{
	int root = -1, r = root_open(d, &root);
	if (r < 0)
		return r;
	int fd = descend(root, parent_of(name, ret_last), false);
	if (fd < 0)
		return failed(name, fd == -ENOTDIR || fd == -ELOOP ? ENOENT : -fd);
	*ret_fd = fd;
	return 0;
}

/* Directories that are empty now, from the innermost. */
static void prune(struct directory *d, const char *name)
{
	char path[OBJECT_NAME_MAX + 1], *slash;
	const char *last;
	int fd = -1;
	snprintf(path, sizeof path, "%s", name);
	pthread_rwlock_wrlock(&d->lock);
	while ((slash = strrchr(path, '/'))) {
		*slash = 0;
		if (parent_open(d, path, &fd, &last) < 0)
			break;
		int r = unlinkat(fd, last, AT_REMOVEDIR);
		close(fd);
		if (r < 0)
			break;
	}
	pthread_rwlock_unlock(&d->lock);
}

/* Putting. */

struct put {
	struct directory *d;
	const char *name;
	int root, tray, fd; /* the store's directory, "~put" in it, the file */
	char temporary[ID_LEN + 1];
};

/* A new file in "~put", of a name that nobody else has. A descriptor or -errno. */
static int temporary_make(int tray, char ret_name[ID_LEN + 1])
{
	struct id id;
	int fd = -1;
	/* A process and its child draw the same ids. */
	for (int tries = 0; fd < 0 && tries < TRIES; tries++) {
		id = id_new();
		fd = openat(tray, id.z, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return -errno;
	/* File systems without locks have the age alone to go by. */
	(void)flock(fd, LOCK_EX | LOCK_NB);
	memcpy(ret_name, id.z, ID_LEN + 1);
	return fd;
}

/* Whether nobody writes the file any more: old, and its lock can be had. */
static bool is_stale(int fd, time_t now)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mtime < now - STALE_SECONDS &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void sweep(int tray, time_t now)
{
	int again = openat(tray, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	if (!dir) {
		if (again >= 0)
			close(again);
		return;
	}
	for (struct dirent *e; (e = readdir(dir));) {
		/* To write: NFS locks nothing for others. */
		int fd = openat(tray, e->d_name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (is_stale(fd, now))
			unlinkat(tray, e->d_name, 0);
		close(fd);
	}
	closedir(dir);
}

/* `fresh` was made just now: its time is the file system's, which may not be ours. */
static void sweep_when_due(struct directory *d, int tray, int fresh)
{
	struct stat st;
	long long now = clock_mono_us() / 1000000 + 1, due = atomic_load(&d->sweep_at);
	if (now >= due && atomic_compare_exchange_strong(&d->sweep_at, &due, now + STALE_SECONDS) &&
	    fstat(fresh, &st) == 0)
		sweep(tray, st.st_mtime);
}

static int put_begin(struct put *p)
{
	int r = root_open(p->d, &p->root);
	if (r < 0)
		return r;
	p->tray = openat(p->root, PUT_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->tray < 0)
		return p->d->writable ? away(p->d, errno) : failed(p->name, EROFS);
	if ((p->fd = temporary_make(p->tray, p->temporary)) < 0)
		return failed(p->name, -p->fd);
	sweep_when_due(p->d, p->tray, p->fd);
	return 0;
}

static int write_all(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, bytes, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		bytes += done;
		n -= (size_t)done;
	}
	return 0;
}

static int put_fill(struct put *p, objects_read *read, void *ctx)
{
	char *bytes = must_malloc(COPY_BYTES);
	ssize_t n;
	int r = 0;
	while (r == 0 && (n = read(ctx, bytes, COPY_BYTES)) != 0) {
		if (n < 0)
			r = objects_fail((int)n, "%s: its source failed: %s", p->name, strerror((int)-n));
		else if ((r = write_all(p->fd, bytes, (size_t)n)) < 0)
			r = failed(p->name, -r);
	}
	free(bytes);
	return r < 0 || fsync(p->fd) == 0 ? r : failed(p->name, errno);
}

static int root_again(int root)
{
	int fd = fcntl(root, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* A descriptor of the object's directory, which is on disk, or -errno. */
static int put_parent(struct put *p, struct str parent)
{
	pthread_rwlock_rdlock(&p->d->lock);
	int fd = descend(root_again(p->root), parent, false);
	pthread_rwlock_unlock(&p->d->lock);
	if (fd != -ENOENT)
		return fd;
	pthread_rwlock_wrlock(&p->d->lock);
	fd = descend(root_again(p->root), parent, true);
	pthread_rwlock_unlock(&p->d->lock);
	return fd;
}

static int put_name(struct put *p)
{
	const char *last;
	struct str parent = parent_of(p->name, &last);
	int r = -ENOENT;
	for (int tries = 0; tries < TRIES && r == -ENOENT; tries++) {
		int fd = put_parent(p, parent);
		if (fd < 0) {
			r = fd;
			continue;
		}
		r = renameat(p->tray, p->temporary, fd, last) < 0 ? -errno : 0;
		if (r == 0) {
			p->temporary[0] = 0;
			r = flush(fd);
		}
		close(fd);
	}
	if (r == -ENOTDIR || r == -EISDIR || r == -ELOOP)
		return objects_fail(-EINVAL, "%s: its name is another's folder, or the other way round", p->name);
	return r < 0 ? failed(p->name, r == -ENOENT ? EIO : -r) : 0;
}

static int directory_put(struct objects *o, const char *name, objects_read *read, void *ctx)
{
	struct put p = {.d = directory_of(o), .name = name, .root = -1, .tray = -1, .fd = -1};
	int r = put_begin(&p);
	if (r == 0)
		r = put_fill(&p, read, ctx);
	if (r == 0 && (r = put_name(&p)) < 0) {
		char why[512];
		snprintf(why, sizeof why, "%s", objects_why());
		prune(p.d, name);
		objects_fail(r, "%s", why);
	}
	if (p.fd >= 0 && p.temporary[0])
		unlinkat(p.tray, p.temporary, 0);
	const int fds[] = {p.fd, p.tray, p.root};
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return r;
}

/* Getting. */

static int object_open(struct directory *d, const char *name, int *ret_fd, uint64_t *ret_size)
{
	struct stat st;
	const char *last;
	int parent = -1, r = parent_open(d, name, &parent, &last);
	if (r < 0)
		return r;
	/* Who has put a pipe there does not make us wait. */
	int fd = openat(parent, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	r = fd < 0 ? errno : 0;
	close(parent);
	if (fd < 0)
		return failed(name, r == ELOOP || r == ENXIO ? ENOENT : r);
	if (fstat(fd, &st) < 0)
		r = failed(name, errno);
	else if (!S_ISREG(st.st_mode))
		r = failed(name, ENOENT);
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int copy_out(int fd, const char *name, uint64_t offset, uint64_t length, objects_write *write, void *ctx)
{
	char *bytes = must_malloc(COPY_BYTES);
	int r = 0;
	while (r == 0 && length > 0) {
		ssize_t n = pread(fd, bytes, length < COPY_BYTES ? (size_t)length : COPY_BYTES, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = failed(name, n < 0 ? errno : EIO);
			break;
		}
		r = write(ctx, bytes, (size_t)n);
		offset += (uint64_t)n;
		length -= (uint64_t)n;
	}
	free(bytes);
	return r;
}

static int directory_get(struct objects *o, const char *name, uint64_t offset, uint64_t length, objects_write *write,
                         void *ctx)
{
	uint64_t size = 0;
	int fd = -1, r = object_open(directory_of(o), name, &fd, &size);
	if (r < 0)
		return r;
	if (offset > size) {
		r = objects_fail(-ERANGE, "%s has %llu bytes", name, (unsigned long long)size);
	} else {
		uint64_t rest = size - offset;
		r = copy_out(fd, name, offset, length && length < rest ? length : rest, write, ctx);
	}
	close(fd);
	return r;
}

static int directory_size(struct objects *o, const char *name, uint64_t *ret_size)
{
	struct stat st;
	const char *last;
	int fd = -1, r = parent_open(directory_of(o), name, &fd, &last);
	if (r < 0)
		return r;
	if (fstatat(fd, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = failed(name, errno);
	else if (!S_ISREG(st.st_mode))
		r = failed(name, ENOENT);
	else
		*ret_size = (uint64_t)st.st_size;
	close(fd);
	return r;
}

static int directory_delete(struct objects *o, const char *name)
{
	struct directory *d = directory_of(o);
	const char *last;
	int fd = -1, r = parent_open(d, name, &fd, &last);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (unlinkat(fd, last, 0) < 0)
		r = errno == ENOENT || errno == EISDIR ? 0 : failed(name, errno);
	else if ((r = flush(fd)) < 0)
		r = failed(name, -r);
	close(fd);
	if (r == 0)
		prune(d, name);
	return r;
}

/* Listing. Whole names are in the order of their bytes when each directory's entries are, with "/" behind the names of
 * directories: "a-b", "a.b", "a/b", "a0". Of a large directory only the next BATCH names are kept; it is read again
 * for those behind them. */

struct batch {
	char *keys[2 * BATCH];
	size_t count;
	bool cut; /* larger keys than the last were left out */
};

struct walk {
	struct directory *d;
	objects_visit *visit;
	void *ctx;
	char path[OBJECT_NAME_MAX + 1];
	unsigned depth;
};

static int key_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void batch_cut(struct batch *b)
{
	qsort(b->keys, b->count, sizeof *b->keys, key_order);
	for (; b->count > BATCH; b->cut = true)
		free(b->keys[--b->count]);
}

static void batch_free(struct batch *b)
{
	while (b->count > 0)
		free(b->keys[--b->count]);
	free(b);
}

enum kind { NOT_OURS, OBJECT, FOLDER };

static enum kind kind_of(int fd, const struct dirent *e)
{
	struct stat st;
	if (e->d_type == DT_UNKNOWN && fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return NOT_OURS;
	unsigned char type = e->d_type == DT_UNKNOWN ? (unsigned char)IFTODT(st.st_mode) : e->d_type;
	return type == DT_DIR ? FOLDER : type == DT_REG ? OBJECT : NOT_OURS;
}

static void batch_take(struct batch *b, int fd, const struct dirent *e, const char *after, struct str start)
{
	char key[sizeof e->d_name + 1];
	if (!object_part_valid(str_of(e->d_name)) || !str_starts(str_of(e->d_name), start))
		return;
	enum kind kind = kind_of(fd, e);
	if (kind == NOT_OURS)
		return;
	snprintf(key, sizeof key, "%s%s", e->d_name, kind == FOLDER ? "/" : "");
	if (after && strcmp(key, after) <= 0)
		return;
	if (b->cut && strcmp(key, b->keys[BATCH - 1]) > 0)
		return;
	b->keys[b->count++] = must_strdup(key);
	if (b->count == 2 * BATCH)
		batch_cut(b);
}

/* The next names behind `after` (NULL: from the first) that begin with `start`. */
static int batch_read(int fd, const char *after, struct str start, struct batch *b)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	if (!dir) {
		int r = -errno;
		if (again >= 0)
			close(again);
		return r;
	}
	struct dirent *e;
	while (errno = 0, (e = readdir(dir)))
		batch_take(b, fd, e, after, start);
	int r = -errno;
	closedir(dir);
	batch_cut(b);
	return r;
}

static int walk_directory(struct walk *w, int fd, struct str start);

static int walk_entry(struct walk *w, int fd, const char *key)
{
	struct stat st;
	size_t at = strlen(w->path), n = strlen(key);
	bool is_directory = key[n - 1] == '/';
	int r = 0;
	if (at + n > OBJECT_NAME_MAX)
		return 0;
	memcpy(w->path + at, key, n + 1);
	if (is_directory) {
		w->path[at + n - 1] = 0;
		int inner = openat(fd, w->path + at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		w->path[at + n - 1] = '/';
		if (inner >= 0)
			r = walk_directory(w, inner, STR(""));
		else if (errno != ENOENT && errno != ENOTDIR)
			r = failed(w->path, errno);
	} else if (fstatat(fd, key, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
		struct object_info info = {.name = w->path,
		                           .size = (uint64_t)st.st_size,
		                           .modified_ms =
		                                   st.st_mtim.tv_sec * INT64_C(1000) + st.st_mtim.tv_nsec / 1000000};
		r = w->visit(w->ctx, &info);
	}
	w->path[at] = 0;
	return r;
}

/* Closes fd. */
static int walk_directory(struct walk *w, int fd, struct str start)
{
	char *after = NULL;
	bool more = w->depth < OBJECT_PARTS_MAX;
	int r = 0;
	w->depth++;
	while (r == 0 && more) {
		struct batch *b = must_calloc(1, sizeof *b);
		if ((r = batch_read(fd, after, start, b)) < 0)
			r = failed(w->path, -r);
		for (size_t i = 0; r == 0 && i < b->count; i++)
			r = walk_entry(w, fd, b->keys[i]);
		more = b->cut;
		free(after);
		after = more ? must_strdup(b->keys[b->count - 1]) : NULL;
		batch_free(b);
	}
	free(after);
	w->depth--;
	close(fd);
	return r;
}

static int directory_list(struct objects *o, const char *prefix, objects_visit *visit, void *ctx)
{
	struct walk w = {.d = directory_of(o), .visit = visit, .ctx = ctx};
	const char *start;
	int fd = -1, r = parent_open(w.d, prefix, &fd, &start);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	memcpy(w.path, prefix, (size_t)(start - prefix));
	for (const char *p = prefix; p < start; p++)
		w.depth += *p == '/';
	return walk_directory(&w, fd, str_of(start));
}

/* Opening. */

static void directory_close(struct objects *o)
{
	struct directory *d = directory_of(o);
	pthread_rwlock_destroy(&d->lock);
	free(d->path);
	free(d);
}

static const struct objects_ops directory_ops = {.close = directory_close,
                                                 .put = directory_put,
                                                 .get = directory_get,
                                                 .size = directory_size,
                                                 .list = directory_list,
                                                 .delete = directory_delete};

static int sync_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = flush(fd);
	close(fd);
	return r;
}

/* All that are missing of a path, each flushed into the one above it. */
static int path_make(const char *path)
{
	char *copy = must_strdup(path);
	int r = 0;
	for (char *p = copy + 1; r == 0; p++) {
		if (*p != '/' && *p)
			continue;
		char end = *p, *slash;
		*p = 0;
		if (mkdir(copy, 0700) == 0) {
			slash = strrchr(copy, '/');
			char *above = slash == copy ? must_strdup("/")
			              : slash       ? strndup(copy, (size_t)(slash - copy))
			                            : must_strdup(".");
			r = sync_of(above);
			free(above);
		} else if (errno != EEXIST && errno != EISDIR) {
			r = -errno;
		}
		*p = end;
		if (!end)
			break;
	}
	free(copy);
	return r;
}

/* A file is made and removed, so that it shows now when nothing can be written. -errno. */
static int tray_try(struct directory *d, int root)
{
	char name[ID_LEN + 1];
	int tray = openat(root, PUT_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tray < 0)
		return -errno;
	int fd = temporary_make(tray, name);
	if (fd >= 0) {
		sweep_when_due(d, tray, fd);
		unlinkat(tray, name, 0);
		close(fd);
	}
	close(tray);
	return fd < 0 ? fd : 0;
}

/* "~put", which also tells the store from an empty mount point. A read-only file system has what it has. */
static int tray_make(struct directory *d)
{
	int root = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	if (root < 0)
		return away(d, errno);
	if (mkdirat(root, PUT_DIRECTORY, 0700) == 0)
		r = flush(root);
	else
		r = errno == EEXIST ? 0 : -errno;
	if (r == 0)
		r = tray_try(d, root);
	close(root);
	d->writable = r != -EROFS;
	/* A full disk can still be read from, and is said with the next put. */
	if (r == 0 || r == -EROFS || r == -ENOSPC || r == -EDQUOT)
		return 0;
	return objects_fail(r, "the directory %s cannot be written to: %s", d->path, strerror(-r));
}

/* The operator may have lost all of it, and says so. */
static int absent(const char *path)
{
	return objects_fail(
	        -EHOSTUNREACH,
	        "the directory %s has no backups, and should have some: is its file system mounted? If they "
	        "are lost, \"mkdir -p %s/" PUT_DIRECTORY "\" begins anew there",
	        path, path);
}

/* Or not there. A store that was copied from elsewhere has no "~put" yet. */
static bool is_empty(const char *path)
{
	DIR *dir = opendir(path);
	bool empty = dir || errno == ENOENT || errno == ENOTDIR; /* what else is wrong is told by who opens it */
	for (struct dirent *e; dir && empty && (e = readdir(dir));)
		empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		        strcmp(e->d_name, "lost+found") == 0;
	if (dir)
		closedir(dir);
	return empty;
}

int directory_objects_open(const char *path, bool expected, struct objects **ret_objects)
{
	if (expected && is_empty(path))
		return absent(path);
	int r = path_make(path);
	char *real = r < 0 ? NULL : realpath(path, NULL);
	if (!real) {
		r = r < 0 ? -r : errno;
		return objects_fail(-r, "the directory %s: %s", path, strerror(r));
	}
	struct directory *d = must_calloc(1, sizeof *d);
	d->base.ops = &directory_ops;
	d->path = real;
	pthread_rwlock_init(&d->lock, NULL);
	if ((r = tray_make(d)) < 0) {
		directory_close(&d->base);
		return r;
	}
	*ret_objects = &d->base;
	return 0;
}
