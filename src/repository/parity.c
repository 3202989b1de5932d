/* Parity: the exclusive or of a few packs, byte by byte, the shorter ones as if zeros followed.
 *
 *   0  4  "SWB1"
 *   4  1  'X'
 *   5  3  0
 *   8  4  length of the list
 *  12  4  0
 *  16 16  the parity's id, random; its name is the same in hexadecimal digits
 *  32     the list, sealed with the project's first key
 *         the exclusive or, as long as the longest of the packs
 *
 * The list has the hash of the exclusive or, and of each pack its id, its length and its hash. Packs are
 * encrypted, so that their exclusive or tells no more than they do; it needs no key to be made, and what is made
 * from it is compared with the pack's hash, so that nothing wrong is ever put in a pack's place. One pack alone
 * has its own bytes as its parity.
 *
 * Why not two copies, or codes that bear several losses: docs/decisions/0039-a-second-copy-of-packs.md. */
#include "repository/parity.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/log.h"
#include "repository/chunk.h"
#include "repository/damage.h"
#include "repository/format.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/pack.h"
#include "repository/sealed.h"
#include "repository/why.h"
#include "store/seal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC "SWB1"
#define FOLDER "parity"
#define HEADER 32
#define ID_AT 16
#define MEMBER (PACK_ID + 4 + HASH_BYTES)
#define LIST_MAX (HASH_BYTES + PARITY_MOST * MEMBER)
#define HEAD_MAX (HEADER + LIST_MAX + SEALED_EXTRA)

/* --- building */

void parity_setup(struct parity_builder *b, unsigned most)
{
	*b = (struct parity_builder){.most = most < PARITY_MOST ? most : PARITY_MOST};
	pthread_mutex_init(&b->lock, NULL);
}

void parity_free(struct parity_builder *b)
{
	buf_free(&b->bytes);
	free(b->members);
	pthread_mutex_destroy(&b->lock);
}

/* Eight bytes at a time: compilers make vectors of this. */
static void bytes_xor(unsigned char *to, const unsigned char *from, size_t n)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8) {
		uint64_t a, b;
		memcpy(&a, to + i, 8);
		memcpy(&b, from + i, 8);
		a ^= b;
		memcpy(to + i, &a, 8);
	}
	for (; i < n; i++)
		to[i] ^= from[i];
}

/* Into bytes that are as long as what was longest so far. */
static void builder_xor(struct parity_builder *b, const void *bytes, size_t n)
{
	if (n > b->bytes.n) {
		buf_reserve(&b->bytes, n - b->bytes.n);
		memset(b->bytes.p + b->bytes.n, 0, n - b->bytes.n);
		b->bytes.n = n;
	}
	bytes_xor((unsigned char *)b->bytes.p, bytes, n);
}

void parity_hash(const void *bytes, size_t n, unsigned char ret_hash[HASH_BYTES])
{
	sha256((struct str){bytes, n}, ret_hash);
}

bool parity_hash_is(const unsigned char hash[HASH_BYTES], const void *bytes, size_t n)
{
	unsigned char own[HASH_BYTES];
	parity_hash(bytes, n, own);
	return memcmp(own, hash, HASH_BYTES) == 0;
}

static struct parity_member *builder_member(struct parity_builder *b)
{
	if (!b->members)
		b->members = must_calloc(PARITY_MOST, sizeof *b->members);
	return &b->members[b->count++];
}

void parity_join(struct parity_builder *b, const struct parity_group *g, const unsigned char *bytes, size_t n)
{
	builder_xor(b, bytes, n);
	for (uint32_t i = 0; i < g->count; i++)
		*builder_member(b) = g->members[i];
}

void parity_drop(struct parity_builder *b, const unsigned char id[PACK_ID], const unsigned char *bytes, size_t n)
{
	uint32_t kept = 0, longest = 0;
	builder_xor(b, bytes, n);
	for (uint32_t i = 0; i < b->count; i++) {
		if (memcmp(b->members[i].id, id, PACK_ID) == 0)
			continue;
		longest = b->members[i].size > longest ? b->members[i].size : longest;
		b->members[kept++] = b->members[i];
	}
	b->count = kept;
	b->bytes.n = longest; /* behind the longest that remains there are zeros */
}

