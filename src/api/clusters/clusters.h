/* Clusters as they are kept: the document, in the current form (ClusterDescription20240805) without links, and beside
 * it, where documents have what never leaves, the plan:
 *
 *   {"label": "ab12cd", "hash": "x1y2z3", "generation": 3, "applied": 2, "type": "SHARDED",
 *    "independent": true, "nodes": [...], "host": "6740...", "room": {...}}
 *
 * "search", of nodes for searching: {"id", "specs": [{"cloudProvider", "regionName", "instanceSize", "nodeCount"}]}.
 *
 * Each change that the engine must make counts the generation up and asks for a job; the job notes the generation that
 * it has applied, and as which type of cluster. Independent: its shards scale on their own. */
#ifndef STEWARD_API_CLUSTERS_CLUSTERS_H
#define STEWARD_API_CLUSTERS_CLUSTERS_H

#include "api/clusters/connection_strings.h"
#include "base/option.h"
#include "call/call.h"
#include "call/service.h"
#include "engine/engine.h"
#include "jobs/jobs.h"

#define CLUSTER_KIND "cluster"
#define FLEX_KIND "flex_cluster"          /* kept the same way, in a list of its own */
#define CLUSTER_LABEL_REF "cluster_label" /* from the label in host names to the cluster's id */
#define CLUSTER_JOB "cluster"             /* makes a cluster what its document says, or takes it away */

/* One cluster in hand; body and plan are freed with the arena. */
struct cluster {
	struct doc doc;
	json_t *body, *plan;
};

/* The path's {clusterName}, or another one of the call's project. -ENOENT. */
must_check int cluster_load(struct call *c, struct cluster *ret_cluster);
must_check int cluster_load_named(struct call *c, struct str name, struct cluster *ret_cluster);
/* The one of the call's project whose label the host's name begins with. */
must_check int cluster_of_host(struct call *c, struct str host, struct cluster *ret_cluster);
must_check int cluster_get(struct tx *tx, struct arena *a, struct str id, struct cluster *ret_cluster);

/* A document that was read already. */
struct cluster cluster_of(struct arena *a, const struct doc *d);

/* A new one of a kind, from a body that was checked and identified: label, plan, host, insert, job. -EEXIST: the
 * project has a cluster of that name, of whatever kind. -EDQUOT: no host takes it, and *ret_why says why. */
must_check int cluster_insert(struct tx *tx, struct arena *a, const char *kind, struct str group_id, json_t *body,
                              bool independent, struct cluster *ret_cluster, struct str *ret_why);
/* -EEXIST: the name is taken, by a cluster of whatever kind. */
must_check int cluster_name_check(struct tx *tx, struct arena *a, struct str group_id, struct str name);
/* To the end of the other kind's list, under the same id; not yet saved otherwise. */
must_check int cluster_move(struct tx *tx, struct arena *a, struct cluster *cluster, const char *kind);
/* Writes body and plan back. */
must_check int cluster_save(struct tx *tx, struct arena *a, struct cluster *cluster);
/* The same for a change that the engine must make: nodes anew, state, generation, job. State NULL: it is being updated,
 * or still created. */
must_check int cluster_change(struct tx *tx, struct arena *a, struct cluster *cluster, const char *state);
/* What hangs on it, its label and itself: gone. */
must_check int cluster_remove(struct tx *tx, struct arena *a, struct cluster *cluster);

/* Major version as a number; 0 when the text is none. names: NAME=MAJOR each, or NULL. */
unsigned cluster_version(const struct option_texts *names, const json_t *cluster);
bool cluster_is(const struct cluster *cluster, const char *state);
/* Whether it is UPDATING for another reason than a change of it: the plan's "restoring", or "indexing", a list of the
 * builds under way. */
bool cluster_is_worked_on(const struct cluster *cluster);
/* Whether a cluster's document is of one with shards and routers. */
bool cluster_is_sharded(const json_t *cluster);
/* The regions of a cluster's document, shard by shard; NULL at the end. */
struct region_walk {
	size_t spec, next; /* the shard of the region that was returned last */
};
json_t *region_next(const json_t *cluster, struct region_walk *walk);
/* The set that a node belongs to: "ab12cd-shard-00" of "ab12cd-shard-00-01". Borrowed. */
struct str node_set(const struct node_status *n);
/* Asks for the cluster's job once more: what its surroundings say of it may have changed. Also for a walk. */
must_check int cluster_reconcile(struct tx *tx, struct str cluster_id);
doc_visit cluster_look_again;

/* Every cluster of a project, of all kinds, dedicated ones first. */
must_check int clusters_walk_group(struct tx *tx, struct arena *a, struct str group_id, doc_visit *visit, void *ctx);

