/* Derived commands: every operation of the API has one, and there is no code for any of them. The row says what it is
 * called; words fill the path, flags the query and the body (request.c, flags.c). Here the words and flags are read;
 * what they ask for is done in run.c. */
#include "cli/derived/command.h"

#include "catalog/common.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/derived/cluster_shape.h"
#include "cli/derived/flags.h"
#include "cli/derived/run.h"
#include "cli/meant.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#define AT(member) offsetof(struct command_arguments, member)

const struct option_row command_options[] = {
        {"body", 0, OPTION_TEXT, AT(body), NULL, "FILE",
         "The body as JSON: a file, - for standard input, or the text itself. Flags change it.", .flag_only = true},
        {"set", 0, OPTION_TEXT, AT(body), NULL, "PATH=VALUE",
         "A field of the body by its path; PATH:=JSON sets any JSON. May be given several times.", .flag_only = true},
        {"output", 'o', OPTION_TEXT, AT(output), NULL, "FORMAT", "table, wide, json, yaml or name.", .flag_only = true},
        {"query", 0, OPTION_TEXT, AT(query), NULL, "PATH", "Only this part of the answer: results.*.name.",
         .flag_only = true},
        {"all", 0, OPTION_SWITCH, AT(all), NULL, NULL, "All pages of a list.", .flag_only = true},
        {"wait", 0, OPTION_SWITCH, AT(wait), NULL, NULL, "Come back when the work is done.", .flag_only = true},
        {"watch", 0, OPTION_SWITCH, AT(watch), NULL, NULL, "Print the answer again whenever it has changed.",
         .flag_only = true},
        {"timeout", 0, OPTION_NUMBER, AT(timeout), "1800", "SECONDS",
         "Wait or watch no longer than this; also for the answer.", NULL, 1, 604800, true},
        {"dry-run", 0, OPTION_CHOICE, AT(dry_run), NULL, NULL,
         "Print the call instead of making it; --dry-run=curl: as a line for curl.", "text|curl", .flag_only = true},
        {"yes", 0, OPTION_SWITCH, AT(yes), NULL, NULL, "Do it without asking.", .flag_only = true},
        PROFILE_OPTIONS,
};
const size_t command_option_count = sizeof command_options / sizeof *command_options;

/* Finding. */

/* The words of shells stand for ours. */
static bool word_is(struct str word, const char *given)
{
	return str_is(word, given) || (str_is(word, "list") && strcmp(given, "ls") == 0) ||
	       (str_is_one_of("delete|remove", word) && strcmp(given, "rm") == 0);
}

/* How many of the arguments are the words of a command; 0: it is another. */
static int words_match(const char *command, int argc, char **argv)
{
	struct str word, rest = str_of(command);
	int n = 0;
	for (bool more = true; more; n++) {
		more = str_cut(rest, ' ', &word, &rest);
		if (n >= argc || !word_is(word, argv[n]))
			return 0;
	}
	return n;
}

static const struct option_row *option_find(const struct option_row *rows, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (str_is(name, rows[i].name))
			return &rows[i];
	return NULL;
}

/* How many arguments the option is that stands first; 0: it is none that all commands have. */
static int option_length(int argc, char **argv)
{
	struct str name, value;
	if (strncmp(argv[0], "-o", 2) == 0)
		return argv[0][2] || argc < 2 ? 1 : 2;
	if (strncmp(argv[0], "--", 2) != 0)
		return 0;
	bool has_value = flag_cut(str_of(argv[0] + 2), &name, &value);
	const struct option_row *row = option_find(command_options, command_option_count, name);
	bool is_alone = has_value || argc < 2 || (row && (row->kind == OPTION_SWITCH || row->offset == AT(dry_run)));
	return !row ? 0 : is_alone ? 1 : 2;
}

/* The first n of them go behind the others. */
static void rotate(char **list, int count, int n)
{
	for (; n > 0; n--) {
		char *first = list[0];
		memmove(list, list + 1, (size_t)(count - 1) * sizeof *list);
		list[count - 1] = first;
	}
}

