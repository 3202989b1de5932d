/* Where the client's commands find a service and its credentials: a profile, or the file that the first start wrote. */
#ifndef STEWARD_CLI_PROFILE_H
#define STEWARD_CLI_PROFILE_H

#include "base/option.h"

struct profile {
	const char *source;                    /* the file, for messages */
	const char *base_url, *ca_file;        /* ca_file NULL: the system's authorities */
	const char *client_id, *client_secret; /* a service account, or */
	const char *public_key, *private_key;  /* an API key */
	const char *project, *organization;    /* ids; the project may also be given by name; NULL: none */
};

/* The first member of the arguments of each command that talks to a service. */
struct profile_arguments {
	const char *profile, *data, *project;
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

#endif
