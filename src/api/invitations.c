/* Invitations as documents. A token is the document's id and 32 random bytes of which only the hash is kept, so that it is
 * found without an index, a copy of the store opens none, and it dies with its document. */
#include "api/invitations.h"

#include "api/federations.h"
#include "api/mail.h"
#include "api/members.h"
#include "api/verbs.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "gate/authenticate.h"
#include "gate/gifts.h"

#include <errno.h>

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define SECRET 32
#define BATCH 500

static const char *kind_of(bool in_org)
{
	return in_org ? "invitation" : "group_invitation";
}

const char *invitation_status_name(enum invitation_status s)
{
	static const char *const names[] = {"PENDING", "INVITATION_EXPIRED", "INVITATION_REJECTED"};
	return names[s];
}

enum invitation_status invitation_status(const struct invitation *i)
{
	if (i->rejected)
		return INVITATION_REJECTED;
	return clock_now_ms() >= i->expires_ms ? INVITATION_EXPIRED : INVITATION_PENDING;
}

/* Reading. */

static int groups_read(struct tx *tx, struct arena *a, const json_t *list, struct invitation *i)
{
	i->groups = arena_new_array(a, struct grant_row, json_array_size(list) + 1);
	for (size_t k = 0; k < json_array_size(list); k++) {
		const json_t *entry = json_array_get(list, k);
		struct str id = arena_dup(a, json_field(entry, "groupId"));
		struct doc project;
		int result = tx_get(tx, a, "project", id, &project);
		if (result == -ENOENT || (result == 0 && !str_eq(project.parent, i->org_id)))
			continue;
		if (result < 0)
			return result;
		i->groups[i->group_count++] =
		        (struct grant_row){id, false, roles_from_json(json_object_get(entry, "roles"), false)};
	}
	return 0;
}

int invitation_of_doc(struct tx *tx, struct arena *a, const struct doc *d, struct invitation *ret_invitation)
{
	json_t *body = doc_json(a, d->body), *teams = json_object_get(body, "teamIds");
	bool in_org = str_is(d->kind, kind_of(true));
	struct invitation i = {.id = d->id,
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
                    struct invitation *ret_invitation)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, kind_of(in_org), scope, user_id, &d);
	return result < 0 ? result : invitation_of_doc(tx, a, &d, ret_invitation);
}

int invitation_get(struct tx *tx, struct arena *a, bool in_org, struct str id, struct invitation *ret_invitation)
{
	struct doc d;
	int result = tx_get(tx, a, kind_of(in_org), id, &d);
	return result < 0 ? result : invitation_of_doc(tx, a, &d, ret_invitation);
}

