/* Guesses, in this order: a slip of the keys, another word for the same verb, and where else the word occurs. */
#include "cli/meant.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/derived/flags.h"

#define NAMES_MAX 512
#define ELSEWHERE_MAX 5

/* Verbs that other programs have; the first of ours that the family has is meant. */
static const struct {
	const char *typed, *ours;
} verbs[] = {
        {"ls|show-all|all", "list"},
        {"show|describe|view|info|cat|read|status|list", "get"},
        {"new|make|add|put|insert|invite|register|take", "create|add|invite|take"},
        {"rm|del|remove|destroy|drop|erase|delete|revoke|uninvite", "delete|remove|revoke"},
        {"edit|modify|change|set|patch|rename|configure|put", "update|set|replace|rename"},
        {"resize|grow|shrink|size", "scale|update"},
        {"stop|suspend|halt", "pause|stop"},
        {"start|unpause|continue", "resume|start"},
        {"fetch|export", "download|get"},
};

/* Words for what has another name here, and no name that is near. */
static const struct {
	const char *typed, *ours;
} words[] = {
        {"version", "--version"},
        {"status|health|ping", "service status"},
        {"whoami|profile|profiles", "config list"},
        {"signin|sign-in|auth", "login"},
        {"signout|sign-out", "logout"},
        {"psql|sql|shell", "connect"},
        {"db-users|dbusers", "database-users"},
        {"whitelist|allowlist|ip-access-list|ips|network-access", "access-list"},
        {"groups", "projects"},
        {"snapshots|restores", "backups"},
        {"members", "org-users"},
        {"indexes", "search-indexes"},
        {"start|server|run", "serve"},
};

static bool is_of(const char *list, const char *word)
{
	return str_is_one_of(list, str_of(word));
}

/* The names of a family's commands, without the family; first the hand-written. */
static size_t names_of(const struct command_family *family, const char *const *own, size_t own_count,
                       const char *ret_names[NAMES_MAX])
{
	size_t count = 0, prefix = strlen(family->name);
	for (size_t i = 0; i < own_count; i++)
		ret_names[count++] = own[i];
	for (unsigned i = 0; i < catalog_op_count && count < NAMES_MAX; i++)
		if (strncmp(catalog_ops[i].command, family->name, prefix) == 0 && catalog_ops[i].command[prefix] == ' ')
			ret_names[count++] = catalog_ops[i].command + prefix + 1;
	return count;
}

static const char *same_verb(const char *typed, const char *const *names, size_t count)
{
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		struct str one, rest = str_of(verbs[i].ours);
		while (is_of(verbs[i].typed, typed) && rest.n) {
			str_cut(rest, '|', &one, &rest);
			for (size_t k = 0; k < count; k++)
				if (str_is(one, names[k]))
					return names[k];
		}
	}
	return NULL;
}

static bool has_part(const char *name, const char *part)
{
	size_t n = strlen(part);
	return strncmp(name, part, n) == 0 && name[n] == ' ';
}

/* The word is a part of the family: says what it has. */
static bool part_tell(const struct command_family *family, const char *word, const char *const *names, size_t count)
{
	struct buf b = {0};
	for (size_t i = 0; i < count; i++)
		if (has_part(names[i], word))
			buf_printf(&b, "%s\"steward %s %s\"", b.n ? ", " : "", family->name, names[i]);
	bool told = b.n;
	if (told)
		option_refuse("%s %s: say what to do: %.*s", family->name, word, STR_ARG(buf_view(&b)));
	buf_free(&b);
	return told;
}

/* Families of which the word is the last part have such a verb: "users list" is "org-users list", or another. */
static bool elsewhere_tell(const struct command_family *family, const char *verb)
{
	struct buf b = {0};
	unsigned told = 0;
	for (unsigned i = 0; i < catalog_op_count && told < ELSEWHERE_MAX; i++) {
		struct str name, rest;
		str_cut(str_of(catalog_ops[i].command), ' ', &name, &rest);
		bool ends = name.n > strlen(family->name) + 1 && str_ends(name, str_of(family->name)) &&
		            name.p[name.n - strlen(family->name) - 1] == '-';
		if (ends && str_is(rest, verb))
			buf_printf(&b, "%s\"steward %s\"", told++ ? ", " : "", catalog_ops[i].command);
	}
	if (told)
		option_refuse("%s has no command \"%s\"; did you mean %.*s?", family->name, verb,
		              STR_ARG(buf_view(&b)));
	buf_free(&b);
	return told;
}

