/* How organizations take part in their federation: which providers their people and workloads sign in with, whom they
 * take as members, and which roles the groups of a provider get.
 *
 * Members of a federation see of it what they own: an organization's configuration is for its own owners only, also
 * in lists. */
#include "api/federation/federation.h"

#include "api/federation/identity_providers.h"
#include "api/federation/membership.h"
#include "api/kit/verbs.h"
#include "catalog/formats.h"
#include "identity/gifts.h"
#include "identity/grants.h"
#include "trail/events.h"

#include <errno.h>

#define ASSIGNMENTS_MAX 500  /* of one role mapping */
#define CONFLICTS_LOOKED 500 /* members that are held against the domains at a reading, which runs on the loop */

/* Members from before the restriction whose address is of none of the domains. */
static int conflicts_find(struct call *c, const struct doc *d, json_t **ret_list)
{
	struct grant_row *rows;
	size_t count = 0;
	struct admission admission = {.restricted = false};
	json_t *list = json_keep(c->arena, json_array());
	int result = admission_read(c, d, &admission);
	if (result == 0 && admission.restricted)
		result = grants_in(c->tx, c->arena, GRANTEE_USER, true, d->id, 0, CONFLICTS_LOOKED, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct doc doc;
		result = tx_get(c->tx, c->arena, "user", rows[i].id, &doc);
		const json_t *user = result == 0 ? doc_json(c->arena, doc.body) : NULL;
		struct str email = json_field(user, "emailAddress");
		email = email.n ? email : json_field(user, "username");
		result = result == -ENOENT ? 0 : result;
		if (!user || admission_takes(c->arena, &admission, email))
			continue;
		json_t *one = json_object();
		json_put_str(one, "emailAddress", email);
		json_put_str(one, "federationSettingsId", d->parent);
		json_put_str(one, "firstName", json_field(user, "firstName"));
		json_put_str(one, "lastName", json_field(user, "lastName"));
		json_put_str(one, "userId", rows[i].id);
		json_array_append_new(list, one);
	}
	if (result == 0)
		*ret_list = list;
	return result;
}

/* Reading. */

static int config_view(struct call *c, const struct doc *d, json_t *config)
{
	struct doc *docs;
	size_t count;
	json_t *mappings = json_array(), *conflicts;
	json_put_str(config, "orgId", d->id);
	json_put(config, "roleMappings", mappings);
	int result = tx_list_all(c->tx, c->arena, "role_mapping", d->id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		json_array_append(mappings, doc_json(c->arena, docs[i].body));
	if (result < 0 || c->is_list)
		return result;
	result = conflicts_find(c, d, &conflicts);
	if (result == 0)
		json_object_set(config, "userConflicts", conflicts);
	return result;
}

static bool config_takes(struct call *c, const struct doc *d)
{
	return connected_org_visible(c, d->id);
}

/* Role mappings. */

static int assignment_check(struct call *c, const json_t *one, struct str org_id, const char *path,
                            struct faults *faults)
{
	struct str org = json_field(one, "orgId"), group = json_field(one, "groupId"), role = json_field(one, "role");
	int bit = role_find(role), result = 0;
	role_mask given = bit < 0 ? 0 : (role_mask)1 << bit, fitting = org.n ? role_org_mask : ~role_org_mask;
	struct doc project = {.parent = org_id};
	if ((org.n != 0) == (group.n != 0)) {
		faults_add(faults, c->arena, str_of(path), "must name one orgId or one groupId");
		return 0;
	}
	if (!role.n)
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.role", path), "is required");
	else if (!(given & fitting))
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.role", path), "must be a role in %s",
		           org.n ? "organizations" : "projects");
	if (org.n && !str_eq(org, org_id))
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.orgId", path),
		           "must be this organization, %.*s", STR_ARG(org_id));
	if (group.n)
		result = tx_get(c->tx, c->arena, "project", group, &project);
	if (result == -ENOENT || (result == 0 && !str_eq(project.parent, org_id))) {
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.groupId", path),
		           "must be a project of this organization");
		return 0;
	}
	return result < 0 ? result : gift_mapped(c->tx, org.n > 0, org.n ? org_id : group, given & fitting);
}

