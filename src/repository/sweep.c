/* Mark and sweep. What is kept is given from outside; everything else goes:
 *
 *   1. manifests that are not kept, then WAL that is not;
 *   2. the chunks of the manifests that remain are marked;
 *   3. packs without a marked chunk are deleted; those less than half marked, and small ones when there are many, are
 *      written anew without the rest, and then deleted.
 *
 * A chunk that lies in several packs counts in the one that is marked most, so that after a crash between the writing
 * of a new pack and the deletion of the old one, the old one goes. An index is deleted before its pack: a pack without
 * an index is one whose put or deletion was cut off. Packs are touched only while nobody writes (lease.c). */
#include "repository/sweep.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "repository/chunk.h"
#include "repository/common.h"
#include "repository/format.h"
#include "repository/idset.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/lease.h"
#include "repository/manifest.h"
#include "repository/pack.h"
#include "repository/parity.h"
#include "repository/parity_settle.h"
#include "repository/quota.h"
#include "repository/record.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <stdlib.h>

#define SMALL_BYTES (PACK_BYTES / 8)
#define SMALL_MANY 16
#define HOUR_MS 3600000
#define LOOK_EVERY 16 /* manifests or deletions */

struct swept_pack {
	unsigned char id[PACK_ID];
	uint64_t size, index_size; /* of the objects; 0: there is none */
	int64_t modified_ms;
	uint64_t total, marked; /* bytes of its chunks */
	bool known, rewrite;
	bool hurt; /* it has the only copy of a chunk that did not open */
};

struct sweep {
	struct repository *r;
	const struct repo_keep *keep;
	struct lease *lease;
	int64_t now_ms;
	const char **kept; /* sorted "CLUSTER/SNAPSHOT" */
	struct arena *a;
	struct str *manifests; /* that remain */
	size_t manifest_count, manifest_room;
	const char **records; /* "CLUSTER/SNAPSHOT" that have one, and remain */
	size_t record_count, record_room;
	const char **doomed; /* names to be deleted */
	uint64_t *doomed_bytes;
	size_t doomed_count, doomed_room;
	struct str *sealed; /* those of them whose key is lost */
	size_t sealed_count;
	struct id_set marked; /* number: the pack in which it counts */
	struct swept_pack *packs;
	size_t pack_count, pack_room;
	struct parity_builder parity; /* of packs that are written anew */
	struct object_info hour;      /* the last that was not needed */
	const char *stranger;         /* the last snapshot that was told */
	unsigned steps;
	struct repo_swept swept;
};

static int text_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_young(const struct sweep *s, int64_t modified_ms)
{
	return s->keep->young_ms > 0 && s->now_ms - modified_ms < s->keep->young_ms;
}

/* Deletions wait until the list is complete. */
static void doom(struct sweep *s, const struct object_info *info)
{
	if (s->doomed_count == s->doomed_room) {
		size_t room = s->doomed_room ? s->doomed_room * 2 : 64;
		s->doomed = arena_grow(s->a, s->doomed, s->doomed_count, room, sizeof(*s->doomed));
		s->doomed_bytes = arena_grow(s->a, s->doomed_bytes, s->doomed_count, room, sizeof(*s->doomed_bytes));
		s->doomed_room = room;
	}
	s->doomed_bytes[s->doomed_count] = info->size;
	s->doomed[s->doomed_count++] = arena_z(s->a, str_of(info->name));
}

static int doomed_delete(struct sweep *s, uint64_t *count)
{
	int result = 0;
	for (size_t i = 0; i < s->doomed_count && result == 0; i++) {
		result = lease_check(s->lease);
		if (result == 0)
			result = object_delete(s->r, s->doomed[i]);
		if (result == 0) {
			(*count)++;
			s->swept.bytes_freed += s->doomed_bytes[i];
		}
	}
	s->doomed_count = 0;
	return result;
}

static bool is_stranger(const struct sweep *s, struct str id)
{
	return s->keep->stranger && s->keep->stranger(s->keep->stranger_ctx, id);
}

