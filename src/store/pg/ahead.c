/* Answers that a write has: to what it has asked, and to questions that it is about to ask one by one, read together.
 * A write that names two hundred projects asks the store several times for each of them, on the one writer, and each
 * question was a round trip for which the writes of all tenants waited. What is known to be there is also deleted
 * without waiting.
 *
 * The answers hold until the write ends. No other process writes during a batch, so only the write itself can change
 * them: what it inserts, changes or deletes is taken out of them here. */
#include "store/pg/pg.h"

#include <errno.h>
#include <stdlib.h>

#define ANSWERS_MAX 4096u
#define SLOTS 8192u /* a power of two, above ANSWERS_MAX */
#define BYTES_MAX ((size_t)4 << 20)

enum form { BY_ID, BY_NAME, COUNT };

struct answer {
	enum form form;
	struct str kind, parent, name; /* name: the id, in the form BY_ID */
	bool stale, there;
	struct doc doc;
	int64_t count;
};

struct pg_ahead {
	struct arena *arena;
	size_t bytes;
	unsigned count;
	struct answer list[ANSWERS_MAX];
	uint16_t slots[SLOTS]; /* 0: free; otherwise the answer's place + 1 */
};

static uint64_t hash_add(uint64_t h, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
	return (h ^ 0xff) * 0x100000001b3u;
}

/* The slot that the answer is in, or the free one where it would go. */
static uint16_t *slot_of(struct pg_ahead *h, enum form form, struct str kind, struct str parent, struct str name)
{
	uint64_t hash = hash_add(hash_add(hash_add(0xcbf29ce484222325u + (uint64_t)form, kind), parent), name);
	for (unsigned i = (unsigned)(hash ^ hash >> 32);; i++) {
		uint16_t *slot = &h->slots[i % SLOTS];
		const struct answer *a = *slot ? &h->list[*slot - 1] : NULL;
		if (!a ||
		    (a->form == form && str_eq(a->name, name) && str_eq(a->parent, parent) && str_eq(a->kind, kind)))
			return slot;
	}
}

static struct answer *answer_find(struct tx *tx, enum form form, struct str kind, struct str parent, struct str name)
{
	struct pg_ahead *h = tx->pg->ahead;
	if (!h || !h->count || !tx->in_write || tx->broken)
		return NULL;
	const uint16_t *slot = slot_of(h, form, kind, parent, name);
	struct answer *a = *slot ? &h->list[*slot - 1] : NULL;
	return a && !a->stale ? a : NULL;
}

/* NULL: there is no room. An answer that is there already is taken anew. */
static struct answer *answer_make(struct pg_ahead *h, enum form form, struct str kind, struct str parent,
                                  struct str name)
{
	uint16_t *slot = slot_of(h, form, kind, parent, name);
	if (h->bytes > BYTES_MAX || (!*slot && h->count == ANSWERS_MAX)) {
		if (*slot)
			h->list[*slot - 1].stale = true;
		return NULL;
	}
	if (!*slot)
		*slot = (uint16_t)++h->count;
	struct answer *a = &h->list[*slot - 1];
	*a = (struct answer){form, arena_dup(h->arena, kind), arena_dup(h->arena, parent), arena_dup(h->arena, name)};
	h->bytes += kind.n + parent.n + name.n;
	return a;
}

static struct pg_ahead *ahead_of(struct pg *p)
{
	if (!p->ahead) {
		p->ahead = must_calloc(1, sizeof *p->ahead);
		p->ahead->arena = arena_new();
	}
	return p->ahead;
}

void pg_ahead_clear(struct pg *p)
{
	struct pg_ahead *h = p->ahead;
	if (!h || !h->count)
		return;
	arena_reset(h->arena);
	memset(h->slots, 0, sizeof h->slots);
	h->count = 0;
	h->bytes = 0;
}

void pg_ahead_free(struct pg *p)
{
	if (p->ahead)
		arena_free(p->ahead->arena);
	free(p->ahead);
	p->ahead = NULL;
}

void pg_ahead_doc(struct tx *tx, const struct doc *d)
{
	struct pg_ahead *h = ahead_of(tx->pg);
	struct answer *a = answer_make(h, BY_ID, d->kind, STR_NONE, d->id);
	if (!a)
		return;
	a->there = true;
	doc_copy(h->arena, d, &a->doc);
	h->bytes += d->body.n + d->secret.n;
	struct answer *named = d->name.n ? answer_make(h, BY_NAME, d->kind, d->parent, d->name) : NULL;
	if (named) {
		named->there = true;
		named->doc = a->doc;
	}
}

void pg_ahead_no_name(struct tx *tx, const char *kind, struct str parent, struct str name)
{
	(void)answer_make(ahead_of(tx->pg), BY_NAME, str_of(kind), parent, name);
}

void pg_ahead_counted(struct tx *tx, const char *kind, struct str parent, int64_t count)
{
	struct answer *a = answer_make(ahead_of(tx->pg), COUNT, str_of(kind), parent, STR_NONE);
	if (a)
		a->count = count;
}

static enum form form_of(const struct doc_question *q)
{
	return q->count ? COUNT : q->name.n ? BY_NAME : BY_ID;
}

static void answer_take(struct tx *tx, const struct doc_question *q, const PGresult *r)
{
	struct pg_ahead *h = tx->pg->ahead;
	enum form form = form_of(q);
	struct doc d;
	if (form == COUNT) {
		pg_ahead_counted(tx, q->kind, q->parent, PQntuples(r) > 0 ? pg_number(r, 0, 1) : 0);
	} else if (PQntuples(r) > 0) {
		pg_doc_read(h->arena, r, 0, &d);
		pg_ahead_doc(tx, &d);
	} else if (form == BY_NAME) {
		pg_ahead_no_name(tx, q->kind, q->parent, q->name);
	} else {
		(void)answer_make(h, BY_ID, str_of(q->kind), STR_NONE, q->id);
	}
}

