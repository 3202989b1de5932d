/* Workers for the store's jobs. A job is a row; its kind is a function that does one step and says what comes next.
 * What a step has done is saved in one transaction with the row, so that a crash repeats at most the last step: steps
 * must find their way from whatever is there. */
#ifndef STEWARD_JOBS_JOBS_H
#define STEWARD_JOBS_JOBS_H

#include "store/store.h"

struct jobs;

enum job_next {
	JOB_DONE,  /* the job is gone */
	JOB_STEP,  /* the next step, at once */
	JOB_LATER, /* the same step again, at r->due_ms of the service's clock; does not count as an attempt */
	JOB_FAILED /* no more attempts */
};

/* One step under way. What `arena` holds lives until the step is saved. */
struct job_run {
	struct jobs *jobs;
	struct store *store;
	struct tx *reader; /* the worker's: tx_begin_read() and tx_end_read() around reads */
	struct arena *arena;
	void *ctx; /* as given to jobs_start() */
	struct job job;
	/* Set by the step. */
	int64_t due_ms;
	const char *why; /* of a failure, in words; static or in the arena */
	/* Runs in the transaction that saves the outcome, after the claim was found to be good; may be NULL. Negative
	 * undoes all of it, and the step counts as failed. */
	int (*save)(struct tx *tx, struct job_run *r);
	void *save_ctx;
	/* Called once the outcome is on disk; may be NULL. */
	void (*saved)(struct job_run *r);
	int64_t told_us; /* when progress was last saved */
};

struct job_kind {
	const char *name;
	/* enum job_next, or negative: tried again after a while, and failed after `attempts`. */
	int (*step)(struct job_run *r);
	/* In the transaction that marks it failed; may be NULL. */
	int (*failed)(struct tx *tx, struct job_run *r);
	unsigned attempts; /* 0: 6 */
	/* A schedule: there is always one such job, due so long after the last. 0: none. Such a job never fails for
	 * good. */
	int64_t period_ms;
	/* The schedule is for each node that shares the store, and runs there: it looks at what its own engine runs. */
	bool per_node;
};

struct jobs_options {
	struct store *store;
	const struct job_kind *kinds;
	size_t kind_count;
	unsigned threads; /* 0: 4 */
	void *ctx;
};

/* Takes over the jobs of a process that is gone, and starts the workers. Failure: a sentence to stderr, negative. */
must_check int jobs_start(const struct jobs_options *o, struct jobs **ret_jobs);
/* Waits for the steps that are under way. Accepts NULL. */
void jobs_stop(struct jobs *j);
/* The service's clock was moved: something may be due. From any thread. Accepts NULL. */
void jobs_wake(struct jobs *j);
/* The schedules' jobs, again: after everything was wiped. */
must_check int jobs_schedule(struct tx *tx, void *jobs);
/* Steps done since the start, and those that were tried again: for metrics. */
void jobs_stats(const struct jobs *j, uint64_t *ret_steps, uint64_t *ret_retries, uint64_t *ret_failed);

/* In a step: the share done, with a word of what is being done. Saved now and then; safe to call often. */
void job_progress(struct job_run *r, unsigned percent, const char *what);

#endif
