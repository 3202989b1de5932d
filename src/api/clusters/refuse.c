/* What cannot be done to a cluster as it is, or with the engine in use. */
#include "api/clusters/refuse.h"

#include "api/clusters/cluster.h"
#include "api/clusters/store.h"

int cluster_not_offered(struct call *c)
{
	return call_fail(c, 501, "NOT_IMPLEMENTED", "The engine %s, which runs the databases, does not offer %s.",
	                 c->service->engine, c->op->id);
}

int cluster_refuse_deleting(struct call *c, const struct cluster *cluster)
{
	if (!cluster_is(cluster, "DELETING"))
		return 0;
	return call_fail_about(c, 409, "CLUSTER_ALREADY_REQUESTED_DELETION", cluster->doc.name,
	                       "The cluster \"%.*s\" is being deleted.", STR_ARG(cluster->doc.name));
}

int cluster_refuse_paused(struct call *c, const struct cluster *cluster)
{
	if (!json_is_true(json_object_get(cluster->body, "paused")))
		return 0;
	return call_fail_about(c, 409, "CANNOT_UPDATE_PAUSED_CLUSTER", cluster->doc.name,
	                       "The cluster \"%.*s\" is paused. Resume it first.", STR_ARG(cluster->doc.name));
}
