/* Documents and their lists. Each change of a document and of its list's counts is one statement: the batch's lock keeps
 * everybody else out, so what a statement reads of a list is what it changes. */
#include "store/pg.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>

/* Below this, stepping over index entries is as cheap as walking the blocks. */
#define SHALLOW 2048

static void doc_read(struct arena *a, const PGresult *r, int row, struct doc *ret_doc)
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

static int doc_read_one(struct tx *tx, struct arena *a, enum pg_statement st, const struct pg_args *args,
                        struct doc *ret_doc)
{
	PGresult *result;
	tx_count_read(tx);
	int r = pg_exec(tx, st, args, &result);
	if (r < 0)
		return r;
	if (r > 0)
		doc_read(a, result, 0, ret_doc);
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

int pg_get(struct tx *tx, struct arena *a, const char *kind, struct str id, struct doc *ret_doc)
{
	struct pg_args args = {0};
	if (tx->in_write && !tx->broken && pg_memo_get(tx, a, str_of(kind), id, ret_doc))
		return 0;
	pg_z(&args, kind);
	pg_str(&args, id);
	int r = doc_read_one(tx, a, PG_DOC_GET_ST, &args, ret_doc);
	if (r == 0)
		pg_memo_put(tx, ret_doc);
	return r;
}

int pg_get_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                   struct doc *ret_doc)
{
	struct pg_args args = {0};
	pg_z(&args, kind);
	pg_str(&args, parent);
	pg_str(&args, name);
	return doc_read_one(tx, a, PG_DOC_BY_NAME_ST, &args, ret_doc);
}

struct list_row {
	int64_t count, head;
};

/* A list that has no row is an empty one. */
static int list_read(struct tx *tx, const char *kind, struct str parent, struct list_row *ret_row)
{
	struct pg_args args = {0};
	PGresult *result;
	pg_z(&args, kind);
	pg_str(&args, parent);
	int r = pg_exec(tx, PG_LIST_GET_ST, &args, &result);
	if (r < 0)
		return r;
	*ret_row = (struct list_row){0};
	if (r > 0)
		*ret_row = (struct list_row){pg_number(result, 0, 1), pg_number(result, 0, 2)};
	PQclear(result);
	return 0;
}

int pg_count(struct tx *tx, const char *kind, struct str parent, int64_t *ret_count)
{
	struct list_row row;
	tx_count_read(tx);
	int r = list_read(tx, kind, parent, &row);
	if (r == 0)
		*ret_count = row.count;
	return r;
}

/* The block of `level`, from block `*block` on, that holds the document `*offset` places after that block's start. Both
 * move on: to the block, and to the places that remain inside it. -ENOENT past the end. */
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
	int r = list_read(tx, kind, parent, &row);
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
		doc_read(a, result, i, &docs[i]);
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
	/* Counts and documents must be of one state. */
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
	int r = pg_exec(tx, PG_DOC_INSERT_ST, &args, &result);
	if (r < 0)
		return r;
	if (r > 0) {
		made.seq = pg_number(result, 0, 0);
		pg_memo_put(tx, &made);
	}
	PQclear(result);
	return r > 0 ? 0 : -EEXIST;
}

/* Why no document was changed. */
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
	pg_memo_drop(tx, d->kind, d->id);
	struct pg_args args = {0};
	pg_str(&args, d->kind);
	pg_str(&args, d->id);
	pg_str_or_null(&args, d->name);
	pg_str(&args, d->body);
	pg_str_or_null(&args, d->secret);
	pg_int(&args, d->rev);
	if (args.impossible)
		return -EINVAL;
	int r = pg_exec(tx, PG_DOC_UPDATE_ST, &args, NULL);
	return r < 0 ? r : r > 0 ? 0 : refusal(tx, d);
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
	pg_memo_drop(tx, str_of(kind), id);
	struct pg_args args = {0};
	PGresult *result;
	pg_z(&args, kind);
	pg_str(&args, id);
	int r = pg_exec(tx, PG_DOC_DELETE_ST, &args, &result);
	if (r < 0)
		return r;
	r = r > 0 ? counts_subtract(tx, str_of(kind), pg_column(result, 0, 0), pg_number(result, 0, 1)) : -ENOENT;
	PQclear(result);
	return r;
}

int pg_move(struct tx *tx, const struct doc *d)
{
	assert(tx->in_write);
	pg_memo_drop(tx, d->kind, d->id);
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
	int r = pg_exec(tx, PG_DOC_MOVE_ST, &args, &result);
	if (r < 0)
		return r;
	r = r > 0 ? counts_subtract(tx, d->kind, pg_column(result, 0, 0), pg_number(result, 0, 1)) : refusal(tx, d);
	PQclear(result);
	return r;
}
