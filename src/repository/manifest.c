/* Manifests: the files of one set, as lists of chunks. What is sealed:
 *
 *   4        length of the JSON that follows
 *            {"cluster", "snapshot", "set", "chunkBytes", "checksum", "files", "bytes", "chunks", "newChunks",
 *            "stored", "facts"}
 *   4        number of entries, which are sorted by path; each is
 *     1      'F' file or 'D' directory
 *     4      mode
 *     8      when it was changed, in seconds since 1970
 *     8      length
 *     4      CRC-32C (of directories 0)
 *     2      length of the path
 *            path, and a byte 0
 *     4      number of chunks
 *     16     for each: its id; all 0: it is nothing but zeros */
#include "repository/manifest.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "repository/common.h"
#include "repository/format.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <limits.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#define ENTRY_FIXED (1 + 4 + 8 + 8 + 4 + 2)
#define EARLIER_HASH 32
#define PATH_LONGEST 4096

/* Relative, and nowhere out of the directory. */
bool manifest_path_ok(struct str path)
{
	struct str part, rest = path;
	if (!path.n || path.n >= PATH_LONGEST || memchr(path.p, 0, path.n) || path.p[path.n - 1] == '/')
		return false;
	while (rest.n) {
		str_cut(rest, '/', &part, &rest);
		if (!part.n || part.n > NAME_MAX || str_is(part, ".") || str_is(part, ".."))
			return false;
	}
	return true;
}

static void add_u32(struct buf *out, uint32_t v)
{
	unsigned char bytes[4];
	put_u32(bytes, v);
	buf_add(out, bytes, sizeof bytes);
}

static void add_u64(struct buf *out, uint64_t v)
{
	unsigned char bytes[8];
	put_u64(bytes, v);
	buf_add(out, bytes, sizeof bytes);
}

void manifest_write(struct buf *out, const json_t *head, const struct manifest_file *files, size_t count)
{
	char *text = json_dumps(head, JSON_COMPACT | JSON_SORT_KEYS);
	add_u32(out, (uint32_t)strlen(text));
	buf_z(out, text);
	free(text);
	add_u32(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		const struct manifest_file *f = &files[i];
		uint16_t n = (uint16_t)strlen(f->path);
		unsigned char length[2] = {(unsigned char)(n & 255), (unsigned char)(n >> 8)};
		buf_c(out, f->kind);
		add_u32(out, f->mode);
		add_u64(out, (uint64_t)f->modified_s);
		add_u64(out, f->size);
		add_u32(out, f->sum);
		buf_add(out, length, sizeof length);
		buf_add(out, f->path, (size_t)n + 1);
		add_u32(out, (uint32_t)f->id_count);
		if (f->id_count)
			buf_add(out, f->ids, f->id_count * CHUNK_ID);
	}
}

struct cursor {
	const unsigned char *p, *end;
};

static const unsigned char *cursor_take(struct cursor *c, size_t n)
{
	if ((size_t)(c->end - c->p) < n)
		return NULL;
	const unsigned char *at = c->p;
	c->p += n;
	return at;
}

static bool entry_read(struct cursor *c, bool summed, struct manifest_file *f)
{
	size_t wide = summed ? 4 : EARLIER_HASH;
	const unsigned char *p = cursor_take(c, ENTRY_FIXED - 4 + wide);
	if (!p || (p[0] != MANIFEST_FILE && p[0] != MANIFEST_DIRECTORY))
		return false;
	f->kind = (char)p[0];
	f->mode = get_u32(p + 1) & 07777;
	f->modified_s = (int64_t)get_u64(p + 5);
	f->size = get_u64(p + 13);
	f->summed = summed;
	f->sum = summed ? get_u32(p + 21) : 0;
	size_t path_n = p[21 + wide] | (size_t)p[22 + wide] << 8;
	const unsigned char *path = cursor_take(c, path_n + 1), *chunks = cursor_take(c, 4);
	if (!path || !chunks || path[path_n] || !manifest_path_ok((struct str){(const char *)path, path_n}))
		return false;
	f->path = (const char *)path;
	f->id_count = get_u32(chunks);
	f->ids = cursor_take(c, f->id_count * CHUNK_ID);
	return f->ids && f->id_count == (f->size + CHUNK_BYTES - 1) / CHUNK_BYTES;
}

static bool entries_read(struct repo_manifest *m, struct cursor *c)
{
	const unsigned char *p = cursor_take(c, 4);
	if (!p)
		return false;
	size_t count = get_u32(p);
	if (count > (size_t)(c->end - c->p) / ENTRY_FIXED)
		return false;
	bool summed = json_field(m->head, "checksum").n;
	m->files = must_calloc(count + 1, sizeof(*m->files));
	for (m->count = 0; m->count < count; m->count++) {
		struct manifest_file *f = &m->files[m->count];
		if (!entry_read(c, summed, f) || (m->count && strcmp(f[-1].path, f->path) >= 0))
			return false;
	}
	return c->p == c->end;
}

