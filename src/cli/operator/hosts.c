/* `steward hosts`: which hosts share the store, what they have and what clusters take of it, and the operator's word on
 * them: whether they take new clusters, what they are labeled, and that one will not come back. It works on the store,
 * beside running services, which follow within a second. A change is an event of the first organization, so it takes
 * the service's key. */
#include "hosts/hosts.h"

#include "api/clusters/clusters.h"
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "store/seal.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#define WORDS_MAX OPERATOR_WORDS_MAX
#define NAMES_MAX 10 /* of clusters in a message */

struct hosts_arguments {
	const char *data, *store, *output;
	bool force;
};

#define AT(member) offsetof(struct hosts_arguments, member)

const struct option_row hosts_options[] = {
        {"data", 0, OPTION_TEXT, AT(data), "./data", "DIR", "Data directory of a service."},
        {"store", 0, OPTION_TEXT, AT(store), NULL, "URL", "The store, where the service is run with --store."},
        {"output", 'o', OPTION_CHOICE, AT(output), "text", "FORMAT", "Of list and show: text or json.", "text|json",
         .flag_only = true},
        {"force", 0, OPTION_SWITCH, AT(force), NULL, NULL,
         "Of remove: also a host that has clusters. They are out of reach until it is started again.",
         .flag_only = true},
};
const size_t hosts_option_count = sizeof hosts_options / sizeof *hosts_options;

enum verb { VERB_LIST, VERB_SHOW, VERB_CORDON, VERB_UNCORDON, VERB_LABEL, VERB_REMOVE };

struct work {
	struct arena *arena;
	enum verb verb;
	struct str which;
	const char *const *labels;
	size_t label_count;
	struct host host;
	bool changed, force;
	struct buf clusters; /* of a host to be removed: names */
	size_t cluster_count;
};

/* --- showing */

static const char *state_of(const struct host *h)
{
	return !h->alive ? "away" : h->cordoned ? "cordoned" : "ready";
}

static void room_json(struct buf *b, const char *name, const struct host_room *r)
{
	json_key(b, name);
	json_open(b, '{');
	json_pair_int(b, "cores", r->cores);
	json_pair_int(b, "memoryMB", r->memory_mb);
	json_pair_int(b, "diskMB", r->disk_mb);
	json_close(b, '}');
}

static void host_json(struct buf *b, struct arena *a, const struct host *h)
{
	json_open(b, '{');
	json_pair_str(b, "id", h->id);
	json_pair_str(b, "name", h->name);
	json_pair_str(b, "address", h->address);
	json_pair_bool(b, "alive", h->alive);
	json_pair_bool(b, "cordoned", h->cordoned);
	json_key(b, "labels");
	json_raw(b, h->labels ? json_text(a, h->labels) : STR("{}"));
	room_json(b, "capacity", &h->capacity);
	room_json(b, "bound", &h->bound);
	room_json(b, "used", &h->used);
	json_pair_int(b, "clusterCount", h->clusters);
	if (h->usage.n) {
		json_key(b, "usage");
		json_raw(b, h->usage);
	}
}

static const char *labels_text(struct arena *a, const struct host *h)
{
	struct buf b = {0};
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)h->labels, name, value)
	        buf_printf(&b, "%s%s=%s", b.n ? "," : "", name, json_string_value(value));
	const char *text = b.n ? arena_z(a, buf_view(&b)) : "-";
	buf_free(&b);
	return text;
}

/* "6/64": of a bound where there is one, else of what the machine has. */
static const char *share_text(struct arena *a, int64_t used, int64_t bound, int64_t capacity)
{
	return arena_printf(a, "%lld/%lld%s", (long long)used, (long long)(bound ? bound : capacity), bound ? "" : "*")
	        .p;
}

static void host_line(struct arena *a, const struct host *h)
{
	printf("%-24s %-9s %8lld %10s %14s %16s  %s\n", arena_z(a, h->name), state_of(h), (long long)h->clusters,
	       share_text(a, h->used.cores, h->bound.cores, h->capacity.cores),
	       share_text(a, h->used.memory_mb, h->bound.memory_mb, h->capacity.memory_mb),
	       share_text(a, h->used.disk_mb, h->bound.disk_mb, h->capacity.disk_mb), labels_text(a, h));
}

static int list_show(struct arena *a, struct tx *reader, bool json)
{
	struct host *list;
	size_t count;
	struct buf b = {0};
	int r = hosts_read(reader, a, &list, &count);
	if (r < 0)
		return r;
	if (!json)
		printf("%-24s %-9s %8s %10s %14s %16s  %s\n", "NAME", "STATE", "CLUSTERS", "CORES", "MEMORY MB",
		       "DISK MB", "LABELS");
	json_open(&b, '[');
	for (size_t i = 0; i < count; i++) {
		if (!json) {
			host_line(a, &list[i]);
			continue;
		}
		host_json(&b, a, &list[i]);
		json_close(&b, '}');
	}
	json_close(&b, ']');
	if (json)
		printf("%.*s\n", STR_ARG(buf_view(&b)));
	else
		printf("* no bound: what the machine has\n");
	buf_free(&b);
	return 0;
}

