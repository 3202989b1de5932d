/* Jobs. A claim is made inside a batch, so no two nodes get the same job. Its owner is the node, and it lasts as long
 * as the node renews its own row: when a node dies, all its jobs become free at once, and no lease per job has to be
 * renewed. Every save names the fence of its claim, so that a node that was wrongly considered dead cannot write. */
#include "store/pg/pg.h"

#include "base/clock.h"
#include "base/id.h"

#include <assert.h>
#include <errno.h>

static void job_read(struct arena *a, const PGresult *r, struct job *ret_job)
{
	struct str state = pg_column(r, 0, 4);
	*ret_job = (struct job){
	        .id = arena_dup(a, pg_column(r, 0, 0)),
	        .kind = arena_dup(a, pg_column(r, 0, 1)),
	        .subject = arena_dup(a, pg_column(r, 0, 2)),
	        .args = arena_dup(a, pg_column(r, 0, 3)),
	        .running = str_is(state, "running"),
	        .failed = str_is(state, "failed"),
	        .step = pg_number(r, 0, 5),
	        .attempt = pg_number(r, 0, 6),
	        .progress = arena_dup(a, pg_column(r, 0, 7)),
	        .due_ms = pg_number(r, 0, 8),
	        .fence = pg_number(r, 0, 9),
	        .created_ms = pg_number(r, 0, 10),
	        .error = arena_dup(a, pg_column(r, 0, 11)),
	        .host = arena_dup(a, pg_column(r, 0, 12)),
	        .tenant = arena_dup(a, pg_column(r, 0, 13)),
	};
}

/* The one job that a statement gives. */
static int job_read_one(struct tx *tx, struct arena *a, enum pg_statement st, const struct pg_args *args,
                        struct job *ret_job)
{
	PGresult *result;
	int r = pg_exec(tx, st, args, &result);
	if (r < 0)
		return r;
	if (r > 0)
		job_read(a, result, ret_job);
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

int pg_job_add(struct tx *tx, const struct job *j)
{
	assert(tx->in_write);
	struct id id = id_new();
	struct pg_args args = {0};
	pg_str(&args, id_str(&id));
	pg_str(&args, j->kind);
	pg_str(&args, j->subject);
	pg_str(&args, j->args.n ? j->args : STR("{}"));
	pg_int(&args, j->due_ms);
	pg_int(&args, clock_now_ms());
	pg_str(&args, j->host);
	pg_str(&args, j->tenant.n ? j->tenant : STR(""));
	tx->jobs = true;
	return pg_defer(tx, PG_JOB_ADD_ST, &args);
}

int pg_job_ensure(struct tx *tx, const struct job *j)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	pg_str(&args, j->kind);
	pg_str(&args, j->subject);
	pg_int(&args, j->due_ms);
	int r = pg_exec(tx, PG_JOB_HURRY_ST, &args, NULL);
	if (r < 0)
		return r;
	tx->jobs = true;
	return r > 0 ? 0 : pg_job_add(tx, j);
}

static int next_read(struct tx *tx, struct str skip, int64_t *ret_due_ms, int64_t *ret_row)
{
	struct pg_args args = {0};
	PGresult *result;
	tx_count_read(tx);
	pg_z(&args, tx->store->node);
	pg_str(&args, skip.n ? skip : STR(""));
	int r = pg_exec(tx, PG_JOB_NEXT_ST, &args, &result);
	if (r < 0)
		return r;
	if (r > 0) {
		*ret_due_ms = pg_number(result, 0, 0);
		*ret_row = pg_number(result, 0, 1);
	}
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

int pg_job_next(struct tx *tx, struct str skip, int64_t *ret_due_ms)
{
	int64_t row;
	return next_read(tx, skip, ret_due_ms, &row);
}

int pg_job_claim(struct tx *tx, struct arena *a, struct str owner, struct str skip, int64_t now_ms, int64_t lease_ms,
                 struct job *ret_job)
{
	assert(tx->in_write);
	int64_t due_ms, row;
	struct pg_args args = {0};
	int r = next_read(tx, skip, &due_ms, &row);
	if (r < 0 || due_ms > now_ms)
		return r < 0 ? r : -ENOENT;
	pg_int(&args, row);
	pg_z(&args, tx->store->node);
	pg_int(&args, now_ms + lease_ms);
	pg_int(&args, now_ms);
	return job_read_one(tx, a, PG_JOB_CLAIM_ST, &args, ret_job);
}

static int job_write(struct tx *tx, const struct job *j, const char *state, int64_t lease_until_ms)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	pg_str(&args, j->id);
	pg_int(&args, j->fence);
	pg_z(&args, state);
	pg_int(&args, j->step);
	pg_int(&args, j->attempt);
	pg_str_or_null(&args, j->progress);
	pg_int(&args, j->due_ms);
	pg_str_or_null(&args, j->error);
	pg_str(&args, j->args.n ? j->args : STR("{}"));
	pg_int(&args, clock_now_ms());
	pg_int(&args, lease_until_ms);
	pg_str(&args, j->host.n ? j->host : STR(""));
	int r = pg_exec(tx, PG_JOB_SAVE_ST, &args, NULL);
	return r < 0 ? r : r > 0 ? 0 : -ESTALE;
}

