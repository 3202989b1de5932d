/* SQLite's part of the slow check. Each table and each index is walked in its own order, from where the last slice
 * ended; so every page in use is read, and its structure is checked as in any query. An index walk selects a column
 * that is not in the index: so the row must exist. Bodies are compared with their checksums, and events with their
 * hashes, because an intact page may still hold other bytes than were written. */
#include "store/check.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#define SLICE_ROWS 256
#define SLICE TEXT_OF(SLICE_ROWS)
#define TEXT_OF(x) TEXT_OF_(x)
#define TEXT_OF_(x) #x

/* The columns of the walk's order come first: T is a text, N a number. */
struct walk {
	const char *name, *keys, *sql;
	void (*row)(struct tx *tx, struct watch *w, sqlite3_stmt *st);
};

static void row_doc(struct tx *tx, struct watch *w, sqlite3_stmt *st)
{
	struct str kind = column_str(st, 1), id = column_str(st, 2), body = column_str(st, 3);
	bool summed = sqlite3_column_type(st, 4) != SQLITE_NULL;
	if (summed && sqlite3_column_int64(st, 4) == doc_sum(kind, id, body))
		return;
	json_t *json = summed ? NULL : json_loadb(body.p ? body.p : "", body.n, 0, NULL);
	if (!json_is_object(json))
		store_damaged(tx->store, "document %.*s %.*s: its content is not what was written", STR_ARG(kind),
		              STR_ARG(id));
	json_decref(json);
}

/* Old events may be deleted between two slices: so only the event that directly follows the last one is compared. */
static void row_event(struct tx *tx, struct watch *w, sqlite3_stmt *st)
{
	struct event_row row = event_row_of(st);
	struct str prev = column_str(st, 7), stored = column_str(st, 8);
	unsigned char hash[32] = {0};
	bool whole = prev.n == sizeof hash && stored.n == sizeof hash;
	if (whole) {
		memcpy(hash, prev.p, sizeof hash);
		event_hash(hash, &row, hash);
		whole = memcmp(hash, stored.p, sizeof hash) == 0 &&
		        (row.seq != w->seq + 1 || w->seq == 0 || memcmp(w->hash, prev.p, sizeof hash) == 0);
	}
	if (!whole)
		store_damaged(tx->store, "event %lld: its content is not what was written", (long long)row.seq);
	w->seq = row.seq;
	memcpy(w->hash, stored.n == sizeof w->hash ? stored.p : (const char *)hash, sizeof w->hash);
}

#define BY(columns, values) "(" columns ") > (" values ") ORDER BY " columns " LIMIT " SLICE
#define EVENTS_BY(index, scope, columns, values)                                              \
	{                                                                                     \
		index, "TN",                                                                  \
		        "SELECT " columns ", id FROM event INDEXED BY " index " WHERE " scope \
		        " AND " BY(columns, values),                                          \
		        NULL                                                                  \
	}

