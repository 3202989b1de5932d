/* Query: what is put into the databases, and asked of them, by the service itself. */
#ifndef STEWARD_ENGINE_QUERY_H
#define STEWARD_ENGINE_QUERY_H

#include "engine/core.h"

struct engine_query_ops {
	/* Loads the sample data set into a running cluster. Blocks, for a job's thread. */
	int (*load_sample)(struct engine *e, const char *cluster_id, struct engine_progress *progress, struct arena *a,
	                   const char **ret_why);
};

#endif
