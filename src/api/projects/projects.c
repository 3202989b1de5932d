/* Projects: listing what a caller may see, creation and look-up by name. Update and delete are the generic verbs with
 * the hooks below; get is the generic one too, and tells callers in headers what they are here. */
#include "api/projects/projects.h"
#include "api/alerts/alerts.h"
#include "api/credentials/credentials.h"
#include "api/federation/federation.h"
#include "api/kit/verbs.h"
#include "api/users/users.h"

#include "base/clock.h"
#include "base/id.h"
#include "gate/dispatch.h"
#include "identity/gifts.h"
#include "meter/meter.h"
#include "trail/events.h"

#include <errno.h>

#define TAGS_MAX 50

/* Adds the single projects that the caller has a role in: those of an organization; or, without one, of all
 * organizations that are not shown as a whole. */
static int singles_add(struct call *c, struct str org_id, struct segment *list, size_t *count)
{
	const struct principal *p = c->caller;
	for (size_t i = 0; i < p->grant_count; i++) {
		struct str id = {p->grants[i].scope.z, ID_LEN};
		struct doc d;
		if (!(p->grants[i].roles & ~role_org_mask))
			continue;
		int result = tx_get(c->tx, c->arena, "project", id, &d);
		if (result < 0 && result != -ENOENT)
			return result;
		if (result == 0 &&
		    (org_id.n ? str_eq(d.parent, org_id) : !principal_group_roles(p, d.parent, STR_NONE)))
			list[(*count)++] = (struct segment){.kind = "project", .id = id};
	}
	return 0;
}

int projects_visible(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	const struct principal *p = c->caller;
	struct segment *list = arena_new_array(c->arena, struct segment, p->grant_count + 1);
	size_t count = 0;
	for (size_t i = 0; i < p->grant_count; i++) {
		struct str id = {p->grants[i].scope.z, ID_LEN};
		if (principal_group_roles(p, id, STR_NONE))
			list[count++] = (struct segment){.kind = "project", .parent = id};
	}
	int result = singles_add(c, STR_NONE, list, &count);
	*ret_list = list;
	*ret_count = count;
	return result;
}

/* Of an organization: those that read all projects see them all; other members see those that they have a role in. */
static int org_projects(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct segment *list = arena_new_array(c->arena, struct segment, c->caller->grant_count + 1);
	size_t count = 0;
	int result = 0;
	if (principal_group_roles(c->caller, c->org.id, STR_NONE))
		list[count++] = (struct segment){.kind = "project", .parent = c->org.id};
	else
		result = singles_add(c, c->org.id, list, &count);
	*ret_list = list;
	*ret_count = count;
	return result;
}

static int project_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	if (c->op->tenant == TENANT_ORG)
		return org_projects(c, ret_list, ret_count);
	/* Each single project has to be looked at. */
	if (call_takes_long(c, (int64_t)c->caller->grant_count))
		return 0;
	return projects_visible(c, ret_list, ret_count);
}

/* By its name in an organization; -ENOENT also when the caller may not see it. */
static int named_in(struct call *c, struct str org_id, struct str name, struct doc *ret_doc)
{
	int result = tx_get_by_name(c->tx, c->arena, "project", org_id, name, ret_doc);
	if (result == 0 && !principal_group_roles(c->caller, org_id, ret_doc->id))
		result = -ENOENT;
	return result;
}

/* In the organizations that the caller belongs to: there a name is found at once, however many projects there are. */
static int named_at_home(struct call *c, struct str name, struct doc *ret_doc)
{
	const struct principal *p = c->caller;
	int result = p->org_id[0] ? named_in(c, str_of(p->org_id), name, ret_doc) : -ENOENT;
	for (size_t i = 0; result == -ENOENT && i < p->grant_count; i++)
		if (p->grants[i].roles & role_org_mask)
			result = named_in(c, (struct str){p->grants[i].scope.z, ID_LEN}, name, ret_doc);
	return result;
}

/* Among single projects of organizations that the caller does not belong to. */
static int named_elsewhere(struct call *c, struct str name, struct doc *ret_doc)
{
	const struct principal *p = c->caller;
	int result = -ENOENT;
	if (call_takes_long(c, (int64_t)p->grant_count))
		return 0;
	for (size_t i = 0; result == -ENOENT && i < p->grant_count; i++) {
		if (!(p->grants[i].roles & ~role_org_mask))
			continue;
		result = tx_get(c->tx, c->arena, "project", (struct str){p->grants[i].scope.z, ID_LEN}, ret_doc);
		if (result == 0 && !str_eq(ret_doc->name, name))
			result = -ENOENT;
	}
	return result;
}

