/* Who may give which roles to whom: the one place that decides it, for every operation.
 *
 *   owners of a scope    give and take any role in it
 *   managers of access   give others any role but an owner's, and take those; to themselves only what they hold
 *   everybody else       gives only what it holds
 *
 * api/roles.json says which roles are which ("gives"), and the rows say which operations give roles ("gives").
 *
 * Handlers do not check this. Code that changes who holds what (grants, teams' members, invitations, role mappings,
 * secrets) reports the change to the call's transaction. Before the write is committed, all reports are compared with
 * the roles that the caller had at the beginning: so no operation can forget the check.
 *
 * "Themselves" means everybody who may be the same person: a credential whose secret the caller has seen, whoever has
 * seen the caller's secret, two credentials of one maker, a team that has one of these as a member, and every group
 * that an identity provider maps. A maker that owns the scope does not count, because it could give the roles directly.
 *
 *   "credential_holder"  parent = key or account, name = who was shown its secret; body {"kind", "owner"} */
#ifndef STEWARD_IDENTITY_GIFTS_H
#define STEWARD_IDENTITY_GIFTS_H

#include "call/call.h"

/* The roles that somebody who holds `held` (closed) in the scope may not give or take in a change from `before` to
 * `after`; 0: the change is allowed. */
role_mask gift_refused(role_mask held, role_mask before, role_mask after, bool to_self);

/* What a call's write has given so far. */
struct gifts {
	struct call *call;
	struct principal *giver; /* the caller as it was before the first gift; NULL until then */
	struct gift *list;
	size_t count, room;
	struct str *made;  /* scopes that the call made, and */
	struct str *shown; /* credentials whose secret is in its answer */
	size_t made_count, shown_count;
	struct tie *ties; /* who may be behind giver and receiver at the same time */
};

/* Around a handler's run inside its transaction. gifts_end() is 0, or negative after call_fail(): 403. */
void gifts_begin(struct gifts *g, struct call *c);
must_check int gifts_end(struct gifts *g, int result);

/* For code that changes the store; they do nothing outside of a call. gift_roles() comes before the change: the roles
 * of a user, key, account or team in a scope. */
must_check int gift_roles(struct tx *tx, struct str to, bool in_org, struct str scope, role_mask before,
                          role_mask after);
/* Roles for a group of an identity provider. Anybody may be in it. */
must_check int gift_mapped(struct tx *tx, bool in_org, struct str scope, role_mask roles);
/* All roles of the team, for a new member. */
must_check int gift_team(struct tx *tx, struct str team_id, struct str user_id);
/* The answer of the call contains a secret of this key or account. */
must_check int gift_secret(struct tx *tx, struct str id);
/* The call has made this organization or project, so its maker may give any role there. */
void gift_scope(struct tx *tx, struct str id);

#endif
