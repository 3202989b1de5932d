/* The interface between copy.c, which copies any store into any other, and the back ends, which read and write rows.
 * Nothing outside src/store/ includes this. */
#ifndef STEWARD_STORE_COPY_H
#define STEWARD_STORE_COPY_H

#include "store/backend.h"

#define COPY_COLUMNS_MAX 18
#define COPY_PAGE 500
/* Keys in meta. Of the target of a copy: the progress. Of its source, once the copy is complete: where it was moved to.
 */
#define META_COPY "store.copy"
#define META_MOVED "store.moved"

enum cell_type { CELL_TEXT, CELL_NUMBER, CELL_BYTES };
struct cell {
	bool null;
	int64_t number;
	struct str text;
};

/* Columns have the same order in both back ends; the columns of the key come first. */
struct copy_table {
	const char *name;
	unsigned keys;
	struct {
		const char *name;
		enum cell_type type;
	} columns[COPY_COLUMNS_MAX]; /* ends with a NULL name */
	const char *except;          /* condition for the store's own rows, which are not copied; or NULL */
};
unsigned copy_columns(const struct copy_table *t);
/* SQL statements for both sides: a page after a key, a row, the number of rows. `n` is the name of the column with a
 * job's place in the queue. */
#define COPY_SQL 1024
void copy_select(char ret_sql[COPY_SQL], const struct copy_table *t, bool after, const char *n);
void copy_insert(char ret_sql[COPY_SQL], const struct copy_table *t, const char *n);
void copy_count(char ret_sql[COPY_SQL], const struct copy_table *t);

/* One side of a copy. Errors are reported on stderr. */
struct copy_side {
	const struct copy_ops *ops;
	struct tx *tx;
	struct store *store; /* PostgreSQL: the store that a connection needs */
	int lock;            /* SQLite: descriptor of the service's lock, held during the copy; or -1 */
};

struct copy_ops {
	int (*open)(const char *place, struct copy_side *side);
	void (*close)(struct copy_side *side);
	int (*busy)(struct copy_side *side); /* -EBUSY, with a message: a service uses it */
	int (*count)(struct copy_side *side, const struct copy_table *t, int64_t *ret_count);
	/* Up to COPY_PAGE rows after the key `after` (NULL: from the start), in the order of the key. */
	int (*read)(struct copy_side *side, const struct copy_table *t, const struct cell *after, struct arena *a,
	            struct cell **ret_cells, size_t *ret_rows);
	/* In one transaction, with the mark in meta; an empty mark is removed. */
	int (*write)(struct copy_side *side, const struct copy_table *t, const struct cell *cells, size_t rows,
	             struct str mark);
	/* A note in meta, by one of the keys above; -ENOENT: none. */
	int (*noted)(struct copy_side *side, struct arena *a, const char *key, struct str *ret_value);
	int (*note)(struct copy_side *side, const char *key, struct str value); /* empty: it is removed */
	/* The same, unless another value is there already: -EEXIST. */
	int (*claim)(struct copy_side *side, const char *key, struct str value);
};
/* Says that the store was moved, and where to; -EBUSY. */
must_check int copy_moved_refuse(struct str moved);
extern const struct copy_ops sqlite_copy_ops, postgres_copy_ops;

#endif
