/* The rules of clusters. All faults are named, by their paths; what is missing and follows from the rest is filled in,
 * so that a stored cluster says everything about itself. */
#include "api/clusters/spec.h"

#include "api/clusters/cluster.h"
#include "api/clusters/nodes.h"
#include "api/kit/verbs.h"
#include "base/id.h"

#include <stdarg.h>
#include <stdio.h>

#define SHARDS_MAX 50
#define SHARD_NODES_MAX 50
#define DISK_MIN 10
#define DISK_MAX 4096
#define TAGS_MAX 50
#define NAME_LENGTH_MAX 64
#define TOP_PRIORITY 7

/* The place that is being looked at. */
struct place {
	const struct cluster_rules *rules;
	struct faults *faults;
	size_t spec, config;
};

#define FAULT(p, path, ...) faults_add((p)->faults, (p)->rules->arena, (path), __VA_ARGS__)

/* At a field of the region; `part`: of an object in it, or "". */
static void config_fault(const struct place *p, const char *part, const char *field, const char *format, ...)
        printf_like(4, 5);

static void config_fault(const struct place *p, const char *part, const char *field, const char *format, ...)
{
	struct arena *a = p->rules->arena;
	va_list args;
	va_start(args, format);
	struct str text = arena_vprintf(a, format, args);
	va_end(args);
	faults_add(p->faults, a,
	           arena_printf(a, "replicationSpecs[%zu].regionConfigs[%zu].%s%s%s", p->spec, p->config, part,
	                        *part ? "." : "", field),
	           "%.*s", STR_ARG(text));
}

static bool text_is(const json_t *object, const char *field, const char *value)
{
	return str_is(json_field(object, field), value);
}

const char *const hardware_fields[HARDWARE] = {
        [NODE_ELECTABLE] = "electableSpecs", [NODE_READ_ONLY] = "readOnlySpecs", [NODE_ANALYTICS] = "analyticsSpecs"};

const struct cluster_provider cluster_providers[] = {
        {"AWS", "AWSCloudProviderSettings", "AWSHardwareSpec20240805", "US_EAST_1"},
        {"AZURE", "AzureCloudProviderSettings", "AzureHardwareSpec20240805", "US_EAST_2"},
        {"GCP", "CloudGCPProviderSettings", "GCPHardwareSpec20240805", "CENTRAL_US"}};

static const struct cluster_provider *provider_find(struct str name)
{
	for (size_t i = 0; i < CLUSTER_PROVIDERS; i++)
		if (str_is(name, cluster_providers[i].name))
			return &cluster_providers[i];
	return NULL;
}

static bool region_is_known(struct str provider, struct str region)
{
	const struct cluster_provider *p = provider_find(provider);
	return p && schema_allows(schema_of_field(p->settings, "regionName"), region);
}

static bool size_is_known(struct str provider, struct str size)
{
	const struct cluster_provider *p = provider_find(provider);
	return schema_allows(schema_of_field(p ? p->hardware : "TenantHardwareSpec20240805", "instanceSize"), size);
}

static int size_number(struct str size)
{
	int number = 0;
	for (size_t i = 1; i < size.n && size.p[i] >= '0' && size.p[i] <= '9' && number < 100000; i++)
		number = number * 10 + (size.p[i] - '0');
	return number;
}

double cluster_disk_standard(struct str size)
{
	static const struct {
		int size;
		double gb;
	} table[] = {{10, 10}, {20, 20}, {30, 40}, {40, 80}, {50, 160}, {60, 320}, {80, 750}, {100, 1000}};
	int number = size_number(size);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (number <= table[i].size)
			return table[i].gb;
	return 1500;
}

bool cluster_is_tenant(const json_t *cluster)
{
	return region_is_shared(region_at(cluster, 0, 0));
}

bool region_is_shared(const json_t *config)
{
	return text_is(config, "providerName", "TENANT") || text_is(config, "providerName", "FLEX");
}

/* The operator's table; 0: it does not have the name. */
static unsigned version_named(const struct option_texts *names, struct str text)
{
	struct str name, major;
	uint64_t number;
	for (size_t i = 0; names && i < names->n; i++)
		if (str_cut(str_of(names->v[i]), '=', &name, &major) && str_eq(name, text) &&
		    str_to_u64(major, 1000, &number))
			return (unsigned)number;
	return 0;
}

