/* Endpoint services, one for each region, and the mode that lets a region have several. What a cloud would make, a load
 * balancer with a name, is the relay and a name made here. */
#include "api/private_endpoints/endpoints.h"

#include "api/network/network.h"
#include "api/policies/policies.h"
#include "base/id.h"
#include "trail/events.h"

#include <ctype.h>
#include <errno.h>

lifecycle_hook endpoint_service_ready, endpoint_service_leaving;

#define HEX "0123456789abcdef"

/* By provider: the schema that has its regions, and how a service of it shows its endpoints. */
static const struct form {
	const char *provider, *regions, *list;
} forms[] = {{"AWS", "AWSCloudProviderSettings", "interfaceEndpoints"},
             {"AZURE", "AzureCloudProviderSettings", "privateEndpoints"},
             {"GCP", "CloudGCPProviderSettings", "endpointGroupNames"}};

static const struct form *form_of(struct str provider)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (str_is(provider, forms[i].provider))
			return &forms[i];
	return NULL;
}

struct str region_word(struct arena *a, struct str region)
{
	char *z = arena_z(a, region);
	for (char *p = z; *p; p++)
		*p = (char)(*p == '-' ? '_' : toupper((unsigned char)*p));
	return (struct str){z, region.n};
}

static bool region_is_known(struct str provider, struct str region)
{
	const struct form *f = form_of(provider);
	return f && schema_allows(schema_of_field(f->regions, "regionName"), region);
}

/* --- the mode */

int regional_mode(struct tx *tx, struct arena *a, struct str group_id, bool *ret_on)
{
	struct doc d;
	int r = resource_singleton(tx, a, &resource_regional_endpoint_mode, group_id, &d);
	if (r == 0)
		*ret_on = json_flag(doc_json(a, d.body), "enabled");
	return r;
}

static bool is_same_place(const json_t *a, const json_t *b)
{
	return str_eq(json_field(a, "cloudProvider"), json_field(b, "cloudProvider")) &&
	       str_eq(json_field(a, "regionName"), json_field(b, "regionName"));
}

/* The first service that shares its region with an earlier one, or with `with`. NULL: none does. */
static int shared_find(struct call *c, const json_t *with, const json_t **ret_service)
{
	struct doc *docs;
	size_t count = 0;
	*ret_service = NULL;
	int r = tx_list_all(c->tx, c->arena, SERVICE_KIND, c->group.id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count && !*ret_service; i++) {
		const json_t *one = doc_json(c->arena, docs[i].body);
		bool shared = with && is_same_place(with, one);
		for (size_t k = 0; !with && k < i && !shared; k++)
			shared = is_same_place(doc_json(c->arena, docs[k].body), one);
		if (shared)
			*ret_service = one;
	}
	return r;
}

static int mode_update(struct call *c, const struct doc *old, json_t *document)
{
	bool was = json_flag(doc_json(c->arena, old->body), "enabled"), is = json_flag(document, "enabled");
	const json_t *shared;
	event_set_type(c, was == is ? NULL
	                  : is      ? "REGIONALIZED_PRIVATE_ENDPOINT_MODE_ENABLED"
	                            : "REGIONALIZED_PRIVATE_ENDPOINT_MODE_DISABLED");
	int r = is ? 0 : shared_find(c, NULL, &shared);
	if (r == 0 && !is && shared)
		return call_fail_field(c, 409, "REGIONALIZED_PRIVATE_ENDPOINT_MODE_IN_USE", "enabled",
		                       "the region %.*s of %.*s has several private endpoint services. Delete all but "
		                       "one first.",
		                       STR_ARG(json_field(shared, "regionName")),
		                       STR_ARG(json_field(shared, "cloudProvider")));
	return r;
}

/* What the mode says is read from what is stored. */
static int mode_written(struct call *c, const struct doc *d, const struct doc *old)
{
	return endpoints_changed(c->tx, c->arena, c->group.id);
}

const struct resource_hooks regional_mode_hooks = {.update = mode_update, .written = mode_written};

/* --- services */

static int policy_ask(struct call *c, const json_t *service)
{
	struct policy_link link = {.provider = json_field(service, "cloudProvider"),
	                           .region = json_field(service, "regionName")};
	return policy_check_link(c, ACTION_PRIVATE_ENDPOINT, &link);
}

