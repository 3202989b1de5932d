/* The workers. Each claims the next due job in one write, runs one step, and saves the outcome in another write. When
 * nothing is due they wait: for the commit that adds a job, for the clock, or for the test control that moves it. There
 * is no polling.
 *
 * Several processes may share a store. At the start, claims of processes that are gone become free again: in SQLite all
 * claims, since one process owns the file; in PostgreSQL those of this node's earlier run, and those of nodes that
 * stopped renewing their row. Each claim has a new fence, so a worker that lost its claim cannot save anything (a
 * reset, for example, wipes the jobs while they run). */
#include "jobs/jobs.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 4
#define THREADS_MAX 80
#define TENANT_TEXT 32
#define SHARE 3u
#define ATTEMPTS 6
#define LEASE_MS 60000
#define BACKOFF_MS 1000
#define BACKOFF_MAX_MS 60000
#define PROGRESS_US 500000
#define FAILED_KEPT_MS (7 * 86400000LL)
#define LOOK_MS 60000     /* at most, between two looks at the clock */
#define PUT_BACK_MS 60000 /* a job that is late by less is left alone */
#define AHEAD_MS 600000   /* that a job waits at most for its next step, whatever its kind */

struct jobs {
	struct store *store;
	const struct job_kind *kinds;
	size_t kind_count;
	void *ctx;
	job_host_of *host_of;
	char owner[17];

	pthread_t threads[THREADS_MAX];
	struct tx *readers[THREADS_MAX]; /* by worker */
	unsigned thread_count;
	unsigned workers; /* how many workers there are to be */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t generation; /* grows when a job may have become due */
	bool stopping;
	struct clock_seen clock;
	char tenants[THREADS_MAX][TENANT_TEXT]; /* by worker: whose step it runs; empty: nobody's */
	enum job_lasts lasts[THREADS_MAX];      /* and what kind of step; short where it runs none */
	bool moves[THREADS_MAX];                /* and whether it moves all of a cluster's data */
	unsigned moves_most;                    /* so many at once; 0: no bound */
	_Atomic bool stop_asked;
	_Atomic uint64_t steps, retries, failed;
	atomic_uint numbers; /* the next worker's number */
	atomic_uint busy;    /* workers between a claim and the end of its step */
};

struct put_back {
	struct jobs *jobs;
	int64_t by_ms;
};

#define KINDS_TEXT 1024 /* of the names of kinds that last */
#define SKIP_TEXT (THREADS_MAX * TENANT_TEXT + KINDS_TEXT + 2)

/* Kinds of which as many steps run as may. With the lock held. */
static size_t kinds_skip(const struct jobs *j, char *text)
{
	unsigned background = 0, lasting = 0, moving = 0, most = j->workers > 1 ? j->workers - 1 : 1;
	unsigned half = (j->workers + 1) / 2;
	if (half == most && most > 1) /* a restore does not wait for what is in the background */
		half--;
	size_t n = 0;
	for (unsigned i = 0; i < j->workers; i++) {
		background += j->lasts[i] == JOB_IS_BACKGROUND;
		lasting += j->lasts[i] != JOB_IS_SHORT;
		moving += j->moves[i];
	}
	for (size_t i = 0; i < j->kind_count; i++) {
		const struct job_kind *k = &j->kinds[i];
		bool full = k->lasts != JOB_IS_SHORT && lasting >= most;
		if (k->lasts == JOB_IS_BACKGROUND && background >= half)
			full = true;
		if (k->moves && j->moves_most && moving >= j->moves_most)
			full = true;
		if (full && n + strlen(k->name) + 2 < KINDS_TEXT)
			n += (size_t)snprintf(text + n, KINDS_TEXT - n, ",%s", k->name);
	}
	return n;
}

/* The tenants that get no worker now. `idle_only`: everybody who has one, so that others come first. Otherwise those
 * who have their share: three times as many workers as are free. And the kinds that get none. */
static struct str skip_write(struct jobs *j, bool idle_only, char ret_text[SKIP_TEXT])
{
	unsigned busy = 0;
	pthread_mutex_lock(&j->lock);
	size_t n = kinds_skip(j, ret_text);
	for (unsigned i = 0; i < j->workers; i++)
		busy += j->tenants[i][0] != 0;
	for (unsigned i = 0; i < j->workers; i++) {
		unsigned same = 0;
		for (unsigned k = 0; k < j->workers; k++)
			same += strcmp(j->tenants[k], j->tenants[i]) == 0;
		bool skipped = idle_only || same >= SHARE * (j->workers - busy);
		if (j->tenants[i][0] && skipped)
			n += (size_t)snprintf(ret_text + n, SKIP_TEXT - n, ",%s", j->tenants[i]);
	}
	pthread_mutex_unlock(&j->lock);
	if (n)
		ret_text[n++] = ',';
	return (struct str){ret_text, n};
}

