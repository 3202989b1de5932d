/* The page of a list that a reader shows again and again, as to all who look at the same list: the rows of one that was
 * asked for twice are kept until the store changes. SQLite keeps the pages of its file for as long, and by the same
 * number; but to find the rows in them and to take them apart is most of what a long list costs. A page that is read
 * once, as in a walk through a long list, costs nothing more. */
#include "store/sqlite/sqlite.h"

#include "base/buf.h"

#include <stdlib.h>

#define KEY_MAX 128
#define ROWS_MAX 65536 /* larger ones are not worth the memory */

struct row {
	size_t id_n, body_n; /* both follow */
};

struct page {
	uint64_t version; /* of the store's content: sqlite_snapshot() */
	int64_t offset, limit;
	size_t kind_n, key_n;
	char key[KEY_MAX]; /* kind, then parent */
	bool too_long, whole;
	struct buf rows;
};

/* SQLite counts for each connection how often it found that the content had changed. The count is that of the
 * transaction once it has read. */
uint64_t sqlite_snapshot(const struct tx *tx)
{
	unsigned version;
	bool known = tx->reading && tx->lingers && sqlite3_txn_state(tx->db, "main") == SQLITE_TXN_READ &&
	             sqlite3_file_control(tx->db, "main", SQLITE_FCNTL_DATA_VERSION, &version) == SQLITE_OK;
	return known ? (uint64_t)version + 1 : 0;
}

static bool page_is(const struct page *p, struct str kind, struct str parent, int64_t offset, int64_t limit)
{
	return p->offset == offset && p->limit == limit && p->kind_n == kind.n && p->key_n == kind.n + parent.n &&
	       memcmp(p->key, kind.p, kind.n) == 0 && memcmp(p->key + kind.n, parent.p, parent.n) == 0;
}

static void page_note(struct page *p, struct str kind, struct str parent, int64_t offset, int64_t limit)
{
	p->offset = offset;
	p->limit = limit;
	p->kind_n = kind.n;
	p->key_n = kind.n + parent.n;
	memcpy(p->key, kind.p, kind.n);
	memcpy(p->key + kind.n, parent.p, parent.n);
	p->too_long = p->whole = false;
}

enum page_state page_ask(struct tx *tx, struct str kind, struct str parent, int64_t offset, int64_t limit)
{
	struct page *p = tx->page;
	uint64_t version = sqlite_snapshot(tx);
	if (!version || !kind.n || !parent.n || kind.n + parent.n > KEY_MAX)
		return PAGE_OTHER;
	if (!p)
		p = tx->page = must_calloc(1, sizeof *p);
	if (p->version != version || !page_is(p, kind, parent, offset, limit)) {
		page_note(p, kind, parent, offset, limit);
		p->version = version;
		return PAGE_OTHER;
	}
	p->rows.n = p->whole ? p->rows.n : 0;
	return p->whole ? PAGE_KEPT : p->too_long ? PAGE_OTHER : PAGE_AGAIN;
}

void page_add(struct tx *tx, const struct doc *d)
{
	struct page *p = tx->page;
	struct row row = {d->id.n, d->body.n};
	p->too_long = p->too_long || d->id.n + d->body.n > ROWS_MAX ||
	              p->rows.n + sizeof row + d->id.n + d->body.n > ROWS_MAX;
	if (p->too_long)
		return;
	buf_add(&p->rows, &row, sizeof row);
	buf_str(&p->rows, d->id);
	buf_str(&p->rows, d->body);
}

void page_end(struct tx *tx, bool whole)
{
	tx->page->whole = whole && !tx->page->too_long;
}

int page_show(struct tx *tx, const char *kind, struct str parent, doc_show *show, void *ctx)
{
	const struct buf *rows = &tx->page->rows;
	struct doc d = {.kind = str_of(kind), .parent = parent};
	struct row row;
	int result = 0;
	for (size_t at = 0; result == 0 && at < rows->n; at += sizeof row + row.id_n + row.body_n) {
		memcpy(&row, rows->p + at, sizeof row);
		d.id = (struct str){rows->p + at + sizeof row, row.id_n};
		d.body = (struct str){d.id.p + row.id_n, row.body_n};
		result = show(ctx, &d);
	}
	return result;
}

void page_free(struct tx *tx)
{
	if (tx->page)
		buf_free(&tx->page->rows);
	free(tx->page);
	tx->page = NULL;
}
