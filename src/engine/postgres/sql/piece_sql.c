/* Scripts of a restore of one database or one table. They are constant; names come as JSON in the setting
 * steward.wanted, and are quoted by the server itself. What a snapshot says is data here as well: rights and owners
 * are matched by name with what is there, and no text of it is ever part of a statement.
 *
 * None of them evaluates what users have written: they change names, schemas, owners and rights, which is work on
 * catalogs alone. Whatever evaluates it runs as PG_RESTORE, which may do nothing but in the database or the schema that
 * was made for it, and owns what it makes only until that is whole. */
#include "engine/postgres/sql/piece_sql.h"

#include "engine/postgres/sql/grants_sql.h"

#define WANTED "w constant jsonb := current_setting('steward.wanted')::jsonb;\n"
#define IS_ITS(column) "pg_get_userbyid(" column ") = '" PG_RESTORE "'"
#define SERVICES_INDEX "'^steward_(build|search)_[0-9a-f]{24}$'"

/* clang-format off */

/* All that has an owner and rights: its kind, a column, what it is for a statement, whose it is, the rights. */
#define OBJECTS \
	"select case relkind when 'S' then 'S' else 't' end kind, null::name col, format('%s %s', case relkind when 'S' then\n" \
	"    'sequence' else 'table' end, oid::regclass) what, relowner own, relacl acl, relkind in ('v', 'm') view from pg_class where\n" \
	"    relkind in ('r', 'p', 'v', 'm', 'f', 'S') and relpersistence <> 't' and oid >= 16384\n" \
	"  union all select 'c', attname, format('table %s', attrelid::regclass), relowner, attacl, false from pg_attribute join\n" \
	"    pg_class c on c.oid = attrelid where attacl is not null and not attisdropped and relpersistence <> 't' and c.oid >= 16384\n" \
	"  union all select 'n', null, format('schema %I', nspname), nspowner, nspacl, false from pg_namespace where oid >= 16384\n" \
	"  union all select 'f', null, format('routine %s', oid::regprocedure), proowner, proacl, false from pg_proc where oid >= 16384\n" \
	"  union all select 'y', null, format('type %s', oid::regtype), typowner, typacl, false from pg_type where oid >= 16384 and\n" \
	"    typtype in ('b', 'd', 'e', 'r') and typcategory <> 'A'\n" \
	"  union all select 'l', null, format('large object %s', oid), lomowner, lomacl, false from pg_largeobject_metadata"

/* --- a throwaway server's */

/* What a database like it is made with, and whose it is. */
const char pg_piece_sql_database[] =
	"select pg_encoding_to_char(encoding), datcollate, datctype, coalesce(to_jsonb(d)->>'datlocprovider', 'c'),\n"
	"  coalesce(to_jsonb(d)->>'datlocale', to_jsonb(d)->>'daticulocale', ''), pg_get_userbyid(datdba) from pg_database d where\n"
	"  datname = current_setting('steward.wanted')::jsonb->>'database' and datallowconn and not datistemplate";

/* Its kind, whether it is part of a hierarchy, and whether it has foreign keys or is what some are about. */
#define TABLE_FACTS(name) \
	"select relkind, (relispartition or relpersistence = 't' or exists (select from pg_inherits where c.oid in (inhrelid,\n" \
	"  inhparent)))::int, exists (select from pg_constraint where contype = 'f' and c.oid in (conrelid, confrelid))::int\n" \
	"  from pg_class c join pg_namespace n on n.oid = relnamespace, lateral (select current_setting('steward.wanted')::jsonb w) s\n" \
	"  where nspname = w->>'schema' and relname = w->>'" name "'"
const char pg_piece_sql_table[] = TABLE_FACTS("table");
const char pg_piece_sql_there[] = TABLE_FACTS("as");

