/* People in organizations and projects: loading them, active or invited, and writing them in the forms of the schemas. What
 * the families of users, teams, organizations and projects share.
 *
 *   "user"  id; ref "user_name" (lower case) -> id; secret: the password's hash, or empty; body: CloudAppUser without roles,
 *           teams and password
 *   "user_team"  parent = user, name = team;  "team_user"  parent = team, name = user */
#ifndef STEWARD_API_MEMBERS_H
#define STEWARD_API_MEMBERS_H

#include "api/invitations.h"

/* A user name as it is kept: lower case. */
struct str user_name_of(struct arena *a, struct str given);
/* The id of the account with that (lower-case) name, or the one that it will have: the same from the first invitation on. */
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

/* Somebody in an organization. */
struct member {
	struct str user_id, username;
	bool active;
	struct doc user;              /* active */
	struct invitation invitation; /* not active */
	role_mask roles;              /* in the organization */
	struct grant_row *groups;     /* of their own, in the organization's projects */
	size_t group_count;
	struct str *teams; /* of the organization */
	size_t team_count;
};
/* -ENOENT when the user has nothing there and is not invited. */
must_check int member_load(struct tx *tx, struct arena *a, struct str org_id, struct str user_id,
                           struct member *ret_member);
/* From an organization's invitation. */
void member_of_invitation(const struct invitation *i, struct member *ret_member);
/* "ACTIVE" or the invitation's status. */
const char *member_status(const struct member *m);
role_mask member_group_roles(const struct member *m, struct str group_id);
/* What teams give the member in a project, and what the organization's roles give, without what follows from it. */
must_check int member_team_roles(struct tx *tx, struct arena *a, const struct member *m, struct str group_id,
                                 role_mask *ret_roles);
role_mask member_org_given(const struct member *m);

/* Changes that hold for active and invited members alike. 409 after call_fail() where the organization would lose its last
 * owner. The member's own fields follow. */
must_check int member_set_org_roles(struct call *c, struct member *m, struct str org_id, role_mask roles);
must_check int member_set_group_roles(struct call *c, struct member *m, struct str group_id, role_mask roles);
must_check int member_set_groups(struct call *c, struct member *m, const struct grant_row *groups, size_t count);
must_check int member_set_teams(struct call *c, struct member *m, struct str *teams, size_t count);
/* Out of the organization: roles there and in its projects, teams, invitation. The account stays. */
must_check int member_remove(struct call *c, struct member *m, struct str org_id);

/* member_events.c. Who gets into projects and teams, or out of them, by a change of the membership: an event of each
 * project, and of the organization for each team. `before` is the member as it was; the call's own event stays as it is. */
must_check int member_tell(struct call *c, const struct member *before, const struct member *after, struct str org_id);

must_check int team_join(struct tx *tx, struct arena *a, struct str team_id, struct str user_id);
must_check int team_leave(struct tx *tx, struct arena *a, struct str team_id, struct str user_id);
/* teams.c: 400 where the team has no room for one more, or a user of so many teams none for more of them. */
must_check int team_admit(struct call *c, struct str team_id);
must_check int user_teams_check(struct call *c, size_t count, size_t more);
/* teams.c: all teams of an organization, with members and roles: gone. Before its invitations go. */
must_check int teams_delete_all(struct tx *tx, struct arena *a, struct str org_id);

/* The schemas' forms, freed with the arena. roles: what is shown of the project. */
json_t *member_org_json(struct arena *a, const struct member *m);                    /* OrgUserResponse */
json_t *member_group_json(struct arena *a, const struct member *m, role_mask roles); /* GroupUserResponse */
/* CloudAppUser, with the roles and teams that the caller may know of: where it is a member itself. */
must_check int user_json(struct call *c, const struct doc *user, json_t **ret_json);
/* The same of somebody who was made with POST /users and has not accepted yet: what was said of it there, and what it was
 * given in these organizations, or (NULL) wherever the caller is a member. The same for an address that has an account as for
 * one that has none. -ENOENT. */
must_check int pending_user_json(struct call *c, struct str user_id, const struct str *orgs, size_t org_count,
                                 json_t **ret_json);
/* Whether the caller may know of the user at all; of a key or an account: whether it shares a place with it. */
must_check int user_is_visible(struct call *c, struct str user_id, bool *ret_visible);

/* What bodies hold. 0, or negative after call_fail() with the paths, or a store's error.
 * [{"groupId", "<roles_field>": [...]}, ...]: projects of the organization, each once. */
must_check int body_assignments(struct call *c, const json_t *list, const char *path, const char *roles_field,
                                struct str org_id, struct grant_row **ret_rows, size_t *ret_count);
/* Teams of the organization; `had` are those that the user is in already. */
must_check int body_teams(struct call *c, const json_t *list, const char *path, struct str org_id,
                          const struct str *had, size_t had_count, struct str **ret_teams, size_t *ret_count);

#endif
