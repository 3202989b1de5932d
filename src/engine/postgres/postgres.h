/* The parts of the PostgreSQL engine, for its own files only. Everything lies below DIR/engine:
 *
 *   lib/VERSION/        steward.so, see module.c
 *   pool/VERSION-HEX/   data directories made ahead, each with a system identifier of its own
 *   run/SLOT/           unix sockets; short, because a socket's path has 107 bytes
 *   throwaway/ID/       servers on restored files, see throwaway.c, and what is being removed; nothing outlives a start
 *   CLUSTER/applied     mark of the users and rules that its servers have
 *   CLUSTER/full        how full its disk is, see quota.c; not there when it is not
 *   CLUSTER/state.json  what the cluster shall be, and per set the term and who is primary; durable before it is done
 *   CLUSTER/NODE/       data, conf (configuration, HBA, certificate), log; conf/pg_hba.rules are the rules for clients,
 *                       and conf/pg_hba.conf the same, or, while the node is shut, none; during a restore also
 *                       restore (what is to be its data) and old (what was)
 *   CLUSTER/NODE/spool/ log that its server has handed on, by incarnation and term; see archive_spool.c
 *   CLUSTER/images/     its newest snapshot as files that share their blocks, see image.c
 *   CLUSTER/spool/      log of nodes that were rewound or removed, on its way to the repository
 *
 * Locks: cluster.work is held by whoever changes the cluster (a job's step, or the care for a dead node), cluster.lock
 * only for moments, around fields that others read; a field under both is written with both held. While nodes are
 * copied, work is free for the care, and whoever would add or remove nodes waits for cluster.copied. Order: work, lock;
 * engine.lock is never taken with a cluster's lock held. */
#ifndef STEWARD_ENGINE_POSTGRES_POSTGRES_H
#define STEWARD_ENGINE_POSTGRES_POSTGRES_H

#include "base/data_key.h"
#include "base/nolink.h"
#include "engine/engine.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <sys/types.h>

struct buf;
struct pg_archive;    /* archive.h */
struct pg_measures;   /* measure.c */
struct pg_index_task; /* index_run.c */
struct pg_copy;       /* copy_stream.h */

extern const struct engine_ops engine_postgres; /* postgres.c; for engine.c */

#define PG_SUPER "steward_engine"  /* superuser; only over the unix socket, only from the service and the nodes */
#define PG_SHARD "steward:shard"   /* owns what lies on the shards; only for routers, over the unix socket */
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
	bool other;       /* than the service's: files are given to it, and processes become it */
	bool everyone;    /* of files that all of them read: there are several */
	char project[25]; /* which has it for itself; "": nobody has, or all share it. Under engine.lock */
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
	pthread_mutex_t crypt;      /* who gives the key to the kernel, or takes it away; before cluster.lock */
	struct pg_archive *archive; /* NULL: nothing was archived since the start; never changes after */
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
	struct pg_index_task *index_tasks;
	struct pg_windows { /* what was told a moment ago: it takes a list of all segments */
		char cluster[25], incarnation[25], region[48];
		int64_t until_ms;
		size_t count;
		struct engine_window list[PG_WINDOWS_KEPT];
	} windows[PG_WINDOWS_KEPT];
};

/* --- postgres.c */
struct pg_cluster *pg_cluster_find(struct engine *e, const char *id); /* counts; NULL: none */
struct pg_cluster *pg_cluster_ensure(struct engine *e, const char *id);
/* Of a cluster that has nothing in memory: what lies there, which may have been put back since the start. */
must_check int pg_cluster_recall(struct pg_cluster *c, const struct engine_access *access, const char **ret_why);
void pg_cluster_put(struct pg_cluster *c);
struct pg_node *pg_cluster_node(const struct pg_cluster *c, const char *name);
struct pg_set *pg_cluster_set(struct pg_cluster *c, unsigned number);
struct pg_node *pg_set_primary(const struct pg_cluster *c, const struct pg_set *s);
const char *pg_version_bin(const struct engine *e, unsigned major); /* NULL: not installed */
/* Asks the program: "15.19.0". */
void pg_version_read(const char *bin, unsigned major, char ret_text[24]);
/* Whoever asked for it hears that something befell the cluster. */
void pg_cluster_changed(const struct pg_cluster *c);
/* Runs fn(arg) on a thread that stop() waits for. */
int pg_engine_work(struct engine *e, void *(*fn)(void *), void *arg);
void pg_engine_work_done(struct engine *e);
void pg_engine_wake(struct engine *e);
/* Text that lives until the thread's next one. */
void pg_why_set(const char **ret_why, const char *format, ...) printf_like(2, 3);
const char *pg_why_last(void);
int64_t pg_mono_ms(void);
void pg_sleep_ms(int ms);

/* --- place.c: makes the directories below DIR/engine, or elsewhere where databases cannot lie there. */
int pg_place_find(struct engine *e, const char *data_dir);

/* --- node.c: whether the address can be listened on. */
int pg_address_check(const char *address);

/* --- files.c */
void pg_path_set(char ret_path[PG_PATH], const char *format, ...) printf_like(2, 3);
/* The whole file or the old one, also after a power cut. mode 0640 and the nodes' group when they must read it. */
int pg_file_write(const struct pg_user *u, const char *path, const void *bytes, size_t n, bool for_nodes);
/* A private key, which PostgreSQL takes only from root or from its own user. */
int pg_key_write(const struct pg_user *u, const char *path, const void *bytes, size_t n);
int pg_file_give(const struct pg_user *u, const char *path); /* an empty one, the nodes' own */
/* NUL-terminated, heap; -EFBIG over the bound. */
int pg_file_read(const char *path, size_t max, char **ret_text);
int pg_file_take(int fd, size_t max, char **ret_text); /* the same of an open one, which is closed */
bool pg_file_is(const char *path);
int pg_dir_make(const struct pg_user *u, const char *path, bool owned_by_nodes);
/* 1: it is there; 0: it is not, which is proven; negative: that cannot be known (too many open files, no permission, a
 * disk that does not answer), and nobody may take it for gone. */
