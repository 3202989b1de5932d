/* psql as a child process: the line that starts it, a try whether the database lets it in, and the run itself. */
#ifndef STEWARD_CLI_PSQL_H
#define STEWARD_CLI_PSQL_H

#include "base/option.h"

struct psql {
	struct arena *arena;
	const char *string;                  /* connection string, without a password */
	const char *password;                /* or NULL: psql finds or asks for one itself */
	const struct option_texts *commands; /* SQL to run instead of a session; may be empty */
};

bool psql_is_installed(void);

/* -EAGAIN, with what psql said, when a login may work later. 0: it works, or fails for a reason that time does not mend. */
must_check int psql_try(const struct psql *p, struct str *ret_said);
/* Runs psql on our terminal until it ends. Returns its exit code. */
int psql_run(const struct psql *p);
/* The command on stdout, quoted for a shell. */
void psql_print(const struct psql *p);

/* From now on signals that would end us wait, so that what was made for psql is taken away again; psql itself gets them. */
void signals_hold(void);
/* Whether one of them waits. */
bool signals_wait(void);

#endif
