/* Documents and their lists. A change of a document and of its list's counts is one statement: the batch's lock
 * excludes all other writers, so a statement can rely on what it reads of a list. */
#include "store/pg/pg.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Below this, stepping over index entries is as cheap as walking the blocks. */
#define SHALLOW 2048

void pg_doc_read(struct arena *a, const PGresult *r, int row, struct doc *ret_doc)
{
	*ret_doc = (struct doc){
	        .kind = arena_dup(a, pg_column(r, row, 0)),
	        .id = arena_dup(a, pg_column(r, row, 1)),
	        .parent = arena_dup(a, pg_column(r, row, 2)),
	        .name = arena_dup(a, pg_column(r, row, 3)),
	        .seq = pg_number(r, row, 4),
	        .rev = pg_number(r, row, 5),
	        .created_ms = pg_number(r, row, 6),
	        .body = arena_dup(a, pg_column(r, row, 7)),
	        .secret = arena_dup(a, pg_column(r, row, 8)),
	};
}

/* What a guessing batch remembers: see writer.c. */

#define KNOWN_BYTES (4 << 20)

void pg_known_reset(struct pg *p)
{
	struct arena *a = p->known.arena;
	if (a)
		arena_reset(a);
	for (unsigned i = 0; i < PG_EVENT_COLUMNS; i++)
		buf_free(&p->known.events[i]);
	pg_fresh_free(&p->known.fresh);
	p->known = (struct pg_known){.arena = a};
}

static bool list_is(const struct pg_list *l, struct str kind, struct str parent)
{
	return str_eq(l->kind, kind) && str_eq(l->parent, parent);
}

int pg_known_lists(struct tx *tx)
{
	struct pg *p = tx->pg;
	unsigned count = p->known.list_count;
	p->known.list_count = 0;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < count; i++) {
		const struct pg_list *l = &p->known.lists[i];
		struct pg_args args = {0};
		pg_str(&args, l->kind);
		pg_str(&args, l->parent);
		pg_int(&args, l->first);
		pg_int(&args, l->next);
		if (l->next > l->first)
			r = pg_defer(tx, PG_COUNTS_ADD_ST, &args);
	}
	return r;
}

