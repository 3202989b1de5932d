/* Bodies in the words of a dialect, for the property test: reads lines {"dialect": name, "operation": id, "date": version,
 * "part": "request" or "response", "body": body} and writes, for each, {"text": the body's text translated, "back": that
 * translated again, "value": the body translated as a value}. */
#include "base/json.h"
#include "catalog/dialect.h"

#include <stdio.h>
#include <stdlib.h>

static const struct dialect *named(const char *name)
{
	for (unsigned i = 0; i < catalog_dialect_count; i++)
		if (strcmp(catalog_dialects[i].name, name) == 0)
			return &catalog_dialects[i];
	abort();
}

static const struct schema *schema_of(const json_t *line)
{
	const struct op *op = catalog_op(json_string_value(json_object_get(line, "operation")));
	for (unsigned i = 0; op && i < op->version_count; i++)
		if (str_is(json_field(line, "date"), op->versions[i].date))
			return str_is(json_field(line, "part"), "request") ? op->versions[i].request
			                                                   : op->versions[i].response;
	abort();
}

static void line_answer(struct arena *a, const json_t *line)
{
	const struct vocabulary *words =
	        dialect_words(named(json_string_value(json_object_get(line, "dialect"))), schema_of(line));
	json_t *body = json_object_get(line, "body"), *answer = json_object();
	struct buf text = {0}, back = {0};
	words_text(words, json_text(a, body), &text);
	words_text(words, buf_view(&text), &back);
	words_json(words, body);
	json_put_str(answer, "text", buf_view(&text));
	json_put_str(answer, "back", buf_view(&back));
	json_put(answer, "value", json_incref(body));
	json_dumpf(answer, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(answer);
	buf_free(&text);
	buf_free(&back);
}

int main(void)
{
	char *text = NULL;
	size_t room = 0;
	json_setup();
	while (getline(&text, &room, stdin) > 0) {
		struct arena *a = arena_new();
		json_t *line = json_loads(text, JSON_DECODE_ANY, NULL);
		if (!line)
			return 1;
		line_answer(a, line);
		json_decref(line);
		arena_free(a);
	}
	free(text);
	return 0;
}
