/* Which chunk lies where: the indexes of all packs, and an open-addressing table over their entries. It is read by
 * many threads at once; packs are added as they are put, and what other processes have added or taken away is seen by
 * index_refresh(). A pack whose index cannot be read is not known here: what is in it is stored again, and
 * `steward repository check` tells. */
#include "repository/index.h"

#include "base/arena.h"
#include "base/log.h"
#include "repository/chunk.h"
#include "repository/damage.h"
#include "repository/format.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/pack.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS_FIRST 4096
#define LEARNERS 16
#define LEARNER_PACKS 8     /* so many are worth a thread */
#define THE_PACK UINT32_MAX /* in place of an entry: the slot is of the pack's own id, which is random too */

void index_setup(struct chunk_index *x)
{
	pthread_rwlock_init(&x->lock, NULL);
	pthread_mutex_init(&x->refreshing, NULL);
}

static void index_clear(struct chunk_index *x)
{
	for (size_t i = 0; i < x->count; i++)
		free(x->packs[i].entries);
	free(x->packs);
	free(x->slots);
}

void index_free(struct chunk_index *x)
{
	index_clear(x);
	pthread_rwlock_destroy(&x->lock);
	pthread_mutex_destroy(&x->refreshing);
}

/* Ids are as good as random: their first bytes are the hash. */
static size_t slot_of(const struct chunk_index *x, const unsigned char *id)
{
	return get_u64(id) & (x->slot_count - 1);
}

static const unsigned char *slot_id(const struct chunk_index *x, const struct chunk_slot *s)
{
	const struct pack_known *p = &x->packs[s->pack - 1];
	return s->entry == THE_PACK ? p->id : p->entries[s->entry].id;
}

static struct chunk_slot *slot_find(const struct chunk_index *x, const unsigned char *id)
{
	size_t i = slot_of(x, id);
	while (x->slots[i].pack && memcmp(slot_id(x, &x->slots[i]), id, CHUNK_ID) != 0)
		i = (i + 1) & (x->slot_count - 1);
	return &x->slots[i];
}

static bool slot_is_doubted(const struct chunk_index *x, const struct chunk_slot *s)
{
	return s->entry != THE_PACK && x->packs[s->pack - 1].entries[s->entry].offset & CHUNK_DAMAGED;
}

/* Of several copies one that is not doubted. */
static void slot_fill(struct chunk_index *x, size_t pack, uint32_t entry)
{
	struct chunk_slot new = {(uint32_t)pack + 1, entry}, *s = slot_find(x, slot_id(x, &new));
	if (s->pack && (!slot_is_doubted(x, s) || slot_is_doubted(x, &new)))
		return;
	x->used += !s->pack;
	*s = new;
}

static void slots_fill(struct chunk_index *x, size_t pack)
{
	slot_fill(x, pack, THE_PACK);
	for (uint32_t i = 0; i < x->packs[pack].count; i++)
		slot_fill(x, pack, i);
}

static void slots_make(struct chunk_index *x, size_t wanted)
{
	size_t count = SLOTS_FIRST;
	while (count < wanted * 2)
		count *= 2;
	free(x->slots);
	x->slots = must_calloc(count, sizeof(*x->slots));
	x->slot_count = count;
	x->used = 0;
	for (size_t i = 0; i < x->count; i++)
		slots_fill(x, i);
}

/* With the lock held for writing. */
static void pack_know(struct chunk_index *x, const struct repo_key *key, const unsigned char id[PACK_ID],
                      struct chunk_entry *entries, uint32_t count)
{
	if (x->slot_count && slot_find(x, id)->pack) {
		free(entries);
		return;
	}
	if (!x->packs || x->count == x->room) {
		x->room = x->room ? x->room * 2 : 64;
		x->packs = must_realloc(x->packs, x->room * sizeof(*x->packs));
	}
	struct pack_known *p = &x->packs[x->count++];
	*p = (struct pack_known){0};
	memcpy(p->id, id, PACK_ID);
	p->key = key;
	p->entries = entries;
	p->count = count;
	p->end = count ? entries[count - 1].offset + entries[count - 1].stored : PACK_HEADER;
	if ((x->used + count + 1) * 3 > x->slot_count * 2)
		slots_make(x, x->used + count + 1);
	else
		slots_fill(x, x->count - 1);
}

void index_add(struct repository *r, const struct repo_key *key, const unsigned char pack[PACK_ID],
               struct chunk_entry *entries, uint32_t count)
{
	pthread_rwlock_wrlock(&r->index.lock);
	pack_know(&r->index, key, pack, entries, count);
	pthread_rwlock_unlock(&r->index.lock);
}

/* NULL: it is not known. With the lock. */
static struct pack_known *pack_find(struct chunk_index *x, const unsigned char id[PACK_ID])
{
	const struct chunk_slot *s = x->slot_count ? slot_find(x, id) : NULL;
	return s && s->pack && s->entry == THE_PACK ? &x->packs[s->pack - 1] : NULL;
}

