/* Private endpoints: ways to a project's clusters that only chosen consumers can take. An endpoint service is for
 * one region; each cluster of the project there gets a link to it: a name of its own (pl-0-us-east-1...), and a
 * port of the relay (relay/relay.h) on the cluster's host. An endpoint is a consumer; once it is accepted, the
 * relay lets its addresses pass, and the clusters have connection strings for it. */
#ifndef STEWARD_API_PRIVATE_ENDPOINTS_PRIVATE_ENDPOINTS_H
#define STEWARD_API_PRIVATE_ENDPOINTS_PRIVATE_ENDPOINTS_H

#include "call/service.h"

struct buf;
struct cluster_part;

/* Before the jobs start. `address` NULL: this host has no relays. */
must_check int private_endpoints_start(struct service *s, const char *address, unsigned port_first, unsigned port_last);
void private_endpoints_stop(void);
/* On the main thread, with its reader, when the store has changed: who may pass no more is cut off, whatever holds
 * up the cluster's jobs. False: to be tried again. */
bool private_endpoints_review(struct tx *reader);
/* A part of /metrics. */
void private_endpoints_metrics(struct buf *b);

extern const struct cluster_part private_endpoints_part;

/* What an operator has found about an endpoint at its provider: it is in a note beside it, until the service has
 * seen it. */
#define ENDPOINT_ADDRESSES_MAX 64
struct endpoint_verdict {
	struct str endpoint;         /* its id, or the provider's name of it where that is one alone */
	const struct str *addresses; /* that its consumers come from: addresses or networks */
	size_t address_count;
	struct str reject; /* why not; else empty */
	/* Found. */
	struct str id, name, provider, group_id, service_id, state;
};
/* In a write of any process. -ENOENT: there is none. -EEXIST: several have the name. -EINVAL: its state is no
 * longer one to decide about. */
must_check int endpoint_verdict_note(struct tx *tx, struct arena *a, struct endpoint_verdict *v);
/* On the main thread, with its reader, when the store has changed: carries out what was noted. */
void endpoint_verdicts_apply(struct service *s, struct tx *reader);

#endif
