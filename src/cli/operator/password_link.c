/* `steward password-link`: a link with which somebody sets a new password, for the operator to hand over: where there
 * is no mail server, or where the one-time codes are lost too. The store may be in use. */
#include "api/sign_in/sign_in.h"
#include "base/json.h"
#include "cli/cli.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>

struct link_arguments {
	const char *data, *store;
	bool without_codes;
};

const struct option_row password_link_options[] = {
        {"data", 0, OPTION_TEXT, offsetof(struct link_arguments, data), "./data", "DIR",
         "Data directory of the service."},
        {"store", 0, OPTION_TEXT, offsetof(struct link_arguments, store), NULL, "URL",
         "The store, where the service is run with --store."},
        {"without-codes", 0, OPTION_SWITCH, offsetof(struct link_arguments, without_codes), NULL, NULL,
         "The account's one-time codes are lost: do not ask for them any more.", .flag_only = true},
};
const size_t password_link_option_count = sizeof password_link_options / sizeof *password_link_options;

struct linking {
	struct arena *arena;
	const char *base_url;
	struct str username, link;
	bool without_codes;
};

static int link_run(struct tx *tx, void *ctx)
{
	struct linking *x = ctx;
	return password_link(tx, x->arena, x->base_url, x->username, x->without_codes, &x->link);
}

static int link_make(struct arena *a, const struct link_arguments *g, const char *username)
{
	json_t *known = json_keep(a, json_load_file(arena_printf(a, "%s/bootstrap.json", g->data).p, 0, NULL));
	struct linking x = {.arena = a,
	                    .base_url = json_string_value(json_object_get(known, "baseUrl")),
	                    .username = str_of(username),
	                    .without_codes = g->without_codes};
	struct store *store;
	if (!x.base_url) {
		option_refuse("password-link: %s has no bootstrap.json, which says where the service is", g->data);
		return EXIT_USAGE;
	}
	if (service_store_open(a, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int r = store_write_wait(store, link_run, &x);
	store_close(store);
	if (r == -ENOENT)
		option_refuse("password-link: nobody has the name \"%s\"", username);
	else if (r < 0)
		option_refuse("password-link: the store refused: %s", strerror(-r));
	if (r < 0)
		return EXIT_NOT_DONE;
	printf("%.*s\n", STR_ARG(x.link));
	return EXIT_DONE;
}

int password_link_command(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct link_arguments g = {0};
	struct options given;
	const char *words[1];
	size_t count = 0;
	options_setup(&given, "password-link", password_link_options, password_link_option_count, &g, a);
	int r = options_args(&given, argc, argv, words, 1, &count), code = EXIT_USAGE;
	if (r == OPTIONS_HELP) {
		help_command(stdout, "password-link");
		code = EXIT_DONE;
	} else if (r == 0 && options_environment(&given) == 0) {
		if (count == 0)
			option_refuse("password-link: for whom? steward password-link --data DIR USERNAME");
		else
			code = link_make(a, &g, words[0]);
	}
	arena_free(a);
	return code;
}
