/* Invitations as documents. A token is the document's id and 32 random bytes of which only the hash is kept, so that it
 * is found without an index, a copy of the store opens none, and it dies with its document. */
#include "api/users/users.h"

#include "api/federation/federation.h"
#include "outbox/mail.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "identity/gifts.h"
#include "identity/identity.h"

#include <errno.h>

#define INVITATION_DAYS 30
#define INVITATIONS_MAX 10000 /* an organization, or of a project's own */
#define INVITATION_TOKEN 67   /* characters: the id, then 32 random bytes as base64url */
#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define SECRET 32
#define BATCH 500

static const char *kind_of(bool in_org)
{
	return in_org ? "invitation" : "group_invitation";
}

static struct str scope_of(const struct member *i)
{
	return i->org_id.n ? i->org_id : i->group_id;
}

/* Reading. */

static int groups_read(struct tx *tx, struct arena *a, const json_t *list, struct member *i)
{
	i->groups = arena_new_array(a, struct grant_row, json_array_size(list) + 1);
	for (size_t k = 0; k < json_array_size(list); k++) {
		const json_t *entry = json_array_get(list, k);
		struct str id = json_field(entry, "groupId");
		struct doc project;
		int result = tx_get(tx, a, "project", id, &project);
		if (result == 0 && str_eq(project.parent, i->org_id))
			i->groups[i->group_count++] =
			        (struct grant_row){id, false, roles_from_json(json_object_get(entry, "roles"), false)};
		if (result < 0 && result != -ENOENT)
			return result;
	}
	return 0;
}

int invitation_of_doc(struct tx *tx, struct arena *a, const struct doc *d, struct member *ret_invitation)
{
	json_t *body = doc_json(a, d->body), *teams = json_object_get(body, "teamIds");
	bool in_org = str_is(d->kind, kind_of(true));
	struct member i = {.id = d->id,
	                   .user_id = d->name,
	                   .username = json_field(body, "username"),
	                   .rev = d->rev,
	                   .inviter = json_field(body, "inviterUsername"),
	                   .created_ms = d->created_ms,
	                   .expires_ms = json_integer_value(json_object_get(body, "expiresAtMs")),
	                   .rejected = json_is_true(json_object_get(body, "rejected")),
	                   .via_project = json_is_true(json_object_get(body, "viaProject")),
	                   .roles = roles_from_json(json_object_get(body, "roles"), in_org),
	                   .secret = d->secret,
	                   .membership = json_field(body, "membership"),
	                   .profile = json_object_get(body, "profile")};
	*(in_org ? &i.org_id : &i.group_id) = d->parent;
	i.teams = arena_new_array(a, struct str, json_array_size(teams) + 1);
	for (size_t k = 0; k < json_array_size(teams); k++) {
		const json_t *id = json_array_get(teams, k);
		i.teams[i.team_count++] = (struct str){json_string_value(id), json_string_length(id)};
	}
	int result = groups_read(tx, a, json_object_get(body, "groups"), &i);
	if (result == 0)
		*ret_invitation = i;
	return result;
}

int invitation_find(struct tx *tx, struct arena *a, bool in_org, struct str scope, struct str user_id,
                    struct member *ret_invitation)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, kind_of(in_org), scope, user_id, &d);
	return result < 0 ? result : invitation_of_doc(tx, a, &d, ret_invitation);
}

int invitation_behind(struct tx *tx, struct arena *a, const struct doc *pending, struct doc *ret_doc)
{
	return tx_get(tx, a, kind_of(true), json_field(doc_json(a, pending->body), "invitationId"), ret_doc);
}

int invitation_in_force(struct tx *tx, struct arena *a, const struct member *i)
{
	struct doc project;
	struct str membership;
	if (!member_is_pending(i))
		return -ENOENT;
	if (i->org_id.n)
		return 0;
	int result = tx_get(tx, a, "project", i->group_id, &project);
	if (result == 0)
		result = grant_id(tx, a, i->user_id, project.parent, &membership);
	if (result == 0 && i->membership.n && !str_eq(i->membership, membership))
		result = -ENOENT;
	return result;
}

