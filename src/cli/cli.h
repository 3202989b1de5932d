/* The subcommands: those that work on a data directory, with or without a running service, and those that talk to a
 * service. Each takes the arguments after its name and returns the exit code: 0 done; 1 not done, refused, or faults
 * found; 2 wrong usage or nothing to work on; 3 no service could be reached; 4 not done within the timeout. */
#ifndef STEWARD_CLI_CLI_H
#define STEWARD_CLI_CLI_H

#include "base/option.h"

enum { EXIT_DONE = 0, EXIT_NOT_DONE = 1, EXIT_USAGE = 2, EXIT_UNREACHED = 3, EXIT_TIMEOUT = 4 };

int limits_command(int argc, char **argv);         /* limits.c: set, list, clear */
int hosts_command(int argc, char **argv);          /* hosts.c: list, show, cordon, uncordon, label */
int outbox_command(int argc, char **argv);         /* outbox.c */
int billing_command(int argc, char **argv);        /* billing.c */
int invoices_command(int argc, char **argv);       /* invoices.c: pdf */
int backup_command(int argc, char **argv);         /* backup.c */
int check_command(int argc, char **argv);          /* check.c */
int repository_command(int argc, char **argv);     /* repository.c: check, usage, prove */
int give_up_command(int argc, char **argv);        /* give_up.c */
int orphans_command(int argc, char **argv);        /* orphans.c */
int store_command(int argc, char **argv);          /* store_copy.c: copy */
int clusters_command(int argc, char **argv);       /* clusters.c */
int backups_command(int argc, char **argv);        /* backups.c: take, restore */
int advisor_command(int argc, char **argv);        /* advisor.c: build */
int search_indexes_command(int argc, char **argv); /* search.c: try */
int connect_command(int argc, char **argv);        /* connect.c */
int api_command(int argc, char **argv);            /* api.c */
int login_command(int argc, char **argv);          /* login.c */
int logout_command(int argc, char **argv);         /* login.c */
int config_command(int argc, char **argv);         /* config.c: list, use, get, set, unset, path */
int logs_command(int argc, char **argv);           /* logs.c */
int events_command(int argc, char **argv);         /* events.c */

extern const struct option_row outbox_options[], billing_options[], invoices_options[];
extern const size_t outbox_option_count, billing_option_count, invoices_option_count;
extern const struct option_row store_options_rows[], give_up_options[], orphans_options[], hosts_options[],
        repository_options[];
extern const size_t store_option_count, give_up_option_count, orphans_option_count, hosts_option_count,
        repository_option_count;
extern const struct option_row advisor_options[], backups_options[], limits_options[], backup_options[],
        check_options[], clusters_options[], api_options[], connect_options[];
extern const size_t advisor_option_count, backups_option_count, limits_option_count, backup_option_count,
        check_option_count, clusters_option_count, api_option_count, connect_option_count;

extern const struct option_row search_options[];
extern const size_t search_option_count;

extern const struct option_row login_options[], logout_options[], config_command_options[], logs_options[],
        events_options[];
extern const size_t login_option_count, logout_option_count, config_command_option_count, logs_option_count,
        events_option_count;

/* secret_key.c: rotate, status, retire */
int secret_key_command(int argc, char **argv);
extern const struct option_row secret_key_options[];
extern const size_t secret_key_option_count;

/* release_policy.c */
int release_policy_command(int argc, char **argv);
extern const struct option_row release_policy_options[];
extern const size_t release_policy_option_count;

/* invitation_link.c */
int invitation_link_command(int argc, char **argv);
extern const struct option_row invitation_link_options[];
extern const size_t invitation_link_option_count;

/* domains.c */
int domains_command(int argc, char **argv);
extern const struct option_row domains_options[];
extern const size_t domains_option_count;

/* password_link.c */
int password_link_command(int argc, char **argv);
extern const struct option_row password_link_options[];
extern const size_t password_link_option_count;

/* accept_endpoint.c */
int accept_endpoint_command(int argc, char **argv);
extern const struct option_row accept_endpoint_options[];
extern const size_t accept_endpoint_option_count;

/* completion.c: the script for a shell; and, hidden, what that script asks. */
int completion_command(int argc, char **argv);
int complete_command(int argc, char **argv);
int manual_command(int argc, char **argv); /* manual.c: hidden, for the build */
extern const struct option_row completion_options[];
extern const size_t completion_option_count;

/* help.c. help_command() returns false when there is no such command. */
void help_program(FILE *out);
bool help_command(FILE *out, const char *command);
/* A hand-written command, for completion. False when there is no such number. */
struct command_entry {
	const char *name, *summary;
	const struct option_row *options;
	size_t option_count;
};
bool help_entry(size_t number, struct command_entry *ret_entry);
void version_print(FILE *out);
/* Writes a message on stderr about a word that is no command. Returns EXIT_USAGE. */
int help_unknown(const char *word);

#endif
