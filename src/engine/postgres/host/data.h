/* What a data directory says of itself. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_DATA_H
#define STEWARD_ENGINE_POSTGRES_HOST_DATA_H

#include "base/str.h"
#include "engine/postgres/model/model.h"

#define PG_SHUT_DOWN 1

struct pg_control {
	uint64_t identity; /* the system identifier */
	uint32_t state, timeline;
	uint64_t checkpoint;
	int64_t time_s; /* when it was written */
};
/* -ENODATA: there is nothing whole. */
int pg_control_read(const char *data, struct pg_control *ret_control);
int pg_data_identify(const char *data, uint64_t *ret_identity, uint32_t *ret_timeline);
bool pg_node_is_made(const struct pg_cluster *c, const struct pg_node *n);
bool pg_node_is_standby(const struct pg_cluster *c, const struct pg_node *n); /* standby.signal is there */
int pg_node_mark_standby(const struct pg_cluster *c, const struct pg_node *n, const char *data);
#define PG_SEGMENT_NAME 24
/* Names of files of the log. */
void pg_segment_name(unsigned timeline, uint64_t lsn, uint64_t segment, char ret_name[PG_SEGMENT_NAME + 1]);
bool pg_segment_is(const char *name);

#endif
