/* A call that was asked for in flags: what will be sent, and how it is shown with --dry-run. */
#ifndef STEWARD_CLI_DERIVED_REQUEST_H
#define STEWARD_CLI_DERIVED_REQUEST_H

#include "catalog/catalog.h"
#include "cli/client.h"

#define REQUEST_HEADERS_MAX 8

/* A flag as it was given. */
struct given {
	const struct param *param; /* of the query or a header; NULL: the path of a field of the body */
	struct str path;           /* "replication-specs.0.zone-name"; p NULL: the text is that of --set */
	const char *text;
};

struct request {
	const struct op *op;
	const char *values[PATH_PARAMS_MAX]; /* of the path's parameters */
	const char *path;                    /* with its query */
	const char *headers[REQUEST_HEADERS_MAX];
	size_t header_count;
	json_t *body; /* or NULL; lives in the arena */
};

/* Fills in the path, the query, the headers and the body from words, flags and --body (or NULL). All that is wrong or
 * missing is told on stderr; negative then. */
must_check int request_make(struct request *r, struct client *c, struct arena *a, const struct given *given,
                            size_t count, const char *body);

/* The path of another operation, with the values of this request, and what is missing from its answer. NULL: something
 * is in neither. */
const char *request_path_of(struct arena *a, const struct request *r, const struct op *op, const json_t *answer);

/* Prints a call instead of making it, as text or as a line for curl; without secrets. `schema` of the body may be
 * NULL. */
void request_show(const struct client *c, struct arena *a, const struct client_request *r, const struct schema *schema,
                  bool as_curl);

#endif
