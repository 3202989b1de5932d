/* `steward api`: one call of any operation. The path is the one in the API's documentation. The answer goes to stdout
 * as it arrives, so that archives can be piped; a refusal is also explained on stderr. */
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/client/command.h"

#include <ctype.h>
#include <stddef.h>
#include <unistd.h>

struct api_arguments {
	struct profile_arguments at;
	const char *body, *accept;
	struct option_texts query, headers;
	bool include;
};

#define AT(member) offsetof(struct api_arguments, member)

const struct option_row api_options[] = {
        {"body", 0, OPTION_TEXT, AT(body), NULL, "FILE",
         "Request body: a file with JSON, - for standard input, or the JSON itself.", .flag_only = true},
        {"query", 0, OPTION_TEXTS, AT(query), NULL, "NAME=VALUE",
         "Query parameter, not yet percent-encoded. May be given several times.", .flag_only = true},
        {"header", 0, OPTION_TEXTS, AT(headers), NULL, "NAME: VALUE", "Further header. May be given several times.",
         .flag_only = true},
        {"accept", 0, OPTION_TEXT, AT(accept), NULL, "TYPE",
         "Version and form: application/vnd.svc.2025-03-12+json. Without it: the current one.", .flag_only = true},
        {"include", 'i', OPTION_SWITCH, AT(include), NULL, NULL, "Print the status and the headers too.",
         .flag_only = true},
        PROFILE_OPTIONS,
};
const size_t api_option_count = sizeof api_options / sizeof *api_options;

static bool path_is_plain(const char *path)
{
	for (const char *p = path; *p; p++)
		if (!isgraph((unsigned char)*p))
			return false;
	return true;
}

/* Replaces {groupId} and {orgId} with the ids of the profile. */
static int parameters_fill(struct client *c, struct arena *a, const char *path, struct buf *b)
{
	static const char group[] = "{groupId}", org[] = "{orgId}";
	for (const char *p = path; *p;) {
		const char *value = NULL;
		int r = 0;
		if (strncmp(p, group, sizeof group - 1) == 0) {
			r = client_project(c, a, &value);
			p += sizeof group - 1;
		} else if (strncmp(p, org, sizeof org - 1) == 0) {
			value = client_profile(c)->organization;
			if (!value)
				r = option_refuse(
				        "which organization? set organization in %s, or write its id in the place "
				        "of {orgId}",
				        client_profile(c)->source);
			p += sizeof org - 1;
		} else {
			buf_c(b, *p++);
		}
		if (r < 0)
			return r;
		if (value)
			buf_z(b, url_escape(a, str_of(value)));
	}
	return 0;
}

static bool is_placeholder(const char *text)
{
	return text && (strcmp(text, "{groupId}") == 0 || strcmp(text, "{orgId}") == 0);
}

static int placeholder_set(struct client *c, struct arena *a, json_t *object, const char *name, const char *text)
{
	struct buf b = {0};
	int r = parameters_fill(c, a, text, &b);
	if (r == 0)
		json_put_str(object, name, buf_view(&b));
	buf_free(&b);
	return r;
}

/* Replaces "{groupId}" and "{orgId}" where they are whole values of a body: some schemas require the ids there too. */
static int values_fill(struct client *c, struct arena *a, json_t *value, bool *ret_changed)
{
	const char *name;
	json_t *child;
	size_t i;
	int r = 0;
	json_object_foreach(value, name, child)
	{
		bool placeholder = is_placeholder(json_string_value(child));
		*ret_changed |= placeholder;
		if (r == 0)
			r = placeholder ? placeholder_set(c, a, value, name, json_string_value(child))
			                : values_fill(c, a, child, ret_changed);
	}
	json_array_foreach(value, i, child)
	{
		if (r == 0)
			r = values_fill(c, a, child, ret_changed);
	}
	return r;
}

/* A body without such values is sent unchanged, byte for byte. */
static int body_fill(struct client *c, struct arena *a, struct str *body)
{
	bool changed = false;
	json_t *value = body->n ? json_loadb(body->p, body->n, JSON_DECODE_ANY, NULL) : NULL;
	int r = values_fill(c, a, value, &changed);
	char *text = r == 0 && changed ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	if (text)
		*body = arena_dup(a, str_of(text));
	free(text);
	json_decref(value);
	return r;
}

static int query_add(struct arena *a, const struct option_texts *query, struct buf *b)
{
	for (size_t i = 0; i < query->n; i++) {
		struct str name, value;
		if (!str_cut(str_of(query->v[i]), '=', &name, &value) || !name.n)
			return option_refuse("--query: \"%s\" is not NAME=VALUE", query->v[i]);
		buf_printf(b, "%c%s=%s", memchr(b->p, '?', b->n) ? '&' : '?', url_escape(a, name),
		           url_escape(a, value));
	}
	return 0;
}