/* An id can name either kind; which one is tried second does not matter. */
int invitation_by_token(struct tx *tx, struct arena *a, struct str token, struct member *ret_invitation)
{
	struct doc d;
	char hash[65];
	if (token.n != INVITATION_TOKEN || !id_is_valid((struct str){token.p, ID_LEN}))
		return -ENOENT;
	struct str id = {token.p, ID_LEN}, secret = {token.p + ID_LEN, token.n - ID_LEN};
	int result = tx_get(tx, a, kind_of(true), id, &d);
	if (result == -ENOENT)
		result = tx_get(tx, a, kind_of(false), id, &d);
	if (result < 0)
		return result;
	sha256_hex(secret, hash);
	if (!str_eq_secret(d.secret, str_of(hash)))
		return -ENOENT;
	result = invitation_of_doc(tx, a, &d, ret_invitation);
	return result < 0 ? result : invitation_in_force(tx, a, ret_invitation);
}

/* Writing. */

static json_t *teams_json(const struct member *i)
{
	json_t *teams = json_array();
	for (size_t k = 0; k < i->team_count; k++)
		json_add_str(teams, i->teams[k]);
	return teams;
}

static struct str body_of(struct arena *a, const struct member *i)
{
	json_t *body = doc_json(a, STR("{}")), *groups = json_array();
	for (size_t k = 0; k < i->group_count; k++)
		json_array_append_new(groups, json_pack("{s:s%, s:o}", "groupId", i->groups[k].id.p, i->groups[k].id.n,
		                                        "roles", roles_json(i->groups[k].roles)));
	json_put_str(body, "username", i->username);
	json_put_str(body, "inviterUsername", i->inviter);
	json_put(body, "expiresAtMs", json_integer(i->expires_ms));
	json_put(body, "roles", roles_json(i->roles));
	json_put(body, "groups", groups);
	json_put(body, "teamIds", teams_json(i));
	json_put(body, "viaProject", json_boolean(i->via_project));
	json_put(body, "rejected", json_boolean(i->rejected));
	if (i->membership.n)
		json_put_str(body, "membership", i->membership);
	if (i->profile)
		json_object_set(body, "profile", i->profile);
	return json_text(a, body);
}

struct doc invitation_doc(struct arena *a, const struct member *i)
{
	return (struct doc){.kind = str_of(kind_of(i->org_id.n)),
	                    .id = i->id,
	                    .parent = scope_of(i),
	                    .name = i->user_id,
	                    .created_ms = i->created_ms,
	                    .body = body_of(a, i),
	                    .secret = i->secret};
}

/* The invitation's places below projects and teams, but for those that `other` has too: kept, or taken away. */
static int pending_change(struct tx *tx, struct arena *a, const struct member *i, const struct member *other, bool keep)
{
	struct str body = keep ? arena_printf(a, "{\"invitationId\":\"%.*s\"}", STR_ARG(i->id)) : STR_NONE;
	int result = 0;
	for (size_t k = 0; result == 0 && k < i->group_count; k++)
		if (!member_group_roles(other, i->groups[k].id))
			result = link_set(tx, a, "group_pending", i->groups[k].id, i->user_id, body);
	for (size_t k = 0; result == 0 && k < i->team_count; k++)
		if (!member_in_team(other, i->teams[k]))
			result = link_set(tx, a, "team_pending", i->teams[k], i->user_id, body);
	return result;
}

/* An invitation gives what it holds: who accepts has been given it by who invited. */
static int gifts_tell(struct tx *tx, const struct member *old, const struct member *i)
{
	int result = gift_roles(tx, i->user_id, i->org_id.n, scope_of(i), old->roles, i->roles);
	for (size_t k = 0; result == 0 && k < old->group_count; k++)
		if (!member_group_roles(i, old->groups[k].id))
			result = gift_roles(tx, i->user_id, false, old->groups[k].id, old->groups[k].roles, 0);
	for (size_t k = 0; result == 0 && k < i->group_count; k++)
		result = gift_roles(tx, i->user_id, false, i->groups[k].id, member_group_roles(old, i->groups[k].id),
		                    i->groups[k].roles);
	for (size_t k = 0; result == 0 && k < i->team_count; k++)
		if (!member_in_team(old, i->teams[k]))
			result = gift_team(tx, i->teams[k], i->user_id);
	return result;
}

static int withdraw(struct tx *tx, struct arena *a, const struct member *i)
{
	int result = pending_change(tx, a, i, &(struct member){.active = false}, false);
	return result < 0 ? result : tx_delete(tx, kind_of(i->org_id.n), i->id);
}

