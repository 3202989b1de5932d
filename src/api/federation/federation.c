/* Federation settings: how federations come, grow and end, and an organization's view of its own.
 *
 * An organization gets a federation when it is made, and a fresh one when it is disconnected from a shared one or
 * deletes its own: the API has no operation that makes federations, and an organization without one could never get
 * one again. */
#include "api/federation/federation.h"

#include "api/federation/identity_providers.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "identity/grants.h"
#include "trail/events.h"

#include <errno.h>

static json_t *text_json(struct str s)
{
	return json_stringn(s.p, s.n);
}

static int orgs_write(struct tx *tx, struct arena *a, struct str id, const json_t *org_ids)
{
	json_t *body = doc_json(a, STR("{}"));
	struct doc d = {.kind = STR("federation"), .id = id, .created_ms = clock_now_ms()};
	json_put(body, "id", text_json(id));
	json_put(body, "orgIds", json_deep_copy(org_ids));
	d.body = json_text(a, body);
	int result = tx_update(tx, &d);
	return result == -ENOENT ? tx_insert(tx, &d) : result;
}

int federation_orgs(struct tx *tx, struct arena *a, struct str id, json_t **ret_org_ids)
{
	struct doc d;
	int result = tx_get(tx, a, "federation", id, &d);
	if (result < 0)
		return result;
	*ret_org_ids = json_object_get(doc_json(a, d.body), "orgIds");
	return 0;
}

int federation_create(struct tx *tx, struct arena *a, struct str org_id, struct str *ret_id)
{
	struct id made = id_new();
	struct str id = arena_dup(a, id_str(&made));
	json_t *org_ids = json_pack("[o]", text_json(org_id));
	int result = orgs_write(tx, a, id, org_ids);
	json_decref(org_ids);
	if (result == 0)
		result = connected_org_add(tx, id, org_id);
	if (result == 0)
		result = provider_add_first(tx, a, id);
	if (result == 0)
		*ret_id = id;
	return result;
}

/* Strangers do not learn which federations there are. */
static bool owns_part(const struct call *c, const json_t *org_ids)
{
	role_mask owner = role_bit("ORG_OWNER");
	for (size_t i = 0; i < json_array_size(org_ids); i++) {
		const json_t *id = json_array_get(org_ids, i);
		if (principal_org_roles(c->caller, (struct str){json_string_value(id), json_string_length(id)}) & owner)
			return true;
	}
	return false;
}

int federation_join(struct call *c, struct str id, struct str org_id)
{
	json_t *org_ids;
	int result = federation_orgs(c->tx, c->arena, id, &org_ids);
	if (result == -ENOENT || (result == 0 && !owns_part(c, org_ids))) {
		call_fail(c, 400, "INVALID_FEDERATION",
		          "federationSettingsId: the caller owns no organization of a federation with this id.");
		return call_fail_param(c, STR("federationSettingsId"));
	}
	if (result == 0 && json_array_size(org_ids) >= FEDERATION_ORGS_MAX) {
		call_fail(c, 409, "FEDERATION_FULL", "A federation has at most %d organizations.", FEDERATION_ORGS_MAX);
		return call_fail_param(c, STR("federationSettingsId"));
	}
	if (result < 0)
		return result;
	json_array_append_new(org_ids, text_json(org_id));
	result = orgs_write(c->tx, c->arena, id, org_ids);
	return result < 0 ? result : connected_org_add(c->tx, id, org_id);
}

int federation_leave(struct tx *tx, struct arena *a, struct str org_id)
{
	struct doc config;
	json_t *org_ids;
	int result = connected_org_get(tx, a, org_id, &config);
	if (result == -ENOENT)
		return 0;
	if (result == 0)
		result = federation_orgs(tx, a, config.parent, &org_ids);
	if (result == 0)
		result = connected_org_delete(tx, a, org_id);
	if (result < 0)
		return result;
	for (size_t i = json_array_size(org_ids); i-- > 0;) {
		const json_t *id = json_array_get(org_ids, i);
		if (str_eq(org_id, (struct str){json_string_value(id), json_string_length(id)}))
			json_array_remove(org_ids, i);
	}
	if (json_array_size(org_ids))
		return orgs_write(tx, a, config.parent, org_ids);
	result = providers_delete(tx, a, config.parent);
	return result < 0 ? result : tx_delete(tx, "federation", config.parent);
}

