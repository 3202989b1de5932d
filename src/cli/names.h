/* Names that a service has: which list a path parameter's values, or a flag's, come from, and which of them is near to
 * what was typed. */
#ifndef STEWARD_CLI_NAMES_H
#define STEWARD_CLI_NAMES_H

#include "catalog/catalog.h"
#include "cli/client.h"

/* The path of the GET whose list has the values of a path parameter, with parameters of its own; NULL: there is none.
 */
const char *names_list_of(struct arena *a, const struct op *op, const char *param);
/* The text of an entry that the parameter takes: the field of its name, or "name" for clusterName, "id" for teamId. */
const char *names_text(const json_t *item, const char *param);
/* What people call an entry, or NULL. */
const char *names_about(const json_t *item, const char *text);

#define NAMES_MS 2500 /* for an answer */

/* Where the values of a flag come from; all NULL: from nowhere. */
struct names_of_flag {
	const char *list;  /* the path of a GET */
	const char *value; /* a path into its answer, with "*" for each of a list */
	const char *about; /* the same for what explains a value; or NULL */
};
struct names_of_flag names_of_flag(struct str flag);
/* "?itemsPerPage=500" for what has pages, else "". */
const char *names_query(const char *list);

/* Replaces each {parameter} of a path; NULL when value() knows one of them not. */
const char *names_path_fill(struct arena *a, const char *path, const char *(*value)(void *ctx, struct str param),
                            void *ctx);
/* The entries of a list, as an array; what is no list is the only one. NULL: the service has not answered soon. */
json_t *names_get(struct client *c, struct arena *a, const char *path);

/* After a 404 of a GET, PATCH ... of `path`: says on stderr which name there is that is near to the one that was not
 * found, or which there are if they are few. */
void names_near_tell(struct client *c, const char *path, const json_t *problem);

#endif
