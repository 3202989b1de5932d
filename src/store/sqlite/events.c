/* Events, each chained to the one before it (chain.c).
 *
 * The lists of an organization and of a project are read by position: in each list that shows it, an event has the
 * number after its predecessor's. Old events are deleted from the front only, so positions have no gaps, a count is a
 * subtraction, and a page is found by its number, however long the list. Filters by type and by time have an index
 * each, which holds everything else that they may ask for: they cost what they find. Only filters by cluster alone, or
 * by excluded types, read the whole list. */
#include "store/sqlite/sqlite.h"

#include "store/event_filter.h"

#include <assert.h>
#include <errno.h>

#define NO_TEXTS STR("[]")

int event_chain_read(struct tx *tx, struct event_chain *ret_chain)
{
	sqlite3_stmt *st = conn_statement(tx, ST_META_GET);
	if (!st)
		return -EIO;
	bind_z(st, 1, META_CHAIN);
	int r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? -EIO : -ENOENT;
	r = event_chain_parse(column_str(st, 0), ret_chain) ? 0 : -EBADMSG;
	sqlite3_reset(st);
	return r;
}

static int chain_write(struct tx *tx, const struct event_chain *chain)
{
	char text[EVENT_CHAIN_TEXT];
	return tx_meta_put(tx, META_CHAIN, event_chain_format(chain, text));
}

/* Reads the end of the chain that the next event continues: once per batch; written before the commit. */
static int chain_continue(struct tx *tx)
{
	struct sqlite_writer *w = tx->writing;
	if (w->chain_known)
		return 0;
	int r = event_chain_read(tx, &w->chain);
	if (r == -ENOENT) {
		w->chain = (struct event_chain){.first = 1};
		r = 0;
	}
	w->chain_known = r == 0;
	return r == -EBADMSG ? -EIO : r;
}

int event_chain_flush(struct tx *tx)
{
	return tx->writing->chain_known ? chain_write(tx, &tx->writing->chain) : 0;
}

/* The position after the list's last. Most events of a batch belong to one organization, so its position is
 * remembered. */
static int org_position(struct tx *tx, const struct event *e, int64_t *ret_pos)
{
	struct sqlite_writer *w = tx->writing;
	if (w->last_org[0] && str_is(e->org_id, w->last_org)) {
		*ret_pos = w->last_org_pos + 1;
		return 0;
	}
	sqlite3_stmt *st = conn_statement(tx, ST_EVENT_LAST_ORG);
	if (!st)
		return -EIO;
	bind_str(st, 1, e->org_id);
	if (conn_step(tx, st) <= 0)
		return -EIO;
	*ret_pos = sqlite3_column_int64(st, 0) + 1;
	sqlite3_reset(st);
	return 0;
}

static void org_position_taken(struct sqlite_writer *w, const struct event *e, int64_t pos)
{
	w->last_org[0] = '\0';
	if (e->org_id.n != ID_LEN)
		return;
	memcpy(w->last_org, e->org_id.p, ID_LEN);
	w->last_org_pos = pos;
}

/* The commit writes the ends, whose signature is then of the key in use. */
int sqlite_events_sign(struct tx *tx)
{
	assert(tx->in_write);
	return chain_continue(tx);
}

int sqlite_event_add(struct tx *tx, const struct event *e)
{
	assert(tx->in_write);
	struct event_chain *chain = &tx->writing->chain;
	int64_t org_pos = 0;
	int r = chain_continue(tx);
	if (r == 0 && e->for_org)
		r = org_position(tx, e, &org_pos);
	sqlite3_stmt *st = conn_statement(tx, ST_EVENT_ADD);
	if (r < 0 || !st)
		return -EIO;
	struct event_row row = {.seq = chain->last + 1, .event = *e};
	unsigned char hash[32];
	event_hash(chain->head, &row, hash);
	sqlite3_bind_int64(st, 1, row.seq);
	bind_str(st, 2, e->id);
	bind_str(st, 3, e->org_id);
	bind_str(st, 4, e->group_id);
	bind_str(st, 5, e->type);
	sqlite3_bind_int64(st, 6, e->created_ms);
	bind_str(st, 7, e->body);
	sqlite3_bind_blob(st, 8, chain->head, sizeof chain->head, SQLITE_STATIC);
	sqlite3_bind_blob(st, 9, hash, sizeof hash, SQLITE_STATIC);
	bind_str(st, 10, e->cluster);
	bind_str(st, 11, e->raw);
	if (e->for_org)
		sqlite3_bind_int64(st, 12, org_pos);
	else
		sqlite3_bind_null(st, 12);
	sqlite3_bind_int(st, 13, e->for_group);
	r = conn_step(tx, st);
	if (r < 0)
		return r;
	if (e->for_org)
		org_position_taken(tx->writing, e, org_pos);
	chain->last = row.seq;
	memcpy(chain->head, hash, sizeof hash);
	tx->events = true;
	return 0;
}

