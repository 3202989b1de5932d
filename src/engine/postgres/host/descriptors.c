/* Descriptors: each node takes some as long as the service runs. With too few of them a service would start, find files
 * that it cannot open and servers that it cannot hold, and would have to guess what became of them. */
#include "engine/postgres/host/descriptors.h"

#include "base/id.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/model/paths.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>

#define NODE_DESCRIPTORS 3 /* its process, its probe, and one for what is being done */
#define OWN_DESCRIPTORS 64 /* store, loops, and a few callers */

/* Directories of nodes below one of a cluster. */
static size_t nodes_count(const char *path)
{
	DIR *d = nolink_opendir(path);
	size_t count = 0;
	for (struct dirent *entry; d && (entry = readdir(d));)
		count += entry->d_name[0] != '.' && entry->d_type == DT_DIR;
	if (d)
		closedir(d);
	return count;
}

int pg_descriptors_ensure(const struct engine *e)
{
	struct rlimit l;
	size_t clusters = 0, nodes = 0;
	DIR *d = nolink_opendir(e->dir);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		char path[PG_PATH];
		if (!id_is_valid(str_of(entry->d_name)))
			continue;
		pg_path_set(path, "%s/%s", e->dir, entry->d_name);
		nodes += nodes_count(path);
		clusters++;
	}
	if (d)
		closedir(d);
	rlim_t need = (rlim_t)OWN_DESCRIPTORS + NODE_DESCRIPTORS * (rlim_t)nodes;
	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= need)
		return 0;
	l.rlim_cur = need < l.rlim_max ? need : l.rlim_max;
	if (l.rlim_cur == need && setrlimit(RLIMIT_NOFILE, &l) == 0)
		return 0;
	log_error("engine: %zu clusters with %zu nodes need %llu open files, and the limit is %llu: raise it (ulimit "
	          "-n, or "
	          "LimitNOFILE= of the unit). Nothing was changed",
	          clusters, nodes, (unsigned long long)need, (unsigned long long)l.rlim_max);
	return -EMFILE;
}
