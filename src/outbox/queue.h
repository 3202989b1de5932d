/* Between the files of the outbox: its kinds of documents, as outbox.h has them. */
#ifndef STEWARD_OUTBOX_QUEUE_H
#define STEWARD_OUTBOX_QUEUE_H

#include "store/store.h"

#define RECEIVER "outbox_receiver"
#define MESSAGE "outbox_message"
#define WAITING "outbox_waiting"
#define DELIVERY "delivery"
#define LATER STR("later") /* the list of receivers that fail */

/* One that is not there is no fault. */
must_check int queue_delete(struct tx *tx, const char *kind, struct str id);
/* How many messages this process did not add, as too many waited. */
uint64_t queue_dropped(void);

#endif
