/* The files of a snapshot: which of a data directory belong to it, and reading them, several at once, with every page
 * of a relation held against its checksum. */
#include "engine/postgres/backup/snapshot_files.h"

#include "base/arena.h"
#include "base/nolink.h"
#include "engine/postgres/backup/image.h"
#include "engine/postgres/backup/pages.h"
#include "engine/postgres/backup/snapshot.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 8192
#define SEGMENT_PAGES 131072u /* a relation's file has 1 GB at most */
#define THREADS_MAX 4

static void fault_set(struct shot *s, int r, const char *format, ...) printf_like(3, 4);
static void fault_set(struct shot *s, int r, const char *format, ...)
{
	va_list args;
	pthread_mutex_lock(&s->lock);
	if (!s->fault) {
		s->fault = r;
		va_start(args, format);
		vsnprintf(s->why, sizeof s->why, format, args);
		va_end(args);
	}
	pthread_mutex_unlock(&s->lock);
	s->failed = true;
}

bool pg_shot_is_cancelled(struct shot *s)
{
	pthread_mutex_lock(&s->c->lock);
	bool gone = s->c->destroying || s->c->gone;
	pthread_mutex_unlock(&s->c->lock);
	return gone || pg_is_stopped(s->progress);
}

static void told(struct shot *s, const char *what)
{
	const struct shot_base *b = &s->bases[s->current];
	uint64_t share = b->bytes ? s->done * 90 / b->bytes : 0;
	pg_tell(s->progress, (unsigned)((s->current * 90 + (share < 90 ? share : 90)) / s->count), what);
}

/* --- which files */

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

/* Of the server that runs there, or written anew. */
static const char *const left_out[] = {"postmaster.pid",
                                       "postmaster.opts",
                                       "backup_label",
                                       "backup_label.old",
                                       "tablespace_map",
                                       "tablespace_map.old",
                                       "backup_manifest",
                                       "standby.signal",
                                       "recovery.signal",
                                       "promote",
                                       "current_logfiles",
                                       "postgresql.auto.conf",
                                       "postgresql.auto.conf.tmp",
                                       "postgresql.conf",
                                       "pg_hba.conf",
                                       "pg_ident.conf",
                                       NULL};
/* Made by the server when it starts; the directories themselves must be there. */
static const char *const emptied[] = {"pg_wal",       "pg_replslot", "pg_stat_tmp", "pg_notify", "pg_serial",
                                      "pg_snapshots", "pg_subtrans", "pg_dynshmem", NULL};

/* "16384", "16384_fsm", "16384.1" ...: digits, then a fork, then a number. 0: no relation's. */
static size_t relation_digits(const char *name)
{
	size_t n = strspn(name, "0123456789");
	return n && (name[n] == 0 || name[n] == '_' || name[n] == '.') ? n : 0;
}

static bool is_of_database(const char *path)
{
	return strncmp(path, "base/", 5) == 0 || strcmp(path, "global") == 0;
}

/* Tables of a session, which end with it: t3_16384. */
static bool is_temporary(const char *name)
{
	size_t n = name[0] == 't' ? strspn(name + 1, "0123456789") : 0;
	return n && name[n + 1] == '_' && strspn(name + n + 2, "0123456789");
}

struct names {
	char **p;
	size_t count, room;
};

static void names_add(struct names *n, const char *name)
{
	if (n->count == n->room) {
		n->room = n->room ? n->room * 2 : 64;
		n->p = must_realloc(n->p, n->room * sizeof(char *));
	}
	n->p[n->count++] = must_strdup(name);
}

static int name_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_free(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->p[i]);
	free(n->p);
}

/* Of a table that is not logged only the empty form is kept, which the server copies when it starts. */
static bool is_unlogged(const struct names *names, const char *name)
{
	char init[64];
	const char *key = init;
	size_t n = relation_digits(name);
	if (!n || n > 20 || strncmp(name + n, "_init", 5) == 0)
		return false;
	snprintf(init, sizeof init, "%.*s_init", (int)n, name);
	return bsearch(&key, names->p, names->count, sizeof(char *), name_order) != NULL;
}

