/* The policy engine for the property test: reads lines {"policies": [text], "requests": [request]} and writes, for
 * each request, one word for each policy: f or p for its effect, then A (applies), S (skipped), E (error) or X (out
 * of steps). A text that does not parse is a "?" with its fault. */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct str text_of(const json_t *object, const char *field)
{
	const json_t *value = json_object_get(object, field);
	return (struct str){json_string_value(value), json_string_length(value)};
}

static struct policy_uid uid_of(const json_t *value)
{
	return (struct policy_uid){text_of(value, "type"), text_of(value, "id")};
}

static void value_of(struct arena *a, const json_t *json, struct policy_value *ret_value)
{
	if (policy_value_from_json(a, json, ret_value) < 0) {
		fprintf(stderr, "policy_batch: a value of the request cannot be read\n");
		exit(1);
	}
}

static void entities_of(struct arena *a, const json_t *list, struct policy_request *r)
{
	struct policy_entity *entities = arena_new_array(a, struct policy_entity, json_array_size(list) + 1);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i), *parents = json_object_get(item, "parents");
		struct policy_uid *up = arena_new_array(a, struct policy_uid, json_array_size(parents) + 1);
		for (size_t k = 0; k < json_array_size(parents); k++)
			up[k] = uid_of(json_array_get(parents, k));
		entities[i] =
		        (struct policy_entity){uid_of(json_object_get(item, "uid")), up, json_array_size(parents), {0}};
		value_of(a, json_object_get(item, "attrs"), &entities[i].attributes);
	}
	r->entities = entities;
	r->entity_count = json_array_size(list);
}

struct parsed {
	struct policy_statement *statement; /* NULL: the fault */
	struct policy_fault fault;
};

static struct parsed *parse_all(struct arena *a, const json_t *policies)
{
	struct parsed *list = arena_new_array(a, struct parsed, json_array_size(policies) + 1);
	for (size_t i = 0; i < json_array_size(policies); i++) {
		const json_t *text = json_array_get(policies, i);
		struct str s = {json_string_value(text), json_string_length(text)};
		if (policy_parse(a, s, &list[i].statement, &list[i].fault) < 0)
			list[i].statement = NULL;
	}
	return list;
}

static void answer(struct arena *a, const struct parsed *policies, size_t count, const json_t *request)
{
	struct policy_request r = {.principal = uid_of(json_object_get(request, "principal")),
	                           .action = uid_of(json_object_get(request, "action")),
	                           .resource = uid_of(json_object_get(request, "resource"))};
	struct policy_fault fault;
	value_of(a, json_object_get(request, "context"), &r.context);
	entities_of(a, json_object_get(request, "entities"), &r);
	for (size_t i = 0; i < count; i++) {
		const struct policy_statement *s = policies[i].statement;
		unsigned steps = POLICY_STEPS_MAX;
		fault = policies[i].fault;
		if (!s)
			printf("%s?%u:%u:%.*s", i ? " " : "", fault.line, fault.column, STR_ARG(fault.text));
		else
			printf("%s%c%c", i ? " " : "", s->forbids ? 'f' : 'p',
			       "ASEX"[policy_evaluate(a, s, &r, &steps, &fault)]);
	}
	putchar('\n');
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	struct arena *a = arena_new();
	while (getline(&line, &room, stdin) > 0) {
		json_t *in = json_loads(line, JSON_ALLOW_NUL, NULL);
		const json_t *policies = json_object_get(in, "policies"), *requests = json_object_get(in, "requests");
		const struct parsed *parsed = parse_all(a, policies);
		for (size_t i = 0; i < json_array_size(requests); i++)
			answer(a, parsed, json_array_size(policies), json_array_get(requests, i));
		arena_reset(a);
		json_decref(in);
	}
	free(line);
	arena_free(a);
	return 0;
}
