/* Printing answers. A table shows the columns that the data names, or those that the documents themselves suggest; one
 * entity is a list of its fields. Texts come from a service and go to a terminal, so control characters are left out of
 * tables and escaped in JSON and YAML. */
#include "cli/output.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/option.h"
#include "cli/client.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define COLUMNS_MAX 32
#define DERIVED_MAX 6
#define LOOKED_AT 50  /* documents that columns are derived from */
#define CELL_MAX 48   /* characters of a cell on a terminal */
#define FIELD_MAX 120 /* characters of a nested value in the list of an entity */
#define GAP "  "
#define PATH_DEPTH 32

#define BOLD "\033[1m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* Options. */

static bool colours_fit(void)
{
	const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no && *no) && !(terminal && strcmp(terminal, "dumb") == 0);
}

static bool query_is_valid(const char *query)
{
	for (const char *p = query; *p; p++)
		if (iscntrl((unsigned char)*p) || (p[0] == '.' && (p[1] == '.' || !p[1] || p == query)))
			return false;
	return *query;
}

int output_options_parse(const char *form, const char *query, struct output_options *ret_options)
{
	static const char *const forms[] = {"table", "wide", "json", "yaml", "name"};
	struct output_options o = {.query = query, .colour = colours_fit()};
	size_t i = 0;
	while (form && i < sizeof forms / sizeof *forms && strcmp(form, forms[i]) != 0)
		i++;
	if (i == sizeof forms / sizeof *forms)
		return option_refuse("--output: \"%s\" is not one of table, wide, json, yaml, name", form);
	if (query && !query_is_valid(query))
		return option_refuse("--query: \"%s\" is not a path: fields and positions with dots between them, "
		                     "as in results.0.name, or results.*.name for all",
		                     query);
	o.form = (enum output_form)i;
	*ret_options = o;
	return 0;
}

int output_options_choose(const char *form, const char *query, struct output_options *ret_options)
{
	bool own = !form || strcmp(form, "text") == 0;
	int r = output_options_parse(own ? NULL : form, query, ret_options);
	if (r == 0 && own && !query)
		ret_options->form = OUTPUT_TEXT;
	return r;
}

/* Paths. */

static json_t *list_each(struct arena *a, json_t *list, const char *rest)
{
	json_t *found = json_keep(a, json_array()), *item;
	size_t i;
	json_array_foreach(list, i, item)
	{
		json_t *one = *rest ? output_find(a, item, rest) : item;
		if (one)
			json_array_append(found, one);
	}
	return found;
}

json_t *output_find(struct arena *a, json_t *value, const char *path)
{
	struct str rest = str_of(path), part;
	uint64_t index;
	while (value && rest.n) {
		str_cut(rest, '.', &part, &rest);
		if (json_is_array(value) && str_is(part, "*"))
			return list_each(a, value, rest.n ? rest.p : "");
		if (json_is_array(value))
			value = str_to_u64(part, SIZE_MAX >> 1, &index) ? json_array_get(value, (size_t)index) : NULL;
		else
			value = json_object_get(value, arena_z(a, part));
	}
	return value;
}

/* Of an answer that has nothing but a list of documents: {"accessLogs": [...]}. */
static json_t *only_list(json_t *answer)
{
	json_t *found = NULL, *value;
	const char *name;
	json_object_foreach(answer, name, value)
	{
		bool documents =
		        json_is_array(value) && (!json_array_size(value) || json_is_object(json_array_get(value, 0)));
		if (strcmp(name, "links") == 0)
			continue;
		if (found || !documents)
			return NULL;
		found = value;
	}
	return found;
}

static json_t *items_of(json_t *answer)
{
	json_t *results = json_object_get(answer, "results");
	return json_is_array(answer) ? answer : json_is_array(results) ? results : only_list(answer);
}

/* Texts. */

static bool is_scalar(const json_t *value)
{
	return value && !json_is_object(value) && !json_is_array(value);
}

static bool is_list_of_scalars(json_t *value)
{
	json_t *item;
	size_t i;
	json_array_foreach(value, i, item)
	{
		if (!is_scalar(item))
			return false;
	}
	return json_is_array(value);
}

static void scalar_add(struct arena *a, struct buf *b, const json_t *value)
{
	if (json_is_string(value))
		buf_z(b, text_shown(a, (struct str){json_string_value(value), json_string_length(value)}));
	else if (json_is_null(value))
		buf_c(b, '-');
	else
		buf_str(b, json_text(a, value));
}