int invitation_delete(struct tx *tx, struct arena *a, const struct member *i)
{
	struct member none = {.user_id = i->user_id, .org_id = i->org_id, .group_id = i->group_id};
	int result = gifts_tell(tx, i, &none);
	return result < 0 ? result : withdraw(tx, a, i);
}

int invitation_update(struct tx *tx, struct arena *a, const struct member *old, const struct member *i)
{
	struct doc d = invitation_doc(a, i);
	int result = gifts_tell(tx, old, i);
	if (result == 0)
		result = pending_change(tx, a, old, i, false);
	if (result == 0)
		result = pending_change(tx, a, i, old, true);
	return result < 0 ? result : tx_update(tx, &d);
}

static int group_drop(struct tx *tx, struct arena *a, struct str group_id, const struct doc *pending)
{
	struct doc d;
	struct member old, i;
	int result = invitation_behind(tx, a, pending, &d);
	if (result == 0)
		result = invitation_of_doc(tx, a, &d, &old);
	if (result < 0)
		return result;
	i = old;
	member_put_group(a, &i, group_id, 0);
	return i.via_project && i.group_count == 0 ? invitation_delete(tx, a, &old)
	                                           : invitation_update(tx, a, &old, &i);
}

int invitations_delete_group(struct tx *tx, struct arena *a, struct str group_id)
{
	static const char *const kinds[] = {"group_pending", "group_invitation"};
	int result = 0;
	for (size_t k = 0; k < 2; k++)
		for (size_t count = 1; result == 0 && count;) {
			struct doc *docs;
			result = tx_list(tx, a, kinds[k], group_id, 0, BATCH, &docs, &count);
			for (size_t i = 0; result == 0 && i < count; i++) {
				result = k == 0 ? group_drop(tx, a, group_id, &docs[i]) : 0;
				if (result == 0 || result == -ENOENT)
					result = tx_delete(tx, kinds[k], docs[i].id);
				if (result == -ENOENT) /* it went with the invitation */
					result = 0;
			}
		}
	return result;
}

/* The letter. */

struct announcement {
	struct str username, place, inviter, link;
	char until[CLOCK_TEXT];
	struct announcement *next; /* of the same call */
};

static void announce_one(struct call *c, const struct announcement *n)
{
	if (!c->service->mail) {
		/* The only place where a token reaches the log: without a mail server there is no other way to hand it
		 * over. */
		log_info("invitation: %.*s may accept until %s at %.*s", STR_ARG(n->username), n->until,
		         STR_ARG(n->link));
		return;
	}
	struct str text =
	        arena_printf(c->arena,
	                     "%.*s invites you to %.*s.\n\nTo accept or decline, open\n\n%.*s\n\nThe invitation is for "
	                     "%.*s and ends at %s.\nIf you did not expect it, ignore this letter.\n",
	                     STR_ARG(n->inviter), STR_ARG(n->place), STR_ARG(n->link), STR_ARG(n->username), n->until);
	mail_send_for(c->service->mail, c->org.id, n->username, STR("You are invited to Steward"), text);
}

static void announce(struct call *c, void *arg)
{
	for (const struct announcement *n = arg; n; n = n->next)
		announce_one(c, n);
}

static int place_name(struct call *c, const struct member *i, struct str *ret_place)
{
	struct doc d;
	bool in_org = i->org_id.n;
	int result = tx_get(c->tx, c->arena, in_org ? "org" : "project", scope_of(i), &d);
	if (result == 0)
		*ret_place = arena_printf(c->arena, "the %s \"%.*s\"", in_org ? "organization" : "project",
		                          STR_ARG(json_field(doc_json(c->arena, d.body), "name")));
	return result;
}

/* Who invites, as an address: keys and service accounts have none, so theirs is one that cannot be delivered to. */
static int inviter_of(struct call *c, struct str *ret_inviter)
{
	static const char *const domains[] = {
	        [PRINCIPAL_API_KEY] = "api-key.invalid", [PRINCIPAL_SERVICE_ACCOUNT] = "service-account.invalid"};
	const struct principal *p = c->caller;
	if (p->kind != PRINCIPAL_USER) {
		*ret_inviter = arena_printf(c->arena, "%s@%s", p->name, domains[p->kind]);
		return 0;
	}
	struct doc user;
	int result = tx_get(c->tx, c->arena, "user", str_of(p->id), &user);
	if (result == 0)
		*ret_inviter = json_field(doc_json(c->arena, user.body), "username");
	return result;
}