static int doc_read_one(struct tx *tx, struct arena *a, enum pg_statement st, const struct pg_args *args,
                        struct doc *ret_doc)
{
	PGresult *result;
	tx_count_read(tx);
	int r = pg_exec(tx, st, args, &result);
	if (r < 0)
		return r;
	if (r > 0)
		pg_doc_read(a, result, 0, ret_doc);
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

int pg_get(struct tx *tx, struct arena *a, const char *kind, struct str id, struct doc *ret_doc)
{
	struct pg_args args = {0};
	int r = 0;
	if (tx->in_write && !tx->broken && memo_get(tx, a, str_of(kind), id, ret_doc))
		return 0;
	if (pg_ahead_get(tx, a, kind, id, ret_doc, &r))
		return r;
	pg_z(&args, kind);
	pg_str(&args, id);
	r = doc_read_one(tx, a, PG_DOC_GET_ST, &args, ret_doc);
	if (r == 0 && tx->in_write)
		memo_put(tx, ret_doc);
	return r;
}

static void get_some(struct tx *tx, struct doc_wanted *const *list, unsigned count)
{
	struct pg_args args[PG_MANY_MAX];
	const struct pg_args *asked[PG_MANY_MAX];
	PGresult *results[PG_MANY_MAX];
	bool known[PG_MANY_MAX];
	unsigned n = 0;
	for (unsigned i = 0; i < count; i++) {
		args[i] = (struct pg_args){0};
		pg_z(&args[i], list[i]->kind);
		pg_str(&args[i], list[i]->id);
		list[i]->result = -ENOENT;
		known[i] = args[i].impossible;
		if (!known[i])
			asked[n++] = &args[i];
		tx_count_read(tx);
	}
	int r = n ? pg_exec_many(tx, PG_DOC_GET_ST, asked, n, results) : 0;
	n = 0;
	for (unsigned i = 0; i < count; i++) {
		if (known[i])
			continue;
		if (r < 0) {
			list[i]->result = r;
			continue;
		}
		if (PQntuples(results[n]) > 0) {
			pg_doc_read(list[i]->arena, results[n], 0, &list[i]->doc);
			list[i]->result = 0;
		}
		PQclear(results[n++]);
	}
}

/* In a write, which remembers what it has asked. */
static void get_ahead(struct tx *tx, struct doc_wanted *const *list, size_t count)
{
	struct doc_question *asked = must_calloc(count + 1, sizeof *asked);
	for (size_t i = 0; i < count; i++)
		asked[i] = (struct doc_question){.kind = list[i]->kind, .id = list[i]->id};
	pg_read_ahead(tx, asked, count);
	free(asked);
	for (size_t i = 0; i < count; i++)
		list[i]->result = pg_get(tx, list[i]->arena, list[i]->kind, list[i]->id, &list[i]->doc);
}

void pg_get_many(struct tx *tx, struct doc_wanted *const *list, size_t count)
{
	if (tx->in_write) {
		get_ahead(tx, list, count);
		return;
	}
	for (size_t i = 0; i < count; i += PG_MANY_MAX)
		get_some(tx, list + i, count - i < PG_MANY_MAX ? (unsigned)(count - i) : PG_MANY_MAX);
}

int pg_get_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                   struct doc *ret_doc)
{
	struct pg_args args = {0};
	pg_z(&args, kind);
	pg_str(&args, parent);
	pg_str(&args, name);
	int r = 0;
	if (pg_ahead_by_name(tx, a, kind, parent, name, ret_doc, &r))
		return r;
	r = doc_read_one(tx, a, PG_DOC_BY_NAME_ST, &args, ret_doc);
	if (r == 0 && tx->in_write)
		pg_ahead_doc(tx, ret_doc);
	else if (r == -ENOENT && tx->in_write)
		pg_ahead_no_name(tx, kind, parent, name);
	return r;
}

struct list_row {
	int64_t next, count, head;
};

/* A list without a row is empty. */
static int list_read(struct tx *tx, struct str kind, struct str parent, struct list_row *ret_row)
{
	struct pg_args args = {0};
	PGresult *result;
	pg_str(&args, kind);
	pg_str(&args, parent);
	int r = pg_exec(tx, PG_LIST_GET_ST, &args, &result);
	if (r < 0)
		return r;
	*ret_row = (struct list_row){0};
	if (r > 0)
		*ret_row = (struct list_row){pg_number(result, 0, 0), pg_number(result, 0, 1), pg_number(result, 0, 2)};
	PQclear(result);
	return 0;
}

int pg_count(struct tx *tx, const char *kind, struct str parent, int64_t *ret_count)
{
	struct list_row row;
	tx_count_read(tx);
	if (pg_ahead_count(tx, kind, parent, ret_count))
		return 0;
	int r = pg_known_lists(tx);
	if (r == 0)
		r = list_read(tx, str_of(kind), parent, &row);
	if (r < 0)
		return r;
	*ret_count = row.count;
	if (tx->in_write)
		pg_ahead_counted(tx, kind, parent, row.count);
	return r;
}

/* The block of `level`, from block `*block` on, that holds the document `*offset` places after that block's start.
 * Updates both: to that block, and to the places that remain inside it. -ENOENT past the end. */
