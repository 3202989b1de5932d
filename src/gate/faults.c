/* Faults and delays that the test control asks for. A handful at most, so a locked list serves. */
#include "gate/dispatch.h"

#include "gate/service.h"

#include <pthread.h>
#include <stdlib.h>

#define FAULTS_KEPT 64

struct injected {
	const struct op *op;
	int status;
	unsigned delay_ms, times;
};

static struct injected injected[FAULTS_KEPT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

unsigned fault_take(struct service *s, const struct op *op, int *ret_status)
{
	unsigned ms = 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < FAULTS_KEPT; i++)
		if (injected[i].times && injected[i].op == op) {
			injected[i].times--;
			ms = injected[i].delay_ms;
			*ret_status = injected[i].status;
			break;
		}
	pthread_mutex_unlock(&lock);
	return ms;
}

void fault_inject(struct service *s, struct str operation_id, int status, unsigned delay_ms, unsigned times)
{
	pthread_mutex_lock(&lock);
	for (unsigned o = 0; o < catalog_op_count; o++)
		for (size_t i = 0; str_is(operation_id, catalog_ops[o].id) && i < FAULTS_KEPT; i++)
			if (!injected[i].times) {
				injected[i] = (struct injected){&catalog_ops[o], status, delay_ms, times};
				break;
			}
	pthread_mutex_unlock(&lock);
}

void fault_clear(struct service *s)
{
	pthread_mutex_lock(&lock);
	memset(injected, 0, sizeof injected);
	pthread_mutex_unlock(&lock);
}
