/* Peering connections. What a cloud's own network would do is done by the clock: each state takes its time, and the
 * other side accepts by itself. A change of what is peered begins anew. */
#include "api/networks.h"
#include "api/policy_enforce.h"
#include "base/id.h"
#include "gate/audit.h"

#include <ctype.h>
#include <errno.h>

int peers_list(struct call *c);
int peers_delete(struct call *c);

extern const struct resource resource_network_peer;

#define PEERS_MAX 50 /* of a container */

static const struct ways {
	const char *provider, *field; /* field: of the state */
	const char *states[5];        /* in their order */
	const char *leaving;
	const char *account, *network;
	const char *created, *updated, *deleted, *active; /* events; active may be NULL */
} ways[] = {
        {"AWS",
         "statusName",
         {"INITIATING", "PENDING_ACCEPTANCE", "FINALIZING", "AVAILABLE"},
         "TERMINATING",
         "awsAccountId",
         "vpcId",
         "PEER_CREATED",
         "PEER_UPDATED",
         "PEER_DELETED",
         NULL},
        {"AZURE",
         "status",
         {"ADDING_PEER", "AVAILABLE"},
         "DELETING",
         "azureSubscriptionId",
         "vnetName",
         "AZURE_PEER_CREATED",
         "AZURE_PEER_UPDATED",
         "AZURE_PEER_DELETED",
         "AZURE_PEER_ACTIVE"},
        {"GCP",
         "status",
         {"ADDING_PEER", "WAITING_FOR_USER", "AVAILABLE"},
         "DELETING",
         "gcpProjectId",
         "networkName",
         "GCP_PEER_CREATED",
         "GCP_PEER_UPDATED",
         "GCP_PEER_DELETED",
         "GCP_PEER_ACTIVE"},
};

static const struct ways *ways_of(const json_t *peer)
{
	struct str provider = json_field(peer, "providerName");
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (str_is(provider, ways[i].provider))
			return &ways[i];
	return &ways[0];
}

static struct str state_of(const json_t *peer)
{
	return json_field(peer, ways_of(peer)->field);
}

/* "us-east-1" or "US_EAST_1": the latter. */
static struct str region_form(struct arena *a, struct str region)
{
	char *z = arena_z(a, region);
	for (char *p = z; *p; p++)
		*p = (char)(*p == '-' ? '_' : toupper((unsigned char)*p));
	return (struct str){z, region.n};
}

