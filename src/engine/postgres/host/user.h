/* The system users that databases run as. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_USER_H
#define STEWARD_ENGINE_POSTGRES_HOST_USER_H

#include "engine/postgres/model/model.h"

int pg_users_find(struct engine *e, const char *name); /* 0, or a negative code and the words to say */
void pg_users_tell(const struct engine *e);
const struct pg_user *pg_user_known(const struct engine *e, uid_t uid); /* NULL: no user of databases */
/* Of a project; takes a free one for it when it has none. Takes engine.lock. Who asks has a cluster of the project in
 * engine.clusters, which keeps the user from becoming another project's. */
const struct pg_user *pg_user_of(struct engine *e, const char *group_id);
/* The same for what is no cluster: the user stays the project's until it is let go. */
const struct pg_user *pg_user_hold(struct engine *e, const char *group_id);
void pg_user_let_go(struct engine *e, const struct pg_user *u);
/* A cluster that had it is gone; with the engine's lock. */
void pg_user_note(struct engine *e, const struct pg_user *u);
/* Whom a cluster runs as of which nothing is known: whose its files are, where its state was lost, else its project's.
 */
void pg_user_begin(struct pg_cluster *c);
void pg_user_recall(struct pg_cluster *c, uid_t uid);             /* as its state says; 0: as its files are owned */
bool pg_user_is_own(const struct pg_cluster *c);                  /* its user is its project's alone */
int pg_tree_give_node(const struct pg_user *u, const char *path); /* whose conf is the service's */
int pg_tree_give(const struct pg_user *u, const char *path);      /* -EMLINK: a file has another name */

#endif
