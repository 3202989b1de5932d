/* The places of senders are an array under one lock: the looking thread alone fills and empties them, a sender's own
 * thread only says that it is over. */
#include "jobs/senders.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define PLACES 16
#define IN_A_ROW 64 /* pieces that one thread sends to a receiver */
#define VIA_TEXT 64
#define RECORD_TRIES 30 /* a second apart: what has left must be written down, or it leaves again */
#define SECOND_US INT64_C(1000000)
#define CLOSE_US (5 * SECOND_US)
#define SKEW_MS 7200000 /* times further away were set by a clock that was wrong */

struct place {
	struct senders *senders;
	pthread_t thread;
	bool used, over; /* over: to be joined; under the lock */
	bool failing;
	char receiver[ID_LEN + 1], tenant[ID_LEN + 1], via[VIA_TEXT];
	void *item;
};

struct senders {
	struct senders_options options;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed, ends; /* on the monotonic clock */
	bool news;
	atomic_bool closing;
	_Atomic int64_t close_by_us;
	struct place places[PLACES];
};

bool due_later(int64_t ms)
{
	int64_t now = clock_now_ms();
	return ms > now && ms < now + SKEW_MS;
}

bool senders_end(const struct senders *s)
{
	return atomic_load(&s->closing);
}

bool senders_cut_off(void *ctx)
{
	struct senders *s = ctx;
	return atomic_load(&s->closing) && clock_mono_us() > atomic_load(&s->close_by_us);
}

void senders_pause(struct senders *s, int64_t us)
{
	int64_t due_us = clock_mono_us() + us;
	struct timespec until = {.tv_sec = due_us / SECOND_US, .tv_nsec = due_us % SECOND_US * 1000};
	pthread_mutex_lock(&s->lock);
	while (!senders_end(s) && clock_mono_us() < due_us)
		pthread_cond_timedwait(&s->ends, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
}

int senders_record(struct senders *s, int (*record)(struct tx *tx, void *ctx), void *ctx)
{
	int r = store_write_wait(s->options.store, record, ctx);
	for (unsigned i = 0; i < RECORD_TRIES && r < 0 && r != -ESTALE && r != -ESHUTDOWN && !senders_end(s); i++) {
		senders_pause(s, SECOND_US);
		r = store_write_wait(s->options.store, record, ctx);
	}
	return r;
}

static void *place_run(void *arg)
{
	struct place *p = arg;
	struct senders *s = p->senders;
	for (unsigned i = 0; i < IN_A_ROW && !senders_end(s); i++)
		if (!s->options.send(s->options.ctx, p->item))
			break;
	s->options.done(s->options.ctx, p->item);
	pthread_mutex_lock(&s->lock);
	p->over = true;
	s->news = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void places_join(struct senders *s, bool all)
{
	for (size_t i = 0; i < PLACES; i++) {
		struct place *p = &s->places[i];
		pthread_mutex_lock(&s->lock);
		bool over = p->used && (all || p->over);
		pthread_mutex_unlock(&s->lock);
		if (!over)
			continue;
		pthread_join(p->thread, NULL);
		*p = (struct place){.used = false};
	}
}

/* Names are kept as far as they fit, and compared so. */
static bool is_kept(struct str name, const char *kept, size_t size)
{
	return str_is((struct str){name.p, name.n < size ? name.n : size - 1}, kept);
}

/* A free place, unless the receiver has one already or its tenant has its share. So that a few tenants with receivers
 * that never answer cannot take all places, the last ones are for tenants that have none yet, and not all are for
 * receivers that failed. */
static struct place *place_find(struct senders *s, const struct sender_for *whom)
{
	const struct senders_options *o = &s->options;
	struct place *free_one = NULL;
	unsigned of_tenant = 0, of_failing = 0, of_via = 0, unused = 0;
	for (size_t i = 0; i < PLACES; i++) {
		struct place *p = &s->places[i];
		if (!p->used) {
			free_one = p;
			unused++;
			continue;
		}
		if (whom->receiver.n && is_kept(whom->receiver, p->receiver, sizeof p->receiver))
			return NULL;
		of_tenant += is_kept(whom->tenant, p->tenant, sizeof p->tenant);
		of_failing += p->failing;
		of_via += whom->via.n && is_kept(whom->via, p->via, sizeof p->via);
	}
	if (of_tenant >= o->of_tenant || (of_tenant && unused <= o->spare) || (o->of_via && of_via >= o->of_via) ||
	    (whom->failing && of_failing >= o->failing))
		return NULL;
	return free_one;
}

bool senders_have_place(struct senders *s, const struct sender_for *whom)
{
	return place_find(s, whom);
}

bool senders_start(struct senders *s, const struct sender_for *whom, void *item)
{
	struct place *p = place_find(s, whom);
	if (!p)
		return false;
	*p = (struct place){.senders = s, .used = true, .failing = whom->failing, .item = item};
	str_copy(whom->receiver, p->receiver, sizeof p->receiver);
	str_copy(whom->tenant, p->tenant, sizeof p->tenant);
	str_copy(whom->via, p->via, sizeof p->via);
	if (pthread_create(&p->thread, NULL, place_run, p) == 0)
		return true;
	log_error("%s: no thread to send with", s->options.name);
	*p = (struct place){.used = false};
	return false;
}

/* Waits for news, or for a while. Returns whether there were any. */
static bool look_wait(struct senders *s)
{
	pthread_mutex_lock(&s->lock);
	int64_t due_us = clock_mono_us() + s->options.look_us;
	struct timespec until = {.tv_sec = due_us / SECOND_US, .tv_nsec = due_us % SECOND_US * 1000};
	if (!s->news && !senders_end(s))
		pthread_cond_timedwait(&s->changed, &s->lock, &until);
	bool news = s->news;
	s->news = false;
	pthread_mutex_unlock(&s->lock);
	return news;
}

static void *look_run(void *arg)
{
	struct senders *s = arg;
	bool news = true;
	while (!senders_end(s)) {
		places_join(s, false);
		s->options.due(s->options.ctx, news);
		news = look_wait(s);
	}
	places_join(s, true);
	return NULL;
}

void senders_wake(struct senders *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->news = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void senders_free(struct senders *s)
{
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	pthread_cond_destroy(&s->ends);
	free(s);
}

int senders_open(const struct senders_options *o, struct senders **ret_senders)
{
	struct senders *s = must_calloc(1, sizeof *s);
	pthread_condattr_t attributes;
	s->options = *o;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attributes);
	pthread_cond_init(&s->ends, &attributes);
	pthread_condattr_destroy(&attributes);
	/* The looking thread calls the caller's functions, which ask for the senders: they are there before it is. */
	*ret_senders = s;
	if (pthread_create(&s->thread, NULL, look_run, s) == 0)
		return 0;
	*ret_senders = NULL;
	senders_free(s);
	return -EAGAIN;
}

void senders_close(struct senders *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->close_by_us, clock_mono_us() + CLOSE_US);
	atomic_store(&s->closing, true);
	pthread_cond_signal(&s->changed);
	pthread_cond_broadcast(&s->ends);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	senders_free(s);
}