unsigned cluster_version(const struct option_texts *names, const json_t *cluster)
{
	struct str text = json_field(cluster, "dbMajorVersion"), major, rest;
	uint64_t number = version_named(names, text);
	if (number)
		return (unsigned)number;
	bool two = str_cut(text, '.', &major, &rest);
	if ((two && !str_is(rest, "0")) || !str_to_u64(major, 1000, &number))
		return 0;
	return (unsigned)number;
}

/* What the shard's first electable nodes are: the others take it over where they say nothing. */
struct shard_size {
	struct str size;
	double disk;
};

static void hardware_check(const struct place *p, json_t *config, const char *field, const struct shard_size *shard)
{
	json_t *h = json_object_get(config, field), *count = json_object_get(h, "nodeCount"), *disk;
	struct str provider = json_field(config, "providerName"), size = json_field(h, "instanceSize");
	/* Of nodes that are not there, nothing is wanted; what is said of them may be what was read before. */
	bool none = json_is_integer(count) && json_integer_value(count) == 0;
	if (!h)
		return;
	if (!count && strcmp(field, "electableSpecs") == 0)
		config_fault(p, field, "nodeCount", "is required");
	else if (!count)
		json_put(h, "nodeCount", json_integer(0));
	else if (json_integer_value(count) < 0 || json_integer_value(count) > SHARD_NODES_MAX)
		config_fault(p, field, "nodeCount", "must be from 0 to %d", SHARD_NODES_MAX);
	if ((!size.n || none) && shard->size.n)
		json_put_str(h, "instanceSize", shard->size);
	else if (!size.n)
		config_fault(p, field, "instanceSize", "is required");
	else if (provider.n && !size_is_known(provider, size))
		config_fault(p, field, "instanceSize", "%.*s has no %.*s", STR_ARG(provider), STR_ARG(size));
	else if (strcmp(field, "analyticsSpecs") != 0 && !str_eq(size, shard->size))
		config_fault(p, field, "instanceSize",
		             "must be %.*s: electable and read-only nodes of a shard have one size",
		             STR_ARG(shard->size));
	disk = json_object_get(h, "diskSizeGB");
	if (!disk || none)
		json_put(h, "diskSizeGB", json_real(shard->disk));
	else if (json_number_value(disk) < DISK_MIN || json_number_value(disk) > DISK_MAX)
		config_fault(p, field, "diskSizeGB", "must be from %d to %d", DISK_MIN, DISK_MAX);
	else if (json_number_value(disk) != shard->disk)
		config_fault(p, field, "diskSizeGB", "must be the same for all nodes of a shard (%g)", shard->disk);
}

static void scaling_check(const struct place *p, const json_t *config, const char *field)
{
	static const char *const bounds[] = {"minInstanceSize", "maxInstanceSize"};
	const json_t *compute = json_object_get(json_object_get(config, field), "compute");
	const char *part = arena_printf(p->rules->arena, "%s.compute", field).p;
	struct str provider = json_field(config, "providerName");
	bool enabled = json_flag(compute, "enabled"), down = json_flag(compute, "scaleDownEnabled");
	if (down && !enabled)
		config_fault(p, part, "scaleDownEnabled", "needs compute.enabled to be true");
	for (int i = 0; i < 2; i++) {
		struct str size = json_field(compute, bounds[i]);
		if (!size.n && enabled && (i == 1 || down))
			config_fault(p, part, bounds[i], "is required");
		else if (size.n && provider.n && !size_is_known(provider, size))
			config_fault(p, part, bounds[i], "%.*s has no %.*s", STR_ARG(provider), STR_ARG(size));
	}
	struct str low = json_field(compute, bounds[0]), high = json_field(compute, bounds[1]);
	if (low.n && high.n && size_number(low) > size_number(high))
		config_fault(p, part, bounds[0], "must not be larger than maxInstanceSize");
}

