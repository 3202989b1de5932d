/* Help of the derived commands, from the rows: summary, description, arguments, flags with their types, values and
 * defaults. Wrapped to the terminal. */
#include "base/buf.h"
#include "catalog/common.h"
#include "cli/cli.h"
#include "cli/derived/command.h"
#include "cli/derived/flags.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_USUAL 100
#define WIDTH_LEAST 60
#define WIDTH_MOST 140
#define COLUMN 34     /* where explanations begin */
#define ENUM_SHORT 40 /* characters of values that stand in the place of the type */
#define ENUM_SHOWN 12 /* values that an explanation lists */

struct page {
	FILE *out;
	struct arena *arena;
	size_t width;
};

static struct page page_open(FILE *out)
{
	struct winsize size;
	struct page p = {.out = out, .arena = arena_new(), .width = WIDTH_USUAL};
	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col)
		p.width = size.ws_col < WIDTH_LEAST ? WIDTH_LEAST : size.ws_col > WIDTH_MOST ? WIDTH_MOST : size.ws_col;
	return p;
}

/* Without the backquotes of Markdown. */
static struct str plain(struct arena *a, struct str word)
{
	char *out = arena_z(a, word);
	size_t n = 0;
	for (size_t i = 0; i < word.n; i++)
		if (word.p[i] != '`')
			out[n++] = word.p[i];
	return (struct str){out, n};
}

/* Words of a text between `column` and the width, the first line after what is written already. */
static void wrap(const struct page *p, struct str text, size_t column)
{
	size_t at = column;
	struct str word;
	while (text.n) {
		str_cut(text, ' ', &word, &text);
		word = plain(p->arena, word);
		if (at > column && at + 1 + word.n > p->width) {
			fprintf(p->out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', p->out);
			at++;
		}
		fprintf(p->out, "%.*s", STR_ARG(word));
		at += word.n;
	}
	fputc('\n', p->out);
}

static void paragraphs(const struct page *p, const char *text)
{
	struct str line, rest = str_of(text);
	while (rest.n) {
		str_cut(rest, '\n', &line, &rest);
		wrap(p, line, 0);
	}
}

/* A row: what is on the left, and its explanation. */
static void row(const struct page *p, const char *left, const char *right)
{
	int n = fprintf(p->out, "  %s", left);
	if (!*right) {
		fputc('\n', p->out);
		return;
	}
	if (n + 2 > COLUMN)
		fprintf(p->out, "\n%*s", COLUMN, "");
	else
		fprintf(p->out, "%*s", COLUMN - n, "");
	wrap(p, str_of(right), COLUMN);
}

/* Values of enumerations are JSON texts; strings lose their quotes. */
static struct str enum_text(const char *json)
{
	struct str text = str_of(json);
	return text.n > 1 && text.p[0] == '"' ? (struct str){text.p + 1, text.n - 2} : text;
}

static size_t enum_width(const struct schema *s)
{
	size_t n = 0;
	for (unsigned i = 0; i < s->enum_count; i++)
		n += enum_text(s->enums[i]).n + 1;
	return n;
}

static const char *enum_list(struct arena *a, const struct schema *s, const char *between, unsigned most)
{
	struct buf b = {0};
	for (unsigned i = 0; i < s->enum_count && i < most; i++)
		buf_printf(&b, "%s%.*s", i ? between : "", STR_ARG(enum_text(s->enums[i])));
	if (s->enum_count > most)
		buf_printf(&b, "%sand %u more", between, s->enum_count - most);
	const char *text = arena_z(a, buf_view(&b));
	buf_free(&b);
	return text;
}

/* The schema of a single value: of a list, that of its entries. */
static const struct schema *value_schema(const struct schema *s)
{
	return s->type == TYPE_ARRAY && s->items ? s->items : s;
}

static const char *type_text(struct arena *a, const struct schema *s)
{
	static const char *const words[] = {
	        [TYPE_ANY] = "VALUE",  [TYPE_STRING] = "TEXT", [TYPE_INTEGER] = "N",   [TYPE_NUMBER] = "NUMBER",
	        [TYPE_BOOLEAN] = NULL, [TYPE_ARRAY] = "JSON",  [TYPE_OBJECT] = "JSON",
	};
	s = value_schema(s);
	if (s->enum_count && enum_width(s) <= ENUM_SHORT)
		return enum_list(a, s, "|", s->enum_count);
	if (s->format == FORMAT_DATE_TIME || s->format == FORMAT_DATE)
		return s->format == FORMAT_DATE ? "DATE" : "TIME";
	return words[s->type];
}

static const char *sentence(struct arena *a, const char *text)
{
	size_t n = text ? strlen(text) : 0;
	return n ? arena_printf(a, "%s%s", text, strchr(".!?", text[n - 1]) ? "" : ".").p : "";
}

static const char *explained(struct arena *a, const char *description, const struct schema *s, const char *only_for,
                             bool repeats)
{
	struct buf b = {0};
	const struct schema *value = value_schema(s);
	buf_z(&b, sentence(a, description));
	if (only_for)
		buf_printf(&b, " With %s.", only_for);
	if (value->enum_count && enum_width(value) > ENUM_SHORT)
		buf_printf(&b, " One of %s.", enum_list(a, value, ", ", ENUM_SHOWN));
	if (s->default_json)
		buf_printf(&b, " Default %.*s.", STR_ARG(enum_text(s->default_json)));
	if (repeats)
		buf_z(&b, " May be given several times.");
	struct str text = str_trim(buf_view(&b));
	const char *out = arena_z(a, text);
	buf_free(&b);
	return out;
}

static void flag_row(const struct page *p, const char *name, const struct schema *s, const char *text)
{
	const char *type = type_text(p->arena, s);
	row(p, type ? arena_printf(p->arena, "--%s %s", name, type).p : arena_printf(p->arena, "--%s", name).p, text);
}

static void param_row(const struct page *p, const struct param *q)
{
	flag_row(p, flag_name(p->arena, str_of(q->name)), q->schema,
	         explained(p->arena, q->description, q->schema, NULL, q->schema->type == TYPE_ARRAY));
}

/* Query and header parameters, those that are required or the others. */
static size_t params_print(const struct page *p, const struct param *params, size_t count, bool required, bool dry)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		if ((params[i].required && !params[i].schema->default_json) == required) {
			n++;
			if (!dry)
				param_row(p, &params[i]);
		}
	return n;
}

