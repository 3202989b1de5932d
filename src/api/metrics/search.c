/* Measurements of full-text search. Search has no process of its own here, and no index that counts: the metrics are
 * offered with their units, and have no data points. */
#include "api/kit/verbs.h"
#include "api/metrics/processes.h"
#include "api/metrics/window.h"
#include "base/buf.h"

#include <errno.h>

struct search_metric {
	const char *name, *unit;
};

static const struct search_metric hardware[] = {
        {"FTS_DISK_USAGE", "BYTES"},
        {"FTS_PROCESS_CPU_KERNEL", "PERCENT"},
        {"FTS_PROCESS_CPU_USER", "PERCENT"},
        {"FTS_PROCESS_NORMALIZED_CPU_KERNEL", "PERCENT"},
        {"FTS_PROCESS_NORMALIZED_CPU_USER", "PERCENT"},
        {"FTS_PROCESS_RESIDENT_MEMORY", "BYTES"},
        {"FTS_PROCESS_SHARED_MEMORY", "BYTES"},
        {"FTS_PROCESS_VIRTUAL_MEMORY", "BYTES"},
        {"JVM_CURRENT_MEMORY", "BYTES"},
        {"JVM_MAX_MEMORY", "BYTES"},
        {"PAGE_FAULTS", "SCALAR_PER_SECOND"},
        {NULL, NULL},
};
static const struct search_metric indexes[] = {
        {"INDEX_SIZE_ON_DISK", "BYTES"},
        {"NUMBER_OF_DELETES", "SCALAR_PER_SECOND"},
        {"NUMBER_OF_ERROR_QUERIES", "SCALAR_PER_SECOND"},
        {"NUMBER_OF_GETMORE_COMMANDS", "SCALAR_PER_SECOND"},
        {"NUMBER_OF_INDEX_FIELDS", "SCALAR"},
        {"NUMBER_OF_INSERTS", "SCALAR_PER_SECOND"},
        {"NUMBER_OF_SUCCESS_QUERIES", "SCALAR_PER_SECOND"},
        {"NUMBER_OF_UPDATES", "SCALAR_PER_SECOND"},
        {"REPLICATION_LAG", "MILLISECONDS"},
        {"TOTAL_NUMBER_OF_QUERIES", "SCALAR_PER_SECOND"},
        {NULL, NULL},
};

static void offered_write(struct buf *b, const char *field, const struct search_metric *list)
{
	json_key(b, field);
	json_open(b, '[');
	for (; list && list->name; list++) {
		json_open(b, '{');
		json_pair_str(b, "metricName", str_of(list->name));
		json_pair_str(b, "units", str_of(list->unit));
		json_close(b, '}');
	}
	json_close(b, ']');
}

int search_metrics_list(struct call *c)
{
	struct cluster cluster;
	struct node_status node;
	struct buf b = {0};
	int result = process_find(c, &cluster, &node);
	if (result != 0)
		return result < 0 ? result : 0;
	json_open(&b, '{');
	json_pair_str(&b, "groupId", c->group.id);
	offered_write(&b, "hardwareMetrics", hardware);
	offered_write(&b, "indexMetrics", indexes);
	json_pair_str(&b, "processId", call_path(c, "processId"));
	offered_write(&b, "statusMetrics", NULL);
	json_close(&b, '}');
	entity_write(c, &c->out, buf_view(&b), c->op, "processId", call_path(c, "processId"), false);
	buf_free(&b);
	return 0;
}

/* Those that were asked for, which the gate has checked. */
static void measurements_write(const struct call *c, struct buf *b, const char *field, const struct search_metric *list)
{
	json_key(b, field);
	json_open(b, '[');
	for (; list && list->name; list++) {
		if (!str_list_has(call_query(c, "metrics"), str_of(list->name)))
			continue;
		json_open(b, '{');
		json_key(b, "dataPoints");
		json_raw(b, STR("[]"));
		json_pair_str(b, "name", str_of(list->name));
		json_pair_str(b, "units", str_of(list->unit));
		json_close(b, '}');
	}
	json_close(b, ']');
}

/* 1: the process's host answers. */
static int answer_begin(struct call *c, struct buf *b)
{
	struct cluster cluster;
	struct node_status node;
	struct window window;
	int result = process_find(c, &cluster, &node);
	if (result == 0)
		result = window_read(c, &window);
	if (result != 0)
		return result;
	json_open(b, '{');
	window_write(b, &window);
	json_pair_str(b, "groupId", c->group.id);
	json_pair_str(b, "processId", call_path(c, "processId"));
	return 0;
}

int search_measurements_get(struct call *c)
{
	struct buf b = {0};
	int result = answer_begin(c, &b);
	if (result != 0)
		return result < 0 ? result : 0;
	measurements_write(c, &b, "hardwareMeasurements", hardware);
	measurements_write(c, &b, "statusMeasurements", NULL);
	window_answer(c, &b);
	return 0;
}

int search_index_measurements_get(struct call *c)
{
	struct buf b = {0};
	int result = answer_begin(c, &b);
	if (result != 0)
		return result < 0 ? result : 0;
	json_pair_str(&b, "collectionName", call_path(c, "collectionName"));
	json_pair_str(&b, "databaseName", call_path(c, "databaseName"));
	json_key(&b, "indexIds");
	json_raw(&b, STR("[]"));
	measurements_write(c, &b, "indexStatsMeasurements", indexes);
	window_answer(c, &b);
	return 0;
}
