/* The call of a derived command, once its words and flags are read: made or printed; answered by one page or all;
 * waited for or watched. */
#include "cli/derived/run.h"

#include "base/json.h"
#include "catalog/common.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/derived/command.h"
#include "cli/derived/flags.h"
#include "cli/derived/pages.h"
#include "cli/progress.h"
#include "cli/wait.h"

#include <unistd.h>

#define WATCH_MS 2000
#define WATCH_MOST_S 60u

static struct client_request request_of(struct run *r, const char *path)
{
	struct client_request q = {.method = method_name(r->op->method),
	                           .path = path,
	                           .headers = r->request.headers,
	                           .header_count = r->request.header_count};
	if (r->request.body)
		q.body = json_text(r->arena, r->request.body);
	if (!(r->op->produces & PRODUCES_JSON) && !isatty(STDOUT_FILENO))
		q.sink = stdout;
	if (options_given(&r->options, "timeout"))
		q.timeout_ms = (int64_t)r->given.timeout * 1000;
	return q;
}

/* A name where an id is wanted is not found. */
static void ids_tell(const struct run *r)
{
	struct str family, rest;
	str_cut(str_of(r->op->command), ' ', &family, &rest);
	for (unsigned i = 0; i < r->op->path_param_count; i++) {
		const struct param *p = &r->op->path_params[i];
		struct faults faults = {.count = 0};
		if (!command_is_scope(p) && str_ends(str_of(p->name), STR("Id")) && r->request.values[i] &&
		    !schema_check_text(p->schema, str_of(p->name), str_of(r->request.values[i]), r->arena, &faults))
			fprintf(stderr, "steward: %s is an id, which \"%s\" is not; \"steward %.*s list\" shows ids\n",
			        command_argument(r->arena, p), r->request.values[i], STR_ARG(family));
	}
}

/* The service names fields of the body as they stand in it. Who has set them by flags is told which. */
static void flags_tell(const struct run *r, const struct client_answer *answer)
{
	const struct schema *body = command_body(r->op);
	struct str detail = json_field(answer->json, "detail");
	const json_t *parameters = json_object_get(answer->json, "parameters");
	for (size_t i = 0; body && i < json_array_size(parameters); i++) {
		struct str path = json_item(parameters, i), before = arena_printf(r->arena, "%.*s: ", STR_ARG(path));
		const char *flag = flag_of_path(r->arena, path);
		bool secret;
		/* A parameter may be any word of the detail: a field's path stands before what is wrong with it. */
		if (detail.n && memmem(detail.p, detail.n, before.p, before.n) &&
		    flags_find(body, str_of(flag), &secret) != FLAG_UNKNOWN)
			fprintf(stderr, "steward: --%s sets %s\n", flag, text_shown(r->arena, path));
	}
}

static int call(struct run *r, const char *path, struct client_answer *ret_answer)
{
	struct client_request q = request_of(r, path);
	int result = client_call(r->client, r->arena, &q, ret_answer);
	if (result < 0)
		return client_exit(result);
	if (ret_answer->status >= 300) {
		client_explain(r->client, ret_answer);
		if (ret_answer->status == 404)
			ids_tell(r);
		flags_tell(r, ret_answer);
		return EXIT_NOT_DONE;
	}
	if (r->op->produces == PRODUCES_JSON && ret_answer->body.n && !ret_answer->json)
		return client_exit(client_stranger(r->client, false));
	return EXIT_DONE;
}

static int answer_print(struct run *r, json_t *answer, const struct op *of)
{
	return output_print(stdout, r->arena, answer, of->columns, of->column_count, &r->output) < 0 ? EXIT_NOT_DONE
	                                                                                             : EXIT_DONE;
}

/* Says on stderr that there is more than the page that was printed. */
static void more_tell(const struct run *r, const json_t *answer)
{
	json_int_t total = json_integer_value(json_object_get(answer, "totalCount"));
	size_t shown = json_array_size(json_object_get(answer, "results"));
	if (r->op->paginated && r->output.form == OUTPUT_TABLE && !r->output.query && shown &&
	    total > (json_int_t)shown)
		fprintf(stderr, "steward: %zu of %lld; --all prints all\n", shown, (long long)total);
}