static void list_seal(struct repository *r, const struct repo_key *key, const char *name,
                      const struct parity_builder *b, struct buf *out)
{
	char bound[OBJECT_NAME];
	unsigned char plain[LIST_MAX], *p = plain + HASH_BYTES;
	parity_hash(b->bytes.p, b->bytes.n, plain);
	for (uint32_t i = 0; i < b->count; i++, p += MEMBER) {
		memcpy(p, b->members[i].id, PACK_ID);
		put_u32(p + PACK_ID, b->members[i].size);
		memcpy(p + PACK_ID + 4, b->members[i].hash, HASH_BYTES);
	}
	snprintf(bound, sizeof bound, "%s/%s", r->group, name);
	sealed_make(key, SEALED_PARITY, bound, plain, (size_t)(p - plain), out);
}

static void header_make(const unsigned char id[PACK_ID], uint32_t list, unsigned char ret_header[HEADER])
{
	memset(ret_header, 0, HEADER);
	memcpy(ret_header, MAGIC, 4);
	ret_header[4] = SEALED_PARITY;
	put_u32(ret_header + 8, list);
	memcpy(ret_header + ID_AT, id, PACK_ID);
}

static int group_put(struct repository *r, struct parity_builder *b, uint64_t *stored)
{
	char name[64], place[OBJECT_NAME];
	unsigned char header[HEADER], id[PACK_ID];
	struct buf list = {0}, out = {0};
	const struct repo_key *first = NULL;
	int result = repo_key_find(r, "", &first);
	if (result < 0)
		return result;
	random_bytes(id, PACK_ID);
	pack_name(id, FOLDER, name);
	list_seal(r, first, name, b, &list);
	header_make(id, (uint32_t)list.n, header);
	buf_reserve(&out, HEADER + list.n + b->bytes.n);
	buf_add(&out, header, HEADER);
	buf_add(&out, list.p, list.n);
	buf_add(&out, b->bytes.p, b->bytes.n);
	result = objects_put_bytes(r->objects, object_place(r, name, place), out.p, out.n);
	if (result == 0)
		*stored += out.n;
	buf_free(&list);
	buf_free(&out);
	return result < 0 ? repo_fail_object(result, place) : 0;
}

int parity_add(struct repository *r, struct parity_builder *b, const unsigned char id[PACK_ID], const void *bytes,
               size_t n, uint64_t *stored)
{
	struct parity_builder full;
	struct parity_member m = {.size = (uint32_t)n};
	if (!b->most)
		return 0;
	memcpy(m.id, id, PACK_ID);
	parity_hash(bytes, n, m.hash);
	parity_setup(&full, b->most);
	pthread_mutex_lock(&b->lock);
	builder_xor(b, bytes, n);
	*builder_member(b) = m;
	if (b->count >= b->most) { /* put without the lock: other threads have packs for the next */
		full.bytes = b->bytes;
		full.members = b->members;
		full.count = b->count;
		b->bytes = (struct buf){0};
		b->members = NULL;
		b->count = 0;
	}
	pthread_mutex_unlock(&b->lock);
	int result = full.count ? group_put(r, &full, stored) : 0;
	parity_free(&full);
	return result;
}

int parity_flush(struct repository *r, struct parity_builder *b, uint64_t *stored)
{
	int result = b->count ? group_put(r, b, stored) : 0;
	if (result == 0) {
		b->count = 0;
		b->bytes.n = 0;
	}
	return result;
}

/* --- which groups there are */

void parities_setup(struct parities *p)
{
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->refreshing, NULL);
	pthread_mutex_init(&p->mending, NULL);
}

void parities_free(struct parities *p)
{
	free(p->groups);
	free(p->damaged);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->refreshing);
	pthread_mutex_destroy(&p->mending);
}

struct head {
	unsigned char bytes[HEAD_MAX];
	size_t n;
};

static int head_write(void *ctx, const void *bytes, size_t n)
{
	struct head *h = ctx;
	size_t some = n < HEAD_MAX - h->n ? n : HEAD_MAX - h->n;
	memcpy(h->bytes + h->n, bytes, some);
	h->n += some;
	return 0;
}

