/* Private endpoints to the object storage of backups. Their states are a table of api/backups.json; exports to buckets
 * that require private networking ask for an active one. */
#include "api/kit/lifecycle.h"
#include "api/kit/verbs.h"

#include <errno.h>

#define ENDPOINT_KIND "backup_private_endpoint"

static int region_check(struct call *c, struct str region)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, ENDPOINT_KIND, c->group.id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (str_eq(json_field(doc_json(c->arena, docs[i].body), "regionName"), region))
			return call_fail_about(
			        c, 409, "PRIVATE_ENDPOINT_EXISTS", region,
			        "regionName: the project's backups have a private endpoint in %.*s already.",
			        STR_ARG(region));
	return r;
}

static int endpoint_create(struct call *c, json_t *document)
{
	struct str region = json_field(document, "regionName");
	struct doc d = {.kind = STR(ENDPOINT_KIND), .id = json_field(document, "id"), .parent = c->group.id};
	if (!region.n)
		return call_fail_fault(c, STR("regionName"), "is required");
	int r = region_check(c, region);
	if (r < 0)
		return r;
	json_put_str(document, "cloudProvider", call_path(c, "cloudProvider"));
	if (!json_object_get(document, "vpcRegionName"))
		json_put_str(document, "vpcRegionName", region);
	return call_lifecycle_create(c, &d, document);
}

int backup_endpoint_connected(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	json_put_str(step->body, "privateEndpointConnectionName", arena_printf(a, "vpce-%.*s", STR_ARG(step->doc->id)));
	return 0;
}

const struct resource_hooks backup_endpoint_hooks = {.create = endpoint_create};
