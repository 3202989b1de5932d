/* How many letters an address gets in an hour, so that nobody's mailbox is flooded through the service. Letters of
 * different senders and subjects are counted apart as well as together, so that one sender's flood keeps back little of
 * what others write. Counted by this process, in a table of a fixed size; hours are those of the clock. */
#ifndef STEWARD_OUTBOX_HOURLY_H
#define STEWARD_OUTBOX_HOURLY_H

#include "base/arena.h"

#define HOURLY_OF_SENDER 20  /* letters of a subject from one sender to an address */
#define HOURLY_OF_ALL 60     /* the same from all senders */
#define HOURLY_OF_ALERTS 300 /* of alerts, from one organization to an address */

/* Whether another letter may be added; if so it counts. An empty subject: of an alert. */
must_check bool hourly_take(struct arena *a, struct str sender, struct str to, struct str subject);

#endif