int pg_file_look(const char *path);
/* Whether the error proves that a file is not there. A link in its place is none of ours. */
bool pg_is_absence(int error);
/* At the start: descriptors for all nodes that lie here, as far as the system gives them. -EMFILE, with the reason in
 * the log: they would not suffice, and running servers could not be told from those that ended. */
must_check int pg_descriptors_ensure(const struct engine *e);
int pg_dir_sync(const char *path);
int pg_filesystem_sync(const char *path); /* everything on the file system of a directory */
int pg_tree_remove(const char *path);

/* --- user.c */
int pg_users_find(struct engine *e, const char *name); /* 0, or a negative code and the words to say */
void pg_users_tell(const struct engine *e);
const struct pg_user *pg_user_known(const struct engine *e, uid_t uid); /* NULL: no user of databases */
/* Of a project; takes a free one for it when it has none. Takes engine.lock. */
const struct pg_user *pg_user_of(struct engine *e, const char *group_id);
/* Whom a cluster runs as of which nothing is known: whose its files are, where its state was lost, else its project's.
 */
void pg_user_begin(struct pg_cluster *c);
void pg_user_recall(struct pg_cluster *c, uid_t uid); /* as its state says; 0: as its files are owned */
/* Before a node is started, with work held: where the cluster has another's user, or a shared one though there is one
 * for its project, and none of its nodes runs, its files change hands. */
int pg_user_settle(struct pg_cluster *c);
int pg_tree_give(const struct pg_user *u, const char *path); /* -EMLINK: a file has another name */

/* --- process.c */
/* A helper program, waited for; the end of what it said in *pg_why_last(). */
int pg_process_run(const struct pg_user *u, const char *const *argv, int timeout_ms);
/* The same for one that takes long: ended, with -ECANCELED, when `stop` asks for it. */
struct pg_stop;
int pg_process_run_until(const struct pg_user *u, const char *const *argv, int timeout_ms, const struct pg_stop *stop);
/* The first bytes that a program prints, run as the service's user and without its capabilities; "": nothing. */
void pg_process_ask(const char *const *argv, char *ret_text, size_t size);
struct pg_bounds {
	int cgroup_fd;   /* of the cgroup to enter; -1: none */
	uint64_t memory; /* bytes of address space of each process; 0: as many as there are */
};
/* The server of a data directory: a session of its own, lives on without us. */
int pg_process_spawn(const struct pg_user *u, const char *const *argv, const char *data, const char *log,
                     const struct pg_bounds *bounds, pid_t *ret_pid, int *ret_pidfd);
/* Remembers which process it is, for the adoption; a number alone can come to mean another. */
void pg_process_note(const char *data, pid_t pid);
/* The running server of a data directory: 0, or -ESRCH. */
int pg_process_adopt(const char *data, pid_t *ret_pid, int *ret_pidfd, int64_t *ret_started_ms);
void pg_process_signal(int pidfd, int sig);
/* Whether it ended; waits at most that long. Reaps. */
bool pg_process_ended(int pidfd, int timeout_ms);
bool pg_process_is_stopped(pid_t pid); /* by SIGSTOP or a debugger */
/* Kills every process of the nodes' user whose working directory is this. 0: none is left. */
int pg_process_sweep(const struct engine *e, const char *dir);

/* --- sql.c */
int pg_sql_open(const struct pg_node *n, const char *run_dir, const char *database, int timeout_ms, PGconn **ret_conn);
int pg_sql_open_as(const struct pg_node *n, const char *run_dir, const char *user, const char *database, int timeout_ms,
                   PGconn **ret_conn);
/* Begins to connect, for who goes on with PQconnectPoll(); `more`: options of the session beside the usual ones. NULL:
 * no memory. */
PGconn *pg_sql_begin(unsigned port, const char *run_dir, const char *user, const char *database, const char *more);
int pg_sql_open_node(const struct pg_cluster *c, const struct pg_node *n, const char *database, int timeout_ms,
                     PGconn **ret_conn);
int pg_sql_do(PGconn *conn, int timeout_ms, const char *sql);
int pg_sql_rows(PGconn *conn, int timeout_ms, const char *sql, PGresult **ret_rows);
int pg_sql_int(PGconn *conn, int timeout_ms, const char *sql, int64_t *ret_value);
/* The only way to a value of a result. A superuser can put a server of their own behind a node's socket, which answers
 * with fewer columns or rows than were asked for: such a value is empty. PQgetvalue() gives NULL, and the process,
 * which all tenants share, would end with it. */
static inline char *pg_value(const PGresult *rows, int row, int column)
{
	static char none[1];
	char *value = PQgetvalue(rows, row, column);
	return value ? value : none;
}
/* One number from a node, on a connection of its own, within seconds. */
int pg_sql_ask_node(struct pg_cluster *c, struct pg_node *n, const char *sql, int64_t *ret_value);

/* --- sql_copy.c */
/* COPY ... TO STDOUT in pieces, for as long as it takes. 0: all of it was written, and the connection takes another
 * statement, as it does not after a failure. -EBADMSG: that cannot be copied; -ECONNRESET: the server has ended;
 * -ECANCELED: somebody has asked for the end; or what s->write() returned. */