static int list_parse(const unsigned char *plain, size_t n, struct parity_group *g)
{
	if (n < HASH_BYTES + MEMBER || n > LIST_MAX || (n - HASH_BYTES) % MEMBER)
		return -EBADMSG;
	memcpy(g->hash, plain, HASH_BYTES);
	g->count = (uint32_t)((n - HASH_BYTES) / MEMBER);
	for (uint32_t i = 0; i < g->count; i++) {
		const unsigned char *p = plain + HASH_BYTES + (size_t)i * MEMBER;
		memcpy(g->members[i].id, p, PACK_ID);
		g->members[i].size = get_u32(p + PACK_ID);
		memcpy(g->members[i].hash, p + PACK_ID + 4, HASH_BYTES);
		if (g->members[i].size > PACK_LONGEST)
			return -EBADMSG;
	}
	return 0;
}

static int head_parse(struct repository *r, const char *name, const struct head *h, struct parity_group *g)
{
	char bound[OBJECT_NAME], *plain = NULL;
	unsigned char header[HEADER];
	size_t n = 0;
	uint32_t list = h->n >= HEADER ? get_u32(h->bytes + 8) : 0;
	header_make(g->id, list, header);
	if (h->n < HEADER || memcmp(header, h->bytes, HEADER) != 0 || list > h->n - HEADER)
		return repo_fail(-EBADMSG, "%s: is damaged, or another: it does not begin as it should", name);
	snprintf(bound, sizeof bound, "%s/%s", r->group, name);
	int result = sealed_open_any(r, SEALED_PARITY, bound, h->bytes + HEADER, list, LIST_MAX, &plain, &n, NULL);
	if (result < 0)
		return result;
	result = list_parse((const unsigned char *)plain, n, g);
	free(plain);
	g->head = HEADER + list;
	return result < 0 ? repo_fail(result, "%s: lists packs that cannot be", name) : 0;
}

/* What a parity is of, from its first bytes. */
static int group_read(struct repository *r, const unsigned char id[PACK_ID], struct parity_group *ret_group)
{
	char name[64], place[OBJECT_NAME];
	struct head h = {.n = 0};
	memset(ret_group, 0, sizeof *ret_group);
	memcpy(ret_group->id, id, PACK_ID);
	pack_name(id, FOLDER, name);
	int result = objects_get(r->objects, object_place(r, name, place), 0, HEAD_MAX, head_write, &h);
	if (result < 0 && result != -ERANGE)
		return repo_fail_object(result, place);
	return head_parse(r, name, &h, ret_group);
}

struct parity_list {
	unsigned char (*ids)[PACK_ID];
	size_t count, room;
};

static void list_add(struct parity_list *l, const unsigned char id[PACK_ID])
{
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 64;
		l->ids = must_realloc(l->ids, l->room * PACK_ID);
	}
	memcpy(l->ids[l->count++], id, PACK_ID);
}

static int parity_listed(void *ctx, const struct object_info *info)
{
	struct parity_list *l = ctx;
	unsigned char id[PACK_ID];
	if (!pack_name_parse(info->name + strlen(FOLDER "/"), id))
		return 0;
	list_add(l, id);
	return 0;
}

static int id_compare(const void *a, const void *b)
{
	return memcmp(a, b, PACK_ID);
}

/* The ids of those that are known, in order. */
static struct parity_list groups_known(struct parities *p)
{
	pthread_mutex_lock(&p->lock);
	struct parity_list l = {.count = p->count, .ids = must_calloc(p->count + 1, PACK_ID)};
	for (size_t i = 0; i < p->count; i++)
		memcpy(l.ids[i], p->groups[i].id, PACK_ID);
	pthread_mutex_unlock(&p->lock);
	qsort(l.ids, l.count, PACK_ID, id_compare);
	return l;
}

static bool list_has(const struct parity_list *l, const unsigned char id[PACK_ID])
{
	return l->count && bsearch(id, l->ids, l->count, PACK_ID, id_compare);
}

/* Those that are not in the list any more. */
static void groups_forget(struct parities *p, const struct parity_list *there)
{
	size_t kept = 0;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->count; i++)
		if (list_has(there, p->groups[i].id))
			p->groups[kept++] = p->groups[i];
	p->count = kept;
	pthread_mutex_unlock(&p->lock);
}

static void group_keep(struct parities *p, const struct parity_group *g)
{
	pthread_mutex_lock(&p->lock);
	if (p->count == p->room) {
		p->room = p->room ? p->room * 2 : 16;
		p->groups = must_realloc(p->groups, p->room * sizeof *p->groups);
	}
	p->groups[p->count++] = *g;
	pthread_mutex_unlock(&p->lock);
}

