/* Service accounts. An account belongs to an organization; projects have it assigned, with roles of their own. One
 * that is made in a project belongs to the project's organization and is a member there, no more.
 *
 * Who has a secret of an account is the account. So a project's owner manages the secrets, the details and the access
 * list only of accounts that have nothing but their roles in that project: those of an account that may do more are
 * for the owners of its organization.
 *
 * An account has at most two secrets in force, enough to change from one to the next; those that have expired make
 * room when a new one is made. */
#include "api/access_entries.h"
#include "api/credentials.h"
#include "api/role_lists.h"
#include "api/verbs.h"
#include "base/clock.h"
#include "gate/audit.h"
#include "gate/authenticate.h"

#include <errno.h>

int service_accounts_list(struct call *c);
int service_accounts_create(struct call *c);
int service_accounts_get(struct call *c);
int service_accounts_update(struct call *c);
int service_accounts_delete(struct call *c);
int service_accounts_list_in_project(struct call *c);
int service_accounts_create_in_project(struct call *c);
int service_accounts_update_in_project(struct call *c);
int service_accounts_invite(struct call *c);
int service_accounts_remove_from_project(struct call *c);
int service_accounts_projects(struct call *c);
int service_accounts_add_secret(struct call *c);
int service_accounts_delete_secret(struct call *c);
int service_accounts_list_access(struct call *c);
int service_accounts_add_access(struct call *c);
int service_accounts_remove_access(struct call *c);

#define ACCOUNTS_MAX 500 /* of one organization */
#define SECRETS_MAX 2    /* in force */

static bool in_project(const struct call *c)
{
	return c->group.id.n != 0;
}

static const struct op *account_self(const struct call *c)
{
	return catalog_op(in_project(c) ? "getGroupServiceAccount" : "getOrgServiceAccount");
}

/* With its roles in the call's scope. */
static int account_json(struct call *c, const struct doc *d, json_t **ret_account)
{
	json_t *body;
	role_mask roles;
	int result = credential_account_json(c->tx, c->arena, d, &body);
	if (result == 0 && in_project(c)) {
		result = grant_get(c->tx, c->arena, d->id, c->group.id, &roles);
		if (result == 0)
			json_object_set_new(body, "roles", roles_json(roles));
	}
	if (result == 0)
		*ret_account = body;
	return result;
}

static int account_write(struct call *c, const struct doc *d, const struct op *self)
{
	json_t *body;
	int result = account_json(c, d, &body);
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, body), self, "clientId", json_field(body, "clientId"),
		             c->is_list);
	return result;
}

/* The account that the path names, of the scope's organization; in a project also one that is assigned to it. */
static int account_load(struct call *c, bool assigned, struct doc *ret_doc)
{
	struct str id;
	struct doc d;
	role_mask roles = 1;
	int result = tx_ref_get(c->tx, c->arena, "service_account_client", call_path(c, "clientId"), &id);
	if (result == 0)
		result = tx_get(c->tx, c->arena, "service_account", id, &d);
	if (result == 0 && !str_eq(d.parent, c->org.id))
		result = -ENOENT;
	if (result == 0 && assigned)
		result = grant_get(c->tx, c->arena, d.id, c->group.id, &roles);
	if (result == 0 && !roles)
		result = -ENOENT;
	if (result == 0)
		*ret_doc = d;
	return result;
}

/* For what gives power over the account itself. */
static int account_load_managed(struct call *c, struct doc *ret_doc)
{
	struct doc d;
	int result = account_load(c, in_project(c), &d);
	if (result == 0)
		result = credential_check_ours(c, d.id, "SERVICE_ACCOUNT_NOT_OF_PROJECT", "The service account");
	if (result < 0)
		return result;
	*ret_doc = d;
	return 0;
}

int service_accounts_list(struct call *c)
{
	const struct op *self = account_self(c);
	struct doc *docs;
	size_t count;
	int64_t total;
	int result =
	        tx_list(c->tx, c->arena, "service_account", c->org.id, list_offset(c), c->page_size, &docs, &count);
	if (result == 0)
		result = tx_count(c->tx, "service_account", c->org.id, &total);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = account_write(c, &docs[i], self);
	list_end(c, total, list_offset(c) + c->page_size < total);
	return result;
}

int service_accounts_list_in_project(struct call *c)
{
	const struct op *self = account_self(c);
	struct grant_row *rows;
	size_t count;
	int64_t total;
	int result = grants_in(c->tx, c->arena, GRANTEE_ACCOUNT, false, c->group.id, list_offset(c), c->page_size,
	                       &rows, &count);
	if (result == 0)
		result = tx_count(c->tx, grant_kind(GRANTEE_ACCOUNT, false), c->group.id, &total);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct doc d;
		result = tx_get(c->tx, c->arena, "service_account", rows[i].id, &d);
		if (result == 0)
			result = account_write(c, &d, self);
	}
	list_end(c, total, list_offset(c) + c->page_size < total);
	return result;
}

