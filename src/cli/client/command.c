/* One frame for all of them, as operator.c is for the operator's. */
#include "cli/client/command.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/derived/command.h"
#include "cli/profile.h"

#include <assert.h>

static int help_show(const struct client_command *command)
{
	help_command(stdout, command->name);
	if (command->has_family) {
		putchar('\n');
		usage_family(stdout, command_family_find(command->name));
	}
	return EXIT_DONE;
}

static int frame_run(const struct client_command *command, struct arena *a, int argc, char **argv, void *given)
{
	struct options options;
	const char *words[CLIENT_WORDS_MAX];
	struct client_call call = {.arena = a, .options = &options, .given = given, .words = words};
	assert(command->words_max <= CLIENT_WORDS_MAX);
	options_setup(&options, command->name, command->options, *command->option_count, given, a);
	int r = profile_arguments(&options, argc, argv, words, command->words_max, &call.count);
	if (r == OPTIONS_HELP)
		return help_show(command);
	if (r < 0)
		return EXIT_USAGE;
	if (call.count < command->words_min) {
		option_refuse("%s: %s", command->name, command->wants);
		return EXIT_USAGE;
	}
	return command->run(&call);
}

int client_command_run(const struct client_command *command, int argc, char **argv, void *given)
{
	struct arena *a = arena_new();
	int code = frame_run(command, a, argc, argv, given);
	arena_free(a);
	return code;
}
