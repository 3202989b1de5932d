/* `steward clusters`: the everyday commands for clusters, in words of their own: a cluster of a size and so many nodes
 * instead of a whole request, a table of what matters. All other commands for clusters are derived (command.c), and so
 * are these when a flag of the API is given. */
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/client/command.h"
#include "cli/derived/cluster_shape.h"
#include "cli/derived/command.h"
#include "cli/derived/pages.h"
#include "cli/derived/request.h"
#include "cli/meant.h"
#include "cli/output.h"
#include "cli/wait.h"

#include <errno.h>
#include <stddef.h>

/* The state of one command. */
struct work {
	struct arena *arena;
	const struct clusters_arguments *given;
	struct client *client;
	const char *project;
	const char *name; /* of the cluster */
	struct output_options output;
};

static const char *field(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

static const char *cluster_path(struct work *w, struct arena *a)
{
	return arena_printf(a, API_BASE "/groups/%s/clusters/%s", w->project, url_escape(a, str_of(w->name))).p;
}

#define SHOWN (-1) /* of call(): it was printed, not made */

static int call(struct work *w, const char *method, const char *path, const json_t *body, json_t **ret_json)
{
	if (w->given->dry_run) {
		struct client_request r = {.method = method, .path = path};
		if (body)
			r.body = json_text(w->arena, body);
		request_show(w->client, w->arena, &r, NULL, strcmp(w->given->dry_run, "curl") == 0);
		return SHOWN;
	}
	return client_ask(w->client, w->arena, method, path, body, ret_json);
}

/* Showing. */

static json_int_t nodes_count(const json_t *cluster)
{
	static const char *const kinds[] = {"electableSpecs", "readOnlySpecs", "analyticsSpecs"};
	const json_t *specs = json_object_get(cluster, "replicationSpecs");
	json_int_t count = 0;
	for (size_t s = 0; s < json_array_size(specs); s++) {
		const json_t *configs = json_object_get(json_array_get(specs, s), "regionConfigs");
		for (size_t i = 0; i < json_array_size(configs); i++) {
			/* A shared tier has one node and no nodeCount. */
			count += strcmp(field(json_array_get(configs, i), "providerName"), "TENANT") == 0;
			for (size_t k = 0; k < 3; k++)
				count += json_integer_value(json_object_get(
				        json_object_get(json_array_get(configs, i), kinds[k]), "nodeCount"));
		}
	}
	return count;
}

static const json_t *first_config(const json_t *cluster)
{
	const json_t *specs = json_object_get(cluster, "replicationSpecs");
	return json_array_get(json_object_get(json_array_get(specs, 0), "regionConfigs"), 0);
}

static const char *shown(const struct work *w, const json_t *object, const char *name)
{
	return text_shown(w->arena, str_of(field(object, name)));
}

static const char *state_of(const struct work *w, const json_t *cluster)
{
	bool rests =
	        json_is_true(json_object_get(cluster, "paused")) && strcmp(field(cluster, "stateName"), "IDLE") == 0;
	return rests ? "PAUSED" : shown(w, cluster, "stateName");
}

static const char *version_of(const struct work *w, const json_t *cluster)
{
	return shown(w, cluster, field(cluster, "dbVersion")[0] ? "dbVersion" : "dbMajorVersion");
}

static void cluster_print(const struct work *w, const json_t *cluster)
{
	const json_t *config = first_config(cluster), *strings = json_object_get(cluster, "connectionStrings");
	printf("name      %s\nstate     %s\ntype      %s\nversion   %s\n", shown(w, cluster, "name"),
	       state_of(w, cluster), shown(w, cluster, "clusterType"), version_of(w, cluster));
	printf("nodes     %lld\nsize      %s\nplace     %s %s\ncreated   %s\nid        %s\n",
	       (long long)nodes_count(cluster), shown(w, json_object_get(config, "electableSpecs"), "instanceSize"),
	       shown(w, config, "providerName"), shown(w, config, "regionName"), shown(w, cluster, "createDate"),
	       shown(w, cluster, "id"));
	if (strings && json_object_get(strings, "standard"))
		printf("connect   %s\n", shown(w, strings, "standard"));
	/* Real databases have addresses; simulated ones have none. */
	if (strstr(field(strings, "standard"), "hostaddr="))
		printf("psql      steward connect %s\n", shown(w, cluster, "name"));
}

static void list_print(const struct work *w, const json_t *clusters)
{
	size_t width = 4, count = json_array_size(clusters);
	if (!count)
		printf("no clusters; \"steward clusters create NAME --wait\" makes one\n");
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(field(json_array_get(clusters, i), "name"));
		width = n > width ? n : width;
	}
	if (count)
		printf("%-*s  %-9s  %-10s  %-8s  %5s  %s\n", (int)width, "NAME", "STATE", "TYPE", "VERSION", "NODES",
		       "SIZE");
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(clusters, i), *config = first_config(one);
		printf("%-*s  %-9s  %-10s  %-8s  %5lld  %s\n", (int)width, shown(w, one, "name"), state_of(w, one),
		       shown(w, one, "clusterType"), version_of(w, one), (long long)nodes_count(one),
		       shown(w, json_object_get(config, "electableSpecs"), "instanceSize"));
	}
}

