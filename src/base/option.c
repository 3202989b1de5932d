/* Options from the command line, the environment and files, by table.
 *
 * Each value remembers how strong its source is, so the sources can be read in any order (the command line comes first,
 * because it names the file). Weaker values are checked too: a fault in the file is reported even when a flag overrides
 * it. */
#include "base/option.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1u << 20)
#define HELP_COLUMN 34
#define HELP_WIDTH 110

int option_refuse(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("steward: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return -EINVAL;
}

int option_secret_read(const char *option, const char *path, char *ret_secret, size_t size)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return option_refuse("%s: %s: %s", option, path, strerror(errno));
	size_t n = fread(ret_secret, 1, size - 1, f);
	bool more = n == size - 1 && fgetc(f) != EOF;
	fclose(f);
	while (n && (ret_secret[n - 1] == '\n' || ret_secret[n - 1] == '\r'))
		n--;
	ret_secret[n] = 0;
	if (n == 0 || strlen(ret_secret) != n)
		return option_refuse("%s: %s holds no secret", option, path);
	return more ? option_refuse("%s: %s holds more than a secret", option, path) : 0;
}

static bool host_is_plain(struct str host)
{
	for (size_t i = 0; i < host.n; i++)
		if (!isalnum((unsigned char)host.p[i]) && !memchr("-._", host.p[i], 3))
			return false;
	return host.n > 0 && host.n < 254;
}

/* HOST:PORT, HOST, [V6]:PORT or [V6]. */
static bool address_is_valid(struct str text, bool port_required)
{
	struct str host = text, port = STR_NONE;
	const char *end;
	uint64_t number;
	bool has_port;
	if (text.n > 0 && text.p[0] == '[') {
		end = memchr(text.p, ']', text.n);
		if (!end || end == text.p + 1)
			return false;
		for (const char *p = text.p + 1; p < end; p++)
			if (!isxdigit((unsigned char)*p) && !memchr(":.%", *p, 3))
				return false;
		port = (struct str){end + 1, (size_t)(text.p + text.n - end - 1)};
		has_port = port.n > 0 && port.p[0] == ':';
		if (port.n > 0 && !has_port)
			return false;
		if (has_port)
			port = (struct str){port.p + 1, port.n - 1};
	} else {
		has_port = str_cut(text, ':', &host, &port);
		if (!host_is_plain(host))
			return false;
	}
	return has_port ? str_to_u64(port, 65535, &number) : !port_required;
}

static struct str url_trim(struct str text)
{
	if (text.n > 0 && text.p[text.n - 1] == '/')
		text.n--;
	return text;
}

static bool url_is_valid(struct str text)
{
	struct str rest = url_trim(text);
	if (!str_starts(rest, STR("https://")))
		return false;
	return address_is_valid((struct str){rest.p + 8, rest.n - 8}, false);
}

static bool switch_parse(struct str text, bool *ret_on)
{
	bool on = str_is_one_of("true|yes|on|1", text);
	if (!on && !str_is_one_of("false|no|off|0", text))
		return false;
	*ret_on = on;
	return true;
}

static const char *file_fault(struct arena *a, const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0 || access(path, R_OK) < 0)
		return arena_printf(a, "cannot read \"%s\": %s", path, strerror(errno)).p;
	return S_ISDIR(st.st_mode) ? arena_printf(a, "\"%s\" is not a file", path).p : NULL;
}

