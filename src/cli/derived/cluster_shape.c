/* The flags of `steward clusters` that say what a cluster shall be, and the request that they make. */
#include "cli/derived/cluster_shape.h"

#include "base/json.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <stddef.h>

#define AT(member) offsetof(struct clusters_arguments, member)

const struct option_row clusters_options[] = {
        {"wait", 0, OPTION_SWITCH, AT(wait), NULL, NULL, "Come back when it is done.", .flag_only = true},
        {"timeout", 0, OPTION_NUMBER, AT(timeout), "1800", "SECONDS", "Wait no longer than this.", NULL, 1, 604800,
         true},
        {"watch", 0, OPTION_SWITCH, AT(watch), NULL, NULL, "Print the cluster again whenever it has changed.",
         .flag_only = true},
        {"output", 'o', OPTION_CHOICE, AT(output), "text", "FORMAT", "text, table, wide, json, yaml or name.",
         "text|" OUTPUT_FORMS, .flag_only = true},
        {"query", 0, OPTION_TEXT, AT(query), NULL, "PATH", "Only this part of the answer: replicationSpecs.0.id.",
         .flag_only = true},
        {"yes", 0, OPTION_SWITCH, AT(yes), NULL, NULL, "delete: without asking.", .flag_only = true},
        {"dry-run", 0, OPTION_CHOICE, AT(dry_run), NULL, NULL,
         "Print the call instead of making it; --dry-run=curl: as a line for curl.", "text|curl", .flag_only = true},
        {"nodes", 0, OPTION_NUMBER, AT(nodes), "3", "N", "create, scale: nodes of each shard; odd.", NULL, 1, 50, true},
        {"shards", 0, OPTION_NUMBER, AT(shards), "1", "N", "create: more than one makes it sharded.", NULL, 1, 50,
         true},
        {"size", 0, OPTION_TEXT, AT(size), "M10", "SIZE", "create, scale: size of the nodes.", .flag_only = true},
        {"disk", 0, OPTION_NUMBER, AT(disk), NULL, "GB", "create, scale: disk of each node.", NULL, 1, 65536, true},
        {"provider", 0, OPTION_TEXT, AT(provider), "AWS", "NAME", "create: AWS, AZURE or GCP.", .flag_only = true},
        {"region", 0, OPTION_TEXT, AT(region), "US_EAST_1", "NAME", "create: region of the nodes.", .flag_only = true},
        {"version", 0, OPTION_TEXT, AT(version), NULL, "N", "create: major version of the database.",
         .flag_only = true},
        {"body", 0, OPTION_TEXT, AT(body), NULL, "FILE",
         "create: the whole request instead: a file with JSON, - for standard input, or the JSON itself.",
         .flag_only = true},
        PROFILE_OPTIONS,
};
const size_t clusters_option_count = sizeof clusters_options / sizeof *clusters_options;

bool cluster_size_is_shared(const char *size)
{
	return strcmp(size, "M0") == 0 || strcmp(size, "M2") == 0 || strcmp(size, "M5") == 0;
}

static json_t *config_make(const struct clusters_arguments *g)
{
	bool shared = cluster_size_is_shared(g->size);
	json_t *electable = json_pack("{s:s}", "instanceSize", g->size);
	if (!shared)
		json_put(electable, "nodeCount", json_integer(g->nodes));
	if (g->disk)
		json_put(electable, "diskSizeGB", json_integer(g->disk));
	json_t *config = json_pack("{s:s, s:s, s:i, s:o}", "providerName", shared ? "TENANT" : g->provider,
	                           "regionName", g->region, "priority", 7, "electableSpecs", electable);
	if (shared)
		json_put_z(config, "backingProviderName", g->provider);
	return config;
}

json_t *cluster_shape_make(const struct clusters_arguments *g, const char *name)
{
	json_t *specs = json_array();
	for (unsigned i = 0; i < g->shards; i++)
		json_array_append_new(specs, json_pack("{s:[o]}", "regionConfigs", config_make(g)));
	json_t *body = json_pack("{s:s*, s:s, s:o}", "name", name, "clusterType",
	                         g->shards > 1 ? "SHARDED" : "REPLICASET", "replicationSpecs", specs);
	if (g->version)
		json_put_z(body, "dbMajorVersion", g->version);
	return body;
}

const char *const cluster_shape_flags[CLUSTER_SHAPE_FLAGS] = {"nodes",    "shards", "size",   "disk",
                                                              "provider", "region", "version"};

int cluster_shape_check(const struct clusters_arguments *g, const struct options *given)
{
	if (cluster_size_is_shared(g->size) && options_given(given, "nodes") && g->nodes != 1)
		return option_refuse("--nodes: a cluster of the size %s has one node", g->size);
	return 0;
}

struct cluster_shape {
	struct arena *arena;
	struct clusters_arguments given;
	struct options options;
};

struct cluster_shape *cluster_shape_new(struct arena *a)
{
	struct cluster_shape *s = arena_new_of(a, struct cluster_shape);
	s->arena = a;
	options_setup(&s->options, "clusters", clusters_options, clusters_option_count, &s->given, a);
	return s;
}

bool cluster_shape_has(struct str flag)
{
	for (size_t i = 0; i < CLUSTER_SHAPE_FLAGS; i++)
		if (str_is(flag, cluster_shape_flags[i]))
			return true;
	return false;
}

int cluster_shape_set(struct cluster_shape *s, struct str flag, const char *text)
{
	return options_set(&s->options, flag, str_of(text), OPTION_FROM_FLAG,
	                   arena_printf(s->arena, "--%.*s", STR_ARG(flag)).p);
}

bool cluster_shape_is_given(const struct cluster_shape *s)
{
	for (size_t i = 0; i < CLUSTER_SHAPE_FLAGS; i++)
		if (options_given(&s->options, cluster_shape_flags[i]))
			return true;
	return false;
}

const char *cluster_shape_body(const struct cluster_shape *s)
{
	if (cluster_shape_check(&s->given, &s->options) < 0)
		return NULL;
	json_t *body = cluster_shape_make(&s->given, NULL);
	const char *text = json_text(s->arena, body).p;
	json_decref(body);
	return text;
}
