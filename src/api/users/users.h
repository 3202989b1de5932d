/* People in organizations and projects, active or invited: loading them, changing what they have, and the lists of
 * them. What the families of users, teams, organizations and projects share.
 *
 *   "user"              id; ref "user_name" (lower case) -> id; secret: the password's hash, or empty; body:
 *                       CloudAppUser without roles, teams and password
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
#include "identity/grants.h"

#define TEAM_USERS_MAX 250 /* of a team, invited ones too */

/* Somebody in an organization, or (an invitation with a group_id) asked into a project by itself. */
struct member {
	struct str user_id, username, org_id;
	bool active;
	role_mask roles;          /* in the organization; of a project's own invitation: in the project */
	struct grant_row *groups; /* of their own, in the organization's projects */
	size_t group_count;
	struct str *teams; /* of the organization */
	size_t team_count;
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

/* accounts.c. A user name as it is kept: lower case. */
struct str user_name_of(struct arena *a, struct str given);
/* The id of the account with that (lower-case) name, or the one that it will have: the same from the first invitation
 * on. */
must_check int user_id_of(struct tx *tx, struct arena *a, struct str username, struct str *ret_id);
/* A new account. `profile` may hold firstName, lastName, country and mobileNumber. -EEXIST. */
must_check int user_add(struct tx *tx, struct arena *a, struct str username, const json_t *profile,
                        struct str password_hash, struct doc *ret_user);
/* firstName, lastName, country and mobileNumber, where the profile has them. */
void user_profile_set(json_t *body, const json_t *profile);
/* Whether the owner of the address has ever answered from it: only then is the account's password its owner's. */
bool user_is_proven(struct arena *a, const struct doc *user);
/* The user has just proved who it is: lastAuth. */
must_check int user_signed_in(struct tx *tx, struct arena *a, struct str user_id);
/* Whether the caller may know of the user at all; of a key or an account: whether it shares a place with it. */
must_check int user_is_visible(struct call *c, struct str user_id, bool *ret_visible);

/* members.c. -ENOENT when the user has nothing there and is not invited. */
must_check int member_load(struct tx *tx, struct arena *a, struct str org_id, struct str user_id,
                           struct member *ret_member);
/* "ACTIVE", "PENDING", "INVITATION_EXPIRED", "INVITATION_REJECTED" */
const char *member_status(const struct member *m);
bool member_is_pending(const struct member *m);
bool member_in_team(const struct member *m, struct str team_id);
role_mask member_group_roles(const struct member *m, struct str group_id);
/* The same lists with one changed, in new memory; roles 0: without the project. Nothing is kept by it. */
void member_put_group(struct arena *a, struct member *m, struct str group_id, role_mask roles);
void member_put_team(struct arena *a, struct member *m, struct str team_id, bool in);
/* Keeps what a member has from now on, active or invited. 409 where the organization would lose its last owner. An
 * invitation that was only for a project goes with it. */
must_check int member_apply(struct call *c, const struct member *before, const struct member *m);
/* An event of each project, and of the organization for each team, that somebody got into or out of by a change; the
 * call's own event stays as it is. */
must_check int member_tell(struct call *c, const struct member *before, const struct member *after);
/* What the body says of an organization's member replaces what is there (nested: "roles" holds the lists), and is kept;
 * before NULL: an invitation, for which m has the user name. */
must_check int member_save(struct call *c, bool nested, const struct member *before, struct member *m);
/* Into the call's project: a member gets the roles at once, others are invited to the organization, with the
 * project. 409 for those who are in it. */
must_check int member_add_group(struct call *c, struct str username, role_mask roles, struct member *ret_member);
must_check int member_is_taken(struct call *c, struct str username);
/* A document that says that one thing is with another: there once, or (no body) not there. */
must_check int link_set(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                        struct str body);
must_check int team_join(struct tx *tx, struct arena *a, struct str team_id, struct str user_id);
must_check int team_leave(struct tx *tx, struct arena *a, struct str team_id, struct str user_id);
/* 400 where the team has no room for one more, or a user of so many teams none for more of them. */
must_check int team_admit(struct call *c, struct str team_id);
must_check int user_teams_check(struct call *c, size_t count, size_t more);

/* role_lists.c. The roles that a list of names gives, in an organization or in a project. 400, naming each by its path
 * (`path[i]`), for what is no role of that kind, and for a list that names none. Whether the caller may give them is
 * decided once it is known to whom: identity/gifts.h. Nulls in the list count for nothing. */
must_check int role_list_read(struct call *c, const json_t *names, const char *path, bool in_org, role_mask *ret_roles);
/* Which roles the call's event is about. */
void event_roles(struct call *c, role_mask roles);

/* invitations.c. The invitation of a user to an organization, or of a member to a project (in_org false). -ENOENT.
 * Projects that are gone or belong to another organization by now are left out. */
must_check int invitation_find(struct tx *tx, struct arena *a, bool in_org, struct str scope, struct str user_id,
                               struct member *ret_invitation);
must_check int invitation_of_doc(struct tx *tx, struct arena *a, const struct doc *d, struct member *ret_invitation);
/* The organization's invitation behind a "group_pending" or "team_pending". */
must_check int invitation_behind(struct tx *tx, struct arena *a, const struct doc *pending, struct doc *ret_doc);
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
/* For a project that goes to another organization: nobody is invited to it any more. */
must_check int invitations_delete_group(struct tx *tx, struct arena *a, struct str group_id);
/* The invitation that a token stands for, pending and in force. -ENOENT. */
must_check int invitation_by_token(struct tx *tx, struct arena *a, struct str token, struct member *ret_invitation);
/* OrganizationInvitation, or with a project GroupInvitation, in an empty object. */
must_check int invitation_view(struct tx *tx, struct arena *a, const struct member *i, const struct doc *group,
                               json_t *json);

/* accept.c: /api/invitations/{token}, and /invitations/{token}, which the letter names. Answers now or later. */
#define INVITATIONS_PATH "/api/invitations/"
#define INVITATIONS_LINK "/invitations/"
void invitations_serve(struct service *s, struct request *r);

/* people.c: lists of people, by the filters username, userId, orgMembershipStatus and orgMembershipStatuses. In the
 * older form, which knows accounts only: of active ones. */
struct people {
	struct segment *list;
	size_t count;
	unsigned statuses; /* bit 0: ACTIVE; then the states of invitations */
	json_t *seen;      /* who has been listed, where somebody may be found in several ways; or NULL */
};
must_check int people_begin(struct call *c, size_t room, struct people **ret_people);
/* One more list: of active people, or ("invitation", "..._pending") of invited ones. whole: everybody there counts. */
void people_add(struct people *p, const char *kind, struct str parent, bool whole);
must_check int people_end(struct call *c, struct people *p, struct segment **ret_list, size_t *ret_count);
/* Hooks: whether one is in the list, and in what form. */
bool people_takes(struct call *c, const struct doc *d);
must_check int people_stand_in(struct call *c, const struct resource **r, struct doc *d);
/* The answer with one member of the call's organization. */
must_check int people_write(struct call *c, const struct member *m);

#endif