static int remote_regions_check(struct call *c, json_t *document)
{
	json_t *list = json_object_get(document, "supportedRemoteRegions");
	struct str provider = json_field(document, "cloudProvider");
	struct faults faults = {.count = 0};
	if (json_array_size(list) && !str_is(provider, "AWS"))
		return call_fail_fault(c, STR("supportedRemoteRegions"), "is for services at AWS alone");
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str region = region_word(c->arena, json_item(list, i));
		struct str path = arena_printf(c->arena, "supportedRemoteRegions[%zu]", i);
		if (!region_is_known(provider, region))
			faults_add(&faults, c->arena, path, "must be a region of AWS, like us-east-1");
		json_array_set_new(list, i, json_stringn(region.p, region.n));
	}
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int place_check(struct call *c, const json_t *document)
{
	const json_t *other = NULL;
	bool regional = false;
	struct str region = json_field(document, "regionName"), provider = json_field(document, "cloudProvider");
	if (!region_is_known(provider, region))
		return call_fail_fault(c, STR("region"), "must be a region of %.*s in which clusters can be",
		                       STR_ARG(provider));
	int r = regional_mode(c->tx, c->arena, c->group.id, &regional);
	if (r == 0 && !regional)
		r = shared_find(c, document, &other);
	if (r < 0 || !other)
		return r;
	return call_fail_about(c, 409, "PRIVATE_ENDPOINT_SERVICE_ALREADY_EXISTS_FOR_REGION", json_field(other, "id"),
	                       "region: %.*s is the project's private endpoint service in %.*s already. With the "
	                       "regionalized mode a region can have several.",
	                       STR_ARG(json_field(other, "id")), STR_ARG(region));
}

static int service_create(struct call *c, json_t *document)
{
	struct doc d = {.kind = STR(SERVICE_KIND), .id = json_field(document, "id"), .parent = c->group.id};
	if (c->service->engine_ops->core->on_host && !relays_are_here())
		return call_fail(
		        c, 400, "PRIVATE_ENDPOINTS_NOT_CONFIGURED",
		        "This service has no address for private endpoints. Its operator gives it one with "
		        "steward serve --private-endpoints ADDRESS[:FROM-TO], an IPv4 address of the host that "
		        "is used for nothing else.");
	json_put_str(document, "cloudProvider", json_field(document, "providerName"));
	json_put_str(document, "regionName", region_word(c->arena, json_field(document, "region")));
	json_object_del(document, "providerName");
	json_object_del(document, "region");
	if (str_is(json_field(document, "cloudProvider"), "GCP"))
		json_default(document, "portMappingEnabled", json_false());
	else
		json_object_del(document, "portMappingEnabled");
	if (json_is_null(json_object_get(document, "supportedRemoteRegions")))
		json_object_del(document, "supportedRemoteRegions");
	int r = place_check(c, document);
	if (r == 0)
		r = remote_regions_check(c, document);
	if (r == 0)
		r = policy_ask(c, document);
	if (r == 0)
		r = service_nodes_check(c, document);
	return r < 0 ? r : call_lifecycle_create(c, &d, document);
}

static int service_written(struct call *c, const struct doc *d, const struct doc *old)
{
	int r = old ? 0 : links_settle(c->tx, c->arena, c->group.id);
	return r != -EDQUOT
	               ? r
	               : call_fail(
	                         c, 409, "TOO_MANY_PRIVATE_LINKS",
	                         "The service would link each cluster in its region, and the organization has as many "
	                         "private links as it may have. Delete an endpoint service or a cluster first.");
}

/* One that has failed is tried again. */
static int service_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	const char *state = lifecycle_state(old->kind, before);
	if (!str_is(json_field(before, "cloudProvider"), "AWS"))
		return call_fail_fault(c, STR("cloudProvider"), "cannot be changed: the service is at %.*s",
		                       STR_ARG(json_field(before, "cloudProvider")));
	if (state && strcmp(state, "DELETING") == 0)
		return call_fail_about(c, 409, "PRIVATE_ENDPOINT_SERVICE_BUSY", old->id,
		                       "The private endpoint service is being deleted.");
	int r = remote_regions_check(c, document);
	if (r == 0)
		r = policy_ask(c, document);
	if (r < 0 || !state || strcmp(state, "FAILED") != 0)
		return r;
	json_object_del(document, "errorMessage");
	return call_lifecycle_change(c, old, document, "RETRY");
}

static bool service_hides(struct call *c, const struct doc *d)
{
	struct str provider = call_path(c, "cloudProvider");
	return provider.n && !str_eq(provider, json_field(doc_json(c->arena, d->body), "cloudProvider"));
}

struct str endpoint_name(const json_t *endpoint)
{
	static const char *const fields[] = {"interfaceEndpointId", "privateEndpointResourceId", "endpointGroupName"};
	struct str name = STR_NONE;
	for (size_t i = 0; i < sizeof fields / sizeof *fields && !name.n; i++)
		name = json_field(endpoint, fields[i]);
	return name;
}

/* Endpoints: at AWS by ids of ours, as the reference has it; else by their names. */
static int service_view(struct call *c, const struct doc *d, json_t *entity)
{
	struct doc *docs;
	size_t count = 0;
	const struct form *f = form_of(json_field(entity, "cloudProvider"));
	json_t *list = json_array();
	json_put(entity, f ? f->list : forms[0].list, list);
	int r = tx_list_all(c->tx, c->arena, ENDPOINT_KIND, d->id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		json_add_str(list, f == &forms[0] ? docs[i].id : docs[i].name);
	answer_form(c, schema_find(STR("EndpointService")), entity);
	return r;
}

static int service_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return links_forget(tx, a, d->parent, d->id);
}

