/* What the clusters of an instance's stores have: databases, tables, columns. */
#ifndef STEWARD_ENGINE_POSTGRES_FEDERATION_REMOTE_H
#define STEWARD_ENGINE_POSTGRES_FEDERATION_REMOTE_H

#include "engine/postgres/model/model.h"

struct pg_remote_column {
	const char *name;
	const char *type; /* as a statement has it; nothing but a type's name */
	const char *base; /* PostgreSQL's name of it: "int4" */
};

struct pg_remote_table {
	const char *schema, *name;
	const char *full; /* "orders" of the schema public; "sales.orders" */
	struct pg_remote_column *columns;
	size_t column_count;
};

/* A database of a cluster. */
struct pg_remote {
	struct pg_remote *next;
	size_t store, number;
	const char *database;
	struct pg_remote_table *tables;
	size_t table_count;
};

struct pg_remotes {
	struct engine *engine;
	const struct engine_federation *want;
	struct arena *arena;
	struct pg_remote *first;
	size_t count;
};

/* Users come to the cluster through endpoints, from now on. -ENOENT: this host has no such cluster; -EAGAIN: not
 * now. */
must_check int pg_remote_admit(struct engine *e, const char *cluster_id, struct arena *a, const char **ret_why);
/* And through none any more. */
void pg_remote_dismiss(struct engine *e, const char *group_id);
/* The databases of a store's cluster. */
must_check int pg_remote_databases(struct pg_remotes *all, size_t store, const char *const **ret_names,
                                   size_t *ret_count, const char **ret_why);
/* One of them, asked once. */
must_check int pg_remote_get(struct pg_remotes *all, size_t store, const char *database, const struct pg_remote **ret,
                             const char **ret_why);
/* Where its servers are, as options of a foreign server; values are quoted. */
must_check int pg_remote_options(struct pg_remotes *all, const struct pg_remote *of, struct buf *b,
                                 const char **ret_why);

#endif
