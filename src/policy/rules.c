/* The policies are parsed for each check: they are few and small, a check costs tens of microseconds, and there is no
 * cache that could be stale. */
#include "policy/rules.h"

#include "base/json.h"
#include "base/log.h"

#define STEPS_MAX 5000000 /* of one check, all policies together */

static void room_make(struct policy_rules *rules, struct arena *a, size_t more)
{
	if (rules->count + more <= rules->room)
		return;
	rules->room = 2 * (rules->count + more);
	struct policy_rule *list = arena_new_array(a, struct policy_rule, rules->room);
	if (rules->count)
		memcpy(list, rules->list, rules->count * sizeof *list);
	rules->list = list;
}

void policy_rules_add(struct policy_rules *rules, struct arena *a, struct str id, struct str name,
                      const json_t *policies)
{
	room_make(rules, a, json_array_size(policies));
	for (size_t i = 0; i < json_array_size(policies); i++) {
		const json_t *policy = json_array_get(policies, i);
		struct policy_rule *r = &rules->list[rules->count];
		struct policy_faults faults = {.count = 0};
		struct policy_fault fault;
		*r = (struct policy_rule){
		        .resource_policy_id = id, .resource_policy_name = name, .policy_id = json_field(policy, "id")};
		if (policy_parse(a, json_field(policy, "body"), &r->statements, &fault) < 0) {
			log_error("resource policy %.*s: line %u, column %u: %.*s", STR_ARG(id), fault.line,
			          fault.column, STR_ARG(fault.text));
			continue;
		}
		policy_validate(a, r->statements, &faults);
		rules->count++;
	}
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
	static const struct policy_uid nobody = {{POLICY_NAMESPACE "Nobody", sizeof POLICY_NAMESPACE "Nobody" - 1},
	                                         {NULL, 0}};
	struct policy_uid *up = arena_new_array(a, struct policy_uid, 2);
	struct policy_entity *e = arena_new_array(a, struct policy_entity, 4);
	up[0] = (struct policy_uid){STR(POLICY_ORGANIZATION), s->org_id};
	up[1] = (struct policy_uid){STR(POLICY_PROJECT), s->group_id};
	*r = (struct policy_request){.principal = s->caller.type.n ? s->caller : nobody,
	                             .action = {STR(POLICY_ACTION), str_of(s->action)},
	                             .resource = s->resource,
	                             .entities = e,
	                             .entity_count = 3};
	e[0] = (struct policy_entity){up[0], NULL, 0, name_attribute(a, s->org_name)};
	e[1] = (struct policy_entity){up[1], up, 1, name_attribute(a, s->group_name)};
	e[2] = (struct policy_entity){r->principal, up, 1, name_attribute(a, s->caller_name)};
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

static void statements_ask(struct arena *a, const struct policy_rules *rules, const struct policy_subject *subject,
                           const struct policy_request *r, bool first, unsigned *steps)
{
	for (size_t i = 0; i < rules->count; i++) {
		struct policy_rule *rule = &rules->list[i];
		for (const struct policy_statement *s = rule->statements; s && !rule->broken; s = s->next)
			if (s->forbids && (first || policy_mentions(s, "entry")) && !is_untouched(s, subject))
				rule->broken = statement_broken(a, rule, s, r, steps);
	}
}

size_t policy_rules_ask(const struct policy_rules *rules, struct arena *a, const struct policy_subject *s)
{
	struct policy_request r;
	unsigned steps = STEPS_MAX;
	size_t broken = 0, i = 0;
	for (size_t k = 0; k < rules->count; k++)
		rules->list[k].broken = false;
	request_make(a, s, &r);
	do {
		if (context_make(a, s, s->entries ? s->entries[i] : NULL, &r.context))
			statements_ask(a, rules, s, &r, i == 0, &steps);
	} while (++i < s->entry_count);
	for (size_t k = 0; k < rules->count; k++)
		broken += rules->list[k].broken;
	return broken;
}
