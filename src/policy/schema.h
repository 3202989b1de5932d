/* What policies can refer to: actions with their contexts, and entity types. One table for the validator and for
 * docs/policies.md. */
#ifndef STEWARD_POLICY_SCHEMA_H
#define STEWARD_POLICY_SCHEMA_H

#include "policy/value.h"

#define POLICY_NAMESPACE "ResourcePolicy::"
#define POLICY_ACTION POLICY_NAMESPACE "Action"
#define POLICY_ORGANIZATION POLICY_NAMESPACE "Organization"
#define POLICY_PROJECT POLICY_NAMESPACE "Project"
#define POLICY_CLUSTER POLICY_NAMESPACE "Cluster"
#define POLICY_USER POLICY_NAMESPACE "User"
#define POLICY_API_KEY POLICY_NAMESPACE "ApiKey"
#define POLICY_SERVICE_ACCOUNT POLICY_NAMESPACE "ServiceAccount"
#define POLICY_CLOUD_PROVIDER POLICY_NAMESPACE "CloudProvider"
#define POLICY_REGION POLICY_NAMESPACE "Region"

#define ACTION_CLUSTER "cluster.modify"
#define ACTION_ACCESS_LIST "project.ipAccessList.modify"
#define ACTION_PEERING "project.vpcPeering.modify"
#define ACTION_PRIVATE_ENDPOINT "project.privateEndpoint.modify"

enum policy_id_form { ID_FORM_ANY, ID_FORM_OURS, ID_FORM_ACTION, ID_FORM_PROVIDER, ID_FORM_REGION };

struct policy_attribute;

struct policy_shape {
	enum policy_kind kind;
	unsigned types;                            /* of an entity: bit i for policy_types[i] */
	const struct policy_shape *item;           /* of a set */
	const struct policy_attribute *attributes; /* of a record */
	size_t attribute_count;
};

struct policy_attribute {
	const char *name;
	const struct policy_shape *shape;
	bool optional; /* a policy must ask `has` first */
};

struct policy_type {
	const char *name, *alias; /* alias: the name that policies written for other services use, or NULL */
	unsigned above;           /* types that can contain it */
	enum policy_id_form form;
	const struct policy_shape *attributes;
};

struct policy_action {
	const char *id;
	unsigned resources; /* types that the action applies to */
	const struct policy_shape *context;
};

extern const struct policy_type policy_types[];
extern const unsigned policy_type_count;
extern const struct policy_action policy_actions[];
extern const unsigned policy_action_count;
extern const unsigned policy_principals;

/* -1 when there is none of that name. */
int policy_type_find(struct str name);
int policy_action_find(struct str id);
/* NULL when the id has this form; otherwise what it must be, for messages. */
const char *policy_id_fault(enum policy_id_form form, struct str id);

#define POLICY_ACTIONS_MAX 4

#endif