must_check int pg_sql_copy(PGconn *conn, const char *sql, const struct pg_stop *stop, struct pg_copy *s);

/* --- data.c: what a data directory says of itself; -ENODATA: nothing whole */
#define PG_SHUT_DOWN 1
struct pg_control {
	uint64_t identity; /* the system identifier */
	uint32_t state, timeline;
	uint64_t checkpoint;
	int64_t time_s; /* when it was written */
};
int pg_control_read(const char *data, struct pg_control *ret_control);
int pg_data_identify(const char *data, uint64_t *ret_identity, uint32_t *ret_timeline);

/* --- missing.c: data that should be there */
/* The set's name outside: of a shard its number, of a router the node's name. */
void pg_set_name(const struct engine_node *n, char ret_name[64]);
/* False when its data is known to be of another database. */
bool pg_node_is_own(struct pg_cluster *c, const struct pg_node *n);
/* Whether its set has had data: then it is not made anew. */
bool pg_node_was_made(struct pg_cluster *c, const struct pg_node *n);
/* -ENOMEDIUM: data that was made is missing, or another's is in its place. Before anything is changed. */
int pg_missing_check(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why);
/* The sets of what was taken know what they were made with; who leads one whose state was lost is found in the data. */
int pg_missing_take(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why);
/* A set whose primary's data is missing gets another primary. */
void pg_missing_lead(struct pg_cluster *c);
/* Notes what sets were made with, from their data; true when something was. */
bool pg_identities_learn(struct pg_cluster *c);
void pg_identity_remove(struct pg_cluster *c, uint64_t identity); /* of a set that goes as wanted */
/* No process works any more in the nodes' directories of a cluster whose state is not known. */
void pg_strays_end(const struct engine *e, const char *path);

/* --- state.c */
int pg_state_save(struct pg_cluster *c);
/* Reads CLUSTER/state.json into an empty cluster. */
int pg_state_load(struct pg_cluster *c);
void pg_state_move(struct pg_cluster *to, struct pg_cluster *from); /* into an empty one; nothing is left in `from` */

/* --- crypt.c: files that the kernel encrypts */
void pg_crypt_probe(struct engine *e); /* once, at the start */
/* Of engine_core_ops. */
int pg_can_encrypt(struct engine *e, struct arena *a, const char **ret_why);
/* It is encrypted, and its files cannot be read now: nothing may be concluded from what is not there. */
bool pg_crypt_is_shut(const struct pg_cluster *c);
/* The kernel has the key of its files, where they are encrypted. -EKEYREVOKED, -ENOKEY; -EAGAIN: later. */
int pg_crypt_open(struct pg_cluster *c, const char **ret_why);
int pg_crypt_close(struct pg_cluster *c);   /* it has not any more. -EBUSY: files are still open */
void pg_crypt_recall(struct pg_cluster *c); /* at the engine's start: whether the kernel has it still */
void pg_crypt_rest(struct pg_cluster *c);   /* it was paused */
void pg_crypt_hold(struct pg_cluster *c);   /* until released its files stay open though it is paused */
void pg_crypt_release(struct pg_cluster *c);
bool pg_crypt_is_due(const struct pg_cluster *c); /* there is something for the care; with cluster.lock */
/* The rest with cluster.work held. The care's part; negative: nothing can be started. */
int pg_crypt_care(struct pg_cluster *c);
int pg_crypt_lock(struct pg_cluster *c); /* the project's key is lost: stopped, durably, and shut */
/* Before anything else of a converge: it is open, or will be encrypted from now on. */
int pg_crypt_begin(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why);
/* And its end: nodes that are not as wanted are, one after the other. May be repeated. */
int pg_crypt_convert(struct pg_cluster *c, bool encrypted, const struct engine_progress *progress,
                     const char **ret_why);
/* What is made in this empty directory is encrypted as the cluster's files are. */
int pg_crypt_dir(const struct pg_cluster *c, const char *path);
int pg_crypt_dir_of(struct engine *e, const char *cluster_id, const char *path); /* NULL or another host's: it is not */

/* --- pool.c */
/* Moves a prepared data directory to `path`. */
int pg_pool_take(const struct pg_cluster *c, unsigned version, const char *path);
void pg_pool_start(struct engine *e);
void pg_pool_refill(struct engine *e); /* in the background */

/* --- config.c */
/* What an instance size stands for on this host. */
struct pg_size {
	unsigned number, buffers_mb, work_mb, connections, max_wal_mb;
};
struct pg_size pg_config_size(const char *instance_size);
int pg_config_check(const struct engine_cluster *want, const char **ret_why);
int pg_config_write(struct pg_cluster *c, struct pg_node *n, bool *ret_changed);
void pg_node_run_dir(const struct pg_cluster *c, const struct pg_node *n, char ret_path[PG_PATH]);
unsigned pg_config_connections(const struct pg_cluster *c, const struct pg_node *n); /* that its set takes */

/* --- tls.c */
/* A certificate for the node, unless it has a good one. Without a CA at hand, the one that it has is good. */
int pg_tls_ensure(struct pg_cluster *c, struct pg_node *n, bool *ret_changed);
bool pg_tls_ends_soon(const struct pg_cluster *c, const struct pg_node *n);
void pg_tls_take(struct pg_cluster *c, const struct engine_cluster *want);
void pg_node_host(const struct pg_cluster *c, const char *name, char ret_host[192]);

