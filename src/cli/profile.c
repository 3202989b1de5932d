/* Profiles. A profile is a file of `name = value` lines that only its owner may read. The file that the first start of
 * a service writes (bootstrap.json) works as a profile too, so that nothing has to be set up on the service's own
 * machine. Which of several profiles is used without --profile stands in the file `current` beside them. */
#include "cli/profile.h"

#include "base/file.h"
#include "cli/cli.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(member) offsetof(struct profile, member)

const struct option_row profile_settings[] = {
        {"base-url", 0, OPTION_URL, AT(base_url), NULL, "URL", "Where the service is."},
        {"ca-file", 0, OPTION_FILE, AT(ca_file), NULL, "FILE", "Certificate authority of the service."},
        {"client-id", 0, OPTION_TEXT, AT(client_id), NULL, "ID", "Service account."},
        {"client-secret", 0, OPTION_TEXT, AT(client_secret), NULL, "SECRET", "Its secret."},
        {"public-key", 0, OPTION_TEXT, AT(public_key), NULL, "KEY", "API key."},
        {"private-key", 0, OPTION_TEXT, AT(private_key), NULL, "KEY", "Its private part."},
        {"user", 0, OPTION_TEXT, AT(user), NULL, "NAME", "Person who has signed in by a browser."},
        {"session", 0, OPTION_TEXT, AT(session), NULL, "TOKEN", "The token of that sign-in."},
        {"project", 0, OPTION_TEXT, AT(project), NULL, "ID", "Project that commands are about."},
        {"organization", 0, OPTION_TEXT, AT(organization), NULL, "ID", "Organization that commands are about."},
};
const size_t profile_setting_count = sizeof profile_settings / sizeof *profile_settings;

#define NAME_MAX_LEN 64

int profile_arguments(struct options *o, int argc, char **argv, const char **ret_words, size_t words_max,
                      size_t *ret_count)
{
	struct profile_arguments *g = o->target;
	int r = options_args(o, argc, argv, ret_words, words_max, ret_count);
	if (r != 0)
		return r;
	bool profile = g->profile, data = g->data;
	if (profile && data)
		return option_refuse("give --profile or --data, not both");
	r = options_environment(o);
	if (data)
		g->profile = NULL;
	if (g->profile)
		g->data = NULL;
	return r;
}

static int line_set(void *ctx, struct str name, struct str value, const char *where)
{
	return options_set(ctx, name, value, OPTION_FROM_FILE, where);
}

int profile_read(struct arena *a, const char *path, struct profile *ret_profile)
{
	struct profile p = {.source = path};
	struct options o;
	struct stat st;
	if (stat(path, &st) < 0)
		return option_refuse("%s: cannot be read: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return option_refuse("%s: is no file", path);
	if (st.st_mode & 077)
		return option_refuse("%s: others may read the secrets in it; say: chmod 600 '%s'", path, path);
	options_setup(&o, "help", profile_settings, profile_setting_count, &p, a);
	int r = options_file_each(a, path, line_set, &o);
	if (r == 0)
		*ret_profile = p;
	return r;
}

static const char *field_z(struct arena *a, const json_t *object, const char *field)
{
	const char *text = json_string_value(json_object_get(object, field));
	return text ? arena_z(a, str_of(text)) : NULL;
}

static int bootstrap_load(struct arena *a, const char *dir, const char *path, struct profile *p)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);
	if (!root && access(path, R_OK) < 0)
		return option_refuse("%s: cannot be read: %s; give --data DIR of a service that was started, or "
		                     "--profile NAME",
		                     path, strerror(errno));
	if (!json_is_object(root)) {
		json_decref(root);
		return option_refuse("%s: is not what the first start writes; give --profile NAME instead", path);
	}
	const json_t *account = json_object_get(root, "serviceAccount"), *key = json_object_get(root, "apiKey");
	p->base_url = field_z(a, root, "baseUrl");
	p->ca_file = field_z(a, root, "caFile");
	if (p->ca_file && p->ca_file[0] != '/')
		p->ca_file = arena_printf(a, "%s/%s", dir, p->ca_file).p;
	p->client_id = field_z(a, account, "clientId");
	p->client_secret = field_z(a, account, "clientSecret");
	p->public_key = field_z(a, key, "publicKey");
	p->private_key = field_z(a, key, "privateKey");
	p->project = field_z(a, root, "groupId");
	p->organization = field_z(a, root, "orgId");
	json_decref(root);
	return 0;
}

