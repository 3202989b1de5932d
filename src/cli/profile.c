/* Profiles. A profile is a file of `name = value` lines that only its owner may read. The file that the first start of
 * a service writes (bootstrap.json) works as a profile too, so that nothing has to be set up on the service's own
 * machine. */
#include "cli/profile.h"

#include "cli/cli.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(member) offsetof(struct profile, member)

static const struct option_row rows[] = {
        {"base-url", 0, OPTION_URL, AT(base_url), NULL, "URL", "Where the service is."},
        {"ca-file", 0, OPTION_FILE, AT(ca_file), NULL, "FILE", "Certificate authority of the service."},
        {"client-id", 0, OPTION_TEXT, AT(client_id), NULL, "ID", "Service account."},
        {"client-secret", 0, OPTION_TEXT, AT(client_secret), NULL, "SECRET", "Its secret."},
        {"public-key", 0, OPTION_TEXT, AT(public_key), NULL, "KEY", "API key."},
        {"private-key", 0, OPTION_TEXT, AT(private_key), NULL, "KEY", "Its private part."},
        {"project", 0, OPTION_TEXT, AT(project), NULL, "ID", "Project that commands are about."},
        {"organization", 0, OPTION_TEXT, AT(organization), NULL, "ID", "Organization, for {orgId} in paths."},
};

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

static int file_load(struct arena *a, const char *path, struct profile *p)
{
	struct options o;
	struct stat st;
	if (stat(path, &st) < 0)
		return option_refuse("%s: cannot be read: %s", path, strerror(errno));
	if (st.st_mode & 077)
		return option_refuse("%s: others may read the secrets in it; say: chmod 600 '%s'", path, path);
	options_setup(&o, "help", rows, sizeof rows / sizeof *rows, p, a);
	return options_file_each(a, path, line_set, &o);
}

static const char *text_of(struct arena *a, const json_t *object, const char *field)
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
	p->base_url = text_of(a, root, "baseUrl");
	p->ca_file = text_of(a, root, "caFile");
	if (p->ca_file && p->ca_file[0] != '/')
		p->ca_file = arena_printf(a, "%s/%s", dir, p->ca_file).p;
	p->client_id = text_of(a, account, "clientId");
	p->client_secret = text_of(a, account, "clientSecret");
	p->public_key = text_of(a, key, "publicKey");
	p->private_key = text_of(a, key, "privateKey");
	p->project = text_of(a, root, "groupId");
	p->organization = text_of(a, root, "orgId");
	json_decref(root);
	return 0;
}

static const char *profile_path(struct arena *a, const char *name)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	if (strchr(name, '/'))
		return name;
	if (config && *config)
		return arena_printf(a, "%s/steward/profiles/%s", config, name).p;
	return arena_printf(a, "%s/.config/steward/profiles/%s", home && *home ? home : "", name).p;
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
	if (!account && !key)
		return option_refuse("%s: has no credentials: it needs client-id and client-secret of a service "
		                     "account, or public-key and private-key of an API key",
		                     p->source);
	return 0;
}

int profile_load(struct arena *a, const struct profile_arguments *g, struct profile *ret_profile)
{
	struct profile p = {0};
	const char *standard = profile_path(a, "default"), *dir = g->data ? g->data : "./data";
	bool named = g->profile || (!g->data && access(standard, F_OK) == 0);
	int r;
	p.source = g->profile ? profile_path(a, g->profile)
	           : named    ? standard
	                      : arena_printf(a, "%s/bootstrap.json", dir).p;
	if (!named && !g->data && access(p.source, F_OK) < 0)
		return option_refuse("there is no service to talk to: neither %s nor the profile %s is there; give "
		                     "--data DIR of a service that was started, or --profile NAME; \"steward help "
		                     "api\" shows what a profile looks like",
		                     p.source, standard);
	r = named ? file_load(a, p.source, &p) : bootstrap_load(a, dir, p.source, &p);
	if (r == 0)
		r = profile_check(&p);
	if (r < 0)
		return r;
	if (g->project)
		p.project = g->project;
	*ret_profile = p;
	return 0;
}
