/* Processes and what is measured of them: what the service starts, and what other families may read. */
#ifndef STEWARD_API_METRICS_METRICS_H
#define STEWARD_API_METRICS_METRICS_H

#include "api/clusters/clusters.h"
#include "call/service.h"
#include "engine/engine.h"
#include "jobs/jobs.h"

/* The path's process, of a cluster of the path's project. 1: its host answers the call instead. */
must_check int process_find(struct call *c, struct cluster *ret_cluster, struct node_status *ret_node);
/* The same also of a cluster on another host, which is asked. Not for a loop. */
must_check int process_find_anywhere(struct call *c, struct cluster *ret_cluster, struct node_status *ret_node);
/* The refusal of a call that needs an answer of the process. */
int process_silent(struct call *c, const struct node_status *node);

/* Takes samples of this host's nodes: every ten seconds of the service's clock, on a thread of its own, into series
 * below DIR/series. Where the engine needs no samples there is no thread. `days`: of series_sizes_parse(). On failure:
 * a message on stderr, negative. */
struct sampler;
must_check int sampler_start(struct service *s, const char *days, struct sampler **ret_sampler);
void sampler_stop(struct sampler *s); /* accepts NULL */

/* Judges what was measured by alert configurations, each minute. */
extern const struct job_kinds metrics_jobs;

/* What is measured: a process, or one of its databases, disks or tables. */
struct measured {
	const char *cluster_id, *node, *name;
	enum measure_subject subject;
	int64_t since_ms; /* nothing is known of times before */
};

/* Values of some columns for the intervals that begin in [from_ms, to_ms), as series_read(). Intervals before those
 * that are kept, and that are still to come, are not to be asked for: measured_clip(). -ENOENT: it was never
 * measured. Not for a loop. */
must_check int measured_read(const struct service *s, const struct measured *of, enum series_level level,
                             int64_t from_ms, int64_t to_ms, const unsigned *columns, size_t count, float *ret_values);
void measured_clip(const struct service *s, const struct measured *of, enum series_level level, int64_t *from_ms,
                   int64_t *to_ms);
/* Whether something was ever measured of it. */
bool measured_is_known(const struct service *s, const struct measured *of);
/* The names of the tables of a node of which something is known, and how many. Not for a loop. */
size_t measured_tables(const struct service *s, const char *cluster_id, const char *node, struct arena *a,
                       struct str **ret_names);
/* The finest intervals of which there are a few hundred at most in that time, and that are kept for so long. */
enum series_level measured_level(const struct service *s, int64_t from_ms, int64_t to_ms);

/* Links of a cluster to what is known of its tables. */
extern const struct cluster_part metrics_part;

/* expose.c: what was last measured of a process of this host, and of its databases and disks, in the text format of
 * Prometheus. Kept until the next sample. `process` is host:port. -ENOENT: the cluster has no such process. In a read;
 * not for a loop. */
must_check int process_expose(const struct service *s, struct tx *tx, struct arena *a, struct str cluster_id,
                              struct str process, struct str *ret_text);
/* Another host's question for it, "?CLUSTER/HOST:PORT": the path, and who answers it. */
#define METRICS_EXPOSED "/hosts/exposed"
void metrics_exposed(struct service *s, struct request *r);

/* activity.c: GET .../processes/{processId}:activity and :vacuum, what its sessions do and wait for, and how vacuum
 * keeps up. Beside the catalog; they pass the same gates. DELETE :activity ends a session or a statement of it:
 * session_end.c. */
bool activity_is_path(struct str path);
bool activity_is_change(const struct request *r);
void activity_serve(struct service *s, struct request *r);
/* Another host's question to end a session: the path, with "CLUSTER,NODE,PID,BEGINNING,STATEMENT" as its query, the
 * last two in milliseconds (0: no statement alone), and who answers it. */
#define SESSION_ENDED "/hosts/session"
void process_session_ended(struct service *s, struct request *r);

#endif
