/* How organizations take part in their federation: which providers their people and workloads sign in with, whom they
 * take as members, and which roles the groups of a provider get.
 *
 * Members of a federation see of it what they own: an organization's configuration is for its own owners only, also
 * in lists. */
#include "api/federation/federation.h"

#include "api/federation/identity_providers.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "identity/gifts.h"
#include "identity/grants.h"
#include "trail/events.h"

#include <errno.h>

#define ASSIGNMENTS_MAX 500  /* of one role mapping */
#define DOMAINS_MAX 500      /* of one list */
#define CONFLICTS_LOOKED 500 /* members that are held against the domains at a reading, which runs on the loop */
#define DOMAIN_LENGTH_MAX 253

int connected_org_get(struct tx *tx, struct arena *a, struct str org_id, struct doc *ret_doc)
{
	return tx_get(tx, a, "connected_org", org_id, ret_doc);
}

int connected_org_add(struct tx *tx, struct str federation_id, struct str org_id)
{
	struct doc d = {.kind = STR("connected_org"),
	                .id = org_id,
	                .parent = federation_id,
	                .created_ms = clock_now_ms(),
	                .body = STR("{\"dataAccessIdentityProviderIds\":[],\"domainAllowList\":[],"
	                            "\"domainRestrictionEnabled\":false,\"instantUserProvisioningDisabled\":false,"
	                            "\"postAuthRoleGrants\":[]}")};
	return tx_insert(tx, &d);
}

static int mappings_list(struct tx *tx, struct arena *a, struct str org_id, struct doc **ret_docs, size_t *ret_count)
{
	return tx_list(tx, a, "role_mapping", org_id, 0, ROLE_MAPPINGS_MAX, ret_docs, ret_count);
}

int connected_org_delete(struct tx *tx, struct arena *a, struct str org_id)
{
	struct doc *docs;
	size_t count;
	int result = mappings_list(tx, a, org_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = tx_delete(tx, "role_mapping", docs[i].id);
	return result < 0 ? result : tx_delete(tx, "connected_org", org_id);
}

json_t *connected_org_json(struct arena *a, const struct doc *d)
{
	json_t *config = doc_json(a, d->body);
	json_put_str(config, "orgId", d->id);
	return config;
}

static bool list_has(const json_t *list, struct str text)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		if (str_eq(text, (struct str){json_string_value(item), json_string_length(item)}))
			return true;
	}
	return false;
}

bool connected_org_uses(const json_t *config, struct str provider_id, struct str okta_id)
{
	return (okta_id.n && str_eq(json_field(config, "identityProviderId"), okta_id)) ||
	       list_has(json_object_get(config, "dataAccessIdentityProviderIds"), provider_id);
}

bool connected_org_visible(const struct call *c, struct str org_id)
{
	return principal_org_roles(c->caller, org_id) & c->op->roles;
}

/* Domains. */

static bool domain_is_valid(struct str d)
{
	size_t label = 0, labels = 1;
	bool letters = false;
	if (d.n > DOMAIN_LENGTH_MAX)
		return false;
	for (size_t i = 0; i < d.n; i++) {
		char ch = d.p[i];
		if (ch == '.') {
			if (!label || d.p[i - 1] == '-')
				return false;
			label = 0;
			labels++;
			letters = false;
			continue;
		}
		bool letter = ch >= 'a' && ch <= 'z', digit = ch >= '0' && ch <= '9';
		if ((!letter && !digit && !(ch == '-' && label)) || ++label > 63)
			return false;
		letters = letters || letter;
	}
	/* The last label has a letter: an address is no domain. */
	return label && labels > 1 && letters && d.p[d.n - 1] != '-';
}

static struct str lower(struct arena *a, struct str text)
{
	char *z = arena_z(a, text);
	for (size_t i = 0; i < text.n; i++)
		if (z[i] >= 'A' && z[i] <= 'Z')
			z[i] = (char)(z[i] | 0x20);
	return (struct str){z, text.n};
}

