/* The bodies of the test control as tables: which fields there are, and what they may hold. */
#ifndef STEWARD_API_EDGE_TEST_FIELDS_H
#define STEWARD_API_EDGE_TEST_FIELDS_H

#include "catalog/schema.h"

#include <jansson.h>

enum test_kind { TEST_NUMBER, TEST_INTEGER, TEST_TEXT, TEST_SWITCH, TEST_TEXTS, TEST_OBJECTS };

struct test_field {
	const char *name;
	enum test_kind kind;
	bool required, or_null;
	double min, max;                 /* of numbers */
	const char *choices;             /* of a text: "one|two"; NULL: any that is not empty */
	const struct test_field *fields; /* of each of the objects; the last has no name */
};

/* Holds an object (NULL: none was sent) against the fields, the last of which has no name. `path` is where it stands:
 * "" or "organizations[0]". Adds what is wrong: unknown fields too. */
void test_fields_check(struct arena *a, const json_t *object, const char *path, const struct test_field *fields,
                       struct faults *faults);

/* test_seed.c: the body of a seeding, and what its fields do not say: roles, networks, names that must be there. */
extern const struct test_field seed_fields[];
void seed_check(struct arena *a, const json_t *body, struct faults *faults);

#endif
