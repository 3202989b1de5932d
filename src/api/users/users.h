/* People in organizations and projects, active or invited: loading them, changing what they have, and the lists of
 * them. What the families of users, teams, organizations and projects share.
 *
 *   "user_team"         parent = user, name = team;  "team_user"  parent = team, name = user
 *
 * Invitations: what somebody may have once they accept. One is in force for a person in an organization at a time, and
 * is that person's pending membership there; its part for a project is listed below the project too.
 *
 *   "invitation"        parent = organization, name = user id; secret: SHA-256 of the token's secret half.
 *                       body: {"username","inviterUsername","expiresAtMs","roles","groups":[{"groupId","roles"}],
 *                       "teamIds","viaProject"?,"rejected"?,"profile"?}
 *   "group_pending"     parent = project, name = user id; body {"invitationId"}: one for each project of an invitation
 *   "team_pending"      parent = team, name = user id; the same for its teams
 *   "group_invitation"  parent = project, name = user id: a member of the organization is invited to a project. The
 *                       body is the same, without groups and teams; its roles are the project's. "membership" is the
 *                       grant that makes the user a member of the organization: the invitation ends with it.
 *
 * The user id is the account's, or the one that the account will have: see user_id_of(). */
#ifndef STEWARD_API_USERS_USERS_H
#define STEWARD_API_USERS_USERS_H

#include "api/kit/verbs.h"
#include "identity/accounts.h"

#define TEAM_USERS_MAX 250 /* of a team, invited ones too */

/* A project or a team that somebody is in. */
struct place {
	struct str id;
	bool is_team;
	role_mask roles; /* in the project; of a team IN_TEAM. 0: not in it */
};
#define IN_TEAM ((role_mask)1)

/* Somebody in an organization, or (an invitation with a group_id) asked into a project by itself. */
struct member {
	struct str user_id, username, org_id;
	bool active;
	role_mask roles;      /* in the organization; of a project's own invitation: in the project */
	struct place *places; /* the organization's: projects, by roles of their own, and teams */
	size_t place_count;
	struct doc user; /* active */
	/* Not active: the invitation. */
	struct str id, inviter, secret;
	struct str group_id; /* of a project's own; org_id is not set then */
	int64_t rev, created_ms, expires_ms;
	bool rejected;
	bool via_project;      /* asked for by a project: the membership goes with the last project */
	struct str membership; /* of a project's own: grant_id() */
	json_t *profile; /* or NULL; borrowed: what POST /users said of the person, who may use it when accepting */
};

/* members.c. -ENOENT when the user has nothing there and is not invited. */
must_check int member_load(struct tx *tx, struct arena *a, struct str org_id, struct str user_id,
                           struct member *ret_member);
/* By the (lower-case) name. Nobody there: one who is neither active nor pending, and has nothing. */
must_check int member_of_name(struct call *c, struct str org_id, struct str username, struct member *ret_member);
enum member_status { MEMBER_ACTIVE, MEMBER_PENDING, MEMBER_EXPIRED, MEMBER_REJECTED, MEMBER_STATUSES };
extern const char *const member_statuses[MEMBER_STATUSES];
enum member_status member_status(const struct member *m);
bool member_is_pending(const struct member *m);
/* The roles in a project of their own, or IN_TEAM; 0: not there. */
role_mask member_at(const struct member *m, struct str place_id);
size_t member_count(const struct member *m, bool teams);
/* Adds a place, if it is there and the organization's; m->places has room for it. */
must_check int member_add_place(struct tx *tx, struct arena *a, struct member *m, struct place p);
/* The same places with one changed, in new memory; roles 0: without it. Nothing is kept by it. */
void member_put(struct arena *a, struct member *m, struct place p);
/* What of the places differs: projects, then teams, with the roles before and after. */
struct change {
	struct str id;
	bool is_team;
	role_mask was, is;
};
size_t member_changes(struct arena *a, const struct member *before, const struct member *after,
                      struct change **ret_changes);
/* Keeps what a member has from now on, active or invited. 409 where the organization would lose its last owner. An
 * invitation that was only for a project goes with it, and one without roles is deleted. */
must_check int member_apply(struct call *c, const struct member *before, const struct member *m);
/* An event of each project, and of the organization for each team, that somebody got into or out of by a change; the
 * call's own event stays as it is. */
must_check int member_tell(struct call *c, const struct member *before, const struct member *after);
/* The roles in the call's project, or without one in its organization, are these from now on; 0: not in the project. */
must_check int member_set_roles(struct call *c, const struct member *before, role_mask roles,
                                struct member *ret_member);