/* Every cluster of the service, kind by kind and in each project by project. The document is the visitor's for the call
 * only. */
must_check int clusters_walk(struct tx *tx, doc_visit *visit, void *ctx);

/* A project's certificate authority: its databases' certificates and those that the API issues to database users are of
 * it. Kept in the store, the key sealed, so that it is the same on every engine, in every backup, and gone with the
 * project. */

#define AUTHORITY_KIND "project_ca"

struct authority {
	struct str certificate, key; /* PEM; NUL-terminated */
	struct str earlier;          /* certificates of those before it; what they signed is good until it ends */
	bool is_new;                 /* made by this very write */
};

/* -ENOENT: none was needed yet. */
must_check int authority_load(struct tx *tx, struct arena *a, struct str group_id, struct authority *ret_authority);
/* In a write: the same, and makes one where there is none, or where it ends within two years: nothing that it signs
 * shall be cut short. */
must_check int authority_ensure(struct tx *tx, struct arena *a, struct str group_id, struct authority *ret_authority);

/* Its certificate and those before it, in PEM: what clients know the project's databases by. -ENOENT. */
must_check int authority_certificates(struct tx *tx, struct arena *a, struct str group_id, struct str *ret_pem);

/* Once a day every cluster is looked at again, which is when certificates that end soon are issued anew. */
#define AUTHORITY_SCAN_JOB "certificate_scan"
#define AUTHORITY_SCAN_MS 86400000LL
int authority_scan_step(struct job_run *r);

/* How users, roles and access lists reach the databases. A change asks, in its own transaction, for a job on each
 * cluster that it concerns; the call's answer waits for the jobs (jobs/waits.h). Should it have waited too long, a
 * change that takes rights away is answered with 503, because they may still be had. The jobs are rows: what the answer
 * did not wait for is done nevertheless. */

#define ACCESS_JOB JOB_PASSES
#define ACCESS_ATTEMPTS 100000u /* a database that is out of reach today may be back tomorrow */

/* In a call's write: who may do what in the project's databases has changed. `users`: the documents of database users,
 * as they were and are, whose clusters alone are concerned; none: all clusters. */
must_check int access_changed(struct call *c, const json_t *const *users, size_t count);
/* The same about one cluster. */
must_check int access_changed_cluster(struct call *c, const struct cluster *cluster);
/* The same outside a call: nobody waits. */
must_check int access_ask(struct tx *tx, struct arena *a, struct str group_id);

/* In a write that asks for the cluster's own job: one of ours that waits for another attempt does not keep it
 * waiting. */
must_check int access_retry_now(struct tx *tx, struct arena *a, struct str cluster_id);

enum access_state { ACCESS_ACTIVE, ACCESS_PENDING, ACCESS_FAILED };
/* Whether the project's running clusters have what was last asked for. */
must_check int access_state(struct tx *tx, struct arena *a, struct str group_id, enum access_state *ret_state);

/* Of the kind ACCESS_JOB, with the cluster as the subject. */
int access_step(struct job_run *r);

/* The mark that no node of a cluster takes clients, so that changes need not wait for it. Whoever lets clients in takes
 * it away first, and reads what is to be applied then. */
must_check int access_is_shut(struct tx *tx, struct arena *a, struct str cluster_id, bool *ret_shut);
must_check int access_shut_set(struct tx *tx, struct str cluster_id, bool shut);

/* Whether a user's scopes take in a cluster of that name. */
bool database_user_in_scope(const json_t *user, struct str cluster_name);

/* Who may connect to a cluster: the access list and the users in force whose scope takes in its name. */
must_check int cluster_access_load(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
                                   struct engine_access *ret_access);

/* At the start, once: a job for each cluster, so that the engine finds again what there is. */
must_check int clusters_adopt(struct store *store);
/* For the test control's reset: collect before the wipe, destroy after it. */
must_check int clusters_collect(struct store *store, struct arena *a, struct str **ret_ids, size_t *ret_count);
void clusters_destroy(struct service *s, const struct str *ids, size_t count);

/* The job's cluster, with the store left alone again. 1: it is going or paused, and not to be worked on. */
must_check int cluster_of_job(struct job_run *r, struct cluster *ret_cluster);
/* What an engine tells of its progress, into the job's row. */
struct engine_progress cluster_progress(struct job_run *r);
/* 409. */
must_check int cluster_refuse_deleting(struct call *c, const struct cluster *cluster);
must_check int cluster_refuse_paused(struct call *c, const struct cluster *cluster);
/* The engine in use has no such capability. */
int cluster_not_offered(struct call *c);

/* What belongs to a cluster and is kept by another family attaches here; edge/families.c lists the parts. Each hook may
 * be NULL; they return 0 or negative. */