static int replace_old(struct call *c, const struct member *i)
{
	struct member old;
	bool in_org = i->org_id.n;
	int64_t count = 0;
	int result = invitation_find(c->tx, c->arena, in_org, scope_of(i), i->user_id, &old);
	if (result == 0)
		return withdraw(c->tx, c->arena, &old);
	if (result == -ENOENT)
		result = tx_count(c->tx, kind_of(in_org), scope_of(i), &count);
	if (result == 0 && count >= INVITATIONS_MAX) {
		call_fail(c, 409, "TOO_MANY_INVITATIONS", "There are %d invitations already. Remove some first.",
		          INVITATIONS_MAX);
		return call_fail_param(c, arena_printf(c->arena, "%d", INVITATIONS_MAX));
	}
	return result;
}

/* Makes the token; only its link has all of it. */
static void token_make(struct call *c, struct member *i, struct announcement *n)
{
	struct id id = id_new();
	unsigned char bytes[SECRET];
	char secret[BASE64_TEXT(SECRET)], hash[65];
	random_bytes(bytes, sizeof bytes);
	base64url_encode(bytes, sizeof bytes, secret);
	sha256_hex(str_of(secret), hash);
	i->id = arena_dup(c->arena, id_str(&id));
	i->secret = arena_dup(c->arena, str_of(hash));
	n->link = arena_printf(c->arena, "%s" INVITATIONS_LINK "%.*s%s", c->service->base_url, STR_ARG(i->id), secret);
}

int invitation_add(struct call *c, struct member *i)
{
	struct announcement *n = arena_new_of(c->arena, struct announcement);
	int result = i->org_id.n ? federation_admit(c, i->org_id, i->username) : 0;
	if (result == 0)
		result = replace_old(c, i);
	if (result == 0)
		result = inviter_of(c, &i->inviter);
	if (result == 0)
		result = place_name(c, i, &n->place);
	if (result < 0)
		return result;
	token_make(c, i, n);
	i->created_ms = clock_now_ms();
	i->expires_ms = i->created_ms + INVITATION_DAYS * DAY_MS;
	i->rev = 1;
	struct doc d = invitation_doc(c->arena, i);
	struct member none = {.active = false};
	result = gifts_tell(c->tx, &none, i);
	if (result == 0)
		result = tx_insert(c->tx, &d);
	if (result == 0)
		result = pending_change(c->tx, c->arena, i, &none, true);
	n->username = i->username;
	n->inviter = i->inviter;
	clock_format(i->expires_ms, n->until);
	n->next = c->committed == announce ? c->committed_arg : NULL;
	c->committed = announce;
	c->committed_arg = n;
	return result;
}

/* The schemas' forms. */

static void org_fields(const struct member *i, struct str name, json_t *json)
{
	json_t *groups = json_array();
	for (size_t k = 0; k < i->group_count; k++)
		for (role_mask rest = i->groups[k].roles; rest; rest &= rest - 1)
			json_array_append_new(groups,
			                      json_pack("{s:s%, s:s}", "groupId", i->groups[k].id.p, i->groups[k].id.n,
			                                "groupRole", role_names[__builtin_ctzll(rest)]));
	json_put_str(json, "orgId", i->org_id);
	json_put_str(json, "orgName", name);
	json_put(json, "roles", roles_json(i->roles));
	json_put(json, "groupRoleAssignments", groups);
	json_put(json, "teamIds", teams_json(i));
}

int invitation_view(struct tx *tx, struct arena *a, const struct member *i, const struct doc *group, json_t *json)
{
	char created[CLOCK_TEXT], expires[CLOCK_TEXT];
	struct doc place = {.rev = 0};
	int result = group ? 0 : tx_get(tx, a, "org", i->org_id, &place);
	if (result < 0)
		return result;
	struct str name = json_field(doc_json(a, group ? group->body : place.body), "name");
	clock_format(i->created_ms, created);
	clock_format(i->expires_ms, expires);
	json_put_str(json, "id", i->id);
	json_put_str(json, "username", i->username);
	json_put_str(json, "inviterUsername", i->inviter);
	json_put_z(json, "createdAt", created);
	json_put_z(json, "expiresAt", expires);
	if (!group) {
		org_fields(i, name, json);
		return 0;
	}
	json_put_str(json, "groupId", group->id);
	json_put_str(json, "groupName", name);
	json_put(json, "roles", roles_json(i->org_id.n ? member_group_roles(i, group->id) : i->roles));
	return 0;
}
