/* Asking at the terminal. A secret is read with the echo off; it comes back on also when the process is interrupted,
 * because signals are held until the answer is there. */
#include "cli/ask.h"

#include "base/option.h"

#include <signal.h>
#include <stdio.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

bool ask_is_possible(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static const char *line_read(struct arena *a)
{
	char line[LINE_MAX_BYTES];
	const char *kept = NULL;
	if (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\r\n")] = '\0';
		kept = line[0] ? arena_z(a, str_of(line)) : NULL;
	}
	explicit_bzero(line, sizeof line);
	return kept;
}

const char *ask_text(struct arena *a, const char *question)
{
	if (ask_is_possible())
		fprintf(stderr, "%s: ", question);
	return line_read(a);
}

const char *ask_secret(struct arena *a, const char *question)
{
	struct termios before, quiet;
	sigset_t held, old;
	if (!ask_is_possible() || tcgetattr(STDIN_FILENO, &before) < 0)
		return line_read(a);
	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGTSTP);
	sigprocmask(SIG_BLOCK, &held, &old);
	quiet = before;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
	fprintf(stderr, "%s (not shown): ", question); /* who answers it at once is not shown either */
	const char *secret = line_read(a);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	fputc('\n', stderr);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return secret;
}

bool ask_yes(const char *question)
{
	struct arena *a = arena_new();
	const char *answer = NULL;
	if (ask_is_possible()) {
		fprintf(stderr, "%s [y/N] ", question);
		answer = line_read(a);
	}
	bool yes = answer && (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0);
	arena_free(a);
	return yes;
}

bool ask_to_go_on(const char *question, bool is_final)
{
	if (!ask_is_possible() && is_final)
		option_refuse(
		        "this cannot be undone, and there is no terminal to ask at: give --yes; nothing was done");
	if (!ask_is_possible())
		return !is_final;
	if (ask_yes(question))
		return true;
	option_refuse("nothing was done");
	return false;
}
