/* Users and their grants as PostgreSQL has them. A built-in role on one database is membership in a group of that
 * database (steward:r:DB, steward:w:DB, steward:a:DB: read, read and write, administer); on any database, in
 * steward:any:r and so on. Who writes a database belongs to steward:o:DB, which owns its tables, so that everybody who
 * writes can also alter them and they outlive their makers. Grants on one table, and single actions of custom roles, go
 * to the user directly. A database that a grant names is made when it is not there: users must be able to connect at
 * once.
 *
 * What is wanted goes to the server as JSON; scripts there (grants_sql.c) change what differs: first, of what
 * all databases share, whatever is to be taken away, then the roles, and then each database in a transaction of its
 * own. Every role is one of ours, because users cannot make roles.
 *
 * What a user leaves behind belongs to steward:l:DB, which has no rights but those of an owner of just that; who
 * administers or writes the database may do with it what owners may. Nothing of it runs with its owner's rights any
 * more. */
#include "engine/postgres/sql/grants.h"

#include "base/buf.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/grants_sql.h"
#include "engine/postgres/sql/groups_sql.h"
#include "engine/postgres/sql/sql.h"
#include "store/seal.h"

#include <errno.h>
#include <stdlib.h>

#define TIMEOUT_MS 30000
#define REVOKE_MS 10000
#define SLOW_MS 5000 /* of visits to databases, before nobody's lock is waited for any more */
#define DATABASES_MAX 1000
#define DATABASE_NAME_MAX 52 /* a group's name has ten bytes more, of 63 */

enum level { LEVEL_READ, LEVEL_WRITE, LEVEL_ADMIN, LEVELS };
static const char level_letter[LEVELS] = {'r', 'w', 'a'};
#define READ (1u << LEVEL_READ)
#define WRITE (1u << LEVEL_WRITE)
#define ADMIN (1u << LEVEL_ADMIN)

static const struct {
	const char *role;
	unsigned levels; /* bits of enum level */
	bool any, monitor, signal;
} built_in[] = {
        {"read", READ, false, false, false},
        {"readWrite", READ | WRITE, false, false, false},
        {"dbAdmin", ADMIN, false, false, false},
        {"readAnyDatabase", READ, true, false, false},
        {"readWriteAnyDatabase", READ | WRITE, true, false, false},
        {"dbAdminAnyDatabase", ADMIN, true, false, false},
        {"clusterMonitor", 0, true, true, false},
        {"backup", READ, true, true, false},
        {"enableSharding", 0, true, false, false},
        {"svcAdmin", READ | WRITE | ADMIN, true, true, true},
};

/* Actions of custom roles, already flattened to grants: rights on tables, a group of the server, or what only a table's
 * owner may do. Others mean nothing here. */
static const struct {
	const char *action, *privilege, *group;
	bool owner;
} actions[] = {
        {"FIND", "SELECT", NULL, false},
        {"INSERT", "INSERT", NULL, false},
        {"UPDATE", "UPDATE", NULL, false},
        {"REMOVE", "DELETE", NULL, false},
        {"CREATE_COLLECTION", "", NULL, false},
        {"CREATE_INDEX", NULL, NULL, true},
        {"DROP_INDEX", NULL, NULL, true},
        {"DROP_COLLECTION", NULL, NULL, true},
        {"COLL_MOD", NULL, NULL, true},
        {"RENAME_COLLECTION_SAME_DB", NULL, NULL, true},
        {"RE_INDEX", NULL, NULL, true},
        {"IN_PROG", NULL, "pg_read_all_stats", false},
        {"SERVER_STATUS", NULL, "pg_read_all_stats", false},
        {"TOP", NULL, "pg_read_all_stats", false},
        {"LIST_SESSIONS", NULL, "pg_read_all_stats", false},
        {"CONN_POOL_STATS", NULL, "pg_read_all_stats", false},
        {"REPL_SET_GET_STATUS", NULL, "pg_read_all_stats", false},
        {"GET_PARAMETER", NULL, "pg_read_all_settings", false},
        {"GET_CMD_LINE_OPTS", NULL, "pg_read_all_settings", false},
        {"REPL_SET_GET_CONFIG", NULL, "pg_read_all_settings", false},
        {"KILL_OP", NULL, "pg_signal_backend", false},
        {"KILL_ANY_SESSION", NULL, "pg_signal_backend", false},
        {"KILL_ANY_CURSOR", NULL, "pg_signal_backend", false},
};