static int assignments_check(struct call *c, const json_t *mapping, struct str org_id, const char *prefix,
                             struct faults *faults)
{
	const json_t *list = json_object_get(mapping, "roleAssignments");
	struct str path = arena_printf(c->arena, "%sroleAssignments", prefix);
	int result = 0;
	if (faults_too_many(faults, c->arena, path, list, ASSIGNMENTS_MAX))
		return 0;
	for (size_t i = 0; result == 0 && i < json_array_size(list); i++)
		result = assignment_check(c, json_array_get(list, i), org_id,
		                          arena_printf(c->arena, "%s[%zu]", path.p, i).p, faults);
	return result;
}

/* The configuration shows the mappings: its revision moves with them. */
static int config_touch(struct call *c, const struct doc *mapping)
{
	struct doc d;
	int result = resource_load(c, &resource_connected_org, &d);
	return result < 0 ? result : tx_update(c->tx, &d);
}

static int mapping_create(struct call *c, json_t *mapping)
{
	struct faults faults = {.count = 0};
	int result = assignments_check(c, mapping, call_path(c, "orgId"), "", &faults);
	if (result == 0 && faults.count)
		result = call_fail_faults(c, &faults);
	return result < 0 ? result : config_touch(c, NULL);
}

static int mapping_update(struct call *c, const struct doc *old, json_t *mapping)
{
	return mapping_create(c, mapping);
}

const struct resource_hooks role_mapping_hooks = {
        .create = mapping_create, .update = mapping_update, .remove = config_touch};

int federation_forget_project(struct tx *tx, struct arena *a, struct str org_id, struct str group_id)
{
	struct doc *docs;
	size_t count;
	int result = tx_list_all(tx, a, "role_mapping", org_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		json_t *mapping = doc_json(a, docs[i].body), *list = json_object_get(mapping, "roleAssignments");
		size_t before = json_array_size(list);
		for (size_t k = before; k-- > 0;)
			if (str_eq(json_field(json_array_get(list, k), "groupId"), group_id))
				json_array_remove(list, k);
		if (json_array_size(list) == before)
			continue;
		docs[i].body = json_text(a, mapping);
		result = tx_update(tx, &docs[i]);
	}
	return result;
}

/* A change of the configuration. */

static int mapping_event(struct call *c, const char *type, struct str name)
{
	event_set_type(c, type);
	event_field(c, "externalGroupName", name);
	return event_next(c);
}

static int mapping_put(struct call *c, struct str org_id, const json_t *wanted)
{
	struct doc d;
	json_t *mapping = json_clone(c->arena, wanted);
	int result = resource_named(c, &resource_role_mapping, org_id, json_field(wanted, "externalGroupName"), &d);
	if (result < 0)
		return result;
	json_put_str(mapping, "id", d.id);
	if (d.rev && json_equal(mapping, doc_json(c->arena, d.body)))
		return 0;
	d.body = json_text(c->arena, mapping);
	result = resource_put(c->tx, &d, &d);
	return result < 0 ? result : mapping_event(c, d.rev ? "ROLE_MAPPING_UPDATED" : "ROLE_MAPPING_CREATED", d.name);
}

/* Those with a name that stays keep their ids. */
static int mappings_replace(struct call *c, struct str org_id, const json_t *wanted)
{
	struct doc *docs;
	size_t count;
	int result = tx_list_all(c->tx, c->arena, "role_mapping", org_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (json_find(wanted, "externalGroupName", docs[i].name))
			continue;
		result = tx_delete(c->tx, "role_mapping", docs[i].id);
		if (result == 0)
			result = mapping_event(c, "ROLE_MAPPING_DELETED", docs[i].name);
	}
	for (size_t i = 0; result == 0 && i < json_array_size(wanted); i++)
		result = mapping_put(c, org_id, json_array_get(wanted, i));
	return result;
}

