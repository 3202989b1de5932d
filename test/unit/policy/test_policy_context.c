/* What policies learn of clusters and private networks, and what they say about it. */
#include "check.h"

#include "policy/rules.h"

static struct arena *arena;

static const char cluster_text[] =
        "{'id': '32b6e34b3d91647abb20e7b8', 'name': 'one', 'clusterType': 'SHARDED', 'backupEnabled': true, "
        "'dbMajorVersion': '16',"
        " 'advancedConfiguration': {'minimumEnabledTlsProtocol': 'TLS1_2'}, 'replicationSpecs': ["
        "  {'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1',"
        "     'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 3, 'diskSizeGB': 10.5},"
        "     'readOnlySpecs': {'instanceSize': 'M10', 'nodeCount': 0},"
        "     'analyticsSpecs': {'instanceSize': 'R40_GEN_2', 'nodeCount': 1, 'diskSizeGB': 80},"
        "     'autoScaling': {'compute': {'enabled': true, 'minInstanceSize': 'M20', 'maxInstanceSize': 'M60'}}},"
        "    {'providerName': 'GCP', 'regionName': 'WESTERN_EUROPE', 'electableSpecs': {'instanceSize': 'M40_NVME', "
        "'nodeCount': 2}}]},"
        "  {'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'electableSpecs': {'instanceSize': "
        "'M30', 'nodeCount': 3}}]}]}";

static const char tenant_text[] =
        "{'id': '32b6e34b3d91647abb20e7b8', 'name': 'two', 'replicationSpecs': [{'regionConfigs': [{'providerName': "
        "'TENANT',"
        " 'backingProviderName': 'AZURE', 'regionName': 'EUROPE_WEST', 'electableSpecs': {'instanceSize': 'M0'}}]}]}";

static json_t *quoted(const char *text)
{
	char *z = arena_z(arena, str_of(text));
	for (size_t i = 0; z[i]; i++)
		z[i] = z[i] == '\'' ? '"' : z[i];
	json_t *value = json_loads(z, 0, NULL);
	CHECK(value);
	return value;
}

/* Whether a forbid with that condition is valid and applies. */
static bool forbids(struct policy_subject *s, const char *condition)
{
	struct str text = arena_printf(
	        arena, "forbid(principal, action == ResourcePolicy::Action::\"%s\", resource) when { %s };", s->action,
	        condition);
	struct policy_faults faults = {.count = 0};
	struct policy_fault fault;
	struct policy_rule rule = {.policy_id = STR("x")};
	struct policy_rules rules = {&rule, 1, 1};
	CHECK(policy_parse(arena, text, &rule.statements, &fault) == 0);
	policy_validate(arena, rule.statements, &faults);
	for (size_t i = 0; i < faults.count; i++)
		fprintf(stderr, "%s: %u: %.*s\n", condition, faults.list[i].column, STR_ARG(faults.list[i].text));
	CHECK(faults.count == 0);
	s->org_id = STR("32b6e34b3d91647abb20e7b1");
	s->group_id = STR("32b6e34b3d91647abb20e7b2");
	if (!s->resource.id.p)
		s->resource = (struct policy_uid){STR(POLICY_PROJECT), s->group_id};
	return policy_rules_ask(&rules, arena, s) == 1;
}

#define C "context.cluster"