void command_arrange(int argc, char **argv)
{
	static char listing[] = "list", deleting[] = "delete", removing[] = "remove";
	int options = 0, n, end = 0, used = 0, still;
	while (options < argc && (n = option_length(argc - options, argv + options)))
		options += n;
	while (end < argc && strcmp(argv[end], "--") != 0) /* behind which all are words */
		end++;
	if (options && options < end)
		rotate(argv, end, options);
	if (argc && !command_find(argc, argv, &used))
		return;
	for (int i = 1; i < used; i++) {
		bool removes = strcmp(argv[i], "rm") == 0;
		if (removes || strcmp(argv[i], "ls") == 0)
			argv[i] = removes ? deleting : listing;
		if (removes && !command_find(argc, argv, &still))
			argv[i] = removing;
	}
}

const struct op *command_find(int argc, char **argv, int *ret_used)
{
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct op *op = &catalog_ops[i];
		int used = words_match(op->command, argc, argv);
		for (unsigned k = 0; !used && k < op->alias_count; k++)
			used = words_match(op->aliases[k], argc, argv);
		if (used) {
			*ret_used = used;
			return op;
		}
	}
	return NULL;
}

const struct command_family *command_family_find(const char *word)
{
	for (unsigned i = 0; i < command_family_count; i++)
		if (strcmp(command_families[i].name, word) == 0)
			return &command_families[i];
	return NULL;
}

bool command_is_scope(const struct param *p)
{
	return strcmp(p->name, "groupId") == 0 || strcmp(p->name, "orgId") == 0;
}

bool command_scope_is_word(const struct op *op)
{
	return strncmp(op->command, "projects ", 9) == 0 || strncmp(op->command, "orgs ", 5) == 0 ||
	       (op->path_param_count && !command_is_scope(&op->path_params[0]));
}

const char *command_argument(struct arena *a, const struct param *p)
{
	static const char *const ends[] = {"Name", "Id"};
	struct str name = str_of(strcmp(p->name, "groupId") == 0 ? "project" : p->name);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (name.n > strlen(ends[i]) && str_ends(name, str_of(ends[i])))
			name.n -= strlen(ends[i]);
	char *text = arena_z(a, str_of(flag_name(a, name)));
	for (char *c = text; *c; c++)
		*c = (char)(*c >= 'a' && *c <= 'z' ? *c & ~0x20 : *c);
	return text;
}

const struct schema *command_body(const struct op *op)
{
	return op->version_count ? op->versions[op->version_count - 1].request : NULL;
}

enum schema_use command_use(const struct op *op)
{
	return op->as_read ? SCHEMA_AS_READ : op->method == METHOD_PATCH ? SCHEMA_UPDATE : SCHEMA_CREATE;
}

/* Flags. */

/* The parameters of the query and the headers, in one numbering; NULL after the last. */
static const struct param *param_at(const struct op *op, unsigned i)
{
	if (i < op->query_param_count)
		return &op->query_params[i];
	i -= op->query_param_count;
	if (i < op->header_param_count)
		return &op->header_params[i];
	i -= op->header_param_count;
	return op->paginated && i < COMMON_COUNT - COMMON_PAGE ? &common_params[COMMON_PAGE + i] : NULL;
}

static const struct param *param_find(struct arena *a, const struct op *op, struct str name)
{
	const struct param *p;
	for (unsigned i = 0; (p = param_at(op, i)); i++)
		if (str_is(name, p->name) || str_is(name, flag_name(a, str_of(p->name))))
			return p;
	return NULL;
}

static enum flag_kind kind_of(struct arena *a, const struct op *op, struct str name, const struct param **ret_param,
                              bool *ret_secret)
{
	const struct schema *body = command_body(op);
	*ret_param = param_find(a, op, name);
	*ret_secret = false;
	if (*ret_param)
		return (*ret_param)->schema->type == TYPE_BOOLEAN ? FLAG_SWITCH : FLAG_VALUE;
	return body && name.n ? flags_find(body, name, ret_secret) : FLAG_UNKNOWN;
}

