/* Documents and their lists.
 *
 * A list is read by position, and positions are found through counts: list.head for the first block, list_block for the
 * rest. Each insert and delete updates them in the same transaction. */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>

/* Below this, stepping over index entries is as cheap as walking the blocks. */
#define SHALLOW 2048

/* -EIO: the content is not what was written. */
static int doc_check(struct tx *tx, const struct doc *d, sqlite3_value *sum)
{
	/* One that came by a copy from another store has no sum until it is written. */
	if (sqlite3_value_type(sum) == SQLITE_NULL || sqlite3_value_int64(sum) == doc_sum(d->kind, d->id, d->body))
		return 0;
	store_damaged(tx->store, "document %.*s %.*s: its content is not what was written", STR_ARG(d->kind),
	              STR_ARG(d->id));
	return -EIO;
}

/* `kind` lies in the arena, as does `parent`, which is NULL where the row has it. */
static int doc_read(struct tx *tx, struct arena *a, sqlite3_stmt *st, struct str kind, const struct str *parent,
                    struct doc *ret_doc)
{
	*ret_doc = (struct doc){
	        .kind = kind,
	        .id = arena_dup(a, column_str(st, 0)),
	        .parent = parent ? *parent : arena_dup(a, column_str(st, 8)),
	        .name = arena_dup(a, column_str(st, 1)),
	        .seq = sqlite3_column_int64(st, 2),
	        .rev = sqlite3_column_int64(st, 3),
	        .created_ms = sqlite3_column_int64(st, 4),
	        .body = arena_dup(a, column_str(st, 5)),
	        .secret = arena_dup(a, column_str(st, 6)),
	};
	return doc_check(tx, ret_doc, sqlite3_column_value(st, 7));
}

static int doc_read_one(struct tx *tx, struct arena *a, sqlite3_stmt *st, const char *kind, const struct str *parent,
                        struct doc *ret_doc)
{
	tx_count_read(tx);
	int r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	r = doc_read(tx, a, st, arena_dup(a, str_of(kind)), parent, ret_doc);
	sqlite3_reset(st);
	return r;
}

int sqlite_get(struct tx *tx, struct arena *a, const char *kind, struct str id, struct doc *ret_doc)
{
	/* True in a snapshot that does not change until it is released. */
	bool still = tx->in_write ? !tx->broken : tx->reading && tx->lingers;
	if (still && memo_get(tx, a, str_of(kind), id, ret_doc)) {
		tx_count_read(tx);
		return 0;
	}
	sqlite3_stmt *st = conn_statement(tx, ST_DOC_GET);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, id);
	int r = doc_read_one(tx, a, st, kind, NULL, ret_doc);
	if (r == 0 && still)
		memo_put(tx, ret_doc);
	return r;
}

int sqlite_get_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                       struct doc *ret_doc)
{
	sqlite3_stmt *st = conn_statement(tx, ST_DOC_BY_NAME);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, parent);
	bind_str(st, 3, name);
	struct str kept = arena_dup(a, parent);
	return doc_read_one(tx, a, st, kind, &kept, ret_doc);
}

int sqlite_count(struct tx *tx, const char *kind, struct str parent, int64_t *ret_count)
{
	struct list_row row;
	tx_count_read(tx);
	int r = list_read(tx, str_of(kind), parent, &row);
	if (r == 0)
		*ret_count = row.count;
	return r;
}

/* The block of `level`, from block `*block` on, that holds the document `*offset` places after that block's start.
 * Updates both: to that block, and to the places that remain inside it. -ENOENT past the end. */
static int block_find(struct tx *tx, const char *kind, struct str parent, int level, int64_t *block, int64_t *offset,
                      int64_t *ret_count)
{
	sqlite3_stmt *st = conn_statement(tx, ST_BLOCK_WALK);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, parent);
	sqlite3_bind_int(st, 3, level);
	sqlite3_bind_int64(st, 4, *block);
	int64_t left = *offset;
	int r;
	while ((r = conn_step(tx, st)) > 0) {
		int64_t count = sqlite3_column_int64(st, 1);
		if (left < count) {
			*block = sqlite3_column_int64(st, 0);
			*offset = left;
			*ret_count = count;
			sqlite3_reset(st);
			return 0;
		}
		left -= count;
	}
	return r < 0 ? -EIO : -ENOENT;
}

