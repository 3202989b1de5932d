/* `steward advisor build`: makes an index that the advisor suggests, in one word: looks what is suggested, and asks for
 * the index to be built on every node. All other commands of the advisor are derived (command.c). */
#include "base/clock.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/client/command.h"
#include "cli/derived/command.h"
#include "cli/derived/request.h"
#include "cli/meant.h"
#include "cli/output.h"
#include "cli/wait.h"

#include <curl/curl.h>
#include <stddef.h>

struct advisor_arguments {
	struct profile_arguments at;
	const char *index, *namespace, *output, *query, *dry_run;
	unsigned timeout;
	bool wait;
};

#define AT(member) offsetof(struct advisor_arguments, member)

const struct option_row advisor_options[] = {
        {"index", 0, OPTION_TEXT, AT(index), NULL, "ID",
         "build: the id of a suggestion; without it the one that helps most.", .flag_only = true},
        {"namespace", 0, OPTION_TEXT, AT(namespace), NULL, "DATABASE.TABLE", "build: only for this table.",
         .flag_only = true},
        {"wait", 0, OPTION_SWITCH, AT(wait), NULL, NULL, "Come back when it is built.", .flag_only = true},
        {"timeout", 0, OPTION_NUMBER, AT(timeout), "1800", "SECONDS", "Wait no longer than this.", NULL, 1, 604800,
         true},
        {"output", 'o', OPTION_CHOICE, AT(output), "text", "FORMAT", "text, table, wide, json, yaml or name.",
         "text|" OUTPUT_FORMS, .flag_only = true},
        {"query", 0, OPTION_TEXT, AT(query), NULL, "PATH", "Only this part of the answer: namespace.",
         .flag_only = true},
        {"dry-run", 0, OPTION_CHOICE, AT(dry_run), NULL, NULL,
         "Print the call instead of making it; --dry-run=curl: as a line for curl.", "text|curl", .flag_only = true},
        PROFILE_OPTIONS,
};
const size_t advisor_option_count = sizeof advisor_options / sizeof *advisor_options;

struct work {
	struct arena *arena;
	const struct advisor_arguments *given;
	struct client *client;
	const char *project, *name; /* of the cluster */
	struct output_options output;
};

static const char *cluster_path(const struct work *w, const char *below)
{
	return arena_printf(w->arena, API_BASE "/groups/%s/clusters/%s/%s", w->project,
	                    url_escape(w->arena, str_of(w->name)), below)
	        .p;
}

/* The suggestion that is meant, and the time by the clock of the service. */
static int suggestion_find(struct work *w, json_t **ret_suggestion, const char **ret_now)
{
	const struct advisor_arguments *g = w->given;
	struct client_answer answer;
	const char *path = cluster_path(w, "performanceAdvisor/suggestedIndexes");
	if (g->namespace)
		path = arena_printf(w->arena, "%s?namespaces=%s", path, url_escape(w->arena, str_of(g->namespace))).p;
	int code = client_get(w->client, w->arena, path, &answer);
	if (code != EXIT_DONE)
		return code;
	const json_t *list = json_object_get(json_object_get(answer.json, "content"), "suggestedIndexes");
	json_t *found = g->index ? json_find(list, "id", str_of(g->index)) : json_array_get(list, 0);
	struct str missing = client_header(&answer, "x-steward-missing");
	if (!found && missing.n)
		option_refuse("nothing can be suggested for %s: %s", w->name, text_shown(w->arena, missing));
	else if (!found && g->index)
		option_refuse("%s is not suggested for %s; \"steward advisor suggested-indexes list %s\" shows what is",
		              g->index, w->name, w->name);
	else if (!found)
		option_refuse("no index is suggested for %s", w->name);
	*ret_suggestion = found;
	time_t now = curl_getdate(arena_z(w->arena, client_header(&answer, "date")), NULL);
	char text[CLOCK_TEXT];
	clock_format(now > 0 ? (int64_t)now * 1000 : clock_now_ms(), text);
	*ret_now = arena_z(w->arena, str_of(text));
	return found ? EXIT_DONE : EXIT_NOT_DONE;
}

/* "shop.orders" is the table orders of the database shop; what is in another schema keeps its name. */
static json_t *index_body(struct work *w, const json_t *suggestion, struct buf *shown)
{
	json_t *body = json_keep(w->arena, json_object()), *keys = json_array();
	const json_t *columns = json_object_get(suggestion, "index");
	struct str database, table;
	str_cut(json_field(suggestion, "namespace"), '.', &database, &table);
	json_put_str(body, "db", database);
	json_put_str(body, "collection", table);
	for (size_t i = 0; i < json_array_size(columns); i++) {
		const char *name;
		json_t *direction;
		json_object_foreach(json_array_get(columns, i), name, direction)
		{
			bool down = json_integer_value(direction) < 0;
			json_array_append_new(keys, json_pack("{s:s}", name, down ? "-1" : "1"));
			buf_printf(shown, "%s%s%s", shown->n ? ", " : "", name, down ? " descending" : "");
		}
	}
	json_put(body, "keys", keys);
	return body;
}

