/* Indexes that would help. Candidates come from the conditions that pg_qualstats has sampled on the nodes: columns
 * that are compared with something, by statements that threw away most of what they read. Each candidate is made as a
 * hypothetical index (hypopg) in the database that it is for, on the primary, and the planner is asked what the
 * conditions cost with it and without, on the generic plan: pg_qualstats keeps no constants, and the answer shall be
 * good for all of them. Only what becomes clearly cheaper is suggested. Where a narrow index does nearly as well as a
 * wide one it is the narrow one.
 *
 * To plan a query on a table is to run code of its owner: PostgreSQL evaluates predicates of indexes and checks while
 * it plans. So that is done by a function that belongs to the table's owner, with that role's rights and no way back
 * to the superuser's: in a SECURITY DEFINER function nobody changes the role. The session is that role's by then too,
 * because functions of the service ask for the session's user (spread_sql.c). What such code does to the session's
 * settings stays, so it is the last that the session does. Everything happens in a transaction that is never
 * committed: the functions are temporary ones, and the database is as it was. */
#include "engine/postgres/advice.h"

#include "base/buf.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>

#define ASK_MS 3000
#define JUDGE_MS 3500 /* little more than its statement may take: another owner's tables are next */
#define END_MS 2000

/* The conditions that a statement has on one table. */
struct group {
	unsigned set;
	const char *database, *key; /* the key names table, statement and conditions */
	unsigned long rel;
	int64_t query, count;
	double read, thrown;
	const char *quals; /* JSON: [[attnum, operator], ...] */
	/* Once it is known: */
	const char *owner, *schema, *table;
	double row_bytes;
};

struct work {
	struct pg_inquiry q;
	const struct engine_namespaces *of;
	struct group *groups;
	size_t group_count, group_room;
	struct engine_suggestion *list;
	size_t count, room;
	int64_t since_ms;
	const char *missing;
};

/* --- candidates */

/* A thousand rows thrown away each time, at least: less is not worth an index. */
static const char quals_ask[] =
        "with q as (select dbid, lrelid, queryid, coalesce(qualid, qualnodeid) as grp, lattnum, opno, sum(occurences) "
        "as "
        "occ, sum(execution_count) as ex, sum(nbfiltered) as nf, bool_or(eval_type = 'f') as filtered from "
        "steward.pg_qualstats() where lrelid >= 16384 and lattnum > 0 and coalesce(rrelid, 0) = 0 group by 1, 2, 3, 4, "
        "5, "
        "6), g as (select dbid, lrelid, queryid, grp, max(occ) as occ, max(ex) as ex, max(nf) as nf, "
        "json_agg(json_build_array(lattnum, opno::int8) order by lattnum, opno) as quals, count(*) as quals_count from "
        "q "
        "group by 1, 2, 3, 4 having bool_or(filtered)) "
        "select d.datname, g.lrelid, g.queryid, g.quals, (g.occ / " PG_QUAL_SAMPLES ")::int8, g.ex, g.nf, "
        "(extract(epoch from pg_postmaster_start_time()) * 1000)::int8 from g join pg_database d on d.oid = g.dbid "
        "where "
        "not d.datistemplate and g.occ > 0 and g.nf / g.occ >= 1000 and g.quals_count <= 8 order by g.nf desc limit "
        "100";

static struct group *group_find(struct work *w, unsigned set, const char *key)
{
	for (size_t i = 0; i < w->group_count; i++)
		if (w->groups[i].set == set && strcmp(w->groups[i].key, key) == 0)
			return &w->groups[i];
	return NULL;
}

/* The same conditions on several nodes of a set are one. */
static void group_take(struct work *w, const struct pg_place *p, const PGresult *rows, int i)
{
	struct arena *a = w->q.arena;
	const char *key = arena_printf(a, "%s %s %s %s", PQgetvalue(rows, i, 0), PQgetvalue(rows, i, 1),
	                               PQgetvalue(rows, i, 2), PQgetvalue(rows, i, 3))
	                          .p;
	int64_t since = strtoll(PQgetvalue(rows, i, 7), NULL, 10);
	struct group *g = group_find(w, p->set, key);
	if (!g) {
		ARENA_FIT(a, w->groups, w->group_count, w->group_room);
		g = &w->groups[w->group_count++];
		*g = (struct group){.set = p->set,
		                    .database = arena_z(a, str_of(PQgetvalue(rows, i, 0))),
		                    .key = key,
		                    .rel = strtoul(PQgetvalue(rows, i, 1), NULL, 10),
		                    .query = strtoll(PQgetvalue(rows, i, 2), NULL, 10),
		                    .quals = arena_z(a, str_of(PQgetvalue(rows, i, 3)))};
	}
	g->count += strtoll(PQgetvalue(rows, i, 4), NULL, 10);
	g->read += strtod(PQgetvalue(rows, i, 5), NULL);
	g->thrown += strtod(PQgetvalue(rows, i, 6), NULL);
	if (!w->since_ms || since < w->since_ms)
		w->since_ms = since;
}

