/* The log of a node, which is named by its cluster and itself: where its files lie, and what log_follow.c and logins.c
 * read there. They know of nothing but a directory of files. */
#include "engine/postgres/observe/log_node.h"

#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/observe/log_cursor.h"
#include "engine/postgres/observe/log_follow.h"
#include "engine/postgres/observe/logins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int directory_find(struct engine *e, const char *cluster_id, const char *node, char ret_directory[PG_PATH])
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	if (!c)
		return -ENOENT;
	pthread_mutex_lock(&c->lock);
	const struct pg_node *n = pg_cluster_node(c, node);
	if (n)
		pg_node_path(c, n, "log", ret_directory);
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	return n ? 0 : -ENOENT;
}

int pg_log_follow_node(struct engine *e, const struct engine_log *log, struct engine_log_range *range,
                       engine_log_take *take, void *ctx)
{
	char directory[PG_PATH];
	int r = directory_find(e, log->cluster_id, log->node, directory);
	return r < 0 ? r : pg_log_range(directory, log, range, take, ctx);
}

/* Behind the last newline of a file. */
static int64_t lines_end(int fd)
{
	char piece[4096];
	struct stat st;
	off_t at = fstat(fd, &st) == 0 ? st.st_size : 0;
	while (at > 0) {
		size_t n = at < (off_t)sizeof piece ? (size_t)at : sizeof piece;
		if (pread(fd, piece, n, at - (off_t)n) != (ssize_t)n)
			return 0;
		const char *newline = memrchr(piece, '\n', n);
		if (newline)
			return at - (off_t)n + (newline + 1 - piece);
		at -= (off_t)n;
	}
	return 0;
}

int pg_log_end_node(struct engine *e, const struct engine_log *log, struct engine_log_place *ret_place)
{
	char directory[PG_PATH];
	struct pg_log_names names;
	int r = directory_find(e, log->cluster_id, log->node, directory);
	if (r == 0)
		r = pg_log_names_find(directory, &names);
	if (r < 0)
		return r;
	*ret_place = (struct engine_log_place){.offset = 0};
	if (names.count) {
		const char *last = names.list[names.count - 1];
		int fd = pg_log_file_open(directory, last);
		snprintf(ret_place->file, sizeof ret_place->file, "%s", last);
		ret_place->offset = fd < 0 ? 0 : lines_end(fd);
		if (fd >= 0)
			close(fd);
	}
	free(names.list);
	return 0;
}

int pg_logins(struct engine *e, const struct engine_logins *wanted, struct arena *a, struct engine_login **ret_list,
              size_t *ret_count)
{
	char directory[PG_PATH];
	int r = directory_find(e, wanted->cluster_id, wanted->node, directory);
	return r < 0 ? r : pg_logins_read(directory, wanted, a, ret_list, ret_count);
}