/* In the form that was asked for, or by the function. Returns an exit code. */
static int show_by(const struct work *w, json_t *value, void (*print)(const struct work *w, const json_t *value))
{
	if (w->output.form != OUTPUT_TEXT)
		return output_print(stdout, w->arena, value, NULL, 0, &w->output) < 0 ? EXIT_NOT_DONE : EXIT_DONE;
	print(w, value);
	return EXIT_DONE;
}

static int show(const struct work *w, json_t *cluster)
{
	return show_by(w, cluster, cluster_print);
}

/* For a watch: what is not there yet is printed when it is. */
static void change_show(void *ctx, json_t *cluster)
{
	(void)show(ctx, cluster);
	fflush(stdout);
}

/* Waits until the cluster is IDLE and shows it, or until it is gone. */
static int cluster_wait(struct work *w, bool gone)
{
	json_t *cluster = NULL;
	struct wait wait = {.client = w->client,
	                    .path = cluster_path(w, w->arena),
	                    .name = w->name,
	                    .again = arena_printf(w->arena, "steward clusters wait %s", w->name).p,
	                    .gone = gone,
	                    .timeout = w->given->timeout,
	                    .changed = w->given->watch ? change_show : NULL,
	                    .ctx = w};
	int code = wait_run(&wait, w->arena, &cluster);
	return code == EXIT_DONE && cluster && !w->given->watch ? show(w, cluster) : code;
}

/* Commands. */

static int list_run(struct work *w)
{
	struct pages pages;
	json_t *page = NULL;
	int code = EXIT_DONE, more = PAGES_MORE;
	pages_begin(&pages, w->client);
	for (int number = 1; more == PAGES_MORE && code == EXIT_DONE; number++) {
		const char *path = arena_printf(w->arena, API_BASE "/groups/%s/clusters?itemsPerPage=500&pageNum=%d",
		                                w->project, number)
		                           .p;
		if (w->given->dry_run) {
			code = call(w, "GET", path, NULL, &page);
			break;
		}
		struct arena *one = arena_new();
		struct client_answer answer;
		code = client_get(w->client, one, path, &answer);
		more = code == EXIT_DONE ? pages_add(&pages, &answer) : PAGES_END;
		arena_free(one);
		if (more < 0)
			code = client_exit(more);
	}
	if (code == EXIT_DONE)
		code = show_by(w, pages.all, list_print);
	pages_end(&pages);
	return code;
}

