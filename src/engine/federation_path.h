/* Paths of federated sources: which objects of a store are a table's, and which columns their names give.
 *
 *   /sales/{year int}/{month int:[0-9]{2}}/part-*.parquet
 *
 * A path is text with, in it: "*" (any text without a slash), "**" (any text), "{NAME TYPE}" (a partition
 * attribute: text without a slash that its type can read), "{NAME TYPE:PATTERN}" (and that the regular expression
 * has, whole), "{min(NAME) TYPE}" and "{max(NAME) TYPE}" (no row of the object has a NAME before, or behind), and,
 * for wildcard tables, "{collectionName()}" (the table's name). A backslash takes the meaning from the character
 * behind it. A path that ends with a slash has all objects below it; a slash at the beginning means nothing. */
#ifndef STEWARD_ENGINE_FEDERATION_PATH_H
#define STEWARD_ENGINE_FEDERATION_PATH_H

#include "base/arena.h"

enum path_kind { PATH_TEXT, PATH_ANY, PATH_ANY_DEEP, PATH_VALUE, PATH_LEAST, PATH_MOST, PATH_TABLE };
enum path_type {
	PATH_STRING,
	PATH_INT,
	PATH_DATE,
	PATH_ISODATE,
	PATH_EPOCH_SECONDS,
	PATH_EPOCH_MILLIS,
	PATH_OBJECT_ID,
	PATH_UUID
};

struct path_part {
	enum path_kind kind;
	enum path_type type;
	struct str text;    /* PATH_TEXT: without backslashes */
	struct str name;    /* the attribute's: a column */
	struct str pattern; /* POSIX extended; empty: none */
};

#define PATH_BYTES 1024
#define PATH_PARTS 64
#define PATH_ATTRIBUTES 16
struct federation_path {
	const struct path_part *parts;
	size_t count;
	bool has_table; /* {collectionName()} */
};

/* -EINVAL: *ret_why, after "path": in the arena. All texts are the arena's. */
must_check int federation_path_parse(struct str text, struct arena *a, struct federation_path *ret_path,
                                     const char **ret_why);
/* What every object of it begins with: the text before the first part that is none; in the arena, without the
 * slash. */
struct str federation_path_prefix(const struct federation_path *p, struct arena *a);
/* Whether it has the object of that name (below the store's prefix). ret_values: of each part, in their order;
 * empty for those that are no attribute. */
must_check bool federation_path_match(const struct federation_path *p, struct str name, struct arena *a,
                                      struct str ret_values[PATH_PARTS]);

#endif
