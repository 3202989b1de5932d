/* `steward events`: what happened in a project or an organization, the oldest first, as one reads a log. With --follow
 * it goes on. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/client/command.h"
#include "cli/derived/command.h"
#include "cli/derived/flags.h"
#include "cli/follow.h"
#include "cli/output.h"

#include <errno.h>
#include <stddef.h>

#define CLUSTERS_TOLD 500 /* a page; more are not looked through for a name that is near */

struct events_arguments {
	struct profile_arguments at;
	const char *since, *scope, *output;
	struct option_texts types, clusters;
	unsigned limit;
	bool follow;
};

#define AT(member) offsetof(struct events_arguments, member)

const struct option_row events_options[] = {
        {"follow", 'f', OPTION_SWITCH, AT(follow), NULL, NULL, "Go on with what happens from now on.",
         .flag_only = true},
        {"since", 0, OPTION_TEXT, AT(since), NULL, "TIME", "Since a time, or since 90s, 15m, 2h or 3d ago.",
         .flag_only = true},
        {"limit", 0, OPTION_NUMBER, AT(limit), "50", "N", "No more than the newest so many.", NULL, 1, 500, true},
        {"type", 0, OPTION_TEXTS, AT(types), NULL, "TYPE", "Only of this type. May be given several times.",
         .flag_only = true},
        {"cluster", 0, OPTION_TEXTS, AT(clusters), NULL, "NAME", "Only of this cluster. May be given several times.",
         .flag_only = true},
        {"scope", 0, OPTION_CHOICE, AT(scope), "project", "SCOPE", "project or organization.", "project|organization",
         .flag_only = true},
        {"output", 'o', OPTION_CHOICE, AT(output), "table", "FORMAT", "table, or json: one document on each line.",
         "table|json", .flag_only = true},
        PROFILE_OPTIONS,
};
const size_t events_option_count = sizeof events_options / sizeof *events_options;

#define PAGE 500
#define TYPE_WIDTH 36

struct watch {
	struct arena *arena;
	const struct events_arguments *given;
	struct client *client;
	const char *path; /* of the list, with what does not change of its query */
	struct follow_seen seen;
	bool json;
};

static void texts_add(struct arena *a, struct buf *b, const char *name, const struct option_texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		buf_printf(b, "&%s=%s", name, url_escape(a, str_of(texts->v[i])));
}

static int path_make(struct watch *w)
{
	const struct events_arguments *g = w->given;
	struct buf b = {0};
	const char *id = client_profile(w->client)->organization;
	bool org = strcmp(g->scope, "organization") == 0;
	int r = org ? 0 : client_project(w->client, w->arena, &id);
	if (r == 0 && org && !id)
		r = option_refuse("which organization? give --org ID, or set organization in %s",
		                  client_profile(w->client)->source);
	if (r == 0 && org && g->clusters.n)
		r = option_refuse("--cluster: clusters belong to a project; leave out --scope organization");
	if (r < 0)
		return r;
	buf_printf(&b, API_BASE "/%s/%s/events?includeRaw=true&includeCount=false", org ? "orgs" : "groups",
	           url_escape(w->arena, str_of(id)));
	texts_add(w->arena, &b, "eventType", &g->types);
	texts_add(w->arena, &b, "clusterNames", &g->clusters);
	w->path = arena_z(w->arena, buf_view(&b));
	buf_free(&b);
	return 0;
}

static int ask(struct watch *w, struct arena *a, int64_t since_ms, unsigned count, bool quiet,
               struct client_answer *ret_answer)
{
	struct client_request r = {.method = "GET", .quiet = quiet};
	char since[CLOCK_TEXT];
	r.path = arena_printf(a, "%s&itemsPerPage=%u", w->path, count).p;
	if (since_ms > 0) {
		clock_format(since_ms, since);
		r.path = arena_printf(a, "%s&minDate=%s", r.path, url_escape(a, str_of(since))).p;
	}
	return client_call(w->client, a, &r, ret_answer);
}

static void event_print(const struct watch *w, struct arena *a, json_t *event)
{
	struct str said = json_field(json_object_get(event, "raw"), "description");
	if (w->json) {
		output_json(stdout, event, false);
		return;
	}
	struct str by = json_field(event, "username");
	if (!by.n)
		by = json_field(event, "publicKey");
	printf("%s  %-*s  %s%s%s\n", text_shown(a, json_field(event, "created")), TYPE_WIDTH,
	       text_shown(a, json_field(event, "eventTypeName")), text_shown(a, said), by.n ? ", by " : "",
	       text_shown(a, by));
}

