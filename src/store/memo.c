/* Documents that were read or written in a batch, or in a snapshot that a reader keeps. They stay valid: no other
 * process writes during a batch, and a snapshot does not change. So a batch reads a document once, not once per write
 * (an organization's name for every event), and never one that it has just written; and calls in a row read their
 * organization once. */
#include "store/backend.h"

#include <stdlib.h>

#define MEMO_MAX 256
#define MEMO_READER_MAX 16
#define MEMO_BODY_MAX 16384 /* larger ones are not worth the memory */

struct memo {
	struct arena *arena;
	size_t count;
	struct doc docs[MEMO_MAX];
};

static struct doc *memo_find(struct memo *m, struct str kind, struct str id)
{
	for (size_t i = 0; m && i < m->count; i++)
		if (str_eq(m->docs[i].id, id) && str_eq(m->docs[i].kind, kind))
			return &m->docs[i];
	return NULL;
}

void doc_copy(struct arena *a, const struct doc *from, struct doc *ret_doc)
{
	*ret_doc = *from;
	ret_doc->kind = arena_dup(a, from->kind);
	ret_doc->id = arena_dup(a, from->id);
	ret_doc->parent = arena_dup(a, from->parent);
	ret_doc->name = arena_dup(a, from->name);
	ret_doc->body = arena_dup(a, from->body);
	ret_doc->secret = arena_dup(a, from->secret);
}

bool memo_get(struct tx *tx, struct arena *a, struct str kind, struct str id, struct doc *ret_doc)
{
	const struct doc *found = memo_find(tx->memo, kind, id);
	if (found)
		doc_copy(a, found, ret_doc);
	return found;
}

bool memo_has(struct tx *tx, struct str kind, struct str id)
{
	return memo_find(tx->memo, kind, id);
}

void memo_put(struct tx *tx, const struct doc *d)
{
	struct memo *m = tx->memo;
	if (d->body.n > MEMO_BODY_MAX)
		return;
	if (!m)
		m = tx->memo = must_calloc(1, sizeof *m);
	if (!m->arena)
		m->arena = arena_new();
	if (m->count == MEMO_READER_MAX && !tx->writes)
		memo_clear(tx);
	if (m->count < MEMO_MAX && !memo_find(m, d->kind, d->id))
		doc_copy(m->arena, d, &m->docs[m->count++]);
}

void memo_drop(struct tx *tx, struct str kind, struct str id)
{
	struct memo *m = tx->memo;
	struct doc *found = memo_find(m, kind, id);
	if (found)
		*found = m->docs[--m->count];
}

void memo_drop_list(struct tx *tx, struct str kind, struct str parent)
{
	struct memo *m = tx->memo;
	for (size_t i = m ? m->count : 0; i-- > 0;)
		if (str_eq(m->docs[i].parent, parent) && str_eq(m->docs[i].kind, kind))
			m->docs[i] = m->docs[--m->count];
}

void memo_clear(struct tx *tx)
{
	if (!tx->memo || !tx->memo->arena)
		return;
	arena_reset(tx->memo->arena);
	tx->memo->count = 0;
}

void memo_free(struct tx *tx)
{
	if (tx->memo)
		arena_free(tx->memo->arena);
	free(tx->memo);
	tx->memo = NULL;
}