int pg_job_save(struct tx *tx, const struct job *j)
{
	return job_write(tx, j, "running", clock_now_ms() + 60000);
}

int pg_job_release(struct tx *tx, const struct job *j)
{
	tx->jobs = true;
	return job_write(tx, j, "queued", 0);
}

int pg_job_fail(struct tx *tx, const struct job *j)
{
	tx->jobs = true; /* the subject's next job may run */
	return job_write(tx, j, "failed", 0);
}

int pg_job_finish(struct tx *tx, const struct job *j)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	pg_str(&args, j->id);
	pg_int(&args, j->fence);
	tx->jobs = true; /* the subject's next job may run */
	int r = pg_exec(tx, PG_JOB_FINISH_ST, &args, NULL);
	return r < 0 ? r : r > 0 ? 0 : -ESTALE;
}

int pg_job_of(struct tx *tx, struct arena *a, struct str subject, struct job *ret_job)
{
	struct pg_args args = {0};
	tx_count_read(tx);
	pg_str(&args, subject);
	return job_read_one(tx, a, PG_JOB_OF_ST, &args, ret_job);
}

int pg_job_find(struct tx *tx, struct arena *a, const char *kind, struct str subject, struct job *ret_job)
{
	struct pg_args args = {0};
	tx_count_read(tx);
	pg_str(&args, subject);
	pg_z(&args, kind);
	return job_read_one(tx, a, PG_JOB_FIND_ST, &args, ret_job);
}

int pg_jobs_forget(struct tx *tx, struct str subject, int64_t before_ms)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	if (subject.n)
		pg_str(&args, subject);
	else
		pg_int(&args, before_ms);
	return pg_defer(tx, subject.n ? PG_JOBS_FORGET_OF_ST : PG_JOBS_FORGET_ST, &args);
}

int pg_jobs_cancel(struct tx *tx, const char *kind, struct str subject)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	pg_z(&args, kind);
	pg_str(&args, subject);
	return pg_defer(tx, PG_JOBS_CANCEL_ST, &args);
}

int pg_jobs_settle(struct tx *tx, struct str host)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	pg_str(&args, host);
	return host.n ? pg_defer(tx, PG_JOBS_SETTLE_ST, &args) : 0;
}

int pg_jobs_put_back(struct tx *tx, int64_t now_ms, int64_t until_ms, int64_t by_ms)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	pg_int(&args, now_ms);
	pg_int(&args, until_ms);
	pg_int(&args, by_ms);
	pg_z(&args, tx->store->node);
	tx->jobs = true;
	return pg_defer(tx, PG_JOBS_PUT_BACK_ST, &args);
}

int pg_jobs_recover(struct tx *tx, int64_t *ret_count)
{
	assert(tx->in_write);
	struct pg_args args = {0};
	pg_z(&args, tx->store->node);
	int r = pg_exec(tx, PG_JOBS_RECOVER_ST, &args, NULL);
	if (r < 0)
		return r;
	*ret_count = r;
	tx->jobs = true;
	return 0;
}

int pg_job_count(struct tx *tx, int64_t *ret_count)
{
	PGresult *result;
	tx_count_read(tx);
	int r = pg_exec(tx, PG_JOB_COUNT_ST, NULL, &result);
	if (r < 0)
		return r;
	*ret_count = r > 0 ? pg_number(result, 0, 0) : 0;
	PQclear(result);
	return 0;
}

int pg_job_tally(struct tx *tx, struct arena *a, struct job_tally **ret_list, size_t *ret_count)
{
	PGresult *result;
	tx_count_read(tx);
	int r = pg_exec(tx, PG_JOB_TALLY_ST, NULL, &result);
	if (r < 0)
		return r;
	struct job_tally *list = arena_new_array(a, struct job_tally, (size_t)r + 1);
	for (int i = 0; i < r; i++)
		list[i] = (struct job_tally){arena_dup(a, pg_column(result, i, 0)),
		                             arena_dup(a, pg_column(result, i, 1)), pg_number(result, i, 2)};
	PQclear(result);
	*ret_list = list;
	*ret_count = (size_t)r;
	return 0;
}
