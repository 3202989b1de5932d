/* Endpoints. A consumer says at which provider it has one; who it is on the network comes with it at Azure and Google,
 * and from the service's operator at AWS, whose ids say nothing of that. On an engine without databases nobody has to
 * be asked. */
#include "api/private_endpoints/endpoints.h"

#include "api/network/network.h"
#include "api/policies/policies.h"
#include "base/clock.h"
#include "base/id.h"
#include "hosts/hosts.h"
#include "meter/meter.h"
#include "trail/events.h"

#include <ctype.h>
#include <errno.h>

#define LOOK_AGAIN_MS 30000

lifecycle_hook private_endpoint_available, private_endpoint_leaving;

bool endpoint_is_open(const json_t *endpoint)
{
	const char *state = lifecycle_state(STR(ENDPOINT_KIND), endpoint);
	bool available = state && strcmp(state, "AVAILABLE") == 0;
	return available ||
	       (json_flag(endpoint, "opening") && lifecycle_allows(STR(ENDPOINT_KIND), endpoint, "REJECT"));
}

int endpoints_changed(struct tx *tx, struct arena *a, struct str group_id)
{
	int r = relays_changed(tx, a);
	r = r < 0 ? r : access_ask(tx, a, group_id);
	return r < 0 ? r : network_changed(tx, a, group_id);
}

/* --- a new one */

static int service_of(struct call *c, json_t **ret_body, struct str *ret_id)
{
	struct doc d;
	int r = resource_load(c, &resource_endpoint_service, &d);
	if (r < 0)
		return r;
	json_t *body = doc_json(c->arena, d.body);
	const char *state = lifecycle_state(d.kind, body);
	*ret_body = body;
	*ret_id = d.id;
	if (state && (strcmp(state, "WAITING_FOR_USER") == 0 || strcmp(state, "AVAILABLE") == 0))
		return 0;
	return call_fail_about(c, 409, "PRIVATE_ENDPOINT_SERVICE_NOT_READY", d.id,
	                       "The private endpoint service is %s; it takes endpoints when it is WAITING_FOR_USER or "
	                       "AVAILABLE.",
	                       state ? state : "unknown");
}

static void address_take(struct call *c, struct str path, struct str text, json_t *consumers, struct faults *faults)
{
	struct ip ip;
	char z[IP_TEXT];
	/* No consumer has one of this network, of many, or of none. */
	if (!ip_parse(text, &ip) || !ip_is_v4(&ip) || ip.b[12] == 0 || ip.b[12] >= 224) {
		faults_add(faults, c->arena, path, "must be the IPv4 address of one consumer");
		return;
	}
	ip_format(&ip, z);
	json_add_str(consumers, str_of(z));
}

static bool is_group_name(struct str name)
{
	bool good = name.n && name.n <= 63 && name.p[0] >= 'a' && name.p[0] <= 'z' && name.p[name.n - 1] != '-';
	for (size_t i = 0; good && i < name.n; i++)
		good = (name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= '0' && name.p[i] <= '9') ||
		       name.p[i] == '-';
	return good;
}

static bool is_uuid(struct str text)
{
	bool good = text.n == 36;
	for (size_t i = 0; good && i < text.n; i++)
		good = i == 8 || i == 13 || i == 18 || i == 23 ? text.p[i] == '-'
		                                               : text.p[i] && strchr("0123456789abcdef", text.p[i]);
	return good;
}

/* What a path can name: else it could never be deleted. */
static bool is_resource_id(struct str id)
{
	static const char *const words[] = {"",
	                                    "subscriptions",
	                                    NULL,
	                                    "resourceGroups",
	                                    NULL,
	                                    "providers",
	                                    "Microsoft.Network",
	                                    "privateEndpoints",
	                                    NULL};
	struct str rest = id, part;
	bool more = true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!more)
			return false;
		more = str_cut(rest, '/', &part, &rest);
		if (words[i] ? !str_is(part, words[i]) && !(i == 3 && str_is(part, "resourcegroups")) : !part.n)
			return false;
		if (i == 2 && !is_uuid(part))
			return false;
		for (size_t k = 0; k < part.n; k++)
			if (!isalnum((unsigned char)part.p[k]) && (!part.p[k] || !strchr("-_.()", part.p[k])))
				return false;
	}
	return !more && id.n <= 1000;
}

static void azure_fill(struct call *c, const json_t *given, json_t *document, json_t *consumers, struct faults *faults)
{
	struct str id = json_field(given, "id"), address = json_field(given, "privateEndpointIPAddress");
	if (!is_resource_id(id))
		faults_add(faults, c->arena, STR("id"),
		           "must be the resource id of a private endpoint: /subscriptions/UUID/resourceGroups/NAME/"
		           "providers/Microsoft.Network/privateEndpoints/NAME");
	json_put_str(document, "privateEndpointResourceId", id);
	json_put_str(document, "privateEndpointIPAddress", address);
	address_take(c, STR("privateEndpointIPAddress"), address, consumers, faults);
}

