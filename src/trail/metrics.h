/* What the service counts, for GET /metrics. Each loop counts in its own memory; a scrape adds them up. */
#ifndef STEWARD_TRAIL_METRICS_H
#define STEWARD_TRAIL_METRICS_H

#include "base/arena.h"
#include "base/buf.h"

struct op_metrics;
struct service;

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Of one loop: loop_state.metrics. `operations`: catalog_op_count. */
struct op_metrics *metrics_new(unsigned operations);
void metrics_free(struct op_metrics *m); /* accepts NULL */

/* Counts one answered request, on the loop that owns `m`. `op` is its index in catalog_ops, or negative for requests
 * that are no operation: health, tokens, unknown paths, refusals of the edge. */
void metrics_observe(struct op_metrics *m, int op, int status, int64_t micros);

/* Of the page: what is said before the values of a name, and a name with its one value. */
void metrics_head(struct buf *b, const char *name, const char *type, const char *help);
void metrics_number(struct buf *b, const char *name, const char *type, const char *help, uint64_t n);

/* Prometheus text format 0.0.4, from any thread. Operations never called are left out. */
void metrics_write(struct buf *b, struct service *s);

/* The same as a page that requests share when many want it. It lives as long as the arena. From any thread. */
struct str metrics_page(struct service *s, struct arena *a);
/* Frees the page that is kept. */
void metrics_teardown(void);

#endif
