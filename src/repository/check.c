/* Reads the repository and tells what is not as it was written: each pack (or a sample of them) chunk by chunk,
 * every index and manifest, parity, and WAL. A fault names the object, and the snapshots that need it. A repair goes
 * the same way, and makes whole what it finds: packs from their parity, an index from its pack, a parity from its
 * packs. */
#include "repository/check.h"

#include "base/arena.h"
#include "base/id.h"
#include "repository/chunk.h"
#include "repository/common.h"
#include "repository/damage.h"
#include "repository/format.h"
#include "repository/idset.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/manifest.h"
#include "repository/pack.h"
#include "repository/parity.h"
#include "repository/parity_settle.h"
#include "repository/sealed.h"
#include "repository/why.h"
#include "repository/write.h"

#include <errno.h>
#include <stdlib.h>

#define NAMES_SHOWN 5

struct fault {
	char *words;
	struct arena *a;
	const char *names[NAMES_SHOWN]; /* of manifests that depend on it */
	size_t dependents;
	size_t last; /* the manifest that was counted last, + 1 */
	bool mended;
};

struct checking {
	struct repository *r;
	double share;
	bool repair;
	struct arena *a;
	struct parity_group *groups; /* as they were at first */
	size_t group_count;
	struct fault *faults;
	size_t fault_count, fault_room;
	struct id_set damaged; /* number: of the fault */
	const char **names;    /* a list of objects */
	size_t name_count, name_room;
	struct repo_check seen;
};

static size_t fault_add(struct checking *c, const char *format, ...) printf_like(2, 3);

static size_t fault_add(struct checking *c, const char *format, ...)
{
	va_list args;
	if (c->fault_count == c->fault_room) {
		size_t room = c->fault_room ? c->fault_room * 2 : 16;
		c->faults = arena_grow(c->a, c->faults, c->fault_count, room, sizeof(*c->faults));
		c->fault_room = room;
	}
	va_start(args, format);
	struct str words = arena_vprintf(c->a, format, args);
	va_end(args);
	c->faults[c->fault_count] = (struct fault){.words = arena_z(c->a, words)};
	c->seen.faults++;
	return c->fault_count++;
}

/* All faults from that one on are of what is whole now. */
static void faults_mended(struct checking *c, size_t from)
{
	for (size_t i = from; i < c->fault_count; i++) {
		c->seen.mended += !c->faults[i].mended;
		c->faults[i].mended = true;
	}
}

/* A pack of which there are faults from that one on. */
static void pack_repair(struct checking *c, const unsigned char id[PACK_ID], size_t from)
{
	char *bytes = NULL;
	size_t n;
	if (!c->repair || from == c->fault_count)
		return;
	if (pack_mend(c->r, id, &bytes, &n) == 0)
		faults_mended(c, from);
	free(bytes);
}

static int name_listed(void *ctx, const struct object_info *info)
{
	struct checking *c = ctx;
	if (c->name_count == c->name_room) {
		size_t room = c->name_room ? c->name_room * 2 : 256;
		c->names = arena_grow(c->a, c->names, c->name_count, room, sizeof(*c->names));
		c->name_room = room;
	}
	c->names[c->name_count++] = arena_z(c->a, str_of(info->name));
	return 0;
}

static int names_list(struct checking *c, const char *prefix)
{
	c->name_count = 0;
	return object_list(c->r, prefix, name_listed, c);
}

/* Whether this one is of the sample. */
static bool is_chosen(const struct checking *c)
{
	uint32_t dice;
	if (c->share >= 1)
		return true;
	random_bytes(&dice, sizeof dice);
	return dice < c->share * (double)UINT32_MAX;
}

/* An object that a sweep has taken away meanwhile is no fault. */
static bool is_gone(struct checking *c, const char *name)
{
	uint64_t size;
	return object_size(c->r, name, &size) == -ENOENT;
}

/* The key that it was sealed with is not at hand. */
static bool is_locked(struct checking *c, int result)
{
	c->seen.locked += repo_key_is_lost(result);
	return repo_key_is_lost(result);
}

static void chunk_damaged(struct checking *c, const unsigned char id[CHUNK_ID], size_t fault)
{
	struct id_item *item = id_set_add(&c->damaged, id);
	if (item->number == ID_NUMBER_NONE)
		item->number = (uint32_t)fault;
}

