/* The document says what a cluster shall be; its parts say who may connect, from where, and how. */
#include "api/clusters/wanted.h"

#include "api/clusters/args.h"
#include "api/clusters/authority.h"
#include "api/clusters/cluster.h"
#include "api/clusters/connection_strings.h"
#include "api/clusters/missing.h"
#include "api/clusters/nodes.h"
#include "api/clusters/outage.h"
#include "api/clusters/spec.h"
#include "base/json.h"
#include "base/log.h"

int cluster_access_load(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
                        struct engine_access *ret_access)
{
	struct engine_access access = {.users = NULL};
	int result = 0;
	for (size_t i = 0; result == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->access)
			result = cluster_parts[i]->access(tx, a, group_id, cluster_name, &access);
	if (result == 0)
		*ret_access = access;
	return result;
}

int cluster_want_load(const struct service *s, struct tx *tx, struct arena *a, const struct cluster *cluster,
                      struct cluster_want *ret_want, struct engine_access *ret_access)
{
	struct engine_node *nodes = arena_new_array(a, struct engine_node, ENGINE_NODES_MAX);
	struct engine_cluster *want = &ret_want->engine;
	struct engine_param *params;
	struct authority ca;
	json_t *outage;
	*ret_want = (struct cluster_want){.peered = false};
	int result = outage_regions(tx, a, cluster->doc.id, &outage);
	if (result == 0)
		result = process_params(tx, a, cluster, &params, &want->param_count, &want->quorum);
	if (result == 0)
		result = cluster_access_load(tx, a, cluster->doc.parent, cluster->doc.name, ret_access);
	if (result == 0)
		result = authority_load(tx, a, cluster->doc.parent, &ca);
	for (size_t i = 0; result == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->wanted)
			result = cluster_parts[i]->wanted(tx, a, cluster, ret_want);
	if (result < 0)
		return result;
	json_int_t generation = json_number(cluster->plan, "generation");
	bool applied = json_number(cluster->plan, "applied") == generation;
	want->adopt = applied && !json_is_true(json_object_get(cluster->plan, "missing"));
	str_copy(cluster->doc.id, want->id, sizeof want->id);
	str_copy(cluster->doc.parent, want->group_id, sizeof want->group_id);
	str_copy(cluster->doc.name, want->name, sizeof want->name);
	str_copy(json_field(cluster->plan, "label"), want->label, sizeof want->label);
	str_copy(json_field(cluster->plan, "hash"), want->project_hash, sizeof want->project_hash);
	want->version = cluster_version(s->db_versions, cluster->body);
	want->renew = json_is_true(json_object_get(cluster->plan, "maintain"));
	want->paused = want->locked || json_is_true(json_object_get(cluster->body, "paused"));
	want->nodes = nodes;
	want->node_count =
	        cluster_engine_nodes(json_object_get(cluster->plan, "nodes"), outage, nodes, ENGINE_NODES_MAX);
	made_load(a, cluster, applied, want);
	want->params = params;
	want->ca_cert = ca.certificate.p;
	want->ca_key = ca.key.p;
	want->shards = (unsigned)cluster_shard_count(cluster->body);
	return 0;
}

int cluster_applied(const struct service *s, struct tx *reader, struct arena *a, struct str cluster_id)
{
	int first = 0;
	for (size_t i = 0; i < cluster_part_count; i++) {
		int result = cluster_parts[i]->applied ? cluster_parts[i]->applied(s, reader, a, cluster_id) : 0;
		if (result < 0)
			log_error("cluster %.*s: what leads to it could not be changed (error %d)", STR_ARG(cluster_id),
			          result);
		first = first < 0 ? first : result;
	}
	return first;
}
