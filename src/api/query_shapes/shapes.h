/* Shapes of a cluster as its nodes tell them, for the files of the family. */
#ifndef STEWARD_API_QUERY_SHAPES_SHAPES_H
#define STEWARD_API_QUERY_SHAPES_SHAPES_H

#include "call/call.h"
#include "engine/engine.h"

struct shape {
	struct engine_shape of;
	char hash[65]; /* of the fingerprint, in small letters */
};

struct shapes {
	struct shape *list; /* those that took most time first */
	size_t count;
	const char **nodes; /* that were to be asked */
	size_t node_count;
	struct shapes_told { /* by nodes, as each has told */
		const char *node;
		struct engine_shape *list;
		size_t count;
	} * told;
	size_t told_count;
	size_t answered;   /* nodes that have told */
	const char *lacks; /* what a node lacks that could not tell; or NULL */
};

/* Asks the nodes of a cluster of this host: all, or those of a list "host:port,host:port". Not for a loop. -ENOENT:
 * the engine has no shapes to tell. */
must_check int shapes_gather(const struct service *s, struct arena *a, struct str cluster_id, struct str processes,
                             struct shapes *ret_shapes);
/* Gives them their hashes, and the order of a list. */
void shapes_sort(struct shapes *s);
/* NULL: there is none. */
const struct shape *shapes_find(const struct shapes *shapes, struct str hash);
/* "shop.orders" */
struct str shape_namespace(struct arena *a, const struct engine_shape *s);
/* The hash of a path, in small letters. */
struct str shape_path(const struct call *c);
/* The refusal of a call that no node could answer; 0 when one did. */
must_check int shapes_check(struct call *c, const struct shapes *shapes);

#endif