/* The user that projectOwnerId names: one of the organization, as everybody with a role in its projects. */
static int named_owner_add(struct call *c, struct str org_id, struct str group_id)
{
	struct str user_id = call_query(c, "projectOwnerId");
	struct doc user;
	role_mask in_org = 0;
	if (!user_id.n)
		return 0;
	int result = grant_get(c->tx, c->arena, user_id, org_id, &in_org);
	if (result == 0)
		result = in_org ? tx_get(c->tx, c->arena, "user", user_id, &user) : -ENOENT;
	if (result == -ENOENT)
		return call_fail_field(c, 400, "INVALID_USER_ID", "projectOwnerId",
		                       "must be the id of a user of the organization.");
	if (result == 0)
		result = grant_set(c->tx, c->arena, GRANTEE_USER, user_id, false, group_id, role_bit("GROUP_OWNER"));
	if (result == 0)
		result = event_next(c);
	if (result < 0)
		return result;
	event_set_type(c, "JOINED_GROUP");
	event_scope(c, org_id, group_id);
	event_field(c, "targetUsername", json_field(doc_json(c->arena, user.body), "username"));
	return 0;
}

/* The creator owns what it made. */
static int add_owners(struct call *c, struct str org_id, struct str group_id)
{
	int result = 0;
	event_scope(c, org_id, group_id);
	if (!(principal_group_roles(c->caller, org_id, group_id) & role_bit("GROUP_OWNER")))
		result = credential_grant(c->tx, c->arena, c->caller, false, group_id, "GROUP_OWNER");
	return result < 0 ? result : named_owner_add(c, org_id, group_id);
}

static int tags_check(struct call *c, const json_t *document)
{
	const json_t *tags = json_object_get(document, "tags");
	struct faults faults = {.count = 0};
	if (faults_too_many(&faults, c->arena, STR("tags"), tags, TAGS_MAX))
		return call_fail_faults(c, &faults);
	for (size_t i = 0; i < json_array_size(tags); i++) {
		const json_t *tag = json_array_get(tags, i);
		if (json_find(tags, "key", json_field(tag, "key")) != tag)
			return call_fail_field(c, 400, "DUPLICATE_TAG", arena_printf(c->arena, "tags[%zu].key", i).p,
			                       "is used twice.");
	}
	return 0;
}

void project_complete(json_t *document, struct str id)
{
	json_put_str(document, "id", id);
	json_put_time(document, "created", clock_now_ms());
	json_put(document, "clusterCount", json_integer(0));
	json_default(document, "tags", json_array());
	schema_add_defaults(resource_project.schema, document);
}

/* What every project watches, unless it or its organization does not want that. */
static int defaults_add(struct call *c, const json_t *document, struct str org_id, struct str group_id)
{
	struct doc org;
	if (!json_flag(document, "withDefaultAlertsSettings"))
		return 0;
	int result = tx_get(c->tx, c->arena, "org", org_id, &org);
	if (result < 0 || json_flag(doc_json(c->arena, org.body), "skipDefaultAlertsSettings"))
		return result;
	return alerts_defaults_add(c->tx, c->arena, group_id);
}

static int create(struct call *c, json_t *document)
{
	struct str key = id_make(c->arena);
	int result = tags_check(c, document);
	if (result < 0)
		return result;
	project_complete(document, key);
	struct doc d = {.kind = STR("project"),
	                .id = key,
	                .parent = arena_dup(c->arena, json_field(document, "orgId")),
	                .name = json_field(document, "name"),
	                .created_ms = clock_now_ms(),
	                .body = json_text(c->arena, document),
	                .rev = 1};
	gift_scope(c->tx, key);
	result = tx_insert(c->tx, &d);
	if (result == -EEXIST)
		return call_fail_about(c, 409, "GROUP_ALREADY_EXISTS", d.name,
		                       "name: the organization has a project \"%.*s\" already. Choose another.",
		                       STR_ARG(d.name));
	if (result == 0)
		result = add_owners(c, d.parent, key);
	if (result == 0)
		result = defaults_add(c, document, d.parent, key);
	if (result < 0)
		return result;
	c->etag = d.rev;
	c->location = link_href(c, resource_project.self, "groupId", key);
	entity_write(c, &c->out, d.body, resource_project.self, "groupId", key, true);
	return 0;
}

