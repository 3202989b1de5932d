/* Completion of command lines. `steward completion SHELL` prints a script for the shell, which asks `steward __complete
 * WORDS...` for what may stand in the place of the last word. Families, verbs and flags come from the rows of the
 * catalog, names of clusters, users and the like from the service: the list of the collection that a path parameter
 * lies in. A service that does not answer soon gives no names. */
#include "base/buf.h"
#include "base/json.h"
#include "catalog/common.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/derived/command.h"
#include "cli/derived/completion_scripts.h"
#include "cli/derived/flags.h"
#include "cli/names.h"
#include "cli/output.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

#define DESCRIPTION_MAX 72
#define OFFERS_MAX 4096
#define NAMES_MAX 500

struct completion {
	struct arena *arena;
	char **words;              /* after "steward" */
	int before;                /* how many stand before the one that is completed */
	const char *cur;           /* what there is of it */
	const char *prefix;        /* "--flag=" when its value is completed in the same word, or "" */
	const struct op *op;       /* of a derived command, or NULL */
	struct command_entry hand; /* the hand-written command; name NULL: none */
	int used;                  /* words of the command itself */
	struct flag *flags;        /* of the body */
	size_t flag_count;
	const char **offered;
	size_t offered_count;
	struct client *client;
	struct profile profile;
};

/* Offers. */

static bool is_clean(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (iscntrl(*p) || (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f))
			return false;
	return *text;
}

static bool is_offered(struct completion *c, const char *text)
{
	for (size_t i = 0; i < c->offered_count; i++)
		if (strcmp(c->offered[i], text) == 0)
			return true;
	return false;
}

/* The first sentence of a description, in one line. */
static const char *description_cut(struct arena *a, const char *text)
{
	struct str s = str_of(text ? text : "");
	const char *stop = s.n ? memmem(s.p, s.n, ". ", 2) : NULL;
	if (stop)
		s.n = (size_t)(stop - s.p);
	if (s.n > DESCRIPTION_MAX) {
		s.n = DESCRIPTION_MAX;
		while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
			s.n--;
	}
	return text_shown(a, s);
}

static void offer(struct completion *c, const char *value, const char *description)
{
	const char *whole = arena_printf(c->arena, "%s%s", c->prefix, value).p;
	if (!is_clean(value) || strncmp(whole, c->cur, strlen(c->cur)) != 0 || c->offered_count == OFFERS_MAX ||
	    is_offered(c, whole))
		return;
	c->offered[c->offered_count++] = whole;
	printf("%s\t%s\n", whole, description_cut(c->arena, description));
}

static void offer_files(const struct completion *c)
{
	/* A shell completes whole words: behind "--flag=" it could not. */
	if (!*c->prefix)
		puts(":files");
}

static void offer_choices(struct completion *c, const char *choices)
{
	struct str rest = str_of(choices), one;
	while (rest.n) {
		str_cut(rest, '|', &one, &rest);
		offer(c, arena_z(c->arena, one), "");
	}
}

static void offer_profiles(struct completion *c)
{
	const char *names[NAMES_MAX];
	size_t count = profile_names(c->arena, names, NAMES_MAX);
	for (size_t i = 0; i < count; i++)
		offer(c, names[i], "profile");
}

/* Names from the service. */

/* The value of an option among the words; NULL: not given. */
static const char *word_value(const struct completion *c, const char *name)
{
	size_t n = strlen(name);
	for (int i = 0; i < c->before; i++) {
		const char *w = c->words[i];
		if (strncmp(w, "--", 2) != 0 || strncmp(w + 2, name, n) != 0)
			continue;
		if (w[2 + n] == '=')
			return w + 3 + n;
		if (!w[2 + n] && i + 1 < c->before)
			return c->words[i + 1];
	}
	return NULL;
}

static const char *environment(const char *variable)
{
	const char *set = getenv(variable);
	return set && *set ? set : NULL;
}

