/* One database or one table of a snapshot, or of a moment, becomes part of a running cluster. The snapshot comes to the
 * point on a throwaway server, pg_dump takes the piece out of it, and pg_restore puts it beside what serves: into a
 * database that only its maker can connect to, or into a schema of its own. Then it changes its place, its name and its
 * owners in one transaction. Up to there nothing that users see has changed.
 *
 * A piece is code as much as data: checks, defaults, generated columns, indexes, domains and casts are evaluated while
 * it is written. So who writes it is no superuser, nor one who has become another: it is a session of PG_RESTORE, a
 * role that owns and may do nothing but in that database or schema, and that nobody else is. What the service does as
 * a superuser, before and after, changes catalogs alone (sql/piece_sql.c). And no text of the dump is read by anything
 * but pg_restore, which sends it to that session.
 *
 * What was cut short is known by whom it belongs to: it is PG_RESTORE's, and is dropped when the next one begins or the
 * cluster converges. That a piece has come is written with the change of places. */
#include "engine/postgres/backup/piece.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "catalog/formats.h"
#include "engine/postgres/backup/backup.h"
#include "engine/postgres/backup/recover.h"
#include "engine/postgres/backup/snapshot.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/pieces.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/piece_sql.h"
#include "engine/postgres/sql/search_schema.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>

#define THREADS 2
#define SQL_MS 60000
#define PROGRAM_MS (12 * 3600 * 1000)
#define CHANGE_TRIES 6 /* at a change of places that somebody's lock or session is in the way of */

struct run {
	struct engine *e;
	struct pg_cluster *c;
	const struct engine_piece *piece;
	const _Atomic bool *cancel;
	struct engine_progress *progress;
	struct arena *a;
	struct repository *repository;
	struct pg_recovery recovery;
	struct pg_throwaway server;
	bool serves; /* the throwaway server is there */
	struct pg_node node;
	char run[PG_PATH];             /* its sockets */
	PGconn *there, *here, *inside; /* on the throwaway server; on the cluster's, in postgres and in the database */
	json_t *wanted;
	volatile bool stop; /* what `cancel` says, for the repository */
	volatile int bound; /* that it has reached: -ENOSPC or -ETIME */
	pthread_mutex_t telling;
};

static bool is_cancelled(void *ctx)
{
	struct run *x = ctx;
	int bound = x->serves && !x->bound ? pg_throwaway_check(&x->server) : 0;
	if (bound < 0)
		x->bound = bound;
	if ((x->cancel && *x->cancel) || x->bound || pg_is_stopped(x->progress))
		x->stop = true;
	pthread_mutex_lock(&x->c->lock);
	if (x->c->destroying || x->c->gone)
		x->stop = true;
	pthread_mutex_unlock(&x->c->lock);
	return x->stop;
}

/* From several threads. */
static void files_tell(void *ctx, uint64_t done, uint64_t of)
{
	struct run *x = ctx;
	pthread_mutex_lock(&x->telling);
	pg_tell(x->progress, of ? (unsigned)(done * 50 / of) : 0, "bringing files back");
	pthread_mutex_unlock(&x->telling);
	(void)!is_cancelled(x);
}

/* --- what is said to servers */

/* The scripts' input, for the connection. */
static int wanted_set(struct run *x, PGconn *conn)
{
	struct str text = json_text(x->a, x->wanted);
	char *literal = PQescapeLiteral(conn, text.p, text.n);
	struct buf sql = {0};
	buf_printf(&sql, "select set_config('steward.wanted', ");
	buf_z(&sql, literal ? literal : "''");
	buf_z(&sql, ", false)");
	buf_c(&sql, 0);
	PQfreemem(literal);
	int r = pg_sql_do(conn, SQL_MS, sql.p);
	buf_free(&sql);
	return r;
}

static int say(struct run *x, PGconn *conn, const char *script)
{
	int r = wanted_set(x, conn);
	return r < 0 ? r : pg_sql_do(conn, SQL_MS, script);
}