/* Earlier ones name no checksum, and have a SHA-256 in its place, which is not compared: all of their chunks are
 * authenticated. */
static bool head_ok(const json_t *head)
{
	struct str checksum = json_field(head, "checksum");
	return json_is_object(head) && json_number(head, "chunkBytes") == CHUNK_BYTES &&
	       (!checksum.n || str_is(checksum, MANIFEST_CHECKSUM)) && json_field(head, "cluster").n &&
	       json_field(head, "snapshot").n && json_field(head, "set").n;
}

int manifest_read(struct repository *r, char *plain, size_t n, struct repo_manifest **ret_manifest)
{
	struct repo_manifest *m = must_calloc(1, sizeof(*m));
	struct cursor c = {(const unsigned char *)plain, (const unsigned char *)plain + n};
	const unsigned char *p = cursor_take(&c, 4), *text = p ? cursor_take(&c, get_u32(p)) : NULL;
	m->r = r;
	m->plain = plain;
	m->head = text ? json_loadb((const char *)text, get_u32(p), 0, NULL) : NULL;
	if (!head_ok(m->head) || !entries_read(m, &c)) {
		repo_manifest_close(m);
		return repo_fail(-EBADMSG, "a manifest opens, but what it says cannot be");
	}
	m->amount = (struct repo_amount){.files = (uint64_t)json_number(m->head, "files"),
	                                 .bytes = (uint64_t)json_number(m->head, "bytes"),
	                                 .chunks = (uint64_t)json_number(m->head, "chunks"),
	                                 .new_chunks = (uint64_t)json_number(m->head, "newChunks"),
	                                 .stored = (uint64_t)json_number(m->head, "stored")};
	*ret_manifest = m;
	return 0;
}

void manifest_name(char *ret_name, const char *cluster, const char *snapshot, const char *set)
{
	snprintf(ret_name, OBJECT_NAME, "manifests/%s/%s/%s", cluster, snapshot, set);
}

int manifest_get(struct repository *r, const char *name, struct repo_manifest **ret_manifest)
{
	char *plain = NULL;
	size_t n = 0;
	const struct repo_key *key = NULL;
	int result = object_get_key(r, SEALED_MANIFEST, name, MANIFEST_MAX, &plain, &n, &key);
	struct repo_manifest *m = NULL;
	result = result < 0 ? result : manifest_read(r, plain, n, &m);
	if (m) {
		m->key = key;
		*ret_manifest = m;
	}
	return result;
}

int repo_manifest_open(struct repository *r, const char *cluster, const char *snapshot, const char *set,
                       struct repo_manifest **ret_manifest)
{
	char name[OBJECT_NAME];
	if (!name_part_ok(cluster) || !name_part_ok(snapshot) || !name_part_ok(set))
		return repo_fail(-EINVAL, "no such names");
	manifest_name(name, cluster, snapshot, set);
	struct repo_manifest *m;
	int result = manifest_get(r, name, &m);
	if (result < 0)
		return result;
	result = repo_key_check(r, m->key);
	if (result == 0 && !r->index.loaded)
		result = index_refresh(r);
	if (result < 0)
		repo_manifest_close(m);
	else
		*ret_manifest = m;
	return result;
}

void repo_manifest_close(struct repo_manifest *m)
{
	if (!m)
		return;
	json_decref(m->head);
	free(m->plain);
	free(m->files);
	free(m);
}

const json_t *repo_manifest_facts(const struct repo_manifest *m)
{
	return json_object_get(m->head, "facts");
}

const struct repo_amount *repo_manifest_amount(const struct repo_manifest *m)
{
	return &m->amount;
}

const char *repo_manifest_key(const struct repo_manifest *m)
{
	return m->key->id;
}

struct set_list {
	struct arena *a;
	size_t skip, count;
	struct str *sets;
};

static int set_listed(void *ctx, const struct object_info *info)
{
	struct set_list *l = ctx;
	l->sets = arena_grow(l->a, l->sets, l->count, l->count + 1, sizeof(*l->sets));
	l->sets[l->count++] = arena_dup(l->a, str_of(info->name + l->skip));
	return 0;
}

int repo_sets(struct repository *r, struct arena *a, const char *cluster, const char *snapshot, struct str **ret_sets,
              size_t *ret_count)
{
	char prefix[OBJECT_NAME];
	if (!name_part_ok(cluster) || !name_part_ok(snapshot))
		return repo_fail(-EINVAL, "no such names");
	manifest_name(prefix, cluster, snapshot, "");
	struct set_list l = {.a = a, .skip = strlen(prefix)};
	int result = object_list(r, prefix, set_listed, &l);
	if (result < 0)
		return result;
	if (!l.count)
		return repo_fail(-ENOENT, "there is no snapshot %s of the cluster %s", snapshot, cluster);
	*ret_sets = l.sets;
	*ret_count = l.count;
	return 0;
}