static void gcp_fill(struct call *c, const json_t *given, json_t *document, json_t *consumers, struct faults *faults)
{
	const json_t *rules = json_object_get(given, "endpoints");
	struct str name = json_field(given, "endpointGroupName");
	json_t *list = json_array();
	if (!is_group_name(name))
		faults_add(faults, c->arena, STR("endpointGroupName"),
		           "must be at most 63 lower-case letters, digits and hyphens, with a letter first");
	if (json_array_size(rules) > ENDPOINT_ADDRESSES_MAX)
		faults_add(faults, c->arena, STR("endpoints"), "must be at most %d", ENDPOINT_ADDRESSES_MAX);
	for (size_t i = 0; i < json_array_size(rules) && i < ENDPOINT_ADDRESSES_MAX; i++) {
		const json_t *rule = json_array_get(rules, i);
		struct str address = json_field(rule, "ipAddress"), own = json_field(rule, "endpointName");
		struct str path = arena_printf(c->arena, "endpoints[%zu].ipAddress", i);
		json_t *one = json_pack("{s:s}", "status", "INITIATING");
		json_put_str(one, "endpointName", own);
		json_put_str(one, "ipAddress", address);
		json_array_append_new(list, one);
		address_take(c, path, address, consumers, faults);
	}
	json_put_str(document, "endpointGroupName", name);
	json_put_str(document, "gcpProjectId", json_field(given, "gcpProjectId"));
	json_put(document, "endpoints", list);
}

static int endpoint_fill(struct call *c, const json_t *service, json_t *document)
{
	json_t *given = json_clone(c->arena, document), *consumers = json_array();
	struct str provider = json_field(service, "cloudProvider"), said = json_field(given, "cloudProvider");
	struct faults faults = {.count = 0};
	json_object_clear(document);
	json_put_str(document, "cloudProvider", provider);
	json_put(document, "deleteRequested", json_false());
	json_put(document, "consumers", consumers);
	if (said.n && !str_eq(said, provider))
		return call_fail_fault(c, STR("cloudProvider"), "must be %.*s, as the path says", STR_ARG(provider));
	if (str_is(provider, "AWS")) {
		struct str id = json_field(given, "id");
		if (!str_starts(id, STR("vpce-")))
			faults_add(&faults, c->arena, STR("id"), "must be the id of an interface endpoint, vpce-...");
		json_put_str(document, "interfaceEndpointId", id);
	} else if (str_is(provider, "AZURE")) {
		azure_fill(c, given, document, consumers, &faults);
	} else {
		gcp_fill(c, given, document, consumers, &faults);
		json_put(document, "portMappingEnabled", json_boolean(json_flag(service, "portMappingEnabled")));
	}
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int endpoint_create(struct call *c, json_t *document)
{
	json_t *service;
	struct str service_id;
	struct doc d = {.kind = STR(ENDPOINT_KIND)}, other;
	int r = service_of(c, &service, &service_id);
	if (r == 0)
		r = endpoint_fill(c, service, document);
	if (r < 0)
		return r;
	struct str name = endpoint_name(document);
	r = tx_get_by_name(c->tx, c->arena, ENDPOINT_KIND, service_id, name, &other);
	if (r == 0)
		return call_fail_about(c, 409, "PRIVATE_ENDPOINT_ALREADY_EXISTS", name,
		                       "%.*s is an endpoint of the service already.", STR_ARG(name));
	if (r != -ENOENT)
		return r;
	struct policy_link link = {.provider = json_field(service, "cloudProvider"),
	                           .region = json_field(service, "regionName")};
	r = policy_check_link(c, ACTION_PRIVATE_ENDPOINT, &link);
	d.parent = service_id;
	return r < 0 ? r : call_lifecycle_create(c, &d, document);
}

static int endpoint_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	d->name = endpoint_name(document);
	return resource_put(c->tx, d, old);
}

/* Where nobody has to be asked about it. */
static int endpoint_written(struct call *c, const struct doc *d, const struct doc *old)
{
	const json_t *body = doc_json(c->arena, d->body);
	event_field(c, "endpointId", d->name);
	if (old || (c->service->engine_ops->core->on_host && !json_array_size(json_object_get(body, "consumers"))))
		return 0;
	return lifecycle_ask(c->tx, c->arena, d);
}

static int endpoint_view(struct call *c, const struct doc *d, json_t *entity)
{
	json_object_del(entity, "consumers");
	json_object_del(entity, "opening");
	answer_form(c, schema_find(STR("PrivateLinkEndpoint")), entity);
	return 0;
}

/* Answered when nobody passes any more. */
static int endpoint_drop(struct call *c, const struct doc *old)
{
	struct doc d = *old;
	event_field(c, "endpointId", d.name);
	int r = call_lifecycle_move(c, &d, "DELETE");
	return r < 0 ? r : access_changed(c, NULL, 0);
}

