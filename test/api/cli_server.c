/* The client's commands for tests that run thousands of them: each in a process of its own, forked from this one,
 * because the start of a sanitized program takes five times as long as the command.
 *
 *   cli_server SOCKET
 *
 * On the socket of that number each message is a command, with its standard descriptors beside it: the directory, how
 * many words there are, the words, the environment, all ended by a zero byte. The answer is what waitpid() said. */
#define main steward_main
int steward_main(int argc, char **argv);
#include "main.c" /* NOLINT(bugprone-suspicious-include) */
#undef main

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM (1 << 18)
#define WORDS 1024
#define STANDARD 3

static int server_socket;
static char message[ROOM];
static char *words[WORDS], *environment[WORDS];

/* How many bytes came; the descriptors in fds. */
static ssize_t command_take(int fds[STANDARD])
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(STANDARD * sizeof(int))];
	} control;
	struct iovec bytes = {message, sizeof message - 1};
	struct msghdr m = {
	        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t n = recvmsg(server_socket, &m, 0);
	struct cmsghdr *with = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (!with || with->cmsg_len != CMSG_LEN(STANDARD * sizeof(int)) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return -1;
	memcpy(fds, CMSG_DATA(with), STANDARD * sizeof(int));
	return n;
}

/* In the child: does not come back. */
static _Noreturn void command_do(size_t size, const int fds[STANDARD])
{
	size_t count = 0;
	for (char *p = message; p < message + size && count < WORDS - 1; p += strlen(p) + 1)
		words[count++] = p;
	int argc = count > 2 ? (int)strtol(words[1], NULL, 10) : 0;
	if (argc < 1 || (size_t)argc + 2 > count || chdir(words[0]) < 0)
		_exit(126);
	for (int i = 0; i < STANDARD; i++)
		if (dup2(fds[i], i) < 0)
			_exit(126);
	close(server_socket);
	for (int i = 0; i < STANDARD; i++)
		close(fds[i]);
	memcpy(environment, words + argc + 2, (count - (size_t)argc - 2) * sizeof *words);
	environ = environment;
	words[argc + 2] = NULL;
	/* Not exit(): sanitizers would take leave of every global, which takes longer than the command. */
	int code = steward_main(argc, words + 2);
	fflush(NULL);
	_exit(code);
}

int main(int argc, char **argv)
{
	server_socket = argc == 2 ? (int)strtol(argv[1], NULL, 10) : -1;
	int fds[STANDARD], status = 0;
	/* What libraries, and the allocator of a sanitizer for each size, would set up in each child. */
	for (size_t n = 16; n <= 4096; n += 16)
		free(malloc(n));
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return 1;
	for (ssize_t n; (n = command_take(fds)) > 0;) {
		pid_t child = fork();
		if (child == 0)
			command_do((size_t)n, fds);
		for (int i = 0; i < STANDARD; i++)
			close(fds[i]);
		if (child < 0 || waitpid(child, &status, 0) < 0 || send(server_socket, &status, sizeof status, 0) < 0)
			return 1;
	}
	return 0;
}