/* A value on one line; NULL is what is absent. */
static const char *value_text(struct arena *a, json_t *value)
{
	struct buf b = {0};
	json_t *item;
	size_t i;
	if (!value || (json_is_array(value) && !json_array_size(value))) {
		buf_c(&b, '-');
	} else if (is_scalar(value)) {
		scalar_add(a, &b, value);
	} else if (is_list_of_scalars(value)) {
		json_array_foreach(value, i, item)
		{
			if (i)
				buf_z(&b, ", ");
			scalar_add(a, &b, item);
		}
	} else {
		buf_z(&b, text_shown(a, json_text(a, value)));
	}
	const char *text = arena_z(a, buf_view(&b));
	buf_free(&b);
	return *text ? text : "-";
}

static bool continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

static size_t width_of(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += !continues(*text);
	return n;
}

/* At most so many characters, with dots in the place of the rest. */
static const char *text_cut(struct arena *a, const char *text, size_t most)
{
	size_t n = 0, bytes = 0;
	if (width_of(text) <= most)
		return text;
	while (text[bytes] && (continues(text[bytes]) || n++ < most - 3))
		bytes++;
	return arena_printf(a, "%.*s...", (int)bytes, text).p;
}

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

/* The colour of a state; NULL: it is no state, or one that says nothing. */
static const char *state_colour(const char *column, const char *text)
{
	static const char *const names[] = {"state", "stateName", "status", "statusName"};
	static const char *const good[] = {"IDLE", "ACTIVE", "AVAILABLE", "COMPLETED", "SUCCESS", "STARTED", "OK"};
	static const char *const bad[] = {"FAILED", "REPAIRING", "ERROR", "EXPIRED", "OPEN", "CANCELLED"};
	size_t n = strlen(text);
	if (!is_one_of(column, names, sizeof names / sizeof *names))
		return NULL;
	if (is_one_of(text, good, sizeof good / sizeof *good))
		return GREEN;
	if (is_one_of(text, bad, sizeof bad / sizeof *bad))
		return RED;
	return n > 3 && strcmp(text + n - 3, "ING") == 0 ? YELLOW : NULL;
}

/* Columns. */

static bool ends_with(const char *text, const char *end)
{
	return str_ends(str_of(text), str_of(end));
}

/* How early a field stands in a table; the lowest first. */
static unsigned field_rank(const char *name)
{
	static const char *const first[] = {"name",      "username",  "clientId", "publicKey",
	                                    "cidrBlock", "ipAddress", "id"};
	for (unsigned i = 0; i < sizeof first / sizeof *first; i++)
		if (strcmp(name, first[i]) == 0)
			return i;
	if (strcmp(name, "state") == 0 || strcmp(name, "status") == 0 || ends_with(name, "StateName") ||
	    strcmp(name, "stateName") == 0)
		return 10;
	if (ends_with(name, "Name") || ends_with(name, "Type") || strcmp(name, "type") == 0)
		return 11;
	if (strcmp(name, "created") == 0 || strcmp(name, "createdAt") == 0 || strcmp(name, "comment") == 0)
		return 12;
	return ends_with(name, "Id") ? 14 : 13;
}

struct columns {
	const char *path[COLUMNS_MAX];
	size_t count;
};

static void column_offer(struct columns *c, const char *name)
{
	size_t at = 0;
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->path[i], name) == 0)
			return;
	while (at < c->count && field_rank(c->path[at]) <= field_rank(name))
		at++;
	if (c->count == COLUMNS_MAX)
		return;
	memmove(c->path + at + 1, c->path + at, (c->count - at) * sizeof *c->path);
	c->path[at] = name;
	c->count++;
}

/* Behind the others, unless it is there. */
static void column_add(struct columns *c, const char *path)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->path[i], path) == 0)
			return;
	if (c->count < COLUMNS_MAX)
		c->path[c->count++] = path;
}

static void columns_derive(json_t *items, size_t most, struct columns *ret_columns)
{
	struct columns c = {.count = 0};
	json_t *item, *value;
	const char *name;
	size_t i;
	json_array_foreach(items, i, item)
	{
		if (i == LOOKED_AT)
			break;
		json_object_foreach(item, name, value)
		{
			if (is_scalar(value))
				column_offer(&c, name);
		}
	}
	if (c.count > most)
		c.count = most;
	*ret_columns = c;
}

