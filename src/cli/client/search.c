/* `steward search-indexes try`: searches in an index from the command line, as a database user that can only read and
 * is made for that. Searching is done in SQL (docs/search.md), so this looks up where the index is, and hands psql one
 * statement. All other commands of search indexes are derived (command.c). */
#include "base/buf.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/client/command.h"
#include "cli/client/connect.h"
#include "cli/derived/command.h"
#include "cli/meant.h"

#include <stddef.h>

#define WORDS_MAX 8000
#define VECTOR_MAX 120000 /* bytes, of 8,192 numbers; an argument of psql can have 131,072 */

struct search_arguments {
	struct profile_arguments at;
	const char *path, *user;
	unsigned limit, timeout;
	bool print;
};

#define AT(member) offsetof(struct search_arguments, member)

const struct option_row search_options[] = {
        {"path", 0, OPTION_TEXT, AT(path), NULL, "FIELD", "try: only in this field; otherwise in all fields of words.",
         .flag_only = true},
        {"limit", 0, OPTION_NUMBER, AT(limit), "10", "N", "try: rows at most.", NULL, 1, 10000, true},
        {"user", 0, OPTION_TEXT, AT(user), NULL, "NAME",
         "try: an existing database user instead of a new one; psql asks for its password.", .flag_only = true},
        {"print", 0, OPTION_SWITCH, AT(print), NULL, NULL, "try: print the SQL instead of running it.",
         .flag_only = true},
        {"timeout", 0, OPTION_NUMBER, AT(timeout), "30", "SECONDS",
         "try: wait no longer than this for the login to work.", NULL, 1, 3600, true},
        PROFILE_OPTIONS,
};
const size_t search_option_count = sizeof search_options / sizeof *search_options;

/* "main", or "articles.main" where several tables have one of that name. */
static bool is_meant(struct arena *a, const json_t *index, struct str name)
{
	struct str own = json_field(index, "name"), table = json_field(index, "collectionName");
	return str_eq(own, name) || str_eq(arena_printf(a, "%.*s.%.*s", STR_ARG(table), STR_ARG(own)), name);
}

static int index_find(struct client *c, struct arena *a, const char *cluster, const char *name,
                      const json_t **ret_index)
{
	const char *project;
	struct client_answer answer;
	size_t found = 0;
	int r = client_project(c, a, &project);
	if (r < 0)
		return client_exit(r);
	int code = client_get(c, a,
	                      arena_printf(a, API_BASE "/groups/%s/clusters/%s/search/indexes", project,
	                                   url_escape(a, str_of(cluster)))
	                              .p,
	                      &answer);
	if (code != EXIT_DONE)
		return code;
	for (size_t i = 0; i < json_array_size(answer.json); i++)
		if (is_meant(a, json_array_get(answer.json, i), str_of(name))) {
			*ret_index = json_array_get(answer.json, i);
			found++;
		}
	if (!found)
		option_refuse(
		        "%s has no search index \"%s\"; \"steward search-indexes list %s\" shows those that it has",
		        cluster, name, cluster);
	else if (found > 1)
		option_refuse("several tables of %s have a search index \"%s\": name it as TABLE.INDEX", cluster, name);
	return found == 1 ? EXIT_DONE : EXIT_NOT_DONE;
}

/* A constant that reads the same whatever the session's settings are. */
static void literal_add(struct buf *b, struct str text)
{
	buf_z(b, "E'");
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'' || text.p[i] == '\\')
			buf_c(b, text.p[i]);
		buf_c(b, text.p[i]);
	}
	buf_c(b, '\'');
}

/* Words, or a query as it is, which begins with a brace. */
static struct str query_make(struct arena *a, const struct search_arguments *g, const char *words)
{
	if (*words == '{')
		return str_of(words);
	json_t *path = g->path ? json_string(g->path) : json_pack("{s:s}", "wildcard", "*");
	json_t *query = json_pack("{s:{s:s, s:o}}", "text", "query", words, "path", path);
	return query ? json_text(a, json_keep(a, query)) : STR_NONE;
}

