/* Processes: helper programs that are waited for, and servers that live on without us. A server gets a session of its
 * own and no descriptor of ours; we hold a pidfd, which cannot mean another process later, and adopt it again after a
 * restart. Between fork and exec only system calls are made: the service has many threads. */
#include "engine/postgres/host/process.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *const clean_environment[] = {
        (char[]){"PATH=/usr/bin:/bin"},
        (char[]){"LC_ALL=C.UTF-8"},
        (char[]){"TZ=UTC"},
        (char[]){"HOME=/nonexistent"},
        /* Whom a server trusts when it asks a directory: relative to its data directory. */
        (char[]){"LDAPTLS_CACERT=../conf/ldap-ca.crt"},
        NULL,
};

static const struct pg_bounds unbounded = {.cgroup_fd = -1};

/* In the child. The raw calls: glibc's would signal threads that are not there. A service that is not root has its
 * capabilities as ambient ones, which a change of users does not take away: they end here, and with no_new_privs no
 * program gives others. Only who has CAP_SETPCAP can empty the bounding set. */
static void child_become(const struct pg_user *u)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)!prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (u->other && (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
	                 syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0))
		_exit(126);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || syscall(SYS_capset, &head, none) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(126);
}

/* `data`: of a server, which works there from the first moment on, so that whoever sweeps after a crash finds it; NULL
 * for a program that ends with us. */
static pid_t process_fork(const struct pg_user *u, const char *const *argv, int out, const char *data,
                          const struct pg_bounds *bounds)
{
	char *arguments[32];
	size_t n = 0;
	for (; argv[n] && n < 31; n++) {
		union {
			const char *in;
			char *out;
		} word = {argv[n]};
		arguments[n] = word.out;
	}
	arguments[n] = NULL;
	sigset_t all, before, none;
	sigfillset(&all);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		for (int s = 1; s < 65; s++)
			signal(s, SIG_DFL);
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(out, 1);
		dup2(out, 2);
		if (bounds->cgroup_fd >= 0)
			(void)!write(bounds->cgroup_fd, "0", 1); /* this process, before it has any of its own */
		const struct rlimit memory = {bounds->memory, bounds->memory};
		if (bounds->memory)
			(void)!setrlimit(RLIMIT_AS, &memory); /* refused where there is a lower one */
		close_range(3, ~0U, 0);
		umask(077);
		setsid();
		child_become(u);
		/* A server that is told to end at once ends its processes too; killed itself, it would leave them. */
		if ((!data || bounds->mortal) &&
		    (prctl(PR_SET_PDEATHSIG, data ? SIGQUIT : SIGKILL) < 0 || getppid() != parent))
			_exit(126);
		if (chdir(data ? data : "/") < 0)
			_exit(126);
		pthread_sigmask(SIG_SETMASK, &none, NULL);
		execve(arguments[0], arguments, clean_environment);
		_exit(127);
	}
	int error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? -error : pid;
}

static int pidfd_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

/* Keeps the last bytes of what the program says, or the first. */
static bool output_read(int fd, bool first, char *text, size_t size, size_t *used)
{
	char chunk[512];
	ssize_t n = read(fd, chunk, sizeof chunk);
	if (n <= 0)
		return false;
	if (first && (size_t)n > size - 1 - *used)
		n = (ssize_t)(size - 1 - *used);
	if (*used + (size_t)n >= size) {
		size_t drop = *used + (size_t)n - size + 1;
		drop = drop > *used ? *used : drop;
		memmove(text, text + drop, *used - drop);
		*used -= drop;
	}
	memcpy(text + *used, chunk, (size_t)n);
	*used += (size_t)n;
	return true;
}

#define STOP_MS 200 /* between two looks whether somebody has asked for the end */

int pg_process_run(const struct pg_user *u, const char *const *argv, int timeout_ms)
{
	return pg_process_run_until(u, argv, timeout_ms, NULL);
}

