/* The statement that makes an index, from what is wanted and what the database has.
 *
 * It consists of names, quoted, of constants, and of functions and operators of PostgreSQL itself: nothing that a
 * tenant has written is part of it as text. Conditions compare with constants of types of PostgreSQL, so that no cast
 * or operator of a tenant's is called; the session looks for names in pg_catalog alone. What types of columns bring
 * along is run by the server as the table's owner, and can change nothing of the session.
 *
 * No constant may be of a tenant's type, not even of an enumeration: the server reads constants before it becomes the
 * owner, and while the statement waits for the table's lock another type can take the name, whose input runs a
 * check. */
#include "engine/postgres/sql/index_sql.h"

#include "base/buf.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/sql/search_plan.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ASK_MS 5000
#define NAME_MAX_BYTES 63

int pg_index_fault(struct pg_index_plan *p, const char *field, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(p->why, sizeof p->why, format, args);
	va_end(args);
	p->field = field;
	return -EINVAL;
}

static const char *kept(const struct pg_index_plan *p, char *text)
{
	const char *copy = arena_z(p->arena, str_of(text ? text : ""));
	PQfreemem(text);
	return copy;
}

const char *pg_index_quote(const struct pg_index_plan *p, const char *name)
{
	return kept(p, PQescapeIdentifier(p->conn, name, strlen(name)));
}

const char *pg_index_literal(const struct pg_index_plan *p, const char *text)
{
	return kept(p, PQescapeLiteral(p->conn, text, strlen(text)));
}

/* --- the table */

/* "orders" is of the schema public; "sales.orders" too, where there is such a table, else of the schema sales. */
#define TABLE                                                                                                         \
	"select c.oid, n.nspname, c.relname, c.relkind from pg_class c join pg_namespace n on n.oid = relnamespace, " \
	"(select %s::text as t) w where nspname !~ '^(pg_|steward|information_schema$|sharded$)' and ((nspname = "    \
	"'public' and relname = t) or (position('.' in t) > 1 and nspname = split_part(t, '.', 1) and relname = "     \
	"substr(t, position('.' in t) + 1))) and relkind in ('r', 'p', 'm', 'v', 'f', 'S') and relpersistence <> "    \
	"'t' order by nspname = 'public' and relname = t desc limit 1"

static int rows_ask(struct pg_index_plan *p, struct buf *sql, PGresult **ret_rows)
{
	buf_c(sql, 0);
	int r = pg_sql_rows(p->conn, ASK_MS, sql->p, ret_rows);
	buf_free(sql);
	return r;
}

static const char *cell(struct pg_index_plan *p, PGresult *rows, int column)
{
	return arena_z(p->arena, str_of(pg_value(rows, 0, column)));
}

static int spread_look(struct pg_index_plan *p)
{
	struct buf sql = {0};
	PGresult *rows;
	buf_printf(&sql,
	           "select case when to_regclass('steward_parts.spread') is null then false else exists (select from "
	           "pg_inherits i join pg_foreign_table f on f.ftrelid = inhrelid where inhparent = %s) end",
	           p->table.oid);
	int r = rows_ask(p, &sql, &rows);
	if (r < 0)
		return r;
	p->table.spread = strcmp(pg_value(rows, 0, 0), "t") == 0;
	PQclear(rows);
	return 0;
}

static int table_find(struct pg_index_plan *p)
{
	struct buf sql = {0};
	PGresult *rows;
	buf_printf(&sql, TABLE, pg_index_literal(p, p->want->table));
	int r = rows_ask(p, &sql, &rows);
	if (r < 0)
		return r;
	char kind = 0;
	if (PQntuples(rows)) {
		p->table = (struct pg_index_table){cell(p, rows, 0), cell(p, rows, 1), cell(p, rows, 2), false};
		kind = *pg_value(rows, 0, 3);
	}
	PQclear(rows);
	if (!kind)
		return pg_index_fault(p, "collection", "the database has no such table");
	if (kind != 'r' && kind != 'p' && kind != 'm')
		return pg_index_fault(p, "collection", "is no table: only tables and materialized views have indexes");
	/* A reader cannot lock one, so that its columns could change under a query. */
	if (kind == 'm' && p->want->search)
		return pg_index_fault(p, "collection", "is a materialized view: only tables have search indexes");
	if (kind == 'p')
		r = spread_look(p);
	if (r == 0 && kind == 'p' && !p->table.spread)
		return pg_index_fault(p, "collection",
		                      "is a partitioned table, on which no index can be built without keeping writers "
		                      "out: build it on each of its partitions");
	p->on = arena_printf(p->arena, "%s.%s", pg_index_quote(p, p->table.schema), pg_index_quote(p, p->table.name)).p;
	return r;
}

