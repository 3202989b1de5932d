/* The thread that watches all servers. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_SUPERVISOR_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_SUPERVISOR_H

void *pg_supervise(void *engine);

#endif
