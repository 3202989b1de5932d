/* `steward password-link`: a link with which somebody sets a new password, for the operator to hand over: where there
 * is no mail server, or where the one-time codes are lost too. The store may be in use. */
#include "api/sign_in/sign_in.h"
#include "cli/cli.h"
#include "cli/operator/link.h"
#include "cli/operator/operator.h"

struct link_arguments {
	const char *data, *store;
	bool without_codes;
};

const struct option_row password_link_options[] = {
        OPERATOR_STORE(struct link_arguments),
        {"without-codes", 0, OPTION_SWITCH, offsetof(struct link_arguments, without_codes), NULL, NULL,
         "The account's one-time codes are lost: do not ask for them any more.", .flag_only = true},
};
const size_t password_link_option_count = sizeof password_link_options / sizeof *password_link_options;

static int link_make(struct tx *tx, struct arena *a, const char *base_url, const struct link_order *order,
                     struct str *ret_link)
{
	return password_link(tx, a, base_url, order->of, order->without_codes, ret_link);
}

static int link_give(const struct operator_call *c)
{
	const struct link_arguments *g = c->given;
	return link_print(c->arena, &(struct link_order){.command = "password-link",
	                                                 .data = g->data,
	                                                 .store = g->store,
	                                                 .of = str_of(c->words[0]),
	                                                 .make = link_make,
	                                                 .missing = "nobody has the name",
	                                                 .without_codes = g->without_codes});
}

int password_link_command(int argc, char **argv)
{
	struct link_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "password-link",
	                                               .options = password_link_options,
	                                               .option_count = password_link_option_count,
	                                               .words_max = 1,
	                                               .wants = "for whom? steward password-link --data DIR USERNAME",
	                                               .run = link_give},
	                    argc, argv, &g);
}
