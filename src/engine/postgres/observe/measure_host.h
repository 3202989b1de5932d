/* What the machine knows of a server: its processes, its disk. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_HOST_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_HOST_H

#include "engine/engine.h"

struct pg_disk_seen;
struct pg_floor;

/* Inputs of the host alone; the others are left as they are. */
void pg_measure_host(double *in);
/* Time of processors, page faults and, with `whole`, memory of a server and its children. */
void pg_measure_processes(pid_t pid, bool whole, struct pg_floor *floor, double *in);

/* How far the log on the disk reaches back, in milliseconds; NAN where there is none. */
double pg_measure_window(const char *data);
int pg_measure_disk(const char *data, struct pg_disk_seen *seen);
/* The node's own: what its files take of its allowance, by `used` and `limit` (0: it has none), and what the server has
 * read and written, by the inputs of its sample. */
void pg_measure_own_disk(const struct pg_disk_seen *host, uint64_t used, uint64_t limit, const double *process,
                         double ret_inputs[DISK_INPUTS]);

#endif
