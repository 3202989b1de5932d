/* The schema steward_search of a database: made, brought up to date, and looked through.
 *
 * Tenants can build on the functions: views, rules, conditions and indexes of theirs call them. So a function is
 * replaced where it is, and its identity stays. One that cannot be replaced, because what it takes or gives has
 * changed, is renamed to NAME_OID, and another takes its name: what stands on it goes on with the old one. What nobody
 * stands on is dropped. So no object of a tenant's keeps a newer service's functions out of a database. */
#include "engine/postgres/sql/search_schema.h"

#include "base/buf.h"
#include "base/log.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/search/analysis.h"
#include "engine/postgres/search/functions.h"
#include "engine/postgres/search/operators.h"
#include "engine/postgres/search/scores.h"
#include "engine/postgres/search/vectors.h"
#include "engine/postgres/sql/sql.h"

#include <stdio.h>
#include <string.h>

#define ASK_MS 5000
#define MAKE_MS 30000
#define SEARCH_FUNCTION "create or replace function steward_search."

/* --- the functions */

/* Ours in the schema: all but those of extensions. */
#define OURS                                                                                    \
	"select p.oid, p.proname, age(p.xmin) from pg_proc p where pronamespace = "             \
	"'steward_search'::regnamespace and not exists (select from pg_depend where classid = " \
	"'pg_proc'::regclass and objid = p.oid and deptype = 'e')"

/* Another signature is another function, beside which calls would be ambiguous: all but the one that was just made, or
 * replaced, lose the name. */
#define PUT                                                                                                   \
	"do $put$ declare x record; made text := %s; called text := %s;\n"                                    \
	"begin\n"                                                                                             \
	"begin\n"                                                                                             \
	"  execute made;\n"                                                                                   \
	"exception when invalid_function_definition then\n"                                                   \
	"  for x in select o.oid::regprocedure f, o.oid n from (" OURS ") o where o.proname = called loop\n"  \
	"    execute format('alter function %%s rename to %%I', x.f, left(called, 40) || '_' || x.n);\n"      \
	"  end loop;\n"                                                                                       \
	"  execute made;\n"                                                                                   \
	"end;\n"                                                                                              \
	"for x in select o.oid::regprocedure f, o.oid n from (" OURS ") o where o.proname = called order by " \
	"o.age offset 1 loop\n"                                                                               \
	"  execute format('alter function %%s rename to %%I', x.f, left(called, 40) || '_' || x.n);\n"        \
	"end loop;\n"                                                                                         \
	"end $put$"

#define TIDY                                                                                                 \
	"do $tidy$ declare x record;\n"                                                                      \
	"begin\n"                                                                                            \
	"for x in select o.oid::regprocedure f from (" OURS ") o where o.proname <> all (%s::text[]) loop\n" \
	"  begin\n"                                                                                          \
	"    execute format('drop function %%s', x.f);\n"                                                    \
	"  exception when dependent_objects_still_exist then null;\n"                                        \
	"  end;\n"                                                                                           \
	"end loop;\n"                                                                                        \
	"end $tidy$"

/* A literal in the arena. */
static const char *quoted(struct arena *a, PGconn *conn, const char *text)
{
	char *made = PQescapeLiteral(conn, text, strlen(text));
	const char *copy = arena_z(a, str_of(made ? made : "''"));
	PQfreemem(made);
	return copy;
}

static struct str name_of(const char *function)
{
	const char *name = function + strlen(SEARCH_FUNCTION);
	return (struct str){name, strcspn(name, "(")};
}

/* Adds its name to those that stay. */
static int function_put(struct arena *a, PGconn *conn, const char *function, struct buf *names)
{
	struct str name = name_of(function);
	const char *called = arena_z(a, name);
	struct str sql = arena_printf(a, PUT, quoted(a, conn, function), quoted(a, conn, called));
	buf_printf(names, "%s%s", names->n ? "," : "", called);
	return pg_sql_do(conn, MAKE_MS, sql.p);
}

static int functions_put(struct arena *a, PGconn *conn, const char *const *list, struct buf *names)
{
	int r = 0;
	for (size_t i = 0; r == 0 && list[i]; i++)
		r = function_put(a, conn, list[i], names);
	return r;
}

