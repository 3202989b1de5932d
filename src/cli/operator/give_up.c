/* `steward give-up`: the operator confirms that the missing data of a cluster will not come back. It is a command on
 * the data directory and not an API operation: whoever may delete a cluster can do that through the API, but making its
 * databases empty under the same name, users and addresses is a decision for the operator of the machine. The command
 * only writes the mark; the service does the rest when it next looks, within a minute, or when it starts. */
#include "api/clusters/clusters.h"
#include "cli/cli.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct give_up_arguments {
	const char *data, *store;
	bool yes;
};

const struct option_row give_up_options[] = {
        {"data", 0, OPTION_TEXT, offsetof(struct give_up_arguments, data), "./data", "DIR",
         "Data directory of the service."},
        {"store", 0, OPTION_TEXT, offsetof(struct give_up_arguments, store), NULL, "URL",
         "The store, where the service is run with --store."},
        {"yes", 0, OPTION_SWITCH, offsetof(struct give_up_arguments, yes), NULL, NULL,
         "Do it. Without it, the command says what would be given up.", .flag_only = true},
};
const size_t give_up_option_count = sizeof give_up_options / sizeof *give_up_options;

struct giving {
	struct arena *arena;
	struct str cluster;
	bool really;
	struct given_up given;
};

static int give_up_run(struct tx *tx, void *ctx)
{
	struct giving *g = ctx;
	return cluster_give_up(tx, g->arena, g->cluster, g->really, &g->given);
}

static int outcome_tell(const struct giving *g, int r)
{
	switch (r) {
	case 0: break;
	case -ENOENT: option_refuse("give-up: there is no cluster \"%.*s\"", STR_ARG(g->cluster)); return EXIT_NOT_DONE;
	case -EEXIST:
		option_refuse("give-up: several clusters are named \"%.*s\"; give the id, as the API shows it",
		              STR_ARG(g->cluster));
		return EXIT_NOT_DONE;
	case -EINVAL:
		option_refuse("give-up: no data of the cluster %.*s (%.*s) is missing; nothing is given up",
		              STR_ARG(g->given.name), STR_ARG(g->given.id));
		return EXIT_NOT_DONE;
	default: option_refuse("give-up: the store refused: %s", strerror(-r)); return EXIT_NOT_DONE;
	}
	printf("%.*s (%.*s of project %.*s): %.*s\n", STR_ARG(g->given.name), STR_ARG(g->given.id),
	       STR_ARG(g->given.group_id), STR_ARG(g->given.why));
	printf("%s", g->really ? "Given up: the service makes what is missing anew, empty, within a minute or when it "
	                         "starts.\n"
	                       : "Nothing was changed. With --yes, what is missing is made anew, empty, and cannot be "
	                         "put back any more.\n");
	return g->really ? EXIT_DONE : EXIT_NOT_DONE;
}

static int give_up(struct arena *a, const struct give_up_arguments *g, const char *cluster)
{
	struct giving giving = {.arena = a, .cluster = str_of(cluster), .really = g->yes};
	struct store *store;
	if (service_store_open(a, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int r = store_write_wait(store, give_up_run, &giving);
	int code = outcome_tell(&giving, r);
	store_close(store);
	return code;
}

int give_up_command(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct give_up_arguments g = {0};
	struct options given;
	const char *words[1];
	size_t count = 0;
	options_setup(&given, "give-up", give_up_options, give_up_option_count, &g, a);
	int r = options_args(&given, argc, argv, words, 1, &count), code = EXIT_USAGE;
	if (r == OPTIONS_HELP) {
		help_command(stdout, "give-up");
		code = EXIT_DONE;
	} else if (r == 0 && options_environment(&given) == 0) {
		if (count == 0)
			option_refuse("give-up: which cluster? steward give-up --data DIR CLUSTER");
		else
			code = give_up(a, &g, words[0]);
	}
	arena_free(a);
	return code;
}
