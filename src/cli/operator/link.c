/* A link is made in the store, which may be in use, and leads to where bootstrap.json says that the service is. */
#include "cli/operator/link.h"

#include "base/json.h"
#include "cli/cli.h"
#include "cli/operator/service_store.h"

#include <errno.h>

struct linking {
	const struct link_order *order;
	struct arena *arena;
	const char *base_url;
	struct str link;
};

static int link_run(struct tx *tx, void *ctx)
{
	struct linking *x = ctx;
	return x->order->make(tx, x->arena, x->base_url, x->order, &x->link);
}

int link_print(struct arena *a, const struct link_order *order)
{
	json_t *known = json_keep(a, json_load_file(arena_printf(a, "%s/bootstrap.json", order->data).p, 0, NULL));
	struct linking x = {
	        .order = order, .arena = a, .base_url = json_string_value(json_object_get(known, "baseUrl"))};
	struct store *store;
	if (!x.base_url) {
		option_refuse("%s: %s has no bootstrap.json, which says where the service is", order->command,
		              order->data);
		return EXIT_USAGE;
	}
	if (service_store_open(a, order->data, order->store, &store) < 0)
		return EXIT_USAGE;
	int r = store_write_wait(store, link_run, &x);
	store_close(store);
	if (r == -ENOENT)
		option_refuse("%s: %s \"%.*s\"", order->command, order->missing, STR_ARG(order->of));
	else if (r < 0)
		option_refuse("%s: the store refused: %s", order->command, strerror(-r));
	if (r < 0)
		return EXIT_NOT_DONE;
	printf("%.*s\n", STR_ARG(x.link));
	return EXIT_DONE;
}