static int ask(struct run *x, PGconn *conn, const char *script, PGresult **ret_rows)
{
	int r = wanted_set(x, conn);
	return r < 0 ? r : pg_sql_rows(conn, SQL_MS, script, ret_rows);
}

static int ask_number(struct run *x, PGconn *conn, const char *script, int64_t *ret_number)
{
	int r = wanted_set(x, conn);
	return r < 0 ? r : pg_sql_int(conn, SQL_MS, script, ret_number);
}

/* One value that is JSON becomes a part of what is wanted. */
static int ask_into(struct run *x, PGconn *conn, const char *script, const char *name)
{
	PGresult *rows;
	json_error_t error;
	int r = ask(x, conn, script, &rows);
	if (r < 0)
		return r;
	json_t *value = json_loads(pg_value(rows, 0, 0), 0, &error);
	PQclear(rows);
	if (!value)
		return -EPROTO;
	if (name)
		json_put(x->wanted, name, value);
	else
		json_object_update(x->wanted, value);
	if (!name)
		json_decref(value);
	return 0;
}

static const char *shown(struct run *x, const char *words)
{
	return arena_z(x->a, utf8_shown(x->a, str_of(words)));
}

static bool is_table(const struct run *x)
{
	return x->piece->table != NULL;
}

/* "shop", "shop/public.items" */
static const char *name_of(struct run *x, const char *last)
{
	const struct engine_piece *p = x->piece;
	return shown(x, is_table(x) ? arena_printf(x->a, "%s/%s.%s", p->database, p->schema, last).p : last);
}

/* --- the cluster that it goes to */

static int target_open(struct run *x)
{
	struct pg_cluster *c = x->c;
	struct pg_node *n = NULL;
	pthread_mutex_lock(&c->work);
	if (c->set_count == 1 && !c->paused && !c->gone && !c->destroying)
		n = pg_set_primary(c, &c->sets[0]);
	if (n && n->want.kind != NODE_ROUTER) {
		x->node = *n;
		pg_node_run_dir(c, n, x->run);
	}
	bool full = c->full != FULL_NOT, sharded = c->set_count > 1 || (n && n->want.kind == NODE_ROUTER);
	unsigned version = c->version;
	pthread_mutex_unlock(&c->work);
	if (sharded || full || !n) {
		pg_why_set(NULL, sharded ? "one database or table of a sharded cluster cannot be restored"
		                 : full  ? "the cluster's disk is full"
		                         : "the cluster has no primary at the moment");
		return sharded || full ? -EINVAL : -EBUSY;
	}
	json_int_t major = json_number(repo_manifest_facts(x->recovery.manifest), "major");
	if (major > version) {
		pg_why_set(NULL, "the snapshot is of version %d, the cluster runs %u", (int)major, version);
		return -EINVAL;
	}
	return pg_sql_open(&x->node, x->run, "postgres", 3000, &x->here);
}

static int inside_open(struct run *x, const char *database)
{
	PQfinish(x->inside);
	x->inside = NULL;
	return pg_sql_open(&x->node, x->run, database, 3000, &x->inside);
}

/* 1: there is a table of that name, or a view or whatever else has one. */
static int table_look(struct run *x, PGconn *conn, const char *script, char *ret_kind, bool *ret_related,
                      bool *ret_keyed)
{
	PGresult *rows;
	int r = ask(x, conn, script, &rows);
	if (r < 0)
		return r;
	bool found = PQntuples(rows) > 0;
	*ret_kind = *pg_value(rows, 0, 0);
	*ret_related = *pg_value(rows, 0, 1) == '1';
	*ret_keyed = *pg_value(rows, 0, 2) == '1';
	PQclear(rows);
	return found;
}

