/* Translation between the forms of a cluster. Fields of the same name mean the same; only what differs is written
 * here. */
#include "api/clusters/forms.h"

#include "api/clusters/spec.h"
#include "api/kit/verbs.h"

#include <string.h>

enum cluster_form cluster_form(const struct schema *s)
{
	const char *name = s && s->name ? s->name : "";
	if (strstr(name, "Legacy"))
		return FORM_LEGACY;
	return strstr(name, "AdvancedClusterDescription") ? FORM_ADVANCED : FORM_CURRENT;
}

/* The fields that the other form's schema has too. */
static json_t *same_fields(const json_t *from, const char *schema)
{
	const struct schema *s = schema_find(str_of(schema));
	json_t *to = json_object(), *value;
	const char *key;
	json_object_foreach((json_t *)(uintptr_t)from, key, value)
	{
		if (strcmp(key, "replicationSpecs") != 0 && s && schema_field(s, str_of(key)))
			json_put(to, key, json_deep_copy(value));
	}
	return to;
}

static const json_t *config_of(const json_t *cluster, size_t spec, size_t config)
{
	const json_t *specs = json_object_get(cluster, "replicationSpecs");
	return json_array_get(json_object_get(json_array_get(specs, spec), "regionConfigs"), config);
}

static const json_t *disk_of(const json_t *cluster)
{
	return json_object_get(json_object_get(config_of(cluster, 0, 0), "electableSpecs"), "diskSizeGB");
}

static void disk_set(json_t *spec, const json_t *disk)
{
	json_t *configs = json_object_get(spec, "regionConfigs");
	for (size_t i = 0; i < json_array_size(configs); i++)
		for (int h = 0; h < HARDWARE; h++) {
			json_t *hardware = json_object_get(json_array_get(configs, i), hardware_fields[h]);
			if (hardware && disk)
				json_put(hardware, "diskSizeGB", json_deep_copy(disk));
			else if (hardware)
				json_object_del(hardware, "diskSizeGB");
		}
}

static bool is_like(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "zoneName"), json_object_get(b, "zoneName")) &&
	       json_equal(json_object_get(a, "regionConfigs"), json_object_get(b, "regionConfigs"));
}

/* Shards of one zone that are alike become one spec with a number: how many, from this one on. */
static size_t alike(const json_t *specs, size_t from)
{
	size_t n = 1;
	while (is_like(json_array_get(specs, from), json_array_get(specs, from + n)))
		n++;
	return n;
}

json_t *cluster_to_advanced(const json_t *cluster)
{
	json_t *to = same_fields(cluster, "AdvancedClusterDescription"), *list = json_array();
	const json_t *specs = json_object_get(cluster, "replicationSpecs"), *disk = disk_of(cluster);
	for (size_t i = 0, n; i < json_array_size(specs); i += n) {
		n = alike(specs, i);
		json_t *one = json_deep_copy(json_array_get(specs, i));
		disk_set(one, NULL);
		json_put(one, "numShards", json_integer((json_int_t)n));
		json_array_append_new(list, one);
	}
	json_put(to, "replicationSpecs", list);
	json_put(to, "diskSizeGB", json_deep_copy(disk));
	return to;
}

#define EXPAND_MAX 51 /* one more than may be: the rules then say so */

static json_t *from_advanced(const json_t *body, const json_t *old)
{
	json_t *to = same_fields(body, "ClusterDescription20240805"), *list = json_array();
	const json_t *specs = json_object_get(body, "replicationSpecs"), *disk = json_object_get(body, "diskSizeGB");
	if (!specs && disk)
		specs = json_object_get(old, "replicationSpecs");
	if (!disk)
		disk = disk_of(old);
	for (size_t i = 0; i < json_array_size(specs); i++) {
		const json_t *spec = json_array_get(specs, i), *number = json_object_get(spec, "numShards");
		json_int_t n = number ? json_integer_value(number) : 1;
		for (json_int_t k = 0; k < n && json_array_size(list) < EXPAND_MAX; k++) {
			json_t *one = json_deep_copy(spec);
			json_object_del(one, "numShards");
			if (disk)
				disk_set(one, disk);
			json_array_append_new(list, one);
		}
	}
	if (specs)
		json_object_set(to, "replicationSpecs", list);
	json_decref(list);
	return to;
}

/* To the oldest form. */

static json_int_t nodes_of(const json_t *config, enum node_kind kind)
{
	return json_number(json_object_get(config, hardware_fields[kind]), "nodeCount");
}

