/* What the kernel holds a cluster to: processors, memory, number of processes. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_CGROUP_H
#define STEWARD_ENGINE_POSTGRES_HOST_CGROUP_H

#include "engine/postgres/model/model.h"

void pg_cgroup_find(struct engine *e, const char *dir); /* NULL: where one is looked for; "": none */
/* What the nodes' sizes come to is in force for the cluster. 0 too where there are no cgroups. */
int pg_cgroup_apply(const struct pg_cluster *c);
int pg_cgroup_open(const struct pg_cluster *c); /* for pg_process_spawn(), which the caller closes after; or -1 */
void pg_cgroup_remove(const struct pg_cluster *c);
/* The same for a server that is made for a job, by its directory. */
int pg_cgroup_open_throwaway(const struct engine *e, const char *server_dir);
void pg_cgroup_remove_throwaway(const struct engine *e, const char *server_dir);

#endif