/* Provider and region, and whether they belong together. */
static void region_check(const struct place *p, const json_t *configs, json_t *config)
{
	struct str provider = json_field(config, "providerName"), region = json_field(config, "regionName"),
	           backing = provider;
	if (!provider.n)
		config_fault(p, "", "providerName", "is required");
	if (region_is_shared(config)) {
		backing = json_field(config, "backingProviderName");
		if (!backing.n)
			config_fault(p, "", "backingProviderName", "is required");
	}
	if (!region.n)
		config_fault(p, "", "regionName", "is required");
	else if (backing.n && !region_is_known(backing, region))
		config_fault(p, "", "regionName", "%.*s has no region %.*s", STR_ARG(backing), STR_ARG(region));
	for (size_t i = 0; i < p->config; i++) {
		const json_t *other = json_array_get(configs, i);
		if (region.n && str_eq(json_field(other, "regionName"), region) &&
		    str_eq(json_field(other, "providerName"), provider))
			config_fault(p, "", "regionName", "must not repeat an earlier region");
	}
}

/* Regions with electable nodes have 7, 6, 5 and so on, each once; the others 0. */
static void priorities_check(struct place *p, json_t *configs)
{
	size_t voting = 0, count = json_array_size(configs);
	unsigned taken = 0;
	for (size_t i = 0; i < count; i++)
		voting += region_nodes(json_array_get(configs, i), "electableSpecs") > 0;
	for (p->config = 0; p->config < count; p->config++) {
		json_t *config = json_array_get(configs, p->config), *given = json_object_get(config, "priority");
		bool votes = region_nodes(config, "electableSpecs") > 0;
		json_int_t value = json_integer_value(given);
		if (!given && (!votes || voting == 1))
			json_put(config, "priority", json_integer(votes ? TOP_PRIORITY : 0));
		else if (!given)
			config_fault(p, "", "priority", "is required where several regions have electable nodes");
		else if (!votes && value != 0)
			config_fault(p, "", "priority", "must be 0 for a region without electable nodes");
		else if (votes && (value > TOP_PRIORITY || value <= TOP_PRIORITY - (json_int_t)voting))
			config_fault(p, "", "priority",
			             "must be from 7 down to %d: one for each region with electable nodes",
			             TOP_PRIORITY - (int)voting + 1);
		else if (votes && taken & 1u << value)
			config_fault(p, "", "priority", "must not be the priority of another region");
		else if (votes)
			taken |= 1u << value;
	}
}

/* A disk that nothing is said about stays as it was, unless it was a shared tier's. */
static double disk_before(const struct place *p, const json_t *spec)
{
	if (cluster_is_tenant(p->rules->old))
		return 0;
	const json_t *before =
	        json_find(json_object_get(p->rules->old, "replicationSpecs"), "id", json_field(spec, "id"));
	const json_t *config = json_array_get(json_object_get(before, "regionConfigs"), 0);
	return json_number_value(json_object_get(json_object_get(config, "electableSpecs"), "diskSizeGB"));
}

const json_t *shard_hardware(const json_t *spec)
{
	const json_t *configs = json_object_get(spec, "regionConfigs"), *config;
	for (int h = 0; h < HARDWARE; h++)
		for (size_t i = 0; (config = json_array_get(configs, i)); i++)
			if (region_nodes(config, hardware_fields[h]) > 0)
				return json_object_get(config, hardware_fields[h]);
	return NULL;
}

static struct shard_size shard_size_of(const struct place *p, const json_t *spec)
{
	const json_t *configs = json_object_get(spec, "regionConfigs"), *first = shard_hardware(spec);
	struct shard_size s = {.size = json_field(first, "instanceSize"),
	                       .disk = json_number_value(json_object_get(first, "diskSizeGB"))};
	for (int h = 0; h < HARDWARE; h++)
		for (size_t i = 0; i < json_array_size(configs); i++) {
			const json_t *one = json_object_get(json_array_get(configs, i), hardware_fields[h]);
			if (!s.size.n)
				s.size = json_field(one, "instanceSize");
			if (s.disk == 0)
				s.disk = json_number_value(json_object_get(one, "diskSizeGB"));
		}
	if (s.disk == 0)
		s.disk = disk_before(p, spec);
	if (s.disk == 0)
		s.disk = cluster_disk_standard(s.size);
	return s;
}

