/* One run of a derived command: command.c reads the words and flags, run.c does what they say. */
#ifndef STEWARD_CLI_DERIVED_RUN_H
#define STEWARD_CLI_DERIVED_RUN_H

#include "cli/derived/request.h"
#include "cli/output.h"

struct command_arguments {
	struct profile_arguments at;
	const char *output, *query, *body, *dry_run;
	unsigned timeout;
	bool all, wait, watch, yes;
};

struct run {
	struct arena *arena;
	const struct op *op, *polls; /* the latter: whose state is waited for, or NULL */
	struct command_arguments given;
	struct options options;
	struct given *flags;
	size_t flag_count;
	const char *words[PATH_PARAMS_MAX];
	size_t word_count;
	const char *named, *name;    /* the flag whose value was given as a word, or NULL; the word */
	struct cluster_shape *shape; /* of what is made by `clusters create`, else NULL */
	struct profile profile;
	struct client *client;
	struct output_options output;
	struct request request;
};

/* Makes the call and prints what comes of it. Returns the exit code. */
int run_call(struct run *r);

#endif
