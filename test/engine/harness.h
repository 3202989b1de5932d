/* What the parts of the PostgreSQL engine's driver share, and the list of the parts. The engine is used through its
 * operations alone, against real servers; everything lies in one temporary directory and is gone at the end. */
#ifndef STEWARD_TEST_ENGINE_HARNESS_H
#define STEWARD_TEST_ENGINE_HARNESS_H

#include "base/arena.h"
#include "base/clock.h"
#include "engine/postgres/model/model.h"

#include <errno.h>
#include <libpq-fe.h>
#include <unistd.h>

#define PASSWORD "correct horse"
/* Regions with a repository of their own. */
#define REGION_COPIES "EU_COPIES"   /* in DIR/copies */
#define REGION_HANGING "EU_HANGING" /* takes connections, and never answers */
#define GROUP "65f000000000000000000abc"
#define ID1 "65f0000000000000000000a1"
#define ID3 "65f0000000000000000000a3"

/* Goes on after a failure, so that one run shows all of them. */
#define CHECK(condition) check((condition), __FILE__, __LINE__, #condition)
void check(bool good, const char *file, int line, const char *condition);

extern const struct engine_ops *const ops;
extern struct engine *engine;
extern struct arena *arena;
extern char dir[64];
extern _Atomic int key_answer; /* of who holds the projects' keys: 0, or -ENOENT as at first, -EKEYREVOKED, -EAGAIN */
extern uint64_t spool_bytes;   /* engine_options.spool_bytes of the next engine_begin() */

/* 0: the engine runs. With arguments "at DIR": in that directory, where another process may have left clusters. */
int harness_begin(int argc, char **argv);
int harness_end(void);

/* --- what is wanted */
extern struct engine_user users[];
extern struct cidr networks[2];
extern struct engine_access access_all, access_writer; /* all users, or the first alone */
struct wish {
	struct engine_cluster c;
	struct engine_node nodes[12];
};
struct wish wish_make(const char *id, unsigned electable, unsigned analytics);
int converge(struct wish *w, const struct engine_access *access);
int apply(const char *id, const struct engine_access *access);
struct cluster_status observe(const char *id);
const struct node_status *primary_of(const struct cluster_status *s);

/* --- the engine */
void engine_begin(void);
void engine_restart(void);
/* The engine, started again, finds its versions in a directory that these shell commands fill; NULL: where they are. */
void programs_make(const char *commands);
/* The service is killed so long after it has begun to converge, and another begins. */
void service_crash(struct wish *w, unsigned after_us);
/* The same with a restore of a snapshot of the cluster itself, or, "take:ID", while it takes one. */
void service_crash_restoring(struct wish *w, const char *snapshot, unsigned after_us);
/* What a wish is completed with before it is given to the engine. */
void wish_complete(struct wish *w);
struct engine_source snapshot_source(const struct wish *w, const char *snapshot);

/* --- clients */
PGconn *client(const struct node_status *n, const char *user, const char *password, const char *database);
bool can_connect(const struct node_status *n, const char *user, const char *password, const char *database);
bool run(PGconn *conn, const char *sql);
long number(PGconn *conn, const char *sql);
bool as(const struct node_status *n, const char *user, const char *database, const char *sql);

/* --- what runs on this machine for our directory */
unsigned servers_running(void);
pid_t pid_of(const char *id, const char *node);
double since_ms(int64_t from_us);
unsigned rounds(void); /* ROUNDS of the environment: how often faults are repeated */
/* All nodes run and stream; for a cluster with access_all. */
bool wait_all_running(const char *id, unsigned nodes, int ms);

/* --- the parts, each in the file part_NAME.c */
void part_single(void);
void part_set(void);
void part_access(void);
void part_faults(void);
void part_crash(void);
void part_retention(void);
void part_shards(void);
void part_races(void);
void part_upgrade(void);
void part_missing(void);
void part_backup(void);
void part_moments(void); /* in part_backup.c */
void part_archive(void);
void archive_boundaries(void); /* boundaries.c: a case of it */
void part_crypt(void);
void part_copies(void); /* in part_archive.c */
void part_figures(void);

#endif