/* What has the name that it shall get. */
static int table_place_check(struct run *x)
{
	char kind;
	bool related, keyed;
	int r = inside_open(x, x->piece->database);
	if (r < 0) {
		pg_why_set(NULL, "there is no database \"%s\" in the cluster now, or it cannot be connected to",
		           shown(x, x->piece->database));
		return -EINVAL;
	}
	r = table_look(x, x->inside, pg_piece_sql_there, &kind, &related, &keyed);
	if (r <= 0)
		return r;
	if (!x->piece->replace)
		pg_why_set(NULL, "%s is there already", name_of(x, x->piece->as));
	else if (kind != 'r' || related)
		pg_why_set(NULL, "%s cannot be replaced: it is no table now, or one with partitions or children",
		           name_of(x, x->piece->as));
	else if (keyed)
		pg_why_set(NULL, "%s cannot be replaced: foreign keys lead to it or from it", name_of(x, x->piece->as));
	else
		return 0;
	return -EINVAL;
}

/* Rows that have left its tables would be named by nobody afterwards, and their files would go. */
static int archives_check(struct run *x)
{
	int64_t count = 0;
	if (inside_open(x, x->piece->as) < 0)
		return 0;
	int r = pg_sql_int(x->inside, SQL_MS, pg_piece_sql_archives, &count);
	if (r == 0 && count)
		r = pg_sql_int(x->inside, SQL_MS, pg_piece_sql_archived, &count);
	PQfinish(x->inside);
	x->inside = NULL;
	if (r < 0 || !count)
		return r;
	pg_why_set(NULL, "%s has archived rows, which would be forgotten: restore it beside, or the whole cluster",
	           name_of(x, x->piece->as));
	return -EINVAL;
}

static int database_place_check(struct run *x)
{
	int64_t there = 0;
	int r = ask_number(x, x->here, pg_piece_sql_named, &there);
	if (r == 0 && there && x->piece->replace)
		return archives_check(x);
	if (r < 0 || !there)
		return r;
	pg_why_set(NULL, "%s is there already", name_of(x, x->piece->as));
	return -EINVAL;
}

/* --- the snapshot, at the point */

static int snapshot_open(struct run *x)
{
	const struct engine_source *from = x->recovery.from;
	struct str *sets;
	size_t count;
	int r = pg_snapshot_sets(x->repository, from, x->a, &sets, &count);
	if (r < 0) {
		pg_why_set(NULL, "%s",
		           r == -ENOENT ? "there is no such snapshot, or it is not complete" : repository_why());
		return r;
	}
	if (count != 1) {
		pg_why_set(NULL, "one database or table of a sharded cluster cannot be restored");
		return -EINVAL;
	}
	snprintf(x->recovery.set, sizeof x->recovery.set, "%.*s", STR_ARG(sets[0]));
	r = repo_manifest_open(x->repository, from->cluster_id, from->snapshot_id, x->recovery.set,
	                       &x->recovery.manifest);
	if (r < 0) {
		x->recovery.manifest = NULL;
		pg_why_set(NULL, "%s", repository_why());
	}
	return r;
}

/* As the target's user, and encrypted as that is: what is dumped there is read by the program that restores it. */
static int server_make(struct run *x, const char **ret_why)
{
	const struct repo_progress progress = {.tell = files_tell, .ctx = x, .cancel = &x->stop};
	const json_t *facts = repo_manifest_facts(x->recovery.manifest);
	uint64_t bytes = repo_manifest_amount(x->recovery.manifest)->bytes, position = pg_lsn_of(facts, "position");
	struct engine_source beside = {.region = ""};
	char data[PG_PATH];
	snprintf(beside.group_id, sizeof beside.group_id, "%s", x->c->group_id);
	snprintf(beside.cluster_id, sizeof beside.cluster_id, "%s", x->c->id);
	int r = pg_recovery_aim(&x->recovery);
	if (r < 0)
		return r;
	bytes += x->recovery.target.end > position ? x->recovery.target.end - position : 0;
	r = pg_throwaway_room(x->e, bytes);
	r = r < 0 ? r : pg_throwaway_new(x->e, &beside, (unsigned)json_number(facts, "major"), &x->server);
	if (r < 0) {
		pg_why_set(ret_why, "a throwaway server cannot be made: %s",
		           r == -ENOENT || r == -ENOSPC ? pg_why_last() : strerror(-r));
		return r;
	}
	x->serves = true;
	pg_path_set(data, "%s/data", x->server.dir);
	const struct pg_user *user = x->server.user;
	r = repo_restore(x->recovery.manifest, data, user->uid, user->gid, THREADS, &progress);
	if (r < 0)
		pg_why_set(ret_why, "%s", repository_why());
	pg_tell(x->progress, 50, "recovering");
	return r < 0 ? r : pg_recovery_run(&x->recovery, &x->server, ret_why);
}

