/* A table of counts, in memory: letters are many, and a bound that a restart forgets still holds for the hour after
 * it. */
#include "outbox/hourly.h"

#include "base/clock.h"
#include "base/fair.h"

#include <pthread.h>

#define SETS 4096
#define WAYS 4
#define HOUR_MS INT64_C(3600000)

struct place {
	uint64_t key; /* of sender, address and subject */
	int64_t hour;
	unsigned count;
};

static struct place table[SETS][WAYS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of the key; or of what is of another hour, or else has the fewest letters, made anew. */
static struct place *count_slot(uint64_t key, int64_t hour)
{
	struct place *set = table[key % SETS], *least = NULL;
	for (size_t i = 0; i < WAYS; i++) {
		struct place *p = &set[i];
		if (p->hour != hour)
			*p = (struct place){.hour = hour};
		if (p->count && p->key == key)
			return p;
		if (!least || p->count < least->count)
			least = p;
	}
	*least = (struct place){.key = key, .hour = hour};
	return least;
}

bool hourly_take(struct arena *a, struct str sender, struct str to, struct str subject)
{
	struct str whom = arena_printf(a, "%.*s\n%.*s", STR_ARG(to), STR_ARG(subject));
	uint64_t of_sender = fair_key(arena_printf(a, "%.*s\n%.*s", STR_ARG(sender), STR_ARG(whom)));
	int64_t hour = clock_now_ms() / HOUR_MS;
	bool alert = !subject.n;
	pthread_mutex_lock(&lock);
	struct place *all = alert ? NULL : count_slot(fair_key(whom), hour), *one = NULL;
	if (!all || all->count < HOURLY_OF_ALL)
		one = count_slot(of_sender, hour);
	bool granted = one && one->count < (alert ? HOURLY_OF_ALERTS : HOURLY_OF_SENDER);
	if (granted)
		one->count++;
	if (granted && all)
		all->count++;
	pthread_mutex_unlock(&lock);
	return granted;
}
