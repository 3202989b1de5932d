/* What the networks of a project mean for its clusters: private connection strings, and addresses. */
#include "api/network/network.h"
#include "api/clusters/clusters.h"

/* Private connection strings. */

static int setting_is_on(struct tx *tx, struct arena *a, const struct resource *r, struct str group_id, bool *ret_on)
{
	struct doc d;
	int result = resource_singleton(tx, a, r, group_id, &d);
	if (result == 0)
		*ret_on = json_flag(doc_json(a, d.body), "enabled");
	return result;
}

static bool is_available(const json_t *peer)
{
	const char *state = lifecycle_state(STR(PEER_KIND), peer);
	return state && strcmp(state, "AVAILABLE") == 0;
}

int network_changed(struct tx *tx, struct arena *a, struct str group_id)
{
	return clusters_walk_group(tx, a, group_id, cluster_look_again, NULL);
}

static int setting_update(struct call *c, const struct doc *old, json_t *document)
{
	return network_changed(c->tx, c->arena, c->group.id);
}

const struct resource_hooks network_setting_hooks = {.update = setting_update};

/* What a cluster needs of the networks. */

static int cluster_provide(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	return containers_provide(tx, a, cluster->doc.parent, cluster->body);
}

/* Whether clients in a peered network need names of their own for the cluster: the "private" connection strings.
 * In one of AWS the standard names resolve to private addresses, unless the customer has a DNS of its own;
 * at the other providers they never do. */
static int cluster_wanted(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want)
{
	struct doc *peers;
	struct str group_id = cluster->doc.parent;
	size_t count;
	bool dns = false, only = false, found = false;
	int r = peers_load(tx, a, group_id, &peers, &count);
	if (r == 0)
		r = setting_is_on(tx, a, &resource_custom_dns, group_id, &dns);
	if (r == 0)
		r = setting_is_on(tx, a, &resource_private_ip_mode, group_id, &only);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && !found; i++) {
		const json_t *peer = doc_json(a, peers[i].body);
		struct str provider = json_field(peer, "providerName");
		found = is_available(peer) && cluster_is_in(cluster->body, provider, STR_NONE) &&
		        (!str_is(provider, "AWS") || dns || only);
	}
	want->peered = found;
	return 0;
}

const struct cluster_part network_part = {
        .created = cluster_provide, .changed = cluster_provide, .wanted = cluster_wanted};

/* Jobs that versions before the lifecycles have left in a store. */
static const struct job_kind kinds[] = {{.name = "network", .save = lifecycle_save}};
const struct job_kinds network_jobs = JOB_KINDS(kinds);

/* Addresses. */

/* Each address once. */
static json_t *addresses_of(const struct cluster_status *status)
{
	json_t *list = json_array();
	for (size_t i = 0; i < status->node_count; i++) {
		const char *address = status->nodes[i].address;
		bool known = !address[0];
		for (size_t k = 0; k < i && !known; k++)
			known = strcmp(status->nodes[k].address, address) == 0;
		if (!known)
			json_add_str(list, str_of(address));
	}
	return list;
}

/* On this host a node speaks from where it listens, and no change moves it elsewhere. */
static json_t *addresses_entry(struct arena *a, const struct cluster_sight *cluster)
{
	const struct str name = cluster->doc.name;
	json_t *addresses = json_keep(a, addresses_of(&cluster->status));
	return json_pack("{s:s%, s:[], s:[], s:O, s:O}", "clusterName", name.p, name.n, "futureInbound",
	                 "futureOutbound", "inbound", addresses, "outbound", addresses);
}

int network_addresses(struct call *c)
{
	json_t *clusters = json_array();
	json_t *all = json_keep(c->arena, json_pack("{s:s%, s:{s:o}}", "groupId", c->group.id.p, c->group.id.n,
	                                            "services", "clusters", clusters));
	struct cluster_sight *list;
	size_t count;
	int result = clusters_observe(c, c->arena, &list, &count, NULL);
	for (size_t i = 0; result == 0 && i < count; i++)
		json_array_append_new(clusters, addresses_entry(c->arena, &list[i]));
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, all), c->op, NULL, STR_NONE, false);
	return result;
}