int invitation_in_force(struct tx *tx, struct arena *a, const struct invitation *i)
{
	struct doc project;
	struct str membership;
	if (invitation_status(i) != INVITATION_PENDING)
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
int invitation_by_token(struct tx *tx, struct arena *a, struct str token, struct invitation *ret_invitation)
{
	struct invitation i;
	char hash[65];
	if (token.n != INVITATION_TOKEN)
		return -ENOENT;
	struct str id = {token.p, ID_LEN}, secret = {token.p + ID_LEN, token.n - ID_LEN};
	if (!id_is_valid(id))
		return -ENOENT;
	int result = invitation_get(tx, a, true, id, &i);
	if (result == -ENOENT)
		result = invitation_get(tx, a, false, id, &i);
	if (result < 0)
		return result;
	sha256_hex(secret, hash);
	if (!str_eq_secret(i.secret, str_of(hash)))
		return -ENOENT;
	result = invitation_in_force(tx, a, &i);
	if (result == 0)
		*ret_invitation = i;
	return result;
}

role_mask invitation_group_roles(const struct invitation *i, struct str group_id)
{
	for (size_t k = 0; k < i->group_count; k++)
		if (str_eq(i->groups[k].id, group_id))
			return i->groups[k].roles;
	return 0;
}

void invitation_set_group(struct arena *a, struct invitation *i, struct str group_id, role_mask roles)
{
	struct grant_row *groups = arena_new_array(a, struct grant_row, i->group_count + 1);
	size_t count = 0;
	bool found = false;
	for (size_t k = 0; k < i->group_count; k++) {
		groups[count] = i->groups[k];
		if (str_eq(groups[count].id, group_id)) {
			groups[count].roles = roles;
			found = true;
		}
		count += groups[count].roles != 0;
	}
	if (!found && roles)
		groups[count++] = (struct grant_row){group_id, false, roles};
	i->groups = groups;
	i->group_count = count;
}

/* Writing. */

static struct str body_of(struct arena *a, const struct invitation *i)
{
	json_t *groups = json_array(), *teams = json_array();
	for (size_t k = 0; k < i->group_count; k++)
		json_array_append_new(groups, json_pack("{s:s%, s:o}", "groupId", i->groups[k].id.p, i->groups[k].id.n,
		                                        "roles", roles_json(i->groups[k].roles)));
	for (size_t k = 0; k < i->team_count; k++)
		json_array_append_new(teams, json_stringn(i->teams[k].p, i->teams[k].n));
	json_t *body = json_pack("{s:s%, s:s%, s:I, s:o, s:o, s:o, s:b, s:b}", "username", i->username.p, i->username.n,
	                         "inviterUsername", i->inviter.p, i->inviter.n, "expiresAtMs",
	                         (json_int_t)i->expires_ms, "roles", roles_json(i->roles), "groups", groups, "teamIds",
	                         teams, "viaProject", i->via_project, "rejected", i->rejected);
	if (i->membership.n)
		json_object_set_new(body, "membership", json_stringn(i->membership.p, i->membership.n));
	if (i->profile)
		json_object_set(body, "profile", i->profile);
	struct str text = json_text(a, body);
	json_decref(body);
	return text;
}

/* The invitation's place below a project or a team ("group_pending", "team_pending"). */
static int pending_set(struct tx *tx, struct arena *a, const struct invitation *i, const char *kind, struct str parent,
                       bool keep)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, kind, parent, i->user_id, &d);
	if (result == 0 && !keep)
		return tx_delete(tx, kind, d.id);
	if (result != -ENOENT || !keep)
		return result == -ENOENT ? 0 : result;
	struct id id = id_new();
	d = (struct doc){.kind = str_of(kind),
	                 .id = arena_dup(a, id_str(&id)),
	                 .parent = parent,
	                 .name = i->user_id,
	                 .created_ms = clock_now_ms(),
	                 .body = arena_printf(a, "{\"invitationId\":\"%.*s\"}", STR_ARG(i->id))};
	return tx_insert(tx, &d);
}

static int pending_add(struct tx *tx, struct arena *a, const struct invitation *i)
{
	int result = 0;
	for (size_t k = 0; result == 0 && k < i->group_count; k++)
		result = pending_set(tx, a, i, "group_pending", i->groups[k].id, true);
	for (size_t k = 0; result == 0 && k < i->team_count; k++)
		result = pending_set(tx, a, i, "team_pending", i->teams[k], true);
	return result;
}

static bool has_team(const struct invitation *i, struct str team_id)
{
	for (size_t k = 0; k < i->team_count; k++)
		if (str_eq(i->teams[k], team_id))
			return true;
	return false;
}

/* Those of `i`, but for the projects and teams of `kept`. */
static int pending_drop(struct tx *tx, struct arena *a, const struct invitation *i, const struct invitation *kept)
{
	int result = 0;
	for (size_t k = 0; result == 0 && k < i->group_count; k++)
		if (!kept || !invitation_group_roles(kept, i->groups[k].id))
			result = pending_set(tx, a, i, "group_pending", i->groups[k].id, false);
	for (size_t k = 0; result == 0 && k < i->team_count; k++)
		if (!kept || !has_team(kept, i->teams[k]))
			result = pending_set(tx, a, i, "team_pending", i->teams[k], false);
	return result;
}

/* An invitation gives what it holds: who accepts has been given it by who invited. */
static int gifts_tell(struct tx *tx, const struct invitation *old, const struct invitation *i)
{
	bool in_org = i->org_id.n;
	int result = gift_roles(tx, i->user_id, in_org, in_org ? i->org_id : i->group_id, old->roles, i->roles);
	for (size_t k = 0; result == 0 && k < old->group_count; k++)
		if (!invitation_group_roles(i, old->groups[k].id))
			result = gift_roles(tx, i->user_id, false, old->groups[k].id, old->groups[k].roles, 0);
	for (size_t k = 0; result == 0 && k < i->group_count; k++)
		result = gift_roles(tx, i->user_id, false, i->groups[k].id,
		                    invitation_group_roles(old, i->groups[k].id), i->groups[k].roles);
	for (size_t k = 0; result == 0 && k < i->team_count; k++)
		if (!has_team(old, i->teams[k]))
			result = gift_team(tx, i->teams[k], i->user_id);
	return result;
}

