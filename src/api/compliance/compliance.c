/* What exists and breaks a resource policy: clusters, and projects by what is in them. */
#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"
#include "api/network/network.h"
#include "api/policies/policies.h"

#include <errno.h>

#define PAGE 200

/* One thing that is held against the rules. */
struct finding {
	struct str group_id, id, name;
	const char *clusters; /* the path of its kind of cluster; NULL: it is a project */
};

static void link_self(struct call *c, struct buf *b, const struct finding *f)
{
	struct str href = link_href(c, catalog_op("getGroup"), "groupId", f->group_id);
	if (f->clusters)
		href = arena_printf(c->arena, "%.*s/%s/%.*s", STR_ARG(href), f->clusters, STR_ARG(f->name));
	json_key(b, "links");
	json_open(b, '[');
	json_open(b, '{');
	json_key(b, "href");
	json_str(b, href);
	json_key(b, "rel");
	json_z(b, "self");
	json_close(b, '}');
	json_close(b, ']');
}

/* The broken rules of one resource policy, which begin at *i; moves *i behind them. */
static void broken_write(struct buf *b, const struct policy_rules *rules, size_t *i)
{
	const struct policy_rule *first = &rules->list[*i];
	json_open(b, '{');
	json_key(b, "resourcePolicyId");
	json_str(b, first->resource_policy_id);
	json_key(b, "resourcePolicyName");
	json_str(b, first->resource_policy_name);
	json_key(b, "policiesCausingNonCompliance");
	json_open(b, '[');
	for (; *i < rules->count && str_eq(first->resource_policy_id, rules->list[*i].resource_policy_id); ++*i) {
		if (!rules->list[*i].broken)
			continue;
		json_open(b, '{');
		json_key(b, "policyId");
		json_str(b, rules->list[*i].policy_id);
		json_close(b, '}');
	}
	json_close(b, ']');
	json_close(b, '}');
}

static void finding_write(struct call *c, const struct policy_rules *rules, const struct finding *f)
{
	struct buf *b = &c->out;
	json_open(b, '{');
	link_self(c, b, f);
	json_key(b, "orgId");
	json_str(b, c->org.id);
	json_key(b, "resourceId");
	json_str(b, f->id);
	json_key(b, "resourceName");
	json_str(b, f->name);
	json_key(b, "resourceType");
	json_z(b, f->clusters ? "CLUSTER" : "PROJECT");
	json_key(b, "resourcePoliciesCausingNonCompliance");
	json_open(b, '[');
	for (size_t i = 0; i < rules->count;) {
		if (rules->list[i].broken)
			broken_write(b, rules, &i);
		else
			i++;
	}
	json_close(b, ']');
	json_close(b, '}');
}

/* The number of rules that it breaks. */
static size_t judge(struct call *c, struct arena *a, const struct policy_rules *rules, const struct doc *project,
                    struct policy_subject *s)
{
	s->org_id = c->org.id;
	s->org_name = json_field(doc_json(a, c->org.body), "name");
	s->group_id = project->id;
	s->group_name = project->name;
	if (!s->resource.id.p)
		s->resource = (struct policy_uid){STR(POLICY_PROJECT), project->id};
	return policy_judge(a, rules, s);
}

/* Adds the rules that it breaks to those that are broken. */
static void judge_also(struct call *c, struct arena *a, const struct policy_rules *rules, const struct doc *project,
                       struct policy_subject *s, bool *broken)
{
	judge(c, a, rules, project, s);
	for (size_t i = 0; i < rules->count; i++)
		broken[i] |= rules->list[i].broken;
}

struct cluster_judge {
	struct call *call;
	struct arena *arena;
	const struct policy_rules *rules;
	const struct doc *project;
};

static int cluster_visit(struct tx *tx, void *ctx, const struct doc *d)
{
	const struct cluster_judge *j = ctx;
	struct policy_subject s = {.action = NULL};
	const json_t *cluster = doc_json(j->arena, d->body);
	policy_cluster_subject(j->arena, cluster, &s);
	s.resource.id = d->id;
	const char *path = str_is(d->kind, FLEX_KIND) ? "flexClusters" : "clusters";
	if (judge(j->call, j->arena, j->rules, j->project, &s))
		finding_write(j->call, j->rules,
		              &(struct finding){j->project->id, d->id, json_field(cluster, "name"), path});
	return 0;
}

static int access_judge(struct call *c, struct arena *a, const struct policy_rules *rules, const struct doc *project,
                        bool *broken)
{
	struct policy_subject s = {.action = NULL};
	struct doc *docs;
	size_t count;
	int result = tx_list_all(c->tx, a, "access_entry", project->id, &docs, &count);
	if (result < 0 || count == 0)
		return result;
	struct str *names = arena_new_array(a, struct str, count);
	for (size_t i = 0; i < count; i++)
		names[i] = docs[i].name;
	policy_access_subject(a, names, count, &s);
	judge_also(c, a, rules, project, &s, broken);
	return 0;
}

static int peers_judge(struct call *c, struct arena *a, const struct policy_rules *rules, const struct doc *project,
                       bool *broken)
{
	struct doc *docs;
	size_t count = 0;
	int result = peers_load(c->tx, a, project->id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct policy_subject s = {.action = ACTION_PEERING};
		struct policy_link link;
		result = policy_link_of_peer(c->tx, a, doc_json(a, docs[i].body), &link);
		if (result < 0)
			break;
		s.context = policy_link_context(a, s.action, &link);
		judge_also(c, a, rules, project, &s, broken);
	}
	return result == -ENOENT ? 0 : result;
}

/* What is in a project breaks policies as the project does; clusters stand for themselves. */
static int project_judge(struct call *c, struct arena *a, const struct policy_rules *rules, const struct doc *project)
{
	bool *broken = arena_new_array(a, bool, rules->count + 1), any = false;
	int result = access_judge(c, a, rules, project, broken);
	if (result == 0)
		result = peers_judge(c, a, rules, project, broken);
	for (size_t i = 0; i < rules->count; i++)
		any |= rules->list[i].broken = broken[i];
	if (result == 0 && any)
		finding_write(c, rules, &(struct finding){project->id, project->id, project->name, NULL});
	struct cluster_judge j = {.call = c, .arena = a, .rules = rules, .project = project};
	return result < 0 ? result : clusters_walk_group(c->tx, a, project->id, cluster_visit, &j);
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
			result = project_judge(c, one, &rules, &projects[i]);
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
