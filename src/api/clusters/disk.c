/* Clusters whose disk is full. The engine refuses the writes; here it is told: an event when it begins and when it is
 * over, a header for whoever looks at the cluster, and numbers for the monitoring. */
#include "api/clusters/disk.h"

#include "api/clusters/cluster.h"
#include "api/clusters/missing.h"
#include "api/clusters/observe.h"
#include "api/clusters/place.h"
#include "api/clusters/store.h"
#include "api/clusters/watch.h"
#include "base/buf.h"
#include "call/service.h"
#include "hosts/hosts.h"
#include "trail/metrics.h"

static int full_note(struct tx *tx, struct arena *a, const struct cluster_note *n)
{
	struct cluster cluster;
	int r = cluster_get(tx, a, str_of(n->id), &cluster);
	if (r == 0 && hosts_shared()) {
		json_put(cluster.plan, "full", json_boolean(n->full != FULL_NOT));
		r = cluster_save(tx, a, &cluster);
	}
	return r < 0 ? r
	             : cluster_event(tx, a,
	                             n->full == FULL_NOT ? "HOST_ENOUGH_DISK_SPACE" : "HOST_NOT_ENOUGH_DISK_SPACE",
	                             NULL, &cluster, NULL, STR_NONE);
}

void disk_changed(void *service, const char *cluster_id, enum engine_full full)
{
	cluster_note_write(&(struct cluster_note){.service = service,
	                                          .run = full_note,
	                                          .full = full,
	                                          .lost = full ? "no event tells that its disk is full"
	                                                       : "no event tells that its disk is not full any more"},
	                   cluster_id);
}

void cluster_disk_header(struct call *c, const struct cluster *cluster)
{
	struct cluster_status status;
	/* Another host is asked only when its cluster is known to be full: it costs a question. */
	bool elsewhere = host_is_elsewhere(cluster_host(cluster)),
	     known = json_is_true(json_object_get(cluster->plan, "full"));
	if (elsewhere && !known)
		return;
	size_t headers = c->extra_header_count;
	struct problem problem = c->problem;
	if (cluster_observe(c, cluster, &status) < 0) {
		/* A host that is away takes nothing from what the store tells. */
		c->extra_header_count = headers;
		c->problem = problem;
		return;
	}
	if (status.full == FULL_NOT)
		return;
	call_header(c, STR("x-steward-progress"),
	            arena_printf(
	                    c->arena, "disk full: %llu of %llu MB are taken, so %s: enlarge it (diskSizeGB)%s",
	                    (unsigned long long)(status.disk_used >> 20), (unsigned long long)(status.disk_limit >> 20),
	                    status.full == FULL_CLOSED ? "no user gets in" : "transactions are read-only",
	                    status.full == FULL_CLOSED ? "" : ", or drop or delete in a transaction begun READ WRITE"));
}

void disk_metrics(struct buf *b, struct service *s)
{
	struct engine_disk disk;
	if (!s->engine_state || !s->engine_ops->disk)
		return;
	s->engine_ops->disk->usage(s->engine_state, &disk);
	metrics_number(b, "steward_databases_disk_used_bytes", "gauge", "Disk that the clusters' fullest shards take.",
	               disk.used);
	metrics_number(b, "steward_databases_disk_limit_bytes", "gauge", "Disk that they may take.", disk.limit);
	metrics_number(b, "steward_clusters_read_only", "gauge", "Clusters whose disk is full.", disk.read_only);
	metrics_number(b, "steward_clusters_closed", "gauge",
	               "Clusters that were written on all the same, and are closed to users.", disk.closed);
}
