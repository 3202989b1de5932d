/* From a cluster's name to a session of psql, for commands that run SQL. */
#ifndef STEWARD_CLI_CLIENT_CONNECT_H
#define STEWARD_CLI_CLIENT_CONNECT_H

#include "base/option.h"
#include "cli/profile.h"

struct connect_arguments {
	struct profile_arguments at;
	const char *database, *user;
	struct option_texts commands;
	unsigned hours, timeout;
	bool print, read_only, federation;
};

/* Runs the session, or the commands, and returns an exit code; what failed is explained. */
int connect_run(struct arena *a, const struct connect_arguments *g, const char *name);

#endif