/* STATE_NAME for "stateName", INSTANCE_SIZE for "specs.0.instanceSize": the path's last field. */
static const char *column_title(struct arena *a, const char *path)
{
	struct buf b = {0};
	const char *from = path;
	for (const char *p = path; *p; p++)
		if (*p == '.' && isalpha((unsigned char)p[1]))
			from = p + 1;
	for (const char *p = from; *p && *p != '.'; p++) {
		if (isupper((unsigned char)*p) && p > from && islower((unsigned char)p[-1]))
			buf_c(&b, '_');
		buf_c(&b, (char)toupper((unsigned char)*p));
	}
	const char *title = text_shown(a, buf_view(&b));
	buf_free(&b);
	return title;
}

/* Tables. */

struct table {
	FILE *out;
	struct arena *arena;
	const struct columns *columns;
	const char **cells; /* by row, then by column; the titles first */
	size_t rows, width[COLUMNS_MAX];
	bool colour;
};

static void table_fill(struct table *t, json_t *items)
{
	bool terminal = isatty(fileno(t->out));
	size_t count = t->columns->count;
	t->rows = json_array_size(items) + 1;
	t->cells = arena_new_array(t->arena, const char *, t->rows *count);
	for (size_t r = 0; r < t->rows; r++)
		for (size_t c = 0; c < count; c++) {
			const char *path = t->columns->path[c];
			const char *text =
			        r ? value_text(t->arena, output_find(t->arena, json_array_get(items, r - 1), path))
			          : column_title(t->arena, path);
			/* Names and ids are whole everywhere: they are copied from here. */
			if (r && c && terminal)
				text = text_cut(t->arena, text, CELL_MAX);
			size_t width = width_of(text);
			t->cells[r * count + c] = text;
			t->width[c] = width > t->width[c] ? width : t->width[c];
		}
}

static void row_print(const struct table *t, size_t row)
{
	size_t count = t->columns->count;
	for (size_t c = 0; c < count; c++) {
		const char *text = t->cells[row * count + c];
		const char *colour = !t->colour ? NULL : row ? state_colour(t->columns->path[c], text) : BOLD;
		fprintf(t->out, "%s%s%s", colour ? colour : "", text, colour ? PLAIN : "");
		if (c + 1 < count)
			fprintf(t->out, "%*s" GAP, (int)(t->width[c] - width_of(text)), "");
	}
	fputc('\n', t->out);
}

static void list_print(FILE *out, struct arena *a, json_t *items, const struct columns *columns, bool colour)
{
	struct table t = {.out = out, .arena = a, .columns = columns, .colour = colour};
	table_fill(&t, items);
	for (size_t r = 0; r < t.rows; r++)
		row_print(&t, r);
}

static void lines_print(FILE *out, struct arena *a, json_t *items)
{
	json_t *item;
	size_t i;
	json_array_foreach(items, i, item)
	{
		fprintf(out, "%s\n", value_text(a, item));
	}
}

/* One entity: its fields, below each other. */

struct entity {
	FILE *out;
	struct arena *arena;
	size_t width;
	bool colour, measure; /* measure: nothing is printed, the width of the names is found */
};

static void field_print(struct entity *e, const char *path, json_t *value)
{
	const char *shown = text_shown(e->arena, str_of(path));
	size_t width = width_of(shown);
	if (e->measure) {
		e->width = width > e->width ? width : e->width;
		return;
	}
	const char *text = value_text(e->arena, value), *name = strrchr(path, '.');
	if (!is_scalar(value) && isatty(fileno(e->out)))
		text = text_cut(e->arena, text, FIELD_MAX);
	const char *colour = e->colour ? state_colour(name ? name + 1 : path, text) : NULL;
	fprintf(e->out, "%s%*s" GAP "%s%s%s\n", shown, (int)(e->width - width), "", colour ? colour : "", text,
	        colour ? PLAIN : "");
}

static void fields_print(struct entity *e, const char *prefix, json_t *value, unsigned depth)
{
	json_t *child;
	const char *name;
	size_t i;
	if (depth == PATH_DEPTH || is_scalar(value) || is_list_of_scalars(value)) {
		field_print(e, prefix, value);
		return;
	}
	const char *dot = *prefix ? "." : "";
	json_object_foreach(value, name, child)
	{
		if (depth || strcmp(name, "links") != 0)
			fields_print(e, arena_printf(e->arena, "%s%s%s", prefix, dot, name).p, child, depth + 1);
	}
	json_array_foreach(value, i, child)
	{
		fields_print(e, arena_printf(e->arena, "%s%s%zu", prefix, dot, i).p, child, depth + 1);
	}
}

