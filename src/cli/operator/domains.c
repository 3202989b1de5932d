/* `steward domains`: which domains identity providers sign people in for, and the operator's word that a domain is a
 * federation's. The store may be in use. */
#include "api/federation/federation.h"
#include "base/json.h"
#include "catalog/formats.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>

struct domain_arguments {
	const char *data, *store;
};

const struct option_row domains_options[] = {
        OPERATOR_STORE(struct domain_arguments),
};
const size_t domains_option_count = sizeof domains_options / sizeof *domains_options;

struct change {
	struct arena *arena;
	struct str id, domain, federation;
	bool withdraws;
	json_t *list;
};

static int change_run(struct tx *tx, void *ctx)
{
	struct change *x = ctx;
	int result = domain_federation(tx, x->arena, x->id, &x->federation);
	if (result < 0)
		return result;
	return x->withdraws ? domain_withdraw(tx, x->arena, x->federation, x->domain)
	                    : domain_prove(tx, x->arena, x->federation, x->domain, "OPERATOR");
}

static int change_make(struct store *store, struct change *x)
{
	if (!domain_fits(x->domain)) {
		option_refuse("domains: \"%.*s\" is no domain name such as example.com", STR_ARG(x->domain));
		return EXIT_USAGE;
	}
	int r = store_write_wait(store, change_run, x);
	if (r == -ENOENT && !x->federation.n)
		option_refuse("domains: there is no organization and no federation %.*s", STR_ARG(x->id));
	else if (r == -ENOENT)
		option_refuse("domains: %.*s is not proven for %.*s", STR_ARG(x->domain), STR_ARG(x->id));
	else if (r < 0)
		option_refuse("domains: the store refused: %s", strerror(-r));
	if (r < 0)
		return EXIT_NOT_DONE;
	printf(x->withdraws ? "%.*s counts for federation %.*s no more.\n"
	                    : "Identity providers of federation %.*s sign people of %.*s in.\n",
	       STR_ARG(x->withdraws ? x->domain : x->federation), STR_ARG(x->withdraws ? x->federation : x->domain));
	return EXIT_DONE;
}

static int list_run(struct tx *tx, void *ctx)
{
	return domains_list(tx, ((struct change *)ctx)->list);
}

static int list_print(struct store *store, struct change *x)
{
	x->list = json_keep(x->arena, json_array());
	int r = store_write_wait(store, list_run, x);
	if (r < 0) {
		option_refuse("domains: the store refused: %s", strerror(-r));
		return EXIT_NOT_DONE;
	}
	for (size_t i = 0; i < json_array_size(x->list); i++) {
		const json_t *one = json_array_get(x->list, i);
		struct str how = json_field(one, "how"), at = json_field(one, "provenAt");
		printf("%-30.*s %.*s %s %.*s %.*s\n", STR_ARG(json_field(one, "domain")),
		       STR_ARG(json_field(one, "federationSettingsId")), how.n ? "proven by" : "waits", STR_ARG(how),
		       STR_ARG(at));
	}
	return EXIT_DONE;
}

static int domains_run(const struct operator_call *c)
{
	const struct domain_arguments *g = c->given;
	const char *const *words = c->words;
	bool lists = c->count == 0 || (c->count == 1 && strcmp(words[0], "list") == 0);
	bool withdraws = c->count == 3 && strcmp(words[0], "withdraw") == 0;
	struct store *store;
	if (!lists && !withdraws && (c->count != 3 || strcmp(words[0], "approve") != 0)) {
		option_refuse("domains: steward domains [list], or approve or withdraw ORGANIZATION DOMAIN");
		return EXIT_USAGE;
	}
	if (service_store_open(c->arena, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	struct change x = {.arena = c->arena, .withdraws = withdraws};
	if (!lists) {
		x.id = str_of(words[1]);
		x.domain = arena_lower(c->arena, str_of(words[2]));
	}
	int code = lists ? list_print(store, &x) : change_make(store, &x);
	store_close(store);
	return code;
}

int domains_command(int argc, char **argv)
{
	struct domain_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "domains",
	                                               .options = domains_options,
	                                               .option_count = domains_option_count,
	                                               .words_max = 3,
	                                               .run = domains_run},
	                    argc, argv, &g);
}