/* --- node.c */
void pg_node_path(const struct pg_cluster *c, const struct pg_node *n, const char *below, char ret_path[PG_PATH]);
int pg_node_place(struct pg_cluster *c, struct pg_node *n);   /* slot, address, port */
int pg_node_prepare(struct pg_cluster *c, struct pg_node *n); /* directories, certificate, configuration */
bool pg_node_is_made(const struct pg_cluster *c, const struct pg_node *n);
bool pg_node_is_standby(const struct pg_cluster *c, const struct pg_node *n); /* standby.signal is there */
int pg_node_mark_standby(const struct pg_cluster *c, const struct pg_node *n, const char *data);
int pg_node_start(struct pg_cluster *c, struct pg_node *n);
int pg_node_wait_ready(struct pg_cluster *c, struct pg_node *n, int timeout_ms, const char **ret_why);
enum pg_node_halt { PG_HALT_FAST, PG_HALT_NOW, PG_HALT_KILL };
/* Stopped, and proven to be. */
int pg_node_halt(struct pg_cluster *c, struct pg_node *n, enum pg_node_halt how);
/* After death: nothing of it runs, locks and shared memory are gone. Of the node's server, or another in its place. */
int pg_node_bury(struct pg_cluster *c, struct pg_node *n);
int pg_server_bury(struct pg_cluster *c, struct pg_node *n, const char *data, unsigned port);
int pg_node_reload(struct pg_cluster *c, struct pg_node *n); /* returns when it is in force */
int pg_node_remove(struct pg_cluster *c, struct pg_node *n);
void pg_node_ended(struct pg_cluster *c, struct pg_node *n); /* by itself: counted, to be saved by the caller */
bool pg_node_can_lead(const struct pg_node *n);
bool pg_node_shall_run(const struct pg_cluster *c, const struct pg_node *n);
void pg_node_free(struct pg_node *n);

/* --- failover.c, supervisor.c; all but pg_supervise() with cluster.work held */
bool pg_node_hangs(struct pg_cluster *c, const struct pg_node *n); /* as the supervision has found it */
int pg_set_promote(struct pg_cluster *c, struct pg_set *s);
int pg_set_failover(struct pg_cluster *c, struct pg_set *s, bool whatever_answers);
int pg_set_switchover(struct pg_cluster *c, struct pg_set *s, const char **ret_why);
/* To the region of the highest priority, where the primary belongs: nothing to do, or once a node there has caught
 * up. */
must_check int pg_set_return(struct pg_cluster *c, struct pg_set *s);
int pg_node_rejoin(struct pg_cluster *c, struct pg_set *s, struct pg_node *n);
int pg_node_copy_from(struct pg_cluster *c, struct pg_node *primary, struct pg_node *n); /* without the lock */
void pg_set_repoint(struct pg_cluster *c, struct pg_set *s);
/* `wait`: until standbys that it starts take connections. Without cluster.work while it copies one. */
void pg_cluster_care(struct pg_cluster *c, bool wait);
void *pg_supervise(void *engine);
/* All clusters, counted, so that none goes away while it is looked at; the caller puts each and frees the list. */
size_t pg_clusters_hold(struct engine *e, struct pg_cluster ***ret_clusters);

/* --- upgrade.c */
/* pg_upgrade starts servers that outlive it: no process of one that was cut short is left. */
int pg_upgrade_sweep(struct pg_cluster *c, struct pg_node *n);
/* Ends what a crash cut short, and then, where a newer version is wanted, goes there: primaries in their new form,
 * stopped, standbys gone. */
int pg_cluster_upgrade(struct pg_cluster *c, unsigned version, struct engine_progress *progress, const char **ret_why);
int pg_cluster_analyze(struct pg_cluster *c); /* an upgrade forgets what the planner knew */

/* --- router.c */
/* No set becomes a shard that holds data, and no shard goes that does. Before a change, to spare the work: refuses when
 * a router says so. And as the `last` word, right before shards are removed: refuses unless all routers say that there
 * is none. */
int pg_router_check(struct pg_cluster *c, const struct engine_cluster *want, bool last, const char **ret_why);
/* What makes a router know all shards, as SQL. */
void pg_router_servers(const struct pg_cluster *c, struct buf *b);
/* After a change: routers know all shards. */
int pg_router_apply(struct pg_cluster *c, const char **ret_why);
/* Whether it lies behind a router, through which alone users come. */
bool pg_node_is_shard(const struct pg_cluster *c, const struct pg_node *n);

/* --- spread_sql.c: its scripts, each up to NULL. The router's begins before the servers are made. */
extern const char *const pg_spread_sql_shard[], *const pg_spread_sql_begin[], *const pg_spread_sql_rest[];

/* --- retention.c */
#define PG_LOG_BYTES_MAX (512ll << 20)
void pg_log_tidy(const char *path, int64_t bytes_max);
void *pg_logs_tidy(void *engine); /* with pg_engine_work() */

/* --- cgroup.c */
void pg_cgroup_find(struct engine *e, const char *dir); /* NULL: where one is looked for; "": none */
/* What the nodes' sizes come to is in force for the cluster. 0 too where there are no cgroups. */
int pg_cgroup_apply(const struct pg_cluster *c);
int pg_cgroup_open(const struct pg_cluster *c); /* for pg_process_spawn(), which the caller closes after; or -1 */
void pg_cgroup_remove(const struct pg_cluster *c);

/* --- quota.c */
void pg_quota_recall(struct pg_cluster *c); /* what it was before this process */
void pg_quota_tick(struct engine *e);       /* looks, in the background, when it is time */
/* How many connections each user may have; through a connection to a primary. */
int pg_quota_apply(struct pg_cluster *c, const struct pg_node *primary, PGconn *conn);
void pg_disk_usage(struct engine *e, struct engine_disk *ret_disk); /* of engine_disk_ops */