struct database {
	char name[64], oid[16];
	char hash[65]; /* of what is given there */
	bool is_stale; /* what was last given there is something else, or somebody is gone from it */
};

struct plan {
	const struct engine_access *access;
	struct database databases[DATABASES_MAX];
	size_t database_count;
	bool is_partial; /* there are more */
};

static int built_in_find(const char *role)
{
	for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
		if (strcmp(built_in[i].role, role) == 0)
			return (int)i;
	return -1;
}

static int action_find(const char *role)
{
	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (strcmp(actions[i].action, role) == 0)
			return (int)i;
	return -1;
}

static const char *z_or_empty(const char *z)
{
	return z ? z : "";
}

/* Whether the grant is for every database. */
static bool grant_is_any(const struct engine_grant *g)
{
	int row = built_in_find(g->role);
	return (row >= 0 && built_in[row].any) || !*z_or_empty(g->database);
}

static bool grant_is_in(const struct engine_grant *g, const char *database)
{
	return grant_is_any(g) || strcmp(g->database, database) == 0;
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

static void text_add(struct buf *b, const struct buf *text)
{
	buf_z(b, " E'");
	for (size_t i = 0; i < text->n; i++) {
		if (text->p[i] == '\'' || text->p[i] == '\\')
			buf_c(b, text->p[i]);
		buf_c(b, text->p[i]);
	}
	buf_c(b, '\'');
}

void pg_shadow_name(const char *cluster_id, const char *user, char ret_name[64])
{
	char hash[65];
	struct buf both = {0};
	buf_printf(&both, "%s/%s", cluster_id, user); /* as the endpoint's mappings have it (federation/federation.c) */
	sha256_hex(buf_view(&both), hash);
	snprintf(ret_name, 64, PG_SHADOW "%.40s", hash);
	buf_free(&both);
}

static int run(PGconn *conn, struct buf *b)
{
	buf_c(b, 0);
	int r = pg_sql_do(conn, TIMEOUT_MS, b->p);
	b->n = 0;
	return r;
}

/* --- databases */

static struct database *database_find(struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->database_count; i++)
		if (strcmp(p->databases[i].name, name) == 0)
			return &p->databases[i];
	return NULL;
}

/* A database that is a template (its maker may call it one) can be connected to like any other. Where there are too
 * many, those that users made come last. */
static int databases_read(struct plan *p, PGconn *conn)
{
	PGresult *rows;
	int r = pg_sql_rows(
	        conn, TIMEOUT_MS,
	        "select datname from pg_database where datallowconn and datname not in ('template0', 'template1') and "
	        "octet_length(datname) <= 52 and pg_get_userbyid(datdba) <> '" PG_RESTORE
	        "' order by pg_get_userbyid(datdba) <> '" PG_SUPER "', 1",
	        &rows);
	if (r < 0)
		return r;
	for (int i = 0; i < PQntuples(rows) && p->database_count < DATABASES_MAX; i++)
		snprintf(p->databases[p->database_count++].name, 64, "%s", pg_value(rows, i, 0));
	p->is_partial = PQntuples(rows) > DATABASES_MAX;
	PQclear(rows);
	return 0;
}

static int database_make(struct plan *p, PGconn *conn, const char *name, const char **ret_why)
{
	struct buf b = {0};
	if (strlen(name) > DATABASE_NAME_MAX || strncmp(name, "template", 8) == 0 ||
	    p->database_count == DATABASES_MAX) {
		pg_why_set(ret_why,
		           "database %.60s: a name of at most 52 bytes that is no template, of at most %d in all", name,
		           DATABASES_MAX);
		return -EINVAL;
	}
	buf_z(&b, "create database ");
	name_add(&b, name);
	int r = run(conn, &b);
	buf_free(&b);
	if (r == 0)
		snprintf(p->databases[p->database_count++].name, 64, "%s", name);
	return r;
}