/* A path is below the API's base, or complete ("/api/...", "/openapi.json"), or a link that the service gave. */
static int path_make(struct client *c, struct arena *a, const struct api_arguments *g, const char *given,
                     const char **ret_path)
{
	static const char *const whole[] = {"/api/", "/openapi.json", "/healthz", "/readyz", "/metrics", "/ca/"};
	const char *base = client_profile(c)->base_url;
	struct buf b = {0};
	if (strncmp(given, base, strlen(base)) == 0 && given[strlen(base)] == '/')
		given += strlen(base);
	if (given[0] != '/')
		return option_refuse("api: the path begins with a slash, as in /groups, or is a link of %s", base);
	if (!path_is_plain(given))
		return option_refuse("api: percent-encode spaces and other such characters in the path");
	bool below = true;
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		below = below && strncmp(given, whole[i], strlen(whole[i])) != 0;
	if (below)
		buf_z(&b, API_BASE);
	if (strcmp(given, "/") == 0)
		given = "";
	int r = parameters_fill(c, a, given, &b);
	if (r == 0)
		r = query_add(a, &g->query, &b);
	/* Pretty JSON for people; a program gets what the service sends. */
	if (r == 0 && isatty(STDOUT_FILENO) && !memmem(b.p, b.n, "pretty=", 7))
		buf_printf(&b, "%cpretty=true", memchr(b.p, '?', b.n) ? '&' : '?');
	if (r == 0)
		*ret_path = arena_dup(a, buf_view(&b)).p;
	buf_free(&b);
	return r;
}

static int headers_check(const struct option_texts *headers)
{
	for (size_t i = 0; i < headers->n; i++) {
		struct str name, value;
		if (!str_cut(str_of(headers->v[i]), ':', &name, &value) || !name.n || strpbrk(headers->v[i], "\r\n"))
			return option_refuse("--header: \"%s\" is not NAME: VALUE", headers->v[i]);
	}
	return 0;
}

static const char *method_of(struct arena *a, const char *word)
{
	enum method m;
	char *name = arena_z(a, str_of(word));
	for (char *p = name; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	if (method_parse(str_of(name), &m))
		return name;
	option_refuse("api: \"%s\" is no method; there are GET, POST, PUT, PATCH, DELETE and HEAD", word);
	return NULL;
}

static int call_run(struct client *c, struct arena *a, const struct client_request *r, const struct api_arguments *g)
{
	struct client_answer answer;
	int result = client_call(c, a, r, &answer);
	if (result < 0)
		return client_exit(result);
	if (g->include || strcmp(r->method, "HEAD") == 0)
		text_print(a, answer.headers);
	text_print(a, answer.body);
	if (answer.body.n && isatty(STDOUT_FILENO) && answer.body.p[answer.body.n - 1] != '\n')
		putchar('\n');
	if (answer.status < 300)
		return EXIT_DONE;
	client_explain(c, &answer);
	return EXIT_NOT_DONE;
}

static int api_run(const struct client_call *call)
{
	struct arena *a = call->arena;
	const struct api_arguments *g = call->given;
	struct profile profile;
	struct client *c;
	/* With --include the headers come first, and for a terminal the body is cleaned: it has to wait. */
	bool waits = g->include || isatty(STDOUT_FILENO);
	struct client_request r = {.accept = g->accept,
	                           .headers = g->headers.v,
	                           .header_count = g->headers.n,
	                           .sink = waits ? NULL : stdout};
	r.method = method_of(a, call->words[0]);
	if (!r.method || headers_check(&g->headers) < 0 || (g->body && body_read(a, g->body, &r.body) < 0) ||
	    profile_load(a, &g->at, &profile) < 0 || client_open(a, &profile, &c) < 0)
		return EXIT_USAGE;
	int result = path_make(c, a, g, call->words[1], &r.path);
	if (result == 0)
		result = body_fill(c, a, &r.body);
	int code = result < 0 ? client_exit(result) : call_run(c, a, &r, g);
	client_close(c);
	return code;
}

static const struct client_command command = {
        .name = "api",
        .options = api_options,
        .option_count = &api_option_count,
        .words_max = 2,
        .words_min = 2,
        .wants = "say what to call: steward api METHOD PATH, for example: steward api GET /groups",
        .run = api_run};

int api_command(int argc, char **argv)
{
	struct api_arguments g = {.body = NULL};
	return client_command_run(&command, argc, argv, &g);
}