static int database_look(struct run *x)
{
	static const char *const names[] = {"encoding", "collate", "ctype", "provider", "locale", "owner"};
	PGconn *conn;
	PGresult *rows;
	int r = pg_throwaway_open(&x->server, "postgres", &conn);
	if (r < 0)
		return r;
	r = ask(x, conn, pg_piece_sql_database, &rows);
	if (r == 0) {
		for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
			json_put_str(x->wanted, names[i], utf8_shown(x->a, str_of(pg_value(rows, 0, i))));
		if (PQntuples(rows) == 0) {
			pg_why_set(NULL, "there was no database \"%s\" at that moment", shown(x, x->piece->database));
			r = -EINVAL;
		}
		PQclear(rows);
	}
	r = r < 0 ? r : say(x, conn, pg_piece_sql_reader);
	PQfinish(conn);
	return r;
}

static int table_prepare(struct run *x)
{
	char kind;
	bool related, keyed;
	int r = table_look(x, x->there, pg_piece_sql_table, &kind, &related, &keyed);
	if (r < 0)
		return r;
	if (r == 0)
		pg_why_set(NULL, "there was no table %s at that moment", name_of(x, x->piece->table));
	else if (kind != 'r' || related)
		pg_why_set(NULL,
		           "%s is no plain table, but a view, a part of others, or has parts: restore its database",
		           name_of(x, x->piece->table));
	else if (keyed && x->piece->replace)
		pg_why_set(NULL,
		           "%s had foreign keys at that moment, which do not come with it: it can be restored beside "
		           "the one of now, not in its place",
		           name_of(x, x->piece->table));
	else
		return say(x, x->there, pg_piece_sql_apart);
	return -EINVAL;
}

/* Only what is the piece's own is left of it, and of the users only those that the target has. */
static int server_prepare(struct run *x)
{
	int r = ask_into(x, x->here, pg_piece_sql_roles, "roles");
	for (const char *l = "rwaol"; r == 0 && *l; l++)
		json_add_str(json_object_get(x->wanted, "roles"),
		             arena_printf(x->a, "steward:%c:%s", *l, is_table(x) ? x->piece->database : x->piece->as));
	r = r < 0 ? r : database_look(x);
	if (r == 0 && pg_throwaway_open(&x->server, x->piece->database, &x->there) < 0) {
		x->there = NULL;
		r = -EIO;
	}
	r = r < 0 || is_table(x) ? r : ask_into(x, x->there, pg_piece_sql_facts, NULL);
	r = r < 0 ? r : say(x, x->there, pg_piece_sql_tidy);
	return r < 0 || !is_table(x) ? r : table_prepare(x);
}

/* --- out of the one and into the other */

/* A value of a connection string. */
static void word_add(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, "%s='", name);
	for (const char *p = value; *p; p++) {
		if (*p == '\'' || *p == '\\')
			buf_c(b, '\\');
		buf_c(b, *p);
	}
	buf_z(b, "' ");
}

