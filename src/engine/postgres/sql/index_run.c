/* Builds of indexes take hours, so each has a thread of its own: the jobs that ask for them only look at times how far
 * they are, and keep no worker from other work. A build that nobody asks about any more, since its cluster is gone,
 * ends with the server, and is forgotten after a while. */
#include "engine/postgres/sql/index_run.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/work.h"
#include "engine/postgres/sql/index.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE 4     /* of a host */
#define FIRST_MS 1500 /* most builds are over by then */
#define FIRST_STEP_MS 20
#define AGAIN_MS 1000
#define FORGET_MS 600000

/* The fields that the thread changes: under the engine's lock. */
struct pg_index_task {
	struct pg_index_task *next;
	struct engine *engine;
	struct arena *arena;
	struct engine_index want;
	_Atomic bool stop;
	unsigned percent;
	char what[64];
	bool over;
	int64_t over_ms;
	int result;
	const char *why; /* in the arena; NULL: none */
};

/* --- a copy of the wish, which the caller takes away */

static const char *text_copy(struct arena *a, const char *text)
{
	return text ? arena_z(a, str_of(text)) : NULL;
}

static struct engine_index_test test_copy(struct arena *a, const struct engine_index_test *from)
{
	struct engine_index_test to = *from;
	const char **values = arena_new_array(a, const char *, from->value_count + 1);
	for (size_t i = 0; i < from->value_count; i++)
		values[i] = text_copy(a, from->values[i]);
	to.field = text_copy(a, from->field);
	to.values = values;
	return to;
}

static const struct engine_search *search_copy(struct arena *a, const struct engine_search *from)
{
	struct engine_search *to = from ? arena_new_array(a, struct engine_search, 1) : NULL;
	if (to)
		*to = (struct engine_search){.id = text_copy(a, from->id),
		                             .name = text_copy(a, from->name),
		                             .definition = text_copy(a, from->definition),
		                             .place = text_copy(a, from->place),
		                             .vectors = from->vectors};
	return to;
}

static struct engine_index want_copy(struct arena *a, const struct engine_index *from)
{
	struct engine_index to = *from;
	struct engine_index_key *keys = arena_new_array(a, struct engine_index_key, from->key_count + 1);
	struct engine_index_test *tests = arena_new_array(a, struct engine_index_test, from->test_count + 1);
	for (size_t i = 0; i < from->key_count; i++)
		keys[i] = (struct engine_index_key){text_copy(a, from->keys[i].field), from->keys[i].kind};
	for (size_t i = 0; i < from->test_count; i++)
		tests[i] = test_copy(a, &from->tests[i]);
	to.cluster_id = text_copy(a, from->cluster_id);
	to.id = text_copy(a, from->id);
	to.database = text_copy(a, from->database);
	to.table = text_copy(a, from->table);
	to.name = text_copy(a, from->name);
	to.collation = text_copy(a, from->collation);
	to.language = text_copy(a, from->language);
	to.search = search_copy(a, from->search);
	to.keys = keys;
	to.tests = tests;
	return to;
}

/* --- how far it is */

/* Where each phase begins and how much it is of the whole, roughly. The steps within the building of a B-tree count
 * from 0 each, so that they have shares of their own: the sum of all once fell from 60 back to 2. */
unsigned pg_index_percent(const char *phase, unsigned done, const char **ret_what)
{
	static const struct {
		const char *begin, *what;
		unsigned from, share;
	} phases[] = {{"waiting for writers before build", "waiting for transactions that write", 1, 0},
	              {"building index: initializing", "building the index", 2, 0},
	              {"building index: sorting live", "building the index", 42, 0},
	              {"building index: sorting dead", "building the index", 43, 0},
	              {"building index: loading", "building the index", 44, 15},
	              {"building index", "building the index", 2, 40},
	              {"waiting for writers before validation", "waiting for transactions that write", 60, 0},
	              {"index validation: scanning index", "checking the index", 61, 9},
	              {"index validation: sorting", "checking the index", 70, 0},
	              {"index validation: scanning table", "checking the index", 75, 20},
	              {"waiting for", "waiting for older transactions", 95, 0}};
	*ret_what = "building the index";
	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
		if (strncmp(phase, phases[i].begin, strlen(phases[i].begin)) == 0) {
			*ret_what = phases[i].what;
			return phases[i].from + phases[i].share * (done > 100 ? 100 : done) / 100;
		}
	return 0;
}

/* --- the thread */

static void progress_take(void *ctx, unsigned percent, const char *what)
{
	struct pg_index_task *t = ctx;
	pthread_mutex_lock(&t->engine->lock);
	t->percent = percent;
	snprintf(t->what, sizeof t->what, "%s", what);
	pthread_mutex_unlock(&t->engine->lock);
}

