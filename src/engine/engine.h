/* What runs databases. Desired state in, observed state out. An engine's calls block and are made by job threads, one at a
 * time for a cluster; each may be repeated after a crash and must then find its way from whatever is there. observe() and
 * log reading may be called from any thread at any time.
 *
 * Two engines: "simulated" (memory and clock only) and "postgres" (real processes on this host). */
#ifndef STEWARD_ENGINE_ENGINE_H
#define STEWARD_ENGINE_ENGINE_H

#include "base/arena.h"
#include "base/ip.h"
#include "base/str.h"

struct engine;

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

/* Data that a set of nodes (a shard, or a router) has had: the set's name as in node_status, and the identity of the data,
 * "" where it is not known. */
struct engine_made {
	char set[64], identity[24];
};

/* What the databases write into their audit log. Classes are those of pgaudit ("read, write, role, ddl"); "": none. */
struct engine_audit {
	bool enabled;
	const char *classes; /* of everybody for whom engine_user does not say otherwise */
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
	const struct engine_param *params; /* processArgs, in the engine's names */
	size_t param_count;
	unsigned shards;
	const char *ca_cert,
	        *ca_key; /* the project's certificate authority, in PEM: its nodes' certificates are of it */
	struct engine_audit audit;
	bool renew; /* also bring nodes up to date that are behind, one after the other */
	bool adopt; /* it was as wanted before this process started: only found again. The simulated engine asks for no time */
	/* Sets that were made before. Their data is never made anew: where it is missing, or is another's, converge()
	 * changes nothing and returns -ENOMEDIUM with words for the operator, until it is back or `give_up` says that
	 * what is missing is to be made anew, empty, and what is there is to be taken. */
	const struct engine_made *made;
	size_t made_count;
	bool give_up;
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
	/* What befell it by itself, not what was asked for: how often it has ended, whether it is down since, and that it
	 * has no data and a converge must bring it. Counted durably, so that who looks seldom misses none. */
	unsigned ends;
	bool down, absent;
	unsigned term,
	        failovers; /* of its set: how often the primary has changed, and how often because the old one ended */
};

/* What runs on this host, for monitoring. */
struct engine_stats {
	unsigned nodes[NODE_KINDS][2][NODE_STATES]; /* by kind, whether it leads, and state */
	uint64_t failovers, switchovers, ends;      /* since the start */
	unsigned standbys, streaming;               /* that run; of them, those that follow their primary */
	uint64_t lag_bytes;                         /* of the standby that is furthest behind, when last asked */
	double lag_seconds;
};

/* How a cluster stands to the disk that it was given. */
enum engine_full { FULL_NOT, FULL_READ_ONLY, FULL_CLOSED };

/* The disk of all clusters on this host: bytes, and how many are full. */
struct engine_disk {
	uint64_t used, limit;
	unsigned read_only, closed;
};

struct cluster_status {
	bool exists;
	enum engine_full full;
	uint64_t disk_used, disk_limit; /* bytes, of the shard that has the least room; 0: not known yet, or no bound */
	struct node_status *nodes;      /* in the arena given to observe() */
	size_t node_count;
};

/* Who may connect and do what, for all clusters of a project. */
struct engine_grant {
	const char *role;       /* "readWrite"; or of a custom role, flattened, an action: FIND INSERT UPDATE REMOVE */
	const char *database;   /* or "" for all */
	const char *collection; /* table, or "" for all */
};

struct engine_user {
	char name[256], auth_database[64];
	const char *scram;   /* SCRAM-SHA-256 verifier, or NULL */
	const char *subject; /* X.509 subject, or NULL */
	/* Its entry in the directory, where it is known by that: the name of the entry, or a query that finds it
	 * ("ou=people,dc=example,dc=org??sub?(uid=ann)"). Both NULL: not known by a directory. */
	const char *ldap_dn, *ldap_query;
	const char *audit; /* classes for this user; NULL: those of everybody */
	bool ldap, super;
	const struct engine_grant *grants;
	size_t grant_count;
};

/* The directory that checks passwords of users who have none here. */
struct engine_ldap {
	const char *host; /* a name or an address */
	unsigned port;
	bool tls, start_tls;
	const char *bind_dn, *bind_password; /* who looks entries up; or NULL */
	const char *ca;                      /* PEM; NULL: the system's authorities */
};

struct engine_access {
	const char *client_cas;         /* PEM: who may sign the certificates of users; or NULL */
	const struct engine_ldap *ldap; /* or NULL */
	const struct engine_user *users;
	size_t user_count;
	const struct cidr *networks; /* the access list */
	size_t network_count;
	/* No server that starts takes clients yet: whoever gives it has not promised to come with every later change. */
	bool hold;
};

/* Of converge() and apply_access(): what was taken away is in force, but something that was given is not; *ret_why says
 * what. */
#define ENGINE_PARTLY 1

/* Share done, 0 to 100, with a word of what is being done. Safe to call often. */
struct engine_progress {
	void (*tell)(void *ctx, unsigned percent, const char *what);
	void *ctx;
	/* Set by an engine that returns -EAGAIN from converge(), destroy() or load_sample(): call again then, on the service's
	 * clock. No thread waits for it meanwhile. An engine that does the work within the call never does this. */
	int64_t again_ms;
};

struct engine_log {
	const char *cluster_id, *node, *name; /* "postgres", "audit" */
	int64_t from_ms, to_ms;
	/* Since when logins, and statements refused for want of a right, belong to the audit log; 0: they do not. */
	int64_t logins_ms, denials_ms;
	bool redact; /* nothing of what clients sent; not for "audit" */
};

