/* `steward accept-endpoint`: the operator says that a private endpoint was made at its provider, and from which
 * addresses its consumers come; or that it is not wanted. It is a command on the data directory and not an API
 * operation: what comes through the provider's network only the operator can know. The command only notes it; the
 * service does the rest. */
#include "api/private_endpoints/private_endpoints.h"
#include "base/ip.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

struct accept_arguments {
	const char *data, *store, *address, *reject;
};

const struct option_row accept_endpoint_options[] = {
        OPERATOR_STORE(struct accept_arguments),
        {"address", 0, OPTION_TEXT, offsetof(struct accept_arguments, address), NULL, "ADDRESS[,ADDRESS...]",
         "Accept it, with the addresses or networks that its consumers come from.", .flag_only = true},
        {"reject", 0, OPTION_TEXT, offsetof(struct accept_arguments, reject), NULL, "REASON",
         "Do not accept it; the endpoint shows the reason.", .flag_only = true},
};
const size_t accept_endpoint_option_count = sizeof accept_endpoint_options / sizeof *accept_endpoint_options;

#define REASON_MAX 300

struct accepting {
	struct arena *arena;
	struct endpoint_verdict verdict;
};

static int accept_run(struct tx *tx, void *ctx)
{
	struct accepting *x = ctx;
	return endpoint_verdict_note(tx, x->arena, &x->verdict);
}

/* Networks of all the internet are no consumer. Relays have IPv4 alone, and all of it lies in some networks of IPv6. */
static bool address_is_good(struct str text)
{
	struct cidr network;
	return cidr_parse(text, &network) && network.v4 && !cidr_has_host_bits(text, &network) &&
	       cidr_prefix(&network) >= 8;
}

static int verdict_read(struct arena *a, const struct accept_arguments *g, struct endpoint_verdict *v)
{
	struct str *list = arena_new_array(a, struct str, ENDPOINT_ADDRESSES_MAX), rest = str_of(g->address), one;
	if (g->address && g->reject)
		return option_refuse("accept-endpoint: --address accepts, --reject does not; give one of them");
	if (g->reject && (!*g->reject || strlen(g->reject) > REASON_MAX))
		return option_refuse("accept-endpoint: --reject: the reason has 1 to %d bytes", REASON_MAX);
	v->reject = str_of(g->reject);
	v->addresses = list;
	for (bool more = g->address != NULL; more;) {
		more = str_cut(rest, ',', &one, &rest);
		one = str_trim(one);
		if (!address_is_good(one))
			return option_refuse(
			        "accept-endpoint: --address: \"%.*s\" is no IPv4 address, nor a network of at "
			        "least 8 bits, such as 10.20.0.0/16",
			        (int)(one.n > 100 ? 100 : one.n), one.p);
		if (v->address_count == ENDPOINT_ADDRESSES_MAX)
			return option_refuse("accept-endpoint: --address: at most %d of them", ENDPOINT_ADDRESSES_MAX);
		list[v->address_count++] = one;
	}
	return 0;
}

static int outcome_tell(const struct endpoint_verdict *v, int r)
{
	switch (r) {
	case 0: break;
	case -ENOENT:
		option_refuse("accept-endpoint: there is no private endpoint \"%.*s\"", STR_ARG(v->endpoint));
		return EXIT_NOT_DONE;
	case -EEXIST:
		option_refuse("accept-endpoint: several projects have an endpoint \"%.*s\": ask whose it is, and give "
		              "the id of ours, which the API shows in interfaceEndpoints of its service",
		              STR_ARG(v->endpoint));
		return EXIT_NOT_DONE;
	case -EINVAL:
		option_refuse("accept-endpoint: %.*s is %.*s: there is nothing to decide any more", STR_ARG(v->name),
		              STR_ARG(v->state));
		return EXIT_NOT_DONE;
	default: option_refuse("accept-endpoint: the store refused: %s", strerror(-r)); return EXIT_NOT_DONE;
	}
	printf("%.*s (%.*s at %.*s, of the service %.*s of project %.*s): %.*s\n", STR_ARG(v->name), STR_ARG(v->id),
	       STR_ARG(v->provider), STR_ARG(v->service_id), STR_ARG(v->group_id), STR_ARG(v->state));
	if (v->reject.n)
		puts("Rejected: the service follows within a second, or when it starts.");
	else if (v->address_count)
		puts("Accepted: the service follows within a second, or when it starts.");
	else
		puts("Nothing was changed. With --address it is accepted, with --reject it is not.");
	return v->reject.n || v->address_count ? EXIT_DONE : EXIT_NOT_DONE;
}

static int accept_endpoint(const struct operator_call *c)
{
	const struct accept_arguments *g = c->given;
	struct accepting x = {.arena = c->arena, .verdict = {.endpoint = str_of(c->words[0])}};
	struct store *store;
	if (verdict_read(c->arena, g, &x.verdict) < 0 || service_store_open(c->arena, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int code = outcome_tell(&x.verdict, store_write_wait(store, accept_run, &x));
	store_close(store);
	return code;
}

int accept_endpoint_command(int argc, char **argv)
{
	struct accept_arguments g = {0};
	return operator_run(
	        &(struct operator_command){.name = "accept-endpoint",
	                                   .options = accept_endpoint_options,
	                                   .option_count = accept_endpoint_option_count,
	                                   .words_max = 1,
	                                   .wants = "which one? steward accept-endpoint --data DIR ENDPOINT",
	                                   .run = accept_endpoint},
	        argc, argv, &g);
}
