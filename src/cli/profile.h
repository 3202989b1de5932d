/* Where the client's commands find a service and its credentials: a profile, or the file that the first start wrote. */
#ifndef STEWARD_CLI_PROFILE_H
#define STEWARD_CLI_PROFILE_H

#include "base/option.h"

struct profile {
	const char *source;                    /* the file, for messages */
	const char *base_url, *ca_file;        /* ca_file NULL: the system's authorities */
	const char *client_id, *client_secret; /* a service account, or */
	const char *public_key, *private_key;  /* an API key, or */
	const char *user, *session;            /* a person who has signed in by a browser: the name, and a token */
	const char *project, *organization;    /* ids; the project may also be given by name; NULL: none */
};

/* The lines of a profile, as options of a struct profile. */
extern const struct option_row profile_settings[];
extern const size_t profile_setting_count;

/* The first member of the arguments of each command that talks to a service. */
struct profile_arguments {
	const char *profile, *data, *project, *organization;
};

#define PROFILE_OPTIONS                                                                             \
	{"profile",                                                                                 \
	 0,                                                                                         \
	 OPTION_TEXT,                                                                               \
	 offsetof(struct profile_arguments, profile),                                               \
	 NULL,                                                                                      \
	 "NAME",                                                                                    \
	 "Profile in ~/.config/steward/profiles, or the path of one."},                             \
	        {"data",                                                                            \
	         0,                                                                                 \
	         OPTION_TEXT,                                                                       \
	         offsetof(struct profile_arguments, data),                                          \
	         NULL,                                                                              \
	         "DIR",                                                                             \
	         "Data directory with the bootstrap.json of a service on this machine."},           \
	        {"org",                                                                             \
	         0,                                                                                 \
	         OPTION_TEXT,                                                                       \
	         offsetof(struct profile_arguments, organization),                                  \
	         NULL,                                                                              \
	         "ID",                                                                              \
	         "Organization, by id; otherwise that of the profile."},                            \
	{                                                                                           \
		"project", 0, OPTION_TEXT, offsetof(struct profile_arguments, project), NULL, "ID", \
		        "Project, by id or by name; otherwise that of the profile."                 \
	}

/* Reads the arguments and environment of such a command; a flag for one source of credentials hides the environment's
 * other source. Returns OPTIONS_HELP as options_args() does. */
must_check int profile_arguments(struct options *o, int argc, char **argv, const char **ret_words, size_t words_max,
                                 size_t *ret_count);
/* Loads the profile; explains on stderr what is missing. */
must_check int profile_load(struct arena *a, const struct profile_arguments *g, struct profile *ret_profile);
/* Reads a file of settings, complete or not. */
must_check int profile_read(struct arena *a, const char *path, struct profile *ret_profile);

/* ~/.config/steward, or below $XDG_CONFIG_HOME. */
const char *config_dir(struct arena *a);
/* The file of a profile; a name with a slash is the file. */
const char *profile_path(struct arena *a, const char *name);
/* True when it can be the name of a profile: letters, digits, "-", "_" and ".", and no "." first. */
bool profile_name_is_valid(const char *name);
/* The names of the profiles, sorted. Returns how many. */
size_t profile_names(struct arena *a, const char **ret_names, size_t most);
/* The name of the profile that "steward config use" chose; "default" before that. */
const char *profile_current(struct arena *a);
/* Chooses it for the calls to come. A message on stderr, negative. */
must_check int profile_choose(struct arena *a, const char *name);
/* Writes a file below config_dir() that only its owner reads, and the folders to it. A message on stderr, negative. */
must_check int config_write(struct arena *a, const char *path, struct str text);

#endif
