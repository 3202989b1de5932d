/* The policies are read and parsed for each check: they are few and small, a check costs tens of microseconds, and
 * there is no cache that could be stale. */
#include "api/policies/policies.h"

#include "api/kit/verbs.h"
#include "api/policies/policies.h"
#include "base/log.h"
#include "trail/events.h"

#define STEPS_MAX 5000000 /* of one check, all policies together */

static void rules_read(struct arena *a, const struct doc *d, const json_t *policies, struct policy_rules *rules)
{
	for (size_t i = 0; i < json_array_size(policies); i++) {
		const json_t *policy = json_array_get(policies, i);
		struct policy_rule *r = &rules->list[rules->count];
		struct policy_faults faults = {.count = 0};
		struct policy_fault fault;
		*r = (struct policy_rule){.resource_policy_id = d->id,
		                          .resource_policy_name = d->name,
		                          .policy_id = json_field(policy, "id")};
		if (policy_parse(a, json_field(policy, "body"), &r->statements, &fault) < 0) {
			/* It was parsed when it was written. */
			log_error("resource policy %.*s: line %u, column %u: %.*s", STR_ARG(d->id), fault.line,
			          fault.column, STR_ARG(fault.text));
			continue;
		}
		policy_validate(a, r->statements, &faults);
		rules->count++;
	}
}

int policy_rules_load(struct tx *tx, struct arena *a, struct str org_id, struct policy_rules *ret_rules)
{
	struct policy_rules rules = {.count = 0};
	struct doc *docs;
	size_t count = 0, room = 0;
	int result = tx_list_all(tx, a, "resource_policy", org_id, &docs, &count);
	if (result < 0)
		return result;
	const json_t **policies = arena_new_array(a, const json_t *, count + 1);
	for (size_t i = 0; i < count; i++) {
		policies[i] = json_object_get(doc_json(a, docs[i].body), "policies");
		room += json_array_size(policies[i]);
	}
	rules.list = arena_new_array(a, struct policy_rule, room + 1);
	for (size_t i = 0; i < count; i++)
		rules_read(a, &docs[i], policies[i], &rules);
	*ret_rules = rules;
	return 0;
}

static struct policy_uid principal_uid(const struct principal *p)
{
	if (!p)
		return (struct policy_uid){STR(POLICY_NAMESPACE "Nobody"), STR_NONE};
	if (p->kind == PRINCIPAL_SERVICE_ACCOUNT) /* known by its client id */
		return (struct policy_uid){STR(POLICY_SERVICE_ACCOUNT), str_of(p->name)};
	return (struct policy_uid){p->kind == PRINCIPAL_USER ? STR(POLICY_USER) : STR(POLICY_API_KEY), str_of(p->id)};
}

static struct policy_value name_attribute(struct arena *a, struct str name)
{
	struct policy_field *field = arena_new_of(a, struct policy_field);
	*field = (struct policy_field){STR("name"), {.kind = POLICY_STRING, .text = name}};
	return (struct policy_value){.kind = POLICY_RECORD, .count = 1, .fields = field};
}

/* Organization > project > resource, and the caller in the organization. */
static void request_make(struct arena *a, const struct policy_subject *s, struct policy_request *r)
{
	struct policy_uid *up = arena_new_array(a, struct policy_uid, 2);
	struct policy_entity *e = arena_new_array(a, struct policy_entity, 4);
	up[0] = (struct policy_uid){STR(POLICY_ORGANIZATION), s->org_id};
	up[1] = (struct policy_uid){STR(POLICY_PROJECT), s->group_id};
	*r = (struct policy_request){.principal = principal_uid(s->caller),
	                             .action = {STR(POLICY_ACTION), str_of(s->action)},
	                             .resource = s->resource,
	                             .entities = e,
	                             .entity_count = 3};
	e[0] = (struct policy_entity){up[0], NULL, 0, name_attribute(a, s->org_name)};
	e[1] = (struct policy_entity){up[1], up, 1, name_attribute(a, s->group_name)};
	e[2] = (struct policy_entity){r->principal, up, 1,
	                              name_attribute(a, str_of(s->caller ? s->caller->name : NULL))};
	if (!policy_uid_equal(s->resource, up[1]))
		e[r->entity_count++] = (struct policy_entity){s->resource, up, 2, name_attribute(a, s->resource_name)};
}