/* What a database sets for whoever connects does not count. */
static const char *connection_string(struct run *x, const struct pg_node *n, const char *run, const char *user,
                                     const char *database)
{
	struct buf b = {0};
	char port[16];
	snprintf(port, sizeof port, "%u", n->port);
	word_add(&b, "host", run);
	word_add(&b, "port", port);
	word_add(&b, "user", user);
	word_add(&b, "dbname", database);
	word_add(&b, "application_name", "steward");
	word_add(&b, "sslmode", "disable");
	word_add(&b, "passfile", "/nonexistent");
	word_add(&b, "options",
	         "-c role=none -c statement_timeout=0 -c lock_timeout=1min -c idle_in_transaction_session_timeout=0 "
	         "-c default_transaction_read_only=off -c local_preload_libraries= -c default_tablespace= -c "
	         "synchronous_commit=on -c client_connection_check_interval=2s");
	const char *text = arena_z(x->a, buf_view(&b));
	buf_free(&b);
	return text;
}

/* A name as pg_dump takes it: in quotes nothing of it is a pattern. */
static const char *pattern_of(struct run *x)
{
	struct buf b = {0};
	buf_z(&b, "--table=" PG_STAGING ".\"");
	for (const char *p = x->piece->table; *p; p++) {
		if (*p == '"')
			buf_c(&b, '"');
		buf_c(&b, *p);
	}
	buf_c(&b, '"');
	const char *text = arena_z(x->a, buf_view(&b));
	buf_free(&b);
	return text;
}

static int dump(struct run *x, const char *file)
{
	const struct pg_stop stop = {.asked = is_cancelled, .ctx = x};
	char program[PG_PATH];
	pg_path_set(program, "%s/pg_dump", pg_version_bin(x->e, x->server.version));
	const char *argv[] = {program,
	                      "-d",
	                      connection_string(x, &x->server.node, x->server.run, PG_EXPORT, x->piece->database),
	                      "-Fc",
	                      "-Z1",
	                      "-f",
	                      file,
	                      "-w",
	                      "--no-owner",
	                      "--no-acl",
	                      "--no-publications",
	                      "--no-subscriptions",
	                      "--no-security-labels",
	                      "--no-tablespaces",
	                      is_table(x) ? pattern_of(x) : "--exclude-schema=steward*",
	                      NULL};
	pg_tell(x->progress, 60, "taking it out");
	return pg_process_run_until(x->server.user, argv, PROGRAM_MS, &stop);
}

/* What the piece itself is refused for comes again; a server that ends meanwhile does not. */
static bool is_refused(const char *why)
{
	return (strstr(why, "ERROR:") || strstr(why, "error:")) && !strstr(why, "terminat") &&
	       !strstr(why, "connection");
}

/* The server's words about it, without the statement and the row. */
static void refusal_cut(void)
{
	static const char *const ends[] = {"DETAIL:", "CONTEXT:", "HINT:", "Command was:", "LINE 1:"};
	char why[600];
	const char *from = strstr(pg_why_last(), "ERROR:");
	snprintf(why, sizeof why, "%s", from ? from : pg_why_last());
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		char *end = strstr(why, ends[i]);
		if (end)
			*end = 0;
	}
	pg_why_set(NULL, "%s", why);
}

static int write_piece(struct run *x, const char *file, const char *database)
{
	const struct pg_stop stop = {.asked = is_cancelled, .ctx = x, .quiet = true};
	char program[PG_PATH];
	pg_path_set(program, "%s/pg_restore", pg_version_bin(x->e, x->c->version));
	const char *argv[] = {program,
	                      "-d",
	                      connection_string(x, &x->node, x->run, PG_RESTORE, database),
	                      "-w",
	                      "--no-owner",
	                      "--no-acl",
	                      "--exit-on-error",
	                      "--no-publications",
	                      "--no-subscriptions",
	                      "--no-security-labels",
	                      "--no-tablespaces",
	                      is_table(x) ? "--single-transaction" : file,
	                      is_table(x) ? file : NULL,
	                      NULL};
	pg_tell(x->progress, 70, "bringing it back");
	int r = pg_process_run_until(x->c->user, argv, PROGRAM_MS, &stop);
	bool refused = r == -EIO && is_refused(pg_why_last());
	if (r == -EIO)
		refusal_cut();
	return refused ? -EINVAL : r;
}