static bool is_wanted(const struct pg_place *p, const struct str *nodes, size_t count)
{
	bool wanted = count == 0 && p->runs;
	for (size_t i = 0; i < count && !wanted; i++)
		wanted = str_is(nodes[i], p->node.want.name);
	return wanted;
}

static int groups_read(struct work *w, const struct str *nodes, size_t node_count)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < w->q.place_count; i++) {
		const struct pg_place *p = &w->q.places[i];
		PGresult *rows;
		if (!is_wanted(p, nodes, node_count))
			continue;
		r = pg_inquiry_quals(&w->q, p, quals_ask, &rows, &w->missing);
		if (r == 0) {
			for (int k = 0; k < PQntuples(rows); k++)
				group_take(w, p, rows, k);
			PQclear(rows);
		}
	}
	return r;
}

/* --- trying them */

/* clang-format off */
static const char *const functions[] = {
	"begin",
	"create function pg_temp.steward_make(text) returns table(indexrelid oid, indexname text) language c strict\n"
	"  as '$libdir/hypopg', 'hypopg_create_index'",
	"create function pg_temp.steward_forget() returns void language c as '$libdir/hypopg', 'hypopg_reset_index'",
	"create function pg_temp.steward_size(oid) returns bigint language c strict\n"
	"  as '$libdir/hypopg', 'hypopg_relation_size'",
	/* What the planner expects of conditions: {"sql", "params"}. NULL: they cannot be planned. */
	"create function pg_temp.steward_cost(g jsonb) returns float8 language plpgsql as $fn$\n"
	"declare j json; args text := '';\n"
	"begin\n"
	"  if exists (select from pg_prepared_statements where name = 'steward_q') then deallocate steward_q; end if;\n"
	"  execute 'prepare steward_q as ' || (g->>'sql');\n"
	"  if (g->>'params')::int > 0 then args := '(' || rtrim(repeat('null,', (g->>'params')::int), ',') || ')'; end if;\n"
	"  execute 'explain (format json) execute steward_q' || args into j;\n"
	"  return (j->0->'Plan'->>'Total Cost')::float8;\n"
	"exception when others then return null;\n"
	"end $fn$",
	"create function pg_temp.steward_columns(c jsonb) returns text language sql as $fn$\n"
	"  select string_agg(quote_ident(x), ', ' order by n) from jsonb_array_elements_text(c) with ordinality e(x, n)\n"
	"$fn$",
	/* Comparisons that a B-tree of the column's own class serves: equal ones first, the most distinct before.
	 * Each group becomes {"n", "rel", "table", "cols": what to index, "columns", "operators", "params", "sql"}. */
	"create function pg_temp.steward_resolve(given jsonb) returns jsonb language sql as $fn$\n"
	"with q as (select (e->>'n')::int n, (e->>'rel')::oid rel, (x->>0)::int2 att, (x->>1)::oid op from\n"
	"    jsonb_array_elements(given) e, jsonb_array_elements(e->'quals') x),\n"
	"  r as (select q.n, q.rel, a.attname::text col, o.oprname::text opr, m.amopstrategy = 3 eq, case when s.n_distinct < 0\n"
	"      then -s.n_distinct * greatest(k.reltuples, 1) else coalesce(s.n_distinct, 1) end distinctness,\n"
	"      format_type(case when o.oprright = 3500 then a.atttypid else o.oprright end, null) righttype\n"
	"    from q join pg_class k on k.oid = q.rel join pg_namespace ns on ns.oid = k.relnamespace\n"
	"    join pg_attribute a on a.attrelid = q.rel and a.attnum = q.att and not a.attisdropped\n"
	"    join pg_type t on t.oid = a.atttypid join pg_operator o on o.oid = q.op and o.oid < 16384\n"
	"    join pg_opclass oc on oc.opcmethod = 403 and oc.opcdefault and oc.opcintype = case when t.typtype = 'e' then 3500\n"
	"      when a.atttypid = 1043 then 25 else a.atttypid end\n"
	"    join pg_amop m on m.amopfamily = oc.opcfamily and m.amopopr = q.op and m.amoppurpose = 's'\n"
	"    left join pg_stats s on s.schemaname = ns.nspname and s.tablename = k.relname and s.attname = a.attname\n"
	"      and not s.inherited),\n"
	"  u as (select n, rel, col, opr, bool_or(eq) over (partition by n, col) eq, distinctness, righttype, row_number()\n"
	"      over (partition by n order by col, opr) p from r),\n"
	"  e as (select n, col, max(distinctness) d from u where eq group by 1, 2),\n"
	"  f as (select distinct on (n) n, col from u where not eq order by n, distinctness desc, col)\n"
	"select coalesce(jsonb_agg(jsonb_build_object('n', n, 'rel', rel, 'table', rel::regclass::text, 'cols', (select\n"
	"    coalesce(jsonb_agg(col order by d desc, col), '[]') from (select col, d from e where e.n = z.n order by d desc, col\n"
	"    limit 3) e3) || (select coalesce(jsonb_agg(col), '[]') from f where f.n = z.n), 'columns', cols, 'operators', oprs,\n"
	"    'params', params, 'sql', sql) order by n), '[]') from (select n, rel, count(*) params,\n"
	"    jsonb_agg(col order by p) cols, jsonb_agg(opr order by p) oprs, 'select * from ' || rel::regclass || ' where ' ||\n"
	"    string_agg(format('%I operator(pg_catalog.%s) $%s::%s', col, opr, p, righttype), ' and ' order by p) sql from u\n"
	"    group by n, rel) z\n"
	"$fn$",
	/* [{"n": number of the group, "rel": table, "quals": [[column, operator], ...]}], all of one owner; returns
	 * [{"rel", "columns": [], "bytes", "groups": [{"n", "columns": [], "operators": [], "before", "after"}]}]. */
	"create function pg_temp.steward_judge(given jsonb) returns jsonb language plpgsql security definer\n"
	"  set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan\n"
	"  set max_parallel_workers_per_gather = 0 set enable_seqscan = on set enable_indexscan = on\n"
	"  set enable_bitmapscan = on as $fn$\n"
	"declare work jsonb; g jsonb; c jsonb; chosen jsonb := '[]'; kept jsonb := '[]'; result jsonb := '[]'; good jsonb;\n"
	"  wide float8; narrow float8; after float8; hypo oid;\n"
	"begin\n"
	"work := pg_temp.steward_resolve(given);\n"
	"for i in 0 .. jsonb_array_length(work) - 1 loop\n"
	"  work := jsonb_set(work, array[i::text, 'before'], coalesce(to_jsonb(pg_temp.steward_cost(work->i)), 'null'));\n"
	"end loop;\n"
	/* What each group would have. */
	"for g in select x from jsonb_array_elements(work) x loop\n"
	"  continue when g->>'before' is null or jsonb_array_length(g->'cols') = 0;\n"
	"  c := g->'cols';\n"
	"  begin\n"
	"    perform pg_temp.steward_forget();\n"
	"    perform pg_temp.steward_make(format('create index on %s (%s)', g->>'table', pg_temp.steward_columns(c)));\n"
	"    wide := pg_temp.steward_cost(g);\n"
	"    if jsonb_array_length(c) > 1 then\n"
	"      perform pg_temp.steward_forget();\n"
	"      perform pg_temp.steward_make(format('create index on %s (%s)', g->>'table',\n"
	"        pg_temp.steward_columns(jsonb_build_array(c->0))));\n"
	"      narrow := pg_temp.steward_cost(g);\n"
	"      if narrow <= wide * 1.2 then c := jsonb_build_array(c->0); wide := narrow; end if;\n"
	"    end if;\n"
	"  exception when others then wide := null;\n"
	"  end;\n"
	"  if wide < (g->>'before')::float8 * 0.8 then\n"
	"    chosen := chosen || jsonb_build_array(jsonb_build_object('rel', g->'rel', 'table', g->'table', 'columns', c));\n"
	"  end if;\n"
	"end loop;\n"
	/* One whose columns are the first of another's is not needed beside that. */
	"select coalesce(jsonb_agg(distinct a.x), '[]') into kept from jsonb_array_elements(chosen) a(x) where not exists\n"
	"  (select from jsonb_array_elements(chosen) b(x) where b.x->'rel' = a.x->'rel' and jsonb_array_length(b.x->'columns') >\n"
	"  jsonb_array_length(a.x->'columns') and not exists (select from generate_series(0, jsonb_array_length(a.x->'columns')\n"
	"  - 1) k where b.x->'columns'->k <> a.x->'columns'->k));\n"
	"for c in select x from jsonb_array_elements(kept) x loop\n"
	"  perform pg_temp.steward_forget();\n"
	"  select indexrelid into hypo from pg_temp.steward_make(format('create index on %s (%s)', c->>'table',\n"
	"    pg_temp.steward_columns(c->'columns')));\n"
	"  good := '[]';\n"
	"  for g in select x from jsonb_array_elements(work) x where x->'rel' = c->'rel' and x->>'before' is not null loop\n"
	"    after := pg_temp.steward_cost(g);\n"
	"    if after < (g->>'before')::float8 * 0.8 then\n"
	"      good := good || jsonb_build_array(jsonb_build_object('n', g->'n', 'columns', g->'columns', 'operators',\n"
	"        g->'operators', 'before', g->'before', 'after', after));\n"
	"    end if;\n"
	"  end loop;\n"
	"  if jsonb_array_length(good) > 0 then\n"
	"    result := result || jsonb_build_array(jsonb_build_object('rel', c->'rel', 'columns', c->'columns', 'bytes',\n"
	"      pg_temp.steward_size(hypo), 'groups', good));\n"
	"  end if;\n"
	"end loop;\n"
	"return result;\n"
	"end $fn$",
	NULL,
};
/* clang-format on */

