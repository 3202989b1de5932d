/* Invitations as documents. A token is the document's id and 32 random bytes of which only the hash is kept, so that it
 * is found without an index, a copy of the store opens none, and it dies with its document. */
#include "api/users/users.h"

#include "api/federation/federation.h"
#include "outbox/outbox.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "identity/gifts.h"
#include "identity/identity.h"

#include <errno.h>

#define INVITATION_DAYS 30
/* Of an organization, or of a project's own, and roles in projects that one may give. Together they bound what has no
 * pages: the list of an organization's invitations (some 35 MB), and the work of deleting a project that all name. */
#define INVITATIONS_MAX 500
#define ASSIGNMENTS_MAX 1000
/* How much of invitations one write reads to take a project out of them: some hundreds with one place each. A deletion
 * reads less, and changes only small ones: what the others say of the project counts for nothing once it is gone. To
 * parse and write a wide one takes a millisecond of the one writer. */
#define STRIKE_BYTES ((size_t)96 * 1024)
#define STRIKE_DELETED_BYTES ((size_t)48 * 1024)
#define STRIKE_SMALL 2048
#define INVITATION_TOKEN 67 /* characters: the id, then 32 random bytes as base64url */
#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define SECRET 32
#define BATCH 500

#define PENDING_KIND "group_pending"

static const char *kind_of(bool in_org)
{
	return in_org ? "invitation" : "group_invitation";
}

static struct str scope_of(const struct member *i)
{
	return i->org_id.n ? i->org_id : i->group_id;
}

/* Reading. */

/* Which projects and teams an organization has, to read many of its invitations. */
struct known_places {
	struct str org_id;
	json_t *ids;
};

int known_places_read(struct tx *tx, struct arena *a, struct str org_id, struct known_places **ret_places)
{
	static const char *const kinds[] = {"project", "team"};
	struct known_places *known = arena_new_of(a, struct known_places);
	*known = (struct known_places){.org_id = arena_dup(a, org_id), .ids = json_new(a)};
	for (size_t k = 0; k < 2; k++) {
		struct doc *docs;
		size_t count = 0;
		int result = tx_heads(tx, a, kinds[k], &org_id, &docs, &count);
		if (result < 0)
			return result;
		for (size_t i = 0; i < count; i++)
			json_put(known->ids, docs[i].id.p, json_true());
	}
	*ret_places = known;
	return 0;
}

static bool known_places_have(const struct known_places *known, struct str id)
{
	return json_object_getn(known->ids, id.p, id.n);
}

static int place_read(struct tx *tx, struct arena *a, const struct known_places *known, struct member *i,
                      struct place p)
{
	if (!known || !str_eq(known->org_id, i->org_id))
		return member_add_place(tx, a, i, p);
	if (known_places_have(known, p.id))
		i->places[i->place_count++] = p;
	return 0;
}

static void invitation_read_ahead(struct tx *tx, struct arena *a, const json_t *groups, const json_t *teams,
                                  struct str user_id)
{
	struct place *places = arena_new_array(a, struct place, json_array_size(groups) + json_array_size(teams) + 1);
	size_t n = 0;
	for (size_t k = 0; k < json_array_size(groups); k++)
		places[n++] = (struct place){.id = json_field(json_array_get(groups, k), "groupId")};
	for (size_t k = 0; k < json_array_size(teams); k++)
		places[n++] = (struct place){.id = json_item(teams, k), .is_team = true};
	places_read_ahead(tx, a, places, n, user_id);
}