/* Each chunk of a pack: opens, and is what its id says. */
static void chunks_check(struct checking *c, const struct repo_key *of, const unsigned char pack[PACK_ID],
                         const char *bytes, size_t n, const struct chunk_entry *entries, uint32_t count,
                         const char *name)
{
	unsigned char key[REPO_KEY_BYTES], plain[CHUNK_BYTES], id[CHUNK_ID];
	size_t fault = SIZE_MAX;
	uint32_t bad = 0, *numbers = must_calloc((size_t)count + 1, sizeof *numbers);
	pack_key(of, pack, key);
	for (uint32_t i = 0; entries && i < count; i++) {
		const struct chunk_entry *e = &entries[i];
		struct chunk_place at = {.number = i, .offset = e->offset, .stored = e->stored, .plain = e->plain};
		bool ok = (uint64_t)e->offset + e->stored <= n &&
		          chunk_open(key, e->id, &at, (const unsigned char *)bytes + e->offset, plain) == 0;
		if (ok) {
			chunk_id(of, plain, e->plain & ~CHUNK_PACKED, id);
			ok = memcmp(id, e->id, CHUNK_ID) == 0;
		}
		c->seen.chunks++;
		if (ok)
			continue;
		numbers[bad] = i;
		if (!bad++)
			fault = fault_add(c, "%s: its bytes are not what was written, from chunk %u of %u on", name, i,
			                  count);
		chunk_damaged(c, e->id, fault);
	}
	/* So that the next snapshot stores them again, by whichever process. */
	if (bad)
		damage_note(c->r, pack, numbers, bad);
	else if (entries && index_doubts(c->r, pack))
		damage_forget(c->r, pack);
	free(numbers);
}

static bool entries_same(const struct chunk_entry *a, uint32_t a_count, const struct chunk_entry *b, uint32_t b_count)
{
	if (a_count != b_count || !a || !b)
		return false;
	for (uint32_t i = 0; i < a_count; i++)
		if (memcmp(a[i].id, b[i].id, CHUNK_ID) != 0 || a[i].offset != b[i].offset ||
		    a[i].stored != b[i].stored || a[i].plain != b[i].plain)
			return false;
	return true;
}

/* The pack does not open as a whole, but chunks of it may: those that do not are found by the index beside it. */
static void pack_salvage(struct checking *c, const struct repo_key *of, const unsigned char id[PACK_ID],
                         const char *name, const char *why, const struct chunk_entry *entries, uint32_t count)
{
	char place[OBJECT_NAME], *bytes = NULL;
	size_t n = 0;
	size_t fault = fault_add(c, "%s", why);
	if (objects_get_bytes(c->r->objects, object_place(c->r, name, place), 2 * PACK_BYTES, &bytes, &n) < 0) {
		for (uint32_t i = 0; i < count; i++)
			chunk_damaged(c, entries[i].id, fault);
		return;
	}
	if (of)
		chunks_check(c, of, id, bytes, n, entries, count, name);
	free(bytes);
}

/* NULL: no parity has it. */
static const struct parity_member *member_of(const struct checking *c, const unsigned char id[PACK_ID])
{
	for (size_t i = 0; i < c->group_count; i++)
		for (uint32_t j = 0; j < c->groups[i].count; j++)
			if (memcmp(c->groups[i].members[j].id, id, PACK_ID) == 0)
				return &c->groups[i].members[j];
	return NULL;
}

/* A pack whose key is not at hand is held against the hash that its parity has of it. */
static int pack_check_locked(struct checking *c, const unsigned char id[PACK_ID], const char *name)
{
	char place[OBJECT_NAME], *bytes = NULL;
	size_t n = 0, from = c->fault_count;
	const struct parity_member *m = member_of(c, id);
	if (!m) {
		c->seen.locked++;
		return 0;
	}
	int result = objects_get_bytes(c->r->objects, object_place(c->r, name, place), PACK_LONGEST, &bytes, &n);
	c->seen.packs++;
	c->seen.bytes += n;
	if (result == -EFBIG || (result == 0 && !parity_hash_is(m->hash, bytes, n)))
		fault_add(c, "%s: its bytes are not what was written", name);
	pack_repair(c, id, from);
	free(bytes);
	return result == -EFBIG || result == -ENOENT ? 0 : result < 0 ? repo_fail_object(result, place) : 0;
}

