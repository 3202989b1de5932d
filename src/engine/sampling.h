/* Measuring: an engine with real databases is asked for samples, which series keep; one that only simulates can tell
 * the values of any time, so that nothing need be kept. An engine offers one of the two. */
#ifndef STEWARD_ENGINE_SAMPLING_H
#define STEWARD_ENGINE_SAMPLING_H

#include "engine/core.h"
#include "engine/measures.h"

struct engine_sample {
	const char *cluster_id, *node;
	enum measure_subject subject;
	const char *name; /* of the database, the disk or the table; "" of a process */
	int64_t mono_us;  /* when it was taken, by clock_mono_us() */
	uint64_t epoch;   /* names what counts: a server since its start */
	const double *inputs;
	bool before;    /* as of the round before of those with `whole`, not of this one */
	int64_t ago_ms; /* as of so long before this round */
};

struct engine_sampling {
	bool whole; /* also what takes longer: databases, sizes, memory */
	void (*take)(void *ctx, const struct engine_sample *sample);
	/* All databases that the node has, measured or not: of others nothing is to be kept. */
	void (*databases)(void *ctx, const char *cluster_id, const char *node, const char *const *names, size_t count);
	/* The tables of which more is to come, likewise. */
	void (*tables)(void *ctx, const char *cluster_id, const char *node, const char *const *names, size_t count);
	/* The names of the tables that are to be measured whatever time they take: valid until the next call. NULL: not
	 * known, they are as they were. */
	const char *const *(*pinned)(void *ctx, const char *cluster_id, size_t *ret_count);
	/* The names of the node's tables of which something is kept; likewise. */
	const char *const *(*kept)(void *ctx, const char *cluster_id, const char *node, size_t *ret_count);
	void *ctx;
};

struct engine_sampling_ops {
	/* Asks all nodes of this host at once, on connections that are kept, and waits a few seconds at most: who has
	 * not answered by then gives no sample. From one thread at a time. */
	int (*sample)(struct engine *e, const struct engine_sampling *s);
	/* Notes how far each primary's log is, for the lag of its standbys; waits half a second at most. To be called
	 * each second, by the same thread. */
	void (*track)(struct engine *e);
};

struct engine_history_ops {
	/* Some columns of measure_layouts[subject] at that time; NAN where the node was stopped. -ENOENT: no such
	 * node. Quick, from any thread. */
	int (*at)(struct engine *e, const char *cluster_id, const char *node, enum measure_subject subject,
	          const char *name, int64_t time_ms, const unsigned *columns, size_t count, double *ret_values);
	/* The names of the tables of any node: static. */
	const char *const *(*tables)(size_t *ret_count);
};

#endif