/* `to_change`: what its changes will ask is read ahead too. */
static int invitation_read(struct tx *tx, struct arena *a, const struct doc *d, const struct known_places *known,
                           bool to_change, struct member *ret_invitation)
{
	struct doc behind;
	if (str_is_one_of("group_pending|team_pending", d->kind)) {
		int result = tx_get(tx, a, kind_of(true), json_field(doc_json(a, d->body), "invitationId"), &behind);
		if (result < 0)
			return result;
		d = &behind;
	}
	const json_t *body = doc_json(a, d->body);
	const json_t *groups = json_object_get(body, "groups"), *teams = json_object_get(body, "teamIds");
	bool in_org = str_is(d->kind, kind_of(true));
	struct member i = {.id = d->id,
	                   .user_id = d->name,
	                   .username = json_field(body, "username"),
	                   .rev = d->rev,
	                   .inviter = json_field(body, "inviterUsername"),
	                   .created_ms = d->created_ms,
	                   .expires_ms = json_number(body, "expiresAtMs"),
	                   .rejected = json_flag(body, "rejected"),
	                   .via_project = json_flag(body, "viaProject"),
	                   .roles = roles_from_json(json_object_get(body, "roles"), in_org),
	                   .secret = d->secret,
	                   .membership = json_field(body, "membership"),
	                   .profile = json_object_get(body, "profile")};
	*(in_org ? &i.org_id : &i.group_id) = d->parent;
	i.places = arena_new_array(a, struct place, json_array_size(groups) + json_array_size(teams) + 1);
	if (!known)
		invitation_read_ahead(tx, a, groups, teams, to_change ? i.user_id : STR_NONE);
	int result = 0;
	for (size_t k = 0; result == 0 && k < json_array_size(groups); k++) {
		const json_t *entry = json_array_get(groups, k);
		role_mask roles = roles_from_json(json_object_get(entry, "roles"), false);
		result = place_read(tx, a, known, &i, (struct place){json_field(entry, "groupId"), false, roles});
	}
	for (size_t k = 0; result == 0 && k < json_array_size(teams); k++)
		result = place_read(tx, a, known, &i, (struct place){json_item(teams, k), true, IN_TEAM});
	if (result == 0)
		*ret_invitation = i;
	return result;
}

int invitation_of_doc(struct tx *tx, struct arena *a, const struct doc *d, struct member *ret_invitation)
{
	return invitation_read(tx, a, d, NULL, true, ret_invitation);
}

int invitation_of_doc_among(struct tx *tx, struct arena *a, const struct doc *d, const struct known_places *known,
                            struct member *ret_invitation)
{
	return invitation_read(tx, a, d, known, false, ret_invitation);
}

int invitation_find(struct tx *tx, struct arena *a, bool in_org, struct str scope, struct str user_id,
                    struct member *ret_invitation)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, kind_of(in_org), scope, user_id, &d);
	return result < 0 ? result : invitation_of_doc(tx, a, &d, ret_invitation);
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

struct doc invitation_doc(struct arena *a, const struct member *i)
{
	json_t *body = json_new(a);
	json_put_str(body, "username", i->username);
	json_put_str(body, "inviterUsername", i->inviter);
	json_put(body, "expiresAtMs", json_integer(i->expires_ms));
	json_put(body, "roles", roles_json(i->roles));
	json_put(body, "groups", member_groups_json(i, "roles"));
	json_put(body, "teamIds", member_teams_json(i));
	json_put(body, "viaProject", json_boolean(i->via_project));
	json_put(body, "rejected", json_boolean(i->rejected));
	if (i->membership.n)
		json_put_str(body, "membership", i->membership);
	if (i->profile)
		json_object_set(body, "profile", i->profile);
	return (struct doc){.kind = str_of(kind_of(i->org_id.n)),
	                    .id = i->id,
	                    .parent = scope_of(i),
	                    .name = i->user_id,
	                    .created_ms = i->created_ms,
	                    .body = json_text(a, body),
	                    .secret = i->secret};
}

/* Lists the invitation below the projects and teams that it names. */
static int places_list(struct tx *tx, struct arena *a, const struct member *old, const struct member *i)
{
	struct change *changes;
	size_t count = member_changes(a, old, i, &changes);
	struct str body = arena_printf(a, "{\"invitationId\":\"%.*s\"}", STR_ARG(i->id));
	int result = 0;
	for (size_t k = 0; result == 0 && k < count; k++) {
		const char *kind = changes[k].is_team ? "team_pending" : PENDING_KIND;
		struct doc d = doc_new(a, kind, changes[k].id, i->user_id, body);
		/* A new place has no document yet: that is not asked, because each question is a round trip. */
		result = !changes[k].was ? tx_insert(tx, &d) : -EEXIST;
		if (result == -EEXIST)
			result =
			        tx_set_by_name(tx, a, kind, changes[k].id, i->user_id, changes[k].is ? body : STR_NONE);
	}
	return result;
}

/* An invitation gives what it holds: who accepts has been given it by who invited. */
static int gifts_tell(struct tx *tx, struct arena *a, const struct member *old, const struct member *i)
{
	struct change *changes;
	size_t count = member_changes(a, old, i, &changes);
	int result = gift_roles(tx, i->user_id, i->org_id.n, scope_of(i), old->roles, i->roles);
	for (size_t k = 0; result == 0 && k < count; k++)
		if (!changes[k].is_team)
			result = gift_roles(tx, i->user_id, false, changes[k].id, changes[k].was, changes[k].is);
		else if (changes[k].is)
			result = gift_team(tx, changes[k].id, i->user_id);
	return result;
}

