/* Calls whose answers wait for jobs. A change asks, in its own transaction, for a job on each subject that it concerns;
 * its answer is held until those jobs have run, or a few seconds have passed. The jobs are rows: what an answer did not
 * wait for is done nevertheless.
 *
 * A job reads everything when it starts, so one that waits serves all changes that come before it runs. A stamp tells
 * which: a call takes one when its write is on disk, a job when it is about to read; a job with the later stamp has
 * seen the change. */
#ifndef STEWARD_JOBS_WAITS_H
#define STEWARD_JOBS_WAITS_H

#include "call/call.h"

#define WAIT_WHY_MAX 300

struct waited {
	struct str id, name; /* of a subject */
};

/* One call that waits; it goes with its call. */
struct wait {
	struct call *call;
	const char *kind;        /* of the jobs */
	struct waited *subjects; /* those whose jobs have not run yet */
	size_t count;
	/* Sends the answer; 0 subjects are left, or too much time has passed. From any thread, exactly once. */
	void (*send)(const struct wait *w);
	char behind[WAIT_WHY_MAX]; /* what is not as it should be on a subject, also of one that is not left; or "" */
	/* The waits' own. */
	struct wait *next;
	uint64_t stamp;
	int64_t until_us;
};

/* In a call's write: its answer waits, with call, kind, subjects, count and send of `w`. */
void wait_hold(const struct wait *w);

/* For a job: the stamp from before it reads, and word of the subject when what it read is in force. */
uint64_t wait_stamp(void);
void wait_done(struct str subject, uint64_t stamp);
/* And word of what is not in force, for the answers that wait. NULL: all is. */
void wait_behind(struct str subject, uint64_t stamp, const char *why);

/* From the main thread, now and then: answers that have waited long enough are sent, and those whose jobs another
 * process has run. */
void waits_poll(struct tx *reader);
/* The service stops: nothing is held any more. */
void waits_close(void);

#endif
