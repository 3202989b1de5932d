/* How the client's commands begin and end: those that call a service by a profile. */
#ifndef STEWARD_CLI_CLIENT_COMMAND_H
#define STEWARD_CLI_CLIENT_COMMAND_H

#include "base/option.h"

#include <stddef.h>

/* One call of a command. */
struct client_call {
	struct arena *arena;
	const struct options *options;
	const void *given; /* the command's arguments, as the options say */
	const char *const *words;
	size_t count;
};

#define CLIENT_WORDS_MAX 4

struct client_command {
	const char *name;
	const struct option_row *options;
	const size_t *option_count;
	size_t words_max;
	bool has_family;   /* the API has operations of that name, which its help shows, too */
	size_t words_min;  /* with fewer it is refused: */
	const char *wants; /* by these words */
	/* Returns the exit code. */
	int (*run)(const struct client_call *call);
};

/* Reads the arguments, and those of a profile, with the environment into `given`, and runs the command or shows its
 * help. Returns the exit code. */
int client_command_run(const struct client_command *command, int argc, char **argv, void *given);

#endif
