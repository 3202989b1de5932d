/* Events. The ends of the chain are read once per batch, under its lock, and written once, with its commit: an event in
 * between costs no round trip. Lists are read by position, as in SQLite. */
#include "store/pg/pg.h"

#include "store/event_filter.h"

#include <assert.h>
#include <errno.h>

#define NO_TEXTS STR("[]")

int pg_chain_read(struct tx *tx, struct event_chain *ret_chain)
{
	struct pg_args args = {0};
	PGresult *result;
	pg_z(&args, META_CHAIN);
	int r = pg_exec(tx, PG_META_GET_ST, &args, &result);
	if (r < 0)
		return r;
	bool good = r > 0 && event_chain_parse(pg_column(result, 0, 0), ret_chain);
	PQclear(result);
	return r == 0 ? -ENOENT : good ? 0 : -EBADMSG;
}

/* Reads the end of the chain that the next event continues. */
static int chain_continue(struct tx *tx)
{
	struct pg *p = tx->pg;
	if (p->chain_known)
		return 0;
	int r = pg_chain_read(tx, &p->chain);
	if (r == -ENOENT)
		p->chain = (struct event_chain){.first = 1};
	else if (r < 0)
		return r == -EBADMSG ? -EIO : r;
	p->chain_before = p->chain;
	p->chain_known = p->known_before = true;
	p->changed_before = false;
	return 0;
}

#define TOGETHER 64
#define TOGETHER_BYTES (1 << 20)

static const uint32_t event_oids[PG_EVENT_COLUMNS] = {PG_OID_INT8, PG_OID_TEXT, PG_OID_TEXT,  PG_OID_TEXT,  PG_OID_TEXT,
                                                      PG_OID_INT8, PG_OID_TEXT, PG_OID_BYTEA, PG_OID_BYTEA, PG_OID_TEXT,
                                                      PG_OID_TEXT, PG_OID_INT8, PG_OID_INT8};

int pg_known_events(struct tx *tx)
{
	struct pg_known *k = &tx->pg->known;
	struct pg_args args = {0};
	if (!k->event_count)
		return 0;
	for (unsigned i = 0; i < PG_EVENT_COLUMNS; i++)
		pg_elements_arg(&args, &k->events[i], event_oids[i], k->event_count);
	int r = pg_defer(tx, PG_EVENTS_ADD_ST, &args);
	k->event_count = 0;
	for (unsigned i = 0; i < PG_EVENT_COLUMNS; i++)
		k->events[i].n = 0;
	return r;
}

/* Keeps an event, to be written together with others. */
static int event_later(struct tx *tx, const struct event_row *row, const unsigned char hash[32])
{
	struct pg *p = tx->pg;
	struct pg_known *k = &p->known;
	const struct event *e = &row->event;
	const int64_t numbers[] = {row->seq, e->created_ms, e->for_org, e->for_group};
	const struct str texts[] = {e->id, e->org_id, e->group_id, e->type, e->body, e->cluster, e->raw};
	static const unsigned number_at[] = {0, 5, 11, 12}, text_at[] = {1, 2, 3, 4, 6, 9, 10};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!pg_utf8(texts[i]))
			return -EINVAL;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		pg_elements_add_int(&k->events[number_at[i]], numbers[i]);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		pg_elements_add_str(&k->events[text_at[i]], texts[i]);
	pg_elements_add(&k->events[7], p->chain.head, sizeof p->chain.head);
	pg_elements_add(&k->events[8], hash, 32);
	k->event_count++;
	p->changed = true;
	bool full = k->event_count == TOGETHER || k->events[6].n + k->events[10].n > TOGETHER_BYTES;
	return full ? pg_known_events(tx) : 0;
}

static int event_now(struct tx *tx, const struct event_row *row, const unsigned char hash[32])
{
	struct pg *p = tx->pg;
	const struct event *e = &row->event;
	struct pg_args args = {0};
	pg_int(&args, row->seq);
	pg_str(&args, e->id);
	pg_str(&args, e->org_id);
	pg_str(&args, e->group_id);
	pg_str(&args, e->type);
	pg_int(&args, e->created_ms);
	pg_str(&args, e->body);
	pg_bytes(&args, p->chain.head, sizeof p->chain.head);
	pg_bytes(&args, hash, 32);
	pg_str(&args, e->cluster);
	pg_str(&args, e->raw);
	pg_int(&args, e->for_org);
	pg_int(&args, e->for_group);
	return pg_defer(tx, PG_EVENT_ADD_ST, &args);
}

