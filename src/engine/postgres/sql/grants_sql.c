/* What runs inside the databases to keep rights as they are wanted: see grants.c. The scripts are constant;
 * what is wanted comes to them as JSON in the setting steward.wanted, so that no name is ever part of a statement's
 * text without being quoted by the server itself.
 *
 * In every database, and in the template of those to come, a trigger gives new tables the rights of the groups, and of
 * the users that were given rights on them or on all tables. It runs as the superuser, so it takes nothing from the one
 * who fires it but object ids, and its functions are out of reach. What single users were given stands in the body of a
 * function and not in a table, because who may write all data could write a table.
 *
 * Whoever owns a table, a view or a function decides what runs with the rights of those who use it, and a schema in the
 * search path is such a place too. So only a database's writers own anything there. Others who may create (dbAdmin, the
 * action CREATE_COLLECTION) create tables without code in them, and these become the writers' at once: a second trigger
 * refuses everything else. Without that, a dbAdmin read all data through a trigger that the next writer fired.
 *
 * Function bodies here hold no backslash: a session with standard_conforming_strings off would read another text.
 *
 * Who owns the schema owns what the superuser calls there. A user who has made a database out of template0 can have
 * made the schema before: so whose it is is looked at first, each time. */
#include "engine/postgres/sql/grants_sql.h"

/* Verifiers must not end up in logs that users can read, where the context of an error would tell them too, nor in
 * pg_stat_activity. */
const char pg_grants_sql_quiet[] =
        "set log_statement = 'none'; set log_min_duration_statement = -1; set log_duration = off; "
        "set log_min_messages = 'panic'; set log_min_error_statement = 'panic'; set track_activities = off; "
        "set pgaudit.log = 'none'; set lock_timeout = '2s'; "
        /* A quorum that misses its standbys keeps nobody in: who takes over is held against where the change has
         * ended. */
        "set synchronous_commit = local";

/* The names of roles that are not ours: users that are gone. */
#define STRANGERS                                                  \
	"select rolname from pg_roles where rolname <> '" PG_SUPER \
	"' and rolname !~ '^(pg_|steward:)' and not exists "       \
	"(select from jsonb_array_elements(wanted->'users') one where one->>'name' = rolname)"

/* Users may change their own passwords, and one who never commits would keep out every change of users, its own end
 * among them: who holds what the next script needs is put out first, and so is who is gone. Nobody waits for each of
 * them to end: that takes a tenth of a second, and a hundred sessions would outlast the call. */
#define HOLDS_ROLES                                                                                     \
	"pid in (select pid from pg_locks where granted and mode = 'RowExclusiveLock' and relation in " \
	"('pg_authid'::regclass, 'pg_db_role_setting'::regclass))"
#define IS_CLIENT "usename <> '" PG_SUPER "' and backend_type = 'client backend'"
const char pg_grants_sql_clear[] =
        "with wanted as (select current_setting('steward.wanted')::jsonb wanted) select "
        "count(pg_terminate_backend(pid)) from pg_stat_activity where " IS_CLIENT
        " and (usename in (select s.rolname from wanted, lateral (" STRANGERS ") s) or " HOLDS_ROLES ")";

/* Who is put out comes back and takes it again. While this waits nobody else gets it, so that only those are in the way
 * who came between the two: they are put out as well, until there are none. */
#define ROLES_LOCK                                                                                               \
	"for i in 1..40 loop\n"                                                                                  \
	"  begin\n"                                                                                              \
	"    perform set_config('lock_timeout', '200ms', true);\n"                                               \
	"    lock table pg_authid in share row exclusive mode;\n"                                                \
	"    exit;\n"                                                                                            \
	"  exception when lock_not_available then\n"                                                             \
	"    if i = 40 then raise; end if;\n"                                                                    \
	"    perform pg_stat_clear_snapshot();\n"                                                                \
	"    perform pg_terminate_backend(pid) from pg_stat_activity where " IS_CLIENT " and " HOLDS_ROLES ";\n" \
	"  end;\n"                                                                                               \
	"end loop;\n"

const char pg_grants_sql_roles_lock[] = ROLES_LOCK;

const char pg_grants_sql_lost_roles[] = LOST;
const char pg_grants_sql_lost_count[] = "select count(*) from (" MARKED ") l";

/* Whatever is to be taken away: {"users": [{"name", "password", "createdb", "groups": []}]}. */
const char pg_grants_sql_faults[] = "select current_setting('steward.faults', true)";