static int withdraw(struct tx *tx, struct arena *a, const struct member *i, const struct member *none)
{
	int result = places_list(tx, a, i, none);
	return result < 0 ? result : tx_delete(tx, kind_of(i->org_id.n), i->id);
}

int invitation_delete(struct tx *tx, struct arena *a, const struct member *i)
{
	struct member none = {.user_id = i->user_id, .org_id = i->org_id, .group_id = i->group_id};
	int result = gifts_tell(tx, a, i, &none);
	return result < 0 ? result : withdraw(tx, a, i, &none);
}

int invitation_update(struct tx *tx, struct arena *a, const struct member *old, const struct member *i)
{
	struct doc d = invitation_doc(a, i);
	int result = gifts_tell(tx, a, old, i);
	if (result == 0)
		result = places_list(tx, a, old, i);
	return result < 0 ? result : tx_update(tx, &d);
}

/* Takes a project out of an invitation, and the invitation away when it was to nothing else. The other places are not
 * looked up. */
static int group_strike(struct tx *tx, struct arena *a, struct doc *d, struct str group_id)
{
	json_t *body = doc_json(a, d->body), *groups = json_object_get(body, "groups");
	for (size_t i = json_array_size(groups); i-- > 0;)
		if (str_eq(json_field(json_array_get(groups, i), "groupId"), group_id))
			json_array_remove(groups, i);
	if (json_flag(body, "viaProject") && !json_array_size(groups))
		return tx_delete(tx, kind_of(true), d->id);
	d->body = json_text(a, body);
	return tx_update(tx, d);
}

struct strike {
	size_t bytes;    /* that may still be read; 0 afterwards: not all were */
	size_t body_max; /* larger ones are left as they are */
};

static int pendings_strike(struct tx *tx, struct arena *a, struct str group_id, const struct doc *pendings,
                           size_t count, struct strike *s)
{
	struct doc_question *asked = arena_new_array(a, struct doc_question, count + 1);
	struct doc d;
	int result = 0;
	for (size_t i = 0; i < count; i++)
		asked[i] = (struct doc_question){.kind = kind_of(true),
		                                 .id = json_field(doc_json(a, pendings[i].body), "invitationId")};
	/* How large they are is not known before: each time twice as many are asked for together. */
	for (size_t i = 0, known = 0, ahead = 1; result == 0 && s->bytes && i < count; i++) {
		if (i == known) {
			tx_read_ahead(tx, asked + i, ahead < count - i ? ahead : count - i);
			known += ahead;
			ahead *= 2;
		}
		result = tx_get(tx, a, kind_of(true), asked[i].id, &d);
		if (result == -ENOENT) {
			result = 0;
			continue;
		}
		s->bytes -= result < 0 || s->bytes < d.body.n ? s->bytes : d.body.n;
		if (result == 0 && d.body.n <= s->body_max)
			result = group_strike(tx, a, &d, group_id);
	}
	return result;
}

static int group_leave(struct tx *tx, struct arena *a, struct str group_id, struct strike *s)
{
	struct doc *docs;
	size_t count = BATCH;
	int result = 0;
	for (int64_t at = 0; result == 0 && s->bytes && count == BATCH; at += BATCH) {
		result = tx_list(tx, a, PENDING_KIND, group_id, at, BATCH, &docs, &count);
		if (result == 0)
			result = pendings_strike(tx, a, group_id, docs, count, s);
	}
	if (result == 0)
		result = tx_delete_list(tx, PENDING_KIND, group_id);
	return result < 0 ? result : tx_delete_list(tx, kind_of(false), group_id);
}

int invitations_delete_group(struct tx *tx, struct arena *a, struct str group_id)
{
	struct strike s = {.bytes = STRIKE_DELETED_BYTES, .body_max = STRIKE_SMALL};
	return group_leave(tx, a, group_id, &s);
}

int invitations_let_go(struct call *c, struct str group_id)
{
	struct strike s = {.bytes = STRIKE_BYTES, .body_max = STRIKE_BYTES};
	int result = group_leave(c->tx, c->arena, group_id, &s);
	if (result < 0 || s.bytes)
		return result;
	return call_fail_about(c, 409, "TOO_MANY_INVITATIONS", group_id,
	                       "More invitations to the organization name the project than can be changed at once. "
	                       "Withdraw some first.");
}

/* The letter. */

struct announcement {
	struct str id, username, place, inviter, link;
	char until[CLOCK_TEXT];
	struct announcement *next; /* of the same call */
};

