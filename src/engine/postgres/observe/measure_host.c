/* What the system tells: of the host, of a server's processes, of the disk that its data lies on. */
#include "engine/postgres/observe/measure_host.h"

#include "base/clock.h"
#include "base/nolink.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/observe/inspect.h"
#include "engine/postgres/observe/measure.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SECTOR 512.0
#define BLOCK 8192.0

/* Files of /proc have no size: read what fits, as text. */
static bool proc_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size_t n = 0;
	for (ssize_t got; n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0;)
		n += (size_t)got;
	close(fd);
	text[n] = 0;
	return n > 0;
}

static void processors_read(double *in)
{
	static const enum process_input order[] = {PROCESS_SYS_USER,    PROCESS_SYS_NICE,   PROCESS_SYS_KERNEL,
	                                           PROCESS_INPUTS,      PROCESS_SYS_IOWAIT, PROCESS_SYS_IRQ,
	                                           PROCESS_SYS_SOFTIRQ, PROCESS_SYS_STEAL,  PROCESS_SYS_GUEST};
	char text[1024], *at = text + 3;
	double hertz = (double)sysconf(_SC_CLK_TCK);
	if (!proc_read("/proc/stat", text, sizeof text) || strncmp(text, "cpu ", 4) != 0)
		return;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		double v = strtod(at, &at) / hertz;
		if (order[i] != PROCESS_INPUTS)
			in[order[i]] = v;
	}
	in[PROCESS_CORES] = (double)sysconf(_SC_NPROCESSORS_ONLN);
}

/* A line "Name:   123 kB", in bytes. */
static double memory_line(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	return at ? strtod(at + strlen(name), NULL) * 1024 : (double)NAN;
}

static void memory_read(double *in)
{
	char text[4096];
	if (!proc_read("/proc/meminfo", text, sizeof text))
		return;
	in[PROCESS_MEM_AVAILABLE] = memory_line(text, "\nMemAvailable:");
	in[PROCESS_MEM_FREE] = memory_line(text, "\nMemFree:");
	in[PROCESS_MEM_USED] = memory_line(text, "MemTotal:") - in[PROCESS_MEM_AVAILABLE];
	in[PROCESS_SWAP_FREE] = memory_line(text, "\nSwapFree:");
	in[PROCESS_SWAP_USED] = memory_line(text, "\nSwapTotal:") - in[PROCESS_SWAP_FREE];
}

/* All interfaces but the loopback. */
static void network_read(double *in)
{
	char text[16384];
	if (!proc_read("/proc/net/dev", text, sizeof text))
		return;
	in[PROCESS_NET_IN] = in[PROCESS_NET_OUT] = 0;
	for (char *line = text; line && *line;) {
		char *end = strchr(line, '\n'), *colon = strchr(line, ':');
		while (*line == ' ')
			line++;
		if (colon && (!end || colon < end) && strncmp(line, "lo:", 3) != 0) {
			char *at = colon + 1;
			in[PROCESS_NET_IN] += strtod(at, &at);
			for (int i = 0; i < 7; i++)
				strtod(at, &at);
			in[PROCESS_NET_OUT] += strtod(at, NULL);
		}
		line = end ? end + 1 : NULL;
	}
}

void pg_measure_host(double *in)
{
	processors_read(in);
	memory_read(in);
	network_read(in);
}

/* --- a server's processes */

struct process_time {
	double user, kernel, ended_user, ended_kernel, faults, size;
};

/* Fields by their numbers in proc(5); those after the name, which may have anything in it. */
static bool process_read(long pid, struct process_time *t)
{
	char path[64], text[1024];
	double v[24] = {0}, hertz = (double)sysconf(_SC_CLK_TCK);
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	char *at = proc_read(path, text, sizeof text) ? strrchr(text, ')') : NULL;
	if (!at || strlen(at) < 4)
		return false;
	at += 3; /* the state */
	for (size_t i = 4; i < 24; i++)
		v[i] = strtod(at, &at);
	*t = (struct process_time){v[14] / hertz, v[15] / hertz, v[16] / hertz, v[17] / hertz, v[12] + v[13], v[23]};
	return true;
}

static void process_memory(long pid, double *alone, double *shared)
{
	char path[64], text[128], *at = text;
	double page = (double)sysconf(_SC_PAGESIZE);
	snprintf(path, sizeof path, "/proc/%ld/statm", pid);
	if (!proc_read(path, text, sizeof text))
		return;
	strtod(at, &at);
	double resident = strtod(at, &at) * page, common = strtod(at, &at) * page;
	*alone += resident - common;
	*shared = common > *shared ? common : *shared;
}

static double at_least(double value, double *floor)
{
	*floor = value > *floor ? value : *floor;
	return *floor;
}

/* A child that ends while they are read is counted neither among them nor yet as one that has ended; so no sum falls
 * below what it was. */
void pg_measure_processes(pid_t pid, bool whole, struct pg_floor *floor, double *in)
{
	char path[64], text[65536], *at = text;
	struct process_time t, c;
	double user = 0, kernel = 0, faults = 0, alone = 0, shared = 0, size = 0;
	if (floor->pid != pid)
		*floor = (struct pg_floor){.pid = pid};
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	if (!process_read(pid, &t))
		return;
	if (!proc_read(path, text, sizeof text))
		text[0] = 0;
	size = t.size;
	if (whole)
		process_memory(pid, &alone, &shared);
	for (long child; (child = strtol(at, &at, 10)) > 0;) {
		if (!process_read(child, &c))
			continue;
		user += c.user;
		kernel += c.kernel;
		faults += c.faults;
		size = c.size > size ? c.size : size;
		if (whole)
			process_memory(child, &alone, &shared);
	}
	in[PROCESS_CHILD_USER] = at_least(user + t.ended_user, &floor->user);
	in[PROCESS_CHILD_KERNEL] = at_least(kernel + t.ended_kernel, &floor->kernel);
	in[PROCESS_CPU_USER] = in[PROCESS_CHILD_USER] + t.user;
	in[PROCESS_CPU_KERNEL] = in[PROCESS_CHILD_KERNEL] + t.kernel;
	in[PROCESS_FAULTS] = at_least(faults + t.faults, &floor->faults);
	if (!whole)
		return;
	in[PROCESS_RESIDENT] = alone + shared;
	in[PROCESS_MAPPED] = shared;
	in[PROCESS_VIRTUAL] = size;
}