/* One that is damaged is of no use. */
static int group_learn(struct repository *r, const unsigned char id[PACK_ID], struct parity_list *damaged)
{
	struct parity_group g;
	int result = group_read(r, id, &g);
	if (result == 0)
		group_keep(&r->parities, &g);
	if (result == -EBADMSG)
		list_add(damaged, id);
	return result == -ENOENT || result == -EBADMSG ? 0 : result;
}

int parities_refresh(struct repository *r)
{
	struct parity_list there = {0}, damaged = {0}, known;
	struct parities *p = &r->parities;
	pthread_mutex_lock(&p->refreshing);
	int result = object_list(r, FOLDER "/", parity_listed, &there);
	if (there.count)
		qsort(there.ids, there.count, PACK_ID, id_compare);
	if (result == 0)
		groups_forget(p, &there);
	known = groups_known(p);
	for (size_t i = 0; i < there.count && result == 0; i++)
		if (!list_has(&known, there.ids[i]))
			result = group_learn(r, there.ids[i], &damaged);
	pthread_mutex_lock(&p->lock);
	free(p->damaged);
	p->damaged = damaged.ids;
	p->damaged_count = damaged.count;
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&p->refreshing);
	free(known.ids);
	free(there.ids);
	return result;
}

struct parity_group *parities_copy(struct repository *r, size_t *ret_count)
{
	struct parities *p = &r->parities;
	pthread_mutex_lock(&p->lock);
	struct parity_group *copy = must_calloc(p->count + 1, sizeof *copy);
	if (p->count)
		memcpy(copy, p->groups, p->count * sizeof *copy);
	*ret_count = p->count;
	pthread_mutex_unlock(&p->lock);
	return copy;
}

void parities_damaged_copy(struct repository *r, unsigned char (**ret_ids)[PACK_ID], size_t *ret_count)
{
	struct parities *p = &r->parities;
	pthread_mutex_lock(&p->lock);
	*ret_ids = must_calloc(p->damaged_count + 1, PACK_ID);
	if (p->damaged_count)
		memcpy(*ret_ids, p->damaged, p->damaged_count * PACK_ID);
	*ret_count = p->damaged_count;
	pthread_mutex_unlock(&p->lock);
}

void parities_forget(struct repository *r, const unsigned char id[PACK_ID])
{
	struct parities *p = &r->parities;
	pthread_mutex_lock(&p->lock);
	size_t kept = 0;
	for (size_t i = 0; i < p->count; i++)
		if (memcmp(p->groups[i].id, id, PACK_ID) != 0)
			p->groups[kept++] = p->groups[i];
	p->count = kept;
	pthread_mutex_unlock(&p->lock);
}

int parity_get(struct repository *r, const struct parity_group *g, unsigned char **ret_bytes, size_t *ret_n)
{
	char name[64], place[OBJECT_NAME], *bytes = NULL;
	size_t n = 0;
	pack_name(g->id, FOLDER, name);
	int result = objects_get_bytes(r->objects, object_place(r, name, place), g->head + PACK_LONGEST, &bytes, &n);
	if (result < 0)
		return result == -EFBIG ? repo_fail(-EBADMSG, "%s: is longer than it can be", name)
		                        : repo_fail_object(result, place);
	if (n < g->head || !parity_hash_is(g->hash, bytes + g->head, n - g->head)) {
		free(bytes);
		return repo_fail(-EBADMSG, "%s: is damaged: its bytes are not what was written", name);
	}
	memmove(bytes, bytes + g->head, n - g->head);
	*ret_bytes = (unsigned char *)bytes;
	*ret_n = n - g->head;
	return 0;
}

/* --- making a pack again */

static const struct parity_member *member_find(const struct parity_group *g, const unsigned char pack[PACK_ID])
{
	for (uint32_t i = 0; i < g->count; i++)
		if (memcmp(g->members[i].id, pack, PACK_ID) == 0)
			return &g->members[i];
	return NULL;
}

