/* Statements that make an index. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_INDEX_SQL_H
#define STEWARD_ENGINE_POSTGRES_SQL_INDEX_SQL_H

#include "engine/engine.h"

#include <libpq-fe.h>

struct pg_index_table {
	const char *oid, *schema, *name; /* of the table */
	bool spread;                     /* over shards */
};

/* What is made of a wish in one database. */
struct pg_index_plan {
	struct arena *arena;
	PGconn *conn;
	const struct engine_index *want;
	struct pg_index_table table;
	const char *on;        /* the table, quoted */
	const char *body;      /* "USING btree (...) WHERE ..." */
	const char *collation; /* quoted; NULL: none */
	const char *make;      /* the statement that makes the collation; NULL: it is there */
	const char *train;     /* the statement that comes before the build of an index of vectors; NULL: none */
	const char *fields;    /* of a search index: JSON, as search/functions.c has them */
	const char *synonyms;  /* the same */
	const char *stored;    /* the same: {"include": [...]}, {"exclude": [...]} or null */
	const char *analyses;  /* the same: steps of analyzers by their ids */
	const char *field;     /* of the fault */
	char why[400];
};

/* Looks at the database and fills in the rest. -EINVAL: field and why say what is wrong. Changes nothing. */
int pg_index_plan(struct pg_index_plan *p);
/* The fault, for others that find one. Returns -EINVAL. */
int pg_index_fault(struct pg_index_plan *p, const char *field, const char *format, ...) printf_like(3, 4);
/* A column of the plan's table. -ENOENT: it has none of that name. */
struct pg_index_column {
	const char *sql;  /* the value, in brackets where it is computed */
	const char *type; /* of constants to compare with */
	char name[64];    /* of the type, below all domains */
	char category;
	bool ours;    /* a type of PostgreSQL */
	bool ordered; /* by COLLATE */
	bool direct;  /* no domain */
};
int pg_index_column(struct pg_index_plan *p, const char *name, struct pg_index_column *ret_column);
/* Texts as the server takes them, in the arena; empty names of no encoding become "". */
const char *pg_index_quote(const struct pg_index_plan *p, const char *name);
const char *pg_index_literal(const struct pg_index_plan *p, const char *text);

#endif
