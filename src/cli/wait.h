/* Waiting for work that goes on after an answer: polling a document until its state rests, or it is gone. */
#ifndef STEWARD_CLI_WAIT_H
#define STEWARD_CLI_WAIT_H

#include "cli/client.h"

struct wait {
	struct client *client;
	const char *path;  /* of the GET, percent-encoded */
	const char *name;  /* of what is waited for: begins each line of progress */
	const char *again; /* the command that takes the wait up again, or NULL */
	bool gone;         /* until it is deleted */
	bool may_move;     /* a cluster, which may become a flex cluster: then EXIT_MOVED */
	unsigned timeout;  /* seconds */
	/* Or NULL: is called with the document whenever its state has changed. */
	void (*changed)(void *ctx, json_t *document);
	void *ctx;
};

#define EXIT_MOVED (-2) /* no exit code: what is waited for lies elsewhere */

/* Progress goes to stderr. Returns an exit code; after EXIT_DONE *ret_document is the last document, or NULL when it is
 * gone. After a failure of what is waited for it is the document that tells so; untouched otherwise. */
int wait_run(const struct wait *w, struct arena *a, json_t **ret_document);
/* The same for a restore job, whose document names its target: until that has settled too, also after a failure,
 * because it takes changes and clients as before only then. Of another document it is wait_run(). */
int wait_settled(const struct wait *w, struct arena *a, json_t **ret_document);

/* The state of a document, or "" when it has none; and what it means. */
const char *state_of_document(const json_t *document);
bool state_is_moving(const char *state);

void wait_pause_ms(int64_t ms);

#endif
