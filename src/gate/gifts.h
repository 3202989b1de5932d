/* Who may give which roles to whom: the one place that decides it, for every operation.
 *
 *   owners of a scope    give and take any role in it
 *   managers of access   give others any role but an owner's, and take those; to themselves only what they hold
 *   everybody else       gives only what it holds
 *
 * Which roles are which stands in api/roles.json ("gives"), which operations give roles in their rows ("gives").
 *
 * Handlers do not ask. What changes who holds what (grants, teams' members, invitations, role mappings, secrets) tells the
 * call's transaction, and before the write is kept all that was told is held against the roles that the caller had when it
 * began: an operation cannot forget the question.
 *
 * "Itself" is whoever may be the same person: a credential whose secret the caller was shown, the one that was shown the
 * caller's, both of one maker, a team with one of them in it, and whatever an identity provider's group maps to. A maker
 * that owns the scope does not count: it could give the roles outright.
 *
 *   "credential_holder"  parent = key or account, name = who was shown its secret; body {"kind", "owner"} */
#ifndef STEWARD_GATE_GIFTS_H
#define STEWARD_GATE_GIFTS_H

#include "gate/call.h"

/* The roles that stand in the way of a change from `before` to `after` by somebody who holds `held` (closed) in the scope;
 * 0: it may be. */
role_mask gift_refused(role_mask held, role_mask before, role_mask after, bool to_self);

/* What a call's write has given so far. */
struct gifts {
	struct call *call;
	struct principal *giver; /* the caller as it was before the first gift; NULL until then */
	struct gift *list;
	size_t count, room;
	struct str *made;  /* scopes that the call made, and */
	struct str *shown; /* credentials whose secret it answers with */
	size_t made_count, shown_count;
};

/* Around a handler's run inside its transaction. gifts_end() is 0, or negative after call_fail(): 403. */
void gifts_begin(struct gifts *g, struct call *c);
must_check int gifts_end(struct gifts *g, int result);

/* For those who change the store; they cost nothing outside of a call. Before the change: the roles of a user, key, account
 * or team in a scope. */
must_check int gift_roles(struct tx *tx, struct str to, bool in_org, struct str scope, role_mask before,
                          role_mask after);
/* Roles for a group of an identity provider, which may be anybody. */
must_check int gift_mapped(struct tx *tx, bool in_org, struct str scope, role_mask roles);
/* All that the team has, for one more member. */
must_check int gift_team(struct tx *tx, struct str team_id, struct str user_id);
/* The call answers with a secret of this key or account. */
must_check int gift_secret(struct tx *tx, struct str id);
/* The call has made this organization or project: what it gives there is the maker's to give. */
void gift_scope(struct tx *tx, struct str id);

#endif
