/* Organizations: what is particular to them. Get, update and delete are the generic verbs with the hooks below. */
#include "api/credentials/credentials.h"
#include "api/federation/federation.h"
#include "api/kit/verbs.h"
#include "api/users/users.h"

#include "base/clock.h"
#include "base/id.h"
#include "call/service.h"
#include "identity/gifts.h"
#include "trail/events.h"

#include <errno.h>

/* The caller's organizations, in the order of their ids. */
static int org_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	const struct principal *p = c->caller;
	struct segment *list = arena_new_array(c->arena, struct segment, p->grant_count + 1);
	size_t count = 0;
	for (size_t i = 0; i < p->grant_count; i++)
		if (p->grants[i].roles & role_org_mask) {
			struct doc d;
			struct str id = {p->grants[i].scope.z, ID_LEN};
			/* A role may outlive its organization. */
			if (tx_get(c->tx, c->arena, "org", id, &d) == 0)
				list[count++] = (struct segment){.kind = "org", .id = id};
		}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

/* One more event of the new organization: it came with something. */
static int event_more(struct call *c, struct str org_id, const char *type, const char *field, struct str value)
{
	int result = event_next(c);
	event_set_type(c, type);
	event_scope(c, org_id, STR_NONE);
	event_field(c, field, value);
	return result;
}

static int add_key(struct call *c, struct str org_id, const json_t *wanted, json_t *answer)
{
	struct new_key key = {.id = STR_NONE};
	struct grant_row grant = {org_id, true, roles_from_json(json_object_get(wanted, "roles"), true)};
	json_t *body;
	int result = credential_add_key(c->tx, c->arena, org_id, json_field(wanted, "desc"), &grant, 1, &key);
	if (result == 0)
		result = credential_key_json(c->tx, c->arena, key.body, &body);
	if (result < 0)
		return result;
	json_put_str(body, "privateKey", key.private_key);
	json_object_set(answer, "apiKey", body);
	return event_more(c, org_id, "API_KEY_CREATED", "targetPublicKey", key.public_key);
}

static int add_account(struct call *c, struct str org_id, const json_t *wanted, json_t *answer)
{
	struct new_account account = {.id = STR_NONE};
	struct grant_row grant = {org_id, true, roles_from_json(json_object_get(wanted, "roles"), true)};
	int64_t hours = 0;
	json_t *body;
	int result = credential_secret_hours(c, org_id, wanted, "serviceAccount.", &hours);
	if (result == 0)
		result = credential_add_account(c->tx, c->arena, org_id, json_field(wanted, "name"),
		                                json_field(wanted, "description"), &grant, 1, hours, &account);
	struct doc d = {.id = account.id, .parent = org_id, .body = account.body};
	if (result == 0)
		result = credential_account_json(c->tx, c->arena, &d, &body);
	if (result < 0)
		return result;
	json_put_str(json_array_get(json_object_get(body, "secrets"), 0), "secret", account.secret);
	json_object_set(answer, "serviceAccount", body);
	return event_more(c, org_id, "SERVICE_ACCOUNT_CREATED", "clientId", account.client_id);
}

/* The named owner must be a user whom the caller may know of: to others the organization would show who it is. It is
 * invited, and owns the organization once it has accepted: who was made an owner without being asked could be kept out
 * of everything by it, since an identity provider signs nobody in who has roles in organizations of others. */
static int add_owner(struct call *c, struct str org_id, struct str user_id, json_t *answer)
{
	struct doc user;
	bool visible = false;
	int result = tx_get(c->tx, c->arena, "user", user_id, &user);
	if (result == 0)
		result = user_is_visible(c, user_id, &visible);
	if (result == -ENOENT || (result == 0 && !visible))
		return call_fail_field(
		        c, 400, "INVALID_USER_ID", "orgOwnerId",
		        "must be the id of a user who shares an organization or a project with the caller.");
	bool self = user_is_caller(c, user_id);
	struct member m = {.user_id = user_id,
	                   .username = result == 0 ? json_field(doc_json(c->arena, user.body), "username") : STR_NONE,
	                   .org_id = org_id,
	                   .roles = role_bit("ORG_OWNER")};
	if (result == 0)
		result = self ? grant_set(c->tx, c->arena, GRANTEE_USER, user_id, true, org_id, m.roles)
		              : invitation_add(c, &m);
	if (result < 0)
		return result;
	json_put_str(answer, "orgOwnerId", user_id);
	return event_more(c, org_id, self ? "JOINED_ORG" : "INVITED_TO_ORG", "targetUsername", m.username);
}