/* --- one database */

static int database_make(struct run *x)
{
	PGresult *rows;
	int64_t searched = 0;
	const char *temporary = arena_z(x->a, json_field(x->wanted, "temporary"));
	int r = ask(x, x->here, pg_piece_sql_make, &rows);
	if (r < 0)
		return r;
	r = pg_sql_do(x->here, PROGRAM_MS, pg_value(rows, 0, 0));
	PQclear(rows);
	r = r < 0 ? r : say(x, x->here, pg_piece_sql_groups);
	r = r < 0 ? r : inside_open(x, temporary);
	r = r < 0 ? r : pg_sql_int(x->there, SQL_MS, pg_piece_sql_searched, &searched);
	if (r == 0 && searched) {
		r = pg_search_schema_make(x->a, x->inside);
		r = r < 0 ? r : pg_sql_do(x->inside, SQL_MS, pg_piece_sql_search);
	}
	return r;
}

/* All or nothing. Whoever came back between the two is put out again. */
static int database_change(struct run *x)
{
	int r = -EIO;
	PQfinish(x->inside);
	x->inside = NULL;
	for (int i = 0; i < CHANGE_TRIES && r < 0 && !is_cancelled(x); i++) {
		int64_t count;
		r = ask_number(x, x->here, pg_piece_sql_empty, &count);
		r = r < 0 ? r : say(x, x->here, pg_piece_sql_change);
	}
	return r;
}

static int database_bring(struct run *x, const char *file)
{
	int r = database_make(x);
	r = r < 0 ? r : write_piece(x, file, arena_z(x->a, json_field(x->wanted, "temporary")));
	pg_tell(x->progress, 95, "changing places");
	r = r < 0 ? r : say(x, x->inside, pg_piece_sql_rights);
	r = r < 0 ? r : say(x, x->inside, pg_piece_sql_owners);
	r = r < 0 ? r : say(x, x->inside, pg_piece_sql_settings);
	return r < 0 ? r : database_change(x);
}

/* --- one table */

static int table_bring(struct run *x, const char *file)
{
	int r = say(x, x->inside, pg_piece_sql_stage);
	r = r < 0 ? r : write_piece(x, file, x->piece->database);
	r = r < 0 ? r : say(x, x->inside, pg_piece_sql_names);
	pg_tell(x->progress, 95, "changing places");
	for (int i = 0; r == 0 && i < CHANGE_TRIES; i++) {
		r = say(x, x->inside, pg_piece_sql_place);
		if (r == 0 || is_cancelled(x) || !strstr(pg_why_last(), "lock timeout"))
			break;
		r = i + 1 < CHANGE_TRIES ? 0 : r;
	}
	if (r == -EPROTO && strstr(pg_why_last(), "depend"))
		r = -EINVAL;
	return r;
}

/* --- all of it */

static void wanted_make(struct run *x)
{
	const struct engine_piece *p = x->piece;
	x->wanted = json_new(x->a);
	json_put_z(x->wanted, "id", p->id);
	json_put_z(x->wanted, "database", p->database);
	json_put_z(x->wanted, "as", p->as);
	json_put_z(x->wanted, "suffix", p->suffix);
	json_put(x->wanted, "replace", json_boolean(p->replace));
	json_put_str(x->wanted, "temporary", arena_printf(x->a, "steward_restoring_%s", p->id));
	json_put_str(x->wanted, "replaced", arena_printf(x->a, "steward_replaced_%s", p->id));
	if (!is_table(x))
		return;
	json_put_z(x->wanted, "schema", p->schema);
	json_put_z(x->wanted, "table", p->table);
}

