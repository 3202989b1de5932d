/* The core of an engine, which every one has: a cluster's desired state in, its observed state out. converge(),
 * destroy() and switchover() block and are called by job threads, one at a time for a cluster; each may be repeated
 * after a crash and must then find its way from whatever is there. The other capabilities build on this header. */
#ifndef STEWARD_ENGINE_CORE_H
#define STEWARD_ENGINE_CORE_H

#include "base/arena.h"
#include "base/ip.h"
#include "base/str.h"

struct data_keys; /* base/data_key.h */
struct engine;
struct engine_access; /* engine/access.h */
struct repositories;  /* repository/repository.h */

enum node_kind { NODE_ELECTABLE, NODE_READ_ONLY, NODE_ANALYTICS, NODE_ROUTER };
enum node_state { NODE_ABSENT, NODE_STARTING, NODE_RUNNING, NODE_STOPPED, NODE_FAILED };
#define NODE_KINDS 4
#define NODE_STATES 5

#define ENGINE_NODES_MAX 128

/* One node as it shall be. The name is the first label of its host name ("ab12cd-shard-00-01"): unique, and stable over
 * the node's life. */
struct engine_node {
	char name[64];
	enum node_kind kind;
	unsigned shard;
	char provider[16], region[48]; /* labels on this host */
	char instance_size[24];
	unsigned disk_gb;
	unsigned priority; /* of the region, for elections; 0: never primary */
	bool outage;       /* shall be down: outage simulation */
};

struct engine_param {
	const char *name, *value;
};

/* Data that a set of nodes (a shard, or a router) has had: the set's name as in node_status, and the identity of the
 * data, "" where it is not known. */
struct engine_made {
	char set[64], identity[24];
};

/* What the databases write into their audit log. Classes: "read, write, role, ddl"; "": none. */
struct engine_audit {
	bool enabled;
	const char *classes; /* of everybody for whom engine_user does not say otherwise */
};

/* What is kept of a cluster's log. The incarnation names its data: a new one with each restore. */
#define ENGINE_COPIES_MAX 20
struct engine_archiving {
	bool archive; /* the log goes into the repository as it is written */
	char incarnation[25], region[48];
	char copies[ENGINE_COPIES_MAX][48]; /* regions that it is copied to from there */
	size_t copy_count;
};

/* A cluster as it shall be. Pointers are borrowed for the call. */
struct engine_cluster {
	char id[25], group_id[25];
	char name[65];
	char label[8]; /* six-character id in host names */
	char project_hash[8];
	unsigned version;    /* major */
	bool paused, quorum; /* quorum: a commit waits for one standby */
	const struct engine_node *nodes;
	size_t node_count;
	const struct engine_param *params; /* see engine_params() */
	size_t param_count;
	unsigned shards;
	const char *ca_cert,
	        *ca_key; /* the project's certificate authority, in PEM: its nodes' certificates are of it */
	struct engine_audit audit;
	bool slow_fixed; /* statements are slow from a fixed time on: the engine does not manage it (advice.h) */
	bool renew;      /* also bring nodes up to date that are behind, one after the other */
	/* It was as wanted before this process started: only found again. The simulated engine asks for no time. */
	bool adopt;
	/* Sets that were made before. Their data is never made anew: where it is missing, or is another's, converge()
	 * changes nothing and returns -ENOMEDIUM with words for the operator, until it is back or `give_up` says that
	 * what is missing is to be made anew, empty, and what is there is to be taken. */
	const struct engine_made *made;
	size_t made_count;
	bool give_up;
	struct engine_archiving backup;
	/* Its files are encrypted with the project's data key (engine_options.keys). */
	bool encrypted;
	/* The project's key is lost: it is paused too, and nothing of the data key is left on this host. */
	bool locked;
};

/* One node as it is. */
struct node_status {
	char name[64], host[192];
	char address[IP_TEXT]; /* where it listens on this host */
	unsigned port;
	enum node_kind kind;
	enum node_state state;
	unsigned shard;
	bool primary;
	char version[24]; /* "15.18.0": three parts */
	int64_t started_ms;
	char set[64], identity[24]; /* its set, and the identity of that set's data; "": the engine keeps none */
	/* What befell it by itself, not what was asked for: how often it has ended, whether it is down since, and that
	 * it has no data and a converge must bring it. Counted durably, so that who looks seldom misses none. */
	unsigned ends;
	bool down, absent;
	unsigned term,
	        failovers; /* of its set: how often the primary has changed, and how often because the old one ended */
};

/* How a cluster stands to the disk that it was given. */
enum engine_full { FULL_NOT, FULL_READ_ONLY, FULL_CLOSED };

struct cluster_status {
	bool exists;
	enum engine_full full;
	uint64_t disk_used, disk_limit; /* bytes, of the shard that has the least room; 0: not known yet, or no bound */
	struct node_status *nodes;      /* in the arena given to observe() */
	size_t node_count;
};

/* Of converge() and of access.apply(): what was taken away is in force, but something that was given is not; *ret_why
 * says what. */
#define ENGINE_PARTLY 1

