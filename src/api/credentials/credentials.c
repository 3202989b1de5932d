/* What the verbs do alike for API keys and service accounts. Both belong to an organization, and projects have them
 * assigned: a call below a project sees those that have roles in it, changes their roles there, and takes only these
 * away. The roles are grants, no part of the document. */
#include "api/credentials/credentials.h"

#include "trail/events.h"

#include <errno.h>

#define SECRET_HOURS_LEAST 8

static const struct {
	const char *what, *not_ours, *details_changed;
	const char *details[2]; /* fields of the document that the caller may change */
} words[] = {
        [GRANTEE_KEY] = {"The API key", "API_KEY_NOT_OF_PROJECT", "API_KEY_DESCRIPTION_CHANGED", {"desc"}},
        [GRANTEE_ACCOUNT] = {"The service account",
                             "SERVICE_ACCOUNT_NOT_OF_PROJECT",
                             "SERVICE_ACCOUNT_DETAILS_CHANGED",
                             {"name", "description"}},
};

static enum grantee grantee_of(struct str kind)
{
	return str_is(kind, "api_key") ? GRANTEE_KEY : GRANTEE_ACCOUNT;
}

int credential_load(struct call *c, const struct resource *r, struct str id, bool assigned, struct doc *ret_doc)
{
	struct doc d;
	role_mask roles = 1;
	int result = tx_get(c->tx, c->arena, r->kind, id, &d);
	if (result == 0 && !str_eq(d.parent, c->org.id))
		result = -ENOENT;
	if (result == 0 && assigned)
		result = grant_get(c->tx, c->arena, id, c->group.id, &roles);
	if (result == 0 && !roles)
		result = -ENOENT;
	if (result == 0)
		*ret_doc = d;
	return result;
}

int credential_check_ours(struct call *c, const struct doc *d)
{
	enum grantee who = grantee_of(d->kind);
	struct grant_row *rows;
	size_t count;
	if (!c->group.id.n || c->roles & role_bit("ORG_OWNER"))
		return 0;
	int result = grants_of(c->tx, c->arena, d->id, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		bool harmless =
		        rows[i].in_org ? rows[i].roles == role_bit("ORG_MEMBER") : str_eq(rows[i].id, c->group.id);
		if (!harmless)
			return call_fail_about(
			        c, 403, words[who].not_ours, rows[i].id,
			        "%s has roles outside of this project: its organization's owners manage it.",
			        words[who].what);
	}
	return result;
}

int credential_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	const char *kind = c->op->resource->kind;
	struct doc *grants = NULL;
	size_t count = 1;
	bool in_org = !c->group.id.n;
	int result = in_org ? 0
	                    : tx_list_all(c->tx, c->arena, grant_kind(grantee_of(str_of(kind)), false), c->group.id,
	                                  &grants, &count);
	if (result < 0)
		return result;
	struct segment *list = arena_new_array(c->arena, struct segment, count + 1);
	for (size_t i = 0; i < count; i++)
		list[i] = in_org ? (struct segment){.kind = kind, .parent = c->org.id}
		                 : (struct segment){.kind = kind, .id = grants[i].name};
	*ret_list = list;
	*ret_count = count;
	return 0;
}

struct credential_wish *credential_wish(struct call *c)
{
	if (!c->noted)
		c->noted = arena_new_array(c->arena, struct credential_wish, 1);
	return c->noted;
}

int credential_create(struct call *c, json_t *document)
{
	json_object_del(document, "roles");
	return role_field_read(c, "roles", &credential_wish(c)->roles);
}

/* What the body does not name, or names null, stays. */
int credential_update(struct call *c, const struct doc *old, json_t *document)
{
	enum grantee who = grantee_of(old->kind);
	const json_t *before = doc_json(c->arena, old->body);
	bool details = false, roles = json_object_get(c->body, "roles");
	for (size_t i = 0; i < 2 && words[who].details[i]; i++) {
		const char *name = words[who].details[i];
		const json_t *value = json_object_get(c->body, name);
		details |= json_is_string(value);
		if (json_is_null(value))
			json_put_str(document, name, json_field(before, name));
	}
	if (!roles)
		event_set_type(c, details ? words[who].details_changed : NULL);
	int result = details ? credential_check_ours(c, old) : 0;
	return result < 0 || !roles ? result : credential_create(c, document);
}

