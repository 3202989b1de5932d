/* `steward serve`. */
#ifndef STEWARD_SERVE_SERVE_H
#define STEWARD_SERVE_SERVE_H

/* Arguments after "serve". Returns the exit code. */
int serve_command(int argc, char **argv);

#endif