/* --- the write-ahead log on the disk */

/* From when the oldest segment was last written to when any was. The oldest by name: a segment that waits for its next
 * use has the name of one that is to come, and the time of one that was. */
double pg_measure_window(const char *data)
{
	char path[PG_PATH], oldest[25] = "";
	struct stat st;
	time_t first = 0, last = 0;
	pg_path_set(path, "%s/pg_wal", data);
	DIR *d = nolink_opendir(path);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		if (!pg_segment_is(entry->d_name) || fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		last = st.st_mtime > last ? st.st_mtime : last;
		if (*oldest && strcmp(entry->d_name, oldest) > 0)
			continue;
		first = st.st_mtime;
		snprintf(oldest, sizeof oldest, "%.24s", entry->d_name);
	}
	if (d)
		closedir(d);
	return *oldest ? (double)(last - first) * 1000 : (double)NAN;
}

/* --- disks */

/* A row of /proc/diskstats: major, minor, name, then numbers from 1 on. */
static void device_read(dev_t device, double *in)
{
	char text[65536], want[32];
	double v[12] = {0};
	if (!proc_read("/proc/diskstats", text, sizeof text))
		return;
	snprintf(want, sizeof want, "%4u %7u ", major(device), minor(device));
	char *at = strstr(text, want);
	at = at ? strchr(at + strlen(want), ' ') : NULL;
	if (!at)
		return;
	for (size_t i = 1; i < 12; i++)
		v[i] = strtod(at, &at);
	in[DISK_READS] = v[1];
	in[DISK_WRITES] = v[5];
	in[DISK_OPS] = v[1] + v[5];
	in[DISK_READ_BYTES] = v[3] * SECTOR;
	in[DISK_WRITE_BYTES] = v[7] * SECTOR;
	in[DISK_READ_MS] = v[4];
	in[DISK_WRITE_MS] = v[8];
	in[DISK_QUEUE_MS] = v[11];
}

int pg_measure_disk(const char *data, struct pg_disk_seen *seen)
{
	struct stat st;
	struct statvfs fs;
	if (stat(data, &st) < 0)
		return -errno;
	if (seen->is && seen->device == st.st_dev)
		return 0;
	if (statvfs(data, &fs) < 0)
		return -errno;
	for (size_t i = 0; i < DISK_INPUTS; i++)
		seen->inputs[i] = (double)NAN;
	/* As df does: what only the superuser may take is neither free nor used. */
	double unit = (double)fs.f_frsize, free = (double)fs.f_bavail * unit,
	       used = (double)(fs.f_blocks - fs.f_bfree) * unit;
	seen->inputs[DISK_SPACE_FREE] = free;
	seen->inputs[DISK_SPACE_USED] = used;
	if (free + used > 0) {
		seen->inputs[DISK_PERCENT_FREE] = 100 * free / (free + used);
		seen->inputs[DISK_PERCENT_USED] = 100 * used / (free + used);
	}
	device_read(st.st_dev, seen->inputs);
	seen->mono_us = clock_mono_us();
	seen->device = st.st_dev;
	seen->is = true;
	pg_partition_name(st.st_dev, seen->name, sizeof seen->name);
	return 0;
}

/* Blocks, and pieces of the log: what the server asks the system for. Operations of the device are the host's, and how
 * long they take with them. */
void pg_measure_own_disk(const struct pg_disk_seen *host, uint64_t used, uint64_t limit, const double *process,
                         double ret_inputs[DISK_INPUTS])
{
	double *in = ret_inputs, free = host->is ? host->inputs[DISK_SPACE_FREE] : (double)NAN;
	for (size_t i = 0; i < DISK_INPUTS; i++)
		in[i] = (double)NAN;
	if (limit) {
		double left = limit > used ? (double)(limit - used) : 0;
		free = left < free || isnan(free) ? left : free;
	}
	if (used) {
		in[DISK_SPACE_USED] = (double)used;
		in[DISK_SPACE_FREE] = free;
		in[DISK_PERCENT_FREE] = 100 * free / (free + (double)used);
		in[DISK_PERCENT_USED] = 100 - in[DISK_PERCENT_FREE];
	}
	if (!process)
		return;
	double block =
	        process[PROCESS_CACHE_MISSES] > 0 ? process[PROCESS_CACHE_IN] / process[PROCESS_CACHE_MISSES] : BLOCK;
	in[DISK_READS] = process[PROCESS_CACHE_MISSES];
	in[DISK_WRITES] = process[PROCESS_CACHE_OUT] / block + process[PROCESS_LOG_WRITES];
	in[DISK_OPS] = in[DISK_READS] + in[DISK_WRITES];
	in[DISK_READ_BYTES] = process[PROCESS_CACHE_IN];
	in[DISK_WRITE_BYTES] = process[PROCESS_CACHE_OUT] + process[PROCESS_LOG_BYTES];
}