/* Turns an offset into the list into a position to start from and the documents to skip from there. */
static int list_seek(struct tx *tx, const char *kind, struct str parent, int64_t offset, int64_t *ret_seq,
                     int64_t *ret_skip)
{
	struct list_row row;
	int r = list_read(tx, str_of(kind), parent, &row);
	if (r < 0)
		return r;
	if (offset >= row.count)
		return -ENOENT;
	int64_t block = 0, count = row.head;
	if (offset >= row.head) {
		offset -= row.head;
		for (int level = BLOCK_LEVELS - 1; level >= 0; level--) {
			r = block_find(tx, kind, parent, level, &block, &offset, &count);
			if (r < 0)
				return r;
			block <<= level ? BLOCK_BITS : 0;
		}
	}
	int64_t start = block << BLOCK_BITS, left = row.next_seq - start;
	bool gapless = count == (left < BLOCK_SIZE ? left : BLOCK_SIZE); /* no gaps: a place is a position */
	*ret_seq = gapless ? start + offset : start;
	*ret_skip = gapless ? 0 : offset;
	return 0;
}

/* `parent` as for doc_read(). */
static int list_read_docs(struct tx *tx, struct arena *a, sqlite3_stmt *st, const char *kind, const struct str *parent,
                          int64_t limit, struct doc **ret_docs, size_t *ret_count)
{
	struct str kept = arena_dup(a, str_of(kind)); /* one for all */
	size_t count = 0, cap = limit > 16 && limit <= 128 ? (size_t)limit : 16;
	struct doc *docs = arena_new_array(a, struct doc, cap);
	int r;
	int bad = 0;
	while ((r = conn_step(tx, st)) > 0) {
		if (count == cap) {
			struct doc *more = arena_new_array(a, struct doc, cap *= 2);
			memcpy(more, docs, count * sizeof(*docs));
			docs = more;
		}
		if (doc_read(tx, a, st, kept, parent, &docs[count++]) < 0)
			bad = -EIO;
	}
	if (r < 0 || bad)
		return r < 0 ? r : bad;
	*ret_docs = docs;
	*ret_count = count;
	return 0;
}

/* Ready to be stepped. -ENOENT: the list ends before. */
static int list_start(struct tx *tx, enum statement which, const char *kind, struct str parent, int64_t offset,
                      int64_t limit, sqlite3_stmt **ret_st)
{
	int64_t seq = 0, skip = offset < 0 ? 0 : offset;
	tx_count_read(tx);
	sqlite3_stmt *st = conn_statement(tx, which);
	if (!st)
		return -EIO;
	int r = skip >= SHALLOW ? list_seek(tx, kind, parent, skip, &seq, &skip) : 0;
	if (r < 0)
		return r;
	bind_z(st, 1, kind);
	bind_str(st, 2, parent);
	sqlite3_bind_int64(st, 3, seq);
	sqlite3_bind_int64(st, 4, limit < 0 ? 0 : limit);
	sqlite3_bind_int64(st, 5, skip);
	*ret_st = st;
	return 0;
}

/* Counts and documents must be of one state. True: it is to be let go afterwards. */
static bool list_keep_state(struct tx *tx, int64_t offset)
{
	bool own = offset >= SHALLOW && !tx->reading && !tx->writes;
	if (own)
		tx_begin_read(tx);
	return own;
}

int sqlite_list(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t offset, int64_t limit,
                struct doc **ret_docs, size_t *ret_count)
{
	sqlite3_stmt *st;
	bool own = list_keep_state(tx, offset);
	int r = list_start(tx, ST_DOC_LIST, kind, parent, offset, limit, &st);
	if (r == 0) {
		struct str kept = arena_dup(a, parent);
		r = list_read_docs(tx, a, st, kind, &kept, limit, ret_docs, ret_count);
	} else if (r == -ENOENT) {
		*ret_docs = arena_new_array(a, struct doc, 1);
		*ret_count = 0;
		r = 0;
	}
	if (own)
		tx_end_read(tx);
	return r;
}

/* Only what is shown is asked for, and nothing is copied unless the page is to be kept: that is most of what a long
 * list costs. */
static int list_show(struct tx *tx, sqlite3_stmt *st, struct str kind, struct str parent, bool keep, doc_show *show,
                     void *ctx)
{
	struct doc d = {.kind = kind, .parent = parent};
	int r, result = 0;
	while ((r = conn_step(tx, st)) > 0) {
		d.id = column_str(st, 0);
		d.body = column_str(st, 1);
		int found = doc_check(tx, &d, sqlite3_column_value(st, 2));
		if (found == 0 && keep)
			page_add(tx, &d);
		if (result == 0)
			result = found < 0 ? found : show(ctx, &d);
	}
	if (keep)
		page_end(tx, r == 0 && result == 0);
	return r < 0 ? r : result;
}