/* clang-format off */
const char pg_grants_sql_revoke[] =
	"do $steward$\n"
	"declare wanted constant jsonb := current_setting('steward.wanted')::jsonb; g text; m text; u record;\n"
	"  faults text := '';\n"
	"begin\n"
	ROLES_LOCK
	FAULTS_BEGIN
	"for g in " STRANGERS " and (rolcanlogin or rolcreatedb) loop\n"
	ATTEMPT("    execute format('alter role %I nologin nocreatedb password null', g);\n")
	"end loop;\n"
	/* A password that is none of ours any more, and what a user made of its own role. */
	"for u in select x.name, x.password, x.createdb from jsonb_to_recordset(wanted->'users') as x(name text, password text,\n"
	"  createdb boolean) join pg_authid a on a.rolname = x.name where (a.rolpassword is not null and a.rolpassword is\n"
	"  distinct from x.password) or (a.rolcreatedb and not x.createdb) or a.rolsuper or a.rolcreaterole or\n"
	"  a.rolreplication or a.rolbypassrls\n"
	"loop\n"
	ATTEMPT("    execute format('alter role %I nosuperuser nocreaterole noreplication nobypassrls %s password %L',\n"
		"      u.name, case when u.createdb then '' else 'nocreatedb' end, u.password);\n")
	"end loop;\n"
	"for g, m in select a.rolname, b.rolname from pg_auth_members k join pg_roles a on a.oid = k.roleid join pg_roles b on\n"
	"  b.oid = k.member where b.rolname <> '" PG_SUPER "' and b.rolname !~ '^(pg_|steward:)' and not exists (select from\n"
	"  jsonb_array_elements(wanted->'users') one where one->>'name' = b.rolname and one->'groups' ? a.rolname::text)\n"
	"loop\n"
	ATTEMPT("    execute format('revoke %I from %I', g, m);\n"
		"    execute format('comment on role %I is " ROLE_LOST "', m);\n"
		"    if g ~ '^steward:' and shobj_description((select oid from pg_roles where rolname = g), 'pg_authid') is null then\n"
		"      execute format('comment on role %I is " MEMBER_LOST "', g);\n"
		"    end if;\n")
	"end loop;\n"
	/* Before PostgreSQL 15 users could give membership in themselves, to a group as well: all its members had the
	 * user's rights. */
	"for g, m in select a.rolname, b.rolname from pg_auth_members k join pg_roles a on a.oid = k.roleid join pg_roles b on\n"
	"  b.oid = k.member where b.rolname ~ '^(pg_|steward:)' and not (a.oid < 16384 and b.oid < 16384) and not (a.rolname ~\n"
	"  '^steward:o:' and b.rolname = 'steward:any:w') and not (a.rolname ~ '^steward:.:' and b.rolname ~ '^steward:.:' and\n"
	"  substr(a.rolname, 11) = substr(b.rolname, 11) and substr(a.rolname, 9, 1) || substr(b.rolname, 9, 1) in ('ow', 'ao',\n"
	"  'la'))\n"
	"loop\n"
	ATTEMPT("    execute format('revoke %I from %I', g, m);\n"
		"    execute format('comment on role %I is " ROLE_LOST "', m);\n")
	"end loop;\n"
	"for g, m in select d.datname, r.rolname from pg_database d join pg_roles r on r.oid = d.datdba where\n"
	"  r.rolname in (" STRANGERS ")\n"
	"loop\n"
	ATTEMPT("    execute format('alter database %I owner to " PG_SUPER "', g);\n")
	"end loop;\n"
	FAULTS_END
	"end $steward$";
/* clang-format on */

/* Groups, users, memberships: {"databases": ["shop"], "users": [{"name", "password", "createdb", "groups": []}]}. Only
 * what differs is touched. */
const char pg_grants_sql_roles[] =
        "do $steward$\n"
        "declare wanted constant jsonb := current_setting('steward.wanted')::jsonb; g text; m text; u record; cur "
        "record;\n"
        "  have text[]; faults text := '';\n"
        "begin\n" ROLES_LOCK FAULTS_BEGIN
        "for g in select 'steward:any:' || l from unnest(array['r','w','a']) l union all\n"
        "  select 'steward:' || l || ':' || x from jsonb_array_elements_text(wanted->'databases') x,\n"
        "    unnest(array['r','w','a','o','l']) l except select rolname::text from pg_roles\n"
        "loop\n"
        "  execute format('create role %I nologin', g);\n"
        "end loop;\n"
        "for g, m in select x.g, x.m from (\n"
        "    select 'steward:' || k.g || ':' || d.name, case k.m when 'any' then 'steward:any:w' else "
        "'steward:' ||\n"
        "      k.m || ':' || d.name end from jsonb_array_elements_text(wanted->'databases') d(name),\n"
        "      (values ('o', 'w'), ('o', 'any'), ('a', 'o'), ('l', 'a')) k(g, m)\n"
        "  ) x(g, m) except select a.rolname::text, b.rolname::text from pg_auth_members k join pg_roles a on\n"
        "    a.oid = k.roleid join pg_roles b on b.oid = k.member\n"
        "loop\n"
        "  execute format('grant %I to %I', g, m);\n"
        "end loop;\n"
        /* These read the catalogs too, every user's password verifier among them. Earlier versions gave them. */
        "for g, m in select a.rolname, b.rolname from pg_auth_members k join pg_roles a on a.oid = k.roleid join "
        "pg_roles b on\n"
        "  b.oid = k.member where a.rolname in ('pg_read_all_data', 'pg_write_all_data') and b.rolname ~ '^steward:'\n"
        "loop\n"
        "  execute format('revoke %I from %I', g, m);\n"
        "end loop;\n"
        "for u in select * from jsonb_to_recordset(wanted->'users') as x(name text, password text, createdb boolean,\n"
        "    groups text[])\n"
        "loop\n"
        "  begin\n"
        "  select rolcanlogin, rolcreatedb, rolpassword into cur from pg_authid where rolname = u.name;\n"
        "  if not found then execute format('create role %I', u.name); end if;\n"
        "  if cur.rolcanlogin is not true or cur.rolcreatedb is distinct from u.createdb or cur.rolpassword is "
        "distinct\n"
        "    from u.password\n"
        "  then\n"
        "    execute format('alter role %I login nosuperuser nocreaterole noreplication nobypassrls inherit %s "
        "password %L',\n"
        "      u.name, case when u.createdb then 'createdb' else 'nocreatedb' end, u.password);\n"
        "  end if;\n"
        "  have := array(select r.rolname::text from pg_auth_members k join pg_roles r on r.oid = k.roleid join "
        "pg_roles n\n"
        "    on n.oid = k.member where n.rolname = u.name);\n"
        "  for g in select unnest(u.groups) except select unnest(have) loop\n"
        "    if exists (select from pg_roles where rolname = g) then execute format('grant %I to %I', g, u.name);\n"
        "    else faults := faults || format('%s: there is no database %s; ', u.name, substr(g, 11)); end if;\n"
        "  end loop;\n"
        "  exception when others then faults := faults || u.name || ': ' || sqlerrm || '; ';\n"
        "  end;\n"
        "end loop;\n" FAULTS_END "end $steward$";

