/* Peering connections. What a cloud's own network would do is done by the clock: each state takes its time, and the
 * other side accepts by itself. A change of what is peered begins anew. */
#include "api/network/network.h"
#include "api/policies/policies.h"
#include "base/id.h"
#include "base/json.h"
#include "trail/events.h"

#include <ctype.h>
#include <errno.h>

lifecycle_hook peer_begun, peer_connected, peer_network_changed;

#define PEERS_MAX 50 /* of a container */

/* AWS where it names none. */
static const struct network_provider *provider_of(const json_t *peer)
{
	const struct network_provider *p = network_provider_find(json_field(peer, "providerName"));
	return p ? p : network_provider_find(STR("AWS"));
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
	struct doc d;
	int result = tx_get(c->tx, c->arena, CONTAINER_KIND, id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	if (result < 0 || !str_eq(d.parent, c->group.id))
		return call_fail_about(c, 404, "CLOUD_PROVIDER_CONTAINER_NOT_FOUND", id,
		                       "containerId: the project has no container %.*s.", STR_ARG(id));
	if (!str_eq(json_field(doc_json(c->arena, d.body), "providerName"), json_field(document, "providerName")))
		return call_fail_field(c, 400, "VALIDATION_ERROR", "containerId",
		                       "is a container at another provider.");
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
	const struct network_provider *w = provider_of(document);
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
		    str_eq(json_field(other, w->network), json_field(document, w->network)))
			return call_fail_about(c, 409, "PEER_ALREADY_EXISTS", docs[i].id,
			                       "%s: %.*s is that peering connection already.", w->network,
			                       STR_ARG(docs[i].id));
	}
	if (result == 0 && beside >= PEERS_MAX)
		result = call_fail_about(c, 409, "PEERS_LIMIT_EXCEEDED", json_field(document, "containerId"),
		                         "A container has at most %d peering connections.", PEERS_MAX);
	return result;
}

int policy_link_of_peer(struct tx *tx, struct arena *a, const json_t *peer, struct policy_link *ret_link)
{
	const struct network_provider *w = provider_of(peer);
	struct doc container;
	int result = tx_get(tx, a, CONTAINER_KIND, json_field(peer, "containerId"), &container);
	if (result < 0)
		return result;
	*ret_link = (struct policy_link){.provider = str_of(w->name),
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
		json_put_z(document, "providerName", "AWS");
	int result = container_find(c, document, &container);
	if (result == 0 && str_is(json_field(document, "providerName"), "AWS"))
		result = aws_check(c, document);
	if (result == 0)
		result = twins_check(c, document);
	if (result == 0)
		result = policy_ask(c, document);
	return result < 0 ? result : lifecycle_ask(c->tx, c->arena, &container);
}

static int peer_create(struct call *c, json_t *document)
{
	int result = peer_check(c, document);
	struct doc d = {.kind = STR(PEER_KIND), .id = json_field(document, "id"), .parent = c->group.id};
	return result < 0 ? result : call_lifecycle_create(c, &d, document);
}

static int refuse_leaving(struct call *c, const struct doc *peer, const json_t *body, const char *word)
{
	if (lifecycle_allows(peer->kind, body, word))
		return 0;
	return call_fail_about(c, 409, "PEER_ALREADY_REQUESTED_DELETION", peer->id,
	                       "The peering connection %.*s is being deleted.", STR_ARG(peer->id));
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
	int result = refuse_leaving(c, old, before, "CHANGE");
	if (result < 0)
		return result;
	if (json_equal(before, document)) {
		event_set_type(c, NULL);
		return 0;
	}
	result = peer_check(c, document);
	return result < 0 ? result : call_lifecycle_change(c, old, document, "CHANGE");
}

static int peer_remove(struct call *c, const struct doc *old)
{
	return refuse_leaving(c, old, doc_json(c->arena, old->body), "DELETE");
}

/* It goes when its time has come. */
static int peer_drop(struct call *c, const struct doc *old)
{
	struct doc d = *old;
	buf_z(&c->out, "{}");
	return call_lifecycle_move(c, &d, "DELETE");
}

const struct resource_hooks peer_hooks = {
        .create = peer_create, .update = peer_update, .remove = peer_remove, .drop = peer_drop};

/* What else happens on the way. */

/* At its beginning, and again when what is peered was changed. */
int peer_begun(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	json_object_del(step->body, "connectionId");
	return step->from ? network_changed(tx, a, step->doc->parent) : 0;
}

int peer_connected(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	char id[18];
	random_text(id, 17, "0123456789abcdef");
	json_put(step->body, "connectionId", json_sprintf("pcx-%s", id));
	return 0;
}

int peer_network_changed(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	return network_changed(tx, a, step->doc->parent);
}
