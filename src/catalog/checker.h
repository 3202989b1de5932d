/* Shared by the files of the schema check: the state of one check, the place in the body, and the view of an object.
 * Nobody else includes this. */
#ifndef STEWARD_CATALOG_CHECKER_H
#define STEWARD_CATALOG_CHECKER_H

#include "catalog/schema.h"

#define CHECK_DEPTH 64
#define CHECK_WORK 2000000 /* values looked at, counting all branches that are tried */

/* The current place in the body, as a chain on the stack: a path is only written when there is a fault. */
struct place {
	const struct place *up;
	struct str key; /* p NULL: an array's item */
	size_t index;
};

struct checker {
	enum schema_use use;
	struct arena *arena;
	struct faults *faults;       /* NULL: only scores, to compare branches */
	unsigned score, limit;       /* weight of the faults so far; scoring stops at the limit */
	unsigned depth, trial_depth; /* trial_depth: of the value whose branches are compared */
	unsigned *work;              /* what is left, shared with the checkers that score branches */
};

/* Weights of faults, to guess which branch the caller meant. A wrong enumeration value points to another branch more
 * strongly than a missing field does, most of all when it is a field of the very object whose branches are compared.
 * Faults further inside count little. */
enum { WEIGHT_FAULT = 1, WEIGHT_UNKNOWN = 2, WEIGHT_ENUM = 4, WEIGHT_INSIDE_MAX = 8, WEIGHT_OWN_ENUM = 64 };

/* faults.c */
unsigned weight_enum(const struct checker *c);
void fault_add(struct checker *c, const struct place *at, unsigned weight, const char *format, ...) printf_like(4, 5);
/* "must be one of A, B, C", from enums as JSON texts, from the values of a mapping, or from the enums of all
 * branches. */
void fault_enum(struct checker *c, const struct place *at, const struct schema *s);
void fault_mapping(struct checker *c, const struct place *at, const struct schema *s);
void fault_choice(struct checker *c, const struct place *at, const struct schema *s);

/* All the schemas that together describe one object: a schema, the branch that it picks, that branch's branch, and so
 * on. A later schema overrides an earlier one. */
#define VIEW_MAX 8

struct view {
	const struct schema *of[VIEW_MAX];
	unsigned count;
	const struct schema *undecided; /* its branch is unknown: fields of any of its branches are allowed */
	const char *settled;            /* a discriminator whose fault is already reported */
	bool scored;                    /* choosing the branch has already checked the object */
};

/* view.c */
void view_resolve(struct checker *c, const struct schema *s, json_t *object, const struct place *at, struct view *v);
const struct field *view_field(const struct view *v, struct str name);
/* Whether unlisted fields are allowed; *ret_additional is their schema, or NULL for any value. */
bool view_is_open(const struct view *v, const struct schema **ret_additional);
void fault_unknown(struct checker *c, const struct place *at, const struct view *v, struct str name);
/* The schema that a mapping has for a value, or NULL. */
const struct schema *mapping_find(const struct schema *s, struct str value);

/* schema.c */
bool checker_stops(const struct checker *c);
/* A checker for the same use that only scores, up to `limit`. */
struct checker checker_trial(const struct checker *c, unsigned limit);
/* trial_limit(): the limit for comparing branches below `c`. trial_score(): adds the score of the best branch to
 * `c`. */
unsigned trial_limit(const struct checker *c);
void trial_score(struct checker *c, unsigned best);
void check_value(struct checker *c, const struct schema *s, json_t *value, const struct place *at);
void view_check(struct checker *c, const struct view *v, json_t *object, const struct place *at);
/* A oneOf or anyOf that is not (only) about objects. */
bool schema_is_choice(const struct schema *s);
bool schema_takes_null(const struct schema *s);

/* scalars.c */
void check_string(struct checker *c, const struct schema *s, struct str text, const struct place *at);
void check_integer(struct checker *c, const struct schema *s, int64_t value, const struct place *at);
void check_number(struct checker *c, const struct schema *s, double value, const struct place *at);
void check_boolean(struct checker *c, const struct schema *s, bool value, const struct place *at);
void check_count(struct checker *c, const struct schema *s, size_t count, const char *noun, const struct place *at);

#endif
