/* Documents that have a state: they move as the tables of catalog/lifecycle.h say, and not otherwise. A move writes the
 * document, its event and the job that moves it on in one write, so a crash loses nothing and repeats nothing. */
#ifndef STEWARD_API_KIT_LIFECYCLE_H
#define STEWARD_API_KIT_LIFECYCLE_H

#include "base/json.h"
#include "call/call.h"
#include "catalog/lifecycle.h"
#include "jobs/jobs.h"

#define LIFECYCLE_JOB "lifecycle" /* its subject is the document's id */

/* What a hook sees, and may change. */
struct lifecycle_step {
	const struct doc *doc; /* as it was; a new one has kind, id and parent only */
	json_t *body;          /* as it will be stored, with the new state */
	const char *from;      /* name of the state that was; NULL: it is new */
	const char *fault;     /* set by the hook: the way of that word is taken instead, if the old state has it */
	/* Set by the hook of what the job moves: it stays in its state, with the body as the hook leaves it, and the
	 * job comes again after so long. */
	int64_t later_ms;
};

/* The lifecycle of a document; NULL: it has none. */
const struct lifecycle *lifecycle_of(struct str kind, const json_t *body);
/* The name of the state; NULL: none that the table has. */
const char *lifecycle_state(struct str kind, const json_t *body);
/* Whether the table has that way out of the document's state. */
bool lifecycle_allows(struct str kind, const json_t *body, const char *word);
/* Whether the table of the document has that word at all, from whichever state. */
bool lifecycle_knows(struct arena *a, const struct doc *d, const char *word);

/* Whether the word DELETE has been said: it is still there, but not for anything new. */
bool lifecycle_is_leaving(struct arena *a, const struct doc *d);
/* Puts the state that the document has into a body that will replace it. */
void lifecycle_keep(struct arena *a, const struct doc *d, json_t *body);

/* In a write. All of them: -EINVAL, and nothing is written, when the table has no such way from here. */

/* The first state of a new document, whatever its body says. The caller inserts it. */
must_check int lifecycle_create(struct tx *tx, struct arena *a, const struct doc *d, json_t *body);
/* Moves what the caller is about to write: `d` as it is stored, `body` as it will be. */
must_check int lifecycle_change(struct tx *tx, struct arena *a, const struct doc *d, json_t *body, const char *word);
/* Moves and writes a stored document; a way to its end deletes it. */
must_check int lifecycle_move(struct tx *tx, struct arena *a, struct doc *d, const char *word);

/* The same in a call: the event is the caller's, of the transition's type where it has one, or else of the row's. */
must_check int call_lifecycle_create(struct call *c, const struct doc *d, json_t *body);
must_check int call_lifecycle_change(struct call *c, const struct doc *d, json_t *body, const char *word);
must_check int call_lifecycle_move(struct call *c, struct doc *d, const char *word);

/* In a write: has the job take the transition "by job" when the state's time is over. Nothing where the state has none:
 * what is wanted is there. */
must_check int lifecycle_ask(struct tx *tx, struct arena *a, const struct doc *d);

/* In a write: what the job would do, now. What that waits for is there. */
must_check int lifecycle_advance(struct tx *tx, struct arena *a, struct doc *d);

/* The end of the job. Also for the kinds of jobs that walked documents before there were lifecycles. */
int lifecycle_save(struct tx *tx, struct job_run *r);
extern const struct job_kinds lifecycle_jobs;

/* For tests: these tables instead of the catalog's. Before anything runs. */
void lifecycle_use(const struct lifecycle *const *list, unsigned count);

#endif
