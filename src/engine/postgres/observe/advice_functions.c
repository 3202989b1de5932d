/* The functions by which a session tries indexes on the planner, see advice_index.c. */
#include "engine/postgres/observe/advice_functions.h"

/* clang-format off */
const char *const pg_advice_functions[] = {
	"begin",
	"create function pg_temp.steward_make(text) returns table(indexrelid oid, indexname text) language c strict\n"
	"  as '$libdir/hypopg', 'hypopg_create_index'",
	"create function pg_temp.steward_forget() returns void language c as '$libdir/hypopg', 'hypopg_reset_index'",
	"create function pg_temp.steward_size(oid) returns bigint language c strict\n"
	"  as '$libdir/hypopg', 'hypopg_relation_size'",
	/* A text of pg_stat_statements as one that can be prepared: {"sql", "types"}. A literal that had its type
	 * before it (date '...') is a cast now, and a limit is a hundred: the planner would expect a tenth of the
	 * table. */
	"create function pg_temp.steward_statement(t text) returns jsonb language plpgsql as $fn$\n"
	"declare fixed int[]; most int;\n"
	"begin\n"
	"  t := regexp_replace(t, '\\m(timestamp with time zone|timestamp without time zone|timestamptz|timestamp|date|interval|'\n"
	"    'time|numeric|uuid|inet|jsonb|json|bytea|text|varchar)\\s+(\\$\\d+)', '(\\2::\\1)', 'gi');\n"
	"  select array_agg(x[1]::int) into fixed from regexp_matches(t,\n"
	"    '\\m(?:limit|offset|fetch\\s+(?:first|next))\\s+\\$(\\d{1,5})\\M', 'gi') x;\n"
	"  select max(x[1]::int) into most from regexp_matches(t, '\\$(\\d{1,5})\\M', 'g') x;\n"
	"  t := regexp_replace(t, '\\m(limit|fetch\\s+first|fetch\\s+next)\\s+\\$\\d+', '\\1 100', 'gi');\n"
	"  t := regexp_replace(t, '\\moffset\\s+\\$\\d+', 'offset 0', 'gi');\n"
	"  return jsonb_build_object('sql', t, 'types', (select '(' || string_agg(case when i = any(fixed) then 'int8' else\n"
	"    'unknown' end, ', ' order by i) || ')' from generate_series(1, least(most, 1000)) i));\n"
	"end $fn$",
	/* The generic plan of {"sql", "types"}, good for all values. NULL: it cannot be planned. Names are looked up
	 * as for the user who sent it. */
	"create function pg_temp.steward_plan(g jsonb) returns jsonb language plpgsql set search_path = \"$user\", public as $fn$\n"
	"declare j json; params int;\n"
	"begin\n"
	"  if exists (select from pg_prepared_statements where name = 'steward_q') then deallocate steward_q; end if;\n"
	"  execute 'prepare steward_q ' || coalesce(g->>'types', '') || ' as ' || (g->>'sql');\n"
	"  select cardinality(parameter_types) into params from pg_prepared_statements where name = 'steward_q';\n"
	"  execute 'explain (verbose, format json) execute steward_q' ||\n"
	"    case when params > 0 then '(' || rtrim(repeat('null,', params), ',') || ')' else '' end into j;\n"
	"  return (j->0->'Plan')::jsonb;\n"
	"exception when others then return null;\n"
	"end $fn$",
	"create function pg_temp.steward_columns(c jsonb) returns text language sql as $fn$\n"
	"  select string_agg(quote_ident(x), ', ' order by n) from jsonb_array_elements_text(c) with ordinality e(x, n)\n"
	"$fn$",
	/* The first four columns of a list, each once. */
	"create function pg_temp.steward_first(c text[]) returns jsonb language sql as $fn$\n"
	"  select jsonb_agg(x order by n) from (select x, min(n) n from unnest(c) with ordinality e(x, n) group by x\n"
	"    order by 2 limit 4) f\n"
	"$fn$",
	/* What a plan asks of tables with a thousand rows or more: {"asks": [{"rel", "columns", "operators"}],
	 * "tries": [{"rel", "table", "columns"}], "scanned": rows of tables that are read as a whole}. Columns that
	 * are compared with values for equality come first in an index, the most distinct before, then one that is
	 * compared otherwise, or by which rows of another table are found, or by which the result is sorted. */
	"create function pg_temp.steward_asks(plan jsonb) returns jsonb language sql as $fn$\n"
	"with recursive n(p) as (select plan union all select x from n, jsonb_array_elements(n.p->'Plans') x),\n"
	"  rels as (select distinct c.oid rel, quote_ident(p->>'Alias') as alias, c.reltuples, s.nspname, c.relname from n join\n"
	"      pg_namespace s on s.nspname = p->>'Schema' join pg_class c on c.relnamespace = s.oid and\n"
	"      c.relname = p->>'Relation Name' where c.relkind in ('r', 'm') and c.reltuples >= 1000),\n"
	"  exprs as (select k in ('Hash Cond', 'Merge Cond', 'Join Filter') joins, p->>k e from n, unnest(array['Filter',\n"
	"      'Index Cond', 'Recheck Cond', 'Hash Cond', 'Merge Cond', 'Join Filter']) k where p ? k),\n"
	"  refs as (select r.rel, r.alias, a.attname::text col, '(?<![[:alnum:]_\".])' || regexp_replace(r.alias || '.' ||\n"
	"      quote_ident(a.attname), '([^[:alnum:]_])', '\\\\\\1', 'g') || '(?![[:alnum:]_\"])' ref, case when s.n_distinct < 0\n"
	"      then -s.n_distinct * r.reltuples else coalesce(s.n_distinct, 1) end d from rels r join pg_attribute a on\n"
	"      a.attrelid = r.rel and a.attnum > 0 and not a.attisdropped left join pg_stats s on s.schemaname = r.nspname and\n"
	"      s.tablename = r.relname and s.attname = a.attname and not s.inherited),\n"
	"  hits as (select distinct rel, alias, col, d, joins, op from refs, exprs, lateral (select x[1] op from\n"
	"      regexp_matches(e, ref || '\\)?(?:::[[:alnum:]_ ]+)? (=|<=|>=|<|>) ', 'g') x union select x[1] from\n"
	"      regexp_matches(e, ' (=|<=|>=|<|>) \\(?' || ref, 'g') x) m where position(col in e) > 0),\n"
	"  eq as (select rel, alias, array_agg(col order by d desc, col) cols from (select *, row_number() over (partition by\n"
	"      rel, alias order by d desc, col) k from (select distinct rel, alias, col, d from hits where op = '=' and not\n"
	"      joins) f) f where k <= 3 group by 1, 2),\n"
	"  other as (select distinct on (rel, alias) rel, alias, col from hits where op <> '=' and not joins\n"
	"      order by rel, alias, d desc, col),\n"
	"  sorts as (select rel, alias, array_agg(col order by k) cols from (select row_number() over () i, p from n where\n"
	"      p ? 'Sort Key') s, jsonb_array_elements_text(s.p->'Sort Key') with ordinality e(x, k) join refs on\n"
	"      x ~ ('^' || ref || '( DESC)?( NULLS (FIRST|LAST))?$') group by s.i, s.p, rel, alias having\n"
	"      count(*) = jsonb_array_length(s.p->'Sort Key') and count(distinct x ~ ' DESC') = 1),\n"
	"  tries as (select rel, alias, coalesce(eq.cols, '{}') || coalesce(other.col, eq.cols[1]) cols from eq full join\n"
	"      other using (rel, alias)\n"
	"    union select rel, alias, array[col] from hits where joins and op = '='\n"
	"    union select rel, alias, eq.cols[1:2] || col from hits join eq using (rel, alias) where joins and op = '='\n"
	"    union select rel, alias, cols from sorts\n"
	"    union select rel, alias, eq.cols[1:2] || sorts.cols from sorts join eq using (rel, alias)\n"
	"    union select rel, alias, array[cols[1]] from eq)\n"
	"select jsonb_build_object('scanned', (select coalesce(sum(c.reltuples), 0) from n join rels c on\n"
	"    c.alias = quote_ident(p->>'Alias') where p->>'Node Type' = 'Seq Scan'),\n"
	"  'asks', (select coalesce(jsonb_agg(jsonb_build_object('rel', rel, 'columns', c, 'operators', o)), '[]') from (select\n"
	"      rel, jsonb_agg(col order by col, op) c, jsonb_agg(op order by col, op) o from (select rel, col, op from hits union\n"
	"      select rel, unnest(cols), 'sort' from sorts) b group by rel) b),\n"
	"  'tries', (select coalesce(jsonb_agg(t order by jsonb_array_length(t->'columns')), '[]') from (select distinct\n"
	"      jsonb_build_object('rel', rel, 'table', rel::regclass::text, 'columns', pg_temp.steward_first(cols)) t from tries\n"
	"      limit 12) t))\n"
	"$fn$",
	/* [{"n": number of the statement, "text"}], all of one user; returns [{"rel", "columns": [], "bytes",
	 * "statements": [{"n", "columns": [], "operators": [], "before", "after", "scanned"}]}]. */
	"create function pg_temp.steward_judge(given jsonb) returns jsonb language plpgsql security definer\n"
	"  set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan\n"
	"  set max_parallel_workers_per_gather = 0 set enable_seqscan = on set enable_indexscan = on\n"
	"  set enable_bitmapscan = on as $fn$\n"
	"declare work jsonb := '[]'; g jsonb; c jsonb; s jsonb; plan jsonb; chosen jsonb := '[]'; kept jsonb; result jsonb := '[]';\n"
	"  good jsonb; best float8; after float8; choice jsonb; hypo oid;\n"
	"begin\n"
	"for g in select x from jsonb_array_elements(given) x loop\n"
	"  s := pg_temp.steward_statement(g->>'text');\n"
	"  plan := pg_temp.steward_plan(s);\n"
	"  continue when plan is null or (plan->>'Total Cost')::float8 < 100;\n"
	"  work := work || jsonb_build_array(s || pg_temp.steward_asks(plan) || jsonb_build_object('n', g->'n', 'before',\n"
	"    plan->'Total Cost'));\n"
	"end loop;\n"
	/* What each would have: a wider index only where it does clearly better. */
	"for g in select x from jsonb_array_elements(work) x loop\n"
	"  best := (g->>'before')::float8 * 0.8;\n"
	"  choice := null;\n"
	"  for c in select x from jsonb_array_elements(g->'tries') x loop\n"
	"    begin\n"
	"      perform pg_temp.steward_forget();\n"
	"      perform pg_temp.steward_make(format('create index on %s (%s)', c->>'table',\n"
	"        pg_temp.steward_columns(c->'columns')));\n"
	"      after := (pg_temp.steward_plan(g)->>'Total Cost')::float8;\n"
	"    exception when others then after := null;\n"
	"    end;\n"
	"    if after < best then best := after * 0.83; choice := c; end if;\n"
	"  end loop;\n"
	"  if choice is not null then chosen := chosen || jsonb_build_array(choice); end if;\n"
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
	"  for g, s in select x, y from jsonb_array_elements(work) x, jsonb_array_elements(x->'asks') y where\n"
	"      y->'rel' = c->'rel' loop\n"
	"    after := (pg_temp.steward_plan(g)->>'Total Cost')::float8;\n"
	"    if after < (g->>'before')::float8 * 0.8 then\n"
	"      good := good || jsonb_build_array(s || jsonb_build_object('n', g->'n', 'before', g->'before', 'after', after,\n"
	"        'scanned', g->'scanned'));\n"
	"    end if;\n"
	"  end loop;\n"
	"  if jsonb_array_length(good) > 0 then\n"
	"    result := result || jsonb_build_array(jsonb_build_object('rel', c->'rel', 'columns', c->'columns', 'bytes',\n"
	"      pg_temp.steward_size(hypo), 'statements', good));\n"
	"  end if;\n"
	"end loop;\n"
	"return result;\n"
	"end $fn$",
	NULL,
};
/* clang-format on */
