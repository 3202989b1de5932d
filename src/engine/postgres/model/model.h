/* What the PostgreSQL engine knows of its clusters, sets and nodes. Everything of theirs lies below DIR/engine:
 *
 *   lib/VERSION/        steward.so, see cluster/module.c
 *   pool/VERSION-HEX/   data directories made ahead, each with a system identifier of its own
 *   run/SLOT/           unix sockets; short, because a socket's path has 107 bytes
 *   throwaway/ID/       servers on restored files, see cluster/throwaway.c, and what is being removed; nothing outlives
 *                       a start
 *   CLUSTER/applied     mark of the users and rules that its servers have
 *   CLUSTER/full        how full its disk is, see quota.c; not there when it is not
 *   CLUSTER/state.json  what the cluster shall be, and per set the term and who is primary; durable before it is done
 *   CLUSTER/NODE/       data, conf (configuration, HBA, certificate), log; conf/pg_hba.rules are the rules for clients,
 *                       and conf/pg_hba.conf the same, or, while the node is shut, none; during a restore also
 *                       restore (what is to be its data) and old (what was)
 *   CLUSTER/NODE/spool/ log that its server has handed on, by incarnation and term; see archive_spool.c
 *   CLUSTER/federation/ of the endpoint of a federated instance: what its queries have read, and their log
 *   CLUSTER/images/     its newest snapshot as files that share their blocks, see host/images.c
 *   CLUSTER/spool/      log of nodes that were rewound or removed, on its way to the repository
 *
 * Locks: cluster.work is held by whoever changes the cluster (a job's step, or the care for a dead node), cluster.lock
 * only for moments, around fields that others read; a field under both is written with both held. While nodes are
 * copied, work is free for the care, and whoever would add or remove nodes waits for cluster.copied. Order: work, lock;
 * engine.lock is never taken with a cluster's lock held. */
#ifndef STEWARD_ENGINE_POSTGRES_MODEL_MODEL_H
#define STEWARD_ENGINE_POSTGRES_MODEL_MODEL_H

#include "base/data_key.h"
#include "engine/engine.h"

#include <pthread.h>
#include <sys/types.h>

struct pg_archive;    /* archive/archive.h */
struct pg_measures;   /* observe/measure.c */
struct pg_activities; /* observe/activity.c */
struct pg_index_task; /* sql/index_run.c */

#define PG_SUPER "steward_engine"      /* superuser; only over the unix socket, only from the service and the nodes */
#define PG_SHARD "steward:shard"       /* owns what lies on the shards; only for routers, over the unix socket */
#define PG_RESTORE "steward:restore"   /* writes what is brought back of a snapshot, with no right beyond that */
#define PG_SHADOW "steward_as_"        /* and a hash: by which an endpoint comes in the name of a user, see grants.h */
#define PG_STAGING "steward_restoring" /* where a table is until it is whole */
/* In pg_stat_activity: a session by the socket that is not the service's own, but a person's (observe/ask.c). */
#define PG_SQL_OF_PEOPLE                                                                                         \
	"backend_type = 'client backend' and client_addr is null and usename not in ('" PG_SUPER "', '" PG_SHARD \
	"', '" PG_RESTORE "')"
#define PG_EXPORT "steward:export" /* reads all, and no more; in throwaway servers alone */
#define PG_PORT 27017
#define PG_PATH 1024
#define PG_SETS_MAX (ENGINE_NODES_MAX + 1)
#define PG_PARAMS_MAX 64
#define PG_ROUTER_SET 100000u /* plus the node's slot: a router is a set of its own */
#define PG_USER "steward"
#define PG_KEY_FILE "server.key"
#define PG_REMOVED_MAX 16
#define PG_WINDOWS_KEPT 16
#define PG_FILES_KEY 16 /* bytes of the name that the kernel has for a key of files */