const struct repo_key *index_key(struct repository *r, const unsigned char pack[PACK_ID])
{
	pthread_rwlock_rdlock(&r->index.lock);
	const struct pack_known *p = pack_find(&r->index, pack);
	const struct repo_key *key = p ? p->key : NULL;
	pthread_rwlock_unlock(&r->index.lock);
	return key;
}

void index_doubt(struct repository *r, const unsigned char pack[PACK_ID], const uint32_t *numbers, size_t count)
{
	struct chunk_index *x = &r->index;
	bool more = false;
	pthread_rwlock_wrlock(&x->lock);
	const struct pack_known *p = pack_find(x, pack);
	for (size_t i = 0; p && i < count; i++)
		if (numbers[i] < p->count && !(p->entries[numbers[i]].offset & CHUNK_DAMAGED)) {
			p->entries[numbers[i]].offset |= CHUNK_DAMAGED;
			more = true;
		}
	if (more)
		slots_make(x, x->used);
	pthread_rwlock_unlock(&x->lock);
}

void index_distrust(struct repository *r, const struct chunk_place *at)
{
	if (at->doubted)
		return;
	index_doubt(r, at->pack, &at->number, 1);
	damage_note(r, at->pack, &at->number, 1);
}

void index_cut(struct repository *r, const unsigned char pack[PACK_ID], uint64_t length)
{
	struct chunk_index *x = &r->index;
	uint32_t *numbers = NULL;
	size_t count = 0;
	pthread_rwlock_rdlock(&x->lock);
	const struct pack_known *p = pack_find(x, pack);
	numbers = must_calloc((p ? p->count : 0) + (size_t)1, sizeof *numbers);
	for (uint32_t i = 0; p && i < p->count; i++)
		if ((uint64_t)(p->entries[i].offset & ~CHUNK_DAMAGED) + p->entries[i].stored > length)
			numbers[count++] = i;
	pthread_rwlock_unlock(&x->lock);
	index_doubt(r, pack, numbers, count);
	damage_note(r, pack, numbers, count);
	free(numbers);
}

bool index_knows_note(struct repository *r, const unsigned char pack[PACK_ID], uint64_t size, int64_t modified_ms)
{
	pthread_rwlock_rdlock(&r->index.lock);
	const struct pack_known *p = pack_find(&r->index, pack);
	bool knows = !p || (p->note_size == size && p->note_ms == modified_ms);
	pthread_rwlock_unlock(&r->index.lock);
	return knows;
}

void index_note(struct repository *r, const unsigned char pack[PACK_ID], uint64_t size, int64_t modified_ms)
{
	pthread_rwlock_wrlock(&r->index.lock);
	struct pack_known *p = pack_find(&r->index, pack);
	if (p) {
		p->note_size = size;
		p->note_ms = modified_ms;
	}
	pthread_rwlock_unlock(&r->index.lock);
}

void index_trust(struct repository *r, const struct repo_key *key, const unsigned char pack[PACK_ID],
                 struct chunk_entry *entries, uint32_t count)
{
	struct chunk_index *x = &r->index;
	pthread_rwlock_wrlock(&x->lock);
	struct pack_known *p = pack_find(x, pack);
	for (uint32_t i = 0; p && i < p->count; i++)
		p->entries[i].offset &= ~CHUNK_DAMAGED;
	if (p) {
		free(entries);
		p->note_size = 0;
		slots_make(x, x->used);
	} else {
		pack_know(x, key, pack, entries, count);
	}
	pthread_rwlock_unlock(&x->lock);
}

bool index_doubts(struct repository *r, const unsigned char pack[PACK_ID])
{
	bool doubted = false;
	pthread_rwlock_rdlock(&r->index.lock);
	const struct pack_known *p = pack_find(&r->index, pack);
	for (uint32_t i = 0; p && i < p->count && !doubted; i++)
		doubted = p->entries[i].offset & CHUNK_DAMAGED;
	pthread_rwlock_unlock(&r->index.lock);
	return doubted;
}

void index_find(struct repository *r, const unsigned char *ids, size_t count, struct chunk_place *ret)
{
	struct chunk_index *x = &r->index;
	pthread_rwlock_rdlock(&x->lock);
	for (size_t i = 0; i < count; i++) {
		const unsigned char *id = ids + i * CHUNK_ID;
		ret[i] = (struct chunk_place){0};
		if (!x->slot_count || chunk_id_is_zero(id))
			continue;
		const struct chunk_slot *s = slot_find(x, id);
		if (!s->pack || s->entry == THE_PACK)
			continue;
		const struct pack_known *p = &x->packs[s->pack - 1];
		const struct chunk_entry *e = &p->entries[s->entry];
		ret[i] = (struct chunk_place){.key = p->key,
		                              .number = s->entry,
		                              .offset = e->offset & ~CHUNK_DAMAGED,
		                              .stored = e->stored,
		                              .plain = e->plain,
		                              .end = p->end,
		                              .found = true,
		                              .doubted = e->offset & CHUNK_DAMAGED};
		memcpy(ret[i].pack, p->id, PACK_ID);
	}
	pthread_rwlock_unlock(&x->lock);
}