static size_t flags_print(const struct page *p, const struct op *op, const struct flag *flags, size_t count,
                          bool required, bool dry)
{
	size_t n = params_print(p, op->query_params, op->query_param_count, required, dry) +
	           params_print(p, op->header_params, op->header_param_count, required, dry);
	for (size_t i = 0; i < count; i++)
		if (flags[i].required == required) {
			n++;
			if (!dry)
				flag_row(p, flags[i].name, flags[i].schema,
				         explained(p->arena, flags[i].description, flags[i].schema, flags[i].only_for,
				                   flags[i].repeats));
		}
	if (op->paginated)
		n += params_print(p, &common_params[COMMON_PAGE], COMMON_COUNT - COMMON_PAGE, required, dry);
	return n;
}

/* A field that the words or the profile say already. */
static bool is_filled(struct arena *a, const struct op *op, const char *flag)
{
	bool filled = strcmp(flag, "group-id") == 0 || strcmp(flag, "org-id") == 0;
	for (unsigned i = 0; i < op->path_param_count; i++)
		filled = filled || strcmp(flag, flag_name(a, str_of(op->path_params[i].name))) == 0;
	return filled;
}

static void flags_section(const struct page *p, const struct op *op)
{
	const struct schema *body = command_body(op);
	struct flag *flags = NULL;
	size_t count = body ? flags_list(p->arena, body, command_use(op), &flags) : 0;
	for (size_t i = 0; i < count; i++)
		flags[i].required = flags[i].required && !is_filled(p->arena, op, flags[i].name) &&
		                    !(op->method == METHOD_POST && flags[i].schema->default_json);
	if (flags_print(p, op, flags, count, true, true)) {
		fprintf(p->out, "\nRequired flags:\n");
		flags_print(p, op, flags, count, true, false);
	}
	if (flags_print(p, op, flags, count, false, true)) {
		fprintf(p->out, "\nFlags:\n");
		flags_print(p, op, flags, count, false, false);
	}
}

