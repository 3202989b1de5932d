/* From when on a statement is slow. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_THRESHOLD_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_THRESHOLD_H

#include "engine/postgres/model/model.h"

struct buf;

#define PG_QUAL_SAMPLES "0.2" /* of all statements: a frequent one is seen soon, and the others are not held up */
void pg_threshold_configure(struct buf *b, const struct pg_cluster *c); /* the lines of a node's configuration */
void pg_threshold_tick(struct engine *e); /* manages it, in the background, when it is time */

#endif
