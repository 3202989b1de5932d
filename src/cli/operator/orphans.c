/* `steward orphans`: clusters whose databases are there and that the store does not know. The command shows what the
 * service has found, and writes down the operator's word; the service does the rest within a minute, or when it starts.
 */
#include "api/clusters/clusters.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>

struct orphans_arguments {
	const char *data, *store;
	bool yes;
};

const struct option_row orphans_options[] = {
        OPERATOR_STORE(struct orphans_arguments),
        {"yes", 0, OPTION_SWITCH, offsetof(struct orphans_arguments, yes), NULL, NULL,
         "Do it. Without it, the command says what would be ended.", .flag_only = true},
};
const size_t orphans_option_count = sizeof orphans_options / sizeof *orphans_options;

struct asked {
	struct arena *arena;
	struct str id; /* empty: all are shown */
	bool really;
	unsigned count;
};

static int orphan_show(struct tx *tx, void *ctx, const struct doc *d)
{
	struct asked *g = ctx;
	const json_t *body = json_keep(g->arena, json_loadb(d->body.p, d->body.n, 0, NULL));
	if (g->id.n && !str_eq(g->id, d->id))
		return 0;
	printf("%.*s  %.*s of project %.*s, %d of %d nodes ran, on host %.*s%s\n", STR_ARG(d->id),
	       STR_ARG(json_field(body, "name")), STR_ARG(json_field(body, "groupId")),
	       (int)json_integer_value(json_object_get(body, "running")),
	       (int)json_integer_value(json_object_get(body, "nodes")), STR_ARG(d->parent),
	       json_is_true(json_object_get(body, "end")) ? ", being ended" : "");
	g->count++;
	return 0;
}

static int asked_run(struct tx *tx, void *ctx)
{
	struct asked *g = ctx;
	g->count = 0;
	int r = tx_walk_all(tx, ORPHAN_KIND, orphan_show, g);
	if (r == 0 && g->id.n && g->count == 0)
		r = -ENOENT;
	return r == 0 && g->id.n && g->really ? orphan_end(tx, g->arena, g->id) : r;
}

static int asked_tell(const struct asked *g, int r)
{
	if (r == -ENOENT)
		option_refuse("orphans: there is no \"%.*s\" among those that the service has found", STR_ARG(g->id));
	else if (r == -EEXIST)
		option_refuse("orphans: the store knows the cluster %.*s: delete it through the API", STR_ARG(g->id));
	else if (r < 0)
		option_refuse("orphans: the store refused: %s", strerror(-r));
	if (r < 0)
		return EXIT_NOT_DONE;
	if (!g->id.n && !g->count)
		printf("The service has found none.\n");
	if (g->id.n)
		printf("%s", g->really ? "The service ends its servers and removes its data within a minute, or when "
		                         "it starts.\n"
		                       : "Nothing was changed. With --yes, its servers end and its data is removed for "
		                         "good.\n");
	return !g->id.n || g->really ? EXIT_DONE : EXIT_NOT_DONE;
}

static int orphans(const struct operator_call *c)
{
	const struct orphans_arguments *g = c->given;
	bool ends = c->count == 2 && strcmp(c->words[0], "end") == 0;
	struct asked asked = {.arena = c->arena, .id = ends ? str_of(c->words[1]) : STR_NONE, .really = g->yes};
	struct store *store;
	if (!ends && (c->count != 1 || strcmp(c->words[0], "list") != 0)) {
		option_refuse("orphans: say list, or end ID; \"steward orphans --help\" shows how");
		return EXIT_USAGE;
	}
	if (service_store_open(c->arena, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int code = asked_tell(&asked, store_write_wait(store, asked_run, &asked));
	store_close(store);
	return code;
}

int orphans_command(int argc, char **argv)
{
	struct orphans_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "orphans",
	                                               .options = orphans_options,
	                                               .option_count = orphans_option_count,
	                                               .words_max = 2,
	                                               .run = orphans},
	                    argc, argv, &g);
}
