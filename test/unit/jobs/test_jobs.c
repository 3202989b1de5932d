/* Jobs: order, claims and fences in the store; and the workers: steps, retries, schedules, clocks, and kill -9 at
 * random moments. */
#include "check.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "jobs/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[64];

static struct store *open_store(void)
{
	struct store *s = NULL;
	struct store_options o = {.url = getenv("TEST_STORE_URL"), .data_dir = dir, .node = "unit"};
	if (store_open(&o, &s) < 0)
		exit(1);
	return s;
}

static int wipe(struct tx *tx, void *ctx)
{
	return tx_wipe(tx);
}

static void dir_clear(void)
{
	const char *const names[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	char path[128];
	if (getenv("TEST_STORE_URL")) {
		struct store *s = open_store();
		CHECK(store_write_wait(s, wipe, NULL) == 0);
		store_close(s);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* One write that makes one or more calls. */
struct ask {
	struct job job;
	bool ensure;
};

static int ask_run(struct tx *tx, void *ctx)
{
	struct ask *a = ctx;
	return a->ensure ? tx_job_ensure(tx, &a->job) : tx_job_add(tx, &a->job);
}

static void add(struct store *s, const char *kind, const char *subject, int64_t due_ms)
{
	struct ask a = {.job = {.kind = str_of(kind), .subject = str_of(subject), .due_ms = due_ms}};
	CHECK(store_write_wait(s, ask_run, &a) == 0);
}

static int64_t count(struct store *s)
{
	struct tx *tx = store_reader(s);
	int64_t n = -1;
	tx_begin_read(tx);
	CHECK(tx_job_count(tx, &n) == 0);
	tx_end_read(tx);
	tx_rest(tx);
	store_reader_free(tx);
	return n;
}

static void wait_for_none(struct store *s)
{
	for (int i = 0; i < 20000 && count(s) > 0; i++)
		nap();
	CHECK(count(s) == 0);
}

/* The store's part, in one write. */

static int store_run(struct tx *tx, void *ctx)
{
	struct arena *a = ctx;
	struct job one, two, none;
	int64_t recovered = 0, due = 0;
	struct job add_one = {.kind = STR("k"), .subject = STR("s"), .due_ms = 20},
	           add_two = {.kind = STR("k"), .subject = STR("s"), .due_ms = 10},
	           add_free = {.kind = STR("k"), .due_ms = 30};
	CHECK(tx_job_claim(tx, a, STR("me"), STR_NONE, 100, 1000, &none) == -ENOENT);
	CHECK(tx_job_add(tx, &add_one) == 0 && tx_job_add(tx, &add_two) == 0 && tx_job_add(tx, &add_free) == 0);
	/* The first job of the subject runs first, although the second is due sooner. */
	CHECK(tx_job_next(tx, STR_NONE, &due) == 0 && due == 20);
	CHECK(tx_job_claim(tx, a, STR("me"), STR_NONE, 19, 1000, &none) == -ENOENT);
	CHECK(tx_job_claim(tx, a, STR("me"), STR_NONE, 100, 1000, &one) == 0 && one.due_ms == 20 && one.fence == 1 &&
	      one.running);
	/* The subject is busy, so only the job without a subject is left. */
	CHECK(tx_job_claim(tx, a, STR("me"), STR_NONE, 100, 1000, &two) == 0 && !two.subject.n);
	CHECK(tx_job_claim(tx, a, STR("me"), STR_NONE, 100, 1000, &none) == -ENOENT);
	one.progress = STR("40% half");
	CHECK(tx_job_save(tx, &one) == 0);
	CHECK(tx_job_of(tx, a, STR("s"), &none) == 0 && str_is(none.progress, "40% half"));
	struct job stale = one;
	stale.fence--;
	CHECK(tx_job_finish(tx, &stale) == -ESTALE && tx_job_release(tx, &stale) == -ESTALE &&
	      tx_job_fail(tx, &stale) == -ESTALE);
	CHECK(tx_job_finish(tx, &one) == 0 && tx_job_finish(tx, &one) == -ESTALE);
	CHECK(tx_job_claim(tx, a, STR("me"), STR_NONE, 100, 1000, &one) == 0 && one.due_ms == 10);
	/* A dead process has lost its claims, and its saves are refused. */
	CHECK(tx_jobs_recover(tx, &recovered) == 0 && recovered == 2);
	CHECK(tx_job_finish(tx, &one) == -ESTALE && tx_job_finish(tx, &two) == -ESTALE);
	CHECK(tx_job_claim(tx, a, STR("other"), STR_NONE, 100, 1000, &one) == 0 && one.fence == 3);
	one.error = STR("why");
	CHECK(tx_job_fail(tx, &one) == 0);
	CHECK(tx_job_of(tx, a, STR("s"), &none) == 0 && none.failed && str_is(none.error, "why"));
	CHECK(tx_jobs_forget(tx, STR("s"), 0) == 0 && tx_job_of(tx, a, STR("s"), &none) == -ENOENT);
	/* A waiting job becomes due sooner, and no second one is added. */
	struct job later = {.kind = STR("e"), .subject = STR("t"), .due_ms = 1000}, sooner = later;
	sooner.due_ms = 5;
	CHECK(tx_job_ensure(tx, &later) == 0 && tx_job_ensure(tx, &sooner) == 0 && tx_job_ensure(tx, &later) == 0);
	CHECK(tx_job_count(tx, &due) == 0 && due == 2);
	CHECK(tx_job_claim(tx, a, STR("me"), STR_NONE, 6, 1000, &one) == 0 && str_is(one.kind, "e"));
	/* After it was asked for again, the old progress is gone. */
	one.progress = STR("40% half");
	CHECK(tx_job_release(tx, &one) == 0 && tx_job_find(tx, a, "e", STR("t"), &two) == 0 && two.progress.n);
	CHECK(tx_job_ensure(tx, &later) == 0 && tx_job_find(tx, a, "e", STR("t"), &two) == 0 && !two.progress.n);
	CHECK(tx_job_claim(tx, a, STR("me"), STR_NONE, 6, 1000, &one) == 0 && str_is(one.kind, "e"));
	CHECK(tx_job_ensure(tx, &later) == 0 && tx_job_count(tx, &due) == 0 && due == 3);
	struct job_tally *tally;
	size_t kinds;
	CHECK(tx_job_tally(tx, a, &tally, &kinds) == 0 && kinds == 3);
	CHECK(str_is(tally[0].kind, "e") && str_is(tally[0].state, "queued") && tally[0].count == 1);
	CHECK(str_is(tally[1].kind, "e") && str_is(tally[1].state, "running") && tally[1].count == 1);
	CHECK(tx_jobs_cancel(tx, "e", STR("t")) == 0 && tx_job_count(tx, &due) == 0 && due == 2);
	return -ECANCELED; /* leaves nothing behind */
}

static void test_store(void)
{
	struct store *s = open_store();
	struct arena *a = arena_new();
	CHECK(store_write_wait(s, store_run, a) == -ECANCELED);
	CHECK(count(s) == 0);
	arena_free(a);
	store_close(s);
}

/* The workers. */

static atomic_int runs, at_once, most_at_once, saves, failures, ticks;
static atomic_bool meet; /* wait for another worker */

static int quick_save(struct tx *tx, struct job_run *r)
{
	saves++;
	return 0;
}

static int quick(struct job_run *r)
{
	int now = ++at_once, most = most_at_once;
	while (now > most && !atomic_compare_exchange_weak(&most_at_once, &most, now))
		;
	/* On a busy machine the other workers may start late. */
	for (int i = 0; meet && i < 10000 && most_at_once < 2; i++)
		nap();
	nap();
	runs++;
	at_once--;
	r->save = quick_save;
	return JOB_DONE;
}

static int steps(struct job_run *r)
{
	runs++;
	return r->job.step < 3 ? JOB_STEP : JOB_DONE;
}

static int flaky(struct job_run *r)
{
	runs++;
	r->why = "not yet";
	return r->job.attempt < 2 ? -EIO : JOB_DONE;
}

static int broken(struct job_run *r)
{
	runs++;
	return -EIO;
}

static int broken_failed(struct tx *tx, struct job_run *r)
{
	failures++;
	return 0;
}

/* The document that it saves has changed meanwhile: that is not a lost claim. */
static int outdated_save(struct tx *tx, struct job_run *r)
{
	return -ESTALE;
}

static int outdated(struct job_run *r)
{
	r->save = r->job.attempt < 2 ? outdated_save : NULL;
	runs++;
	return JOB_DONE;
}

static int later(struct job_run *r)
{
	r->due_ms = r->job.created_ms + 60000;
	if (clock_now_ms() < r->due_ms)
		return JOB_LATER;
	runs++;
	return JOB_DONE;
}

static int tick(struct job_run *r)
{
	ticks++;
	return JOB_DONE;
}

/* What it was told, as the step finds it: at the second attempt what the first has told, and less does not count. */
static char told[3][32];

static int rises(struct job_run *r)
{
	job_progress(r, r->job.attempt == 0 ? 40 : r->job.attempt == 1 ? 0 : 41, "at work");
	str_copy(r->job.progress, told[r->job.attempt], sizeof told[0]);
	runs++;
	return r->job.attempt < 2 ? -EIO : JOB_DONE;
}

static const struct job_kind kinds[] = {
        {.name = "quick", .step = quick},
        {.name = "steps", .step = steps},
        {.name = "flaky", .step = flaky},
        {.name = "broken", .step = broken, .failed = broken_failed, .attempts = 3},
        {.name = "later", .step = later},
        {.name = "outdated", .step = outdated},
        {.name = "written", .save = quick_save},
        {.name = "rises", .step = rises, .only_rises = true},
        {.name = "sinks", .step = rises},
        {.name = "tick", .step = tick, .period_ms = 3600000},
};

static struct jobs *start(struct store *s, size_t kind_count)
{
	struct jobs *j = NULL;
	struct jobs_options o = {.store = s, .kinds = kinds, .kind_count = kind_count};
	CHECK(jobs_start(&o, &j) == 0);
	return j;
}

static void test_workers(void)
{
	struct store *s = open_store();
	struct jobs *j = start(s, 9);
	char subject[16];
	meet = true;
	for (int i = 0; i < 40; i++) {
		snprintf(subject, sizeof subject, "s%d", i);
		add(s, "quick", subject, 0);
	}
	wait_for_none(s);
	CHECK(runs == 40 && saves == 40 && most_at_once > 1 && most_at_once <= 5);
	meet = false;
	runs = most_at_once = 0;
	for (int i = 0; i < 10; i++)
		add(s, "quick", "one", 0);
	wait_for_none(s);
	CHECK(runs == 10 && most_at_once == 1);
	runs = 0;
	add(s, "steps", "x", 0);
	wait_for_none(s);
	CHECK(runs == 4);
	saves = 0;
	add(s, "written", "w", 0);
	wait_for_none(s);
	CHECK(runs == 4 && saves == 1);
	jobs_stop(j);
	store_close(s);
}

/* Moves the clock until no job waits. */
static void pass_time(struct store *s, struct jobs *j, int64_t ms)
{
	for (int i = 0; i < 5000 && count(s) > 0; i++) {
		clock_advance_ms(ms);
		jobs_wake(j);
		nap();
	}
	CHECK(count(s) == 0);
}

static bool waits(struct store *s, const char *subject)
{
	struct tx *tx = store_reader(s);
	struct arena *a = arena_new();
	struct job job;
	bool queued = tx_job_of(tx, a, str_of(subject), &job) == 0 && !job.running;
	arena_free(a);
	store_reader_free(tx);
	return queued;
}

static void test_time(void)
{
	struct store *s = open_store();
	struct jobs *j = start(s, 9);
	runs = 0;
	add(s, "flaky", "f", 0);
	pass_time(s, j, 1000);
	CHECK(runs == 3);
	runs = 0;
	add(s, "outdated", "o", 0);
	pass_time(s, j, 1000);
	CHECK(runs == 3);
	runs = 0;
	add(s, "broken", "b", 0);
	pass_time(s, j, 60000);
	CHECK(runs == 3 && failures == 1);
	add(s, "nothing", "n", 0);
	pass_time(s, j, 60000);
	add(s, "rises", "up", 0);
	pass_time(s, j, 60000);
	CHECK(strcmp(told[0], "40% at work") == 0 && strcmp(told[1], "40% at work") == 0 &&
	      strcmp(told[2], "41% at work") == 0);
	add(s, "sinks", "down", 0);
	pass_time(s, j, 60000);
	CHECK(strcmp(told[0], "40% at work") == 0 && strcmp(told[1], "0% at work") == 0);
	runs = 0;
	add(s, "later", "l", 0);
	nap();
	nap();
	CHECK(count(s) == 1 && runs == 0);
	clock_advance_ms(59000);
	jobs_wake(j);
	for (int i = 0; i < 20; i++)
		nap();
	CHECK(count(s) == 1 && runs == 0);
	clock_advance_ms(1000);
	jobs_wake(j);
	wait_for_none(s);
	CHECK(runs == 1);
	jobs_stop(j);
	j = start(s, 10);
	for (int i = 0; i < 3; i++) {
		int before = ticks;
		clock_advance_ms(3600000);
		jobs_wake(j);
		for (int k = 0; k < 10000 && ticks == before; k++)
			nap();
		CHECK(ticks == before + 1);
		/* The outcome must be saved before the clock moves on. */
		for (int k = 0; k < 10000 && !waits(s, "tick"); k++)
			nap();
	}
	jobs_stop(j);
	store_close(s);
}

static bool ticked(struct jobs *j, struct store *s, int before)
{
	jobs_wake(j);
	for (int k = 0; k < 2000 && ticks == before; k++)
		nap();
	for (int k = 0; k < 2000 && !waits(s, "tick"); k++)
		nap();
	return ticks == before + 1;
}

/* A clock that ran ahead for a while, by a year: what was done then goes on when it is right again, and what it made due
 * is due; what waits for another day waits. */
static void test_put_back(void)
{
	const int64_t year_ms = 365 * 86400000LL;
	struct store *s = open_store();
	struct jobs *j = start(s, 10);
	add(s, "quick", "far", clock_now_ms() + 2 * year_ms);
	clock_advance_ms(year_ms);
	CHECK(ticked(j, s, ticks));
	runs = 0;
	add(s, "later", "ahead", 0); /* in a minute of that time */
	for (int k = 0; k < 50; k++)
		nap();
	clock_advance_ms(-year_ms);
	jobs_wake(j);
	for (int k = 0; k < 50; k++)
		nap();
	CHECK(runs == 0);
	clock_advance_ms(60000);
	jobs_wake(j);
	for (int k = 0; k < 2000 && runs == 0; k++)
		nap();
	CHECK(runs == 1);
	clock_advance_ms(3540000);
	CHECK(ticked(j, s, ticks) && count(s) == 2 && runs == 1);
	jobs_stop(j);
	store_close(s);
}

/* Each job appends its number to a file in its last step, under O_APPEND, after saving that it is about to. Killed at
 * random moments: every job ends, and no step that was saved is run again. */
static const char *ledger;

static int crash_save(struct tx *tx, struct job_run *r)
{
	struct doc d = {.kind = STR("done"), .id = r->job.subject, .body = STR("{}")};
	return tx_insert(tx, &d);
}

static int crash_step(struct job_run *r)
{
	if (r->job.step < 2)
		return JOB_STEP;
	r->save = crash_save;
	return JOB_DONE;
}

static const struct job_kind crash_kinds[] = {{.name = "crash", .step = crash_step}};

static void crash_child(int round)
{
	struct store *s = open_store();
	struct jobs *j = NULL;
	struct jobs_options o = {.store = s, .kinds = crash_kinds, .kind_count = 1};
	if (jobs_start(&o, &j) < 0)
		_exit(1);
	for (int i = 0; i < 2000; i++) {
		char subject[32];
		snprintf(subject, sizeof subject, "r%dj%d", round, i);
		struct ask a = {.job = {.kind = STR("crash"), .subject = str_of(subject)}};
		if (store_write_wait(s, ask_run, &a) < 0)
			_exit(1);
		dprintf(3, "%s\n", subject);
	}
	_exit(0);
}

static void crash_round(int round)
{
	unsigned char wait;
	random_bytes(&wait, 1);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(ledger, O_WRONLY | O_CREAT | O_APPEND, 0600);
		if (fd != 3)
			dup2(fd, 3);
		crash_child(round);
	}
	/* Not before it has begun. */
	struct stat info = {.st_size = 0};
	off_t before = stat(ledger, &info) == 0 ? info.st_size : 0;
	for (int i = 0; i < 15000 && (stat(ledger, &info) < 0 || info.st_size == before); i++)
		nap();
	nanosleep(&(struct timespec){.tv_nsec = wait * 300000L}, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_crashes(void)
{
	char path[128], line[64];
	snprintf(path, sizeof path, "%s/ledger", dir);
	ledger = path;
	for (int round = 0; round < 8; round++)
		crash_round(round);
	struct store *s = open_store();
	struct jobs *j = NULL;
	struct jobs_options o = {.store = s, .kinds = crash_kinds, .kind_count = 1};
	CHECK(jobs_start(&o, &j) == 0);
	wait_for_none(s);
	jobs_stop(j);
	/* Everything that was acknowledged was done. It was done only once, because a second insert would have
	 * failed. */
	struct tx *tx = store_reader(s);
	struct arena *a = arena_new();
	FILE *f = fopen(path, "r");
	int lost = 0, all = 0;
	while (f && fgets(line, sizeof line, f)) {
		struct doc d;
		line[strcspn(line, "\n")] = '\0';
		lost += tx_get(tx, a, "done", str_of(line), &d) != 0;
		all++;
	}
	CHECK(all > 0 && lost == 0);
	if (f)
		fclose(f);
	unlink(path);
	arena_free(a);
	store_reader_free(tx);
	store_close(s);
}

/* Turns: one organization has hundreds of jobs, each of which waits until it is released; another has one. */

static atomic_bool let_go;
static atomic_uint greedy_running, greedy_most, other_done;

static int turn_step(struct job_run *r)
{
	if (str_is(r->job.tenant, "other")) {
		other_done++;
		return JOB_DONE;
	}
	unsigned now = ++greedy_running;
	if (now > greedy_most)
		greedy_most = now;
	while (!let_go)
		nap();
	greedy_running--;
	return JOB_DONE;
}

static void add_for(struct store *s, const char *tenant, const char *subject)
{
	struct ask a = {.job = {.kind = STR("turn"),
	                        .subject = str_of(subject),
	                        .tenant = str_of(tenant),
	                        .due_ms = clock_now_ms()}};
	CHECK(store_write_wait(s, ask_run, &a) == 0);
}

static void test_turns(void)
{
	static const struct job_kind turns[] = {{.name = "turn", .step = turn_step}};
	struct store *s = open_store();
	struct jobs *j;
	char subject[16];
	let_go = false;
	for (int i = 0; i < 300; i++) {
		snprintf(subject, sizeof subject, "s%d", i);
		add_for(s, "greedy", subject);
	}
	struct jobs_options o = {.store = s, .kinds = turns, .kind_count = 1, .threads = 4};
	CHECK(jobs_start(&o, &j) == 0);
	for (int i = 0; i < 5000 && greedy_running < 4; i++)
		nap();
	/* It has the four workers that were asked for; a fifth stays free for others. */
	CHECK(greedy_running == 4);
	add_for(s, "other", "o");
	for (int i = 0; i < 5000 && !other_done; i++)
		nap();
	CHECK(other_done == 1 && greedy_most == 4);
	let_go = true;
	wait_for_none(s);
	jobs_stop(j);
	store_close(s);
}

/* Work that lasts leaves a worker to what is short, and some to what lasts and is not in the background. */
static atomic_int back_running, back_most, long_running, back_cancelled;
static atomic_bool enough;

static int lasting(struct job_run *r, atomic_int *running, atomic_int *most)
{
	int now = ++*running;
	if (now > *most)
		*most = now;
	while (!enough && !*job_stop(r))
		nap();
	--*running;
	if (enough)
		return JOB_DONE;
	back_cancelled++;
	return -ECANCELED;
}

static int in_background(struct job_run *r)
{
	return lasting(r, &back_running, &back_most);
}

static int that_lasts(struct job_run *r)
{
	static atomic_int most;
	return lasting(r, &long_running, &most);
}

static const struct job_kind lasting_kinds[] = {{.name = "back", .step = in_background, .lasts = JOB_IS_BACKGROUND},
                                                {.name = "long", .step = that_lasts, .lasts = JOB_IS_LONG},
                                                {.name = "quick", .step = quick}};

static void add_many(struct store *s, const char *kind, unsigned many)
{
	for (unsigned i = 0; i < many; i++) {
		char subject[32];
		snprintf(subject, sizeof subject, "%s%u", kind, i);
		add(s, kind, subject, 0);
	}
}

static void reach(const atomic_int *number, int wanted)
{
	for (int i = 0; i < 10000 && *number < wanted; i++)
		nap();
	CHECK(*number == wanted);
}

static void test_lasting(void)
{
	struct store *s = open_store();
	struct jobs *j = NULL;
	struct jobs_options o = {.store = s, .kinds = lasting_kinds, .kind_count = 3};
	CHECK(jobs_start(&o, &j) == 0);
	add_many(s, "back", 10);
	reach(&back_running, 3);
	add_many(s, "long", 4);
	reach(&long_running, 1);
	runs = 0;
	add_many(s, "quick", 20);
	reach(&runs, 20);
	CHECK(back_running == 3 && long_running == 1 && back_most == 3);
	/* The service stops: what is under way is asked to end, counts as no attempt, and is done after the start. */
	jobs_stop(j);
	CHECK(back_cancelled == 4 && back_running == 0 && count(s) == 14);
	struct tx *tx = store_reader(s);
	struct arena *a = arena_new();
	struct job job;
	CHECK(tx_job_of(tx, a, STR("back0"), &job) == 0 && !job.running && !job.failed && job.attempt == 0 &&
	      !job.error.n);
	arena_free(a);
	store_reader_free(tx);
	CHECK(jobs_start(&o, &j) == 0);
	reach(&back_running, 3);
	enough = true;
	wait_for_none(s);
	CHECK(back_most == 3);
	jobs_stop(j);
	store_close(s);
}

/* Work that moves all of a cluster's data has a bound of its own, over its kinds together; what is short passes by. */
static atomic_int moving, moving_most;

static int that_moves(struct job_run *r)
{
	return lasting(r, &moving, &moving_most);
}

static const struct job_kind moving_kinds[] = {
        {.name = "taken", .step = that_moves, .lasts = JOB_IS_BACKGROUND, .moves = true},
        {.name = "brought", .step = that_moves, .lasts = JOB_IS_LONG, .moves = true},
        {.name = "long", .step = that_lasts, .lasts = JOB_IS_LONG},
        {.name = "quick", .step = quick}};

static void test_moving(void)
{
	struct store *s = open_store();
	struct jobs *j = NULL;
	struct jobs_options o = {.store = s, .kinds = moving_kinds, .kind_count = 4, .threads = 8, .moves = 2};
	enough = false;
	long_running = runs = 0;
	CHECK(jobs_start(&o, &j) == 0);
	add_many(s, "taken", 5);
	add_many(s, "brought", 5);
	add_many(s, "long", 1);
	add_many(s, "quick", 20);
	reach(&runs, 20);
	reach(&long_running, 1);
	reach(&moving, 2);
	enough = true;
	wait_for_none(s);
	CHECK(moving_most == 2);
	jobs_stop(j);
	store_close(s);
}

int main(void)
{
	snprintf(dir, sizeof dir, "/tmp/test_jobs.XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	log_setup(LOG_ERROR, false);
	clock_make_virtual();
	test_store();
	test_workers();
	test_time();
	dir_clear();
	test_put_back();
	dir_clear();
	test_turns();
	dir_clear();
	test_lasting();
	dir_clear();
	test_moving();
	dir_clear();
	test_crashes();
	dir_clear();
	rmdir(dir);
	return CHECK_DONE();
}