static void usage_line(const struct page *p, const struct op *op)
{
	fprintf(p->out, "Usage: steward %s", op->command);
	for (unsigned i = 0; i < op->path_param_count; i++) {
		const struct param *q = &op->path_params[i];
		if (!command_is_scope(q) || command_scope_is_word(op))
			fprintf(p->out, command_is_scope(q) ? " [%s]" : " %s", command_argument(p->arena, q));
	}
	const char *named = command_named(p->arena, op, false);
	if (named)
		fprintf(p->out, " [%s]", command_argument(p->arena, &(struct param){.name = named}));
	fprintf(p->out, " [--FLAG VALUE]...\n");
	if (named)
		fprintf(p->out, "What is made is named by the word, or by --%s.\n", named);
	for (unsigned i = 0; i < op->alias_count; i++)
		fprintf(p->out, "   or: steward %s ...\n", op->aliases[i]);
}

static void arguments_section(const struct page *p, const struct op *op)
{
	bool any = false;
	for (unsigned i = 0; i < op->path_param_count; i++) {
		const struct param *q = &op->path_params[i];
		const char *text = explained(p->arena, q->description, q->schema, NULL, false);
		if (command_is_scope(q) && !command_scope_is_word(op))
			continue;
		if (command_is_scope(q))
			text = arena_printf(p->arena, "%s Left out: that of --%s or of the profile.", text,
			                    strcmp(q->name, "groupId") == 0 ? "project" : "org")
			               .p;
		if (!any)
			fprintf(p->out, "\nArguments:\n");
		any = true;
		row(p, command_argument(p->arena, q), text);
	}
}

/* Help leaves out what the command would refuse, or what means nothing to it. */
static bool option_fits(const struct op *op, const char *name)
{
	if (str_is_one_of("body|set", str_of(name)))
		return command_body(op);
	if (strcmp(name, "all") == 0)
		return op->paginated;
	if (strcmp(name, "wait") == 0)
		return op->polls;
	if (strcmp(name, "watch") == 0)
		return op->polls || op->method == METHOD_GET;
	if (strcmp(name, "yes") == 0)
		return op->danger != DANGER_NONE;
	return true;
}

void usage_command(FILE *out, const struct op *op)
{
	struct page p = page_open(out);
	usage_line(&p, op);
	fputc('\n', out);
	paragraphs(&p, op->description);
	arguments_section(&p, op);
	flags_section(&p, op);
	struct option_row *rows = arena_new_array(p.arena, struct option_row, command_option_count);
	size_t count = 0;
	for (size_t i = 0; i < command_option_count; i++)
		if (option_fits(op, command_options[i].name))
			rows[count++] = command_options[i];
	fprintf(out, "\nOptions:\n");
	options_help(out, rows, count);
	fprintf(out, "\nCalls %s %s%s\n", method_name(op->method), API_BASE, op->path);
	if (!op->handler)
		fprintf(out, "Not built: a service of this release answers 501 NOT_IMPLEMENTED.\n");
	arena_free(p.arena);
}

static bool is_of_family(const struct op *op, const struct command_family *family)
{
	size_t n = strlen(family->name);
	return strncmp(op->command, family->name, n) == 0 && op->command[n] == ' ';
}

/* A command with its arguments, without the family. */
static const char *command_line(struct arena *a, const struct op *op, size_t from)
{
	struct buf b = {0};
	buf_z(&b, op->command + from);
	for (unsigned i = 0; i < op->path_param_count; i++)
		if (!command_is_scope(&op->path_params[i]))
			buf_printf(&b, " %s", command_argument(a, &op->path_params[i]));
	const char *line = arena_z(a, buf_view(&b));
	buf_free(&b);
	return line;
}

static int command_order(const void *a, const void *b)
{
	const struct op *const *x = a, *const *y = b;
	return strcmp((*x)->command, (*y)->command);
}

static const char *summary_of(const struct page *p, const struct op *op, bool says)
{
	return op->handler || !says ? op->summary : arena_printf(p->arena, "%s (not built)", op->summary).p;
}

/* Whether the service has nothing of it. */
static bool family_is_unbuilt(const struct command_family *family)
{
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (is_of_family(&catalog_ops[i], family) && catalog_ops[i].handler)
			return false;
	return true;
}

