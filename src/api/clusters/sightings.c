/* What engines have of clusters, told to the families that keep count of it. */
#include "api/clusters/sightings.h"

#include "api/clusters/cluster.h"
#include "api/clusters/nodes.h"

int cluster_observed(struct tx *tx, struct arena *a, const struct service *s, const struct cluster *cluster,
                     const struct cluster_sighting *sighting)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->observed)
			result = cluster_parts[i]->observed(tx, a, s, cluster, sighting);
	return result;
}

size_t cluster_planned_nodes(struct arena *a, const struct cluster *cluster, const struct engine_node **ret_nodes)
{
	struct engine_node *nodes = arena_new_array(a, struct engine_node, ENGINE_NODES_MAX);
	*ret_nodes = nodes;
	return cluster_engine_nodes(json_object_get(cluster->plan, "nodes"), NULL, nodes, ENGINE_NODES_MAX);
}

size_t cluster_applied_nodes(struct arena *a, const struct cluster *cluster, const struct engine_node **ret_nodes)
{
	bool applied = json_number(cluster->plan, "applied") == json_number(cluster->plan, "generation");
	*ret_nodes = NULL;
	return applied ? cluster_planned_nodes(a, cluster, ret_nodes) : 0;
}