static bool is_vector(const json_t *index)
{
	return str_is(json_field(index, "type"), "vectorSearch");
}

/* Numbers as JSON has them, [1, 2], or as PostgreSQL has them, {1, 2}. What is in them is PostgreSQL's to check. */
static struct str vector_make(struct arena *a, const char *words)
{
	struct str given = str_of(words);
	bool json = given.n > 1 && given.p[0] == '[' && given.p[given.n - 1] == ']';
	return json ? arena_printf(a, "{%.*s}", (int)given.n - 2, given.p + 1) : given;
}

static const char *statement_make(struct arena *a, const struct search_arguments *g, const json_t *index,
                                  struct str query)
{
	struct buf b = {0};
	buf_printf(&b, "select round(score::numeric, 4) as score, document from steward_search.%s(",
	           is_vector(index) ? "vector" : "query");
	literal_add(&b, arena_printf(a, "%.*s.%.*s", STR_ARG(json_field(index, "collectionName")),
	                             STR_ARG(json_field(index, "name"))));
	buf_z(&b, ", ");
	literal_add(&b, query);
	buf_printf(&b, ", '{\"limit\": %u}')", g->limit);
	return arena_z(a, buf_keep(&b, a));
}

static int try_run(struct arena *a, const struct search_arguments *g, const char *const *words)
{
	struct profile profile;
	struct client *client;
	const json_t *index = NULL;
	if (profile_load(a, &g->at, &profile) < 0 || client_open(a, &profile, &client) < 0)
		return EXIT_USAGE;
	int code = index_find(client, a, words[1], words[2], &index);
	client_close(client);
	if (code != EXIT_DONE)
		return code;
	if (!is_vector(index) && strlen(words[3]) > WORDS_MAX) {
		option_refuse("search-indexes try: the words have more than %d bytes", WORDS_MAX);
		return EXIT_USAGE;
	}
	struct str query = is_vector(index) ? vector_make(a, words[3]) : query_make(a, g, words[3]);
	if (!query.n) {
		option_refuse("search-indexes try: the words are no UTF-8");
		return EXIT_USAGE;
	}
	const char *statement = statement_make(a, g, index, query);
	if (g->print) {
		printf("%s\n", statement);
		return EXIT_DONE;
	}
	struct connect_arguments c = {.at = g->at,
	                              .database = arena_z(a, json_field(index, "database")),
	                              .user = g->user,
	                              .hours = 1,
	                              .timeout = g->timeout,
	                              .read_only = !g->user};
	c.commands.v[c.commands.n++] = statement;
	return connect_run(a, &c, words[1]);
}

static int search_run(const struct client_call *call)
{
	struct arena *a = call->arena;
	const struct search_arguments *g = call->given;
	const char *const *words = call->words;
	const size_t count = call->count;
	static const char *const verbs[] = {"try"};
	const struct command_family *family = command_family_find("search-indexes");
	if (!count) {
		usage_family(stderr, family);
		return EXIT_USAGE;
	}
	if (strcmp(words[0], verbs[0]) != 0)
		return meant_verb(family, words[0], count > 1 ? words[1] : NULL, verbs, 1);
	if (count < 4 || !*words[3] || strlen(words[3]) > VECTOR_MAX) {
		option_refuse("search-indexes try: give the cluster, the index and 1 to %d bytes of words: steward "
		              "search-indexes try CLUSTER INDEX 'WORDS'",
		              WORDS_MAX);
		return EXIT_USAGE;
	}
	return try_run(a, g, words);
}

static const struct client_command command = {.name = "search-indexes",
                                              .options = search_options,
                                              .option_count = &search_option_count,
                                              .words_max = 4,
                                              .has_family = true,
                                              .run = search_run};

int search_indexes_command(int argc, char **argv)
{
	struct search_arguments g = {.path = NULL};
	return client_command_run(&command, argc, argv, &g);
}
