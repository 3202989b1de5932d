/* What an instance size stands for on this host. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_SIZE_H
#define STEWARD_ENGINE_POSTGRES_HOST_SIZE_H

/* What an instance size stands for on this host. */
struct pg_size {
	unsigned number, buffers_mb, work_mb, connections, max_wal_mb;
};
struct pg_size pg_size_of(const char *instance_size);

#endif
