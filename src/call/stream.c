/* The ring between the thread that makes a body and the loop that sends it. */
#include "call/stream.h"

#include "base/arena.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define RING (64ul * 1024)

struct stream {
	struct request *request;
	struct stream_maker maker;
	pthread_mutex_t lock;
	pthread_cond_t room;
	char ring[RING];
	size_t from, count;
	bool ended, failed, closed; /* by the thread, by the thread, by the loop */
};

static void stream_free(struct stream *s)
{
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
	while ((size_t)done < n && s->count) {
		size_t part = RING - s->from < s->count ? RING - s->from : s->count;
		part = part < n - (size_t)done ? part : n - (size_t)done;
		memcpy(ret_bytes + done, s->ring + s->from, part);
		s->from = (s->from + part) % RING;
		s->count -= part;
		done += (ssize_t)part;
	}
	if (!done)
		done = s->failed ? -EIO : s->ended ? 0 : -EAGAIN;
	pthread_cond_signal(&s->room);
	pthread_mutex_unlock(&s->lock);
	return done;
}

/* Whoever comes last frees. */
static void stream_close(void *ctx)
{
	struct stream *s = ctx;
	pthread_mutex_lock(&s->lock);
	bool last = s->ended || s->failed;
	s->closed = true;
	if (!last && s->maker.cut)
		s->maker.cut(s->maker.ctx);
	pthread_cond_signal(&s->room);
	pthread_mutex_unlock(&s->lock);
	if (last)
		stream_free(s);
}

int stream_write(struct stream *s, const void *bytes, size_t n)
{
	const char *from = bytes;
	bool open = true;
	pthread_mutex_lock(&s->lock);
	while (n && open) {
		while (s->count == RING && !s->closed)
			pthread_cond_wait(&s->room, &s->lock);
		open = !s->closed;
		while (open && n && s->count < RING) {
			size_t at = (s->from + s->count) % RING, end = at < s->from ? s->from : RING, part = end - at;
			part = part < n ? part : n;
			memcpy(s->ring + at, from, part);
			from += part;
			s->count += part;
			n -= part;
		}
		if (open)
			http_stream_ready(s->request);
	}
	pthread_mutex_unlock(&s->lock);
	return open ? 0 : -EPIPE;
}

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_less = PTHREAD_COND_INITIALIZER;
static size_t threads;

static void threads_count(bool more)
{
	pthread_mutex_lock(&threads_lock);
	threads = more ? threads + 1 : threads - 1;
	pthread_cond_broadcast(&threads_less);
	pthread_mutex_unlock(&threads_lock);
}

void streams_wait(void)
{
	pthread_mutex_lock(&threads_lock);
	while (threads)
		pthread_cond_wait(&threads_less, &threads_lock);
	pthread_mutex_unlock(&threads_lock);
}

static void *stream_main(void *arg)
{
	struct stream *s = arg;
	bool good = s->maker.make(s->maker.ctx, s) >= 0;
	pthread_mutex_lock(&s->lock);
	bool last = s->closed;
	s->ended = good;
	s->failed = !good;
	if (!last)
		http_stream_ready(s->request);
	pthread_mutex_unlock(&s->lock);
	if (last)
		stream_free(s);
	threads_count(false);
	return NULL;
}

int stream_start(struct request *r, const struct stream_maker *maker)
{
	struct stream *s = must_calloc(1, sizeof *s);
	pthread_t thread;
	*s = (struct stream){.request = r, .maker = *maker};
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->room, NULL);
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
