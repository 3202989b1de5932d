/* Restore jobs of one database or one table. */
#ifndef STEWARD_API_RESTORES_PIECE_H
#define STEWARD_API_RESTORES_PIECE_H

#include "call/call.h"
#include "engine/backup.h"

struct faults;

/* What the headers of the call ask for: *ret_only is {"database", "schema", "table", "replace"}, or NULL where it is
 * the whole cluster. What is wrong with them is added to the faults. */
void piece_read(struct call *c, struct faults *faults, json_t **ret_only);
/* The names that it gets, by the moment that it is of. */
void piece_name(struct call *c, json_t *only, int64_t at_ms);
/* The answer's headers. */
void piece_tell(struct call *c, const json_t *only);
/* For the engine; borrows from both. */
struct engine_piece piece_of(struct arena *a, const json_t *only, struct str job_id);

#endif
