/* Schemas of bodies and parameters, as tables that the build generates from api/, and the check against them.
 *
 * The build merges allOf, so that an object has one list of fields. A schema with a discriminator picks its branch by
 * that field's value; a oneOf or anyOf without one takes the branch with the fewest faults. */
#ifndef STEWARD_CATALOG_SCHEMA_H
#define STEWARD_CATALOG_SCHEMA_H

#include "base/arena.h"
#include "base/str.h"

#include <jansson.h>

enum schema_type { TYPE_ANY, TYPE_STRING, TYPE_INTEGER, TYPE_NUMBER, TYPE_BOOLEAN, TYPE_ARRAY, TYPE_OBJECT };

enum schema_format {
	FORMAT_NONE,
	FORMAT_DATE_TIME,
	FORMAT_DATE,
	FORMAT_INT32,
	FORMAT_INT64,
	FORMAT_FLOAT,
	FORMAT_DOUBLE,
	FORMAT_EMAIL,
	FORMAT_UUID,
	FORMAT_URI,
	FORMAT_PASSWORD,
	FORMAT_BINARY
};

enum schema_flag {
	SCHEMA_READ_ONLY = 1,
	SCHEMA_WRITE_ONLY = 2,
	SCHEMA_NULLABLE = 4,
	SCHEMA_DEPRECATED = 8,
	SCHEMA_UNIQUE = 16,
	SCHEMA_HAS_MIN = 32,
	SCHEMA_HAS_MAX = 64,
	SCHEMA_EXCLUSIVE_MIN = 128,
	SCHEMA_HAS_MIN_LENGTH = 256,
	SCHEMA_HAS_MAX_LENGTH = 512, /* of a string, an array's items or an object's fields */
	SCHEMA_OPEN =
	        1024, /* an object that takes any field: additionalProperties without fields of its own, or true */
	SCHEMA_IMMUTABLE = 2048, /* can be set by a create, not by an update */
	SCHEMA_SHOWS = 4096,     /* it, or something in it, has fields with a value that is shown where there is none */
	SCHEMA_SECRET = 8192     /* a text that nobody should see: a password, a key, a token */
};

struct schema;

struct field {
	const char *name;
	const struct schema *schema;
	bool required;
	const char *shown; /* JSON, or NULL: what an answer has in the place of nothing */
};

struct branch {
	const char *value; /* of the discriminator, or NULL */
	const struct schema *schema;
};

struct schema {
	const char *name;        /* of a named schema, else NULL */
	const char *description; /* or NULL */
	unsigned char type, format;
	unsigned short flags;
	short pattern; /* index of schema_patterns, or -1 */
	unsigned short enum_count, field_count, branch_count, mapping_count;
	const char *const *enums; /* as JSON texts: "\"AWS\"", "1" */
	const char *default_json; /* JSON text or NULL */
	double min, max;
	unsigned min_length, max_length;
	const struct field *fields; /* sorted by name */
	const struct schema *items;
	const struct schema *additional; /* schema of additionalProperties, or NULL */
	const struct branch *branches;   /* oneOf / anyOf */
	const char *discriminator;       /* property name or NULL */
	const struct branch *mapping;    /* discriminator value -> schema */
};

extern const char *const schema_patterns[];
/* Of each what it asks for in words, for people: "must have only digits". */
extern const char *const schema_pattern_rules[];
extern const unsigned schema_pattern_count;

/* All schemas. */
extern const struct schema *const schema_rows;
/* All named schemas, sorted by name. */
extern const struct schema *const schema_all[];
extern const unsigned schema_all_count;
const struct schema *schema_find(struct str name);
const struct field *schema_field(const struct schema *s, struct str name);
/* The schema of a named schema's field, of its items where it is a list. NULL: there is none. */
const struct schema *schema_of_field(const char *schema, const char *field);
/* The i-th value of an enumeration of texts, and whether a text is one of its values. Accepts NULL. */
struct str schema_enum(const struct schema *s, unsigned i);
bool schema_allows(const struct schema *s, struct str text);

enum schema_use {
	SCHEMA_CREATE,  /* POST and PUT: required fields must be there; read-only ones refused */
	SCHEMA_UPDATE,  /* PATCH: the same, and immutable ones refused */
	SCHEMA_PARTIAL, /* the same, but nothing is required of the body's own fields */
	SCHEMA_AS_READ, /* PATCH with what a GET shows, or parts of it: read-only is for the handler to compare, and
	                 * nothing is required of the body's own fields, nor of an object that its read-only id names */
	SCHEMA_STORED   /* our own documents: read-only allowed */
};

struct fault {
	struct str path; /* replicationSpecs[0].regionConfigs[1].priority; "" is the body itself */
	struct str text; /* "must be one of AWS, AZURE, GCP" */
};

#define FAULTS_MAX 32

struct faults {
	struct fault list[FAULTS_MAX];
	size_t count; /* found in all; the list holds the first FAULTS_MAX */
};

/* Adds a fault that a gate or a family found. The path is copied; the text says what would be right. */
void faults_add(struct faults *faults, struct arena *arena, struct str path, const char *format, ...) printf_like(4, 5);

/* Adds a fault, and is true, when the array has more than `most` items. */
bool faults_too_many(struct faults *faults, struct arena *arena, struct str path, const json_t *array, size_t most);

/* Compiles the patterns. Before the threads start; negative when one does not compile. */
must_check int schema_setup(void);
/* In a program of one thread, which needs few of them: compiles them when they are needed. */
must_check int schema_prepare(void);
void schema_teardown(void);

/* Checks a value against a schema and adds what is wrong. Strings in `faults` live in the arena. */
void schema_check(const struct schema *s, json_t *value, enum schema_use use, struct arena *arena,
                  struct faults *faults);

/* Checks a parameter's text against its schema; `name` becomes the path. Arrays are comma-separated or repeated, and
 * each value is checked as an item. Returns false, with faults added, when it is not valid. */
bool schema_check_text(const struct schema *s, struct str name, struct str text, struct arena *arena,
                       struct faults *faults);

/* Sets the defaults of absent fields, at any depth where the parent object is present. */
void schema_add_defaults(const struct schema *s, json_t *value);
/* A string field of an object in compact JSON text, or STR_NONE. Searched without parsing, because every read calls
 * this. */
struct str document_text(struct arena *a, struct str json, struct str name);
/* Completes an answer: sets absent fields to what is shown in their place, at any depth. Needs SCHEMA_SHOWS. */
void schema_add_shown(const struct schema *s, json_t *value);
/* Removes fields that are null where the schema takes no null, and (`read_only`) those that only the service sets, at
 * any depth. */
void schema_relax(const struct schema *s, json_t *value, bool nulls, bool read_only);
/* Removes write-only fields, at any depth. */
void schema_strip_write_only(const struct schema *s, json_t *value);
/* Removes fields that the schema does not have, at any depth: an older version's answer shows only what it knows. */
void schema_keep_known(const struct schema *s, json_t *value);
/* Converts date-time fields to UTC ("...Z"), at any depth: a value sent with another zone is stored in the form that we
 * return. */
void schema_normalize_dates(const struct schema *s, json_t *value);

#endif