/* kind NULL: it runs none. */
static void worker_set(struct jobs *j, unsigned worker, struct str tenant, const struct job_kind *kind)
{
	size_t n = tenant.n < TENANT_TEXT ? tenant.n : 0;
	pthread_mutex_lock(&j->lock);
	j->lasts[worker] = kind ? kind->lasts : JOB_IS_SHORT;
	j->moves[worker] = kind && kind->moves;
	if (n)
		memcpy(j->tenants[worker], tenant.p, n);
	j->tenants[worker][n] = 0;
	pthread_mutex_unlock(&j->lock);
}

static void wake(void *ctx)
{
	struct jobs *j = ctx;
	pthread_mutex_lock(&j->lock);
	j->generation++;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
}

void jobs_wake(struct jobs *j)
{
	if (j)
		wake(j);
}

void jobs_stats(const struct jobs *j, uint64_t *ret_steps, uint64_t *ret_retries, uint64_t *ret_failed)
{
	*ret_steps = j->steps;
	*ret_retries = j->retries;
	*ret_failed = j->failed;
}

static const struct job_kind *kind_find(const struct jobs *j, struct str name)
{
	for (size_t i = 0; i < j->kind_count; i++)
		if (str_is(name, j->kinds[i].name))
			return &j->kinds[i];
	return NULL;
}

int jobs_schedule(struct tx *tx, void *jobs)
{
	struct jobs *j = jobs;
	int r = 0;
	for (size_t i = 0; r == 0 && i < j->kind_count; i++) {
		const struct job_kind *k = &j->kinds[i];
		/* The subject is the name of the schedule, so that there is only one such job, and no two run at the
		 * same time. */
		struct job job = {
		        .kind = str_of(k->name), .subject = str_of(k->name), .due_ms = clock_now_ms() + k->period_ms};
		char subject[160];
		const char *node = store_node(j->store);
		if (k->per_node && node[0]) {
			snprintf(subject, sizeof subject, "%s@%s", k->name, node);
			job.subject = str_of(subject);
			job.host = str_of(node);
			/* That of a store that only one process used, and that was copied: it would run beside this. */
			r = tx_jobs_cancel(tx, k->name, str_of(k->name));
		}
		if (r == 0 && k->period_ms)
			r = tx_job_ensure(tx, &job);
	}
	return r;
}

/* One step: claim, run, save. */

/* One worker. */
struct claim {
	struct job_run run;
	unsigned worker;
};

static int claim_run(struct tx *tx, void *ctx)
{
	struct claim *k = ctx;
	struct job_run *r = &k->run;
	struct jobs *j = r->jobs;
	char text[SKIP_TEXT];
	int result = -ENOENT;
	for (int others_first = 1; result == -ENOENT && others_first >= 0; others_first--) {
		struct str skip = skip_write(j, others_first, text);
		arena_reset(r->arena);
		result = tx_job_claim(tx, r->arena, str_of(j->owner), skip, clock_now_ms(), LEASE_MS, &r->job);
	}
	/* Claims are made one after the other, on the store's thread, so the next claim sees this. */
	if (result == 0) {
		const struct job_kind *kind = kind_find(j, r->job.kind);
		worker_set(j, k->worker, r->job.tenant, kind);
	}
	return result;
}

struct outcome {
	struct job_run *run;
	const struct job_kind *kind;
	int next;         /* enum job_next, or negative */
	int64_t ended_ms; /* by the clock that it began with: one that is set meanwhile has its own turn */
};

