/* Invitations: what somebody may have once they accept. One is in force for a person in an organization at a time, and is
 * that person's pending membership there; its part for a project is listed below the project too.
 *
 *   "invitation"        parent = organization, name = user id; secret: SHA-256 of the token's secret half.
 *                       body: {"username","inviterUsername","expiresAtMs","roles","groups":[{"groupId","roles"}],"teamIds",
 *                       "viaProject"?,"rejected"?,"profile"?}
 *   "group_pending"     parent = project, name = user id; body {"invitationId"}: one for each project of an invitation
 *   "team_pending"      parent = team, name = user id; the same for its teams
 *   "group_invitation"  parent = project, name = user id: a member of the organization is invited to a project. The body is
 *                       the same, without groups and teams; its roles are the project's. "membership" is the grant that
 *                       makes the user a member of the organization: the invitation ends with it.
 *
 * The user id is the account's, or the one that the account will have: see user_id_of(). */
#ifndef STEWARD_API_INVITATIONS_H
#define STEWARD_API_INVITATIONS_H

#include "gate/call.h"
#include "gate/grants.h"

#define INVITATION_DAYS 30
#define INVITATIONS_MAX 10000 /* an organization, or of a project's own */
#define INVITATION_TOKEN 67   /* characters: the id, then 32 random bytes as base64url */

enum invitation_status { INVITATION_PENDING, INVITATION_EXPIRED, INVITATION_REJECTED };
/* "PENDING", "INVITATION_EXPIRED", "INVITATION_REJECTED" */
const char *invitation_status_name(enum invitation_status s);

struct invitation {
	struct str id, user_id, username, inviter;
	struct str org_id, group_id; /* group_id: of a project's own invitation; org_id is not set then */
	int64_t rev, created_ms, expires_ms;
	bool rejected;
	bool via_project; /* asked for by a project: the membership goes with the last project */
	role_mask roles;  /* in the organization; of a project's own: in the project */
	struct grant_row *groups;
	size_t group_count;
	struct str *teams;
	size_t team_count;
	struct str secret;
	struct str membership; /* of a project's own: grant_id() */
	json_t *profile; /* or NULL; borrowed: what POST /users said of the person, who may use it when accepting */
};

enum invitation_status invitation_status(const struct invitation *i);

/* The invitation of a user to an organization, or of a member to a project (in_org false). -ENOENT. Projects that are gone or
 * belong to another organization by now are left out. */
must_check int invitation_find(struct tx *tx, struct arena *a, bool in_org, struct str scope, struct str user_id,
                               struct invitation *ret_invitation);
must_check int invitation_get(struct tx *tx, struct arena *a, bool in_org, struct str id,
                              struct invitation *ret_invitation);
must_check int invitation_of_doc(struct tx *tx, struct arena *a, const struct doc *d,
                                 struct invitation *ret_invitation);

/* -ENOENT unless it is pending; a project's own stands only as long as the membership that it was made for: who left the
 * organization and came back has to be asked again. */
must_check int invitation_in_force(struct tx *tx, struct arena *a, const struct invitation *i);

/* New: the id is made, the time starts, an older one of the same person in the same scope is replaced. 409 when the scope has
 * too many. The mail (or the line in the log) goes out once the call's write is on disk. */
must_check int invitation_add(struct call *c, struct invitation *i);
/* Changed roles, projects, teams or rejection. */
must_check int invitation_update(struct tx *tx, struct arena *a, const struct invitation *i);
must_check int invitation_delete(struct tx *tx, struct arena *a, const struct invitation *i);
/* One project's part of an organization's invitation taken away, and with it an invitation that was only for that. */
must_check int invitation_drop_group(struct tx *tx, struct arena *a, struct invitation *i, struct str group_id);
role_mask invitation_group_roles(const struct invitation *i, struct str group_id);
void invitation_set_group(struct arena *a, struct invitation *i, struct str group_id, role_mask roles);

/* For a project that goes to another organization: nobody is invited to it any more. */
must_check int invitations_delete_group(struct tx *tx, struct arena *a, struct str group_id);

/* The invitation that a token stands for, pending and in force. -ENOENT. */
must_check int invitation_by_token(struct tx *tx, struct arena *a, struct str token, struct invitation *ret_invitation);

/* OrganizationInvitation and GroupInvitation; freed with the arena. */
must_check int invitation_org_json(struct tx *tx, struct arena *a, const struct invitation *i, json_t **ret_json);
must_check int invitation_group_json(struct tx *tx, struct arena *a, const struct invitation *i,
                                     const struct doc *group, json_t **ret_json);

/* accept.c: /api/invitations/{token}, and /invitations/{token}, which the letter names. Answers now or later. */
#define INVITATIONS_PATH "/api/invitations/"
#define INVITATIONS_LINK "/invitations/"
void invitations_serve(struct service *s, struct request *r);

#endif
