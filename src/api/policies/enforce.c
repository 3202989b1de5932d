/* The policies are read for each check, and asked about the change: policy/rules.h. */
#include "api/policies/policies.h"

#include "base/json.h"
#include "trail/events.h"

int policy_rules_load(struct tx *tx, struct arena *a, struct str org_id, struct policy_rules *ret_rules)
{
	struct policy_rules rules = {.count = 0};
	struct doc *docs;
	size_t count = 0;
	int result = tx_list_all(tx, a, "resource_policy", org_id, &docs, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		policy_rules_add(&rules, a, docs[i].id, docs[i].name,
		                 json_object_get(doc_json(a, docs[i].body), "policies"));
	*ret_rules = rules;
	return 0;
}

void policy_subject_place(struct arena *a, const struct doc *org, const struct doc *project, struct policy_subject *s)
{
	s->org_id = org->id;
	s->org_name = json_field(doc_json(a, org->body), "name");
	s->group_id = project->id;
	s->group_name = project->name;
	if (!s->resource.id.p)
		s->resource = (struct policy_uid){STR(POLICY_PROJECT), project->id};
}

static struct policy_uid principal_uid(const struct principal *p)
{
	if (p->kind == PRINCIPAL_SERVICE_ACCOUNT) /* known by its client id */
		return (struct policy_uid){STR(POLICY_SERVICE_ACCOUNT), str_of(p->name)};
	return (struct policy_uid){p->kind == PRINCIPAL_USER ? STR(POLICY_USER) : STR(POLICY_API_KEY), str_of(p->id)};
}

/* The next broken rule whose resource policy is another than that of the last one. */
static const struct policy_rule *broken_next(const struct policy_rules *rules, const struct policy_rule *last)
{
	for (size_t i = last ? (size_t)(last - rules->list) + 1 : 0; i < rules->count; i++)
		if (rules->list[i].broken &&
		    (!last || !str_eq(last->resource_policy_id, rules->list[i].resource_policy_id)))
			return &rules->list[i];
	return NULL;
}

/* Who tried what against which policies is told, though nothing has changed. */
static void tell(struct call *c, const struct policy_rules *rules, const struct policy_subject *s)
{
	json_t *violated = json_keep(c->arena, json_array());
	for (size_t i = 0; i < rules->count; i++)
		if (rules->list[i].broken)
			json_add_str(violated, rules->list[i].policy_id);
	event_refusal(c, "RESOURCE_POLICY_VIOLATED");
	event_cluster(c, s->resource_name);
	event_field(c, "resourcePolicyId", broken_next(rules, NULL)->resource_policy_id);
	event_field(c, "violationAction", str_of(s->action));
	event_list_field(c, "violatedPolicies", json_text(c->arena, violated));
}

static int change_refuse(struct call *c, const struct policy_rules *rules)
{
	struct buf b = {0};
	for (const struct policy_rule *r = NULL; (r = broken_next(rules, r));)
		buf_printf(&b, "%s\"%.*s\" (%.*s)", b.n ? ", " : "", STR_ARG(r->resource_policy_name),
		           STR_ARG(r->resource_policy_id));
	int result = call_fail(c, 403, "RESOURCE_POLICY_VIOLATION",
	                       "The organization's resource policies forbid this change: %.*s.", STR_ARG(buf_view(&b)));
	buf_free(&b);
	for (const struct policy_rule *r = NULL; (r = broken_next(rules, r));) {
		call_fail_param(c, r->resource_policy_id);
		call_fail_param(c, r->resource_policy_name);
	}
	return result;
}

static int check(struct call *c, const struct policy_rules *rules, struct policy_subject *s)
{
	struct doc org;
	int result = tx_get(c->tx, c->arena, "org", c->org.id, &org);
	if (result < 0)
		return result;
	policy_subject_place(c->arena, &org, &c->group, s);
	s->caller = principal_uid(c->caller);
	s->caller_name = str_of(c->caller->name);
	if (!policy_rules_ask(rules, c->arena, s))
		return 0;
	tell(c, rules, s);
	return change_refuse(c, rules);
}

int policy_check_access_list(struct call *c, const struct str *names, size_t count)
{
	struct policy_rules rules;
	struct policy_subject s = {.action = NULL};
	int result = policy_rules_load(c->tx, c->arena, c->org.id, &rules);
	if (result < 0 || rules.count == 0 || count == 0)
		return result;
	policy_access_subject(c->arena, names, count, &s);
	return check(c, &rules, &s);
}

int policy_check_cluster(struct call *c, const json_t *cluster, const json_t *before)
{
	struct policy_rules rules;
	struct policy_subject s = {.action = NULL}, was = {.action = NULL};
	int result = policy_rules_load(c->tx, c->arena, c->org.id, &rules);
	if (result < 0 || rules.count == 0)
		return result;
	policy_cluster_subject(c->arena, cluster, &s);
	if (before)
		policy_cluster_subject(c->arena, before, &was);
	s.before = was.context;
	return check(c, &rules, &s);
}

int policy_check_link(struct call *c, const char *action, const struct policy_link *link)
{
	struct policy_rules rules;
	struct policy_subject s = {.action = action};
	int result = policy_rules_load(c->tx, c->arena, c->org.id, &rules);
	if (result < 0 || rules.count == 0)
		return result;
	s.context = policy_link_context(c->arena, action, link);
	return check(c, &rules, &s);
}