static int64_t backoff(int64_t attempt)
{
	int64_t ms = attempt > 6 ? BACKOFF_MAX_MS : BACKOFF_MS << (attempt - 1);
	return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

static int save_again(struct tx *tx, struct outcome *o, struct job *job)
{
	job->attempt++;
	unsigned most = o->kind->attempts ? o->kind->attempts : ATTEMPTS;
	if (o->kind->period_ms || (o->next != JOB_FAILED && job->attempt < most)) {
		job->due_ms = clock_now_ms() + backoff(job->attempt);
		return tx_job_release(tx, job);
	}
	int r = tx_job_fail(tx, job);
	return r == 0 && o->kind->failed ? o->kind->failed(tx, o->run) : r;
}

static int save_done(struct tx *tx, const struct outcome *o, struct job *job)
{
	if (!o->kind->period_ms)
		return tx_job_finish(tx, job);
	job->due_ms = o->ended_ms + o->kind->period_ms;
	return tx_job_release(tx, job);
}

static int save_run(struct tx *tx, void *ctx)
{
	struct outcome *o = ctx;
	struct job_run *run = o->run;
	struct job job = run->job; /* a retry starts from here again */
	job.error = str_of(run->why);
	if (o->next < 0 || o->next == JOB_FAILED)
		return save_again(tx, o, &job);
	job.error = STR_NONE;
	if (o->next != JOB_LATER) /* a step that fails after each wait must still reach its last attempt */
		job.attempt = 0;
	if (o->next == JOB_STEP)
		job.step++;
	else if (o->next == JOB_DONE)
		job.step = 0;
	job.due_ms = o->next == JOB_LATER ? run->due_ms : clock_now_ms();
	int r = o->next == JOB_DONE ? save_done(tx, o, &job) : tx_job_release(tx, &job);
	if (r < 0 || !run->save)
		return r;
	r = run->save(tx, run);
	return r == -ESTALE ? -EIO : r; /* -ESTALE would mean a lost claim */
}

static void step_log_failure(const struct outcome *o)
{
	const struct job *job = &o->run->job;
	log_warn("job %.*s %.*s of %.*s, attempt %lld: %s", STR_ARG(job->kind), STR_ARG(job->id), STR_ARG(job->subject),
	         (long long)job->attempt + 1, o->run->why ? o->run->why : strerror(-o->next));
}

/* A job on databases that came without a host, as copied stores once had them, and got to a node that does not have
 * them: what is not there would be taken for lost, or for removed already. It is given to its host. */
static bool is_elsewhere(struct jobs *j, struct job_run *r)
{
	struct str host = STR_NONE;
	if (r->job.host.n || !j->host_of || !j->host_of(r, &host))
		return false;
	r->job.host = host;
	r->due_ms = clock_now_ms();
	r->save = NULL;
	return true;
}

/* Of "58% building the index"; 0 where nothing was told. */
static unsigned progress_percent(struct str progress)
{
	unsigned percent = 0;
	for (size_t i = 0; i < progress.n && progress.p[i] >= '0' && progress.p[i] <= '9' && percent < 100; i++)
		percent = percent * 10 + (unsigned)(progress.p[i] - '0');
	return percent < 100 ? percent : 100;
}

static void step_run(struct jobs *j, struct job_run *r)
{
	static const struct job_kind unknown = {.name = "unknown"};
	const struct job_kind *kind = kind_find(j, r->job.kind);
	struct outcome o = {.run = r, .kind = kind ? kind : &unknown, .next = JOB_FAILED};
	r->due_ms = 0;
	r->why = kind ? NULL : "this version has no such job";
	r->save = kind ? kind->save : NULL;
	r->save_ctx = NULL;
	r->saved = NULL;
	r->reached = kind && kind->only_rises ? progress_percent(r->job.progress) : 0;
	r->told = false;
	if (!r->reached)
		r->job.progress = STR_NONE;
	r->progress_us = clock_mono_us();
	uint64_t before = json_corruptions();
	int64_t begun_ms = clock_now_ms(), begun_us = clock_mono_us();
	if (kind && is_elsewhere(j, r))
		o.next = JOB_LATER;
	else if (kind)
		o.next = kind->step ? kind->step(r) : JOB_DONE;
	o.ended_ms = begun_ms + (clock_is_virtual() ? 0 : (clock_mono_us() - begun_us) / 1000);
	if (json_corruptions() != before) {
		o.next = -EIO;
		r->why = "a document that it needs cannot be read";
		r->save = NULL;
	}
	tx_rest(r->reader);
	if (o.next == -ECANCELED && j->stop_asked) {
		o.next = JOB_LATER;
		r->due_ms = clock_now_ms();
		r->save = NULL;
	}
	if (o.next < 0 && !r->why)
		r->why = arena_z(r->arena, str_of(strerror(-o.next)));
	if (o.next < 0 || o.next == JOB_FAILED) {
		step_log_failure(&o);
		j->retries++;
	}
	int result = store_write_wait(j->store, save_run, &o);
	if (result < 0 && result != -ESTALE && o.next >= 0 && o.next != JOB_FAILED) {
		/* The work is done but could not be saved: that is a failed step. */
		o.next = result;
		r->why = "the outcome could not be saved";
		step_log_failure(&o);
		result = store_write_wait(j->store, save_run, &o);
	}
	if (result < 0 && result != -ESTALE && result != -ESHUTDOWN)
		log_error("job %.*s: its state could not be saved (error %d); it goes on after the next start",
		          STR_ARG(r->job.id), result);
	if (result == 0 && r->saved)
		r->saved(r);
	j->steps++;
}

/* A clock that ran ahead has made jobs due then, and those that were done then would wait until it is there again. */
static int put_back_run(struct tx *tx, void *ctx)
{
	const struct put_back *p = ctx;
	int64_t now = clock_now_ms();
	int r = tx_jobs_put_back(tx, now, now + p->by_ms + AHEAD_MS, p->by_ms);
	return r < 0 ? r : jobs_schedule(tx, p->jobs);
}

static void clock_look(struct jobs *j)
{
	struct put_back p = {.jobs = j};
	pthread_mutex_lock(&j->lock);
	const struct clock_seen before = j->clock;
	p.by_ms = clock_put_back(&j->clock);
	pthread_mutex_unlock(&j->lock);
	if (p.by_ms < PUT_BACK_MS)
		return;
	log_warn("jobs: the clock was put back by %lld ms: what waits for where it was is due now", (long long)p.by_ms);
	if (store_write_wait(j->store, put_back_run, &p) == 0)
		return;
	pthread_mutex_lock(&j->lock);
	j->clock = before; /* once more, with the next look */
	pthread_mutex_unlock(&j->lock);
}

/* Waits until something changes or is due. */
static void wait_for_work(struct jobs *j, uint64_t seen, bool timed, int64_t due_ms)
{
	int64_t wait_ms = due_ms - clock_now_ms();
	int64_t until_us = clock_mono_us() + (wait_ms < LOOK_MS ? wait_ms : LOOK_MS) * 1000;
	struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
	int r = 0;
	pthread_mutex_lock(&j->lock);
	while (!j->stopping && j->generation == seen && r != ETIMEDOUT)
		r = timed ? pthread_cond_timedwait(&j->changed, &j->lock, &until)
		          : pthread_cond_wait(&j->changed, &j->lock);
	pthread_mutex_unlock(&j->lock);
}

static bool generation_read(struct jobs *j, uint64_t *ret_generation)
{
	pthread_mutex_lock(&j->lock);
	bool stopping = j->stopping;
	*ret_generation = j->generation;
	pthread_mutex_unlock(&j->lock);
	return !stopping;
}

static void *worker_main(void *arg)
{
	struct jobs *j = arg;
	struct claim k = {.run = {.jobs = j, .store = j->store, .ctx = j->ctx, .arena = arena_new()},
	                  .worker = atomic_fetch_add(&j->numbers, 1)};
	struct job_run *r = &k.run;
	char skip[SKIP_TEXT];
	uint64_t seen;
	r->reader = j->readers[k.worker];
	while (generation_read(j, &seen)) {
		int64_t due_ms = 0;
		clock_look(j);
		tx_begin_read(r->reader);
		int next = tx_job_next(r->reader, skip_write(j, false, skip), &due_ms);
		tx_end_read(r->reader);
		tx_rest(r->reader);
		bool due = next == 0 && due_ms <= clock_now_ms();
		if (due) {
			atomic_fetch_add(&j->busy, 1);
			next = store_write_wait(j->store, claim_run, &k);
			if (next == 0)
				step_run(j, r);
			atomic_fetch_sub(&j->busy, 1);
			bool shared_out = skip_write(j, false, skip).n > 0;
			worker_set(j, k.worker, STR_NONE, NULL);
			/* Workers that found nothing because a tenant or a kind had its share must look again. */
			if (shared_out)
				wake(j);
			arena_reset(r->arena);
		}
		if (next < 0 && next != -ENOENT) /* nobody wakes us when the store works again */
			wait_for_work(j, seen, true, clock_now_ms() + BACKOFF_MS);
		else if (!due) /* a virtual clock moves only with a wake */
			wait_for_work(j, seen, next == 0 && !clock_is_virtual(), due_ms);
	}
	arena_free(r->arena);
	return NULL;
}

static int recover_run(struct tx *tx, void *ctx)
{
	struct jobs *j = ctx;
	int64_t count = 0;
	int r = tx_jobs_recover(tx, &count);
	if (r == 0)
		r = tx_jobs_forget(tx, STR_NONE, clock_now_ms() - FAILED_KEPT_MS);
	if (r == 0 && !clock_is_virtual()) /* while no service ran */
		r = tx_jobs_put_back(tx, clock_now_ms(), 0, 0);
	if (r == 0)
		r = jobs_schedule(tx, j);
	if (r == 0 && count)
		log_info("jobs: %lld go on from where they were", (long long)count);
	return r;
}

int jobs_start(const struct jobs_options *o, struct jobs **ret_jobs)
{
	struct jobs *j = must_calloc(1, sizeof *j);
	unsigned wanted = o->threads ? o->threads : THREADS;
	/* Extra workers, so that `wanted` can be busy while some stay free for other tenants. */
	wanted += wanted > 1 ? (wanted + 3) / 4 : 0;
	wanted = wanted < THREADS_MAX ? wanted : THREADS_MAX;
	pthread_condattr_t monotonic;
	*j = (struct jobs){.store = o->store,
	                   .moves_most = o->moves,
	                   .kinds = o->kinds,
	                   .kind_count = o->kind_count,
	                   .ctx = o->ctx,
	                   .host_of = o->host_of};
	j->workers = wanted;
	random_text(j->owner, 16, "0123456789abcdef");
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&j->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int r = store_write_wait(o->store, recover_run, j);
	store_on_jobs(o->store, wake, j);
	for (unsigned i = 0; r == 0 && i < wanted; i++)
		if (!(j->readers[i] = store_reader(o->store)))
			r = -EIO;
	for (unsigned i = 0; r == 0 && i < wanted; i++) {
		r = -pthread_create(&j->threads[i], NULL, worker_main, j);
		j->thread_count += r == 0;
	}
	if (r < 0) {
		fprintf(stderr, "steward: the workers for jobs cannot start: %s\n", strerror(-r));
		jobs_stop(j);
		return r;
	}
	*ret_jobs = j;
	return 0;
}

static int nothing(struct tx *tx, void *ctx)
{
	return 0;
}

void jobs_stop(struct jobs *j)
{
	if (!j)
		return;
	store_on_jobs(j->store, NULL, NULL);
	pthread_mutex_lock(&j->lock);
	j->stopping = true;
	j->stop_asked = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	for (unsigned i = 0; i < j->thread_count; i++)
		pthread_join(j->threads[i], NULL);
	for (unsigned i = 0; i < j->workers; i++)
		store_reader_free(j->readers[i]);
	/* A wake may still be running on the store's thread; this write comes after it. */
	if (store_write_wait(j->store, nothing, NULL) < 0)
		log_debug("jobs: the store is closed already");
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->changed);
	free(j);
}

