/* Workers for the store's jobs. A job is a row; its kind is a function that does one step and says what comes next. The
 * result of a step is saved in one transaction with the row, so that a crash repeats at most the last step: a step must
 * be able to start from whatever it finds. */
#ifndef STEWARD_JOBS_JOBS_H
#define STEWARD_JOBS_JOBS_H

#include "store/store.h"

struct jobs;

enum job_next {
	JOB_DONE,  /* the job is removed */
	JOB_STEP,  /* the next step, at once */
	JOB_LATER, /* the same step again, at r->due_ms on the service's clock; not counted as an attempt */
	JOB_FAILED /* no more attempts */
};

/* One step that is running. `arena` lives until the step is saved. */
struct job_run {
	struct jobs *jobs;
	struct store *store;
	struct tx *reader; /* the worker's; call tx_begin_read() and tx_end_read() around reads */
	struct arena *arena;
	void *ctx; /* as given to jobs_start() */
	struct job job;
	/* Set by the step. */
	int64_t due_ms;
	const char *why; /* the reason of a failure, as text; static or in the arena */
	/* Runs in the transaction that saves the outcome, after the claim was checked; may be NULL. A negative result
	 * undoes all of it, and the step counts as failed. */
	int (*save)(struct tx *tx, struct job_run *r);
	void *save_ctx;
	/* Called once the outcome is on disk; may be NULL. */
	void (*saved)(struct job_run *r);
	int64_t progress_us; /* when progress was last saved */
	unsigned reached;    /* percent that were told before, of a kind whose progress only rises; else 0 */
	bool told;           /* progress, in this step */
};

static inline int job_later(struct job_run *r, int64_t due_ms)
{
	r->due_ms = due_ms;
	return JOB_LATER;
}

/* How long the steps of a kind may last. At most half of the workers, rounded up, do background work at once, and all
 * but one what lasts: short steps never wait for either. */
enum job_lasts { JOB_IS_SHORT, JOB_IS_LONG, JOB_IS_BACKGROUND };

struct job_kind {
	const char *name;
	/* Returns enum job_next; or negative: it is tried again later, and fails after `attempts`. */
	int (*step)(struct job_run *r);
	/* Of a job without steps: runs in the transaction that ends it. */
	int (*save)(struct tx *tx, struct job_run *r);
	/* Runs in the transaction that marks the job failed; may be NULL. */
	int (*failed)(struct tx *tx, struct job_run *r);
	unsigned attempts; /* 0: 6 */
	/* What was told of its progress stands until more is: through steps, attempts and restarts of the service. For
	 * one piece of work that is looked at again and again, not for kinds whose steps count from 0 each. */
	bool only_rises;
	/* A schedule: there is always one such job, due this long after the last run. 0: no schedule. Such a job is
	 * retried without end. */
	int64_t period_ms;
	/* Each node that shares the store has its own schedule and runs it: it looks at what its own engine runs. */
	bool per_node;
	enum job_lasts lasts;
	bool moves; /* it reads or writes all of a cluster's data: jobs_options.moves */
};

/* The kinds of one family. */
struct job_kinds {
	const struct job_kind *list;
	size_t count;
};
#define JOB_KINDS(list)                               \
	{                                             \
		(list), sizeof(list) / sizeof *(list) \
	}

/* Whether the job works on what another host has, and which; it is read on r->reader. */
typedef bool job_host_of(struct job_run *r, struct str *ret_host);

struct jobs_options {
	struct store *store;
	const struct job_kind *kinds;
	size_t kind_count;
	unsigned threads; /* 0: 4 */
	unsigned
	        moves; /* steps of kinds that move all of a cluster's data that run at once; 0: no bound of their own */
	void *ctx;
	job_host_of *host_of; /* or NULL: any node can run every job that has no host */
};

/* Frees the claims of processes that are gone, and starts the workers. On failure: a message on stderr, negative. */
must_check int jobs_start(const struct jobs_options *o, struct jobs **ret_jobs);
/* Asks the running steps to end (job_stop()), and waits for them. Accepts NULL. */
void jobs_stop(struct jobs *j);
/* Call it when the service's clock was moved: jobs may be due. From any thread. Accepts NULL. */
void jobs_wake(struct jobs *j);
/* Waits until no job is due any more and none runs, so long at most. For tests, whose clock stands still meanwhile. */
bool jobs_settle(struct jobs *j, int64_t wait_ms);
/* Adds the jobs of the schedules again, after everything was wiped. */
must_check int jobs_schedule(struct tx *tx, void *jobs);
/* Steps since the start, retries and failures, for metrics. */
void jobs_stats(const struct jobs *j, uint64_t *ret_steps, uint64_t *ret_retries, uint64_t *ret_failed);

/* In a step: becomes true when the service stops. A step that ends with -ECANCELED then is no failure: it is done again
 * after the next start. */
const _Atomic bool *job_stop(const struct job_run *r);

/* In a step: ends what tx_begin_read() began. What follows may take minutes: the store keeps no old state for it. */
void job_read_end(struct job_run *r);
/* In a step: reports the percentage done and what is being done. Saved now and then, so it may be called often. */
void job_progress(struct job_run *r, unsigned percent, const char *what);

#endif