static int functions_make(struct arena *a, PGconn *conn)
{
	struct buf names = {0};
	int r = functions_put(a, conn, pg_search_analysis_sql, &names);
	if (r == 0)
		r = functions_put(a, conn, pg_search_sql + 1, &names);
	if (r == 0)
		r = functions_put(a, conn, pg_search_operators_sql, &names);
	if (r == 0)
		r = functions_put(a, conn, pg_search_vectors_sql, &names);
	if (r == 0)
		r = functions_put(a, conn, pg_search_scores_sql, &names);
	buf_c(&names, 0);
	struct str all = arena_printf(a, "{%s}", names.p);
	buf_free(&names);
	return r < 0 ? r : pg_sql_do(conn, MAKE_MS, arena_printf(a, TIDY, quoted(a, conn, all.p)).p);
}

int pg_search_schema_make(struct arena *a, PGconn *conn)
{
	int64_t done = 0;
	struct str sql = arena_printf(a,
	                              "select count(*) from pg_namespace where nspname = 'steward_search' and "
	                              "pg_get_userbyid(nspowner) = '" PG_SUPER "' and obj_description(oid, "
	                              "'pg_namespace') = '%s'",
	                              pg_search_version);
	int r = pg_sql_int(conn, ASK_MS, sql.p, &done);
	if (r < 0 || done)
		return r;
	r = pg_sql_do(conn, MAKE_MS, "begin; set local lock_timeout = '3s'");
	if (r == 0)
		r = pg_sql_do(conn, MAKE_MS, pg_search_sql[0]);
	if (r == 0)
		r = functions_make(a, conn);
	sql = arena_printf(a, "comment on schema steward_search is '%s'; commit", pg_search_version);
	if (r == 0)
		r = pg_sql_do(conn, MAKE_MS, sql.p);
	if (r < 0)
		(void)!pg_sql_do(conn, ASK_MS, "rollback");
	return r;
}

/* --- what a restore brings back */

/* Whatever a build had under way when the snapshot was taken; an index that was built, whose place another build has
 * taken since; and what vectors were divided by for an index that is not there. Each with the id of its build. */
#define UNFINISHED                                                                          \
	"select right(relname, 24), false from pg_class where relkind = 'i' and relname ~ " \
	"'^steward_build_[0-9a-f]{24}$' "
#define REPLACED                                                                                             \
	"union all select right(c.relname, 24), true from pg_class c where relkind = 'i' and relname ~ "     \
	"'^steward_search_[0-9a-f]{24}$' and obj_description(c.oid, 'pg_class') = format('built by Steward " \
	"(%s)', right(c.relname, 24)) and not exists (select from steward_search.indexes i where i.build = " \
	"right(c.relname, 24)) "
#define UNDIVIDED                                                                                                      \
	"union all select version, false from steward_vectors.lists where version ~ '^[0-9a-f]{24}$' and not exists "  \
	"(select from pg_class where relkind = 'i' and relname in ('steward_build_' || version, 'steward_search_' || " \
	"version)) "

static int table_is_ours(PGconn *conn, struct arena *a, const char *table, int64_t *ret_there)
{
	struct str sql = arena_printf(a,
	                              "select count(*) from pg_class where oid = to_regclass('%s') and "
	                              "pg_get_userbyid(relowner) = '" PG_SUPER "'",
	                              table);
	return pg_sql_int(conn, ASK_MS, sql.p, ret_there);
}

int pg_search_strays(struct arena *a, PGconn *conn, const char *database, struct engine_index_strays *strays)
{
	PGresult *rows;
	int64_t there = 0, divided = 0;
	int r = table_is_ours(conn, a, "steward_search.indexes", &there);
	if (r == 0)
		r = table_is_ours(conn, a, "steward_vectors.lists", &divided);
	if (r == 0 && there && pg_search_schema_make(a, conn) < 0)
		log_debug("engine: the search functions of a database stay as they are: %s", pg_why_last());
	struct str sql =
	        arena_printf(a, "%s%s%slimit 100", UNFINISHED, there ? REPLACED : "", divided ? UNDIVIDED : "");
	if (r == 0)
		r = pg_sql_rows(conn, ASK_MS, sql.p, &rows);
	if (r < 0)
		return r;
	for (int i = 0; i < PQntuples(rows) && strays->count < ENGINE_STRAYS_MAX; i++)
		strays->list[strays->count++] =
		        (struct engine_index_stray){.database = arena_z(a, str_of(database)),
		                                    .id = arena_z(a, str_of(pg_value(rows, i, 0))),
		                                    .built = *pg_value(rows, i, 1) == 't'};
	PQclear(rows);
	return 0;
}