json_t *domains_read(struct call *c, const json_t *list, const char *path, struct faults *faults)
{
	json_t *kept = json_object_get(doc_json(c->arena, STR("{\"list\":[]}")), "list");
	if (json_array_size(list) > DOMAINS_MAX) {
		faults_add(faults, c->arena, str_of(path), "must have at most %d items", DOMAINS_MAX);
		return kept;
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		struct str at = arena_printf(c->arena, "%s[%zu]", path, i);
		struct str domain = lower(c->arena, (struct str){json_string_value(item), json_string_length(item)});
		if (!domain_is_valid(domain))
			faults_add(faults, c->arena, at, "must be a domain name such as example.com");
		else if (list_has(kept, domain))
			faults_add(faults, c->arena, at, "must not repeat an earlier item");
		else
			json_add_str(kept, domain);
	}
	return kept;
}

static int domains_of_provider(struct tx *tx, struct arena *a, struct str federation_id, const json_t *config,
                               const json_t **ret_domains)
{
	struct str okta = json_field(config, "identityProviderId");
	struct doc provider;
	*ret_domains = NULL;
	if (!okta.n)
		return 0;
	int result = provider_get(tx, a, federation_id, okta, &provider);
	if (result == 0)
		*ret_domains = json_object_get(doc_json(a, provider.body), "associatedDomains");
	return result;
}

static bool address_fits(struct arena *a, struct str email, const json_t *config, const json_t *of_provider)
{
	const char *at = email.n ? memrchr(email.p, '@', email.n) : NULL;
	if (!at)
		return false;
	struct str domain = lower(a, (struct str){at + 1, email.n - (size_t)(at + 1 - email.p)});
	return list_has(json_object_get(config, "domainAllowList"), domain) || list_has(of_provider, domain);
}