static void file_add(struct shot_base *b, const char *path, const struct stat *st)
{
	if (b->file_count == b->file_room) {
		b->file_room = b->file_room ? b->file_room * 2 : 1024;
		b->files = must_realloc(b->files, b->file_room * sizeof *b->files);
	}
	b->files[b->file_count++] = (struct shot_file){must_strdup(path), (uint64_t)st->st_size, st->st_mode & 07777,
	                                               (int64_t)st->st_mtime};
	b->bytes += (uint64_t)st->st_size;
}

static int names_read(const char *dir, struct names *ret)
{
	DIR *d = nolink_opendir(dir);
	if (!d)
		return -errno;
	for (struct dirent *entry; (entry = readdir(d));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			names_add(ret, entry->d_name);
	closedir(d);
	if (ret->count)
		qsort(ret->p, ret->count, sizeof(char *), name_order);
	return 0;
}

/* What somebody has linked into the directory and could not read himself does not leave with a snapshot. */
static bool is_own(const struct shot_base *b, const struct stat *st)
{
	return b->owner == (uid_t)-1 || st->st_uid == b->owner;
}

int pg_shot_open(const struct shot_base *b, const char *path)
{
	char full[PG_PATH];
	struct stat st;
	pg_path_set(full, "%s/%s", b->data, path);
	int fd = nolink_open(full, O_RDONLY, 0);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && is_own(b, &st))
		return fd;
	close(fd);
	pg_why_set(NULL, "%s: %s is not a file of the database's user", b->node.want.name, path);
	return -EPERM;
}

static int files_find(struct shot *s, struct shot_base *b, const char *below, int depth);

static int entry_find(struct shot *s, struct shot_base *b, const char *below, const struct names *names,
                      const char *name, int depth)
{
	char path[PG_PATH], full[PG_PATH];
	struct stat st;
	if (strncmp(name, "pgsql_tmp", 9) == 0 || strncmp(name, "pg_internal.init", 16) == 0 ||
	    (!*below && is_one_of(name, left_out)) ||
	    (is_of_database(below) && (is_temporary(name) || is_unlogged(names, name))))
		return 0;
	pg_path_set(path, "%s%s%s", below, *below ? "/" : "", name);
	pg_path_set(full, "%s/%s", b->data, path);
	if (nolink_lstat(full, &st) < 0)
		return errno == ENOENT ? 0 : -errno; /* dropped meanwhile */
	if (S_ISLNK(st.st_mode) && strcmp(below, "pg_tblspc") == 0) {
		pg_why_set(NULL, "%s: tablespaces outside of the data directory are not kept", path);
		return -ENOTSUP;
	}
	if (S_ISREG(st.st_mode) && !is_own(b, &st)) {
		pg_why_set(NULL, "%s: %s is not a file of the database's user", b->node.want.name, path);
		return -EPERM;
	}
	if (S_ISREG(st.st_mode) && strcmp(path, "global/pg_control") != 0)
		file_add(b, path, &st);
	if (!S_ISDIR(st.st_mode))
		return 0;
	int r = repo_write_directory(b->writer, path, st.st_mode & 07777);
	pg_image_directory(s, b, path);
	return r < 0 || (!*below && is_one_of(name, emptied)) ? r : files_find(s, b, path, depth + 1);
}

static int files_find(struct shot *s, struct shot_base *b, const char *below, int depth)
{
	char dir[PG_PATH];
	struct names names = {0};
	if (depth > 16)
		return -ELOOP;
	pg_path_set(dir, "%s%s%s", b->data, *below ? "/" : "", below);
	int r = names_read(dir, &names);
	if (r == -ENOENT && *below)
		r = 0; /* a database that was dropped meanwhile */
	for (size_t i = 0; r == 0 && i < names.count; i++)
		r = entry_find(s, b, below, &names, names.p[i], depth);
	names_free(&names);
	return r;
}

/* The largest first, so that no thread is left with one of them at the end. */
static int size_order(const void *a, const void *b)
{
	uint64_t x = ((const struct shot_file *)a)->size, y = ((const struct shot_file *)b)->size;
	return x > y ? -1 : x < y;
}

/* --- reading them */

struct reading {
	struct shot *s;
	const struct shot_base *b;
	const struct shot_file *f;
	int fd;
	uint32_t first; /* block of the relation at which the file begins */
};

/* A page that was being written while it was read is read again. Whatever it is then, if it is newer than the start,
 * the log brings it whole. */
