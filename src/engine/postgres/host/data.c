/* What a data directory says of itself. */
#include "engine/postgres/host/data.h"

#include "base/nolink.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/model.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The head of pg_control is the same in all versions that we run. */
int pg_control_read(const char *data, struct pg_control *ret_control)
{
	struct {
		uint64_t identifier;
		uint32_t version, catalog, state, pad;
		int64_t time;
		uint64_t checkpoint, redo;
		uint32_t timeline, former_timeline;
	} head;
	char path[PG_PATH];
	pg_path_set(path, "%s/global/pg_control", data);
	int fd = nolink_open(path, O_RDONLY, 0);
	if (fd < 0)
		return -errno;
	ssize_t got = read(fd, &head, sizeof head);
	close(fd);
	if (got != (ssize_t)sizeof head || head.identifier == 0)
		return -ENODATA;
	*ret_control =
	        (struct pg_control){head.identifier, head.state, head.timeline, head.checkpoint, (int64_t)head.time};
	return 0;
}

int pg_data_identify(const char *data, uint64_t *ret_identity, uint32_t *ret_timeline)
{
	struct pg_control control;
	int r = pg_control_read(data, &control);
	if (r < 0)
		return r;
	*ret_identity = control.identity;
	if (ret_timeline)
		*ret_timeline = control.timeline;
	return 0;
}
