/* What a table must be so that its rows can leave it. Rows are deleted by the service's own role, past row policies,
 * so nothing of a tenant's may run with the deletion (triggers, rules), and nothing but these rows may change by it
 * (foreign keys that point at them). Who wants more of it gets a reason, not rows that are half gone. */
#include "engine/postgres/lake/table.h"

#include "base/json.h"
#include "engine/postgres/model/planned.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdlib.h>

#define ASK_MS 20000
#define LOCK_MS "2s"

#define PLANNED_CODE PG_PLANNED_CODE("c.oid")

/* "orders" is of the schema public; "sales.orders" too, where there is such a table, else of the schema sales: as for
 * indexes. */
#define FIND                                                                                                        \
	"select c.oid, n.nspname, c.relname, c.relkind, c.relispartition, exists (select from pg_inherits where "   \
	"inhparent = c.oid), exists (select from pg_rewrite where ev_class = c.oid), exists (select from "          \
	"pg_trigger where tgrelid = c.oid and not tgisinternal and tgenabled <> 'D' and tgtype & 8 <> 0), exists "  \
	"(select from pg_constraint where contype = 'f' and confrelid = c.oid), " PLANNED_CODE ", case when "       \
	"c.relkind = 'r' then "                                                                                     \
	"pg_relation_size(c.oid) / current_setting('block_size')::int8 else 0 end from pg_class c join "            \
	"pg_namespace n on n.oid = relnamespace, (select %s::text as t) w where nspname !~ "                        \
	"'^(pg_|steward|information_schema$|sharded$)' and ((nspname = 'public' and relname = t) or (position('.' " \
	"in t) > 1 and nspname = split_part(t, '.', 1) and relname = substr(t, position('.' in t) + 1))) and "      \
	"relkind in ('r', 'p', 'm', 'v', 'f', 'S') and relpersistence <> 't' order by nspname = 'public' and "      \
	"relname = t desc limit 1"

enum { OID, SCHEMA, NAME, KIND, IS_PARTITION, FIRST_REFUSED = IS_PARTITION, PAGES = 10 };

/* In the order of the columns of FIND. */
static const char *const refused[] = {
        "is a partition of a table: the parts of partitioned tables cannot be archived",
        "has tables that inherit from it: such tables cannot be archived",
        "has rules: such tables cannot be archived",
        "has a trigger for rows that are deleted: it would not run, so such tables cannot be archived",
        "is a table that foreign keys point at: its rows cannot leave it",
        "has indexes or statistics made by functions of users, which would run with the rights of the service"};

/* Below all domains. */
#define COLUMNS                                                                                                      \
	"with recursive d as (select attnum n, attname, atttypid t, atttypmod m from pg_attribute where attrelid = " \
	"%s and attnum > 0 and not attisdropped union all select n, attname, typbasetype, typtypmod from d join "    \
	"pg_type on pg_type.oid = t where typtype = 'd') select attname, typname, m, typnamespace = "                \
	"'pg_catalog'::regnamespace from d join pg_type on pg_type.oid = t where typtype <> 'd' order by n"

static const char *kept(struct arena *a, char *text)
{
	const char *copy = arena_z(a, str_of(text ? text : "''")); /* no text of that encoding */
	PQfreemem(text);
	return copy;
}

const char *pg_lake_literal(PGconn *conn, struct arena *a, const char *text)
{
	return kept(a, PQescapeLiteral(conn, text, strlen(text)));
}

static const char *name_quote(PGconn *conn, struct arena *a, const char *name)
{
	return kept(a, PQescapeIdentifier(conn, name, strlen(name)));
}

static const char *cell(struct arena *a, const PGresult *rows, int row, int column)
{
	return arena_z(a, str_of(pg_value(rows, row, column)));
}

static bool is_true(const PGresult *rows, int column)
{
	return *pg_value(rows, 0, column) == 't';
}