/* The shared tiers are what they are: one region, one size, no counts. */
static void tenant_check(struct place *p, const json_t *configs, json_t *config)
{
	json_t *h = json_object_get(config, "electableSpecs");
	if (json_array_size(configs) != 1)
		config_fault(p, "", "providerName", "a TENANT cluster has one region");
	if (!json_field(h, "instanceSize").n)
		config_fault(p, "electableSpecs", "instanceSize", "is required");
	else if (!text_is(config, "providerName", "FLEX") &&
	         !size_is_known(STR("TENANT"), json_field(h, "instanceSize")))
		config_fault(p, "electableSpecs", "instanceSize", "TENANT has M0, M2 and M5");
	if (!json_object_get(config, "priority"))
		json_put(config, "priority", json_integer(TOP_PRIORITY));
	if (text_is(config, "providerName", "TENANT"))
		json_object_del(h, "diskSizeGB"); /* the size has its own */
}

/* A cluster that leaves the shared tiers may be sent with the disk that it was read with, which is too small now. */
static void tenant_disk_drop(const struct place *p, const json_t *configs)
{
	for (size_t i = 0; cluster_is_tenant(p->rules->old) && i < json_array_size(configs); i++) {
		const json_t *config = json_array_get(configs, i);
		json_t *h = json_object_get(config, "electableSpecs");
		if (!region_is_shared(config) && json_number_value(json_object_get(h, "diskSizeGB")) < DISK_MIN)
			json_object_del(h, "diskSizeGB");
	}
}

static void configs_check(struct place *p, const json_t *spec, json_t *configs)
{
	tenant_disk_drop(p, configs);
	struct shard_size shard = shard_size_of(p, spec);
	json_int_t electable = 0, all = 0;
	bool tenant = false;
	for (p->config = 0; p->config < json_array_size(configs); p->config++) {
		json_t *config = json_array_get(configs, p->config);
		region_check(p, configs, config);
		if (region_is_shared(config)) {
			tenant = true;
			tenant_check(p, configs, config);
			continue;
		}
		for (int h = 0; h < HARDWARE; h++) {
			hardware_check(p, config, hardware_fields[h], &shard);
			all += region_nodes(config, hardware_fields[h]);
		}
		scaling_check(p, config, "autoScaling");
		scaling_check(p, config, "analyticsAutoScaling");
		electable += region_nodes(config, "electableSpecs");
	}
	if (tenant)
		return;
	priorities_check(p, configs);
	struct str path = arena_printf(p->rules->arena, "replicationSpecs[%zu].regionConfigs", p->spec);
	if (electable != 1 && electable != 3 && electable != 5 && electable != 7)
		FAULT(p, path, "must have 1, 3, 5 or 7 electable nodes in all, not %lld", (long long)electable);
	if (all > SHARD_NODES_MAX)
		FAULT(p, path, "must have at most %d nodes in all, not %lld", SHARD_NODES_MAX, (long long)all);
}

/* The engine knows shards by their places: where one goes, its servers and data would become the next one's. */
static void removals_check(struct place *p, const json_t *specs)
{
	const json_t *before = json_object_get(p->rules->old, "replicationSpecs"), *was;
	const char *gone = NULL;
	for (size_t k = 0; (was = json_array_get(before, k)); k++)
		if (!json_find(specs, "id", json_field(was, "id")))
			gone = json_string_value(json_object_get(was, "zoneName"));
		else if (gone)
			FAULT(p, STR("replicationSpecs"),
			      "only the last shards can be left out, and after that of \"%s\" one stays", gone);
}

