/* API keys. A key belongs to an organization; projects have it assigned, with roles of their own. A key that is made
 * in a project belongs to the project's organization and is a member there, no more. A project sees only what a key
 * may do in it and in the organization, not in other projects. */
#include "api/access_entries.h"
#include "api/credentials.h"
#include "api/role_lists.h"
#include "api/verbs.h"
#include "gate/audit.h"

#include <errno.h>

int api_keys_list(struct call *c);
int api_keys_create(struct call *c);
int api_keys_get(struct call *c);
int api_keys_update(struct call *c);
int api_keys_delete(struct call *c);
int api_keys_list_in_project(struct call *c);
int api_keys_create_in_project(struct call *c);
int api_keys_update_in_project(struct call *c);
int api_keys_assign(struct call *c);
int api_keys_unassign(struct call *c);
int api_keys_list_access(struct call *c);
int api_keys_add_access(struct call *c);
int api_keys_get_access(struct call *c);
int api_keys_remove_access(struct call *c);

#define KEYS_MAX 500 /* of one organization */

/* A key as the call's scope sees it. */
static int key_json(struct call *c, const struct doc *d, json_t **ret_key)
{
	struct grant_row *rows;
	size_t count, kept = 0;
	int result = grants_of(c->tx, c->arena, d->id, &rows, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (!c->group.id.n || rows[i].in_org || str_eq(rows[i].id, c->group.id))
			rows[kept++] = rows[i];
	json_t *key = doc_json(c->arena, d->body);
	json_object_set_new(key, "roles", assignments_json(rows, kept));
	*ret_key = key;
	return 0;
}

static int key_write(struct call *c, const struct doc *d, const struct op *self)
{
	json_t *key;
	int result = key_json(c, d, &key);
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, key), self, "apiUserId", d->id, c->is_list);
	return result;
}

/* The key that the path names, of the scope's organization. */
static int key_load(struct call *c, struct doc *ret_doc)
{
	struct doc d;
	int result = tx_get(c->tx, c->arena, "api_key", call_path(c, "apiUserId"), &d);
	if (result == 0 && !str_eq(d.parent, c->org.id))
		result = -ENOENT;
	if (result == 0)
		*ret_doc = d;
	return result;
}

/* The same, assigned to the project, and its roles there. */
static int key_load_assigned(struct call *c, struct doc *ret_doc, role_mask *ret_roles)
{
	role_mask roles = 0;
	struct doc d;
	int result = key_load(c, &d);
	if (result == 0)
		result = grant_get(c->tx, c->arena, d.id, c->group.id, &roles);
	if (result == 0 && !roles)
		result = -ENOENT;
	if (result < 0)
		return result;
	*ret_doc = d;
	*ret_roles = roles;
	return 0;
}

static struct str public_key(struct call *c, const struct doc *d)
{
	return json_field(doc_json(c->arena, d->body), "publicKey");
}

int api_keys_list(struct call *c)
{
	const struct op *self = catalog_op("getOrgApiKey");
	struct doc *docs;
	size_t count;
	int64_t total;
	int result = tx_list(c->tx, c->arena, "api_key", c->org.id, list_offset(c), c->page_size, &docs, &count);
	if (result == 0)
		result = tx_count(c->tx, "api_key", c->org.id, &total);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = key_write(c, &docs[i], self);
	list_end(c, total, list_offset(c) + c->page_size < total);
	return result;
}

int api_keys_list_in_project(struct call *c)
{
	const struct op *self = catalog_op("getOrgApiKey");
	struct grant_row *rows;
	size_t count;
	int64_t total;
	int result = grants_in(c->tx, c->arena, GRANTEE_KEY, false, c->group.id, list_offset(c), c->page_size, &rows,
	                       &count);
	if (result == 0)
		result = tx_count(c->tx, grant_kind(GRANTEE_KEY, false), c->group.id, &total);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct doc d;
		result = tx_get(c->tx, c->arena, "api_key", rows[i].id, &d);
		if (result == 0)
			result = key_write(c, &d, self);
	}
	list_end(c, total, list_offset(c) + c->page_size < total);
	return result;
}

static int key_create(struct call *c, const struct grant_row *grants, size_t grant_count)
{
	struct new_key key = {.id = STR_NONE};
	int64_t total;
	json_t *body;
	int result = tx_count(c->tx, "api_key", c->org.id, &total);
	if (result == 0 && total >= KEYS_MAX) {
		call_fail(c, 400, "TOO_MANY_API_KEYS",
		          "The organization has %lld API keys, the most it can have. Delete one.", (long long)total);
		return call_fail_param(c, arena_printf(c->arena, "%d", KEYS_MAX));
	}
	if (result == 0)
		result = credential_add_key(c->tx, c->arena, c->org.id, json_field(c->body, "desc"), grants,
		                            grant_count, &key);
	struct doc d = {.id = key.id, .body = key.body};
	if (result == 0)
		result = key_json(c, &d, &body);
	if (result < 0)
		return result;
	json_object_set_new(body, "privateKey", json_stringn(key.private_key.p, key.private_key.n));
	audit_field(c, "targetPublicKey", key.public_key);
	audit_roles(c, grants[grant_count - 1].roles);
	entity_write(c, &c->out, json_text(c->arena, body), catalog_op("getOrgApiKey"), "apiUserId", key.id, false);
	return 0;
}