/* --- make.c; with cluster.work held */
#define PG_START_MS 60000
void pg_tell(struct engine_progress *p, unsigned percent, const char *what); /* p may be NULL */
bool pg_is_stopped(const struct engine_progress *p);                         /* the service stops; p may be NULL */
void pg_node_busy(struct pg_cluster *c, struct pg_node *n, bool busy);
/* All nodes that are wanted and not there, started unless the cluster is paused. Lets go of cluster.work meanwhile. */
int pg_nodes_make(struct pg_cluster *c, const struct engine_access *access, struct engine_progress *progress,
                  const char **ret_why);
/* Copies that are not yet safe from a power cut: whether there are some, and in the background they become so. */
bool pg_cluster_unflushed(const struct pg_cluster *c);
void pg_cluster_flush(struct pg_cluster *c);

/* --- cluster.c */
int pg_cluster_converge(struct pg_cluster *c, const struct engine_cluster *want, const struct engine_access *access,
                        struct engine_progress *progress, const char **ret_why);
int pg_cluster_wait_streaming(struct pg_cluster *c, struct pg_set *s, int timeout_ms);
int pg_cluster_destroy(struct pg_cluster *c, struct engine_progress *progress);
/* All nodes are stopped, primaries first, so that standbys get their last record. With cluster.work held. */
int pg_cluster_halt(struct pg_cluster *c);

/* --- access.c */
int pg_access_apply(struct pg_cluster *c, const struct engine_access *access, const char **ret_why);
void pg_access_network(struct buf *b, const struct cidr *network); /* as the servers write it */
/* Whether that is what was applied last, with success, to a cluster whose servers are the same since. Unmark: it may
 * not be any more. */
bool pg_access_is_applied(const struct pg_cluster *c, const struct engine_access *access);
void pg_access_unmark(const struct pg_cluster *c);
/* HBA and ident files of a node that has none yet. */
int pg_access_first(struct pg_cluster *c, struct pg_node *n);
int pg_access_write(struct pg_cluster *c, struct pg_node *n, const struct engine_access *access, bool *ret_changed);
/* Keeps a copy: of the users that a server can have. ENGINE_PARTLY: there are others. */
int pg_access_keep(struct pg_cluster *c, const struct engine_access *access, const char **ret_why);
/* The service's own lines of the HBA file. */
void pg_access_own_rules(struct buf *b);
int pg_access_file_write(struct pg_cluster *c, const char *path, const struct buf *b, bool *ret_changed);
#define PG_HBA_MAX (16 << 20)

/* --- enforce.c */
/* Brings cluster.access to all primaries, or to all others, at once. `bounded`: a node that does not take it in time is
 * ended. */
must_check int pg_nodes_enforce(struct pg_cluster *c, bool leading, bool bounded, const char **ret_why);

/* --- admit.c: whether a node takes clients; with cluster.work held */
/* Before a server starts: shut, unless it has all that was last in force. */
int pg_admit_begin(struct pg_cluster *c, struct pg_node *n);
bool pg_admit_is_shut(const struct pg_cluster *c, const struct pg_node *n); /* as its files say */
/* Writes the rules for clients; and what the server reads, as it is shut or not. */
int pg_admit_write(struct pg_cluster *c, struct pg_node *n, const struct buf *rules, bool *ret_changed);
/* Whether it has replayed all that its primary has; waits at most that long. */
bool pg_admit_has_caught_up(struct pg_cluster *c, struct pg_node *n, int timeout_ms);
/* Nobody comes in any more, and who is in, goes. 0 for one that does not run. */
int pg_admit_shut(struct pg_cluster *c, struct pg_node *n);
/* Opens what may be open. Nodes that have to catch up are waited for, together at most that long; -1: primaries
 * alone. */
void pg_admit_all(struct pg_cluster *c, int timeout_ms);
/* Durably. */
int pg_admit_promise(struct pg_cluster *c, bool open);
/* What the care has to do: access once more after a failover, nodes that have caught up. Quick: whether there is
 * something. */
bool pg_admit_is_due(const struct pg_cluster *c);
void pg_admit_care(struct pg_cluster *c);
void pg_admit_hurry(struct pg_cluster *c); /* the next care does it, however short ago the last was */
/* Ends who was about to log in under rules that are no more. */
void pg_admit_sweep(const struct pg_node *n);

/* --- grants.c: users, groups and grants of a set, through a connection to its primary's database postgres */
/* Whatever the users had and shall not have any more: logins, passwords, memberships, sessions. Nothing that lies in a
 * database is needed for it. */
int pg_grants_revoke(PGconn *conn, const struct engine_access *access, const char **ret_why);
/* And whatever they shall have. Negative: not all of it. */
int pg_grants_give(struct pg_cluster *c, struct pg_node *primary, PGconn *conn, const struct engine_access *access,
                   const char **ret_why);

/* --- audit.c */
void pg_audit_take(struct pg_cluster *c, const struct engine_cluster *want);
/* Whether PostgreSQL of that version has pgaudit; and the lines of a node's configuration. */
int pg_audit_available(const struct engine *e, unsigned version, const char **ret_why);
void pg_audit_configure(struct buf *b, const struct pg_cluster *c);
/* Users who have classes of their own, or had; through a connection to a primary. */
int pg_audit_apply(PGconn *conn, const struct engine_access *access, bool on);