/* One that cannot be made (somebody has one of that name which nobody can connect to, for example) keeps no other from
 * being made. */
static int databases_make(struct plan *p, PGconn *conn, const char **ret_why)
{
	int fault = 0;
	for (size_t i = 0; i < p->access->user_count; i++)
		for (size_t k = 0; k < p->access->users[i].grant_count; k++) {
			const struct engine_grant *g = &p->access->users[i].grants[k];
			if (grant_is_any(g) || database_find(p, g->database))
				continue;
			int r = database_make(p, conn, g->database, ret_why);
			if (r == -EPROTO)
				pg_why_set(ret_why, "users: database %.60s: %s", g->database, pg_why_last());
			if (r < 0)
				fault = r;
			if (r < 0 && r != -EPROTO && r != -EINVAL)
				return r;
		}
	return fault;
}

/* --- what is wanted, in words of the scripts */

/* Rights on all tables of a database that single actions add up to. */
#define DATA_ACTIONS 4 /* the first of the table */

/* Whether a user's actions make up all that writing a database is, with something that only owners may do: then it is
 * one of its writers. */
static bool user_owns_by_actions(const struct engine_user *u, const char *database)
{
	bool data[DATA_ACTIONS] = {false}, owner = false;
	for (size_t k = 0; k < u->grant_count; k++) {
		int row = action_find(u->grants[k].role);
		if (row < 0 || *z_or_empty(u->grants[k].collection) || !grant_is_in(&u->grants[k], database))
			continue;
		if (row < DATA_ACTIONS)
			data[row] = true;
		owner = owner || actions[row].owner;
	}
	return owner && data[0] && data[1] && data[2] && data[3];
}

/* "steward:r:DB", or "steward:any:r" without a database. */
static void group_add(struct buf *b, enum level level, const char *database)
{
	char name[80];
	if (database)
		snprintf(name, sizeof name, "steward:%c:%s", level_letter[level], database);
	else
		snprintf(name, sizeof name, "steward:any:%c", level_letter[level]);
	json_z(b, name);
}

static void grant_groups(struct buf *b, const struct engine_grant *g)
{
	int row = built_in_find(g->role), action = action_find(g->role);
	if (action >= 0 && actions[action].group)
		json_z(b, actions[action].group);
	if (row < 0 || *z_or_empty(g->collection))
		return;
	for (int level = 0; level < LEVELS; level++)
		if (built_in[row].levels & (1u << level))
			group_add(b, (enum level)level, grant_is_any(g) ? NULL : g->database);
	if (built_in[row].monitor)
		json_z(b, "pg_monitor");
	if (built_in[row].signal)
		json_z(b, "pg_signal_backend");
}

/* Whether the user may make databases: who writes any. A database's maker owns it, which is more than administering. */
static bool user_makes_databases(const struct engine_user *u)
{
	for (size_t k = 0; k < u->grant_count; k++) {
		int row = built_in_find(u->grants[k].role);
		if (row >= 0 && built_in[row].any && built_in[row].levels & WRITE)
			return true;
	}
	return u->super;
}

static void user_add(struct buf *b, const struct plan *p, const struct engine_user *u)
{
	static const struct engine_grant all = {"svcAdmin", "", ""};
	json_open(b, '{');
	json_key(b, "name");
	json_z(b, u->name);
	if (u->scram) {
		json_key(b, "password");
		json_z(b, u->scram);
	}
	json_key(b, "createdb");
	json_bool(b, user_makes_databases(u));
	json_key(b, "groups");
	json_open(b, '[');
	for (size_t k = 0; k < u->grant_count; k++)
		grant_groups(b, &u->grants[k]);
	if (u->super)
		grant_groups(b, &all);
	if (u->as)
		json_z(b, u->as);
	for (size_t d = 0; d < p->database_count; d++)
		if (user_owns_by_actions(u, p->databases[d].name))
			group_add(b, LEVEL_WRITE, p->databases[d].name);
	json_close(b, ']');
	if (u->as)
		json_pair_z(b, "as", u->as);
	json_close(b, '}');
}

