/* One question to a program beside this one. */
#include "base/helper.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The further ones come last: by then no descriptor that is still to be moved lies where they go. */
int helper_start(const char *name, const int *descriptors, size_t count, pid_t *ret_pid)
{
	char path[4200], *argv[] = {path, NULL}, *environment[] = {NULL};
	posix_spawn_file_actions_t actions;
	if (!file_beside_program(name, path, sizeof path))
		return -ENOENT;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, descriptors[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, descriptors[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	for (size_t i = 2; i < count; i++)
		posix_spawn_file_actions_adddup2(&actions, descriptors[i], STDERR_FILENO + (int)i - 1);
	int error = posix_spawn(ret_pid, path, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	return -error;
}

/* Hands over the question, and takes the answer until its end or the time is over. */
static void talk(int fd, struct str question, int64_t ms, size_t most, struct buf *answer)
{
	int64_t until = clock_mono_us() + ms * INT64_C(1000);
	size_t sent = 0;
	char some[4096];
	for (;;) {
		struct pollfd p = {.fd = fd, .events = (short)(sent < question.n ? POLLOUT : POLLIN)};
		int64_t left = (until - clock_mono_us()) / 1000;
		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return;
		ssize_t n = sent < question.n
		                    ? send(fd, question.p + sent, question.n - sent, MSG_NOSIGNAL | MSG_DONTWAIT)
		                    : recv(fd, some, sizeof some, MSG_DONTWAIT);
		if (n <= 0 || answer->n > most)
			return;
		if (sent >= question.n)
			buf_add(answer, some, (size_t)n);
		else if ((sent += (size_t)n) == question.n)
			shutdown(fd, SHUT_WR);
	}
}

int helper_ask(const char *name, struct str question, int64_t ms, size_t most, struct buf *answer)
{
	pid_t pid;
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	int r = helper_start(name, (int[]){ends[1], ends[1]}, 2, &pid);
	close(ends[1]);
	if (r == 0)
		talk(ends[0], question, ms, most, answer);
	close(ends[0]);
	if (r < 0)
		return r;
	kill(pid, SIGKILL); /* it has nothing left to do, or its time is over */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
