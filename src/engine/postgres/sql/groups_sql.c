/* What runs inside the databases to keep the groups as the service made them: see grants.c.
 *
 * * Users who write a database are members of its groups, so that PostgreSQL lets them give those whatever they
 * may give away themselves: rights (GRANT INSERT ... TO "steward:r:shop" let all readers write), and what they
 * own. For that there is REASSIGN OWNED, which fires no event trigger in PostgreSQL 15: a SECURITY DEFINER
 * function that its author had left to the writers' group worked with the group's rights after the author was
 * deleted, and tables that were given to the readers' group were every reader's.
 *
 * * So in each visit of a database everything goes back to whom it is meant for. When a group loses a member, its
 * databases are visited (MEMBER_LOST): what somebody left with a group's name ends with its role, before the
 * answer. */
#include "engine/postgres/sql/groups_sql.h"

#include "engine/postgres/model/model.h"
#include "engine/postgres/sql/grants_sql.h"

/* clang-format off */

/* Owners of relations and schemas. Whose role is lost keeps no table that it took from the writers' group, also
 * where the table's indexes call a function that it took as well. A view works with its owner's rights, so that a
 * user keeps its own, and those of users who are gone stay with steward:l:DB. */
const char pg_grants_sql_owners[] =
	"do $steward$\n"
	"declare x record; db constant text := current_database(); o constant name := 'steward:o:' || db;\n"
	"  l constant name := 'steward:l:' || db; spaces oid[]; relations oid[]; faults text := '';\n"
	"begin\n"
	FAULTS_CLEAR
	"for x in select distinct r.oid, rolname from pg_shdepend k join pg_roles r on r.oid = k.refobjid join pg_database d on\n"
	"  d.oid = k.dbid and datname = db where k.refclassid = 'pg_authid'::regclass and deptype = 'o' and rolname ~ '^steward:'\n"
	"  and rolname not in (o, l, '" PG_SHARD "', '" PG_RESTORE "')\n"
	"loop\n"
	/* What a new owner had been granted becomes part of its being the owner, and goes on with that. */
	ATTEMPT("    spaces := array(select oid from pg_namespace where nspowner = x.oid);\n"
		"    relations := array(select oid from pg_class where relowner = x.oid);\n"
		"    execute format('reassign owned by %I to %I', x.rolname, o);\n"
		"    perform steward.namespace(one) from unnest(spaces) one;\n"
		"    perform steward.relation(one) from unnest(relations) one;\n")
	"end loop;\n"
	"for x in select c.oid, relkind, rolname ~ '^pg_' server, (rolname ~ '^(pg_|steward:)' or r.oid in (select oid from (" LOST
	") t)) and not exists (select from pg_depend where objid = c.oid and classid = 'pg_class'::regclass and refclassid =\n"
	"  'pg_class'::regclass and deptype in ('a', 'i') and relkind = 'S') taken from pg_class c join pg_roles r on r.oid =\n"
	"  relowner where ((" IS_USER ") or rolname = l or rolname ~ '^pg_') and relkind in ('r', 'p', 'v', 'm', 'f', 'S') and\n"
	"  relpersistence <> 't'\n"
	"loop\n"
	ATTEMPT("    if x.taken and (x.server or x.relkind in ('r', 'p', 'S')) then\n"
		"      execute format('alter table %s owner to %I', x.oid::regclass, o);\n"
		"    end if;\n"
		"    perform steward.relation(x.oid);\n")
	"end loop;\n"
	"for x in select n.oid, nspname, rolname ~ '^pg_' server from pg_namespace n join pg_roles r on r.oid = nspowner where (\n"
	"  " IS_USER ") or rolname = l or (rolname ~ '^pg_' and nspname <> 'public')\n"
	"loop\n"
	ATTEMPT("    if x.server then execute format('alter schema %I owner to %I', x.nspname, o); end if;\n"
		"    perform steward.namespace(x.oid);\n")
	"end loop;\n"
	FAULTS_END
	"end $steward$";

/* A definer's function of a group would keep the group's rights when its author has lost them. */
const char pg_grants_sql_definers[] =
	"do $steward$\n"
	"declare x record; faults text := '';\n"
	"begin\n"
	FAULTS_CLEAR
	"for x in select p.oid::regprocedure f from pg_proc p join pg_roles r on r.oid = proowner where prosecdef and " IS_GROUP "\n"
	"loop\n"
	ATTEMPT("    execute format('alter routine %s security invoker', x.f);\n")
	"end loop;\n"
	FAULTS_END
	"end $steward$";

/* Of acls(kind, col, what, own, acl): each right of a group that is none of those, and what was passed on by somebody
 * else than the owner, to or by who has lost a role: the owner's gifts pg_grants_sql_lost takes back. Of the
 * superuser's things nobody else has granted any but the databases that were taken from their makers. `givers` have
 * passed the right on; of a column's also those who may pass on the whole table's, which its own list does not tell. */
#define SURPLUS(database) \
	"select * from (select kind, what, own::regrole::text own, case when col is null then privilege_type else format('%s (%I)',\n" \
	"  privilege_type, col) end p, rolname, is_grantable, grantor <> own by_others, array(select distinct\n" \
	"  o.grantor::regrole::text from aclexplode(acl) o where o.privilege_type = k.privilege_type and o.grantor <> own) givers,\n" \
	"  (kind, " LEVEL(database) ", privilege_type) in " GROUP_RIGHTS " may from acls, aclexplode(acl) k join pg_roles r on\n" \
	"  r.oid = k.grantee where ((" IS_GROUP ") or (grantor <> own and exists (select from (" LOST ") t where t.oid in (k.grantor,\n" \
	"  k.grantee)))) and grantee <> own and (kind = 'd' or pg_get_userbyid(own) <> '" PG_SUPER "')) s where is_grantable or not\n" \
	"  may"