int sqlite_list_each(struct tx *tx, const char *kind, struct str parent, int64_t offset, int64_t limit, doc_show *show,
                     void *ctx)
{
	sqlite3_stmt *st;
	enum page_state page = page_ask(tx, str_of(kind), parent, offset, limit);
	if (page == PAGE_KEPT) {
		tx_count_read(tx);
		return page_show(tx, kind, parent, show, ctx);
	}
	bool own = list_keep_state(tx, offset);
	int r = list_start(tx, ST_DOC_LIST_EACH, kind, parent, offset, limit, &st);
	if (r == 0)
		r = list_show(tx, st, str_of(kind), parent, page == PAGE_AGAIN, show, ctx);
	else if (r == -ENOENT)
		r = 0;
	if (own)
		tx_end_read(tx);
	return r;
}

int sqlite_walk(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t seq, int64_t limit,
                struct doc **ret_docs, size_t *ret_count)
{
	sqlite3_stmt *st = conn_statement(tx, ST_DOC_WALK);
	tx_count_read(tx);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, parent);
	sqlite3_bind_int64(st, 3, seq);
	sqlite3_bind_int64(st, 4, limit);
	return list_read_docs(tx, a, st, kind, NULL, limit, ret_docs, ret_count);
}

int sqlite_heads(struct tx *tx, struct arena *a, const char *kind, const struct str *parent, struct doc **ret_docs,
                 size_t *ret_count)
{
	sqlite3_stmt *st = conn_statement(tx, parent ? ST_DOC_HEADS_OF : ST_DOC_HEADS);
	struct str kept = arena_dup(a, str_of(kind));
	struct doc *docs = NULL;
	size_t count = 0, room = 0;
	int r;
	tx_count_read(tx);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	if (parent)
		bind_str(st, 2, *parent);
	while ((r = conn_step(tx, st)) > 0) {
		ARENA_FIT(a, docs, count, room);
		docs[count++] = (struct doc){.kind = kept,
		                             .id = arena_dup(a, column_str(st, 0)),
		                             .name = arena_dup(a, column_str(st, 1)),
		                             .seq = sqlite3_column_int64(st, 2),
		                             .rev = sqlite3_column_int64(st, 3),
		                             .created_ms = sqlite3_column_int64(st, 4),
		                             .parent = arena_dup(a, column_str(st, 5))};
	}
	*ret_docs = docs;
	*ret_count = count;
	return r;
}

/* Rows of one kind lie together, so that a list reads few pages: each has a range of row ids of its own. Two kinds
 * that share one only lie mixed. */
#define RANGE_BITS 32
static int64_t range_of(struct str kind)
{
	uint32_t hash = 2166136261; /* FNV-1a */
	for (size_t i = 0; i < kind.n; i++)
		hash = (hash ^ (unsigned char)kind.p[i]) * 16777619;
	return (int64_t)(hash % 4093 + 1) << RANGE_BITS;
}

int sqlite_insert(struct tx *tx, const struct doc *d)
{
	assert(tx->in_write && d->kind.n && d->id.n);
	struct doc made = *d;
	int r = counts_next(tx, d->kind, d->parent, &made.seq);
	sqlite3_stmt *st = conn_statement(tx, ST_DOC_INSERT);
	if (r < 0 || !st)
		return -EIO;
	bind_str(st, 1, d->kind);
	bind_str(st, 2, d->id);
	bind_str(st, 3, d->parent);
	bind_str_or_null(st, 4, d->name);
	made.rev = 1;
	made.created_ms = d->created_ms ? d->created_ms : clock_now_ms();
	sqlite3_bind_int64(st, 5, made.seq);
	sqlite3_bind_int64(st, 6, made.created_ms);
	bind_str(st, 7, d->body);
	bind_str_or_null(st, 8, d->secret);
	sqlite3_bind_int64(st, 9, doc_sum(d->kind, d->id, d->body));
	sqlite3_bind_int64(st, 10, range_of(d->kind));
	sqlite3_bind_int64(st, 11, range_of(d->kind) + ((int64_t)1 << RANGE_BITS) - 1);
	r = conn_step(tx, st);
	if (r < 0)
		return r;
	memo_put(tx, &made);
	return counts_add(tx, d->kind, d->parent, made.seq);
}

struct doc_place {
	int64_t rev, seq;
	struct str parent; /* in the arena; empty: none */
};

static int doc_place(struct tx *tx, struct arena *a, struct str kind, struct str id, struct doc_place *ret_place)
{
	sqlite3_stmt *st = conn_statement(tx, ST_DOC_WHERE);
	if (!st)
		return -EIO;
	bind_str(st, 1, kind);
	bind_str(st, 2, id);
	int r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? -EIO : -ENOENT;
	ret_place->rev = sqlite3_column_int64(st, 0);
	ret_place->seq = sqlite3_column_int64(st, 2);
	ret_place->parent = a ? arena_dup(a, column_str(st, 1)) : STR_NONE;
	sqlite3_reset(st);
	return 0;
}

