/* Measuring servers: what measure.c and measure_databases.c have of measure_sql.c and measure_host.c. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_H

#include "engine/postgres/postgres.h"

/* A server's figures, in the order of the columns, after which come the epoch, whether it leads, and whether its module
 * counts what clients do; before version 17, and from then on. */
#define PG_ASKED 22
#define PG_OPERATIONS 6
extern const enum process_input pg_asked[PG_ASKED];
extern const char pg_ask[], pg_ask_17[];
/* What the module counts, in the place of what pg_stat_database tells. */
extern const enum process_input pg_operations[PG_OPERATIONS];
extern const char pg_ask_operations[];
/* How far a primary's log is; null of a standby. */
extern const char pg_ask_position[];
/* Its databases, and what one of them has in it. */
extern const char pg_ask_databases[], pg_ask_inside[];

/* Inputs of the host alone; the others are left as they are. */
void pg_measure_host(double *in);

/* What a server's processes have used, as last seen: sums that must not fall while it runs. */
struct pg_floor {
	pid_t pid;
	double user, kernel, faults;
};
/* Time of processors, page faults and, with `whole`, memory of a server and its children. */
void pg_measure_processes(pid_t pid, bool whole, struct pg_floor *floor, double *in);

/* How far the log on the disk reaches back, in milliseconds; NAN where there is none. */
double pg_measure_window(const char *data);

/* The disk of a data directory. One that was just looked at, for another node, is not looked at again. */
struct pg_disk_seen {
	bool is;
	dev_t device;
	int64_t mono_us;
	char name[64];
	double inputs[DISK_INPUTS];
};
int pg_measure_disk(const char *data, struct pg_disk_seen *seen);
/* The node's own: what its files take of its allowance, by `used` and `limit` (0: it has none), and what the server has
 * read and written, by the inputs of its sample. */
void pg_measure_own_disk(const struct pg_disk_seen *host, uint64_t used, uint64_t limit, const double *process,
                         double ret_inputs[DISK_INPUTS]);

#endif
