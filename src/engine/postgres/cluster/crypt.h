/* Files that the kernel encrypts. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_CRYPT_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_CRYPT_H

#include "engine/postgres/model/model.h"

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
/* Before anything else of a converge: it is open, or will be encrypted from now on. */
int pg_crypt_begin(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why);

#endif
