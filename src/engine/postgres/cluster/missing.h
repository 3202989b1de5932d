/* Data that should be there and is not. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_MISSING_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_MISSING_H

#include "engine/postgres/model/model.h"

/* -ENOMEDIUM: data that was made is missing, or another's is in its place. Before anything is changed. */
int pg_missing_check(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why);
/* The sets of what was taken know what they were made with; who leads one whose state was lost is found in the data. */
int pg_missing_take(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why);
/* A set whose primary's data is missing gets another primary. */
void pg_missing_lead(struct pg_cluster *c);
/* No process works any more in the nodes' directories of a cluster whose state is not known. */
void pg_strays_end(const struct engine *e, const char *path);

#endif