/* Nothing is due, and nobody is between a claim and its end. Those are counted before the claim, so a job that the look
 * at the store does not find any more is found here; one that ended in between has moved the count of steps. */
static bool is_settled(struct jobs *j, struct tx *reader)
{
	uint64_t steps = j->steps;
	int64_t due_ms = 0;
	if (atomic_load(&j->busy))
		return false;
	tx_begin_read(reader);
	int next = tx_job_next(reader, STR_NONE, &due_ms);
	tx_end_read(reader);
	tx_rest(reader);
	bool due = next != -ENOENT && (next < 0 || due_ms <= clock_now_ms());
	return !due && !atomic_load(&j->busy) && steps == j->steps;
}

bool jobs_settle(struct jobs *j, int64_t wait_ms)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	struct tx *reader = j ? store_reader(j->store) : NULL;
	int64_t end_us = clock_mono_us() + wait_ms * 1000;
	bool settled = false;
	if (reader)
		jobs_wake(j);
	while (reader && !(settled = is_settled(j, reader)) && clock_mono_us() < end_us)
		nanosleep(&nap, NULL);
	store_reader_free(reader);
	return settled;
}

const _Atomic bool *job_stop(const struct job_run *r)
{
	return &r->jobs->stop_asked;
}

static int progress_save_run(struct tx *tx, void *ctx)
{
	return tx_job_save(tx, ctx);
}

void job_read_end(struct job_run *r)
{
	tx_end_read(r->reader);
	tx_rest(r->reader);
}

void job_progress(struct job_run *r, unsigned percent, const char *what)
{
	int64_t now = clock_mono_us();
	if (now - r->progress_us < PROGRESS_US && r->told)
		return;
	percent = percent > 100 ? 100 : percent;
	if (kind_find(r->jobs, r->job.kind)->only_rises)
		r->reached = percent = percent > r->reached ? percent : r->reached;
	r->told = true;
	r->job.progress = arena_printf(r->arena, "%u%% %s", percent, what);
	/* The progress of a short step is saved with its outcome. */
	if (now - r->progress_us < PROGRESS_US)
		return;
	r->progress_us = now;
	if (store_write_wait(r->store, progress_save_run, &r->job) < 0)
		log_debug("job %.*s: its progress was not saved", STR_ARG(r->job.id));
}