static void specs_check(struct place *p, json_t *cluster)
{
	json_t *specs = json_object_get(cluster, "replicationSpecs");
	size_t count = json_array_size(specs);
	bool replica_set = text_is(cluster, "clusterType", "REPLICASET");
	if (!count) {
		FAULT(p, STR("replicationSpecs"), specs ? "must have at least one item" : "is required");
		return;
	}
	if (replica_set && count > 1)
		FAULT(p, STR("replicationSpecs"), "a REPLICASET has one; several need SHARDED or GEOSHARDED");
	if (count > SHARDS_MAX)
		FAULT(p, STR("replicationSpecs"), "must have at most %d items", SHARDS_MAX);
	for (p->spec = 0; p->spec < count && p->spec < SHARDS_MAX; p->spec++) {
		json_t *spec = json_array_get(specs, p->spec), *configs = json_object_get(spec, "regionConfigs");
		if (!json_array_size(configs))
			FAULT(p, arena_printf(p->rules->arena, "replicationSpecs[%zu].regionConfigs", p->spec),
			      configs ? "must have at least one item" : "is required");
		else
			configs_check(p, spec, configs);
	}
	removals_check(p, specs);
	if (!p->faults->count && cluster_node_count(cluster, NULL, ENGINE_NODES_MAX) > ENGINE_NODES_MAX)
		FAULT(p, STR("replicationSpecs"), "must have at most %d nodes in all", ENGINE_NODES_MAX);
}

static void type_check(struct place *p, json_t *cluster)
{
	size_t shards = json_array_size(json_object_get(cluster, "replicationSpecs"));
	struct str type = json_field(cluster, "clusterType"), before = json_field(p->rules->old, "clusterType");
	if (!type.n && shards <= 1)
		json_put_z(cluster, "clusterType", "REPLICASET");
	else if (!type.n)
		FAULT(p, STR("clusterType"), "is required: SHARDED or GEOSHARDED for several replicationSpecs");
	if (before.n && !str_eq(type, before) && str_is(type, "REPLICASET"))
		FAULT(p, STR("clusterType"), "%.*s cannot become a REPLICASET again", STR_ARG(before));
	if (json_flag(cluster, "globalClusterSelfManagedSharding") && !str_is(type, "GEOSHARDED"))
		FAULT(p, STR("globalClusterSelfManagedSharding"), "is only for a GEOSHARDED cluster");
}

static void version_check(struct place *p, json_t *cluster)
{
	const struct option_texts *names = p->rules->names;
	unsigned wanted = cluster_version(names, cluster), before = cluster_version(names, p->rules->old);
	bool known = false;
	struct buf list = {0};
	for (size_t i = 0; i < p->rules->version_count; i++) {
		known = known || p->rules->versions[i] == wanted;
		buf_printf(&list, "%s%u", i ? ", " : "", p->rules->versions[i]);
	}
	for (size_t i = 0; names && i < names->n; i++)
		buf_printf(&list, ", %.*s", (int)strcspn(names->v[i], "="), names->v[i]);
	if (!json_object_get(cluster, "dbMajorVersion") && p->rules->version_count)
		wanted = p->rules->versions[0];
	else if (!known)
		FAULT(p, STR("dbMajorVersion"), "must be one of %.*s", STR_ARG(buf_view(&list)));
	if (before && wanted && wanted < before)
		FAULT(p, STR("dbMajorVersion"), "cannot go back from %u to %u", before, wanted);
	/* A name stays what is shown: clients hold it against what they asked for. */
	if (wanted && !version_named(names, json_field(cluster, "dbMajorVersion")))
		json_put_z(cluster, "dbMajorVersion", arena_printf(p->rules->arena, "%u", wanted).p);
	buf_free(&list);
}

static void tags_check(struct place *p, const json_t *cluster)
{
	const json_t *tags = json_object_get(cluster, "tags");
	if (faults_too_many(p->faults, p->rules->arena, STR("tags"), tags, TAGS_MAX))
		return;
	for (size_t i = 0; i < json_array_size(tags); i++) {
		const json_t *tag = json_array_get(tags, i);
		if (json_find(tags, "key", json_field(tag, "key")) != tag)
			FAULT(p, arena_printf(p->rules->arena, "tags[%zu].key", i), "must not repeat an earlier key");
	}
}

