/* Resource policies: written by owners, checked where they are written, and held against what exists. Get, update and
 * delete are the generic verbs with the hooks below; policy_enforce.c keeps them in force. */
#include "api/cluster_store.h"
#include "api/networks.h"
#include "api/policy_context.h"
#include "api/policy_enforce.h"
#include "api/verbs.h"

#include "base/clock.h"
#include "base/id.h"
#include "gate/audit.h"
#include "gate/service.h"

#include <errno.h>

int policies_list(struct call *c);
int policies_validate(struct call *c);
int policies_non_compliant(struct call *c);

extern const struct resource resource_resource_policy;

#define PER_ORGANIZATION 50
#define PER_RESOURCE_POLICY 10
#define TEXT_MAX 32768      /* bytes of one resource policy */
#define TEXT_ALL_MAX 131072 /* of an organization's: every check of a change parses them all */
#define NAME_MAX_LENGTH 128
#define DESCRIPTION_MAX_LENGTH 1024
#define PAGE 200

static int fail_field(struct call *c, const char *field, const char *what)
{
	call_fail(c, 400, "VALIDATION_ERROR", "%s: %s.", field, what);
	return call_fail_param(c, str_of(field));
}

static int words_check(struct call *c, const json_t *document)
{
	struct str name = json_field(document, "name"), description = json_field(document, "description");
	if (!str_trim(name).n || name.n > NAME_MAX_LENGTH)
		return fail_field(c, "name", "must have from 1 to 128 bytes, not all of them blank");
	if (description.n > DESCRIPTION_MAX_LENGTH)
		return fail_field(c, "description", "must have at most 1024 bytes");
	return 0;
}

/* Every fault of every policy, each with its place. */
static int fail_faults(struct call *c, const struct policy_faults *faults, size_t count)
{
	struct buf b = {0};
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < faults[i].count; k++) {
			const struct policy_fault *f = &faults[i].list[k];
			buf_printf(&b, "%spolicies[%zu].body: line %u, column %u: %.*s", b.n ? "; " : "", i, f->line,
			           f->column, STR_ARG(f->text));
		}
	if (!b.n)
		return 0;
	int result = call_fail(c, 400, "INVALID_RESOURCE_POLICY", "%.*s.", STR_ARG(buf_view(&b)));
	buf_free(&b);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < faults[i].count; k++) {
			const struct policy_fault *f = &faults[i].list[k];
			call_fail_param(c, arena_printf(c->arena, "policies[%zu].body", i));
			call_fail_param(c, arena_printf(c->arena, "line %u, column %u: %.*s", f->line, f->column,
			                                STR_ARG(f->text)));
		}
	return result;
}

static size_t text_size(const json_t *document)
{
	const json_t *list = json_object_get(document, "policies");
	size_t bytes = 0;
	for (size_t i = 0; i < json_array_size(list); i++)
		bytes += json_field(json_array_get(list, i), "body").n;
	return bytes;
}

static int policies_check(struct call *c, const json_t *document)
{
	const json_t *list = json_object_get(document, "policies");
	size_t count = json_array_size(list);
	if (count == 0 || count > PER_RESOURCE_POLICY)
		return fail_field(c, "policies", "must have from 1 to 10 policies");
	struct policy_faults *faults = arena_new_array(c->arena, struct policy_faults, count);
	for (size_t i = 0; i < count; i++) {
		struct str body = json_field(json_array_get(list, i), "body");
		struct policy_statement *statements;
		if (policy_parse(c->arena, body, &statements, &faults[i].list[0]) < 0)
			faults[i].count = 1;
		else
			policy_validate(c->arena, statements, &faults[i]);
	}
	if (text_size(document) > TEXT_MAX)
		return fail_field(c, "policies", "must have at most 32768 bytes of text in all");
	return fail_faults(c, faults, count);
}

/* With all others of the organization. */
static int room_check(struct call *c, const json_t *document, struct str id)
{
	struct doc *docs;
	size_t count, bytes = text_size(document);
	int result = tx_list(c->tx, c->arena, "resource_policy", c->org.id, 0, PER_ORGANIZATION, &docs, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (!str_eq(docs[i].id, id))
			bytes += text_size(doc_json(c->arena, docs[i].body));
	if (bytes <= TEXT_ALL_MAX)
		return 0;
	call_fail(c, 409, "RESOURCE_POLICY_LIMIT_EXCEEDED",
	          "All policies of an organization have at most %d bytes of text; with these it would be %zu.",
	          TEXT_ALL_MAX, bytes);
	return call_fail_param(c, STR("policies"));
}

/* A policy whose text stays keeps its id. */
static void ids_give(json_t *document, const json_t *before)
{
	json_t *list = json_object_get(document, "policies");
	size_t old_count = json_array_size(before);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *policy = json_array_get(list, i), *kept = NULL;
		for (size_t k = 0; k < old_count && !kept; k++) {
			const json_t *old = json_array_get(before, k);
			bool taken = false;
			for (size_t j = 0; j < i; j++)
				taken |= json_equal(json_object_get(json_array_get(list, j), "id"),
				                    json_object_get(old, "id"));
			if (!taken && json_equal(json_object_get(old, "body"), json_object_get(policy, "body")))
				kept = json_object_get(old, "id");
		}
		if (kept) {
			json_object_set(policy, "id", kept);
		} else {
			struct id id = id_new();
			json_object_set_new(policy, "id", json_string(id.z));
		}
	}
}