static int pack_check(struct checking *c, const char *name)
{
	unsigned char id[PACK_ID];
	struct chunk_entry *entries = NULL, *own = NULL;
	uint32_t count = 0, own_count = 0;
	char *bytes = NULL, index[64];
	if (!pack_name_parse(name + strlen("packs/"), id)) {
		fault_add(c, "%s: is no pack's name", name);
		return 0;
	}
	pack_name(id, "index", index);
	const struct repo_key *key = NULL, *own_key = NULL;
	size_t n = 0, from = c->fault_count;
	int indexed = pack_index_get(c->r, id, &entries, &count, &key);
	if (repo_key_is_lost(indexed))
		return pack_check_locked(c, id, name);
	if (indexed < 0 && indexed != -ENOENT && indexed != -EBADMSG)
		return indexed;
	int result = pack_get(c->r, id, &bytes, &n, &own, &own_count, &own_key);
	if (repo_key_is_lost(result)) {
		free(entries);
		return pack_check_locked(c, id, name);
	}
	c->seen.packs++;
	if (result == -EBADMSG) {
		const char *why = arena_z(c->a, str_of(repository_why()));
		pack_salvage(c, key, id, name, why, entries, indexed == 0 ? count : 0);
		result = 0;
	} else if (result == 0) {
		const struct chunk_entry *last = own_count ? &own[own_count - 1] : NULL;
		size_t end = last ? (size_t)last->offset + last->stored : PACK_HEADER;
		c->seen.bytes += end;
		chunks_check(c, own_key, id, bytes, end, own, own_count, name);
		if (indexed == 0 && !entries_same(entries, count, own, own_count))
			fault_add(c, "%s: lists other chunks than its pack has", index);
		free(bytes);
		free(own);
	}
	free(entries);
	pack_repair(c, id, from);
	return result == -ENOENT && is_gone(c, name) ? 0 : result;
}

/* Put again, as it is at the pack's end. */
static void index_repair(struct checking *c, const unsigned char id[PACK_ID], size_t from)
{
	struct chunk_entry *entries = NULL;
	const struct repo_key *key = NULL;
	uint32_t count = 0;
	uint64_t stored;
	if (c->repair && pack_footer_get(c->r, id, &entries, &count, &key) == 0 &&
	    pack_index_put(c->r, key, id, entries, count, &stored) == 0)
		faults_mended(c, from);
	free(entries);
}

static int index_check(struct checking *c, const char *name)
{
	unsigned char id[PACK_ID];
	struct chunk_entry *entries = NULL;
	uint32_t count = 0;
	char pack[64];
	uint64_t size;
	if (!pack_name_parse(name + strlen("index/"), id)) {
		fault_add(c, "%s: is no pack's name", name);
		return 0;
	}
	int result = pack_index_get(c->r, id, &entries, &count, NULL);
	if (repo_key_is_lost(result)) /* counted with its pack */
		return 0;
	if (result == -EBADMSG) {
		index_repair(c, id,
		             fault_add(c, "%s; the copy at its pack's end is used in its place", repository_why()));
		return 0;
	}
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	pack_name(id, "packs", pack);
	result = object_size(c->r, pack, &size);
	if (result == -ENOENT && !is_gone(c, name)) {
		size_t fault = fault_add(c, "%s: is missing", pack);
		index_cut(c->r, id, 0);
		for (uint32_t i = 0; i < count; i++)
			chunk_damaged(c, entries[i].id, fault);
		pack_repair(c, id, fault);
	}
	free(entries);
	return result == -ENOENT ? 0 : result;
}

static void depends(struct checking *c, size_t fault, size_t manifest, const char *name)
{
	struct fault *f = &c->faults[fault];
	if (f->last == manifest + 1)
		return;
	f->last = manifest + 1;
	if (f->dependents < NAMES_SHOWN)
		f->names[f->dependents] = name + strlen("manifests/");
	f->dependents++;
}

/* A damaged chunk that lies undamaged in another pack is no loss, but which copy is read is not certain: it counts. */
static size_t manifest_ids_check(struct checking *c, const struct repo_manifest *m, size_t number, const char *name)
{
	size_t missing = 0;
	for (size_t i = 0; i < m->count; i++) {
		const struct manifest_file *f = &m->files[i];
		for (size_t j = 0; j < f->id_count; j++) {
			const unsigned char *id = f->ids + j * CHUNK_ID;
			struct chunk_place at;
			if (chunk_id_is_zero(id))
				continue;
			const struct id_item *item = id_set_find(&c->damaged, id);
			if (item)
				depends(c, item->number, number, name);
			index_find(c->r, id, 1, &at);
			missing += !at.found && !item;
		}
	}
	return missing;
}