const char *config_dir(struct arena *a)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	if (config && *config)
		return arena_printf(a, "%s/steward", config).p;
	return arena_printf(a, "%s/.config/steward", home && *home ? home : "").p;
}

const char *profile_path(struct arena *a, const char *name)
{
	return strchr(name, '/') ? name : arena_printf(a, "%s/profiles/%s", config_dir(a), name).p;
}

bool profile_name_is_valid(const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !memchr("-_.", name[i], 3))
			return false;
	return n > 0 && n <= NAME_MAX_LEN && name[0] != '.' && name[0] != '-';
}

static const char *current_path(struct arena *a)
{
	return arena_printf(a, "%s/current", config_dir(a)).p;
}

const char *profile_current(struct arena *a)
{
	char line[NAME_MAX_LEN + 2] = "";
	FILE *f = fopen(current_path(a), "re");
	if (f && !fgets(line, sizeof line, f))
		line[0] = '\0';
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return profile_name_is_valid(line) ? arena_z(a, str_of(line)) : "default";
}

int profile_choose(struct arena *a, const char *name)
{
	return config_write(a, current_path(a), arena_printf(a, "%s\n", name));
}

/* Makes the folders above a file, for its owner alone. */
static int folders_make(struct arena *a, const char *path)
{
	char *folder = arena_z(a, str_of(path));
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder, 0700) < 0 && errno != EEXIST)
			return option_refuse("%s: cannot be made: %s", folder, strerror(errno));
		*slash = '/';
	}
	return 0;
}

int config_write(struct arena *a, const char *path, struct str text)
{
	int r = folders_make(a, path);
	if (r < 0)
		return r;
	r = file_replace(path, text, 0600, FILE_NO_GROUP);
	return r < 0 ? option_refuse("%s: cannot be written: %s", path, strerror(-r)) : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t profile_names(struct arena *a, const char **ret_names, size_t most)
{
	DIR *d = opendir(arena_printf(a, "%s/profiles", config_dir(a)).p);
	size_t count = 0;
	for (struct dirent *entry; d && count < most && (entry = readdir(d));)
		if (profile_name_is_valid(entry->d_name) && !str_ends(str_of(entry->d_name), STR(".new")))
			ret_names[count++] = arena_z(a, str_of(entry->d_name));
	if (d)
		closedir(d);
	if (count)
		qsort(ret_names, count, sizeof *ret_names, by_name);
	return count;
}

static int profile_check(const struct profile *p)
{
	bool account = p->client_id, key = p->public_key;
	if (!p->base_url)
		return option_refuse("%s: base-url is missing: where the service is, https://HOST:PORT", p->source);
	if (!p->client_id != !p->client_secret)
		return option_refuse("%s: client-id and client-secret go together", p->source);
	if (!p->public_key != !p->private_key)
		return option_refuse("%s: public-key and private-key go together", p->source);
	if (!account && !key && !p->session)
		return option_refuse("%s: has no credentials: it needs client-id and client-secret of a service "
		                     "account, or public-key and private-key of an API key; \"steward login --web\" "
		                     "signs in by a browser",
		                     p->source);
	return 0;
}

int profile_load(struct arena *a, const struct profile_arguments *g, struct profile *ret_profile)
{
	struct profile p = {0};
	const char *chosen = profile_current(a), *standard = profile_path(a, chosen),
	           *dir = g->data ? g->data : "./data";
	/* One that was chosen must be there; "default" may be absent. */
	bool named = g->profile || (!g->data && (strcmp(chosen, "default") != 0 || access(standard, F_OK) == 0));
	int r;
	const char *source = g->profile ? profile_path(a, g->profile)
	                     : named    ? standard
	                                : arena_printf(a, "%s/bootstrap.json", dir).p;
	if (g->profile && !strchr(g->profile, '/') && access(source, F_OK) < 0)
		return option_refuse(
		        "there is no profile \"%s\"; \"steward login %s\" makes it, \"steward config list\" "
		        "shows those there are",
		        g->profile, g->profile);
	if (!named && !g->data && access(source, F_OK) < 0)
		return option_refuse("there is no service to talk to: neither %s nor the profile %s is there; "
		                     "\"steward login\" makes a profile; or give --data DIR of a service that was "
		                     "started here, or --profile NAME",
		                     source, standard);
	r = named ? profile_read(a, source, &p) : bootstrap_load(a, dir, source, &p);
	p.source = source;
	if (r == 0)
		r = profile_check(&p);
	if (r < 0)
		return r;
	if (g->project)
		p.project = g->project;
	if (g->organization)
		p.organization = g->organization;
	*ret_profile = p;
	return 0;
}
