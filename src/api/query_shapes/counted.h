/* What queries of a shape took on a node in a stretch of time, and its form in the store. Pure code. */
#ifndef STEWARD_API_QUERY_SHAPES_COUNTED_H
#define STEWARD_API_QUERY_SHAPES_COUNTED_H

#include "base/json.h"
#include "engine/engine.h"

struct counted {
	const char *node;
	struct engine_shape of; /* texts are empty */
};

struct counted_list {
	struct counted *list; /* each shape of a node once */
	size_t count, room;
	uint32_t *places; /* by the hash of node and shape: 1 + where it is in the list; 0: it is not */
	size_t place_count;
};

/* [NODE, FINGERPRINT, calls, us, rows, bytes, first ms, last ms, last us, [BUCKET, calls, BUCKET, calls ...]] */
json_t *counted_write(const char *node, const struct engine_shape *s);
/* False: it is none. */
bool counted_read(struct arena *a, const json_t *entry, struct counted *ret_counted);
/* Into the one of the same node and shape. */
void counted_add(struct arena *a, struct counted_list *list, const char *node, const struct engine_shape *s);
/* What the shape took since the node told `before` (NULL: it did not), when it had seen none later than `seen_ms`. A
 * shape that was first seen later, or has counted less since, began anew: all of it is new. Of one that was there
 * already and was not told nothing is known. */
struct engine_shape counted_since(const struct engine_shape *now, const struct engine_shape *before, int64_t seen_ms);
/* Those that took longest stay. */
void counted_cut(struct counted_list *list, size_t most);

#endif
