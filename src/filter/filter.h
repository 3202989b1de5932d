/* The JSON query language: fields with values or operators ($and, $or, $in, ...). A filter is asked about a record of
 * which perhaps not everything is known yet, so it has three answers. */
#ifndef STEWARD_FILTER_FILTER_H
#define STEWARD_FILTER_FILTER_H

#include "base/arena.h"

#include <jansson.h>

/* Ordered: "and" is the least, "or" the most. */
enum truth { TRUTH_NO, TRUTH_MAYBE, TRUTH_YES };

/* The filter of a text, which may have single quotes and bare keys; an empty one is {}, which takes everything. Freed
 * with the arena. NULL: *ret_fault says what the text must be. */
const json_t *filter_parse(struct str text, struct arena *a, const char **ret_fault);
/* The same with $gt, $gte, $lt and $lte, which filter_takes() does not know: for who compiles it. */
const json_t *filter_parse_ordered(struct str text, struct arena *a, const char **ret_fault);

struct filter_fact {
	enum { FACT_UNKNOWN, FACT_ABSENT, FACT_TEXT, FACT_LIST } kind; /* LIST: of one element or more */
	const char *text;
};
/* What is known of a record's field; `list` is the field whose elements are looked at, or NULL. */
typedef struct filter_fact filter_facts(const void *record, const char *list, const char *field);

/* Whether the filter takes the record. */
enum truth filter_takes(const json_t *filter, filter_facts *facts, const void *record);

#endif
