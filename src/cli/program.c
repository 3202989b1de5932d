/* Which command the words are: a derived one, one written by hand, or `steward serve`, which the caller brings along
 * because it is above all commands. */
#include "cli/program.h"

#include "base/json.h"
#include "cli/cli.h"
#include "cli/derived/command.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {{"clusters", clusters_command},
                {"backups", backups_command},
                {"advisor", advisor_command},
                {"search-indexes", search_indexes_command},
                {"connect", connect_command},
                {"api", api_command},
                {"limits", limits_command},
                {"backup", backup_command},
                {"check", check_command},
                {"repository", repository_command},
                {"store", store_command},
                {"give-up", give_up_command},
                {"orphans", orphans_command},
                {"release-policy", release_policy_command},
                {"invitation-link", invitation_link_command},
                {"domains", domains_command},
                {"password-link", password_link_command},
                {"accept-endpoint", accept_endpoint_command},
                {"hosts", hosts_command},
                {"secret-key", secret_key_command},
                {"outbox", outbox_command},
                {"billing", billing_command},
                {"invoices", invoices_command},
                {"login", login_command},
                {"logout", logout_command},
                {"config", config_command},
                {"logs", logs_command},
                {"events", events_command},
                {"completion", completion_command},
                {"__complete", complete_command},
                {"__manual", manual_command}};

/* A command whose output could not be written has failed. For the service that does not matter: its output may be
 * closed. */
static int finish(int code, bool serves)
{
	if (serves || (fflush(stdout) == 0 && !ferror(stdout)))
		return code;
	option_refuse("the output cannot be written: %s", strerror(errno));
	return code == EXIT_DONE ? EXIT_NOT_DONE : code;
}

/* `steward help WORD...`: a hand-written command, a derived one, or a family. */
static int help_words(int argc, char **argv)
{
	int used;
	const struct op *op = command_find(argc, argv, &used);
	const struct command_family *family = command_family_find(argv[0]);
	if (op)
		usage_command(stdout, op);
	else if (argc > 1 && usage_part(stdout, argc, argv))
		return EXIT_DONE;
	else if (!help_command(stdout, argv[0]) && !family)
		return help_unknown(argv[0]);
	if (!op && family)
		usage_family(stdout, family);
	return EXIT_DONE;
}

/* `steward backups snapshots --help`: what begins with these words and is no command. */
static bool is_part_help(int argc, char **argv)
{
	int used;
	const char *last = argc > 2 ? argv[argc - 1] : "";
	return (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0) && !command_find(argc, argv, &used) &&
	       usage_part(stdout, argc - 1, argv);
}

int program_run(int argc, char **argv, int (*serve)(int argc, char **argv))
{
	json_setup();
	command_arrange(argc - 1, argv + 1);
	if (is_part_help(argc - 1, argv + 1))
		return finish(EXIT_DONE, false);
	const char *word = argc > 1 ? argv[1] : "--help";
	if (command_takes(argc - 1, argv + 1))
		return finish(command_run(argc - 1, argv + 1), false);
	if (strcmp(word, "serve") == 0)
		return finish(serve(argc - 2, argv + 2), true);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(word, commands[i].name) == 0)
			return finish(commands[i].run(argc - 2, argv + 2), false);
	if (command_family_find(word))
		return finish(command_run(argc - 1, argv + 1), false);
	if (strcmp(word, "--version") == 0) {
		version_print(stdout);
		return EXIT_DONE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
		if (argc > 2)
			return help_words(argc - 2, argv + 2);
		help_program(stdout);
		return argc > 1 ? EXIT_DONE : EXIT_USAGE;
	}
	return help_unknown(word);
}
