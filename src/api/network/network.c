/* What the networks of a project mean for its clusters: private connection strings, and addresses. */
#include "api/network/network.h"
#include "api/clusters/clusters.h"
#include "call/service.h"

#include <errno.h>

/* Private connection strings. */

static int setting_is_on(struct tx *tx, struct arena *a, const char *kind, struct str group_id, bool *ret_on)
{
	struct doc d;
	int r = tx_get(tx, a, kind, group_id, &d);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_on = r == 0 && json_is_true(json_object_get(doc_json(a, d.body), "enabled"));
	return 0;
}

static bool is_available(const json_t *peer)
{
	const char *state = lifecycle_state(STR(PEER_KIND), peer);
	return state && strcmp(state, "AVAILABLE") == 0;
}

/* In a peered network of AWS the standard names resolve to private addresses, unless the customer has a DNS of its own;
 * at the other providers they never do. */
int network_is_private(struct tx *tx, struct arena *a, struct str group_id, const json_t *cluster, bool *ret_private)
{
	struct doc *peers;
	size_t count;
	bool dns = false, only = false, found = false;
	int r = peers_load(tx, a, group_id, &peers, &count);
	if (r == 0)
		r = setting_is_on(tx, a, "custom_dns", group_id, &dns);
	if (r == 0)
		r = setting_is_on(tx, a, "private_ip_mode", group_id, &only);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && !found; i++) {
		const json_t *peer = doc_json(a, peers[i].body);
		struct str provider = json_field(peer, "providerName");
		found = is_available(peer) && cluster_is_in(cluster, provider, STR_NONE) &&
		        (!str_is(provider, "AWS") || dns || only);
	}
	*ret_private = found;
	return 0;
}

static int look_again(struct tx *tx, void *ctx, const struct doc *cluster)
{
	return cluster_reconcile(tx, cluster->id);
}

int network_changed(struct tx *tx, struct arena *a, struct str group_id)
{
	return clusters_walk_group(tx, a, group_id, look_again, NULL);
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

static int cluster_wanted(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want)
{
	return network_is_private(tx, a, cluster->doc.parent, cluster->body, &want->peered);
}

const struct cluster_part network_part = {
        .created = cluster_provide, .changed = cluster_provide, .wanted = cluster_wanted};

/* Jobs that versions before the lifecycles have left in a store. */
static const struct job_kind kinds[] = {{.name = "network", .step = lifecycle_step}};
const struct job_kinds network_jobs = JOB_KINDS(kinds);

/* Addresses. */

struct addresses {
	struct call *call;
	struct buf *to;
};

static void array_write(struct buf *b, const char *name, const struct cluster_status *status)
{
	json_key(b, name);
	json_open(b, '[');
	for (size_t i = 0; status && i < status->node_count; i++) {
		const char *address = status->nodes[i].address;
		bool known = !address[0];
		for (size_t k = 0; k < i && !known; k++)
			known = strcmp(status->nodes[k].address, address) == 0;
		if (!known)
			json_z(b, address);
	}
	json_close(b, ']');
}

/* On this host a node speaks from where it listens, and no change moves it elsewhere. */
static int addresses_write(struct tx *tx, void *ctx, const struct doc *cluster)
{
	struct addresses *to = ctx;
	const struct service *s = to->call->service;
	struct cluster_status status = {.exists = false};
	int r = s->engine_ops->core->observe(s->engine_state, arena_z(to->call->arena, cluster->id), to->call->arena,
	                                     &status);
	if (r < 0)
		return r;
	json_open(to->to, '{');
	json_key(to->to, "clusterName");
	json_str(to->to, cluster->name);
	array_write(to->to, "futureInbound", NULL);
	array_write(to->to, "futureOutbound", NULL);
	array_write(to->to, "inbound", &status);
	array_write(to->to, "outbound", &status);
	json_close(to->to, '}');
	return 0;
}

int network_addresses(struct call *c)
{
	struct buf b = {0};
	struct addresses to = {.call = c, .to = &b};
	json_open(&b, '{');
	json_key(&b, "groupId");
	json_str(&b, c->group.id);
	json_key(&b, "services");
	json_open(&b, '{');
	json_key(&b, "clusters");
	json_open(&b, '[');
	int result = clusters_walk_group(c->tx, c->arena, c->group.id, addresses_write, &to);
	json_close(&b, ']');
	json_close(&b, '}');
	json_close(&b, '}');
	if (result == 0)
		entity_write(c, &c->out, buf_view(&b), c->op, NULL, STR_NONE, false);
	buf_free(&b);
	return result;
}