/* The newest comes first in an answer and last on the screen. */
static void events_print(struct watch *w, struct arena *a, json_t *answer)
{
	const json_t *results = json_object_get(answer, "results");
	for (size_t i = json_array_size(results); i-- > 0;) {
		json_t *event = json_array_get(results, i);
		int64_t at = 0;
		if (!clock_parse(json_field(event, "created"), &at))
			at = w->seen.newest_ms;
		if (follow_is_new(&w->seen, json_field(event, "id"), at))
			event_print(w, a, event);
	}
}

/* Asks for ever. More events than a page holds within one pause are more than can be read. */
static int events_follow(struct watch *w)
{
	struct follow f = {.unreached = 0};
	int code = follow_step(&f, w->client, 0, &(struct client_answer){.status = 200});
	while (code == FOLLOW_ON) {
		struct arena *a = arena_new();
		struct client_answer answer = {.status = 0};
		if (fflush(stdout) != 0 || ferror(stdout)) {
			arena_free(a);
			return EXIT_DONE; /* main() says that the output cannot be written */
		}
		follow_wait(&f);
		int result = ask(w, a, follow_turn(&w->seen), PAGE, f.unreached < FOLLOW_PATIENCE, &answer);
		code = follow_step(&f, w->client, result, &answer);
		if (code == FOLLOW_ON && answer.status == 200)
			events_print(w, a, answer.json);
		arena_free(a);
	}
	return code;
}

/* Nothing is a right answer about a cluster to which nothing happened, and a misleading one about a name that was
 * misspelt. Clusters that are gone have events, so that only a name without any is looked at. */
static void names_check(struct watch *w)
{
	struct client_answer answer;
	const char *project, *names[CLUSTERS_TOLD];
	size_t count = 0;
	if (client_project(w->client, w->arena, &project) < 0)
		return;
	struct client_request r = {.method = "GET", .quiet = true};
	r.path = arena_printf(w->arena, API_BASE "/groups/%s/clusters?itemsPerPage=%d", project, CLUSTERS_TOLD).p;
	if (client_call(w->client, w->arena, &r, &answer) < 0 || answer.status != 200)
		return;
	const json_t *list = json_object_get(answer.json, "results");
	for (size_t i = 0; i < json_array_size(list) && count < CLUSTERS_TOLD; i++)
		names[count++] = arena_z(w->arena, json_field(json_array_get(list, i), "name"));
	for (size_t k = 0; k < w->given->clusters.n; k++) {
		const char *name = w->given->clusters.v[k], *near = flag_nearest(str_of(name), names, count);
		bool known = false;
		for (size_t i = 0; i < count; i++)
			known = known || strcmp(names[i], name) == 0;
		if (!known && count < CLUSTERS_TOLD)
			fprintf(stderr, "steward: no event, and the project has no cluster \"%s\"%s%s%s\n", name,
			        near ? "; did you mean \"" : "", near ? text_shown(w->arena, str_of(near)) : "",
			        near ? "\"?" : "");
	}
}

static int watch_run(struct watch *w)
{
	struct client_answer answer;
	int64_t since = 0;
	int r = w->given->since ? follow_since(w->given->since, clock_now_ms(), &since) : 0;
	if (r == 0)
		r = path_make(w);
	if (r == 0)
		r = ask(w, w->arena, since, w->given->limit, false, &answer);
	if (r < 0)
		return client_exit(r);
	if (answer.status != 200) {
		client_explain(w->client, &answer);
		return EXIT_NOT_DONE;
	}
	if (!answer.json)
		return client_exit(client_stranger(w->client, false));
	events_print(w, w->arena, answer.json);
	if (w->given->clusters.n && !json_array_size(json_object_get(answer.json, "results")))
		names_check(w);
	return w->given->follow ? events_follow(w) : EXIT_DONE;
}

static int events_run(const struct client_call *call)
{
	struct arena *a = call->arena;
	const struct events_arguments *g = call->given;
	struct watch w = {.arena = a, .given = g, .json = strcmp(g->output, "json") == 0};
	struct profile profile;
	if (profile_load(a, &g->at, &profile) < 0 || client_open(a, &profile, &w.client) < 0)
		return EXIT_USAGE;
	int code = watch_run(&w);
	follow_free(&w.seen);
	client_close(w.client);
	return code;
}

static const struct client_command command = {.name = "events",
                                              .options = events_options,
                                              .option_count = &events_option_count,
                                              .words_max = 0,
                                              .has_family = true,
                                              .run = events_run};

int events_command(int argc, char **argv)
{
	struct events_arguments g = {.since = NULL};
	return client_command_run(&command, argc, argv, &g);
}
