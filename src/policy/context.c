/* Contexts. Whatever a document does not say is left out; the schema has it as optional, or as the value that the
 * absence means. */
#include "policy/rules.h"

#include "base/json.h"

#include <ctype.h>

static json_t *object_new(struct arena *a)
{
	return doc_json(a, STR("{}"));
}

static struct str lower(struct arena *a, struct str text)
{
	char *z = arena_z(a, text);
	for (size_t i = 0; i < text.n; i++)
		z[i] = (char)(z[i] == '_' ? '-' : tolower((unsigned char)z[i]));
	return (struct str){z, text.n};
}

/* "AWS", "US_EAST_1": aws:us-east-1 */
static json_t *region_json(struct arena *a, struct str provider, struct str region)
{
	return policy_entity_json(POLICY_REGION,
	                          lower(a, arena_printf(a, "%.*s:%.*s", STR_ARG(provider), STR_ARG(region))));
}

static json_t *provider_json(struct arena *a, struct str provider)
{
	return policy_entity_json(POLICY_CLOUD_PROVIDER, lower(a, provider));
}

json_t *policy_link_context(struct arena *a, const char *action, const struct policy_link *link)
{
	bool peering = strcmp(action, ACTION_PEERING) == 0;
	json_t *context = object_new(a), *to = json_object();
	struct policy_ip ip;
	json_put(context, peering ? "vpcPeering" : "privateEndpoint", to);
	json_put(to, "cloudProvider", provider_json(a, link->provider));
	if (link->region.n)
		json_put(to, "region", region_json(a, link->provider, link->region));
	if (peering && policy_ip_parse(link->cidr_block, &ip))
		json_put(to, "cidrBlock", policy_ip_json(link->cidr_block));
	if (peering && link->account_id.n)
		json_put_str(to, "accountId", link->account_id);
	return context;
}

/* Networks are written with their host bits cleared, so that every way of writing one is the same to a policy. */
void policy_access_subject(struct arena *a, const struct str *names, size_t count, struct policy_subject *s)
{
	json_t *context = object_new(a), *project = json_object(), *addresses = json_array(), *groups = json_array();
	json_t **entries = arena_new_array(a, json_t *, count + 1);
	json_put(project, "ipAccessList", addresses);
	json_put(project, "awsSecurityGroups", groups);
	json_put(context, "project", project);
	for (size_t i = 0; i < count; i++) {
		struct cidr network;
		char text[IP_TEXT];
		entries[i] = object_new(a);
		if (cidr_parse(names[i], &network)) {
			cidr_format(&network, text);
			json_array_append_new(addresses, policy_ip_json(str_of(text)));
			json_put(entries[i], "address", policy_ip_json(str_of(text)));
		} else {
			json_add_str(groups, names[i]);
			json_put_str(entries[i], "awsSecurityGroup", names[i]);
		}
	}
	s->action = ACTION_ACCESS_LIST;
	s->context = context;
	s->entries = entries;
	s->entry_count = count;
}

enum size_class { SIZE_GENERAL, SIZE_LOW_CPU, SIZE_NVME, SIZE_CLASSES };

struct cluster_facts {
	json_int_t least[SIZE_CLASSES], most[SIZE_CLASSES], disk_gb, nodes, shards;
	bool dedicated;
	json_t *providers, *regions;
};

/* M40: 40, general; R40: 40, low CPU; M40_NVME: 40, NVMe. */
static void size_add(struct cluster_facts *f, struct str size)
{
	json_int_t number = 0;
	struct str first, rest;
	str_cut(size, '_', &first, &rest);
	if (first.n < 2 || (first.p[0] != 'M' && first.p[0] != 'R'))
		return;
	for (size_t i = 1; i < first.n && number < 1000000; i++) {
		if (!isdigit((unsigned char)first.p[i]))
			return;
		number = number * 10 + (first.p[i] - '0');
	}
	enum size_class class = first.p[0] == 'R'               ? SIZE_LOW_CPU
	                        : str_starts(rest, STR("NVME")) ? SIZE_NVME
	                                                        : SIZE_GENERAL;
	if (f->least[class] < 0 || number < f->least[class])
		f->least[class] = number;
	if (number > f->most[class])
		f->most[class] = number;
}

static void specs_add(struct cluster_facts *f, const json_t *specs)
{
	const json_t *disk = json_object_get(specs, "diskSizeGB"), *nodes = json_object_get(specs, "nodeCount");
	json_int_t gb = (json_int_t)(json_is_number(disk) ? json_number_value(disk) : -1);
	/* Specs of no nodes are there only to be filled in later. */
	if (!specs || (nodes && json_integer_value(nodes) == 0))
		return;
	size_add(f, json_field(specs, "instanceSize"));
	f->disk_gb = gb > f->disk_gb ? gb : f->disk_gb;
	f->nodes += json_integer_value(nodes);
}

