/* `steward backups take` and `steward backups restore`: the two that are needed in a hurry, in words of their own; and
 * `steward backups show` and `window`, which tell what no document has: when a snapshot was last proven, and which
 * moments can be restored. All other commands for backups are derived (command.c). */
#include "base/clock.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/client/command.h"
#include "cli/derived/command.h"
#include "cli/derived/request.h"
#include "cli/meant.h"
#include "cli/moment.h"
#include "cli/output.h"
#include "cli/wait.h"

#include <curl/curl.h>
#include <stddef.h>

struct backups_arguments {
	struct profile_arguments at;
	const char *to, *snapshot, *only, *target, *target_project, *description, *output, *query, *dry_run;
	unsigned days, timeout;
	bool replace, wait, watch, yes;
};

#define AT(member) offsetof(struct backups_arguments, member)

const struct option_row backups_options[] = {
        {"to", 0, OPTION_TEXT, AT(to), NULL, "TIME",
         "restore: the moment: 2026-11-16T03:00:00Z, 90s, 15m, 2h, \"10 minutes ago\".", .flag_only = true},
        {"snapshot", 0, OPTION_TEXT, AT(snapshot), NULL, "ID", "restore, show: a snapshot; \"latest\" is the newest.",
         .flag_only = true},
        {"only", 0, OPTION_TEXT, AT(only), NULL, "DATABASE[/SCHEMA.TABLE]",
         "restore: this database or table alone, beside the one of now, under another name.", .flag_only = true},
        {"replace", 0, OPTION_SWITCH, AT(replace), NULL, NULL, "restore: with --only, in the place of the one of now.",
         .flag_only = true},
        {"target", 0, OPTION_TEXT, AT(target), NULL, "CLUSTER", "restore: into this cluster, instead of the same.",
         .flag_only = true},
        {"target-project", 0, OPTION_TEXT, AT(target_project), NULL, "ID", "restore: the target is in this project.",
         .flag_only = true},
        {"description", 0, OPTION_TEXT, AT(description), NULL, "TEXT", "take: what the snapshot is for.",
         .flag_only = true},
        {"days", 0, OPTION_NUMBER, AT(days), NULL, "N", "take: how long it is kept; seven without it.", NULL, 1, 36525,
         true},
        {"wait", 0, OPTION_SWITCH, AT(wait), NULL, NULL, "Come back when it is done.", .flag_only = true},
        {"timeout", 0, OPTION_NUMBER, AT(timeout), "14400", "SECONDS", "Wait no longer than this.", NULL, 1, 604800,
         true},
        {"watch", 0, OPTION_SWITCH, AT(watch), NULL, NULL, "Print the answer again whenever it has changed.",
         .flag_only = true},
        {"output", 'o', OPTION_CHOICE, AT(output), "text", "FORMAT", "text, table, wide, json, yaml or name.",
         "text|" OUTPUT_FORMS, .flag_only = true},
        {"query", 0, OPTION_TEXT, AT(query), NULL, "PATH", "Only this part of the answer: status.", .flag_only = true},
        {"yes", 0, OPTION_SWITCH, AT(yes), NULL, NULL, "restore: without asking.", .flag_only = true},
        {"dry-run", 0, OPTION_CHOICE, AT(dry_run), NULL, NULL,
         "Print the call instead of making it; --dry-run=curl: as a line for curl.", "text|curl", .flag_only = true},
        PROFILE_OPTIONS,
};
const size_t backups_option_count = sizeof backups_options / sizeof *backups_options;

struct work {
	struct arena *arena;
	const struct backups_arguments *given;
	struct client *client;
	const char *project, *name; /* of the cluster */
	struct output_options output;
};

static const char *backup_path(const struct work *w, const char *below)
{
	return arena_printf(w->arena, API_BASE "/groups/%s/clusters/%s/backup/%s", w->project,
	                    url_escape(w->arena, str_of(w->name)), below)
	        .p;
}

static const char *field(const struct work *w, const json_t *object, const char *name)
{
	return text_shown(w->arena, json_field(object, name));
}