/* What is wrong with the text, as a sentence without its subject; NULL when it is valid. */
static const char *value_fault(struct arena *a, const struct option_row *row, struct str text)
{
	bool on, fits = false;
	uint64_t number;
	const char *wanted = "";
	if (text.n == 0)
		return arena_printf(a, "needs a value: %s", row->argument ? row->argument : "true or false").p;
	if (memchr(text.p, 0, text.n))
		return "holds a NUL byte";
	switch (row->kind) {
	case OPTION_TEXT:
	case OPTION_TEXTS: return NULL;
	case OPTION_FILE: return file_fault(a, arena_z(a, text));
	case OPTION_SWITCH:
		fits = switch_parse(text, &on);
		wanted = "true or false";
		break;
	case OPTION_CHOICE:
		fits = str_is_one_of(row->choices, text);
		wanted = arena_printf(a, "one of %s", row->choices).p;
		break;
	case OPTION_ADDRESS:
		fits = address_is_valid(text, true);
		wanted = "HOST:PORT, for example 127.0.0.1:8443, 0.0.0.0:8443 or [::1]:8443";
		break;
	case OPTION_URL:
		fits = url_is_valid(text);
		wanted = "https://HOST or https://HOST:PORT, without a path";
		break;
	case OPTION_NUMBER:
		fits = str_to_u64(text, row->max, &number) && number >= row->min;
		wanted = arena_printf(a, "a whole number from %u to %u", row->min, row->max).p;
		break;
	}
	if (fits)
		return NULL;
	return arena_printf(a, "\"%.*s\" is not %s", (int)(text.n > 200 ? 200 : text.n), text.p, wanted).p;
}

static void value_store(struct options *o, const struct option_row *row, struct str text)
{
	char *member = (char *)o->target + row->offset;
	uint64_t number = 0;
	switch (row->kind) {
	case OPTION_SWITCH:
		if (!switch_parse(text, (bool *)member))
			assert(!"checked before");
		break;
	case OPTION_NUMBER:
		if (!str_to_u64(text, row->max, &number))
			assert(!"checked before");
		*(unsigned *)(void *)member = (unsigned)number;
		break;
	case OPTION_TEXTS: {
		struct option_texts *texts = (struct option_texts *)(void *)member;
		texts->v[texts->n++] = arena_z(o->arena, text);
		break;
	}
	case OPTION_URL: text = url_trim(text); /* fall through */
	default: *(const char **)(void *)member = arena_z(o->arena, text);
	}
}

void options_setup(struct options *o, const char *command, const struct option_row *rows, size_t count, void *target,
                   struct arena *arena)
{
	assert(count <= OPTIONS_MAX);
	*o = (struct options){.rows = rows, .count = count, .target = target, .arena = arena, .command = command};
	for (size_t i = 0; i < count; i++)
		if (rows[i].standard) {
			assert(!value_fault(arena, &rows[i], str_of(rows[i].standard)));
			value_store(o, &rows[i], str_of(rows[i].standard));
		}
}

static size_t row_find(const struct options *o, struct str name)
{
	size_t i = 0;
	while (i < o->count && !str_is(name, o->rows[i].name))
		i++;
	return i;
}

bool options_given(const struct options *o, const char *name)
{
	size_t i = row_find(o, str_of(name));
	return i < o->count && o->from[i] != OPTION_BY_DEFAULT;
}

static int refuse_unknown(const struct options *o, struct str name, enum option_source source, const char *where)
{
	const char *near = NULL, *dashes = source == OPTION_FROM_FLAG ? "--" : "";
	unsigned best = 4;
	for (size_t i = 0; i < o->count; i++) {
		unsigned d = str_distance(name, str_of(o->rows[i].name));
		if (d < best && d < name.n) {
			best = d;
			near = o->rows[i].name;
		}
	}
	if (near)
		return option_refuse("%s: there is no such option; did you mean %s%s?", where, dashes, near);
	return option_refuse("%s: there is no such option; \"steward %s --help\" lists them", where, o->command);
}

int options_set(struct options *o, struct str name, struct str value, enum option_source source, const char *where)
{
	size_t i = row_find(o, name);
	if (i == o->count)
		return refuse_unknown(o, name, source, where);
	const char *fault = value_fault(o->arena, &o->rows[i], value);
	if (fault)
		return option_refuse("%s: %s", where, fault);
	if (source == OPTION_FROM_FILE && o->from[i] == OPTION_FROM_FILE)
		return option_refuse("%s: is set a second time; keep one of the two lines", where);
	if (o->from[i] > source)
		return 0;
	if (o->rows[i].kind == OPTION_TEXTS &&
	    ((struct option_texts *)(void *)((char *)o->target + o->rows[i].offset))->n == OPTION_TEXTS_MAX)
		return option_refuse("%s: is given more than %d times", where, OPTION_TEXTS_MAX);
	o->from[i] = (unsigned char)source;
	value_store(o, &o->rows[i], value);
	return 0;
}

