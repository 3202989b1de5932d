/* `steward logs`: what the databases of a cluster write down. The service sends a node's log as gzip; it is unpacked
 * and printed line by line as it arrives, so a log of any length can be read. A line is JSON; people see its time, its
 * severity, who, and what. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/client/command.h"
#include "cli/follow.h"
#include "cli/output.h"

#include <curl/curl.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

struct logs_arguments {
	struct profile_arguments at;
	const char *node, *since, *output;
	bool follow, audit;
};

#define AT(member) offsetof(struct logs_arguments, member)

const struct option_row logs_options[] = {
        {"follow", 'f', OPTION_SWITCH, AT(follow), NULL, NULL, "Go on with what is written from now on.",
         .flag_only = true},
        {"node", 0, OPTION_TEXT, AT(node), NULL, "NAME", "One node, by its name or the end of it; otherwise all.",
         .flag_only = true},
        {"since", 0, OPTION_TEXT, AT(since), "1h", "TIME", "Since a time, or since 90s, 15m, 2h or 3d ago.",
         .flag_only = true},
        {"audit", 0, OPTION_SWITCH, AT(audit), NULL, NULL, "The audit log instead.", .flag_only = true},
        {"output", 'o', OPTION_CHOICE, AT(output), "text", "FORMAT", "text, or json: the lines as they are written.",
         "text|json", .flag_only = true},
        PROFILE_OPTIONS,
};
const size_t logs_option_count = sizeof logs_options / sizeof *logs_options;

#define NODES_MAX 256
#define LINE_BYTES_MAX (4u << 20)
#define CHUNK (64u << 10)
#define GZIP_WINDOW (15 + 16) /* zlib's way to ask for gzip */
#define EARLIEST_MS (INT64_C(1199145600) * 1000)

struct node {
	const char *host, *name; /* name: with the cluster's own name in it, for people */
	struct follow_seen seen;
	int64_t from_ms;
};

struct logs {
	struct arena *arena;
	const struct logs_arguments *given;
	struct client *client;
	const char *project, *cluster;
	struct node nodes[NODES_MAX];
	size_t count;
	size_t width; /* of the nodes' names; 0: there is one node, and it is not named */
	bool json;
};

/* One answer on its way to the screen. */
struct reading {
	const struct logs *logs;
	struct node *node;
	z_stream z;
	struct buf line;
	bool cut, broken;
};

/* Lines. */

static const char *shown(struct arena *a, const json_t *line, const char *name)
{
	return text_shown(a, json_field(line, name));
}

static void more_print(struct arena *a, const json_t *line, const char *name)
{
	if (json_field(line, name).n)
		printf("    %s: %s\n", name, shown(a, line, name));
}

static void entry_print(const struct reading *r, struct arena *a, json_t *line)
{
	const struct logs *l = r->logs;
	if (l->json) {
		output_json(stdout, line, false);
		return;
	}
	if (l->width)
		printf("%-*s  ", (int)l->width, r->node->name);
	printf("%s  %-7s  ", shown(a, line, "timestamp"), shown(a, line, "error_severity"));
	if (json_field(line, "user").n)
		printf("%s@%s  ", shown(a, line, "user"), shown(a, line, "dbname"));
	printf("%s\n", shown(a, line, "message"));
	more_print(a, line, "detail");
	more_print(a, line, "hint");
	more_print(a, line, "statement");
}

/* {"timestamp":"2026-11-15 02:06:47.123 UTC",...; simulated nodes write it as the API does. */
static bool time_of(const json_t *line, int64_t *ret_ms)
{
	struct str text = json_field(line, "timestamp");
	return clock_parse((struct str){text.p, text.n > 23 ? 23 : text.n}, ret_ms);
}

static void line_take(struct reading *r)
{
	struct arena *a = arena_new();
	json_t *line = json_loadb(r->line.p, r->line.n, 0, NULL);
	int64_t at = r->node->seen.newest_ms;
	bool timed = line && time_of(line, &at);
	if (!timed)
		at = r->node->seen.newest_ms;
	if (!r->logs->given->follow || follow_is_new(&r->node->seen, buf_view(&r->line), at)) {
		if (line)
			entry_print(r, a, line);
		else
			printf("%s%s\n", text_shown(a, buf_view(&r->line)), r->cut ? " ..." : "");
	}
	json_decref(line);
	arena_free(a);
	r->line.n = 0;
	r->cut = false;
}

static void bytes_take(struct reading *r, const char *bytes, size_t n)
{
	while (n) {
		const char *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;
		size_t room = LINE_BYTES_MAX - r->line.n;
		r->cut |= part > room;
		buf_add(&r->line, bytes, part > room ? room : part);
		if (end)
			line_take(r);
		part += end != NULL;
		bytes += part;
		n -= part;
	}
}

