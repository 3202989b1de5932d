/* The slow check of a store in use: a thread that reads everything, a few rows at a time with pauses, so that data that
 * a disk has lost is noticed before somebody needs it. Damage that it or a reader finds is recorded here: readiness,
 * metrics and an event report it, and a complete pass without findings clears it. */
#include "store/backend.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAUSE_MS 20
/* Findings that are logged; the others are only counted. */
#define LOGGED_MAX 20
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_IDLE (3 << 13)

struct watcher {
	struct store *store;
	struct tx *reader;
	struct watch watch;
	unsigned seconds; /* between two passes */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopping;
};

void store_damaged(struct store *s, const char *format, ...)
{
	struct damage *d = s->damage;
	char what[sizeof d->what];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	pthread_mutex_lock(&d->lock);
	uint64_t count = ++d->count;
	pthread_mutex_unlock(&d->lock);
	/* Log it before it is visible: whoever sees it in /readyz finds the reason in the log. */
	if (count <= LOGGED_MAX)
		log_error("store: damaged: %s", what);
	pthread_mutex_lock(&d->lock);
	if (!d->what[0])
		memcpy(d->what, what, sizeof what);
	pthread_mutex_unlock(&d->lock);
}

uint64_t store_damage(const struct store *s, char *ret_what, size_t size)
{
	struct damage *d = s->damage;
	pthread_mutex_lock(&d->lock);
	uint64_t count = d->what[0] ? d->count : 0;
	if (ret_what)
		snprintf(ret_what, size, "%s", d->what);
	pthread_mutex_unlock(&d->lock);
	return count;
}

static uint64_t damage_count(const struct store *s)
{
	struct damage *d = s->damage;
	pthread_mutex_lock(&d->lock);
	uint64_t count = d->count;
	pthread_mutex_unlock(&d->lock);
	return count;
}

/* A pass is complete; `before` is how much damage was known when it began. */
static void pass_over(struct store *s, uint64_t before)
{
	struct damage *d = s->damage;
	pthread_mutex_lock(&d->lock);
	d->passes++;
	bool was = d->what[0] && d->count == before;
	if (was)
		d->what[0] = '\0';
	pthread_mutex_unlock(&d->lock);
	if (was)
		log_info("store: all of it was read again, and nothing was found damaged");
}

/* False when the thread must end. */
static bool pause_ms(struct watcher *w, int64_t ms)
{
	int64_t until = clock_mono_us() + ms * 1000;
	struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
	int r = 0;
	pthread_mutex_lock(&w->lock);
	while (!w->stopping && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&w->changed, &w->lock, &t);
	bool on = !w->stopping;
	pthread_mutex_unlock(&w->lock);
	return on;
}

/* One pass over everything. False when it was interrupted. */
static bool pass(struct watcher *w)
{
	uint64_t before = damage_count(w->store);
	int r = 1;
	w->watch = (struct watch){0};
	while (r > 0 || r == -ENOTCONN) {
		r = w->store->ops->watch(w->reader, &w->watch);
		if (!pause_ms(w, r == -ENOTCONN ? 1000 : PAUSE_MS))
			return false;
	}
	if (r == 0)
		pass_over(w->store, before);
	return true;
}

static void *watcher_main(void *arg)
{
	struct watcher *w = arg;
	/* Everything else gets the processor and the disk first. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
	while (pass(w) && pause_ms(w, (int64_t)w->seconds * 1000))
		;
	return NULL;
}

int store_watch(struct store *s, unsigned seconds)
{
	if (!seconds || s->watcher)
		return 0;
	struct watcher *w = must_calloc(1, sizeof *w);
	pthread_condattr_t monotonic;
	*w = (struct watcher){.store = s, .seconds = seconds, .reader = store_reader(s)};
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int r = w->reader ? -pthread_create(&w->thread, NULL, watcher_main, w) : -EIO;
	if (r < 0) {
		store_reader_free(w->reader);
		free(w);
		return r;
	}
	s->watcher = w;
	return 0;
}

void watcher_stop(struct watcher *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	store_reader_free(w->reader);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	free(w);
}
