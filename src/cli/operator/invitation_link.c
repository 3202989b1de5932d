/* `steward invitation-link`: a link by which somebody accepts an invitation, for the operator to hand over where there
 * is no mail server. The store may be in use. */
#include "api/users/users.h"
#include "cli/cli.h"
#include "cli/operator/link.h"
#include "cli/operator/operator.h"

struct link_arguments {
	const char *data, *store;
};

const struct option_row invitation_link_options[] = {OPERATOR_STORE(struct link_arguments)};
const size_t invitation_link_option_count = sizeof invitation_link_options / sizeof *invitation_link_options;

static int link_make(struct tx *tx, struct arena *a, const char *base_url, const struct link_order *order,
                     struct str *ret_link)
{
	return invitation_link(tx, a, base_url, order->of, ret_link);
}

static int link_give(const struct operator_call *c)
{
	const struct link_arguments *g = c->given;
	return link_print(c->arena, &(struct link_order){.command = "invitation-link",
	                                                 .data = g->data,
	                                                 .store = g->store,
	                                                 .of = str_of(c->words[0]),
	                                                 .make = link_make,
	                                                 .missing = "no invitation that can be accepted has the id"});
}

int invitation_link_command(int argc, char **argv)
{
	struct link_arguments g = {0};
	return operator_run(
	        &(struct operator_command){
	                .name = "invitation-link",
	                .options = invitation_link_options,
	                .option_count = invitation_link_option_count,
	                .words_max = 1,
	                .wants = "for which? steward invitation-link --data DIR ID, with the id that the log has",
	                .run = link_give},
	        argc, argv, &g);
}