/* clang-format off */
static const struct walk walks[] = {
	{"doc", "N", "SELECT rowid, kind, id, body, sum, secret FROM doc NOT INDEXED"
	 " WHERE rowid > ?1 ORDER BY rowid LIMIT " SLICE,
	 row_doc},
	{"doc_id", "TT", "SELECT kind, id, rev FROM doc INDEXED BY doc_id WHERE " BY("kind, id", "?1, ?2"), NULL},
	{"doc_order", "TTN", "SELECT kind, parent, seq, rev FROM doc INDEXED BY doc_order WHERE "
	 BY("kind, parent, seq", "?1, ?2, ?3"), NULL},
	{"doc_name", "TTT", "SELECT kind, parent, name, rev FROM doc INDEXED BY doc_name WHERE name IS NOT NULL AND "
	 BY("kind, parent, name", "?1, ?2, ?3"), NULL},
	{"list", "TT", "SELECT kind, parent, count FROM list WHERE " BY("kind, parent", "?1, ?2"), NULL},
	{"list_block", "TTNN", "SELECT kind, parent, level, block, count FROM list_block WHERE "
	 BY("kind, parent, level, block", "?1, ?2, ?3, ?4"), NULL},
	{"ref", "TT", "SELECT kind, value, id FROM ref WHERE " BY("kind, value", "?1, ?2"), NULL},
	{"meta", "T", "SELECT key, value FROM meta WHERE key > ?1 ORDER BY key LIMIT " SLICE, NULL},
	{"limit_override", "TT", "SELECT set_id, scope, capacity FROM limit_override WHERE "
	 BY("set_id, scope", "?1, ?2"), NULL},
	{"job", "N", "SELECT rowid, args, progress, error FROM job NOT INDEXED"
	 " WHERE rowid > ?1 ORDER BY rowid LIMIT " SLICE, NULL},
	{"answer", "N", "SELECT rowid, answer FROM answer NOT INDEXED"
	 " WHERE rowid > ?1 ORDER BY rowid LIMIT " SLICE, NULL},
	{"event", "N", "SELECT " CHECK_EVENT_COLUMNS " FROM event NOT INDEXED"
	 " WHERE seq > ?1 ORDER BY seq LIMIT " SLICE, row_event},
	EVENTS_BY("event_org_pos", "org_pos > 0", "org_id, org_pos", "?1, ?2"),
	EVENTS_BY("event_group_pos", "group_pos > 0", "group_id, group_pos", "?1, ?2"),
	{"event_org_time", "TNN", "SELECT org_id, created_ms, org_pos, id FROM event INDEXED BY event_org_time"
	 " WHERE org_pos > 32 AND "
	 BY("org_id, created_ms, org_pos", "?1, ?2, ?3"), NULL},
	{"event_org_type", "TTN", "SELECT org_id, type, org_pos, id FROM event INDEXED BY event_org_type"
	 " WHERE org_pos > 32 AND "
	 BY("org_id, type, org_pos", "?1, ?2, ?3"), NULL},
	{"event_group_time", "TNN", "SELECT group_id, created_ms, group_pos, id FROM event INDEXED BY event_group_time"
	 " WHERE group_pos > 32 AND " BY("group_id, created_ms, group_pos", "?1, ?2, ?3"), NULL},
	{"event_group_type", "TTN", "SELECT group_id, type, group_pos, id FROM event INDEXED BY event_group_type"
	 " WHERE group_pos > 32 AND " BY("group_id, type, group_pos", "?1, ?2, ?3"), NULL},
};
/* clang-format on */

static void keys_bind(const struct watch *w, const struct walk *walk, sqlite3_stmt *st)
{
	for (int i = 0; walk->keys[i]; i++) {
		const struct watch_key *k = &w->keys[i];
		if (walk->keys[i] == 'N')
			sqlite3_bind_int64(st, i + 1, w->begun ? k->number : INT64_MIN);
		else
			bind_str(st, i + 1, w->begun ? (struct str){k->text, k->n} : STR_NONE);
	}
}

/* Remembers where the next slice begins. False: the key is longer than any key that we ever write. */
static bool keys_keep(struct watch *w, const struct walk *walk, sqlite3_stmt *st)
{
	for (int i = 0; walk->keys[i]; i++) {
		struct watch_key *k = &w->keys[i];
		struct str text = walk->keys[i] == 'T' ? column_str(st, i) : STR_NONE;
		if (text.n > sizeof k->text)
			return false;
		k->number = sqlite3_column_int64(st, i);
		k->n = text.n;
		if (text.n)
			memcpy(k->text, text.p, text.n);
	}
	w->begun = true;
	return true;
}

static int walk_slice(struct tx *tx, struct watch *w, const struct walk *walk, int *ret_rows)
{
	sqlite3_stmt *st = NULL;
	bool ordered = true;
	int r = sqlite3_prepare_v2(tx->db, walk->sql, -1, &st, NULL);
	if (r == SQLITE_OK)
		keys_bind(w, walk, st);
	while (ordered && (r == SQLITE_OK || r == SQLITE_ROW)) {
		r = sqlite3_step(st);
		if (r != SQLITE_ROW)
			break;
		++*ret_rows;
		/* Every column is read, so that overflow pages are read too. */
		for (int i = 0; i < sqlite3_column_count(st); i++)
			(void)sqlite3_column_blob(st, i);
		if (walk->row)
			walk->row(tx, w, st);
		ordered = keys_keep(w, walk, st);
	}
	if (r != SQLITE_DONE && r != SQLITE_ROW)
		(void)conn_failed(tx, r);
	sqlite3_finalize(st);
	if (!ordered)
		store_damaged(tx->store, "%s: a key is longer than any can be", walk->name);
	return r == SQLITE_DONE ? 0 : -EIO;
}

int sqlite_watch(struct tx *tx, struct watch *w)
{
	int rows = 0;
	const struct walk *walk = &walks[w->at];
	/* A table whose pages cannot be read is reported; the others may still be good. */
	int r = walk_slice(tx, w, walk, &rows);
	if (r < 0 || rows < SLICE_ROWS) {
		w->at++;
		w->begun = false;
	}
	return w->at < sizeof walks / sizeof *walks;
}