/* A context that cannot be read is our fault, and is told as one that forbids nothing. */
static bool context_make(struct arena *a, const struct policy_subject *s, const json_t *entry,
                         struct policy_value *ret_context)
{
	if (entry)
		json_object_set(s->context, "entry", (json_t *)(uintptr_t)entry);
	if (policy_value_from_json(a, s->context, ret_context) == 0)
		return true;
	log_error("policies: the context of %s cannot be read", s->action);
	return false;
}

static bool statement_broken(struct arena *a, const struct policy_rule *rule, const struct policy_statement *statement,
                             const struct policy_request *r, unsigned *steps)
{
	struct policy_fault fault;
	enum policy_outcome outcome = policy_evaluate(a, statement, r, steps, &fault);
	if (outcome == POLICY_ERROR || outcome == POLICY_EXHAUSTED)
		log_warn("resource policy %.*s: policy %.*s: line %u, column %u: %.*s",
		         STR_ARG(rule->resource_policy_id), STR_ARG(rule->policy_id), fault.line, fault.column,
		         STR_ARG(fault.text));
	return outcome == POLICY_APPLIES || outcome == POLICY_EXHAUSTED;
}

/* Whether nothing that it looks at changes. One that looks at nothing of the cluster, or at who asks, is about the
 * change itself, whatever it is. */
static bool is_untouched(const struct policy_statement *s, const struct policy_subject *subject)
{
	static const char record[] = "cluster";
	json_t *before = json_object_get(subject->before, record), *after = json_object_get(subject->context, record);
	const char *name;
	json_t *value;
	if (!before || policy_reads_principal(s) || !policy_reads(s, record, NULL))
		return false;
	json_object_foreach(before, name, value)
	{
		if (!json_equal(value, json_object_get(after, name)) && policy_reads(s, record, name))
			return false;
	}
	json_object_foreach(after, name, value)
	{
		if (!json_object_get(before, name) && policy_reads(s, record, name))
			return false;
	}
	return true;
}

static void rules_ask(struct arena *a, const struct policy_rules *rules, const struct policy_subject *subject,
                      const struct policy_request *r, bool first, unsigned *steps)
{
	for (size_t i = 0; i < rules->count; i++) {
		struct policy_rule *rule = &rules->list[i];
		for (const struct policy_statement *s = rule->statements; s && !rule->broken; s = s->next)
			if (s->forbids && (first || policy_mentions(s, "entry")) && !is_untouched(s, subject))
				rule->broken = statement_broken(a, rule, s, r, steps);
	}
}

size_t policy_judge(struct arena *a, const struct policy_rules *rules, const struct policy_subject *s)
{
	struct policy_request r;
	unsigned steps = STEPS_MAX;
	size_t broken = 0, i = 0;
	for (size_t k = 0; k < rules->count; k++)
		rules->list[k].broken = false;
	request_make(a, s, &r);
	do {
		if (context_make(a, s, s->entries ? s->entries[i] : NULL, &r.context))
			rules_ask(a, rules, s, &r, i == 0, &steps);
	} while (++i < s->entry_count);
	for (size_t k = 0; k < rules->count; k++)
		broken += rules->list[k].broken;
	return broken;
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
	struct buf b = {0};
	json_open(&b, '[');
	for (size_t i = 0; i < rules->count; i++)
		if (rules->list[i].broken)
			json_str(&b, rules->list[i].policy_id);
	json_close(&b, ']');
	event_refusal(c, "RESOURCE_POLICY_VIOLATED");
	event_cluster(c, s->resource_name);
	event_field(c, "resourcePolicyId", broken_next(rules, NULL)->resource_policy_id);
	event_field(c, "violationAction", str_of(s->action));
	event_list_field(c, "violatedPolicies", arena_dup(c->arena, buf_view(&b)));
	buf_free(&b);
}

static int refuse(struct call *c, const struct policy_rules *rules)
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
	s->caller = c->caller;
	s->org_id = c->org.id;
	s->org_name = json_field(doc_json(c->arena, org.body), "name");
	s->group_id = c->group.id;
	s->group_name = c->group.name;
	if (!s->resource.id.p)
		s->resource = (struct policy_uid){STR(POLICY_PROJECT), c->group.id};
	if (!policy_judge(c->arena, rules, s))
		return 0;
	tell(c, rules, s);
	return refuse(c, rules);
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