static json_t *region_spec(const json_t *config)
{
	json_int_t electable = nodes_of(config, NODE_ELECTABLE);
	json_t *to = json_pack("{s:I, s:I, s:I}", "analyticsNodes", nodes_of(config, NODE_ANALYTICS), "priority",
	                       json_number(config, "priority"), "readOnlyNodes", nodes_of(config, NODE_READ_ONLY));
	/* The old form has no other numbers. */
	if (electable == 0 || electable == 3 || electable == 5 || electable == 7)
		json_put(to, "electableNodes", json_integer(electable));
	return to;
}

static json_t *regions_config(const json_t *spec)
{
	const json_t *configs = json_object_get(spec, "regionConfigs");
	json_t *to = json_object();
	for (size_t i = 0; i < json_array_size(configs); i++) {
		const json_t *config = json_array_get(configs, i);
		const char *region = json_string_value(json_object_get(config, "regionName"));
		if (region)
			json_put(to, region, region_spec(config));
	}
	return to;
}

static void field_copy(json_t *to, const char *name, const json_t *from, const char *from_name)
{
	json_put(to, name, json_deep_copy(json_object_get(from, from_name)));
}

static json_t *provider_settings(const json_t *config)
{
	const json_t *electable = json_object_get(config, "electableSpecs"),
	             *compute = json_object_get(json_object_get(config, "autoScaling"), "compute");
	json_t *to = json_object();
	bool tenant = str_is(json_field(config, "providerName"), "TENANT");
	field_copy(to, "providerName", config, "providerName");
	field_copy(to, "regionName", config, "regionName");
	field_copy(to, "instanceSizeName", electable, "instanceSize");
	if (tenant)
		field_copy(to, "backingProviderName", config, "backingProviderName");
	if (str_is(json_field(config, "providerName"), "AWS")) {
		field_copy(to, "diskIOPS", electable, "diskIOPS");
		field_copy(to, "volumeType", electable, "ebsVolumeType");
		json_put(to, "encryptEBSVolume", json_true());
	}
	if (!tenant && compute) {
		json_t *sizes = json_object();
		field_copy(sizes, "minInstanceSize", compute, "minInstanceSize");
		field_copy(sizes, "maxInstanceSize", compute, "maxInstanceSize");
		json_put(to, "autoScaling", json_pack("{s:o}", "compute", sizes));
	}
	return to;
}

static const json_t *first_config(const json_t *cluster)
{
	const json_t *best = config_of(cluster, 0, 0);
	for (size_t i = 1; config_of(cluster, 0, i); i++)
		if (json_number(config_of(cluster, 0, i), "priority") > json_number(best, "priority"))
			best = config_of(cluster, 0, i);
	return best;
}

static void addresses_set(struct arena *a, json_t *to, const json_t *cluster)
{
	const json_t *strings = json_object_get(cluster, "connectionStrings");
	struct str whole = json_field(strings, "standard"), plain, rest;
	if (!whole.n)
		return;
	str_cut(whole, '?', &plain, &rest);
	json_put_str(to, "dbURI", plain);
	json_put_str(to, "dbURIWithOptions", whole);
	field_copy(to, "dbURIUpdated", cluster, "createDate");
	field_copy(to, "srvAddress", strings, "standardSrv");
}

json_t *cluster_to_legacy(struct arena *a, const json_t *cluster)
{
	json_t *to = same_fields(cluster, "LegacySvcCluster"), *list = json_array();
	const json_t *specs = json_object_get(cluster, "replicationSpecs"), *first = first_config(cluster),
	             *scaling = json_object_get(first, "autoScaling"), *compute = json_object_get(scaling, "compute");
	json_int_t electable = 0;
	for (size_t i = 0; config_of(cluster, 0, i); i++)
		electable += nodes_of(config_of(cluster, 0, i), NODE_ELECTABLE);
	for (size_t i = 0, n; i < json_array_size(specs); i += n) {
		const json_t *spec = json_array_get(specs, i);
		n = alike(specs, i);
		json_t *one =
		        json_pack("{s:I, s:o}", "numShards", (json_int_t)n, "regionsConfig", regions_config(spec));
		field_copy(one, "id", spec, "id");
		field_copy(one, "zoneName", spec, "zoneName");
		json_array_append_new(list, one);
	}
	json_put(to, "replicationSpecs", list);
	json_put(to, "replicationSpec", regions_config(json_array_get(specs, 0)));
	json_put(to, "numShards", json_integer((json_int_t)json_array_size(specs)));
	if (electable == 3 || electable == 5 || electable == 7)
		json_put(to, "replicationFactor", json_integer(electable));
	json_put(to, "providerSettings", provider_settings(first));
	json_put(to, "providerBackupEnabled", json_boolean(json_flag(cluster, "backupEnabled")));
	json_put(to, "backupEnabled", json_false());
	json_put(to, "diskSizeGB", json_deep_copy(disk_of(cluster)));
	json_put(to, "autoScaling",
	         json_pack("{s:{s:b, s:b}, s:b}", "compute", "enabled", json_flag(compute, "enabled"),
	                   "scaleDownEnabled", json_flag(compute, "scaleDownEnabled"), "diskGBEnabled",
	                   json_flag(json_object_get(scaling, "diskGB"), "enabled")));
	addresses_set(a, to, cluster);
	return to;
}