const struct resource_hooks private_endpoint_hooks = {.create = endpoint_create,
                                                      .save = endpoint_save,
                                                      .written = endpoint_written,
                                                      .view = endpoint_view,
                                                      .drop = endpoint_drop};

/* --- what happens on the way */

static int group_of(struct tx *tx, struct arena *a, struct str service_id, struct str *ret_group)
{
	struct doc service;
	int r = tx_get(tx, a, SERVICE_KIND, service_id, &service);
	*ret_group = r == 0 ? service.parent : STR_NONE;
	return r == -ENOENT ? 0 : r;
}

/* It is metered while it is available, by the host that has found it so. */
static int endpoint_meter(struct tx *tx, struct arena *a, const struct doc *d)
{
	struct doc service, project;
	int r = tx_get(tx, a, SERVICE_KIND, d->parent, &service);
	if (r == 0)
		r = tx_get(tx, a, "project", service.parent, &project);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	const json_t *body = doc_json(a, service.body);
	struct str provider = json_field(body, "cloudProvider");
	const struct meter_subject subject = {.org_id = project.parent,
	                                      .group_id = project.id,
	                                      .group_name = project.name,
	                                      .id = d->id,
	                                      .host = relays_service()->engine_ops->core->on_host ? hosts_self()
	                                                                                          : STR_NONE};
	const struct meter_thing thing = {.key = STR(ENDPOINT_KIND),
	                                  .sku = arena_printf(a, "%.*s_PRIVATE_ENDPOINT", STR_ARG(provider)),
	                                  .provider = provider,
	                                  .region = json_field(body, "regionName"),
	                                  .amount = 1};
	return meter_begin(tx, a, &subject, &thing, clock_now_ms());
}

static void rules_set(json_t *endpoint, const char *status)
{
	json_t *list = json_object_get(endpoint, "endpoints");
	for (size_t i = 0; i < json_array_size(list); i++)
		json_put_z(json_array_get(list, i), "status", status);
}

static void connection_name(json_t *endpoint, struct str id)
{
	struct str resource = json_field(endpoint, "privateEndpointResourceId"), name = resource;
	for (size_t i = 0; i < resource.n; i++)
		if (resource.p[i] == '/')
			name = (struct str){resource.p + i + 1, resource.n - i - 1};
	if (resource.n > strlen("/subscriptions/") + 36)
		json_put(endpoint, "privateEndpointConnectionName",
		         json_sprintf("%.36s/%.*s/%.*s", resource.p + strlen("/subscriptions/"), STR_ARG(name),
		                      STR_ARG(id)));
}

/* It was AVAILABLE seconds before any cluster said how to get there, and for as long as a cluster's job was held up. So
 * it is opened first, and becomes available in the write that gives the last of its clusters the strings
 * (links.c: part_converged()). Its job looks from time to time, for clusters that have gone meanwhile. */
static int endpoint_open(struct tx *tx, struct arena *a, struct lifecycle_step *step, struct str group_id)
{
	step->later_ms = LOOK_AGAIN_MS;
	if (json_flag(step->body, "opening"))
		return 0;
	json_put(step->body, "opening", json_true());
	int r = service_connect(tx, a, step->doc->parent, true, STR_NONE);
	return r < 0 ? r : endpoints_changed(tx, a, group_id);
}

int private_endpoint_available(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	bool there = true, opened = json_flag(step->body, "opening");
	struct doc service = {.parent = STR_NONE};
	int r = tx_get(tx, a, SERVICE_KIND, step->doc->parent, &service);
	/* Before it was opened none is its own: one of the same name may have left some. */
	if (r == 0)
		r = strings_are_there(tx, a, &service, opened ? step->doc->name : STR_NONE, &there);
	if (r < 0 && r != -ENOENT)
		return r;
	if (!there)
		return endpoint_open(tx, a, step, service.parent);
	json_object_del(step->body, "opening");
	rules_set(step->body, "AVAILABLE");
	if (json_object_get(step->body, "privateEndpointResourceId"))
		connection_name(step->body, step->doc->id);
	r = service_connect(tx, a, step->doc->parent, true, STR_NONE);
	if (r == 0)
		r = endpoint_meter(tx, a, step->doc);
	return r < 0 || opened ? r : endpoints_changed(tx, a, service.parent);
}

/* It is being deleted, or is accepted no more. */
int private_endpoint_leaving(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	const char *state = lifecycle_state(STR(ENDPOINT_KIND), step->body);
	bool deleted = state && strcmp(state, "DELETING") == 0;
	struct str group_id;
	int r = group_of(tx, a, step->doc->parent, &group_id);
	json_object_del(step->body, "opening");
	rules_set(step->body, deleted ? "DELETING" : "FAILED");
	if (deleted)
		json_put(step->body, "deleteRequested", json_true());
	if (r == 0)
		r = service_connect(tx, a, step->doc->parent, false, step->doc->id);
	if (r == 0)
		r = meter_end_those(tx, a, step->doc->id, "", clock_now_ms());
	return r < 0 ? r : endpoints_changed(tx, a, group_id);
}