/* What lies on hosts that do not answer is not in a list. */
static void away_tell(struct run *r, const struct client_answer *answer)
{
	struct str away = client_header(answer, "x-steward-hosts-away");
	if (away.n)
		fprintf(stderr, "steward: not in the list: what runs on %s, which does not answer\n",
		        text_shown(r->arena, away));
}

/* What stands beside the document in headers, and belongs to it. */
static void beside_add(const struct client_answer *answer)
{
	struct str price = client_header(answer, "x-steward-price");
	if (price.n && json_is_object(answer->json))
		json_put_str(answer->json, "price", price);
}

static int answer_show(struct run *r, const struct client_answer *answer)
{
	int code = EXIT_DONE;
	beside_add(answer);
	if (answer->json)
		code = answer_print(r, answer->json, r->op);
	else if (answer->body.n)
		text_print(r->arena, answer->body);
	else if (r->op->method != METHOD_GET && isatty(STDERR_FILENO))
		fprintf(stderr, "steward: done\n");
	more_tell(r, answer->json);
	away_tell(r, answer);
	return code;
}

static bool is_given(const struct run *r, const struct param *p)
{
	for (size_t i = 0; i < r->flag_count; i++)
		if (r->flags[i].param == p)
			return true;
	return false;
}

/* All pages as one answer. */
static int all_run(struct run *r)
{
	struct progress bar;
	struct pages pages;
	struct arena *whole = r->arena;
	char mark = strchr(r->request.path, '?') ? '&' : '?';
	const char *size = is_given(r, &common_params[COMMON_PAGE_SIZE]) ? "" : "&itemsPerPage=500";
	int code = EXIT_DONE, more = PAGES_MORE;
	if (is_given(r, &common_params[COMMON_PAGE])) {
		option_refuse("--all: means every page; --page-num is for one");
		return EXIT_USAGE;
	}
	progress_begin(&bar, r->op->command);
	pages_begin(&pages, r->client);
	for (int page = 1; code == EXIT_DONE && more == PAGES_MORE; page++) {
		struct client_answer answer;
		r->arena = arena_new();
		code = call(r, arena_printf(r->arena, "%s%cpageNum=%d%s", r->request.path, mark, page, size).p,
		            &answer);
		more = code == EXIT_DONE ? pages_add(&pages, &answer) : PAGES_END;
		if (more < 0)
			code = client_exit(more);
		arena_free(r->arena);
		json_int_t got = (json_int_t)json_array_size(pages.all);
		if (pages.total > 0 && (bar.terminal || page > 1 || got < pages.total))
			progress_show(&bar, got < pages.total ? (int)(got * 100 / pages.total) : 100, STR(""));
	}
	progress_end(&bar);
	r->arena = whole;
	json_t *answer = json_keep(r->arena, json_object());
	json_put(answer, "results", json_incref(pages.all));
	json_put(answer, "totalCount", json_integer((json_int_t)json_array_size(pages.all)));
	pages_end(&pages);
	return code == EXIT_DONE ? answer_print(r, answer, r->op) : code;
}

static void change_print(void *ctx, json_t *document)
{
	struct run *r = ctx;
	(void)answer_print(r, document, r->polls);
	fflush(stdout);
}

/* After the call: waits until what it began is done, and prints how it ended. */
static int wait_for(struct run *r, const json_t *answer)
{
	json_t *document = NULL;
	const json_t *first = json_array_get(json_object_get(answer, "results"), 0);
	answer = first ? first : answer; /* what makes several answers with a list */
	const char *path = request_path_of(r->arena, &r->request, r->polls, answer), *name = NULL;
	for (unsigned i = 0; i < r->op->path_param_count; i++)
		name = r->request.values[i] ? r->request.values[i] : name;
	if (!path) {
		option_refuse("--wait: the answer does not say what to wait for");
		return EXIT_NOT_DONE;
	}
	if (r->polls != r->op && json_is_string(json_object_get(answer, "name")))
		name = text_shown(r->arena, json_field(answer, "name"));
	struct wait w = {.client = r->client,
	                 .path = path,
	                 .name = name ? name : r->op->command,
	                 .gone = r->op->method == METHOD_DELETE,
	                 .may_move = r->polls != r->op && r->polls == catalog_op("getCluster"),
	                 .timeout = r->given.timeout,
	                 .changed = r->given.watch ? change_print : NULL,
	                 .ctx = r};
	int code = wait_settled(&w, r->arena, &document);
	if (code == EXIT_MOVED) {
		r->polls = catalog_op("getFlexCluster");
		return wait_for(r, answer);
	}
	return code == EXIT_DONE && document && !r->given.watch ? answer_print(r, document, r->polls) : code;
}