int pg_process_run_until(const struct pg_user *u, const char *const *argv, int timeout_ms, const struct pg_stop *stop)
{
	int out[2];
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = process_fork(u, argv, out[1], NULL, &unbounded);
	close(out[1]);
	if (pid < 0) {
		close(out[0]);
		return (int)pid;
	}
	char text[600];
	size_t used = 0;
	int64_t end = pg_mono_ms() + timeout_ms;
	bool open = true, late = false, stopped = false;
	while (open && !late && !stopped) {
		struct pollfd p = {out[0], POLLIN, 0};
		int64_t left = end - pg_mono_ms();
		int found = left <= 0 ? 0 : poll(&p, 1, stop && left > STOP_MS ? STOP_MS : (int)left);
		stopped = stop && stop->asked(stop->ctx);
		late = found == 0 && pg_mono_ms() >= end;
		if (found != 0 && !stopped)
			open = output_read(out[0], stop && stop->quiet, text, sizeof text, &used);
	}
	if (late || stopped)
		kill(pid, SIGKILL);
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	close(out[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (stopped) {
		pg_why_set(NULL, "it was cancelled");
		return -ECANCELED;
	}
	text[used < sizeof text ? used : sizeof text - 1] = 0;
	for (size_t i = 0; i < used; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	const char *name = strrchr(argv[0], '/');
	pg_why_set(NULL, "%s: %s", name ? name + 1 : argv[0], late ? "took too long" : text);
	if ((used || late) && !(stop && stop->quiet))
		log_warn("engine: %s", pg_why_last());
	return late ? -ETIMEDOUT : strstr(text, "No space left") ? -ENOSPC : -EIO;
}

void pg_process_ask(const char *const *argv, char *ret_text, size_t size)
{
	const struct pg_user own = {.uid = geteuid(), .gid = getegid()};
	int out[2];
	ssize_t n = 0;
	ret_text[0] = 0;
	if (pipe2(out, O_CLOEXEC) < 0)
		return;
	pid_t pid = process_fork(&own, argv, out[1], NULL, &unbounded);
	close(out[1]);
	if (pid > 0) {
		n = read(out[0], ret_text, size - 1);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(out[0]);
	ret_text[n > 0 ? n : 0] = 0;
}

int pg_process_spawn(const struct pg_user *u, const char *const *argv, const char *data, const char *log,
                     const struct pg_bounds *bounds, pid_t *ret_pid, int *ret_pidfd)
{
	/* Made anew, since it is given away: what lies there may be another name of somebody else's file. */
	nolink_unlink(log);
	int out = nolink_open(log, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (out < 0)
		return -errno;
	if (u->other && fchown(out, u->uid, u->gid) < 0) {
		close(out);
		return -errno;
	}
	pid_t pid = process_fork(u, argv, out, data, bounds);
	close(out);
	if (pid < 0)
		return (int)pid;
	int fd = pidfd_of(pid);
	if (fd < 0) { /* our child and not reaped: only for want of descriptors */
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return fd;
	}
	*ret_pid = pid;
	*ret_pidfd = fd;
	return 0;
}

/* A server of this directory: its working directory is that, and its arguments say `postgres -D that`; what it forks
 * writes other words over them. */
static bool is_server_of(pid_t pid, const char *data)
{
	char link[64], cwd[PG_PATH], *words = NULL;
	snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
	ssize_t n = readlink(link, cwd, sizeof cwd - 1);
	if (n <= 0)
		return false;
	cwd[n] = 0;
	snprintf(link, sizeof link, "/proc/%d/cmdline", (int)pid);
	if (strcmp(cwd, data) != 0 || pg_file_read(link, 8192, &words) < 0)
		return false;
	const char *option = words + strlen(words) + 1;
	bool is =
	        str_ends(str_of(words), STR("/postgres")) && strcmp(option, "-D") == 0 && strcmp(option + 3, data) == 0;
	free(words);
	return is;
}

/* Field 22 of its stat: when it started, in ticks since the machine did. Unlike a date it never moves. */
static bool start_ticks(pid_t pid, uint64_t *ret_ticks)
{
	char path[64], *text;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (pg_file_read(path, 4096, &text) < 0)
		return false;
	const char *p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	bool good = p && str_to_u64((struct str){p + 1, strspn(p + 1, "0123456789")}, UINT64_MAX, ret_ticks);
	free(text);
	return good;
}

void pg_process_note(const char *data, pid_t pid)
{
	char path[PG_PATH];
	uint64_t ticks;
	pg_path_set(path, "%s/../conf/process", data);
	if (!start_ticks(pid, &ticks))
		return;
	nolink_unlink(path); /* it may be another name of somebody else's file */
	int fd = nolink_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return;
	dprintf(fd, "%d %llu\n", (int)pid, (unsigned long long)ticks);
	close(fd);
}

/* Whether it is the process that was noted for the directory. Where nothing was noted, the other signs decide. */
static bool is_noted(pid_t pid, const char *data)
{
	char path[PG_PATH], *text;
	int noted;
	unsigned long long then;
	uint64_t ticks;
	pg_path_set(path, "%s/../conf/process", data);
	if (pg_file_read(path, 64, &text) < 0)
		return true;
	bool other = sscanf(text, "%d %llu", &noted, &then) == 2 && noted == pid &&
	             (!start_ticks(pid, &ticks) || ticks != then);
	free(text);
	return !other;
}

int pg_process_adopt(const char *data, pid_t *ret_pid, int *ret_pidfd, int64_t *ret_started_ms)
{
	char path[PG_PATH], *text;
	pg_path_set(path, "%s/postmaster.pid", data);
	if (pg_file_read(path, 4096, &text) < 0)
		return -ESRCH;
	struct str rest = str_of(text), line;
	uint64_t pid = 0, started = 0;
	bool good = str_cut(rest, '\n', &line, &rest) && str_to_u64(line, INT32_MAX, &pid) && pid > 1;
	good = good && str_cut(rest, '\n', &line, &rest) && str_cut(rest, '\n', &line, &rest) &&
	       str_to_u64(line, INT32_MAX * 8ull, &started);
	free(text);
	if (!good)
		return -ESRCH;
	int fd = pidfd_of((pid_t)pid);
	if (fd < 0)
		return -ESRCH;
	/* Looked at after the pidfd is open: from here on the number cannot come to mean another. */
	if (!is_server_of((pid_t)pid, data) || !is_noted((pid_t)pid, data) || pg_process_ended(fd, 0)) {
		close(fd);
		return -ESRCH;
	}
	*ret_pid = (pid_t)pid;
	*ret_pidfd = fd;
	*ret_started_ms = (int64_t)started * 1000;
	return 0;
}

void pg_process_signal(int pidfd, int sig)
{
	syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

bool pg_process_ended(int pidfd, int timeout_ms)
{
	int64_t end = pg_mono_ms() + timeout_ms;
	for (;;) {
		struct pollfd p = {pidfd, POLLIN, 0};
		int64_t left = end - pg_mono_ms();
		int r = poll(&p, 1, left > 0 ? (int)left : 0);
		if (r > 0)
			break;
		if (r == 0 || errno != EINTR)
			return false;
	}
	siginfo_t info; /* our own child is a zombie until now; an adopted one is not ours to reap */
	waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG);
	return true;
}

bool pg_process_is_stopped(pid_t pid)
{
	char path[64], *text;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (pg_file_read(path, 4096, &text) < 0)
		return false;
	const char *end = strrchr(text, ')');
	bool stopped = end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
	free(text);
	return stopped;
}

/* Whether `pid` works in a directory and is PostgreSQL, or what PostgreSQL's programs run: whatever has a user of nodes
 * and no terminal, unlike somebody who looks around there. */
static bool works_in(const struct engine *e, const char *pid, const char *dir)
{
	char path[PG_PATH], cwd[PG_PATH], *text;
	struct stat st;
	pg_path_set(path, "/proc/%.12s/cwd", pid);
	ssize_t n = readlink(path, cwd, sizeof cwd - 1);
	if (n <= 0)
		return false;
	cwd[n] = 0;
	pg_path_set(path, "/proc/%.12s/stat", pid);
	if (strcmp(cwd, dir) != 0 || stat(path, &st) < 0 || pg_file_read(path, 4096, &text) < 0)
		return false;
	const char *name = strchr(text, '('), *end = strrchr(text, ')');
	int terminal = 1;
	bool works = name && str_starts(str_of(name), STR("(postgres) "));
	if (end && sscanf(end + 1, " %*c %*d %*d %*d %d", &terminal) == 1)
		works |= terminal == 0 && pg_user_known(e, st.st_uid) != NULL;
	free(text);
	return works;
}

static unsigned sweep_once(const struct engine *e, const char *dir)
{
	DIR *d = opendir("/proc");
	unsigned found = 0;
	for (struct dirent *entry; d && (entry = readdir(d));) {
		uint64_t pid;
		if (!str_to_u64(str_of(entry->d_name), INT32_MAX, &pid) || !works_in(e, entry->d_name, dir))
			continue;
		int fd = pidfd_of((pid_t)pid);
		if (fd < 0)
			continue;
		if (works_in(e, entry->d_name, dir)) {
			pg_process_signal(fd, SIGKILL);
			pg_process_ended(fd, 1000);
			found++;
		}
		close(fd);
	}
	if (d)
		closedir(d);
	return d ? found : 1;
}

int pg_process_sweep(const struct engine *e, const char *dir)
{
	for (int i = 0; i < 50; i++)
		if (sweep_once(e, dir) == 0)
			return 0;
	return -EBUSY;
}
