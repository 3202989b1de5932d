/* Advice: statements that took long, indexes that would help, indexes that could go, and what stands out in schemas.
 * All of it is asked from any thread but a loop: it waits for servers, a few seconds at most in all. -ENOENT: there
 * is no such cluster or node. -EAGAIN: it does not run, or did not answer in time. */
#ifndef STEWARD_ENGINE_ADVICE_H
#define STEWARD_ENGINE_ADVICE_H

#include "engine/core.h"

/* How long a statement takes that is slow, where nobody manages it, which is also the least; and at first, where it is
 * managed. */
#define ENGINE_SLOW_FIXED_MS 100
#define ENGINE_SLOW_MANAGED_MS 200

#define ENGINE_INDEX_COLUMNS_MAX 4

/* The tables that are asked about, by engine_namespace(); none: all. */
struct engine_namespaces {
	const struct str *list;
	size_t count;
};

/* A statement that took longer than the threshold. */
struct engine_slow {
	int64_t at_ms;
	double ms;
	const char *namespace;            /* the table of which it read the most; "": none */
	const char *operation;            /* "select", "insert", "update", "delete", "merge"; "": another */
	struct str line;                  /* as the server wrote it down; with `redact` without what the client sent */
	int64_t examined, keys, returned; /* rows read from tables, and through indexes; rows of the result */
	bool sorts, by_index;             /* it sorts; every table was read by an index */
	bool by_user;                     /* not by the service */
	int64_t query;                    /* the statement without its literals, as a number; 0: not known */
	const char *plan;                 /* how it was executed, a node a line, without conditions; or NULL */
};

struct engine_slow_question {
	const char *cluster_id, *node;
	int64_t from_ms, to_ms;
	struct engine_namespaces of;
	size_t most; /* the newest */
	bool redact;
};

/* Statements of one kind that one user has sent to a node, and what they took. Of a node the ENGINE_STATEMENTS_MAX
 * that took longest. */
#define ENGINE_STATEMENTS_MAX 100
#define ENGINE_STATEMENT_BYTES 4096 /* longer ones are left out */
struct engine_statement {
	const char *node, *database, *user;
	int64_t query;    /* the statement without its literals, as a number */
	const char *text; /* with $1 in the place of values */
	int64_t calls, rows;
	double ms; /* of all calls */
};

struct engine_statements {
	struct engine_statement *list;
	size_t count;
	const char *missing; /* what the host lacks to count them, with what to do; NULL: nothing */
};

/* What statements of one kind ask of one table: comparisons of columns, and the order that they want ("sort"). */
struct engine_condition {
	int64_t query;
	const char *const *columns, *const *operators; /* column_count of each */
	size_t column_count;
	int64_t count;        /* how often */
	double examined;      /* rows of tables that are read as a whole, for each that was wanted */
	double before, after; /* what the planner expects it to cost: now, and with the index */
};

struct engine_suggestion {
	const char *namespace, *database, *schema, *table;
	const char *columns[ENGINE_INDEX_COLUMNS_MAX];
	size_t column_count;
	double row_bytes, index_bytes;
	struct engine_condition *shapes; /* those that it makes cheaper */
	size_t shape_count;
};

struct engine_suggestions {
	struct engine_suggestion *list; /* the most useful first */
	size_t count;
	int64_t since_ms;    /* what they rest on was counted from then on; 0: nothing was */
	const char *missing; /* what the host lacks for better ones, with what to do; NULL: nothing */
};

enum engine_drop_reason { DROP_HIDDEN, DROP_REDUNDANT, DROP_UNUSED };

struct engine_drop {
	enum engine_drop_reason reason;
	const char *namespace, *name;
	const char *columns; /* JSON: [{"customer": 1}, {"at": -1}] */
	int64_t uses, bytes, since_ms;
	unsigned shard;
};

/* What stands out in a schema. */
enum engine_note_kind {
	NOTE_WIDE_ROWS,      /* value: average bytes */
	NOTE_LONG_ARRAYS,    /* value: elements; `what`: the column */
	NOTE_MANY_INDEXES,   /* value: how many */
	NOTE_MANY_TABLES,    /* value: how many; of the whole cluster: namespace NULL */
	NOTE_CASELESS_SEARCH /* value: how often; `what`: the column */
};

struct engine_note {
	enum engine_note_kind kind;
	const char *namespace, *what;
	int64_t value;
};

struct engine_notes {
	struct engine_note *list;
	size_t count;
	const char *missing;
};

struct engine_advice_ops {
	/* Of one node, newest first. */
	int (*slow)(struct engine *e, const struct engine_slow_question *q, struct arena *a,
	            struct engine_slow **ret_list, size_t *ret_count);
	/* What clients have sent to the nodes that run, since each began to count: figures only grow until then. */
	int (*statements)(struct engine *e, const char *cluster_id, struct arena *a,
	                  struct engine_statements *ret_statements);
	/* From these statements, which may be of nodes that no longer run, and for these nodes; none: all. Every
	 * suggestion was tried on the planner of the database that it is for, and makes something cheaper there. */
	int (*indexes)(struct engine *e, const char *cluster_id, const struct str *nodes, size_t node_count,
	               const struct engine_statements *statements, const struct engine_namespaces *of, struct arena *a,
	               struct engine_suggestions *ret_suggestions);
	/* Of the whole cluster. */
	int (*drops)(struct engine *e, const char *cluster_id, struct arena *a, struct engine_drop **ret_list,
	             size_t *ret_count);
	int (*notes)(struct engine *e, const char *cluster_id, struct arena *a, struct engine_notes *ret_notes);
};

/* --- common.c */
/* The text, in the arena; where it is no UTF-8, which names in a database need not be, with question marks. */
const char *engine_shown(struct arena *a, const char *text);
/* "shop.orders"; of a table in another schema than `public`: "shop.archive.orders". In the arena. */
const char *engine_namespace(struct arena *a, const char *database, const char *schema, const char *table);
/* From when on a statement is slow where a transaction takes so long on the average: twenty times that, from 100 ms to
 * 5 s. It moves in steps of one half from where it is, so that small changes of the load leave it alone. */
unsigned engine_slow_threshold(double mean_ms, unsigned now_ms);
bool engine_namespace_is_of(const struct engine_namespaces *of, const char *namespace);

#endif