static void scaling_add(struct cluster_facts *f, const json_t *scaling)
{
	const json_t *compute = json_object_get(scaling, "compute");
	if (!json_is_true(json_object_get(compute, "enabled")))
		return;
	size_add(f, json_field(compute, "minInstanceSize"));
	size_add(f, json_field(compute, "maxInstanceSize"));
}

static void array_add_once(json_t *array, json_t *item)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		if (json_equal(json_array_get(array, i), item)) {
			json_decref(item);
			return;
		}
	json_array_append_new(array, item);
}

static void region_add(struct arena *a, struct cluster_facts *f, const json_t *config)
{
	struct str provider = json_field(config, "providerName"), region = json_field(config, "regionName");
	if (str_is(provider, "TENANT") || str_is(provider, "FLEX")) {
		provider = json_field(config, "backingProviderName");
		f->dedicated = false;
	}
	if (provider.n) {
		array_add_once(f->providers, provider_json(a, provider));
		if (region.n)
			array_add_once(f->regions, region_json(a, provider, region));
	}
	specs_add(f, json_object_get(config, "electableSpecs"));
	specs_add(f, json_object_get(config, "readOnlySpecs"));
	specs_add(f, json_object_get(config, "analyticsSpecs"));
	scaling_add(f, json_object_get(config, "autoScaling"));
	scaling_add(f, json_object_get(config, "analyticsAutoScaling"));
}

static void facts_read(struct arena *a, const json_t *cluster, struct cluster_facts *f)
{
	const json_t *specs = json_object_get(cluster, "replicationSpecs");
	for (size_t i = 0; i < json_array_size(specs); i++) {
		const json_t *spec = json_array_get(specs, i), *configs = json_object_get(spec, "regionConfigs");
		/* Older versions have one spec for several equal shards. */
		const json_t *shards = json_object_get(spec, "numShards");
		f->shards += shards ? json_integer_value(shards) : 1;
		for (size_t k = 0; k < json_array_size(configs); k++)
			region_add(a, f, json_array_get(configs, k));
	}
}

static void number_set(json_t *to, const char *name, json_int_t value)
{
	if (value >= 0)
		json_put(to, name, json_integer(value));
}

static void text_set(json_t *to, const char *name, struct str value, const char *otherwise)
{
	if (value.p)
		json_put_str(to, name, value);
	else if (otherwise)
		json_put_z(to, name, otherwise);
}

static void flag_set(json_t *to, const char *name, const json_t *cluster)
{
	json_put(to, name, json_boolean(json_is_true(json_object_get(cluster, name))));
}

void policy_cluster_subject(struct arena *a, const json_t *cluster, struct policy_subject *s)
{
	struct cluster_facts f = {.least = {-1, -1, -1},
	                          .most = {-1, -1, -1},
	                          .disk_gb = -1,
	                          .dedicated = true,
	                          .providers = json_array(),
	                          .regions = json_array()};
	json_t *context = object_new(a), *to = json_object();
	facts_read(a, cluster, &f);
	json_put(context, "cluster", to);
	json_put(to, "cloudProviders", f.providers);
	json_put(to, "regions", f.regions);
	json_put(to, "isDedicated", json_boolean(f.dedicated));
	number_set(to, "minGeneralClusterSize", f.least[SIZE_GENERAL]);
	number_set(to, "maxGeneralClusterSize", f.most[SIZE_GENERAL]);
	number_set(to, "minLowCpuClusterSize", f.least[SIZE_LOW_CPU]);
	number_set(to, "maxLowCpuClusterSize", f.most[SIZE_LOW_CPU]);
	number_set(to, "minNvmeClusterSize", f.least[SIZE_NVME]);
	number_set(to, "maxNvmeClusterSize", f.most[SIZE_NVME]);
	number_set(to, "maxDiskSizeGB", f.disk_gb);
	number_set(to, "nodeCount", f.nodes);
	number_set(to, "shardCount", f.shards);
	text_set(to, "name", json_field(cluster, "name"), "");
	text_set(to, "clusterType", json_field(cluster, "clusterType"), "REPLICASET");
	text_set(to, "dbMajorVersion", json_field(cluster, "dbMajorVersion"), NULL);
	text_set(to, "encryptionAtRestProvider", json_field(cluster, "encryptionAtRestProvider"), "NONE");
	text_set(to, "minimumTlsProtocol",
	         json_field(json_object_get(cluster, "advancedConfiguration"), "minimumEnabledTlsProtocol"), NULL);
	flag_set(to, "backupEnabled", cluster);
	flag_set(to, "pitEnabled", cluster);
	flag_set(to, "terminationProtectionEnabled", cluster);
	s->action = ACTION_CLUSTER;
	s->context = context;
	s->resource = (struct policy_uid){STR(POLICY_CLUSTER), json_field(cluster, "id")};
	s->resource_name = json_field(cluster, "name");
}