static void *task_run(void *arg)
{
	struct pg_index_task *t = arg;
	struct engine *e = t->engine;
	struct engine_progress progress = {.tell = progress_take, .ctx = t, .stop = &t->stop};
	const char *why = NULL;
	int r = pg_index_build_here(e, &t->want, &progress, t->arena, &why);
	pthread_mutex_lock(&e->lock);
	t->result = r;
	t->why = why;
	t->over = true;
	t->over_ms = pg_mono_ms();
	pthread_mutex_unlock(&e->lock);
	pg_engine_work_done(e);
	return NULL;
}

/* --- the list, with the engine's lock */

static struct pg_index_task *task_find(const struct engine *e, const char *id, unsigned *ret_running)
{
	struct pg_index_task *found = NULL;
	*ret_running = 0;
	for (struct pg_index_task *t = e->index_tasks; t; t = t->next) {
		*ret_running += !t->over;
		if (strcmp(t->want.id, id) == 0)
			found = t;
	}
	return found;
}

static void task_free(struct pg_index_task *t)
{
	arena_free(t->arena);
	free(t);
}

/* Those that are over: this one, or all that were left alone for long. */
static void tasks_drop(struct engine *e, const struct pg_index_task *one)
{
	for (struct pg_index_task **at = &e->index_tasks; *at;) {
		struct pg_index_task *t = *at;
		if (t->over && (t == one || (!one && pg_mono_ms() - t->over_ms > FORGET_MS))) {
			*at = t->next;
			task_free(t);
		} else {
			at = &t->next;
		}
	}
}

static struct pg_index_task *task_add(struct engine *e, const struct engine_index *want)
{
	struct pg_index_task *t = must_calloc(1, sizeof *t);
	tasks_drop(e, NULL);
	t->engine = e;
	t->arena = arena_new();
	t->want = want_copy(t->arena, want);
	snprintf(t->what, sizeof t->what, "beginning");
	t->next = e->index_tasks;
	e->index_tasks = t;
	return t;
}

/* --- for jobs */

/* 0: it is begun, or was; it is looked at for a while then. -EAGAIN: too many are under way. */
static int task_begin(struct engine *e, const struct engine_index *want, bool *ret_fresh)
{
	unsigned running;
	struct pg_index_task *t = NULL;
	pthread_mutex_lock(&e->lock);
	bool known = task_find(e, want->id, &running) != NULL, full = running >= AT_ONCE;
	if (!known && !full)
		t = task_add(e, want);
	pthread_mutex_unlock(&e->lock);
	*ret_fresh = t != NULL;
	if (!t)
		return known ? 0 : -EAGAIN;
	int r = pg_engine_work(e, task_run, t);
	if (r < 0) {
		pthread_mutex_lock(&e->lock);
		t->over = true;
		tasks_drop(e, t);
		pthread_mutex_unlock(&e->lock);
	}
	return r;
}

/* What came of it. -EAGAIN: it goes on. */
static int task_look(struct engine *e, const char *id, struct engine_progress *progress, struct arena *a,
                     const char **ret_why)
{
	unsigned running, percent = 0;
	char what[sizeof((struct pg_index_task *)0)->what] = "";
	int r = -EAGAIN;
	pthread_mutex_lock(&e->lock);
	struct pg_index_task *t = task_find(e, id, &running);
	if (t && t->over) {
		r = t->result;
		if (t->why)
			*ret_why = arena_z(a, str_of(t->why));
		tasks_drop(e, t);
	} else if (t) {
		percent = t->percent;
		memcpy(what, t->what, sizeof what);
	}
	pthread_mutex_unlock(&e->lock);
	if (r == -EAGAIN && progress->tell)
		progress->tell(progress->ctx, percent, what);
	return r;
}

int pg_index_build(struct engine *e, const struct engine_index *want, struct engine_progress *progress, struct arena *a,
                   const char **ret_why)
{
	bool fresh;
	int r = task_begin(e, want, &fresh);
	if (r == -EAGAIN && progress->tell)
		progress->tell(progress->ctx, 0, "waiting for other builds");
	int64_t end = pg_mono_ms() + (fresh ? FIRST_MS : 0);
	while (r == 0) {
		r = task_look(e, want->id, progress, a, ret_why);
		if (r != -EAGAIN || pg_mono_ms() >= end)
			break;
		if (progress->stop && atomic_load(progress->stop))
			return -ECANCELED;
		pg_sleep_ms(FIRST_STEP_MS);
		r = 0;
	}
	if (r == -EAGAIN)
		progress->again_ms = clock_now_ms() + AGAIN_MS;
	return r;
}

/* --- for the engine's end */

void pg_index_tasks_stop(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	for (struct pg_index_task *t = e->index_tasks; t; t = t->next)
		atomic_store(&t->stop, true);
	pthread_mutex_unlock(&e->lock);
}

void pg_index_tasks_free(struct engine *e)
{
	while (e->index_tasks) {
		struct pg_index_task *t = e->index_tasks;
		e->index_tasks = t->next;
		task_free(t);
	}
}