/* Owners of code and views, rights of users, and what the database sets for all who connect. */
const char pg_piece_sql_facts[] =
	"with objects as (select * from (" OBJECTS ") o where pg_get_userbyid(own) <> '" PG_SUPER "' and what !~ '^[a-z]+ ?[a-z]* steward'),\n"
	"  given as (select kind, col, what, coalesce(rolname, '') who, privilege_type p, is_grantable g from objects, aclexplode(acl) k\n"
	"    left join pg_roles on oid = k.grantee where k.grantee <> own and (k.grantee = 0 or " IS_USER "))\n"
	"select jsonb_build_object('given', (select coalesce(jsonb_agg(to_jsonb(one)), '[]') from given one), 'closed', (select\n"
	"  coalesce(jsonb_agg(what), '[]') from objects where kind in ('f', 'y') and acl is not null and not exists (select from\n"
	"  aclexplode(acl) k where k.grantee = 0)), 'owners', (select coalesce(jsonb_agg(jsonb_build_object('what', what, 'who', rolname)),\n"
	"  '[]') from objects join pg_roles r on r.oid = own where kind = 'f' or view), 'settings', (select\n"
	"  coalesce(jsonb_agg(s), '[]') from pg_db_role_setting k join pg_database d on d.oid = setdatabase and datname =\n"
	"  current_database(), unnest(setconfig) s where setrole = 0))::text";

/* What is the service's, and of whom the other server has not heard, stays behind. The database's groups get the names
 * that they have there. {"database", "as", "roles": []} */
const char pg_piece_sql_tidy[] =
	"do $steward$\n"
	"declare " WANTED "x record; l text; old name; new name;\n"
	"begin\n"
	"for x in select evtname from pg_event_trigger loop execute format('drop event trigger %I', x.evtname); end loop;\n"
	"if not w ? 'table' then\n"
	"  foreach l in array array['r', 'w', 'a', 'o', 'l'] loop\n"
	"    old := 'steward:' || l || ':' || (w->>'database'); new := 'steward:' || l || ':' || (w->>'as');\n"
	"    if old <> new and exists (select from pg_roles where rolname = old) and not exists (select from pg_roles where rolname = new)\n"
	"    then execute format('alter role %I rename to %I', old, new); end if;\n"
	"  end loop;\n"
	"end if;\n"
	"for x in select distinct rolname from pg_policy, unnest(polroles) one join pg_roles r on r.oid = one where not\n"
	"  w->'roles' ? rolname::text\n"
	"loop\n"
	"  execute format('reassign owned by %I to " PG_SUPER "', x.rolname);\n"
	"  execute format('drop owned by %I', x.rolname);\n"
	"end loop;\n"
	"for x in select oid::regclass what from pg_class where relkind = 'i' and relname ~ " SERVICES_INDEX " loop\n"
	"  execute format('drop index %s', x.what);\n"
	"end loop;\n"
	"drop schema if exists steward_vectors cascade;\n"
	"drop schema if exists " PG_STAGING " cascade;\n" /* of one that was under way */
	"delete from pg_description using pg_extension e join pg_namespace n on n.oid = extnamespace where classoid =\n"
	"  'pg_extension'::regclass and objoid = e.oid and nspname ~ '^steward';\n"
	"delete from pg_extension using pg_namespace n where n.oid = extnamespace and nspname ~ '^steward' and nspname <> 'steward_search';\n"
	"end $steward$";

/* The table in a schema of its own, with what is its own alone. */
const char pg_piece_sql_apart[] =
	"do $steward$\n"
	"declare " WANTED "x record; rel constant regclass := format('%I.%I', w->>'schema', w->>'table')::regclass;\n"
	"begin\n"
	"for x in select conname from pg_constraint where conrelid = rel and contype = 'f' loop\n"
	"  execute format('alter table %s drop constraint %I', rel, x.conname);\n"
	"end loop;\n"
	"for x in select nspname, stxname from pg_statistic_ext join pg_namespace n on n.oid = stxnamespace where stxrelid = rel loop\n"
	"  execute format('drop statistics %I.%I', x.nspname, x.stxname);\n"
	"end loop;\n"
	"if not (w->>'replace')::boolean then\n"
	"  for x in select tgname from pg_trigger where tgrelid = rel and not tgisinternal loop\n"
	"    execute format('drop trigger %I on %s', x.tgname, rel);\n"
	"  end loop;\n"
	"  for x in select rulename from pg_rewrite where ev_class = rel loop\n"
	"    execute format('drop rule %I on %s', x.rulename, rel);\n"
	"  end loop;\n"
	"end if;\n"
	"create schema " PG_STAGING ";\n"
	"execute format('alter table %s set schema " PG_STAGING "', rel);\n"
	"end $steward$";

