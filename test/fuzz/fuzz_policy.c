/* Resource policies: parsed, checked and evaluated. The input is the policy's text; after a line "---" comes the context of
 * the request as JSON, in Cedar's form. Whatever the text is, the faults point into it, the bounds hold, and the same
 * policy and request have the same outcome twice. */
#include "fuzz.h"

#include "policy/policy.h"

#include <errno.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void fault_holds(const struct policy_fault *f, struct str text)
{
	size_t lines = 1;
	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	HOLDS(f->line >= 1 && f->line <= lines && f->column >= 1 && f->column <= text.n + 1);
	HOLDS(f->text.n > 0 && f->text.n < 4096);
}

static void depth_holds(const struct policy_expr *e)
{
	for (; e; e = e->next) {
		HOLDS(e->depth <= POLICY_DEPTH_MAX && e->line >= 1 && e->column >= 1);
		depth_holds(e->first);
	}
}

static struct policy_statement *parse(struct arena *a, struct str text)
{
	struct policy_statement *list = NULL;
	struct policy_fault fault;
	size_t count = 0;
	int r = policy_parse(a, text, &list, &fault);
	HOLDS(r == 0 || r == -EINVAL || r == -E2BIG);
	if (r < 0) {
		HOLDS(!list);
		fault_holds(&fault, text);
		return NULL;
	}
	HOLDS(list && text.n <= POLICY_TEXT_MAX);
	for (const struct policy_statement *s = list; s; s = s->next) {
		for (int i = 0; i < 3; i++)
			depth_holds(s->scope[i]);
		depth_holds(s->conditions);
		count++;
	}
	HOLDS(count <= POLICY_STATEMENTS_MAX);
	return list;
}

static void evaluate(struct arena *a, const struct policy_statement *list, struct str text, struct str context)
{
	const struct policy_uid parents[] = {{STR("ResourcePolicy::Organization"), STR("32b6e34b3d91647abb20e7b8")}};
	const struct policy_entity entity = {
	        .uid = {STR("ResourcePolicy::Project"), STR("32b6e34b3d91647abb20e7b9")},
	        .parents = parents,
	        .parent_count = 1,
	        .attributes = {.kind = POLICY_RECORD},
	};
	struct policy_request r = {
	        .principal = {STR("ResourcePolicy::User"), STR("32b6e34b3d91647abb20e7ba")},
	        .action = {STR("ResourcePolicy::Action"), STR("cluster.modify")},
	        .resource = entity.uid,
	        .context = {.kind = POLICY_RECORD},
	        .entities = &entity,
	        .entity_count = 1,
	};
	json_t *json = json_loadb(context.n ? context.p : "", context.n, JSON_REJECT_DUPLICATES, NULL);
	if (json && policy_value_from_json(a, json, &r.context) < 0)
		r.context = (struct policy_value){.kind = POLICY_RECORD};
	for (const struct policy_statement *s = list; s; s = s->next) {
		unsigned steps = POLICY_STEPS_MAX, again = POLICY_STEPS_MAX;
		struct policy_fault fault;
		enum policy_outcome first = policy_evaluate(a, s, &r, &steps, &fault);
		HOLDS(first <= POLICY_EXHAUSTED && steps <= POLICY_STEPS_MAX);
		if (first == POLICY_ERROR || first == POLICY_EXHAUSTED)
			fault_holds(&fault, text);
		HOLDS(policy_evaluate(a, s, &r, &again, &fault) == first && again == steps);
		policy_mentions(s, "cloudProviders");
	}
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), text = in, context = STR("");
	const char *at = in.n ? memmem(in.p, in.n, "\n---\n", 5) : NULL;
	if (at) {
		text.n = (size_t)(at - in.p);
		context = (struct str){at + 5, in.n - text.n - 5};
	}
	struct arena *a = arena_new();
	char *exact = fuzz_copy(text);
	text.p = exact;
	struct policy_statement *list = parse(a, text);
	if (list) {
		struct policy_faults faults = {.count = 0};
		evaluate(a, list, text, context);
		policy_validate(a, list, &faults);
		HOLDS(faults.count <= POLICY_FAULTS_MAX);
		for (size_t i = 0; i < faults.count; i++)
			fault_holds(&faults.list[i], text);
		evaluate(a, list, text, context);
	}
	arena_free(a);
	free(exact);
	return 0;
}