int federation_admit(struct call *c, struct str org_id, struct str email)
{
	struct doc d;
	const json_t *domains;
	int result = connected_org_get(c->tx, c->arena, org_id, &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	const json_t *config = doc_json(c->arena, d.body);
	if (!json_is_true(json_object_get(config, "domainRestrictionEnabled")))
		return 0;
	result = domains_of_provider(c->tx, c->arena, d.parent, config, &domains);
	if (result < 0 || address_fits(c->arena, email, config, domains))
		return result;
	call_fail(c, 400, "USER_DOMAIN_NOT_ALLOWED",
	          "The organization takes only members of its domains, and %.*s is of none of them.", STR_ARG(email));
	return call_fail_param(c, email);
}

static struct str email_of(const json_t *user)
{
	struct str email = json_field(user, "emailAddress");
	return email.n ? email : json_field(user, "username");
}

static int conflict_add(struct call *c, struct str user_id, const struct doc *d, const json_t *config,
                        const json_t *domains, json_t *list)
{
	struct doc doc;
	int result = tx_get(c->tx, c->arena, "user", user_id, &doc);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	const json_t *user = doc_json(c->arena, doc.body);
	struct str email = email_of(user), first = json_field(user, "firstName"), last = json_field(user, "lastName");
	if (address_fits(c->arena, email, config, domains))
		return 0;
	json_array_append_new(list, json_pack("{s:s%, s:s%, s:s%, s:s%, s:s%}", "emailAddress", email.p ? email.p : "",
	                                      email.n, "federationSettingsId", d->parent.p, d->parent.n, "firstName",
	                                      first.p ? first.p : "", first.n, "lastName", last.p ? last.p : "", last.n,
	                                      "userId", user_id.p, user_id.n));
	return 0;
}

/* Members from before the restriction whose address is of none of the domains. */
static int conflicts_add(struct call *c, const struct doc *d, json_t *config)
{
	struct grant_row *rows;
	size_t count = 0;
	const json_t *domains;
	json_t *list = json_array();
	int result = 0;
	json_put(config, "userConflicts", list);
	if (!json_is_true(json_object_get(config, "domainRestrictionEnabled")))
		return 0;
	result = domains_of_provider(c->tx, c->arena, d->parent, config, &domains);
	if (result == 0)
		result = grants_in(c->tx, c->arena, GRANTEE_USER, true, d->id, 0, CONFLICTS_LOOKED, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = conflict_add(c, rows[i].id, d, config, domains, list);
	return result;
}

/* Reading. */

static int mappings_add(struct call *c, struct str org_id, json_t *config)
{
	struct doc *docs;
	size_t count;
	json_t *list = json_array();
	json_put(config, "roleMappings", list);
	int result = mappings_list(c->tx, c->arena, org_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		json_array_append(list, doc_json(c->arena, docs[i].body));
	return result;
}

static int config_view(struct call *c, const struct doc *d, json_t *config)
{
	json_put_str(config, "orgId", d->id);
	int result = mappings_add(c, d->id, config);
	return result < 0 || c->is_list ? result : conflicts_add(c, d, config);
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
	int bit = role_find(role);
	struct doc project;
	if ((org.n != 0) == (group.n != 0)) {
		faults_add(faults, c->arena, str_of(path), "must name one orgId or one groupId");
		return 0;
	}
	if (!role.n)
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.role", path), "is required");
	else if (bit < 0 || !((role_mask)1 << bit & role_org_mask) != !org.n)
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.role", path), "must be a role in %s",
		           org.n ? "organizations" : "projects");
	if (org.n && !str_eq(org, org_id))
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.orgId", path),
		           "must be this organization, %.*s", STR_ARG(org_id));
	role_mask given = bit < 0 ? 0 : (role_mask)1 << bit;
	if (!group.n)
		return gift_mapped(c->tx, true, org_id, given & role_org_mask);
	int result = tx_get(c->tx, c->arena, "project", group, &project);
	if (result == -ENOENT || (result == 0 && !str_eq(project.parent, org_id))) {
		faults_add(faults, c->arena, arena_printf(c->arena, "%s.groupId", path),
		           "must be a project of this organization");
		return 0;
	}
	return result < 0 ? result : gift_mapped(c->tx, false, group, given & ~role_org_mask);
}

static int assignments_check(struct call *c, const json_t *mapping, struct str org_id, const char *prefix,
                             struct faults *faults)
{
	const json_t *list = json_object_get(mapping, "roleAssignments");
	int result = 0;
	if (json_array_size(list) > ASSIGNMENTS_MAX)
		faults_add(faults, c->arena, arena_printf(c->arena, "%sroleAssignments", prefix),
		           "must have at most %d items", ASSIGNMENTS_MAX);
	else
		for (size_t i = 0; result == 0 && i < json_array_size(list); i++)
			result =
			        assignment_check(c, json_array_get(list, i), org_id,
			                         arena_printf(c->arena, "%sroleAssignments[%zu]", prefix, i).p, faults);
	return result;
}

/* The configuration shows the mappings: its revision moves with them. */
static int config_touch(struct call *c)
{
	struct doc d;
	int result = resource_load(c, &resource_connected_org, &d);
	return result < 0 ? result : tx_update(c->tx, &d);
}

static int mapping_check(struct call *c, const json_t *mapping)
{
	struct faults faults = {.count = 0};
	int result = assignments_check(c, mapping, call_path(c, "orgId"), "", &faults);
	if (result == 0 && faults.count)
		result = call_fail_faults(c, &faults);
	return result < 0 ? result : config_touch(c);
}

static int mapping_create(struct call *c, json_t *document)
{
	int result = resource_limit(c, &resource_role_mapping, call_path(c, "orgId"), 1);
	return result < 0 ? result : mapping_check(c, document);
}

static int mapping_update(struct call *c, const struct doc *old, json_t *document)
{
	return mapping_check(c, document);
}

static int mapping_remove(struct call *c, const struct doc *old)
{
	return config_touch(c);
}

const struct resource_hooks role_mapping_hooks = {
        .create = mapping_create, .update = mapping_update, .remove = mapping_remove};

int federation_forget_project(struct tx *tx, struct arena *a, struct str org_id, struct str group_id)
{
	struct doc *docs;
	size_t count;
	int result = mappings_list(tx, a, org_id, &docs, &count);
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
	struct str name = arena_dup(c->arena, json_field(wanted, "externalGroupName"));
	json_t *mapping = json_deep_copy(wanted);
	int result = tx_get_by_name(c->tx, c->arena, "role_mapping", org_id, name, &d);
	bool is_new = result == -ENOENT;
	if (is_new) {
		struct id id = id_new();
		d = (struct doc){.kind = STR("role_mapping"),
		                 .id = arena_dup(c->arena, id_str(&id)),
		                 .parent = org_id,
		                 .name = name,
		                 .created_ms = clock_now_ms()};
		result = 0;
	}
	json_put_str(mapping, "id", d.id);
	if (result == 0 && (is_new || !json_equal(mapping, doc_json(c->arena, d.body)))) {
		d.body = json_text(c->arena, mapping);
		result = is_new ? tx_insert(c->tx, &d) : tx_update(c->tx, &d);
		if (result == 0)
			result = mapping_event(c, is_new ? "ROLE_MAPPING_CREATED" : "ROLE_MAPPING_UPDATED", name);
	}
	json_decref(mapping);
	return result;
}

static bool mappings_name(const json_t *list, struct str name)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (str_eq(json_field(json_array_get(list, i), "externalGroupName"), name))
			return true;
	return false;
}