/* Who reads it there. */
const char pg_piece_sql_reader[] =
	"do $steward$\n"
	"declare " WANTED
	"begin\n"
	"create role \"" PG_EXPORT "\" login bypassrls in role pg_read_all_data;\n"
	"alter role \"" PG_EXPORT "\" set lo_compat_privileges = on;\n"
	"execute format('alter database %I connection limit -1', w->>'database');\n"
	"execute format('grant connect on database %I to \"" PG_EXPORT "\"', w->>'database');\n"
	"end $steward$";

/* --- the server's that it goes to */

const char pg_piece_sql_done[] =
	"select count(*) from pg_roles r join pg_shdescription s on s.objoid = r.oid and s.classoid = 'pg_authid'::regclass where\n"
	"  rolname = '" PG_RESTORE "' and description = 'restored ' || (current_setting('steward.wanted')::jsonb->>'id')";

const char pg_piece_sql_roles[] = "select jsonb_agg(rolname)::text from pg_roles";
const char pg_piece_sql_named[] =
	"select count(*) from pg_database where datname = current_setting('steward.wanted')::jsonb->>'as'";

/* Of the database of now: whether rows of it lie in files. The list of these is the service's, and in no dump. */
const char pg_piece_sql_archives[] =
	"select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'steward_archive' and relname =\n"
	"  'files' and relkind = 'r' and pg_get_userbyid(nspowner) = '" PG_SUPER "'";
const char pg_piece_sql_archived[] = "select count(*) from (select from steward_archive.files limit 1) f";

/* What is left of one that was cut short. */
const char pg_piece_sql_end[] =
	"select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = '" PG_RESTORE "'";
const char pg_piece_sql_databases[] = "select datname from pg_database where " IS_ITS("datdba");
const char pg_piece_sql_holds[] =
	"select distinct datname from pg_shdepend k join pg_database d on d.oid = k.dbid join pg_roles r on r.oid = k.refobjid where\n"
	"  k.refclassid = 'pg_authid'::regclass and rolname = '" PG_RESTORE "' and datallowconn";
const char pg_piece_sql_drop[] =
	"drop owned by \"" PG_RESTORE "\" cascade; drop schema if exists " PG_STAGING " cascade";

/* A new one each time: what code that it ran has set for it is gone. */
const char pg_piece_sql_writer[] =
	"drop role if exists \"" PG_RESTORE "\"; create role \"" PG_RESTORE "\" login nosuperuser nocreatedb nocreaterole inherit\n"
	"  noreplication nobypassrls";
const char pg_piece_sql_close[] =
	"do $steward$ begin if exists (select from pg_roles where rolname = '" PG_RESTORE "') then\n"
	"  alter role \"" PG_RESTORE "\" nologin password null; end if; end $steward$";

/* --- one database */

/* The statement that makes it; and nobody but its owner connects to it. */
const char pg_piece_sql_make[] =
	"select format('create database %I owner %I template template0 allow_connections false encoding %L lc_collate %L lc_ctype %L', w->>'temporary',\n"
	"  '" PG_RESTORE "', w->>'encoding', w->>'collate', w->>'ctype') || case w->>'provider' when 'i' then\n"
	"  format(' locale_provider icu icu_locale %L', w->>'locale') when 'b' then format(' locale_provider builtin builtin_locale %L',\n"
	"  w->>'locale') else '' end from (select current_setting('steward.wanted')::jsonb w) s";
const char pg_piece_sql_groups[] =
	"do $steward$\n"
	"declare " WANTED "l text;\n"
	"begin\n"
	"execute format('revoke all on database %I from public', w->>'temporary');\n"
	"execute format('alter database %I allow_connections true', w->>'temporary');\n"
	"foreach l in array array['r', 'w', 'a', 'o', 'l'] loop\n"
	"  begin\n"
	"    execute format('create role %I nologin', 'steward:' || l || ':' || (w->>'as'));\n"
	"  exception when duplicate_object then null;\n"
	"  end;\n"
	"end loop;\n"
	"end $steward$";

/* What people search with, where the snapshot's database has it: views and columns may be made of it. */
const char pg_piece_sql_searched[] =
	"select count(*) from pg_namespace where nspname = 'steward_search' and pg_get_userbyid(nspowner) = '" PG_SUPER "'";