int projects_create(struct call *c)
{
	/* Freed here, not with the request: what another thread frees costs both. */
	json_t *document = json_deep_copy(c->body);
	int result = create(c, document);
	json_decref(document);
	return result;
}

static int project_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	int result = tags_check(c, document);
	if (result == 0 && !json_equal(json_object_get(before, "tags"), json_object_get(document, "tags"))) {
		event_set_type(c, "GROUP_TAGS_MODIFIED");
		event_field(c, "resourceId", old->id);
		event_field(c, "resourceType", STR("PROJECT"));
		result = event_next(c);
	}
	/* The row's event is the change of the name. */
	if (json_equal(json_object_get(before, "name"), json_object_get(document, "name")))
		event_set_type(c, NULL);
	return result;
}

/* Backups that the project must keep. */
static int compliance_check(struct call *c, const struct doc *d)
{
	struct doc policy;
	int result = tx_get(c->tx, c->arena, resource_backup_compliance.kind, d->id, &policy);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return call_fail_about(
	        c, 409, "CANNOT_CLOSE_GROUP_ACTIVE_BACKUP_COMPLIANCE_POLICY", d->id,
	        "The project has a backup compliance policy, which keeps its backups. Disable it first.");
}

static int project_remove(struct call *c, const struct doc *old)
{
	int result = compliance_check(c, old);
	if (result == 0)
		result = grants_delete_scope(c->tx, c->arena, false, old->id);
	if (result == 0)
		result = federation_forget_project(c->tx, c->arena, old->parent, old->id);
	if (result == 0)
		result = invitations_delete_group(c->tx, c->arena, old->id);
	if (result == 0)
		result = meter_end_group(c->tx, c->arena, old->parent, old->id, clock_now_ms());
	return result < 0 ? result : resource_delete_children(c, "groupId", old->id);
}

/* By its name too, wherever the caller sees it. */
static int project_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str name = call_path(c, "groupName");
	if (!name.p) {
		/* A write reads again what the gate has read, inside its transaction. */
		if (c->op->writes)
			return tx_get(c->tx, c->arena, r->kind, c->group.id, ret_doc);
		*ret_doc = c->group;
		return 0;
	}
	int result = named_at_home(c, name, ret_doc);
	if (result == -ENOENT)
		result = named_elsewhere(c, name, ret_doc);
	if (result == -ENOENT)
		return call_missing_param(c, "groupName");
	if (result == 0 && !c->rerun_on_worker)
		c->roles = principal_group_roles(c->caller, ret_doc->parent, ret_doc->id);
	return result;
}

/* What the paths do not lead to: it is there at times only, or lies below a parameter. */
static void more_links(struct call *c, const struct doc *d)
{
	static const struct op *_Atomic endpoints;
	struct doc policy;
	if (c->op != resource_project.self || !(c->roles & resource_backup_compliance.self->roles))
		return;
	if (tx_get(c->tx, c->arena, resource_backup_compliance.kind, d->id, &policy) == 0)
		entity_link_op(c, "backupCompliancePolicy", resource_backup_compliance.self, "groupId", d->id);
	if (!endpoints)
		endpoints = catalog_op("listBackupPrivateEndpoints");
	entity_link_op(c, "backupPrivateEndpoints", endpoints, "cloudProvider", STR("AWS"));
}

/* A client that acts for its caller (`steward connect`) has to know with which rights, and from where the service sees
 * it. The schema of a project has no fields for that. */
static void caller_describe(struct call *c, const struct doc *d)
{
	char address[IP_TEXT];
	more_links(c, d);
	if (c->op != resource_project.self || !request_header(c->request, "x-steward-describe-caller").p)
		return;
	ip_format(&c->request->peer, address);
	call_header(c, STR("x-steward-caller-address"), arena_dup(c->arena, str_of(address)));
	call_header(c, STR("x-steward-caller-roles"), roles_text(c->arena, c->roles));
}

const struct resource_hooks project_hooks = {.segments = project_segments,
                                             .update = project_update,
                                             .remove = project_remove,
                                             .load = project_load,
                                             .links = caller_describe};