struct engine_options {
	const char *data_dir; /* the service's; the engine keeps its own below DIR/engine */
	const char *domain;   /* of host names: "<label>-shard-00-00.<project_hash>.<domain>" */
	const char
	        *address; /* where databases listen, each on a port of its own; NULL: loopback addresses of their own */
	unsigned port_first, port_last; /* 0: 20000 to 29999 */
	bool real_clock;
	const char *programs;     /* where PostgreSQL's versions lie, NUMBER/bin each; NULL: /usr/lib/postgresql */
	const char *user;         /* system user of the databases when the service is root; NULL: "steward" */
	double simulated_seconds; /* that the simulated engine takes for a creation; less for other changes */
	/* Something befell nodes of the cluster by itself: one ended or is back, another leads, data is missing. observe()
	 * tells what. From any thread of the engine, with its locks held: must neither wait nor call the engine. */
	void (*changed)(void *ctx, const char *cluster_id);
	void *changed_ctx;
	unsigned disk_mb; /* that a node may take for each GB of its disk_gb; 0: no bound */
	const char *
	        cgroup; /* directory of the cgroup below which clusters get theirs; "": none; NULL: our own, if we may */
	/* A cluster's disk became full, or has room again. From any thread of the engine; must not call the engine. */
	void (*full_changed)(void *ctx, const char *cluster_id, enum engine_full full);
	void *full_ctx;
};

/* Errors: 0 or negative errno; *ret_why (static or in the arena) says what to do about it. */
struct engine_ops {
	const char *name;
	bool on_host; /* databases are processes of this host: what is done to them is done here */
	/* Adopts what runs from before, and supervises from now on. */
	int (*start)(const struct engine_options *o, struct engine **ret_engine);
	/* Stops supervising; databases go on. */
	void (*stop)(struct engine *e);
	/* Makes or changes the cluster until it is as wanted; or ENGINE_PARTLY. */
	int (*converge)(struct engine *e, const struct engine_cluster *want, const struct engine_access *access,
	                struct engine_progress *progress, struct arena *a, const char **ret_why);
	/* Leaves nothing behind. 0 too when there is nothing. */
	int (*destroy)(struct engine *e, const char *cluster_id, struct engine_progress *progress);
	/* Another node of the shard becomes primary in place of this one, without losing a write. 0 too when another is
	 * primary already. */
	int (*switchover)(struct engine *e, const char *cluster_id, unsigned shard, const char *from,
	                  const char **ret_why);
	/* Users, grants and access list in force when it returns; or ENGINE_PARTLY. A failure: perhaps nothing of it is. No
	 * server takes clients, whenever and why ever it starts, before it has what was last in force. */
	int (*apply_access)(struct engine *e, const char *cluster_id, const struct engine_access *access,
	                    const char **ret_why);
	int (*observe)(struct engine *e, const char *cluster_id, struct arena *a, struct cluster_status *ret_status);
	void (*stats)(struct engine *e, struct engine_stats *ret_stats);
	/* Disk of all clusters; NULL: the engine takes none. */
	void (*disk)(struct engine *e, struct engine_disk *ret_disk);
	/* Asks one node for the names of its databases, and finds those of the disk partitions that hold its data. May wait
	 * for the node a few seconds, so not for a loop. -ENOENT: no such node; -EAGAIN: it does not run, or does not
	 * answer. */
	int (*databases)(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
	                 struct str **ret_names, size_t *ret_count);
	int (*partitions)(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
	                  struct str **ret_names, size_t *ret_count);
	/* Whether nodes run an older minor version than is there, or with certificates that end soon: what converge()
	 * mends with `renew`. Quick, from any thread. NULL: never. */
	bool (*behind)(struct engine *e, const char *cluster_id);
	/* Lines of a log as a file descriptor to read from; the caller closes it. */
	int (*log_open)(struct engine *e, const struct engine_log *log, int *ret_fd);
	/* Whether its databases can write an audit log; if not, what to do about it. */
	int (*audit_check)(struct engine *e, const char **ret_why);
	/* Major versions that it can run, newest first. */
	size_t (*versions)(struct engine *e, unsigned *ret_versions, size_t max);
	/* Loads the sample data set into a running cluster. NULL: the engine has none, and the load is done at once. */
	int (*load_sample)(struct engine *e, const char *cluster_id, struct engine_progress *progress, struct arena *a,
	                   const char **ret_why);
};

extern const struct engine_ops engine_simulated, engine_postgres;
/* By name; NULL when there is none. */
const struct engine_ops *engine_find(const char *name);
/* The one to use when none is named, and why that: the PostgreSQL engine wherever it can run. */
const struct engine_ops *engine_default(bool real_clock, struct arena *a, const char **ret_why);
/* postgres.c: whether the machine has what it needs; in words, either way. */
must_check int postgres_can_run(struct arena *a, const char **ret_why);

/* simulated.c: what the test control says. Seconds that a creation takes from now on; the change that shall fail so many
 * times, in place of the one before (NULL: none); and both as at the start. */
#define SIMULATED_CHANGES "create|update|delete|sample|access"
void simulated_seconds(struct engine *e, double seconds);
void simulated_fail(struct engine *e, const char *change, unsigned times);
void simulated_standard(struct engine *e);
/* The newest minor version is so many above the first one. */
void simulated_patch(struct engine *e, unsigned patch);

#endif