/* Share done, 0 to 100, with a word of what is being done. Safe to call often. */
struct engine_progress {
	void (*tell)(void *ctx, unsigned percent, const char *what);
	void *ctx;
	/* Set by an engine that returns -EAGAIN from converge(), destroy() or load_sample(): call again then, on the
	 * service's clock. No thread waits for it meanwhile. An engine that does the work within the call never does
	 * this. */
	int64_t again_ms;
	/* Set by an engine whose converge() or destroy() returns 0 some time after it was done, on the service's clock;
	 * 0: it was done just now. */
	int64_t reached_ms;
	/* Becomes true when the service stops; may be NULL. What of backup.h takes long ends with -ECANCELED then, and
	 * is repeated after the next start. */
	const _Atomic bool *stop;
};

struct engine_options {
	const char *data_dir; /* the service's; the engine keeps its own below DIR/engine */
	const char *domain;   /* of host names: "<label>-shard-00-00.<project_hash>.<domain>" */
	const char
	        *address; /* where databases listen, each on a port of its own; NULL: loopback addresses of their own */
	unsigned port_first, port_last; /* 0: 20000 to 29999 */
	bool real_clock;
	const char *programs;     /* where PostgreSQL's versions lie, NUMBER/bin each; NULL: /usr/lib/postgresql */
	const char *user;         /* of all databases, when the service may change users; NULL: each project's */
	double simulated_seconds; /* that the simulated engine takes for a creation; less for other changes */
	/* Something befell nodes of the cluster by itself: one ended or is back, another leads, data is missing.
	 * observe() tells what. From any thread of the engine, with its locks held: must neither wait nor call the
	 * engine. */
	void (*changed)(void *ctx, const char *cluster_id);
	void *changed_ctx;
	unsigned disk_mb; /* that a node may take for each GB of its disk_gb; 0: no bound */
	/* The cgroup's directory below which clusters get theirs; "": none; NULL: our own, if we may. */
	const char *cgroup;
	/* A cluster's disk became full, or has room again. From any thread of the engine; must not call the engine. */
	void (*full_changed)(void *ctx, const char *cluster_id, enum engine_full full);
	void *full_ctx;
	struct repositories *repositories; /* of backups; NULL: none are kept */
	const struct data_keys *keys;      /* of projects with encryption at rest; NULL: there are none */
	uint64_t spool_bytes; /* of log that may wait on this host for the repository, for each cluster; 0: 4 GB */
};

/* A cluster as it lies on a host. */
struct engine_known {
	char id[25], group_id[25], name[65];
	unsigned nodes, running;
};

/* Errors: 0 or negative errno; *ret_why (static or in the arena) says what to do about it. */
struct engine_core_ops {
	/* Databases are processes of this host, that clients can reach: what is done to them is done here. */
	bool on_host;
	/* Nodes can end, and others lead in their place, without being asked to: engine_options.changed is called. */
	bool reports_changes;
	/* Whether this machine and that clock have what it needs. *ret_why: in words, either way; left as it is when
	 * there is nothing to say. */
	int (*can_run)(bool real_clock, struct arena *a, const char **ret_why);
	/* Adopts what runs from before, and supervises from now on. */
	int (*start)(const struct engine_options *o, struct engine **ret_engine);
	/* Stops supervising; databases go on. */
	void (*stop)(struct engine *e);
	/* Makes or changes the cluster until it is as wanted; or ENGINE_PARTLY. */
	int (*converge)(struct engine *e, const struct engine_cluster *want, const struct engine_access *access,
	                struct engine_progress *progress, struct arena *a, const char **ret_why);
	/* Leaves nothing behind. 0 too when there is nothing. */
	int (*destroy)(struct engine *e, const char *cluster_id, struct engine_progress *progress);
	/* The clusters that this host has, whoever asked for them. */
	int (*known)(struct engine *e, struct arena *a, struct engine_known **ret_list, size_t *ret_count);
	/* From any thread at any time. */
	int (*observe)(struct engine *e, const char *cluster_id, struct arena *a, struct cluster_status *ret_status);
	/* Another node of the shard becomes primary in place of this one, without losing a write. 0 too when another is
	 * primary already. */
	int (*switchover)(struct engine *e, const char *cluster_id, unsigned shard, const char *from,
	                  const char **ret_why);
	/* Whether nodes run an older minor version than is there, or with certificates that end soon: what converge()
	 * mends with `renew`. Quick, from any thread. */
	bool (*behind)(struct engine *e, const char *cluster_id);
	/* Major versions that it can run, newest first. */
	size_t (*versions)(struct engine *e, unsigned *ret_versions, size_t max);
	/* Whether files of clusters can be encrypted here; *ret_why (static or in the arena): what to do where not. */
	int (*can_encrypt)(struct engine *e, struct arena *a, const char **ret_why);
};

/* --- common.c */
/* Major versions of the databases' programs on this machine, oldest first; at least one. */
size_t engine_installed(unsigned *ret_versions, size_t max);

/* What a size of a node stands for: memory and processors that it may take. */
struct engine_size {
	unsigned memory_mb, processors;
};
struct engine_size engine_size(const char *instance_size);

/* What a cluster's owner can set, 0 and NULL where it is the database's own choice. */
struct engine_settings {
	double statement_ms, idle_transaction_s, log_keep_mb;
	bool no_table_scan, tls13;
	const char *ciphers; /* of TLS 1.2, by OpenSSL's names */
};
/* As parameters of engine_cluster, in the arena. */
size_t engine_params(const struct engine_settings *s, struct arena *a, struct engine_param **ret_params);

#endif
