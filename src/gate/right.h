/* The right to something that goes on after the call that began it: a link that asks for no credentials, a download, a
 * stream of events. Nobody passes the gates for these again, so the gates' questions are asked here, in one place:
 * whether the credential is in force, the caller is there, the address is on its access list, its organization's demand
 * for a second factor is met, and a role that permits the operation is held. */
#ifndef STEWARD_GATE_RIGHT_H
#define STEWARD_GATE_RIGHT_H

#include "call/call.h"
#include "identity/identity.h"

struct right {
	enum principal_kind kind;
	struct id caller;                 /* of its document */
	const struct op *op;              /* what was permitted */
	struct id scope;                  /* of the operation: a project or an organization; or empty */
	struct ip peer;                   /* who uses it now */
	struct id session, secret, token; /* what the caller has shown: a cookie, or a bearer token; or empty */
	bool weak;                        /* by a session without a second factor */
	int64_t until_ms;                 /* when the credential ends; INT64_MAX: never */
	bool by_link;                     /* nothing is shown but a link; what follows is of the call that made it */
	struct id stamp;                  /* of a person's links then (identity/links.h) */
	bool federated;                   /* an identity provider had begun the session */
	int64_t made_ms;
	uint64_t generation; /* of identities, and when it was last asked: for right_check_again() */
	int64_t asked_us;
};

/* Of a call that has passed the gates. */
void right_of_call(struct call *c, struct right *ret_right);
/* A link works for longer than the credential that asked for it, and ends when that is taken back: a person's links
 * when its sessions are ended because one may be lost (a password is reset or changed, others are signed out), a
 * service account's when its secret is revoked. What is needed to tell is put into `link`, which the link keeps. */
must_check int right_link_put(struct call *c, json_t *link);
/* The right of who made the link, for who uses it now from `peer`. */
void right_of_link(const json_t *link, const struct op *op, struct str scope, const struct ip *peer,
                   struct right *ret_right);

/* The caller, as the gates would have it now, owned by our caller. `known`: a cache of the calling thread, or NULL.
 * -EACCES: the credential is not in force any more; -ENOENT: the caller is gone; -EADDRNOTAVAIL: the address is not on
 * its access list; or the store's. */
must_check int right_caller(struct service *s, struct token_cache *known, struct tx *tx, struct arena *a,
                            const struct right *right, struct principal **ret_caller);
/* All of it. Also -EPERM: no role, or the scope is gone. */
must_check int right_check(struct service *s, struct token_cache *known, struct tx *tx, struct arena *a,
                           const struct right *right);
/* The same for something that goes on: asks when any rights have changed since, and once a minute. 0; -EPERM for each
 * of the refusals; or the store's. */
must_check int right_check_again(struct service *s, struct tx *tx, struct arena *a, struct right *right);

/* For a credential that is a project's own and has no access list, such as that of its integration with Prometheus:
 * where the organization demands lists, the address must be on the project's. 0; -EADDRNOTAVAIL; or the store's. */
must_check int right_of_project(struct tx *tx, struct arena *a, struct str org_id, struct str group_id,
                                const struct ip *peer);

#endif