int credential_written(struct call *c, const struct doc *d, const struct doc *old)
{
	role_mask roles = credential_wish(c)->roles;
	enum grantee who = grantee_of(d->kind);
	bool in_org = !c->group.id.n;
	int result = 0;
	if (!roles)
		return 0;
	event_roles(c, roles);
	/* One that is made in a project is a member of its organization, no more. */
	if (!old && !in_org)
		result = grant_set(c->tx, c->arena, who, d->id, true, c->org.id, role_bit("ORG_MEMBER"));
	if (result == 0)
		result = grant_set(c->tx, c->arena, who, d->id, in_org, in_org ? c->org.id : c->group.id, roles);
	return result;
}

int credential_assign(struct call *c, const struct doc *d, role_mask more)
{
	role_mask roles;
	int result = grant_get(c->tx, c->arena, d->id, c->group.id, &roles);
	if (result < 0)
		return result;
	event_roles(c, roles | more);
	return grant_set(c->tx, c->arena, grantee_of(d->kind), d->id, false, c->group.id, roles | more);
}

int credential_drop(struct call *c, const struct doc *d)
{
	if (c->group.id.n)
		return grant_set(c->tx, c->arena, grantee_of(d->kind), d->id, false, c->group.id, 0);
	return resource_take_away(c->tx, c->arena, c->op->resource, d);
}

/* How long a secret is valid. */

/* The setting's value; 0: not set. */
static int64_t hours_most(struct arena *a, struct str settings)
{
	return json_number(doc_json(a, settings), "maxServiceAccountSecretValidityInHours");
}

int credential_secret_hours(struct call *c, struct str org_id, const json_t *from, const char *path, int64_t *ret_hours)
{
	int64_t hours = json_number(from, "secretExpiresAfterHours");
	struct doc settings = {.body = STR_NONE};
	int result = tx_get(c->tx, c->arena, "org_settings", org_id, &settings);
	if (result < 0 && result != -ENOENT)
		return result;
	int64_t most = hours_most(c->arena, settings.body);
	if (!most)
		most = hours_most(c->arena, str_of(resource_org_settings.defaults));
	*ret_hours = hours;
	if (hours >= SECRET_HOURS_LEAST && hours <= most)
		return 0;
	return call_fail_fault(c, arena_printf(c->arena, "%ssecretExpiresAfterHours", path),
	                       "must be from %d to %lld, which is the most that the organization permits, not %lld",
	                       SECRET_HOURS_LEAST, (long long)most, (long long)hours);
}

/* Forms. */

int credential_key_roles(struct tx *tx, struct arena *a, struct str id, struct str group_id, json_t *key)
{
	struct grant_row *rows;
	size_t count, kept = 0;
	int result = grants_of(tx, a, id, &rows, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (!group_id.n || rows[i].in_org || str_eq(rows[i].id, group_id))
			rows[kept++] = rows[i];
	json_put(key, "roles", assignments_json(rows, kept));
	return 0;
}

int credential_key_json(struct tx *tx, struct arena *a, struct str body, json_t **ret_key)
{
	json_t *key = doc_json(a, body);
	int result = credential_key_roles(tx, a, json_field(key, "id"), STR_NONE, key);
	if (result == 0)
		*ret_key = key;
	return result;
}

int credential_account_more(struct tx *tx, struct arena *a, struct str id, struct str scope, json_t *account)
{
	role_mask roles;
	struct doc *docs;
	size_t count;
	int result = grant_get(tx, a, id, scope, &roles);
	if (result == 0)
		result = tx_list_all(tx, a, "sa_secret", id, &docs, &count);
	if (result < 0)
		return result;
	json_t *secrets = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append(secrets, doc_json(a, docs[i].body));
	json_put(account, "roles", roles_json(roles));
	json_put(account, "secrets", secrets);
	return 0;
}

int credential_account_json(struct tx *tx, struct arena *a, const struct doc *account, json_t **ret_account)
{
	json_t *body = doc_json(a, account->body);
	int result = credential_account_more(tx, a, account->id, account->parent, body);
	if (result == 0)
		*ret_account = body;
	return result;
}