/* Prints the progress of a change, why a cluster is being repaired, and whether its disk is full. */
static void status_print(struct work *w)
{
	struct client_request r = {.method = "GET",
	                           .path = arena_printf(w->arena, "%s/status", cluster_path(w, w->arena)).p,
	                           .quiet = true};
	struct client_answer answer;
	if (client_call(w->client, w->arena, &r, &answer) == 0 && answer.status == 200 && answer.progress.n)
		printf("status    %s\n", text_shown(w->arena, answer.progress));
}

static int get_run(struct work *w)
{
	json_t *cluster = NULL;
	int code = call(w, "GET", cluster_path(w, w->arena), NULL, &cluster);
	if (code != EXIT_DONE)
		return code;
	code = show(w, cluster);
	if (w->output.form == OUTPUT_TEXT)
		status_print(w);
	return code;
}

static void json_release(void *value)
{
	json_decref(value);
}

/* Builds the request's body from the options or --body, and sets the cluster's name. */
static int create_body(struct work *w, const struct options *given, json_t **ret_body)
{
	const struct clusters_arguments *g = w->given;
	json_t *body;
	if (!g->body) {
		if (!w->name)
			return option_refuse(
			        "clusters create: the cluster's name is missing: steward clusters create NAME");
		if (cluster_shape_check(g, given) < 0)
			return -EINVAL;
		body = cluster_shape_make(g, w->name);
	} else {
		struct str text;
		for (size_t i = 0; i < CLUSTER_SHAPE_FLAGS; i++)
			if (options_given(given, cluster_shape_flags[i]))
				return option_refuse(
				        "clusters create: --body is the whole request; --%s cannot be given with it",
				        cluster_shape_flags[i]);
		int r = body_read(w->arena, g->body, &text);
		if (r < 0)
			return r;
		body = json_loadb(text.p, text.n, 0, NULL);
		if (!json_is_object(body)) {
			json_decref(body);
			return option_refuse("--body: is not a JSON object");
		}
		if (w->name)
			json_put_z(body, "name", w->name);
	}
	if (body)
		arena_defer(w->arena, json_release, body);
	w->name = json_string_value(json_object_get(body, "name"));
	if (!w->name)
		return option_refuse("clusters create: the cluster has no valid name: steward clusters create NAME");
	*ret_body = body;
	return 0;
}

/* After a change was requested: waits for it, or shows the answer. */
static int change_finish(struct work *w, json_t *cluster)
{
	return w->given->wait || w->given->watch ? cluster_wait(w, false) : show(w, cluster);
}

static int create_run(struct work *w, const json_t *body)
{
	json_t *cluster = NULL;
	const char *path = arena_printf(w->arena, API_BASE "/groups/%s/clusters", w->project).p;
	int code = call(w, "POST", path, body, &cluster);
	return code == EXIT_DONE ? change_finish(w, cluster) : code;
}

/* Scaling: what the cluster is, with another size, number of nodes or disk. */

static void specs_change(json_t *specs, const struct clusters_arguments *g, const struct options *given)
{
	if (!json_is_object(specs))
		return;
	if (options_given(given, "size"))
		json_put_z(specs, "instanceSize", g->size);
	if (g->disk)
		json_put(specs, "diskSizeGB", json_integer(g->disk));
}

static void config_change(json_t *config, const struct clusters_arguments *g, const struct options *given)
{
	static const char *const kinds[] = {"electableSpecs", "readOnlySpecs", "analyticsSpecs"};
	bool leaves = strcmp(field(config, "providerName"), "TENANT") == 0 && options_given(given, "size") &&
	              !cluster_size_is_shared(g->size);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		specs_change(json_object_get(config, kinds[i]), g, given);
	if (leaves) {
		json_put_z(config, "providerName", field(config, "backingProviderName"));
		json_object_del(config, "backingProviderName");
	}
	if (leaves || options_given(given, "nodes"))
		json_put(json_object_get(config, "electableSpecs"), "nodeCount", json_integer(g->nodes));
}