int meant_verb(const struct command_family *family, const char *word, const char *second, const char *const *own,
               size_t own_count)
{
	const char *names[NAMES_MAX], *near = NULL;
	size_t count = names_of(family, own, own_count, names);
	struct arena *a = arena_new();
	if (second)
		near = flag_nearest(arena_printf(a, "%s %s", word, second), names, count);
	if (!near && second) {
		const char *parts[NAMES_MAX];
		size_t n = 0, skip = strlen(word) + 1;
		for (size_t i = 0; i < count; i++)
			if (has_part(names[i], word))
				parts[n++] = names[i] + skip;
		const char *verb = same_verb(second, parts, n);
		near = verb ? verb - skip : NULL;
	}
	bool told = !near && (part_tell(family, word, names, count) || elsewhere_tell(family, word));
	if (!near && !told)
		near = same_verb(word, names, count);
	if (!near && !told)
		near = flag_nearest(str_of(word), names, count);
	if (near)
		option_refuse("%s has no command \"%s\"; did you mean \"steward %s %s\"?", family->name, word,
		              family->name, near);
	else if (!told)
		option_refuse("%s has no command \"%s\"; \"steward %s --help\" lists them", family->name, word,
		              family->name);
	arena_free(a);
	return EXIT_USAGE;
}

static const char *same_word(const char *typed)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_of(words[i].typed, typed))
			return words[i].ours;
	return NULL;
}

/* "keys" is api-keys; "pause" is a verb of clusters. */
static const char *part_of_family(const char *typed)
{
	for (unsigned i = 0; i < command_family_count; i++) {
		struct str name = str_of(command_families[i].name);
		size_t n = strlen(typed);
		if (name.n > n && str_ends(name, str_of(typed)) && name.p[name.n - n - 1] == '-')
			return command_families[i].name;
	}
	return is_of("create|scale|pause|resume", typed) ? "clusters" : NULL;
}

int meant_command(const char *word, const char *const *names, size_t count)
{
	const char *all[NAMES_MAX];
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		all[n++] = names[i];
	for (unsigned i = 0; i < command_family_count && n < NAMES_MAX; i++)
		all[n++] = command_families[i].name;
	if (word[0] == '-')
		option_refuse("%s: options stand after the command, as in: steward projects list %s ...", word, word);
	if (word[0] == '-')
		return EXIT_USAGE;
	const char *near = same_word(word);
	near = near ? near : part_of_family(word);
	near = near ? near : flag_nearest(str_of(word), all, n);
	if (near && strcmp(near, "clusters") == 0 && flag_nearest(str_of(word), &near, 1) == NULL)
		option_refuse("there is no command \"%s\"; did you mean \"steward clusters %s\"?", word, word);
	else if (near)
		option_refuse("there is no command \"%s\"; did you mean \"steward %s\"?", word, near);
	else
		option_refuse("there is no command \"%s\"; \"steward --help\" lists them", word);
	return EXIT_USAGE;
}

/* Whether all words of one name, with dashes between them, begin or end the other: "size" ends "instance-size". */
static bool is_end_of(struct str typed, struct str name, bool at_start)
{
	if (name.n <= typed.n)
		return false;
	return at_start ? str_starts(name, typed) && strchr("-.", name.p[typed.n])
	                : str_ends(name, typed) && name.p[name.n - typed.n - 1] == '-';
}

static struct str last_part(const char *name)
{
	const char *dot = strrchr(name, '.');
	return str_of(dot ? dot + 1 : name);
}

const char *meant_flag(struct str typed, const char *const *names, size_t count)
{
	static const struct {
		const char *typed, *ours;
	} others[] = {{"name|description|comment", "desc"},
	              {"name|user|email", "username"},
	              {"ip", "ip-address"},
	              {"cidr", "cidr-block"},
	              {"email|user", "usernames"},
	              {"role", "role-names"}};
	const char *best = NULL;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		for (size_t k = 0; str_is_one_of(others[i].typed, typed) && k < count; k++)
			if (strcmp(names[k], others[i].ours) == 0)
				return names[k];
	for (size_t i = 0; typed.n > 1 && i < count; i++) {
		struct str name = str_of(names[i]), last = last_part(names[i]);
		bool fits = is_end_of(typed, name, true) || is_end_of(typed, last, true) ||
		            is_end_of(typed, last, false) || str_eq(typed, last);
		if (fits && (!best || name.n < strlen(best)))
			best = names[i];
	}
	return best;
}
