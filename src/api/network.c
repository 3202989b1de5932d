/* What the networks of a project do: their job, the private connection strings, and the addresses of the clusters. */
#include "api/cluster_store.h"
#include "api/networks.h"
#include "base/clock.h"
#include "gate/service.h"

#include <errno.h>

int network_addresses(struct call *c);

#define STATE_MS 1000 /* that each state takes */

/* The job. */

int network_job_ask(struct tx *tx, struct str id)
{
	struct job job = {.kind = STR(NETWORK_JOB), .subject = id, .due_ms = clock_now_ms() + STATE_MS};
	return tx_job_ensure(tx, &job);
}

static int network_save(struct tx *tx, struct job_run *r)
{
	struct doc d;
	bool again = false;
	int result = tx_get(tx, r->arena, CONTAINER_KIND, r->job.subject, &d);
	if (result == 0)
		return container_advance(tx, r->arena, &d);
	if (result == -ENOENT)
		result = tx_get(tx, r->arena, PEER_KIND, r->job.subject, &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result; /* it went with its project */
	result = peer_advance(tx, r->arena, &d, &again);
	return result < 0 || !again ? result : network_job_ask(tx, r->job.subject);
}

int network_step(struct job_run *r)
{
	r->save = network_save;
	return JOB_DONE;
}

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
	return str_is(json_field(peer, "status"), "AVAILABLE") || str_is(json_field(peer, "statusName"), "AVAILABLE");
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
	return cluster_look_again(tx, cluster->id);
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
	int r = s->engine_ops->observe(s->engine_state, arena_z(to->call->arena, cluster->id), to->call->arena,
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
