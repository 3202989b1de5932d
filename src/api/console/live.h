/* Live events: GET API_BASE/orgs/{orgId}/events:stream, the same of projects, and all that the caller may see. */
#ifndef STEWARD_API_CONSOLE_LIVE_H
#define STEWARD_API_CONSOLE_LIVE_H

#include "call/service.h"

#define LIVE_CONSOLE_PATH "/api/console/events"

/* Whether the path is a stream of one organization or project. */
bool live_is_path(struct str path);
void live_serve(struct service *s, struct request *r);

/* Before anything is served; and after the edge has stopped. */
must_check int live_start(struct service *s);
void live_teardown(struct service *s);

#endif
