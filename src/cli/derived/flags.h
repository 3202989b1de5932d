/* Flags and bodies. A flag names a field of the body by its path, in kebab-case: --replication-specs.0.zone-name Z. The
 * schema says what the text becomes. Nothing here reads or writes but memory; a fault is a text, NULL is none.
 *
 * - A list of plain values takes a flag several times; a list of objects takes positions, and no position is the first.
 * - A boolean is set by the flag alone, by --no-FLAG, or by true or false.
 * - Objects and lists also take JSON. Keys of a map are written as they are, with a backslash before "." "=" ":" and
 *   "\". */
#ifndef STEWARD_CLI_DERIVED_FLAGS_H
#define STEWARD_CLI_DERIVED_FLAGS_H

#include "catalog/catalog.h"

/* A body that flags are set in. Start with the schema and the arena; `body` is freed with the arena. */
struct flags {
	struct arena *arena;
	const struct schema *schema;
	json_t *body; /* NULL: nothing is set */
};

enum flag_kind { FLAG_UNKNOWN, FLAG_VALUE, FLAG_SWITCH };

/* What the schema knows at a path: a value, or one that may stand alone. *ret_secret: it should not be typed openly. */
enum flag_kind flags_find(const struct schema *s, struct str path, bool *ret_secret);
/* Sets the field at a path, or adds to the list there. Returns what is wrong, or NULL. */
must_check const char *flags_set(struct flags *f, struct str path, struct str text);
/* The same with JSON text, which replaces what is there. */
must_check const char *flags_set_json(struct flags *f, struct str path, struct str json);
/* The argument of --set: PATH=VALUE, or PATH:=JSON. */
must_check const char *flags_assign(struct flags *f, struct str text);
/* Replaces the values of secret fields, for showing. */
void flags_hide_secrets(const struct schema *s, json_t *body);

/* A flag of a body, for help and completion. */
struct flag {
	const char *name; /* "replication-specs.0.zone-name", without dashes; "KEY" stands for a map's key */
	const char *description;
	const struct schema *schema; /* of the value; of a repeated one, the list's */
	const char *only_for;        /* the value of a discriminator that it goes with, or NULL */
	bool required, secret, repeats;
};

/* All flags of a body, those that are required first. */
size_t flags_list(struct arena *a, const struct schema *body, enum schema_use use, struct flag **ret_flags);

/* The arguments that make this body, one string each: "--name=value", "--set=path:=json". */
size_t flags_write(struct arena *a, const struct schema *s, json_t *body, const char ***ret_arguments);

/* Splits "name=value" at the first "=" that has no backslash before it. False, with all of it in *ret_name: there is
 * none. */
bool flag_cut(struct str argument, struct str *ret_name, struct str *ret_value);
/* "diskSizeGB" is "disk-size-gb". */
const char *flag_name(struct arena *a, struct str field);
/* "replicationSpecs[0].zoneName" is "replication-specs.0.zone-name". */
const char *flag_of_path(struct arena *a, struct str path);
/* The one of the names that is nearest to what was typed; NULL when none is near. */
const char *flag_nearest(struct str typed, const char *const *names, size_t count);

#endif
