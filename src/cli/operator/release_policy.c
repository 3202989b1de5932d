/* `steward release-policy`: the operator approves that a project's backup compliance policy may be disabled. It is a
 * command on the data directory and not an API operation, because the policy holds every caller, the project's owners
 * too. The command only marks the policy; one of the owners disables it then. */
#include "api/snapshots/snapshots.h"
#include "cli/cli.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct release_arguments {
	const char *data, *store;
	bool yes;
};

const struct option_row release_policy_options[] = {
        {"data", 0, OPTION_TEXT, offsetof(struct release_arguments, data), "./data", "DIR",
         "Data directory of the service."},
        {"store", 0, OPTION_TEXT, offsetof(struct release_arguments, store), NULL, "URL",
         "The store, where the service is run with --store."},
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

static int release(struct arena *a, const struct release_arguments *g, const char *project)
{
	struct releasing releasing = {.arena = a, .project = str_of(project), .really = g->yes};
	struct store *store;
	if (service_store_open(a, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int code = outcome_tell(&releasing, store_write_wait(store, release_run, &releasing));
	store_close(store);
	return code;
}

int release_policy_command(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct release_arguments g = {0};
	struct options given;
	const char *words[1];
	size_t count = 0;
	options_setup(&given, "release-policy", release_policy_options, release_policy_option_count, &g, a);
	int r = options_args(&given, argc, argv, words, 1, &count), code = EXIT_USAGE;
	if (r == OPTIONS_HELP) {
		help_command(stdout, "release-policy");
		code = EXIT_DONE;
	} else if (r == 0 && options_environment(&given) == 0) {
		if (count == 0)
			option_refuse("release-policy: of which project? steward release-policy --data DIR PROJECT");
		else
			code = release(a, &g, words[0]);
	}
	arena_free(a);
	return code;
}