const struct resource_hooks endpoint_service_hooks = {.create = service_create,
                                                      .update = service_update,
                                                      .written = service_written,
                                                      .hides = service_hides,
                                                      .view = service_view,
                                                      .gone = service_gone};

/* --- what happens on the way */

static void names_make(struct arena *a, json_t *body, struct str id)
{
	struct str provider = json_field(body, "cloudProvider");
	const char *location = link_location(a, json_field(body, "regionName"));
	char random[18];
	random_text(random, 17, HEX);
	if (str_is(provider, "AWS")) {
		json_default(body, "endpointServiceName",
		             json_sprintf("com.amazonaws.vpce.%s.vpce-svc-%s", location, random));
	} else if (str_is(provider, "AZURE")) {
		json_put(body, "privateLinkServiceName", json_sprintf("pls_%.*s", STR_ARG(id)));
		json_put(body, "privateLinkServiceResourceId",
		         json_sprintf("/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/steward/"
		                      "providers/Microsoft.Network/privateLinkServices/pls_%.*s",
		                      STR_ARG(id)));
	} else if (!json_object_get(body, "serviceAttachmentNames")) {
		json_t *list = json_array();
		json_array_append_new(list,
		                      json_sprintf("https://www.googleapis.com/compute/v1/projects/p-%.*s/regions/"
		                                   "%s/serviceAttachments/sa-%s-%.*s",
		                                   STR_ARG(id), location, location, STR_ARG(id)));
		json_put(body, "serviceAttachmentNames", list);
	}
}

int endpoint_service_ready(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	if (step->from && strcmp(step->from, "INITIATING") == 0 && !relays_can_listen()) {
		step->fault = "FAIL";
		json_put(step->body, "errorMessage",
		         json_sprintf(
		                 "%s, the address for private endpoints, is no address of the host. The operator of "
		                 "the service must mend --private-endpoints.",
		                 relays_address()));
		return 0;
	}
	names_make(a, step->body, step->doc->id);
	/* One that is tried again has endpoints. */
	return step->from && strcmp(step->from, "INITIATING") == 0 ? access_ask(tx, a, step->doc->parent) : 0;
}

int endpoint_service_leaving(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	int r = links_forget(tx, a, step->doc->parent, step->doc->id);
	return r < 0 ? r : endpoints_changed(tx, a, step->doc->parent);
}

/* 0 too when its state has no way for the word. */
static int service_say(struct tx *tx, struct arena *a, struct doc *d, const char *word)
{
	return lifecycle_allows(d->kind, doc_json(a, d->body), word) ? lifecycle_move(tx, a, d, word) : 0;
}

int service_connect(struct tx *tx, struct arena *a, struct str service_id, bool is_available, struct str except)
{
	struct doc d, *docs;
	size_t count = 0;
	int r = tx_get(tx, a, SERVICE_KIND, service_id, &d);
	if (r == 0)
		r = tx_list_all(tx, a, ENDPOINT_KIND, service_id, &docs, &count);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; i < count && !is_available; i++)
		is_available = !str_eq(docs[i].id, except) && endpoint_is_open(doc_json(a, docs[i].body));
	return service_say(tx, a, &d, is_available ? "CONNECT" : "DISCONNECT");
}

/* What keeps it from working: of the first of its links that has a fault. */
static int fault_find(struct tx *tx, struct arena *a, const struct doc *service, struct str *ret_why)
{
	struct link *links;
	size_t count = 0;
	int r = links_load(tx, a, service->parent, &links, &count);
	*ret_why = STR_NONE;
	for (size_t i = 0; r == 0 && i < count && !ret_why->n; i++)
		if (str_eq(links[i].service, service->id))
			*ret_why = links[i].fault;
	return r;
}

int service_review(struct tx *tx, struct arena *a, struct str service_id)
{
	struct doc d;
	struct str why;
	int r = tx_get(tx, a, SERVICE_KIND, service_id, &d);
	if (r == 0)
		r = fault_find(tx, a, &d, &why);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *body = doc_json(a, d.body);
	const char *word = why.n ? "FAIL" : lifecycle_allows(d.kind, body, "MEND") ? "MEND" : "CONNECT";
	if (!lifecycle_allows(d.kind, body, word))
		return 0;
	if (why.n)
		json_put_str(body, "errorMessage", why);
	else
		json_object_del(body, "errorMessage");
	d.body = json_text(a, body);
	if (strcmp(word, "CONNECT") != 0)
		r = lifecycle_move(tx, a, &d, word);
	if (r == 0 && !why.n)
		r = service_connect(tx, a, service_id, false, STR_NONE);
	return r < 0 ? r : endpoints_changed(tx, a, d.parent);
}
