/* Users and their grants as PostgreSQL has them. A built-in role on one database is membership in a group of that
 * database (steward:r:DB, steward:w:DB, steward:a:DB: read, read and write, administer); on any database, in
 * steward:any:r and so on. Grants on one table, and single actions of custom roles, go to the user directly. A database
 * that a grant names is made when it is not there: users must be able to connect to it at once.
 *
 * All of one database's changes are one transaction: nobody loses a right for a moment while it is set again. Every
 * login role but the superuser is one of ours, because users cannot make roles. */
#include "engine/postgres.h"

#include "base/buf.h"
#include "base/log.h"

#include <errno.h>

#define TIMEOUT_MS 20000
#define DATABASES_MAX 1000

enum level { LEVEL_READ, LEVEL_WRITE, LEVEL_ADMIN, LEVELS };
static const char level_letter[LEVELS] = {'r', 'w', 'a'};

static const struct {
	const char *role;
	unsigned levels; /* bits of enum level */
	bool any, monitor, signal;
} built_in[] = {
        {"read", 1 << LEVEL_READ, false, false, false},
        {"readWrite", 1 << LEVEL_READ | 1 << LEVEL_WRITE, false, false, false},
        {"dbAdmin", 1 << LEVEL_ADMIN, false, false, false},
        {"readAnyDatabase", 1 << LEVEL_READ, true, false, false},
        {"readWriteAnyDatabase", 1 << LEVEL_READ | 1 << LEVEL_WRITE, true, false, false},
        {"dbAdminAnyDatabase", 1 << LEVEL_ADMIN, true, false, false},
        {"clusterMonitor", 0, true, true, false},
        {"backup", 1 << LEVEL_READ, true, true, false},
        {"enableSharding", 0, true, false, false},
        {"svcAdmin", 1 << LEVEL_READ | 1 << LEVEL_WRITE | 1 << LEVEL_ADMIN, true, true, true},
};

/* Actions of custom roles, already flattened to grants. */
static const struct {
	const char *action, *privilege;
} actions[] = {{"FIND", "SELECT"}, {"INSERT", "INSERT"}, {"UPDATE", "UPDATE"}, {"REMOVE", "DELETE"}};

struct plan {
	PGconn *conn;
	const struct engine_access *access;
	char databases[DATABASES_MAX][64];
	size_t database_count;
};

static int built_in_find(const char *role)
{
	for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
		if (strcmp(built_in[i].role, role) == 0)
			return (int)i;
	return -1;
}

static const char *action_privilege(const char *role)
{
	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (strcmp(actions[i].action, role) == 0)
			return actions[i].privilege;
	return NULL;
}

static const char *text_of(const char *z)
{
	return z ? z : "";
}

/* Whether the grant is for every database. */
static bool grant_is_any(const struct engine_grant *g)
{
	int row = built_in_find(g->role);
	return (row >= 0 && built_in[row].any) || !*text_of(g->database);
}

static void name_add(struct buf *b, const char *name)
{
	buf_c(b, '"');
	for (const char *p = name; *p; p++) {
		if (*p == '"')
			buf_c(b, '"');
		buf_c(b, *p);
	}
	buf_c(b, '"');
}

static void text_add(struct buf *b, const char *text)
{
	buf_z(b, " E'");
	for (const char *p = text; *p; p++) {
		if (*p == '\'' || *p == '\\')
			buf_c(b, *p);
		buf_c(b, *p);
	}
	buf_c(b, '\'');
}

/* "steward:r:DB", or "steward:any:r" without a database. */
static void group_name(char ret_name[80], enum level level, const char *database)
{
	if (database)
		snprintf(ret_name, 80, "steward:%c:%.52s", level_letter[level], database);
	else
		snprintf(ret_name, 80, "steward:any:%c", level_letter[level]);
}

static int run(PGconn *conn, struct buf *b)
{
	buf_c(b, 0);
	int r = b->n > 1 ? sql_do(conn, TIMEOUT_MS, b->p) : 0;
	b->n = 0;
	return r;
}

/* --- databases */

static bool database_known(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->database_count; i++)
		if (strcmp(p->databases[i], name) == 0)
			return true;
	return false;
}

static int databases_read(struct plan *p)
{
	PGresult *rows;
	int r = sql_rows(p->conn, TIMEOUT_MS,
	                 "select datname from pg_database where datallowconn and not datistemplate order by 1", &rows);
	if (r < 0)
		return r;
	for (int i = 0; i < PQntuples(rows) && p->database_count < DATABASES_MAX; i++)
		snprintf(p->databases[p->database_count++], 64, "%s", PQgetvalue(rows, i, 0));
	PQclear(rows);
	return 0;
}

