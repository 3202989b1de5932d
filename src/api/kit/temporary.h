/* Documents that end by themselves: a field says when, which is days away at most. A job is due then; until it has run,
 * reads take the document for gone. */
#ifndef STEWARD_API_KIT_TEMPORARY_H
#define STEWARD_API_KIT_TEMPORARY_H

#include "call/call.h"
#include "jobs/jobs.h"

#define TEMPORARY_FIELD "deleteAfterDate"

/* The end that a body asks for; 0: none, or one that is a fault at this path. */
int64_t temporary_read(struct arena *a, struct str text, struct str path, struct faults *faults);
/* The end of a stored document; 0: it has none. */
int64_t temporary_end(const json_t *document);
/* Whether its time is over, though nobody has taken it away yet. */
bool temporary_is_over(struct arena *a, const struct doc *d);
/* In a write of the document: the job of that kind is due at its end, and no earlier one is. */
must_check int temporary_schedule(struct tx *tx, const char *job_kind, struct str id, int64_t end_ms);
/* The document of a kind that the job shall end. -ENOENT: it is gone, or was given more time, and has another job. */
must_check int temporary_due(struct tx *tx, const struct job_run *r, const char *kind, struct doc *ret_doc);

#endif