static bool client_begin(struct completion *c)
{
	if (c->client)
		return true;
	struct profile_arguments at = {.profile = word_value(c, "profile"),
	                               .data = word_value(c, "data"),
	                               .project = word_value(c, "project"),
	                               .organization = word_value(c, "org")};
	if (!at.profile && !at.data) {
		at.profile = environment("STEWARD_PROFILE");
		at.data = at.profile ? NULL : environment("STEWARD_DATA");
	}
	if (!at.project)
		at.project = environment("STEWARD_PROJECT");
	if (!at.organization)
		at.organization = environment("STEWARD_ORG");
	return profile_load(c->arena, &at, &c->profile) == 0 && client_open(c->arena, &c->profile, &c->client) == 0;
}

static json_t *list_get(struct completion *c, const char *path)
{
	return client_begin(c) ? names_get(c->client, c->arena, path) : NULL;
}

static void items_offer(struct completion *c, json_t *items, const char *param)
{
	json_t *item;
	size_t i;
	json_array_foreach(items, i, item)
	{
		const char *text = json_is_string(item) ? json_string_value(item) : names_text(item, param);
		if (text)
			offer(c, text, names_about(item, text));
	}
}

/* The word that stands for the k-th path parameter which is no scope. */
static const char *argument_at(struct completion *c, size_t k);

/* A hand-written command has one word that names something: a cluster. */
static const char *parameter_value(void *ctx, struct str name)
{
	struct completion *c = ctx;
	const char *id = NULL;
	size_t k = 0;
	if (str_is(name, "orgId"))
		return client_begin(c) ? c->profile.organization : NULL;
	if (str_is(name, "groupId"))
		return client_begin(c) && client_project(c->client, c->arena, &id) == 0 ? id : NULL;
	if (!c->op)
		return argument_at(c, 0);
	for (unsigned i = 0; i < c->op->path_param_count; i++) {
		if (str_is(name, c->op->path_params[i].name))
			return argument_at(c, k);
		k += !command_is_scope(&c->op->path_params[i]);
	}
	return NULL;
}

static const char *path_fill(struct completion *c, const char *path)
{
	return names_path_fill(c->arena, path, parameter_value, c);
}

static void schema_offer(struct completion *c, const struct schema *s)
{
	const struct schema *of = s && s->type == TYPE_ARRAY && s->items ? s->items : s;
	if (!of)
		return;
	if (of->type == TYPE_BOOLEAN)
		offer_choices(c, "true|false");
	for (unsigned i = 0; i < of->enum_count; i++) {
		struct str text = str_of(of->enums[i]);
		if (text.n >= 2 && text.p[0] == '"')
			text = (struct str){text.p + 1, text.n - 2};
		offer(c, arena_z(c->arena, text), "");
	}
}

static void parameter_offer(struct completion *c, const struct param *p)
{
	schema_offer(c, p->schema);
	if (p->schema && p->schema->enum_count)
		return;
	const char *list = names_list_of(c->arena, c->op, p->name), *path = list ? path_fill(c, list) : NULL;
	json_t *items = path ? list_get(c, path) : NULL;
	/* A project is named as people know it. */
	items_offer(c, items,
	            strcasecmp(p->name, "hostname") == 0 ? "hostname"
	            : strcmp(p->name, "groupId") == 0    ? "name"
	                                                 : p->name);
}

/* Flags. */

struct found {
	const struct option_row *row;
	const struct schema *schema;
	bool is_switch; /* may stand without a value */
};

static bool rows_find(const struct option_row *rows, size_t count, struct str name, char letter, struct found *f)
{
	for (size_t i = 0; i < count; i++)
		if (name.n ? str_is(name, rows[i].name) : letter && rows[i].letter == letter) {
			/* One without an argument has its value behind "=" only. */
			*f = (struct found){.row = &rows[i], .is_switch = !rows[i].argument};
			return true;
		}
	return false;
}

/* Positions are those of the first in the list. */
static bool flag_is(const char *listed, struct str given)
{
	struct str rest = str_of(listed), one, part;
	bool more = true;
	while (more) {
		bool goes_on = str_cut(rest, '.', &one, &rest);
		more = str_cut(given, '.', &part, &given);
		uint64_t number;
		bool position = str_is(one, "0") && str_to_u64(part, 999, &number);
		if (goes_on != more || (!position && !str_is(one, "KEY") && !str_eq(one, part)))
			return false;
	}
	return true;
}