static int table_judge(const PGresult *rows, const char *name)
{
	char kind = *pg_value(rows, 0, KIND);
	if (kind == 'p')
		pg_why_set(NULL, "%s is a partitioned table: such tables cannot be archived", name);
	else if (kind != 'r')
		pg_why_set(NULL, "%s is no table", name);
	for (size_t i = 0; kind == 'r' && i < sizeof refused / sizeof *refused; i++)
		if (is_true(rows, FIRST_REFUSED + (int)i)) {
			pg_why_set(NULL, "%s %s", name, refused[i]);
			return -EINVAL;
		}
	return kind == 'r' ? 0 : -EINVAL;
}

static int table_find(PGconn *conn, const char *name, struct arena *a, struct pg_lake_table *t)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, ASK_MS, arena_printf(a, FIND, pg_lake_literal(conn, a, name)).p, &rows);
	if (r < 0)
		return r;
	if (PQntuples(rows)) {
		t->oid = cell(a, rows, 0, OID);
		t->schema = cell(a, rows, 0, SCHEMA);
		t->name = cell(a, rows, 0, NAME);
		t->quoted = arena_printf(a, "%s.%s", name_quote(conn, a, t->schema), name_quote(conn, a, t->name)).p;
		t->pages = (uint32_t)strtoul(pg_value(rows, 0, PAGES), NULL, 10);
		r = table_judge(rows, name);
	} else {
		pg_why_set(NULL, "%s is not there", name);
		r = -ENOENT;
	}
	PQclear(rows);
	return r;
}

static int columns_take(PGconn *conn, struct arena *a, struct pg_lake_table *t)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, ASK_MS, arena_printf(a, COLUMNS, t->oid).p, &rows);
	if (r < 0)
		return r;
	t->column_count = (size_t)PQntuples(rows);
	t->columns = arena_new_array(a, struct pg_lake_column, t->column_count + 1);
	for (int i = 0; i < PQntuples(rows); i++) {
		const char *name = cell(a, rows, i, 0);
		t->columns[i] = (struct pg_lake_column){.name = name,
		                                        .quoted = name_quote(conn, a, name),
		                                        .type = cell(a, rows, i, 1),
		                                        .modifier = (int)strtol(pg_value(rows, i, 2), NULL, 10),
		                                        .ours = *pg_value(rows, i, 3) == 't'};
	}
	PQclear(rows);
	return 0;
}

/* The lock goes by the name, so what is looked at afterwards is what was locked, unless it was renamed in between. It
 * lets others read and write, and keeps statistics and indexes from being made between the look and the plan. */
int pg_lake_table_hold(PGconn *conn, const char *name, struct arena *a, struct pg_lake_table *ret_table)
{
	struct pg_lake_table found = {0}, held = {0};
	int r = table_find(conn, name, a, &found);
	if (r < 0)
		return r;
	const char *lock =
	        arena_printf(a,
	                     "set local lock_timeout = '" LOCK_MS
	                     "'; lock table only %s in share update exclusive mode; lock table only %s in row "
	                     "exclusive mode",
	                     found.quoted, found.quoted)
	                .p;
	if (pg_sql_do(conn, ASK_MS, lock) < 0)
		return PQstatus(conn) == CONNECTION_OK ? -EAGAIN : -EIO;
	r = table_find(conn, name, a, &held);
	if (r == 0 && strcmp(found.oid, held.oid) != 0)
		r = -EAGAIN;
	r = r < 0 ? r : columns_take(conn, a, &held);
	if (r == 0)
		*ret_table = held;
	return r;
}

const struct pg_lake_column *pg_lake_table_column(const struct pg_lake_table *t, struct str name)
{
	for (size_t i = 0; i < t->column_count; i++)
		if (str_is(name, t->columns[i].name))
			return &t->columns[i];
	return NULL;
}

void pg_lake_table_values(const struct pg_lake_table *t, struct arena *a, const char **ret_values,
                          const char **ret_columns)
{
	struct buf sql = {0}, json = {0};
	char type[PG_LAKE_TYPE];
	json_open(&json, '[');
	for (size_t i = 0; i < t->column_count; i++) {
		buf_z(&sql, i ? ", " : "");
		pg_lake_value_sql(&t->columns[i], &sql, type);
		json_open(&json, '{');
		json_pair_z(&json, "name", t->columns[i].name);
		json_pair_z(&json, "type", type);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	*ret_values = buf_keep(&sql, a).p;
	*ret_columns = buf_keep(&json, a).p;
}
