/* BM25: a word counts for more the fewer rows have it, and the shorter the row's field is beside the others'. Both come
 * from the index's own statistics: a row for each word of a field, and one without a word for all of the field.
 *
 * The service counts them now and then (steward_search.recount()): when a tenth of the table has changed, over a sample
 * of what is large, and so that no more than a hundredth of the time goes to it. Whoever writes a row writes nothing
 * else. A count tells that there are rows with a word. So the policy of the table of statistics shows those of a field
 * to those alone who may read all of its column; for others each word counts the same.
 *
 * The superuser counts, so a table is left out for which the planner would run what users have made. */
#include "engine/postgres/search/scores.h"

#include "engine/postgres/model/planned.h"

#include <stddef.h>

/* clang-format off */
const char *const pg_search_scores_sql[] = {
	"create or replace function steward_search.recount(which text) returns boolean language plpgsql volatile "
	"set search_path = pg_catalog, pg_temp set constraint_exclusion = off as $f$\n"
	"declare i record; c record; k record; f jsonb; n int; changes bigint; source text; share numeric; began "
	"timestamptz := clock_timestamp();\n"
	"begin\n"
	"select * into i from steward_search.indexes where build = which;\n"
	"if not found then return false; end if;\n"
	"changes := pg_stat_get_tuples_inserted(i.rel) + pg_stat_get_tuples_updated(i.rel) + "
	"pg_stat_get_tuples_deleted(i.rel);\n"
	"select * into k from steward_search.counted where build = which;\n"
	"if found and (now() < k.at + 100 * k.took or abs(changes - k.changes) <= k.rows / 10 + 20) then return "
	"false; end if;\n"
	"select s.nspname, t.relname, t.relkind into c from pg_class t join pg_namespace s on s.oid = "
	"t.relnamespace where t.oid = i.rel;\n"
	"if not found or c.relkind <> 'r' then return false; end if;\n"
	"begin\n"
	"  execute format('lock table only %I.%I in share update exclusive mode nowait', c.nspname, c.relname);\n"
	"exception when lock_not_available or undefined_table then return false; end;\n"
	"if " PG_PLANNED_CODE("i.rel") " then return false; end if;\n"
	"if i.rel is distinct from to_regclass(format('%I.%I', c.nspname, c.relname)) or "
	"steward_search.changed_columns(i.rel, i.fields) is not null then return false; end if;\n"
	"share := least(100, round(100 * 20000.0 / greatest(1, pg_relation_size(i.rel) / "
	"current_setting('block_size')::int), 4));\n"
	"delete from steward_search.statistics s where s.build = which or not exists (select from "
	"steward_search.indexes x where x.build = s.build);\n"
	"delete from steward_search.counted s where s.build = which or not exists (select from "
	"steward_search.indexes x where x.build = s.build);\n"
	"for f, n in select x, o from jsonb_array_elements(i.fields) with ordinality y(x, o) where x->>'type' = "
	"'string' loop\n"
	"  source := format('(select %s as v from only %I.%I t %s where t.tableoid = %s) s', "
	"steward_search.expression(f, 't.'), c.nspname, c.relname,\n"
	"    case when share < 100 then format('tablesample system (%s) repeatable (1)', share) else '' end, "
	"i.rel);\n"
	"  execute format('insert into steward_search.statistics(build, field, word, rows, words) select %L, %s, "
	"lexeme, count(*) * 100 / %s, 0 from %s, unnest(v) u(lexeme, positions, weights) group by lexeme order "
	"by count(*) desc limit 1000000',\n"
	"    which, n, share, source);\n"
	"  execute format('insert into steward_search.statistics(build, field, word, rows, words) select %L, %s, "
	"'''', count(*) * 100 / %s, coalesce(sum((select sum(cardinality(positions)) from unnest(v) u(lexeme, "
	"positions, weights))), 0) * 100 / %s from %s where v <> ''''::tsvector',\n"
	"    which, n, share, share, source);\n"
	"end loop;\n"
	"execute format('insert into steward_search.counted(build, changes, rows, at, took) select %L, %s, "
	"count(*) * 100 / %s, clock_timestamp(), clock_timestamp() - %L::timestamptz from only %I.%I t %s where "
	"t.tableoid = %s',\n"
	"  which, changes, share, began, c.nspname, c.relname, case when share < 100 then format('tablesample "
	"system (%s) repeatable (1)', share) else '' end, i.rel);\n"
	"return true;\n"
	"end $f$;\n",
	"create or replace function steward_search.query_words(t tsquery) returns text[] language sql immutable "
	"set search_path = pg_catalog, pg_temp as $f$\n"
	"select array(select distinct replace(replace(x[1], '''''', ''''), '\\\\', '\\') from "
	"regexp_matches(t::text, '''((?:[^'']|'''')*)''', 'g') x)\n"
	"$f$;\n",
	"create or replace function steward_search.bm25(v tsvector, words text[], weights float8[], mean float8) "
	"returns float8 language plpgsql immutable set search_path = pg_catalog, pg_temp as $f$\n"
	"begin\n"
	"return (select coalesce(sum(w.weight * u.n / (u.n + 1.2 * (0.25 + 0.75 * coalesce(u.all_of / mean, "
	"1)))), 0)\n"
	"  from (select lexeme, cardinality(positions)::float8 as n, sum(cardinality(positions)) over () as "
	"all_of from unnest(v) x(lexeme, positions, weights)) u join unnest(words, bm25.weights) w(word, weight) "
	"on w.word = u.lexeme);\n"
	"end $f$;\n",
	"create or replace function steward_search.rank(ix jsonb, f jsonb, e text, t tsquery) returns text "
	"language plpgsql stable set search_path = pg_catalog, pg_temp as $f$\n"
	"declare all_of record; words text[] := steward_search.query_words(t); weights float8[];\n"
	"begin\n"
	"select s.rows, s.words into all_of from steward_search.statistics s where s.build = ix->>'build' and "
	"s.field = (f->>'n')::int and s.word = '';\n"
	"select array_agg(case when all_of.rows is null then 1 else ln(1 + (greatest(0, all_of.rows - "
	"coalesce(s.rows, 0)) + 0.5) / (coalesce(s.rows, 0) + 0.5)) end order by w.o) into weights\n"
	"  from unnest(words) with ordinality w(word, o) left join steward_search.statistics s on s.build = "
	"ix->>'build' and s.field = (f->>'n')::int and s.word = w.word;\n"
	"return format('case when %1$s @@ %2$L::tsquery then steward_search.bm25(%1$s, %3$L::text[], "
	"%4$L::float8[], %5$L::float8) else 0 end', e, t, words, weights, all_of.words::float8 / "
	"nullif(all_of.rows, 0));\n"
	"end $f$;\n",
	NULL,
};