static int mappings_check(struct call *c, struct str org_id, struct faults *faults)
{
	const json_t *list = json_object_get(c->body, "roleMappings");
	int result = 0;
	if ((int64_t)json_array_size(list) > resource_role_mapping.most)
		return resource_limit(c, &resource_role_mapping, STR_NONE, (int64_t)json_array_size(list));
	for (size_t i = 0; result == 0 && i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		struct str name = json_field(one, "externalGroupName");
		if (json_find(list, "externalGroupName", name) != one)
			return call_fail_about(
			        c, 409, "DUPLICATE_NAME", name,
			        "roleMappings[%zu].externalGroupName: \"%.*s\" is used twice. Choose another.", i,
			        STR_ARG(name));
		result = assignments_check(c, one, org_id, arena_printf(c->arena, "roleMappings[%zu].", i).p, faults);
	}
	return result;
}

static int provider_check(struct call *c, struct str federation_id, struct str id, struct str path, bool saml,
                          struct faults *faults)
{
	struct doc d;
	int result = provider_get(c->tx, c->arena, federation_id, id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	if (result == -ENOENT || provider_is_saml(doc_json(c->arena, d.body)) != saml)
		faults_add(faults, c->arena, path,
		           saml ? "must be the oktaIdpId of a SAML provider of this federation"
		                : "must be the id of an OIDC provider of this federation");
	return 0;
}

static int providers_check(struct call *c, struct str federation_id, struct faults *faults)
{
	const json_t *list = json_object_get(c->body, "dataAccessIdentityProviderIds");
	struct str sign_in = json_field(c->body, "identityProviderId");
	int result = 0;
	if (sign_in.n)
		result = provider_check(c, federation_id, sign_in, STR("identityProviderId"), true, faults);
	if (faults_too_many(faults, c->arena, STR("dataAccessIdentityProviderIds"), list,
	                    (size_t)resource_identity_provider.most))
		return result;
	for (size_t i = 0; result == 0 && i < json_array_size(list); i++)
		result = provider_check(c, federation_id, json_item(list, i),
		                        arena_printf(c->arena, "dataAccessIdentityProviderIds[%zu]", i), false, faults);
	return result;
}

/* The conflicts are what they are: a body may repeat them, as a client does that sends back what it got. */
static int conflicts_check(struct call *c, const struct doc *old, struct faults *faults)
{
	const json_t *given = json_object_get(c->body, "userConflicts");
	json_t *list;
	int result = given ? conflicts_find(c, old, &list) : 0;
	if (result < 0 || !given)
		return result;
	bool same = json_array_size(given) == json_array_size(list);
	for (size_t i = 0; same && i < json_array_size(given); i++)
		same = json_equal(json_object_get(json_array_get(given, i), "emailAddress"),
		                  json_object_get(json_array_get(list, i), "emailAddress"));
	if (!same)
		faults_add(faults, c->arena, STR("userConflicts"),
		           "cannot be set: it follows from domainAllowList and the members");
	return 0;
}

/* What is stored: mappings are documents of their own, and conflicts follow from the rest. */
static void config_complete(struct call *c, struct str org_id, json_t *config, struct faults *faults)
{
	const json_t *grants = json_object_get(c->body, "postAuthRoleGrants"),
	             *domains = json_object_get(c->body, "domainAllowList");
	json_object_del(config, "roleMappings");
	json_object_del(config, "userConflicts");
	json_put_str(config, "orgId", org_id);
	if (!json_object_get(config, "instantUserProvisioningDisabled"))
		json_put(config, "instantUserProvisioningDisabled", json_false());
	if (domains)
		json_object_set(config, "domainAllowList", domains_read(c, domains, "domainAllowList", faults));
	if (grants)
		json_put(config, "postAuthRoleGrants", roles_json(roles_from_json(grants, true)));
}

static int access_events(struct call *c, const json_t *had, const json_t *has, const char *type)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < json_array_size(has); i++) {
		struct str id = json_item(has, i);
		if (json_has(had, id))
			continue;
		event_set_type(c, type);
		event_field(c, "identityProviderId", id);
		result = event_next(c);
	}
	return result;
}

