/* How the operator's commands begin and end: those that work on a data directory. */
#ifndef STEWARD_CLI_OPERATOR_OPERATOR_H
#define STEWARD_CLI_OPERATOR_OPERATOR_H

#include "base/option.h"

#include <stddef.h>

/* The first rows of a command's options: the members `data` and `store` of its arguments. */
/* clang-format off */
#define OPERATOR_STORE(arguments)                                                                               \
	{"data", 0, OPTION_TEXT, offsetof(arguments, data), "./data", "DIR", "Data directory of the service."}, \
	{"store", 0, OPTION_TEXT, offsetof(arguments, store), NULL, "URL",                                      \
	 "The store, where the service is run with --store."}
/* clang-format on */

/* One call of a command. */
struct operator_call {
	struct arena *arena;
	const struct options *options;
	const void *given; /* the command's arguments, as the options say */
	const char *const *words;
	size_t count;
};

#define OPERATOR_WORDS_MAX 18

struct operator_command {
	const char *name;
	const struct option_row *options;
	size_t option_count, words_max;
	const char *wants; /* the refusal where no word is given; NULL: run() looks itself */
	/* Returns the exit code. */
	int (*run)(const struct operator_call *c);
};

/* Reads the arguments and the environment into `given`, which is all zero, and runs the command or shows its help.
 * Returns the exit code. */
int operator_run(const struct operator_command *command, int argc, char **argv, void *given);

#endif