static int database_make(struct plan *p, const char *name, const char **ret_why)
{
	struct buf b = {0};
	if (strlen(name) > 52 || strncmp(name, "template", 8) == 0 || p->database_count == DATABASES_MAX) {
		why_set(ret_why, "database %.60s: a name of at most 52 bytes that is no template", name);
		return -EINVAL;
	}
	buf_z(&b, "create database ");
	name_add(&b, name);
	int r = run(p->conn, &b);
	buf_z(&b, "revoke all on database ");
	name_add(&b, name);
	buf_z(&b, " from public");
	r = r < 0 ? r : run(p->conn, &b);
	buf_free(&b);
	if (r == 0)
		snprintf(p->databases[p->database_count++], 64, "%s", name);
	return r;
}

static int databases_make(struct plan *p, const char **ret_why)
{
	for (size_t i = 0; i < p->access->user_count; i++)
		for (size_t k = 0; k < p->access->users[i].grant_count; k++) {
			const struct engine_grant *g = &p->access->users[i].grants[k];
			if (grant_is_any(g) || database_known(p, g->database))
				continue;
			int r = database_make(p, g->database, ret_why);
			if (r < 0)
				return r;
		}
	return 0;
}

/* --- roles, all of them in one transaction in the database postgres */

static void group_ensure(struct buf *b, const char *name)
{
	buf_z(b, "do $do$ begin create role ");
	name_add(b, name);
	buf_z(b, " nologin; exception when duplicate_object then null; end $do$;\n");
}

static void groups_ensure(struct buf *b, const struct plan *p)
{
	char name[80];
	for (int level = 0; level < LEVELS; level++) {
		group_name(name, level, NULL);
		group_ensure(b, name);
		for (size_t d = 0; d < p->database_count; d++) {
			group_name(name, level, p->databases[d]);
			group_ensure(b, name);
		}
	}
	buf_z(b, "grant pg_read_all_data to \"steward:any:r\"; grant pg_read_all_data, pg_write_all_data to "
	         "\"steward:any:w\";\n");
}

static void connect_grant(struct buf *b, const struct plan *p)
{
	char name[80];
	for (size_t d = 0; d < p->database_count; d++)
		for (int level = 0; level < LEVELS; level++)
			for (int any = 0; any < 2; any++) {
				buf_printf(b, "grant connect, temporary%s on database ",
				           level == LEVEL_ADMIN ? ", create" : "");
				name_add(b, p->databases[d]);
				group_name(name, level, any ? NULL : p->databases[d]);
				buf_z(b, " to ");
				name_add(b, name);
				buf_z(b, ";\n");
			}
}

static void member_add(struct buf *b, const char *group, const char *user)
{
	buf_z(b, "grant ");
	name_add(b, group);
	buf_z(b, " to ");
	name_add(b, user);
	buf_z(b, ";\n");
}

static void user_grant(struct buf *b, const struct engine_user *u, const struct engine_grant *g)
{
	int row = built_in_find(g->role);
	char name[80];
	if (row < 0 || *text_of(g->collection))
		return;
	bool any = grant_is_any(g);
	for (int level = 0; level < LEVELS; level++)
		if (built_in[row].levels & (1u << level)) {
			group_name(name, level, any ? NULL : g->database);
			member_add(b, name, u->name);
		}
	if (built_in[row].monitor)
		member_add(b, "pg_monitor", u->name);
	if (built_in[row].signal)
		member_add(b, "pg_signal_backend", u->name);
}

/* Whether the user may make databases: who writes or administers any. */
static bool user_makes_databases(const struct engine_user *u)
{
	for (size_t k = 0; k < u->grant_count; k++) {
		int row = built_in_find(u->grants[k].role);
		if (row >= 0 && built_in[row].any && built_in[row].levels & ~(1u << LEVEL_READ))
			return true;
	}
	return u->super;
}

static void user_ensure(struct buf *b, const struct engine_user *u)
{
	static const struct engine_grant all = {"svcAdmin", "", ""};
	group_ensure(b, u->name);
	buf_z(b, "alter role ");
	name_add(b, u->name);
	buf_printf(b, " login nosuperuser nocreaterole noreplication %screatedb password ",
	           user_makes_databases(u) ? "" : "no");
	if (u->scram)
		text_add(b, u->scram);
	else
		buf_z(b, "null");
	buf_z(b, ";\n");
	/* All memberships anew; in one transaction nobody sees the gap. */
	buf_z(b, "do $do$ declare g name; begin for g in select r.rolname from pg_auth_members m join pg_roles r on "
	         "r.oid = "
	         "m.roleid join pg_roles u on u.oid = m.member where u.rolname = ");
	text_add(b, u->name);
	buf_z(b, " loop execute format('revoke %I from %I', g, ");
	text_add(b, u->name);
	buf_z(b, "); end loop; end $do$;\n");
	for (size_t k = 0; k < u->grant_count; k++)
		user_grant(b, u, &u->grants[k]);
	if (u->super)
		user_grant(b, u, &all);
}