/* One of several sets, which are listed one after the other, tells of the snapshot. */
static void stranger_note(struct sweep *s, const char *snapshot)
{
	if (s->stranger && strcmp(s->stranger, snapshot) == 0)
		return;
	s->stranger = snapshot;
	s->keep->stranger_found(s->keep->stranger_ctx, str_of(snapshot));
}

static bool is_kept(const struct sweep *s, const char *snapshot)
{
	return s->keep->snapshot_count &&
	       bsearch(&snapshot, s->kept, s->keep->snapshot_count, sizeof(*s->kept), text_compare);
}

static int manifest_listed(void *ctx, const struct object_info *info)
{
	struct sweep *s = ctx;
	const char *below = info->name + strlen("manifests/"), *end = strrchr(below, '/');
	if (!end)
		return 0;
	const char *snapshot = arena_z(s->a, (struct str){below, (size_t)(end - below)});
	if (!is_kept(s, snapshot) && !is_young(s, info->modified_ms)) {
		const char *slash = strchr(snapshot, '/');
		if (!slash || !is_stranger(s, str_of(slash + 1))) {
			doom(s, info);
			return 0;
		}
		stranger_note(s, snapshot);
	}
	if (s->manifest_count == s->manifest_room) {
		size_t room = s->manifest_room ? s->manifest_room * 2 : 64;
		s->manifests = arena_grow(s->a, s->manifests, s->manifest_count, room, sizeof(*s->manifests));
		s->manifest_room = room;
	}
	s->manifests[s->manifest_count++] = arena_dup(s->a, str_of(info->name));
	return 0;
}

/* Records go as their snapshots do. */
static int record_listed(void *ctx, struct str cluster, struct str snapshot, int64_t modified_ms)
{
	struct sweep *s = ctx;
	const char *name = arena_printf(s->a, "%.*s/%.*s", STR_ARG(cluster), STR_ARG(snapshot)).p;
	if (!is_kept(s, name) && !is_young(s, modified_ms) && !is_stranger(s, snapshot)) {
		const struct object_info gone = {.name = arena_printf(s->a, RECORDS "%s", name).p};
		doom(s, &gone);
		return 0;
	}
	ARENA_FIT(s->a, s->records, s->record_count, s->record_room);
	s->records[s->record_count++] = name;
	return 0;
}

/* Snapshots without one were taken by an earlier version, or copied here, or the put failed. Where there is no space
 * for it now, the next sweep tries again: this one goes on, because it makes space. */
static void records_complete(struct sweep *s)
{
	int result = 0;
	const char *last = "";
	const size_t skip = strlen("manifests/");
	if (s->record_count)
		qsort(s->records, s->record_count, sizeof(*s->records), text_compare);
	for (size_t i = 0; s->keep->record && i < s->manifest_count && result == 0; i++) {
		struct str cluster, snapshot, set;
		if (!str_cut((struct str){s->manifests[i].p + skip, s->manifests[i].n - skip}, '/', &cluster, &set) ||
		    !str_cut(set, '/', &snapshot, &set))
			continue;
		const char *name = arena_printf(s->a, "%.*s/%.*s", STR_ARG(cluster), STR_ARG(snapshot)).p;
		if (strcmp(name, last) == 0 || !is_kept(s, name) ||
		    (s->record_count && bsearch(&name, s->records, s->record_count, sizeof(*s->records), text_compare)))
			continue;
		last = name;
		char *text = s->keep->record(s->keep->record_ctx, cluster, snapshot);
		if (text)
			result = repo_record_put(s->r, arena_z(s->a, cluster), arena_z(s->a, snapshot), text);
		free(text);
	}
	if (result < 0)
		log_warn("backups: a record of the catalogue cannot be put: %s", repository_why());
}

static int records_sweep(struct sweep *s)
{
	uint64_t gone = 0;
	int result = repo_records(s->r, record_listed, s);
	return result < 0 ? result : doomed_delete(s, &gone);
}