/* The parameters of the query and of lists, in one numbering; NULL after the last. */
static const struct param *param_at(const struct op *op, unsigned i)
{
	if (!op || i < op->query_param_count)
		return op ? &op->query_params[i] : NULL;
	i -= op->query_param_count;
	return op->paginated && i < COMMON_COUNT - COMMON_PAGE ? &common_params[COMMON_PAGE + i] : NULL;
}

static struct found flag_find(struct completion *c, const char *word)
{
	struct found f = {.is_switch = strncmp(word, "--no-", 5) == 0};
	bool is_long = word[1] == '-';
	struct str name = STR_NONE, value;
	if (is_long)
		str_cut(str_of(word + 2), '=', &name, &value);
	char letter = (char)(is_long ? 0 : word[1]);
	if (c->hand.name && rows_find(c->hand.options, c->hand.option_count, name, letter, &f))
		return f;
	if (c->op && rows_find(command_options, command_option_count, name, letter, &f))
		return f;
	const struct param *p;
	for (unsigned i = 0; (p = param_at(c->op, i)); i++)
		if (str_is(name, flag_name(c->arena, str_of(p->name))))
			f.schema = p->schema;
	for (size_t i = 0; !f.schema && i < c->flag_count; i++)
		if (flag_is(c->flags[i].name, name))
			f.schema = c->flags[i].schema;
	f.is_switch = f.is_switch || (f.schema && f.schema->type == TYPE_BOOLEAN);
	return f;
}

static void rows_offer(struct completion *c, const struct option_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		offer(c, arena_printf(c->arena, "--%s", rows[i].name).p, rows[i].help);
}

static void flags_offer(struct completion *c)
{
	for (size_t i = 0; i < c->flag_count; i++)
		if (c->flags[i].required)
			offer(c, arena_printf(c->arena, "--%s", c->flags[i].name).p,
			      arena_printf(c->arena, "required: %s", c->flags[i].description).p);
	const struct param *p;
	for (unsigned i = 0; (p = param_at(c->op, i)); i++)
		offer(c, arena_printf(c->arena, "--%s", flag_name(c->arena, str_of(p->name))).p, p->description);
	for (size_t i = 0; i < c->flag_count; i++)
		offer(c, arena_printf(c->arena, "--%s", c->flags[i].name).p, c->flags[i].description);
	if (c->hand.name)
		rows_offer(c, c->hand.options, c->hand.option_count);
	if (c->op)
		rows_offer(c, command_options, command_option_count);
	offer(c, "--help", "Explain the command.");
}

/* Names of projects and organizations for --project and --org. */
static void scopes_offer(struct completion *c, const char *list, const char *param)
{
	items_offer(c, list_get(c, list), param);
}

static void clusters_offer(struct completion *c)
{
	c->op = catalog_op("getCluster");
	parameter_offer(c, &c->op->path_params[1]);
}

static void texts_offer(struct completion *c, json_t *values, json_t *abouts)
{
	json_t *value;
	size_t i;
	if (json_is_string(values))
		offer(c, json_string_value(values), json_string_value(abouts));
	json_array_foreach(values, i, value)
	{
		texts_offer(c, value, json_array_get(abouts, i));
	}
}

/* A node is named by the end of what people call its host: "00-01" of orders-shard-00-01.example.com. */
static void nodes_offer(struct completion *c, json_t *hosts)
{
	const char *cluster = argument_at(c, 0);
	struct str begin = arena_printf(c->arena, "%s-", cluster ? cluster : ""), host, rest;
	json_t *one;
	size_t i;
	json_array_foreach(hosts, i, one)
	{
		str_cut(json_str_of(one), '.', &host, &rest);
		const char *dash = host.n ? memrchr(host.p, '-', host.n) : NULL;
		dash = dash ? memrchr(host.p, '-', (size_t)(dash - host.p)) : NULL;
		if (dash && cluster && str_starts(host, begin))
			offer(c, arena_z(c->arena, (struct str){dash + 1, (size_t)(host.p + host.n - dash - 1)}), "");
	}
}