struct cluster_want {
	struct engine_cluster engine;
	bool peered; /* clients in peered networks have connection strings of their own */
	const struct connection_endpoint *endpoints;
	size_t endpoint_count;
};
/* What the engine has of a cluster. */
struct cluster_sighting {
	const struct engine_node *nodes; /* as they were made; NULL: not known, a change is under way */
	size_t node_count;
	const struct cluster_status *status; /* without nodes: it is gone */
	int64_t at_ms;                       /* when it came to be so */
};
struct cluster_part {
	/* In the write that makes a cluster, that changes what is wanted of it, and that takes it away. */
	int (*created)(struct tx *tx, struct arena *a, const struct cluster *cluster);
	int (*changed)(struct tx *tx, struct arena *a, const struct cluster *cluster);
	int (*removed)(struct tx *tx, struct arena *a, const struct cluster *cluster);
	/* In a read, before the engine is told: what the part wants of the nodes, and who may connect to them. */
	int (*wanted)(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want);
	int (*access)(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
	              struct engine_access *access);
	/* On the cluster's host, outside of a transaction: when who may connect was told to the engine, and (reader
	 * NULL) when the cluster is gone. A failure is one of the job, which tries again: who was taken out may still
	 * get there. */
	int (*applied)(const struct service *s, struct tx *reader, struct arena *a, struct str cluster_id);
	/* In the write that notes what the engine has made. Maintained: it was asked to bring all up to date. */
	int (*converged)(struct tx *tx, struct arena *a, const struct cluster *cluster, bool maintained);
	/* In a write, whenever it was looked what there is of the nodes, whatever is wanted of them by now. */
	int (*observed)(struct tx *tx, struct arena *a, const struct service *s, const struct cluster *cluster,
	                const struct cluster_sighting *sighting);
	/* More links of a cluster that was just written alone, by entity_link_op(). */
	void (*links)(struct call *c, const struct doc *cluster);
	/* In a call: what the part does not allow a cluster to be, as faults. */
	int (*rules)(struct call *c, const json_t *cluster, struct faults *faults);
	/* In a read, before a log is read. */
	int (*log)(struct tx *tx, struct arena *a, struct str group_id, struct engine_log *log);
};
/* In a read: the cluster as the engine shall have it, and who may connect to it. */
must_check int cluster_want_load(const struct service *s, struct tx *tx, struct arena *a, const struct cluster *cluster,
                                 struct cluster_want *ret_want, struct engine_access *ret_access);
/* Has the parts do what they do when access was applied. The first failure of one. */
int cluster_applied(const struct service *s, struct tx *reader, struct arena *a, struct str cluster_id);
/* In a write: tells the parts what was seen. */
must_check int cluster_observed(struct tx *tx, struct arena *a, const struct service *s, const struct cluster *cluster,
                                const struct cluster_sighting *sighting);
/* The nodes as they are to be; and as the engine was last told to have them: none, while it has yet to be told of a
 * change. */
size_t cluster_planned_nodes(struct arena *a, const struct cluster *cluster, const struct engine_node **ret_nodes);
size_t cluster_applied_nodes(struct arena *a, const struct cluster *cluster, const struct engine_node **ret_nodes);
extern const struct cluster_part *const cluster_parts[];
extern const size_t cluster_part_count;

extern const struct job_kinds cluster_jobs;

/* Clusters whose disk is full, from the engine to the project's events, the cluster's status and the metrics. */

/* engine_options.full_changed, with the service. */
void disk_changed(void *service, const char *cluster_id, enum engine_full full);
/* Says in X-Steward-Progress that the disk is full, and what to do about it. Nothing where it is not. */
void cluster_disk_header(struct call *c, const struct cluster *cluster);
/* A part of cluster_metrics_write(). */
void disk_metrics(struct buf *b, struct service *s);

/* What /metrics tells of clusters, nodes and jobs, beside trail/metrics.h. */

/* Counts what is in the store, now and then. On the main thread, with its reader. */
void cluster_metrics_refresh(struct tx *reader);
/* service.metrics_more: from any thread; touches no store. */
void cluster_metrics_write(struct buf *b, struct service *s);

/* Data of a cluster that should be there and is not: what the store knows of it, and giving it up. */

/* The plan has, beside what is told above:
 *
 *   "made": {"0": "7433…"}   what each set's data is, once it was made; absent in plans of older versions
 *   "missing": true          it is not there; the event was written
 *   "giveUp": true           the operator wants what is missing to be made anew, empty */

/* Into what is wanted of the engine. */
void made_load(struct arena *a, const struct cluster *cluster, bool applied, struct engine_cluster *want);
/* From what was reached; whether the plan has changed. */
bool made_note(struct cluster *cluster, const struct cluster_status *status);

