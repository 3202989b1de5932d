/* Every request's first step: the catalog's paths go to the gates, the few others are served here. */
#ifndef STEWARD_API_EDGE_ROUTER_H
#define STEWARD_API_EDGE_ROUTER_H

#include "call/service.h"

struct recorder;

struct router {
	struct service *service;
	struct recorder *recorder; /* or NULL */
};

/* Callbacks of struct http_app; ctx is a struct router. */
size_t router_body_limit(void *ctx, const struct request *r);
void router_begin(void *ctx, struct request *r);
void router_handle(void *ctx, struct request *r);
void router_done(void *ctx, struct request *r, size_t bytes_sent);
void router_loop_start(void *ctx, unsigned loop);
void router_turn_end(void *ctx, unsigned loop);

/* Frees the kept OpenAPI documents. */
void router_teardown(void);

#endif
