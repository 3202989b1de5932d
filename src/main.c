/* The program: the commands, and the service. */
#include "cli/program.h"
#include "serve/serve.h"

int main(int argc, char **argv)
{
	return program_run(argc, argv, serve_command);
}
