/* What the simulated engine holds, for its own files. */
#ifndef STEWARD_ENGINE_SIMULATED_STATE_H
#define STEWARD_ENGINE_SIMULATED_STATE_H

#include "base/id.h"
#include "engine/engine.h"

#include <pthread.h>

#define SIM_BUCKETS 1024
#define SIM_TELL_MS 500

enum sim_change {
	SIM_NONE,
	SIM_CREATE,
	SIM_UPDATE,
	SIM_DELETE,
	SIM_SAMPLE,
	SIM_ACCESS,
	SIM_SNAPSHOT,
	SIM_RESTORE,
	SIM_DRILL,
	SIM_INDEX,
	SIM_SEARCH,     /* a search index that answers queries is gone */
	SIM_LAKE,       /* rows move to an online archive */
	SIM_TABLE,      /* a table that rows are archived from is gone */
	SIM_FEDERATION, /* a federated database instance is changed */
	SIM_CHANGES
};

/* What a node was from a moment on: history.c. */
struct sim_moment {
	char node[64];
	int64_t from_ms;
	bool running, primary;
};

struct sim_cluster {
	struct sim_cluster *next;
	char id[ID_LEN + 1];
	struct node_status *nodes;
	size_t node_count;
	unsigned patch; /* of its minor version */
	unsigned shards;
	bool slow_fixed;
	uint64_t shape; /* hash of what was last wanted and reached */
	bool exists;
	enum sim_change change; /* under way */
	uint64_t changing_to;
	int64_t from_ms, until_ms;
	struct sim_moment *moments; /* oldest first */
	size_t moment_count, moment_room;
	/* The index that is being built: index.c. */
	char index_id[ID_LEN + 1];
	int64_t index_from_ms, index_until_ms;
};

struct sim_backups;    /* backup.c */
struct sim_federation; /* federation.c */
struct sim_lake;       /* lake.c */

struct engine {
	pthread_mutex_t lock;
	struct sim_cluster *buckets[SIM_BUCKETS];
	char domain[104];
	double seconds, standard_seconds; /* of a creation: now, and as started */
	unsigned fail[SIM_CHANGES];
	unsigned patch;          /* of the newest minor version */
	char away[48];           /* region whose repository is */
	uint64_t download_bytes; /* of a file beside, in downloads */
	struct sim_backups *backups;
	struct sim_lake *lakes; /* online archives, also of clusters that are gone */
	struct sim_federation *federations;
	const struct data_keys *keys; /* of projects; may be NULL */
};

/* With the lock held. NULL: there is none. */
struct sim_cluster *sim_cluster_find(struct engine *e, const char *id);
/* Whether the test control wants this one to fail; counts it. With the lock held. */
bool sim_told_to_fail(struct engine *e, enum sim_change change);

/* --- backup.c */
struct sim_backups *sim_backups_new(void);
void sim_backups_free(struct sim_backups *b);
/* The cluster is as wanted by now; with the lock held. */
void sim_archive_note(struct engine *e, const struct engine_cluster *want);
/* The cluster is gone; its log stays. */
void sim_archive_end(struct engine *e, const char *cluster_id);
extern const struct engine_backup_ops sim_backup;

/* --- tar.c */
/* A data directory with that label, and a file of so many zeros, as a tar. */
int sim_tar_write(const char *label, uint64_t zeros, objects_write *write, void *ctx);

/* --- history.c */
/* The nodes are as they are since then; with the lock held. */
void sim_moments_note(struct sim_cluster *s, int64_t from_ms);
/* What the node was then. False: there is no such node. One that was not there yet did not run. */
bool sim_moment_at(struct engine *e, const char *cluster_id, const char *node, int64_t time_ms,
                   struct sim_moment *ret_moment);
/* A number from 0 to 1, the same for the same arguments. */
double sim_chance(const char *node, const char *name, unsigned column, int64_t minute);
extern const struct engine_history_ops sim_history;
/* Where between the lowest and the highest a value is at that time. */
double sim_share(const char *node, const char *name, unsigned column, int64_t time_ms);

/* --- collections.c */
const char *const *sim_tables(size_t *ret_count);
void sim_tables_find(const struct str *wanted, size_t count, bool *ret_there);
/* A column of MEASURE_TABLE, of a node that runs and is what the moment says. */
double sim_table_at(const struct sim_moment *m, const char *node, const char *name, int64_t time_ms, unsigned column);

/* --- index.c */
extern const struct engine_index_ops sim_index;
/* --- federation.c */
void sim_federations_free(struct engine *e);
extern const struct engine_federation_ops sim_federation;
/* --- lake.c */
void sim_lakes_free(struct engine *e);
extern const struct engine_lake_ops sim_lake;
/* --- log.c: of engine_log_ops */
int sim_log_open(struct engine *e, const struct engine_log *log, int *ret_fd);
int sim_log_follow(struct engine *e, const struct engine_log *log, struct engine_log_range *range,
                   engine_log_take *take, void *ctx);
int sim_log_end(struct engine *e, const struct engine_log *log, struct engine_log_place *ret_place);
/* --- logins.c: the same */
int sim_logins(struct engine *e, const struct engine_logins *wanted, struct arena *a, struct engine_login **ret_list,
               size_t *ret_count);
/* --- advice.c */
extern const struct engine_advice_ops sim_advice;

/* --- shapes.c */
extern const struct engine_shapes_ops sim_shapes;

#endif