/* --- threshold.c: from when on a statement is slow */
#define PG_QUAL_SAMPLES "0.2" /* of all statements: a frequent one is seen soon, and the others are not held up */
void pg_threshold_configure(struct buf *b, const struct pg_cluster *c); /* the lines of a node's configuration */
void pg_threshold_tick(struct engine *e); /* manages it, in the background, when it is time */

/* --- advice.c */
extern const struct engine_advice_ops pg_advice;

/* --- module.c: what servers load at their start */
void pg_modules_prepare(struct engine *e); /* at the engine's start; tells in the log what is missing */
bool pg_module_is_there(const struct engine *e, unsigned version);
void pg_module_missing(const struct engine *e, unsigned version, struct buf *b); /* in words; nothing: all is there */
void pg_module_configure(struct buf *b, const struct pg_cluster *c);             /* a node's lines */
/* The shapes that the node refuses, as a file beside its configuration. */
int pg_refused_write(struct pg_cluster *c, const struct pg_node *n, const struct engine_access *access,
                     bool *ret_changed);
/* Functions and extensions in the schema steward of the database postgres; through a connection to a primary there. */
int pg_module_apply(PGconn *conn);
/* Takes them away, before an upgrade, and starts who does not run for it. With cluster.work held. */
int pg_module_leave(struct pg_cluster *c);
void pg_module_return(struct pg_cluster *c); /* the upgrade did not come about */
extern const char pg_module_version[];

/* --- shapes.c */
extern const struct engine_shapes_ops pg_shapes;

/* --- sample.c: of engine_query_ops */
int pg_load_sample(struct engine *e, const char *cluster_id, struct engine_progress *progress, struct arena *a,
                   const char **ret_why);

/* --- index.c, index_sql.c */
extern const struct engine_index_ops pg_index;
/* All of a build, on this thread. */
int pg_index_build_here(struct engine *e, const struct engine_index *want, struct engine_progress *progress,
                        struct arena *a, const char **ret_why);
/* How far a build is in a phase of pg_stat_progress_create_index of which so many percent are done, and in words. Over
 * the phases in their order it never falls. */
unsigned pg_index_percent(const char *phase, unsigned done, const char **ret_what);
struct pg_index_table {
	const char *oid, *schema, *name; /* of the table */
	bool spread;                     /* over shards */
};
/* What is made of a wish in one database. */
struct pg_index_plan {
	struct arena *arena;
	PGconn *conn;
	const struct engine_index *want;
	struct pg_index_table table;
	const char *on;        /* the table, quoted */
	const char *body;      /* "USING btree (...) WHERE ..." */
	const char *collation; /* quoted; NULL: none */
	const char *make;      /* the statement that makes the collation; NULL: it is there */
	const char *field;     /* of the fault */
	char why[400];
};
/* Looks at the database and fills in the rest. -EINVAL: field and why say what is wrong. Changes nothing. */
int pg_index_plan(struct pg_index_plan *p);
/* The fault, for others that find one. Returns -EINVAL. */
int pg_index_fault(struct pg_index_plan *p, const char *field, const char *format, ...) printf_like(3, 4);
/* Texts as the server takes them, in the arena; empty names of no encoding become "". */
const char *pg_index_quote(const struct pg_index_plan *p, const char *name);
const char *pg_index_literal(const struct pg_index_plan *p, const char *text);

/* --- index_run.c: of engine_index_ops; and its threads are asked to end, and let go once they have */
int pg_index_build(struct engine *e, const struct engine_index *want, struct engine_progress *progress, struct arena *a,
                   const char **ret_why);
void pg_index_tasks_stop(struct engine *e);
void pg_index_tasks_free(struct engine *e);

/* --- inspect.c: of engine_statistics_ops */
void pg_stats(struct engine *e, struct engine_stats *ret_stats);
void pg_node_observe(struct pg_cluster *c, const struct pg_node *n, struct node_status *ret); /* with cluster.lock */
int pg_databases(struct engine *e, const char *cluster_id, const char *node, struct arena *a, struct str **ret_names,
                 size_t *ret_count);
/* The cluster with a reference, and the node as it is now, to be asked without a lock. -ENOENT. */
int pg_node_get(struct engine *e, const char *cluster_id, const char *name, struct pg_cluster **ret_cluster,
                struct pg_node *ret_node);
int pg_partitions(struct engine *e, const char *cluster_id, const char *node, struct arena *a, struct str **ret_names,
                  size_t *ret_count);
int pg_tables_check(struct engine *e, const char *cluster_id, const char *node, const struct str *names, size_t count,
                    bool *ret_there);
void pg_partition_name(dev_t device, char *ret_name, size_t size);
int pg_sent(struct engine *e, const char *cluster_id, struct arena *a, struct engine_sent **ret_list,
            size_t *ret_count);

/* --- measure.c */
extern const struct engine_sampling_ops pg_sampling;
void pg_measures_free(struct engine *e); /* the connections that were kept for it */

/* --- grants_sql.c: its scripts */
extern const char pg_grants_sql_quiet[], pg_grants_sql_roles_lock[], pg_grants_sql_clear[], pg_grants_sql_revoke[],
        pg_grants_sql_faults[], pg_grants_sql_bar[], pg_grants_sql_roles[], pg_grants_sql_strangers[],
        pg_grants_sql_sessions[], pg_grants_sql_installed[], pg_grants_sql_prepare[], pg_grants_sql_direct[],
        pg_grants_sql_version[], pg_grants_sql_noted[], pg_grants_sql_oids[], pg_grants_sql_notes[],
        pg_grants_sql_note[], pg_grants_sql_template_done[], pg_grants_sql_template[], pg_grants_sql_lost_roles[],
        pg_grants_sql_lost_count[], pg_grants_sql_lost[], pg_grants_sql_lost_done[];
