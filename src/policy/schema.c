/* The tables, and the form of each type's ids. */
#include "policy/schema.h"

#include "base/id.h"

enum {
	T_ACTION = 1u << 0,
	T_ORGANIZATION = 1u << 1,
	T_PROJECT = 1u << 2,
	T_CLUSTER = 1u << 3,
	T_USER = 1u << 4,
	T_API_KEY = 1u << 5,
	T_SERVICE_ACCOUNT = 1u << 6,
	T_CLOUD_PROVIDER = 1u << 7,
	T_REGION = 1u << 8
};

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define RECORD(list)                                                                        \
	{                                                                                   \
		.kind = POLICY_RECORD, .attributes = (list), .attribute_count = COUNT(list) \
	}

static const struct policy_shape boolean = {.kind = POLICY_BOOL}, number = {.kind = POLICY_LONG},
                                 text = {.kind = POLICY_STRING}, address = {.kind = POLICY_IP},
                                 provider = {.kind = POLICY_ENTITY, .types = T_CLOUD_PROVIDER},
                                 region = {.kind = POLICY_ENTITY, .types = T_REGION},
                                 texts = {.kind = POLICY_SET, .item = &text},
                                 addresses = {.kind = POLICY_SET, .item = &address},
                                 providers = {.kind = POLICY_SET, .item = &provider},
                                 regions = {.kind = POLICY_SET, .item = &region};

static const struct policy_attribute named_list[] = {{"name", &text, false}};
static const struct policy_shape named = RECORD(named_list), plain = {.kind = POLICY_RECORD};

static const struct policy_attribute cluster_list[] = {
        {"backupEnabled", &boolean, false},
        {"cloudProviders", &providers, false},
        {"clusterType", &text, false},
        {"dbMajorVersion", &text, true},
        {"encryptionAtRestProvider", &text, false},
        {"isDedicated", &boolean, false},
        {"maxDiskSizeGB", &number, true},
        {"maxGeneralClusterSize", &number, true},
        {"maxLowCpuClusterSize", &number, true},
        {"maxNvmeClusterSize", &number, true},
        {"minGeneralClusterSize", &number, true},
        {"minLowCpuClusterSize", &number, true},
        {"minNvmeClusterSize", &number, true},
        {"minimumTlsProtocol", &text, true},
        {"name", &text, false},
        {"nodeCount", &number, false},
        {"pitEnabled", &boolean, false},
        {"regions", &regions, false},
        {"shardCount", &number, false},
        {"terminationProtectionEnabled", &boolean, false},
};
static const struct policy_shape cluster = RECORD(cluster_list);
static const struct policy_attribute cluster_context_list[] = {{"cluster", &cluster, false}};
static const struct policy_shape cluster_context = RECORD(cluster_context_list);

static const struct policy_attribute entry_list[] = {{"address", &address, true}, {"awsSecurityGroup", &text, true}};
static const struct policy_shape entry = RECORD(entry_list);
static const struct policy_attribute access_list[] = {{"awsSecurityGroups", &texts, false},
                                                      {"ipAccessList", &addresses, false}};
static const struct policy_shape access = RECORD(access_list);
static const struct policy_attribute access_context_list[] = {{"entry", &entry, false}, {"project", &access, false}};
static const struct policy_shape access_context = RECORD(access_context_list);

static const struct policy_attribute peering_list[] = {{"accountId", &text, true},
                                                       {"cidrBlock", &address, true},
                                                       {"cloudProvider", &provider, false},
                                                       {"region", &region, true}};
static const struct policy_shape peering = RECORD(peering_list);
static const struct policy_attribute peering_context_list[] = {{"vpcPeering", &peering, false}};
static const struct policy_shape peering_context = RECORD(peering_context_list);

static const struct policy_attribute endpoint_list[] = {{"cloudProvider", &provider, false}, {"region", &region, true}};
static const struct policy_shape endpoint = RECORD(endpoint_list);
static const struct policy_attribute endpoint_context_list[] = {{"privateEndpoint", &endpoint, false}};
static const struct policy_shape endpoint_context = RECORD(endpoint_context_list);

/* In the order of the T_ bits. */
const struct policy_type policy_types[] = {
        {POLICY_ACTION, "cloud::action", 0, ID_FORM_ACTION, &plain},
        {POLICY_ORGANIZATION, "cloud::organization", 0, ID_FORM_OURS, &named},
        {POLICY_PROJECT, "cloud::project", T_ORGANIZATION, ID_FORM_OURS, &named},
        {POLICY_CLUSTER, "cloud::cluster", T_PROJECT | T_ORGANIZATION, ID_FORM_OURS, &named},
        {POLICY_USER, NULL, T_ORGANIZATION, ID_FORM_OURS, &named},
        {POLICY_API_KEY, NULL, T_ORGANIZATION, ID_FORM_OURS, &named},
        {POLICY_SERVICE_ACCOUNT, NULL, T_ORGANIZATION, ID_FORM_ANY, &named},
        {POLICY_CLOUD_PROVIDER, "cloud::cloudProvider", 0, ID_FORM_PROVIDER, &plain},
        {POLICY_REGION, "cloud::region", 0, ID_FORM_REGION, &plain},
};
const unsigned policy_type_count = COUNT(policy_types);

const struct policy_action policy_actions[] = {
        {ACTION_CLUSTER, T_CLUSTER, &cluster_context},
        {ACTION_ACCESS_LIST, T_PROJECT, &access_context},
        {ACTION_PEERING, T_PROJECT, &peering_context},
        {ACTION_PRIVATE_ENDPOINT, T_PROJECT, &endpoint_context},
};
const unsigned policy_action_count = COUNT(policy_actions);
_Static_assert(COUNT(policy_actions) <= POLICY_ACTIONS_MAX, "the validator keeps one shape for each action");

const unsigned policy_principals = T_USER | T_API_KEY | T_SERVICE_ACCOUNT;

int policy_type_find(struct str name)
{
	for (unsigned i = 0; i < policy_type_count; i++)
		if (str_is(name, policy_types[i].name) ||
		    (policy_types[i].alias && str_is(name, policy_types[i].alias)))
			return (int)i;
	return -1;
}

int policy_action_find(struct str id)
{
	for (unsigned i = 0; i < policy_action_count; i++)
		if (str_is(id, policy_actions[i].id))
			return (int)i;
	return -1;
}

static bool is_provider(struct str id)
{
	return str_is(id, "aws") || str_is(id, "azure") || str_is(id, "gcp");
}

static bool is_region(struct str id)
{
	struct str prefix, name;
	if (!str_cut(id, ':', &prefix, &name) || !is_provider(prefix) || !name.n)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!((name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= '0' && name.p[i] <= '9') ||
		      name.p[i] == '-'))
			return false;
	return true;
}

const char *policy_id_fault(enum policy_id_form form, struct str id)
{
	switch (form) {
	case ID_FORM_ANY: return NULL;
	case ID_FORM_OURS: return id_is_valid(id) ? NULL : "24 hexadecimal digits";
	case ID_FORM_PROVIDER: return is_provider(id) ? NULL : "aws, azure or gcp";
	case ID_FORM_REGION:
		return is_region(id) ? NULL : "a provider and a region in small letters, as in aws:us-east-1";
	case ID_FORM_ACTION:
		return policy_action_find(id) >= 0 ? NULL
		                                   : ACTION_CLUSTER ", " ACTION_ACCESS_LIST ", " ACTION_PEERING
		                                                    " or " ACTION_PRIVATE_ENDPOINT;
	}
	return NULL;
}
