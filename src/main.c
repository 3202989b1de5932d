/* The program: picks the subcommand. */
#include "base/json.h"
#include "cli/cli.h"
#include "serve.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {{"serve", serve_command}, {"clusters", clusters_command}, {"connect", connect_command},
                {"api", api_command},     {"limits", limits_command},     {"backup", backup_command},
                {"check", check_command}, {"store", store_command},       {"give-up", give_up_command}};

/* A command whose output could not be written has failed. For the service that does not matter: its output may be
 * closed. */
static int finish(int code, bool serves)
{
	if (serves || (fflush(stdout) == 0 && !ferror(stdout)))
		return code;
	option_refuse("the output cannot be written: %s", strerror(errno));
	return code == EXIT_DONE ? EXIT_NOT_DONE : code;
}

int main(int argc, char **argv)
{
	json_setup();
	const char *word = argc > 1 ? argv[1] : "--help";
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(word, commands[i].name) == 0)
			return finish(commands[i].run(argc - 2, argv + 2), i == 0);
	if (strcmp(word, "--version") == 0) {
		version_print(stdout);
		return EXIT_DONE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
		if (argc > 2)
			return help_command(stdout, argv[2]) ? EXIT_DONE : help_unknown(argv[2]);
		help_program(stdout);
		return argc > 1 ? EXIT_DONE : EXIT_USAGE;
	}
	return help_unknown(word);
}
