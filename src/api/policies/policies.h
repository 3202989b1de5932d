/* An organization's resource policies in force: what the families that change clusters, access lists and private
 * networks ask before they change anything, and how what exists is held against the policies.
 *
 * Everything is allowed that no forbid applies to. Evaluation errors do not forbid (they are logged); an evaluation
 * that runs out of steps does. Without policies a check costs one count in the store. */
#ifndef STEWARD_API_POLICIES_POLICIES_H
#define STEWARD_API_POLICIES_POLICIES_H

#include "call/call.h"
#include "policy/rules.h"

/* Each returns 0, or negative after a 403 RESOURCE_POLICY_VIOLATION whose parameters hold the id and the name of each
 * resource policy in the way. In the path's project; before the change is written. */

/* `names` are the list's new entries: networks, or AWS security groups. */
must_check int policy_check_access_list(struct call *c, const struct str *names, size_t count);
/* The cluster as it will be, with its id and name: a ClusterDescription20240805; and as it is, or NULL for a new one. A
 * policy that looks only at what a cluster is, and at nothing that changes, does not stand in the way of what is there:
 * a cluster that breaks it can be paused. */
must_check int policy_check_cluster(struct call *c, const json_t *cluster, const json_t *before);
/* ACTION_PEERING, ACTION_PRIVATE_ENDPOINT. */
must_check int policy_check_link(struct call *c, const char *action, const struct policy_link *link);

must_check int policy_rules_load(struct tx *tx, struct arena *a, struct str org_id, struct policy_rules *ret_rules);
/* Says where the subject is; it is the project itself unless it says otherwise. `org` has its body. */
void policy_subject_place(struct arena *a, const struct doc *org, const struct doc *project, struct policy_subject *s);

#endif