/* --- its columns */

#define COLUMN                                                                                                     \
	"select b.typname, b.typcategory, b.typnamespace = 'pg_catalog'::regnamespace, a.attcollation <> 0, "      \
	"format_type(b.oid, -1), b.oid = a.atttypid from pg_attribute a, lateral (with recursive d(oid, base, n) " \
	"as (select y.oid, y.typbasetype, 0 from pg_type y where y.oid = a.atttypid union all select y.oid, "      \
	"y.typbasetype, n + 1 from d join pg_type y on y.oid = d.base where d.base <> 0) select y.* from d join "  \
	"pg_type y on y.oid = d.oid order by n desc limit 1) b where a.attrelid = %s and a.attname = %s and "      \
	"a.attnum > 0 and not a.attisdropped"

int pg_index_column(struct pg_index_plan *p, const char *name, struct pg_index_column *ret_column)
{
	struct buf sql = {0};
	PGresult *rows;
	buf_printf(&sql, COLUMN, p->table.oid, pg_index_literal(p, name));
	int r = rows_ask(p, &sql, &rows);
	if (r < 0)
		return r;
	if (PQntuples(rows)) {
		*ret_column = (struct pg_index_column){.sql = pg_index_quote(p, name),
		                                       .type = cell(p, rows, 4),
		                                       .category = *pg_value(rows, 0, 1),
		                                       .ours = *pg_value(rows, 0, 2) == 't',
		                                       .ordered = *pg_value(rows, 0, 3) == 't',
		                                       .direct = *pg_value(rows, 0, 5) == 't'};
		snprintf(ret_column->name, sizeof ret_column->name, "%s", pg_value(rows, 0, 0));
	}
	r = PQntuples(rows) ? 0 : -ENOENT;
	PQclear(rows);
	return r;
}

static bool is_document(const struct pg_index_column *c)
{
	return strcmp(c->name, "json") == 0 || strcmp(c->name, "jsonb") == 0;
}

/* The text that lies in a document at NAME.NAME. */
static void path_make(struct pg_index_plan *p, struct pg_index_column *c, struct str path)
{
	struct buf b = {0};
	struct str part;
	bool more = true;
	buf_printf(&b, "(%s", c->sql);
	while (more) {
		more = str_cut(path, '.', &part, &path);
		buf_printf(&b, " %s %s", more ? "->" : "->>", pg_index_literal(p, arena_z(p->arena, part)));
	}
	buf_c(&b, ')');
	c->sql = buf_keep(&b, p->arena).p;
	c->type = "text";
	c->category = 'S';
	c->ours = c->ordered = true;
	snprintf(c->name, sizeof c->name, "text");
}

static int column_find(struct pg_index_plan *p, const char *field, const char *place,
                       struct pg_index_column *ret_column)
{
	struct str name, path;
	int r = strlen(field) > NAME_MAX_BYTES ? -ENOENT : pg_index_column(p, field, ret_column);
	if (r == -ENOENT && str_cut(str_of(field), '.', &name, &path) && name.n && name.n <= NAME_MAX_BYTES) {
		r = pg_index_column(p, arena_z(p->arena, name), ret_column);
		if (r == 0 && !is_document(ret_column))
			return pg_index_fault(p, place, "the column \"%.*s\" holds no documents (jsonb)",
			                      STR_ARG(name));
		if (r == 0)
			path_make(p, ret_column, path);
	}
	return r == -ENOENT ? pg_index_fault(p, place, "the table has no column \"%.80s\"", field) : r;
}

/* --- keys */

static const char *key_path(struct pg_index_plan *p, size_t key)
{
	return arena_printf(p->arena, "keys[%zu]", key).p;
}

/* Types of PostgreSQL whose values have neither an order nor a hash. */
static bool is_plain(const struct pg_index_column *c)
{
	return c->category != 'G' && strcmp(c->name, "json") != 0 && strcmp(c->name, "xml") != 0;
}

