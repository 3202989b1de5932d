/* Parity, kept as packs come and go. Groups are changed without reading the packs that stay: one that goes is
 * taken out of the exclusive or, and two groups become one by the exclusive or of both. Packs are read only where
 * they have no second copy yet, or where one that goes cannot be read.
 *
 * A new parity is put before those that it replaces are deleted, so that this may be ended at any moment; one
 * whose packs all have another is left over from that. Until it goes, two name the same pack: these do not become
 * one, since a pack that is twice in an exclusive or is not in it. */
#include "repository/parity_settle.h"

#include "base/arena.h"
#include "base/log.h"
#include "repository/chunk.h"
#include "repository/common.h"
#include "repository/format.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/pack.h"
#include "repository/parity.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <stdlib.h>

struct settling {
	struct repository *r;
	struct parity_pack *packs;
	bool *covered; /* one for each of them */
	size_t count;
	int (*step)(void *ctx);
	void *ctx;
	uint64_t *stored;
	struct parity_group *groups;
	bool *broken; /* one for each: what stays of it is read, and then it goes */
	size_t group_count;
	bool join;                  /* small groups become one */
	struct parity_builder next; /* the parity that is put next */
	bool changed;               /* it is not just what a group was */
	unsigned char (*replaced)[PACK_ID];
	size_t replaced_count; /* groups that it replaces */
};

static int pack_compare(const void *a, const void *b)
{
	return memcmp(a, ((const struct parity_pack *)b)->id, PACK_ID);
}

/* NULL: nothing is known of it. */
static struct parity_pack *pack_find(const struct settling *s, const unsigned char id[PACK_ID])
{
	return s->count ? bsearch(id, s->packs, s->count, sizeof *s->packs, pack_compare) : NULL;
}

static bool is_going(const struct settling *s, const struct parity_member *m)
{
	const struct parity_pack *p = pack_find(s, m->id);
	return p && (p->going || !p->there);
}

/* A pack that a parity names was there: it is lost, and not swept. Where it cannot be made again, the
 * group is of no use. */
static int lost_mend(struct settling *s, const struct parity_group *g, bool *ret_broken)
{
	for (uint32_t i = 0; i < g->count; i++) {
		struct parity_pack *p = pack_find(s, g->members[i].id);
		char name[64], *bytes = NULL;
		uint64_t size;
		size_t n;
		pack_name(g->members[i].id, "packs", name);
		if (p ? p->there || !p->needed : object_size(s->r, name, &size) != -ENOENT)
			continue;
		int result = pack_mend(s->r, g->members[i].id, &bytes, &n);
		free(bytes);
		if (result == 0 && p)
			p->there = true;
		if (result == -EBADMSG || result == -ENOENT) {
			log_error("backups: %s", repository_why());
			*ret_broken = true;
		} else if (result < 0) {
			return result;
		}
	}
	return 0;
}

static size_t members_going(const struct settling *s, const struct parity_group *g)
{
	size_t going = 0;
	for (uint32_t i = 0; i < g->count; i++)
		going += is_going(s, &g->members[i]);
	return going;
}

/* A pack that is named twice cannot be made again: it is not in the exclusive or. */
static bool is_doubled(const struct parity_group *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		for (uint32_t j = i + 1; j < g->count; j++)
			if (memcmp(g->members[i].id, g->members[j].id, PACK_ID) == 0)
				return true;
	return false;
}

/* Whether a pack that stays is already one of those that are put next. */
static bool is_in_next(const struct settling *s, const struct parity_group *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		for (uint32_t j = 0; j < s->next.count && !is_going(s, &g->members[i]); j++)
			if (memcmp(g->members[i].id, s->next.members[j].id, PACK_ID) == 0)
				return true;
	return false;
}

/* Whether a pack has this parity and no other. */
static bool is_wanted(const struct settling *s, const struct parity_group *g)
{
	for (uint32_t i = 0; i < g->count; i++) {
		const struct parity_pack *p = pack_find(s, g->members[i].id);
		if (!p || (!is_going(s, &g->members[i]) && !s->covered[p - s->packs]))
			return true;
	}
	return false;
}

static void cover(struct settling *s, const struct parity_group *g)
{
	for (uint32_t i = 0; i < g->count; i++) {
		const struct parity_pack *p = pack_find(s, g->members[i].id);
		if (p)
			s->covered[p - s->packs] = true;
	}
}