/* The rule for a line; NULL: it is not kept. A set whose name begins with "_" is what all sets of the cluster share. */
static const struct repo_keep_wal *wal_rule(const struct sweep *s, struct str cluster, struct str incarnation,
                                            struct str set)
{
	for (size_t i = 0; i < s->keep->wal_count; i++) {
		const struct repo_keep_wal *k = &s->keep->wal[i];
		if (str_is(cluster, k->line.cluster) && str_is(incarnation, k->line.incarnation) &&
		    (!k->line.set || str_is(set, k->line.set) || str_starts(set, STR("_"))))
			return k;
	}
	return NULL;
}

/* An hour of positions before the first that is needed goes, once there is a later one before it: where nothing was
 * written for long, that tells of all the time since. The list is in the order of names. "0" is the list of them. */
static void hour_listed(struct sweep *s, const struct object_info *info, struct str hour, int64_t from_ms)
{
	uint64_t number;
	if (!str_to_u64(hour, INT64_MAX / HOUR_MS, &number) || !number || (int64_t)number >= from_ms / HOUR_MS)
		return;
	size_t same = (size_t)(strrchr(info->name, '/') - info->name);
	if (s->hour.name && strncmp(s->hour.name, info->name, same + 1) == 0)
		doom(s, &s->hour);
	s->hour = (struct object_info){.name = arena_z(s->a, str_of(info->name)), .size = info->size};
}

static int wal_listed(void *ctx, const struct object_info *info)
{
	struct sweep *s = ctx;
	struct str cluster, incarnation, set, folder, segment, rest = str_of(info->name + strlen("wal/"));
	if (!str_cut(rest, '/', &cluster, &rest) || !str_cut(rest, '/', &incarnation, &rest) ||
	    !str_cut(rest, '/', &set, &rest) || is_young(s, info->modified_ms))
		return 0;
	const struct repo_keep_wal *rule = wal_rule(s, cluster, incarnation, set);
	if (!rule && is_stranger(s, incarnation))
		return 0;
	bool below = str_cut(rest, '/', &folder, &segment), seconds = below && str_is(folder, "seconds");
	bool in_timeline = below && !seconds && segment.n >= 24;
	if (!rule || (rule->from && in_timeline && memcmp(segment.p + 8, rule->from, 16) < 0))
		doom(s, info);
	else if (seconds)
		hour_listed(s, info, segment, rule->from_ms);
	return 0;
}