static int scale_run(struct work *w, const struct options *given)
{
	static const char *const kept[] = {"zoneName", "regionConfigs"};
	json_t *cluster = NULL, *spec, *config;
	size_t i, k;
	int code = client_ask(w->client, w->arena, "GET", cluster_path(w, w->arena), NULL, &cluster);
	if (code != EXIT_DONE)
		return code;
	json_t *specs = json_keep(w->arena, json_array());
	json_array_foreach(json_object_get(cluster, "replicationSpecs"), i, spec)
	{
		json_t *one = json_object();
		for (k = 0; k < sizeof kept / sizeof *kept; k++)
			if (json_object_get(spec, kept[k]))
				json_put(one, kept[k], json_deep_copy(json_object_get(spec, kept[k])));
		json_array_append_new(specs, one);
		json_t *configs = json_object_get(one, "regionConfigs");
		if (json_array_size(configs) > 1 && options_given(given, "nodes")) {
			option_refuse("--nodes: %s has several regions; \"steward clusters update %s\" says how many "
			              "nodes each has",
			              w->name, w->name);
			return EXIT_USAGE;
		}
		json_array_foreach(configs, k, config)
		{
			config_change(config, w->given, given);
		}
	}
	json_t *body = json_keep(w->arena, json_pack("{s:O}", "replicationSpecs", specs));
	code = call(w, "PATCH", cluster_path(w, w->arena), body, &cluster);
	return code == EXIT_DONE ? change_finish(w, cluster) : code;
}

static int paused_set(struct work *w, bool paused)
{
	json_t *body = json_pack("{s:b}", "paused", (int)paused), *cluster;
	int code = call(w, "PATCH", cluster_path(w, w->arena), body, &cluster);
	json_decref(body);
	return code == EXIT_DONE ? change_finish(w, cluster) : code;
}

static int delete_run(struct work *w)
{
	json_t *nothing;
	const char *question = arena_printf(w->arena, "Delete the cluster %s?", w->name).p;
	if (!w->given->yes && !w->given->dry_run && !ask_to_go_on(question, true))
		return EXIT_NOT_DONE;
	int code = call(w, "DELETE", cluster_path(w, w->arena), NULL, &nothing);
	if (code == EXIT_DONE && w->given->wait)
		code = cluster_wait(w, true);
	if (code == EXIT_DONE && w->output.form == OUTPUT_TEXT)
		printf("%s %s\n", w->name, w->given->wait ? "is deleted" : "is being deleted");
	return code;
}

/* Prints the certificate for sslrootcert, which sslmode=verify-full needs. */
static int ca_run(struct work *w)
{
	struct client_answer answer;
	struct client_request r = {.method = "GET", .path = arena_printf(w->arena, "/ca/%s", w->project).p};
	int result = client_call(w->client, w->arena, &r, &answer);
	if (result < 0)
		return client_exit(result);
	if (answer.status == 404) {
		option_refuse("the project has no certificate authority yet: it is made with the first cluster");
		return EXIT_NOT_DONE;
	}
	if (answer.status != 200) {
		client_explain(w->client, &answer);
		return EXIT_NOT_DONE;
	}
	text_print(w->arena, answer.body);
	return EXIT_DONE;
}

enum verb {
	VERB_LIST,
	VERB_CA,
	VERB_GET,
	VERB_CREATE,
	VERB_PAUSE,
	VERB_RESUME,
	VERB_DELETE,
	VERB_WAIT,
	VERB_SCALE,
	VERBS
};
static const char *const verbs[] = {"list", "ca", "get", "create", "pause", "resume", "delete", "wait", "scale"};

static int verb_run(struct work *w, const struct options *given, enum verb verb, const json_t *body)
{
	switch (verb) {
	case VERB_LIST: return list_run(w);
	case VERB_CA: return ca_run(w);
	case VERB_GET: return get_run(w);
	case VERB_CREATE: return create_run(w, body);
	case VERB_PAUSE: return paused_set(w, true);
	case VERB_RESUME: return paused_set(w, false);
	case VERB_DELETE: return delete_run(w);
	case VERB_SCALE: return scale_run(w, given);
	default: return cluster_wait(w, false);
	}
}