#define SHOWN (-1) /* of post(): it was printed, not made */

static int post(struct work *w, struct client_request r, json_t **ret_json, struct str *ret_as)
{
	struct client_answer answer;
	if (!w->given->dry_run) {
		int result = client_call(w->client, w->arena, &r, &answer);
		if (result < 0)
			return client_exit(result);
		if (answer.status / 100 != 2) {
			client_explain(w->client, &answer);
			return EXIT_NOT_DONE;
		}
		*ret_json = answer.json;
		*ret_as = client_header(&answer, "x-steward-restore-as");
		return EXIT_DONE;
	}
	request_show(w->client, w->arena, &r, NULL, strcmp(w->given->dry_run, "curl") == 0);
	return SHOWN;
}

static bool has_text(const struct work *w)
{
	return w->output.form == OUTPUT_TEXT;
}

static int form_print(const struct work *w, json_t *value)
{
	return output_print(stdout, w->arena, value, NULL, 0, &w->output) < 0 ? EXIT_NOT_DONE : EXIT_DONE;
}

/* For a watch. */
static void change_print(void *ctx, json_t *document)
{
	struct work *w = ctx;
	struct work shown = *w;
	if (has_text(w)) /* which is of the end */
		shown.output.form = OUTPUT_TABLE;
	(void)form_print(&shown, document);
	fflush(stdout);
}

static int wait_on(struct work *w, const char *path, const char *name, const char *again, json_t **ret_document)
{
	struct wait wait = {.client = w->client,
	                    .path = path,
	                    .name = name,
	                    .again = again,
	                    .timeout = w->given->timeout,
	                    .changed = w->given->watch ? change_print : NULL,
	                    .ctx = w};
	return wait_settled(&wait, w->arena, ret_document);
}

/* --- taking one */

static void snapshot_print(const struct work *w, const json_t *s)
{
	double mb = (double)json_number(s, "storageSizeBytes") / 1e6;
	printf("snapshot  %s\ncluster   %s\nstatus    %s\ncreated   %s\nexpires   %s\n", field(w, s, "id"), w->name,
	       field(w, s, "status"), field(w, s, "createdAt"), field(w, s, "expiresAt"));
	if (mb > 0)
		printf("size      %.1f MB\n", mb);
}

static int take_run(struct work *w)
{
	json_t *body = json_keep(w->arena, json_object()), *snapshot = NULL;
	if (w->given->description)
		json_put_z(body, "description", w->given->description);
	if (w->given->days)
		json_put(body, "retentionInDays", json_integer(w->given->days));
	struct client_request r = {
	        .method = "POST", .path = backup_path(w, "snapshots"), .body = json_text(w->arena, body)};
	struct str none;
	int code = post(w, r, &snapshot, &none);
	if (code != EXIT_DONE)
		return code;
	const char *id = field(w, snapshot, "id");
	if (w->given->wait || w->given->watch)
		code = wait_on(w, arena_printf(w->arena, "%s/%s", backup_path(w, "snapshots"), id).p, w->name,
		               arena_printf(w->arena, "steward backups snapshots get %s %s --wait", w->name, id).p,
		               &snapshot);
	if (code != EXIT_DONE || w->given->watch)
		return code;
	if (!has_text(w))
		return form_print(w, snapshot);
	snapshot_print(w, snapshot);
	return EXIT_DONE;
}

/* --- restoring */

