/* Lifecycles: the states that a kind of document goes through, and what moves it, as tables that the build makes from
 * "lifecycles" in api/. Who walks them: api/kit/lifecycle.h. */
#ifndef STEWARD_CATALOG_LIFECYCLE_H
#define STEWARD_CATALOG_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct tx;
struct lifecycle_step;

/* What else happens when a state is reached; in the write that moves the document, before that is written. 0 or
 * negative, which undoes all of it. */
typedef int lifecycle_hook(struct tx *tx, struct arena *a, struct lifecycle_step *step);

struct lifecycle_state {
	const char *name;
	const char *value;       /* in the field */
	int64_t dwell_ms;        /* on the service's clock, until the job moves it on; 0: at once */
	lifecycle_hook *reached; /* or NULL */
};

enum lifecycle_by {
	BY_CALL,
	BY_TIME, /* the job, when the state has lasted its time */
	BY_JOB,  /* a job that was asked for; the lifecycle's own does it when the state has lasted its time */
	BY_FAULT
};

#define LIFECYCLE_NONE (-1) /* as a state: the document is not there, yet or any more */

struct lifecycle_transition {
	int from, to; /* indices of states, or LIFECYCLE_NONE */
	enum lifecycle_by by;
	const char *word;  /* by which it is asked for; NULL: by time alone */
	const char *event; /* type of the event that it writes, or NULL */
};

struct lifecycle {
	const char *name;
	const char *kind;                    /* of the documents */
	const char *when_field, *when_value; /* only those with that value in that field; NULL: all of the kind */
	const char *field;                   /* that holds the state */
	bool boolean;                        /* which is true or false, not a text */
	const char *event_field;             /* field of the events that has the document's id, or NULL */
	const struct lifecycle_state *states;
	const struct lifecycle_transition *transitions;
	int state_count, transition_count;
};

extern const struct lifecycle *const catalog_lifecycles[];
extern const unsigned catalog_lifecycle_count;

#endif
