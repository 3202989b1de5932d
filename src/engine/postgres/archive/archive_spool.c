/* Log that lies on this host and is to go into the repository: what the servers' basic_archive has put aside
 * (CLUSTER/NODE/spool/INCARNATION-TERM), what was taken from nodes before they were rewound or removed
 * (CLUSTER/spool/INCARNATION/SET/NODE), and the nodes' own pg_wal.
 *
 * Each server has a directory of its own for each term, so that no two of them ever write the same name. A file leaves
 * the spool only after the repository has it. What a former primary wrote behind the place where its successor began
 * never was, as far as the databases are concerned: it is not stored. */
#include "engine/postgres/archive/archive_spool.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/archive/archive_index.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/archive/archive_store.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/fscrypt.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PUTS_MAX 64      /* segments that are moved or mended before others have their turn */
#define UNFINISHED_S 600 /* then a file that basic_archive was writing is nobody's any more */
#define HISTORY_MAX (1u << 20)
#define SPOOL_BYTES (4ull << 30)
#define SPOOL_LEAST (64ull << 20) /* less is worth no window, however full the disk is */
#define DISK_SPARE (2ull << 30)   /* that is left to the databases, or a tenth of a small disk */

/* --- files of pg_wal */

/* The head of a segment's first page. */
struct head {
	uint16_t magic, info;
	uint32_t timeline;
	uint64_t address;
	uint32_t left, pad;
	uint64_t identity;
	uint32_t segment, block;
};

/* One that is kept for later use has the old bytes under a new name: its address tells. */
static bool head_is(const struct head *h, const char *name, uint64_t identity)
{
	uint32_t timeline;
	uint64_t number;
	return pg_wal_parse(name, &timeline, &number) != WAL_NONE && h->address == number * PG_SEGMENT &&
	       h->timeline <= timeline && h->segment == PG_SEGMENT && (!identity || h->identity == identity);
}

/* Nothing is taken for gone that cannot be looked at. */
static bool is_short_of_means(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* 1: it is, 0: it is not, negative: it cannot be told. */
static int wal_look(const char *directory, const char *name, uint64_t identity)
{
	char path[PG_PATH];
	struct head h;
	pg_path_set(path, "%s/%s", directory, name);
	int fd = nolink_open(path, O_RDONLY, 0);
	if (fd < 0)
		return is_short_of_means(errno) ? -errno : 0;
	ssize_t got = pread(fd, &h, sizeof h, 0);
	close(fd);
	return got == (ssize_t)sizeof h && head_is(&h, name, identity);
}

bool pg_wal_is(const char *directory, const char *name, uint64_t identity)
{
	return wal_look(directory, name, identity) > 0;
}

static bool status_is(const char *directory, const char *name, const char *status)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/archive_status/%s.%s", directory, name, status);
	return pg_file_is(path);
}

bool pg_wal_is_complete(const char *directory, const char *name, uint64_t identity)
{
	char next[PG_WAL_NAME];
	uint32_t timeline;
	uint64_t number;
	if (pg_wal_parse(name, &timeline, &number) != WAL_SEGMENT || !pg_wal_is(directory, name, identity))
		return false;
	pg_wal_name(timeline, number + 1, true, next);
	return status_is(directory, name, "ready") || status_is(directory, name, "done") ||
	       pg_wal_is(directory, next, identity);
}