static int withdraw(struct tx *tx, struct arena *a, const struct invitation *i)
{
	int result = pending_drop(tx, a, i, NULL);
	return result < 0 ? result : tx_delete(tx, kind_of(i->org_id.n), i->id);
}

int invitation_delete(struct tx *tx, struct arena *a, const struct invitation *i)
{
	struct invitation none = {.user_id = i->user_id, .org_id = i->org_id, .group_id = i->group_id};
	int result = gifts_tell(tx, i, &none);
	return result < 0 ? result : withdraw(tx, a, i);
}

int invitation_update(struct tx *tx, struct arena *a, const struct invitation *i)
{
	bool in_org = i->org_id.n;
	struct invitation old;
	int result = invitation_get(tx, a, in_org, i->id, &old);
	if (result == 0)
		result = gifts_tell(tx, &old, i);
	if (result == 0)
		result = pending_drop(tx, a, &old, i);
	if (result == 0)
		result = pending_add(tx, a, i);
	struct doc d = {.kind = str_of(kind_of(in_org)),
	                .id = i->id,
	                .name = i->user_id,
	                .body = body_of(a, i),
	                .secret = i->secret};
	return result < 0 ? result : tx_update(tx, &d);
}

int invitation_drop_group(struct tx *tx, struct arena *a, struct invitation *i, struct str group_id)
{
	struct invitation old = *i;
	invitation_set_group(a, i, group_id, 0);
	if (i->via_project && i->group_count == 0)
		return invitation_delete(tx, a, &old);
	return invitation_update(tx, a, i);
}

static int delete_below(struct tx *tx, struct arena *a, struct str group_id, const struct doc *d)
{
	struct invitation i;
	if (str_is(d->kind, kind_of(false)))
		return tx_delete(tx, kind_of(false), d->id);
	int result = invitation_get(tx, a, true, json_field(doc_json(a, d->body), "invitationId"), &i);
	if (result == 0)
		result = invitation_drop_group(tx, a, &i, group_id);
	if (result == 0 || result == -ENOENT)
		result = tx_delete(tx, "group_pending", d->id);
	return result == -ENOENT ? 0 : result;
}

