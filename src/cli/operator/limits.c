/* `steward limits`: the operator's overrides of the rate limits, kept in the store. A running service polls the store
 * and applies them within a second, so this only writes a row; SQLite allows one more process to write beside the
 * service. */
#include "base/buf.h"
#include "base/id.h"
#include "base/ip.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "gate/rules.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct limits_arguments {
	const char *data, *store, *set, *scope, *output;
	bool all;
	unsigned capacity, refill;
};

#define AT(member) offsetof(struct limits_arguments, member)

const struct option_row limits_options[] = {
        OPERATOR_STORE(struct limits_arguments),
        {"set", 0, OPTION_TEXT, AT(set), NULL, "ID", "Endpoint set, as GET /rateLimits names it: S17.",
         .flag_only = true},
        {"all", 0, OPTION_SWITCH, AT(all), NULL, NULL, "All sets together, instead of --set.", .flag_only = true},
        {"scope", 0, OPTION_TEXT, AT(scope), NULL, "ID",
         "Only this project, organization, caller or address. Without it: each one.", .flag_only = true},
        {"capacity", 0, OPTION_NUMBER, AT(capacity), NULL, "N", "Most tokens of a bucket.", NULL, 1, LIMIT_MAX, true},
        {"refill", 0, OPTION_NUMBER, AT(refill), NULL, "N", "Tokens added at each refill.", NULL, 1, LIMIT_MAX, true},
        {"output", 'o', OPTION_CHOICE, AT(output), "text", "FORMAT", "Of list: text or json.", "text|json",
         .flag_only = true},
};
const size_t limits_option_count = sizeof limits_options / sizeof *limits_options;

static bool set_fits(const struct limits_arguments *g, struct limit_override *o)
{
	if (g->all == (g->set != NULL)) {
		option_refuse("limits: give either --set ID or --all");
		return false;
	}
	const struct bucket_set *set = g->set ? rules_find_set(str_of(g->set)) : NULL;
	if (g->set && !set) {
		option_refuse("--set: there is no set \"%s\"; sets are %s to %s", g->set, catalog_sets[0].id,
		              catalog_sets[catalog_set_count - 1].id);
		return false;
	}
	o->set = set ? str_of(set->id) : STR("*");
	return true;
}

/* Scopes are ids, or addresses written as the limiter writes them. */
static bool scope_fits(struct arena *a, const struct limits_arguments *g, struct limit_override *o)
{
	struct ip ip;
	const struct bucket_set *set = g->set ? rules_find_set(str_of(g->set)) : NULL;
	o->scope = STR("");
	if (!g->scope)
		return true;
	bool is_ip = ip_parse(str_of(g->scope), &ip), is_id = id_is_valid(str_of(g->scope));
	if (set && set->scope == SCOPE_IP ? !is_ip : set ? !is_id : !is_ip && !is_id) {
		option_refuse("--scope: \"%s\" is not %s", g->scope,
		              set && set->scope == SCOPE_IP ? "an address: the set counts by address"
		              : set                         ? "an id of 24 hexadecimal digits"
		                                            : "an id of 24 hexadecimal digits or an address");
		return false;
	}
	if (is_ip) {
		char text[IP_TEXT];
		ip_format(&ip, text);
		o->scope = arena_dup(a, str_of(text));
	} else {
		o->scope = str_of(g->scope);
	}
	return true;
}

static const char *described(struct arena *a, const struct limit_override *o)
{
	struct str set = str_is(o->set, "*") ? STR("all sets") : o->set;
	if (o->scope.n)
		return arena_printf(a, "%.*s for %.*s", STR_ARG(set), STR_ARG(o->scope)).p;
	return arena_printf(a, "%.*s", STR_ARG(set)).p;
}

/* Opening a store creates one where there is none; a mistyped --data must not do that. */
static int service_open(struct arena *a, const struct limits_arguments *g, struct store **ret_store)
{
	const char *proof = arena_printf(a, "%s/secret.key", g->data).p;
	if (store_url_is_remote(g->store))
		proof = "/";
	else if (g->store && strncmp(g->store, "sqlite:", 7) == 0)
		proof = g->store + 7;
	if (access(proof, F_OK) < 0)
		return option_refuse("%s holds no service's data (%s is missing); give --data DIR of a service that "
		                     "has been started",
		                     g->data, proof);
	struct store_options options = {.url = g->store, .data_dir = g->data};
	return store_open(&options, ret_store);
}

static int put_run(struct tx *tx, void *ctx)
{
	return tx_override_put(tx, ctx);
}

static int clear_run(struct tx *tx, void *ctx)
{
	const struct limit_override *o = ctx;
	return tx_override_delete(tx, o->set, o->scope);
}

static int limits_set(struct arena *a, struct store *store, struct limit_override *o)
{
	int r = store_write_wait(store, put_run, o);
	if (r < 0) {
		option_refuse("limits set: the store refused the write: %s", strerror(-r));
		return EXIT_NOT_DONE;
	}
	printf("%s: capacity %u, refill %u\n", described(a, o), o->capacity, o->refill);
	return EXIT_DONE;
}

