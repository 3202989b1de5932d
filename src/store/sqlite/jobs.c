/* Jobs: claiming, saving and the order of the jobs of one subject. All of it is in the statements: a claim is one
 * update inside the writer's transaction, so two workers never get the same job, and every save names the fence of its
 * claim. */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/id.h"

#include <assert.h>
#include <errno.h>

static void job_read(struct arena *a, sqlite3_stmt *st, struct job *ret_job)
{
	struct str state = column_str(st, 4);
	*ret_job = (struct job){
	        .id = arena_dup(a, column_str(st, 0)),
	        .kind = arena_dup(a, column_str(st, 1)),
	        .subject = arena_dup(a, column_str(st, 2)),
	        .args = arena_dup(a, column_str(st, 3)),
	        .running = str_is(state, "running"),
	        .failed = str_is(state, "failed"),
	        .step = sqlite3_column_int64(st, 5),
	        .attempt = sqlite3_column_int64(st, 6),
	        .progress = arena_dup(a, column_str(st, 7)),
	        .due_ms = sqlite3_column_int64(st, 8),
	        .fence = sqlite3_column_int64(st, 9),
	        .created_ms = sqlite3_column_int64(st, 10),
	        .error = arena_dup(a, column_str(st, 11)),
	        .tenant = arena_dup(a, column_str(st, 12)),
	};
}

int sqlite_job_add(struct tx *tx, const struct job *j)
{
	assert(tx->in_write);
	struct id id = id_new();
	sqlite3_stmt *st = conn_statement(tx, ST_JOB_ADD);
	if (!st)
		return -EIO;
	bind_str(st, 1, id_str(&id));
	bind_str(st, 2, j->kind);
	bind_str(st, 3, j->subject);
	bind_str(st, 4, j->args.n ? j->args : STR("{}"));
	sqlite3_bind_int64(st, 5, j->due_ms);
	sqlite3_bind_int64(st, 6, clock_now_ms());
	bind_str(st, 7, j->tenant.n ? j->tenant : STR(""));
	tx->jobs = true;
	return conn_step(tx, st);
}

int sqlite_job_ensure(struct tx *tx, const struct job *j)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_JOB_HURRY);
	if (!st)
		return -EIO;
	bind_str(st, 1, j->kind);
	bind_str(st, 2, j->subject);
	sqlite3_bind_int64(st, 3, j->due_ms);
	int r = conn_step(tx, st);
	if (r < 0)
		return r;
	tx->jobs = true;
	return sqlite3_changes(tx->db) ? 0 : tx_job_add(tx, j);
}

static int next_read(struct tx *tx, struct str skip, int64_t *ret_due_ms, int64_t *ret_row)
{
	sqlite3_stmt *st = conn_statement(tx, ST_JOB_NEXT);
	if (!st)
		return -EIO;
	tx_count_read(tx);
	bind_str(st, 1, skip.n ? skip : STR(""));
	int r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? -EIO : -ENOENT;
	*ret_due_ms = sqlite3_column_int64(st, 0);
	*ret_row = sqlite3_column_int64(st, 1);
	sqlite3_reset(st);
	return 0;
}

int sqlite_job_next(struct tx *tx, struct str skip, int64_t *ret_due_ms)
{
	int64_t row;
	return next_read(tx, skip, ret_due_ms, &row);
}

int sqlite_job_claim(struct tx *tx, struct arena *a, struct str owner, struct str skip, int64_t now_ms,
                     int64_t lease_ms, struct job *ret_job)
{
	assert(tx->in_write);
	int64_t due_ms, row;
	int r = next_read(tx, skip, &due_ms, &row);
	if (r < 0 || due_ms > now_ms)
		return r < 0 ? r : -ENOENT;
	sqlite3_stmt *st = conn_statement(tx, ST_JOB_CLAIM);
	if (!st)
		return -EIO;
	sqlite3_bind_int64(st, 1, row);
	bind_str(st, 2, owner);
	sqlite3_bind_int64(st, 3, now_ms + lease_ms);
	sqlite3_bind_int64(st, 4, now_ms);
	r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	job_read(a, st, ret_job);
	/* SQLite completes an update with RETURNING only when it is stepped to its end. */
	r = conn_step(tx, st);
	return r > 0 ? -EIO : r;
}

static int job_write(struct tx *tx, const struct job *j, const char *state, int64_t lease_until_ms)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_JOB_SAVE);
	if (!st)
		return -EIO;
	bind_str(st, 1, j->id);
	sqlite3_bind_int64(st, 2, j->fence);
	bind_z(st, 3, state);
	sqlite3_bind_int64(st, 4, j->step);
	sqlite3_bind_int64(st, 5, j->attempt);
	bind_str_or_null(st, 6, j->progress);
	sqlite3_bind_int64(st, 7, j->due_ms);
	bind_str_or_null(st, 8, j->error);
	bind_str(st, 9, j->args.n ? j->args : STR("{}"));
	sqlite3_bind_int64(st, 10, clock_now_ms());
	sqlite3_bind_int64(st, 11, lease_until_ms);
	int r = conn_step(tx, st);
	if (r < 0)
		return r;
	return sqlite3_changes(tx->db) ? 0 : -ESTALE;
}