static int key_check(struct pg_index_plan *p, size_t i, const struct pg_index_column *c)
{
	switch (p->want->keys[i].kind) {
	case KEY_TEXT:
		return c->category == 'S'
		               ? 0
		               : pg_index_fault(p, key_path(p, i), "is no text, but of the type %s", c->type);
	case KEY_PLACE:
		return c->category == 'G'
		               ? 0
		               : pg_index_fault(p, key_path(p, i), "holds no points, but is of the type %s", c->type);
	case KEY_WILDCARD:
		return strcmp(c->name, "jsonb") == 0
		               ? 0
		               : pg_index_fault(p, key_path(p, i), "holds no documents (jsonb), but is of the type %s",
		                                c->type);
	default:
		return is_plain(c) ? 0
		                   : pg_index_fault(p, key_path(p, i), "is of the type %s, whose values have no order",
		                                    c->type);
	}
}

static void key_write(struct pg_index_plan *p, struct buf *b, size_t i, const struct pg_index_column *c)
{
	enum engine_key kind = p->want->keys[i].kind;
	bool text = kind == KEY_TEXT;
	if (text)
		buf_printf(b, "%scoalesce(%s::text, '')", i ? " || ' ' || " : "", c->sql);
	else
		buf_printf(b, "%s%s", i ? ", " : "", c->sql);
	if (p->collation && c->ordered && (kind == KEY_ASCENDING || kind == KEY_DESCENDING))
		buf_printf(b, " collate %s", p->collation);
	if (kind == KEY_DESCENDING)
		buf_z(b, " desc");
}

static int keys_make(struct pg_index_plan *p, struct buf *b, struct buf *there)
{
	static const char *const methods[] = {
	        [KEY_ASCENDING] = "btree", [KEY_DESCENDING] = "btree", [KEY_HASHED] = "hash",
	        [KEY_TEXT] = "gin",        [KEY_PLACE] = "gist",       [KEY_WILDCARD] = "gin"};
	const struct engine_index *w = p->want;
	bool text = w->keys[0].kind == KEY_TEXT;
	int r = 0;
	buf_printf(b, "using %s (", methods[w->keys[0].kind]);
	if (text)
		buf_printf(b, "to_tsvector(%s::regconfig, ", pg_index_literal(p, w->language));
	for (size_t i = 0; r == 0 && i < w->key_count; i++) {
		struct pg_index_column c;
		r = column_find(p, w->keys[i].field, key_path(p, i), &c);
		if (r == 0)
			r = key_check(p, i, &c);
		if (r < 0)
			break;
		key_write(p, b, i, &c);
		buf_printf(there, "%s%s is not null", i ? " or " : "", c.sql);
	}
	buf_z(b, text ? "))" : ")");
	return r;
}

/* --- conditions */

static int value_check(struct pg_index_plan *p, const char *place, const struct pg_index_column *c, const char *value)
{
	struct buf sql = {0};
	PGresult *rows;
	buf_printf(&sql, "select cast(%s as %s)", pg_index_literal(p, value), c->type);
	int r = rows_ask(p, &sql, &rows);
	if (r == 0)
		PQclear(rows);
	return r == -EPROTO ? pg_index_fault(p, place, "\"%.60s\" is no value of the type %s", value, c->type) : r;
}

static int comparison_write(struct pg_index_plan *p, struct buf *b, const char *place, const struct pg_index_column *c,
                            const struct engine_index_test *t)
{
	static const char *const operators[] = {[TEST_EQUAL] = "=",
	                                        [TEST_LESS] = "<",
	                                        [TEST_AT_MOST] = "<=",
	                                        [TEST_MORE] = ">",
	                                        [TEST_AT_LEAST] = ">="};
	int r = 0;
	if (!c->ours || !is_plain(c))
		return pg_index_fault(p, place, "is of the type %s, which conditions cannot compare", c->type);
	for (size_t i = 0; r == 0 && i < t->value_count; i++) {
		r = value_check(p, place, c, t->values[i]);
		buf_printf(b, "%s%s operator(pg_catalog.%s) cast(%s as %s)", i ? " or " : "", c->sql,
		           operators[t->kind], pg_index_literal(p, t->values[i]), c->type);
	}
	return r;
}

static int test_write(struct pg_index_plan *p, struct buf *b, const struct engine_index_test *t)
{
	const char *place = arena_printf(p->arena, "options.partialFilterExpression.%.80s", t->field).p;
	struct pg_index_column c;
	int r = column_find(p, t->field, place, &c);
	if (r < 0)
		return r;
	buf_z(b, "(");
	if (t->kind == TEST_THERE || t->kind == TEST_ABSENT)
		buf_printf(b, "%s is %snull", c.sql, t->kind == TEST_THERE ? "not " : "");
	else
		r = comparison_write(p, b, place, &c, t);
	buf_z(b, ")");
	return r;
}

