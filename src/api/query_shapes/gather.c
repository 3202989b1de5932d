/* Puts together what the nodes of a cluster tell of query shapes: a shape is one whichever nodes it was sent to. Only
 * the cluster's own host can ask them. */
#include "api/query_shapes/shapes.h"

#include "api/clusters/clusters.h"
#include "call/service.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

static int by_fingerprint(const void *a, const void *b)
{
	const struct shape *x = a, *y = b;
	return strcmp(x->of.fingerprint, y->of.fingerprint);
}

static int by_time(const void *a, const void *b)
{
	const struct shape *x = a, *y = b;
	if (x->of.total_us != y->of.total_us)
		return x->of.total_us > y->of.total_us ? -1 : 1;
	return by_fingerprint(a, b);
}

void shapes_sort(struct shapes *s)
{
	char hash[sizeof s->list->hash];
	for (size_t i = 0; i < s->count; i++) {
		sha256_hex(str_of(s->list[i].of.fingerprint), hash);
		memcpy(s->list[i].hash, hash, sizeof hash);
	}
	if (s->count)
		qsort(s->list, s->count, sizeof *s->list, by_time);
}

/* Each shape once. */
static void shapes_join(struct shapes *s)
{
	size_t kept = 0;
	if (s->count == 0)
		return;
	qsort(s->list, s->count, sizeof *s->list, by_fingerprint);
	for (size_t i = 1; i < s->count; i++)
		if (by_fingerprint(&s->list[kept], &s->list[i]) == 0)
			engine_shape_join(&s->list[kept].of, &s->list[i].of);
		else
			s->list[++kept] = s->list[i];
	s->count = kept + 1;
	shapes_sort(s);
}

static int node_ask(const struct service *s, struct arena *a, const char *cluster_id, const struct node_status *n,
                    struct shapes *shapes)
{
	struct engine_shape *list;
	size_t count;
	const char *why = NULL;
	int r = s->engine_ops->shapes->list(s->engine_state, cluster_id, n->name, a, &list, &count, &why);
	if (r == -ENOTSUP)
		shapes->lacks = why;
	if (r < 0)
		return r == -ENOTSUP || r == -EAGAIN || r == -ENOENT ? 0 : r;
	struct shape *all = arena_new_array(a, struct shape, shapes->count + count + 1);
	for (size_t i = 0; i < shapes->count; i++)
		all[i] = shapes->list[i];
	for (size_t i = 0; i < count; i++)
		all[shapes->count + i].of = list[i];
	shapes->list = all;
	shapes->told[shapes->told_count++] = (struct shapes_told){arena_z(a, str_of(n->name)), list, count};
	shapes->count += count;
	shapes->answered++;
	return 0;
}

int shapes_gather(const struct service *s, struct arena *a, struct str cluster_id, struct str processes,
                  struct shapes *ret_shapes)
{
	struct shapes shapes = {.list = NULL};
	struct cluster_status status;
	const char *id = arena_z(a, cluster_id);
	if (!s->engine_ops->shapes)
		return -ENOENT;
	int r = s->engine_ops->core->observe(s->engine_state, id, a, &status);
	if (r < 0)
		return r;
	shapes.nodes = arena_new_array(a, const char *, status.node_count + 1);
	shapes.told = arena_new_array(a, struct shapes_told, status.node_count + 1);
	for (size_t i = 0; r == 0 && i < status.node_count; i++) {
		const struct node_status *n = &status.nodes[i];
		if (processes.n && !str_list_has(processes, arena_printf(a, "%s:%u", n->host, n->port)))
			continue;
		shapes.nodes[shapes.node_count++] = arena_z(a, str_of(n->name));
		r = node_ask(s, a, id, n, &shapes);
	}
	if (r < 0)
		return r;
	shapes_join(&shapes);
	*ret_shapes = shapes;
	return 0;
}

const struct shape *shapes_find(const struct shapes *shapes, struct str hash)
{
	for (size_t i = 0; i < shapes->count; i++)
		if (str_is(hash, shapes->list[i].hash))
			return &shapes->list[i];
	return NULL;
}

struct str shape_namespace(struct arena *a, const struct engine_shape *s)
{
	return *s->table ? arena_printf(a, "%s.%s", s->database, s->table) : str_of(s->database);
}

struct str shape_path(const struct call *c)
{
	struct str given = call_path(c, "queryShapeHash");
	char *hash = arena_z(c->arena, given);
	for (char *p = hash; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return (struct str){hash, given.n};
}

int shapes_check(struct call *c, const struct shapes *shapes)
{
	if (shapes->answered)
		return 0;
	if (shapes->lacks)
		return call_fail(c, 409, "QUERY_SHAPES_NOT_AVAILABLE",
		                 "The processes of the cluster cannot tell query shapes: %s.", shapes->lacks);
	return call_fail(c, 409, "CLUSTER_NOT_AVAILABLE",
	                 "No process of the cluster answers now: they are stopped, or starting. Try again once one "
	                 "runs.");
}