int sqlite_job_save(struct tx *tx, const struct job *j)
{
	return job_write(tx, j, "running", clock_now_ms() + 60000);
}

int sqlite_job_release(struct tx *tx, const struct job *j)
{
	tx->jobs = true;
	return job_write(tx, j, "queued", 0);
}

int sqlite_job_fail(struct tx *tx, const struct job *j)
{
	tx->jobs = true; /* the subject's next job may run */
	return job_write(tx, j, "failed", 0);
}

int sqlite_job_finish(struct tx *tx, const struct job *j)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_JOB_FINISH);
	if (!st)
		return -EIO;
	bind_str(st, 1, j->id);
	sqlite3_bind_int64(st, 2, j->fence);
	tx->jobs = true; /* the subject's next job may run */
	int r = conn_step(tx, st);
	if (r < 0)
		return r;
	return sqlite3_changes(tx->db) ? 0 : -ESTALE;
}

static int job_of(struct tx *tx, struct arena *a, const char *kind, struct str subject, struct job *ret_job)
{
	sqlite3_stmt *st = conn_statement(tx, kind ? ST_JOB_FIND : ST_JOB_OF);
	if (!st)
		return -EIO;
	tx_count_read(tx);
	bind_str(st, 1, subject);
	if (kind)
		bind_z(st, 2, kind);
	int r = conn_step(tx, st);
	if (r <= 0)
		return r < 0 ? -EIO : -ENOENT;
	job_read(a, st, ret_job);
	sqlite3_reset(st);
	return 0;
}

int sqlite_job_of(struct tx *tx, struct arena *a, struct str subject, struct job *ret_job)
{
	return job_of(tx, a, NULL, subject, ret_job);
}

int sqlite_job_find(struct tx *tx, struct arena *a, const char *kind, struct str subject, struct job *ret_job)
{
	return job_of(tx, a, kind, subject, ret_job);
}

int sqlite_jobs_forget(struct tx *tx, struct str subject, int64_t before_ms)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, subject.n ? ST_JOBS_FORGET_OF : ST_JOBS_FORGET);
	if (!st)
		return -EIO;
	if (subject.n)
		bind_str(st, 1, subject);
	else
		sqlite3_bind_int64(st, 1, before_ms);
	return conn_step(tx, st);
}

int sqlite_jobs_cancel(struct tx *tx, const char *kind, struct str subject)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_JOBS_CANCEL);
	if (!st)
		return -EIO;
	bind_z(st, 1, kind);
	bind_str(st, 2, subject);
	return conn_step(tx, st);
}

int sqlite_jobs_settle(struct tx *tx, struct str host)
{
	assert(tx->in_write);
	return conn_run(tx, ST_JOBS_SETTLE);
}

int sqlite_jobs_put_back(struct tx *tx, int64_t now_ms, int64_t until_ms, int64_t by_ms)
{
	assert(tx->in_write);
	sqlite3_stmt *st = conn_statement(tx, ST_JOBS_PUT_BACK);
	if (!st)
		return -EIO;
	sqlite3_bind_int64(st, 1, now_ms);
	sqlite3_bind_int64(st, 2, until_ms);
	sqlite3_bind_int64(st, 3, by_ms);
	tx->jobs = true;
	return conn_step(tx, st);
}

int sqlite_jobs_recover(struct tx *tx, int64_t *ret_count)
{
	assert(tx->in_write);
	int r = conn_run(tx, ST_JOBS_RECOVER);
	if (r < 0)
		return r;
	*ret_count = sqlite3_changes(tx->db);
	tx->jobs = true;
	return 0;
}

int sqlite_job_count(struct tx *tx, int64_t *ret_count)
{
	sqlite3_stmt *st = conn_statement(tx, ST_JOB_COUNT);
	if (!st)
		return -EIO;
	tx_count_read(tx);
	int r = conn_step(tx, st);
	if (r <= 0)
		return -EIO;
	*ret_count = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return 0;
}

#define TALLY_MAX 256 /* kinds and states; there are fewer */

int sqlite_job_tally(struct tx *tx, struct arena *a, struct job_tally **ret_list, size_t *ret_count)
{
	sqlite3_stmt *st = conn_statement(tx, ST_JOB_TALLY);
	struct job_tally *list = arena_new_array(a, struct job_tally, TALLY_MAX);
	size_t count = 0;
	if (!st)
		return -EIO;
	tx_count_read(tx);
	int r = conn_step(tx, st);
	for (; r > 0 && count < TALLY_MAX; r = conn_step(tx, st))
		list[count++] = (struct job_tally){arena_dup(a, column_str(st, 0)), arena_dup(a, column_str(st, 1)),
		                                   sqlite3_column_int64(st, 2)};
	sqlite3_reset(st);
	if (r < 0)
		return -EIO;
	*ret_list = list;
	*ret_count = count;
	return 0;
}