#define OWNERS_REVOKE \
	"      execute format('revoke %s %s on %s from %I cascade', case when x.may then 'grant option for' else '' end,\n" \
	"        x.p, x.what, x.rolname);\n"
#define GIVERS_REVOKE \
	"          execute format('revoke grant option for %s on %s from %s cascade', x.p, x.what, giver);\n"

/* What others than the owner have granted can be taken back through them alone, and not while they belong to the owner:
 * writers keep for PostgreSQL all that the writers' group may pass on. So the thing is nobody's for the moment. And a
 * giver that has only the whole table's right is given the column's, to be taken from with all that came of it. */
#define SURPLUS_REVOKE \
	ATTEMPT("    if x.by_others then\n" \
		"      aside := x.kind in ('t', 'c', 'n') and x.own ~ '^\"steward:(o:|any:w)';\n" \
		"      if aside then execute format('alter %s owner to " PG_SUPER "', x.what); end if;\n" \
		"      foreach giver in array x.givers loop\n" \
		"        if x.kind = 'c' then\n" \
		"          execute format('grant %s on %s to %s with grant option', x.p, x.what, giver);\n" \
		"          execute format('revoke %s on %s from %s cascade', x.p, x.what, giver);\n" \
		"        else\n" GIVERS_REVOKE \
		"        end if;\n" \
		"      end loop;\n" \
		"      if aside then execute format('alter %s owner to %s', x.what, x.own); end if;\n" \
		"    else\n" OWNERS_REVOKE \
		"    end if;\n")

/* What users have granted to groups, here. */
const char pg_grants_sql_surplus[] =
	"do $steward$\n"
	"declare x record; db constant text := current_database(); giver text; aside boolean; faults text := '';\n"
	"begin\n"
	FAULTS_CLEAR
	"for x in with acls as (" ACLS("true") ")\n"
	SURPLUS("db") "\n"
	"loop\n"
	SURPLUS_REVOKE
	"end loop;\n"
	FAULTS_END
	"end $steward$";

/* And what groups would be granted on things to come. */
const char pg_grants_sql_to_come[] =
	"do $steward$\n"
	"declare x record; faults text := '';\n"
	"begin\n"
	FAULTS_CLEAR
	"for x in select distinct pg_get_userbyid(defaclrole) o, nspname, defaclobjtype t, rolname from pg_default_acl left join\n"
	"  pg_namespace n on n.oid = defaclnamespace, aclexplode(defaclacl) k join pg_roles r on r.oid = k.grantee where " IS_GROUP
	"\n"
	"  and defaclrole <> r.oid\n"
	"loop\n"
	ATTEMPT("    execute format('alter default privileges for role %I %s revoke all on %s from %I cascade', x.o,\n"
		"      case when x.nspname is null then '' else format('in schema %I', x.nspname) end, case x.t when 'r' then\n"
		"      'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types' else 'schemas' end,\n"
		"      x.rolname);\n")
	"end loop;\n"
	FAULTS_END
	"end $steward$";

/* Databases, which all share. Who may not make any does not own one: owners change a database's settings and drop
 * it. Groups own none: all their members would. */
const char pg_grants_sql_databases[] =
	"do $steward$\n"
	"declare db name; u name; level text; x record; giver text; faults text := '';\n"
	"begin\n"
	FAULTS_BEGIN
	"for db, u in select datname, rolname from pg_database d join pg_roles r on r.oid = datdba where rolname not in\n"
	"('" PG_SUPER "','" PG_RESTORE "') and (not rolcreatedb or not (" IS_USER "))\n"
	"loop\n"
	/* One that changes its database and does not commit. */
	"  perform pg_terminate_backend(pid) from pg_stat_activity where usename = u and backend_xid is not null;\n"
	/* What a group had been granted has become part of its being the owner. */
	ATTEMPT("execute format('alter database %I owner to " PG_SUPER "', db);\n"
		"select " LEVEL("db") " into level from (select u rolname) t;\n"
		"if level in ('r', 'w', 'a') then\n"
		"execute format('grant connect, temporary%s on database %I to %I', case level when 'r' then '' else ', create'\n"
		"end, db, u);\n"
		"end if;\n")
	"end loop;\n"
	/* Of a name that leaves no room for groups: those who write any database share it. */
	"for db in select datname from pg_database where octet_length(datname) > 52 and datallowconn loop\n"
	ATTEMPT("execute format('revoke all on database %I from public', db);\n"
		"for u in select distinct r.rolname from pg_database d, aclexplode(d.datacl) k join pg_roles r on r.oid =\n"
		"      k.grantee where d.datname = db and d.datdba <> r.oid and r.rolname <> 'steward:any:w'\n"
		"    loop execute format('revoke all on database %I from %I cascade', db, u); end loop;\n"
		"    execute format('grant connect, temporary, create on database %I to \"steward:any:w\"', db);\n")
	"end loop;\n"
	"for x in with acls as (select 'd' kind, null::name col, format('database %I', datname) what, datdba own, datacl acl,\n"
	"    datname from pg_database where datacl is not null)\n"
	SURPLUS("datname") "\n"
	"loop\n"
	ATTEMPT("    if x.by_others then\n"
		"      foreach giver in array x.givers loop\n" GIVERS_REVOKE
		"      end loop;\n"
		"    else\n" OWNERS_REVOKE
		"    end if;\n")
	"end loop;\n"
	FAULTS_END
	"end $steward$";
/* clang-format on */