/* What the service has for a flag. */
static void flag_names_offer(struct completion *c, struct str flag)
{
	struct names_of_flag of = names_of_flag(flag);
	const char *path = of.list ? path_fill(c, of.list) : NULL;
	struct client_answer answer;
	struct client_request r = {.method = "GET", .quiet = true, .timeout_ms = NAMES_MS};
	if (!path || !client_begin(c))
		return;
	r.path = arena_printf(c->arena, API_BASE "%s%s", path, names_query(of.list)).p;
	if (client_call(c->client, c->arena, &r, &answer) < 0 || answer.status != 200)
		return;
	json_t *values = output_find(c->arena, answer.json, of.value);
	if (str_is(flag, "node"))
		nodes_offer(c, values);
	else
		texts_offer(c, values, of.about ? output_find(c->arena, answer.json, of.about) : NULL);
}

/* Of an option that commands share, or of a hand-written command. False: it is none that has a list of its own. */
static bool option_offer(struct completion *c, const struct option_row *row)
{
	const char *name = row->name;
	if (row->choices)
		offer_choices(c, row->choices);
	else if (strcmp(name, "output") == 0)
		offer_choices(c, OUTPUT_FORMS);
	else if (strcmp(name, "profile") == 0)
		offer_profiles(c);
	else if (strcmp(name, "project") == 0)
		scopes_offer(c, "/groups", "name");
	else if (strcmp(name, "org") == 0)
		scopes_offer(c, "/orgs", "orgId");
	else if (row->kind == OPTION_FILE || strcmp(name, "body") == 0 || strcmp(name, "data") == 0)
		offer_files(c);
	else if (row->kind == OPTION_SWITCH)
		offer_choices(c, "true|false");
	else
		return false;
	return true;
}

static void value_offer(struct completion *c, struct str flag, const struct found *f)
{
	if (f->row && option_offer(c, f->row))
		return;
	if (f->schema)
		schema_offer(c, f->schema);
	if (!c->offered_count && (f->row || f->schema))
		flag_names_offer(c, f->row ? str_of(f->row->name) : flag);
}

/* Words. */

/* Calls seen() for each word behind the command that is neither a flag nor a flag's value. Returns the flag whose value
 * the word at `before` would be. */
static const char *arguments_each(struct completion *c, void (*seen)(void *ctx, const char *word), void *ctx)
{
	const char *waiting = NULL;
	for (int i = c->used; i < c->before; i++) {
		const char *w = c->words[i];
		if (waiting || strcmp(w, "--") == 0) {
			waiting = NULL;
		} else if (w[0] == '-' && w[1]) {
			struct found f = flag_find(c, w);
			bool joined = w[1] == '-' && strchr(w, '=');
			waiting = joined || f.is_switch ? NULL : w;
			/* A boolean may have its value in the next word. */
			if (!joined && f.is_switch && f.schema && i + 1 < c->before &&
			    str_is_one_of("true|false", str_of(c->words[i + 1])))
				i++;
		} else {
			seen(ctx, w);
		}
	}
	return waiting;
}

struct arguments {
	const char *word[PATH_PARAMS_MAX];
	size_t count;
};

static void argument_keep(void *ctx, const char *word)
{
	struct arguments *all = ctx;
	if (all->count < PATH_PARAMS_MAX)
		all->word[all->count++] = word;
}

static const char *argument_at(struct completion *c, size_t k)
{
	struct arguments all = {.count = 0};
	arguments_each(c, argument_keep, &all);
	return k < all.count ? all.word[k] : NULL;
}

/* The parameter that the next word is for: of those that are no scope; where there are only scopes, the last. */
static const struct param *parameter_next(const struct op *op, size_t given)
{
	const struct param *last = NULL;
	size_t k = 0, named = 0;
	for (unsigned i = 0; i < op->path_param_count; i++) {
		last = &op->path_params[i];
		named += !command_is_scope(last);
		if (!command_is_scope(last) && k++ == given)
			return last;
	}
	return !named && !given ? last : NULL;
}

