/* Events, each chained to the one before it: its hash covers that one's hash and all of its own fields, so that an
 * event that was changed or taken out of the middle shows in store_check(). */
#include "store/sqlite.h"

#include "base/buf.h"
#include "store/seal.h"

#include <assert.h>
#include <errno.h>

static void add_number(struct buf *b, uint64_t v)
{
	char bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (char)(v >> (56 - 8 * i));
	buf_add(b, bytes, sizeof bytes);
}

void event_hash(const unsigned char prev[32], const struct event_row *row, unsigned char ret_hash[32])
{
	const struct event *e = &row->event;
	const struct str fields[] = {e->id, e->org_id, e->group_id, e->type, e->body};
	struct buf b = {0};
	buf_add(&b, prev, 32);
	add_number(&b, (uint64_t)row->seq);
	add_number(&b, (uint64_t)e->created_ms);
	/* Lengths, so that no two rows have the same bytes. */
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		add_number(&b, fields[i].n);
		buf_str(&b, fields[i]);
	}
	sha256(buf_view(&b), ret_hash);
	buf_free(&b);
}

int tx_event_add(struct tx *tx, const struct event *e)
{
	assert(tx->in_write);
	unsigned char prev[32] = {0}, hash[32];
	struct event_row row = {.seq = 1, .event = *e};
	sqlite3_stmt *last = conn_statement(tx, ST_EVENT_LAST), *st = conn_statement(tx, ST_EVENT_ADD);
	if (!last || !st)
		return -EIO;
	int r = conn_step(tx, last);
	if (r < 0)
		return -EIO;
	if (r > 0) {
		struct str h = column_str(last, 1);
		row.seq = sqlite3_column_int64(last, 0) + 1;
		if (h.n == sizeof prev)
			memcpy(prev, h.p, sizeof prev);
		sqlite3_reset(last);
	}
	event_hash(prev, &row, hash);
	sqlite3_bind_int64(st, 1, row.seq);
	bind_str(st, 2, e->id);
	bind_str(st, 3, e->org_id);
	bind_str(st, 4, e->group_id);
	bind_str(st, 5, e->type);
	sqlite3_bind_int64(st, 6, e->created_ms);
	bind_str(st, 7, e->body);
	sqlite3_bind_blob(st, 8, prev, sizeof prev, SQLITE_STATIC);
	sqlite3_bind_blob(st, 9, hash, sizeof hash, SQLITE_STATIC);
	return conn_step(tx, st);
}
