/* Query shapes that a simulated node would have seen: the same six on every node, each sent so many times a minute
 * since the node started, so that the figures are a function of the clock and nothing is kept. Each tenth takes four
 * times as long as the others. docs/query-shapes.md tells it to users. */
#include "engine/simulated/state.h"

#include "base/clock.h"

#include <errno.h>

#define MINUTE_MS 60000

static const struct sample {
	const char *fingerprint, *command, *table, *text;
	uint64_t a_minute, us, rows, bytes; /* for each call: time of most, rows, bytes read */
} samples[] = {
        {"0a1c5e7f20b3d481", "find", "orders", "select * from orders where id = $1", 120, 180, 1, 0},
        {"1b2d6f8031c4e592", "find", "customers", "select id, name from customers where email = $1", 60, 240, 1, 0},
        {"2c3e708142d5f6a3", "find", "orders",
         "select * from orders where status in ($1) order by created desc limit $2", 20, 5200, 50, 8192},
        {"3d4f819253e607b4", "distinct", "orders", "select distinct status from orders", 2, 38000, 5, 262144},
        {"4e5092a364f718c5", "aggregate", "orders",
         "select customer, sum(total) from orders where created > $1 group by customer", 1, 96000, 400, 1048576},
        {"5f61a3b4750829d6", "aggregate", "events", "select count(*) from events where kind = $1", 4, 61000, 1, 524288},
};
#define SAMPLES (sizeof samples / sizeof *samples)

/* Calls that took about so long: all as long as their bucket tells, so that no percentile is beside the mean. */
static void calls_add(struct engine_shape *s, uint64_t calls, uint64_t us)
{
	unsigned bucket = latency_bucket(us);
	s->buckets[bucket] += calls;
	s->total_us += (double)calls * latency_middle_us(bucket);
}

static struct engine_shape shape_at(const struct sample *m, size_t index, int64_t started_ms, int64_t now_ms)
{
	uint64_t minutes = now_ms > started_ms ? (uint64_t)(now_ms - started_ms) / MINUTE_MS : 0;
	struct engine_shape s = {.text = m->text,
	                         .database = "postgres",
	                         .table = m->table,
	                         .command = m->command,
	                         .application = "simulated",
	                         .calls = 1 + minutes * m->a_minute, /* one as it starts */
	                         .first_ms = started_ms,
	                         .last_ms = started_ms + (int64_t)minutes * MINUTE_MS,
	                         .last_us = (int64_t)m->us,
	                         .ids = {(int64_t)index + 1},
	                         .id_count = 1};
	str_copy(str_of(m->fingerprint), s.fingerprint, sizeof s.fingerprint);
	s.rows = s.calls * m->rows;
	s.bytes_read = s.calls * m->bytes;
	calls_add(&s, s.calls - s.calls / 10, m->us);
	calls_add(&s, s.calls / 10, 4 * m->us);
	return s;
}

static int shapes_list(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
                       struct engine_shape **ret_list, size_t *ret_count, const char **ret_why)
{
	int64_t started_ms = 0;
	bool router = false, routers = false;
	int r = -ENOENT;
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = sim_cluster_find(e, cluster_id);
	for (size_t i = 0; s && i < s->node_count; i++) {
		routers |= s->nodes[i].kind == NODE_ROUTER;
		if (strcmp(s->nodes[i].name, node) != 0)
			continue;
		r = s->nodes[i].state == NODE_RUNNING ? 0 : -EAGAIN;
		started_ms = s->nodes[i].started_ms;
		router = s->nodes[i].kind == NODE_ROUTER;
	}
	pthread_mutex_unlock(&e->lock);
	if (r < 0)
		return r;
	struct engine_shape *list = arena_new_array(a, struct engine_shape, SAMPLES);
	for (size_t i = 0; i < SAMPLES; i++)
		list[i] = shape_at(&samples[i], i, started_ms, clock_now_ms());
	*ret_list = list;
	*ret_count = routers && !router ? 0 : SAMPLES; /* clients come to routers alone */
	return 0;
}

const struct engine_shapes_ops sim_shapes = {.list = shapes_list};