const char pg_piece_sql_search[] =
	"grant usage on schema steward_search to \"" PG_RESTORE "\"; grant execute on all functions in schema steward_search to\n"
	"  \"" PG_RESTORE "\"";

/* Rights first, while all of it has one owner; then owners. What runs with its owner's rights goes to who wrote it, if
 * that is a writer still, and otherwise has no such rights any more. */
const char pg_piece_sql_rights[] =
	"do $steward$\n"
	"declare " WANTED "x record;\n"
	"begin\n"
	"create temp table pieces on commit drop as select * from (" OBJECTS ") o where " IS_ITS("own") ";\n"
	"for x in select p.what from pieces p where w->'closed' ? p.what loop\n"
	"  execute format('revoke all on %s from public', x.what);\n"
	"end loop;\n"
	"for x in select distinct p.what, g.* from jsonb_to_recordset(w->'given') g(kind text, col name, what text, who name, p text,\n"
	"  g boolean) join pieces p on p.what = g.what and p.kind <> 'c' where g.p ~ '^[A-Z]+$' and (g.who = '' or exists (select from\n"
	"  pg_roles where rolname = g.who and " IS_USER "))\n"
	"loop\n"
	"  execute format('grant %s%s on %s to %s%s', x.p, ' (' || quote_ident(x.col) || ')', x.what, case x.who when '' then 'public'\n"
	"    else quote_ident(x.who) end, case when x.g and x.who <> '' then ' with grant option' else '' end);\n"
	"end loop;\n"
	"end $steward$";
const char pg_piece_sql_owners[] =
	"do $steward$\n"
	"declare " WANTED "x record; heirs constant name := 'steward:o:' || (w->>'as');\n"
	"begin\n"
	"create temp table pieces on commit drop as select * from (" OBJECTS ") o where " IS_ITS("own") ";\n"
	"for x in select distinct p.what, o.who from jsonb_to_recordset(w->'owners') o(what text, who name) join pieces p on p.what =\n"
	"  o.what join pg_roles r on r.rolname = o.who where " IS_USER " and (pg_has_role(r.oid, 'steward:any:w', 'member') or\n"
	"  pg_has_role(r.oid, 'steward:w:' || (w->>'as'), 'member'))\n"
	"loop\n"
	"  execute format('alter %s owner to %I', x.what, x.who);\n"
	"end loop;\n"
	"for x in select oid::regprocedure f from pg_proc where prosecdef and " IS_ITS("proowner") " loop\n"
	"  execute format('alter routine %s security invoker', x.f);\n"
	"end loop;\n"
	"for x in select oid::regclass what from pg_class c where relkind in ('v', 'm') and " IS_ITS("relowner") " and not exists (select\n"
	"  from jsonb_to_recordset(w->'owners') o(what text, who name) where o.what = format('table %s', c.oid::regclass) and o.who in\n"
	"  ('steward:o:' || (w->>'database'), 'steward:any:w'))\n"
	"loop\n"
	"  execute format('alter table %s owner to %I', x.what, 'steward:l:' || (w->>'as'));\n"
	"end loop;\n"
	"execute format('reassign owned by %I to %I', '" PG_RESTORE "', heirs);\n"
	"execute format('drop owned by %I', '" PG_RESTORE "');\n"
	"execute format('alter database %I owner to %I', current_database(), '" PG_RESTORE "');\n"
	"end $steward$";

/* What can be set by everybody comes with the database: by its value alone, which is no part of a statement. While the
 * session has it, names are looked up as it says: a search_path can put functions of the database's own before those of
 * PostgreSQL, so nothing is called there that is not qualified, and the statement was made before. */
