/* `steward outbox`: what has left for people and services of others, what waits and why. It reads the records in the
 * store, beside a running service; no record has a secret. */
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"

#include "base/buf.h"
#include "base/json.h"
#include "cli/client.h"
#include "store/store.h"

#include <stddef.h>

struct outbox_arguments {
	const char *data, *store, *output, *status, *alert;
};

#define AT(member) offsetof(struct outbox_arguments, member)

const struct option_row outbox_options[] = {
        OPERATOR_STORE(struct outbox_arguments),
        {"status", 0, OPTION_CHOICE, AT(status), NULL, "STATUS", "Only messages that are QUEUED, DELIVERED or FAILED.",
         "QUEUED|DELIVERED|FAILED", .flag_only = true},
        {"alert", 0, OPTION_TEXT, AT(alert), NULL, "ID", "Only messages about this alert.", .flag_only = true},
        {"output", 'o', OPTION_CHOICE, AT(output), "text", "FORMAT", "text or json: an object on each line.",
         "text|json", .flag_only = true},
};
const size_t outbox_option_count = sizeof outbox_options / sizeof *outbox_options;

struct showing {
	const struct outbox_arguments *arguments;
	struct arena *arena;
};

static bool wanted(const struct outbox_arguments *g, const json_t *record)
{
	return (!g->status || str_is(json_field(record, "status"), g->status)) &&
	       (!g->alert || str_is(json_field(record, "alertId"), g->alert));
}

static int record_show(struct tx *tx, void *ctx, const struct doc *d)
{
	struct showing *s = ctx;
	const json_t *r = doc_json(s->arena, d->body);
	struct str error = json_field(r, "lastError");
	if (wanted(s->arguments, r)) {
		if (str_is(str_of(s->arguments->output), "json"))
			printf("%.*s\n", STR_ARG(d->body));
		else
			printf("%.*s  %-9.*s %-15.*s %-32s %2lld  %.*s\n", STR_ARG(json_field(r, "updated")),
			       STR_ARG(json_field(r, "status")), STR_ARG(json_field(r, "kind")),
			       text_shown(s->arena, json_field(r, "receiver")), (long long)json_number(r, "attempts"),
			       STR_ARG(json_field(r, "alertId")));
		if (error.n && str_is(str_of(s->arguments->output), "text"))
			printf("                      last error: %s\n", text_shown(s->arena, error));
	}
	arena_reset(s->arena);
	return 0;
}

static int records_show(const struct operator_call *c)
{
	const struct outbox_arguments *g = c->given;
	struct showing s = {.arguments = g, .arena = arena_new()};
	struct store *store;
	if (service_store_open(c->arena, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	struct tx *reader = store_reader(store);
	tx_begin_read(reader);
	int r = tx_walk_all(reader, "delivery", record_show, &s);
	tx_end_read(reader);
	store_reader_free(reader);
	store_close(store);
	arena_free(s.arena);
	if (r < 0)
		option_refuse("outbox: the store refused: %s", strerror(-r));
	return r < 0 ? EXIT_NOT_DONE : EXIT_DONE;
}

int outbox_command(int argc, char **argv)
{
	struct outbox_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "outbox",
	                                               .options = outbox_options,
	                                               .option_count = outbox_option_count,
	                                               .words_max = 0,
	                                               .run = records_show},
	                    argc, argv, &g);
}
