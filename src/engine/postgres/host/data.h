/* What a data directory says of itself. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_DATA_H
#define STEWARD_ENGINE_POSTGRES_HOST_DATA_H

#include "base/str.h"

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

#endif
