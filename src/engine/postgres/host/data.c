/* What a data directory says of itself. */
#include "engine/postgres/host/data.h"

#include "base/nolink.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/paths.h"

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

bool pg_node_is_made(const struct pg_cluster *c, const struct pg_node *n)
{
	char path[PG_PATH];
	pg_node_path(c, n, "data/PG_VERSION", path);
	/* Where that cannot be known, there is data: nothing is made in its place. */
	return pg_file_look(path) != 0;
}

bool pg_node_is_standby(const struct pg_cluster *c, const struct pg_node *n)
{
	char path[PG_PATH];
	pg_node_path(c, n, "data/standby.signal", path);
	return pg_file_is(path);
}

int pg_node_mark_standby(const struct pg_cluster *c, const struct pg_node *n, const char *data)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/standby.signal", data);
	return pg_file_give(c->user, path);
}

void pg_segment_name(unsigned timeline, uint64_t lsn, uint64_t segment, char ret_name[PG_SEGMENT_NAME + 1])
{
	uint64_t each = (UINT64_C(1) << 32) / segment, number = lsn / segment;
	snprintf(ret_name, PG_SEGMENT_NAME + 1, "%08X%08X%08X", timeline, (unsigned)(number / each),
	         (unsigned)(number % each));
}

bool pg_segment_is(const char *name)
{
	return strlen(name) == PG_SEGMENT_NAME && strspn(name, "0123456789ABCDEF") == PG_SEGMENT_NAME;
}
