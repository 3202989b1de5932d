/* What a confined program can still do, tried by children of this one. */
#include "check.h"
#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct confine_bounds bounds = {.memory = 512ul << 20, .seconds = 5, .files = 64};

/* The status of a child that did it; 0: it found all as it should be. */
static int child_run(int (*what)(void))
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(what());
	int status = -1;
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_refused(long result)
{
	return result < 0 && errno == EPERM;
}

static int pipes(void)
{
	char program[] = "/bin/true", *argv[] = {program, NULL};
	bool was_root = geteuid() == 0;
	int kept = open("/dev/null", O_RDONLY); /* without O_CLOEXEC: forgotten by somebody */
	confine_to_pipes(&bounds);
	if (kept < 3 || read(kept, &kept, 1) >= 0 || errno != EBADF)
		return 1;
	if (!is_refused(open("/etc/passwd", O_RDONLY)) || !is_refused(socket(AF_UNIX, SOCK_STREAM, 0)))
		return 2;
	if (!is_refused(execve(argv[0], argv, argv + 1)) || !is_refused(fork()))
		return 3;
	if (!is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)) || !is_refused(kill(getppid(), 0)))
		return 4;
	if (was_root && !is_refused(syscall(SYS_setresuid, 0, 0, 0)))
		return 5;
	char *memory = malloc(1 << 20);
	if (!memory)
		return 6;
	memset(memory, 1, 1 << 20);
	free(memory);
	return write(STDOUT_FILENO, "", 0) == 0 ? 0 : 7;
}

/* All of /proc/self/status that tells rights, after the module's kind, which may still read it. */
static int with_module(void)
{
	static const char *const lines[] = {"CapInh:\t0000000000000000",
	                                    "CapPrm:\t0000000000000000",
	                                    "CapEff:\t0000000000000000",
	                                    "CapAmb:\t0000000000000000",
	                                    "NoNewPrivs:\t1",
	                                    "Seccomp:\t2"};
	static char text[16384];
	uid_t before = getuid();
	confine_with_module(&bounds);
	FILE *f = fopen("/proc/thread-self/status", "re");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	text[n] = 0;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (!strstr(text, lines[i]))
			return 1 + (int)i;
	if (getuid() != before)
		return 10;
	if (!is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)) || !is_refused(syscall(SYS_unshare, 0)))
		return 11;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return fd >= 0 ? 0 : 12;
}

static bool ends_by_limit(void)
{
	static const struct confine_bounds one = {.seconds = 1};
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		confine_to_pipes(&one);
		for (volatile unsigned long i = 0;; i++)
			;
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

int main(void)
{
	CHECK(child_run(pipes) == 0);
	CHECK(child_run(with_module) == 0);
	CHECK(ends_by_limit());
	return CHECK_DONE();
}
