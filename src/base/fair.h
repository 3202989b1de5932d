/* A queue that is fair between keys, for every pool that tenants share. Each key has its own line, and lines take
 * turns. Two limits keep one key from taking everything. Both get tighter as less is left:
 *
 *   waiting   a key may add an item while it has fewer waiting items than there are free places: one key alone can fill
 *             half of the places
 *   running   a key may start another item while it runs fewer than three times the free slots: one key alone gets
 *             three quarters of the slots (threads), and the last quarter stays free for others
 *
 * A key is an organization, or the address of a caller that is not known yet. There is no lock here: the owner of the
 * queue has one. */
#ifndef STEWARD_BASE_FAIR_H
#define STEWARD_BASE_FAIR_H

#include "base/str.h"

struct fair;

/* Embedded in each item that is queued. */
struct fair_item {
	struct fair_item *next;
	uint64_t key;
};

/* With `running_max` 0 running items are not counted: lines only take turns. */
struct fair *fair_new(unsigned waiting_max, unsigned running_max);
/* Besides, no key may run more than this many; 0: no such limit. Only where running items are counted. */
void fair_limit_each(struct fair *f, unsigned each_max);
/* Nothing may wait or run. Accepts NULL. */
void fair_free(struct fair *f);

/* Hashes a text (an organization's id, an address) to a key. The seed differs in each process, because strangers may
 * choose the texts. */
uint64_t fair_key(struct str text);

/* False: that key has no place left. Key 0 is the service itself, which may fill the queue. */
must_check bool fair_add(struct fair *f, struct fair_item *item, uint64_t key);
/* Whether fair_add() would succeed. */
bool fair_has_room(const struct fair *f, uint64_t key);
/* The next item that may run, or NULL. It counts against its key until fair_done(). */
struct fair_item *fair_take(struct fair *f);
void fair_done(struct fair *f, uint64_t key);
/* Counts as running without waiting first, until fair_done(). False: that key may run no more. */
must_check bool fair_enter(struct fair *f, uint64_t key);
/* For an item that was taken but not run: it becomes the first of its line again, whatever the limits say. */
void fair_return(struct fair *f, struct fair_item *item);

unsigned fair_waiting(const struct fair *f);
unsigned fair_running(const struct fair *f);

#endif