static int account_create(struct call *c, const struct grant_row *grants, size_t grant_count)
{
	struct new_account account = {.id = STR_NONE};
	int64_t hours, total;
	json_t *body = NULL;
	int result = credential_secret_hours(c, c->org.id, c->body, "", &hours);
	if (result == 0)
		result = tx_count(c->tx, "service_account", c->org.id, &total);
	if (result == 0 && total >= ACCOUNTS_MAX) {
		call_fail(c, 400, "TOO_MANY_SERVICE_ACCOUNTS",
		          "The organization has %lld service accounts, the most it can have. Delete one.",
		          (long long)total);
		return call_fail_param(c, arena_printf(c->arena, "%d", ACCOUNTS_MAX));
	}
	if (result == 0)
		result = credential_add_account(c->tx, c->arena, c->org.id, json_field(c->body, "name"),
		                                json_field(c->body, "description"), grants, grant_count, hours,
		                                &account);
	struct doc d = {.id = account.id, .parent = c->org.id, .body = account.body};
	if (result == 0)
		result = account_json(c, &d, &body);
	if (result < 0)
		return result;
	json_object_set_new(json_array_get(json_object_get(body, "secrets"), 0), "secret",
	                    json_stringn(account.secret.p, account.secret.n));
	audit_field(c, "clientId", account.client_id);
	audit_roles(c, grants[grant_count - 1].roles);
	c->location = link_href(c, account_self(c), "clientId", account.client_id);
	entity_write(c, &c->out, json_text(c->arena, body), account_self(c), "clientId", account.client_id, false);
	return 0;
}

int service_accounts_create(struct call *c)
{
	struct grant_row grant = {c->org.id, true, 0};
	int result = role_list_read(c, json_object_get(c->body, "roles"), "roles", true, &grant.roles);
	return result < 0 ? result : account_create(c, &grant, 1);
}

int service_accounts_create_in_project(struct call *c)
{
	struct grant_row grants[] = {{c->org.id, true, role_bit("ORG_MEMBER")}, {c->group.id, false, 0}};
	int result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &grants[1].roles);
	return result < 0 ? result : account_create(c, grants, 2);
}

int service_accounts_get(struct call *c)
{
	struct doc d;
	int result = account_load(c, in_project(c), &d);
	return result < 0 ? result : account_write(c, &d, c->op);
}

/* Name and description; null leaves them as they are. */
static int details_change(struct call *c, struct doc *d)
{
	static const char *const fields[] = {"name", "description"};
	json_t *body = doc_json(c->arena, d->body);
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		json_t *value = json_object_get(c->body, fields[i]);
		if (json_is_string(value))
			json_object_set(body, fields[i], value);
	}
	d->body = json_text(c->arena, body);
	return tx_update(c->tx, d);
}

static int account_change(struct call *c, bool in_org)
{
	const json_t *names = json_object_get(c->body, "roles");
	bool details = json_field(c->body, "name").p || json_field(c->body, "description").p;
	struct doc d;
	int result = details ? account_load_managed(c, &d) : account_load(c, !in_org, &d);
	audit_type(c, names ? "SERVICE_ACCOUNT_ROLES_CHANGED" : details ? "SERVICE_ACCOUNT_DETAILS_CHANGED" : NULL);
	if (result == 0 && names) {
		role_mask roles = 0;
		result = role_list_read(c, names, "roles", in_org, &roles);
		audit_roles(c, roles);
		if (result == 0)
			result = grant_set(c->tx, c->arena, GRANTEE_ACCOUNT, d.id, in_org,
			                   in_org ? c->org.id : c->group.id, roles);
	}
	if (result == 0 && details)
		result = details_change(c, &d);
	return result < 0 ? result : account_write(c, &d, account_self(c));
}

int service_accounts_update(struct call *c)
{
	return account_change(c, true);
}

int service_accounts_update_in_project(struct call *c)
{
	return account_change(c, false);
}

int service_accounts_delete(struct call *c)
{
	struct doc d;
	int result = account_load(c, false, &d);
	return result < 0 ? result : credential_delete(c->tx, c->arena, GRANTEE_ACCOUNT, &d);
}