/* --- one database's schema and tables */

static bool user_creates_in(const struct engine_user *u, const char *database)
{
	if (u->super)
		return true;
	for (size_t k = 0; k < u->grant_count; k++) {
		int row = built_in_find(u->grants[k].role);
		if (row >= 0 && built_in[row].levels & ~(1u << LEVEL_READ) && !*text_of(u->grants[k].collection) &&
		    (grant_is_any(&u->grants[k]) || strcmp(u->grants[k].database, database) == 0))
			return true;
	}
	return false;
}

static const char *const table_rights[LEVELS] = {"select", "select, insert, update, delete",
                                                 "truncate, references, trigger"};
static const char *const sequence_rights[LEVELS] = {"select", "select, usage, update", NULL};

/* What there is, and what each of the users that can make tables will make. */
static void groups_grant(struct buf *b, const struct plan *p, const char *database)
{
	char name[80];
	for (int level = 0; level < LEVELS; level++)
		for (int any = 0; any < 2; any++) {
			group_name(name, level, any ? NULL : database);
			buf_printf(b, "grant usage%s on schema public to ", level == LEVEL_READ ? "" : ", create");
			name_add(b, name);
			buf_printf(b, "; grant %s on all tables in schema public to ", table_rights[level]);
			name_add(b, name);
			buf_z(b, ";\n");
			if (sequence_rights[level]) {
				buf_printf(b, "grant %s on all sequences in schema public to ", sequence_rights[level]);
				name_add(b, name);
				buf_z(b, ";\n");
			}
			for (size_t i = 0; i < p->access->user_count; i++) {
				if (!user_creates_in(&p->access->users[i], database))
					continue;
				buf_z(b, "alter default privileges for role ");
				name_add(b, p->access->users[i].name);
				buf_printf(b, " grant %s on tables to ", table_rights[level]);
				name_add(b, name);
				buf_z(b, ";\n");
				if (!sequence_rights[level])
					continue;
				buf_z(b, "alter default privileges for role ");
				name_add(b, p->access->users[i].name);
				buf_printf(b, " grant %s on sequences to ", sequence_rights[level]);
				name_add(b, name);
				buf_z(b, ";\n");
			}
		}
}

/* Grants to users themselves, on tables and for tables to come, are set anew each time. */
static const char direct_clear[] =
        "do $do$ declare x record; begin\n"
        "for x in select distinct c.oid::regclass::text t, u.rolname u from pg_class c, aclexplode(c.relacl) a join "
        "pg_roles "
        "u on u.oid = a.grantee where u.rolcanlogin and u.rolname <> '" PG_SUPER
        "' and c.relowner <> u.oid and c.relkind in "
        "('r','p','v','m','f') loop execute format('revoke all on %s from %I', x.t, x.u); end loop;\n"
        "for x in select distinct o.rolname o, u.rolname u from pg_default_acl d join pg_roles o on o.oid = "
        "d.defaclrole, "
        "aclexplode(d.defaclacl) a join pg_roles u on u.oid = a.grantee where u.rolcanlogin and u.oid <> o.oid and "
        "d.defaclobjtype = 'r' loop execute format('alter default privileges for role %I revoke all on tables from "
        "%I', x.o, "
        "x.u); end loop; end $do$;\n";

static const char *table_privileges(const struct engine_grant *g)
{
	if (strcmp(g->role, "read") == 0)
		return "SELECT";
	if (strcmp(g->role, "readWrite") == 0)
		return "SELECT, INSERT, UPDATE, DELETE";
	return action_privilege(g->role);
}