static const char *const *texts_of(struct arena *a, const json_t *list, size_t *ret_count)
{
	size_t count = json_array_size(list);
	const char **texts = arena_new_array(a, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		texts[i] = arena_z(a, json_item(list, i));
	*ret_count = count;
	return texts;
}

static void shape_take(struct work *w, struct engine_suggestion *s, const json_t *o)
{
	json_int_t n = json_number(o, "n");
	if (n < 0 || (size_t)n >= w->group_count)
		return;
	const struct group *g = &w->groups[n];
	struct engine_condition *shape = &s->shapes[s->shape_count++];
	double wanted = g->read - g->thrown;
	*shape = (struct engine_condition){.query = g->query,
	                                   .count = g->count,
	                                   .examined = g->read / (wanted >= 1 ? wanted : 1),
	                                   .before = json_number_value(json_object_get(o, "before")),
	                                   .after = json_number_value(json_object_get(o, "after"))};
	shape->columns = texts_of(w->q.arena, json_object_get(o, "columns"), &shape->column_count);
	size_t operators;
	shape->operators = texts_of(w->q.arena, json_object_get(o, "operators"), &operators);
	if (operators < shape->column_count)
		shape->column_count = operators;
}

/* The answer is made with the rights of the tables' owner, so nothing in it is believed but numbers and names. */
static void suggestion_take(struct work *w, const struct group *first, const json_t *o)
{
	struct arena *a = w->q.arena;
	const json_t *columns = json_object_get(o, "columns"), *groups = json_object_get(o, "groups");
	const json_t *head = json_array_get(groups, 0);
	json_int_t n = head ? json_number(head, "n") : -1;
	if (n < 0 || (size_t)n >= w->group_count || !json_array_size(columns) ||
	    json_array_size(columns) > ENGINE_INDEX_COLUMNS_MAX || json_array_size(groups) > w->group_count)
		return;
	const struct group *g = &w->groups[n];
	if (!g->table || g->set != first->set || strcmp(g->database, first->database) != 0 ||
	    strcmp(g->owner, first->owner) != 0)
		return;
	struct engine_suggestion s = {.namespace = engine_namespace(a, g->database, g->schema, g->table),
	                              .database = g->database,
	                              .schema = g->schema,
	                              .table = g->table,
	                              .row_bytes = g->row_bytes,
	                              .index_bytes = json_number_value(json_object_get(o, "bytes"))};
	for (size_t i = 0; i < json_array_size(columns); i++)
		s.columns[s.column_count++] = arena_z(a, json_item(columns, i));
	s.shapes = arena_new_array(a, struct engine_condition, json_array_size(groups));
	for (size_t i = 0; i < json_array_size(groups); i++)
		shape_take(w, &s, json_array_get(groups, i));
	if (!s.shape_count || !engine_namespace_is_of(w->of, s.namespace))
		return;
	ARENA_FIT(a, w->list, w->count, w->room);
	w->list[w->count++] = s;
}

/* The groups of one owner in one database, as the argument of the judge. */
static struct str groups_json(struct work *w, const struct group *of)
{
	struct buf b = {0};
	json_open(&b, '[');
	for (size_t i = 0; i < w->group_count; i++) {
		const struct group *g = &w->groups[i];
		if (g->set != of->set || strcmp(g->database, of->database) != 0 || !g->owner ||
		    strcmp(g->owner, of->owner) != 0)
			continue;
		json_open(&b, '{');
		json_key(&b, "n");
		json_int(&b, (int64_t)i);
		json_key(&b, "rel");
		json_int(&b, (int64_t)g->rel);
		json_key(&b, "quals");
		json_raw(&b, str_of(g->quals));
		json_close(&b, '}');
	}
	json_close(&b, ']');
	return buf_keep(&b, w->q.arena);
}

/* Code that catches the timeout of its statement and sets all others to nothing would run on, past every change of
 * users' rights, and take one of the connections that are kept for the service. This it cannot catch. */
static void session_end(const struct pg_place *p, int pid)
{
	PGconn *conn;
	char sql[160];
	if (pg_sql_open(&p->node, p->run, "postgres", END_MS, &conn) < 0)
		return;
	snprintf(sql, sizeof sql,
	         "select pg_terminate_backend(pid) from pg_stat_activity where pid = %d and usename = '" PG_SUPER "'",
	         pid);
	(void)!pg_sql_do(conn, END_MS, sql);
	PQfinish(conn);
}

static int owner_judge(struct work *w, const struct group *of)
{
	struct arena *a = w->q.arena;
	PGconn *conn;
	PGresult *rows;
	const struct pg_place *primary = pg_inquiry_primary(&w->q, of->set);
	int r = pg_inquiry_open(&w->q, primary, of->database, &conn);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && functions[i]; i++)
		r = pg_sql_do(conn, pg_inquiry_left(&w->q, ASK_MS), functions[i]);
	char *owner = PQescapeIdentifier(conn, of->owner, strlen(of->owner));
	if (r == 0)
		r = owner ? pg_sql_do(
		                    conn, pg_inquiry_left(&w->q, ASK_MS),
		                    arena_printf(a,
		                                 "alter function pg_temp.steward_judge(jsonb) owner to %s; set session "
		                                 "authorization %s",
		                                 owner, owner)
		                            .p)
		          : -ENOMEM;
	PQfreemem(owner);
	if (r == 0)
		r = pg_sql_rows(conn, pg_inquiry_left(&w->q, JUDGE_MS),
		                arena_printf(a, "select pg_temp.steward_judge('%.*s')", STR_ARG(groups_json(w, of))).p,
		                &rows);
	/* Nothing more is asked of this session: its settings may be a user's by now. */
	int pid = PQbackendPID(conn);
	PQfinish(conn);
	if (r < 0) {
		session_end(primary, pid);
		return -EAGAIN;
	}
	json_t *answer = PQntuples(rows) ? json_loads(PQgetvalue(rows, 0, 0), 0, NULL) : NULL;
	answer = answer ? json_keep(a, answer) : NULL;
	for (size_t i = 0; i < json_array_size(answer); i++)
		suggestion_take(w, of, json_array_get(answer, i));
	PQclear(rows);
	return 0;
}