struct pack_ids {
	unsigned char (*ids)[PACK_ID];
	size_t count, room;
};

static void ids_add(struct pack_ids *l, const unsigned char id[PACK_ID])
{
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 64;
		l->ids = must_realloc(l->ids, l->room * PACK_ID);
	}
	memcpy(l->ids[l->count++], id, PACK_ID);
}

static int id_compare(const void *a, const void *b)
{
	return memcmp(a, b, PACK_ID);
}

static bool ids_have(const struct pack_ids *l, const unsigned char id[PACK_ID])
{
	return l->count && bsearch(id, l->ids, l->count, PACK_ID, id_compare);
}

static int listed(void *ctx, const struct object_info *info)
{
	unsigned char id[PACK_ID];
	if (pack_name_parse(info->name + strlen("index/"), id))
		ids_add(ctx, id);
	return 0;
}

/* Those that were known before the list was made and are not in it. */
static void packs_forget(struct chunk_index *x, const struct pack_ids *before, const struct pack_ids *there)
{
	size_t kept = 0, entries = 0;
	for (size_t i = 0; i < x->count; i++) {
		struct pack_known *p = &x->packs[i];
		if (ids_have(before, p->id) && !ids_have(there, p->id)) {
			free(p->entries);
			continue;
		}
		entries += p->count + 1;
		x->packs[kept++] = *p;
	}
	if (kept == x->count)
		return;
	x->count = kept;
	slots_make(x, entries);
}

static int pack_learn(struct repository *r, const unsigned char id[PACK_ID])
{
	struct chunk_entry *entries = NULL;
	uint32_t count = 0;
	const struct repo_key *key = NULL;
	int result = pack_index_get(r, id, &entries, &count, &key);
	if (result == -EBADMSG) {
		log_error("backups: %s", repository_why());
		result = pack_footer_get(r, id, &entries, &count, &key);
		if (result == -EBADMSG)
			log_error("backups: %s", repository_why());
	}
	/* No chunk of a key that is lost is named by what other keys have sealed. */
	if (result == -ENOENT || result == -EBADMSG || repo_key_is_lost(result))
		return 0;
	if (result == 0)
		index_add(r, key, id, entries, count);
	return result;
}

static void ids_known(struct repository *r, struct pack_ids *ret)
{
	pthread_rwlock_rdlock(&r->index.lock);
	for (size_t i = 0; i < r->index.count; i++)
		ids_add(ret, r->index.packs[i].id);
	pthread_rwlock_unlock(&r->index.lock);
	if (ret->count)
		qsort(ret->ids, ret->count, PACK_ID, id_compare);
}

/* Packs that are new to us, read by several threads: an object store far away takes its time for each. */
struct learning {
	struct repository *r;
	const struct pack_ids *there, *before;
	_Atomic size_t next;
	_Atomic int failure;
	pthread_mutex_t lock;
	char why[512];
};

static void *learn_run(void *arg)
{
	struct learning *l = arg;
	for (size_t i; !l->failure && (i = atomic_fetch_add(&l->next, 1)) < l->there->count;) {
		if (ids_have(l->before, l->there->ids[i]))
			continue;
		int result = pack_learn(l->r, l->there->ids[i]);
		if (result == 0)
			continue;
		pthread_mutex_lock(&l->lock);
		snprintf(l->why, sizeof l->why, "%s", repository_why());
		l->failure = result;
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

static int packs_learn(struct repository *r, const struct pack_ids *there, const struct pack_ids *before)
{
	struct learning l = {.r = r, .there = there, .before = before};
	pthread_t threads[LEARNERS];
	size_t count = 0, new = there->count > before->count ? there->count - before->count : 0;
	pthread_mutex_init(&l.lock, NULL);
	while (count < LEARNERS &&
	       count * LEARNER_PACKS < new &&pthread_create(&threads[count], NULL, learn_run, &l) == 0)
		count++;
	learn_run(&l);
	while (count > 0)
		pthread_join(threads[--count], NULL);
	pthread_mutex_destroy(&l.lock);
	return l.failure ? repo_fail(l.failure, "%s", l.why) : 0;
}

int index_refresh(struct repository *r)
{
	struct pack_ids before = {0}, there = {0};
	pthread_mutex_lock(&r->index.refreshing);
	ids_known(r, &before);
	int result = object_list(r, "index/", listed, &there);
	if (result == 0 && there.count)
		qsort(there.ids, there.count, PACK_ID, id_compare);
	if (result == 0) {
		pthread_rwlock_wrlock(&r->index.lock);
		packs_forget(&r->index, &before, &there);
		pthread_rwlock_unlock(&r->index.lock);
	}
	if (result == 0)
		result = packs_learn(r, &there, &before);
	if (result == 0)
		result = damage_load(r);
	if (result == 0)
		r->index.loaded = true;
	pthread_mutex_unlock(&r->index.refreshing);
	free(before.ids);
	free(there.ids);
	return result;
}