static int add_organization(struct call *c, json_t *answer, struct str *ret_id)
{
	struct str key = id_make(c->arena);
	json_t *body = json_keep(c->arena, json_object()),
	       *skip = json_boolean(json_is_true(json_object_get(c->body, "skipDefaultAlertsSettings")));
	json_put_str(body, "id", key);
	json_put(body, "isDeleted", json_false());
	json_put_str(body, "name", json_field(c->body, "name"));
	json_object_set(body, "skipDefaultAlertsSettings", skip);
	struct doc d = {.kind = STR("org"), .id = key, .created_ms = clock_now_ms(), .body = json_text(c->arena, body)};
	gift_scope(c->tx, key);
	int result = tx_insert(c->tx, &d);
	struct buf entity = {0};
	c->roles = role_closure[role_find(STR("ORG_OWNER"))];
	entity_write(c, &entity, d.body, resource_org.self, "orgId", key, true);
	json_put(answer, "organization", json_loadb(entity.p, entity.n, 0, NULL));
	json_object_set(answer, "skipDefaultAlertsSettings", skip);
	buf_free(&entity);
	*ret_id = key;
	return result;
}

/* The federation that the body names, or one of its own. */
static int add_federation(struct call *c, struct str org_id, json_t *answer)
{
	struct str id = json_field(c->body, "federationSettingsId");
	int result = id.n ? federation_join(c, id, org_id) : federation_create(c->tx, c->arena, org_id, &id);
	if (result == 0)
		json_put_str(answer, "federationSettingsId", id);
	return result;
}

/* Organizations that are made in the console demand access lists of their keys. Sessions need none. */
static int require_access_list(struct call *c, struct str org_id)
{
	int result =
	        doc_insert(c->tx, "org_settings", org_id, org_id, STR_NONE, STR("{\"apiAccessListRequired\":true}"));
	tx_touch_identity(c->tx);
	if (result == 0)
		result = event_next(c);
	event_set_type(c, "ORG_PUBLIC_API_ACCESS_LIST_REQUIRED");
	event_scope(c, org_id, STR_NONE);
	return result;
}

/* Who may make organizations, and how many.
 *
 * "org_founder"  id = the organization, parent = the one at the root of it
 *
 * What an organization's credentials make counts for it, and what is made from there too: a new organization comes with
 * credentials of its own, which would otherwise each begin to count anew. */