static void settings_check(struct place *p, json_t *cluster)
{
	bool backup = json_flag(cluster, "backupEnabled");
	struct str key = json_field(cluster, "encryptionAtRestProvider");
	if (json_flag(cluster, "pitEnabled") && !backup)
		FAULT(p, STR("pitEnabled"), "needs backupEnabled to be true");
	if (!p->rules->old && json_flag(cluster, "paused"))
		FAULT(p, STR("paused"), "must be false for a new cluster");
	if (cluster_is_tenant(cluster) && json_flag(cluster, "paused"))
		FAULT(p, STR("paused"), "a TENANT cluster cannot be paused");
	if (cluster_is_tenant(cluster) && backup)
		FAULT(p, STR("backupEnabled"), "a TENANT cluster has no backups of its own");
	if (key.n && cluster_is_tenant(cluster) && !str_is(key, "NONE"))
		FAULT(p, STR("encryptionAtRestProvider"), "must be NONE for a TENANT cluster");
	if (!key.n)
		json_put_z(cluster, "encryptionAtRestProvider", "NONE");
	tags_check(p, cluster);
}

void cluster_check(const struct cluster_rules *rules, json_t *cluster, struct faults *faults)
{
	struct place place = {.rules = rules, .faults = faults}, *p = &place;
	struct str name = json_field(cluster, "name");
	if (!name.n)
		FAULT(p, STR("name"), "is required");
	else if (name.n > NAME_LENGTH_MAX)
		FAULT(p, STR("name"), "must have at most %d characters", NAME_LENGTH_MAX);
	else if (rules->old && !str_eq(name, json_field(rules->old, "name")))
		FAULT(p, STR("name"), "cannot be changed");
	type_check(p, cluster);
	specs_check(p, cluster);
	version_check(p, cluster);
	settings_check(p, cluster);
}

/* Shards keep their ids and their data. */

static json_t *id_json(void)
{
	return json_string(id_new().z);
}

/* Zones by their names. Shards by their ids, which only some forms have; then by their zones, in which they keep their
 * order. One of a new zone is the shard that stood in its place, if no other is. */
void cluster_identify(const json_t *cluster, const json_t *old)
{
	static const char *const told_by[] = {"id", "zoneName", NULL};
	const json_t *specs = json_object_get(cluster, "replicationSpecs"),
	             *before = json_object_get(old, "replicationSpecs");
	bool done[SHARDS_MAX] = {false}, taken[SHARDS_MAX] = {false};
	size_t count = json_array_size(specs);
	for (size_t i = 0; i < count && count <= SHARDS_MAX; i++) {
		json_t *spec = json_array_get(specs, i), *zone;
		if (!json_field(spec, "zoneName").n)
			json_put_z(spec, "zoneName", "Zone 1");
		const json_t *first = json_find(specs, "zoneName", json_field(spec, "zoneName"));
		if (first == spec)
			first = json_find(before, "zoneName", json_field(spec, "zoneName"));
		zone = json_object_get(first, "zoneId");
		json_put(spec, "zoneId", zone ? json_incref(zone) : id_json());
	}
	for (size_t by = 0; by < 3; by++)
		for (size_t i = 0; i < count && count <= SHARDS_MAX; i++)
			for (size_t k = 0; !done[i] && k < json_array_size(before) && k < SHARDS_MAX; k++) {
				json_t *spec = json_array_get(specs, i), *was = json_array_get(before, k);
				bool same = told_by[by] ? json_equal(json_object_get(spec, told_by[by]),
				                                     json_object_get(was, told_by[by]))
				                        : i == k;
				if (taken[k] || !same)
					continue;
				json_object_set(spec, "id", json_object_get(was, "id"));
				done[i] = taken[k] = true;
			}
	for (size_t i = 0; i < count && count <= SHARDS_MAX; i++)
		if (!done[i])
			json_put(json_array_get(specs, i), "id", id_json());
}

/* The engine knows shards by their places: those that are sent in another order keep theirs, and no data moves. */
void cluster_sort(json_t *cluster, const json_t *old)
{
	const json_t *specs = json_object_get(cluster, "replicationSpecs"),
	             *before = json_object_get(old, "replicationSpecs");
	json_t *sorted = json_array();
	for (size_t i = 0; i < json_array_size(before); i++)
		json_array_append(sorted, json_find(specs, "id", json_field(json_array_get(before, i), "id")));
	for (size_t i = 0; i < json_array_size(specs); i++)
		if (!json_find(before, "id", json_field(json_array_get(specs, i), "id")))
			json_array_append(sorted, json_array_get(specs, i));
	json_put(cluster, "replicationSpecs", sorted);
}
