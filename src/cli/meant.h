/* What was meant by a word that is no command. */
#ifndef STEWARD_CLI_MEANT_H
#define STEWARD_CLI_MEANT_H

#include "catalog/catalog.h"

/* Says on stderr that the family has no such command, and which may be meant. `second` is the word
 * after it, or NULL; `own` are verbs that are hand-written. Returns EXIT_USAGE. */
int meant_verb(const struct command_family *family, const char *word, const char *second, const char *const *own,
               size_t own_count);
/* The same for the first word of all; `names` are those of hand-written commands. */
int meant_command(const char *word, const char *const *names, size_t count);
/* The flag whose name begins with what was typed, or whose last part begins or ends so, or that has another word for
 * it; the shortest of them, or NULL. */
const char *meant_flag(struct str typed, const char *const *names, size_t count);

#endif