static void test_cluster(void)
{
	struct policy_subject s = {.action = NULL};
	json_t *cluster = quoted(cluster_text);
	policy_cluster_subject(arena, cluster, &s);
	CHECK(forbids(&s, C ".cloudProviders == [cloud::cloudProvider::\"gcp\", cloud::cloudProvider::\"aws\"]"));
	CHECK(forbids(&s, C ".regions == [cloud::region::\"aws:us-east-1\", cloud::region::\"gcp:western-europe\"]"));
	CHECK(forbids(&s, C " has minGeneralClusterSize && " C ".minGeneralClusterSize == 20"));
	CHECK(forbids(&s, C " has maxGeneralClusterSize && " C ".maxGeneralClusterSize == 60"));
	CHECK(forbids(&s, C " has minLowCpuClusterSize && " C ".minLowCpuClusterSize == 40"));
	CHECK(forbids(&s, C " has maxNvmeClusterSize && " C ".maxNvmeClusterSize == 40"));
	CHECK(forbids(&s, C " has maxDiskSizeGB && " C ".maxDiskSizeGB == 80"));
	CHECK(forbids(&s, C ".nodeCount == 9 && " C ".shardCount == 2 && " C ".isDedicated"));
	CHECK(forbids(&s, C ".backupEnabled && !" C ".pitEnabled && !" C ".terminationProtectionEnabled"));
	CHECK(forbids(&s, C ".name == \"one\" && " C ".clusterType == \"SHARDED\" && " C
	                    ".encryptionAtRestProvider == \"NONE\""));
	CHECK(forbids(&s, C " has minimumTlsProtocol && " C ".minimumTlsProtocol == \"TLS1_2\""));
	CHECK(forbids(&s, C " has dbMajorVersion && " C ".dbMajorVersion like \"1*\""));
	CHECK(forbids(&s,
	              "resource.name == \"one\" && resource == ResourcePolicy::Cluster::\"32b6e34b3d91647abb20e7b8\""));
	CHECK(forbids(&s, "resource in ResourcePolicy::Project::\"32b6e34b3d91647abb20e7b2\""));
	CHECK(forbids(&s, "resource in cloud::organization::\"32b6e34b3d91647abb20e7b1\""));
	CHECK(!forbids(&s, "resource in ResourcePolicy::Project::\"32b6e34b3d91647abb20e7b3\""));
	CHECK(!forbids(&s, "principal is ResourcePolicy::User"));
	json_decref(cluster);
}

static void test_tenant(void)
{
	struct policy_subject s = {.action = NULL};
	json_t *cluster = quoted(tenant_text);
	policy_cluster_subject(arena, cluster, &s);
	CHECK(forbids(&s, "!" C ".isDedicated && " C ".regions == [cloud::region::\"azure:europe-west\"]"));
	CHECK(!forbids(&s, C " has minLowCpuClusterSize || " C " has maxDiskSizeGB || " C " has dbMajorVersion"));
	json_decref(cluster);
	cluster = json_object();
	policy_cluster_subject(arena, cluster, &s);
	CHECK(forbids(&s, C ".regions.isEmpty() && " C ".nodeCount == 0 && " C ".name == \"\""));
	json_decref(cluster);
}

static void test_links(void)
{
	struct policy_link link = {STR("AWS"), STR("EU_WEST_1"), STR("10.0.0.0/16"), STR("123456789012")};
	struct policy_subject s = {.action = ACTION_PEERING,
	                           .context = policy_link_context(arena, ACTION_PEERING, &link)};
	CHECK(forbids(&s, "context.vpcPeering.cloudProvider == cloud::cloudProvider::\"aws\""));
	CHECK(forbids(
	        &s, "context.vpcPeering has region && context.vpcPeering.region == cloud::region::\"aws:eu-west-1\""));
	CHECK(forbids(
	        &s, "context.vpcPeering has cidrBlock && context.vpcPeering.cidrBlock.isInRange(ip(\"10.0.0.0/8\"))"));
	CHECK(forbids(&s, "context.vpcPeering has accountId && context.vpcPeering.accountId == \"123456789012\""));
	link = (struct policy_link){.provider = STR("AZURE")};
	s = (struct policy_subject){.action = ACTION_PRIVATE_ENDPOINT,
	                            .context = policy_link_context(arena, ACTION_PRIVATE_ENDPOINT, &link)};
	CHECK(forbids(&s, "context.privateEndpoint.cloudProvider == cloud::cloudProvider::\"azure\""));
	CHECK(!forbids(&s, "context.privateEndpoint has region"));
}

static void test_access_list(void)
{
	static const struct str names[] = {{"10.1.2.3/8", 10}, {"sg-0a1b2c3d", 11}, {"2001:db8::1", 11}};
	struct policy_subject s = {.action = NULL};
	policy_access_subject(arena, names, 3, &s);
	CHECK(forbids(&s, "context.project.ipAccessList == [ip(\"10.0.0.0/8\"), ip(\"2001:db8::1\")]"));
	CHECK(forbids(&s, "context.project.awsSecurityGroups == [\"sg-0a1b2c3d\"]"));
	/* Each entry is asked about. */
	CHECK(forbids(&s, "context.entry has address && context.entry.address.isIpv6()"));
	CHECK(forbids(&s, "context.entry has awsSecurityGroup && context.entry.awsSecurityGroup like \"sg-*\""));
	CHECK(!forbids(&s, "context.entry has address && context.entry.address.isLoopback()"));
}

int main(void)
{
	arena = arena_new();
	test_cluster();
	test_tenant();
	test_links();
	test_access_list();
	arena_free(arena);
	return CHECK_DONE();
}
