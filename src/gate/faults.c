/* Faults and delays that the test control injects. There are only a few, so a list with a lock is enough. */
#include "gate/dispatch.h"

#include "call/service.h"

#include <pthread.h>
#include <stdlib.h>

#define FAULTS_KEPT 64

static struct injected injected[FAULTS_KEPT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool fault_take(struct service *s, const struct op *op, struct injected *ret_fault)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; !found && i < FAULTS_KEPT; i++)
		if (injected[i].times && injected[i].op == op) {
			injected[i].times--;
			*ret_fault = injected[i];
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

bool fault_inject(struct service *s, const struct injected *fault)
{
	bool kept = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; !kept && i < FAULTS_KEPT; i++)
		if (!injected[i].times) {
			injected[i] = *fault;
			kept = true;
		}
	pthread_mutex_unlock(&lock);
	return kept;
}

void fault_clear(struct service *s)
{
	pthread_mutex_lock(&lock);
	memset(injected, 0, sizeof injected);
	pthread_mutex_unlock(&lock);
}