static int bring(struct run *x, const char **ret_why)
{
	char file[PG_PATH];
	int r = is_table(x) ? table_place_check(x) : database_place_check(x);
	r = r < 0 ? r : server_make(x, ret_why);
	r = r < 0 ? r : server_prepare(x);
	pg_path_set(file, "%s/dump", x->server.dir);
	r = r < 0 ? r : dump(x, file);
	if (r == 0 && is_cancelled(x))
		r = -ECANCELED;
	r = r < 0 ? r : pg_sql_do(x->here, SQL_MS, pg_piece_sql_writer);
	return r < 0 ? r : is_table(x) ? table_bring(x, file) : database_bring(x, file);
}

/* Its groups have their members, and its users their rights, when that is in force. */
static void access_apply(struct run *x, const struct engine_access *access)
{
	const char *why = NULL;
	pthread_mutex_lock(&x->c->work);
	int r = pg_access_apply(x->c, access, &why);
	pthread_mutex_unlock(&x->c->work);
	if (r != 0)
		log_warn("engine: %s: after a restore: %s", x->c->id, why ? why : "");
}

static int piece_run(struct run *x, const struct engine_access *access, const char **ret_why)
{
	int64_t done = 0;
	int r = snapshot_open(x);
	r = r < 0 ? r : target_open(x);
	r = r < 0 ? r : ask_number(x, x->here, pg_piece_sql_done, &done);
	r = r < 0 ? r : pg_pieces_sweep(&x->node, x->run, x->here);
	if (r == 0 && !done)
		r = is_cancelled(x) ? -ECANCELED : bring(x, ret_why);
	if (r < 0 && !*ret_why)
		pg_why_set(ret_why, "%s", *pg_why_last() ? pg_why_last() : strerror(-r));
	char why[600];
	snprintf(why, sizeof why, "%s", r < 0 ? *ret_why : "");
	PQfinish(x->there);
	PQfinish(x->inside);
	if (x->serves)
		(void)!pg_throwaway_end(&x->server); /* or when the service starts */
	x->serves = false;
	if (x->here)
		(void)!pg_pieces_sweep(&x->node, x->run, x->here); /* or with the next converge */
	PQfinish(x->here);
	if (r == 0)
		access_apply(x, access);
	if (r < 0)
		pg_why_set(ret_why, "%s", why);
	return r;
}

int pg_backup_restore_piece(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                            const struct engine_piece *piece, const struct engine_cluster *want,
                            const struct engine_access *access, const _Atomic bool *cancel,
                            struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	struct run x = {.e = e,
	                .piece = piece,
	                .cancel = cancel,
	                .progress = progress,
	                .a = a,
	                .telling = PTHREAD_MUTEX_INITIALIZER};
	const char *why = NULL;
	x.c = pg_cluster_find(e, want->id);
	if (!x.c) {
		*ret_why = "there is no such cluster";
		return -ESRCH;
	}
	x.recovery = (struct pg_recovery){.engine = e, .from = from, .point = to, .asked = is_cancelled, .ctx = &x};
	pg_pieces_begin(x.c);
	wanted_make(&x);
	int r = pg_repository_get(e, from->region, from->group_id, &x.repository, &why);
	if (r == 0)
		pg_why_set(NULL, "%s", "");
	r = r < 0 ? r : piece_run(&x, access, &why);
	if (r < 0 && x.bound) {
		r = x.bound;
		why = r == -ENOSPC ? "the disk was getting full meanwhile, and the databases need the rest of it"
		                   : "it took longer than a restore of one database or table may";
	} else if (r < 0 && x.stop) {
		r = -ECANCELED;
	}
	if (r < 0)
		*ret_why = arena_z(a, str_of(shown(&x, why ? why : strerror(-r))));
	else
		pg_tell(progress, 100, "done");
	if (x.recovery.manifest)
		repo_manifest_close(x.recovery.manifest);
	repository_put(x.repository);
	pg_pieces_end(x.c);
	pg_cluster_put(x.c);
	return r;
}