/* Adds the roles to what the account has in the project. */
int service_accounts_invite(struct call *c)
{
	struct doc d;
	role_mask roles, more;
	int result = account_load(c, false, &d);
	if (result == 0)
		result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &more);
	if (result == 0)
		result = grant_get(c->tx, c->arena, d.id, c->group.id, &roles);
	if (result == 0)
		result = grant_set(c->tx, c->arena, GRANTEE_ACCOUNT, d.id, false, c->group.id, roles | more);
	if (result == 0)
		audit_roles(c, roles | more);
	return result < 0 ? result : account_write(c, &d, account_self(c));
}

int service_accounts_remove_from_project(struct call *c)
{
	struct doc d;
	int result = account_load(c, true, &d);
	return result < 0 ? result : grant_set(c->tx, c->arena, GRANTEE_ACCOUNT, d.id, false, c->group.id, 0);
}

int service_accounts_projects(struct call *c)
{
	const struct op *self = catalog_op("getGroupServiceAccount");
	struct doc d;
	struct grant_row *rows;
	size_t count;
	int64_t total = 0, from = list_offset(c);
	int result = account_load(c, false, &d);
	if (result == 0)
		result = grants_of(c->tx, c->arena, d.id, &rows, &count);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].in_org)
			continue;
		if (total >= from && total < from + c->page_size) {
			json_t *body = doc_json(c->arena, STR("{}"));
			json_object_set_new(body, "groupId", json_stringn(rows[i].id.p, rows[i].id.n));
			json_object_set_new(body, "roles", roles_json(rows[i].roles));
			entity_write(c, &c->out, json_text(c->arena, body), self, "groupId", rows[i].id, true);
		}
		total++;
	}
	list_end(c, total, from + c->page_size < total);
	return 0;
}

/* Those that have expired go; the ones in force are counted. */
static int secrets_tidy(struct call *c, struct str account_id, int64_t *ret_in_force)
{
	struct doc *docs;
	size_t count;
	int64_t in_force = 0, until;
	int result = tx_list(c->tx, c->arena, "sa_secret", account_id, 0, 500, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (secret_in_force(&docs[i], &until))
			in_force++;
		else
			result = tx_delete(c->tx, "sa_secret", docs[i].id);
	}
	*ret_in_force = in_force;
	return result;
}

int service_accounts_add_secret(struct call *c)
{
	struct new_account account = {.id = STR_NONE};
	struct doc d;
	int64_t hours, in_force;
	int result = account_load_managed(c, &d);
	if (result == 0)
		result = credential_secret_hours(c, c->org.id, c->body, "", &hours);
	if (result == 0)
		result = secrets_tidy(c, d.id, &in_force);
	if (result == 0 && in_force >= SECRETS_MAX) {
		call_fail(c, 400, "TOO_MANY_SECRETS",
		          "The service account has %lld secrets in force, the most it can have. Delete one.",
		          (long long)in_force);
		return call_fail_param(c, arena_printf(c->arena, "%d", SECRETS_MAX));
	}
	account.id = result == 0 ? d.id : STR_NONE;
	if (result == 0)
		result = credential_add_secret(c->tx, c->arena, hours, &account);
	if (result < 0)
		return result;
	json_t *body = doc_json(c->arena, account.secret_body);
	json_object_set_new(body, "secret", json_stringn(account.secret.p, account.secret.n));
	audit_field(c, "secretId", account.secret_id);
	c->location = link_href(c, catalog_op(in_project(c) ? "deleteGroupSecret" : "deleteOrgSecret"), "secretId",
	                        account.secret_id);
	buf_str(&c->out, json_text(c->arena, body));
	return 0;
}

int service_accounts_delete_secret(struct call *c)
{
	struct doc account, secret;
	int result = account_load_managed(c, &account);
	if (result == 0)
		result = tx_get(c->tx, c->arena, "sa_secret", call_path(c, "secretId"), &secret);
	if (result == 0 && !str_eq(secret.parent, account.id))
		result = -ENOENT;
	if (result < 0)
		return result;
	/* Its tokens die with it. */
	tx_touch_identity(c->tx);
	return tx_delete(c->tx, "sa_secret", secret.id);
}

static int access_of_account(struct call *c, bool changes, int (*run)(struct call *c, const struct access_owner *owner))
{
	struct doc d;
	int result = changes ? account_load_managed(c, &d) : account_load(c, in_project(c), &d);
	if (result < 0)
		return result;
	struct access_owner owner = {GRANTEE_ACCOUNT, d.id, STR_NONE};
	return run(c, &owner);
}

int service_accounts_list_access(struct call *c)
{
	return access_of_account(c, false, access_entries_list);
}

int service_accounts_add_access(struct call *c)
{
	return access_of_account(c, true, access_entries_add);
}

int service_accounts_remove_access(struct call *c)
{
	return access_of_account(c, true, access_entries_remove);
}