int pg_wal_read(const char *directory, const char *name, char **ret_bytes, size_t *ret_n)
{
	char path[PG_PATH];
	struct stat st;
	pg_path_set(path, "%s/%s", directory, name);
	int fd = nolink_open(path, O_RDONLY, 0);
	if (fd < 0)
		return -errno;
	int r = fstat(fd, &st) < 0 ? -errno : (uint64_t)st.st_size > PG_SEGMENT ? -EFBIG : 0;
	size_t n = 0, size = r < 0 ? 0 : (size_t)st.st_size;
	char *bytes = must_malloc(size + 1);
	while (r == 0 && n < size) {
		ssize_t got = read(fd, bytes + n, size - n);
		if (got < 0 && errno == EINTR)
			continue;
		r = got < 0 ? -errno : got == 0 ? -EIO : 0;
		n += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (r < 0) {
		free(bytes);
		return r;
	}
	bytes[n] = 0;
	*ret_bytes = bytes;
	*ret_n = n;
	return 0;
}

/* --- directories */

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int pg_names_list(const char *directory, char ***ret_names, size_t *ret_count)
{
	size_t count = 0, room = 0;
	char **names = NULL;
	DIR *d = nolink_opendir(directory);
	if (!d && is_short_of_means(errno))
		return -errno;
	for (struct dirent *entry; d && (entry = readdir(d));) {
		if (entry->d_name[0] == '.')
			continue;
		if (count == room) {
			room = room ? room * 2 : 32;
			names = must_realloc(names, room * sizeof *names);
		}
		names[count++] = must_strdup(entry->d_name);
	}
	if (d)
		closedir(d);
	if (count)
		qsort(names, count, sizeof *names, names_compare);
	*ret_names = names;
	*ret_count = count;
	return 0;
}

void pg_names_free(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

void pg_spool_dir(const struct pg_cluster *c, const struct pg_node *n, unsigned term, char ret_path[PG_PATH])
{
	char below[64];
	snprintf(below, sizeof below, "spool/%s-%u", c->backup.incarnation, term);
	pg_node_path(c, n, below, ret_path);
}

static uint64_t tree_bytes(const char *path, bool discard, int depth)
{
	uint64_t bytes = 0, number;
	uint32_t timeline;
	char **names, below[PG_PATH];
	size_t count;
	if (pg_names_list(path, &names, &count) < 0)
		return 0; /* the next look tells */
	for (size_t i = 0; i < count; i++) {
		struct stat st;
		pg_path_set(below, "%s/%s", path, names[i]);
		if (nolink_lstat(below, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			bytes += depth < 4 ? tree_bytes(below, discard, depth + 1) : 0;
			continue;
		}
		enum pg_wal_kind kind = pg_wal_parse(names[i], &timeline, &number);
		bytes += (uint64_t)st.st_blocks * 512;
		if (discard && (kind == WAL_SEGMENT || kind == WAL_PARTIAL))
			nolink_unlink(below);
	}
	pg_names_free(names, count);
	return bytes;
}

uint64_t pg_spool_bytes(const struct pg_cluster *c, bool discard)
{
	char path[PG_PATH], **names;
	uint64_t bytes = 0;
	size_t count;
	pg_path_set(path, "%s/%s", c->engine->dir, c->id);
	if (pg_names_list(path, &names, &count) < 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(names[i], "spool") == 0)
			pg_path_set(path, "%s/%s/spool", c->engine->dir, c->id);
		else
			pg_path_set(path, "%s/%s/%s/spool", c->engine->dir, c->id, names[i]);
		bytes += tree_bytes(path, discard, 0);
	}
	pg_names_free(names, count);
	return bytes;
}

/* How much may wait, of which there are `bytes`. */
static uint64_t spool_most(const struct engine *e, uint64_t bytes)
{
	struct statvfs disk;
	uint64_t most = e->spool_bytes ? e->spool_bytes : SPOOL_BYTES;
	if (statvfs(e->dir, &disk) < 0)
		return most;
	uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize, tenth = (uint64_t)disk.f_blocks * disk.f_frsize / 10;
	uint64_t spare = tenth < DISK_SPARE ? tenth : DISK_SPARE, room = left > spare ? bytes + left - spare : 0;
	room = room > SPOOL_LEAST ? room : SPOOL_LEAST;
	return room < most ? room : most;
}

void pg_spool_bound(struct pg_cluster *c, struct pg_archive *a)
{
	uint64_t bytes = pg_spool_bytes(c, false), most = spool_most(c->engine, bytes);
	bool crowded = bytes > most / 2;
	pthread_mutex_lock(&a->lock);
	bool full = bytes > (a->told ? most : most + most / 4), warn = crowded && !full && !a->crowded;
	pthread_mutex_unlock(&a->lock);
	if (full) {
		log_error("engine: %s: %llu MB of log wait for the repository, more than may; they are given up, and "
		          "what can be restored ends",
		          c->id, (unsigned long long)(bytes >> 20));
		pg_spool_bytes(c, true);
		bytes = 0;
	}
	pthread_mutex_lock(&a->lock);
	a->crowded = crowded;
	a->told = a->told && crowded;
	a->spool_bytes = bytes;
	a->full |= full;
	pthread_mutex_unlock(&a->lock);
	if (warn)
		log_warn("engine: %s: %llu MB of log wait for the repository, more than half of what may", c->id,
		         (unsigned long long)(bytes >> 20));
}

/* --- from the spools into the repository */

struct move {
	struct pg_cluster *c;
	struct pg_archive *a;
	struct pg_archive_set *s; /* NULL: a line that is not written any more */
	struct repo_line line;
	unsigned puts;
	bool more;
};

/* Up to where a file of that timeline counts; 0: not at all. */
static size_t cut_at(const struct pg_archive_set *s, uint32_t timeline, uint64_t number)
{
	uint64_t from = number * PG_SEGMENT, end = UINT64_MAX;
	bool found = !s || s->chain.count == 0;
	for (size_t i = 0; !found && i < s->chain.count; i++)
		if (s->chain.parts[i].timeline == timeline) {
			found = true;
			end = s->chain.parts[i].end;
		}
	if (!found || end <= from)
		return 0;
	return end - from < PG_SEGMENT ? (size_t)(end - from) : PG_SEGMENT;
}

static bool is_newer(const struct pg_archive_set *s, uint32_t timeline)
{
	return s && s->chain.count && timeline > s->chain.parts[s->chain.count - 1].timeline;
}

static int move_put(struct move *m, const char *name, const char *bytes, size_t n)
{
	m->puts++;
	int r = m->s ? pg_archive_put(m->c, m->a, m->s, name, bytes, n)
	             : repo_wal_put(m->a->repository, &m->line, name, bytes, n);
	if (r != -EEXIST)
		return r;
	log_error("engine: %s: the archive has other bytes of %s than this host; they stay", m->c->id, name);
	return 0;
}

static int segment_move(struct move *m, const char *dir, const char *name, uint32_t timeline, uint64_t number,
                        bool complete)
{
	const struct pg_segment *known = m->s ? pg_segments_find(&m->s->known, timeline, number) : NULL;
	size_t cut = cut_at(m->s, timeline, number), n = 0;
	char *bytes = NULL, partial[PG_WAL_NAME];
	struct head h;
	if ((known && known->complete) || cut == 0)
		return 0;
	/* What is being written on that timeline is further already. */
	if (!complete && m->s && timeline == m->s->timeline && m->s->stored >= number * PG_SEGMENT + cut)
		return 0;
	int r = pg_wal_read(dir, name, &bytes, &n);
	if (r < 0 && r != -ELOOP && r != -ENXIO && r != -EFBIG) /* what cannot be read just now stays */
		return r == -ENOENT ? 0 : r;
	bool is = r == 0 && n >= sizeof h;
	if (is)
		is = head_is(memcpy(&h, bytes, sizeof h), name, m->s ? m->s->identity : 0);
	if (!is) {
		log_error("engine: %s/%s is not log of this database; it is not stored", dir, name);
		free(bytes);
		return 0;
	}
	cut = cut < n ? cut : n;
	pg_wal_name(timeline, number, false, partial);
	r = move_put(m, complete && cut == PG_SEGMENT ? name : partial, bytes, cut);
	free(bytes);
	return r;
}

static int history_move(struct move *m, const char *dir, const char *name)
{
	char path[PG_PATH], *text;
	pg_path_set(path, "%s/%s", dir, name);
	int r = pg_file_read(path, HISTORY_MAX, &text);
	if (r == -ELOOP)
		log_error("engine: %s is no file; it is not stored", path);
	if (r < 0)
		return r == -ENOENT || r == -ELOOP ? 0 : r;
	r = move_put(m, name, text, strlen(text));
	free(text);
	return r;
}

static void stray_look(const char *path, const char *name)
{
	struct stat st;
	bool backup = str_ends(str_of(name), STR(".backup")); /* notes of base copies, which have their own */
	if (nolink_lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    (backup || clock_now_ms() / 1000 - st.st_mtim.tv_sec > UNFINISHED_S))
		nolink_unlink(path);
}

static int directory_move(struct move *m, const char *dir)
{
	char **names, path[PG_PATH];
	size_t count;
	int r = pg_names_list(dir, &names, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++) {
		uint32_t timeline;
		uint64_t number;
		enum pg_wal_kind kind = pg_wal_parse(names[i], &timeline, &number);
		pg_path_set(path, "%s/%s", dir, names[i]);
		if (kind == WAL_NONE) {
			stray_look(path, names[i]);
			continue;
		}
		if (m->puts >= PUTS_MAX) {
			m->more = true;
			break;
		}
		if (kind != WAL_HISTORY && is_newer(m->s, timeline))
			continue; /* where it begins is learned with the next look at the primary */
		r = kind == WAL_HISTORY ? history_move(m, dir, names[i])
		                        : segment_move(m, dir, names[i], timeline, number, kind == WAL_SEGMENT);
		if (r == 0 && nolink_unlink(path) < 0 && errno != ENOENT)
			r = -errno;
	}
	pg_names_free(names, count);
	return r;
}

/* "INCARNATION-TERM" of a node. Directories of terms long gone are removed when they are empty. */
static int node_move(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const char *node,
                     struct move *m)
{
	char dir[PG_PATH], path[PG_PATH], **names, incarnation[25];
	size_t count;
	pg_path_set(dir, "%s/%s/%s/spool", c->engine->dir, c->id, node);
	int r = pg_names_list(dir, &names, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++) {
		const char *dash = strchr(names[i], '-');
		if (!dash || dash - names[i] >= (ptrdiff_t)sizeof incarnation)
			continue;
		snprintf(incarnation, sizeof incarnation, "%.*s", (int)(dash - names[i]), names[i]);
		bool current = strcmp(incarnation, a->incarnation) == 0;
		m->s = current ? s : NULL;
		m->line = pg_archive_line(c, a, s->name);
		m->line.incarnation = incarnation;
		pg_path_set(path, "%s/%s", dir, names[i]);
		r = directory_move(m, path);
		if (r == 0 && (!current || strtoul(dash + 1, NULL, 10) + 1 < s->term))
			nolink_rmdir(path);
		m->line = (struct repo_line){0}; /* its names go */
	}
	pg_names_free(names, count);
	return r;
}

static struct pg_archive_set *set_named(struct pg_archive *a, const char *name)
{
	for (size_t i = 0; i < a->set_count; i++)
		if (strcmp(a->sets[i]->name, name) == 0)
			return a->sets[i];
	return NULL;
}

/* CLUSTER/spool/INCARNATION/SET/NODE */
static int aside_set_move(struct pg_cluster *c, struct pg_archive *a, const char *incarnation, const char *set,
                          const char *dir, struct move *m)
{
	char **names, path[PG_PATH];
	size_t count;
	int r = pg_names_list(dir, &names, &count);
	if (r < 0)
		return r;
	m->s = strcmp(incarnation, a->incarnation) == 0 ? set_named(a, set) : NULL;
	m->line = pg_archive_line(c, a, set);
	m->line.incarnation = incarnation;
	for (size_t i = 0; i < count && r == 0; i++) {
		pg_path_set(path, "%s/%s", dir, names[i]);
		r = directory_move(m, path);
		if (r == 0)
			nolink_rmdir(path);
	}
	pg_names_free(names, count);
	return r;
}

/* CLUSTER/spool/INCARNATION */
static int aside_sets_move(struct pg_cluster *c, struct pg_archive *a, const char *incarnation, const char *dir,
                           struct move *m)
{
	char **sets, path[PG_PATH];
	size_t count;
	int r = pg_names_list(dir, &sets, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++) {
		pg_path_set(path, "%s/%s", dir, sets[i]);
		r = aside_set_move(c, a, incarnation, sets[i], path, m);
		if (r == 0)
			nolink_rmdir(path);
	}
	pg_names_free(sets, count);
	nolink_rmdir(dir);
	return r;
}

static int aside_move(struct pg_cluster *c, struct pg_archive *a, struct move *m)
{
	char **names, dir[PG_PATH], path[PG_PATH];
	size_t count;
	pg_path_set(dir, "%s/%s/spool", c->engine->dir, c->id);
	int r = pg_names_list(dir, &names, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++) {
		pg_path_set(path, "%s/%s", dir, names[i]);
		r = aside_sets_move(c, a, names[i], path, m);
	}
	pg_names_free(names, count);
	return r;
}

int pg_spools_move(struct pg_cluster *c, struct pg_archive *a, bool *ret_more)
{
	struct move m = {.c = c, .a = a};
	int r = aside_move(c, a, &m);
	for (size_t i = 0; i < a->set_count && r == 0; i++)
		for (size_t k = 0; k < a->sets[i]->node_count && r == 0; k++)
			r = node_move(c, a, a->sets[i], a->sets[i]->nodes[k].name, &m);
	*ret_more = m.more;
	return r;
}

/* --- what neither the spools nor the repository have */

static bool spool_may_have(const struct pg_cluster *c, const struct pg_archive_set *s, const char *name)
{
	char dir[PG_PATH], path[PG_PATH], **names;
	bool found = false;
	for (size_t i = 0; i < s->node_count && !found; i++) {
		size_t count;
		pg_path_set(dir, "%s/%s/%s/spool", c->engine->dir, c->id, s->nodes[i].name);
		if (pg_names_list(dir, &names, &count) < 0)
			return true;
		for (size_t k = 0; k < count && !found; k++) {
			pg_path_set(path, "%s/%s/%s", dir, names[k], name);
			found = pg_file_is(path);
		}
		pg_names_free(names, count);
	}
	return found;
}

/* -ENOENT: no node has it. */
static int segment_seek(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const char *name)
{
	for (size_t i = 0; i < s->node_count; i++) {
		char dir[PG_PATH], *bytes;
		size_t n;
		pg_path_set(dir, "%s/%s/%s/data/pg_wal", c->engine->dir, c->id, s->nodes[i].name);
		int look = wal_look(dir, name, s->identity);
		if (look < 0)
			return look;
		/* The primary is past it. */
		if (!(i == s->primary ? pg_wal_is(dir, name, s->identity) : pg_wal_is_complete(dir, name, s->identity)))
			continue;
		if (pg_wal_read(dir, name, &bytes, &n) < 0)
			continue;
		/* It may have been put to another use while it was read. */
		int r = n == PG_SEGMENT && pg_wal_is(dir, name, s->identity) ? 0 : -ENOENT;
		if (r == 0)
			r = pg_archive_is_same(c, a) ? pg_archive_put(c, a, s, name, bytes, n) : -EAGAIN;
		free(bytes);
		if (r != -ENOENT)
			return r;
	}
	return spool_may_have(c, s, name) ? -EAGAIN : -ENOENT;
}

static void gap_note(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const char *name)
{
	log_error("engine: %s set %s: log is missing (%s): what can be restored begins anew with the next snapshot",
	          c->id, s->name, name);
	s->index.broken = true;
	s->index_due = true;
	pthread_mutex_lock(&a->lock);
	a->broken = true;
	pthread_mutex_unlock(&a->lock);
}

int pg_archive_mend(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, uint64_t current)
{
	unsigned puts = 0;
	bool gap = false;
	for (; s->next < current; s->next++) {
		const struct pg_chain_part *part = pg_chain_part(&s->chain, s->next);
		const struct pg_segment *known = part ? pg_segments_find(&s->known, part->timeline, s->next) : NULL;
		char name[PG_WAL_NAME];
		if ((known && known->complete) || pg_index_expects(&s->index, s->next) != s->next) {
			gap = false;
			continue;
		}
		if (puts++ == PUTS_MAX)
			return -EAGAIN;
		pg_wal_name(part ? part->timeline : 1, s->next, true, name);
		int r = part ? segment_seek(c, a, s, name) : -ENOENT;
		if (r == -ENOENT && !gap)
			gap_note(c, a, s, name);
		else if (r < 0 && r != -ENOENT)
			return r;
		gap = r == -ENOENT;
		if (gap) { /* noted at once: what follows may fail, and is gone on with from here */
			pg_index_hole(&s->index, s->next);
			s->index.gap = s->index.gap > s->next ? s->index.gap : s->next + 1;
			s->index_due = true;
			puts--;
		}
	}
	return 0;
}

/* --- before a node's log goes away */

static int aside_make(struct pg_cluster *c, const struct pg_node *n, char ret_path[PG_PATH])
{
	char set[64];
	int r = 0;
	pg_set_name(&n->want, set);
	const char *const parts[] = {c->backup.incarnation, set, n->want.name};
	pg_path_set(ret_path, "%s/%s/spool", c->engine->dir, c->id);
	r = mkdir(ret_path, 0700) < 0 && errno != EEXIST ? -errno : 0;
	r = r < 0 ? r : pg_crypt_dir(c, ret_path);
	for (size_t i = 0; i < 3 && r == 0; i++) {
		char above[PG_PATH];
		pg_path_set(above, "%s", ret_path);
		pg_path_set(ret_path, "%s/%s", above, parts[i]);
		r = mkdir(ret_path, 0700) < 0 && errno != EEXIST ? -errno : 0;
	}
	return r;
}

static int file_keep(struct pg_cluster *c, const char *from, const char *name, const char *to, const char *as)
{
	char path[PG_PATH], *bytes;
	size_t n;
	int r = pg_wal_read(from, name, &bytes, &n);
	if (r < 0)
		return r;
	pg_path_set(path, "%s/%s", to, as);
	r = pg_file_write(c->user, path, bytes, n, false);
	free(bytes);
	return r;
}

/* All of a node's log that was not handed on: what its server had marked for it, and, of a primary, the rest. */
static int wal_keep(struct pg_cluster *c, struct pg_node *n, const char *to)
{
	const struct pg_set *s = pg_cluster_set(c, n->set);
	uint64_t identity = s ? s->identity : 0, number, last = 0;
	bool standby = pg_node_is_standby(c, n);
	char dir[PG_PATH], partial[PG_WAL_NAME], **names;
	uint32_t timeline;
	size_t count;
	pg_node_path(c, n, "data/pg_wal", dir);
	int r = pg_names_list(dir, &names, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++) /* the newest that is in use: perhaps not complete */
		if (pg_wal_parse(names[i], &timeline, &number) == WAL_SEGMENT && number > last) {
			int look = wal_look(dir, names[i], identity);
			last = look > 0 ? number : last;
			r = look < 0 ? look : 0;
		}
	for (size_t i = 0; i < count && r == 0; i++) {
		enum pg_wal_kind kind = pg_wal_parse(names[i], &timeline, &number);
		bool ready = status_is(dir, names[i], "ready");
		if (kind == WAL_NONE || status_is(dir, names[i], "done") ||
		    (!ready && (standby || kind != WAL_SEGMENT)))
			continue;
		int look = kind == WAL_HISTORY ? 1 : wal_look(dir, names[i], identity);
		if (look <= 0) {
			r = look;
			continue;
		}
		pg_wal_name(timeline, number, false, partial);
		r = file_keep(c, dir, names[i], to, !ready && number == last ? partial : names[i]);
	}
	pg_names_free(names, count);
	return r;
}

static int term_keep(const char *from, const char *to)
{
	char path[PG_PATH], target[PG_PATH], **names;
	uint32_t timeline;
	uint64_t number;
	size_t count;
	int r = pg_names_list(from, &names, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++) {
		if (pg_wal_parse(names[i], &timeline, &number) == WAL_NONE)
			continue;
		pg_path_set(path, "%s/%s", from, names[i]);
		pg_path_set(target, "%s/%s", to, names[i]);
		if (nolink_rename(path, target) < 0 && errno != ENOENT)
			r = -errno;
	}
	pg_names_free(names, count);
	return r;
}

static int spool_keep(struct pg_cluster *c, struct pg_node *n, const char *to)
{
	char dir[PG_PATH], from[PG_PATH], **terms;
	size_t count;
	pg_node_path(c, n, "spool", dir);
	int r = pg_names_list(dir, &terms, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++) {
		if (!str_starts(str_of(terms[i]), str_of(c->backup.incarnation)))
			continue;
		pg_path_set(from, "%s/%s", dir, terms[i]);
		r = term_keep(from, to);
	}
	pg_names_free(terms, count);
	return r;
}

int pg_archive_drain(struct pg_cluster *c, struct pg_node *n)
{
	char to[PG_PATH];
	if (!c->backup.archive || !c->engine->repositories || !pg_node_is_made(c, n))
		return 0;
	int r = aside_make(c, n, to);
	r = r < 0 ? r : spool_keep(c, n, to);
	r = r < 0 ? r : wal_keep(c, n, to);
	r = r < 0 ? r : pg_dir_sync(to);
	if (r < 0)
		log_error("engine: %s: its log cannot be put aside in %s: %s", n->want.name, to, strerror(-r));
	pg_archive_hurry(c);
	return r;
}
