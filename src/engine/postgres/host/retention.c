/* How long the servers' logs are kept: thirty days, and never more than a bound for each node, the oldest go first. The
 * file that is being written stays. Looked after once a minute, so that a server that tells much cannot fill the
 * disk. */
#include "engine/postgres/host/retention.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/nolink.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/work.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAYS 30
#define FILES_MAX 4096

struct log_file {
	char name[64]; /* begins with the time it was opened */
	int64_t bytes, changed_s;
};

static int newest_first(const void *a, const void *b)
{
	return strcmp(((const struct log_file *)b)->name, ((const struct log_file *)a)->name);
}

static size_t files_find(int dir, struct log_file *ret_files)
{
	size_t count = 0;
	int own = dup(dir);
	DIR *d = own < 0 ? NULL : fdopendir(own);
	for (struct dirent *entry; d && count < FILES_MAX && (entry = readdir(d));) {
		struct stat st;
		struct log_file *f = &ret_files[count];
		struct str name = str_of(entry->d_name);
		if (!str_starts(name, STR("postgresql-")) || name.n >= sizeof f->name ||
		    fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		memcpy(f->name, name.p, name.n + 1);
		f->bytes = st.st_size;
		f->changed_s = st.st_mtime;
		count++;
	}
	if (d)
		closedir(d);
	else if (own >= 0)
		close(own);
	return count;
}

void pg_log_tidy(const char *path, int64_t bytes_max)
{
	int dir = nolink_open(path, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return;
	struct log_file *files = must_calloc(FILES_MAX, sizeof *files);
	size_t count = files_find(dir, files);
	int64_t kept = 0, oldest = clock_now_ms() / 1000 - DAYS * 86400ll;
	qsort(files, count, sizeof *files, newest_first);
	for (size_t i = 0; i < count; i++) {
		kept += files[i].bytes;
		/* Each file has up to three forms of the same name. */
		if (i > 2 && (kept > bytes_max || files[i].changed_s < oldest))
			unlinkat(dir, files[i].name, 0);
	}
	free(files);
	close(dir);
}

static void cluster_tidy(struct pg_cluster *c)
{
	char path[PG_PATH];
	for (size_t i = 0;; i++) {
		pthread_mutex_lock(&c->lock);
		bool more = i < c->node_count;
		if (more)
			pg_node_path(c, c->nodes[i], "log", path);
		pthread_mutex_unlock(&c->lock);
		if (!more)
			return;
		pg_log_tidy(path, PG_LOG_BYTES_MAX);
	}
}

void *pg_logs_tidy(void *engine)
{
	struct engine *e = engine;
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all);
	for (size_t i = 0; i < count; i++) {
		cluster_tidy(all[i]);
		pg_cluster_put(all[i]);
	}
	free(all);
	pg_engine_work_done(e);
	return NULL;
}
