/* One frame for all of them, so that none forgets the environment, its help or what it holds. */
#include "cli/operator/operator.h"

#include "cli/cli.h"

#include <assert.h>

static int command_run(const struct operator_command *command, struct arena *a, int argc, char **argv, void *given)
{
	struct options options;
	const char *words[OPERATOR_WORDS_MAX];
	struct operator_call c = {.arena = a, .options = &options, .given = given, .words = words};
	assert(command->words_max <= OPERATOR_WORDS_MAX);
	options_setup(&options, command->name, command->options, command->option_count, given, a);
	int r = options_args(&options, argc, argv, words, command->words_max, &c.count);
	if (r == OPTIONS_HELP) {
		help_command(stdout, command->name);
		return EXIT_DONE;
	}
	if (r < 0 || options_environment(&options) < 0)
		return EXIT_USAGE;
	if (!c.count && command->wants) {
		option_refuse("%s: %s", command->name, command->wants);
		return EXIT_USAGE;
	}
	return command->run(&c);
}

int operator_run(const struct operator_command *command, int argc, char **argv, void *given)
{
	struct arena *a = arena_new();
	int code = command_run(command, a, argc, argv, given);
	arena_free(a);
	return code;
}