/* On one table when it is there, or on all and those to come. */
static void direct_grant(struct buf *b, const struct plan *p, const struct engine_user *u, const struct engine_grant *g,
                         const char *database)
{
	const char *rights = table_privileges(g);
	bool table = *text_of(g->collection) != 0;
	if (!rights || (!table && built_in_find(g->role) >= 0) ||
	    (*text_of(g->database) && strcmp(g->database, database) != 0))
		return;
	buf_z(b, "grant connect on database ");
	name_add(b, database);
	buf_z(b, " to ");
	name_add(b, u->name);
	buf_z(b, "; grant usage on schema public to ");
	name_add(b, u->name);
	buf_z(b, ";\n");
	if (table) {
		struct buf quoted = {0};
		buf_z(&quoted, "public.");
		name_add(&quoted, g->collection);
		buf_c(&quoted, 0);
		buf_z(b, "do $do$ begin if to_regclass(");
		text_add(b, quoted.p);
		buf_printf(b, ") is not null then execute format('grant %s on %%s to %%I', to_regclass(", rights);
		text_add(b, quoted.p);
		buf_z(b, "), ");
		text_add(b, u->name);
		buf_z(b, "); end if; end $do$;\n");
		buf_free(&quoted);
		return;
	}
	buf_printf(b, "grant %s on all tables in schema public to ", rights);
	name_add(b, u->name);
	buf_z(b, ";\n");
	for (size_t i = 0; i < p->access->user_count; i++)
		if (user_creates_in(&p->access->users[i], database)) {
			buf_z(b, "alter default privileges for role ");
			name_add(b, p->access->users[i].name);
			buf_printf(b, " grant %s on tables to ", rights);
			name_add(b, u->name);
			buf_z(b, ";\n");
		}
}

/* What users that are gone own becomes the service's; what they were granted ends. */
static const char strangers_own[] =
        "do $do$ declare u name; begin for u in select rolname from pg_roles where rolcanlogin and rolname <> "
        "'" PG_SUPER "' and not rolname = any(%s) loop execute format('reassign owned by %%I to " PG_SUPER
        "', u); execute "
        "format('drop owned by %%I', u); end loop; end $do$;\n";
static const char strangers_drop[] =
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename <> '" PG_SUPER
        "' and not usename = any(%s);\n"
        "do $do$ declare u name; begin for u in select rolname from pg_roles where rolcanlogin and rolname <> "
        "'" PG_SUPER "' and not rolname = any(%s) loop execute format('drop role %%I', u); end loop; end $do$;\n";

/* The wanted users as array['a','b']::name[]. */
static char *users_array(const struct engine_access *access)
{
	struct buf b = {0};
	buf_z(&b, "array[");
	for (size_t i = 0; i < access->user_count; i++) {
		if (i)
			buf_c(&b, ',');
		text_add(&b, access->users[i].name);
	}
	buf_z(&b, "]::name[]");
	buf_c(&b, 0);
	return b.p;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static int database_apply(struct pg_cluster *c, struct pg_node *n, const struct plan *p, const char *database,
                          const char *wanted)
{
	PGconn *conn;
	struct buf b = {0};
	int r = sql_open_node(c, n, database, 3000, &conn);
	if (r < 0)
		return r;
	buf_z(&b, "begin;\n");
	buf_printf(&b, strangers_own, wanted);
	buf_z(&b, direct_clear);
	groups_grant(&b, p, database);
	for (size_t i = 0; i < p->access->user_count; i++)
		for (size_t k = 0; k < p->access->users[i].grant_count; k++)
			direct_grant(&b, p, &p->access->users[i], &p->access->users[i].grants[k], database);
	buf_z(&b, "commit;\n");
	r = run(conn, &b);
	buf_free(&b);
	PQfinish(conn);
	return r;
}

int grants_apply(struct pg_cluster *c, struct pg_node *n, PGconn *conn, const struct engine_access *access,
                 const char **ret_why)
{
	struct plan *p = must_calloc(1, sizeof *p);
	struct buf b = {0};
	char *wanted = users_array(access);
	p->conn = conn;
	p->access = access;
	int r = databases_read(p);
	r = r < 0 ? r : databases_make(p, ret_why);
	buf_z(&b, "begin;\n");
	groups_ensure(&b, p);
	connect_grant(&b, p);
	for (size_t i = 0; i < access->user_count; i++)
		user_ensure(&b, &access->users[i]);
	buf_z(&b, "commit;\n");
	if (r == 0)
		r = run(conn, &b);
	for (size_t d = 0; d < p->database_count && r == 0; d++)
		r = database_apply(c, n, p, p->databases[d], wanted);
	b.n = 0;
	buf_printf(&b, strangers_drop, wanted, wanted);
	if (r == 0)
		r = run(conn, &b);
	if (r < 0 && !*ret_why)
		why_set(ret_why, "users: %s", why_last());
	buf_free(&b);
	free(wanted);
	free(p);
	return r;
}
#pragma GCC diagnostic pop