static int conditions_make(struct pg_index_plan *p, struct buf *b, const struct buf *there)
{
	const struct engine_index *w = p->want;
	int r = 0;
	if (w->sparse)
		buf_printf(b, " where (%.*s)", (int)there->n, there->p);
	for (size_t i = 0; r == 0 && i < w->test_count; i++) {
		buf_z(b, i || w->sparse ? " and " : " where ");
		r = test_write(p, b, &w->tests[i]);
	}
	return r;
}

/* --- how text is ordered */

/* The service makes what PostgreSQL does not bring along: in the schema of the table, under the locale as a name, so
 * that queries can name it. */
static int collation_own(struct pg_index_plan *p)
{
	const struct engine_index *w = p->want;
	char name[NAME_MAX_BYTES + 1];
	struct buf sql = {0};
	PGresult *rows;
	if (p->table.spread)
		return pg_index_fault(p, "collation", "a table that is spread over shards takes a locale alone");
	if (strlen(w->collation) > NAME_MAX_BYTES) /* cut short, it would be the name of others too */
		return pg_index_fault(p, "collation", "has more options than fit into its name: leave some out");
	snprintf(name, sizeof name, "%s", w->collation);
	p->collation = arena_printf(p->arena, "%s.%s", pg_index_quote(p, p->table.schema), pg_index_quote(p, name)).p;
	buf_printf(&sql,
	           "select pg_get_userbyid(collowner) = '" PG_SUPER "' from pg_collation where collname = %s and "
	           "collnamespace = %s::regnamespace",
	           pg_index_literal(p, name), pg_index_literal(p, pg_index_quote(p, p->table.schema)));
	int r = rows_ask(p, &sql, &rows);
	if (r < 0)
		return r;
	bool there = PQntuples(rows), ours = there && *pg_value(rows, 0, 0) == 't';
	PQclear(rows);
	if (there && !ours)
		return pg_index_fault(p, "collation", "the schema has a collation \"%s\" that the service has not made",
		                      name);
	if (!there)
		p->make =
		        arena_printf(p->arena, "create collation %s (provider = icu, locale = %s, deterministic = %s)",
		                     p->collation, pg_index_literal(p, w->collation),
		                     w->collation_loose ? "false" : "true")
		                .p;
	return 0;
}

static int collation_find(struct pg_index_plan *p)
{
	const struct engine_index *w = p->want;
	int64_t there = 0;
	if (!w->collation)
		return 0;
	if (!*w->collation) {
		p->collation = "pg_catalog.\"C\"";
		return 0;
	}
	const char *known = arena_printf(p->arena, "%s-x-icu", w->collation).p;
	struct buf sql = {0};
	buf_printf(
	        &sql,
	        "select count(*) from pg_collation where collname = %s and collnamespace = 'pg_catalog'::regnamespace "
	        "and collprovider = 'i'",
	        pg_index_literal(p, known));
	buf_c(&sql, 0);
	int r = w->collation_plain ? pg_sql_int(p->conn, ASK_MS, sql.p, &there) : 0;
	buf_free(&sql);
	if (r < 0 || !there)
		return r < 0 ? r : collation_own(p);
	p->collation = arena_printf(p->arena, "pg_catalog.%s", pg_index_quote(p, known)).p;
	return 0;
}

int pg_index_plan(struct pg_index_plan *p)
{
	struct buf body = {0}, there = {0};
	int r = table_find(p);
	if (p->want->search)
		return r < 0 ? r : pg_search_plan(p);
	bool worded = p->want->keys[0].kind == KEY_TEXT && strcmp(p->want->language, "simple") != 0;
	/* The router would refuse it, when the shards have built it (is_plain). */
	if (r == 0 && p->table.spread && worded)
		r = pg_index_fault(p, "options.default_language",
		                   "a table that is spread over shards takes text without a language alone: none");
	if (r == 0 && p->table.spread && p->want->unique)
		r = pg_index_fault(p, "options.unique",
		                   "a table that is spread over shards cannot have another unique index");
	if (r == 0)
		r = collation_find(p);
	if (r == 0)
		r = keys_make(p, &body, &there);
	if (r == 0)
		r = conditions_make(p, &body, &there);
	p->body = buf_keep(&body, p->arena).p;
	buf_free(&there);
	return r;
}