/* The commit writes the ends, whose signature is then of the key in use. */
int pg_events_sign(struct tx *tx)
{
	assert(tx->in_write);
	int r = chain_continue(tx);
	if (r == 0)
		tx->pg->chain_changed = true;
	return r;
}

int pg_event_add(struct tx *tx, const struct event *e)
{
	assert(tx->in_write);
	struct pg *p = tx->pg;
	int r = chain_continue(tx);
	if (r < 0)
		return r;
	struct event_row row = {.seq = p->chain.last + 1, .event = *e};
	unsigned char hash[32];
	event_hash(p->chain.head, &row, hash);
	r = p->guessing ? event_later(tx, &row, hash) : event_now(tx, &row, hash);
	if (r < 0)
		return r;
	p->chain.last = row.seq;
	memcpy(p->chain.head, hash, sizeof hash);
	p->chain_changed = true;
	tx->events = true;
	return 0;
}

static void event_read(struct arena *a, const PGresult *r, int row, struct event *ret_event)
{
	*ret_event = (struct event){
	        .id = arena_dup(a, pg_column(r, row, 0)),
	        .org_id = arena_dup(a, pg_column(r, row, 1)),
	        .group_id = arena_dup(a, pg_column(r, row, 2)),
	        .type = arena_dup(a, pg_column(r, row, 3)),
	        .created_ms = pg_number(r, row, 4),
	        .body = arena_dup(a, pg_column(r, row, 5)),
	        .cluster = arena_dup(a, pg_column(r, row, 6)),
	        .raw = arena_dup(a, pg_column(r, row, 7)),
	        .for_org = !PQgetisnull(r, row, 8),
	        .for_group = !PQgetisnull(r, row, 9),
	        .seq = pg_number(r, row, 10),
	};
}

