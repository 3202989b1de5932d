/* Disk: clusters take no more of it than they were given. Who observes one learns how full it is; who asks for it with
 * engine_options.full_changed is told when that changes. */
#ifndef STEWARD_ENGINE_DISK_H
#define STEWARD_ENGINE_DISK_H

#include "engine/core.h"

/* The disk of all clusters on this host: bytes, and how many are full. */
struct engine_disk {
	uint64_t used, limit;
	unsigned read_only, closed;
};

struct engine_disk_ops {
	/* Of all clusters. From any thread. */
	void (*usage)(struct engine *e, struct engine_disk *ret_disk);
};

#endif
