/* What metering costs: an organization's nodes are observed, looked at again and again, changed, and added up. Prints JSON.
 *
 *   meter DIR NODES */
#include "meter/meter.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EACH 3 /* nodes of a cluster */
#define LOOKS 5
#define T0 INT64_C(1761955200000)
#define DAY INT64_C(86400000)

static struct store *store;
static struct id *ids;
static size_t clusters;

static double cpu_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct turn {
	size_t from, to;
	const char *size;
	int64_t at_ms;
};

static int cluster_observe(struct tx *tx, struct arena *a, size_t i, const struct turn *t)
{
	struct meter_thing things[2 * EACH];
	for (int n = 0; n < EACH; n++) {
		things[2 * n] = (struct meter_thing){.key = arena_printf(a, "node/ab12cd-shard-00-%02d", n),
		                                     .sku = str_of(t->size),
		                                     .provider = STR("AWS"),
		                                     .region = STR("US_EAST_1"),
		                                     .amount = 1,
		                                     .since_ms = t->at_ms,
		                                     .runs = true};
		things[2 * n + 1] = (struct meter_thing){.key = arena_printf(a, "disk/ab12cd-shard-00-%02d", n),
		                                         .sku = STR("AWS_STORAGE"),
		                                         .provider = STR("AWS"),
		                                         .region = STR("US_EAST_1"),
		                                         .amount = 10000000};
	}
	return meter_observe(tx, a,
	                     &(struct meter_subject){.org_id = STR("6740c3a1f2b4d5e6a7b8c9d0"),
	                                             .group_id = STR("6740c3a1f2b4d5e6a7b8c9d1"),
	                                             .group_name = STR("project"),
	                                             .id = id_str(&ids[i]),
	                                             .name = STR("cluster")},
	                     &(struct meter_observation){.prefixes = "node/,disk/",
	                                                 .things = things,
	                                                 .count = sizeof things / sizeof *things,
	                                                 .at_ms = t->at_ms});
}

static int turn_run(struct tx *tx, void *ctx)
{
	const struct turn *t = ctx;
	struct arena *a = arena_new();
	int r = 0;
	for (size_t i = t->from; r == 0 && i < t->to; i++)
		r = cluster_observe(tx, a, i, t);
	arena_free(a);
	return r;
}

static int all_observe(const char *size, int64_t at_ms)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < clusters; i += 100) {
		struct turn t = {
		        .from = i, .to = i + 100 < clusters ? i + 100 : clusters, .size = size, .at_ms = at_ms};
		r = store_write_wait(store, turn_run, &t);
	}
	return r;
}

static int subject_look(struct tx *tx, void *ctx, const struct doc *d)
{
	struct arena *a = ctx;
	const json_t *open = json_object_get(doc_json(a, d->body), "open");
	size_t found = 0;
	for (int n = 0; n < EACH; n++)
		found += json_number(json_object_get(open, arena_printf(a, "node/ab12cd-shard-00-%02d", n).p),
		                     "since") > 0;
	arena_reset(a);
	return found == EACH ? 0 : -1;
}

static int mark_run(struct tx *tx, void *ctx)
{
	struct arena *a = arena_new();
	int r = meter_mark(tx, a, STR_NONE, *(int64_t *)ctx);
	arena_free(a);
	return r;
}

static double looks(struct tx *reader)
{
	struct arena *a = arena_new();
	double before = cpu_ms();
	for (int i = 1; i <= LOOKS; i++) {
		int64_t at = T0 + i * 60000;
		tx_begin_read(reader);
		if (tx_walk_all(reader, METER_OPEN_KIND, subject_look, a) < 0)
			abort();
		tx_end_read(reader);
		if (store_write_wait(store, mark_run, &at) < 0)
			abort();
	}
	arena_free(a);
	return (cpu_ms() - before) / LOOKS;
}

static double month(struct tx *reader, size_t *ret_rows)
{
	struct arena *a = arena_new();
	struct usage *list;
	double before = cpu_ms();
	tx_begin_read(reader);
	if (meter_usage(reader, a, STR("6740c3a1f2b4d5e6a7b8c9d0"), T0, T0 + 30 * DAY, &list, ret_rows) < 0)
		abort();
	tx_end_read(reader);
	arena_free(a);
	return cpu_ms() - before;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	size_t nodes = strtoul(argv[2], NULL, 10), rows = 0;
	json_setup();
	clusters = (nodes + EACH - 1) / EACH;
	ids = must_calloc(clusters, sizeof *ids);
	for (size_t i = 0; i < clusters; i++)
		ids[i] = id_new();
	if (store_open(&(struct store_options){.data_dir = argv[1]}, &store) < 0)
		return 1;
	double before = cpu_ms();
	if (all_observe("AWS_INSTANCE_M10", T0) < 0)
		return 1;
	double begun = cpu_ms() - before;
	struct tx *reader = store_reader(store);
	double look = looks(reader);
	before = cpu_ms();
	if (all_observe("AWS_INSTANCE_M20", T0 + 15 * DAY) < 0)
		return 1;
	double changed = cpu_ms() - before;
	int64_t end = T0 + 30 * DAY;
	if (store_write_wait(store, mark_run, &end) < 0)
		return 1;
	double added = month(reader, &rows);
	store_reader_free(reader);
	store_close(store);
	free(ids);
	printf("{\"nodes\": %zu, \"begin_us\": %.1f, \"change_us\": %.1f, \"look_ms\": %.1f, \"month_ms\": %.1f, "
	       "\"rows\": %zu}\n",
	       clusters * EACH, begun * 1e3 / (double)(clusters * EACH), changed * 1e3 / (double)(clusters * EACH),
	       look, added, rows);
	return 0;
}
