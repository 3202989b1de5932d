/* Definitions of text search indexes, as clients write them: which fields are searched, as what, and in which language.
 * Pure code: what a table has is the engine's to find out. Whatever has no equal in PostgreSQL is a fault at its place,
 * so that nothing is taken and then ignored. */
#ifndef STEWARD_SEARCH_DEFINITION_H
#define STEWARD_SEARCH_DEFINITION_H

#include "base/json.h"
#include "catalog/schema.h"
#include "search/analyzer.h"

#define SEARCH_FIELDS_MAX 32 /* columns of an index in PostgreSQL */
#define SEARCH_DEPTH_MAX 10
#define SEARCH_GRAMS_MAX 50
#define SEARCH_SYNONYMS_MAX 10
#define SEARCH_STORED_MAX 100

enum search_type {
	SEARCH_STRING,
	SEARCH_NUMBER,
	SEARCH_DATE,
	SEARCH_BOOLEAN,
	SEARCH_TOKEN,
	SEARCH_AUTOCOMPLETE,
	SEARCH_OBJECT_ID,
	SEARCH_UUID,
	SEARCH_TYPES
};

struct search_field {
	const char *place; /* in the request: "definition.mappings.fields.title" */
	const char *path;  /* as queries name it: "address.city" */
	/* The column, then the names within its document. */
	const char *const *steps;
	size_t depth;
	enum search_type type;
	const char *language, *search_language; /* analyzers: search/analyzer.h */
	const char *tokenization;               /* of autocomplete */
	unsigned min_grams, max_grams;
	bool lower;        /* of a token: compared in lower case */
	const char *multi; /* another analysis of the same values, by its name; NULL: the field itself */
};

/* Words that mean the same stand in a table, which is read with each query that names them. */
struct search_synonyms {
	const char *place, *name, *table;
	const char *language; /* their words are read as those of fields with this analyzer */
};

/* The columns that a query can ask for as the index's own. */
struct search_stored {
	const char *place;
	bool there, excluded; /* all but these */
	const char **columns;
	size_t count;
};

struct search_definition {
	const struct search_field *fields;
	size_t field_count;
	unsigned dynamic; /* a bit for each search_type: columns that the fields do not name are searched too */
	const char *dynamic_place;
	const char *language, *search_language; /* of those */
	const struct search_synonyms *synonyms;
	size_t synonym_count;
	const struct search_pattern *patterns; /* of analyzers */
	size_t pattern_count;
	struct search_stored stored;
};

/* Reads a definition that its schema has let pass. `place` comes before the faults' paths: "definition." or "". All
 * texts live in the arena. */
void search_definition_read(struct arena *a, const json_t *definition, const char *place, struct faults *faults,
                            struct search_definition *ret_definition);

/* "string", "objectId": as definitions name it. */
const char *search_type_name(enum search_type type);

#endif