/* Without a mail server the operator hands the link over. The log has only the id: whoever reads logs would otherwise
 * become whoever is invited. */
static void announce(struct call *c, void *arg)
{
	for (const struct announcement *n = arg; n; n = n->next)
		log_info("invitation: %.*s may accept until %s; there is no mail server (--smtp-url): `steward "
		         "invitation-link %.*s` makes a link",
		         STR_ARG(n->username), n->until, STR_ARG(n->id));
}

static int letter_add(struct call *c, const struct announcement *n)
{
	struct str text =
	        arena_printf(c->arena,
	                     "%.*s invites you to %.*s.\n\nTo accept or decline, open\n\n%.*s\n\nThe invitation is for "
	                     "%.*s and ends at %s.\nIf you did not expect it, ignore this letter.\n",
	                     STR_ARG(n->inviter), STR_ARG(n->place), STR_ARG(n->link), STR_ARG(n->username), n->until);
	return outbox_mail(c->tx, c->arena, c->org.id, n->username, STR("You are invited to Steward"), text);
}

static struct str link_of(struct arena *a, const char *base_url, struct str id, const char *secret)
{
	return arena_printf(a, "%s" INVITATIONS_LINK "%.*s%s", base_url, STR_ARG(id), secret);
}

/* Of which the hash is kept. */
static void secret_make(struct arena *a, char ret_secret[BASE64_TEXT(SECRET)], struct str *ret_hash)
{
	unsigned char bytes[SECRET];
	char hash[65];
	random_bytes(bytes, sizeof bytes);
	base64url_encode(bytes, sizeof bytes, ret_secret);
	sha256_hex(str_of(ret_secret), hash);
	*ret_hash = arena_dup(a, str_of(hash));
}

int invitation_link(struct tx *tx, struct arena *a, const char *base_url, struct str id, struct str *ret_link)
{
	char secret[BASE64_TEXT(SECRET)];
	struct member i;
	struct doc d;
	if (!id_is_valid(id))
		return -ENOENT;
	int result = tx_get(tx, a, kind_of(true), id, &d);
	if (result == -ENOENT)
		result = tx_get(tx, a, kind_of(false), id, &d);
	if (result == 0)
		result = invitation_of_doc(tx, a, &d, &i);
	if (result == 0)
		result = invitation_in_force(tx, a, &i);
	if (result < 0)
		return result;
	secret_make(a, secret, &d.secret);
	*ret_link = link_of(a, base_url, id, secret);
	return tx_update(tx, &d);
}

/* Whom and where to, until when, and the link with the token, which nobody else has. */
static int announcement_make(struct call *c, const struct member *i, const char *secret)
{
	struct announcement *n = arena_new_of(c->arena, struct announcement);
	bool in_org = i->org_id.n;
	struct doc d;
	int result = tx_get(c->tx, c->arena, in_org ? "org" : "project", scope_of(i), &d);
	if (result < 0)
		return result;
	n->id = i->id;
	n->username = i->username;
	n->place = arena_printf(c->arena, "the %s \"%.*s\"", in_org ? "organization" : "project",
	                        STR_ARG(json_field(doc_json(c->arena, d.body), "name")));
	n->inviter = i->inviter;
	n->link = link_of(c->arena, c->service->base_url, i->id, secret);
	clock_format(i->expires_ms, n->until);
	if (outbox_has_mail(c->service->outbox))
		return letter_add(c, n);
	n->next = c->committed == announce ? c->committed_arg : NULL;
	c->committed = announce;
	c->committed_arg = n;
	return 0;
}

/* Making. */

/* Who invites, as an address: keys and service accounts have none, so theirs is one that cannot be delivered to. */
static struct str inviter_of(struct call *c)
{
	static const char *const domains[] = {[PRINCIPAL_API_KEY] = "@api-key.invalid",
	                                      [PRINCIPAL_SERVICE_ACCOUNT] = "@service-account.invalid",
	                                      [PRINCIPAL_USER] = ""};
	return arena_printf(c->arena, "%s%s", c->caller->name, domains[c->caller->kind]);
}

/* Where there are as many as there may be: the oldest goes if it is over, since nobody else takes those away. All last
 * equally long, so where the oldest is in force none has ended. */