/* What hand-written commands take as words: another list of words, or names. */
static const struct {
	const char *command, *words; /* words NULL: names of clusters */
} hand_words[] = {
        {"connect", NULL},
        {"logs", NULL},
        {"clusters pause", NULL},
        {"clusters resume", NULL},
        {"clusters scale", NULL},
        {"clusters wait", NULL},
        {"clusters", "list|create|get|scale|pause|resume|delete|wait|ca"},
        {"backups take", NULL},
        {"backups restore", NULL},
        {"backups show", NULL},
        {"backups window", NULL},
        {"backups", "take|restore|show|window"},
        {"advisor build", NULL},
        {"advisor", "build"},
        {"search-indexes try", NULL},
        {"search-indexes", "try"},
        {"invoices", "pdf"},
        {"config use", ":profiles"},
        {"config get", ":settings"},
        {"config set", ":settings"},
        {"config unset", ":settings"},
        {"config", "list|use|get|set|unset|path"},
        {"login", ":profiles"},
        {"logout", ":profiles"},
        {"completion", "bash|zsh|fish"},
        {"api", "GET|POST|PUT|PATCH|DELETE|HEAD"},
        {"hosts", "list|show|cordon|uncordon|label|remove"},
        {"secret-key", "rotate|status|retire"},
        {"limits", "set|list|clear"},
        {"billing", "show|evidence|method|paid|failed|forgive|refund|lock|unlock|credit|correct|limit|link"},
        {"store", "copy|reopen"},
        {"orphans", "list|end"},
        {"backup", ":files"},
        {"check", ":files"},
};

static bool begins_with(const struct completion *c, const char *command, int *ret_words)
{
	struct str rest = str_of(command), one;
	int i = 0;
	while (rest.n) {
		str_cut(rest, ' ', &one, &rest);
		if (i >= c->before || !str_is(one, c->words[i]))
			return false;
		i++;
	}
	*ret_words = i;
	return true;
}

static void hand_words_offer(struct completion *c, const char *words)
{
	if (!words) {
		clusters_offer(c);
	} else if (strcmp(words, ":profiles") == 0) {
		offer_profiles(c);
	} else if (strcmp(words, ":settings") == 0) {
		for (size_t i = 0; i < profile_setting_count; i++)
			offer(c, profile_settings[i].name, profile_settings[i].help);
	} else if (strcmp(words, ":files") == 0) {
		offer_files(c);
	} else {
		offer_choices(c, words);
	}
}

static void hand_offer(struct completion *c)
{
	struct arguments all = {.count = 0};
	for (size_t i = 0; i < sizeof hand_words / sizeof *hand_words; i++) {
		int used;
		if (!begins_with(c, hand_words[i].command, &used))
			continue;
		c->used = used;
		arguments_each(c, argument_keep, &all);
		if (!all.count)
			hand_words_offer(c, hand_words[i].words);
		return;
	}
}

/* The next words of the commands that begin with the words so far. */
static void next_offer_of(struct completion *c, const struct op *op, const char *command)
{
	struct str rest = str_of(command), one;
	for (int i = 0; i < c->before; i++) {
		str_cut(rest, ' ', &one, &rest);
		if (!one.n || !str_is(one, c->words[i]))
			return;
	}
	if (str_cut(rest, ' ', &one, &rest))
		offer(c, arena_z(c->arena, one), "");
	else if (one.n)
		offer(c, arena_z(c->arena, one), op->summary);
}

static void next_offer(struct completion *c)
{
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct op *op = &catalog_ops[i];
		next_offer_of(c, op, op->command);
		for (unsigned k = 0; k < op->alias_count; k++)
			next_offer_of(c, op, op->aliases[k]);
	}
}