/* The newest that is complete. */
static int latest_find(struct work *w, const char **ret_id)
{
	const json_t *list;
	json_t *page = NULL;
	const char *newest = NULL, *when = "";
	int code = EXIT_DONE;
	for (int number = 1; code == EXIT_DONE; number++) {
		code = client_ask(
		        w->client, w->arena, "GET",
		        arena_printf(w->arena, "%s?itemsPerPage=500&pageNum=%d", backup_path(w, "snapshots"), number).p,
		        NULL, &page);
		list = code == EXIT_DONE ? json_object_get(page, "results") : NULL;
		for (size_t i = 0; i < json_array_size(list); i++) {
			const json_t *one = json_array_get(list, i);
			const char *created = field(w, one, "createdAt");
			if (str_is(json_field(one, "status"), "completed") && strcmp(created, when) >= 0) {
				newest = field(w, one, "id");
				when = created;
			}
		}
		if (json_array_size(list) < 500)
			break;
	}
	if (code == EXIT_DONE && !newest) {
		option_refuse("%s has no snapshot that is complete; \"steward backups take %s --wait\" takes one",
		              w->name, w->name);
		return EXIT_NOT_DONE;
	}
	*ret_id = newest;
	return code;
}

/* --- showing one */

static int show_run(struct work *w)
{
	const char *id = w->given->snapshot;
	struct client_answer answer;
	int code = EXIT_DONE;
	if (!id || strcmp(id, "latest") == 0)
		code = latest_find(w, &id);
	if (code == EXIT_DONE)
		code = client_get(
		        w->client, w->arena,
		        arena_printf(w->arena, "%s/%s", backup_path(w, "snapshots"), url_escape(w->arena, str_of(id)))
		                .p,
		        &answer);
	if (code != EXIT_DONE)
		return code;
	struct str proven = client_header(&answer, "x-steward-proven");
	if (!has_text(w)) {
		json_put(answer.json, "proven", json_stringn(proven.n ? proven.p : "", proven.n));
		return form_print(w, answer.json);
	}
	snapshot_print(w, answer.json);
	if (proven.n)
		printf("proven    %s\n", text_shown(w->arena, proven));
	return code;
}

/* --- the window */

/* "FROM/TO, FROM/TO" or "none" -> [{"from", "to"}] */
static json_t *windows_read(const struct work *w, struct str told)
{
	json_t *list = json_keep(w->arena, json_array());
	for (struct str one, from, to; told.n;) {
		str_cut(told, ',', &one, &told);
		if (!str_cut(str_trim(one), '/', &from, &to))
			continue;
		json_t *window = json_object();
		json_put_str(window, "from", from);
		json_put_str(window, "to", to);
		json_array_append_new(list, window);
	}
	return list;
}

static int window_run(struct work *w)
{
	static const char *const describe[] = {"X-Steward-Describe-Window: true"};
	struct client_request r = {.method = "GET",
	                           .path = arena_printf(w->arena, "%s?itemsPerPage=1", backup_path(w, "snapshots")).p,
	                           .headers = describe,
	                           .header_count = 1};
	struct client_answer answer;
	int result = client_call(w->client, w->arena, &r, &answer);
	if (result < 0)
		return client_exit(result);
	if (answer.status != 200) {
		client_explain(w->client, &answer);
		return EXIT_NOT_DONE;
	}
	json_t *list = windows_read(w, client_header(&answer, "x-steward-restore-window"));
	if (!has_text(w))
		return form_print(w, list);
	for (size_t i = 0; i < json_array_size(list); i++)
		printf("%s  %s\n", field(w, json_array_get(list, i), "from"), field(w, json_array_get(list, i), "to"));
	if (json_array_size(list))
		return EXIT_DONE;
	option_refuse("no moment of %s can be restored, only its snapshots; with pitEnabled the window begins with the "
	              "next snapshot",
	              w->name);
	return EXIT_NOT_DONE;
}

/* --- a moment */

/* "15m ago" is by the service's clock. */
static int service_now(struct work *w, int64_t *ret_ms)
{
	struct client_answer answer;
	int code =
	        client_get(w->client, w->arena, arena_printf(w->arena, API_BASE "/groups/%s", w->project).p, &answer);
	time_t now = code == EXIT_DONE ? curl_getdate(arena_z(w->arena, client_header(&answer, "date")), NULL) : 0;
	*ret_ms = now > 0 ? (int64_t)now * 1000 : clock_now_ms();
	return code;
}