/* What has a type of its own; the row's event says that the settings changed. */
static int config_events(struct call *c, const json_t *old, const json_t *config)
{
	const json_t *had = json_object_get(old, "dataAccessIdentityProviderIds"),
	             *has = json_object_get(config, "dataAccessIdentityProviderIds"),
	             *restricted = json_object_get(config, "domainRestrictionEnabled");
	int result = access_events(c, had, has, "OIDC_IDENTITY_PROVIDER_ENABLED");
	if (result == 0)
		result = access_events(c, has, had, "OIDC_IDENTITY_PROVIDER_DISABLED");
	if (result < 0 || json_equal(json_object_get(old, "domainRestrictionEnabled"), restricted))
		return result;
	event_set_type(c, json_is_true(restricted) ? "RESTRICT_ORG_MEMBERSHIP_ENABLED"
	                                           : "RESTRICT_ORG_MEMBERSHIP_DISABLED");
	return event_next(c);
}

static int config_update(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	config_complete(c, old->id, document, &faults);
	int result = providers_check(c, old->parent, &faults);
	if (result == 0)
		result = mappings_check(c, old->id, &faults);
	if (result == 0)
		result = conflicts_check(c, old, &faults);
	if (result == 0)
		result = gift_mapped(c->tx, true, old->id,
		                     roles_from_json(json_object_get(c->body, "postAuthRoleGrants"), true));
	return result == 0 && faults.count ? call_fail_faults(c, &faults) : result;
}

/* Whether the organization has ceased to use a provider that it used. */
static bool leaves_provider(const json_t *old, const json_t *config)
{
	const json_t *had = json_object_get(old, "dataAccessIdentityProviderIds"),
	             *has = json_object_get(config, "dataAccessIdentityProviderIds");
	struct str before = json_field(old, "identityProviderId");
	bool leaves = before.n && !str_eq(before, json_field(config, "identityProviderId"));
	for (size_t i = 0; !leaves && i < json_array_size(had); i++)
		leaves = !json_has(has, json_item(had, i));
	return leaves;
}

static int config_written(struct call *c, const struct doc *d, const struct doc *old)
{
	json_t *mappings = json_object_get(c->body, "roleMappings");
	const json_t *before = doc_json(c->arena, old->body), *config = doc_json(c->arena, d->body);
	int result = leaves_provider(before, config) ? federation_left(c->tx, c->arena, d->id) : 0;
	if (result == 0)
		result = config_events(c, before, config);
	return result < 0 || !mappings ? result : mappings_replace(c, d->id, mappings);
}

/* It gets a federation of its own. */
static int config_drop(struct call *c, const struct doc *d)
{
	int64_t members;
	struct str fresh;
	int result = tx_count(c->tx, "connected_org", d->parent, &members);
	if (result == 0 && members == 1)
		return call_fail_about(c, 409, "CANNOT_DISCONNECT_LAST_ORG", d->id,
		                       "The organization is the federation's only one. Delete the federation instead.");
	if (result == 0)
		result = federation_left(c->tx, c->arena, d->id);
	if (result == 0)
		result = federation_leave(c->tx, c->arena, d->id);
	if (result == 0)
		result = federation_create(c->tx, c->arena, d->id, &fresh);
	event_field(c, "federationSettingsId", d->parent);
	return result;
}

const struct resource_hooks connected_org_hooks = {.update = config_update,
                                                   .written = config_written,
                                                   .drop = config_drop,
                                                   .view = config_view,
                                                   .takes = config_takes};