/* Who, and when. */
static void stamp(struct call *c, json_t *document, const char *by, const char *date)
{
	char now[CLOCK_TEXT];
	clock_format(clock_now_ms(), now);
	json_object_set_new(document, by, json_pack("{s:s, s:s}", "id", c->caller->id, "name", c->caller->name));
	json_object_set_new(document, date, json_string(now));
}

static void complete(struct call *c, json_t *document)
{
	if (json_is_null(json_object_get(document, "description")))
		json_object_del(document, "description");
	json_object_set_new(document, "orgId", json_stringn(c->org.id.p, c->org.id.n));
	json_object_set_new(document, "version", json_string("v1"));
}

/* All that can be wrong with a new one but its name. */
static int new_check(struct call *c, const json_t *document)
{
	int64_t count = 0;
	int result = words_check(c, document);
	if (result == 0)
		result = policies_check(c, document);
	if (result == 0)
		result = tx_count(c->tx, "resource_policy", c->org.id, &count);
	if (result < 0)
		return result;
	if (count >= PER_ORGANIZATION) {
		call_fail(c, 409, "RESOURCE_POLICY_LIMIT_EXCEEDED", "An organization has at most %d resource policies.",
		          PER_ORGANIZATION);
		return call_fail_param(c, STR("50"));
	}
	return room_check(c, document, STR_NONE);
}

static int policy_create(struct call *c, json_t *document)
{
	int result = new_check(c, document);
	if (result < 0)
		return result;
	ids_give(document, NULL);
	complete(c, document);
	stamp(c, document, "createdByUser", "createdDate");
	stamp(c, document, "lastUpdatedByUser", "lastUpdatedDate");
	audit_field(c, "resourcePolicyId", json_field(document, "id"));
	return 0;
}

static int policy_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	if (!json_object_get(document, "name")) /* null: as it was */
		json_object_set(document, "name", json_object_get(before, "name"));
	int result = words_check(c, document);
	if (result == 0)
		result = policies_check(c, document);
	if (result == 0)
		result = room_check(c, document, old->id);
	if (result < 0)
		return result;
	ids_give(document, json_object_get(before, "policies"));
	stamp(c, document, "lastUpdatedByUser", "lastUpdatedDate");
	/* The version counts the changes. */
	json_object_set_new(document, "version",
	                    json_string(arena_printf(c->arena, "v%lld", (long long)old->rev + 1).p));
	audit_field(c, "resourcePolicyId", old->id);
	return 0;
}

static int policy_remove(struct call *c, const struct doc *old)
{
	audit_field(c, "resourcePolicyId", old->id);
	return 0;
}

const struct resource_hooks resource_policy_hooks = {
        .create = policy_create, .update = policy_update, .remove = policy_remove};

/* All of them: there are at most PER_ORGANIZATION. */
int policies_list(struct call *c)
{
	const struct resource *r = &resource_resource_policy;
	struct doc *docs;
	size_t count;
	int result = tx_list(c->tx, c->arena, r->kind, c->org.id, 0, PER_ORGANIZATION, &docs, &count);
	if (result < 0)
		return result;
	json_open(&c->out, '[');
	for (size_t i = 0; i < count; i++)
		entity_write(c, &c->out, docs[i].body, r->self, r->key_param, docs[i].id, true);
	json_close(&c->out, ']');
	return 0;
}

/* What a create would say, and what it would make as far as that can be known. */
int policies_validate(struct call *c)
{
	json_t *document = doc_json(c->arena, json_text(c->arena, c->body));
	struct str name = json_field(document, "name");
	struct doc taken;
	int result = new_check(c, document);
	if (result < 0)
		return result;
	if (tx_get_by_name(c->tx, c->arena, "resource_policy", c->org.id, name, &taken) == 0) {
		call_fail(c, 409, "DUPLICATE_NAME", "name: \"%.*s\" is taken. Choose another.", STR_ARG(name));
		return call_fail_param(c, name);
	}
	complete(c, document);
	buf_str(&c->out, json_text(c->arena, document));
	return 0;
}

/* What exists and breaks a policy. */

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
	int64_t total;
	int result = tx_count(c->tx, "access_entry", project->id, &total);
	if (result == 0)
		result = tx_list(c->tx, a, "access_entry", project->id, 0, total, &docs, &count);
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