/* The container that the body names: in this project, at the same provider. */
static int container_find(struct call *c, const json_t *document, struct doc *ret_container)
{
	struct str id = json_field(document, "containerId");
	struct faults faults = {.count = 0};
	struct doc d;
	int result = tx_get(c->tx, c->arena, CONTAINER_KIND, id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	if (result < 0 || !str_eq(d.parent, c->group.id)) {
		call_fail(c, 404, "CONTAINER_NOT_FOUND", "containerId: the project has no container %.*s.",
		          STR_ARG(id));
		return call_fail_param(c, id);
	}
	if (!str_eq(json_field(doc_json(c->arena, d.body), "providerName"), json_field(document, "providerName")))
		faults_add(&faults, c->arena, STR("containerId"), "is a container at another provider");
	if (faults.count)
		return call_fail_faults(c, &faults);
	*ret_container = d;
	return 0;
}

static int aws_check(struct call *c, const json_t *document)
{
	struct faults faults = {.count = 0};
	struct cidr block;
	if (!container_region_is_known(STR("AWS"), region_form(c->arena, json_field(document, "accepterRegionName"))))
		faults_add(&faults, c->arena, STR("accepterRegionName"), "must be a region of AWS, like us-east-1");
	if (!network_block(document, &block))
		faults_add(&faults, c->arena, STR("routeTableCidrBlock"), "must be an address or a network");
	if (faults.count)
		return call_fail_faults(c, &faults);
	return network_check_overlap(c, "routeTableCidrBlock", &block, document);
}

/* No two connections between the same networks, and not too many. */
static int twins_check(struct call *c, const json_t *document)
{
	const struct ways *w = ways_of(document);
	struct doc *docs;
	size_t count, beside = 0;
	int result = peers_load(c->tx, c->arena, c->group.id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *other = doc_json(c->arena, docs[i].body);
		if (str_eq(docs[i].id, json_field(document, "id")) ||
		    !str_eq(json_field(other, "containerId"), json_field(document, "containerId")))
			continue;
		beside++;
		if (str_eq(json_field(other, w->account), json_field(document, w->account)) &&
		    str_eq(json_field(other, w->network), json_field(document, w->network))) {
			call_fail(c, 409, "PEER_ALREADY_EXISTS", "%s: %.*s is that peering connection already.",
			          w->network, STR_ARG(docs[i].id));
			return call_fail_param(c, docs[i].id);
		}
	}
	if (result == 0 && beside >= PEERS_MAX) {
		call_fail(c, 409, "PEERS_LIMIT_EXCEEDED", "A container has at most %d peering connections.", PEERS_MAX);
		result = call_fail_param(c, json_field(document, "containerId"));
	}
	return result;
}

int policy_link_of_peer(struct tx *tx, struct arena *a, const json_t *peer, struct policy_link *ret_link)
{
	const struct ways *w = ways_of(peer);
	struct doc container;
	int result = tx_get(tx, a, CONTAINER_KIND, json_field(peer, "containerId"), &container);
	if (result < 0)
		return result;
	*ret_link = (struct policy_link){.provider = str_of(w->provider),
	                                 .cidr_block = json_field(peer, "routeTableCidrBlock"),
	                                 .account_id = json_field(peer, w->account)};
	if (str_is(ret_link->provider, "AWS"))
		ret_link->region = region_form(a, json_field(peer, "accepterRegionName"));
	else if (str_is(ret_link->provider, "AZURE"))
		ret_link->region = json_field(doc_json(a, container.body), "region");
	return 0;
}

static int policy_ask(struct call *c, const json_t *document)
{
	struct policy_link link;
	int result = policy_link_of_peer(c->tx, c->arena, document, &link);
	return result < 0 ? result : policy_check_link(c, ACTION_PEERING, &link);
}

static int peer_check(struct call *c, json_t *document)
{
	struct doc container;
	if (!json_object_get(document, "providerName"))
		json_object_set_new(document, "providerName", json_string("AWS"));
	int result = container_find(c, document, &container);
	if (result == 0 && str_is(json_field(document, "providerName"), "AWS"))
		result = aws_check(c, document);
	if (result == 0)
		result = twins_check(c, document);
	if (result == 0)
		result = policy_ask(c, document);
	return result < 0 ? result : container_provision(c->tx, &container);
}

static int peer_begin(struct call *c, json_t *document)
{
	const struct ways *w = ways_of(document);
	json_object_del(document, "connectionId");
	json_object_set_new(document, w->field, json_string(w->states[0]));
	audit_field(c, "peerId", json_field(document, "id"));
	return network_job_ask(c->tx, json_field(document, "id"));
}

static int peer_create(struct call *c, json_t *document)
{
	int result = peer_check(c, document);
	if (result < 0)
		return result;
	audit_type(c, ways_of(document)->created);
	return peer_begin(c, document);
}

static int refuse_leaving(struct call *c, const struct doc *peer, const json_t *body)
{
	if (!str_is(state_of(body), ways_of(body)->leaving))
		return 0;
	call_fail(c, 409, "PEER_ALREADY_REQUESTED_DELETION", "The peering connection %.*s is being deleted.",
	          STR_ARG(peer->id));
	return call_fail_param(c, peer->id);
}

static int peer_update(struct call *c, const struct doc *old, json_t *document)
{
	static const char *const fixed[] = {"providerName", "containerId"};
	const json_t *before = doc_json(c->arena, old->body);
	struct faults faults = {.count = 0};
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (!json_equal(json_object_get(before, fixed[i]), json_object_get(document, fixed[i])))
			faults_add(&faults, c->arena, str_of(fixed[i]), "cannot be changed");
	if (faults.count)
		return call_fail_faults(c, &faults);
	int result = refuse_leaving(c, old, before);
	if (result < 0)
		return result;
	if (json_equal(before, document)) {
		audit_type(c, NULL);
		return 0;
	}
	result = peer_check(c, document);
	if (result < 0)
		return result;
	audit_type(c, ways_of(document)->updated);
	result = peer_begin(c, document);
	return result < 0 ? result : network_changed(c->tx, c->arena, c->group.id);
}

const struct resource_hooks peer_hooks = {.create = peer_create, .update = peer_update};

int peers_list(struct call *c)
{
	struct doc *docs;
	size_t count;
	struct str provider = call_query(c, "providerName");
	int result = peers_load(c->tx, c->arena, c->group.id, &docs, &count);
	return result < 0 ? result : network_list(c, docs, count, provider.n ? provider : STR("AWS"));
}

int peers_delete(struct call *c)
{
	struct doc d;
	int result = resource_load(c, &resource_network_peer, &d);
	if (result == 0)
		result = if_match(c, d.rev);
	if (result < 0)
		return result;
	json_t *body = doc_json(c->arena, d.body);
	result = refuse_leaving(c, &d, body);
	if (result < 0)
		return result;
	const struct ways *w = ways_of(body);
	json_object_set_new(body, w->field, json_string(w->leaving));
	d.body = json_text(c->arena, body);
	audit_type(c, w->deleted);
	audit_field(c, "peerId", d.id);
	result = tx_update(c->tx, &d);
	if (result == 0)
		result = network_job_ask(c->tx, d.id);
	if (result == 0)
		result = network_changed(c->tx, c->arena, c->group.id);
	if (result < 0)
		return result;
	buf_z(&c->out, "{}");
	return 0;
}

/* The job's part. */

static int peer_is_active(struct tx *tx, struct arena *a, const struct doc *d, const struct ways *w)
{
	struct doc project;
	int r = w->active ? tx_get(tx, a, "project", d->parent, &project) : -ENOENT;
	if (r == 0)
		r = audit_service_field(tx, a, w->active, project.parent, d->parent, "peerId", d->id);
	if (r < 0 && r != -ENOENT)
		return r;
	return network_changed(tx, a, d->parent);
}

int peer_advance(struct tx *tx, struct arena *a, struct doc *d, bool *ret_again)
{
	json_t *body = doc_json(a, d->body);
	const struct ways *w = ways_of(body);
	struct str state = state_of(body);
	char id[18];
	size_t at = 0;
	if (str_is(state, w->leaving))
		return tx_delete(tx, PEER_KIND, d->id);
	while (w->states[at] && !str_is(state, w->states[at]))
		at++;
	if (!w->states[at] || !w->states[at + 1])
		return 0;
	bool last = !w->states[at + 2];
	json_object_set_new(body, w->field, json_string(w->states[at + 1]));
	if (at == 0 && str_is(json_field(body, "providerName"), "AWS")) {
		random_text(id, 17, "0123456789abcdef");
		json_object_set_new(body, "connectionId", json_sprintf("pcx-%s", id));
	}
	d->body = json_text(a, body);
	int r = tx_update(tx, d);
	if (r == 0 && last)
		r = peer_is_active(tx, a, d, w);
	*ret_again = !last;
	return r;
}