static void event_read(struct arena *a, sqlite3_stmt *st, struct event *ret_event)
{
	*ret_event = (struct event){
	        .id = arena_dup(a, column_str(st, 0)),
	        .org_id = arena_dup(a, column_str(st, 1)),
	        .group_id = arena_dup(a, column_str(st, 2)),
	        .type = arena_dup(a, column_str(st, 3)),
	        .created_ms = sqlite3_column_int64(st, 4),
	        .body = arena_dup(a, column_str(st, 5)),
	        .cluster = arena_dup(a, column_str(st, 6)),
	        .raw = arena_dup(a, column_str(st, 7)),
	        .for_org = sqlite3_column_type(st, 8) != SQLITE_NULL,
	        .for_group = sqlite3_column_type(st, 9) != SQLITE_NULL,
	        .seq = sqlite3_column_int64(st, 10),
	};
}

int sqlite_event_get(struct tx *tx, struct arena *a, struct str id, struct event *ret_event)
{
	sqlite3_stmt *st = conn_statement(tx, ST_EVENT_GET);
	if (!st)
		return -EIO;
	tx_count_read(tx);
	bind_str(st, 1, id);
	int r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? -EIO : -ENOENT;
	event_read(a, st, ret_event);
	sqlite3_reset(st);
	return 0;
}

static int ends(struct tx *tx, const struct event_filter *f, bool times, int64_t *ret_first, int64_t *ret_last)
{
	static const enum statement which[2][2] = {{ST_EVENT_POSITIONS_GROUP, ST_EVENT_POSITIONS_ORG},
	                                           {ST_EVENT_TIMES_GROUP, ST_EVENT_TIMES_ORG}};
	sqlite3_stmt *st = conn_statement(tx, which[times][f->in_org]);
	if (!st)
		return -EIO;
	bind_str(st, 1, f->scope);
	if (conn_step(tx, st) <= 0)
		return -EIO;
	bool none = sqlite3_column_type(st, 0) == SQLITE_NULL;
	*ret_first = sqlite3_column_int64(st, 0);
	*ret_last = sqlite3_column_int64(st, 1);
	sqlite3_reset(st);
	return none ? -ENOENT : 0;
}

static sqlite3_stmt *filtered(struct tx *tx, const struct event_filter *f, bool count)
{
	static const enum statement which[2][2][2] = {
	        {{ST_EVENT_LIST_GROUP, ST_EVENT_LIST_ORG}, {ST_EVENT_TYPES_LIST_GROUP, ST_EVENT_TYPES_LIST_ORG}},
	        {{ST_EVENT_COUNT_GROUP, ST_EVENT_COUNT_ORG}, {ST_EVENT_TYPES_COUNT_GROUP, ST_EVENT_TYPES_COUNT_ORG}},
	};
	sqlite3_stmt *st = conn_statement(tx, which[count][f->types.n > 0][f->in_org]);
	if (!st)
		return NULL;
	bind_str(st, 1, f->scope);
	sqlite3_bind_int64(st, 2, f->has_min ? f->min_ms : INT64_MIN);
	sqlite3_bind_int64(st, 3, f->has_max ? f->max_ms : INT64_MAX);
	bind_str(st, 4, f->excluded.n ? f->excluded : NO_TEXTS);
	bind_str(st, 5, f->clusters.n ? f->clusters : NO_TEXTS);
	if (f->types.n)
		bind_str(st, 8, f->types);
	return st;
}

int sqlite_event_count(struct tx *tx, const struct event_filter *f, int64_t *ret_count)
{
	int64_t first, last;
	bool none;
	tx_count_read(tx);
	int r = event_filter_positions(tx, f, ends, &none, &first, &last);
	if (r < 0)
		return r;
	if (none) {
		*ret_count = last - first + 1;
		return 0;
	}
	sqlite3_stmt *st = filtered(tx, f, true);
	if (!st || conn_step(tx, st) <= 0)
		return -EIO;
	*ret_count = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return 0;
}

