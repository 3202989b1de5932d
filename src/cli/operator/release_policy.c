/* `steward release-policy`: the operator approves that a project's backup compliance policy may be disabled. It is a
 * command on the data directory and not an API operation, because the policy holds every caller, the project's owners
 * too. The command only marks the policy; one of the owners disables it then. */
#include "api/snapshots/snapshots.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct release_arguments {
	const char *data, *store;
	bool yes;
};

const struct option_row release_policy_options[] = {
        OPERATOR_STORE(struct release_arguments),
        {"yes", 0, OPTION_SWITCH, offsetof(struct release_arguments, yes), NULL, NULL,
         "Do it. Without it, the command says whose policy it is.", .flag_only = true},
};
const size_t release_policy_option_count = sizeof release_policy_options / sizeof *release_policy_options;

struct releasing {
	struct arena *arena;
	struct str project, email;
	bool really;
};

static int release_run(struct tx *tx, void *ctx)
{
	struct releasing *x = ctx;
	return protection_approve(tx, x->arena, x->project, x->really, &x->email);
}

static int outcome_tell(const struct releasing *x, int r)
{
	if (r == -ENOENT)
		option_refuse("release-policy: no project with the id \"%.*s\" has a backup compliance policy",
		              STR_ARG(x->project));
	else if (r == -EALREADY)
		option_refuse("release-policy: the policy of project %.*s may be disabled already",
		              STR_ARG(x->project));
	else if (r < 0)
		option_refuse("release-policy: the store refused: %s", strerror(-r));
	if (r < 0)
		return EXIT_NOT_DONE;
	printf("The backup compliance policy of project %.*s; %.*s is authorized to ask for its end.\n",
	       STR_ARG(x->project), STR_ARG(x->email));
	printf("%s", x->really ? "Released: an owner of the project can disable it now.\n"
	                       : "Nothing was changed. With --yes, an owner of the project can disable it.\n");
	return x->really ? EXIT_DONE : EXIT_NOT_DONE;
}

static int release(const struct operator_call *c)
{
	const struct release_arguments *g = c->given;
	struct releasing releasing = {.arena = c->arena, .project = str_of(c->words[0]), .really = g->yes};
	struct store *store;
	if (service_store_open(c->arena, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int code = outcome_tell(&releasing, store_write_wait(store, release_run, &releasing));
	store_close(store);
	return code;
}

int release_policy_command(int argc, char **argv)
{
	struct release_arguments g = {0};
	return operator_run(
	        &(struct operator_command){.name = "release-policy",
	                                   .options = release_policy_options,
	                                   .option_count = release_policy_option_count,
	                                   .words_max = 1,
	                                   .wants = "of which project? steward release-policy --data DIR PROJECT",
	                                   .run = release},
	        argc, argv, &g);
}
