/* A copy of a store in use. The copy is taken from one snapshot, so that a busy service cannot make it start again. It
 * gets its final name only when it is complete and on disk. It is a single file without a log beside it.
 *
 * The key of the data directory is not part of it: without secret.key the secrets in a copy cannot be read. */
#include "store/sqlite/sqlite.h"

#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define STEP_PAGES 1024

static int copy_pages(struct tx *from, struct tx *to, void (*progress)(int done, int total))
{
	sqlite3_backup *b = sqlite3_backup_init(to->db, "main", from->db, "main");
	if (!b)
		return -EIO;
	int r;
	do {
		r = sqlite3_backup_step(b, STEP_PAGES);
		int total = sqlite3_backup_pagecount(b);
		if (progress && (r == SQLITE_OK || r == SQLITE_DONE))
			progress(total - sqlite3_backup_remaining(b), total);
	} while (r == SQLITE_OK);
	sqlite3_backup_finish(b);
	return r == SQLITE_DONE ? 0 : -EIO;
}

/* `draft` is an empty file. */
static int copy_store(const char *source, const char *draft, void (*progress)(int done, int total))
{
	struct tx *from = NULL, *to = NULL;
	int64_t version;
	int r = conn_open(source, SQLITE_OPEN_READONLY, &from);
	if (r == 0)
		r = conn_open(draft, SQLITE_OPEN_READWRITE, &to);
	if (r == 0) {
		/* One flush at the end instead of many. */
		bool ok = conn_exec(to, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY") == 0 &&
		          conn_exec(from, "BEGIN") == 0 && conn_int(from, "PRAGMA user_version", &version) == 0 &&
		          copy_pages(from, to, progress) == 0 && conn_exec(to, "PRAGMA journal_mode = DELETE") == 0;
		if (!ok) {
			r = -EIO;
			fprintf(stderr, "steward: the copy failed: %s\n",
			        sqlite3_errcode(to->db) != SQLITE_OK ? sqlite3_errmsg(to->db)
			                                             : sqlite3_errmsg(from->db));
		}
	}
	conn_close(to);
	conn_close(from);
	return r;
}

static int publish(const char *draft, const char *file)
{
	int fd = open(draft, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (r == 0 && renameat2(AT_FDCWD, draft, AT_FDCWD, file, RENAME_NOREPLACE) < 0) {
		r = -errno;
		/* The file system has no atomic rename without replacement. */
		if (r == -EINVAL && access(file, F_OK) < 0)
			r = rename(draft, file) < 0 ? -errno : 0;
	}
	return r < 0 ? r : sync_parent(file);
}

int store_backup(const char *data_dir, const char *file, void (*progress)(int done, int total))
{
	char *source = store_path(data_dir), *draft = NULL;
	struct id unique = id_new();
	int r = 0;
	if (access(source, R_OK) < 0) {
		r = -errno;
		fprintf(stderr, "steward: there is no store at %s: %s\n", source, strerror(-r));
	} else if (access(file, F_OK) == 0) {
		r = -EEXIST;
		fprintf(stderr, "steward: %s exists already: give another name or move it away\n", file);
	}
	if (r == 0 && asprintf(&draft, "%s.%s", file, unique.z) < 0)
		abort();
	if (r == 0) {
		int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		r = fd < 0 ? -errno : 0;
		if (fd >= 0)
			close(fd);
		if (r < 0)
			fprintf(stderr, "steward: cannot write %s: %s\n", draft, strerror(-r));
	}
	if (r == 0) {
		r = copy_store(source, draft, progress);
		if (r == 0 && (r = publish(draft, file)) < 0)
			fprintf(stderr, "steward: cannot write %s: %s\n", file, strerror(-r));
		if (r < 0)
			unlink(draft);
	}
	free(draft);
	free(source);
	return r;
}
