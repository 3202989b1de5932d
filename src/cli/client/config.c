/* `steward config`: the profiles of this user, which of them is used, and their settings. Works without a service. A
 * change keeps the other lines of a profile as they are, comments too. */
#include "base/buf.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/profile.h"

#include <ctype.h>
#include <stddef.h>
#include <unistd.h>

struct config_arguments {
	const char *profile, *output;
};

#define AT(member) offsetof(struct config_arguments, member)

const struct option_row config_command_options[] = {
        {"profile", 0, OPTION_TEXT, AT(profile), NULL, "NAME",
         "Of set, get, unset and path: another than the current."},
        {"output", 'o', OPTION_CHOICE, AT(output), "table", "FORMAT", "Of list: table, json, yaml or name.",
         "table|json|yaml|name", .flag_only = true},
};
const size_t config_command_option_count = sizeof config_command_options / sizeof *config_command_options;

#define PROFILES_MAX 256
#define FILE_BYTES_MAX (64u << 10)

struct config_work {
	struct arena *arena;
	const struct config_arguments *given;
	const char *name, *path; /* of the profile */
};

static const char *setting_value(const struct profile *p, const struct option_row *row)
{
	return *(const char *const *)(const void *)((const char *)p + row->offset);
}

static bool is_secret(const char *setting)
{
	return strcmp(setting, "client-secret") == 0 || strcmp(setting, "session") == 0 ||
	       strcmp(setting, "private-key") == 0;
}

static int no_profile(const struct config_work *w)
{
	option_refuse("there is no profile \"%s\"; \"steward login %s\" makes it, \"steward config list\" shows those "
	              "there are",
	              w->name, w->name);
	return EXIT_USAGE;
}

/* Listing. */

static json_t *profile_json(struct arena *a, const char *name, bool current)
{
	struct profile p = {.source = NULL};
	json_t *one = json_object();
	json_put_z(one, "name", name);
	json_put(one, "current", json_boolean(current));
	if (profile_read(a, profile_path(a, name), &p) < 0)
		return one;
	for (size_t i = 0; i < profile_setting_count; i++) {
		const char *value = setting_value(&p, &profile_settings[i]);
		if (value && !is_secret(profile_settings[i].name))
			json_put_z(one, profile_settings[i].name, value);
	}
	json_put_z(one, "identity", p.client_id ? p.client_id : p.public_key ? p.public_key : p.user ? p.user : "");
	return one;
}

static int list_run(struct config_work *w)
{
	static const char *const columns[] = {"name", "current", "base-url", "identity", "project", "organization"};
	const char *names[PROFILES_MAX], *current = profile_current(w->arena);
	size_t count = profile_names(w->arena, names, PROFILES_MAX);
	json_t *all = json_keep(w->arena, json_array());
	struct output_options o;
	for (size_t i = 0; i < count; i++)
		json_array_append_new(all, profile_json(w->arena, names[i], strcmp(names[i], current) == 0));
	if (output_options_parse(w->given->output, NULL, &o) < 0 ||
	    output_print(stdout, w->arena, all, columns, sizeof columns / sizeof *columns, &o) < 0)
		return EXIT_USAGE;
	return EXIT_DONE;
}

/* Reading and choosing. */

