/* Threads of the engine: what takes long runs on one of its own, and stop() waits for all of them. */
#include "engine/postgres/model/work.h"

#include <unistd.h>

#define THREAD_STACK (512ul * 1024)

void pg_engine_wake(struct engine *e)
{
	uint64_t one = 1;
	(void)!write(e->wake_fd, &one, sizeof one);
}

int pg_engine_work(struct engine *e, void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_mutex_lock(&e->lock);
	e->workers++;
	pthread_mutex_unlock(&e->lock);
	int r = pthread_create(&thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	if (r != 0)
		pg_engine_work_done(e);
	return -r;
}

void pg_engine_work_done(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->workers--;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}