/* Who comes in another's name begins as that one. */
const char pg_grants_sql_shadows[] =
        "do $steward$\n"
        "declare u record;\n"
        "begin\n"
        "for u in select x.name, x.other from (select one->>'name' as name, one->>'as' as other from "
        "jsonb_array_elements(\n"
        "  current_setting('steward.wanted')::jsonb->'users') one) x join pg_roles r on r.rolname = x.name join "
        "pg_roles o\n"
        "  on o.rolname = x.other where not exists (select from pg_db_role_setting s where s.setrole = r.oid and\n"
        "  s.setdatabase = 0 and 'role=' || x.other = any(s.setconfig))\n"
        "loop\n"
        "  execute format('alter role %I set role = %L', u.name, u.other);\n"
        "end loop;\n"
        "end $steward$";

/* {"database", "rights"}: what single users have to connect there by. */
const char pg_grants_sql_bar[] =
        "do $steward$\n"
        "declare wanted constant jsonb := current_setting('steward.wanted')::jsonb; g text;\n"
        "begin\n"
        "for g in select distinct r.rolname from pg_database d, aclexplode(d.datacl) k join pg_roles r on r.oid = "
        "k.grantee\n"
        "  where d.datname = wanted->>'database' and r.rolname !~ '^(pg_|steward:)' and not exists (select from\n"
        "  jsonb_array_elements(wanted->'rights') one where one->>'u' = r.rolname)\n"
        "loop\n"
        "  execute format('revoke all on database %I from %I', wanted->>'database', g);\n"
        "end loop;\n"
        "end $steward$";

/* After every database has let go of them. One that still holds something where nobody looked stays, as nobody. */
const char pg_grants_sql_strangers[] =
        "do $steward$\n"
        "declare wanted constant jsonb := current_setting('steward.wanted')::jsonb; g text;\n"
        "begin\n"
        "for g in " STRANGERS " loop\n"
        "  begin execute format('drop role %I', g); exception when dependent_objects_still_exist then null; end;\n"
        "end loop;\n"
        "end $steward$";

const char pg_grants_sql_sessions[] = "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename in "
                                      "(select rolname from pg_roles where "
                                      "not rolcanlogin and rolname <> '" PG_SUPER "')";

#define VERSION "6"
const char pg_grants_sql_version[] = VERSION;

#define IS_OURS "pg_get_userbyid(nspowner) = '" PG_SUPER "'"

/* clang-format off */
/* Rights that a group shall not have: GRANT INSERT ... TO "steward:r:shop" let all readers write until somebody lost a
 * role. A trigger is not told whom rights were given to. So what this transaction has changed is looked at, rows that
 * are not older than itself; rows of others that came meanwhile have been looked at as well. It runs with the rights of
 * who fires it, as the guard does. */
#define GROUPS_GUARD \
	"create or replace function steward.groups() returns event_trigger language plpgsql set search_path = pg_catalog, pg_temp\n" \
	"  as $fn$\n" \
	"declare x record; db constant text := current_database();\n" \
	"begin\n" \
	"  if current_user in " SERVICES " or not exists (select from pg_event_trigger_ddl_commands() where\n" \
	"    command_tag in ('GRANT', 'ALTER DEFAULT PRIVILEGES')) then return; end if;\n" \
	"  for x in with acls as (" ACLS("age(a.xmin) <= 0") ")\n" \
	"    select rolname from acls, aclexplode(acl) k join pg_roles r on r.oid = k.grantee where " IS_GROUP " and grantee <> own\n" \
	"      and pg_get_userbyid(own) <> '" PG_SUPER "' and (is_grantable or (kind, " LEVEL("db") ", privilege_type) not in\n" \
	"      " GROUP_RIGHTS ")\n" \
	"    union all select rolname from pg_default_acl a, aclexplode(defaclacl) k join pg_roles r on r.oid = k.grantee where\n" \
	"      " IS_GROUP " and grantee <> defaclrole and age(a.xmin) <= 0\n" \
	"  loop\n" \
	"    raise insufficient_privilege using message = format('permission denied: %s has the rights that the service gives it',\n" \
	"      x.rolname), hint = 'Grant them to users, or to PUBLIC.';\n" \
	"  end loop;\n" \
	"end $fn$"
/* clang-format on */

/* What makes or changes large objects. Servers let everybody call these, and whoever makes one owns it. */
#define LARGE_OBJECT_WRITERS                                                                                  \
	"lo_create(oid), lo_creat(int), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea), lowrite(int, " \
	"bytea), lo_truncate(int, int), lo_truncate64(int, bigint), lo_unlink(oid)"

/* Notes of what was given where, kept as everything else in a function's body, in the database postgres. */
const char pg_grants_sql_noted[] =
        "select count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace where nspname = "
        "'steward' and proname = 'applied' and " IS_OURS;
const char pg_grants_sql_oids[] = "select datname, oid, '', true from pg_database";
/* Name, id, what was noted, whether users that are gone hold something there, users have tables of their own, or its
 * groups have lost a member. */
const char pg_grants_sql_notes[] =
        "with wanted as (select current_setting('steward.wanted')::jsonb wanted), gone as (select oid from pg_roles "
        "where "
        "rolname in (select s.rolname from wanted, lateral (" STRANGERS ") s)) select datname, d.oid, "
        "coalesce(steward.applied()->>d.oid::text, ''), exists (select from pg_shdepend k where k.dbid = d.oid and "
        "k.refclassid "
        "= 'pg_authid'::regclass and k.refobjid in (select oid from gone)) or exists (select from pg_shdepend k join "
        "pg_roles r on "
        "r.oid = k.refobjid where k.dbid = d.oid and k.refclassid = 'pg_authid'::regclass and k.deptype = 'o' and "
        "k.classid "
        "in ('pg_class'::regclass, 'pg_namespace'::regclass) and " IS_USER
        ") or exists (select from pg_shdepend k join (" LOST ") l on l.oid = "
        "k.refobjid where k.dbid = d.oid and k.refclassid = 'pg_authid'::regclass) or exists (select from (" MARKED
        ") m "
        "where rolname ~ '^(pg_|steward:any:)' or (rolname ~ '^steward:' and substr(rolname, 11) = datname)) from "
        "pg_database d";