static const struct option_row *setting_find(const char *name)
{
	for (size_t i = 0; i < profile_setting_count; i++)
		if (strcmp(profile_settings[i].name, name) == 0)
			return &profile_settings[i];
	struct buf b = {0};
	for (size_t i = 0; i < profile_setting_count; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", profile_settings[i].name);
	option_refuse("config: there is no setting \"%s\"; there are %.*s", name, STR_ARG(buf_view(&b)));
	buf_free(&b);
	return NULL;
}

static int get_run(struct config_work *w, const char *setting)
{
	struct profile p;
	const struct option_row *row = setting ? setting_find(setting) : NULL;
	if (setting && !row)
		return EXIT_USAGE;
	if (access(w->path, F_OK) < 0)
		return no_profile(w);
	if (profile_read(w->arena, w->path, &p) < 0)
		return EXIT_USAGE;
	if (row && is_secret(row->name)) {
		option_refuse("config get: %s is a secret and is not shown; it stands in %s", row->name, w->path);
		return EXIT_USAGE;
	}
	if (row) {
		const char *value = setting_value(&p, row);
		if (value)
			puts(value);
		return value ? EXIT_DONE : EXIT_NOT_DONE;
	}
	for (size_t i = 0; i < profile_setting_count; i++) {
		const char *value = setting_value(&p, &profile_settings[i]);
		if (value)
			printf("%-13s %s\n", profile_settings[i].name,
			       is_secret(profile_settings[i].name) ? "(not shown)" : value);
	}
	return EXIT_DONE;
}

static int use_run(struct config_work *w, const char *name)
{
	w->name = name;
	if (!profile_name_is_valid(name) || access(profile_path(w->arena, name), F_OK) < 0)
		return no_profile(w);
	if (profile_choose(w->arena, name) < 0)
		return EXIT_NOT_DONE;
	printf("commands use the profile %s\n", name);
	return EXIT_DONE;
}

/* Changing. */

static int file_text(struct config_work *w, struct str *ret_text)
{
	char *text = arena_alloc(w->arena, FILE_BYTES_MAX);
	FILE *f = fopen(w->path, "re");
	size_t n = f ? fread(text, 1, FILE_BYTES_MAX, f) : 0;
	if (!f || ferror(f) || n == FILE_BYTES_MAX) {
		if (f)
			fclose(f);
		return option_refuse("%s: cannot be read", w->path);
	}
	fclose(f);
	*ret_text = (struct str){text, n};
	return 0;
}

static bool line_is_of(struct str line, const char *setting)
{
	struct str name, value;
	return str_cut(line, '=', &name, &value) && str_is(str_trim(name), setting);
}

/* The text with the setting's line replaced, added at the end, or (value NULL) left out. */
static void setting_replace(struct buf *b, struct str text, const char *setting, const char *value)
{
	bool done = !value;
	struct str line;
	while (text.n) {
		str_cut(text, '\n', &line, &text);
		if (!line_is_of(line, setting)) {
			buf_str(b, line);
			buf_c(b, '\n');
		} else if (!done) {
			buf_printf(b, "%s = \"%s\"\n", setting, value);
			done = true;
		}
	}
	if (!done)
		buf_printf(b, "%s = \"%s\"\n", setting, value);
}

/* The same rules as for a line of the file. */
static int value_check(struct config_work *w, const struct option_row *row, const char *value)
{
	struct profile p = {.source = NULL};
	struct options o;
	for (const char *c = value; *c; c++)
		if (*c == '"' || iscntrl((unsigned char)*c))
			return option_refuse("%s: holds a character that no such value has", row->name);
	options_setup(&o, "config", profile_settings, profile_setting_count, &p, w->arena);
	return options_set(&o, str_of(row->name), str_of(value), OPTION_FROM_FLAG, row->name);
}

static int set_run(struct config_work *w, const char *setting, const char *value)
{
	const struct option_row *row = setting_find(setting);
	struct profile p;
	struct str text;
	struct buf b = {0};
	if (!row)
		return EXIT_USAGE;
	if (is_secret(setting)) {
		option_refuse("config: %s is a secret, which others could see here; \"steward login %s\" asks for it",
		              setting, w->name);
		return EXIT_USAGE;
	}
	if (access(w->path, F_OK) < 0)
		return no_profile(w);
	if ((value && value_check(w, row, value) < 0) || profile_read(w->arena, w->path, &p) < 0 ||
	    file_text(w, &text) < 0)
		return EXIT_USAGE;
	setting_replace(&b, text, setting, value);
	int r = config_write(w->arena, w->path, buf_view(&b));
	buf_free(&b);
	return r < 0 ? EXIT_NOT_DONE : EXIT_DONE;
}

static int words_wrong(void)
{
	option_refuse("config: say list, use NAME, get [SETTING], set SETTING VALUE, unset SETTING or path; \"steward "
	              "config --help\" shows how");
	return EXIT_USAGE;
}

static int config_run(struct config_work *w, const char **words, size_t count)
{
	const char *verb = count ? words[0] : "";
	if (strcmp(verb, "list") == 0 && count == 1)
		return list_run(w);
	if (strcmp(verb, "use") == 0 && count == 2)
		return use_run(w, words[1]);
	if (strcmp(verb, "get") == 0 && count <= 2)
		return get_run(w, count == 2 ? words[1] : NULL);
	if (strcmp(verb, "set") == 0 && count == 3)
		return set_run(w, words[1], words[2]);
	if (strcmp(verb, "unset") == 0 && count == 2)
		return set_run(w, words[1], NULL);
	if (strcmp(verb, "path") != 0 || count != 1)
		return words_wrong();
	puts(w->path);
	return EXIT_DONE;
}

int config_command(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct config_arguments g = {.profile = NULL};
	struct options given;
	const char *words[3];
	size_t count = 0;
	options_setup(&given, "config", config_command_options, config_command_option_count, &g, a);
	int r = options_args(&given, argc, argv, words, 3, &count), code = EXIT_USAGE;
	if (r == 0)
		r = options_environment(&given);
	if (r == OPTIONS_HELP) {
		help_command(stdout, "config");
		code = EXIT_DONE;
	} else if (r == 0) {
		struct config_work w = {.arena = a, .given = &g, .name = g.profile ? g.profile : profile_current(a)};
		w.path = profile_path(a, w.name);
		code = config_run(&w, words, count);
	}
	arena_free(a);
	return code;
}
