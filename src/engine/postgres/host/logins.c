/* Who is on the way in to a server.
 *
 * A session's process takes the rules with it when it is forked, and the password's verifier when its client says who
 * it is: a client that is slow to answer would be let in by rules that are long gone. No view of PostgreSQL shows it;
 * its title does. */
#include "engine/postgres/host/logins.h"

#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/wait.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOGIN_MS 300 /* a login that was under way when the rules changed gets so long to end by itself */

/* The client's end of a connection to the port; fields 2, 4 and 10 of a line: local address, state, inode. */
static bool socket_is_client(const char *table, unsigned long inode, unsigned port)
{
	char line[512];
	unsigned local, state;
	unsigned long other;
	bool found = false;
	FILE *f = fopen(table, "re");
	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, " %*d: %*[0-9A-F]:%x %*s %x %*s %*s %*s %*d %*d %lu", &local, &state, &other) ==
		                3 &&
		        other == inode && local == port && state == 1;
	if (f)
		fclose(f);
	return found;
}

/* Whether the process has a client: no other child of a server has a connection to its port. */
static bool has_client(pid_t pid, unsigned port)
{
	char path[300], link[64];
	unsigned long inode;
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	for (struct dirent *entry; d && !found && (entry = readdir(d));) {
		snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, entry->d_name);
		ssize_t got = readlink(path, link, sizeof link - 1);
		link[got > 0 ? got : 0] = 0;
		found = sscanf(link, "socket:[%lu]", &inode) == 1 && (socket_is_client("/proc/net/tcp", inode, port) ||
		                                                      socket_is_client("/proc/net/tcp6", inode, port));
	}
	if (d)
		closedir(d);
	return found;
}

static bool logs_in(pid_t pid, const struct pg_node *n)
{
	char path[64], *text;
	int parent = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (pg_file_read(path, 4096, &text) < 0)
		return false;
	const char *end = strrchr(text, ')');
	bool is = end && sscanf(end + 1, " %*c %d", &parent) == 1 && parent == (int)n->pid;
	free(text);
	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	if (!is || pg_file_read(path, 8192, &text) < 0)
		return false;
	struct str title = str_of(text);
	while (title.n && title.p[title.n - 1] == ' ')
		title.n--;
	/* Before its client has said anything it is titled as the server itself. */
	is = str_ends(title, STR(") authentication")) || str_ends(title, STR(") startup")) ||
	     str_ends(title, STR("/postgres"));
	free(text);
	return is && has_client(pid, n->port);
}

static size_t logins_find(const struct pg_node *n, pid_t *pids, size_t max)
{
	DIR *d = opendir("/proc");
	size_t count = 0;
	for (struct dirent *entry; d && count < max && (entry = readdir(d));) {
		uint64_t pid;
		if (str_to_u64(str_of(entry->d_name), INT32_MAX, &pid) && logs_in((pid_t)pid, n))
			pids[count++] = (pid_t)pid;
	}
	if (d)
		closedir(d);
	return count;
}

void pg_logins_sweep(const struct pg_node *n)
{
	pid_t pids[1024];
	size_t count = n->pid ? logins_find(n, pids, sizeof pids / sizeof *pids) : 0;
	int64_t end = pg_mono_ms() + LOGIN_MS;
	while (count && pg_mono_ms() < end) {
		pg_sleep_ms(10);
		size_t left = 0;
		for (size_t i = 0; i < count; i++)
			if (logs_in(pids[i], n))
				pids[left++] = pids[i];
		count = left;
	}
	for (size_t i = 0; i < count; i++) {
		int fd = (int)syscall(SYS_pidfd_open, pids[i], 0);
		if (fd < 0)
			continue;
		if (logs_in(pids[i], n))
			pg_process_signal(fd, SIGTERM);
		close(fd);
	}
}
