/* What logs and events share when they are followed: a service is asked again and again for what came since, with an
 * overlap, and what was seen before is left out. */
#ifndef STEWARD_CLI_FOLLOW_H
#define STEWARD_CLI_FOLLOW_H

#include "cli/client.h"

/* A time, or how long ago: "2026-11-16T03:00:00Z", "90s", "15m", "2h", "3d". A message on stderr, negative. */
must_check int follow_since(const char *text, int64_t now_ms, int64_t *ret_ms);

/* What was shown already. Zero-initialise, follow_free(). */
struct follow_seen {
	struct follow_entry *list;
	size_t count, room, sorted; /* the first `sorted` are in order */
	int64_t newest_ms;
};

void follow_free(struct follow_seen *s);
/* True when it was not seen before; it is seen from then on. */
bool follow_is_new(struct follow_seen *s, struct str text, int64_t at_ms);
/* Forgets what is older than the overlap. Returns from when to ask next, in whole seconds: the overlap ago. */
int64_t follow_turn(struct follow_seen *s);

#define FOLLOW_PATIENCE 30 /* questions in a row that may find no service: it may be restarting */

/* The pauses between two questions. */
struct follow {
	unsigned unreached;
	unsigned pause_ms;
};

/* After each question: FOLLOW_ON, or the exit code. `result` is that of client_call(). Sets how long to wait. */
#define FOLLOW_ON (-1)
int follow_step(struct follow *f, struct client *c, int result, const struct client_answer *answer);
void follow_wait(const struct follow *f);

#endif
