/* An index as a request describes it, in the words of engines. */
#ifndef STEWARD_API_INDEX_WISH_H
#define STEWARD_API_INDEX_WISH_H

#include "base/json.h"
#include "catalog/schema.h"
#include "engine/index.h"

/* Reads a body that the schema has let pass. What cannot be built becomes a fault. All but the ids is filled in; it
 * lives in the arena. */
void index_wish(struct arena *a, const json_t *body, struct faults *faults, struct engine_index *ret_index);

/* collation.c: the field "collation" of the body. */
void index_collation(struct arena *a, const json_t *collation, struct engine_index *ret_index);

#endif