/* The cluster's data is missing: an event, the first time. Or it is no more: the marks go, with events. Neither
 * saves. */
must_check int missing_begin(struct tx *tx, struct arena *a, struct cluster *cluster, const char *why);
must_check int missing_end(struct tx *tx, struct arena *a, struct cluster *cluster);

/* An event of the service about the cluster, with a detail of that name unless `text` is empty. */
must_check int cluster_event(struct tx *tx, struct arena *a, const char *type, const char *severity,
                             const struct cluster *cluster, const char *name, struct str text);

/* For the operator's command: by id, or by a name that is one cluster's alone. */
struct given_up {
	struct str id, name, group_id, why;
};
/* -ENOENT: there is none. -EEXIST: several have the name. -EINVAL: its data is not missing. With `really`, in a write,
 * it is given up; without, only looked at. */
must_check int cluster_give_up(struct tx *tx, struct arena *a, struct str cluster, bool really,
                               struct given_up *ret_given);

/* Clusters as their hosts see them: from this host's engine, or asked from the host that has them. */

/* The host of a cluster; empty where clusters belong to no host. */
struct str cluster_host(const struct cluster *cluster);
/* -status, with the problem written, when its host does not answer. */
must_check int cluster_observe(struct call *c, const struct cluster *cluster, struct cluster_status *ret_status);
struct cluster_sight {
	struct doc doc;  /* without its texts */
	struct str host; /* another one, which was asked; else empty */
	struct cluster_status status;
};
/* All clusters of the call's project, dedicated ones first; what hosts tell is in the arena. ret_away: the names of
 * hosts that did not answer, whose clusters have no nodes then; NULL: that is a 503. */
must_check int clusters_observe(struct call *c, struct arena *a, struct cluster_sight **ret_list, size_t *ret_count,
                                struct str *ret_away);
/* Those of the list, by the ids and hosts that it has. Only on a worker, where clusters are on several hosts. */
must_check int clusters_look(struct call *c, struct arena *a, struct cluster_sight *list, size_t count);
/* Another host's question: the path, and who answers it. */
#define CLUSTERS_OBSERVED "/hosts/clusters"
void clusters_observed(struct service *s, struct request *r);
/* When the cluster is on another host: passes the call on to it, and *ret_forwarded is true. */
must_check int cluster_forward(struct call *c, const struct cluster *cluster, bool *ret_forwarded);

/* In the write that makes a cluster, changes its nodes, or takes it away: which host it is on, and what it stands for
 * there. -EDQUOT: no host takes it, and *ret_why says why. */
must_check int cluster_place(struct tx *tx, struct arena *a, struct cluster *cluster, struct str *ret_why);
/* The same for a cluster that a call has given another body: 409, with the problem written, when it cannot grow so. */
must_check int cluster_place_check(struct call *c, const struct cluster *cluster);
must_check int cluster_place_change(struct tx *tx, struct arena *a, struct cluster *cluster);
must_check int cluster_place_end(struct tx *tx, struct arena *a, const struct cluster *cluster);
/* At the start: what this host's clusters stand for, counted anew. */
must_check int clusters_place_count(struct store *store);
/* Databases of this host that the store does not know; orphans.c. */
#define ORPHAN_KIND "orphan"
/* Looks, and notes what it finds in the store and in the log. */
must_check int orphans_look(struct service *s);
void orphans_metrics(struct buf *b);
/* The operator's word: the service ends it. -ENOENT: it was not found as one; -EEXIST: the store knows it. */
must_check int orphan_end(struct tx *tx, struct arena *a, struct str id);
/* For jobs_options: whether the job is on a cluster that another host has. */
bool cluster_job_host(struct job_run *r, struct str *ret_host);
/* In a store that was copied, before it is used: binds the clusters, and the jobs on them, to the host that they come
 * from (its id; empty: the one that each of them names). `shared`: several processes will use it; else all must be on
 * one host, because the others' databases could not be reached. Where engines have no hosts it does nothing. On
 * failure: a message on stderr, negative. */
must_check int clusters_settle(struct store *store, struct str host, bool shared);

/* What befalls clusters by itself, from the engine to the project's events. */

/* engine_options.changed, with the service. */
void watch_changed(void *service, const char *cluster_id);
/* In a write: the cluster's nodes are held against what was last told. Nothing where the engine has no real nodes. */
must_check int watch_ask(struct tx *tx, struct arena *a, const struct service *s, struct str cluster_id);
int watch_step(struct job_run *r);
#define WATCH_JOB "cluster_watch"
#define WATCH_KIND "cluster_watch"

#endif