extern const char *const pg_grants_sql_install[]; /* up to NULL */

/* --- groups_sql.c: what groups own and were granted; scripts too */
extern const char pg_grants_sql_owners[], pg_grants_sql_definers[], pg_grants_sql_surplus[], pg_grants_sql_to_come[],
        pg_grants_sql_databases[];

/* --- archive.c: the log of clusters that have backups, into the repository */
void pg_archive_configure(struct buf *b, const struct pg_cluster *c, const struct pg_node *n); /* a node's lines */
/* All log that lies on the disk of a node that does not run is in the repository, or put aside for it: before anything
 * rewinds the node or takes it away. Never waits for the repository. 0 too where nothing is archived. */
int pg_archive_drain(struct pg_cluster *c, struct pg_node *n);
/* Until the repository has the set's log up to there. -ETIMEDOUT; -ENODATA: it never will, there is a gap. */
int pg_archive_wait(struct pg_cluster *c, const struct pg_set *s, unsigned timeline, uint64_t lsn, int timeout_ms);
/* What PostgreSQL is told to recover to, for one set. */
struct pg_target {
	unsigned timeline;
	uint64_t lsn;    /* up to and with what ends there; 0: by time */
	int64_t time_us; /* up to and with what was committed then; all of it, where nothing is later */
	uint64_t least;  /* the position that it must have reached, or has not what it should have */
	uint64_t end;    /* log up to here is needed; 0: up to the target and a little more */
};
/* -ENOENT: the set cannot be brought to that point, by the snapshot or at all. */
int pg_archive_resolve(struct engine *e, const struct engine_source *of, const struct engine_point *point,
                       const char *set, struct pg_target *ret_target, const char **ret_why);
/* Segments and histories from a position to the target, as files in `directory`, which the nodes' user owns. Copies,
 * never links: PostgreSQL writes into them. -ENOENT: one is missing, and *ret_why says which. */
int pg_archive_fetch(struct engine *e, const struct engine_source *of, const char *set, unsigned timeline, uint64_t lsn,
                     const struct pg_target *to, const char *directory, const char **ret_why);
/* The same for a server that recovers meanwhile: the first of it is there on return, the rest comes a bounded way ahead
 * of what it has replayed, and nothing that is behind the target's position. */
struct pg_fetch;
int pg_fetch_begin(struct engine *e, const struct engine_source *of, const char *set, unsigned timeline, uint64_t lsn,
                   const struct pg_target *to, const char *directory, struct pg_fetch **ret_fetch,
                   const char **ret_why);
/* Whether more is on its way, to a server that has come that far; NULL: there was nothing to fetch. */
bool pg_fetch_runs(struct pg_fetch *p, uint64_t replayed);
bool pg_fetch_failed(const struct pg_fetch *p);
/* Stops one that runs, which is -ECANCELED and has no reason, and tells what became of it: 0, all was there. */
int pg_fetch_end(struct pg_fetch *p, const char **ret_why);
/* One point that all sets share is in the log of each. Of a cluster with one set, its position. */
int pg_checkpoint_make(struct pg_cluster *c, struct arena *a, struct engine_checkpoint *ret_checkpoint,
                       const char **ret_why);
void *pg_archive_run(void *engine); /* a thread, until the engine stops */
void pg_archive_free(struct pg_cluster *c);
void pg_archive_hurry(struct pg_cluster *c); /* there is something to do for it now */
void pg_archive_last(struct pg_cluster *c);  /* its nodes are gone, its directory not yet */
/* Until nobody reads its files for it, but not for long; of a cluster that is not looked at any more. */
void pg_archive_settle(struct pg_cluster *c);
/* Of engine_backup_ops. */
int pg_backup_window(struct engine *e, const struct engine_source *of, struct arena *a, struct engine_window **ret_list,
                     size_t *ret_count);
int pg_backup_checkpoints(struct engine *e, const struct engine_source *of, int64_t from_ms, int64_t to_ms, size_t max,
                          struct arena *a, struct engine_checkpoint **ret_list, size_t *ret_count);
int pg_backup_position(struct engine *e, const struct engine_source *of, int64_t time_ms,
                       struct engine_position *ret_position, uint64_t *ret_second_lsn);
int pg_backup_archive(struct engine *e, const char *cluster_id, struct arena *a, struct engine_archive *ret_archive);
int pg_backup_prove_log(struct engine *e, const char *region, const struct repo_keep_wal *of);
int pg_backup_check_log(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                        struct repo_check *seen);

/* --- backup.c */
extern const struct engine_backup_ops pg_backup;
/* Counted, as repository_get(). -ENOTSUP: there are no repositories. */
int pg_repository_get(struct engine *e, const char *region, const char *group_id, struct repository **ret_repository,
                      const char **ret_why);

/* --- pages.c */
/* Whether a block of a relation is as it was written: not used yet, or newer than `lsn`, so that its log brings it
 * again, or with the checksum that it should have. */
bool pg_page_is_sound(const void *page, uint32_t block, uint64_t lsn);

/* --- snapshot.c: of engine_backup_ops */
int pg_backup_snapshot(struct engine *e, const struct engine_source *to, struct engine_progress *progress,
                       struct arena *a, struct engine_snapshot *ret_snapshot, const char **ret_why);
/* The sets of a snapshot; -ENOENT: there is none, or not all of it. */
int pg_snapshot_sets(struct repository *repository, const struct engine_source *of, struct arena *a,
                     struct str **ret_sets, size_t *ret_count);