/* Also one that only begins right: --tag.0.key begins with what may be --tags. */
static int flag_unknown(struct run *r, struct str name)
{
	struct arena *a = r->arena;
	const struct schema *body = command_body(r->op);
	struct flags probe = {.arena = a, .schema = body};
	struct flag *flags = NULL;
	const struct param *p;
	size_t count = 0, n = body ? flags_list(a, body, command_use(r->op), &flags) : 0;
	const char *fault = body ? flags_set(&probe, name, STR("")) : NULL;
	if (fault && strstr(fault, "did you mean"))
		return option_refuse("--%.*s: %s", STR_ARG(name), fault);
	const char **names = arena_new_array(a, const char *, n + command_option_count + 256);
	for (size_t i = 0; i < n; i++)
		names[count++] = flags[i].name;
	for (size_t i = 0; i < command_option_count; i++)
		names[count++] = command_options[i].name;
	for (unsigned i = 0; (p = param_at(r->op, i)); i++)
		names[count++] = flag_name(a, str_of(p->name));
	const char *near = flag_nearest(name, names, count);
	near = near ? near : meant_flag(name, names, count);
	if (strcmp(r->op->command, "clusters update") == 0 && str_is_one_of("size|nodes|disk", name))
		return option_refuse("--%.*s: there is no such flag; did you mean \"steward clusters scale\"?",
		                     STR_ARG(name));
	if (near)
		return option_refuse("--%.*s: there is no such flag; did you mean --%s?", STR_ARG(name), near);
	return option_refuse("--%.*s: there is no such flag; \"steward %s --help\" lists them", STR_ARG(name),
	                     r->op->command);
}

static void secret_warn(struct str name)
{
	fprintf(stderr,
	        "steward: --%.*s: other users of this machine can see a secret on the command line; with - in its "
	        "place it is asked for, or read from standard input\n",
	        STR_ARG(name));
}

/* A secret is asked for with "-": what stands on the command line, others can see. */
static const char *secret_text(struct run *r, struct str name, const char *text)
{
	if (strcmp(text, "-") == 0)
		return ask_secret(r->arena, arena_printf(r->arena, "%.*s", STR_ARG(name)).p);
	secret_warn(name);
	return text;
}

struct argument {
	struct str name;
	const char *text;        /* after "=", or NULL */
	int argc, at, *ret_used; /* where the next argument is */
	char **argv;
};

/* The text of a flag: after "=", or the next argument. */
static const char *text_take(const struct argument *g, bool is_switch)
{
	const char *next = g->at + 1 < g->argc ? g->argv[g->at + 1] : NULL;
	if (g->text)
		return g->text;
	if (is_switch && !(next && (strcmp(next, "true") == 0 || strcmp(next, "false") == 0)))
		return "true";
	if (!next || strncmp(next, "--", 2) == 0)
		return NULL;
	*g->ret_used = 2;
	return next;
}

static int text_missing(struct str name)
{
	return option_refuse("--%.*s needs a value", STR_ARG(name));
}

static void flag_keep(struct run *r, const struct param *param, struct str path, const char *text)
{
	r->flags[r->flag_count++] = (struct given){.param = param, .path = path, .text = text};
}

/* --set PATH=VALUE; a secret is better given by its own flag. */
static void set_keep(struct run *r, const char *text)
{
	struct str path, value;
	bool secret = false;
	if (flag_cut(str_of(text), &path, &value) && path.n) {
		path.n -= path.p[path.n - 1] == ':';
		(void)flags_find(command_body(r->op), path, &secret);
	}
	if (secret)
		secret_warn(path);
	flag_keep(r, NULL, STR_NONE, text);
}

/* One of the options that all commands have. */
static int option_take(struct run *r, const struct option_row *row, const struct argument *g)
{
	const char *text = row->kind == OPTION_SWITCH   ? (g->text ? g->text : "true")
	                   : row->offset == AT(dry_run) ? (g->text ? g->text : "text")
	                                                : text_take(g, false);
	if (!text)
		return text_missing(g->name);
	if (strcmp(row->name, "set") == 0) {
		if (!command_body(r->op))
			return option_refuse("--set: this command takes no body");
		set_keep(r, text);
		return 0;
	}
	return options_set(&r->options, str_of(row->name), str_of(text), OPTION_FROM_FLAG,
	                   arena_printf(r->arena, "--%s", row->name).p);
}

