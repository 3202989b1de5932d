/* How many documents a list has, and where the next one goes.
 *
 * Documents that a batch adds to the end of a list get consecutive positions. The batch remembers where they begin and
 * end, and writes the list's counts once for all of them, before anything reads counts and before the commit. */
#include "store/sqlite/sqlite.h"

#include <assert.h>
#include <errno.h>

static struct str growth_kind(const struct list_growth *g)
{
	return (struct str){g->key, g->kind_n};
}

static struct str growth_parent(const struct list_growth *g)
{
	return (struct str){g->key + g->kind_n, g->parent_n};
}

/* Steps a statement whose first two parameters name a list; `numbers` are the others, if any. */
static int list_step(struct tx *tx, enum statement which, struct str kind, struct str parent, const int64_t numbers[3])
{
	sqlite3_stmt *st = conn_statement(tx, which);
	if (!st)
		return -EIO;
	bind_str(st, 1, kind);
	bind_str(st, 2, parent);
	for (int i = 3; numbers && i <= sqlite3_bind_parameter_count(st); i++)
		sqlite3_bind_int64(st, i, numbers[i - 3]);
	return conn_step(tx, st);
}

/* Adds the documents at positions `first` to `next` - 1 to the list's counts. */
static int list_grow(struct tx *tx, struct str kind, struct str parent, int64_t first, int64_t next)
{
	int64_t head_end = next < BLOCK_SIZE ? next : BLOCK_SIZE;
	int64_t rest = first > head_end ? first : head_end; /* positions from here on are counted in blocks */
	int64_t head = first < head_end ? head_end - first : 0;
	int r = list_step(tx, ST_LIST_ADD, kind, parent, (int64_t[]){next, next - first, head});
	for (int level = 0; r == 0 && level < BLOCK_LEVELS; level++) {
		int bits = BLOCK_BITS * (level + 1);
		for (int64_t seq = rest, end; r == 0 && seq < next; seq = end) {
			end = ((seq >> bits) + 1) << bits;
			if (end > next)
				end = next;
			r = list_step(tx, ST_BLOCK_ADD, kind, parent, (int64_t[]){level, seq >> bits, end - seq});
		}
	}
	return r;
}

static struct list_growth *growth_find(const struct tx *tx, struct str kind, struct str parent)
{
	struct sqlite_writer *w = tx->writing;
	for (unsigned i = 0; i < w->growth_count; i++)
		if (str_eq(growth_parent(&w->growths[i]), parent) && str_eq(growth_kind(&w->growths[i]), kind))
			return &w->growths[i];
	return NULL;
}

int counts_flush(struct tx *tx)
{
	struct sqlite_writer *w = tx->writing;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < w->growth_count; i++) {
		const struct list_growth *g = &w->growths[i];
		r = list_grow(tx, growth_kind(g), growth_parent(g), g->first, g->next);
	}
	w->growth_count = 0;
	return r;
}

void counts_forget(struct tx *tx)
{
	tx->writing->growth_count = 0;
}

int counts_next(struct tx *tx, struct str kind, struct str parent, int64_t *ret_seq)
{
	const struct list_growth *g = growth_find(tx, kind, parent);
	struct list_row row;
	if (g) {
		*ret_seq = g->next;
		return 0;
	}
	int r = list_read(tx, kind, parent, &row);
	if (r == 0)
		*ret_seq = row.next_seq;
	return r;
}

int counts_add(struct tx *tx, struct str kind, struct str parent, int64_t seq)
{
	struct sqlite_writer *w = tx->writing;
	struct list_growth *g = growth_find(tx, kind, parent);
	if (g) {
		assert(g->next == seq);
		g->next++;
		return 0;
	}
	if (kind.n + parent.n > sizeof g->key)
		return list_grow(tx, kind, parent, seq, seq + 1);
	int r = w->growth_count == LIST_GROWTHS_MAX ? counts_flush(tx) : 0;
	if (r < 0)
		return r;
	g = &w->growths[w->growth_count++];
	*g = (struct list_growth){.kind_n = kind.n, .parent_n = parent.n, .first = seq, .next = seq + 1};
	memcpy(g->key, kind.p, kind.n);
	if (parent.n)
		memcpy(g->key + kind.n, parent.p, parent.n);
	return 0;
}

/* Deletes rows whose count becomes 0, so that an emptied part of a list does not slow down later walks. */
int counts_subtract(struct tx *tx, struct str kind, struct str parent, int64_t seq)
{
	bool head = seq < BLOCK_SIZE;
	int r = counts_flush(tx);
	if (r == 0)
		r = list_step(tx, ST_LIST_SUBTRACT, kind, parent, (int64_t[]){head, 0, 0});
	if (r == 0)
		r = list_step(tx, ST_LIST_CLEAR, kind, parent, (int64_t[]){0, 0, 0});
	for (int level = 0; r == 0 && !head && level < BLOCK_LEVELS; level++) {
		const int64_t numbers[] = {level, seq >> (BLOCK_BITS * (level + 1)), 0};
		r = list_step(tx, ST_BLOCK_SUBTRACT, kind, parent, numbers);
		if (r == 0)
			r = list_step(tx, ST_BLOCK_CLEAR, kind, parent, numbers);
	}
	return r;
}

/* Of a list whose documents are all deleted. */
int counts_delete(struct tx *tx, struct str kind, struct str parent)
{
	int r = counts_flush(tx);
	if (r == 0)
		r = list_step(tx, ST_LIST_DELETE, kind, parent, NULL);
	return r < 0 ? r : list_step(tx, ST_BLOCKS_DELETE, kind, parent, NULL);
}

int list_read(struct tx *tx, struct str kind, struct str parent, struct list_row *ret_row)
{
	int r = tx->writing && tx->writing->growth_count ? counts_flush(tx) : 0;
	sqlite3_stmt *st = r < 0 ? NULL : conn_statement(tx, ST_LIST_GET);
	if (!st)
		return -EIO;
	bind_str(st, 1, kind);
	bind_str(st, 2, parent);
	r = conn_step(tx, st);
	if (r < 0)
		return -EIO;
	*ret_row = (struct list_row){0};
	if (r > 0) {
		*ret_row = (struct list_row){sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
		                             sqlite3_column_int64(st, 2)};
		sqlite3_reset(st);
	}
	return 0;
}