static void commands_offer(struct completion *c)
{
	struct command_entry e;
	for (size_t i = 0; help_entry(i, &e); i++)
		offer(c, e.name, e.summary);
	for (unsigned i = 0; i < command_family_count; i++)
		offer(c, command_families[i].name, command_families[i].description);
	for (unsigned i = 0; i < catalog_op_count; i++)
		for (unsigned k = 0; k < catalog_ops[i].alias_count; k++) {
			struct str first, rest;
			if (str_cut(str_of(catalog_ops[i].aliases[k]), ' ', &first, &rest))
				offer(c, arena_z(c->arena, first), catalog_ops[i].summary);
		}
}

static void command_settle(struct completion *c)
{
	c->op = command_find(c->before, c->words, &c->used);
	for (size_t i = 0; help_entry(i, &c->hand); i++)
		if (strcmp(c->hand.name, c->words[0]) == 0)
			break;
	if (c->hand.name && strcmp(c->hand.name, c->words[0]) != 0)
		c->hand.name = NULL;
	/* Of the hand-written ones with verbs only those that exist by hand take its options. */
	if (c->op && c->hand.name && c->used > 2)
		c->hand.name = NULL;
	for (size_t i = 0; !c->op && i < sizeof hand_words / sizeof *hand_words; i++)
		if (begins_with(c, hand_words[i].command, &c->used))
			break;
	if (!c->op && !c->used)
		c->used = 1;
	const struct schema *body = c->op ? command_body(c->op) : NULL;
	if (body)
		c->flag_count = flags_list(c->arena, body, command_use(c->op), &c->flags);
}

static void words_offer(struct completion *c)
{
	struct arguments all = {.count = 0};
	if (!c->op) {
		next_offer(c);
		hand_offer(c);
		return;
	}
	arguments_each(c, argument_keep, &all);
	if (!all.count && c->before == c->used)
		next_offer(c);
	const struct param *p = parameter_next(c->op, all.count);
	if (p)
		parameter_offer(c, p);
}

/* "region" of --region=US. */
static struct str flag_cut_name(const char *word)
{
	struct str name, value;
	str_cut(str_of(word + (word[1] == '-' ? 2 : 1)), '=', &name, &value);
	return name;
}

static void complete(struct completion *c)
{
	if (!c->before || (c->before == 1 && strcmp(c->words[0], "help") == 0)) {
		commands_offer(c);
		return;
	}
	command_settle(c);
	struct arguments all = {.count = 0};
	const char *waiting = arguments_each(c, argument_keep, &all), *equals = strchr(c->cur, '=');
	if (waiting) {
		struct found f = flag_find(c, waiting);
		value_offer(c, flag_cut_name(waiting), &f);
	} else if (c->cur[0] == '-' && equals) {
		struct found f = flag_find(c, c->cur);
		c->prefix = arena_printf(c->arena, "%.*s", (int)(equals - c->cur) + 1, c->cur).p;
		value_offer(c, flag_cut_name(c->cur), &f);
	} else if (c->cur[0] == '-') {
		flags_offer(c);
	} else {
		words_offer(c);
	}
}

int complete_command(int argc, char **argv)
{
	static char nothing[] = "";
	struct arena *a = arena_new();
	struct completion c = {.arena = a, .words = argv, .before = argc ? argc - 1 : 0, .prefix = ""};
	c.cur = argc ? argv[argc - 1] : nothing;
	c.offered = arena_new_array(a, const char *, OFFERS_MAX);
	complete(&c);
	client_close(c.client);
	arena_free(a);
	return EXIT_DONE;
}

const struct option_row completion_options[] = {
        {"help", 'h', OPTION_SWITCH, 0, NULL, NULL, "Explain the command."},
};
const size_t completion_option_count = sizeof completion_options / sizeof *completion_options;

int completion_command(int argc, char **argv)
{
	if (argc && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
		help_command(stdout, "completion");
		return EXIT_DONE;
	}
	const char *script = argc == 1 ? completion_script(argv[0]) : NULL;
	if (!script) {
		option_refuse("completion: say for which shell: steward completion bash, zsh or fish");
		return EXIT_USAGE;
	}
	fputs(script, stdout);
	return EXIT_DONE;
}