int sqlite_update(struct tx *tx, const struct doc *d)
{
	struct doc_place place;
	assert(tx->in_write);
	memo_drop(tx, d->kind, d->id);
	int r = doc_place(tx, NULL, d->kind, d->id, &place);
	if (r < 0)
		return r;
	if (d->rev && d->rev != place.rev)
		return -ESTALE;
	sqlite3_stmt *st = conn_statement(tx, ST_DOC_UPDATE);
	if (!st)
		return -EIO;
	bind_str(st, 1, d->kind);
	bind_str(st, 2, d->id);
	bind_str_or_null(st, 3, d->name);
	bind_str(st, 4, d->body);
	bind_str_or_null(st, 5, d->secret);
	sqlite3_bind_int64(st, 6, doc_sum(d->kind, d->id, d->body));
	return conn_step(tx, st);
}

int sqlite_secrets(struct tx *tx, struct arena *a, struct str kind, struct str id, int64_t limit, struct doc **ret_docs,
                   size_t *ret_count)
{
	sqlite3_stmt *st = conn_statement(tx, ST_DOC_SECRETS);
	struct doc *docs = NULL;
	size_t count = 0, room = 0;
	int r;
	tx_count_read(tx);
	if (!st)
		return -EIO;
	bind_str(st, 1, kind);
	bind_str(st, 2, id);
	sqlite3_bind_int64(st, 3, limit);
	while ((r = conn_step(tx, st)) > 0) {
		ARENA_FIT(a, docs, count, room);
		docs[count++] = (struct doc){.kind = arena_dup(a, column_str(st, 0)),
		                             .id = arena_dup(a, column_str(st, 1)),
		                             .secret = arena_dup(a, column_str(st, 2))};
	}
	if (r < 0)
		return -EIO;
	*ret_docs = docs;
	*ret_count = count;
	return 0;
}

int sqlite_secret_replace(struct tx *tx, const struct doc *d, struct str secret)
{
	assert(tx->in_write);
	memo_drop(tx, d->kind, d->id);
	sqlite3_stmt *st = conn_statement(tx, ST_DOC_SECRET_REPLACE);
	if (!st)
		return -EIO;
	bind_str(st, 1, d->kind);
	bind_str(st, 2, d->id);
	bind_str(st, 3, d->secret);
	bind_str(st, 4, secret);
	return conn_step(tx, st);
}

int sqlite_delete(struct tx *tx, const char *kind, struct str id)
{
	struct doc_place place;
	assert(tx->in_write);
	memo_drop(tx, str_of(kind), id);
	struct arena *a = arena_new();
	int r = doc_place(tx, a, str_of(kind), id, &place);
	sqlite3_stmt *st = r == 0 ? conn_statement(tx, ST_DOC_DELETE) : NULL;
	if (r == 0 && !st)
		r = -EIO;
	if (r == 0) {
		bind_z(st, 1, kind);
		bind_str(st, 2, id);
		r = conn_step(tx, st);
	}
	if (r == 0)
		r = counts_subtract(tx, str_of(kind), place.parent, place.seq);
	arena_free(a);
	return r;
}

int sqlite_delete_list(struct tx *tx, const char *kind, struct str parent)
{
	assert(tx->in_write);
	memo_drop_list(tx, str_of(kind), parent);
	sqlite3_stmt *st = conn_statement(tx, ST_DOCS_DELETE);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, parent);
	int r = conn_step(tx, st);
	return r < 0 ? r : counts_delete(tx, str_of(kind), parent);
}

int sqlite_move(struct tx *tx, const struct doc *d)
{
	struct doc_place place;
	int64_t seq = 0;
	assert(tx->in_write);
	memo_drop(tx, d->kind, d->id);
	struct arena *a = arena_new();
	int r = doc_place(tx, a, d->kind, d->id, &place);
	if (r == 0 && d->rev && d->rev != place.rev)
		r = -ESTALE;
	if (r == 0)
		r = counts_next(tx, d->kind, d->parent, &seq);
	sqlite3_stmt *st = r == 0 ? conn_statement(tx, ST_DOC_MOVE) : NULL;
	if (r == 0 && !st)
		r = -EIO;
	if (r == 0) {
		bind_str(st, 1, d->kind);
		bind_str(st, 2, d->id);
		bind_str(st, 3, d->parent);
		sqlite3_bind_int64(st, 4, seq);
		bind_str_or_null(st, 5, d->name);
		bind_str(st, 6, d->body);
		sqlite3_bind_int64(st, 7, doc_sum(d->kind, d->id, d->body));
		r = conn_step(tx, st);
	}
	if (r == 0)
		r = counts_add(tx, d->kind, d->parent, seq);
	if (r == 0)
		r = counts_subtract(tx, d->kind, place.parent, place.seq);
	arena_free(a);
	return r;
}
