/* `steward give-up`: the operator confirms that the missing data of a cluster will not come back. It is a command on
 * the data directory and not an API operation: whoever may delete a cluster can do that through the API, but making its
 * databases empty under the same name, users and addresses is a decision for the operator of the machine. The command
 * only writes the mark; the service does the rest when it next looks, within a minute, or when it starts. */
#include "api/clusters/clusters.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct give_up_arguments {
	const char *data, *store;
	bool yes;
};

const struct option_row give_up_options[] = {
        OPERATOR_STORE(struct give_up_arguments),
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

static int give_up(const struct operator_call *c)
{
	const struct give_up_arguments *g = c->given;
	struct giving giving = {.arena = c->arena, .cluster = str_of(c->words[0]), .really = g->yes};
	struct store *store;
	if (service_store_open(c->arena, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int r = store_write_wait(store, give_up_run, &giving);
	int code = outcome_tell(&giving, r);
	store_close(store);
	return code;
}

int give_up_command(int argc, char **argv)
{
	struct give_up_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "give-up",
	                                               .options = give_up_options,
	                                               .option_count = give_up_option_count,
	                                               .words_max = 1,
	                                               .wants = "which cluster? steward give-up --data DIR CLUSTER",
	                                               .run = give_up},
	                    argc, argv, &g);
}
