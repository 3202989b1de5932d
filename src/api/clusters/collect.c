/* Clusters are collected in one short read, and visited after it. */
#include "api/clusters/collect.h"

#include "api/clusters/place.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "hosts/hosts.h"

#include <errno.h>
#include <stdatomic.h>

struct collection {
	struct arena *arena;
	struct str *ids;
	size_t count, cap;
};

static int collect_one(struct tx *tx, void *ctx, const struct doc *cluster)
{
	struct collection *c = ctx;
	ARENA_FIT(c->arena, c->ids, c->count, c->cap);
	c->ids[c->count++] = arena_dup(c->arena, cluster->id);
	return 0;
}

int clusters_collect(struct store *store, struct arena *a, struct str **ret_ids, size_t *ret_count)
{
	struct collection c = {.arena = a};
	struct tx *reader = store_reader(store);
	if (!reader)
		return -EIO;
	tx_begin_read(reader);
	int result = clusters_walk(reader, collect_one, &c);
	tx_end_read(reader);
	tx_rest(reader);
	store_reader_free(reader);
	*ret_ids = c.ids;
	*ret_count = c.count;
	return result;
}

static int collect_here(struct tx *tx, void *ctx, const struct doc *d)
{
	struct arena *a = arena_new();
	const struct cluster cluster = cluster_of(a, d);
	bool here = !host_is_elsewhere(cluster_host(&cluster)) && !json_flag(cluster.body, "paused");
	arena_free(a);
	return here ? collect_one(tx, ctx, d) : 0;
}

int clusters_take_here(struct job_run *r, cluster_take *take)
{
	const struct service *s = r->ctx;
	struct collection c = {.arena = r->arena};
	const _Atomic bool *stop = job_stop(r);
	if (!s->engine_ops->core->on_host)
		return 0;
	tx_begin_read(r->reader);
	int result = clusters_walk(r->reader, collect_here, &c);
	job_read_end(r);
	for (size_t i = 0; result == 0 && i < c.count; i++)
		result = atomic_load(stop) ? -ECANCELED : take(r, c.ids[i]);
	return result;
}