struct naming {
	struct arena *arena;
	struct str host;
	struct buf *json;
};

static int cluster_name(struct tx *tx, void *ctx, const struct doc *d)
{
	struct naming *n = ctx;
	struct cluster cluster = cluster_of(n->arena, d);
	if (!str_eq(cluster_host(&cluster), n->host))
		return 0;
	if (!n->json) {
		printf("  %-24.*s of project %.*s (%.*s)\n", STR_ARG(d->name), STR_ARG(d->parent), STR_ARG(d->id));
		return 0;
	}
	json_open(n->json, '{');
	json_pair_str(n->json, "id", d->id);
	json_pair_str(n->json, "name", d->name);
	json_pair_str(n->json, "groupId", d->parent);
	json_close(n->json, '}');
	return 0;
}

static int host_show(struct work *w, struct tx *reader, bool json)
{
	struct arena *a = w->arena;
	struct buf b = {0};
	struct naming n = {.arena = a, .json = json ? &b : NULL};
	int r = host_find(reader, a, w->which, &w->host);
	if (r < 0)
		return r;
	const struct host *h = &w->host;
	n.host = h->id;
	if (json) {
		host_json(&b, a, h);
		json_key(&b, "clusters");
		json_open(&b, '[');
	} else {
		printf("name      %.*s\nid        %.*s\naddress   %.*s\nstate     %s\nlabels    %s\n", STR_ARG(h->name),
		       STR_ARG(h->id), STR_ARG(h->address), state_of(h), labels_text(a, h));
		printf("cores     %s\nmemory    %s MB\ndisk      %s MB\nclusters  %lld\n",
		       share_text(a, h->used.cores, h->bound.cores, h->capacity.cores),
		       share_text(a, h->used.memory_mb, h->bound.memory_mb, h->capacity.memory_mb),
		       share_text(a, h->used.disk_mb, h->bound.disk_mb, h->capacity.disk_mb), (long long)h->clusters);
	}
	r = clusters_walk(reader, cluster_name, &n);
	if (json) {
		json_close(&b, ']');
		json_close(&b, '}');
		printf("%.*s\n", STR_ARG(buf_view(&b)));
	}
	buf_free(&b);
	return r;
}

/* --- changing */

static int change_run(struct tx *tx, void *ctx)
{
	struct work *w = ctx;
	int r = host_find(tx, w->arena, w->which, &w->host);
	w->changed = false;
	if (r == 0 && w->verb != VERB_LABEL) {
		r = host_cordon(tx, w->arena, &w->host, w->verb == VERB_CORDON);
		w->changed = r == 0;
	}
	for (size_t i = 0; r >= 0 && i < w->label_count; i++) {
		struct str name, value;
		str_cut(str_of(w->labels[i]), '=', &name, &value);
		r = host_label(tx, w->arena, &w->host, name, value);
		w->changed |= r == 0;
	}
	return r < 0 ? r : 0;
}

static int change(struct work *w, struct store *store)
{
	int r = store_write_wait(store, change_run, w);
	if (r < 0)
		return r;
	printf("%.*s: %s%s, labels %s\n", STR_ARG(w->host.name),
	       w->host.cordoned ? "takes no new clusters" : "takes clusters", w->changed ? "" : " (as before)",
	       labels_text(w->arena, &w->host));
	return 0;
}

static int cluster_note(struct tx *tx, void *ctx, const struct doc *d)
{
	struct work *w = ctx;
	struct cluster cluster = cluster_of(w->arena, d);
	if (!str_eq(cluster_host(&cluster), w->host.id))
		return 0;
	if (w->cluster_count++ < NAMES_MAX)
		buf_printf(&w->clusters, "%s%.*s", w->clusters.n ? ", " : "", STR_ARG(d->name));
	else if (w->cluster_count == NAMES_MAX + 1)
		buf_z(&w->clusters, ", ...");
	return 0;
}

static int remove_run(struct tx *tx, void *ctx)
{
	struct work *w = ctx;
	w->clusters.n = w->cluster_count = 0;
	int r = host_find(tx, w->arena, w->which, &w->host);
	if (r == 0 && !w->host.alive)
		r = clusters_walk(tx, cluster_note, w);
	if (r == 0 && w->cluster_count && !w->force)
		r = -ENOTEMPTY;
	return r < 0 ? r : host_remove(tx, w->arena, &w->host);
}