/* --- whose tables they are */

static void owner_take(struct work *w, const struct group *of, const PGresult *rows, int i)
{
	unsigned long rel = strtoul(PQgetvalue(rows, i, 0), NULL, 10);
	struct arena *a = w->q.arena;
	for (size_t k = 0; k < w->group_count; k++) {
		struct group *g = &w->groups[k];
		if (g->set != of->set || g->rel != rel || strcmp(g->database, of->database) != 0)
			continue;
		g->owner = arena_z(a, str_of(PQgetvalue(rows, i, 1)));
		g->schema = arena_z(a, str_of(PQgetvalue(rows, i, 2)));
		g->table = arena_z(a, str_of(PQgetvalue(rows, i, 3)));
		g->row_bytes = strtod(PQgetvalue(rows, i, 4), NULL);
	}
}

/* hypopg knows ordinary tables and materialized views; the service's own tables are nobody's concern. */
static int owners_ask(struct work *w, const struct group *of)
{
	struct buf b = {0};
	PGconn *conn;
	PGresult *rows;
	int r = pg_inquiry_open(&w->q, pg_inquiry_primary(&w->q, of->set), of->database, &conn);
	if (r < 0)
		return r;
	buf_z(&b, "select c.oid, pg_get_userbyid(c.relowner), n.nspname, c.relname, case when c.reltuples > 0 then "
	          "pg_table_size(c.oid) / c.reltuples else 0 end from pg_class c join pg_namespace n on n.oid = "
	          "c.relnamespace where c.relkind in ('r', 'm') and c.relpersistence <> 't' and n.nspname !~ "
	          "'^(pg_|steward|information_schema$)' and pg_get_userbyid(c.relowner) not in ('" PG_SUPER
	          "', '" PG_SHARD "') and c.oid in (0");
	for (size_t i = 0; i < w->group_count; i++)
		if (w->groups[i].set == of->set && strcmp(w->groups[i].database, of->database) == 0)
			buf_printf(&b, ",%lu", w->groups[i].rel);
	buf_z(&b, ")");
	buf_c(&b, 0);
	r = pg_sql_rows(conn, pg_inquiry_left(&w->q, ASK_MS), b.p, &rows);
	buf_free(&b);
	PQfinish(conn);
	if (r < 0)
		return -EAGAIN;
	for (int i = 0; i < PQntuples(rows); i++)
		owner_take(w, of, rows, i);
	PQclear(rows);
	return 0;
}