/* What is asked for, as the request and in words. */
static int point_make(struct work *w, json_t *body, const char **ret_words)
{
	const struct backups_arguments *g = w->given;
	const char *id = g->snapshot;
	char text[CLOCK_TEXT];
	int64_t now = 0, at = 0;
	int code = EXIT_DONE;
	if (g->to) {
		code = service_now(w, &now);
		if (code != EXIT_DONE || moment_parse("to", g->to, now, &at) < 0)
			return code != EXIT_DONE ? code : EXIT_USAGE;
		clock_format(at, text);
		json_put_z(body, "deliveryType", "pointInTime");
		json_put(body, "pointInTimeUTCSeconds", json_integer(at / 1000));
		*ret_words = arena_printf(w->arena, "what it was at %s", text).p;
		return EXIT_DONE;
	}
	if (strcmp(id, "latest") == 0)
		code = latest_find(w, &id);
	if (code != EXIT_DONE)
		return code;
	json_put_z(body, "deliveryType", "automated");
	json_put_z(body, "snapshotId", id);
	*ret_words = arena_printf(w->arena, "the snapshot %s", id).p;
	return EXIT_DONE;
}

static void job_print(const struct work *w, const json_t *job, struct str as, bool done)
{
	printf("restore   %s\nfrom      %s\ninto      %s\npoint     %s\nstatus    %s\n", field(w, job, "id"), w->name,
	       field(w, job, "targetClusterName"), field(w, job, "timestamp"), done ? "done" : "in progress");
	if (as.n)
		printf("as        %s\n", text_shown(w->arena, as));
	if (!done)
		printf("wait      steward backups restores get %s %s --wait\n", w->name, field(w, job, "id"));
}

/* The job, and then the cluster, which takes clients again when it is IDLE. */
static int restore_wait(struct work *w, json_t **job, const char *target)
{
	const char *id = field(w, *job, "id");
	return wait_on(w, arena_printf(w->arena, "%s/%s", backup_path(w, "restoreJobs"), id).p, target,
	               arena_printf(w->arena, "steward backups restores get %s %s --wait", w->name, id).p, job);
}

/* Names as the header takes them. */
static size_t piece_headers(const struct work *w, const char *ret_headers[2])
{
	struct str database, rest, schema, table;
	const char *text;
	if (!w->given->only)
		return 0;
	bool parts = str_cut(str_of(w->given->only), '/', &database, &rest);
	bool named = str_cut(rest, '.', &schema, &table);
	text = url_escape(w->arena, database);
	if (parts)
		text = arena_printf(w->arena, "%s/%s%s%s", text, named ? url_escape(w->arena, schema) : "",
		                    named ? "." : "", url_escape(w->arena, named ? table : rest))
		               .p;
	ret_headers[0] = arena_printf(w->arena, "X-Steward-Restore-Only: %s", text).p;
	ret_headers[1] = "X-Steward-Restore-Replace: true";
	return w->given->replace ? 2 : 1;
}

/* NULL: nothing is lost that there is. */
static const char *question_make(const struct work *w, const char *target, const char *words)
{
	const struct backups_arguments *g = w->given;
	if (g->only && !g->replace)
		return NULL;
	return g->only ? arena_printf(w->arena, "%s in the cluster %s becomes %s. Go on?", g->only, target, words).p
	               : arena_printf(w->arena, "All data of the cluster %s becomes %s. Go on?", target, words).p;
}

static int restore_run(struct work *w)
{
	const struct backups_arguments *g = w->given;
	json_t *body = json_keep(w->arena, json_object()), *job = NULL;
	const char *headers[2];
	struct str as = STR_NONE;
	const char *target = g->target ? g->target : w->name,
	           *group = g->target_project ? g->target_project : w->project, *words = "";
	int code = point_make(w, body, &words);
	if (code != EXIT_DONE)
		return code;
	json_put_z(body, "targetClusterName", target);
	json_put_z(body, "targetGroupId", group);
	struct client_request r = {.method = "POST",
	                           .path = backup_path(w, "restoreJobs"),
	                           .headers = headers,
	                           .header_count = piece_headers(w, headers),
	                           .body = json_text(w->arena, body)};
	const char *question = question_make(w, target, words);
	if (question && !g->yes && !g->dry_run && !ask_to_go_on(question, true))
		return EXIT_NOT_DONE;
	code = post(w, r, &job, &as);
	if (code == EXIT_DONE && (g->wait || g->watch))
		code = restore_wait(w, &job, target);
	if (code != EXIT_DONE || g->watch)
		return code;
	if (!has_text(w))
		return form_print(w, job);
	job_print(w, job, as, g->wait);
	return EXIT_DONE;
}