static int host_take_out(struct work *w, struct store *store)
{
	int r = store_write_wait(store, remove_run, w);
	const char *clusters = w->clusters.n ? arena_z(w->arena, buf_view(&w->clusters)) : "";
	buf_free(&w->clusters);
	if (r == -EBUSY)
		option_refuse("hosts remove: %.*s is alive, and would be back within a second; stop its process first",
		              STR_ARG(w->host.name));
	else if (r == -ENOTEMPTY)
		option_refuse("hosts remove: %.*s has clusters (%s): delete them while it runs; with --force they stay "
		              "in the store, where nobody reaches, changes or deletes them until a process is started "
		              "on the host's data directory",
		              STR_ARG(w->host.name), clusters);
	else if (r == 0 && w->cluster_count)
		printf("%.*s: removed; out of reach without it: %s\n", STR_ARG(w->host.name), clusters);
	else if (r == 0)
		printf("%.*s: removed\n", STR_ARG(w->host.name));
	return r;
}

static int work_run(struct work *w, struct store *store, bool json)
{
	if (w->verb >= VERB_CORDON)
		return w->verb == VERB_REMOVE ? host_take_out(w, store) : change(w, store);
	struct tx *reader = store_reader(store);
	int r = !reader ? -EIO : w->verb == VERB_LIST ? list_show(w->arena, reader, json) : host_show(w, reader, json);
	store_reader_free(reader);
	return r;
}

/* --- usage */

static bool labels_fit(const struct work *w)
{
	struct str name, value;
	for (size_t i = 0; i < w->label_count; i++)
		if (!str_cut(str_of(w->labels[i]), '=', &name, &value) || !host_label_is_valid(name, value)) {
			option_refuse(
			        "hosts label: \"%s\" is not NAME=VALUE, such as region=US_EAST_1; NAME= takes a label "
			        "away",
			        w->labels[i]);
			return false;
		}
	return true;
}

static bool words_fit(struct work *w, const char *const *words, size_t count)
{
	static const char *const verbs[] = {"list", "show", "cordon", "uncordon", "label", "remove"};
	const size_t verb_count = sizeof verbs / sizeof *verbs;
	size_t verb = 0, most = 2;
	while (count && verb < verb_count && strcmp(words[0], verbs[verb]) != 0)
		verb++;
	if (!count || verb == verb_count) {
		option_refuse(
		        "hosts: say list, show, cordon, uncordon, label or remove; \"steward hosts --help\" shows "
		        "how");
		return false;
	}
	w->verb = (enum verb)verb;
	most = w->verb == VERB_LIST ? 1 : w->verb == VERB_LABEL ? WORDS_MAX : 2;
	if (w->verb != VERB_LIST && count < 2) {
		option_refuse("hosts %s: which host? \"steward hosts list\" shows them", verbs[verb]);
		return false;
	}
	if (count > most || (w->verb == VERB_LABEL && count < 3)) {
		option_refuse("hosts %s: %s", verbs[verb],
		              w->verb == VERB_LABEL && count < 3 ? "give labels as NAME=VALUE" : "too many words");
		return false;
	}
	if (w->force && w->verb != VERB_REMOVE) {
		option_refuse("hosts %s: --force is for remove", verbs[verb]);
		return false;
	}
	w->which = str_of(count > 1 ? words[1] : NULL);
	w->labels = words + 2;
	w->label_count = w->verb == VERB_LABEL ? count - 2 : 0;
	return labels_fit(w);
}

static int service_open(struct arena *a, const struct hosts_arguments *g, const struct work *w,
                        struct store **ret_store)
{
	if (!store_url_is_remote(g->store) || w->verb >= VERB_CORDON)
		return service_store_open(a, g->data, g->store, ret_store);
	int r = seal_read(g->data);
	struct store_options options = {.url = g->store, .data_dir = g->data};
	return r < 0 && r != -ENOENT ? r : store_open(&options, ret_store);
}

static int hosts_run(const struct operator_call *c)
{
	const struct hosts_arguments *g = c->given;
	struct work w = {.arena = c->arena, .force = g->force};
	struct store *store;
	if (!words_fit(&w, c->words, c->count) || service_open(c->arena, g, &w, &store) < 0)
		return EXIT_USAGE;
	int r = work_run(&w, store, strcmp(g->output, "json") == 0);
	store_close(store);
	if (r == -ENOENT)
		option_refuse("hosts: there is no host \"%.*s\"; \"steward hosts list\" shows them", STR_ARG(w.which));
	else if (r < 0 && r != -EBUSY && r != -ENOTEMPTY)
		option_refuse("hosts: the store refused: %s", strerror(-r));
	return r < 0 ? EXIT_NOT_DONE : EXIT_DONE;
}

int hosts_command(int argc, char **argv)
{
	struct hosts_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "hosts",
	                                               .options = hosts_options,
	                                               .option_count = hosts_option_count,
	                                               .words_max = WORDS_MAX,
	                                               .run = hosts_run},
	                    argc, argv, &g);
}
