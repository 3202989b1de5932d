/* What the process holds while it serves. Made in main, read everywhere, written after the start only where said. */
#ifndef STEWARD_GATE_SERVICE_H
#define STEWARD_GATE_SERVICE_H

#include "gate/call.h"

struct attempts;
struct buf;
struct engine;
struct engine_ops;
struct jobs;
struct token_cache;
struct jwks;
struct mail;
struct nonce_window;
struct uses;
struct workers;

/* State of one thread that runs calls, a loop or a worker: its lane. Only that thread touches it. */
struct loop_state {
	struct tx *reader;
	struct token_cache *tokens;
	struct op_metrics *metrics; /* of a loop */
	struct uses *_Atomic uses;  /* of credentials; the main thread takes them away: gate/uses.h */
};

struct service {
	struct store *store;
	struct limiter *limiter;
	const char *base_url; /* "https://localhost:8443", without a slash at the end */
	const char *listen_host;
	const char *data_dir;
	const char *engine;                  /* name of the engine in use */
	const struct engine_ops *engine_ops; /* engine/engine.h: the engine in use, and its state */
	struct engine *engine_state;
	struct jobs *jobs;                 /* jobs/jobs.h */
	const char *db_scheme, *db_domain; /* of connection strings and host names */
	unsigned loops, lanes;             /* lanes: of the loops, then of the workers */
	struct loop_state *loop;           /* by lane; a loop's is request->loop */
	struct workers *workers;           /* gate/workers.h */
	bool remote;                       /* the store is reached over a network: no loop touches it */
	struct jwks *jwks;                 /* api/jwks.h */
	struct mail *mail;                 /* api/mail.h; NULL: no mail server */
	struct nonce_window *nonces;       /* digest replay window; has its own locks */
	struct attempts *attempts;         /* failed sign-ins; likewise */
	bool test_control;
	enum org_creation { ORG_CREATION_OWNERS, ORG_CREATION_ANY, ORG_CREATION_NONE } org_creation;
	unsigned orgs_per_caller, orgs_max;
	_Atomic bool draining;            /* SIGTERM came: /readyz says no */
	struct http_server *_Atomic http; /* set once the edge runs; NULL before */
	int64_t started_us;               /* clock_mono_us() at the start */
	/* Of changes of users, networks and roles: attempts to bring them to a cluster that failed, clusters whose last one
	 * did, and answers that said that it is not in force. */
	_Atomic uint64_t access_failures, access_behind, access_unconfirmed;
	/* Writes the metrics of what the gates do not know; or NULL. */
	void (*metrics_more)(struct buf *b, struct service *s);
};

/* Of the calling thread; set by gate/workers.h. */
extern _Thread_local unsigned thread_lane;

static inline struct loop_state *lane_here(const struct service *s)
{
	return &s->loop[thread_lane];
}

static inline struct loop_state *call_loop(const struct call *c)
{
	return lane_here(c->service);
}

#endif