static int flag_take(struct run *r, const struct argument *g)
{
	const struct param *param;
	const char *text;
	struct str name = g->name;
	bool secret, no;
	const struct option_row *row = option_find(command_options, command_option_count, name);
	if (row)
		return option_take(r, row, g);
	if (r->shape && cluster_shape_has(name)) {
		text = text_take(g, false);
		return text ? cluster_shape_set(r->shape, name, text) : text_missing(name);
	}
	enum flag_kind kind = kind_of(r->arena, r->op, name, &param, &secret);
	no = kind == FLAG_UNKNOWN && str_starts(name, STR("no-")) && !g->text;
	if (no) {
		name = (struct str){name.p + 3, name.n - 3};
		kind = kind_of(r->arena, r->op, name, &param, &secret) == FLAG_SWITCH ? FLAG_SWITCH : FLAG_UNKNOWN;
	}
	if (kind == FLAG_UNKNOWN)
		return flag_unknown(r, g->name);
	text = no ? "false" : text_take(g, kind == FLAG_SWITCH);
	if (text && secret)
		text = secret_text(r, name, text);
	if (!text)
		return text_missing(name);
	flag_keep(r, param, name, text);
	return 0;
}

const char *command_named(struct arena *a, const struct op *op, bool is_network)
{
	static const char *const network[] = {"cidr-block"}, *const name[] = {"name", "username", "desc", "ip-address"};
	const struct schema *body = command_body(op);
	struct flag *flags = NULL;
	size_t n = body && op->method == METHOD_POST ? flags_list(a, body, command_use(op), &flags) : 0;
	const char *const *wanted = is_network ? network : name;
	for (size_t k = 0; k < (is_network ? 1 : sizeof name / sizeof *name); k++)
		for (size_t i = 0; i < n; i++)
			if (strcmp(flags[i].name, wanted[k]) == 0)
				return wanted[k];
	return NULL;
}

/* What is made is named by a word, as what is changed is. */
static int word_name(struct run *r, const char *word)
{
	const char *flag = r->named ? NULL : command_named(r->arena, r->op, strchr(word, '/'));
	if (!flag)
		return option_refuse("\"%s\" is a word too many; \"steward %s --help\" shows what is expected", word,
		                     r->op->command);
	r->named = flag;
	r->name = word;
	flag_keep(r, NULL, str_of(flag), word);
	return 0;
}

static int name_is_once(const struct run *r)
{
	size_t n = 0;
	for (size_t i = 0; r->named && i < r->flag_count; i++)
		n += !r->flags[i].param && str_is(r->flags[i].path, r->named);
	return n > 1 ? option_refuse("\"%s\" is a word too many: --%s was given too", r->name, r->named) : 0;
}

/* The flags of the API change a cluster of the usual shape, unless they say themselves where its nodes are. */
static int shape_apply(struct run *r)
{
	bool said = false, given = r->shape && cluster_shape_is_given(r->shape);
	if (!r->shape || (r->given.body && !given))
		return 0;
	if (r->given.body)
		return option_refuse(
		        "clusters create: --body is the whole request; flags for its shape cannot be given with it");
	for (size_t i = 0; i < r->flag_count; i++)
		said = said || str_starts(r->flags[i].path, STR("replication-specs")) ||
		       (!r->flags[i].param && !r->flags[i].path.n &&
		        strncmp(r->flags[i].text, "replicationSpecs", 16) == 0);
	if (said && !given)
		return 0;
	r->given.body = cluster_shape_body(r->shape);
	return r->given.body ? 0 : -EINVAL;
}

static int word_take(struct run *r, const char *word)
{
	unsigned most = 0;
	for (unsigned i = 0; i < r->op->path_param_count; i++)
		most += command_scope_is_word(r->op) || !command_is_scope(&r->op->path_params[i]);
	if (r->word_count == most)
		return word_name(r, word);
	r->words[r->word_count++] = word;
	return 0;
}