int repo_manifest_delete(struct repository *r, const char *cluster, const char *snapshot)
{
	struct arena *a = arena_new();
	struct str *sets;
	size_t count = 0;
	char name[OBJECT_NAME];
	int result = repo_sets(r, a, cluster, snapshot, &sets, &count);
	for (size_t i = 0; i < count && result == 0; i++) {
		manifest_name(name, cluster, snapshot, sets[i].p);
		result = object_delete(r, name);
	}
	arena_free(a);
	if (result < 0 && result != -ENOENT)
		return result;
	snprintf(name, sizeof name, RECORDS "%s/%s", cluster, snapshot);
	result = name_part_ok(cluster) && name_part_ok(snapshot) ? object_delete(r, name) : 0;
	return result == -ENOENT ? 0 : result;
}

/* --- PostgreSQL's own form */

/* JSON's text cannot hold every path: PostgreSQL takes others in hexadecimal digits. */
static void manifest_path(struct buf *out, const char *path)
{
	json_t *text = json_string(path);
	if (text) {
		json_key(out, "Path");
		json_z(out, path);
	} else {
		size_t n = strlen(path);
		char *hex = must_malloc(2 * n + 1);
		hex_encode(path, n, hex);
		json_key(out, "Encoded-Path");
		json_z(out, hex);
		free(hex);
	}
	json_decref(text);
}

static void manifest_entry(struct buf *out, const struct manifest_file *f)
{
	unsigned char sum[4];
	char hex[2 * sizeof sum + 1], when[CLOCK_TEXT];
	put_u32(sum, f->sum);
	hex_encode(sum, sizeof sum, hex);
	clock_format(f->modified_s * 1000, when);
	when[10] = ' ';
	when[19] = 0;
	json_open(out, '{');
	manifest_path(out, f->path);
	json_key(out, "Size");
	json_int(out, (int64_t)f->size);
	json_key(out, "Last-Modified");
	buf_printf(out, "\"%s GMT\"", when);
	json_key(out, "Checksum-Algorithm");
	json_z(out, "CRC32C");
	json_key(out, "Checksum");
	json_z(out, hex);
	json_close(out, '}');
}

void manifest_for_postgres(struct buf *out, const struct manifest_file *files, size_t count, const json_t *wal_ranges,
                           int64_t *ret_newest_s)
{
	unsigned char hash[HASH_BYTES];
	char hex[2 * HASH_BYTES + 1], *ranges = json_dumps(wal_ranges, JSON_COMPACT);
	bool first = true;
	*ret_newest_s = 0;
	buf_z(out, "{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [");
	for (size_t i = 0; i < count; i++) {
		const struct manifest_file *f = &files[i];
		if (f->kind != MANIFEST_FILE || strncmp(f->path, "pg_wal/", 7) == 0)
			continue;
		buf_z(out, first ? "\n" : ",\n");
		/* json_open() writes a comma where one is missing. */
		struct buf entry = {0};
		manifest_entry(&entry, f);
		buf_str(out, buf_view(&entry));
		buf_free(&entry);
		first = false;
		*ret_newest_s = f->modified_s > *ret_newest_s ? f->modified_s : *ret_newest_s;
	}
	buf_printf(out, "\n],\n\"WAL-Ranges\": %s,\n", ranges ? ranges : "[]");
	free(ranges);
	SHA256((const unsigned char *)out->p, out->n, hash);
	hex_encode(hash, sizeof hash, hex);
	buf_printf(out, "\"Manifest-Checksum\": \"%s\"}\n", hex);
}

struct snapshot_list {
	repo_snapshot_visit *visit;
	void *ctx;
	char last[OBJECT_NAME];
};

/* "manifests/CLUSTER/SNAPSHOT/SET": sets of one are listed one after the other. */
static int snapshot_listed(void *ctx, const struct object_info *info)
{
	struct snapshot_list *l = ctx;
	struct str cluster, snapshot, rest = str_of(info->name + strlen("manifests/"));
	char name[OBJECT_NAME];
	if (!str_cut(rest, '/', &cluster, &rest) || !str_cut(rest, '/', &snapshot, &rest))
		return 0;
	snprintf(name, sizeof name, "%.*s/%.*s", STR_ARG(cluster), STR_ARG(snapshot));
	if (strcmp(name, l->last) == 0)
		return 0;
	memcpy(l->last, name, sizeof name);
	return l->visit(l->ctx, cluster, snapshot, info->modified_ms);
}

int repo_snapshots(struct repository *r, repo_snapshot_visit *visit, void *ctx)
{
	struct snapshot_list l = {.visit = visit, .ctx = ctx};
	return object_list(r, "manifests/", snapshot_listed, &l);
}