const char pg_grants_sql_note[] =
        "do $steward$ begin\n"
        "execute format('create or replace function steward.applied() returns jsonb language sql immutable as %L',\n"
        "  format('select %L::jsonb', current_setting('steward.wanted')));\n"
        "revoke all on function steward.applied() from public;\n"
        "end $steward$";

/* Once in each database: the functions and the trigger, in one transaction. */
const char pg_grants_sql_installed[] =
        "select count(*) from pg_namespace n join pg_description d on d.objoid = n.oid and d.classoid = "
        "'pg_namespace'::regclass where nspname = 'steward' and description like 'rights " VERSION "%' and " IS_OURS;

const char *const pg_grants_sql_install[] = {
        "begin",
        /* A user's schema of that name gets another. One that is made this very moment is met by the second look. */
        "do $do$ declare x record; begin\n"
        "for x in select oid, nspname from pg_namespace where nspname ~ '^steward' and not " IS_OURS " loop\n"
        "  execute format('alter schema %I rename to %I', x.nspname, 'not_' || left(x.nspname, 40) || '_' || x.oid);\n"
        "end loop;\n"
        "create schema if not exists steward;\n"
        "if exists (select from pg_namespace where nspname = 'steward' and not " IS_OURS ") then\n"
        "  raise 'the schema steward is not ours';\n"
        "end if;\n"
        "end $do$",
        /* The template's grants name them, and it is prepared before there are users. */
        "do $do$ declare g name; begin\n"
        "for g in select 'steward:any:' || l from unnest(array['r','w','a']) l except select rolname from pg_roles "
        "loop\n"
        "  execute format('create role %I nologin', g);\n"
        "end loop;\n"
        "end $do$",
        /* [{"u": user, "t": table or "", "p": "SELECT, INSERT", "c": may create tables}] */
        "create or replace function steward.rights() returns jsonb language sql immutable as $$select '[]'::jsonb$$",
        /* What users were given themselves on one relation: all of them, or one. */
        "create or replace function steward.direct(rel oid, who name) returns void language plpgsql set search_path =\n"
        "  pg_catalog, pg_temp as $fn$\n"
        "declare c record; x record; tab oid := rel;\n"
        "begin\n"
        "  select relkind, relname, nspname into c from pg_class k join pg_namespace n on n.oid = relnamespace where "
        "k.oid = rel;\n"
        "  if c.relkind = 'S' then\n"
        "    select refobjid into tab from pg_depend where objid = rel and classid = 'pg_class'::regclass and "
        "refclassid =\n"
        "      'pg_class'::regclass and deptype in ('a', 'i');\n"
        "    select relname into c.relname from pg_class where oid = tab;\n"
        "  end if;\n"
        "  for x in select r->>'u' u, r->>'t' t, r->>'p' p from jsonb_array_elements(steward.rights()) r join pg_roles "
        "on\n"
        "    rolname = r->>'u' where (who is null or rolname = who) and r->>'p' <> '' and (r->>'t' = '' or (r->>'t' = "
        "c.relname and\n"
        "    c.nspname = 'public'))\n"
        "  loop\n"
        "    if c.relkind <> 'S' then\n"
        "      execute format('grant %s on %s to %I', x.p, rel::regclass, x.u);\n"
        "    elsif x.p like '%INSERT%' then\n"
        "      execute format('grant usage, select on sequence %s to %I', rel::regclass, x.u);\n"
        "    end if;\n"
        "  end loop;\n"
        "end $fn$",
        /* Whether an expression, as the catalogs keep it, is made of constants, columns and built-in functions that
         * neither read nor change anything. A built-in one is no proof: query_to_xml() runs any query, pg_notify()
         * tells. */
        "create or replace function steward.plain(tree text) returns boolean language sql stable set search_path = "
        "pg_catalog,\n"
        "  pg_temp as $fn$\n"
        "select not exists (select from regexp_matches(tree, '[{]([^ }]+)', 'g') m where m[1] not in ('CONST', 'VAR', "
        "'FUNCEXPR',\n"
        "    'OPEXPR', 'DISTINCTEXPR', 'NULLIFEXPR', 'SCALARARRAYOPEXPR', 'BOOLEXPR', 'NULLTEST', 'BOOLEANTEST', "
        "'RELABELTYPE',\n"
        "    'COERCEVIAIO', 'COALESCEEXPR', 'MINMAXEXPR', 'ARRAYEXPR', 'ARRAY', 'SQLVALUEFUNCTION', 'NEXTVALUEEXPR'))\n"
        "  and not exists (select from regexp_matches(tree, ':(?:op)?funcid ([0-9]+)', 'g') m where not exists (select "
        "from "
        "pg_proc p\n"
        "    join pg_language l on l.oid = p.prolang where p.oid = m[1]::oid and lanname = 'internal' and pronamespace "
        "=\n"
        "    'pg_catalog'::regnamespace and (provolatile = 'i' or proname in ('nextval', 'now', "
        "'transaction_timestamp',\n"
        "    'statement_timestamp', 'clock_timestamp', 'gen_random_uuid', 'random', 'date', 'timestamp', "
        "'timestamptz'))))\n"
        "$fn$",
        /* A domain is code too, and can be a temporary one: types are built in, or the writers'. */
        "create or replace function steward.is_plain(rel oid, owners name) returns boolean language sql stable set "
        "search_path =\n"
        "  pg_catalog, pg_temp as $fn$\n"
        "select not exists (select from pg_attribute join pg_type y on y.oid = atttypid where attrelid = rel and "
        "attnum > "
        "0 and\n"
        "    typnamespace <> 'pg_catalog'::regnamespace and not pg_has_role(typowner, owners, 'member'))\n"
        "  and not exists (select from pg_trigger where tgrelid = rel and not tgisinternal)\n"
        "  and not exists (select from pg_rewrite where ev_class = rel)\n"
        "  and not exists (select from pg_policy where polrelid = rel)\n"
        "  and not exists (select from pg_statistic_ext where stxrelid = rel)\n"
        "  and not exists (select from pg_inherits where rel in (inhrelid, inhparent))\n"
        "  and not exists (select from pg_index where indrelid = rel and (indexprs is not null or indpred is not "
        "null))\n"
        "  and not exists (select from pg_partitioned_table where partrelid = rel and partexprs is not null)\n"
        "  and not exists (select from pg_attrdef where adrelid = rel and not steward.plain(adbin::text))\n"
        "  and not exists (select from pg_constraint where conrelid = rel and conbin is not null and not\n"
        "    steward.plain(conbin::text))\n"
        "$fn$",
        /* Whether the writers can be made a table's owners: indexes, statistics and partition keys run with these
         * rights. */
        "create or replace function steward.is_safe(rel oid, owners name) returns boolean language sql stable set "
        "search_path =\n"
        "  pg_catalog, pg_temp as $fn$\n"
        "with code as (select classid, objid from (select 'pg_class'::regclass, rel union all select "
        "'pg_class'::regclass,\n"
        "    indexrelid from pg_index where indrelid = rel union all select 'pg_statistic_ext'::regclass, oid from\n"
        "    pg_statistic_ext where stxrelid = rel) k(classid, objid)),\n"
        "  used as (select refclassid, refobjid from pg_depend d join code using (classid, objid))\n"
        "select not exists (select from used join pg_proc p on p.oid = refobjid and refclassid = 'pg_proc'::regclass "
        "where\n"
        "    not pg_has_role(proowner, owners, 'member'))\n"
        "  and not exists (select from used join pg_operator p on p.oid = refobjid and refclassid = "
        "'pg_operator'::regclass\n"
        "    where not pg_has_role(oprowner, owners, 'member'))\n"
        "  and not exists (select from used join pg_type p on p.oid = refobjid and refclassid = 'pg_type'::regclass "
        "where "
        "not\n"
        "    pg_has_role(typowner, owners, 'member'))\n"
        "$fn$",
        "create or replace function steward.relation(rel oid) returns void language plpgsql set search_path = "
        "pg_catalog,\n"
        "  pg_temp as $fn$\n"
        "declare c record; db constant text := current_database(); g record; o constant name := " OWNERS ";\n"
        "  part boolean;\n"
        "begin\n"
        "  select relkind, nspname, relowner, pg_get_userbyid(relowner) as owner into c from pg_class k join "
        "pg_namespace n on\n"
        "    n.oid = relnamespace where k.oid = rel and relkind in ('r', 'p', 'v', 'm', 'f', 'S') and relpersistence "
        "<> 't';\n"
        "  if not found or c.nspname ~ '^(pg_|steward|information_schema$)' then return; end if;\n"
        /* A sequence that belongs to a column goes where its table goes. */
        "  part := c.relkind = 'S' and exists (select from pg_depend where objid = rel and classid = "
        "'pg_class'::regclass and\n"
        "    refclassid = 'pg_class'::regclass and deptype in ('a', 'i'));\n"
        /* What somebody has who does not write the database: of a table that is new, or that a writer took before it
         * lost its role. A view works with its owner's rights, so it stays its owner's. */
        "  if c.owner not in ('" PG_SUPER "', '" PG_SHARD
        "') and not part and not pg_has_role(c.relowner, o, 'member') "
        "and\n"
        "    (c.relkind not in ('r', 'p', 'S') or not steward.is_safe(rel, o))\n"
        "  then return; end if;\n"
        /* Who writes the database owns its tables together with all others who do; in one that a user has just made,
         * with those who write any. */
        "  if c.owner not in (o, '" PG_SUPER "', '" PG_SHARD "') and not part then\n"
        "    execute format('alter %s %s owner to %I', case c.relkind when 'v' then 'view' when 'm' then 'materialized "
        "view'\n"
        "      when 'f' then 'foreign table' when 'S' then 'sequence' else 'table' end, rel::regclass, o);\n"
        "  end if;\n"
        "  for g in select v.*, case when w = 'any' then 'steward:any:' || l else 'steward:' || l || ':' || db end as "
        "name from\n"
        "    (values ('r', 'select', 'select'), ('w', 'select, insert, update, delete', 'usage, select, update'),\n"
        "      ('a', 'truncate', null)) v(l, tables, sequences), unnest(array['any', 'one']) w\n"
        "  loop\n"
        "    continue when not exists (select from pg_roles where rolname = g.name);\n"
        "    if c.relkind <> 'S' then\n"
        "      execute format('grant %s on %s to %I', g.tables, rel::regclass, g.name);\n"
        "    elsif g.sequences is not null then\n"
        "      execute format('grant %s on sequence %s to %I', g.sequences, rel::regclass, g.name);\n"
        "    end if;\n"
        "  end loop;\n"
        "  perform steward.direct(rel, null);\n"
        "end $fn$",
        "create or replace function steward.namespace(ns oid) returns void language plpgsql set search_path = "
        "pg_catalog,\n"
        "  pg_temp as $fn$\n"
        "declare s record; db constant text := current_database(); g record; o constant name := " OWNERS ";\n"
        "begin\n"
        "  select nspname, nspowner, pg_get_userbyid(nspowner) as owner into s from pg_namespace where oid = ns;\n"
        "  if not found or s.nspname ~ '^(pg_|steward|information_schema$)' then return; end if;\n"
        "  if s.owner not in (o, '" PG_SUPER "', '" PG_SHARD "', 'pg_database_owner') then\n"
        "    execute format('alter schema %I owner to %I', s.nspname, o);\n"
        "  end if;\n"
        "  for g in select v.*, case when w = 'any' then 'steward:any:' || l else 'steward:' || l || ':' || db end as "
        "name from\n"
        "    (values ('r', 'usage'), ('w', 'usage, create'), ('a', 'usage, create')) v(l, rights), unnest(array['any', "
        "'one']) w\n"
        "  loop\n"
        "    continue when not exists (select from pg_roles where rolname = g.name);\n"
        "    execute format('grant %s on schema %I to %I', g.rights, s.nspname, g.name);\n"
        "  end loop;\n"
        "  for g in select r->>'u' u, bool_or((r->>'c')::boolean) c from jsonb_array_elements(steward.rights()) r join "
        "pg_roles on\n"
        "    rolname = r->>'u' where r->>'t' = '' or s.nspname = 'public' group by 1\n"
        "  loop\n"
        "    execute format('grant usage%s on schema %I to %I', case when g.c and s.nspname = 'public' then ', create' "
        "else ''\n"
        "      end, s.nspname, g.u);\n"
        "  end loop;\n"
        "end $fn$",
        /* What somebody who does not write the database has just made becomes the writers', and nobody's default
         * privileges on such things shall outlive that. */
        "create or replace function steward.unshare(class oid, obj oid, owners name) returns void language plpgsql set "
        "search_path =\n"
        "  pg_catalog, pg_temp as $fn$\n"
        "declare x record;\n"
        "begin\n"
        "  for x in select what, grantee from (select format('%s %s', case relkind when 'S' then 'sequence' else "
        "'table' "
        "end,\n"
        "      oid::regclass) what, relowner own, relacl acl from pg_class where class = 'pg_class'::regclass and oid "
        "= "
        "obj and\n"
        "      relkind in ('r', 'p', 'S') and relpersistence <> 't' union all select format('schema %I', nspname), "
        "nspowner,\n"
        "      nspacl from pg_namespace where class = 'pg_namespace'::regclass and oid = obj) t, aclexplode(acl)\n"
        "    where grantee <> own and pg_get_userbyid(own) <> '" PG_SHARD
        "' and not pg_has_role(own, owners, 'member')\n"
        "    group by 1, 2\n"
        "  loop\n"
        "    execute format('revoke all on %s from %s cascade', x.what, case x.grantee when 0 then 'public' else\n"
        "      quote_ident(pg_get_userbyid(x.grantee)) end);\n"
        "  end loop;\n"
        "end $fn$",
        "create or replace function steward.on_ddl() returns event_trigger language plpgsql security definer set "
        "search_path =\n"
        "  pg_catalog, pg_temp as $fn$\n"
        "declare x record; db constant text := current_database(); o constant name := " OWNERS ";\n"
        "begin\n"
        "  for x in select distinct classid, objid from pg_event_trigger_ddl_commands() where not in_extension and "
        "schema_name\n"
        "    is distinct from 'pg_temp' and classid in ('pg_class'::regclass, 'pg_namespace'::regclass)\n"
        "  loop\n"
        "    if exists (select from pg_namespace where x.classid = 'pg_namespace'::regclass and oid = x.objid and\n"
        "      nspname ~ '^steward' and not " IS_OURS ")\n"
        "    then raise reserved_name using message = 'the names of schemas must not begin with steward'; end if;\n"
        "    if x.classid = 'pg_class'::regclass and exists (select from pg_class where oid = x.objid and "
        "relpersistence <> "
        "'t' and\n"
        "      relkind in ('r', 'p', 'v', 'm', 'f') and pg_get_userbyid(relowner) not in " SERVICES " and not "
        "pg_has_role(relowner,\n"
        "      o, 'member') and (relkind not in ('r', 'p') or not steward.is_plain(oid, o)))\n"
        "    then\n"
        "      raise insufficient_privilege using message = format('permission denied: %s has code in it (a default, a "
        "check, '\n"
        "        'a generated column or an index that is more than columns and constants)', x.objid::regclass), hint "
        "=\n"
        "        'Who makes such a table needs the role readWrite on this database.';\n"
        "    end if;\n"
        "    perform steward.unshare(x.classid, x.objid, o);\n"
        "    if x.classid = 'pg_namespace'::regclass then perform steward.namespace(x.objid);\n"
        "    else perform steward.relation(x.objid);\n"
        "    end if;\n"
        "  end loop;\n"
        "end $fn$",
        /* It runs with the rights of who fires it, which is how it knows them, also inside of a definer's function.
         * What is made in a temporary schema nobody else meets. */
        "create or replace function steward.guard() returns event_trigger language plpgsql set search_path = "
        "pg_catalog, "
        "pg_temp\n"
        "  as $fn$\n"
        "declare x record; db constant text := current_database(); o constant name := " OWNERS ";\n"
        "begin\n"
        "  if current_user in " SERVICES " then return; end if;\n"
        /* A definer's function ends with its owner's rights, and groups have no end. pg_database_owner is one, too. */
        "  for x in select from pg_event_trigger_ddl_commands() e join pg_proc p on e.classid = 'pg_proc'::regclass "
        "and "
        "p.oid =\n"
        "    e.objid where prosecdef and pg_get_userbyid(proowner) ~ '^(pg_|steward:)'\n"
        "  loop\n"
        "    raise insufficient_privilege using message = 'permission denied: a SECURITY DEFINER function must belong "
        "to a "
        "user';\n"
        "  end loop;\n"
        "  if pg_has_role(current_user, o, 'member') then return; end if;\n"
        "  for x in select * from pg_event_trigger_ddl_commands() loop\n"
        "    continue when x.schema_name = 'pg_temp' or (x.classid = 'pg_trigger'::regclass and exists (select from "
        "pg_trigger t\n"
        "      join pg_class c on c.oid = tgrelid where t.oid = x.objid and relpersistence = 't'));\n"
        "    if TG_TAG not in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'CREATE SEQUENCE', 'CREATE SCHEMA') "
        "or\n"
        "      x.command_tag not in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'CREATE SEQUENCE', 'CREATE "
        "SCHEMA',\n"
        "      'ALTER SEQUENCE', 'CREATE INDEX', 'ALTER TABLE')\n"
        "    then\n"
        "      raise insufficient_privilege using message = format('permission denied: %s needs the role readWrite on "
        "this '\n"
        "        'database', x.command_tag);\n"
        "    end if;\n"
        /* Such a schema would come first in the search path of its namesake. */
        "    if x.classid = 'pg_namespace'::regclass and exists (select from pg_roles join pg_namespace n on n.oid = "
        "x.objid\n"
        "      where rolname = nspname)\n"
        "    then raise insufficient_privilege using message = 'permission denied: a schema of a user''s name'; end "
        "if;\n"
        "  end loop;\n"
        "end $fn$",
        GROUPS_GUARD,
        "revoke all on function steward.rights(), steward.direct(oid, name), steward.plain(text), "
        "steward.is_plain(oid, name), steward.is_safe(oid, name), "
        "steward.relation(oid), steward.namespace(oid), steward.on_ddl(), steward.guard(), steward.groups(), "
        "steward.unshare(oid, oid, "
        "name) from public",
        "do $do$ begin if to_regnamespace('public') is not null then revoke create on schema public from public; end "
        "if; "
        "end $do$",
        "revoke execute on function " LARGE_OBJECT_WRITERS " from public",
        "grant execute on function " LARGE_OBJECT_WRITERS " to \"steward:any:w\"",
        "select steward.namespace(oid) from pg_namespace",
        "drop event trigger if exists steward_check",
        "create event trigger steward_check on ddl_command_end execute function steward.guard()",
        "alter event trigger steward_check enable always",
        "drop event trigger if exists steward_groups",
        "create event trigger steward_groups on ddl_command_end when tag in ('GRANT', 'ALTER DEFAULT PRIVILEGES', "
        "'CREATE SCHEMA')\n"
        "  execute function steward.groups()",
        "alter event trigger steward_groups enable always",
        "drop event trigger if exists steward_ddl",
        "create event trigger steward_ddl on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT "
        "INTO',\n"
        "  'CREATE VIEW', 'CREATE MATERIALIZED VIEW', 'CREATE SEQUENCE', 'CREATE FOREIGN TABLE', 'IMPORT FOREIGN "
        "SCHEMA',\n"
        "  'ALTER TABLE', 'CREATE SCHEMA', 'ALTER SCHEMA') execute function steward.on_ddl()",
        "alter event trigger steward_ddl enable always",
        "comment on schema steward is 'rights " VERSION "'",
        "commit",
        NULL,
};

