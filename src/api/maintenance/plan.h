/* A project's maintenance: the window (a document that may never have been written) and, beside it, what is pending:
 *
 *   {"set": true, "due": 1790000000000, "running": false}
 *
 * Pending is what the engine says that its clusters are behind with: newer minor versions, certificates that end soon.
 * It is announced NOTICE_MS ahead, put off on request, and done in the window, by the clusters' own jobs. */
#ifndef STEWARD_API_MAINTENANCE_PLAN_H
#define STEWARD_API_MAINTENANCE_PLAN_H

#include "call/call.h"
#include "jobs/jobs.h"

#define MAINTENANCE_SCAN_JOB "maintenance_scan"
#define MAINTENANCE_JOB "maintenance"
#define MAINTENANCE_SCAN_MS 3600000LL

struct window {
	struct doc doc; /* rev 0: not written yet */
	json_t *body, *plan;
};

must_check int window_load(struct tx *tx, struct arena *a, struct str group_id, struct window *ret_window);
/* Writes it, and has the job look at it in time. */
must_check int window_save(struct tx *tx, struct arena *a, struct window *w);
void window_reset(struct arena *a, struct window *w);
/* The first start of the window at or after a time. */
int64_t window_next(const json_t *window, int64_t from_ms);
/* When what is pending shall start; 0: nothing is pending. */
int64_t window_due(const struct window *w);
void window_due_set(struct window *w, int64_t due_ms);
bool window_is_running(const struct window *w);
/* A week later, and counted. */
void window_defer(struct window *w);

#endif
