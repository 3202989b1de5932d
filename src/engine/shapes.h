/* Query shapes: queries that differ only in literals, parameters and the length of lists are of one shape, which has a
 * fingerprint. What queries of a shape took, node by node. Which shapes a cluster refuses is part of its access
 * (engine/access.h). */
#ifndef STEWARD_ENGINE_SHAPES_H
#define STEWARD_ENGINE_SHAPES_H

#include "engine/core.h"
#include "module/latency.h"

#define ENGINE_SHAPE_IDS 32
#define ENGINE_SHAPE_FINGERPRINT 17

struct engine_shape {
	char fingerprint[ENGINE_SHAPE_FINGERPRINT]; /* 16 hexadecimal digits */
	const char *text;                           /* with $1 in the place of values; "": the node has forgotten it */
	const char *database, *table;               /* the first that it names: "orders", "sales.orders"; or "" */
	const char *command;                        /* "find", "distinct", "aggregate" */
	const char *application;                    /* that sent it first */
	double total_us;
	uint64_t calls, rows, bytes_read, refused;
	int64_t first_ms, last_ms, last_us; /* when it was seen, and how long it took the last time */
	uint64_t buckets[LATENCY_BUCKETS];  /* calls, by how long they took */
	int64_t ids[ENGINE_SHAPE_IDS];      /* query ids that the node knows of it: some, where they are many */
	size_t id_count;
};

struct engine_shapes_ops {
	/* The shapes that clients have sent to a node since it started, each once, in the arena. May wait for the node
	 * a few seconds, so not for a loop. -ENOENT: no such node; -EAGAIN: it does not run, or does not answer;
	 * -ENOTSUP: it lacks what it takes, and *ret_why, in the arena, says what. */
	int (*list)(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
	            struct engine_shape **ret_list, size_t *ret_count, const char **ret_why);
};

/* --- common.c */
/* Adds what a shape took on another node to `into`. */
void engine_shape_join(struct engine_shape *into, const struct engine_shape *from);
/* How long the share took at most, in microseconds, of all calls, as far as buckets tell. 0 without calls. */
double engine_shape_percentile(const struct engine_shape *s, double share);

#endif