static int arguments_read(struct run *r, int argc, char **argv)
{
	bool only_words = false;
	r->flags = arena_new_array(r->arena, struct given, (size_t)argc + 1);
	options_setup(&r->options, r->op->command, command_options, command_option_count, &r->given, r->arena);
	for (int i = 0, used = 1, result = 0; i < argc; i += used, used = 1) {
		struct argument g = {.argc = argc, .at = i, .ret_used = &used, .argv = argv};
		const char *arg = argv[i];
		if (!only_words && strcmp(arg, "--") == 0) {
			only_words = true;
		} else if (!only_words && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
			return OPTIONS_HELP;
		} else if (!only_words && strncmp(arg, "-o", 2) == 0) {
			g.name = STR("output");
			g.text = arg[2] ? arg + 2 + (arg[2] == '=') : NULL;
			result = flag_take(r, &g);
		} else if (!only_words && strncmp(arg, "--", 2) == 0) {
			struct str value;
			g.text = flag_cut(str_of(arg + 2), &g.name, &value) ? value.p : NULL;
			result = flag_take(r, &g);
		} else if (!only_words && arg[0] == '-' && arg[1]) {
			result = option_refuse("%s: there is no such option; \"steward %s --help\" lists them", arg,
			                       r->op->command);
		} else {
			result = word_take(r, arg);
		}
		if (result < 0)
			return result;
	}
	return 0;
}

/* Words: all parameters of the path, or all but the project and the organization. */
static int words_place(struct run *r)
{
	const struct op *op = r->op;
	unsigned scopes = 0;
	for (unsigned i = 0; i < op->path_param_count; i++)
		scopes += command_is_scope(&op->path_params[i]);
	bool whole = r->word_count == op->path_param_count;
	if (!whole && r->word_count != op->path_param_count - scopes) {
		struct buf b = {0};
		for (unsigned i = 0; i < op->path_param_count; i++)
			if (!command_is_scope(&op->path_params[i]))
				buf_printf(&b, " %s", command_argument(r->arena, &op->path_params[i]));
		option_refuse("%s: %s: steward %s%.*s", op->command,
		              r->word_count < op->path_param_count - scopes ? "something is missing" : "too many words",
		              op->command, STR_ARG(buf_view(&b)));
		buf_free(&b);
		return -EINVAL;
	}
	for (unsigned i = 0, n = 0; i < op->path_param_count; i++) {
		const struct param *p = &op->path_params[i];
		if (!whole && command_is_scope(p))
			continue;
		const char *word = r->words[n++];
		if (!*word)
			return option_refuse("%s: must not be empty", command_argument(r->arena, p));
		if (!command_is_scope(p))
			r->request.values[i] = word;
		else if (strcmp(p->name, "groupId") == 0)
			r->given.at.project = word;
		else
			r->given.at.organization = word;
	}
	return 0;
}

/* A project or an organization is deleted by name, not because it is the one that the profile has. */
static int delete_is_named(const struct run *r)
{
	const struct op *op = r->op;
	const struct param *last = op->path_param_count ? &op->path_params[op->path_param_count - 1] : NULL;
	if (op->method != METHOD_DELETE || !last || !command_is_scope(last) || !str_ends(str_of(op->path), STR("Id}")))
		return 0;
	bool project = strcmp(last->name, "groupId") == 0;
	if (project ? r->given.at.project : r->given.at.organization)
		return 0;
	return option_refuse("%s: say which one: steward %s %s", op->command, op->command, project ? "PROJECT" : "ORG");
}

static int usage_fits(struct run *r)
{
	const struct op *op = r->op;
	if (r->given.all && !op->paginated)
		return option_refuse("--all: \"%s\" is no list with pages", op->command);
	if (r->given.wait && !op->polls)
		return option_refuse("--wait: \"%s\" is done when it is answered", op->command);
	if (r->given.watch && !op->polls && op->method != METHOD_GET)
		return option_refuse("--watch: \"%s\" has no state to watch", op->command);
	if (!(op->produces & PRODUCES_JSON) && !r->given.dry_run && isatty(STDOUT_FILENO) &&
	    !(op->produces & PRODUCES_CSV))
		return option_refuse("%s: is not for a terminal: send it to a file with >FILE", op->command);
	return 0;
}