static int make_room(struct call *c, const struct member *i)
{
	struct member oldest;
	struct doc *docs;
	size_t count = 0;
	int result = tx_list(c->tx, c->arena, kind_of(i->org_id.n), scope_of(i), 0, 1, &docs, &count);
	if (result == 0)
		result = count ? invitation_of_doc(c->tx, c->arena, &docs[0], &oldest) : -ENOENT;
	if (result < 0)
		return result;
	if (!member_is_pending(&oldest))
		return invitation_delete(c->tx, c->arena, &oldest);
	return call_fail_about(c, 409, "TOO_MANY_INVITATIONS", arena_printf(c->arena, "%d", INVITATIONS_MAX),
	                       "There are %d invitations already. Remove some first.", INVITATIONS_MAX);
}

static int replace_old(struct call *c, const struct member *i, const struct member *none)
{
	struct member old;
	bool in_org = i->org_id.n;
	int64_t count = 0;
	int result = invitation_find(c->tx, c->arena, in_org, scope_of(i), i->user_id, &old);
	if (result == 0)
		return withdraw(c->tx, c->arena, &old, none);
	if (result == -ENOENT)
		result = tx_count(c->tx, kind_of(in_org), scope_of(i), &count);
	return result < 0 || count < INVITATIONS_MAX ? result : make_room(c, i);
}

int invitation_check(struct call *c, const struct member *i)
{
	int count = 0;
	for (size_t k = 0; k < i->place_count; k++)
		count += i->places[k].is_team ? 0 : __builtin_popcountll(i->places[k].roles);
	if (count <= ASSIGNMENTS_MAX)
		return 0;
	return call_fail_about(
	        c, 400, "TOO_MANY_ROLE_ASSIGNMENTS", arena_printf(c->arena, "%d", ASSIGNMENTS_MAX),
	        "An invitation gives at most %d roles in projects; this one gives %d. Put the person into "
	        "a team that has them.",
	        ASSIGNMENTS_MAX, count);
}

int invitation_add(struct call *c, struct member *i)
{
	const struct member none = {.user_id = i->user_id};
	char secret[BASE64_TEXT(SECRET)];
	int result = i->org_id.n ? federation_admit(c, i->org_id, i->username) : 0;
	if (result == 0)
		result = invitation_check(c, i);
	if (result == 0)
		result = replace_old(c, i, &none);
	if (result < 0)
		return result;
	secret_make(c->arena, secret, &i->secret);
	struct doc d = doc_new(c->arena, kind_of(i->org_id.n), scope_of(i), i->user_id, STR_NONE);
	i->id = d.id;
	i->rev = 1;
	i->inviter = inviter_of(c);
	i->created_ms = d.created_ms;
	i->expires_ms = i->created_ms + INVITATION_DAYS * DAY_MS;
	d = invitation_doc(c->arena, i);
	result = gifts_tell(c->tx, c->arena, &none, i);
	if (result == 0)
		result = tx_insert(c->tx, &d);
	if (result == 0)
		result = places_list(c->tx, c->arena, &none, i);
	return result < 0 ? result : announcement_make(c, i, secret);
}

/* The schemas' forms. */

static json_t *assignments_of(const struct member *i)
{
	json_t *groups = json_array();
	for (size_t k = 0; k < i->place_count; k++)
		for (role_mask rest = i->places[k].is_team ? 0 : i->places[k].roles; rest; rest &= rest - 1)
			json_array_append_new(groups,
			                      json_pack("{s:s%, s:s}", "groupId", i->places[k].id.p, i->places[k].id.n,
			                                "groupRole", role_names[__builtin_ctzll(rest)]));
	return groups;
}

int invitation_view(struct tx *tx, struct arena *a, const struct member *i, struct str group_id, json_t *json)
{
	bool of_group = group_id.n;
	struct str scope = of_group ? group_id : i->org_id;
	struct doc place;
	int result = tx_get(tx, a, of_group ? "project" : "org", scope, &place);
	if (result < 0)
		return result;
	json_put_str(json, "id", i->id);
	json_put_str(json, "username", i->username);
	json_put_str(json, "inviterUsername", i->inviter);
	json_put_time(json, "createdAt", i->created_ms);
	json_put_time(json, "expiresAt", i->expires_ms);
	json_put_str(json, of_group ? "groupId" : "orgId", scope);
	json_put_str(json, of_group ? "groupName" : "orgName", json_field(doc_json(a, place.body), "name"));
	json_put(json, "roles", roles_json(of_group && i->org_id.n ? member_at(i, group_id) : i->roles));
	if (!of_group) {
		json_put(json, "groupRoleAssignments", assignments_of(i));
		json_put(json, "teamIds", member_teams_json(i));
	}
	return 0;
}
