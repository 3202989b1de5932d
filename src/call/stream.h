/* A body that a thread of its own makes while it is sent: nothing is held but a small ring, and a reader who is slow
 * slows only that thread. */
#ifndef STEWARD_CALL_STREAM_H
#define STEWARD_CALL_STREAM_H

#include "http/http.h"

struct stream;

struct stream_maker {
	/* On the thread: writes all of it. Negative: it failed, and the connection is cut. */
	int (*make)(void *ctx, struct stream *s);
	/* The client is gone: what make() waits for may be ended. Never after make() has returned. May be NULL. */
	void (*cut)(void *ctx);
	/* Once, when both the thread and the client are done with it. */
	void (*end)(void *ctx);
	void *ctx;
};

/* Starts the thread and sets the request's response.stream. -EAGAIN: no thread can be started; end() was not called. */
must_check int stream_start(struct request *r, const struct stream_maker *maker);
/* Waits for room. -EPIPE: the client is gone. */
must_check int stream_write(struct stream *s, const void *bytes, size_t n);
/* The clients are gone and no stream is begun any more: until the threads have ended, because what they read from ends
 * next. */
void streams_wait(void);

#endif
