/* GET /api/console/overview: the clusters of all projects that the caller sees, a page at a time, with what needs
 * attention and what happened last. Beside the catalog; passes the same gates. */
#ifndef STEWARD_API_CONSOLE_OVERVIEW_H
#define STEWARD_API_CONSOLE_OVERVIEW_H

#include "call/service.h"

#define OVERVIEW_PATH "/api/console/overview"
void overview_serve(struct service *s, struct request *r);

/* places.c: what the sizes of nodes stand for, and what the roomiest host has; and all hosts, for the operator. */
#define SIZES_PATH "/api/console/sizes"
#define HOSTS_LIST_PATH "/api/console/hosts"
void sizes_serve(struct service *s, struct request *r);
void hosts_serve(struct service *s, struct request *r);

#endif
