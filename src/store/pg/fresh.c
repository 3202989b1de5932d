/* Documents of one kind that a write inserts one after the other, each into another list: the notes that an invitation
 * leaves with each of its projects. Each was a statement of its own, which wrote a document, a list and its blocks; two
 * hundred of them kept the server, and so the writes of all tenants, for longer than all else that an invitation does.
 * Here they become one statement for up to sixty-four.
 *
 * Only a batch that guesses does so. What is kept is sent before any other statement, so that all statements have the
 * order in which they were asked for. The first of a kind is sent at once: most writes insert only one. */
#include "store/pg/pg.h"

#define BODY_MAX 4096 /* larger ones gain nothing */

static uint64_t hash_of(struct str kind, struct str parent)
{
	uint64_t h = 0xcbf29ce484222325u ^ kind.n;
	for (size_t i = 0; i < kind.n; i++)
		h = (h ^ (unsigned char)kind.p[i]) * 0x100000001b3u;
	for (size_t i = 0; i < parent.n; i++)
		h = (h ^ (unsigned char)parent.p[i]) * 0x100000001b3u;
	return h | 1;
}

void pg_fresh_free(struct pg_fresh *f)
{
	for (unsigned i = 0; i < PG_FRESH_COLUMNS; i++)
		buf_free(&f->columns[i]);
	*f = (struct pg_fresh){0};
}

int pg_fresh_flush(struct tx *tx)
{
	static const uint32_t oids[PG_FRESH_COLUMNS] = {PG_OID_TEXT, PG_OID_TEXT, PG_OID_TEXT, PG_OID_TEXT,
	                                                PG_OID_INT8, PG_OID_TEXT, PG_OID_TEXT};
	struct pg_fresh *f = &tx->pg->known.fresh;
	struct pg_args args = {0};
	uint32_t count = f->count;
	f->kind = 0;
	if (!count)
		return 0;
	f->count = 0; /* it is a statement like others, before which this is called */
	for (unsigned i = 0; i < PG_FRESH_COLUMNS; i++)
		pg_elements_arg(&args, &f->columns[i], oids[i], count);
	pg_int(&args, count);
	int r = pg_guess(tx, PG_DOCS_INSERT_ST, &args);
	for (unsigned i = 0; i < PG_FRESH_COLUMNS; i++)
		f->columns[i].n = 0;
	return r;
}

static bool list_is_kept(const struct pg_fresh *f, uint64_t list)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (f->lists[i] == list)
			return true;
	return false;
}

static void str_or_null_add(struct buf *array, struct str s)
{
	if (s.n)
		pg_elements_add_str(array, s);
	else
		pg_elements_add_null(array);
}

int pg_fresh_add(struct tx *tx, const struct doc *d, const struct pg_args *args)
{
	struct pg_fresh *f = &tx->pg->known.fresh;
	uint64_t kind = hash_of(d->kind, STR_NONE), list = hash_of(d->kind, d->parent);
	int r = 0;
	if (f->kind != kind || d->body.n > BODY_MAX || d->secret.n > BODY_MAX) {
		r = pg_guess(tx, PG_DOC_INSERT_ST, args);
		f->kind = kind;
		return r;
	}
	if (f->count == PG_FRESH_MAX || list_is_kept(f, list))
		r = pg_fresh_flush(tx);
	f->kind = kind;
	f->lists[f->count++] = list;
	pg_elements_add_str(&f->columns[0], d->kind);
	pg_elements_add_str(&f->columns[1], d->id);
	pg_elements_add_str(&f->columns[2], d->parent);
	str_or_null_add(&f->columns[3], d->name);
	pg_elements_add_int(&f->columns[4], d->created_ms);
	pg_elements_add_str(&f->columns[5], d->body);
	str_or_null_add(&f->columns[6], d->secret);
	tx->pg->changed = true;
	return r;
}