/* The sink of a call: unpacks what comes. */
static ssize_t sink_write(void *ctx, const char *bytes, size_t n)
{
	struct reading *r = ctx;
	char out[CHUNK];
	r->z.next_in = (const Bytef *)bytes;
	r->z.avail_in = (uInt)n;
	do {
		r->z.next_out = (Bytef *)out;
		r->z.avail_out = sizeof out;
		int code = inflate(&r->z, Z_NO_FLUSH);
		bytes_take(r, out, sizeof out - r->z.avail_out);
		if (code == Z_STREAM_END)
			return (ssize_t)n;
		r->broken = code != Z_OK && code != Z_BUF_ERROR;
	} while (!r->broken && r->z.avail_out == 0);
	return r->broken ? 0 : (ssize_t)n;
}

/* Nodes. */

static bool node_is(const struct node *n, const char *given)
{
	size_t length = strlen(given);
	const char *first[] = {n->host, n->name};
	if (strcmp(n->host, given) == 0)
		return true;
	for (size_t i = 0; i < 2; i++) {
		size_t end = strcspn(first[i], ".");
		if (length <= end && strncmp(first[i] + end - length, given, length) == 0 &&
		    (length == end || first[i][end - length - 1] == '-'))
			return true;
	}
	return false;
}

static void node_add(struct logs *l, const json_t *process, struct str label)
{
	struct str host = json_field(process, "hostname"), alias = json_field(process, "userAlias"), rest;
	struct node n = {.host = arena_z(l->arena, host)};
	if (l->count == NODES_MAX || host.n <= label.n || !str_starts(host, label) || host.p[label.n] != '-')
		return;
	str_cut(alias.n ? alias : host, '.', &alias, &rest);
	n.name = text_shown(l->arena, alias);
	l->nodes[l->count++] = n;
}

/* The label that begins the names of all hosts of a cluster: "ab12cd" of
 * postgresql://ab12cd-shard-00-00.example:27017. */
static struct str label_of(json_t *cluster)
{
	struct str string = json_field(json_object_get(cluster, "connectionStrings"), "standard"), left, label, rest;
	const char *at = string.n ? memmem(string.p, string.n, "://", 3) : NULL;
	if (!at)
		return STR_NONE;
	left = (struct str){at + 3, (size_t)(string.p + string.n - at - 3)};
	return str_cut(left, '-', &label, &rest) ? label : STR_NONE;
}

static int nodes_find(struct logs *l, int64_t *ret_now_ms)
{
	struct client_answer answer;
	struct client_request r = {.method = "GET"};
	json_t *processes = NULL;
	r.path = arena_printf(l->arena, API_BASE "/groups/%s/clusters/%s", l->project,
	                      url_escape(l->arena, str_of(l->cluster)))
	                 .p;
	int result = client_call(l->client, l->arena, &r, &answer);
	if (result < 0)
		return client_exit(result);
	if (answer.status != 200) {
		client_explain(l->client, &answer);
		return EXIT_NOT_DONE;
	}
	time_t now = curl_getdate(arena_z(l->arena, client_header(&answer, "date")), NULL);
	*ret_now_ms = now > 0 ? (int64_t)now * 1000 : clock_now_ms();
	struct str label = label_of(answer.json);
	int code = client_ask(l->client, l->arena, "GET",
	                      arena_printf(l->arena, API_BASE "/groups/%s/processes?itemsPerPage=500", l->project).p,
	                      NULL, &processes);
	const json_t *results = json_object_get(processes, "results");
	for (size_t i = 0; label.n && i < json_array_size(results); i++)
		node_add(l, json_array_get(results, i), label);
	if (code == EXIT_DONE && !l->count) {
		option_refuse("%s has no node that runs; \"steward clusters get %s\" shows its state", l->cluster,
		              l->cluster);
		code = EXIT_NOT_DONE;
	}
	return code;
}