/* Out of the organization, or not invited any more, with all places, and told. */
must_check int member_remove(struct call *c, const struct member *before);
/* One user of a team, or one less. */
must_check int team_set_user(struct tx *tx, struct arena *a, struct str team_id, struct str user_id, bool in);
/* 400 where the team has no room for one more, or a user of so many teams none for more of them. */
must_check int team_admit(struct call *c, struct str team_id);
must_check int user_teams_check(struct call *c, size_t count, size_t more);
/* [{"groupId", "<roles_field>": [...]}, ...], and the ids of the teams. */
json_t *member_groups_json(const struct member *m, const char *roles_field);
json_t *member_teams_json(const struct member *m);

/* bodies.c. The body's "username", which the call's event is about. 400. */
must_check int username_read(struct call *c, struct str *ret_username);
/* What the body says of an organization's member replaces what is there (nested: "roles" holds the lists), and is kept;
 * before NULL: an invitation. */
must_check int member_save(struct call *c, bool nested, const struct member *before, struct member *ret_member);
/* Who the body names comes into the call's project: a member gets the roles at once (asks: is invited to the project),
 * others are invited to the organization, with the project. 409 for those who are in it. */
must_check int member_add_group(struct call *c, bool asks, struct member *ret_member);

/* invitations.c. The invitation of a user to an organization, or of a member to a project (in_org false). -ENOENT.
 * Places that are gone or belong to another organization by now are left out. */
must_check int invitation_find(struct tx *tx, struct arena *a, bool in_org, struct str scope, struct str user_id,
                               struct member *ret_invitation);
/* From its document, or a "group_pending" or "team_pending" of it. */
must_check int invitation_of_doc(struct tx *tx, struct arena *a, const struct doc *d, struct member *ret_invitation);
/* In a write: what changes of a member's places ask the store for, in a few round trips. With user_id also which of
 * them have a note of its invitation. */
void places_read_ahead(struct tx *tx, struct arena *a, const struct place *places, size_t count, struct str user_id);
/* The same where many are read: which places there are is read once. */
struct known_places;
must_check int known_places_read(struct tx *tx, struct arena *a, struct str org_id, struct known_places **ret_places);
must_check int invitation_of_doc_among(struct tx *tx, struct arena *a, const struct doc *d,
                                       const struct known_places *known, struct member *ret_invitation);
/* As it is kept. */
struct doc invitation_doc(struct arena *a, const struct member *i);
/* -ENOENT unless it is pending; a project's own stands only as long as the membership that it was made for: who left
 * the organization and came back has to be asked again. */
must_check int invitation_in_force(struct tx *tx, struct arena *a, const struct member *i);
/* New: the id is made, the time starts, an older one of the same person in the same scope is replaced. 409 when the
 * scope has too many. The mail (or the line in the log) goes out once the call's write is on disk. */
must_check int invitation_add(struct call *c, struct member *i);
must_check int invitation_update(struct tx *tx, struct arena *a, const struct member *old, const struct member *i);
must_check int invitation_delete(struct tx *tx, struct arena *a, const struct member *i);
/* The invitations of a project that is being deleted. What invitations to the organization still say about it counts
 * for nothing, because a place that is not there is not read: so they are rewritten only where there are few. 100
 * deletions that rewrote 200 invitations of 230 places each stopped all writes for 86 s. */
must_check int invitations_delete_group(struct tx *tx, struct arena *a, struct str group_id);
/* The same for a project that moves to another organization, and may come back: with too many, the call fails. */
must_check int invitations_let_go(struct call *c, struct str group_id);
/* 400 when it gives more than one may. */
must_check int invitation_check(struct call *c, const struct member *i);
/* The invitation that a token stands for, pending and in force. -ENOENT. */
must_check int invitation_by_token(struct tx *tx, struct arena *a, struct str token, struct member *ret_invitation);
/* OrganizationInvitation, or with a project GroupInvitation, in an empty object. */
must_check int invitation_view(struct tx *tx, struct arena *a, const struct member *i, struct str group_id,
                               json_t *json);
/* In a write, for the operator's command: another link for one that is pending; the one before ends. -ENOENT. */
must_check int invitation_link(struct tx *tx, struct arena *a, const char *base_url, struct str id,
                               struct str *ret_link);
/* The page that the letter names: api/edge/invitations.c. */
#define INVITATIONS_LINK "/invitations/"

/* people.c: what lists of people are made of, after the filters username, userId, orgMembershipStatus and
 * orgMembershipStatuses: some of `lists` (in the arena), which are of active people, or ("invitation", "..._pending")
 * of invited ones. once: somebody may stand in several. The older form knows accounts only: active people. */
must_check int people_segments(struct call *c, struct segment *lists, size_t count, bool once,
                               struct segment **ret_list, size_t *ret_count);
/* Hooks: whether one is in the list, and in what form. */
bool people_takes(struct call *c, const struct doc *d);
must_check int people_stand_in(struct call *c, const struct resource **r, struct doc *d);
/* The answer with one member of the call's organization. */
must_check int people_write(struct call *c, const struct member *m);

#endif
