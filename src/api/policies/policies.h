/* An organization's resource policies in force: what the families that change clusters, access lists and private
 * networks ask before they change anything, and how what exists is held against the policies.
 *
 * Everything is allowed that no forbid applies to. Evaluation errors do not forbid (they are logged); an evaluation
 * that runs out of steps does. Without policies a check costs one count in the store. */
#ifndef STEWARD_API_POLICIES_POLICIES_H
#define STEWARD_API_POLICIES_POLICIES_H

#include "call/call.h"
#include "policy/policy.h"
#include "policy/schema.h"

/* Each returns 0, or negative after a 403 RESOURCE_POLICY_VIOLATION whose parameters hold the id and the name of each
 * resource policy in the way. In the path's project; before the change is written. */

/* `names` are the list's new entries: networks, or AWS security groups. */
must_check int policy_check_access_list(struct call *c, const struct str *names, size_t count);
/* The cluster as it will be, with its id and name: a ClusterDescription20240805; and as it is, or NULL for a new one. A
 * policy that looks only at what a cluster is, and at nothing that changes, does not stand in the way of what is there:
 * a cluster that breaks it can be paused. */
must_check int policy_check_cluster(struct call *c, const json_t *cluster, const json_t *before);
/* A peering connection or a private endpoint (ACTION_PEERING, ACTION_PRIVATE_ENDPOINT). Provider and region in the
 * API's words ("AWS", "US_EAST_1"); what is empty is not known. */
struct policy_link {
	struct str provider, region, cidr_block, account_id;
};
must_check int policy_check_link(struct call *c, const char *action, const struct policy_link *link);

/* Loaded policies, and what each says about one thing. */
struct policy_rule {
	struct str resource_policy_id, resource_policy_name, policy_id;
	struct policy_statement *statements;
	bool broken; /* by the last policy_judge() */
};
struct policy_rules {
	struct policy_rule *list; /* in the order of the policies; those of one resource policy side by side */
	size_t count;
};

/* What is done to what. An access list is judged once for each of its entries, by those statements that ask about
 * one. */
struct policy_subject {
	const char *action;
	struct policy_uid resource;
	struct str resource_name, group_id, group_name, org_id, org_name;
	const struct principal *caller; /* NULL: nobody in particular */
	json_t *context;
	const json_t *before;   /* the context as it was, of a change; or NULL */
	json_t *const *entries; /* values of context.entry, or NULL */
	size_t entry_count;
};

must_check int policy_rules_load(struct tx *tx, struct arena *a, struct str org_id, struct policy_rules *ret_rules);
/* Marks the rules that are broken; the number of them. */
size_t policy_judge(struct arena *a, const struct policy_rules *rules, const struct policy_subject *s);

/* Contexts, for the compliance of what exists. Owned by the arena. */
void policy_access_subject(struct arena *a, const struct str *names, size_t count, struct policy_subject *s);
void policy_cluster_subject(struct arena *a, const json_t *cluster, struct policy_subject *s);

json_t *policy_link_context(struct arena *a, const char *action, const struct policy_link *link);

#endif