/* --- the command */

enum verb { VERB_TAKE, VERB_RESTORE, VERB_SHOW, VERB_WINDOW, VERBS };
static const char *const verbs[] = {"take", "restore", "show", "window"};

static bool usage_fits(const struct options *given, const struct backups_arguments *g, enum verb verb, size_t words)
{
	static const struct {
		const char *name;
		enum verb verb;
	} own[] = {{"snapshot", VERB_RESTORE}, {"to", VERB_RESTORE},       {"only", VERB_RESTORE},
	           {"replace", VERB_RESTORE},  {"target", VERB_RESTORE},   {"target-project", VERB_RESTORE},
	           {"yes", VERB_RESTORE},      {"description", VERB_TAKE}, {"days", VERB_TAKE}};
	int64_t at;
	for (size_t i = verb == VERB_SHOW ? 1 : 0; /* it takes --snapshot too */ i < sizeof own / sizeof *own; i++)
		if (own[i].verb != verb && options_given(given, own[i].name)) {
			option_refuse("backups %s: --%s goes with %s", verbs[verb], own[i].name, verbs[own[i].verb]);
			return false;
		}
	if (words < 2) {
		option_refuse("backups %s: the cluster's name is missing: steward backups %s CLUSTER", verbs[verb],
		              verbs[verb]);
		return false;
	}
	if (verb == VERB_RESTORE && !g->to == !g->snapshot) {
		option_refuse("backups restore: say what: --to TIME, or --snapshot ID%s", g->to ? ", not both" : "");
		return false;
	}
	if (g->replace && !g->only) {
		option_refuse("backups restore: --replace goes with --only");
		return false;
	}
	return !g->to || moment_parse("to", g->to, clock_now_ms(), &at) == 0;
}

static int backups_run(const struct client_call *call)
{
	struct arena *a = call->arena;
	const struct backups_arguments *g = call->given;
	const char *const *words = call->words;
	const size_t count = call->count;
	struct work w = {.arena = a, .given = g};
	const struct command_family *family = command_family_find("backups");
	struct profile profile;
	size_t verb = 0;
	if (!count) {
		usage_family(stderr, family);
		return EXIT_USAGE;
	}
	while (verb < VERBS && strcmp(words[0], verbs[verb]) != 0)
		verb++;
	if (verb == VERBS)
		return meant_verb(family, words[0], count > 1 ? words[1] : NULL, verbs, VERBS);
	if (!usage_fits(call->options, g, (enum verb)verb, count) ||
	    output_options_choose(g->output, g->query, &w.output) < 0 || profile_load(a, &g->at, &profile) < 0 ||
	    client_open(a, &profile, &w.client) < 0)
		return EXIT_USAGE;
	w.name = words[1];
	int r = client_project(w.client, a, &w.project);
	int code = r < 0                  ? client_exit(r)
	           : verb == VERB_TAKE    ? take_run(&w)
	           : verb == VERB_RESTORE ? restore_run(&w)
	           : verb == VERB_SHOW    ? show_run(&w)
	                                  : window_run(&w);
	client_close(w.client);
	return code == SHOWN ? EXIT_DONE : code;
}

static const struct client_command command = {.name = "backups",
                                              .options = backups_options,
                                              .option_count = &backups_option_count,
                                              .words_max = 2,
                                              .has_family = true,
                                              .run = backups_run};

int backups_command(int argc, char **argv)
{
	struct backups_arguments g = {.output = NULL};
	return client_command_run(&command, argc, argv, &g);
}
