/* What databases have sent to clients, into the meter. Nodes count it themselves; here their counters are read once a
 * minute, before the host's mark is set, and what was sent belongs to the day on which it was read. So a day that is
 * settled gets nothing more. */
#include "api/billing/billing.h"

#include "base/clock.h"

#include <errno.h>

static const struct engine_node *node_of(const struct engine_node *nodes, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(nodes[i].name, name) == 0)
			return &nodes[i];
	return NULL;
}

static struct meter_counter counter_of(struct arena *a, const struct engine_sent *sent)
{
	return (struct meter_counter){.thing = {.key = arena_printf(a, "sent/%s", sent->node)},
	                              .counter = str_of(sent->counter),
	                              .bytes = sent->bytes};
}

static int counters_read(const struct service *s, struct arena *a, struct str cluster_id, struct engine_sent **ret_sent,
                         struct meter_counter **ret_list, size_t *ret_count)
{
	size_t count = 0;
	int r = s->engine_ops->statistics->sent(s->engine_state, arena_z(a, cluster_id), a, ret_sent, &count);
	*ret_count = 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*ret_list = arena_new_array(a, struct meter_counter, count + 1);
	for (; *ret_count < count; ++*ret_count)
		(*ret_list)[*ret_count] = counter_of(a, &(*ret_sent)[*ret_count]);
	return 0;
}

int data_out_look(const struct service *s, struct tx *tx, struct arena *a, struct str cluster_id, int64_t at_ms,
                  bool *ret_due)
{
	struct engine_sent *sent;
	struct meter_counter *list;
	size_t count;
	*ret_due = false;
	int r = s->engine_ops->statistics ? counters_read(s, a, cluster_id, &sent, &list, &count) : -ENOTSUP;
	if (r < 0 || !count)
		return r == -ENOTSUP ? 0 : r;
	return meter_count_is_due(tx, a, cluster_id, list, count, at_ms, ret_due);
}

struct noting {
	const struct service *service;
	struct str cluster_id;
};

/* Those of nodes that are known, with what they are billed as. */
static size_t counters_fill(struct arena *a, const struct cluster *cluster, const struct engine_sent *sent,
                            struct meter_counter *list, size_t count)
{
	/* Also while it is being changed: it may be deleted before that is done. */
	const struct engine_node *nodes;
	size_t node_count = cluster_planned_nodes(a, cluster, &nodes), kept = 0;
	for (size_t i = 0; i < count; i++) {
		const struct engine_node *n = node_of(nodes, node_count, sent[i].node);
		if (!n)
			continue;
		list[kept] = list[i];
		if (!metering_is_shared(n))
			list[kept].thing.sku = arena_printf(a, "%s_DATA_TRANSFER_OUT", n->provider);
		list[kept].thing.provider = str_of(n->provider);
		list[kept++].thing.region = str_of(n->region);
	}
	return kept;
}

static int note_run(struct tx *tx, void *ctx)
{
	const struct noting *n = ctx;
	struct arena *a = arena_new();
	struct cluster cluster;
	struct meter_subject subject;
	struct engine_sent *sent;
	struct meter_counter *list;
	size_t count = 0;
	int r = cluster_get(tx, a, n->cluster_id, &cluster);
	if (r == 0)
		r = metering_subject(tx, a, &cluster, &subject);
	if (r == 0)
		r = counters_read(n->service, a, n->cluster_id, &sent, &list, &count);
	if (r == 0)
		r = meter_count(tx, a, &subject, list, counters_fill(a, &cluster, sent, list, count), clock_now_ms());
	arena_free(a);
	return r == -ENOENT ? 0 : r;
}

int data_out_note(const struct service *s, struct str cluster_id)
{
	struct noting n = {.service = s, .cluster_id = cluster_id};
	return store_write_wait(s->store, note_run, &n);
}
