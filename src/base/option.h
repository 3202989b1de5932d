/* Options as tables: one row describes an option, and the command line, the environment, the file and the help text all
 * come from it. A fault is one sentence on stderr that says where the value came from and what would be right. */
#ifndef STEWARD_BASE_OPTION_H
#define STEWARD_BASE_OPTION_H

#include "base/arena.h"

#include <stdio.h>

enum option_kind {
	OPTION_SWITCH,  /* bool: --name alone; in the environment and in files true or false */
	OPTION_TEXT,    /* const char * */
	OPTION_FILE,    /* const char *: a file that can be read */
	OPTION_CHOICE,  /* const char *: one of `choices` */
	OPTION_ADDRESS, /* const char *: HOST:PORT or [V6]:PORT */
	OPTION_URL,     /* const char *: https://HOST[:PORT]; a slash at the end is dropped */
	OPTION_NUMBER,  /* unsigned, from `min` to `max` */
	OPTION_TEXTS    /* struct option_texts: may be given several times */
};

#define OPTION_TEXTS_MAX 32
struct option_texts {
	const char *v[OPTION_TEXTS_MAX];
	size_t n;
};

struct option_row {
	const char *name; /* "log-level": --log-level, STEWARD_LOG_LEVEL, log-level = ... */
	char letter;      /* short form, or 0 */
	enum option_kind kind;
	size_t offset;        /* of the member in the target */
	const char *standard; /* the default as text; NULL: the member stays zero */
	const char *argument; /* "DIR"; NULL for switches, and for a choice that is its first where none is said */
	const char *help;
	const char *choices; /* "text|json" */
	unsigned min, max;
	bool flag_only; /* not from the environment: belongs to one call, not to the setup */
};

enum option_source { OPTION_BY_DEFAULT, OPTION_FROM_FILE, OPTION_FROM_ENVIRONMENT, OPTION_FROM_FLAG };

#define OPTIONS_MAX 128

struct options {
	const struct option_row *rows;
	size_t count;
	void *target;                    /* the struct that the rows' offsets point into */
	struct arena *arena;             /* keeps the texts */
	const char *command;             /* "serve": named in messages */
	unsigned char from[OPTIONS_MAX]; /* enum option_source */
};

/* Sets the defaults. Asserts that each default is valid. */
void options_setup(struct options *o, const char *command, const struct option_row *rows, size_t count, void *target,
                   struct arena *arena);

#define OPTIONS_HELP 1 /* --help was asked for */

/* Arguments after the command's name. Words that are no options go to ret_words, at most words_max. */
must_check int options_args(struct options *o, int argc, char **argv, const char **ret_words, size_t words_max,
                            size_t *ret_count);
/* Reads STEWARD_<NAME>; empty variables count as absent. Unknown STEWARD_ variables are ignored: orchestrators set some
 * for every service of that name. */
must_check int options_environment(struct options *o);
/* Sets one option by name, unless it came from a stronger source. `where` names the place in messages. */
must_check int options_set(struct options *o, struct str name, struct str value, enum option_source source,
                           const char *where);
bool options_given(const struct options *o, const char *name);

/* Calls line() for each `name = value` of a file, with `where` = "FILE:LINE"; stops at the first negative result. Blank
 * lines and what follows '#' (at the start or after a space) are skipped; a value may stand in double quotes. */
must_check int options_file_each(struct arena *a, const char *path,
                                 int (*line)(void *ctx, struct str name, struct str value, const char *where),
                                 void *ctx);

/* One line per option, aligned. */
void options_help(FILE *out, const struct option_row *rows, size_t count);

/* A secret that a file holds, without the newline at its end: below `size` bytes, not empty. `option` ("--smtp-...") is
 * named in messages. */
must_check int option_secret_read(const char *option, const char *path, char *ret_secret, size_t size);

/* "steward: ..." and a newline on stderr. Returns -EINVAL. */
int option_refuse(const char *format, ...) printf_like(1, 2);

#endif