int invitations_delete_group(struct tx *tx, struct arena *a, struct str group_id)
{
	static const char *const kinds[] = {"group_pending", "group_invitation"};
	int result = 0;
	for (size_t k = 0; k < 2; k++)
		for (size_t count = 1; result == 0 && count;) {
			struct doc *docs;
			result = tx_list(tx, a, kinds[k], group_id, 0, BATCH, &docs, &count);
			for (size_t i = 0; result == 0 && i < count; i++)
				result = delete_below(tx, a, group_id, &docs[i]);
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
		/* The only place where a token reaches the log: without a mail server there is no other way to hand it over. */
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

static int place_name(struct call *c, const struct invitation *i, struct str *ret_place)
{
	struct doc d;
	bool in_org = i->org_id.n;
	int result = tx_get(c->tx, c->arena, in_org ? "org" : "project", in_org ? i->org_id : i->group_id, &d);
	if (result < 0)
		return result;
	struct str name = json_field(doc_json(c->arena, d.body), "name");
	*ret_place = arena_printf(c->arena, "the %s \"%.*s\"", in_org ? "organization" : "project", STR_ARG(name));
	return 0;
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

static int replace_old(struct call *c, const struct invitation *i)
{
	struct invitation old;
	bool in_org = i->org_id.n;
	struct str scope = in_org ? i->org_id : i->group_id;
	int64_t count = 0;
	int result = invitation_find(c->tx, c->arena, in_org, scope, i->user_id, &old);
	if (result == 0)
		return withdraw(c->tx, c->arena, &old);
	if (result == -ENOENT)
		result = tx_count(c->tx, kind_of(in_org), scope, &count);
	if (result == 0 && count >= INVITATIONS_MAX) {
		call_fail(c, 409, "TOO_MANY_INVITATIONS", "There are %d invitations already. Remove some first.",
		          INVITATIONS_MAX);
		return call_fail_param(c, arena_printf(c->arena, "%d", INVITATIONS_MAX));
	}
	return result;
}

int invitation_add(struct call *c, struct invitation *i)
{
	struct id id = id_new();
	unsigned char bytes[SECRET];
	char secret[BASE64_TEXT(SECRET)], hash[65];
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
	random_bytes(bytes, sizeof bytes);
	base64url_encode(bytes, sizeof bytes, secret);
	sha256_hex(str_of(secret), hash);
	i->id = arena_dup(c->arena, id_str(&id));
	i->created_ms = clock_now_ms();
	i->expires_ms = i->created_ms + INVITATION_DAYS * DAY_MS;
	i->secret = arena_dup(c->arena, str_of(hash));
	i->rev = 1;
	struct doc d = {.kind = str_of(kind_of(i->org_id.n)),
	                .id = i->id,
	                .parent = i->org_id.n ? i->org_id : i->group_id,
	                .name = i->user_id,
	                .created_ms = i->created_ms,
	                .body = body_of(c->arena, i),
	                .secret = i->secret};
	result = gifts_tell(c->tx, &(struct invitation){.rev = 0}, i);
	if (result == 0)
		result = tx_insert(c->tx, &d);
	if (result == 0)
		result = pending_add(c->tx, c->arena, i);
	if (result < 0)
		return result;
	n->username = i->username;
	n->inviter = i->inviter;
	n->link = arena_printf(c->arena, "%s" INVITATIONS_LINK "%.*s%s", c->service->base_url, STR_ARG(i->id), secret);
	clock_format(i->expires_ms, n->until);
	n->next = c->committed == announce ? c->committed_arg : NULL;
	c->committed = announce;
	c->committed_arg = n;
	return 0;
}

/* The schemas' forms. */

static void times_set(json_t *json, const struct invitation *i)
{
	char text[CLOCK_TEXT];
	clock_format(i->created_ms, text);
	json_object_set_new(json, "createdAt", json_string(text));
	clock_format(i->expires_ms, text);
	json_object_set_new(json, "expiresAt", json_string(text));
}

int invitation_org_json(struct tx *tx, struct arena *a, const struct invitation *i, json_t **ret_json)
{
	struct doc org;
	int result = tx_get(tx, a, "org", i->org_id, &org);
	if (result < 0)
		return result;
	struct str name = json_field(doc_json(a, org.body), "name");
	json_t *json = doc_json(a, STR("{}")), *groups = json_array(), *teams = json_array();
	for (size_t k = 0; k < i->group_count; k++)
		for (role_mask rest = i->groups[k].roles; rest; rest &= rest - 1)
			json_array_append_new(groups,
			                      json_pack("{s:s%, s:s}", "groupId", i->groups[k].id.p, i->groups[k].id.n,
			                                "groupRole", role_names[__builtin_ctzll(rest)]));
	for (size_t k = 0; k < i->team_count; k++)
		json_array_append_new(teams, json_stringn(i->teams[k].p, i->teams[k].n));
	json_object_set_new(json, "id", json_stringn(i->id.p, i->id.n));
	json_object_set_new(json, "orgId", json_stringn(i->org_id.p, i->org_id.n));
	json_object_set_new(json, "orgName", json_stringn(name.p, name.n));
	json_object_set_new(json, "username", json_stringn(i->username.p, i->username.n));
	json_object_set_new(json, "inviterUsername", json_stringn(i->inviter.p, i->inviter.n));
	json_object_set_new(json, "roles", roles_json(i->roles));
	json_object_set_new(json, "groupRoleAssignments", groups);
	json_object_set_new(json, "teamIds", teams);
	times_set(json, i);
	*ret_json = json;
	return 0;
}

int invitation_group_json(struct tx *tx, struct arena *a, const struct invitation *i, const struct doc *group,
                          json_t **ret_json)
{
	struct str name = json_field(doc_json(a, group->body), "name");
	json_t *json = doc_json(a, STR("{}"));
	role_mask roles = i->org_id.n ? invitation_group_roles(i, group->id) : i->roles;
	json_object_set_new(json, "id", json_stringn(i->id.p, i->id.n));
	json_object_set_new(json, "groupId", json_stringn(group->id.p, group->id.n));
	json_object_set_new(json, "groupName", json_stringn(name.p, name.n));
	json_object_set_new(json, "username", json_stringn(i->username.p, i->username.n));
	json_object_set_new(json, "inviterUsername", json_stringn(i->inviter.p, i->inviter.n));
	json_object_set_new(json, "roles", roles_json(roles));
	times_set(json, i);
	*ret_json = json;
	return 0;
}
