/* The clusters in memory, their sets and nodes. */
#ifndef STEWARD_ENGINE_POSTGRES_MODEL_CLUSTERS_H
#define STEWARD_ENGINE_POSTGRES_MODEL_CLUSTERS_H

#include "engine/postgres/model/model.h"

struct pg_cluster *pg_cluster_find(struct engine *e, const char *id); /* counts; NULL: none */
struct pg_cluster *pg_cluster_ensure(struct engine *e, const char *id);
void pg_cluster_put(struct pg_cluster *c);
/* One that is in no list yet, and its end where it never comes into one. */
struct pg_cluster *pg_cluster_new(struct engine *e, const char *id);
void pg_cluster_free(struct pg_cluster *c);
/* All clusters, counted, so that none goes away while it is looked at; the caller puts each and frees the list. */
size_t pg_clusters_hold(struct engine *e, struct pg_cluster ***ret_clusters);
/* Whoever asked for it hears that something befell the cluster. */
void pg_cluster_changed(const struct pg_cluster *c);
struct pg_node *pg_cluster_node(const struct pg_cluster *c, const char *name);
struct pg_set *pg_cluster_set(struct pg_cluster *c, unsigned number);
struct pg_node *pg_set_primary(const struct pg_cluster *c, const struct pg_set *s);
/* The set's name outside: of a shard its number, of a router the node's name. */
void pg_set_name(const struct engine_node *n, char ret_name[64]);
/* It is encrypted, and its files cannot be read now: nothing may be concluded from what is not there. */
bool pg_crypt_is_shut(const struct pg_cluster *c);
bool pg_node_can_lead(const struct pg_node *n);
bool pg_node_shall_run(const struct pg_cluster *c, const struct pg_node *n);
void pg_node_busy(struct pg_cluster *c, struct pg_node *n, bool busy);
/* Whether it lies behind a router, through which alone users come. */
bool pg_node_is_shard(const struct pg_cluster *c, const struct pg_node *n);
void pg_node_free(struct pg_node *n);

#endif