/* Another member's bytes; whether they are right shows in the end. */
static int member_xor(struct repository *r, const struct parity_member *m, unsigned char *bytes, size_t n)
{
	char name[64], place[OBJECT_NAME], *own = NULL;
	size_t own_n = 0;
	pack_name(m->id, "packs", name);
	int result = objects_get_bytes(r->objects, object_place(r, name, place), PACK_LONGEST, &own, &own_n);
	if (result < 0)
		return repo_fail_object(result, place);
	bytes_xor(bytes, (const unsigned char *)own, own_n < n ? own_n : n);
	free(own);
	return 0;
}

static int member_rebuild(struct repository *r, const struct parity_group *g, const struct parity_member *m,
                          char **ret_bytes, size_t *ret_n)
{
	char name[64];
	unsigned char *bytes = NULL;
	size_t n = 0;
	int result = parity_get(r, g, &bytes, &n);
	for (uint32_t i = 0; i < g->count && result == 0; i++)
		if (&g->members[i] != m)
			result = member_xor(r, &g->members[i], bytes, n);
	if (result == 0 && (m->size > n || !parity_hash_is(m->hash, bytes, m->size))) {
		pack_name(m->id, "packs", name);
		result = repo_fail(-EBADMSG, "%s: is damaged, and so is another pack that it shares its parity with",
		                   name);
	}
	if (result < 0) {
		free(bytes);
		return result == -ENOENT ? -EBADMSG : result;
	}
	*ret_bytes = (char *)bytes;
	*ret_n = m->size;
	return 0;
}

int pack_rebuild(struct repository *r, const unsigned char id[PACK_ID], char **ret_bytes, size_t *ret_n)
{
	size_t count = 0;
	char name[64];
	int result = parities_refresh(r);
	if (result < 0)
		return result;
	struct parity_group *groups = parities_copy(r, &count);
	pack_name(id, "packs", name);
	result = repo_fail(-ENOENT, "%s: has no second copy", name);
	for (size_t i = 0; i < count && result < 0; i++) {
		const struct parity_member *m = member_find(&groups[i], id);
		if (m)
			result = member_rebuild(r, &groups[i], m, ret_bytes, ret_n);
	}
	free(groups);
	return result;
}

/* As it was written, so that what is noted of its damage is over. Its index may be what is lost. */
static int pack_replace(struct repository *r, const unsigned char id[PACK_ID], const char *bytes, size_t n)
{
	char name[64], place[OBJECT_NAME];
	struct chunk_entry *entries = NULL;
	uint32_t count = 0;
	uint64_t stored;
	const struct repo_key *key = NULL;
	pack_name(id, "packs", name);
	int result = objects_put_bytes(r->objects, object_place(r, name, place), bytes, n);
	if (result < 0)
		return repo_fail_object(result, place);
	result = pack_index_get(r, id, &entries, &count, &key);
	if (result == -ENOENT || result == -EBADMSG) {
		result = pack_footer_get(r, id, &entries, &count, &key);
		if (result == 0)
			result = pack_index_put(r, key, id, entries, count, &stored);
	}
	if (result < 0) /* without the project's key nobody reads it now */
		return repo_key_is_lost(result) ? 0 : result;
	index_trust(r, key, id, entries, count);
	damage_forget(r, id);
	return 0;
}

int pack_mend(struct repository *r, const unsigned char id[PACK_ID], char **ret_bytes, size_t *ret_n)
{
	char name[64];
	int result = pack_rebuild(r, id, ret_bytes, ret_n);
	if (result < 0)
		return result;
	pack_name(id, "packs", name);
	if (pack_replace(r, id, *ret_bytes, *ret_n) < 0)
		log_warn("backups: %s%s is damaged, and cannot be put again: %s", r->place, name, repository_why());
	else
		log_warn("backups: %s%s was damaged; it was made again from its parity", r->place, name);
	return 0;
}

int packs_mend_lost(struct repository *r, uint64_t *ret_count)
{
	size_t count = 0, n;
	char *bytes = NULL;
	int result = parities_refresh(r);
	if (result < 0)
		return result;
	struct parity_group *groups = parities_copy(r, &count);
	for (size_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < groups[i].count; j++) {
			uint64_t size;
			char name[64];
			const unsigned char *id = groups[i].members[j].id;
			pack_name(id, "packs", name);
			if (index_key(r, id) || object_size(r, name, &size) != -ENOENT ||
			    pack_mend(r, id, &bytes, &n) < 0)
				continue;
			free(bytes);
			(*ret_count)++;
		}
	free(groups);
	return 0;
}
