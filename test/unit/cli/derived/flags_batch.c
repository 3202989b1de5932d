/* Bodies to flags and back, for the property test: reads lines {"operation": id, "body": body} and writes, for each,
 * {"arguments": [...], "body": what the arguments make, "fault": text or null, "faults": those of the schema check}. */
#include "base/json.h"
#include "cli/derived/command.h"
#include "cli/derived/flags.h"

#include <stdio.h>
#include <stdlib.h>

static const char *apply(struct flags *f, const char *argument)
{
	struct str name, value;
	if (strncmp(argument, "--", 2) != 0 || !flag_cut(str_of(argument + 2), &name, &value))
		return "is no flag";
	return str_is(name, "set") ? flags_assign(f, value) : flags_set(f, name, value);
}

static void line_answer(struct arena *a, const json_t *line)
{
	const struct op *op = catalog_op(json_string_value(json_object_get(line, "operation")));
	json_t *body = json_object_get(line, "body"), *arguments = json_array(), *answer = json_object();
	const struct schema *s = command_body(op);
	struct flags *f = arena_new_of(a, struct flags);
	struct faults faults = {.count = 0};
	const char **list, *fault = NULL;
	*f = (struct flags){.arena = a, .schema = s};
	size_t count = flags_write(a, s, body, &list);
	for (size_t i = 0; i < count; i++) {
		const char *wrong = apply(f, list[i]);
		fault = fault ? fault : wrong;
		json_array_append_new(arguments, json_string(list[i]));
	}
	schema_check(s, body, command_use(op), a, &faults);
	json_put(answer, "arguments", arguments);
	json_put(answer, "body", f->body ? json_incref(f->body) : json_null());
	json_put(answer, "fault", fault ? json_string(fault) : json_null());
	json_put(answer, "faults", json_integer((json_int_t)faults.count));
	json_dumpf(answer, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(answer);
}

int main(void)
{
	char *text = NULL;
	size_t room = 0;
	json_setup();
	if (schema_setup() < 0)
		return 1;
	while (getline(&text, &room, stdin) > 0) {
		struct arena *a = arena_new();
		json_t *line = json_loads(text, JSON_DECODE_ANY, NULL);
		if (!line)
			return 1;
		line_answer(a, line);
		arena_free(a);
		json_decref(line);
	}
	free(text);
	schema_teardown();
	return 0;
}
