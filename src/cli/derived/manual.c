/* `steward __manual`: the help of every derived command in one run, for the build, which makes manual pages of it. Each
 * begins with a form feed and the command's name. */
#include "cli/cli.h"
#include "cli/derived/command.h"

int manual_command(int argc, char **argv)
{
	for (unsigned i = 0; i < command_family_count; i++)
		printf("\f%s\n%s\n", command_families[i].name, command_families[i].description);
	for (unsigned i = 0; i < catalog_op_count; i++) {
		printf("\f%s\n%s\n", catalog_ops[i].command, catalog_ops[i].summary);
		usage_command(stdout, &catalog_ops[i]);
	}
	return EXIT_DONE;
}
