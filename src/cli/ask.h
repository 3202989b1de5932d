/* Questions to the person at the terminal. They are written on stderr; stdout is for results. */
#ifndef STEWARD_CLI_ASK_H
#define STEWARD_CLI_ASK_H

#include "base/arena.h"

#include <stdbool.h>

/* True when somebody can answer: stdin and stderr are a terminal. */
bool ask_is_possible(void);
/* A line of the terminal, or of standard input where there is no terminal (then without the question). NULL: there is
 * none, or it is empty. */
const char *ask_text(struct arena *a, const char *question);
/* The same, and the terminal does not show what is typed. */
const char *ask_secret(struct arena *a, const char *question);
/* True when the answer is y or yes; never without a terminal. */
bool ask_yes(const char *question);
/* Whether it may be done: somebody says so at the terminal. Where nobody can be asked, what can be undone is done, and
 * what is final is not. A refusal is said on stderr. */
bool ask_to_go_on(const char *question, bool is_final);

#endif
