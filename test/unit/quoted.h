/* JSON in C literals without backslashes: single quotes stand for double ones. */
#ifndef STEWARD_TEST_QUOTED_H
#define STEWARD_TEST_QUOTED_H

#include "base/json.h"

#include <stdlib.h>

static inline struct str quoted(struct arena *a, const char *text)
{
	struct str copy = arena_dup(a, str_of(text));
	char *p = (char *)(uintptr_t)copy.p;
	for (size_t i = 0; i < copy.n; i++)
		if (p[i] == '\'')
			p[i] = '"';
	return copy;
}

/* Freed with the arena. A text that is no JSON is the test's own fault. */
static inline json_t *quoted_json(struct arena *a, const char *text)
{
	struct str t = quoted(a, text);
	json_t *value = json_loadb(t.p, t.n, JSON_DECODE_ANY, NULL);
	if (!value) {
		fprintf(stderr, "no JSON: %s\n", text);
		exit(1);
	}
	return json_keep(a, value);
}

/* Whether they say the same, in whatever order their fields stand. */
static inline bool is_json(struct arena *a, const json_t *value, const char *text)
{
	if (json_equal(value, quoted_json(a, text)))
		return true;
	struct str is = value ? json_text(a, value) : STR("nothing");
	fprintf(stderr, "is %.*s\n", STR_ARG(is));
	return false;
}

#endif
