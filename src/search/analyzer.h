/* Analyzers: how a text becomes the words that are searched. Each is a text: the name of a text search configuration of
 * PostgreSQL, or, beginning with "{", the steps of steward_search.analysis() in a database, as JSON. Pure code. */
#ifndef STEWARD_SEARCH_ANALYZER_H
#define STEWARD_SEARCH_ANALYZER_H

#include "base/json.h"
#include "catalog/schema.h"

#define SEARCH_ANALYZERS_MAX 32
#define SEARCH_STEPS_MAX 64          /* of one analyzer */
#define SEARCH_ANALYZER_BYTES 32768u /* of its steps */
#define SEARCH_PATTERN_MAX 500
#define SEARCH_PATTERNS_MAX 128

/* A regular expression, which the database has yet to compile. */
struct search_pattern {
	const char *place, *text;
};

struct search_analyzer {
	const char *name;
	const char *steps; /* NULL: it is faulty */
};

struct search_analyzers {
	struct search_analyzer list[SEARCH_ANALYZERS_MAX];
	size_t count;
	struct search_pattern patterns[SEARCH_PATTERNS_MAX];
	size_t pattern_count;
};

/* Reads the custom analyzers of a definition, at `place` ("definition.analyzers"). */
void search_analyzers_read(struct arena *a, const json_t *given, const char *place, struct faults *faults,
                           struct search_analyzers *ret_analyzers);
/* The analyzer of a name: one of the definition's own, or "lucene.NAME". NULL: there is none, or it is faulty;
 * ret_known tells which. */
const char *search_analyzer_find(const struct search_analyzers *own, struct str name, bool *ret_known);
/* Whether it consists of steps, and is no configuration. */
static inline bool search_analyzer_is_steps(const char *analyzer)
{
	return *analyzer == '{';
}

#endif