/* One look of a watch: prints the answer when it is another than before. A service that is busy is asked again. */
static int watch_once(struct run *r, json_t **before, int64_t *ret_pause_ms)
{
	struct client_answer answer;
	struct client_request q = request_of(r, r->request.path);
	int result = client_call(r->client, r->arena, &q, &answer);
	if (result < 0)
		return client_exit(result);
	if (answer.status == 429 || answer.status == 503) {
		if (answer.retry_after)
			*ret_pause_ms =
			        (int64_t)(answer.retry_after < WATCH_MOST_S ? answer.retry_after : WATCH_MOST_S) * 1000;
		return EXIT_DONE;
	}
	if (answer.status >= 300) {
		client_explain(r->client, &answer);
		return EXIT_NOT_DONE;
	}
	if (!answer.json && answer.body.n)
		return client_exit(client_stranger(r->client, false));
	if (!answer.json || json_equal(answer.json, *before))
		return EXIT_DONE;
	json_decref(*before);
	*before = json_incref(answer.json);
	int code = answer_print(r, answer.json, r->op);
	fflush(stdout);
	return code;
}

/* Prints what a GET answers whenever that has changed, until the timeout that was given, or an interruption. */
static int watch_run(struct run *r)
{
	struct arena *whole = r->arena;
	json_t *before = NULL;
	int code = EXIT_DONE;
	int64_t left = options_given(&r->options, "timeout") ? (int64_t)r->given.timeout * 1000 : INT64_MAX;
	while (code == EXIT_DONE && left > 0) {
		int64_t pause = WATCH_MS;
		r->arena = arena_new();
		code = watch_once(r, &before, &pause);
		arena_free(r->arena);
		if (code == EXIT_DONE)
			wait_pause_ms(left < pause ? left : pause);
		left -= pause;
	}
	r->arena = whole;
	json_decref(before);
	return code;
}

static bool is_confirmed(struct run *r)
{
	struct buf b = {0};
	if (r->op->danger == DANGER_NONE || r->given.yes)
		return true;
	buf_printf(&b, "%s:", r->op->summary);
	for (unsigned i = 0; i < r->op->path_param_count; i++)
		if (!command_is_scope(&r->op->path_params[i]) || r->op->path_param_count == 1)
			buf_printf(&b, " %s", r->request.values[i]);
	buf_z(&b, ". Go on?");
	bool yes = ask_to_go_on(arena_z(r->arena, buf_view(&b)), r->op->final);
	buf_free(&b);
	return yes;
}

static int request_run(struct run *r)
{
	struct client_answer answer;
	struct client_request q = request_of(r, r->request.path);
	if (r->given.dry_run) {
		request_show(r->client, r->arena, &q, command_body(r->op), strcmp(r->given.dry_run, "curl") == 0);
		return EXIT_DONE;
	}
	if (!is_confirmed(r))
		return EXIT_NOT_DONE;
	if (r->given.all)
		return all_run(r);
	r->polls = r->op->polls;
	bool waits = r->given.wait || (r->given.watch && r->polls);
	if (r->op->method == METHOD_GET && (waits || r->given.watch))
		return waits ? wait_for(r, NULL) : watch_run(r);
	int code = call(r, r->request.path, &answer);
	if (code != EXIT_DONE)
		return code;
	return waits ? wait_for(r, answer.json) : answer_show(r, &answer);
}

int run_call(struct run *r)
{
	if (profile_load(r->arena, &r->given.at, &r->profile) < 0 || client_open(r->arena, &r->profile, &r->client) < 0)
		return EXIT_USAGE;
	int result = request_make(&r->request, r->client, r->arena, r->flags, r->flag_count, r->given.body);
	int code = result < 0 ? client_exit(result) : request_run(r);
	client_close(r->client);
	return code;
}