static int group_delete(struct settling *s, const unsigned char id[PACK_ID])
{
	char name[64];
	pack_name(id, "parity", name);
	int result = s->step(s->ctx);
	if (result == 0)
		result = object_delete(s->r, name);
	if (result == 0)
		parities_forget(s->r, id);
	return result;
}

static int next_put(struct settling *s)
{
	int result = s->changed || s->replaced_count > 1 ? s->step(s->ctx) : 0;
	if (s->changed || s->replaced_count > 1) {
		result = result == 0 ? parity_flush(s->r, &s->next, s->stored) : result;
		for (size_t i = 0; i < s->replaced_count && result == 0; i++)
			result = group_delete(s, s->replaced[i]);
	}
	s->next.count = 0;
	s->next.bytes.n = 0;
	s->replaced_count = 0;
	s->changed = false;
	return result;
}

/* Those that go are taken out. -EBADMSG: one of them cannot be read as it was written. */
static int going_drop(const struct settling *s, const struct parity_group *g, struct parity_builder *b)
{
	int result = 0;
	for (uint32_t i = 0; i < g->count && result == 0; i++) {
		char name[64], place[OBJECT_NAME], *bytes = NULL;
		size_t n = 0;
		if (!is_going(s, &g->members[i]))
			continue;
		pack_name(g->members[i].id, "packs", name);
		result = objects_get_bytes(s->r->objects, object_place(s->r, name, place), PACK_LONGEST, &bytes, &n);
		if (result == -ENOENT || (result == 0 && !parity_hash_is(g->members[i].hash, bytes, n)))
			result = -EBADMSG;
		if (result == 0)
			parity_drop(b, g->members[i].id, (const unsigned char *)bytes, n);
		free(bytes);
	}
	return result;
}

/* What stays of a group goes into the next parity. */
static int group_take(struct settling *s, const struct parity_group *g)
{
	struct parity_builder rest;
	unsigned char *bytes = NULL;
	size_t n = 0, stays = g->count - members_going(s, g);
	int result = s->next.count + stays > s->next.most || is_in_next(s, g) ? next_put(s) : 0;
	if (result == 0)
		result = s->step(s->ctx);
	if (result < 0)
		return result;
	parity_setup(&rest, s->next.most);
	result = parity_get(s->r, g, &bytes, &n);
	if (result == 0)
		parity_join(&rest, g, bytes, n);
	if (result == 0)
		result = going_drop(s, g, &rest);
	if (result == 0) {
		struct parity_group left = {.count = rest.count};
		memcpy(left.members, rest.members, rest.count * sizeof *rest.members);
		parity_join(&s->next, &left, (const unsigned char *)rest.bytes.p, rest.bytes.n);
		cover(s, &left);
		s->changed |= stays < g->count;
		memcpy(s->replaced[s->replaced_count++], g->id, PACK_ID);
	}
	parity_free(&rest);
	free(bytes);
	if (result != -EBADMSG && result != -ENOENT)
		return result;
	s->broken[g - s->groups] = true;
	return 0;
}

static bool is_small(const struct settling *s, const struct parity_group *g)
{
	return g->count * 2 <= s->next.most;
}

static int group_settle(struct settling *s, const struct parity_group *g, size_t going)
{
	bool broken = s->broken[g - s->groups];
	if (!s->next.most || going == g->count || (!broken && !is_wanted(s, g)))
		return group_delete(s, g->id);
	if (!broken && (going || (s->join && is_small(s, g) && !is_in_next(s, g))))
		return group_take(s, g);
	if (!broken)
		cover(s, g);
	return 0;
}

/* The largest first: one that another has replaced, but that was not deleted, is found to be left over then. */
static int groups_settle(struct settling *s)
{
	int result = 0;
	for (uint32_t stays = PARITY_MOST + 1; stays-- > 0;)
		for (size_t i = 0; i < s->group_count && result == 0; i++) {
			size_t going = members_going(s, &s->groups[i]);
			if (s->groups[i].count - going == stays)
				result = group_settle(s, &s->groups[i], going);
		}
	return result;
}

/* Once what stays of them has another. What is named once in one that names others twice can be made again from
 * it, and a damaged pack has nothing else. */