const char pg_piece_sql_settings[] =
	"do $steward$\n"
	"declare " WANTED "x record; was text; statement text;\n"
	"begin\n"
	"execute format('alter database %I reset all', current_database());\n"
	"for x in select distinct grantee from pg_database, aclexplode(datacl) where datname = current_database() and grantee <> datdba loop\n"
	"  execute format('revoke all on database %I from %s cascade', current_database(), case x.grantee when 0 then 'public' else\n"
	"    quote_ident(pg_get_userbyid(x.grantee)) end);\n"
	"end loop;\n"
	"for x in select split_part(s, '=', 1) n, substr(s, strpos(s, '=') + 1) v from jsonb_array_elements_text(w->'settings') s join\n"
	"  pg_settings on lower(name) = lower(split_part(s, '=', 1)) and context = 'user'\n"
	"loop\n"
	"  begin\n"
	"    was := current_setting(x.n);\n"
	"    statement := format('alter database %I set %I from current', current_database(), x.n);\n"
	"    perform pg_catalog.set_config(x.n, x.v, true);\n"
	"    execute statement;\n"
	"    perform pg_catalog.set_config(x.n, was, true);\n"
	"  exception when others then null;\n"
	"  end;\n"
	"end loop;\n"
	"end $steward$";

/* From here on it is there, under its name, and no other is. */
const char pg_piece_sql_change[] =
	"do $steward$\n"
	"declare " WANTED "u name;\n"
	"begin\n"
	"if (w->>'replace')::boolean and exists (select from pg_database where datname = w->>'as') then\n"
	"  execute format('alter database %I rename to %I', w->>'as', w->>'replaced');\n"
	"  execute format('alter database %I is_template false', w->>'replaced');\n"
	"  execute format('alter database %I owner to %I', w->>'replaced', '" PG_RESTORE "');\n"
	"end if;\n"
	"execute format('alter database %I rename to %I', w->>'temporary', w->>'as');\n"
	"select rolname into u from pg_roles where rolname = w->>'owner' and rolcreatedb and " IS_USER ";\n"
	"execute format('alter database %I owner to %I', w->>'as', coalesce(u, '" PG_SUPER "'));\n"
	"execute format('comment on role %I is %L', '" PG_RESTORE "', 'restored ' || (w->>'id'));\n"
	"end $steward$";
/* Nobody renames one that is in use. */
const char pg_piece_sql_empty[] =
	"select count(pg_terminate_backend(pid)) from pg_stat_activity, (select current_setting('steward.wanted')::jsonb w) s where\n"
	"  datname in (w->>'temporary', case when (w->>'replace')::boolean then w->>'as' end) and pid <> pg_backend_pid()";

/* --- one table */

/* A user who has made the database out of template0 can have made functions of these names. */
#define RIGHTS_ARE_OURS \
	"if not exists (select from pg_namespace where nspname = 'steward' and pg_get_userbyid(nspowner) = '" PG_SUPER "') then\n" \
	"  raise 'the database has not been prepared for its users yet';\n" \
	"end if;\n"

const char pg_piece_sql_stage[] =
	"do $steward$\n"
	"declare x record;\n"
	"begin\n"
	RIGHTS_ARE_OURS
	"create schema " PG_STAGING ";\n"
	"grant usage, create on schema " PG_STAGING " to \"" PG_RESTORE "\";\n"
	"execute format('grant connect on database %I to \"" PG_RESTORE "\"', current_database());\n"
	"for x in select nspname from pg_namespace where nspname !~ '^(pg_|steward|information_schema$)' or nspname = 'steward_search' loop\n"
	"  execute format('grant usage on schema %I to \"" PG_RESTORE "\"', x.nspname);\n"
	"end loop;\n"
	"end $steward$";

/* What comes with a table that gets another name gets one, too. */
const char pg_piece_sql_names[] =
	"do $steward$\n"
	"declare " WANTED "x record; rel oid := to_regclass(format('" PG_STAGING ".%I', w->>'table')); made name; n int := 0;\n"
	"begin\n"
	"if (w->>'replace')::boolean then return; end if;\n"
	"for x in select i.oid::regclass what, i.relname, i.relkind from pg_class i where i.relkind = 'i' and i.oid in (select indexrelid\n"
	"  from pg_index where indrelid = rel) union all select s.oid::regclass, s.relname, s.relkind from pg_class s join pg_depend d on\n"
	"  d.objid = s.oid and d.classid = 'pg_class'::regclass and refobjid = rel and deptype in ('a', 'i') where s.relkind = 'S'\n"
	"loop\n"
	"  loop\n"
	"    made := left(x.relname, 30) || (w->>'suffix') || case n when 0 then '' else '_' || n end;\n"
	"    exit when to_regclass(format('" PG_STAGING ".%I', made)) is null and to_regclass(format('%I.%I', w->>'schema', made)) is null;\n"
	"    n := n + 1;\n"
	"  end loop;\n"
	"  execute format('alter %s %s rename to %I', case x.relkind when 'S' then 'sequence' else 'index' end, x.what, made);\n"
	"end loop;\n"
	"end $steward$";

