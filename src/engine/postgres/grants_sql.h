/* What the scripts of grants_sql.c and groups_sql.c are made of. */
#ifndef STEWARD_ENGINE_POSTGRES_GRANTS_SQL_H
#define STEWARD_ENGINE_POSTGRES_GRANTS_SQL_H

/* Users cannot make roles, so that every other name is a user's. IS_GROUP is true of the service's groups and of
 * PostgreSQL's own roles, whose members the service chooses as well. */
#define IS_USER "rolname !~ '^(pg_|steward:)' and rolname <> '" PG_SUPER "'"
#define IS_GROUP "rolname ~ '^(pg_|steward:)' and rolname <> '" PG_SHARD "'"

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

#endif
