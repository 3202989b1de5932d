/* Documents that the batch under way has read or written. Its lock keeps every other process out until it ends, so what it
 * has once seen stays true: a document is asked for once in a batch, not once in each of its writes (an organization's name
 * for every event), and one that was just made not at all. */
#include "store/pg.h"

#include <stdlib.h>

#define MEMO_MAX 256

struct pg_memo {
	struct arena *arena;
	size_t count;
	struct doc docs[MEMO_MAX];
};

static struct doc *memo_find(struct pg_memo *m, struct str kind, struct str id)
{
	for (size_t i = 0; m && i < m->count; i++)
		if (str_eq(m->docs[i].id, id) && str_eq(m->docs[i].kind, kind))
			return &m->docs[i];
	return NULL;
}

static void doc_copy(struct arena *a, const struct doc *from, struct doc *ret_doc)
{
	*ret_doc = *from;
	ret_doc->kind = arena_dup(a, from->kind);
	ret_doc->id = arena_dup(a, from->id);
	ret_doc->parent = arena_dup(a, from->parent);
	ret_doc->name = arena_dup(a, from->name);
	ret_doc->body = arena_dup(a, from->body);
	ret_doc->secret = arena_dup(a, from->secret);
}

bool pg_memo_get(struct tx *tx, struct arena *a, struct str kind, struct str id, struct doc *ret_doc)
{
	const struct doc *found = memo_find(tx->pg->memo, kind, id);
	if (found)
		doc_copy(a, found, ret_doc);
	return found;
}

void pg_memo_put(struct tx *tx, const struct doc *d)
{
	struct pg_memo *m = tx->pg->memo;
	if (!tx->in_write)
		return;
	if (!m)
		m = tx->pg->memo = must_calloc(1, sizeof *m);
	if (!m->arena)
		m->arena = arena_new();
	if (m->count < MEMO_MAX && !memo_find(m, d->kind, d->id))
		doc_copy(m->arena, d, &m->docs[m->count++]);
}

void pg_memo_drop(struct tx *tx, struct str kind, struct str id)
{
	struct pg_memo *m = tx->pg->memo;
	struct doc *found = memo_find(m, kind, id);
	if (found)
		*found = m->docs[--m->count];
}

void pg_memo_clear(struct pg *p)
{
	if (!p->memo || !p->memo->arena)
		return;
	arena_free(p->memo->arena);
	p->memo->arena = NULL;
	p->memo->count = 0;
}

void pg_memo_free(struct pg *p)
{
	pg_memo_clear(p);
	free(p->memo);
	p->memo = NULL;
}
