/* Policies of an organization, and what they say about something that is done or that exists: its context is made from
 * the API's documents (context.c) and evaluated against each forbid (rules.c). */
#ifndef STEWARD_POLICY_RULES_H
#define STEWARD_POLICY_RULES_H

#include "policy/policy.h"
#include "policy/schema.h"

/* What is done to what. An access list is asked about once for each of its entries, by those statements that look at
 * one. */
struct policy_subject {
	const char *action;
	struct policy_uid resource;
	struct str resource_name, group_id, group_name, org_id, org_name;
	struct policy_uid caller; /* type empty: nobody in particular */
	struct str caller_name;
	json_t *context;
	const json_t *before;   /* the context as it was, of a change; or NULL */
	json_t *const *entries; /* values of context.entry, or NULL */
	size_t entry_count;
};

/* A peering connection or a private endpoint. Provider and region in the API's words ("AWS", "US_EAST_1"); what is
 * empty is not known. */
struct policy_link {
	struct str provider, region, cidr_block, account_id;
};

/* Contexts; owned by the arena. `names` are entries of an access list: networks, or AWS security groups. The cluster is
 * a ClusterDescription20240805. */
void policy_access_subject(struct arena *a, const struct str *names, size_t count, struct policy_subject *s);
void policy_cluster_subject(struct arena *a, const json_t *cluster, struct policy_subject *s);
json_t *policy_link_context(struct arena *a, const char *action, const struct policy_link *link);

struct policy_rule {
	struct str resource_policy_id, resource_policy_name, policy_id;
	struct policy_statement *statements;
	bool broken; /* by the last policy_rules_ask() */
};
struct policy_rules {
	struct policy_rule *list; /* in the order of the policies; those of one resource policy side by side */
	size_t count, room;
};

/* Adds the policies [{"id", "body"}, ...] of a resource policy. One that does not parse is logged and left out: it was
 * parsed when it was written. */
void policy_rules_add(struct policy_rules *rules, struct arena *a, struct str id, struct str name,
                      const json_t *policies);
/* Marks the rules that are broken; the number of them. */
size_t policy_rules_ask(const struct policy_rules *rules, struct arena *a, const struct policy_subject *s);

#endif
