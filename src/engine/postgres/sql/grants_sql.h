/* What the scripts of grants_sql.c and groups_sql.c are made of. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_GRANTS_SQL_H
#define STEWARD_ENGINE_POSTGRES_SQL_GRANTS_SQL_H

#include "engine/postgres/model/model.h"

/* Users cannot make roles, so that every other name is a user's. IS_GROUP is true of the service's groups and of
 * PostgreSQL's own roles, whose members the service chooses as well. */
#define IS_USER "rolname !~ '^(pg_|steward:)' and rolname <> '" PG_SUPER "'"
#define IS_GROUP "rolname ~ '^(pg_|steward:)' and rolname not in ('" PG_SHARD "', '" PG_RESTORE "')"

/* Whom the service is itself: nobody else becomes one of them. */
#define SERVICES "('" PG_SUPER "', '" PG_SHARD "', '" PG_RESTORE "')"

/* Who owns the tables of the database: those who write it, or those who write any where it has no groups yet. */
#define OWNERS                                                                         \
	"case when exists (select from pg_roles where rolname = 'steward:o:' || db)\n" \
	"  then 'steward:o:' || db else 'steward:any:w' end"

/* A mark of who has lost a role: what writers have granted it by hand, itself among them, is yet to be taken back.
 * A group has it too, which was given a user's role by hand: its members' sessions may have become that user.
 * Nobody but the superuser can comment on a role. */
#define ROLE_LOST "''lost a role''"
#define LOST                                                                                                  \
	"select r.oid, rolname from pg_roles r join pg_shdescription s on s.objoid = r.oid and s.classoid = " \
	"'pg_authid'::regclass where description = 'lost a role'"

/* A mark of a group that a user belongs to no more: what it may have left in the group's databases with the
 * group's name, as an owner or as who is granted something, is yet to be looked for. */
#define MEMBER_LOST "''lost a member''"
#define MARKED                                                                                                \
	"select r.oid, rolname from pg_roles r join pg_shdescription s on s.objoid = r.oid and s.classoid = " \
	"'pg_authid'::regclass where description in ('lost a role', 'lost a member')"

/* One thing that cannot be done now keeps nothing else from being: each is tried on its own, without waiting long
 * for anybody's lock, and what failed is told in the setting steward.faults. After the first nobody is waited for any
 * more: a reader that held forty tables kept all else from being taken back for as long as it liked. */
#define ATTEMPT(statements)                                                                      \
	"begin\n" statements "exception when others then faults := faults || sqlerrm || '; ';\n" \
	"set local lock_timeout = 20;\n"                                                         \
	"end;\n"
#define FAULTS_CLEAR "perform set_config('steward.faults', '', false);\n"
#define FAULTS_BEGIN FAULTS_CLEAR "perform set_config('lock_timeout', '2s', true);\n"
#define FAULTS_END "perform set_config('steward.faults', left(faults, 1000), false);\n"

/* clang-format off */
/* The level of a group in one database: r, w, a, o or l; nothing for another database's groups and for
 * PostgreSQL's own roles. */
#define LEVEL(database)                                                                                         \
	"case when rolname ~ '^steward:any:' then substr(rolname, 13) when rolname ~ '^steward:.:' and substr(" \
	"rolname, 11) = " database " then substr(rolname, 9, 1) else '' end"

/* What a group may have been granted: its kind of thing (t table, S sequence, n schema, l large object), its
 * level, the right. Large objects are their owners' to share with those who read the database. */
#define GROUP_RIGHTS \
	"(values ('t', 'r', 'SELECT'), ('t', 'w', 'SELECT'), ('t', 'w', 'INSERT'), ('t', 'w', 'UPDATE'), ('t', 'w', 'DELETE'),\n" \
	"  ('t', 'a', 'TRUNCATE'), ('S', 'r', 'SELECT'), ('S', 'w', 'SELECT'), ('S', 'w', 'USAGE'), ('S', 'w', 'UPDATE'),\n" \
	"  ('n', 'r', 'USAGE'), ('n', 'w', 'USAGE'), ('n', 'w', 'CREATE'), ('n', 'a', 'USAGE'), ('n', 'a', 'CREATE'),\n" \
	"  ('l', 'r', 'SELECT'), ('l', 'w', 'SELECT'), ('d', 'r', 'CONNECT'), ('d', 'r', 'TEMPORARY'), ('d', 'w', 'CONNECT'),\n" \
	"  ('d', 'w', 'TEMPORARY'), ('d', 'w', 'CREATE'), ('d', 'a', 'CONNECT'), ('d', 'a', 'TEMPORARY'), ('d', 'a', 'CREATE'))"

/* All that groups can be granted in a database: kind, column, what it is for a statement, owner, list of rights.
 * `which` is a condition on the catalog's row `a` that has the list. */
#define ACLS(which) \
	"select case relkind when 'S' then 'S' else 't' end kind, null::name col, format('%s %s', case relkind when 'S' then\n" \
	"    'sequence' else 'table' end, oid::regclass) what, relowner own, relacl acl from pg_class a where relacl is not null and\n" \
	"    relpersistence <> 't' and " which "\n" \
	"  union all select 'c', attname, format('table %s', attrelid::regclass), relowner, attacl from pg_attribute a join pg_class c\n" \
	"    on c.oid = attrelid where attacl is not null and not attisdropped and relpersistence <> 't' and " which "\n" \
	"  union all select 'n', null, format('schema %I', nspname), nspowner, nspacl from pg_namespace a where nspacl is not null\n" \
	"    and " which "\n" \
	"  union all select 'f', null, format('routine %s', oid::regprocedure), proowner, proacl from pg_proc a where proacl is not\n" \
	"    null and " which "\n" \
	"  union all select 'y', null, format('type %s', oid::regtype), typowner, typacl from pg_type a where typacl is not null and\n" \
	"    " which "\n" \
	"  union all select 'l', null, format('large object %s', oid), lomowner, lomacl from pg_largeobject_metadata a where lomacl\n" \
	"    is not null and " which
/* clang-format on */

extern const char pg_grants_sql_quiet[], pg_grants_sql_roles_lock[], pg_grants_sql_clear[], pg_grants_sql_revoke[],
        pg_grants_sql_faults[], pg_grants_sql_bar[], pg_grants_sql_roles[], pg_grants_sql_shadows[],
        pg_grants_sql_strangers[], pg_grants_sql_sessions[], pg_grants_sql_installed[], pg_grants_sql_prepare[],
        pg_grants_sql_direct[], pg_grants_sql_version[], pg_grants_sql_noted[], pg_grants_sql_oids[],
        pg_grants_sql_notes[], pg_grants_sql_note[], pg_grants_sql_template_done[], pg_grants_sql_template[],
        pg_grants_sql_lost_roles[], pg_grants_sql_lost_count[], pg_grants_sql_lost[], pg_grants_sql_lost_done[];
extern const char *const pg_grants_sql_install[]; /* up to NULL */

#endif