static bool is_first(const struct work *w, size_t at, bool by_owner)
{
	const struct group *g = &w->groups[at];
	for (size_t i = 0; i < at; i++) {
		const struct group *o = &w->groups[i];
		if (o->set == g->set && strcmp(o->database, g->database) == 0 &&
		    (!by_owner || (o->owner && strcmp(o->owner, g->owner) == 0)))
			return false;
	}
	return true;
}

static double saved_of(const struct engine_suggestion *s)
{
	double sum = 0;
	for (size_t i = 0; i < s->shape_count; i++)
		sum += (s->shapes[i].before - s->shapes[i].after) * (double)s->shapes[i].count;
	return sum;
}

static int by_use(const void *a, const void *b)
{
	double one = saved_of(a), other = saved_of(b);
	return one > other ? -1 : one < other;
}

/* Whoever's code fails, or does not end, gets no advice; others do. */
static int owners_judge(struct work *w)
{
	unsigned failed = 0, judged = 0;
	int r = 0;
	for (size_t i = 0; i < w->group_count; i++) {
		if (!w->groups[i].owner || !is_first(w, i, true))
			continue;
		int one = owner_judge(w, &w->groups[i]);
		r = one < 0 ? one : r;
		failed += one < 0;
		judged += one == 0;
	}
	if (failed && judged)
		w->missing = arena_printf(w->q.arena,
		                          "the tables of %u owners are left out: queries on them cannot be planned, or "
		                          "not in time",
		                          failed)
		                     .p;
	return judged ? 0 : r;
}

int pg_advice_indexes(struct engine *e, const char *cluster_id, const struct str *nodes, size_t node_count,
                      const struct engine_namespaces *of, struct arena *a, struct engine_suggestions *ret_suggestions)
{
	struct work w = {.of = of};
	int r = pg_inquiry_begin(e, cluster_id, a, &w.q);
	if (r < 0)
		return r;
	w.missing = pg_inquiry_lacks(&w.q, "hypopg", "hypopg");
	if (!w.missing)
		r = groups_read(&w, nodes, node_count);
	if (w.missing) {
		*ret_suggestions = (struct engine_suggestions){.missing = w.missing};
		return 0;
	}
	for (size_t i = 0; r == 0 && i < w.group_count; i++)
		if (is_first(&w, i, false))
			r = owners_ask(&w, &w.groups[i]);
	if (r == 0)
		r = owners_judge(&w);
	if (r < 0)
		return r;
	if (w.count)
		qsort(w.list, w.count, sizeof *w.list, by_use);
	*ret_suggestions = (struct engine_suggestions){
	        .list = w.list, .count = w.count, .since_ms = w.since_ms, .missing = w.missing};
	return 0;
}