static int manifest_check(struct checking *c, size_t number, const char *name)
{
	struct repo_manifest *m;
	int result = manifest_get(c->r, name, &m);
	if (result == -ENOENT || is_locked(c, result))
		return 0;
	c->seen.snapshots++;
	if (result == -EBADMSG) {
		fault_add(c, "%s; this snapshot cannot be restored", repository_why());
		return 0;
	}
	if (result < 0)
		return result;
	char whole[OBJECT_NAME];
	manifest_name(whole, json_string_value(json_object_get(m->head, "cluster")),
	              json_string_value(json_object_get(m->head, "snapshot")),
	              json_string_value(json_object_get(m->head, "set")));
	if (strcmp(whole, name) != 0)
		fault_add(c, "%s: is the manifest of %s", name, whole);
	size_t missing = manifest_ids_check(c, m, number, name);
	if (missing) { /* one that was written since we began */
		result = index_refresh(c->r);
		missing = result == 0 ? manifest_ids_check(c, m, number, name) : 0;
	}
	if (missing && !is_gone(c, name))
		fault_add(c, "%s: %zu of its chunks are in no pack; this snapshot cannot be restored", name, missing);
	repo_manifest_close(m);
	return result;
}

static int record_check(struct checking *c, const char *name)
{
	char *plain = NULL;
	size_t n = 0;
	int result = object_get(c->r, SEALED_RECORD, name, RECORD_MAX, &plain, &n);
	free(plain);
	c->seen.bytes += n;
	if (result == -EBADMSG)
		fault_add(c, "%s; without the service's store the snapshot would have no name", repository_why());
	return result == -EBADMSG || result == -ENOENT ? 0 : result;
}

static int wal_check(struct checking *c, const char *name)
{
	char *plain = NULL;
	size_t n = 0;
	bool seconds = strstr(name, "/seconds/");
	int result = object_get(c->r, seconds ? SEALED_SECONDS : SEALED_WAL, name, (size_t)1 << 30, &plain, &n);
	if (is_locked(c, result))
		return 0;
	c->seen.segments++;
	c->seen.bytes += n;
	free(plain);
	if (result == -EBADMSG) {
		struct str cluster, rest;
		str_cut(str_of(name + strlen("wal/")), '/', &cluster, &rest);
		fault_add(c, "%s; points in time of the cluster %.*s that need it cannot be restored", repository_why(),
		          STR_ARG(cluster));
	}
	return result == -EBADMSG || result == -ENOENT ? 0 : result;
}

/* A pack that is gone, and its index with it: only its parity tells that there was one. */
static int member_check(struct checking *c, const unsigned char id[PACK_ID])
{
	char pack[64], index[64];
	uint64_t size;
	pack_name(id, "packs", pack);
	pack_name(id, "index", index);
	int result = object_size(c->r, pack, &size);
	if (result == -ENOENT)
		result = object_size(c->r, index, &size);
	if (result != -ENOENT)
		return result;
	/* Where a sweep has just taken it away, another parity names the rest. */
	result = parities_refresh(c->r);
	size_t count = 0, names = 0;
	struct parity_group *groups = parities_copy(c->r, &count);
	for (size_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < groups[i].count; j++)
			names += memcmp(groups[i].members[j].id, id, PACK_ID) == 0;
	free(groups);
	if (result == 0 && names)
		pack_repair(c, id, fault_add(c, "%s: is missing, and so is its index", pack));
	return result;
}

/* One that is damaged is told, and goes in a repair: its packs get another. */
static int parity_check(struct checking *c, const struct parity_group *g)
{
	unsigned char *bytes = NULL;
	size_t n = 0;
	char name[64];
	int result = parity_get(c->r, g, &bytes, &n);
	free(bytes);
	c->seen.bytes += n;
	if (result == -EBADMSG) {
		fault_add(c, "%s; the packs that it is of have no second copy", repository_why());
		pack_name(g->id, "parity", name);
		if (c->repair && object_delete(c->r, name) == 0)
			parities_forget(c->r, g->id);
	}
	return result == -EBADMSG || result == -ENOENT ? 0 : result;
}

static int parities_check(struct checking *c)
{
	unsigned char(*damaged)[PACK_ID];
	size_t damaged_count;
	int result = parities_refresh(c->r);
	c->groups = parities_copy(c->r, &c->group_count);
	parities_damaged_copy(c->r, &damaged, &damaged_count);
	for (size_t i = 0; i < damaged_count && result == 0; i++) {
		char name[64];
		pack_name(damaged[i], "parity", name);
		fault_add(c, "%s: is damaged; the packs that it is of have no second copy", name);
	}
	free(damaged);
	for (size_t i = 0; i < c->group_count && result == 0; i++)
		if (is_chosen(c))
			result = parity_check(c, &c->groups[i]);
	return result;
}

static int members_check(struct checking *c)
{
	int result = 0;
	for (size_t i = 0; i < c->group_count && result == 0; i++)
		for (uint32_t j = 0; j < c->groups[i].count && result == 0; j++)
			result = member_check(c, c->groups[i].members[j].id);
	return result;
}