/* The template of databases to come. */
const char pg_grants_sql_template_done[] =
        "select count(*) from pg_shdescription s join pg_database d on d.oid = s.objoid where s.classoid = "
        "'pg_database'::regclass and datname = 'template1' and description = 'prepared by Steward, rights " VERSION "'";
const char pg_grants_sql_template[] = "revoke all on database template1 from public; comment on database template1 is "
                                      "'prepared by Steward, rights " VERSION "'";

/* clang-format off */

/* The groups' rights on what was there before the trigger; once in each database. */
const char pg_grants_sql_prepare[] =
        "do $steward$\n"
        "declare db constant text := current_database(); done constant text := 'rights " VERSION
        " of ' || db; g record; x record; faults text := '';\n"
        "begin\n"
        FAULTS_CLEAR
        "if obj_description(to_regnamespace('steward'), 'pg_namespace') = done then return; end if;\n"
        /* Everybody connects to postgres: it is where connection strings lead when they name no other. */
        "if db <> 'postgres' then execute format('revoke all on database %I from public', db); end if;\n"
        "for g in select v.*, case when w = 'any' then 'steward:any:' || l else 'steward:' || l || ':' || db end as "
        "name from\n"
        "  (values ('r', 'connect, temporary'), ('w', 'connect, temporary, create'), ('a', 'connect, temporary, "
        "create')) v(l,\n"
        "  rights), unnest(array['any', 'one']) w\n"
        "loop\n"
        "  execute format('grant %s on database %I to %I', g.rights, db, g.name);\n"
        "end loop;\n"
        "execute format('grant execute on function " LARGE_OBJECT_WRITERS " to %I', 'steward:w:' || db);\n"
        "for x in select oid from pg_namespace loop\n"
        ATTEMPT("    perform steward.namespace(x.oid);\n")
        "end loop;\n"
        "for x in select oid from pg_class where relkind in ('r', 'p', 'v', 'm', 'f', 'S') loop\n"
        ATTEMPT("    perform steward.relation(x.oid);\n")
        "end loop;\n"
        /* Earlier versions gave these to administrators. */
        "for x in select distinct c.oid::regclass rel, u.rolname from pg_class c, aclexplode(c.relacl) k join pg_roles "
        "u "
        "on\n"
        "  u.oid = k.grantee where k.privilege_type in ('TRIGGER', 'REFERENCES') and u.rolname in ('steward:any:a',\n"
        "  'steward:a:' || db)\n"
        "loop\n"
        ATTEMPT("    execute format('revoke trigger, references on %s from %I', x.rel, x.rolname);\n")
        "end loop;\n"
        "if faults = '' then execute format('comment on schema steward is %L', done); end if;\n"
        FAULTS_END
        "end $steward$";
