/* A body that a thread of its own makes while it is sent: nothing is held but a small ring, and a reader who is slow
 * slows only that thread. A stream has a place that others wait for, so it ends by itself: its client has to read at a
 * least rate, the whole may take so long and no longer, and who has lost the right to it gets no more of it. */
#ifndef STEWARD_CALL_STREAM_H
#define STEWARD_CALL_STREAM_H

#include "http/http.h"
#include "store/store.h"

#define STREAM_LEAST (64u << 10)       /* bytes a second that a client must read */
#define STREAM_LEAST_SCARCE (1u << 20) /* the same while others wait for places */
#define STREAM_WINDOW_US INT64_C(30000000)
#define STREAM_CHECK_MS 1000 /* how often rights are asked about */

struct stream;

struct stream_maker {
	/* On the thread: writes all of it. Negative: it failed, and the connection is cut. */
	int (*make)(void *ctx, struct stream *s);
	/* The client is gone: what make() waits for may be ended. Never after make() has returned. May be NULL. */
	void (*cut)(void *ctx);
	/* Once, when both the thread and the client are done with it. */
	void (*end)(void *ctx);
	/* Whether the client still has the right to it: asked STREAM_CHECK_MS after the last answer, on one thread for
	 * all streams. 0; -EPERM: not any more; another negative number: it could not be found out, and is asked
	 * again. */
	int (*check)(void *ctx, struct tx *tx, struct arena *a);
	/* The least rate now; NULL: STREAM_LEAST. */
	unsigned (*least)(void *ctx);
	void *ctx;
	struct store *store; /* for check() */
	unsigned seconds;    /* the most that the whole may take */
};

/* Starts the thread and sets the request's response.stream. -EAGAIN: no thread can be started; end() was not called. */
must_check int stream_start(struct request *r, const struct stream_maker *maker);
/* Waits for room. -EPIPE: the client is gone, too slow or has lost its right. */
must_check int stream_write(struct stream *s, const void *bytes, size_t n);
/* The clients are gone and no stream is begun any more: until the threads have ended, because what they read from ends
 * next. */
void streams_wait(void);

/* How fast a client reads, measured only while we wait for it: it does not answer for the time that we take. */
struct pace {
	int64_t waited_us; /* in this window */
	uint64_t taken;    /* bytes, when the window began */
};
/* We have waited for `us` more, and the client has taken so much in all. True: the window is over, and it took less
 * than `least` bytes a second. */
must_check bool pace_is_slow(struct pace *p, int64_t us, uint64_t taken, unsigned least);

#endif
