/* What the verbs do alike for API keys and service accounts. Both belong to an organization, and projects have them
 * assigned: a call below a project sees those that have roles in it, changes their roles there, and takes only these
 * away. The roles are grants, no part of the document. */
#include "api/credentials/credentials.h"

#include "api/users/users.h"
#include "trail/events.h"

#include <errno.h>

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
		if (!harmless) {
			call_fail(c, 403, words[who].not_ours,
			          "%s has roles outside of this project: its organization's owners manage it.",
			          words[who].what);
			return call_fail_param(c, rows[i].id);
		}
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
	return role_list_read(c, json_object_get(c->body, "roles"), "roles", !c->group.id.n,
	                      &credential_wish(c)->roles);
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

int credential_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	enum grantee who = grantee_of(d->kind);
	bool key = who == GRANTEE_KEY;
	struct str public_name = document_text(a, d->body, key ? STR("publicKey") : STR("clientId"));
	struct doc *holders;
	size_t count = 0;
	int result = tx_ref_delete(tx, key ? "api_key_public" : "service_account_client", public_name);
	if (result == 0 || result == -ENOENT)
		result = tx_list_all(tx, a, "credential_holder", d->id, &holders, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = tx_delete(tx, "credential_holder", holders[i].id);
	if (result == 0)
		result = grants_delete_grantee(tx, a, who, d->id);
	tx_touch_identity(tx);
	return result;
}