static void entity_print(FILE *out, struct arena *a, json_t *entity, bool colour)
{
	struct entity e = {.out = out, .arena = a, .colour = colour, .measure = true};
	fields_print(&e, "", entity, 0);
	e.measure = false;
	fields_print(&e, "", entity, 0);
}

/* A wide one has all simple fields, and then the columns that the data names and that lie deeper. */
static void table_print(FILE *out, struct arena *a, json_t *answer, const struct columns *given, bool wide, bool colour)
{
	json_t *items = items_of(answer);
	struct columns derived;
	if (!items && is_scalar(answer)) {
		fprintf(out, "%s\n", value_text(a, answer));
	} else if (!items) {
		entity_print(out, a, answer, colour);
	} else if (!json_array_size(items)) {
		fputs("steward: there is none\n", stderr);
	} else {
		columns_derive(items, wide ? COLUMNS_MAX : DERIVED_MAX, &derived);
		for (size_t i = 0; wide && i < given->count; i++)
			column_add(&derived, given->path[i]);
		const struct columns *columns = given->count && !wide ? given : &derived;
		if (columns->count && json_is_object(json_array_get(items, 0)))
			list_print(out, a, items, columns, colour);
		else
			lines_print(out, a, items);
	}
}

/* Names. */

const char *output_name(struct arena *a, json_t *item)
{
	static const char *const fields[] = {"name", "username", "clientId", "publicKey",  "cidrBlock",
	                                     "id",   "_id",      "roleName", "clusterName"};
	if (is_scalar(item))
		return value_text(a, item);
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		json_t *value = json_object_get(item, fields[i]);
		if (json_string_length(value))
			return value_text(a, value);
	}
	return NULL;
}

static void names_print(FILE *out, struct arena *a, json_t *answer, const struct columns *columns)
{
	json_t *items = items_of(answer), *item;
	size_t i;
	if (!items) {
		items = json_keep(a, json_array());
		json_array_append(items, answer);
	}
	json_array_foreach(items, i, item)
	{
		const char *name = output_name(a, item);
		if (!name && columns->count)
			name = value_text(a, output_find(a, item, columns->path[0]));
		if (name)
			fprintf(out, "%s\n", name);
	}
}

/* JSON. */

/* U+2028 to U+202E and U+2066 to U+2069: ends of lines, and what turns the direction of the text beside it. */
static bool is_turn(const unsigned char *p)
{
	return p[0] == 0xe2 &&
	       ((p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) || (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

/* JSON allows DEL, U+0080 to U+009F and turns as they are; terminals take some of them for commands. They occur in
 * texts only, so an escape may stand in their place. */
void output_json(FILE *out, const json_t *value, bool indented)
{
	size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) | (indented ? JSON_INDENT(2) : JSON_COMPACT);
	char *text = json_dumps(value, flags);
	for (const unsigned char *p = (const unsigned char *)text; p && *p; p++) {
		if (*p == 0x7f)
			fputs("\\u007f", out);
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
			fprintf(out, "\\u%04x", *++p);
		else if (is_turn(p))
			fprintf(out, "\\u20%02x", (p[1] & 1u) << 6 | (p[2] & 0x3fu));
		else
			fputc(*p, out);
		p += is_turn(p) ? 2 : 0;
	}
	fputc('\n', out);
	free(text);
}

int output_print(FILE *out, struct arena *a, json_t *answer, const char *const *columns, size_t column_count,
                 const struct output_options *o)
{
	struct columns given = {.count = 0};
	if (o->query) {
		answer = output_find(a, answer, o->query);
		if (!answer)
			return option_refuse("--query: there is no %s in the answer; -o json shows all of it",
			                     o->query);
	}
	/* The columns are of the whole answer's items. */
	for (size_t i = 0; !o->query && i < column_count && i < COLUMNS_MAX; i++)
		given.path[given.count++] = columns[i];
	switch (o->form) {
	case OUTPUT_JSON: output_json(out, answer, true); break;
	case OUTPUT_YAML: output_yaml(out, answer); break;
	case OUTPUT_NAME: names_print(out, a, answer, &given); break;
	case OUTPUT_WIDE: table_print(out, a, answer, &given, true, o->colour); break;
	case OUTPUT_TEXT:
	case OUTPUT_TABLE: table_print(out, a, answer, &given, false, o->colour); break;
	}
	return 0;
}
