/* What the process holds while it serves. serve/serve.c fills it at the start; afterwards it is read-only, except where
 * a field says otherwise. */
#ifndef STEWARD_CALL_SERVICE_H
#define STEWARD_CALL_SERVICE_H

#include "call/call.h"

struct attempts;
struct buf;
struct data_keys;
struct engine;
struct engine_ops;
struct jobs;
struct kept;
struct option_texts;
struct token_cache;
struct jwks;
struct keys;
struct live;
struct nonce_window;
struct outbox;
struct prices;
struct providers;
struct repositories;
struct pace;
struct objects_options;
struct sampler;
struct shipper;
struct uses;
struct workers;

/* State of one thread that runs calls (a loop or a worker), called its lane. Only that thread touches it. */
struct loop_state {
	struct tx *reader;
	struct token_cache *tokens;
	struct kept *kept;          /* answers, and documents as they are shown: call/kept_answer.h */
	_Atomic uint64_t repeated;  /* answers that were given again; only the lane adds to it */
	struct op_metrics *metrics; /* only of a loop */
	struct uses *_Atomic uses;  /* uses of credentials; the main thread takes the table away: identity/uses.h */
};

struct service {
	struct store *store;
	struct limiter *limiter;
	const char *base_url; /* "https://localhost:8443", without a slash at the end */
	const char *listen_host;
	const char *data_dir;
	const char *metrics_token;           /* file of the token that /metrics is read with */
	const char *ca_file;                 /* of the certificate that the service made itself; or NULL */
	const char *engine;                  /* name of the engine in use */
	const struct engine_ops *engine_ops; /* engine/engine.h: the engine in use, and its state */
	struct engine *engine_state;
	struct sampler *sampler;                /* api/metrics/metrics.h */
	struct shipper *shipper;                /* api/log_export/log_export.h; NULL: the engine has no logs */
	struct jobs *jobs;                      /* jobs/jobs.h */
	struct repositories *repositories;      /* repository/repository.h: of backups */
	struct pace *backup_pace;               /* base/pace.h: how fast their bytes are moved */
	struct providers *providers;            /* providers/providers.h: identities of roles at clouds */
	struct prices *prices;                  /* prices/prices.h: what things cost */
	struct keys *keys;                      /* keys/keys.h: key services */
	const struct data_keys *data_keys;      /* base/data_key.h: of projects with encryption at rest */
	const char *db_scheme, *db_domain;      /* of connection strings and host names */
	const struct option_texts *db_versions; /* NAME=MAJOR: versions that are asked for by other names; or NULL */
	unsigned loops, lanes;                  /* lanes: those of the loops, then those of the workers */
	struct loop_state *loop;                /* by lane; a loop's is request->loop */
	struct workers *workers;                /* call/workers.h */
	bool remote;                            /* the store is behind a network: no loop may touch it */
	struct jwks *jwks;                      /* identity/jwks.h */
	struct outbox *outbox;                  /* outbox/outbox.h */
	struct live *live;                      /* trail/live.h */
	struct nonce_window *nonces;            /* digest replay window; has its own locks */
	struct attempts *attempts;              /* failed sign-ins; has its own locks */
	bool test_control;
	enum org_creation { ORG_CREATION_OWNERS, ORG_CREATION_ANY, ORG_CREATION_NONE } org_creation;
	unsigned orgs_per_caller, orgs_max, event_retention_days;
	unsigned session_hours, session_idle_minutes; /* identity/sessions.h */
	/* Where snapshots are exported to: a directory whose directories are the buckets; or s3://PREFIX or
	 * azure://PREFIX, buckets whose names begin so, by the options below, which have no URL; or EXPORTS_BY_ROLES,
	 * tenants' own buckets. NULL: nowhere. The options have the addresses of buckets that roles lead to, by enum
	 * provider, and the operator's keys where the place is one of them. */
	const char *export_buckets;
	const struct objects_options *export_options;
	unsigned index_limit_seconds;                   /* that the build of an index may take */
	unsigned index_wait_seconds;                    /* that the build of an index waits for others' transactions */
	unsigned billing_lock_days, billing_grace_days; /* billing/billing.h: billing_rules */
	unsigned drill_days;              /* how often a snapshot of each cluster is restored to prove it; 0: never */
	_Atomic bool draining;            /* SIGTERM came: /readyz says no */
	struct http_server *_Atomic http; /* set once the edge runs; NULL before */
	int64_t started_us;               /* clock_mono_us() at the start */
	int64_t started_ms;               /* clock_now_ms() then */
	/* About changes of users, networks and roles: failed attempts to bring them to a cluster, clusters whose last
	 * attempt failed, and answers that said that the change is not in force. */
	_Atomic uint64_t access_failures, access_behind, access_unconfirmed;
	/* Adds the metrics of the clusters; or NULL. A pointer, because trail/ must not include api/. */
	void (*metrics_more)(struct buf *b, struct service *s);
};

/* The lane of the calling thread; set by lane_take() of call/workers.h. */
extern _Thread_local unsigned thread_lane;

static inline struct loop_state *lane_here(const struct service *s)
{
	return &s->loop[thread_lane];
}

static inline struct loop_state *call_loop(const struct call *c)
{
	return lane_here(c->service);
}

/* The texts that the call's lane keeps; NULL in a write, which runs on a thread without a lane. */
static inline struct kept *call_kept(const struct call *c)
{
	struct loop_state *lane = call_loop(c);
	return c->tx && c->tx == lane->reader ? lane->kept : NULL;
}

#endif