static int root_of(struct call *c, struct str org_id, struct str *ret_root)
{
	struct doc d = {.parent = org_id};
	int result = tx_get(c->tx, c->arena, "org_founder", org_id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	*ret_root = d.parent;
	return 0;
}

static int too_many(struct call *c, const char *whose, unsigned most, const char *option)
{
	return call_fail_about(
	        c, 403, "TOO_MANY_ORGANIZATIONS", arena_printf(c->arena, "%u", most),
	        "%s organizations, the most that there may be. Delete one, or ask the operator of this service (--%s).",
	        whose, option);
}

/* The root that still has room, of the organizations that a caller acts for: a credential's own, those that a user
 * owns. */
static int founder_find(struct call *c, struct str *ret_root)
{
	const struct principal *p = c->caller;
	bool user = p->kind == PRINCIPAL_USER;
	int result = 0;
	struct str root = user ? str_of(p->id) : STR_NONE;
	for (size_t i = 0; result == 0 && i < (user ? p->grant_count : 1); i++) {
		int64_t count = 0;
		if (user && !(p->grants[i].roles & role_bit("ORG_OWNER")))
			continue;
		result = root_of(c, user ? (struct str){p->grants[i].scope.z, ID_LEN} : str_of(p->org_id), &root);
		if (result == 0)
			result = tx_count(c->tx, "org_founder", root, &count);
		if (result == 0 && count < c->service->orgs_per_caller)
			break;
	}
	*ret_root = root;
	return result;
}

static int creation_check(struct call *c, struct str *ret_root)
{
	const struct service *s = c->service;
	bool owner = false;
	int64_t all = 0, count = 0;
	for (size_t i = 0; i < c->caller->grant_count; i++)
		owner = owner || c->caller->grants[i].roles & role_bit("ORG_OWNER");
	if (s->org_creation == ORG_CREATION_NONE)
		return call_fail(c, 403, "ORG_CREATION_NOT_PERMITTED",
		                 "Nobody makes organizations here. Ask the operator of this service (--org-creation).");
	if (s->org_creation == ORG_CREATION_OWNERS && !owner)
		return call_fail_about(c, 403, "ORG_CREATION_NOT_PERMITTED", STR("ORG_OWNER"),
		                       "Who owns an organization may make another. Ask an owner, or the operator of "
		                       "this service (--org-creation).");
	int result = founder_find(c, ret_root);
	if (result == 0)
		result = tx_count(c->tx, "org_founder", *ret_root, &count);
	if (result == 0)
		result = tx_count(c->tx, "org", STR(""), &all);
	if (result == 0 && count >= s->orgs_per_caller)
		result =
		        too_many(c, "The caller has made, itself or by others,", s->orgs_per_caller, "orgs-per-caller");
	if (result == 0 && all >= s->orgs_max)
		result = too_many(c, "There are", s->orgs_max, "orgs-max");
	return result;
}

int orgs_create(struct call *c)
{
	struct str id, owner = json_field(c->body, "orgOwnerId");
	json_t *answer = json_keep(c->arena, json_object()), *key = json_object_get(c->body, "apiKey"),
	       *account = json_object_get(c->body, "serviceAccount");
	struct str root = STR_NONE;
	int result = creation_check(c, &root);
	if (result == 0)
		result = add_organization(c, answer, &id);
	if (result < 0)
		return result;
	event_scope(c, id, STR_NONE);
	result = doc_insert(c->tx, "org_founder", id, root, STR_NONE, STR("{}"));
	if (result == 0)
		result = add_federation(c, id, answer);
	if (result == 0)
		result = credential_grant(c->tx, c->arena, c->caller, true, id, "ORG_OWNER");
	if (result == 0 && owner.n)
		result = add_owner(c, id, owner, answer);
	if (result == 0 && key)
		result = add_key(c, id, key, answer);
	if (result == 0 && account)
		result = add_account(c, id, account, answer);
	if (result == 0 && c->by_session)
		result = require_access_list(c, id);
	if (result < 0)
		return result;
	c->location = link_href(c, resource_org.self, "orgId", id);
	entity_write(c, &c->out, json_text(c->arena, answer), resource_org.self, "orgId", id, true);
	return 0;
}

static int org_remove(struct call *c, const struct doc *old)
{
	int result = grants_delete_scope(c->tx, c->arena, true, old->id);
	if (result == 0)
		result = federation_leave(c->tx, c->arena, old->id);
	if (result == 0)
		result = tx_delete(c->tx, "org_founder", old->id);
	if (result == 0 || result == -ENOENT) /* the operator's own */
		result = tx_delete(c->tx, "session_stamp", old->id);
	if (result == -ENOENT) /* no provider has ever changed */
		result = 0;
	return result < 0 ? result : resource_delete_children(c, "orgId", old->id);
}

/* A name is what the types have an event for; the rest is told as settings. */
static int org_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	if (json_equal(json_object_get(before, "name"), json_object_get(document, "name")))
		event_set_type(c, json_equal(before, document) ? NULL : "ORG_SETTINGS_UPDATED");
	return 0;
}

const struct resource_hooks org_hooks = {.segments = org_segments, .update = org_update, .remove = org_remove};