/* From the oldest form. */

static json_t *hardware_from(const json_t *whole, const json_t *settings, json_int_t nodes)
{
	json_t *to = json_object();
	field_copy(to, "instanceSize", settings, "instanceSizeName");
	json_put(to, "nodeCount", json_integer(nodes));
	field_copy(to, "diskSizeGB", whole, "diskSizeGB");
	if (str_is(json_field(settings, "providerName"), "AWS")) {
		field_copy(to, "diskIOPS", settings, "diskIOPS");
		field_copy(to, "ebsVolumeType", settings, "volumeType");
	}
	return to;
}

static json_t *scaling_from(const json_t *whole, const json_t *settings)
{
	const json_t *scaling = json_object_get(whole, "autoScaling"), *compute = json_object_get(scaling, "compute"),
	             *sizes = json_object_get(json_object_get(settings, "autoScaling"), "compute");
	json_t *to = json_object();
	if (json_flag(compute, "enabled") || sizes) {
		field_copy(to, "enabled", compute, "enabled");
		field_copy(to, "scaleDownEnabled", compute, "scaleDownEnabled");
		field_copy(to, "minInstanceSize", sizes, "minInstanceSize");
		field_copy(to, "maxInstanceSize", sizes, "maxInstanceSize");
	}
	return json_pack("{s:o, s:{s:b}}", "compute", to, "diskGB", "enabled", json_flag(scaling, "diskGBEnabled"));
}

static json_t *config_from(const json_t *whole, const char *region, const json_t *counts)
{
	const json_t *settings = json_object_get(whole, "providerSettings");
	json_t *to = json_pack("{s:s}", "regionName", region);
	json_int_t read_only = json_number(counts, "readOnlyNodes"), analytics = json_number(counts, "analyticsNodes");
	field_copy(to, "providerName", settings, "providerName");
	field_copy(to, "priority", counts, "priority");
	json_put(to, "electableSpecs", hardware_from(whole, settings, json_number(counts, "electableNodes")));
	if (read_only)
		json_put(to, "readOnlySpecs", hardware_from(whole, settings, read_only));
	if (analytics)
		json_put(to, "analyticsSpecs", hardware_from(whole, settings, analytics));
	json_put(to, "autoScaling", scaling_from(whole, settings));
	return to;
}

/* Regions in the order of their priorities: a table has none. */
static json_t *configs_from(const json_t *whole, const json_t *regions)
{
	json_t *list = json_array(), *counts;
	const char *region;
	for (int priority = 7; priority >= 0; priority--)
		json_object_foreach((json_t *)(uintptr_t)regions, region, counts)
		{
			if (json_number(counts, "priority") == priority)
				json_array_append_new(list, config_from(whole, region, counts));
		}
	return list;
}

static json_t *tenant_spec(const json_t *settings)
{
	json_t *config = json_pack("{s:s, s:{}}", "providerName", "TENANT", "electableSpecs");
	field_copy(config, "backingProviderName", settings, "backingProviderName");
	field_copy(config, "regionName", settings, "regionName");
	field_copy(json_object_get(config, "electableSpecs"), "instanceSize", settings, "instanceSizeName");
	return json_pack("[{s:[o]}]", "regionConfigs", config);
}

