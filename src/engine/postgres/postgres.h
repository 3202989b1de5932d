/* The PostgreSQL engine, for engine.c. */
#ifndef STEWARD_ENGINE_POSTGRES_POSTGRES_H
#define STEWARD_ENGINE_POSTGRES_POSTGRES_H

#include "engine/postgres/model/model.h"

extern const struct engine_ops engine_postgres;                       /* postgres.c; for engine.c */
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
void pg_node_observe(struct pg_cluster *c, const struct pg_node *n, struct node_status *ret); /* with cluster.lock */

#endif
