/* Answers that a write has: to what it has asked, and to questions that it is about to ask one by one, read together.
 * A write that names two hundred projects asks the store several times for each of them, on the one writer, and each
 * question was a round trip for which the writes of all tenants waited. Together they are a statement for each form of
 * question: a statement for each question kept the server busy for most of the write's time. What is known to be there
 * is also deleted without waiting.
 *
 * The answers hold until the write ends. No other process writes during a batch, so only the write itself can change
 * them: what it inserts, changes or deletes is taken out of them here. */
#include "store/pg/pg.h"

#include <errno.h>
#include <stdlib.h>

#define ANSWERS_MAX 4096u
#define SLOTS 8192u /* a power of two, above ANSWERS_MAX */
#define BYTES_MAX ((size_t)4 << 20)
#define TOGETHER_MAX 512 /* questions of one round trip */

enum form { BY_ID, BY_NAME, COUNT, FORMS };

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

/* Questions of one form that are asked together. */
#define COLUMNS_MAX 3
struct together {
	struct buf columns[COLUMNS_MAX];
	uint32_t count;
};

/* True: it is among those that are asked. What is known already is not asked again. */
static bool question_add(struct tx *tx, const struct doc_question *q, struct together *t)
{
	enum form form = form_of(q);
	struct str parent = form == BY_ID ? STR_NONE : q->parent, name = form == BY_ID ? q->id : q->name;
	struct str kind = str_of(q->kind);
	if (answer_find(tx, form, kind, parent, form == COUNT ? STR_NONE : name) || !pg_utf8(parent) || !pg_utf8(name))
		return false;
	if (form == BY_ID && memo_has(tx, kind, q->id))
		return false;
	pg_elements_add_str(&t->columns[0], kind);
	pg_elements_add_str(&t->columns[1], form == BY_ID ? q->id : q->parent);
	if (form == BY_NAME)
		pg_elements_add_str(&t->columns[2], name);
	t->count++;
	return true;
}

/* What no row answers is not there. */
static void answer_none(struct tx *tx, const struct doc_question *q)
{
	if (form_of(q) == COUNT)
		pg_ahead_counted(tx, q->kind, q->parent, 0);
	else if (form_of(q) == BY_NAME)
		pg_ahead_no_name(tx, q->kind, q->parent, q->name);
	else
		(void)answer_make(tx->pg->ahead, BY_ID, str_of(q->kind), STR_NONE, q->id);
}

static void answers_take(struct tx *tx, enum form form, const PGresult *r)
{
	struct pg_ahead *h = tx->pg->ahead;
	struct doc d;
	for (int i = 0; i < PQntuples(r); i++) {
		if (form == COUNT) {
			struct str kind = arena_dup(h->arena, pg_column(r, i, 0));
			pg_ahead_counted(tx, kind.p, pg_column(r, i, 1), pg_number(r, i, 2));
		} else {
			pg_doc_read(h->arena, r, i, &d);
			pg_ahead_doc(tx, &d);
		}
	}
}

/* Sends one statement for each form that was asked for. */
static int together_ask(struct tx *tx, struct together *forms, PGresult *ret_results[FORMS])
{
	static const enum pg_statement statements[FORMS] = {
	        [BY_ID] = PG_DOCS_GET_ST, [BY_NAME] = PG_DOCS_BY_NAME_ST, [COUNT] = PG_LISTS_GET_ST};
	struct pg_args args[FORMS];
	const struct pg_args *asked[FORMS];
	enum pg_statement st[FORMS];
	PGresult *results[FORMS];
	unsigned n = 0;
	for (unsigned f = 0; f < FORMS; f++) {
		ret_results[f] = NULL;
		if (!forms[f].count)
			continue;
		args[n] = (struct pg_args){0};
		for (unsigned i = 0; i < COLUMNS_MAX && forms[f].columns[i].n; i++)
			pg_elements_arg(&args[n], &forms[f].columns[i], PG_OID_TEXT, forms[f].count);
		st[n] = statements[f];
		asked[n] = &args[n];
		n++;
	}
	int r = n ? pg_write_many(tx, st, asked, n, results) : -ENOENT;
	for (unsigned f = 0, at = 0; r == 0 && f < FORMS; f++)
		if (forms[f].count)
			ret_results[f] = results[at++];
	return r;
}

static void some_ask(struct tx *tx, const struct doc_question *list, size_t count)
{
	struct together forms[FORMS] = {0};
	PGresult *results[FORMS];
	bool asked[TOGETHER_MAX];
	for (size_t i = 0; i < count; i++)
		asked[i] = question_add(tx, &list[i], &forms[form_of(&list[i])]);
	if (together_ask(tx, forms, results) == 0) {
		for (size_t i = 0; i < count; i++)
			if (asked[i])
				answer_none(tx, &list[i]);
		for (unsigned f = 0; f < FORMS; f++) {
			if (results[f])
				answers_take(tx, (enum form)f, results[f]);
			PQclear(results[f]);
		}
	}
	for (unsigned f = 0; f < FORMS; f++)
		for (unsigned i = 0; i < COLUMNS_MAX; i++)
			buf_free(&forms[f].columns[i]);
}

void pg_read_ahead(struct tx *tx, const struct doc_question *list, size_t count)
{
	if (!tx->in_write || tx->broken || count < 2)
		return;
	ahead_of(tx->pg);
	/* Counts must include what the batch has added. */
	if (pg_known_lists(tx) < 0)
		return;
	for (size_t i = 0; i < count && !tx->broken; i += TOGETHER_MAX)
		some_ask(tx, list + i, count - i < TOGETHER_MAX ? count - i : TOGETHER_MAX);
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

void pg_ahead_deleted_list(struct tx *tx, struct str kind, struct str parent)
{
	struct pg_ahead *h = tx->pg->ahead;
	for (unsigned i = 0; h && i < h->count; i++) {
		struct answer *a = &h->list[i];
		bool of_it = a->there ? str_eq(a->doc.parent, parent) : a->form == COUNT && str_eq(a->parent, parent);
		a->stale |= of_it && str_eq(a->kind, kind);
	}
}