static int events_read(struct tx *tx, struct arena *a, sqlite3_stmt *st, int64_t limit, struct event **ret_events,
                       size_t *ret_count)
{
	struct event *events = arena_new_array(a, struct event, (size_t)limit + 1);
	size_t count = 0;
	int r;
	while ((r = conn_step(tx, st)) > 0)
		event_read(a, st, &events[count++]);
	if (r < 0)
		return -EIO;
	*ret_events = events;
	*ret_count = count;
	return 0;
}

int sqlite_event_list(struct tx *tx, struct arena *a, const struct event_filter *f, int64_t offset, int64_t limit,
                      struct event **ret_events, size_t *ret_count)
{
	int64_t first, last;
	bool none;
	sqlite3_stmt *st;
	tx_count_read(tx);
	int r = event_filter_positions(tx, f, ends, &none, &first, &last);
	if (r < 0)
		return r;
	if (none) {
		st = conn_statement(tx, f->in_org ? ST_EVENT_PAGE_ORG : ST_EVENT_PAGE_GROUP);
		if (!st)
			return -EIO;
		bind_str(st, 1, f->scope);
		sqlite3_bind_int64(st, 2, offset < last ? last - offset : 0);
		sqlite3_bind_int64(st, 3, limit);
	} else {
		st = filtered(tx, f, false);
		if (!st)
			return -EIO;
		sqlite3_bind_int64(st, 6, limit);
		sqlite3_bind_int64(st, 7, offset);
	}
	return events_read(tx, a, st, limit, ret_events, ret_count);
}

int sqlite_event_since(struct tx *tx, struct arena *a, int64_t seq, int64_t limit, struct event **ret_events,
                       size_t *ret_count)
{
	sqlite3_stmt *st = conn_statement(tx, ST_EVENT_SINCE);
	if (!st)
		return -EIO;
	tx_count_read(tx);
	sqlite3_bind_int64(st, 1, seq);
	sqlite3_bind_int64(st, 2, limit);
	return events_read(tx, a, st, limit, ret_events, ret_count);
}

int sqlite_event_newest(struct tx *tx, int64_t *ret_seq)
{
	sqlite3_stmt *st = conn_statement(tx, ST_EVENT_NEWEST);
	tx_count_read(tx);
	if (!st || conn_step(tx, st) <= 0)
		return -EIO;
	*ret_seq = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return 0;
}

/* Where the chain will begin: after the last event to delete. Only the first `limit` events are looked at, up to the
 * first one that is not old enough. */
static int prune_find(struct tx *tx, int64_t before_ms, int64_t limit, int64_t *ret_seq, unsigned char ret_hash[32])
{
	sqlite3_stmt *st = conn_statement(tx, ST_EVENT_OLDEST);
	if (!st)
		return -EIO;
	sqlite3_bind_int64(st, 1, limit);
	*ret_seq = 0;
	int r;
	while ((r = conn_step(tx, st)) > 0) {
		struct str hash = column_str(st, 2);
		if (sqlite3_column_int64(st, 1) >= before_ms || hash.n != 32)
			break;
		*ret_seq = sqlite3_column_int64(st, 0);
		memcpy(ret_hash, hash.p, 32);
	}
	sqlite3_reset(st);
	return r < 0 ? -EIO : 0;
}

int sqlite_events_prune(struct tx *tx, int64_t before_ms, int64_t limit, int64_t *ret_count)
{
	assert(tx->in_write);
	struct event_chain *chain = &tx->writing->chain;
	unsigned char before[32];
	int64_t seq = 0;
	int r = chain_continue(tx);
	if (r == 0)
		r = prune_find(tx, before_ms, limit, &seq, before);
	if (r < 0)
		return r;
	*ret_count = seq ? seq - chain->first + 1 : 0;
	if (!seq || chain->forged)
		return 0;
	sqlite3_stmt *st = conn_statement(tx, ST_EVENT_PRUNE);
	if (!st)
		return -EIO;
	sqlite3_bind_int64(st, 1, seq);
	r = conn_step(tx, st);
	if (r < 0)
		return r;
	memcpy(chain->before, before, sizeof before);
	chain->first = seq + 1;
	tx->writing->last_org[0] = '\0';
	return 0;
}
