/* The small tables: references, settings, stored answers and the operator's limits. */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>

/* Copies the first column of the only row that a bound statement returns. */
static int value_read(struct tx *tx, struct arena *a, sqlite3_stmt *st, struct str *ret_value)
{
	tx_count_read(tx);
	int r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? -EIO : -ENOENT;
	*ret_value = arena_dup(a, column_str(st, 0));
	sqlite3_reset(st);
	return 0;
}

/* Steps a bound statement that deletes a row. */
static int delete_step(struct tx *tx, sqlite3_stmt *st)
{
	int r = conn_step(tx, st);
	if (r < 0)
		return r;
	return sqlite3_changes(tx->db) ? 0 : -ENOENT;
}

int sqlite_ref_get(struct tx *tx, struct arena *a, const char *kind, struct str value, struct str *ret_id)
{
	sqlite3_stmt *st = conn_statement(tx, ST_REF_GET);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, value);
	return value_read(tx, a, st, ret_id);
}

int sqlite_ref_put(struct tx *tx, const char *kind, struct str value, struct str id)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_REF_PUT);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, value);
	bind_str(st, 3, id);
	return conn_step(tx, st);
}

int sqlite_ref_delete(struct tx *tx, const char *kind, struct str value)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_REF_DELETE);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, value);
	return delete_step(tx, st);
}

int sqlite_meta_get(struct tx *tx, struct arena *a, const char *key, struct str *ret_value)
{
	sqlite3_stmt *st = conn_statement(tx, ST_META_GET);
	if (!st)
		return -EIO;
	bind_z(st, 1, key);
	return value_read(tx, a, st, ret_value);
}

int sqlite_meta_put(struct tx *tx, const char *key, struct str value)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_META_PUT);
	if (!st)
		return -EIO;
	bind_z(st, 1, key);
	bind_str(st, 2, value);
	return conn_step(tx, st);
}

int sqlite_answer_get(struct tx *tx, struct arena *a, struct str caller, struct str key, struct stored_answer *ret)
{
	sqlite3_stmt *st = conn_statement(tx, ST_ANSWER_GET);
	if (!st)
		return -EIO;
	tx_count_read(tx);
	bind_str(st, 1, caller);
	bind_str(st, 2, key);
	sqlite3_bind_int64(st, 3, clock_now_ms() - ANSWER_MS);
	int r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? -EIO : -ENOENT;
	ret->fingerprint = arena_dup(a, column_str(st, 0));
	ret->answer = arena_dup(a, column_str(st, 1));
	sqlite3_reset(st);
	return 0;
}

/* Replaces an expired answer. Each new answer also deletes up to two expired ones: that limits the table to about one
 * day's answers without a cleaning job. */
int sqlite_answer_put(struct tx *tx, struct str caller, struct str key, const struct stored_answer *answer)
{
	assert(tx->in_write);
	int64_t now = clock_now_ms();
	sqlite3_stmt *prune = conn_statement(tx, ST_ANSWER_PRUNE), *st = conn_statement(tx, ST_ANSWER_PUT);
	if (!prune || !st)
		return -EIO;
	sqlite3_bind_int64(prune, 1, now - ANSWER_MS);
	int r = conn_step(tx, prune);
	if (r < 0)
		return r;
	bind_str(st, 1, caller);
	bind_str(st, 2, key);
	sqlite3_bind_int64(st, 3, now - ANSWER_MS);
	sqlite3_bind_int64(st, 4, now);
	bind_str(st, 5, answer->fingerprint);
	bind_str(st, 6, answer->answer);
	r = conn_step(tx, st);
	if (r < 0)
		return r;
	return sqlite3_changes(tx->db) ? 0 : -EEXIST;
}

/* The file has one process. */
int sqlite_nodes(struct tx *tx, struct arena *a, struct store_node **ret_list, size_t *ret_count)
{
	*ret_list = NULL;
	*ret_count = 0;
	return 0;
}

int sqlite_overrides(struct tx *tx, struct arena *a, struct limit_override **ret_list, size_t *ret_count)
{
	size_t count = 0, cap = 16;
	sqlite3_stmt *st = conn_statement(tx, ST_OVERRIDES);
	if (!st)
		return -EIO;
	tx_count_read(tx);
	struct limit_override *list = arena_new_array(a, struct limit_override, cap);
	int r;
	while ((r = conn_step(tx, st)) > 0) {
		if (count == cap) {
			struct limit_override *more = arena_new_array(a, struct limit_override, cap *= 2);
			memcpy(more, list, count * sizeof(*list));
			list = more;
		}
		list[count++] = (struct limit_override){
		        .set = arena_dup(a, column_str(st, 0)),
		        .scope = arena_dup(a, column_str(st, 1)),
		        .capacity = (unsigned)sqlite3_column_int64(st, 2),
		        .refill = (unsigned)sqlite3_column_int64(st, 3),
		};
	}
	if (r < 0)
		return -EIO;
	*ret_list = list;
	*ret_count = count;
	return 0;
}

int sqlite_override_put(struct tx *tx, const struct limit_override *o)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_OVERRIDE_PUT);
	if (!st)
		return -EIO;
	bind_str(st, 1, o->set);
	bind_str(st, 2, o->scope);
	sqlite3_bind_int64(st, 3, o->capacity);
	sqlite3_bind_int64(st, 4, o->refill);
	return conn_step(tx, st);
}

int sqlite_override_delete(struct tx *tx, struct str set, struct str scope)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_OVERRIDE_DELETE);
	if (!st)
		return -EIO;
	bind_str(st, 1, set);
	bind_str(st, 2, scope);
	return delete_step(tx, st);
}

int sqlite_wipe(struct tx *tx)
{
	assert(tx->in_write);
	/* The identity counter stays and grows: other processes must notice that all identities are gone. */
	tx_touch_identity(tx);
	int r = conn_exec(tx, "DELETE FROM doc; DELETE FROM list; DELETE FROM list_block; DELETE FROM ref;"
	                      "DELETE FROM meta WHERE key <> '" META_IDENTITY "'; DELETE FROM event; DELETE FROM job;"
	                      "DELETE FROM answer; DELETE FROM limit_override");
	if (r < 0)
		tx->broken = true;
	tx->writing->chain_known = false;
	tx->writing->last_org[0] = '\0';
	counts_forget(tx);
	memo_clear(tx);
	return r;
}