static void some_ask(struct tx *tx, const struct doc_question *list, unsigned count)
{
	static const enum pg_statement statements[] = {
	        [BY_ID] = PG_DOC_GET_ST, [BY_NAME] = PG_DOC_BY_NAME_ST, [COUNT] = PG_LIST_GET_ST};
	struct pg_args args[PG_MANY_MAX];
	const struct pg_args *asked[PG_MANY_MAX];
	enum pg_statement st[PG_MANY_MAX];
	const struct doc_question *of[PG_MANY_MAX];
	PGresult *results[PG_MANY_MAX];
	unsigned n = 0;
	for (unsigned i = 0; i < count; i++) {
		const struct doc_question *q = &list[i];
		args[n] = (struct pg_args){0};
		pg_z(&args[n], q->kind);
		pg_str(&args[n], form_of(q) == BY_ID ? q->id : q->parent);
		if (form_of(q) == BY_NAME)
			pg_str(&args[n], q->name);
		if (args[n].impossible)
			continue;
		st[n] = statements[form_of(q)];
		asked[n] = &args[n];
		of[n++] = q;
	}
	if (!n || pg_write_many(tx, st, asked, n, results) < 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		answer_take(tx, of[i], results[i]);
		PQclear(results[i]);
	}
}

void pg_read_ahead(struct tx *tx, const struct doc_question *list, size_t count)
{
	if (!tx->in_write || tx->broken || count < 2)
		return;
	ahead_of(tx->pg);
	/* Counts must include what the batch has added. */
	if (pg_known_lists(tx) < 0)
		return;
	for (size_t i = 0; i < count && !tx->broken; i += PG_MANY_MAX)
		some_ask(tx, list + i, count - i < PG_MANY_MAX ? (unsigned)(count - i) : PG_MANY_MAX);
}

static bool doc_answer(struct tx *tx, struct arena *a, const struct answer *found, struct doc *ret_doc, int *ret_result)
{
	if (!found)
		return false;
	tx_count_read(tx);
	*ret_result = found->there ? 0 : -ENOENT;
	if (found->there)
		doc_copy(a, &found->doc, ret_doc);
	return true;
}

bool pg_ahead_get(struct tx *tx, struct arena *a, const char *kind, struct str id, struct doc *ret_doc, int *ret_result)
{
	return doc_answer(tx, a, answer_find(tx, BY_ID, str_of(kind), STR_NONE, id), ret_doc, ret_result);
}

bool pg_ahead_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                      struct doc *ret_doc, int *ret_result)
{
	return doc_answer(tx, a, answer_find(tx, BY_NAME, str_of(kind), parent, name), ret_doc, ret_result);
}

bool pg_ahead_count(struct tx *tx, const char *kind, struct str parent, int64_t *ret_count)
{
	const struct answer *found = answer_find(tx, COUNT, str_of(kind), parent, STR_NONE);
	if (found)
		*ret_count = found->count;
	return found;
}

static void count_add(struct tx *tx, struct str kind, struct str parent, int64_t more)
{
	struct answer *found = answer_find(tx, COUNT, kind, parent, STR_NONE);
	if (found)
		found->count += more;
}

static void stale_set(struct answer *a)
{
	if (a)
		a->stale = true;
}

void pg_ahead_inserted(struct tx *tx, const struct doc *d)
{
	stale_set(answer_find(tx, BY_ID, d->kind, STR_NONE, d->id));
	if (d->name.n)
		stale_set(answer_find(tx, BY_NAME, d->kind, d->parent, d->name));
	count_add(tx, d->kind, d->parent, 1);
}

bool pg_ahead_updated(struct tx *tx, const struct doc *d)
{
	struct answer *found = answer_find(tx, BY_ID, d->kind, STR_NONE, d->id);
	if (!found || !found->there || !str_eq(found->doc.name, d->name)) {
		pg_ahead_changed(tx, d->kind, d->id);
		return false;
	}
	found->stale = true;
	if (d->name.n)
		stale_set(answer_find(tx, BY_NAME, d->kind, found->doc.parent, d->name));
	return !d->rev || d->rev == found->doc.rev;
}

bool pg_ahead_deleted(struct tx *tx, const char *kind, struct str id, struct doc *ret_doc)
{
	struct answer *found = answer_find(tx, BY_ID, str_of(kind), STR_NONE, id);
	if (!found || !found->there) {
		pg_ahead_changed(tx, str_of(kind), id);
		return false;
	}
	*ret_doc = found->doc;
	found->stale = true;
	if (ret_doc->name.n)
		stale_set(answer_find(tx, BY_NAME, ret_doc->kind, ret_doc->parent, ret_doc->name));
	count_add(tx, ret_doc->kind, ret_doc->parent, -1);
	return true;
}

/* Which names it had and has is not known here, nor in which list it was: all answers of the kind that may be about it
 * are dropped. */
void pg_ahead_changed(struct tx *tx, struct str kind, struct str id)
{
	struct pg_ahead *h = tx->pg->ahead;
	for (unsigned i = 0; h && i < h->count; i++) {
		struct answer *a = &h->list[i];
		if (!str_eq(a->kind, kind))
			continue;
		bool other = a->form != COUNT && a->there && !str_eq(a->doc.id, id);
		a->stale |= !other && (a->form != BY_ID || str_eq(a->name, id));
	}
}
