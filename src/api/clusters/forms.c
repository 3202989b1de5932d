/* Translation between the forms of a cluster. Fields of the same name mean the same; only what differs is written
 * here. */
#include "api/clusters/forms.h"

#include "api/clusters/nodes.h"
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

static const json_t *disk_of(const json_t *cluster)
{
	/* A shared tier's disk is smaller than the older forms allow. */
	if (cluster_is_tenant(cluster))
		return NULL;
	return json_object_get(json_object_get(region_at(cluster, 0, 0), "electableSpecs"), "diskSizeGB");
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

/* What the next in the list was: the next of its zone, or another of it; without a name, in its place. NULL: none. */
static const json_t *spec_before(const json_t *old, const json_t *list, const json_t *zone)
{
	const json_t *specs = json_object_get(old, "replicationSpecs"), *found = NULL;
	size_t same = 0;
	for (size_t i = 0; zone && i < json_array_size(list); i++)
		same += json_equal(zone, json_object_get(json_array_get(list, i), "zoneName"));
	for (size_t i = 0; zone && i < json_array_size(specs); i++)
		if (json_equal(zone, json_object_get(json_array_get(specs, i), "zoneName")) &&
		    (!found || (same && same--)))
			found = json_array_get(specs, i);
	return zone ? found : json_array_get(specs, json_array_size(list));
}

/* Shards of one zone that are alike become one spec with a number: how many, from this one on. */
static size_t alike(const json_t *specs, size_t from)
{
	const json_t *one = json_array_get(specs, from), *next;
	size_t n = 1;
	while ((next = json_array_get(specs, from + n)) &&
	       json_equal(json_object_get(one, "zoneName"), json_object_get(next, "zoneName")) &&
	       json_equal(json_object_get(one, "regionConfigs"), json_object_get(next, "regionConfigs")))
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

/* 40 and 40.0 are one size. */
static bool is_same(const json_t *a, const json_t *b)
{
	if (json_is_number(a) && json_is_number(b))
		return !(json_number_value(a) < json_number_value(b) || json_number_value(a) > json_number_value(b));
	return (!a && !b) || json_equal(a, b);
}

static bool differs(const json_t *now, const json_t *was, const char *name)
{
	return !is_same(json_object_get(now, name), json_object_get(was, name));
}

/* The cluster's one size, where that is said anew; otherwise each shard keeps its own. */
static const json_t *disk_wanted(const json_t *body, const json_t *old, const json_t *before)
{
	const json_t *said = json_object_get(body, "diskSizeGB"), *shown = disk_of(old), *own = NULL;
	if (before && shown && (!said || is_same(said, shown)))
		own = json_object_get(shard_hardware(before), "diskSizeGB");
	return own ? own : said ? said : shown;
}

static json_t *from_advanced(const json_t *body, const json_t *old)
{
	json_t *to = same_fields(body, "ClusterDescription20240805"), *list = json_array();
	const json_t *specs = json_object_get(body, "replicationSpecs");
	if (!specs && json_object_get(body, "diskSizeGB"))
		specs = json_object_get(old, "replicationSpecs");
	for (size_t i = 0; i < json_array_size(specs); i++) {
		const json_t *spec = json_array_get(specs, i), *number = json_object_get(spec, "numShards"),
		             *zone = json_object_get(spec, "zoneName");
		json_int_t n = number ? json_integer_value(number) : 1;
		for (json_int_t k = 0; k < n && json_array_size(list) < EXPAND_MAX; k++) {
			const json_t *disk = disk_wanted(body, old, spec_before(old, list, zone));
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

/* The old form has no other numbers. */
static bool electable_is_shown(json_int_t nodes)
{
	return nodes == 0 || nodes == 3 || nodes == 5 || nodes == 7;
}

static json_t *region_spec(const json_t *config)
{
	json_int_t electable = region_nodes(config, "electableSpecs");
	json_t *to = json_pack("{s:I, s:I, s:I}", "analyticsNodes", region_nodes(config, "analyticsSpecs"), "priority",
	                       json_number(config, "priority"), "readOnlyNodes", region_nodes(config, "readOnlySpecs"));
	if (electable_is_shown(electable))
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
	bool tenant = region_is_shared(config);
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
	const json_t *best = region_at(cluster, 0, 0);
	for (size_t i = 1; region_at(cluster, 0, i); i++)
		if (json_number(region_at(cluster, 0, i), "priority") > json_number(best, "priority"))
			best = region_at(cluster, 0, i);
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

/* The oldest form has two kinds of backups. There is one: it is shown as what it was asked for in that form. */
static json_t *backups_shown(const json_t *cluster)
{
	const json_t *asked = json_object_get(cluster, CLUSTER_BACKUPS_ASKED);
	bool on = json_flag(cluster, "backupEnabled"), other = on && json_flag(asked, "backupEnabled");
	return json_pack("{s:b, s:b}", "backupEnabled", other, "providerBackupEnabled",
	                 on && (!other || json_flag(asked, "providerBackupEnabled")));
}

static void backups_from(json_t *to, const json_t *body, const json_t *old)
{
	json_t *shown = backups_shown(old), *asked = json_copy(shown);
	json_object_update_existing(asked, (json_t *)(uintptr_t)body);
	bool on = json_flag(asked, "backupEnabled") || json_flag(asked, "providerBackupEnabled"),
	     same = json_equal(asked, shown);
	json_put(to, "backupEnabled", json_boolean(on));
	json_put(to, CLUSTER_BACKUPS_ASKED, same ? NULL : json_incref(asked));
	json_decref(shown);
	json_decref(asked);
}

json_t *cluster_to_legacy(struct arena *a, const json_t *cluster)
{
	json_t *to = same_fields(cluster, "LegacySvcCluster"), *list = json_array();
	const json_t *specs = json_object_get(cluster, "replicationSpecs"), *first = first_config(cluster),
	             *scaling = json_object_get(first, "autoScaling"), *compute = json_object_get(scaling, "compute");
	json_int_t electable = 0;
	for (size_t i = 0; region_at(cluster, 0, i); i++)
		electable += region_nodes(region_at(cluster, 0, i), "electableSpecs");
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
	json_object_update_new(to, backups_shown(cluster));
	json_put(to, "diskSizeGB", json_deep_copy(disk_of(cluster)));
	json_put(to, "autoScaling",
	         json_pack("{s:{s:b, s:b}, s:b}", "compute", "enabled", json_flag(compute, "enabled"),
	                   "scaleDownEnabled", json_flag(compute, "scaleDownEnabled"), "diskGBEnabled",
	                   json_flag(json_object_get(scaling, "diskGB"), "enabled")));
	addresses_set(a, to, cluster);
	return to;
}

/* From the oldest form. What it cannot say of a cluster that is there stays as it is: a size of the analytics nodes'
 * own, a second provider, two nodes in a region. */

struct legacy {
	json_t *whole;       /* what is wanted */
	const json_t *shown; /* the cluster's present form, or NULL: it is new */
	const json_t *old;   /* the cluster itself, or NULL */
	bool same_regions;
};

/* What is new, or is wanted otherwise than it was shown. */
static void field_follow(json_t *to, const char *name, const json_t *now, const json_t *was, const char *from_name)
{
	if (!json_object_get(to, name) || differs(now, was, from_name))
		field_copy(to, name, now, from_name);
}

static void hardware_follow(const struct legacy *l, json_t *config, const char *field, json_int_t nodes)
{
	const json_t *now = json_object_get(l->whole, "providerSettings"),
	             *was = json_object_get(l->shown, "providerSettings");
	static const char *const same[] = {"instanceSize", "diskSizeGB", "diskIOPS", "ebsVolumeType"};
	bool is_new = !json_object_get(config, field);
	json_t *to = json_default(config, field, json_object());
	if (is_new && strcmp(field, "electableSpecs") != 0) /* as the shard's others */
		json_copy_fields(to, json_object_get(config, "electableSpecs"), same, sizeof same / sizeof *same);
	field_follow(to, "instanceSize", now, was, "instanceSizeName");
	json_put(to, "nodeCount", json_integer(nodes));
	field_follow(to, "diskSizeGB", l->whole, l->shown, "diskSizeGB");
	if (str_is(json_field(config, "providerName"), "AWS")) {
		field_follow(to, "diskIOPS", now, was, "diskIOPS");
		field_follow(to, "ebsVolumeType", now, was, "volumeType");
	}
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

static void scaling_follow(const struct legacy *l, json_t *config, bool is_new)
{
	const json_t *now = json_object_get(l->whole, "providerSettings"),
	             *was = json_object_get(l->shown, "providerSettings");
	if (is_new || differs(l->whole, l->shown, "autoScaling") || differs(now, was, "autoScaling"))
		json_put(config, "autoScaling", scaling_from(l->whole, now));
}

static const json_t *config_in(const json_t *spec, const char *region)
{
	const json_t *configs = json_object_get(spec, "regionConfigs");
	for (size_t k = 0; k < json_array_size(configs); k++)
		if (str_is(json_field(json_array_get(configs, k), "regionName"), region))
			return json_array_get(configs, k);
	return NULL;
}

/* What the shard has in the region; or another, if it is new there. */
static const json_t *config_of(const json_t *cluster, const json_t *spec, const char *region)
{
	const json_t *specs = json_object_get(cluster, "replicationSpecs"), *found = config_in(spec, region);
	for (size_t i = 0; !found && i < json_array_size(specs); i++)
		found = config_in(json_array_get(specs, i), region);
	return found;
}

/* Nodes of a kind that a region shall have. Without numbers, or where the form has none that fits: as it was. */
static json_int_t nodes_wanted(const json_t *counts, const char *name, const json_t *was, int kind)
{
	json_int_t present = region_nodes(was, hardware_fields[kind]);
	bool unsaid = kind == NODE_ELECTABLE && !json_object_get(counts, name) && !electable_is_shown(present);
	return !counts || unsaid ? present : json_number(counts, name);
}

/* counts: NULL where the regions stay as they are; was: NULL where the region is new. */
static json_t *config_from(const struct legacy *l, const char *region, const json_t *counts, const json_t *was)
{
	static const char *const numbers[HARDWARE] = {[NODE_ELECTABLE] = "electableNodes",
	                                              [NODE_READ_ONLY] = "readOnlyNodes",
	                                              [NODE_ANALYTICS] = "analyticsNodes"};
	json_t *to = was ? json_deep_copy(was) : json_pack("{s:s}", "regionName", region);
	if (!was)
		field_copy(to, "providerName", json_object_get(l->whole, "providerSettings"), "providerName");
	field_copy(to, "priority", counts, "priority");
	for (int h = 0; h < HARDWARE; h++) {
		json_int_t nodes = nodes_wanted(counts, numbers[h], was, h);
		if (nodes || h == NODE_ELECTABLE)
			hardware_follow(l, to, hardware_fields[h], nodes);
		else if (counts)
			json_object_del(to, hardware_fields[h]);
	}
	scaling_follow(l, to, !was);
	return to;
}

/* Regions in the order of their priorities: a table has none. */
static json_t *configs_from(const struct legacy *l, const json_t *regions, const json_t *spec)
{
	json_t *list = json_array(), *counts;
	const char *region;
	for (int priority = 7; priority >= 0; priority--)
		json_object_foreach((json_t *)(uintptr_t)regions, region, counts)
		{
			if (json_number(counts, "priority") == priority)
				json_array_append_new(list,
				                      config_from(l, region, counts, config_of(l->old, spec, region)));
		}
	return list;
}

static json_t *tenant_spec(const json_t *settings)
{
	json_t *config = json_pack("{s:{}}", "electableSpecs");
	field_copy(config, "providerName", settings, "providerName");
	field_copy(config, "backingProviderName", settings, "backingProviderName");
	field_copy(config, "regionName", settings, "regionName");
	field_copy(json_object_get(config, "electableSpecs"), "instanceSize", settings, "instanceSizeName");
	return json_pack("[{s:[o]}]", "regionConfigs", config);
}

/* The i-th shard of a spec, by the id that was shown for all that are alike. NULL: it has none of the cluster's ids. */
static const json_t *spec_named(const json_t *old, const json_t *said, json_int_t i)
{
	const json_t *specs = json_object_get(old, "replicationSpecs");
	struct str id = json_field(said, "id");
	for (size_t k = 0; id.n && k < json_array_size(specs); k++)
		if (str_eq(json_field(json_array_get(specs, k), "id"), id))
			return i < (json_int_t)alike(specs, k) ? json_array_get(specs, k + (size_t)i) : NULL;
	return NULL;
}

/* said: the spec that says so; or NULL. */
static void shards_add(json_t *list, const struct legacy *l, const json_t *regions, json_int_t shards,
                       const json_t *said)
{
	for (json_int_t i = 0; i < shards && json_array_size(list) < EXPAND_MAX; i++) {
		const json_t *named = spec_named(l->old, said, i),
		             *spec = named ? named : spec_before(l->old, list, json_object_get(said, "zoneName"));
		json_t *one = json_pack("{s:o}", "regionConfigs", configs_from(l, regions, spec));
		field_copy(one, "zoneName", said, "zoneName");
		field_copy(one, "id", named || i ? named : said, "id");
		json_array_append_new(list, one);
	}
}

/* The specs that are there, with other sizes, disks or scaling. */
static json_t *specs_changed(const struct legacy *l)
{
	json_t *list = json_deep_copy(json_object_get(l->old, "replicationSpecs"));
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *configs = json_object_get(json_array_get(list, i), "regionConfigs");
		for (size_t k = 0; k < json_array_size(configs); k++)
			json_array_set_new(configs, k, config_from(l, NULL, NULL, json_array_get(configs, k)));
	}
	return list;
}

static json_t *specs_from(const struct legacy *l)
{
	const json_t *whole = l->whole;
	const json_t *settings = json_object_get(whole, "providerSettings"),
	             *specs = json_object_get(whole, "replicationSpecs"),
	             *one = json_object_get(whole, "replicationSpec"),
	             *factor = json_object_get(whole, "replicationFactor"),
	             *shards = json_object_get(whole, "numShards");
	const char *region = json_string_value(json_object_get(settings, "regionName"));
	json_t *list = json_array(), *regions = NULL;
	json_int_t number = shards ? json_integer_value(shards) : 1;
	if (region_is_shared(settings)) {
		json_decref(list);
		return tenant_spec(settings);
	}
	if (l->same_regions) {
		json_decref(list);
		return specs_changed(l);
	}
	for (size_t i = 0; i < json_array_size(specs); i++) {
		const json_t *spec = json_array_get(specs, i), *n = json_object_get(spec, "numShards");
		shards_add(list, l, json_object_get(spec, "regionsConfig"), n ? json_integer_value(n) : 1, spec);
	}
	if (!json_array_size(specs) && json_object_size(one)) {
		shards_add(list, l, one, number, NULL);
	} else if (!json_array_size(specs) && region) {
		regions = json_pack("{s:{s:I, s:i}}", region, "electableNodes",
		                    factor ? json_integer_value(factor) : (json_int_t)3, "priority", 7);
		shards_add(list, l, regions, number, NULL);
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

/* Whether a field says something other than what was shown. */
static bool says_new(const json_t *body, const json_t *shown, const char *name)
{
	return json_object_get(body, name) && differs(body, shown, name);
}

/* What an update leaves unsaid, or says as it was shown, is as it was; but a new region or factor makes the old table
 * of regions void. */
static struct legacy legacy_wanted(struct arena *a, const json_t *body, const json_t *old)
{
	json_t *shown = old ? json_keep(a, cluster_to_legacy(a, old)) : NULL, *value,
	       *whole = json_keep(a, old ? json_deep_copy(shown) : json_object());
	const json_t *given = json_object_get(body, "providerSettings"),
	             *present = json_object_get(shown, "providerSettings");
	const char *key;
	bool region = old && says_new(given, present, "regionName"),
	     provider = old && says_new(given, present, "providerName"), shards = says_new(body, shown, "numShards"),
	     table = says_new(body, shown, "replicationSpecs") || says_new(body, shown, "replicationSpec") ||
	             says_new(body, shown, "replicationFactor");
	if (region || provider || table) {
		json_object_del(whole, "replicationSpecs");
		json_object_del(whole, "replicationSpec");
	}
	if (shards)
		json_object_del(whole, "replicationSpecs");
	if (provider)
		json_object_del(whole, "providerSettings");
	json_object_foreach((json_t *)(uintptr_t)body, key, value)
	{
		json_t *there =
		        str_is_one_of("providerSettings|autoScaling", str_of(key)) ? json_object_get(whole, key) : NULL;
		if (there)
			json_merge(there, value);
		else if (says_new(body, shown, key))
			json_put(whole, key, json_deep_copy(value));
	}
	return (struct legacy){.whole = whole,
	                       .shown = shown,
	                       .old = provider ? NULL : old,
	                       .same_regions = old && !region && !provider && !table && !shards};
}

static json_t *from_legacy(struct arena *a, const json_t *body, const json_t *old)
{
	static const char *const shaping[] = {"providerSettings", "replicationSpecs", "replicationSpec",  "diskSizeGB",
	                                      "autoScaling",      "numShards",        "replicationFactor"};
	json_t *to = same_fields(body, "ClusterDescription20240805");
	json_object_del(to, "dbVersion");
	backups_from(to, body, old);
	if (!old || gives_any(body, shaping, sizeof shaping / sizeof *shaping)) {
		struct legacy wanted = legacy_wanted(a, body, old);
		json_t *specs = specs_from(&wanted);
		if (json_array_size(specs))
			json_object_set(to, "replicationSpecs", specs);
		json_decref(specs);
	}
	return to;
}

json_t *cluster_from(struct arena *a, enum cluster_form form, const json_t *body, const json_t *old)
{
	if (form == FORM_CURRENT)
		return json_deep_copy(body);
	return form == FORM_ADVANCED ? from_advanced(body, old) : from_legacy(a, body, old);
}