static const char *table_privileges(const struct engine_grant *g)
{
	int row = action_find(g->role);
	if (row >= 0)
		return actions[row].privilege;
	if (strcmp(g->role, "read") == 0)
		return "SELECT";
	return strcmp(g->role, "readWrite") == 0 ? "SELECT, INSERT, UPDATE, DELETE" : NULL;
}

/* What goes to the user directly: built-in roles on one table, and actions. */
static void right_add(struct buf *b, const struct engine_user *u, const struct engine_grant *g)
{
	const char *rights = table_privileges(g);
	if (!rights || (!*z_or_empty(g->collection) && built_in_find(g->role) >= 0))
		return;
	json_open(b, '{');
	json_key(b, "u");
	json_z(b, u->name);
	json_key(b, "t");
	json_z(b, z_or_empty(g->collection));
	json_key(b, "p");
	json_z(b, rights);
	json_key(b, "c");
	json_bool(b, !*rights && !*z_or_empty(g->collection));
	json_close(b, '}');
}

/* What users are given themselves in one database. */
static void rights_add(struct buf *json, const struct plan *p, const char *database)
{
	json_open(json, '[');
	for (size_t i = 0; i < p->access->user_count; i++)
		for (size_t k = 0; k < p->access->users[i].grant_count; k++)
			if (grant_is_in(&p->access->users[i].grants[k], database))
				right_add(json, &p->access->users[i], &p->access->users[i].grants[k]);
	json_close(json, ']');
}

static int input_set(PGconn *conn, const struct buf *json)
{
	struct buf b = {0};
	buf_z(&b, "select set_config('steward.wanted',");
	text_add(&b, json);
	buf_z(&b, ", false)");
	int r = run(conn, &b);
	buf_free(&b);
	return r;
}

/* Sets the scripts' input: the users, and what they are given in one database (NULL: none in particular). */
static int wanted_set(PGconn *conn, const struct plan *p, const char *database)
{
	struct buf json = {0};
	json_open(&json, '{');
	json_key(&json, "databases");
	json_open(&json, '[');
	for (size_t d = 0; d < p->database_count; d++)
		json_z(&json, p->databases[d].name);
	json_close(&json, ']');
	json_key(&json, "users");
	json_open(&json, '[');
	for (size_t i = 0; i < p->access->user_count; i++)
		user_add(&json, p, &p->access->users[i]);
	json_close(&json, ']');
	if (database) {
		json_key(&json, "rights");
		rights_add(&json, p, database);
	}
	json_close(&json, '}');
	int r = input_set(conn, &json);
	buf_free(&json);
	return r;
}

/* --- applying */

/* The functions and the trigger in the database of the connection, which is to be quiet from here on. */
static int install(PGconn *conn, const char *patience)
{
	int64_t done = 0;
	int r = pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_quiet);
	if (r == 0)
		r = pg_sql_do(conn, TIMEOUT_MS, patience);
	if (r == 0)
		r = pg_sql_int(conn, TIMEOUT_MS, pg_grants_sql_installed, &done);
	for (size_t i = 0; pg_grants_sql_install[i] && r == 0 && !done; i++)
		r = pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_install[i]);
	return r;
}

/* What the last script could not do; the rest of it is done. */
static int faults_take(PGconn *conn, const char **ret_why)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, TIMEOUT_MS, pg_grants_sql_faults, &rows);
	if (r < 0)
		return r;
	if (PQntuples(rows) > 0 && *pg_value(rows, 0, 0)) {
		pg_why_set(ret_why, "users: %.400s", pg_value(rows, 0, 0));
		r = -EBUSY;
	}
	PQclear(rows);
	return r;
}