/* It takes its place, with the rights of the groups, and those that users have on the table of now: none that code of
 * it has given away while it was written. Who sees only rows of the one of now by its policies does not see all of
 * this one. */
const char pg_piece_sql_place[] =
	"do $steward$\n"
	"declare " WANTED "x record; db constant text := current_database(); o constant name := " OWNERS ";\n"
	"  rel oid := to_regclass(format('" PG_STAGING ".%I', w->>'table')); old oid := to_regclass(format('%I.%I', w->>'schema', w->>'table'));\n"
	"  given jsonb; guarded boolean;\n"
	"begin\n"
	RIGHTS_ARE_OURS
	"if not exists (select from pg_class where oid = rel and relkind = 'r' and " IS_ITS("relowner") ") then\n"
	"  raise 'the table did not come';\n"
	"end if;\n"
	"select coalesce(jsonb_agg(to_jsonb(k)), '[]') into given from (select null::name col, coalesce(rolname, '') who, privilege_type p,\n"
	"    is_grantable g from pg_class c, aclexplode(relacl) k left join pg_roles r on r.oid = k.grantee where c.oid = old and\n"
	"    k.grantee <> relowner and (k.grantee = 0 or " IS_USER ") union all select attname, coalesce(rolname, ''), privilege_type,\n"
	"    is_grantable from pg_attribute a join pg_class c on c.oid = attrelid, aclexplode(attacl) k left join pg_roles r on r.oid =\n"
	"    k.grantee where attrelid = old and not attisdropped and k.grantee <> relowner and (k.grantee = 0 or " IS_USER ")) k;\n"
	"guarded := coalesce((select relrowsecurity from pg_class where oid = old), false);\n"
	"if (w->>'replace')::boolean and old is not null then execute format('drop table %s', old::regclass); end if;\n"
	"if w->>'as' <> w->>'table' then execute format('alter table %s rename to %I', rel::regclass, w->>'as'); end if;\n"
	"execute format('alter table %s set schema %I', rel::regclass, w->>'schema');\n"
	"for x in select distinct grantee from pg_class, aclexplode(relacl) where oid = rel and grantee <> relowner union select distinct\n"
	"  grantee from pg_attribute, aclexplode(attacl) where attrelid = rel\n"
	"loop\n"
	"  execute format('revoke all on table %s from %s cascade', rel::regclass, case x.grantee when 0 then 'public' else\n"
	"    quote_ident(pg_get_userbyid(x.grantee)) end);\n"
	"end loop;\n"
	"execute format('alter table %s owner to %I', rel::regclass, o);\n"
	"perform steward.relation(rel);\n"
	"for x in select oid from pg_class s where relkind = 'S' and exists (select from pg_depend d where d.objid = s.oid and d.classid =\n"
	"  'pg_class'::regclass and refobjid = rel and deptype in ('a', 'i'))\n"
	"loop\n"
	"  perform steward.relation(x.oid);\n"
	"end loop;\n"
	"for x in select * from jsonb_to_recordset(given) g(col name, who name, p text, g boolean) where col is null or exists (select from\n"
	"  pg_attribute where attrelid = rel and attname = col and not attisdropped)\n"
	"loop\n"
	"  execute format('grant %s%s on table %s to %s%s', x.p, ' (' || quote_ident(x.col) || ')', rel::regclass, case x.who when ''\n"
	"    then 'public' else quote_ident(x.who) end, case when x.g and x.who <> '' then ' with grant option' else '' end);\n"
	"end loop;\n"
	"if guarded then execute format('alter table %s enable row level security', rel::regclass); end if;\n"
	"drop owned by \"" PG_RESTORE "\" cascade;\n"
	"drop schema " PG_STAGING " cascade;\n"
	"execute format('comment on role %I is %L', '" PG_RESTORE "', 'restored ' || (w->>'id'));\n"
	"end $steward$";
/* clang-format on */
