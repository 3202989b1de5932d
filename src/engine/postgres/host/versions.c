/* The versions of PostgreSQL that are installed here. */
#include "engine/postgres/host/versions.h"

#include "engine/postgres/host/process.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BIN_ROOT "/usr/lib/postgresql"

const char *pg_version_bin(const struct engine *e, unsigned major)
{
	for (size_t i = 0; i < e->version_count; i++)
		if (e->versions[i].major == major)
			return e->versions[i].bin;
	return NULL;
}

/* "postgres (PostgreSQL) 15.19 (Debian ...)" as "15.19.0". */
void pg_version_read(const char *bin, unsigned major, char ret_text[24])
{
	char program[PG_PATH], line[128];
	uint64_t minor = 0;
	pg_path_set(program, "%s/postgres", bin);
	const char *const argv[] = {program, "--version", NULL};
	pg_process_ask(argv, line, sizeof line);
	const char *dot = strchr(line, '.');
	if (dot && !str_to_u64((struct str){dot + 1, strspn(dot + 1, "0123456789")}, 9999, &minor))
		minor = 0;
	snprintf(ret_text, 24, "%u.%u.0", major, (unsigned)minor);
}

static void versions_find(struct engine *e, const char *root)
{
	DIR *d = opendir(root);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		uint64_t major;
		char program[PG_PATH];
		size_t n = e->version_count;
		pg_path_set(program, "%s/%s/bin/postgres", root, entry->d_name);
		if (n == sizeof e->versions / sizeof *e->versions || !str_to_u64(str_of(entry->d_name), 999, &major) ||
		    access(program, X_OK) < 0)
			continue;
		size_t at = n;
		for (; at > 0 && e->versions[at - 1].major < major; at--)
			e->versions[at] = e->versions[at - 1];
		e->versions[at].major = (unsigned)major;
		snprintf(e->versions[at].bin, sizeof e->versions[at].bin, "%.40s/%u/bin", root, (unsigned)major);
		pg_version_read(e->versions[at].bin, (unsigned)major, e->versions[at].text);
		e->version_count++;
	}
	if (d)
		closedir(d);
}

int pg_programs_find(struct engine *e, const char *root)
{
	versions_find(e, root ? root : BIN_ROOT);
	if (e->version_count > 0)
		return 0;
	pg_why_set(NULL, "there is no PostgreSQL below %s", root ? root : BIN_ROOT);
	return -ENOENT;
}