/* Each step on its own: what one cannot do now, because somebody holds a table, keeps nothing else from being done. */
static int database_apply(struct pg_cluster *c, struct pg_node *n, const struct plan *p, const char *database,
                          unsigned lock_ms)
{
	static const struct {
		const char *script;
		bool tells; /* its faults, see pg_grants_sql_faults */
	} steps[] = {{pg_grants_sql_prepare, true},  {pg_grants_sql_owners, true}, {pg_grants_sql_direct, true},
	             {pg_grants_sql_definers, true}, {pg_grants_sql_lost, false},  {pg_grants_sql_surplus, true},
	             {pg_grants_sql_to_come, true}};
	const char *why = NULL;
	char patience[64];
	PGconn *conn;
	int r = pg_sql_open_node(c, n, database, 3000, &conn), fault = 0;
	if (r < 0)
		return r;
	snprintf(patience, sizeof patience, "set lock_timeout = %u", lock_ms);
	r = install(conn, patience);
	r = r < 0 ? r : wanted_set(conn, p, database);
	for (size_t i = 0; i < sizeof steps / sizeof *steps && r == 0; i++) {
		int done = pg_sql_do(conn, TIMEOUT_MS, steps[i].script);
		if (done == 0 && steps[i].tells)
			done = faults_take(conn, &why);
		fault = done < 0 ? done : fault;
		r = done == -EPROTO || done == -EBUSY ? 0 : done;
	}
	PQfinish(conn);
	return r < 0 ? r : fault;
}

/* The template of databases to come: users may make some, and their tables shall be as any other. Once. */
static int template_install(struct pg_cluster *c, struct pg_node *n, PGconn *conn)
{
	int64_t done = 0;
	PGconn *inside;
	int r = pg_sql_int(conn, TIMEOUT_MS, pg_grants_sql_template_done, &done);
	if (r < 0 || done)
		return r;
	r = pg_sql_open_node(c, n, "template1", 3000, &inside);
	if (r < 0)
		return r;
	r = install(inside, "set lock_timeout = '2s'");
	if (r == 0)
		r = pg_sql_do(inside, TIMEOUT_MS, pg_grants_sql_template);
	PQfinish(inside);
	return r;
}

/* Which databases have to be visited: most changes are of roles alone, which all databases share. The superuser's notes
 * of what was given where are by the databases' ids: one that was made anew under the same name is another. */
static int stale_find(struct plan *p, PGconn *conn)
{
	PGresult *rows;
	int64_t noted = 0;
	struct buf json = {0};
	for (size_t d = 0; d < p->database_count; d++) {
		json.n = 0;
		buf_z(&json, pg_grants_sql_version);
		rights_add(&json, p, p->databases[d].name);
		sha256_hex(buf_view(&json), p->databases[d].hash);
		p->databases[d].is_stale = true;
	}
	buf_free(&json);
	int r = pg_sql_int(conn, TIMEOUT_MS, pg_grants_sql_noted, &noted);
	if (r == 0)
		r = pg_sql_rows(conn, TIMEOUT_MS, noted ? pg_grants_sql_notes : pg_grants_sql_oids, &rows);
	if (r < 0)
		return r;
	for (int i = 0; i < PQntuples(rows); i++) {
		struct database *d = database_find(p, pg_value(rows, i, 0));
		if (!d)
			continue;
		snprintf(d->oid, sizeof d->oid, "%s", pg_value(rows, i, 1));
		d->is_stale = strcmp(pg_value(rows, i, 2), d->hash) != 0 || *pg_value(rows, i, 3) == 't';
	}
	PQclear(rows);
	return 0;
}

static int notes_write(const struct plan *p, PGconn *conn)
{
	struct buf json = {0};
	json_open(&json, '{');
	for (size_t d = 0; d < p->database_count; d++) {
		json_key(&json, p->databases[d].oid);
		json_z(&json, p->databases[d].hash);
	}
	json_close(&json, '}');
	int r = input_set(conn, &json);
	buf_free(&json);
	return r < 0 ? r : pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_note);
}

/* Nobody connects to a database that cannot be told who lost what was given there. */
static int database_bar(const struct plan *p, PGconn *conn, const struct database *d)
{
	struct buf json = {0};
	json_open(&json, '{');
	json_key(&json, "database");
	json_z(&json, d->name);
	json_key(&json, "rights");
	rights_add(&json, p, d->name);
	json_close(&json, '}');
	int r = input_set(conn, &json);
	buf_free(&json);
	return r < 0 ? r : pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_bar);
}

