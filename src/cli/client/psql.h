/* psql as a child process: the printed command line, a test whether the database accepts the login, and the run
 * itself. */
#ifndef STEWARD_CLI_CLIENT_PSQL_H
#define STEWARD_CLI_CLIENT_PSQL_H

#include "base/option.h"

struct psql {
	struct arena *arena;
	const char *string;                  /* connection string, without a password */
	const char *password;                /* or NULL: psql finds or asks for one itself */
	const struct option_texts *commands; /* SQL to run instead of a session; may be empty */
};

bool psql_is_installed(void);

/* -EAGAIN, with psql's message, when a login may work later. 0: it works, or it fails for a reason that waiting does
 * not solve. */
must_check int psql_try(const struct psql *p, struct str *ret_said);
/* Runs psql on our terminal until it ends. Returns its exit code. */
int psql_run(const struct psql *p);
/* The command on stdout, quoted for a shell. */
void psql_print(const struct psql *p);

/* From now on signals that would end us stay pending, so that the temporary user can be deleted; psql receives them. */
void signals_hold(void);
/* Whether such a signal is pending. */
bool signals_wait(void);

#endif