/* clang-format on */

/* What users who have lost a role were granted by hand; what the service gives them itself they have again at the
 * end. */
const char pg_grants_sql_lost[] =
        "do $steward$\n"
        "declare x record; what text;\n"
        "begin\n"
        "for x in select distinct l.rolname, k.classid, k.objid from (" LOST " and " IS_USER
        ") l join pg_shdepend k on k.refobjid = l.oid "
        "and\n"
        "  k.refclassid = 'pg_authid'::regclass and deptype = 'a' join pg_database d on d.oid = k.dbid and datname =\n"
        "  current_database()\n"
        "loop\n"
        "  what := case x.classid when 'pg_class'::regclass then (select format('%s %s', case relkind when 'S' then "
        "'sequence'\n"
        "      else 'table' end, oid::regclass) from pg_class where oid = x.objid and relpersistence <> 't')\n"
        "    when 'pg_namespace'::regclass then (select format('schema %I', nspname) from pg_namespace where oid = "
        "x.objid)\n"
        "    when 'pg_proc'::regclass then (select format('routine %s', oid::regprocedure) from pg_proc where oid = "
        "x.objid)\n"
        "    when 'pg_largeobject'::regclass then format('large object %s', x.objid) end;\n"
        "  continue when what is null;\n"
        "  execute format('revoke all on %s from %I cascade', what, x.rolname);\n"
        "  if x.classid = 'pg_class'::regclass then perform steward.direct(x.objid, x.rolname); end if;\n"
        "  if x.classid = 'pg_namespace'::regclass then perform steward.namespace(x.objid); end if;\n"
        "end loop;\n"
        /* And what it would be granted on things to come. */
        "for x in select distinct pg_get_userbyid(defaclrole) o, nspname, defaclobjtype t, rolname from pg_default_acl "
        "left join\n"
        "  pg_namespace n on n.oid = defaclnamespace, aclexplode(defaclacl) k join (" LOST " and " IS_USER
        ") l on l.oid = k.grantee "
        "where\n"
        "  defaclrole <> l.oid\n"
        "loop\n"
        "  execute format('alter default privileges for role %I %s revoke all on %s from %I cascade', x.o,\n"
        "    case when x.nspname is null then '' else format('in schema %I', x.nspname) end, case x.t when 'r' then\n"
        "    'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types' else 'schemas' end,\n"
        "    x.rolname);\n"
        "end loop;\n"
        "end $steward$";
