/* Resource policies: a subset of the Cedar language, parsed, checked against what this service has, and evaluated.
 *
 * Pure code: no store, no calls, no clock. Everything is bounded: the text, the nesting, the number of statements and
 * the steps of one evaluation. Results live in the given arena; parsed statements borrow the text. */
#ifndef STEWARD_POLICY_POLICY_H
#define STEWARD_POLICY_POLICY_H

#include "base/arena.h"
#include "policy/value.h"

#define POLICY_TEXT_MAX 16384
#define POLICY_STATEMENTS_MAX 32
#define POLICY_DEPTH_MAX 100    /* of expressions */
#define POLICY_FIELDS_MAX 100   /* of a record */
#define POLICY_STEPS_MAX 200000 /* of one statement and request */
#define POLICY_FAULTS_MAX 8

/* The place, counted from 1 in characters, and what would be right. */
struct policy_fault {
	unsigned line, column;
	struct str text;
};

struct policy_faults {
	struct policy_fault list[POLICY_FAULTS_MAX];
	size_t count; /* at most POLICY_FAULTS_MAX: checking stops there */
};

enum expr_kind {
	EXPR_LITERAL,  /* value */
	EXPR_VARIABLE, /* variable */
	EXPR_AND,      /* two or more children */
	EXPR_OR,
	EXPR_NOT,
	EXPR_NEGATE,
	EXPR_IF, /* condition, then, else */
	EXPR_EQUAL,
	EXPR_UNEQUAL,
	EXPR_LESS,
	EXPR_LESS_EQUAL,
	EXPR_GREATER,
	EXPR_GREATER_EQUAL,
	EXPR_IN,
	EXPR_IS,        /* name: the type */
	EXPR_HAS,       /* name */
	EXPR_ATTRIBUTE, /* name */
	EXPR_LIKE,      /* subject, then the literal pieces between the wildcards */
	EXPR_SET,
	EXPR_RECORD, /* children with their name as key */
	EXPR_IP,     /* ip(text) */
	EXPR_METHOD  /* receiver, then the argument if any; method */
};

enum policy_variable { VARIABLE_PRINCIPAL, VARIABLE_ACTION, VARIABLE_RESOURCE, VARIABLE_CONTEXT };

enum policy_method {
	CALL_CONTAINS,
	CALL_CONTAINS_ALL,
	CALL_CONTAINS_ANY,
	CALL_IS_EMPTY,
	CALL_IS_IN_RANGE,
	CALL_IS_IPV4,
	CALL_IS_IPV6,
	CALL_IS_LOOPBACK,
	CALL_IS_MULTICAST
};

struct policy_expr {
	enum expr_kind kind;
	unsigned line, column, depth;
	enum policy_variable variable;
	enum policy_method method;
	struct str name, key; /* key: of a record's field */
	struct policy_value value;
	struct policy_expr *first, *last, *next; /* children; next sibling */
};

struct policy_statement {
	bool forbids;
	unsigned line, column;
	struct policy_expr *scope[3];   /* principal, action, resource; NULL: any */
	struct policy_expr *conditions; /* in order; an `unless` is an EXPR_NOT with `key` "unless" */
	struct policy_statement *next;
};

struct policy_entity {
	struct policy_uid uid;
	const struct policy_uid *parents;
	size_t parent_count;
	struct policy_value attributes; /* a record */
};

struct policy_request {
	struct policy_uid principal, action, resource;
	struct policy_value context;
	const struct policy_entity *entities;
	size_t entity_count;
};

/* parser.c: one or more statements. -EINVAL with the first fault; -E2BIG, with a fault too, beyond a bound. */
must_check int policy_parse(struct arena *a, struct str text, struct policy_statement **ret_statements,
                            struct policy_fault *ret_fault);

/* validate.c: checks names, types and guards against schema.c, and replaces aliases of entity types by their names.
 * Adds to faults. */
void policy_validate(struct arena *a, struct policy_statement *statements, struct policy_faults *faults);

/* evaluate.c */
enum policy_outcome {
	POLICY_APPLIES,
	POLICY_SKIPPED,  /* its scope or conditions do not hold */
	POLICY_ERROR,    /* cannot be evaluated for this request: does not apply, as in Cedar */
	POLICY_EXHAUSTED /* ran out of steps: the result is unknown, so a forbid must be taken as applying */
};
/* Subtracts its steps from *steps, which several evaluations share; uses at most POLICY_STEPS_MAX. The last two
 * outcomes set ret_fault. */
enum policy_outcome policy_evaluate(struct arena *a, const struct policy_statement *s, const struct policy_request *r,
                                    unsigned *steps, struct policy_fault *ret_fault);

/* Whether it reads that attribute of the context. */
bool policy_mentions(const struct policy_statement *s, const char *attribute);
/* Whether it reads context.RECORD.ATTRIBUTE, or the whole record; attribute NULL: anything of the record. A mere `has`
 * of the record does not count. */
bool policy_reads(const struct policy_statement *s, const char *record, const char *attribute);
/* Whether its result depends on who asks. */
bool policy_reads_principal(const struct policy_statement *s);

#endif