/* The options of create are refused for other verbs. */
static bool usage_fits(const struct options *given, enum verb verb, size_t words)
{
	bool scales = false;
	for (size_t i = 0; verb != VERB_CREATE && i <= CLUSTER_SHAPE_FLAGS; i++) {
		const char *flag = i < CLUSTER_SHAPE_FLAGS ? cluster_shape_flags[i] : "body";
		bool scale = str_is_one_of("nodes|size|disk", str_of(flag));
		if (!options_given(given, flag))
			continue;
		scales = true;
		if (verb == VERB_SCALE && scale)
			continue;
		option_refuse("clusters %s: --%s goes with %s only", verbs[verb], flag,
		              scale ? "create and scale" : "create");
		return false;
	}
	if (verb == VERB_SCALE && !scales) {
		option_refuse("clusters scale: say to what: --size, --nodes or --disk");
		return false;
	}
	bool of_project = verb == VERB_LIST || verb == VERB_CA;
	if ((verb == VERB_CA || verb == VERB_WAIT) && options_given(given, "dry-run")) {
		option_refuse("clusters %s: changes nothing, so there is nothing to print with --dry-run", verbs[verb]);
		return false;
	}
	if ((of_project || verb == VERB_GET) && options_given(given, "wait")) {
		option_refuse("clusters %s: --wait goes with what changes a cluster", verbs[verb]);
		return false;
	}
	if (of_project ? words > 1 : verb != VERB_CREATE && words < 2) {
		option_refuse(verb == VERB_LIST ? "clusters list: shows all; \"steward clusters get NAME\" shows one"
		              : verb == VERB_CA ? "clusters ca: is one for all clusters of the project"
		                                : "clusters %s: the cluster's name is missing",
		              verbs[verb]);
		return false;
	}
	return true;
}

static int clusters_run(const struct client_call *call)
{
	struct arena *a = call->arena;
	const struct clusters_arguments *g = call->given;
	const char *const *words = call->words;
	const size_t count = call->count;
	struct work w = {.arena = a, .given = g};
	struct profile profile;
	json_t *body = NULL;
	size_t verb = 0;
	while (count && verb < VERBS && strcmp(words[0], verbs[verb]) != 0)
		verb++;
	if (count && verb == VERBS)
		return meant_verb(command_family_find("clusters"), words[0], count > 1 ? words[1] : NULL, verbs, VERBS);
	if (!count) {
		option_refuse("clusters: say list, get, create, scale, update, pause, resume, delete, wait or ca; "
		              "\"steward help clusters\" shows all");
		return EXIT_USAGE;
	}
	if (output_options_choose(g->output, g->query, &w.output) < 0 ||
	    !usage_fits(call->options, (enum verb)verb, count))
		return EXIT_USAGE;
	w.name = count > 1 ? words[1] : NULL;
	if ((verb == VERB_CREATE && create_body(&w, call->options, &body) < 0) ||
	    profile_load(a, &g->at, &profile) < 0 || client_open(a, &profile, &w.client) < 0)
		return EXIT_USAGE;
	int r = client_project(w.client, a, &w.project);
	int code = r < 0 ? client_exit(r) : verb_run(&w, call->options, (enum verb)verb, body);
	code = code == SHOWN ? EXIT_DONE : code;
	client_close(w.client);
	return code;
}

static const struct client_command command = {.name = "clusters",
                                              .options = clusters_options,
                                              .option_count = &clusters_option_count,
                                              .words_max = 2,
                                              .has_family = true,
                                              .run = clusters_run};

int clusters_command(int argc, char **argv)
{
	struct clusters_arguments g = {.output = NULL};
	return client_command_run(&command, argc, argv, &g);
}
