/* Lists of events: the filter that a call asks for, and feeds of them outside the catalog. */
#ifndef STEWARD_API_EVENTS_EVENTS_H
#define STEWARD_API_EVENTS_EVENTS_H

#include "call/service.h"
#include "jobs/jobs.h"

/* events.c: from the scope of the call and its query; `clusters` names the parameter with the clusters' names. */
must_check int events_filter(struct call *c, const char *clusters, struct event_filter *ret_filter);

/* feeds.c: GET FEED_PATH<token>, an Atom feed. */
#define FEED_PATH "/feeds/"
void feed_serve(struct service *s, struct request *r);

extern const struct job_kinds events_jobs;

#endif
