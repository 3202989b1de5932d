/* A queue that is fair between keys, for every pool that tenants share. Each key has a line of its own; lines take turns.
 * So that no key takes everything, two bounds grow tighter as less is left:
 *
 *   waiting   a key may add an item while it has fewer waiting than there are free places: one alone fills half of the queue
 *   running   a key may start another while it runs fewer than three times what is still free: one alone gets three quarters
 *             of what serves (threads, slots), and the last quarter is there when another comes
 *
 * A key is an organization, or an address where it is not known who calls. There is no lock here: whoever has the queue has
 * one. */
#ifndef STEWARD_BASE_FAIR_H
#define STEWARD_BASE_FAIR_H

#include "base/str.h"

struct fair;

/* Part of what waits. */
struct fair_item {
	struct fair_item *next;
	uint64_t key;
};

/* `running_max` 0: what is taken is not counted, and lines only take turns. */
struct fair *fair_new(unsigned waiting_max, unsigned running_max);
/* Nothing may wait or run. Accepts NULL. */
void fair_free(struct fair *f);

/* What a text (an organization's id, an address) is as a key. Not the same in another process: strangers may choose texts. */
uint64_t fair_key(struct str text);

/* False: no place for that key. 0 is the service's own: it may fill the queue. */
must_check bool fair_add(struct fair *f, struct fair_item *item, uint64_t key);
/* Whether fair_add() would say yes. */
bool fair_has_room(const struct fair *f, uint64_t key);
/* The next that may run, or NULL. It occupies its key's share until fair_done(). */
struct fair_item *fair_take(struct fair *f);
void fair_done(struct fair *f, uint64_t key);
/* Occupies a share without waiting for it: false when that key may have no more. Until fair_done(). */
must_check bool fair_enter(struct fair *f, uint64_t key);
/* Taken and not run after all: the first of its line again, whatever the bounds. */
void fair_return(struct fair *f, struct fair_item *item);

unsigned fair_waiting(const struct fair *f);
unsigned fair_running(const struct fair *f);

#endif