/* Environment as other commands have it: a flag for one source of credentials hides the environment's other source. */
static int environment_read(struct run *r)
{
	bool profile = r->given.at.profile, data = r->given.at.data;
	if (profile && data)
		return option_refuse("give --profile or --data, not both");
	int result = options_environment(&r->options);
	if (data)
		r->given.at.profile = NULL;
	if (r->given.at.profile)
		r->given.at.data = NULL;
	return result;
}

/* Whether clusters.c has a command of the same name. */
static bool is_own(const char *command)
{
	return str_is_one_of("clusters list|clusters get|clusters create|clusters delete", str_of(command));
}

static int op_run(struct arena *a, const struct op *op, int argc, char **argv)
{
	struct run r = {.arena = a, .op = op, .request = {.op = op}};
	r.shape = strcmp(op->command, "clusters create") == 0 ? cluster_shape_new(a) : NULL;
	int result = arguments_read(&r, argc, argv);
	if (result == OPTIONS_HELP) {
		if (is_own(op->command)) {
			help_command(stdout, "clusters");
			printf("\nOr with the flags of the API:\n\n");
		}
		usage_command(stdout, op);
		return EXIT_DONE;
	}
	if (result == 0)
		result = name_is_once(&r);
	if (result == 0)
		result = shape_apply(&r);
	if (result == 0)
		result = words_place(&r);
	if (result == 0)
		result = delete_is_named(&r);
	if (result == 0)
		result = environment_read(&r);
	if (result == 0)
		result = usage_fits(&r);
	if (result == 0)
		result = output_options_parse(r.given.output, r.given.query, &r.output);
	if (result == 0)
		result = schema_prepare();
	if (result < 0)
		return EXIT_USAGE;
	int code = run_call(&r);
	schema_teardown();
	return code;
}

/* Words that are no command: says which there are. */
static int family_run(const struct command_family *family, int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0)
		return meant_verb(family, argv[1], argc > 2 ? argv[2] : NULL, NULL, 0);
	usage_family(argc < 2 ? stderr : stdout, family);
	return argc < 2 ? EXIT_USAGE : EXIT_DONE;
}

int command_run(int argc, char **argv)
{
	int used = 0;
	const struct op *op = command_find(argc, argv, &used);
	if (!op)
		return family_run(command_family_find(argv[0]), argc, argv);
	struct arena *a = arena_new();
	int code = op_run(a, op, argc - used, argv + used);
	arena_free(a);
	return code;
}

/* Whether the hand-written command has not a flag of this name, nor one that is near. */
static bool is_derived_flag(struct arena *a, const struct op *op, const char *arg)
{
	const char *names[OPTIONS_MAX];
	struct str name, value;
	const struct param *param;
	bool secret;
	flag_cut(str_of(arg + 2), &name, &value);
	bool own = option_find(clusters_options, clusters_option_count, name);
	if (own && !str_is_one_of("query|watch", name))
		return false;
	if (own || str_is(name, "help") || option_find(command_options, command_option_count, name) ||
	    kind_of(a, op, name, &param, &secret) != FLAG_UNKNOWN)
		return true;
	for (size_t i = 0; i < clusters_option_count; i++)
		names[i] = clusters_options[i].name;
	return !flag_nearest(name, names, clusters_option_count);
}

/* -o FORM, -oFORM or -o=FORM, of the forms that the derived command has. */
static bool is_derived_form(const char *arg, const char *next)
{
	if (strncmp(arg, "-o", 2) != 0)
		return false;
	const char *form = arg[2] == '=' ? arg + 3 : arg[2] ? arg + 2 : next;
	return str_is_one_of("table|wide|yaml|name", (struct str){form, strlen(form)});
}

bool command_takes(int argc, char **argv)
{
	int used = 0;
	const struct op *op = command_find(argc, argv, &used);
	if (!op)
		return false;
	if (!is_own(op->command))
		return true;
	struct arena *a = arena_new();
	bool takes = false;
	for (int i = used; i < argc; i++) {
		takes = takes || is_derived_form(argv[i], i + 1 < argc ? argv[i + 1] : "") ||
		        (strncmp(argv[i], "--", 2) == 0 && is_derived_flag(a, op, argv[i]));
	}
	arena_free(a);
	return takes;
}
