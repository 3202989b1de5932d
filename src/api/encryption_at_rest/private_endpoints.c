/* Private endpoints to key services: documents with a lifecycle, one for each provider and region. */
#include "api/encryption_at_rest/settings.h"
#include "api/kit/lifecycle.h"
#include "api/kit/verbs.h"

#include <errno.h>

static int endpoint_create(struct call *c, json_t *document)
{
	struct str name = call_path(c, "cloudProvider"), region = json_field(document, "regionName"), id;
	struct doc *docs;
	struct settings settings;
	size_t count;
	enum provider provider;
	if (!provider_of_name(name, &provider))
		return call_missing_param(c, "cloudProvider");
	int r = settings_load(c->tx, c->arena, c->group.id, &settings);
	if (r < 0)
		return r;
	if (!section_is(settings.body, provider, "enabled"))
		return call_fail_about(c, 409, "ENCRYPTION_AT_REST_NOT_ENABLED", name,
		                       "The project has no encryption at rest with %s: enable it first.",
		                       provider_names[provider]);
	if (!region.n)
		return call_fail_fault(c, STR("regionName"), "is required");
	r = tx_list_all(c->tx, c->arena, "encryption_private_endpoint", c->group.id, &docs, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		const json_t *other = doc_json(c->arena, docs[i].body);
		if (str_eq(json_field(other, "cloudProvider"), name) && str_eq(json_field(other, "regionName"), region))
			return call_fail_about(c, 409, "PRIVATE_ENDPOINT_EXISTS", region,
			                       "regionName: the project has a private endpoint to %s in %.*s already.",
			                       provider_names[provider], STR_ARG(region));
	}
	id = json_field(document, "id");
	json_put_str(document, "cloudProvider", name);
	json_put(document, "privateEndpointConnectionName",
	         json_sprintf("steward-%.*s-%.*s", STR_ARG(c->group.id), STR_ARG(id)));
	struct doc d = {.kind = STR("encryption_private_endpoint"), .id = id, .parent = c->group.id};
	return call_lifecycle_create(c, &d, document);
}

/* The path names the provider too. */
static bool endpoint_hides(struct call *c, const struct doc *d)
{
	struct str provider = call_path(c, "cloudProvider");
	return provider.n && !str_eq(provider, json_field(doc_json(c->arena, d->body), "cloudProvider"));
}

static bool endpoint_takes(struct call *c, const struct doc *d)
{
	return !endpoint_hides(c, d);
}

const struct resource_hooks encryption_private_endpoint_hooks = {
        .create = endpoint_create, .hides = endpoint_hides, .takes = endpoint_takes};
