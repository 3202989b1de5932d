/* Federation settings: how federations come, grow and end, and an organization's view of its own.
 *
 * An organization gets a federation when it is made, and a fresh one when it is disconnected from a shared one or
 * deletes its own: the API has no operation that makes federations, and an organization without one could never get
 * one again. */
#include "api/federation/federation.h"

#include "api/federation/identity_providers.h"
#include "api/federation/membership.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "gate/gate.h"
#include "identity/grants.h"
#include "trail/events.h"

#include <errno.h>

/* Writes down who is in it, for the membership gate. */
static int federation_write(struct tx *tx, struct arena *a, struct str id)
{
	struct doc *members, d = {.kind = STR("federation"), .id = id, .created_ms = clock_now_ms()};
	size_t count;
	json_t *body = doc_json(a, STR("{\"orgIds\":[]}"));
	int result = connected_orgs(tx, a, id, &members, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		json_add_str(json_object_get(body, "orgIds"), members[i].id);
	json_put_str(body, "id", id);
	d.body = json_text(a, body);
	result = tx_update(tx, &d);
	return result == -ENOENT ? tx_insert(tx, &d) : result;
}

int federation_create(struct tx *tx, struct arena *a, struct str org_id, struct str *ret_id)
{
	struct str id = id_make(a);
	int result = connected_org_add(tx, id, org_id);
	if (result == 0)
		result = federation_write(tx, a, id);
	if (result == 0)
		result = provider_add_first(tx, a, id);
	if (result == 0)
		*ret_id = id;
	return result;
}

/* Strangers do not learn which federations there are. Whoever owns one of its organizations may add identity providers
 * for the federation's domains, and the new organization may come with a key of its own: so this is a way in that a
 * stolen session would leave behind, though making an organization is none. */
int federation_join(struct call *c, struct str id, struct str org_id)
{
	struct doc *members;
	size_t count = 0;
	role_mask roles = 0;
	int result = connected_orgs(c->tx, c->arena, id, &members, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		roles |= principal_org_roles(c->caller, members[i].id);
	if (result < 0)
		return result;
	if (!(roles & role_bit("ORG_OWNER")))
		return call_fail_field(c, 400, "INVALID_FEDERATION", "federationSettingsId",
		                       "the caller owns no organization of a federation with this id.");
	result = proof_check(c);
	if (result < 0)
		return result;
	if (count >= FEDERATION_ORGS_MAX)
		return call_fail_about(c, 409, "FEDERATION_FULL", STR("federationSettingsId"),
		                       "A federation has at most %d organizations.", FEDERATION_ORGS_MAX);
	result = connected_org_add(c->tx, id, org_id);
	return result < 0 ? result : federation_write(c->tx, c->arena, id);
}

int federation_leave(struct tx *tx, struct arena *a, struct str org_id)
{
	struct doc config;
	int64_t others = 0;
	int result = tx_get(tx, a, "connected_org", org_id, &config);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = resource_take_away(tx, a, &resource_connected_org, &config);
	if (result == 0)
		result = tx_count(tx, "connected_org", config.parent, &others);
	if (result < 0)
		return result;
	struct doc federation = {.id = config.parent};
	return others ? federation_write(tx, a, federation.id)
	              : resource_take_away(tx, a, &resource_federation, &federation);
}

/* What an organization sees of its federation. */
static int settings_view(struct call *c, const struct doc *config, json_t *settings)
{
	int64_t mappings = 0;
	json_t *provider;
	int result = tx_count(c->tx, "role_mapping", config->id, &mappings);
	if (result == 0)
		result = connected_org_provider(c->tx, c->arena, config, &provider);
	if (result < 0)
		return result;
	json_object_clear(settings);
	json_put_str(settings, "id", config->parent);
	json_put(settings, "hasRoleMappings", json_boolean(mappings > 0));
	json_put(settings, "federatedDomains", json_array());
	if (provider) {
		json_object_set(settings, "identityProviderId", json_object_get(provider, "oktaIdpId"));
		json_object_set(settings, "identityProviderStatus", json_object_get(provider, "status"));
		json_object_set(settings, "federatedDomains", json_object_get(provider, "associatedDomains"));
	}
	return 0;
}

/* What lies in the federation has paths of its own. */
static void settings_links(struct call *c, const struct doc *config)
{
	static const char *const below[][2] = {{"connectedOrgConfigs", "listConnectedOrgConfigs"},
	                                       {"identityProviders", "listIdentityProviders"}};
	for (size_t i = 0; i < 2; i++)
		entity_link(c, &c->out, below[i][0],
		            link_href(c, catalog_op(below[i][1]), "federationSettingsId", config->parent));
}

const struct resource_hooks federation_settings_hooks = {.view = settings_view, .links = settings_links};

static int refuse_with_count(struct call *c, const char *code, size_t count, const char *what)
{
	return call_fail_about(c, 409, code, arena_printf(c->arena, "%zu", count), "The federation still has %zu %s",
	                       count, what);
}

/* By its last organization, which gets another. No provider may be left with which people or workloads may be signing
 * in at this moment. */
static int federation_drop(struct call *c, const struct doc *d)
{
	struct doc *members, *providers;
	size_t count, provider_count, active = 0;
	struct str fresh;
	int result = connected_orgs(c->tx, c->arena, d->id, &members, &count);
	if (result == 0)
		result = tx_list_all(c->tx, c->arena, "identity_provider", d->id, &providers, &provider_count);
	if (result < 0)
		return result;
	if (count != 1)
		return refuse_with_count(c, "FEDERATION_HAS_CONNECTED_ORGS", count - 1,
		                         "other connected organizations. Disconnect them first.");
	const json_t *config = doc_json(c->arena, members[0].body);
	for (size_t i = 0; i < provider_count; i++) {
		const json_t *body = doc_json(c->arena, providers[i].body);
		active += str_is(json_field(body, "status"), "ACTIVE") ||
		          connected_org_uses(config, providers[i].id, json_field(body, "oktaIdpId"));
	}
	if (active)
		return refuse_with_count(
		        c, "FEDERATION_HAS_ACTIVE_IDENTITY_PROVIDERS", active,
		        "identity providers that are active or connected. Deactivate and disconnect them first.");
	result = federation_leave(c->tx, c->arena, members[0].id);
	if (result == 0)
		result = federation_create(c->tx, c->arena, members[0].id, &fresh);
	event_scope(c, members[0].id, STR_NONE);
	event_field(c, "federationSettingsId", d->id);
	return result;
}

const struct resource_hooks federation_hooks = {.drop = federation_drop};
