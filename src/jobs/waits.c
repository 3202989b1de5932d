/* The list of calls that wait, of all threads. A wait is taken out of it under the lock, and sent after that. */
#include "jobs/waits.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define WAIT_US 5000000

static _Atomic uint64_t stamps;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wait *waits;
static bool closed;

uint64_t wait_stamp(void)
{
	return atomic_fetch_add(&stamps, 1) + 1;
}

/* Sends the answers of a list that is nobody else's any more. */
static void send_all(struct wait *w)
{
	while (w) {
		struct wait *next = w->next;
		w->send(w);
		w = next;
	}
}

/* The subject that it waits for; NULL: another. */
static struct waited *subject_find(const struct wait *w, struct str subject)
{
	for (size_t i = 0; i < w->count; i++)
		if (str_eq(w->subjects[i].id, subject))
			return &w->subjects[i];
	return NULL;
}

/* Takes out those that wait for nothing any more, or have waited enough. */
static struct wait *take_over(int64_t now_us)
{
	struct wait *taken = NULL;
	for (struct wait **at = &waits; *at;) {
		struct wait *w = *at;
		if (w->count && w->until_us > now_us) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = taken;
		taken = w;
	}
	return taken;
}

void wait_behind(struct str subject, uint64_t stamp, const char *why)
{
	pthread_mutex_lock(&lock);
	for (struct wait *w = waits; w; w = w->next)
		if (w->stamp < stamp && subject_find(w, subject))
			snprintf(w->behind, sizeof w->behind, "%s", why ? why : "");
	pthread_mutex_unlock(&lock);
}

void wait_done(struct str subject, uint64_t stamp)
{
	pthread_mutex_lock(&lock);
	for (struct wait *w = waits; w; w = w->next) {
		struct waited *found = w->stamp < stamp ? subject_find(w, subject) : NULL;
		if (found)
			*found = w->subjects[--w->count];
	}
	struct wait *done = take_over(0);
	pthread_mutex_unlock(&lock);
	send_all(done);
}

/* One subject that is waited for, and the kind of the job. */
struct asked {
	struct str id;
	const char *kind;
};

/* Copies of all of them, the same one perhaps more than once. */
static size_t waited_for(struct arena *a, struct asked **ret_list)
{
	size_t count = 0;
	for (const struct wait *w = waits; w; w = w->next)
		count += w->count;
	*ret_list = arena_new_array(a, struct asked, count + 1);
	count = 0;
	for (const struct wait *w = waits; w; w = w->next)
		for (size_t i = 0; i < w->count; i++)
			(*ret_list)[count++] = (struct asked){arena_dup(a, w->subjects[i].id), w->kind};
	return count;
}

void waits_poll(struct tx *reader)
{
	pthread_mutex_lock(&lock);
	struct wait *done = waits ? take_over(clock_mono_us()) : NULL;
	struct arena *a = waits ? arena_new() : NULL;
	struct asked *list;
	size_t count = a ? waited_for(a, &list) : 0;
	pthread_mutex_unlock(&lock);
	send_all(done);
	if (!a)
		return;
	uint64_t stamp = wait_stamp();
	for (size_t i = 0; i < count; i++) {
		struct job job;
		tx_begin_read(reader);
		int result = tx_job_of(reader, a, list[i].id, &job);
		tx_end_read(reader);
		/* The job was there from the write on, or one that took its place: it is done, wherever it ran. */
		if (result == -ENOENT)
			wait_done(list[i].id, stamp);
		else if (result == 0 && str_is(job.kind, list[i].kind) && job.error.n)
			wait_behind(list[i].id, stamp, arena_z(a, job.error));
	}
	arena_free(a);
}

void waits_close(void)
{
	pthread_mutex_lock(&lock);
	closed = true;
	struct wait *done = take_over(INT64_MAX);
	pthread_mutex_unlock(&lock);
	send_all(done);
}

/* On the store's thread, before any job can be claimed that the write asked for. */
static void hold(struct call *c, void *arg)
{
	struct wait *w = arg;
	w->stamp = wait_stamp();
	w->until_us = clock_mono_us() + WAIT_US;
	pthread_mutex_lock(&lock);
	bool now = closed;
	if (!now) {
		w->next = waits;
		waits = w;
	}
	pthread_mutex_unlock(&lock);
	if (now)
		w->send(w);
}

void wait_hold(const struct wait *w)
{
	struct call *c = w->call;
	struct wait *kept = arena_new_of(c->arena, struct wait);
	*kept = *w;
	c->held = hold;
	c->held_arg = kept;
}