/* A system user that databases run as. */
struct pg_user {
	uid_t uid;
	gid_t gid;
	bool other;    /* than the service's: files are given to it, and processes become it */
	bool everyone; /* of files that all of them read: there are several */
	/* Under engine.lock: */
	char project[25]; /* which has it for itself; "": nobody has, or all share it */
	unsigned holds;   /* by what is no cluster: it stays the project's */
	uint64_t taken;   /* how often something began or ended to use it */
};

struct pg_node {
	struct engine_node want;
	unsigned slot, port, set;
	char address[IP_TEXT];
	bool busy;     /* being made or removed: not for the supervision */
	bool removing; /* not wanted any more */
	bool loaded;   /* the server runs with the configuration as it is written */
	bool admits;   /* and with the access rules */
	/* To clients: it may not have what was last in force. The supervisor looks without cluster.work. */
	_Atomic bool shut;
	bool primary_known; /* whom to follow, by us: not yet the one that was found running */
	/* The process. */
	pid_t pid; /* 0: none */
	int pidfd;
	int64_t started_ms;
	bool noted; /* its death was seen and is being cared for */
	unsigned failures;
	int64_t retry_us;
	unsigned ends; /* by itself; durable, as is `down`: it has ended, and was not ready since */
	bool down, absent;
	uint64_t lag_bytes; /* behind its primary, as measured last */
	double lag_seconds;
	uint64_t disk_used; /* what its data takes, as last looked at; 0: not known. See quota.c */
	/* The probe for hung ones. */
	bool stopped_once, hung;
	_Atomic int64_t silent_until_us; /* it has not answered lately: who asks next is spared the wait until then */
	int probe_fd;
	int64_t probe_us;
	int64_t stale_us; /* since when it does not stream; 0: it does */
};

struct pg_set {
	unsigned number, term;
	char primary[64];
	/* The system identifier of its data, from the moment that it was made: never made anew from then on. An upgrade
	 * changes it; `former` is the one before, which the store may still have. 0: none. */
	uint64_t identity, former;
	unsigned failovers; /* terms that began because the primary had ended */
	int64_t return_us;  /* until then the care leaves the primary where it is, see pg_set_return() */
	/* The place in its log up to which a node must have come to have all of the access; 0: not known. */
	int64_t access_at;
};

struct pg_param {
	char *name, *value;
};

/* A restore, as far as it must be known after a crash: nodes are stopped for it; the new data is the cluster's, and on
 * its way to its place. */
enum pg_restoring { RESTORE_NOT, RESTORE_BEGUN, RESTORE_MADE };