static int page_check(void *ctx, uint64_t block, const void *bytes)
{
	struct reading *g = ctx;
	uint32_t number = g->first + (uint32_t)block;
	uint64_t newer = g->s->cold ? UINT64_MAX : g->b->start;
	g->s->done += PAGE_BYTES;
	if (g->s->failed)
		return -ECANCELED;
	if (pg_page_is_sound(bytes, number, newer))
		return 0;
	unsigned char again[PAGE_BYTES];
	for (int i = 0; i < 3; i++) {
		ssize_t got = pread(g->fd, again, sizeof again, (off_t)(block * PAGE_BYTES));
		if (got != PAGE_BYTES || pg_page_is_sound(again, number, newer))
			return 0; /* cut off meanwhile, or whole */
		pg_sleep_ms(5 << i);
	}
	fault_set(g->s, -EBADMSG,
	          "%s: block %" PRIu64 " of %s does not have its checksum: the database is damaged on disk",
	          g->b->node.want.name, block, g->f->path);
	return -EBADMSG;
}

/* Files of relations have pages; others, among them the map of file names, have not. */
static bool has_pages(const char *path, uint32_t *ret_first)
{
	const char *name = strrchr(path, '/');
	char dir[PG_PATH];
	if (!name)
		return false;
	pg_path_set(dir, "%.*s", (int)(name - path), path);
	if (!is_of_database(dir) || !relation_digits(name + 1))
		return false;
	const char *dot = strchr(name, '.');
	uint64_t segment = 0;
	if (dot && !str_to_u64(str_of(dot + 1), 32767, &segment))
		return false;
	*ret_first = (uint32_t)segment * SEGMENT_PAGES;
	return true;
}

static int file_read(struct shot *s, const struct shot_base *b, const struct shot_file *f)
{
	int fd = pg_shot_open(b, f->path);
	if (fd < 0 && fd != -ENOENT)
		fault_set(s, fd, "%s of %s: %s", f->path, b->node.want.name, strerror(-fd));
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	pg_image_add(s, b, f->path, fd);
	struct reading g = {.s = s, .b = b, .f = f, .fd = fd};
	struct repo_file file = {.path = f->path, .mode = f->mode, .modified_s = f->modified_s};
	if (has_pages(f->path, &g.first)) {
		file.page_check = page_check;
		file.ctx = &g;
	}
	int r = repo_write_file(b->writer, &file, fd, f->size);
	close(fd);
	if (r < 0)
		fault_set(s, r, "%s of %s: %s", f->path, b->node.want.name,
		          r == -EIO ? "cannot be read" : repository_why());
	else if (!file.page_check)
		s->done += f->size;
	return r;
}

static void *files_read(void *arg)
{
	struct shot *s = arg;
	struct shot_base *b = &s->bases[s->current];
	for (size_t i; !s->failed && (i = s->next++) < b->file_count;)
		if (file_read(s, b, &b->files[i]) < 0)
			break;
	return NULL;
}

int pg_shot_files(struct shot *s, struct shot_base *b)
{
	pthread_t threads[THREADS_MAX];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t wanted = cores < 2 ? 2 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores, running = 0;
	int r = files_find(s, b, "", 0);
	if (r < 0)
		return r;
	qsort(b->files, b->file_count, sizeof *b->files, size_order);
	s->next = 0;
	s->done = 0;
	s->failed = false;
	s->fault = 0;
	for (; running < wanted; running++)
		if (pthread_create(&threads[running], NULL, files_read, s) != 0)
			break;
	if (!running)
		files_read(s);
	while (!s->failed && s->next < b->file_count) {
		told(s, "reading files");
		if (pg_shot_is_cancelled(s))
			fault_set(s, -ECANCELED, "%s",
			          pg_is_stopped(s->progress) ? "the service stops" : "the cluster is being removed");
		r = s->cold ? 0 : pg_shot_follow(s, b);
		if (r < 0)
			fault_set(s, r, "%s", pg_why_last());
		pg_sleep_ms(20);
	}
	for (size_t i = 0; i < running; i++)
		pthread_join(threads[i], NULL);
	if (s->fault)
		pg_why_set(NULL, "%s", s->why);
	return s->fault;
}