static int pack_named(struct checking *c, const char *name, struct parity_pack *ret_pack)
{
	if (!pack_name_parse(name + strlen("packs/"), ret_pack->id))
		return -EINVAL;
	ret_pack->there = true;
	ret_pack->needed = index_key(c->r, ret_pack->id) != NULL;
	return 0;
}

static int step_none(void *ctx)
{
	(void)ctx;
	return 0;
}

/* Packs that have lost their parity get another, from what they are now that they are whole. */
static int parities_repair(struct checking *c, size_t faults)
{
	size_t count = 0;
	uint64_t stored = 0;
	unsigned most = c->r->parity ? c->r->parity : 8;
	int result = names_list(c, "packs/");
	if (result < 0 || !faults)
		return result;
	struct parity_pack *packs = must_calloc(c->name_count + 1, sizeof *packs);
	for (size_t i = 0; i < c->name_count; i++)
		count += pack_named(c, c->names[i], &packs[count]) == 0;
	result = parity_settle(c->r, packs, count, most, step_none, NULL, &stored);
	free(packs);
	if (result == 0)
		for (size_t i = 0; i < faults; i++) {
			c->seen.mended += !c->faults[i].mended;
			c->faults[i].mended = true;
		}
	return result;
}

static int packs_check(struct checking *c)
{
	int result = names_list(c, "index/");
	for (size_t i = 0; i < c->name_count && result == 0; i++)
		result = index_check(c, c->names[i]);
	if (result == 0)
		result = names_list(c, "packs/");
	for (size_t i = 0; i < c->name_count && result == 0; i++)
		if (is_chosen(c))
			result = pack_check(c, c->names[i]);
	return result;
}

static int all_check(struct checking *c)
{
	int result = index_refresh(c->r);
	if (result == 0)
		result = parities_check(c);
	size_t of_parities = c->fault_count;
	if (result == 0)
		result = members_check(c);
	if (result == 0)
		result = packs_check(c);
	if (result == 0 && c->repair)
		result = parities_repair(c, of_parities);
	if (result == 0)
		result = names_list(c, "manifests/");
	for (size_t i = 0; i < c->name_count && result == 0; i++)
		result = manifest_check(c, i, c->names[i]);
	if (result == 0)
		result = names_list(c, RECORDS);
	for (size_t i = 0; i < c->name_count && result == 0; i++)
		result = record_check(c, c->names[i]);
	if (result == 0)
		result = names_list(c, "wal/");
	for (size_t i = 0; i < c->name_count && result == 0; i++)
		if (is_chosen(c))
			result = wal_check(c, c->names[i]);
	return result;
}

static void fault_tell(const struct fault *f, void (*tell)(void *ctx, const char *words), void *ctx)
{
	struct buf words = {0};
	buf_z(&words, f->words);
	for (size_t i = 0; i < f->dependents && i < NAMES_SHOWN; i++)
		buf_printf(&words, "%s%s", i ? ", " : "; needed by the snapshots (CLUSTER/SNAPSHOT/SET) ", f->names[i]);
	if (f->dependents > NAMES_SHOWN)
		buf_printf(&words, " and %zu more", f->dependents - NAMES_SHOWN);
	if (f->mended)
		buf_z(&words, "; it is whole again");
	buf_c(&words, 0);
	tell(ctx, words.p);
	buf_free(&words);
}

static int check_run(struct checking *c, void (*fault)(void *ctx, const char *words), void *ctx,
                     struct repo_check *ret_check)
{
	c->a = arena_new();
	int result = all_check(c);
	for (size_t i = 0; i < c->fault_count && fault; i++)
		fault_tell(&c->faults[i], fault, ctx);
	id_set_free(&c->damaged);
	free(c->groups);
	arena_free(c->a);
	*ret_check = c->seen;
	return result;
}

int repo_check(struct repository *r, double share, void (*fault)(void *ctx, const char *words), void *ctx,
               struct repo_check *ret_check)
{
	struct checking c = {.r = r, .share = share};
	return check_run(&c, fault, ctx, ret_check);
}

/* A writer's lease keeps sweeps away from the packs. */
int repo_repair(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                struct repo_check *ret_check)
{
	struct checking c = {.r = r, .share = 1, .repair = true};
	struct repo_writer *w = NULL;
	int result = repo_write_begin(r, &w);
	if (result < 0)
		return result;
	result = check_run(&c, fault, ctx, ret_check);
	repo_write_abort(w);
	return result;
}
