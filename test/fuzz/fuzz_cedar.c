/* Policies. Any bytes are parsed; what parses is validated and evaluated against a request that has a bit of
 * everything. Faults point into the text, outputs stay untouched on failure, the same text gives the same outcome,
 * and what has passed the validator does not fail on a request of the schema's shape. */
#include "fuzz.h"

#include "policy/policy.h"
#include "policy/schema.h"

static json_t *contexts[POLICY_ACTIONS_MAX], *odd;

/* What the schema requires and nothing else, so that a missing `has` shows. */
static json_t *sample(const struct policy_shape *s)
{
	json_t *out;
	switch (s->kind) {
	case POLICY_BOOL: return json_true();
	case POLICY_LONG: return json_integer(3);
	case POLICY_STRING: return json_string("aws:us-east-1");
	case POLICY_IP: return policy_ip_json(STR("10.0.0.0/8"));
	case POLICY_ENTITY:
		for (unsigned i = 0; i < policy_type_count; i++)
			if (s->types & 1u << i)
				return policy_entity_json(policy_types[i].name, STR("aws:us-east-1"));
		return json_null();
	case POLICY_SET:
		out = json_array();
		json_array_append_new(out, sample(s->item));
		return out;
	default: break;
	}
	out = json_object();
	for (size_t i = 0; i < s->attribute_count; i++)
		if (!s->attributes[i].optional)
			json_object_set_new(out, s->attributes[i].name, sample(s->attributes[i].shape));
	return out;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	for (unsigned i = 0; i < policy_action_count; i++)
		contexts[i] = sample(policy_actions[i].context);
	odd = json_loads(
	        "{\"a\": 1, \"b\": \"x*\", \"c\": [1, [2], {\"d\": true}], \"cluster\": {\"regions\": [[], 3]}}", 0,
	        NULL);
	HOLDS(odd);
	return 0;
}

static enum policy_outcome ask(struct arena *a, const struct policy_statement *s, unsigned action,
                               const json_t *context)
{
	struct policy_uid up[] = {{STR(POLICY_ORGANIZATION), STR("o")}, {STR(POLICY_PROJECT), STR("p")}};
	struct policy_field name = {STR("name"), {.kind = POLICY_STRING, .text = STR("n")}};
	struct policy_value named = {.kind = POLICY_RECORD, .count = 1, .fields = &name};
	struct policy_uid cluster = {STR(POLICY_CLUSTER), STR("c")}, user = {STR(POLICY_USER), STR("u")};
	struct policy_entity entities[] = {
	        {up[0], NULL, 0, named}, {up[1], up, 1, named}, {cluster, up, 2, named}, {user, up, 1, named}};
	struct policy_request r = {.principal = user,
	                           .action = {STR(POLICY_ACTION), str_of(policy_actions[action].id)},
	                           .resource = action ? up[1] : cluster,
	                           .entities = entities,
	                           .entity_count = 4};
	struct policy_fault fault = {0};
	unsigned steps = POLICY_STEPS_MAX;
	HOLDS(policy_value_from_json(a, context, &r.context) == 0);
	enum policy_outcome outcome = policy_evaluate(a, s, &r, &steps, &fault);
	HOLDS(steps <= POLICY_STEPS_MAX);
	HOLDS((outcome == POLICY_ERROR || outcome == POLICY_EXHAUSTED) == (fault.line > 0));
	return outcome;
}

static bool is_overflow(const struct policy_expr *e)
{
	if (e->kind == EXPR_NEGATE)
		return true;
	for (const struct policy_expr *child = e->first; child; child = child->next)
		if (is_overflow(child))
			return true;
	return false;
}

static void statement_holds(struct arena *a, const struct policy_statement *s, bool valid)
{
	bool overflows = false;
	for (const struct policy_expr *e = s->conditions; e; e = e->next)
		overflows |= is_overflow(e);
	HOLDS(ask(a, s, 0, odd) == ask(a, s, 0, odd));
	for (unsigned i = 0; i < policy_action_count; i++) {
		enum policy_outcome outcome = ask(a, s, i, contexts[i]);
		HOLDS(!valid || overflows || outcome != POLICY_ERROR);
	}
	policy_mentions(s, "entry");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	char *copy = fuzz_copy(fuzz_input(data, size));
	struct policy_statement *list = NULL;
	struct policy_fault fault = {0};
	struct policy_faults faults = {.count = 0};
	unsigned lines = 1;
	for (size_t i = 0; i < size; i++)
		lines += copy[i] == '\n';
	if (policy_parse(a, (struct str){copy, size}, &list, &fault) < 0) {
		HOLDS(!list && fault.text.n && fault.line >= 1 && fault.line <= lines && fault.column >= 1 &&
		      fault.column <= size + 1);
	} else {
		HOLDS(list && !fault.line && size <= POLICY_TEXT_MAX);
		policy_validate(a, list, &faults);
		HOLDS(faults.count <= POLICY_FAULTS_MAX);
		for (const struct policy_statement *s = list; s; s = s->next)
			statement_holds(a, s, faults.count == 0);
	}
	free(copy);
	arena_free(a);
	return 0;
}
