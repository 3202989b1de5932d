/* Federations: organizations that share identity providers. Every organization is in exactly one, from the start its
 * own.
 *
 *   "federation"         id; body {"id","orgIds":[...]}: what the membership gate reads
 *   "connected_org"      id = organization, parent = federation; body: ConnectedOrgConfig without roleMappings
 *                        and userConflicts
 *   "role_mapping"       parent = organization, name = the external group; body: AuthFederationRoleMapping
 *   "identity_provider"  see api/federation/identity_providers.h */
#ifndef STEWARD_API_FEDERATION_FEDERATION_H
#define STEWARD_API_FEDERATION_FEDERATION_H

#include "call/call.h"
#include "jobs/jobs.h"

#define FEDERATION_ORGS_MAX 100 /* organizations of one federation */

/* For a new organization: a federation of its own, with a SAML provider that waits to be configured. */
must_check int federation_create(struct tx *tx, struct arena *a, struct str org_id, struct str *ret_id);
/* For a new organization: into the federation that the caller names. 400 after call_fail() when there is none such of
 * which the caller owns an organization, 409 when it is full. */
must_check int federation_join(struct call *c, struct str id, struct str org_id);
/* For an organization that is deleted: out of its federation, which ends with its last organization. */
must_check int federation_leave(struct tx *tx, struct arena *a, struct str org_id);
/* For a project that is deleted or moves away: no role mapping of the organization gives roles in it any more. */
must_check int federation_forget_project(struct tx *tx, struct arena *a, struct str org_id, struct str group_id);
/* For somebody who is to become a member: 400 after call_fail() when the organization restricts its members to
 * domains and the address is of none of them. */
must_check int federation_admit(struct call *c, struct str org_id, struct str email);

/* sign_in.c. Before anything is served: whose providers sign people in. */
enum federated_sign_in { FEDERATED_ALL, FEDERATED_OPERATOR, FEDERATED_NONE };
void federation_allow(enum federated_sign_in whose);
/* In a write: the federation's providers vouch for nobody of the domain any more. Sessions end of the people of those
 * organizations that use one of them. */
must_check int federation_distrust(struct tx *tx, struct arena *a, struct str federation_id, struct str domain);

/* domains.c: a provider makes accounts and signs people in only for domains that its federation has proven. Before
 * anything is served: the name server to ask ("127.0.0.1:53"; NULL: the system's; "none"), and certificates to
 * trust. */
void domains_setup(const char *name_server, const char *ca_file);
extern const struct job_kinds domains_jobs;
/* At the start. Providers of a store from before domains were proven have to be proven too: their domains are looked
 * for, and named in the log. */
must_check int domains_open(struct store *store);
/* For the operator. The federation of an organization's or a federation's id; -ENOENT. */
must_check int domain_federation(struct tx *tx, struct arena *a, struct str id, struct str *ret_federation);
/* In a write: by the operator's word ("OPERATOR"), or because it was found ("DNS", "FILE"). */
must_check int domain_prove(struct tx *tx, struct arena *a, struct str federation_id, struct str domain,
                            const char *how);
/* In a write. -ENOENT: it was not proven. */
must_check int domain_withdraw(struct tx *tx, struct arena *a, struct str federation_id, struct str domain);
/* [{"domain","federationSettingsId","identityProvider","how"?,"provenAt"?}, ...]: the domains of all providers. */
must_check int domains_list(struct tx *tx, json_t *list);
/* Providers by which people of the address's domain can sign in: [{"id","displayName","protocol"}, ...]. */
must_check int federation_providers_of(struct tx *tx, struct arena *a, struct str username, json_t *list);
/* One of them. -ENOENT: there is none, it is not for sign-in, or no organization uses it. */
must_check int federation_provider(struct tx *tx, struct arena *a, struct str id, struct doc *ret_provider);
/* In a write: the user whom the claims of a verified token name. Makes the account and gives the roles that the
 * settings say, with their events. 403 after call_fail() for those whom the provider cannot sign in. */
must_check int federation_vouched(struct call *c, const struct doc *provider, const json_t *claims,
                                  struct str *ret_user_id);
/* In a write, for a user who has become a member of one more organization: sessions that providers have begun end,
 * because whoever configures them has no part in that organization. */
must_check int federation_joined(struct tx *tx, struct arena *a, struct str user_id);
/* In a write: the organization has ceased to use a provider. Its people's sessions that providers have begun end. */
must_check int federation_left(struct tx *tx, struct arena *a, struct str org_id);
/* The same for all organizations that use the provider, where it has become another one. */
must_check int federation_changed(struct tx *tx, struct arena *a, const struct doc *provider, const json_t *before);

#endif
