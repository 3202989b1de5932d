/* What exists and breaks a resource policy: clusters, and projects by what is in them. */
#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"
#include "api/network/network.h"
#include "api/policies/policies.h"

#include <errno.h>

#define PAGE 200

/* The resource policies that have broken rules, with those. */
static json_t *broken_json(const struct policy_rules *rules)
{
	json_t *list = json_array(), *policies = NULL;
	struct str last = STR_NONE;
	for (size_t i = 0; i < rules->count; i++) {
		const struct policy_rule *r = &rules->list[i];
		if (!r->broken)
			continue;
		if (!str_eq(r->resource_policy_id, last)) {
			json_t *one = json_object();
			last = r->resource_policy_id;
			policies = json_array();
			json_put_str(one, "resourcePolicyId", r->resource_policy_id);
			json_put_str(one, "resourcePolicyName", r->resource_policy_name);
			json_put(one, "policiesCausingNonCompliance", policies);
			json_array_append_new(list, one);
		}
		json_t *policy = json_object();
		json_put_str(policy, "policyId", r->policy_id);
		json_array_append_new(policies, policy);
	}
	return list;
}

/* One project, whose things are held against the rules. What is in it breaks policies as the project does, and is
 * marked in `broken`; clusters stand for themselves. */
struct review {
	struct call *call;
	struct arena *arena; /* for this project only */
	const struct policy_rules *rules;
	const struct doc *project;
	bool *broken;
};

/* The project breaks rules, or a cluster of it; clusters: the path of its kind of cluster, or NULL. */
static void finding_write(const struct review *r, struct str id, struct str name, const char *clusters)
{
	struct arena *a = r->arena;
	json_t *entity = json_keep(a, json_object());
	struct str href = link_href(r->call, catalog_op("getGroup"), "groupId", r->project->id);
	if (clusters)
		href = arena_printf(a, "%.*s/%s/%.*s", STR_ARG(href), clusters, STR_ARG(name));
	json_put(entity, "links", json_pack("[{s:s%, s:s}]", "href", href.p, href.n, "rel", "self"));
	json_put_str(entity, "orgId", r->call->org.id);
	json_put_str(entity, "resourceId", id);
	json_put_str(entity, "resourceName", name);
	json_put_z(entity, "resourceType", clusters ? "CLUSTER" : "PROJECT");
	json_put(entity, "resourcePoliciesCausingNonCompliance", broken_json(r->rules));
	json_raw(&r->call->out, json_text(a, entity));
}

static size_t subject_ask(const struct review *r, struct policy_subject *s)
{
	policy_subject_place(r->arena, &r->call->org, r->project, s);
	return policy_rules_ask(r->rules, r->arena, s);
}

static void subject_review(const struct review *r, struct policy_subject *s)
{
	subject_ask(r, s);
	for (size_t i = 0; i < r->rules->count; i++)
		r->broken[i] |= r->rules->list[i].broken;
}

static int cluster_visit(struct tx *tx, void *ctx, const struct doc *d)
{
	const struct review *r = ctx;
	struct policy_subject s = {.action = NULL};
	const json_t *cluster = doc_json(r->arena, d->body);
	policy_cluster_subject(r->arena, cluster, &s);
	s.resource.id = d->id;
	const char *path = str_is(d->kind, FLEX_KIND) ? "flexClusters" : "clusters";
	if (subject_ask(r, &s))
		finding_write(r, d->id, json_field(cluster, "name"), path);
	return 0;
}

static int access_review(const struct review *r)
{
	struct policy_subject s = {.action = NULL};
	struct doc *docs;
	size_t count;
	int result = tx_list_all(r->call->tx, r->arena, "access_entry", r->project->id, &docs, &count);
	if (result < 0 || count == 0)
		return result;
	struct str *names = arena_new_array(r->arena, struct str, count);
	for (size_t i = 0; i < count; i++)
		names[i] = docs[i].name;
	policy_access_subject(r->arena, names, count, &s);
	subject_review(r, &s);
	return 0;
}

static int peers_review(const struct review *r)
{
	struct doc *docs;
	size_t count = 0;
	int result = peers_load(r->call->tx, r->arena, r->project->id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct policy_subject s = {.action = ACTION_PEERING};
		struct policy_link link;
		result = policy_link_of_peer(r->call->tx, r->arena, doc_json(r->arena, docs[i].body), &link);
		if (result < 0)
			break;
		s.context = policy_link_context(r->arena, s.action, &link);
		subject_review(r, &s);
	}
	return result == -ENOENT ? 0 : result;
}

static int services_review(const struct review *r)
{
	struct doc *docs;
	size_t count = 0;
	int result = tx_list_all(r->call->tx, r->arena, "endpoint_service", r->project->id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct policy_subject s = {.action = ACTION_PRIVATE_ENDPOINT};
		const json_t *service = doc_json(r->arena, docs[i].body);
		struct policy_link link = {.provider = json_field(service, "cloudProvider"),
		                           .region = json_field(service, "regionName")};
		s.context = policy_link_context(r->arena, s.action, &link);
		subject_review(r, &s);
	}
	return result;
}

static int project_review(struct review *r)
{
	const struct doc *project = r->project;
	bool any = false;
	r->broken = arena_new_array(r->arena, bool, r->rules->count + 1);
	int result = access_review(r);
	if (result == 0)
		result = peers_review(r);
	if (result == 0)
		result = services_review(r);
	for (size_t i = 0; i < r->rules->count; i++)
		any |= r->rules->list[i].broken = r->broken[i];
	if (result == 0 && any)
		finding_write(r, project->id, project->name, NULL);
	return result < 0 ? result : clusters_walk_group(r->call->tx, r->arena, project->id, cluster_visit, r);
}

/* Of the projects that the caller may read. What a project needs is forgotten before the next one. */
int policies_non_compliant(struct call *c)
{
	struct policy_rules rules;
	int64_t from = 0;
	size_t count = PAGE;
	int result = policy_rules_load(c->tx, c->arena, c->org.id, &rules);
	if (result < 0)
		return result;
	struct arena *page = arena_new(), *one = arena_new();
	json_open(&c->out, '[');
	while (result == 0 && rules.count && count == PAGE) {
		struct doc *projects;
		result = tx_list(c->tx, page, "project", c->org.id, from, PAGE, &projects, &count);
		for (size_t i = 0; result == 0 && i < count; i++) {
			if (!principal_group_roles(c->caller, c->org.id, projects[i].id))
				continue;
			result = project_review(
			        &(struct review){.call = c, .arena = one, .rules = &rules, .project = &projects[i]});
			arena_reset(one);
		}
		from += PAGE;
		arena_reset(page);
	}
	json_close(&c->out, ']');
	arena_free(one);
	arena_free(page);
	return result;
}