int api_keys_create(struct call *c)
{
	struct grant_row grant = {c->org.id, true, 0};
	int result = role_list_read(c, json_object_get(c->body, "roles"), "roles", true, &grant.roles);
	return result < 0 ? result : key_create(c, &grant, 1);
}

int api_keys_create_in_project(struct call *c)
{
	struct grant_row grants[] = {{c->org.id, true, role_bit("ORG_MEMBER")}, {c->group.id, false, 0}};
	int result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &grants[1].roles);
	return result < 0 ? result : key_create(c, grants, 2);
}

int api_keys_get(struct call *c)
{
	struct doc d;
	int result = key_load(c, &d);
	return result < 0 ? result : key_write(c, &d, c->op);
}

/* Description and roles in one scope. What the body does not name stays. */
static int key_change(struct call *c, struct doc *d, bool in_org)
{
	struct str desc = json_field(c->body, "desc");
	const json_t *names = json_object_get(c->body, "roles");
	int result = 0;
	audit_field(c, "targetPublicKey", public_key(c, d));
	audit_type(c, names ? "API_KEY_ROLES_CHANGED" : desc.p ? "API_KEY_DESCRIPTION_CHANGED" : NULL);
	if (names) {
		role_mask roles = 0;
		result = role_list_read(c, names, "roles", in_org, &roles);
		audit_roles(c, roles);
		if (result == 0)
			result = grant_set(c->tx, c->arena, GRANTEE_KEY, d->id, in_org,
			                   in_org ? c->org.id : c->group.id, roles);
	}
	if (result == 0 && desc.p)
		result = credential_check_ours(c, d->id, "API_KEY_NOT_OF_PROJECT", "The API key");
	if (result == 0 && desc.p) {
		json_t *body = doc_json(c->arena, d->body);
		json_object_set_new(body, "desc", json_stringn(desc.p, desc.n));
		d->body = json_text(c->arena, body);
		result = tx_update(c->tx, d);
	}
	return result < 0 ? result : key_write(c, d, catalog_op("getOrgApiKey"));
}

int api_keys_update(struct call *c)
{
	struct doc d;
	int result = key_load(c, &d);
	return result < 0 ? result : key_change(c, &d, true);
}

int api_keys_update_in_project(struct call *c)
{
	struct doc d;
	role_mask held = 0;
	int result = key_load_assigned(c, &d, &held);
	return result < 0 ? result : key_change(c, &d, false);
}

int api_keys_delete(struct call *c)
{
	struct doc d;
	int result = key_load(c, &d);
	if (result < 0)
		return result;
	audit_field(c, "targetPublicKey", public_key(c, &d));
	return credential_delete(c->tx, c->arena, GRANTEE_KEY, &d);
}

/* Adds the roles of all the body's entries to what the key has in the project. */
int api_keys_assign(struct call *c)
{
	struct doc d;
	role_mask roles;
	int result = key_load(c, &d);
	if (result == 0)
		result = grant_get(c->tx, c->arena, d.id, c->group.id, &roles);
	if (result == 0 && json_array_size(c->body) == 0) {
		struct faults faults = {.count = 0};
		faults_add(&faults, c->arena, STR_NONE, "must have at least one entry, with roles");
		result = call_fail_faults(c, &faults);
	}
	for (size_t i = 0; result == 0 && i < json_array_size(c->body); i++) {
		role_mask more;
		const json_t *names = json_object_get(json_array_get(c->body, i), "roles");
		result = role_list_read(c, names, arena_printf(c->arena, "[%zu].roles", i).p, false, &more);
		if (result == 0)
			roles |= more;
	}
	if (result < 0)
		return result;
	audit_field(c, "targetPublicKey", public_key(c, &d));
	audit_roles(c, roles);
	return grant_set(c->tx, c->arena, GRANTEE_KEY, d.id, false, c->group.id, roles);
}

int api_keys_unassign(struct call *c)
{
	struct doc d;
	role_mask held = 0;
	int result = key_load_assigned(c, &d, &held);
	if (result < 0)
		return result;
	audit_field(c, "targetPublicKey", public_key(c, &d));
	return grant_set(c->tx, c->arena, GRANTEE_KEY, d.id, false, c->group.id, 0);
}

static int access_of_key(struct call *c, int (*run)(struct call *c, const struct access_owner *owner))
{
	struct doc d;
	int result = key_load(c, &d);
	if (result < 0)
		return result;
	struct access_owner owner = {GRANTEE_KEY, d.id, public_key(c, &d)};
	return run(c, &owner);
}

int api_keys_list_access(struct call *c)
{
	return access_of_key(c, access_entries_list);
}

int api_keys_add_access(struct call *c)
{
	return access_of_key(c, access_entries_add);
}

int api_keys_get_access(struct call *c)
{
	return access_of_key(c, access_entries_get);
}

int api_keys_remove_access(struct call *c)
{
	return access_of_key(c, access_entries_remove);
}