/* Those with a name that stays keep their ids. */
static int mappings_replace(struct call *c, struct str org_id, const json_t *wanted)
{
	struct doc *docs;
	size_t count;
	int result = mappings_list(c->tx, c->arena, org_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (mappings_name(wanted, docs[i].name))
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
	if (json_array_size(list) > ROLE_MAPPINGS_MAX)
		return resource_limit(c, &resource_role_mapping, STR_NONE, ROLE_MAPPINGS_MAX + 1);
	for (size_t i = 0; result == 0 && i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		struct str name = json_field(one, "externalGroupName");
		for (size_t k = 0; k < i; k++)
			if (str_eq(name, json_field(json_array_get(list, k), "externalGroupName"))) {
				call_fail(
				        c, 409, "DUPLICATE_NAME",
				        "roleMappings[%zu].externalGroupName: \"%.*s\" is used twice. Choose another.",
				        i, STR_ARG(name));
				return call_fail_param(c, arena_dup(c->arena, name));
			}
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
	if (json_array_size(list) > IDENTITY_PROVIDERS_MAX) {
		faults_add(faults, c->arena, STR("dataAccessIdentityProviderIds"), "must have at most %d items",
		           IDENTITY_PROVIDERS_MAX);
		return result;
	}
	for (size_t i = 0; result == 0 && i < json_array_size(list); i++) {
		const json_t *id = json_array_get(list, i);
		result = provider_check(c, federation_id, (struct str){json_string_value(id), json_string_length(id)},
		                        arena_printf(c->arena, "dataAccessIdentityProviderIds[%zu]", i), false, faults);
	}
	return result;
}

/* The conflicts are what they are: a body may repeat them, as a client does that sends back what it got. */
static int conflicts_check(struct call *c, const struct doc *old, struct faults *faults)
{
	const json_t *given = json_object_get(c->body, "userConflicts");
	if (!given)
		return 0;
	json_t *now = connected_org_json(c->arena, old);
	int result = conflicts_add(c, old, now);
	const json_t *list = json_object_get(now, "userConflicts");
	bool same = json_array_size(given) == json_array_size(list);
	for (size_t i = 0; same && i < json_array_size(given); i++)
		same = json_equal(json_object_get(json_array_get(given, i), "emailAddress"),
		                  json_object_get(json_array_get(list, i), "emailAddress"));
	if (result == 0 && !same)
		faults_add(faults, c->arena, STR("userConflicts"),
		           "cannot be set: it follows from domainAllowList and the members");
	return result;
}

/* The body's plain fields; null takes one away, or brings back its default. */
static void config_set(struct call *c, json_t *config, struct faults *faults)
{
	static const char *const plain[] = {"dataAccessIdentityProviderIds", "domainRestrictionEnabled"};
	const json_t *body = c->body, *grants = json_object_get(body, "postAuthRoleGrants"),
	             *domains = json_object_get(body, "domainAllowList");
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (json_object_get(body, plain[i]))
			json_object_set(config, plain[i], json_object_get(body, plain[i]));
	if (json_object_get(body, "instantUserProvisioningDisabled"))
		json_put(config, "instantUserProvisioningDisabled",
		         json_boolean(json_is_true(json_object_get(body, "instantUserProvisioningDisabled"))));
	if (json_is_null(json_object_get(body, "identityProviderId")))
		json_object_del(config, "identityProviderId");
	else if (json_object_get(body, "identityProviderId"))
		json_object_set(config, "identityProviderId", json_object_get(body, "identityProviderId"));
	if (domains)
		json_object_set(config, "domainAllowList", domains_read(c, domains, "domainAllowList", faults));
	if (grants)
		json_put(config, "postAuthRoleGrants", roles_json(roles_from_json(grants, true)));
}

static int access_events(struct call *c, const json_t *had, const json_t *has, const char *type)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < json_array_size(has); i++) {
		struct str id = str_of(json_string_value(json_array_get(has, i)));
		if (list_has(had, id))
			continue;
		event_set_type(c, type);
		event_field(c, "identityProviderId", arena_dup(c->arena, id));
		result = event_next(c);
	}
	return result;
}