int federation_event(struct call *c, const json_t *org_ids)
{
	size_t count = json_array_size(org_ids);
	for (size_t i = 0; i < count; i++) {
		struct str id = str_of(json_string_value(json_array_get(org_ids, i)));
		event_scope(c, arena_dup(c->arena, id), STR_NONE);
		int result = i + 1 < count ? event_write(c) : 0;
		if (result < 0)
			return result;
	}
	return 0;
}

/* Of the provider with which the organization's people sign in. */
static int sign_in_add(struct call *c, const struct doc *config, json_t *settings)
{
	struct doc provider;
	struct str okta = json_field(doc_json(c->arena, config->body), "identityProviderId");
	if (!okta.n)
		return 0;
	int result = provider_get(c->tx, c->arena, config->parent, okta, &provider);
	if (result < 0)
		return result;
	const json_t *body = doc_json(c->arena, provider.body);
	json_put(settings, "identityProviderId", text_json(okta));
	json_object_set(settings, "identityProviderStatus", json_object_get(body, "status"));
	json_object_set(settings, "federatedDomains", json_object_get(body, "associatedDomains"));
	return 0;
}

/* What lies in the federation has paths of its own. */
static void link_below(struct call *c, struct str id, const char *rel, const char *operation)
{
	entity_link(c, &c->out, rel, link_href(c, catalog_op(operation), "federationSettingsId", id));
}

int federation_get_settings(struct call *c)
{
	struct doc config;
	int64_t mappings = 0;
	json_t *settings = doc_json(c->arena, STR("{\"federatedDomains\":[]}"));
	int result = connected_org_get(c->tx, c->arena, c->org.id, &config);
	if (result == 0)
		result = tx_count(c->tx, "role_mapping", c->org.id, &mappings);
	if (result == 0)
		result = sign_in_add(c, &config, settings);
	if (result < 0)
		return result;
	json_put(settings, "id", text_json(config.parent));
	json_put(settings, "hasRoleMappings", json_boolean(mappings > 0));
	entity_write(c, &c->out, json_text(c->arena, settings), c->op, NULL, STR_NONE, false);
	link_below(c, config.parent, "connectedOrgConfigs", "listConnectedOrgConfigs");
	link_below(c, config.parent, "identityProviders", "listIdentityProviders");
	return 0;
}

/* Providers that people or workloads may be signing in with at this moment. */
static int refuse_active(struct call *c, struct str id, struct str org_id)
{
	struct doc *docs, config;
	size_t count, active = 0;
	int result = providers_list(c->tx, c->arena, id, &docs, &count);
	if (result == 0)
		result = connected_org_get(c->tx, c->arena, org_id, &config);
	if (result < 0)
		return result;
	const json_t *used = doc_json(c->arena, config.body);
	for (size_t i = 0; i < count; i++) {
		const json_t *body = doc_json(c->arena, docs[i].body);
		active += str_is(json_field(body, "status"), "ACTIVE") ||
		          connected_org_uses(used, docs[i].id, json_field(body, "oktaIdpId"));
	}
	if (!active)
		return 0;
	call_fail(c, 409, "FEDERATION_HAS_ACTIVE_IDENTITY_PROVIDERS",
	          "The federation still has %zu identity providers that are active or connected. Deactivate and "
	          "disconnect them "
	          "first.",
	          active);
	return call_fail_param(c, arena_printf(c->arena, "%zu", active));
}

int federation_delete(struct call *c)
{
	struct str id = call_path(c, "federationSettingsId"), org_id, fresh;
	json_t *org_ids;
	int result = federation_orgs(c->tx, c->arena, id, &org_ids);
	if (result < 0)
		return result;
	if (json_array_size(org_ids) > 1) {
		size_t others = json_array_size(org_ids) - 1;
		call_fail(c, 409, "FEDERATION_HAS_CONNECTED_ORGS",
		          "The federation still has %zu other connected organizations. Disconnect them first.", others);
		return call_fail_param(c, arena_printf(c->arena, "%zu", others));
	}
	org_id = arena_dup(c->arena, str_of(json_string_value(json_array_get(org_ids, 0))));
	result = refuse_active(c, id, org_id);
	if (result == 0)
		result = federation_leave(c->tx, c->arena, org_id);
	if (result == 0)
		result = federation_create(c->tx, c->arena, org_id, &fresh);
	if (result < 0)
		return result;
	event_scope(c, org_id, STR_NONE);
	event_field(c, "federationSettingsId", id);
	return 0;
}