const char pg_grants_sql_lost_done[] =
        "do $steward$\n"
        "declare x record;\n"
        "begin\n"
        "for x in " MARKED " loop execute format('comment on role %I is null', x.rolname); end loop;\n"
        "end $steward$";

/* clang-format off */

/* What users are given themselves, here: steward.wanted has "users" and "rights". Who has what was given before keeps
 * it untouched. And what users that are gone own becomes nobody's, whom those who write the database or administer it
 * may replace. */
const char pg_grants_sql_direct[] =
        "do $steward$\n"
        "declare wanted constant jsonb := current_setting('steward.wanted')::jsonb; db constant text := "
        "current_database();\n"
        "  old constant jsonb := steward.rights(); new constant jsonb := wanted->'rights'; g text; x record;\n"
        "  faults text := '';\n"
        "begin\n"
        FAULTS_CLEAR
        "for g in " STRANGERS " loop\n"
        /* A function that runs with its owner's rights would get those of its new owner. */
        "  for x in select p.oid::regprocedure f, case prokind when 'p' then 'procedure' else 'function' end k from "
        "pg_proc p\n"
        "    where prosecdef and pg_get_userbyid(proowner) = g\n"
        "  loop\n"
        ATTEMPT("    execute format('alter %s %s security invoker', x.k, x.f);\n")
        "  end loop;\n"
        ATTEMPT("    execute format('reassign owned by %I to %I', g, 'steward:l:' || db);\n"
                "    execute format('drop owned by %I', g);\n")
        "end loop;\n"
        FAULTS_END
        "if old = new then return; end if;\n"
        "execute format('create or replace function steward.rights() returns jsonb language sql immutable as %L',\n"
        "  format('select %L::jsonb', new::text));\n"
        "for g in select coalesce(a.u, b.u) from (select r->>'u' u, jsonb_agg(r order by r) rows from "
        "jsonb_array_elements(old) r\n"
        "  group by 1) a full join (select r->>'u' u, jsonb_agg(r order by r) rows from jsonb_array_elements(new) r "
        "group by 1)\n"
        "  b on a.u = b.u where a.rows is distinct from b.rows and exists (select from pg_roles where rolname =\n"
        "  coalesce(a.u, b.u))\n"
        "loop\n"
        "  for x in select distinct c.oid::regclass rel, c.relkind from pg_class c, aclexplode(c.relacl) k join "
        "pg_roles u on\n"
        "    u.oid = k.grantee where u.rolname = g and c.relowner <> u.oid\n"
        "  loop\n"
        "    execute format('revoke all on %s %s from %I', case x.relkind when 'S' then 'sequence' else 'table' end, "
        "x.rel, g);\n"
        "  end loop;\n"
        "  for x in select distinct s.nspname from pg_namespace s, aclexplode(s.nspacl) k join pg_roles u on u.oid = "
        "k.grantee\n"
        "    where u.rolname = g and s.nspowner <> u.oid\n"
        "  loop\n"
        "    execute format('revoke all on schema %I from %I', x.nspname, g);\n"
        "  end loop;\n"
        "  execute format('revoke all on database %I from %I', db, g);\n"
        "  if exists (select from jsonb_array_elements(new) r where r->>'u' = g) then\n"
        "    execute format('grant connect, temporary on database %I to %I', db, g);\n"
        "    for x in select oid from pg_class where relkind in ('r', 'p', 'v', 'm', 'f', 'S') and relnamespace not in "
        "(select\n"
        "      oid from pg_namespace where nspname ~ '^(pg_|steward|information_schema$)')\n"
        "    loop\n"
        "      perform steward.direct(x.oid, g);\n"
        "    end loop;\n"
        "  end if;\n"
        "end loop;\n"
        "for x in select oid from pg_namespace loop perform steward.namespace(x.oid); end loop;\n"
        "end $steward$";
/* clang-format on */