/* What has a type of its own; the row's event says that the settings changed. */
static int config_events(struct call *c, const json_t *old, const json_t *config)
{
	const json_t *had = json_object_get(old, "dataAccessIdentityProviderIds"),
	             *has = json_object_get(config, "dataAccessIdentityProviderIds");
	bool was = json_is_true(json_object_get(old, "domainRestrictionEnabled")),
	     is = json_is_true(json_object_get(config, "domainRestrictionEnabled"));
	int result = access_events(c, had, has, "OIDC_IDENTITY_PROVIDER_ENABLED");
	if (result == 0)
		result = access_events(c, has, had, "OIDC_IDENTITY_PROVIDER_DISABLED");
	if (result == 0 && was != is) {
		event_set_type(c, is ? "RESTRICT_ORG_MEMBERSHIP_ENABLED" : "RESTRICT_ORG_MEMBERSHIP_DISABLED");
		result = event_next(c);
	}
	return result;
}

/* What the body says is set field by field: mappings are documents of their own, conflicts are never set. */
static int config_update(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	json_t *config = doc_json(c->arena, old->body);
	config_set(c, config, &faults);
	int result = providers_check(c, old->parent, &faults);
	if (result == 0)
		result = mappings_check(c, old->id, &faults);
	if (result == 0)
		result = conflicts_check(c, old, &faults);
	if (result == 0)
		result = gift_mapped(c->tx, true, old->id,
		                     roles_from_json(json_object_get(c->body, "postAuthRoleGrants"), true));
	if (result == 0 && faults.count)
		result = call_fail_faults(c, &faults);
	json_put_str(config, "orgId", old->id);
	json_object_clear(document);
	json_object_update(document, config);
	return result;
}

static int config_written(struct call *c, const struct doc *d, const struct doc *old)
{
	json_t *mappings = json_object_get(c->body, "roleMappings");
	int result = config_events(c, doc_json(c->arena, old->body), doc_json(c->arena, d->body));
	return result < 0 || !mappings ? result : mappings_replace(c, d->id, mappings);
}

/* It gets a federation of its own. */
static int config_drop(struct call *c, const struct doc *d)
{
	json_t *org_ids;
	struct str fresh;
	int result = federation_orgs(c->tx, c->arena, d->parent, &org_ids);
	if (result < 0)
		return result;
	if (json_array_size(org_ids) == 1) {
		call_fail(c, 409, "CANNOT_DISCONNECT_LAST_ORG",
		          "The organization is the federation's only one. Delete the federation instead.");
		return call_fail_param(c, d->id);
	}
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