/* What became of the build stands in the events: a cluster that is IDLE again may have built nothing. */
static int build_judge(struct work *w, const char *begun)
{
	json_t *page = NULL;
	int code = client_ask(w->client, w->arena, "GET",
	                      arena_printf(w->arena,
	                                   API_BASE "/groups/%s/events?eventType=ROLLING_INDEX_FAILED_INDEX_BUILD"
	                                            "&clusterNames=%s&minDate=%s&includeRaw=true&itemsPerPage=1",
	                                   w->project, url_escape(w->arena, str_of(w->name)),
	                                   url_escape(w->arena, str_of(begun)))
	                              .p,
	                      NULL, &page);
	const json_t *failed = code == EXIT_DONE ? json_array_get(json_object_get(page, "results"), 0) : NULL;
	if (!failed)
		return code;
	struct str why = json_field(json_object_get(failed, "raw"), "description");
	option_refuse("the index could not be built: %s", text_shown(w->arena, why));
	return EXIT_NOT_DONE;
}

static int build_wait(struct work *w, const char *begun)
{
	json_t *cluster = NULL;
	struct wait wait = {.client = w->client,
	                    .path = arena_printf(w->arena, API_BASE "/groups/%s/clusters/%s", w->project,
	                                         url_escape(w->arena, str_of(w->name)))
	                                    .p,
	                    .name = w->name,
	                    .again = arena_printf(w->arena, "steward clusters wait %s", w->name).p,
	                    .timeout = w->given->timeout};
	int code = wait_run(&wait, w->arena, &cluster);
	return code == EXIT_DONE ? build_judge(w, begun) : code;
}

static int build_run(struct work *w)
{
	json_t *suggestion = NULL;
	const char *begun = "";
	json_t *ignored = NULL;
	struct buf shown = {0};
	int code = suggestion_find(w, &suggestion, &begun);
	if (code != EXIT_DONE)
		return code;
	const json_t *body = index_body(w, suggestion, &shown);
	const char *columns = text_shown(w->arena, buf_keep(&shown, w->arena)), *path = cluster_path(w, "index");
	if (w->given->dry_run) {
		struct client_request r = {.method = "POST", .path = path, .body = json_text(w->arena, body)};
		request_show(w->client, w->arena, &r, NULL, strcmp(w->given->dry_run, "curl") == 0);
		return EXIT_DONE;
	}
	code = client_ask(w->client, w->arena, "POST", path, body, &ignored);
	if (code == EXIT_DONE && w->given->wait)
		code = build_wait(w, begun);
	if (code != EXIT_DONE)
		return code;
	if (w->output.form != OUTPUT_TEXT)
		return output_print(stdout, w->arena, suggestion, NULL, 0, &w->output) < 0 ? EXIT_NOT_DONE : EXIT_DONE;
	printf("index     %s\ntable     %s\ncolumns   %s\nexpected  %.1f%% less work\nstatus    %s\n",
	       text_shown(w->arena, json_field(suggestion, "id")),
	       text_shown(w->arena, json_field(suggestion, "namespace")), columns,
	       json_number_value(json_object_get(suggestion, "weight")), w->given->wait ? "built" : "being built");
	return EXIT_DONE;
}

static int advisor_run(const struct client_call *call)
{
	struct arena *a = call->arena;
	const struct advisor_arguments *g = call->given;
	const char *const *words = call->words;
	const size_t count = call->count;
	static const char *const verbs[] = {"build"};
	const struct command_family *family = command_family_find("advisor");
	struct work w = {.arena = a, .given = g};
	struct profile profile;
	if (!count) {
		usage_family(stderr, family);
		return EXIT_USAGE;
	}
	if (strcmp(words[0], verbs[0]) != 0)
		return meant_verb(family, words[0], count > 1 ? words[1] : NULL, verbs, 1);
	if (count < 2) {
		option_refuse("advisor build: the cluster's name is missing: steward advisor build CLUSTER");
		return EXIT_USAGE;
	}
	if (output_options_choose(g->output, g->query, &w.output) < 0 || profile_load(a, &g->at, &profile) < 0 ||
	    client_open(a, &profile, &w.client) < 0)
		return EXIT_USAGE;
	w.name = words[1];
	int r = client_project(w.client, a, &w.project), code = r < 0 ? client_exit(r) : build_run(&w);
	client_close(w.client);
	return code;
}

static const struct client_command command = {.name = "advisor",
                                              .options = advisor_options,
                                              .option_count = &advisor_option_count,
                                              .words_max = 2,
                                              .has_family = true,
                                              .run = advisor_run};

int advisor_command(int argc, char **argv)
{
	struct advisor_arguments g = {.output = NULL};
	return client_command_run(&command, argc, argv, &g);
}