/* Keeps the node that --node names. */
static int nodes_choose(struct logs *l)
{
	struct buf names = {0};
	size_t kept = 0;
	for (size_t i = 0; i < l->count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", l->nodes[i].name);
	for (size_t i = 0; i < l->count; i++)
		if (!l->given->node || node_is(&l->nodes[i], l->given->node))
			l->nodes[kept++] = l->nodes[i];
	if (!kept)
		option_refuse("--node: %s has no node \"%s\"; there are %.*s", l->cluster, l->given->node,
		              STR_ARG(buf_view(&names)));
	buf_free(&names);
	l->count = kept;
	for (size_t i = 0; kept > 1 && i < kept; i++) {
		size_t n = strlen(l->nodes[i].name);
		l->width = n > l->width ? n : l->width;
	}
	return kept ? EXIT_DONE : EXIT_USAGE;
}

/* Asks one node for what it has written since; prints it. The result is that of client_call(). */
static int node_read(struct logs *l, struct node *n, struct arena *a, bool quiet, struct client_answer *ret_answer)
{
	struct reading r = {.logs = l, .node = n};
	int64_t from = n->from_ms > EARLIEST_MS ? n->from_ms : EARLIEST_MS;
	if (inflateInit2(&r.z, GZIP_WINDOW) != Z_OK)
		return option_refuse("the log cannot be unpacked");
	FILE *sink = fopencookie(&r, "w", (cookie_io_functions_t){.write = sink_write});
	struct client_request q = {.method = "GET", .sink = sink, .quiet = quiet};
	q.path = arena_printf(a, API_BASE "/groups/%s/clusters/%s/logs/%s.gz?startDate=%lld", l->project,
	                      url_escape(a, str_of(n->host)), l->given->audit ? "db-audit-log" : "db",
	                      (long long)(from / 1000))
	                 .p;
	int result = sink ? client_call(l->client, a, &q, ret_answer) : -ENOMEM;
	if (sink && fclose(sink) != 0 && result == 0)
		result = option_refuse("the log of %s cannot be unpacked", n->name);
	if (r.line.n && result == 0)
		line_take(&r);
	inflateEnd(&r.z);
	buf_free(&r.line);
	return result;
}

static int logs_once(struct logs *l)
{
	int code = EXIT_DONE;
	for (size_t i = 0; i < l->count && code == EXIT_DONE; i++) {
		struct client_answer answer;
		int result = node_read(l, &l->nodes[i], l->arena, false, &answer);
		if (result < 0) {
			code = client_exit(result);
		} else if (answer.status >= 300) {
			client_explain(l->client, &answer);
			code = EXIT_NOT_DONE;
		}
	}
	return code;
}

/* A node that has said nothing yet is asked from where it was asked before. */
static void node_turn(struct node *n)
{
	int64_t next = follow_turn(&n->seen);
	if (next > n->from_ms)
		n->from_ms = next;
}

static int logs_follow(struct logs *l)
{
	struct follow f = {.unreached = 0};
	int code = FOLLOW_ON;
	while (code == FOLLOW_ON && fflush(stdout) == 0 && !ferror(stdout)) {
		follow_step(&f, l->client, 0, &(struct client_answer){.status = 200});
		follow_wait(&f);
		for (size_t i = 0; i < l->count && code == FOLLOW_ON; i++) {
			struct arena *a = arena_new();
			struct client_answer answer = {.status = 0};
			node_turn(&l->nodes[i]);
			int result = node_read(l, &l->nodes[i], a, f.unreached < FOLLOW_PATIENCE, &answer);
			code = follow_step(&f, l->client, result, &answer);
			arena_free(a);
		}
	}
	return code == FOLLOW_ON ? EXIT_DONE : code; /* main() says when the output cannot be written */
}

static int logs_work(struct logs *l)
{
	int64_t now = 0, since = 0;
	int r = follow_since(l->given->since, clock_now_ms(), &since);
	if (r == 0)
		r = client_project(l->client, l->arena, &l->project);
	if (r < 0)
		return client_exit(r);
	int code = nodes_find(l, &now);
	if (code == EXIT_DONE)
		code = nodes_choose(l);
	/* How long ago is told by the service's clock. */
	if (code == EXIT_DONE && follow_since(l->given->since, now, &since) < 0)
		code = EXIT_USAGE;
	for (size_t i = 0; i < l->count; i++)
		l->nodes[i].from_ms = since;
	if (code == EXIT_DONE)
		code = logs_once(l);
	return code == EXIT_DONE && l->given->follow ? logs_follow(l) : code;
}

static int logs_run(const struct client_call *call)
{
	struct arena *a = call->arena;
	const struct logs_arguments *g = call->given;
	struct logs *l = arena_new_of(a, struct logs);
	struct profile profile;
	*l = (struct logs){.arena = a, .given = g, .cluster = call->words[0], .json = strcmp(g->output, "json") == 0};
	if (profile_load(a, &g->at, &profile) < 0 || client_open(a, &profile, &l->client) < 0)
		return EXIT_USAGE;
	int code = logs_work(l);
	for (size_t i = 0; i < l->count; i++)
		follow_free(&l->nodes[i].seen);
	client_close(l->client);
	return code;
}

static const struct client_command command = {.name = "logs",
                                              .options = logs_options,
                                              .option_count = &logs_option_count,
                                              .words_max = 1,
                                              .words_min = 1,
                                              .wants = "the cluster's name is missing: steward logs NAME",
                                              .run = logs_run};

int logs_command(int argc, char **argv)
{
	struct logs_arguments g = {.node = NULL};
	return client_command_run(&command, argc, argv, &g);
}
