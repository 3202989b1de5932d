/* How answers are printed: as a table for people, as JSON or YAML for programs, or by name alone for scripts. */
#ifndef STEWARD_CLI_OUTPUT_H
#define STEWARD_CLI_OUTPUT_H

#include "base/arena.h"

#include <jansson.h>
#include <stdio.h>

enum output_form { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_NAME, OUTPUT_TEXT };

struct output_options {
	enum output_form form;
	const char *query; /* PATH: fields and positions with dots, "*" for each of a list; NULL: all of the answer */
	bool colour;
};

#define OUTPUT_FORMS "table|wide|json|yaml|name"

/* form NULL: a table. Colours only on a terminal and never with NO_COLOR. A message on stderr, negative. */
must_check int output_options_parse(const char *form, const char *query, struct output_options *ret_options);
/* The same for a command that has a form of its own, "text" or NULL: OUTPUT_TEXT, unless there is a query. */
must_check int output_options_choose(const char *form, const char *query, struct output_options *ret_options);

/* Prints an answer: an entity, or {"results": [...]}, or an array. columns are paths into an item, and may be NULL:
 * then they are derived from the documents. Negative, after a message on stderr, when the query finds nothing. */
must_check int output_print(FILE *out, struct arena *a, json_t *answer, const char *const *columns, size_t column_count,
                            const struct output_options *o);

/* The value at a path, or NULL. A path with "*" gives a new array of what there is; all lives in the arena. */
json_t *output_find(struct arena *a, json_t *value, const char *path);
/* What an item is called: its name, or its id; NULL when it has neither. */
const char *output_name(struct arena *a, json_t *item);

/* JSON on lines of its own, and YAML. No control character of the value is written as it is. */
void output_json(FILE *out, const json_t *value, bool indented);
void output_yaml(FILE *out, json_t *value);

#endif