void usage_family(FILE *out, const struct command_family *family)
{
	bool unbuilt = family_is_unbuilt(family);
	struct page p = page_open(out);
	const struct op **ops = arena_new_array(p.arena, const struct op *, catalog_op_count);
	size_t count = 0;
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (is_of_family(&catalog_ops[i], family))
			ops[count++] = &catalog_ops[i];
	qsort(ops, count, sizeof *ops, command_order);
	fprintf(out, "Usage: steward %s COMMAND [ID]... [--FLAG VALUE]...\n\n%s\n\nCommands:\n", family->name,
	        sentence(p.arena, family->description));
	for (size_t i = 0; i < count; i++) {
		const char *summary = summary_of(&p, ops[i], !unbuilt);
		row(&p, command_line(p.arena, ops[i], strlen(family->name) + 1), summary);
	}
	if (unbuilt)
		fprintf(out, "\n%s is not built: a service of this release answers each of them 501 NOT_IMPLEMENTED.\n",
		        family->name);
	fprintf(out, "\n\"steward %s COMMAND --help\" lists the flags of a command.\n", family->name);
	arena_free(p.arena);
}

bool usage_part(FILE *out, int argc, char **argv)
{
	struct page p = page_open(out);
	struct buf words = {0};
	size_t count = 0, n;
	for (int i = 0; i < argc && argv[i][0] != '-'; i++)
		buf_printf(&words, "%s%s", i ? " " : "", argv[i]);
	n = words.n;
	for (unsigned i = 0; n && memchr(words.p, ' ', n) && i < catalog_op_count; i++) {
		const struct op *op = &catalog_ops[i];
		if (strncmp(op->command, words.p, n) != 0 || op->command[n] != ' ')
			continue;
		if (!count++)
			fprintf(out, "Usage: steward %.*s COMMAND [ID]... [--FLAG VALUE]...\n\nCommands:\n",
			        STR_ARG(buf_view(&words)));
		const char *summary = summary_of(&p, op, true);
		row(&p, command_line(p.arena, op, n + 1), summary);
	}
	buf_free(&words);
	arena_free(p.arena);
	return count;
}

/* The subjects of the overview, what newcomers need first. The last one has what no other has. */
static const struct {
	const char *title, *families;
} subjects[] = {
        {"Projects and organizations", "projects|orgs|org-events|events|maintenance-window|policies"},
        {"Clusters", "clusters|flex-clusters|global-clusters|processes|search-indexes|search-nodes|fts-indexes|"
                     "online-archives|live-migrations"},
        {"Who may use the databases, and from where",
         "database-users|database-roles|access-list|access-history|user-security|encryption-at-rest|audit-log"},
        {"People and credentials", "users|org-users|project-users|org-invites|project-invites|teams|project-teams|"
                                   "api-keys|project-api-keys|service-accounts|project-service-accounts|federations|"
                                   "identity-providers"},
        {"Backups", "backups|legacy-backups"},
        {"Watching", "alerts|alert-configs|advisor|collection-stats|query-shapes|slow-query-threshold|integrations|"
                     "log-export|log-integrations"},
        {"Networks and providers", "network-containers|network-peers|private-endpoints|private-ip-mode|ip-addresses|"
                                   "custom-dns|provider-roles"},
        {"Federated data and streams", "data-federations|stream-connections|stream-peerings|stream-private-links|"
                                       "stream-processors|stream-workspaces"},
        {"Billing", "invoices|cost-queries|skus"},
        {"The service", "service|rate-limits"},
        {"Others", ""},
};
#define SUBJECTS (sizeof subjects / sizeof *subjects)

static size_t subject_of(const char *family)
{
	size_t s = 0;
	while (s + 1 < SUBJECTS && !str_is_one_of(subjects[s].families, str_of(family)))
		s++;
	return s;
}

void usage_families(FILE *out)
{
	struct page p = page_open(out);
	for (size_t s = 0; s < SUBJECTS; s++) {
		bool any = false;
		for (unsigned i = 0; i < command_family_count; i++) {
			if (subject_of(command_families[i].name) != s)
				continue;
			if (!any)
				fprintf(out, "\n%s:\n", subjects[s].title);
			any = true;
			const char *text = command_families[i].description;
			if (family_is_unbuilt(&command_families[i]))
				text = arena_printf(p.arena, "%s (not built)", text).p;
			row(&p, command_families[i].name, text);
		}
	}
	arena_free(p.arena);
}