static void shards_add(json_t *list, const json_t *whole, const json_t *regions, json_int_t shards, const json_t *zone)
{
	for (json_int_t i = 0; i < shards && json_array_size(list) < EXPAND_MAX; i++) {
		json_t *one = json_pack("{s:o}", "regionConfigs", configs_from(whole, regions));
		json_put(one, "zoneName", json_deep_copy(zone));
		json_array_append_new(list, one);
	}
}

static json_t *specs_from(const json_t *whole)
{
	const json_t *settings = json_object_get(whole, "providerSettings"),
	             *specs = json_object_get(whole, "replicationSpecs"),
	             *one = json_object_get(whole, "replicationSpec"),
	             *factor = json_object_get(whole, "replicationFactor"),
	             *shards = json_object_get(whole, "numShards");
	const char *region = json_string_value(json_object_get(settings, "regionName"));
	json_t *list = json_array(), *regions = NULL;
	json_int_t number = shards ? json_integer_value(shards) : 1;
	if (str_is(json_field(settings, "providerName"), "TENANT")) {
		json_decref(list);
		return tenant_spec(settings);
	}
	for (size_t i = 0; i < json_array_size(specs); i++) {
		const json_t *spec = json_array_get(specs, i), *n = json_object_get(spec, "numShards");
		shards_add(list, whole, json_object_get(spec, "regionsConfig"), n ? json_integer_value(n) : 1,
		           json_object_get(spec, "zoneName"));
	}
	if (!json_array_size(specs) && json_object_size(one)) {
		shards_add(list, whole, one, number, NULL);
	} else if (!json_array_size(specs) && region) {
		regions = json_pack("{s:{s:I, s:i}}", region, "electableNodes",
		                    factor ? json_integer_value(factor) : (json_int_t)3, "priority", 7);
		shards_add(list, whole, regions, number, NULL);
		json_decref(regions);
	}
	return list;
}

static bool gives_any(const json_t *body, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (json_object_get(body, names[i]))
			return true;
	return false;
}

/* What an update leaves unsaid is as it was; but a new region or factor makes the old table of regions void. */
static json_t *legacy_whole(struct arena *a, const json_t *body, const json_t *old)
{
	json_t *whole = old ? cluster_to_legacy(a, old) : json_object(), *value, *settings;
	const json_t *given = json_object_get(body, "providerSettings");
	const char *key;
	bool region = old && given && json_object_get(given, "regionName") &&
	              !json_equal(json_object_get(given, "regionName"),
	                          json_object_get(json_object_get(whole, "providerSettings"), "regionName"));
	bool provider = old && given &&
	                !json_equal(json_object_get(given, "providerName"),
	                            json_object_get(json_object_get(whole, "providerSettings"), "providerName"));
	if (region || provider ||
	    gives_any(body, (const char *const[]){"replicationFactor", "replicationSpec", "replicationSpecs"}, 3)) {
		json_object_del(whole, "replicationSpecs");
		json_object_del(whole, "replicationSpec");
	}
	if (provider)
		json_object_del(whole, "providerSettings");
	settings = json_object_get(whole, "providerSettings");
	json_object_foreach((json_t *)(uintptr_t)body, key, value)
	{
		if (strcmp(key, "providerSettings") == 0 && settings)
			json_object_update(settings, value);
		else
			json_put(whole, key, json_deep_copy(value));
	}
	if (json_object_get(body, "numShards") && !json_object_get(body, "replicationSpecs"))
		json_object_del(whole, "replicationSpecs");
	return whole;
}

static json_t *from_legacy(struct arena *a, const json_t *body, const json_t *old)
{
	static const char *const shaping[] = {"providerSettings", "replicationSpecs", "replicationSpec",  "diskSizeGB",
	                                      "autoScaling",      "numShards",        "replicationFactor"};
	json_t *to = same_fields(body, "ClusterDescription20240805");
	json_object_del(to, "dbVersion");
	field_copy(to, "backupEnabled", body, "providerBackupEnabled");
	if (!old || gives_any(body, shaping, sizeof shaping / sizeof *shaping)) {
		json_t *whole = legacy_whole(a, body, old), *specs = specs_from(whole);
		if (json_array_size(specs))
			json_object_set(to, "replicationSpecs", specs);
		json_decref(specs);
		json_decref(whole);
	}
	return to;
}

json_t *cluster_from(struct arena *a, enum cluster_form form, const json_t *body, const json_t *old)
{
	if (form == FORM_CURRENT)
		return json_deep_copy(body);
	return form == FORM_ADVANCED ? from_advanced(body, old) : from_legacy(a, body, old);
}