/* -o, and of what takes a value also -oVALUE and -o=VALUE. */
static const char *letter_name(const struct options *o, const char *arg, struct str *ret_value)
{
	for (size_t i = 0; arg[1] && i < o->count; i++)
		if (o->rows[i].letter == arg[1] && (!arg[2] || o->rows[i].kind != OPTION_SWITCH)) {
			*ret_value = str_of(arg + 2 + (arg[2] == '='));
			return o->rows[i].name;
		}
	return NULL;
}

/* The option at argv[at]; *ret_used is how many arguments it takes. */
static int arg_set(struct options *o, int argc, char **argv, int at, int *ret_used)
{
	struct str name, value;
	bool joined = false;
	*ret_used = 1;
	if (argv[at][1] == '-') {
		joined = str_cut(str_of(argv[at] + 2), '=', &name, &value);
	} else {
		const char *letter = letter_name(o, argv[at], &value);
		if (!letter)
			return refuse_unknown(o, str_of(argv[at]), OPTION_FROM_FLAG, argv[at]);
		name = str_of(letter);
		joined = argv[at][2];
	}
	const char *where = arena_printf(o->arena, "--%.*s", STR_ARG(name)).p;
	size_t i = row_find(o, name);
	if (i == o->count)
		return refuse_unknown(o, name, OPTION_FROM_FLAG, where);
	if (!joined && o->rows[i].kind == OPTION_SWITCH) {
		value = STR("true");
	} else if (!joined && !o->rows[i].argument) {
		struct str others;
		str_cut(str_of(o->rows[i].choices), '|', &value, &others);
	} else if (!joined) {
		if (at + 1 >= argc || str_starts(str_of(argv[at + 1]), STR("--")))
			return option_refuse("%s needs a value: %s %s", where, where, o->rows[i].argument);
		value = str_of(argv[at + 1]);
		*ret_used = 2;
	}
	return options_set(o, name, value, OPTION_FROM_FLAG, where);
}

int options_args(struct options *o, int argc, char **argv, const char **ret_words, size_t words_max, size_t *ret_count)
{
	size_t words = 0;
	bool only_words = false;
	for (int i = 0; i < argc;) {
		const char *arg = argv[i];
		int used = 1;
		if (!only_words && strcmp(arg, "--") == 0) {
			only_words = true;
		} else if (!only_words && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
			return OPTIONS_HELP;
		} else if (!only_words && arg[0] == '-' && arg[1]) {
			int r = arg_set(o, argc, argv, i, &used);
			if (r < 0)
				return r;
		} else if (words == words_max) {
			return option_refuse("\"%s\" is a word too many; \"steward %s --help\" shows what is expected",
			                     arg, o->command);
		} else {
			ret_words[words++] = arg;
		}
		i += used;
	}
	*ret_count = words;
	return 0;
}

static void environment_name(const char *name, char *ret_name, size_t size)
{
	int n = snprintf(ret_name, size, "STEWARD_%s", name);
	assert(n > 0 && (size_t)n < size);
	for (char *p = ret_name; *p; p++)
		*p = (char)(*p == '-' ? '_' : toupper((unsigned char)*p));
}

int options_environment(struct options *o)
{
	for (size_t i = 0; i < o->count; i++) {
		char name[64];
		environment_name(o->rows[i].name, name, sizeof name);
		const char *value = getenv(name);
		if (o->rows[i].flag_only || !value || !*value)
			continue;
		const char *where = arena_printf(o->arena, "%s (environment)", name).p;
		int r = options_set(o, str_of(o->rows[i].name), str_of(value), OPTION_FROM_ENVIRONMENT, where);
		if (r < 0)
			return r;
	}
	return 0;
}