static int block_find(struct tx *tx, const char *kind, struct str parent, int level, int64_t *block, int64_t *offset)
{
	struct pg_args args = {0};
	PGresult *result;
	pg_z(&args, kind);
	pg_str(&args, parent);
	pg_int(&args, level);
	pg_int(&args, *block);
	pg_int(&args, *offset);
	int r = pg_exec(tx, PG_BLOCK_FIND_ST, &args, &result);
	if (r < 0)
		return r;
	if (r > 0) {
		*block = pg_number(result, 0, 0);
		*offset -= pg_number(result, 0, 1);
	}
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

/* Turns an offset into the list into a position to start from and the documents to skip from there. */
static int list_seek(struct tx *tx, const char *kind, struct str parent, int64_t offset, int64_t *ret_seq,
                     int64_t *ret_skip)
{
	struct list_row row;
	int64_t block = 0;
	int r = pg_known_lists(tx);
	if (r == 0)
		r = list_read(tx, str_of(kind), parent, &row);
	if (r == 0 && offset >= row.count)
		r = -ENOENT;
	if (r == 0 && offset >= row.head) {
		offset -= row.head;
		for (int level = BLOCK_LEVELS - 1; r == 0 && level >= 0; level--) {
			r = block_find(tx, kind, parent, level, &block, &offset);
			block <<= level ? BLOCK_BITS : 0;
		}
	}
	*ret_seq = block << BLOCK_BITS;
	*ret_skip = offset;
	return r;
}

static int list_read_docs(struct tx *tx, struct arena *a, enum pg_statement st, const struct pg_args *args,
                          struct doc **ret_docs, size_t *ret_count)
{
	PGresult *result;
	int r = pg_exec(tx, st, args, &result);
	if (r < 0)
		return r;
	struct doc *docs = arena_new_array(a, struct doc, (size_t)r + 1);
	for (int i = 0; i < r; i++)
		pg_doc_read(a, result, i, &docs[i]);
	/* What a write lists it often deletes. */
	for (int i = 0; tx->in_write && st == PG_DOC_LIST_ST && i < r; i++)
		pg_ahead_doc(tx, &docs[i]);
	PQclear(result);
	*ret_docs = docs;
	*ret_count = (size_t)r;
	return 0;
}

int pg_list(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t offset, int64_t limit,
            struct doc **ret_docs, size_t *ret_count)
{
	int64_t seq = 0, skip = offset < 0 ? 0 : offset;
	int r = 0;
	tx_count_read(tx);
	/* Counts and documents must come from one snapshot. */
	bool own = skip >= SHALLOW && !tx->reading && !tx->writes;
	if (own)
		tx_begin_read(tx);
	if (skip >= SHALLOW)
		r = list_seek(tx, kind, parent, skip, &seq, &skip);
	if (r == 0) {
		struct pg_args args = {0};
		pg_z(&args, kind);
		pg_str(&args, parent);
		pg_int(&args, seq);
		pg_int(&args, limit < 0 ? 0 : limit);
		pg_int(&args, skip);
		r = list_read_docs(tx, a, PG_DOC_LIST_ST, &args, ret_docs, ret_count);
	} else if (r == -ENOENT) {
		*ret_docs = arena_new_array(a, struct doc, 1);
		*ret_count = 0;
		r = 0;
	}
	if (own)
		tx_end_read(tx);
	return r;
}

int pg_walk(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t seq, int64_t limit,
            struct doc **ret_docs, size_t *ret_count)
{
	struct pg_args args = {0};
	tx_count_read(tx);
	pg_z(&args, kind);
	pg_str(&args, parent);
	pg_int(&args, seq);
	pg_int(&args, limit);
	return list_read_docs(tx, a, PG_DOC_WALK_ST, &args, ret_docs, ret_count);
}

int pg_heads(struct tx *tx, struct arena *a, const char *kind, const struct str *parent, struct doc **ret_docs,
             size_t *ret_count)
{
	struct pg_args args = {0};
	tx_count_read(tx);
	pg_z(&args, kind);
	if (parent)
		pg_str(&args, *parent);
	return list_read_docs(tx, a, parent ? PG_DOC_HEADS_OF_ST : PG_DOC_HEADS_ST, &args, ret_docs, ret_count);
}

/* The position for a document in a list that the batch has added to before. -ENOENT for the first, whose own statement
 * finds the position. */
static int list_append(struct tx *tx, const struct doc *d, struct pg_list **ret_list)
{
	struct pg_known *k = &tx->pg->known;
	struct pg_list *l = k->lists;
	struct list_row row;
	int r = 0;
	while (l < k->lists + k->list_count && !list_is(l, d->kind, d->parent))
		l++;
	if (l == k->lists + k->list_count) {
		k->bytes += d->kind.n + d->parent.n;
		if (k->bytes > KNOWN_BYTES)
			return -ENOENT;
		if (k->list_count == PG_KNOWN_MAX)
			r = pg_known_lists(tx);
		k->lists[k->list_count++] =
		        (struct pg_list){arena_dup(k->arena, d->kind), arena_dup(k->arena, d->parent), 0, -1};
		return r < 0 ? r : -ENOENT;
	}
	if (l->next < 0) {
		r = list_read(tx, d->kind, d->parent, &row);
		if (r < 0)
			return r;
		l->first = l->next = row.next;
	}
	*ret_list = l;
	return 0;
}

/* Inserts without waiting, on the guess that the document is new. */
static int insert_guess(struct tx *tx, const struct doc *d, struct pg_args *args)
{
	struct pg_list *l;
	struct doc made = *d;
	int r = list_append(tx, d, &l);
	if (r == -ENOENT)
		return pg_fresh_add(tx, d, args);
	if (r < 0)
		return r;
	pg_int(args, l->next);
	r = pg_guess(tx, PG_DOC_ADD_ST, args);
	if (r < 0)
		return r;
	made.seq = l->next++;
	made.rev = 1;
	memo_put(tx, &made);
	return 0;
}

int pg_insert(struct tx *tx, const struct doc *d)
{
	assert(tx->in_write && d->kind.n && d->id.n);
	struct pg_args args = {0};
	pg_str(&args, d->kind);
	pg_str(&args, d->id);
	pg_str(&args, d->parent);
	pg_str_or_null(&args, d->name);
	struct doc made = *d;
	PGresult *result;
	made.rev = 1;
	made.created_ms = d->created_ms ? d->created_ms : clock_now_ms();
	pg_int(&args, made.created_ms);
	pg_str(&args, d->body);
	pg_str_or_null(&args, d->secret);
	if (args.impossible)
		return -EINVAL;
	if (tx->pg->guessing) {
		pg_ahead_inserted(tx, &made);
		return insert_guess(tx, &made, &args);
	}
	int r = pg_exec(tx, PG_DOC_INSERT_ST, &args, &result);
	if (r < 0)
		return r;
	if (r > 0) {
		made.seq = pg_number(result, 0, 0);
		pg_ahead_inserted(tx, &made);
		memo_put(tx, &made);
	}
	PQclear(result);
	return r > 0 ? 0 : -EEXIST;
}

/* Finds out why no document was changed. */
static int refusal(struct tx *tx, const struct doc *d)
{
	struct pg_args args = {0};
	PGresult *result;
	pg_str(&args, d->kind);
	pg_str(&args, d->id);
	int r = pg_exec(tx, PG_DOC_WHERE_ST, &args, &result);
	if (r < 0)
		return r;
	int64_t rev = r > 0 ? pg_number(result, 0, 0) : 0;
	PQclear(result);
	return r == 0 ? -ENOENT : d->rev && d->rev != rev ? -ESTALE : -EEXIST;
}

int pg_update(struct tx *tx, const struct doc *d)
{
	assert(tx->in_write);
	memo_drop(tx, d->kind, d->id);
	bool known = pg_ahead_updated(tx, d);
	struct pg_args args = {0};
	pg_str(&args, d->kind);
	pg_str(&args, d->id);
	pg_str_or_null(&args, d->name);
	pg_str(&args, d->body);
	pg_str_or_null(&args, d->secret);
	pg_int(&args, d->rev);
	if (args.impossible)
		return -EINVAL;
	if (known && tx->pg->guessing)
		return pg_guess(tx, PG_DOC_UPDATE_ST, &args);
	int r = pg_exec(tx, PG_DOC_UPDATE_ST, &args, NULL);
	return r < 0 ? r : r > 0 ? 0 : refusal(tx, d);
}

int pg_secrets(struct tx *tx, struct arena *a, struct str kind, struct str id, int64_t limit, struct doc **ret_docs,
               size_t *ret_count)
{
	struct pg_args args = {0};
	PGresult *result;
	tx_count_read(tx);
	pg_str(&args, kind);
	pg_str(&args, id);
	pg_int(&args, limit);
	int r = pg_exec(tx, PG_DOC_SECRETS_ST, &args, &result);
	if (r < 0)
		return r;
	struct doc *docs = arena_new_array(a, struct doc, (size_t)r + 1);
	for (int i = 0; i < r; i++)
		docs[i] = (struct doc){.kind = arena_dup(a, pg_column(result, i, 0)),
		                       .id = arena_dup(a, pg_column(result, i, 1)),
		                       .secret = arena_dup(a, pg_column(result, i, 2))};
	PQclear(result);
	*ret_docs = docs;
	*ret_count = (size_t)r;
	return 0;
}

int pg_secret_replace(struct tx *tx, const struct doc *d, struct str secret)
{
	assert(tx->in_write);
	memo_drop(tx, d->kind, d->id);
	pg_ahead_changed(tx, d->kind, d->id);
	struct pg_args args = {0};
	pg_str(&args, d->kind);
	pg_str(&args, d->id);
	pg_str(&args, d->secret);
	pg_str(&args, secret);
	int r = pg_exec(tx, PG_DOC_SECRET_REPLACE_ST, &args, NULL);
	return r < 0 ? r : 0;
}

static int counts_subtract(struct tx *tx, struct str kind, struct str parent, int64_t seq)
{
	struct pg_args args = {0};
	pg_str(&args, kind);
	pg_str(&args, parent);
	pg_int(&args, seq);
	return pg_defer(tx, PG_COUNTS_SUBTRACT_ST, &args);
}

int pg_delete(struct tx *tx, const char *kind, struct str id)
{
	assert(tx->in_write);
	struct doc known;
	bool is_known = pg_ahead_deleted(tx, kind, id, &known);
	memo_drop(tx, str_of(kind), id);
	struct pg_args args = {0};
	PGresult *result;
	pg_z(&args, kind);
	pg_str(&args, id);
	int r = pg_known_lists(tx);
	if (r == 0 && is_known && tx->pg->guessing) {
		r = pg_guess(tx, PG_DOC_DELETE_ST, &args);
		return r < 0 ? r : counts_subtract(tx, known.kind, known.parent, known.seq);
	}
	if (r == 0)
		r = pg_exec(tx, PG_DOC_DELETE_ST, &args, &result);
	if (r < 0)
		return r;
	r = r > 0 ? counts_subtract(tx, str_of(kind), pg_column(result, 0, 0), pg_number(result, 0, 1)) : -ENOENT;
	PQclear(result);
	return r;
}

int pg_delete_list(struct tx *tx, const char *kind, struct str parent)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	memo_drop_list(tx, str_of(kind), parent);
	pg_ahead_deleted_list(tx, str_of(kind), parent);
	pg_z(&args, kind);
	pg_str(&args, parent);
	/* Its counts must not be written once it is gone. */
	int r = pg_known_lists(tx);
	return r < 0 ? r : pg_defer(tx, PG_DOCS_DELETE_ST, &args);
}

int pg_move(struct tx *tx, const struct doc *d)
{
	assert(tx->in_write);
	memo_drop(tx, d->kind, d->id);
	pg_ahead_changed(tx, d->kind, d->id);
	struct pg_args args = {0};
	PGresult *result;
	pg_str(&args, d->kind);
	pg_str(&args, d->id);
	pg_str(&args, d->parent);
	pg_str_or_null(&args, d->name);
	pg_str(&args, d->body);
	pg_int(&args, d->rev);
	if (args.impossible)
		return -EINVAL;
	int r = pg_known_lists(tx);
	if (r == 0)
		r = pg_exec(tx, PG_DOC_MOVE_ST, &args, &result);
	if (r < 0)
		return r;
	r = r > 0 ? counts_subtract(tx, d->kind, pg_column(result, 0, 0), pg_number(result, 0, 1)) : refusal(tx, d);
	PQclear(result);
	return r;
}
