/* Lists of events: the filter that a call asks for, and the links to feeds of them. */
#ifndef STEWARD_API_EVENTS_EVENTS_H
#define STEWARD_API_EVENTS_EVENTS_H

#include "call/service.h"
#include "jobs/jobs.h"

/* events.c: from the scope of the call and its query; `clusters` names the parameter with the clusters' names. */
must_check int events_filter(struct call *c, const char *clusters, struct event_filter *ret_filter);

/* feeds.c: what the token of a link to a feed says: "op", "scope", "types", "clusters", "min", "max", "until", and
 * what right_link_put() keeps. NULL: we have not made it. Freed with the arena. */
#define FEED_PATH "/feeds/"
json_t *feed_token_read(struct arena *a, struct str token);

extern const struct job_kinds events_jobs;

#endif
