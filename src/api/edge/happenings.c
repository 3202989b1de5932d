/* What the test control lets happen to databases, for those who try alerts. */
#include "api/alerts/alerts.h"
#include "api/edge/edge.h"
#include "call/service.h"
#include "outbox/outbox.h"
#include "trail/event_types.h"

void happening_check(struct arena *a, const json_t *body, struct faults *faults)
{
	const struct event_type *type = event_type_find(json_field(body, "eventTypeName"));
	if (!type || !type->in_group)
		faults_add(faults, a, STR("eventTypeName"), "must be a type of events that projects have");
}

struct happening {
	struct arena *arena;
	const json_t *body;
};

static int event_run(struct tx *tx, void *ctx)
{
	const struct happening *h = ctx;
	struct event_detail details[4];
	size_t count = 0;
	static const char *const texts[] = {"hostname", "replicaSetName", "shardName"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (json_field(h->body, texts[i]).n)
			details[count++] =
			        (struct event_detail){.name = texts[i], .text = json_field(h->body, texts[i])};
	if (json_object_get(h->body, "port"))
		details[count++] = (struct event_detail){.name = "port", .number = json_number(h->body, "port")};
	return event_service_about(
	        tx, h->arena, arena_z(h->arena, json_field(h->body, "eventTypeName")),
	        &(struct event_about){.group_id = json_field(h->body, "groupId"),
	                              .cluster = json_field(h->body, "clusterName"),
	                              .type_name = json_string_value(json_object_get(h->body, "typeName")),
	                              .details = details,
	                              .detail_count = count});
}

static int reading_run(struct tx *tx, void *ctx)
{
	const struct happening *h = ctx;
	const struct alert_reading r = {.group_id = json_field(h->body, "groupId"),
	                                .cluster = json_field(h->body, "clusterName"),
	                                .hostname = json_field(h->body, "hostname"),
	                                .replica_set = json_field(h->body, "replicaSetName"),
	                                .type_name = json_string_value(json_object_get(h->body, "typeName")),
	                                .port = (unsigned)json_number(h->body, "port"),
	                                .type = "OUTSIDE_METRIC_THRESHOLD",
	                                .metric = json_string_value(json_object_get(h->body, "metricName")),
	                                .value = json_number_value(json_object_get(h->body, "value"))};
	return alerts_on_reading(tx, h->arena, &r);
}

int happening_event(struct service *s, struct arena *a, const json_t *body)
{
	int r = store_write_wait(s->store, event_run, &(struct happening){a, body});
	outbox_wake(s->outbox);
	return r;
}

int happening_reading(struct service *s, struct arena *a, const json_t *body)
{
	int r = store_write_wait(s->store, reading_run, &(struct happening){a, body});
	outbox_wake(s->outbox);
	return r;
}