struct pg_cluster {
	struct engine *engine;
	struct pg_cluster *next;
	unsigned refs;
	bool gone; /* destroyed; freed with the last reference */
	pthread_mutex_t work, lock;
	bool copying; /* nodes are made without the lock: none may come or go until it ends */
	pthread_cond_t copied;
	bool caring;
	unsigned pieces; /* databases and tables that are being brought back by themselves; under lock */
	char id[25], group_id[25], name[65], label[8], project_hash[8];
	const struct pg_user *_Atomic user; /* whom its nodes run as; changes only while none of them runs */
	bool giving;                        /* its files are on their way to that user; durable */
	unsigned version;
	unsigned upgrading;          /* to which version; nothing is started meanwhile */
	enum pg_restoring restoring; /* nor then */
	char restored[25];           /* the incarnation that the last restore has made */
	bool paused, quorum, destroying;
	bool renewing;         /* nodes that are behind shall be restarted */
	char version_text[24]; /* of what they run since; empty: of the engine's start */
	struct pg_node *nodes[ENGINE_NODES_MAX * 2];
	size_t node_count;
	struct pg_set sets[PG_SETS_MAX];
	size_t set_count;
	struct pg_param params[PG_PARAMS_MAX];
	size_t param_count;
	char *audit;      /* classes of the audit log; NULL: off */
	bool slow_fixed;  /* see threshold.c */
	unsigned slow_ms; /* of a managed threshold; 0: as at first */
	double slow_active, slow_xacts;
	char *ca_cert, *ca_key; /* the project's CA, in memory alone; NULL until the first converge */
	bool rolled;            /* no server waits for a restart to take its configuration */
	/* What was last in force is so wherever clients are taken: primaries may start open. Durable: false before a
	 * node can start that has less. */
	bool open;
	struct arena *access_arena; /* holds the access that was given last, to be applied again after a failover */
	const struct engine_access *access;
	int64_t admitted_us;              /* when nodes that are shut were last looked at */
	int64_t streamed_us;              /* when replication was last looked at */
	int64_t looked_us;                /* when it was last cared for */
	uint64_t removed[PG_REMOVED_MAX]; /* identities of sets that were removed as wanted, newest first */
	enum engine_full full;            /* see quota.c */
	uint64_t disk_used, disk_limit, full_from;
	int64_t nodes_due_ms; /* when what each node takes is looked at again; of the look alone */
	struct engine_archiving backup;
	/* Encryption, see crypt.c. The project's data key that the key of its files comes from; "": they are not
	 * encrypted. Durable, as is the kernel's name for that key. */
	char data_key[DATA_KEY_ID + 1];
	unsigned char files_key[PG_FILES_KEY];
	bool locked;             /* the project's key is lost: nothing of it is left here */
	_Atomic bool files_open; /* the kernel has the key, or needs none */
	unsigned files_users;    /* who need them though it is paused */
	_Atomic int64_t key_due_us;
	pthread_mutex_t crypt; /* who gives the key to the kernel, or takes it away; before cluster.lock */
	/* Federation, see federation/federation.c; durable. `federation`: it is the endpoint of a federated instance,
	 * whose storage configuration of that generation is in force. `federated`: such endpoints come to it, so its
	 * users have a role more. */
	bool federation, federated;
	int64_t generation;
	struct pg_archive *archive; /* NULL: nothing was archived since the start; never changes after */
	void (*archive_free)(struct pg_cluster *c); /* of whoever has made it */
};

struct engine {
	char dir[PG_PATH]; /* DIR/engine */
	char domain[128];
	char address[IP_TEXT]; /* where nodes listen; empty: loopback addresses */
	unsigned port_first, port_last;
	/* Whom databases run as, see user.c. `own` is the service; `former` whom older versions had for all; `maker`
	 * makes empty ones. */
	struct pg_user own, former, user, shared, *users;
	const struct pg_user *maker;
	size_t user_count;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct pg_cluster *clusters;
	struct {
		unsigned major;
		char text[24], bin[64];
		bool module; /* there is steward.so for it, see module.c */
	} versions[16];
	size_t version_count;
	pthread_t supervisor;
	int wake_fd;
	bool stopping, filling;
	unsigned workers;                                    /* threads that stop() waits for */
	void (*listener)(void *ctx, const char *cluster_id); /* see engine_options.changed */
	void *listener_ctx;
	_Atomic uint64_t failovers, switchovers, ends;
	char cgroup[PG_PATH]; /* below which clusters have theirs; empty: none */
	uint64_t disk_unit;   /* bytes for each GB of a node's disk; 0: no bound */
	int64_t quota_due_ms, threshold_due_ms;
	bool quota_looks, threshold_looks;
	void (*full_changed)(void *ctx, const char *cluster_id, enum engine_full full);
	void *full_ctx;
	struct repositories *repositories; /* of backups; NULL: none are kept */
	const struct data_keys *keys;      /* of projects; may be NULL */
	int encryption;                    /* 0: the kernel can encrypt files here */
	uint64_t spool_bytes;              /* see engine_options */
	pthread_t archiver;
	struct pg_measures *measures; /* of the thread that takes samples */
	struct pg_activities *activities;
	struct pg_index_task *index_tasks;
	struct pg_windows { /* what was told a moment ago: it takes a list of all segments */
		char cluster[25], incarnation[25], region[48];
		int64_t until_ms;
		size_t count;
		struct engine_window list[PG_WINDOWS_KEPT];
	} windows[PG_WINDOWS_KEPT];
};

#endif
