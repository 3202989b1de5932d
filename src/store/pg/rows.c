/* The small tables: references, settings, stored answers and the operator's limits. */
#include "store/pg/pg.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>

/* Copies the first column of the only row that a statement returns. */
static int value_read(struct tx *tx, struct arena *a, enum pg_statement st, const struct pg_args *args,
                      struct str *ret_value)
{
	PGresult *result;
	tx_count_read(tx);
	int r = pg_exec(tx, st, args, &result);
	if (r < 0)
		return r;
	if (r > 0)
		*ret_value = arena_dup(a, pg_column(result, 0, 0));
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

/* Runs a statement that changes one row; `otherwise` is the error when it changes none. */
static int change(struct tx *tx, enum pg_statement st, const struct pg_args *args, int otherwise)
{
	assert(tx->in_write);
	int r = pg_exec(tx, st, args, NULL);
	return r < 0 ? r : r > 0 ? 0 : otherwise;
}

int pg_ref_get(struct tx *tx, struct arena *a, const char *kind, struct str value, struct str *ret_id)
{
	struct pg_args args = {0};
	pg_z(&args, kind);
	pg_str(&args, value);
	return value_read(tx, a, PG_REF_GET_ST, &args, ret_id);
}

int pg_ref_put(struct tx *tx, const char *kind, struct str value, struct str id)
{
	struct pg_args args = {0};
	pg_z(&args, kind);
	pg_str(&args, value);
	pg_str(&args, id);
	return args.impossible ? -EINVAL : change(tx, PG_REF_PUT_ST, &args, -EEXIST);
}

int pg_ref_delete(struct tx *tx, const char *kind, struct str value)
{
	struct pg_args args = {0};
	pg_z(&args, kind);
	pg_str(&args, value);
	return change(tx, PG_REF_DELETE_ST, &args, -ENOENT);
}

int pg_meta_get(struct tx *tx, struct arena *a, const char *key, struct str *ret_value)
{
	struct pg_args args = {0};
	pg_z(&args, key);
	return value_read(tx, a, PG_META_GET_ST, &args, ret_value);
}

int pg_meta_put(struct tx *tx, const char *key, struct str value)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	pg_z(&args, key);
	pg_str(&args, value);
	return pg_defer(tx, PG_META_PUT_ST, &args);
}

int pg_answer_get(struct tx *tx, struct arena *a, struct str caller, struct str key, struct stored_answer *ret)
{
	struct pg_args args = {0};
	PGresult *result;
	tx_count_read(tx);
	pg_str(&args, caller);
	pg_str(&args, key);
	pg_int(&args, clock_now_ms() - ANSWER_MS);
	int r = pg_exec(tx, PG_ANSWER_GET_ST, &args, &result);
	if (r < 0)
		return r;
	if (r > 0) {
		ret->fingerprint = arena_dup(a, pg_column(result, 0, 0));
		ret->answer = arena_dup(a, pg_column(result, 0, 1));
	}
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

/* Replaces an expired answer. Each new answer also deletes up to two expired ones: that limits the table to about one
 * day's answers without a cleaning job. */
int pg_answer_put(struct tx *tx, struct str caller, struct str key, const struct stored_answer *answer)
{
	assert(tx->in_write);
	struct pg_args prune = {0}, args = {0};
	int64_t now = clock_now_ms();
	pg_int(&prune, now - ANSWER_MS);
	int r = pg_defer(tx, PG_ANSWER_PRUNE_ST, &prune);
	if (r < 0)
		return r;
	pg_str(&args, caller);
	pg_str(&args, key);
	pg_int(&args, now - ANSWER_MS);
	pg_int(&args, now);
	pg_str(&args, answer->fingerprint);
	pg_str(&args, answer->answer);
	return change(tx, PG_ANSWER_PUT_ST, &args, -EEXIST);
}

int pg_nodes(struct tx *tx, struct arena *a, struct store_node **ret_list, size_t *ret_count)
{
	PGresult *result;
	tx_count_read(tx);
	int r = pg_exec(tx, PG_NODES_ST, NULL, &result);
	if (r < 0)
		return r;
	struct store_node *list = arena_new_array(a, struct store_node, (size_t)r + 1);
	for (int i = 0; i < r; i++)
		list[i] = (struct store_node){arena_dup(a, pg_column(result, i, 0)),
		                              arena_dup(a, pg_column(result, i, 1)), pg_number(result, i, 2)};
	PQclear(result);
	*ret_list = list;
	*ret_count = (size_t)r;
	return 0;
}

int pg_overrides(struct tx *tx, struct arena *a, struct limit_override **ret_list, size_t *ret_count)
{
	PGresult *result;
	tx_count_read(tx);
	int r = pg_exec(tx, PG_OVERRIDES_ST, NULL, &result);
	if (r < 0)
		return r;
	struct limit_override *list = arena_new_array(a, struct limit_override, (size_t)r + 1);
	for (int i = 0; i < r; i++)
		list[i] = (struct limit_override){
		        .set = arena_dup(a, pg_column(result, i, 0)),
		        .scope = arena_dup(a, pg_column(result, i, 1)),
		        .capacity = (unsigned)pg_number(result, i, 2),
		        .refill = (unsigned)pg_number(result, i, 3),
		};
	PQclear(result);
	*ret_list = list;
	*ret_count = (size_t)r;
	return 0;
}

int pg_override_put(struct tx *tx, const struct limit_override *o)
{
	struct pg_args args = {0};
	pg_str(&args, o->set);
	pg_str(&args, o->scope);
	pg_int(&args, o->capacity);
	pg_int(&args, o->refill);
	return change(tx, PG_OVERRIDE_PUT_ST, &args, -EIO);
}

int pg_override_delete(struct tx *tx, struct str set, struct str scope)
{
	struct pg_args args = {0};
	pg_str(&args, set);
	pg_str(&args, scope);
	return change(tx, PG_OVERRIDE_DELETE_ST, &args, -ENOENT);
}

int pg_wipe(struct tx *tx)
{
	assert(tx->in_write);
	/* The identity counter stays and grows: other processes must notice that all identities are gone. */
	tx_touch_identity(tx);
	memo_clear(tx);
	tx->pg->chain = (struct event_chain){.first = 1};
	tx->pg->chain_known = true;
	tx->pg->chain_changed = false;
	pg_known_reset(tx->pg);
	int r = pg_exec(tx, PG_WIPE_ST, NULL, NULL);
	return r < 0 ? r : 0;
}
