/* How many nodes a project has in a region with private endpoints: a limit of the project says how many it may have. */
#include "api/private_endpoints/endpoints.h"

#include <errno.h>

#define LIMIT "svc.project.deployment.nodesPerPrivateLinkRegion"

/* Google's have a limit of their own. */
static bool is_limited(struct str provider)
{
	return str_is_one_of("AWS|AZURE", provider);
}

struct counting {
	struct arena *arena;
	struct str provider, region;
	struct str except; /* the name of a cluster that is about to be another one */
	int64_t others, had;
};

static int64_t nodes_of(const struct counting *n, const json_t *cluster)
{
	struct region_walk walk = {.spec = 0};
	const json_t *config;
	static const char *const kinds[] = {"electableSpecs", "readOnlySpecs", "analyticsSpecs"};
	int64_t count = 0;
	while ((config = region_next(cluster, &walk)))
		if (str_eq(json_field(config, "providerName"), n->provider) &&
		    str_eq(json_field(config, "regionName"), n->region))
			for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
				count += json_number(json_object_get(config, kinds[i]), "nodeCount");
	return count;
}

static int cluster_count(struct tx *tx, void *ctx, const struct doc *doc)
{
	struct counting *n = ctx;
	int64_t count = nodes_of(n, doc_json(n->arena, doc->body));
	*(n->except.n && str_eq(doc->name, n->except) ? &n->had : &n->others) += count;
	return 0;
}

/* With `more`, a cluster that is about to be so; or NULL. */
static int limit_check(struct call *c, struct str provider, struct str region, const json_t *more)
{
	struct counting n = {
	        .arena = c->arena, .provider = provider, .region = region, .except = json_field(more, "name")};
	int64_t adds = nodes_of(&n, more), most = limit_find(STR(LIMIT))->standard;
	struct doc d;
	if (!is_limited(provider) || (more && !adds))
		return 0;
	int r = clusters_walk_group(c->tx, c->arena, c->group.id, cluster_count, &n);
	if (r == 0)
		r = tx_get_by_name(c->tx, c->arena, "project_limit", c->group.id, STR(LIMIT), &d);
	if (r == 0)
		most = json_number(doc_json(c->arena, d.body), "value");
	if (r < 0 && r != -ENOENT)
		return r;
	/* What was there before the limit was lowered stays, and can be made smaller. */
	if (n.others + adds <= most || (more && adds <= n.had))
		return 0;
	long long would = n.others + adds, has = n.others + n.had;
	call_fail(c, 400, "PROJECT_LIMIT_EXCEEDED",
	          LIMIT ": the project would have %lld nodes in %.*s, a region with private endpoints. There may be "
	                "%lld.",
	          would, STR_ARG(region), (long long)most);
	call_fail_param(c, STR(LIMIT));
	call_fail_param(c, arena_printf(c->arena, "%lld", has));
	return call_fail_param(c, arena_printf(c->arena, "%lld", (long long)most));
}

int service_nodes_check(struct call *c, const json_t *service)
{
	return limit_check(c, json_field(service, "cloudProvider"), json_field(service, "regionName"), NULL);
}

int cluster_nodes_check(struct call *c, const json_t *cluster, struct faults *faults)
{
	struct doc *services;
	size_t count = 0;
	if (faults->count)
		return 0;
	int r = tx_list_all(c->tx, c->arena, SERVICE_KIND, c->group.id, &services, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *service = doc_json(c->arena, services[i].body);
		if (!lifecycle_is_leaving(c->arena, &services[i]))
			r = limit_check(c, json_field(service, "cloudProvider"), json_field(service, "regionName"),
			                cluster);
	}
	return r;
}
