/* Runs psql. The password goes into psql's environment, which only its owner can read, never into its arguments, which
 * every user of the machine can read. Signals that would end this process are held back while psql runs, because the
 * temporary user must be deleted afterwards: signals of the terminal reach psql directly, others are passed on to
 * it. */
#include "cli/client/psql.h"

#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX (16 + 2 * OPTION_TEXTS_MAX)
#define SAID_MAX 4096
#define SIGNALED 128 /* exit code after a signal is this plus its number, as in shells */

extern char **environ;

static const int held[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD};
#define HELD (sizeof held / sizeof *held)

static sigset_t held_set(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < HELD; i++)
		sigaddset(&set, held[i]);
	return set;
}

void signals_hold(void)
{
	sigset_t set = held_set();
	sigprocmask(SIG_BLOCK, &set, NULL);
}

bool signals_wait(void)
{
	sigset_t pending;
	sigpending(&pending);
	for (size_t i = 0; i < HELD; i++)
		if (held[i] != SIGCHLD && sigismember(&pending, held[i]) == 1)
			return true;
	return false;
}

bool psql_is_installed(void)
{
	const char *path = getenv("PATH");
	struct str rest = str_of(path), folder;
	struct arena *a = arena_new();
	bool found = false, more = rest.n > 0;
	while (more && !found) {
		more = str_cut(rest, ':', &folder, &rest);
		found = access(arena_printf(a, "%.*s/psql", STR_ARG(folder)).p, X_OK) == 0;
	}
	arena_free(a);
	return found;
}

/* A copy of our environment with some variables replaced. */
static char **environment_make(struct arena *a, const char *const *set, size_t count)
{
	size_t there = 0, n = 0;
	while (environ[there])
		there++;
	char **all = arena_new_array(a, char *, there + count + 1);
	for (size_t i = 0; i < there; i++) {
		bool replaced = false;
		for (size_t k = 0; k < count; k++)
			replaced |= strncmp(environ[i], set[k], (size_t)(strchr(set[k], '=') - set[k]) + 1) == 0;
		if (!replaced)
			all[n++] = environ[i];
	}
	for (size_t k = 0; k < count; k++)
		all[n++] = arena_z(a, str_of(set[k]));
	return all;
}

/* The child starts with no signal blocked: it must receive those that we hold back. */
static int spawn(const char *const *argv, char **env, posix_spawn_file_actions_t *files, pid_t *ret_pid)
{
	posix_spawnattr_t attributes;
	sigset_t none, set = held_set();
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &set);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int result = posix_spawnp(ret_pid, argv[0], files, &attributes, (char *const *)(uintptr_t)argv, env);
	posix_spawnattr_destroy(&attributes);
	return -result;
}

static struct str said_read(struct arena *a, int fd)
{
	char text[SAID_MAX], rest[SAID_MAX];
	size_t n = 0;
	ssize_t got;
	while ((got = read(fd, n < sizeof text ? text + n : rest, n < sizeof text ? sizeof text - n : sizeof rest)) >
	               0 ||
	       (got < 0 && errno == EINTR))
		n += got > 0 && n < sizeof text ? (size_t)got : 0;
	while (n && text[n - 1] == '\n')
		n--;
	return arena_dup(a, (struct str){text, n});
}

/* Whether the fault may go away: the server is not ready, or the new user or address is not in force yet. Any other
 * fault (no such database, a password is needed) would only come again, and psql reports it to its user. */
static bool is_too_early(struct str said)
{
	static const char *const words[] = {"no pg_hba.conf entry",
	                                    "password authentication failed",
	                                    "refused",
	                                    "timeout",
	                                    "starting up",
	                                    "shutting down",
	                                    "read-only"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (memmem(said.p, said.n, words[i], strlen(words[i])))
			return true;
	return false;
}

int psql_try(const struct psql *p, struct str *ret_said)
{
	const char *const argv[] = {"psql", "-XAtqw", "-d", p->string, "-c", "select 1", NULL};
	const char *set[] = {"LC_ALL=C", "PGCONNECT_TIMEOUT=5", NULL};
	posix_spawn_file_actions_t files;
	int ends[2], status = 0;
	pid_t pid;
	if (p->password)
		set[2] = arena_printf(p->arena, "PGPASSWORD=%s", p->password).p;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
	int result = spawn(argv, environment_make(p->arena, set, p->password ? 3 : 2), &files, &pid);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	*ret_said = result == 0 ? said_read(p->arena, ends[0]) : str_of(strerror(-result));
	close(ends[0]);
	if (result < 0)
		return result;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	bool in = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return in || !is_too_early(*ret_said) ? 0 : -EAGAIN;
}

/* A script stops at its first error and its exit code shows that; in a session the user decides. */
static void arguments_make(const struct psql *p, const char **argv)
{
	size_t n = 0;
	argv[n++] = "psql";
	if (p->commands->n || !isatty(STDIN_FILENO)) {
		argv[n++] = "-v";
		argv[n++] = "ON_ERROR_STOP=1";
	}
	for (size_t i = 0; i < p->commands->n; i++) {
		argv[n++] = "-c";
		argv[n++] = p->commands->v[i];
	}
	argv[n++] = p->string;
	argv[n] = NULL;
}

static int wait_for(pid_t pid)
{
	sigset_t set = held_set();
	siginfo_t info;
	int status;
	while (waitpid(pid, &status, WNOHANG) != pid) {
		int number = sigwaitinfo(&set, &info);
		/* A signal of the terminal has reached psql already. */
		if (number > 0 && number != SIGCHLD && info.si_code <= 0)
			kill(pid, number);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALED + WTERMSIG(status);
}

int psql_run(const struct psql *p)
{
	const char *argv[ARGUMENTS_MAX], *set[1];
	pid_t pid;
	arguments_make(p, argv);
	if (p->password)
		set[0] = arena_printf(p->arena, "PGPASSWORD=%s", p->password).p;
	signals_hold();
	fflush(stdout);
	int result = spawn(argv, environment_make(p->arena, set, p->password ? 1 : 0), NULL, &pid);
	if (result < 0) {
		option_refuse("psql cannot be started: %s", strerror(-result));
		return EXIT_NOT_DONE;
	}
	return wait_for(pid);
}

static void quoted_print(const char *text)
{
	putchar('\'');
	for (const char *c = text; *c; c++)
		if (*c == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*c);
	putchar('\'');
}

void psql_print(const struct psql *p)
{
	if (p->password) {
		fputs("PGPASSWORD=", stdout);
		quoted_print(p->password);
		putchar(' ');
	}
	fputs("psql ", stdout);
	for (size_t i = 0; i < p->commands->n; i++) {
		fputs("-c ", stdout);
		quoted_print(p->commands->v[i]);
		putchar(' ');
	}
	quoted_print(p->string);
	putchar('\n');
}
