/* Tickets: what one step of signing in gives for the next one. A ticket is a sealed text of who, what for, until when
 * and whatever the step needs; issuing one writes nothing, so that strangers fill no store. It can be used once, and
 * fails for good after a few wrong tries: the store remembers both until the ticket is over.
 *
 *   "ticket"  id = the ticket's; body {"tries","untilMs"}; a ticket that was used has TICKET_TRIES tries */
#ifndef STEWARD_IDENTITY_TICKETS_H
#define STEWARD_IDENTITY_TICKETS_H

#include "store/store.h"

#include <jansson.h>

#define TICKET_TRIES 5

struct ticket {
	struct str id, user_id; /* user_id may be empty */
	int64_t expires_ms;
	json_t *data; /* freed with the arena; NULL: none */
};

/* The purpose ("totp") is a part of the seal: a ticket for one is none for another. Takes `data`, which may be NULL. */
struct str ticket_issue(struct arena *a, const char *purpose, struct str user_id, int64_t seconds, json_t *data);
/* -EACCES: no ticket for this, or over. Whether it was used only the store knows. */
must_check int ticket_open(struct arena *a, const char *purpose, struct str text, struct ticket *ret_ticket);
/* In a write: the ticket is used from now on. -EACCES: it was before, or too many tries have failed. */
must_check int ticket_use(struct tx *tx, struct arena *a, const struct ticket *t);
/* In a write: one more try has failed. -EACCES as above; it should then be told as any wrong try. */
must_check int ticket_miss(struct tx *tx, struct arena *a, const struct ticket *t);

#endif