/* A position among a snapshot's facts: "start", "stop" or "position", the point that it brings back. */
uint64_t pg_lsn_of(const json_t *facts, const char *name);

/* --- image.c: the newest snapshot's files beside the databases, see there */
/* The directory of a set's, or negative: there is none. */
int pg_image_open(const struct engine *e, const struct engine_source *of, const char *set);
void pg_image_forget(struct engine *e, const struct engine_source *of);
void pg_images_sweep(struct engine *e, const char *region, const char *group_id, const struct repo_keep *keep);
void pg_images_spare(struct engine *e); /* none is left, when little space is */

/* --- throwaway.c: servers on restored files, for nobody but the service */
struct pg_throwaway {
	struct engine *engine;
	const struct pg_user *user;
	char dir[PG_PATH], run[PG_PATH]; /* the files are in DIR/data */
	unsigned version;
	struct pg_node node; /* its port alone */
	uint64_t memory;     /* that each of its processes may take, beside the locks'; 0: as much as there is */
	pid_t pid;
	int pidfd;
};
/* An empty DIR/data, in place of what was there. */
int pg_throwaway_begin(struct engine *e, const struct pg_user *user, const char *dir, unsigned version,
                       const char *cluster_id, struct pg_throwaway *t);
/* In a directory of its own, encrypted as that cluster is, as the project's user. */
int pg_throwaway_new(struct engine *e, const struct engine_source *of, unsigned version, struct pg_throwaway *t);
/* -ENOSPC: with that many bytes more the databases' disk would be full. */
int pg_throwaway_room(const struct engine *e, uint64_t bytes);
/* Whatever runs there ends, and nothing is left. */
int pg_throwaway_end(struct pg_throwaway *t);
void pg_throwaway_leave(struct pg_throwaway *t); /* but the files */
void pg_throwaways_sweep(struct engine *e);      /* of a service that was killed */
/* It is gone from its place at once, and from the disk later: thousands of files take seconds. */
int pg_tree_discard(struct engine *e, const char *path);
/* No log behind that position is left in its pg_wal. */
int pg_throwaway_cut(struct pg_throwaway *t, unsigned timeline, uint64_t lsn, uint64_t segment);
/* Whether somebody has asked for its end. */
struct pg_stop {
	bool (*asked)(void *ctx);
	void *ctx;
	/* Whether more log is on its way to its pg_wal, of which it has replayed that much; NULL: none is. */
	bool (*comes)(void *ctx, uint64_t replayed);
};
/* Starts it, recovers all log that lies there or comes, or up to the target's time, and makes it writable. It has
 * reached target.least, or it is an error. `stop` may be NULL. */
int pg_throwaway_recover(struct pg_throwaway *t, const json_t *facts, const struct pg_target *to,
                         const struct pg_stop *stop, const char **ret_why);
int pg_throwaway_open(const struct pg_throwaway *t, const char *database, PGconn **ret_conn);
int pg_throwaway_halt(struct pg_throwaway *t); /* cleanly */
/* The snapshot's own point. */
void pg_snapshot_target(const json_t *facts, struct pg_target *ret_target);
/* Names of files of the log. */
void pg_segment_name(unsigned timeline, uint64_t lsn, uint64_t segment, char ret_name[25]);
bool pg_segment_is(const char *name);

/* --- drill.c, export.c: of engine_backup_ops */
int pg_backup_prove(struct engine *e, const struct engine_source *of, bool start, struct engine_progress *progress,
                    struct arena *a, struct engine_proof *ret_proof, const char **ret_why);
int pg_backup_export(struct engine *e, const struct engine_source *of, const struct engine_export *to,
                     struct engine_progress *progress, struct arena *a, const char **ret_why);

/* --- restore.c */
int pg_backup_restore(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                      const struct engine_cluster *want, const struct engine_access *access, const _Atomic bool *cancel,
                      struct engine_progress *progress, struct arena *a, const char **ret_why);
/* Ends what a crash cut short: back to the old data, or on to the new. With cluster.work held. */
int pg_restore_resume(struct pg_cluster *c);
void pg_restore_recall(struct pg_cluster *c); /* the same when the service starts, before anything is supervised */
int pg_restore_sweep(struct pg_cluster *c, struct pg_node *n); /* nothing of one that was cut short is left */
void pg_restore_tidy(struct pg_cluster *c);                    /* old data that nobody needs any more */

/* --- renew.c */
/* It runs a program that was replaced. */
bool pg_node_is_behind(const struct pg_node *n);
bool pg_behind(struct engine *e, const char *cluster_id);

/* --- log.c */
int pg_log_stream(struct pg_cluster *c, const struct engine_log *log, int *ret_fd);

/* --- log_node.c: of engine_log_ops */
int pg_log_follow_node(struct engine *e, const struct engine_log *log, struct engine_log_range *range,
                       engine_log_take *take, void *ctx);
int pg_log_end_node(struct engine *e, const struct engine_log *log, struct engine_log_place *ret_place);
int pg_logins(struct engine *e, const struct engine_logins *wanted, struct arena *a, struct engine_login **ret_list,
              size_t *ret_count);

/* --- log_follow.c: the same of the directory of a log */
int pg_log_range(const char *directory, const struct engine_log *log, struct engine_log_range *range,
                 engine_log_take *take, void *ctx);

/* --- logins.c: likewise */
int pg_logins_read(const char *directory, const struct engine_logins *wanted, struct arena *a,
                   struct engine_login **ret_list, size_t *ret_count);

#endif
