/* Measuring servers: the thread that takes samples. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_H

#include "engine/postgres/model/model.h"

extern const struct engine_sampling_ops pg_sampling;

/* A server's figures, in the order of the columns, after which come the epoch, whether it leads, whether its module
 * counts what clients do, and waits and blocks (activity.h); before version 17, and from then on. */
#define PG_ASKED 31
#define PG_OPERATIONS 6

/* What a server's processes have used, as last seen: sums that must not fall while it runs. */
struct pg_floor {
	pid_t pid;
	double user, kernel, faults;
};

/* The disk of a data directory. One that was just looked at, for another node, is not looked at again. */
struct pg_disk_seen {
	bool is;
	dev_t device;
	int64_t mono_us;
	char name[64];
	double inputs[DISK_INPUTS];
};

#endif