int pg_event_get(struct tx *tx, struct arena *a, struct str id, struct event *ret_event)
{
	struct pg_args args = {0};
	PGresult *result;
	tx_count_read(tx);
	pg_str(&args, id);
	int r = pg_known_events(tx);
	if (r == 0)
		r = pg_exec(tx, PG_EVENT_GET_ST, &args, &result);
	if (r < 0)
		return r;
	if (r > 0)
		event_read(a, result, 0, ret_event);
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

static int ends(struct tx *tx, const struct event_filter *f, bool times, int64_t *ret_first, int64_t *ret_last)
{
	static const enum pg_statement which[2][2] = {{PG_EVENT_POSITIONS_GROUP_ST, PG_EVENT_POSITIONS_ORG_ST},
	                                              {PG_EVENT_TIMES_GROUP_ST, PG_EVENT_TIMES_ORG_ST}};
	struct pg_args args = {0};
	PGresult *result;
	pg_str(&args, f->scope);
	int r = pg_exec(tx, which[times][f->in_org], &args, &result);
	if (r < 0)
		return r;
	bool none = r == 0 || PQgetisnull(result, 0, 0);
	if (!none) {
		*ret_first = pg_number(result, 0, 0);
		*ret_last = pg_number(result, 0, 1);
	}
	PQclear(result);
	return none ? -ENOENT : 0;
}

static enum pg_statement filtered(const struct event_filter *f, bool count, struct pg_args *args)
{
	static const enum pg_statement which[2][2][2] = {
	        {{PG_EVENT_LIST_GROUP_ST, PG_EVENT_LIST_ORG_ST},
	         {PG_EVENT_TYPES_LIST_GROUP_ST, PG_EVENT_TYPES_LIST_ORG_ST}},
	        {{PG_EVENT_COUNT_GROUP_ST, PG_EVENT_COUNT_ORG_ST},
	         {PG_EVENT_TYPES_COUNT_GROUP_ST, PG_EVENT_TYPES_COUNT_ORG_ST}},
	};
	pg_str(args, f->scope);
	pg_int(args, f->has_min ? f->min_ms : INT64_MIN);
	pg_int(args, f->has_max ? f->max_ms : INT64_MAX);
	pg_str(args, f->excluded.n ? f->excluded : NO_TEXTS);
	pg_str(args, f->clusters.n ? f->clusters : NO_TEXTS);
	if (f->types.n)
		pg_str(args, f->types);
	return which[count][f->types.n > 0][f->in_org];
}

int pg_event_count(struct tx *tx, const struct event_filter *f, int64_t *ret_count)
{
	int64_t first, last;
	bool none;
	PGresult *result;
	struct pg_args args = {0};
	tx_count_read(tx);
	int r = pg_known_events(tx);
	if (r == 0)
		r = event_filter_positions(tx, f, ends, &none, &first, &last);
	if (r < 0)
		return r;
	if (none) {
		*ret_count = last - first + 1;
		return 0;
	}
	enum pg_statement st = filtered(f, true, &args);
	r = pg_exec(tx, st, &args, &result);
	if (r < 0)
		return r;
	*ret_count = r > 0 ? pg_number(result, 0, 0) : 0;
	PQclear(result);
	return 0;
}

static int events_read(struct tx *tx, struct arena *a, enum pg_statement st, const struct pg_args *args,
                       struct event **ret_events, size_t *ret_count)
{
	PGresult *result;
	int r = pg_exec(tx, st, args, &result);
	if (r < 0)
		return r;
	struct event *events = arena_new_array(a, struct event, (size_t)r + 1);
	for (int i = 0; i < r; i++)
		event_read(a, result, i, &events[i]);
	PQclear(result);
	*ret_events = events;
	*ret_count = (size_t)r;
	return 0;
}

int pg_event_list(struct tx *tx, struct arena *a, const struct event_filter *f, int64_t offset, int64_t limit,
                  struct event **ret_events, size_t *ret_count)
{
	int64_t first, last = 0;
	bool none;
	struct pg_args args = {0};
	tx_count_read(tx);
	int r = pg_known_events(tx);
	if (r == 0)
		r = event_filter_positions(tx, f, ends, &none, &first, &last);
	if (r < 0)
		return r;
	if (!none) {
		enum pg_statement st = filtered(f, false, &args);
		pg_int(&args, limit);
		pg_int(&args, offset);
		return events_read(tx, a, st, &args, ret_events, ret_count);
	}
	pg_str(&args, f->scope);
	pg_int(&args, offset < last ? last - offset : 0);
	pg_int(&args, limit);
	return events_read(tx, a, f->in_org ? PG_EVENT_PAGE_ORG_ST : PG_EVENT_PAGE_GROUP_ST, &args, ret_events,
	                   ret_count);
}

int pg_event_since(struct tx *tx, struct arena *a, int64_t seq, int64_t limit, struct event **ret_events,
                   size_t *ret_count)
{
	struct pg_args args = {0};
	tx_count_read(tx);
	int r = pg_known_events(tx);
	pg_int(&args, seq);
	pg_int(&args, limit);
	return r < 0 ? r : events_read(tx, a, PG_EVENT_SINCE_ST, &args, ret_events, ret_count);
}

int pg_event_newest(struct tx *tx, int64_t *ret_seq)
{
	PGresult *result;
	tx_count_read(tx);
	int r = pg_known_events(tx);
	if (r == 0)
		r = pg_exec(tx, PG_EVENT_NEWEST_ST, NULL, &result);
	if (r < 0)
		return r;
	*ret_seq = r > 0 ? pg_number(result, 0, 0) : 0;
	PQclear(result);
	return 0;
}

/* Where the chain will begin: after the last event to delete. Only the first `limit` events are looked at, up to the
 * first one that is not old enough. */
static int prune_find(struct tx *tx, int64_t before_ms, int64_t limit, int64_t *ret_seq, unsigned char ret_hash[32])
{
	struct pg_args args = {0};
	PGresult *result;
	pg_int(&args, limit);
	int r = pg_exec(tx, PG_EVENT_OLDEST_ST, &args, &result);
	*ret_seq = 0;
	for (int i = 0; i < r; i++) {
		struct str hash = pg_column(result, i, 2);
		if (pg_number(result, i, 1) >= before_ms || hash.n != 32)
			break;
		*ret_seq = pg_number(result, i, 0);
		memcpy(ret_hash, hash.p, 32);
	}
	if (r >= 0)
		PQclear(result);
	return r < 0 ? r : 0;
}

int pg_events_prune(struct tx *tx, int64_t before_ms, int64_t limit, int64_t *ret_count)
{
	assert(tx->in_write);
	struct pg *p = tx->pg;
	struct pg_args args = {0};
	unsigned char hash[32];
	int64_t seq = 0;
	int r = pg_known_events(tx);
	if (r == 0)
		r = chain_continue(tx);
	if (r == 0)
		r = prune_find(tx, before_ms, limit, &seq, hash);
	if (r < 0)
		return r;
	*ret_count = seq ? seq - p->chain.first + 1 : 0;
	if (!seq || p->chain.forged)
		return 0;
	pg_int(&args, seq);
	r = pg_defer(tx, PG_EVENT_PRUNE_ST, &args);
	if (r < 0)
		return r;
	memcpy(p->chain.before, hash, sizeof hash);
	p->chain.first = seq + 1;
	p->chain_changed = true;
	return 0;
}
