/* Commands that are derived from the rows of the catalog: `steward FAMILY [PART] VERB [ID]... [--FLAG VALUE]...`. */
#ifndef STEWARD_CLI_DERIVED_COMMAND_H
#define STEWARD_CLI_DERIVED_COMMAND_H

#include "base/option.h"
#include "catalog/catalog.h"

/* The operation whose command or alias these words begin with, and how many words that is. NULL: none. */
const struct op *command_find(int argc, char **argv, int *ret_used);
/* Whether the word is the first of commands. */
const struct command_family *command_family_find(const char *word);
/* Puts the arguments into the order and the words that the rest expects: options that all commands have, and that stand
 * before the command, behind it; `ls` and `rm` become what they stand for. Does nothing to what is no command. */
void command_arrange(int argc, char **argv);
/* Whether the words and flags are for command_run(), although a hand-written command may have the same first word. */
bool command_takes(int argc, char **argv);
/* Runs the command, or explains what there is. Returns the exit code. */
int command_run(int argc, char **argv);

/* What a path parameter is called in help: "{clusterName}" is CLUSTER. */
const char *command_argument(struct arena *a, const struct param *p);
/* True for {groupId} and {orgId}, which the profile fills in when they are left out. */
bool command_is_scope(const struct param *p);
/* Whether they may also be given as words: where the command is about a project or an organization itself. */
bool command_scope_is_word(const struct op *op);
/* The schema of the body, in the current version; NULL: none. */
const struct schema *command_body(const struct op *op);
/* How the body is checked. */
enum schema_use command_use(const struct op *op);

/* The flag that a word behind those of the path stands for, where something is made: its name, or an address; else
 * NULL. */
const char *command_named(struct arena *a, const struct op *op, bool is_network);

/* The options that every such command has. */
extern const struct option_row command_options[];
extern const size_t command_option_count;

/* usage.c: help of all families, of one, and of a command. */
void usage_families(FILE *out);
void usage_family(FILE *out, const struct command_family *family);
void usage_command(FILE *out, const struct op *op);
/* Of the commands that begin with these words, up to the first option: "backups snapshots". False: there are none. */
bool usage_part(FILE *out, int argc, char **argv);

#endif
