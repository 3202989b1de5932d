/* Answers to GETs that are given again as they were, without the handler: of rows that say "kept" in api/. The gates
 * run before, for every call: an answer is found only by who may have it.
 *
 * An answer is kept for as long as nothing in the store changes, by the number of the reader's snapshot
 * (tx_snapshot()), and for calls that are the same in all that answers depend on: operation, path, query, version and
 * form, the caller's roles, and the headers that the row has. A handler that shows more than that, because it asks the
 * clock or the engine, says so in call.momentary. Builds with AddressSanitizer make every second answer anew and stop
 * when it is not the kept one: so all tests of the API look for one that is stale. */
#ifndef STEWARD_CALL_KEPT_ANSWER_H
#define STEWARD_CALL_KEPT_ANSWER_H

#include "call/call.h"

/* Bytes of kept texts for each lane. */
#define KEPT_LANE_BYTES ((size_t)4 << 20)

/* In the read, in the place of the handler: true when c->out is the answer in its final form. */
must_check bool kept_answer_get(struct call *c);
/* In the same read, after the handler. */
void kept_answer_read(struct call *c);
/* When the answer has its final form. */
void kept_answer_put(struct call *c);

#endif