/* A database that cannot be changed now (its owner may have seen to that) does not keep the others from being. */
static int databases_apply(struct pg_cluster *c, struct pg_node *n, struct plan *p, PGconn *conn, const char **ret_why)
{
	bool visited = false;
	int64_t slow = pg_mono_ms() + SLOW_MS;
	int r = stale_find(p, conn), fault = r < 0 ? 0 : pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_databases);
	if (fault < 0)
		pg_why_set(ret_why, "users: owners of databases: %s", pg_why_last());
	else if (r == 0)
		fault = faults_take(conn, ret_why);
	for (size_t d = 0; d < p->database_count && r == 0; d++) {
		struct database *at = &p->databases[d];
		/* Whoever holds a table in each of many databases would hold up the next revocation for minutes. */
		unsigned lock_ms = fault < 0 || pg_mono_ms() > slow ? 50 : 1000;
		int done = at->is_stale ? database_apply(c, n, p, at->name, lock_ms) : 0;
		visited = visited || at->is_stale;
		if (done < 0) {
			at->hash[0] = 0; /* stale next time too */
			fault = done;
			pg_why_set(ret_why, "users: database %.60s: %s", at->name,
			           done == -ETIMEDOUT ? strerror(-done) : pg_why_last());
			(void)!database_bar(p, conn, at);
		}
	}
	r = r < 0 ? r : wanted_set(conn, p, NULL);
	r = r < 0 ? r : pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_strangers);
	r = r < 0 || !visited ? r : notes_write(p, conn);
	r = r < 0 || fault < 0 ? r : pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_lost_done);
	return r < 0 ? r : fault;
}

int pg_grants_revoke(PGconn *conn, const struct engine_access *access, const char **ret_why)
{
	struct plan *p = must_calloc(1, sizeof *p);
	p->access = access;
	int r = pg_sql_do(conn, REVOKE_MS, pg_grants_sql_quiet);
	r = r < 0 ? r : databases_read(p, conn);
	r = r < 0 ? r : wanted_set(conn, p, NULL);
	r = r < 0 ? r : pg_sql_do(conn, REVOKE_MS, pg_grants_sql_clear);
	r = r < 0 ? r : pg_sql_do(conn, REVOKE_MS, pg_grants_sql_revoke);
	int fault = r < 0 ? r : faults_take(conn, ret_why);
	/* Who cannot log in any more has no session either, and makes nothing from here on. */
	r = r < 0 ? r : pg_sql_do(conn, REVOKE_MS, pg_grants_sql_sessions);
	if (r < 0 && !*ret_why)
		pg_why_set(ret_why, "users: %s", pg_why_last());
	free(p);
	return r < 0 ? r : fault;
}

int pg_grants_give(struct pg_cluster *c, struct pg_node *n, PGconn *conn, const struct engine_access *access,
                   const char **ret_why)
{
	struct plan *p = must_calloc(1, sizeof *p);
	p->access = access;
	int r = pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_quiet), fault = 0;
	if (r == 0 && (fault = template_install(c, n, conn)) < 0)
		pg_why_set(ret_why, "users: template1: %s", pg_why_last());
	r = r < 0 ? r : databases_read(p, conn);
	if (p->is_partial) {
		pg_why_set(ret_why, "users: more than %d databases; those that users made last are left out",
		           DATABASES_MAX);
		fault = -E2BIG;
	}
	if (r == 0) {
		int made = databases_make(p, conn, ret_why);
		fault = made < 0 ? made : fault;
		r = made == -ETIMEDOUT || made == -EIO ? made : 0;
	}
	r = r < 0 ? r : wanted_set(conn, p, NULL);
	r = r < 0 ? r : pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_roles);
	if (r == 0) {
		int given = faults_take(conn, ret_why);
		fault = given < 0 ? given : fault;
		r = pg_sql_do(conn, TIMEOUT_MS, pg_grants_sql_shadows);
	}
	r = r < 0 ? r : databases_apply(c, n, p, conn, ret_why);
	if (r < 0 && !*ret_why)
		pg_why_set(ret_why, "users: %s", pg_why_last());
	free(p);
	return r < 0 ? r : fault;
}
