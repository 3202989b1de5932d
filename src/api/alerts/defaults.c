/* What every new project watches, unless it is made without: whatever needs somebody soon. Its owners are told by
 * mail. */
#include "api/alerts/rules.h"

#include "base/clock.h"
#include "base/id.h"

#define METRIC(name, bound)                                                                          \
	"\"eventTypeName\":\"OUTSIDE_METRIC_THRESHOLD\",\"metricThreshold\":{\"metricName\":\"" name \
	"\",\"mode\":\"AVERAGE\",\"operator\":\"GREATER_THAN\",\"threshold\":" bound ",\"units\":\"RAW\"}"

static const char *const defaults[] = {
        "\"eventTypeName\":\"HOST_DOWN\"",
        "\"eventTypeName\":\"HOST_NOT_ENOUGH_DISK_SPACE\"",
        "\"eventTypeName\":\"CPS_SNAPSHOT_FAILED\"",
        "\"eventTypeName\":\"CPS_RESTORE_FAILED\"",
        "\"eventTypeName\":\"ENCRYPTION_AT_REST_CONFIG_NO_LONGER_VALID\"",
        METRIC("CONNECTIONS_PERCENT", "80.0"),
        METRIC("DISK_PARTITION_SPACE_USED_DATA", "90.0"),
        METRIC("GLOBAL_LOCK_PERCENTAGE", "50.0"), /* of the transaction ids */
        METRIC("NORMALIZED_SYSTEM_CPU_USER", "95.0"),
        METRIC("QUERY_TARGETING_SCANNED_OBJECTS_PER_RETURNED", "1000.0"),
};

static struct str default_body(struct arena *a, const char *what, struct str id, struct str group_id)
{
	char now[CLOCK_TEXT];
	clock_format(clock_now_ms(), now);
	return arena_printf(
	        a,
	        "{%s,\"created\":\"%s\",\"enabled\":true,\"groupId\":\"%.*s\",\"id\":\"%.*s\",\"matchers\":[],"
	        "\"notifications\":[{\"delayMin\":0,\"emailEnabled\":true,\"intervalMin\":60,\"notifierId\":"
	        "\"%s\",\"roles\":[\"GROUP_OWNER\"],\"smsEnabled\":false,\"typeName\":\"GROUP\"}],\"updated\":"
	        "\"%s\"}",
	        what, now, STR_ARG(group_id), STR_ARG(id), id_make(a).p, now);
}

int alerts_defaults_add(struct tx *tx, struct arena *a, struct str group_id)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof defaults / sizeof *defaults; i++) {
		struct doc d = doc_new(a, ALERT_CONFIG, group_id, STR_NONE, STR_NONE);
		d.body = default_body(a, defaults[i], d.id, group_id);
		r = tx_insert(tx, &d);
	}
	return r;
}