static int file_read(struct arena *a, const char *path, struct str *ret_text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return option_refuse("%s: cannot be read: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		close(fd);
		return option_refuse("%s: is not a file of at most %u bytes", path, FILE_MAX);
	}
	char *text = arena_alloc(a, (size_t)st.st_size + 1);
	size_t n = 0;
	ssize_t got = 1;
	while (n < (size_t)st.st_size && got > 0) {
		got = read(fd, text + n, (size_t)st.st_size - n);
		n += got > 0 ? (size_t)got : 0;
	}
	int error = errno;
	close(fd);
	if (got < 0)
		return option_refuse("%s: cannot be read: %s", path, strerror(error));
	*ret_text = (struct str){text, n};
	return 0;
}

/* A trailing comment starts at a '#' after a space; one inside quotes is part of the value. */
static struct str line_trim(struct str line)
{
	bool quoted = false;
	for (size_t i = 0; i < line.n; i++) {
		if (line.p[i] == '"')
			quoted = !quoted;
		if (line.p[i] == '#' && !quoted && (i == 0 || line.p[i - 1] == ' ' || line.p[i - 1] == '\t'))
			line.n = i;
	}
	if (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	return str_trim(line);
}

int options_file_each(struct arena *a, const char *path,
                      int (*line)(void *ctx, struct str name, struct str value, const char *where), void *ctx)
{
	struct str rest, one, name, value;
	int r = file_read(a, path, &rest);
	if (r < 0)
		return r;
	for (unsigned number = 1; rest.n > 0; number++) {
		str_cut(rest, '\n', &one, &rest);
		one = line_trim(one);
		if (one.n == 0)
			continue;
		const char *where = arena_printf(a, "%s:%u", path, number).p;
		if (!str_cut(one, '=', &name, &value))
			return option_refuse("%s: is not of the form \"name = value\"", where);
		name = str_trim(name);
		value = str_trim(value);
		if (value.n > 0 && value.p[0] == '"') {
			if (value.n < 2 || value.p[value.n - 1] != '"')
				return option_refuse("%s: a quotation mark is not closed", where);
			value = (struct str){value.p + 1, value.n - 2};
		}
		r = line(ctx, name, value, arena_printf(a, "%s: %.*s", where, STR_ARG(name)).p);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Words of `text` between HELP_COLUMN and HELP_WIDTH. */
static void help_wrap(FILE *out, struct str text)
{
	size_t column = HELP_COLUMN;
	struct str word;
	while (text.n > 0) {
		str_cut(text, ' ', &word, &text);
		if (column + 1 + word.n > HELP_WIDTH) {
			fprintf(out, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (column > HELP_COLUMN) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", STR_ARG(word));
		column += word.n;
	}
	fputc('\n', out);
}

void options_help(FILE *out, const struct option_row *rows, size_t count)
{
	struct arena *a = arena_new();
	for (size_t i = 0; i < count; i++) {
		const struct option_row *row = &rows[i];
		struct str left = row->letter ? arena_printf(a, "  -%c, --%s", row->letter, row->name)
		                              : arena_printf(a, "  --%s", row->name);
		if (row->argument)
			left = arena_printf(a, "%.*s %s", STR_ARG(left), row->argument);
		/* Pages are made of this text: two spaces, or a line of its own. */
		bool fits = left.n + 2 <= HELP_COLUMN;
		fprintf(out, "%-*s", fits ? HELP_COLUMN : 0, left.p);
		if (!fits)
			fprintf(out, "\n%*s", HELP_COLUMN, "");
		struct str right = str_of(row->help);
		if (row->standard)
			right = arena_printf(a, "%s (default %s)", row->help, row->standard);
		help_wrap(out, right);
	}
	arena_free(a);
}
