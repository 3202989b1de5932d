/* The ring between the thread that makes a body and the loop that sends it; and one thread that asks, for all streams,
 * whether their clients still have a right to them. It lives while there are streams to ask about.
 *
 * A stream is held by its thread, by the loop until close(), and by the thread that asks while it asks. */
#include "call/stream.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define RING (64ul * 1024)
#define UNKNOWN_MAX 60 /* questions about rights in a row that may go unanswered */

struct stream {
	struct stream *next, *prev; /* of all that are asked about */
	struct request *request;
	struct stream_maker maker;
	_Atomic unsigned refs;
	pthread_mutex_t lock;
	pthread_cond_t room;
	char ring[RING];
	size_t from, count;
	uint64_t taken; /* bytes, by the client */
	struct pace pace;
	int64_t begun_us;
	unsigned unknown;                         /* questions without an answer; of the thread that asks */
	bool made, ended, failed, closed, is_cut; /* by the thread thrice, by the loop, by whoever ends it */
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_less = PTHREAD_COND_INITIALIZER;
static size_t threads;
static struct stream *asked_about;
static bool asking; /* the thread that asks is there */

/* The machine's clock, which nobody can set back; that of the tests where they have one. */
static int64_t now_us(void)
{
	return clock_is_virtual() ? clock_now_ms() * 1000 : clock_mono_us();
}

bool pace_is_slow(struct pace *p, int64_t us, uint64_t taken, unsigned least)
{
	p->waited_us += us;
	if (p->waited_us < STREAM_WINDOW_US)
		return false;
	bool slow = taken - p->taken < (uint64_t)least * (uint64_t)p->waited_us / 1000000;
	*p = (struct pace){.taken = taken};
	return slow;
}

static void stream_unref(struct stream *s)
{
	if (atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	s->maker.end(s->maker.ctx);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->room);
	free(s);
}

static ssize_t stream_read(void *ctx, char *ret_bytes, size_t n)
{
	struct stream *s = ctx;
	ssize_t done = 0;
	pthread_mutex_lock(&s->lock);
	while ((size_t)done < n && s->count && !s->is_cut) {
		size_t part = RING - s->from < s->count ? RING - s->from : s->count;
		part = part < n - (size_t)done ? part : n - (size_t)done;
		memcpy(ret_bytes + done, s->ring + s->from, part);
		s->from = (s->from + part) % RING;
		s->count -= part;
		done += (ssize_t)part;
	}
	s->taken += (uint64_t)done;
	if (!done)
		done = s->failed || s->is_cut ? -EIO : s->ended ? 0 : -EAGAIN;
	pthread_cond_signal(&s->room);
	pthread_mutex_unlock(&s->lock);
	return done;
}

static void stream_close(void *ctx)
{
	struct stream *s = ctx;
	pthread_mutex_lock(&s->lock);
	s->closed = true;
	if (!s->made && !s->is_cut && s->maker.cut)
		s->maker.cut(s->maker.ctx);
	pthread_cond_signal(&s->room);
	pthread_mutex_unlock(&s->lock);
	stream_unref(s);
}

/* With the lock held: its client gets no more of it. */
static void stream_end_now(struct stream *s, const char *why)
{
	if (s->closed || s->is_cut)
		return;
	s->is_cut = true;
	log_info("request %s: its download was ended: %s", s->request->id, why);
	if (!s->made && s->maker.cut)
		s->maker.cut(s->maker.ctx);
	pthread_cond_signal(&s->room);
	http_stream_ready(s->request);
}

/* With the lock held: waits, some time at most, until the client has read. */
static void room_wait(struct stream *s)
{
	int64_t before = now_us(), until = clock_mono_us() + 1000000;
	struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
	pthread_cond_timedwait(&s->room, &s->lock, &t);
	int64_t now = now_us();
	unsigned least = s->maker.least ? s->maker.least(s->maker.ctx) : STREAM_LEAST;
	if (pace_is_slow(&s->pace, now - before, s->taken, least))
		stream_end_now(s, "its client reads too slowly");
	if (now - s->begun_us > (int64_t)s->maker.seconds * 1000000)
		stream_end_now(s, "it took too long");
}

static bool is_open(const struct stream *s)
{
	return !s->closed && !s->is_cut;
}

int stream_write(struct stream *s, const void *bytes, size_t n)
{
	const char *from = bytes;
	pthread_mutex_lock(&s->lock);
	while (n && is_open(s)) {
		while (s->count == RING && is_open(s))
			room_wait(s);
		while (is_open(s) && n && s->count < RING) {
			size_t at = (s->from + s->count) % RING, end = at < s->from ? s->from : RING, part = end - at;
			part = part < n ? part : n;
			memcpy(s->ring + at, from, part);
			from += part;
			s->count += part;
			n -= part;
		}
		if (is_open(s))
			http_stream_ready(s->request);
	}
	bool open = is_open(s);
	pthread_mutex_unlock(&s->lock);
	return open ? 0 : -EPIPE;
}

static void threads_count(bool more)
{
	pthread_mutex_lock(&all_lock);
	threads = more ? threads + 1 : threads - 1;
	pthread_cond_broadcast(&all_less);
	pthread_mutex_unlock(&all_lock);
}

void streams_wait(void)
{
	pthread_mutex_lock(&all_lock);
	while (threads)
		pthread_cond_wait(&all_less, &all_lock);
	pthread_mutex_unlock(&all_lock);
}

/* --- rights */

static void stream_ask(struct stream *s, struct tx *tx, struct arena *a)
{
	int r = -EIO;
	if (tx) {
		tx_begin_read(tx);
		r = s->maker.check(s->maker.ctx, tx, a);
		tx_end_read(tx);
	}
	s->unknown = r == 0 ? 0 : s->unknown + 1;
	pthread_mutex_lock(&s->lock);
	if (r == -EPERM)
		stream_end_now(s, "its caller has no right to it any more");
	else if (s->unknown > UNKNOWN_MAX)
		stream_end_now(s, "its caller's rights cannot be read");
	pthread_mutex_unlock(&s->lock);
}

/* With the lock held: for STREAM_CHECK_MS, or until there is no stream to ask about. */
static void asked_wait(void)
{
	int64_t until = clock_mono_us() + INT64_C(1000) * STREAM_CHECK_MS;
	struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
	int r = 0;
	while (asked_about && r != ETIMEDOUT)
		r = pthread_cond_clockwait(&all_less, &all_lock, CLOCK_MONOTONIC, &t);
}

/* Those that there are after a while, each held. NULL: there are none, and the thread that asks ends. */
static struct stream **streams_take(struct arena *a, size_t *ret_count)
{
	size_t count = 0;
	pthread_mutex_lock(&all_lock);
	asked_wait();
	for (struct stream *s = asked_about; s; s = s->next)
		count++;
	struct stream **list = count ? arena_new_array(a, struct stream *, count) : NULL;
	count = 0;
	for (struct stream *s = asked_about; s; s = s->next) {
		atomic_fetch_add(&s->refs, 1);
		list[count++] = s;
	}
	asking = count > 0;
	pthread_mutex_unlock(&all_lock);
	*ret_count = count;
	return list;
}

/* All streams of a process are of one store. Most end before the first question, and need no reader. */
static void *ask_main(void *arg)
{
	struct tx *reader = NULL;
	struct arena *a = arena_new();
	struct stream **list;
	size_t count;
	while ((list = streams_take(a, &count))) {
		if (!reader)
			reader = store_reader(arg);
		for (size_t i = 0; i < count; i++) {
			stream_ask(list[i], reader, a);
			stream_unref(list[i]);
		}
		if (reader)
			tx_rest(reader);
		arena_reset(a);
	}
	store_reader_free(reader);
	arena_free(a);
	threads_count(false);
	return NULL;
}

/* False: nobody could ask about it. */
static bool asked_add(struct stream *s)
{
	pthread_t thread;
	pthread_mutex_lock(&all_lock);
	if (!asking && pthread_create(&thread, NULL, ask_main, s->maker.store) == 0) {
		pthread_detach(thread);
		asking = true;
		threads++;
	}
	bool added = asking;
	if (added) {
		s->next = asked_about;
		if (s->next)
			s->next->prev = s;
		asked_about = s;
	}
	pthread_mutex_unlock(&all_lock);
	return added;
}

static void asked_remove(struct stream *s)
{
	pthread_mutex_lock(&all_lock);
	if (s->prev)
		s->prev->next = s->next;
	else
		asked_about = s->next;
	if (s->next)
		s->next->prev = s->prev;
	pthread_cond_broadcast(&all_less);
	pthread_mutex_unlock(&all_lock);
}

/* --- the thread of a stream */

static void *stream_main(void *arg)
{
	struct stream *s = arg;
	bool asked = s->maker.check && asked_add(s);
	bool good = asked == (s->maker.check != NULL) && s->maker.make(s->maker.ctx, s) >= 0;
	pthread_mutex_lock(&s->lock);
	s->made = true;
	/* The client has to take the rest at the same rate: its place is free only then. */
	while (good && s->count && is_open(s))
		room_wait(s);
	s->ended = good;
	s->failed = !good;
	if (!s->closed)
		http_stream_ready(s->request);
	pthread_mutex_unlock(&s->lock);
	if (asked)
		asked_remove(s);
	stream_unref(s);
	threads_count(false);
	return NULL;
}

static struct stream *stream_new(struct request *r, const struct stream_maker *maker)
{
	struct stream *s = must_calloc(1, sizeof *s);
	pthread_condattr_t monotonic;
	s->request = r;
	s->maker = *maker;
	s->begun_us = now_us();
	atomic_init(&s->refs, 2);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->room, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return s;
}

int stream_start(struct request *r, const struct stream_maker *maker)
{
	struct stream *s = stream_new(r, maker);
	pthread_t thread;
	r->response.stream = (struct body_stream){.read = stream_read, .close = stream_close, .ctx = s};
	threads_count(true);
	if (pthread_create(&thread, NULL, stream_main, s) == 0) {
		pthread_detach(thread);
		return 0;
	}
	threads_count(false);
	r->response.stream = (struct body_stream){.read = NULL};
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->room);
	free(s);
	return -EAGAIN;
}
