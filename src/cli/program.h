/* The program, from its arguments to its exit code. */
#ifndef STEWARD_CLI_PROGRAM_H
#define STEWARD_CLI_PROGRAM_H

/* `serve` runs `steward serve`, with the arguments after that word. Returns the exit code. */
int program_run(int argc, char **argv, int (*serve)(int argc, char **argv));

#endif
