/* Between copy.c, which copies any store into any other, and the back ends, which read and write rows. Nothing outside
 * src/store/ includes this. */
#ifndef STEWARD_STORE_COPY_H
#define STEWARD_STORE_COPY_H

#include "store/backend.h"

#define COPY_COLUMNS_MAX 18
#define COPY_PAGE 500
/* Key in meta, of a store that is being copied into: how far it is. */
#define META_COPY "store.copy"

enum cell_type { CELL_TEXT, CELL_NUMBER, CELL_BYTES };
struct cell {
	bool null;
	int64_t number;
	struct str text;
};

/* Columns are in the same order everywhere, those of the key first. */
struct copy_table {
	const char *name;
	unsigned keys;
	struct {
		const char *name;
		enum cell_type type;
	} columns[COPY_COLUMNS_MAX]; /* ends with a NULL name */
	const char *except;          /* rows that are the store's own business, as a condition; or NULL */
};
unsigned copy_columns(const struct copy_table *t);
/* The statements of both sides: a page after a key, a row, their number. `n`: what a job's place in line is called there. */
#define COPY_SQL 1024
void copy_select(char ret_sql[COPY_SQL], const struct copy_table *t, bool after, const char *n);
void copy_insert(char ret_sql[COPY_SQL], const struct copy_table *t, const char *n);
void copy_count(char ret_sql[COPY_SQL], const struct copy_table *t);

/* One end of a copy. Errors are told on stderr. */
struct copy_side {
	const struct copy_ops *ops;
	struct tx *tx;
	struct store *store; /* PostgreSQL's: what a connection hangs on */
	int lock;            /* SQLite's: the descriptor of a service's lock that is held meanwhile, or -1 */
};

struct copy_ops {
	int (*open)(const char *place, struct copy_side *side);
	void (*close)(struct copy_side *side);
	int (*busy)(struct copy_side *side); /* -EBUSY, with a sentence: a service runs on it */
	int (*count)(struct copy_side *side, const struct copy_table *t, int64_t *ret_count);
	/* Up to COPY_PAGE rows after the key `after` (NULL: from the start), in the order of the key. */
	int (*read)(struct copy_side *side, const struct copy_table *t, const struct cell *after, struct arena *a,
	            struct cell **ret_cells, size_t *ret_rows);
	/* In one transaction, with the mark in meta; an empty mark takes it away. */
	int (*write)(struct copy_side *side, const struct copy_table *t, const struct cell *cells, size_t rows,
	             struct str mark);
	int (*mark)(struct copy_side *side, struct arena *a, struct str *ret_mark); /* -ENOENT: none */
};
extern const struct copy_ops sqlite_copy_ops, postgres_copy_ops;

#endif