static struct swept_pack *pack_of(struct sweep *s, const unsigned char id[PACK_ID])
{
	/* The lists are sorted, and so are the packs, except those that only the second list has. */
	size_t low = 0, high = s->pack_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = memcmp(s->packs[middle].id, id, PACK_ID);
		if (order == 0)
			return &s->packs[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (s->pack_count == s->pack_room) {
		s->pack_room = s->pack_room ? s->pack_room * 2 : 64;
		s->packs = must_realloc(s->packs, s->pack_room * sizeof(*s->packs));
	}
	memmove(s->packs + low + 1, s->packs + low, (s->pack_count - low) * sizeof(*s->packs));
	s->pack_count++;
	s->packs[low] = (struct swept_pack){0};
	memcpy(s->packs[low].id, id, PACK_ID);
	return &s->packs[low];
}

static int pack_listed(void *ctx, const struct object_info *info)
{
	unsigned char id[PACK_ID];
	bool index = strncmp(info->name, "index/", 6) == 0;
	if (!pack_name_parse(info->name + 6, id))
		return 0;
	struct swept_pack *p = pack_of(ctx, id);
	if (index)
		p->index_size = info->size;
	else
		p->size = info->size;
	if (info->modified_ms > p->modified_ms)
		p->modified_ms = info->modified_ms;
	return 0;
}

struct ordered_pack {
	size_t known; /* its number in the index */
	size_t number;
	uint64_t total, marked;
};

static int order_compare(const void *a, const void *b)
{
	const struct ordered_pack *x = a, *y = b;
	double p = x->total ? (double)x->marked / (double)x->total : 0;
	double q = y->total ? (double)y->marked / (double)y->total : 0;
	if (p != q)
		return p > q ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Marked chunks that no pack has yet count in this one. Those that did not open come after all others. */
static void pack_assign(struct sweep *s, const struct pack_known *k, size_t number, bool damaged)
{
	struct swept_pack *p = &s->packs[number];
	for (uint32_t i = 0; p->size && i < k->count; i++) {
		struct id_item *item = id_set_find(&s->marked, k->entries[i].id);
		if (!item || item->number != ID_NUMBER_NONE || !(k->entries[i].offset & CHUNK_DAMAGED) == damaged)
			continue;
		item->number = (uint32_t)number;
		p->marked += k->entries[i].stored;
		p->hurt |= damaged;
	}
}

/* How much of each pack is marked, each chunk in one pack only. */
static void packs_weigh(struct sweep *s)
{
	struct chunk_index *x = &s->r->index;
	pthread_rwlock_rdlock(&x->lock);
	struct ordered_pack *order = must_calloc(x->count + 1, sizeof(*order));
	for (size_t i = 0; i < x->count; i++) {
		const struct pack_known *k = &x->packs[i];
		order[i].known = i;
		pack_of(s, k->id)->known = true;
		for (uint32_t j = 0; j < k->count; j++) {
			order[i].total += k->entries[j].stored;
			if (id_set_find(&s->marked, k->entries[j].id))
				order[i].marked += k->entries[j].stored;
		}
	}
	/* Only now: pack_of() may have added some. */
	for (size_t i = 0; i < x->count; i++)
		order[i].number = (size_t)(pack_of(s, x->packs[i].id) - s->packs);
	if (x->count)
		qsort(order, x->count, sizeof(*order), order_compare);
	for (size_t i = 0; i < x->count; i++) {
		s->packs[order[i].number].total = order[i].total;
		pack_assign(s, &x->packs[order[i].known], order[i].number, false);
	}
	for (size_t i = 0; i < x->count; i++)
		pack_assign(s, &x->packs[order[i].known], order[i].number, true);
	pthread_rwlock_unlock(&x->lock);
	free(order);
}

/* Once we have stood still, a writer may have come and found what is in it. */
static int pack_delete(struct sweep *s, const struct swept_pack *p)
{
	char name[64];
	pack_name(p->id, "index", name);
	int result = lease_check(s->lease);
	if (result == 0 && p->index_size)
		result = object_delete(s->r, name);
	pack_name(p->id, "packs", name);
	if (result == 0 && p->size)
		result = object_delete(s->r, name);
	if (result == 0) {
		s->swept.packs++;
		s->swept.bytes_freed += p->size + p->index_size;
	}
	return result;
}

/* Whether packs may still be touched. A writer that came in between waits for us, so we make room. */
static int still_alone(struct sweep *s, bool *ret_alone)
{
	struct lease_others others;
	*ret_alone = true;
	if (s->steps++ % LOOK_EVERY)
		return 0;
	int result = lease_look(s->lease, &others);
	*ret_alone = result == 0 && !others.writers && !others.sweepers;
	return result;
}

static int mark(struct sweep *s)
{
	s->sealed = arena_new_array(s->a, struct str, s->manifest_count + 1);
	for (size_t i = 0; i < s->manifest_count; i++) {
		struct repo_manifest *m;
		bool alone;
		int result = still_alone(s, &alone);
		if (result < 0 || !alone)
			return result < 0 ? result : -EBUSY;
		result = manifest_get(s->r, s->manifests[i].p, &m);
		/* What a key that is lost has sealed names only packs of that key, which are not known and stay. */
		if (result == -EKEYREVOKED)
			s->sealed[s->sealed_count++] = s->manifests[i];
		if (result == -ENOENT || result == -EKEYREVOKED)
			continue;
		if (result < 0) /* what it needs is not known: no pack may go */
			return result;
		for (size_t j = 0; j < m->count; j++)
			for (size_t k = 0; k < m->files[j].id_count; k++) {
				const unsigned char *id = m->files[j].ids + k * CHUNK_ID;
				if (!chunk_id_is_zero(id))
					id_set_add(&s->marked, id);
			}
		repo_manifest_close(m);
	}
	return 0;
}

/* A key that came back since then has made its packs known, and nothing of them is marked. */
static int sealed_look(struct sweep *s)
{
	int result = 0;
	for (size_t i = 0; i < s->sealed_count && result == 0; i++) {
		struct repo_manifest *m = NULL;
		result = manifest_get(s->r, s->sealed[i].p, &m);
		repo_manifest_close(m);
		result = result == -EKEYREVOKED || result == -ENOENT ? 0 : result == 0 ? -EBUSY : result;
	}
	return result;
}

/* A pack without an index: its put or its deletion was cut off; or its index was lost, while its chunks are needed. */
static int orphan_mend(struct sweep *s, const struct swept_pack *p, size_t number)
{
	struct chunk_entry *entries = NULL;
	uint32_t count = 0;
	uint64_t stored;
	const struct repo_key *key = NULL;
	int result = pack_footer_get(s->r, p->id, &entries, &count, &key);
	if (result == -EBADMSG) {
		log_error("backups: %s", repository_why());
		return 0;
	}
	if (result < 0)
		return result == -ENOENT || repo_key_is_lost(result) ? 0 : result;
	bool needed = false;
	for (uint32_t i = 0; i < count; i++) {
		struct id_item *item = id_set_find(&s->marked, entries[i].id);
		if (item && item->number == ID_NUMBER_NONE) {
			item->number = (uint32_t)number;
			needed = true;
		}
	}
	if (needed)
		result = pack_index_put(s->r, key, p->id, entries, count, &stored);
	else
		result = s->sealed_count ? 0 : pack_delete(s, p); /* a manifest that cannot be read may need it */
	free(entries);
	return result;
}

static int dead_delete(struct sweep *s)
{
	for (size_t i = 0; i < s->pack_count; i++) {
		const struct swept_pack *p = &s->packs[i];
		bool alone, unreadable = !p->known && p->index_size;
		if (p->marked || unreadable || is_young(s, p->modified_ms))
			continue;
		int result = still_alone(s, &alone);
		if (result < 0 || !alone)
			return result < 0 ? result : -EBUSY;
		result = p->known ? pack_delete(s, p) : orphan_mend(s, p, i);
		if (result < 0)
			return result;
	}
	return 0;
}

static void rewrites_choose(struct sweep *s)
{
	size_t small = 0;
	for (size_t i = 0; i < s->pack_count; i++) {
		struct swept_pack *p = &s->packs[i];
		if (!p->known || !p->marked || !p->size || is_young(s, p->modified_ms))
			continue;
		/* What is damaged and was stored again elsewhere is left behind. */
		p->rewrite = p->marked * 2 < p->total || (!p->hurt && index_doubts(s->r, p->id));
		small += !p->rewrite && p->total < SMALL_BYTES;
	}
	for (size_t i = 0; i < s->pack_count && small >= SMALL_MANY; i++) {
		struct swept_pack *p = &s->packs[i];
		if (p->known && p->marked && p->size && p->total < SMALL_BYTES && !is_young(s, p->modified_ms))
			p->rewrite = true;
	}
}

static int builder_flush(struct sweep *s, struct pack_builder *b)
{
	uint64_t stored = 0;
	int result = pack_flush(s->r, b, &stored);
	s->swept.bytes_freed -= result == 0 && stored < s->swept.bytes_freed ? stored : 0;
	return result == -EBADMSG ? -EIO : result; /* a file system's word; here it means a pack that is damaged */
}

/* The marked chunks of a pack into the builder. */
static int pack_pour(struct sweep *s, size_t number, struct pack_builder *b)
{
	const struct swept_pack *p = &s->packs[number];
	struct chunk_entry *entries = NULL;
	unsigned char key[REPO_KEY_BYTES], plain[CHUNK_BYTES];
	char *bytes = NULL;
	size_t n = 0;
	uint32_t count = 0;
	const struct repo_key *of = NULL;
	int result = pack_get(s->r, p->id, &bytes, &n, &entries, &count, &of);
	if (result < 0)
		return result;
	pack_key(of, p->id, key);
	for (uint32_t i = 0; i < count && result == 0; i++) {
		const struct chunk_entry *e = &entries[i];
		const struct id_item *item = id_set_find(&s->marked, e->id);
		struct chunk_place at = {.number = i, .offset = e->offset, .stored = e->stored, .plain = e->plain};
		if (!item || item->number != number)
			continue;
		result = chunk_open(key, e->id, &at, (const unsigned char *)bytes + e->offset, plain);
		if (result < 0) {
			char name[64];
			memcpy(at.pack, p->id, PACK_ID);
			index_distrust(s->r, &at); /* so that the next snapshot stores it again */
			pack_name(p->id, "packs", name);
			repo_fail(result, "%s: chunk %u is damaged", name, i);
			break;
		}
		pack_add(of, b, e->id, plain, e->plain & ~CHUNK_PACKED);
		if (pack_is_full(b))
			result = builder_flush(s, b);
	}
	free(bytes);
	free(entries);
	return result;
}

/* Old packs are deleted once all that was poured out of them is stored. */
static int poured_delete(struct sweep *s, struct pack_builder *b, size_t *poured, size_t *count)
{
	int result = builder_flush(s, b);
	for (size_t i = 0; i < *count && result == 0; i++) {
		result = pack_delete(s, &s->packs[poured[i]]);
		if (result == 0) {
			s->swept.packs--;
			s->swept.rewritten++;
		}
	}
	*count = 0;
	return result;
}

/* Of packs that are sealed with one key: what was sealed with it stays so. */
static int rewrite_of(struct sweep *s, const struct repo_key *key)
{
	struct pack_builder b = {.parity = &s->parity};
	size_t *poured = must_calloc(s->pack_count + 1, sizeof(*poured)), count = 0;
	uint64_t bytes = 0;
	int result = 0;
	for (size_t i = 0; i < s->pack_count && result == 0; i++) {
		bool alone;
		if (!s->packs[i].rewrite || index_key(s->r, s->packs[i].id) != key)
			continue;
		s->steps = 0;
		result = still_alone(s, &alone);
		if (result < 0 || !alone)
			break;
		result = pack_pour(s, i, &b);
		if (result == -EBADMSG) { /* what is damaged stays as it is: another snapshot may still need the rest */
			log_error("backups: %s", repository_why());
			result = 0;
			continue;
		}
		if (result < 0)
			break;
		poured[count++] = i;
		bytes += s->packs[i].marked;
		if (bytes >= PACK_BYTES) {
			result = poured_delete(s, &b, poured, &count);
			bytes = 0;
		}
	}
	if (result == 0)
		result = poured_delete(s, &b, poured, &count);
	pack_builder_free(&b);
	free(poured);
	return result;
}

static int rewrite(struct sweep *s)
{
	uint64_t stored = 0;
	int result = 0;
	pthread_mutex_lock(&s->r->key_lock);
	const struct repo_key *key = s->r->keys; /* those that are added meanwhile come before it */
	pthread_mutex_unlock(&s->r->key_lock);
	for (; key && result == 0; key = key->next)
		result = rewrite_of(s, key);
	return result == 0 ? parity_flush(s->r, &s->parity, &stored) : result;
}

static int settle_step(void *ctx)
{
	struct sweep *s = ctx;
	bool alone;
	int result = lease_check(s->lease);
	if (result == 0)
		result = still_alone(s, &alone);
	return result < 0 || alone ? result : -EBUSY;
}

/* Before a pack goes: what it was part of is still whole then. */
static int second_copies(struct sweep *s)
{
	uint64_t stored = 0;
	struct parity_pack *packs = must_calloc(s->pack_count + 1, sizeof *packs);
	for (size_t i = 0; i < s->pack_count; i++) {
		const struct swept_pack *p = &s->packs[i];
		bool dead = p->known && !p->marked && !is_young(s, p->modified_ms);
		memcpy(packs[i].id, p->id, PACK_ID);
		packs[i].there = p->size > 0;
		packs[i].needed = p->known && p->marked;
		packs[i].going = dead || p->rewrite;
	}
	int result = parity_settle(s->r, packs, s->pack_count, s->r->parity, settle_step, s, &stored);
	free(packs);
	return result;
}

/* Notes of damage in packs that are gone. */
static int note_listed(void *ctx, const struct object_info *info)
{
	struct sweep *s = ctx;
	unsigned char id[PACK_ID];
	if (pack_name_parse(info->name + strlen("damaged/"), id) && pack_of(s, id)->size == 0)
		doom(s, info);
	return 0;
}

static int packs_sweep(struct sweep *s)
{
	int result = mark(s);
	if (result == 0)
		result = index_refresh(s->r);
	if (result == 0)
		result = sealed_look(s);
	if (result == 0)
		result = object_list(s->r, "packs/", pack_listed, s);
	if (result == 0)
		result = object_list(s->r, "index/", pack_listed, s);
	if (result == 0)
		result = object_list(s->r, "damaged/", note_listed, s);
	if (result == 0)
		result = doomed_delete(s, &(uint64_t){0});
	if (result < 0)
		return result == -EBUSY ? 0 : result;
	packs_weigh(s);
	rewrites_choose(s);
	result = second_copies(s);
	if (result == 0)
		result = dead_delete(s);
	if (result == 0)
		result = rewrite(s);
	if (result == -EBUSY)
		result = 0;
	return result < 0 ? result : index_refresh(s->r);
}

static int size_listed(void *ctx, const struct object_info *info)
{
	if (strncmp(info->name, "leases/", 7) != 0)
		*(uint64_t *)ctx += info->size;
	return 0;
}

static int sweep_run(struct sweep *s)
{
	struct lease_others others;
	int result = lease_look(s->lease, &others);
	if (result < 0)
		return result;
	s->now_ms = others.now_ms;
	if (s->keep->read_us && clock_boot_us() - s->keep->read_us > s->keep->young_ms * 1000 / 2)
		return repo_fail(-ESTALE,
		                 "what is to be kept was read too long ago: this process stood still; try again");
	result = object_list(s->r, "manifests/", manifest_listed, s);
	if (result == 0)
		result = doomed_delete(s, &s->swept.manifests);
	if (result == 0)
		result = records_sweep(s);
	if (result == 0)
		result = object_list(s->r, "wal/", wal_listed, s);
	if (result == 0)
		result = doomed_delete(s, &s->swept.segments);
	if (result == 0 && !others.writers && !others.sweepers)
		result = packs_sweep(s);
	if (result == 0) {
		records_complete(s);
		result = object_list(s->r, "", size_listed, &s->swept.bytes_kept);
	}
	return result;
}

int repo_sweep(struct repository *r, const struct repo_keep *keep, struct repo_swept *ret_swept)
{
	struct sweep s = {.r = r, .keep = keep};
	int result = lease_begin(r, LEASE_SWEEP, &s.lease);
	if (result < 0)
		return result;
	parity_setup(&s.parity, r->parity);
	s.a = arena_new();
	s.kept = arena_new_array(s.a, const char *, keep->snapshot_count + 1);
	for (size_t i = 0; i < keep->snapshot_count; i++)
		s.kept[i] = keep->snapshots[i];
	if (keep->snapshot_count)
		qsort(s.kept, keep->snapshot_count, sizeof(*s.kept), text_compare);
	result = sweep_run(&s);
	lease_end(s.lease);
	id_set_free(&s.marked);
	parity_free(&s.parity);
	free(s.packs);
	arena_free(s.a);
	if (result == 0)
		quota_set(r, s.swept.bytes_kept);
	if (result == 0 && ret_swept)
		*ret_swept = s.swept;
	return result;
}

struct usage {
	uint64_t packs, wal;
};

static int usage_listed(void *ctx, const struct object_info *info)
{
	struct usage *u = ctx;
	if (strncmp(info->name, "wal/", 4) == 0)
		u->wal += info->size;
	else
		u->packs += info->size;
	return 0;
}

int repo_usage(struct repository *r, uint64_t *ret_packs, uint64_t *ret_wal)
{
	struct usage u = {0};
	int result = object_list(r, "", usage_listed, &u);
	if (result < 0)
		return result;
	*ret_packs = u.packs;
	*ret_wal = u.wal;
	return 0;
}