static int limits_clear(struct arena *a, struct store *store, struct limit_override *o)
{
	int r = store_write_wait(store, clear_run, o);
	if (r == -ENOENT) {
		option_refuse("limits clear: there is no override of %s; \"steward limits list\" shows those there are",
		              described(a, o));
		return EXIT_NOT_DONE;
	}
	if (r < 0) {
		option_refuse("limits clear: the store refused the write: %s", strerror(-r));
		return EXIT_NOT_DONE;
	}
	printf("%s: override cleared\n", described(a, o));
	return EXIT_DONE;
}

static void list_json(const struct limit_override *list, size_t count)
{
	struct buf b = {0};
	json_open(&b, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(&b, '{');
		json_key(&b, "set");
		json_str(&b, list[i].set);
		if (list[i].scope.n) {
			json_key(&b, "scope");
			json_str(&b, list[i].scope);
		}
		json_key(&b, "capacity");
		json_int(&b, list[i].capacity);
		json_key(&b, "refill");
		json_int(&b, list[i].refill);
		json_close(&b, '}');
	}
	json_close(&b, ']');
	printf("%.*s\n", STR_ARG(buf_view(&b)));
	buf_free(&b);
}

static void list_text(const struct limit_override *list, size_t count)
{
	if (count == 0) {
		printf("no overrides: the limits of the API and of the configuration file hold\n");
		return;
	}
	printf("%-5s %-40s %10s %10s  %s\n", "SET", "SCOPE", "CAPACITY", "REFILL", "NAME");
	for (size_t i = 0; i < count; i++) {
		const struct bucket_set *set = rules_find_set(list[i].set);
		struct str scope = list[i].scope.n ? list[i].scope : STR("(each)");
		printf("%-5.*s %-40.*s %10u %10u  %s\n", STR_ARG(list[i].set), STR_ARG(scope), list[i].capacity,
		       list[i].refill, set ? set->name : "(all sets)");
	}
}

static int limits_list(struct arena *a, struct store *store, const struct limits_arguments *g)
{
	struct limit_override *list;
	size_t count;
	struct tx *reader = store_reader(store);
	int r = reader ? tx_overrides(reader, a, &list, &count) : -EIO;
	if (r < 0)
		option_refuse("limits list: the store cannot be read");
	else if (strcmp(g->output, "json") == 0)
		list_json(list, count);
	else
		list_text(list, count);
	store_reader_free(reader);
	return r < 0 ? EXIT_NOT_DONE : EXIT_DONE;
}

enum verb { VERB_SET, VERB_LIST, VERB_CLEAR };

/* Which options each verb needs, and which it refuses. */
static bool usage_fits(const struct options *given, enum verb verb)
{
	static const char *const numbers[] = {"capacity", "refill"}, *const selectors[] = {"set", "all", "scope"};
	for (size_t i = 0; i < 2; i++)
		if (options_given(given, numbers[i]) != (verb == VERB_SET)) {
			option_refuse(verb == VERB_SET ? "limits set: --%s N is missing"
			                               : "limits: --%s goes with set only",
			              numbers[i]);
			return false;
		}
	for (size_t i = 0; verb == VERB_LIST && i < 3; i++)
		if (options_given(given, selectors[i])) {
			option_refuse("limits list: --%s goes with set and clear; list shows all overrides",
			              selectors[i]);
			return false;
		}
	return true;
}

static int limits_run(const struct operator_call *c)
{
	static const char *const verbs[] = {"set", "list", "clear"};
	const struct limits_arguments *g = c->given;
	struct limit_override o = {0};
	struct store *store;
	size_t verb = 0;
	while (c->count && verb < 3 && strcmp(c->words[0], verbs[verb]) != 0)
		verb++;
	if (!c->count || verb == 3) {
		option_refuse("limits: say set, list or clear; \"steward limits --help\" shows how");
		return EXIT_USAGE;
	}
	if (!usage_fits(c->options, (enum verb)verb))
		return EXIT_USAGE;
	if (verb != VERB_LIST && (!set_fits(g, &o) || !scope_fits(c->arena, g, &o)))
		return EXIT_USAGE;
	o.capacity = g->capacity;
	o.refill = g->refill;
	if (service_open(c->arena, g, &store) < 0)
		return EXIT_USAGE;
	int r = verb == VERB_SET     ? limits_set(c->arena, store, &o)
	        : verb == VERB_CLEAR ? limits_clear(c->arena, store, &o)
	                             : limits_list(c->arena, store, g);
	store_close(store);
	return r;
}

int limits_command(int argc, char **argv)
{
	struct limits_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "limits",
	                                               .options = limits_options,
	                                               .option_count = limits_option_count,
	                                               .words_max = 1,
	                                               .run = limits_run},
	                    argc, argv, &g);
}