static int broken_delete(struct settling *s)
{
	unsigned char(*damaged)[PACK_ID];
	size_t damaged_count;
	int result = 0;
	for (size_t i = 0; i < s->group_count && result == 0; i++)
		if (s->broken[i] && s->next.most && !(is_doubled(&s->groups[i]) && is_wanted(s, &s->groups[i])))
			result = group_delete(s, s->groups[i].id);
	/* Who makes a pack again meanwhile looks which there are, and the list is another. */
	parities_damaged_copy(s->r, &damaged, &damaged_count);
	for (size_t i = 0; i < damaged_count && result == 0; i++)
		result = group_delete(s, damaged[i]);
	free(damaged);
	return result;
}

static bool is_uncovered(const struct settling *s, size_t i)
{
	return s->packs[i].needed && s->packs[i].there && !s->packs[i].going && !s->covered[i];
}

/* One small group alone stays as it is, or it would be read by each sweep. */
static bool is_worth_joining(struct settling *s)
{
	size_t some = 0;
	for (size_t i = 0; i < s->group_count; i++) {
		some += is_small(s, &s->groups[i]) || s->broken[i] || members_going(s, &s->groups[i]);
		cover(s, &s->groups[i]);
	}
	for (size_t i = 0; i < s->count; i++)
		some += is_uncovered(s, i);
	memset(s->covered, 0, s->count * sizeof *s->covered);
	return some > 1;
}

/* Whether a pack is as it was written, as far as its key tells. */
static bool pack_opens(const struct repo_key *of, const unsigned char id[PACK_ID], const char *bytes,
                       const struct chunk_entry *entries, uint32_t count)
{
	unsigned char key[REPO_KEY_BYTES], plain[CHUNK_BYTES];
	bool whole = true;
	pack_key(of, id, key);
	for (uint32_t i = 0; i < count && whole; i++) {
		const struct chunk_entry *e = &entries[i];
		struct chunk_place at = {.number = i, .offset = e->offset, .stored = e->stored, .plain = e->plain};
		whole = chunk_open(key, e->id, &at, (const unsigned char *)bytes + e->offset, plain) == 0;
	}
	return whole;
}

/* One that is damaged gets none: that would only keep the damage. */
static int pack_take(struct settling *s, const struct parity_pack *p)
{
	struct chunk_entry *entries = NULL;
	const struct repo_key *key = NULL;
	uint32_t count = 0;
	char *bytes = NULL;
	size_t n = 0;
	int result = s->step(s->ctx);
	if (result == 0)
		result = pack_get(s->r, p->id, &bytes, &n, &entries, &count, &key);
	if (result < 0)
		return result == -EBADMSG || result == -ENOENT || repo_key_is_lost(result) ? 0 : result;
	if (pack_opens(key, p->id, bytes, entries, count)) {
		struct parity_group one = {.count = 1};
		memcpy(one.members[0].id, p->id, PACK_ID);
		one.members[0].size = (uint32_t)n;
		parity_hash(bytes, n, one.members[0].hash);
		parity_join(&s->next, &one, (const unsigned char *)bytes, n);
		cover(s, &one);
		s->changed = true;
		result = s->next.count >= s->next.most ? next_put(s) : 0;
	}
	free(bytes);
	free(entries);
	return result;
}

static int settle(struct settling *s)
{
	int result = 0;
	for (size_t i = 0; i < s->group_count && result == 0 && s->next.most; i++) {
		s->broken[i] = is_doubled(&s->groups[i]);
		result = lost_mend(s, &s->groups[i], &s->broken[i]);
	}
	s->join = is_worth_joining(s);
	if (result == 0)
		result = groups_settle(s);
	for (size_t i = 0; i < s->count && result == 0 && s->next.most; i++)
		if (is_uncovered(s, i))
			result = pack_take(s, &s->packs[i]);
	if (result == 0)
		result = next_put(s);
	return result == 0 ? broken_delete(s) : result;
}

int parity_settle(struct repository *r, struct parity_pack *packs, size_t count, unsigned most, int (*step)(void *ctx),
                  void *ctx, uint64_t *stored)
{
	struct settling s = {.r = r, .packs = packs, .count = count, .step = step, .ctx = ctx, .stored = stored};
	int result = parities_refresh(r);
	if (result < 0)
		return result;
	parity_setup(&s.next, most);
	s.groups = parities_copy(r, &s.group_count);
	s.broken = must_calloc(s.group_count + 1, sizeof *s.broken);
	s.replaced = must_calloc(s.group_count + 1, PACK_ID);
	s.covered = must_calloc(count + 1, sizeof *s.covered);
	result = settle(&s);
	parity_free(&s.next);
	free(s.groups);
	free(s.broken);
	free(s.replaced);
	free(s.covered);
	return result;
}
